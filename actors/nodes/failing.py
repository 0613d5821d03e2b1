"""Failure and repair of a node: what it loses, which actors are notified, and what happens to messages to it.

1. FAIL: the tasks that run are lost, and so is the queue. The node is down.
2. DETECT: after the detection time (the failure detector stands for missed heartbeats), or at the repair if that is
   earlier, all schedulers are notified that the node is down. The scheduler of each lost task and probe is notified of
   the loss.
3. REPAIR: the node is up again with an empty queue and idle slots, and the schedulers are notified. It does not steal
   before it has received work.

A task or probe that is sent to a node that is down is lost like its queue. Its scheduler is notified when the failure
is detected, and at once after that. The generation of a node counts its failures. An answer to a request of an earlier
generation is ignored; a task in it is lost. The failure detector sends its messages from the node's own row, so that
they are the same for any partitions. Failures and repairs are background events: a run does not wait for them. Step 2
of a node that has lost work is not in the background: a run ends only after it.
"""

import numpy as np

from actors.failures import (
    NEVER_AGAIN,
    NO_EPOCH,
    HasFaults,
    announce_state,
    expect_failure,
    history_of,
    note_history,
    note_sent,
    record_attempt,
    record_lost_output,
    unlink_running,
)
from actors.inputs import HasInputs, can_lose_outputs, is_fetching
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_STARTED
from actors.kernel.messages import DETECT, FAIL, NODE_DOWN, NODE_UP, REPAIR, read_job, send_broken, send_lost
from actors.kernel.queue import NONE, wake_in_background
from actors.kernel.sums import carry
from actors.nodes import messages
from actors.nodes.messages import OFFERED
from actors.nodes.waiting import enqueue, length_of, remove
from actors.nodes.world import N_PLACEMENTS_LOST, N_PROBES_LOST, N_TASKS_LOST, World
from actors.resources import empty_node


@compiled
def apply_failure(w: World, node: int) -> bool:
    """Apply failures to a message to a node; return whether the message is handled by that."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == FAIL:
        fail(w, t, node)
        if w.inputs.active == 1:
            send_broken(w, t, node)
    elif kind == DETECT:
        detect(w, t, node)
    elif kind == REPAIR:
        repair(w, t, node)
    elif not is_void(w, node):
        if kind == messages.TASK_END:
            _, task, _ = messages.read_task_end(w)
            unlink_running(w, node, task)
            w.queue.now.unfinished[0] -= 1
        return False
    elif kind == messages.PROBE:
        lose(w, t, node, read_job(w), NONE)
    elif kind == messages.TASK or kind == messages.PLACED or kind == OFFERED:
        job, task, _ = messages.read_task_sent(w)
        note_history(w, task, messages.read_history(w))
        lose(w, t, node, job, task)
    elif kind == messages.CANCEL:
        note_sent(w, messages.read_cancel(w)[1])
    return True


@inlined
def is_void(w: World, node: int) -> bool:
    """Whether a message is void: the node is down, or has failed since it asked for the task or started it."""
    kind, row = w.queue.now.kind[0], w.faults.actors
    if row.down[node] == 1:
        return True
    if kind == messages.TASK_END:
        _, task, start = messages.read_task_end(w)
        tasks, t = w.faults.tasks, w.queue.now.time[0]
        return tasks.node[task] != node or tasks.start[task] != start or tasks.end[task] != t
    return (kind == messages.TASK or kind == messages.NO_TASK) and messages.read_generation(
        w
    ) != row.generation[node]


@inlined
def fail(w: World, t: int, node: int) -> None:
    """Step 1: the node fails; running tasks are lost."""
    begin_outage(w, t, node, np.int64(N_TASKS_LOST))
    w.nodes.idle[node], w.nodes.running[node], w.nodes.version[node] = 0, NONE, NONE
    entry = w.nodes.head[node]
    while entry != NONE:
        count_lost(w, w.entries.task[entry], length_of(w.entries, entry))
        entry = w.entries.next[entry]
    expect_detection(w, w.faults.actors.detect[node], node)


@inlined
def begin_outage(w: HasInputs, t: int, node: int, lost: int) -> None:
    """Note that a node is down, and count the tasks that ran.

    Args:
        lost: the counter of tasks, before those of the time that they had run and of its wholes.
    """
    row, tasks = w.faults.actors, w.faults.tasks
    row.down[node], row.detected[node] = 1, 0
    row.generation[node] += 1
    row.detect[node] = min(t + w.faults.detection, row.repair[node])
    task = row.running[node]
    while task != NONE:
        count_lost_run(w, t, node, task, lost)
        if is_fetching(w.inputs, task):
            w.inputs.fetching[w.inputs.stage[task]] -= 1
        if can_lose_outputs(w.inputs):  # an end that was not reported is none
            w.inputs.outputs.ended[task] = NONE
        task = tasks.next[task]


@inlined
def count_lost_run(w: HasInputs, t: int, node: int, task: int, lost: int) -> None:
    """Count a task that runs on a node and ends at `t` before its time; `lost` as of `begin_outage`."""
    counts, tasks = w.counts, w.faults.tasks
    counts[N_STARTED + w.work.report_class[tasks.job[task]]] -= 1
    counts[lost] += 1
    # Over a network it has its place from its launch on, and `start` is when it began to compute.
    begin = w.inputs.launched[task] if w.inputs.active == 1 else tasks.start[task]
    lost_ns = counts[lost + 1] + t - begin
    counts[lost + 1], counts[lost + 2] = carry(lost_ns, counts[lost + 2])
    record_attempt(w, task, node, begin, t)


@inlined
def has_losses(w: HasFaults, node: int) -> bool:
    """Whether a node that is down has losses that it has not reported."""
    return w.faults.actors.running[node] != NONE or w.nodes.head[node] != NONE


@inlined
def expect_detection(w: HasFaults, t: int, node: int) -> None:
    """Schedule step 2, or the next part of it."""
    wake_in_background(w, t, node, DETECT)
    if has_losses(w, node):
        w.queue.now.background[0] -= 1


@inlined
def detect(w: HasFaults, t: int, node: int) -> None:
    """Step 2: notify the schedulers, in several parts if the messages of one event do not suffice."""
    row, rows = w.faults.actors, w.faults.tasks
    left = w.queue.room - 4
    if has_losses(w, node):  # this message was not counted as a background message
        w.queue.now.background[0] += 1
    if row.detected[node] == 0:
        row.detected[node] = 1
        announce_state(w, t, node, NODE_DOWN)
    while left > 0 and row.running[node] != NONE:
        task = row.running[node]
        job = rows.job[task]
        unlink_running(w, node, task)
        send_lost(w, t, node, w.work.home[job], job, task, rows.start[task], rows.history[task])
        left -= 1
    while left > 0 and w.nodes.head[node] != NONE:
        entry = w.nodes.head[node]
        job, task = w.entries.job[entry], w.entries.task[entry]
        remove(w, node, entry, NONE)
        send_lost(w, t, node, w.work.home[job], job, task, NONE, history_of(w, task))
        left -= 1
    if has_losses(w, node):
        expect_detection(w, t, node)
    elif row.repair[node] < NEVER_AGAIN:
        wake_in_background(w, row.repair[node], node, REPAIR)


@inlined
def repair(w: World, t: int, node: int) -> None:
    """Step 3: the node is up again."""
    row = w.faults.actors
    row.down[node] = 0
    w.nodes.idle[node], w.nodes.longs[node] = row.slots[node], 0
    if w.room.active == 1:
        empty_node(w, node)
    announce_state(w, t, node, NODE_UP)
    expect_failure(w, node, row.generation[node], t)


@inlined
def lose(w: World, t: int, node: int, job: int, task: int) -> None:
    """Lose a task or probe that has arrived; report it at once, or with the queue when the failure is detected."""
    count_lost(w, task, 1)
    if w.faults.actors.down[node] == 1 and w.faults.actors.detected[node] == 0:
        if not has_losses(w, node):
            w.queue.now.background[0] -= 1
        enqueue(w, node, job, task, NO_EPOCH, NO_EPOCH, NONE)
    else:
        send_lost(w, t, node, w.work.home[job], job, task, NONE, history_of(w, task))


@inlined
def count_lost(w: World, task: int, count: int) -> None:
    """Count probes, or tasks, that are lost before they run."""
    if task == NONE:
        w.counts[N_PROBES_LOST] += count
    else:
        w.counts[N_PLACEMENTS_LOST] += count


@inlined
def lose_fetch(w: HasInputs, t: int, node: int, task: int, lost: int, failed: int) -> int:
    """Lose a task some of whose input is lost; return the next of those that fetch with it, NONE: it was the last.

    Args:
        lost: as of `begin_outage`.
        failed: the counter of such tasks.
    """
    tasks, following = w.faults.tasks, w.inputs.next[task]
    job, start, history = tasks.job[task], tasks.start[task], tasks.history[task]
    count_lost_run(w, t, node, task, lost)
    w.counts[failed] += 1
    w.inputs.fetching[w.inputs.stage[task]] -= 1
    unlink_running(w, node, task)
    send_lost(w, t, node, w.work.home[job], job, task, start, history)
    return following


@inlined
def note_runs_again(w: HasInputs, task: int, stage: int, lost_ns: int) -> None:
    """Note that an ended task runs again: its old output is lost, and the new run makes another.

    Args:
        lost_ns: the counter of the time that lost tasks had run, before that of its wholes.
    """
    if can_lose_outputs(w.inputs) and w.inputs.outputs.ended[task] != NONE:
        begin, end = w.inputs.launched[task], w.inputs.outputs.ended[task]
        record_lost_output(w, task, w.inputs.node[task], begin, end)
        w.counts[lost_ns], w.counts[lost_ns + 1] = carry(
            w.counts[lost_ns] + end - begin, w.counts[lost_ns + 1]
        )
        w.inputs.outputs.ended[task], w.inputs.sources[stage] = NONE, NONE
