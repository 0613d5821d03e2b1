"""A node manager: it runs what the resource manager launches, and reports ends of tasks.

A task runs for its duration, or longer where tasks slow each other down (`actors.machines.overuse`).

With a heartbeat of 0 it reports each at once. Otherwise it does so with its next heartbeat, and the resource manager
matches tasks to a machine when that machine's heartbeat comes (YARN).
"""

import numpy as np

from actors.failures import (
    announce_state,
    expect_failure,
    link_running,
    note_history,
    note_sent,
    unlink_running,
)
from actors.inputs import (
    can_lose_outputs,
    end_fetch,
    fetches,
    is_pipelined,
    is_pushed,
    note_output_here,
    place_of,
)
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.messages import (
    DETECT,
    FAIL,
    FETCH_FAILED,
    FETCHED,
    NODE_UP,
    REPAIR,
    read_fetch_failed,
    send_broken,
    send_fetch_failed,
    send_lost,
    send_output,
    send_received,
)
from actors.kernel.queue import NONE, SPARE, wake
from actors.machines import messages
from actors.machines.dag_world import (
    N_BEATS,
    N_EVICTIONS,
    N_FETCHES_FAILED,
    N_LAUNCHES_LOST,
    N_LOST_NS,
    N_TASKS_LOST,
    DagWorld,
    first_beat,
)
from actors.machines.messages import (
    ENDED,
    LAUNCH,
    STAGE_TASK_END,
    STOP_TASK,
    read_launch,
    read_stop_task,
    read_task_end,
)
from actors.machines.overuse import begin_run, end_run, is_stale, lose_runs, slows
from actors.nodes.failing import begin_outage, detect, expect_detection, lose_fetch, note_runs_again
from actors.nodes.preemption import end_early, note_restored, preempts, time_left


@compiled
def node_event(w: DagWorld, node: int) -> None:
    """Handle a message to a node manager."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == messages.STAGE_TASK_END and slows(w) and is_stale(w, t, node):
        return
    if w.faults.active == 1 and apply_failure(w, node):
        return
    if kind == messages.LAUNCH:
        on_launch(w, t, node)
    elif kind == FETCHED:
        end_fetch(w, t, node, compute_fetched)
    elif kind == FETCH_FAILED:
        task, room = read_fetch_failed(w), w.queue.room - SPARE
        while task != NONE and room > 0:
            task = lose_fetch(w, t, node, task, np.int64(N_TASKS_LOST), np.int64(N_FETCHES_FAILED))
            room -= 1
        if task != NONE:
            send_fetch_failed(w, t, node, task)
    elif kind == messages.RECEIVE:
        on_receive(w, t, node)
    elif kind == messages.STAGE_TASK_END:
        on_task_end(w, t, node)
    elif kind == messages.ENDED:
        task, stage, start = messages.read_task_end(w)
        report_end(w, t, node, task, stage, start)
    elif kind == messages.STOP_TASK:
        on_stop_task(w, t, node)
    elif kind == messages.BEAT:
        on_beat(w, t, node)
    elif kind == messages.STOP:
        w.nodes.idle[node] = 1  # its heartbeats end


@inlined
def on_launch(w: DagWorld, t: int, node: int) -> None:
    """Start a task."""
    task, stage, _ = messages.read_launch(w)
    w.counts[N_STARTED] += 1
    if w.task_records.size > 0:
        w.task_records.node[task], w.task_records.start[task] = node, t
    note_runs_again(w, task, stage, np.int64(N_LOST_NS))
    if is_pushed(w.inputs, stage) or not fetches(w, t, node, task, stage):
        compute(w, t, node, task, stage)


@inlined
def on_receive(w: DagWorld, t: int, node: int) -> None:
    """Ask for the input of tasks that are to be launched here."""
    first, stage, count = messages.read_receive(w)
    place = place_of(w.inputs.job_input, node, first)
    for i in range(place, place + count):
        fetches(w, t, node, w.inputs.job_input.task[i], stage)


@inlined
def compute_fetched(w: DagWorld, t: int, node: int, task: int, stage: int) -> None:
    """Let a task compute that has fetched its input, or tell the resource manager that it may be launched here.

    Where outputs can be lost the manager gets to know it, too: what the task has fetched need not be made again.
    """
    is_here = is_pushed(w.inputs, stage)
    if is_here or can_lose_outputs(w.inputs):
        send_received(w, t, node, w.nodes.size + w.manager[node], task, stage, node, t)
    if not is_here:
        compute(w, t, node, task, stage)


@inlined
def compute(w: DagWorld, t: int, node: int, task: int, stage: int) -> None:
    """Let a task compute, which has its input."""
    end = t + time_left(w, task, w.tasks.duration[task])
    if w.faults.active == 1:
        w.faults.tasks.start[task], w.faults.tasks.end[task] = t, end
    if slows(w):
        begin_run(w, t, node, task, stage, end - t)
    else:
        messages.send_task_end(w, end, messages.STAGE_TASK_END, node, task, stage, t)


@inlined
def on_task_end(w: DagWorld, t: int, node: int) -> None:
    """End a task: report it, now or with the next heartbeat."""
    task, stage, start = messages.read_task_end(w)
    if slows(w):
        end_run(w, t, node, task)
    if w.task_records.size > 0:
        w.task_records.finish[task] = t
    note_output_here(w.inputs, t, task, stage)
    if is_pipelined(w.inputs) and sends_at_end(w, stage):
        send_output(w, t, node, task, stage)
    if w.heartbeat == 0:
        report_end(w, t, node, task, stage, start)
    else:
        messages.send_task_end(w, next_beat(w, node, t), messages.ENDED, node, task, stage, start)


@inlined
def sends_at_end(w: DagWorld, stage: int) -> bool:
    """Whether an edge from a stage is pipelined."""
    found: bool = False
    for edge in range(w.stages.first_child[stage], w.stages.first_child[stage + 1]):
        found = found or w.inputs.at_launch[edge] == 1
    return found


@inlined
def report_end(w: DagWorld, t: int, node: int, task: int, stage: int, start: int) -> None:
    """Report to the resource manager that a task has ended."""
    w.counts[N_FINISHED] += 1
    note_restored(w, w.stages.job[stage], task)
    if w.faults.active == 1:
        unlink_running(w, node, task)
        w.queue.now.unfinished[0] -= 1
    finish = w.overuse.tasks.end[task] if slows(w) else start + time_left(w, task, w.tasks.duration[task])
    messages.send_task_done(w, t, node, w.nodes.size + w.manager[node], task, stage, node, start, finish)


@inlined
def on_stop_task(w: DagWorld, t: int, node: int) -> None:
    """Stop a task for one of higher priority; one that has ended is reported at once, as its place is waited for."""
    task, stage, for_job = messages.read_stop_task(w)
    tasks = w.faults.tasks
    if tasks.end[task] <= t:
        report_end(w, t, node, task, stage, tasks.start[task])
        return
    w.counts[N_EVICTIONS] += 1
    end_early(w, t, node, task, for_job)


@inlined
def next_beat(w: DagWorld, node: int, t: int) -> int:
    """Return when the first heartbeat of a machine at or after `t` is, ns."""
    first = first_beat(w, node)
    return first + max((t - first + w.heartbeat - 1) // w.heartbeat, 0) * w.heartbeat


@inlined
def on_beat(w: DagWorld, t: int, node: int) -> None:
    """Send a heartbeat; when it is sent, all that has ended before has been reported."""
    if w.nodes.idle[node] == 0:  # STOP has not come
        if w.faults.active == 0 or w.faults.actors.down[node] == 0:
            w.counts[N_BEATS] += 1
            messages.send_free(w, t, node, w.nodes.size + w.manager[node], node)
        wake(w, t + w.heartbeat, node, messages.BEAT, NONE, NONE, NONE)


# Failure and repair of a machine: what it loses, what the resource manager is sent, what happens to messages to it.
#
# 1. FAIL: the tasks that run are lost. The machine is down.
#    So are the outputs of tasks that ran there, which others fetch (`actors.stages`).
# 2. DETECT: after the detection time (the failure detector stands for missed heartbeats), or at the repair if that is
#    earlier, the resource manager is sent that the machine is down, and the loss of each task. It launches lost tasks
#    again, from their beginning, or from what evictions before have kept.
# 3. REPAIR: the machine is up again and empty, and the resource manager is sent that.
#
# A task that is launched on a machine that is down is lost like those that ran there; once the failure is detected, the
# resource manager is sent that at once. With heartbeats an end that has not been reported is lost with its machine: the
# task runs again. Failures are background events, as those of nodes with slots (`actors.nodes.failing`).


@compiled
def apply_failure(w: DagWorld, node: int) -> bool:
    """Apply failures to a message to a machine; return whether the message is handled by that."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == FAIL:
        fail(w, t, node)
        if w.inputs.active == 1:
            send_broken(w, t, node)
    elif kind == DETECT:
        detect(w, t, node)
    elif kind == REPAIR:
        w.faults.actors.down[node] = 0
        announce_state(w, t, node, NODE_UP)
        expect_failure(w, node, w.faults.actors.generation[node], t)
    elif kind == STAGE_TASK_END or kind == ENDED:
        task, _, start = read_task_end(w)
        tasks, is_void = w.faults.tasks, kind == STAGE_TASK_END and w.faults.tasks.end[task] != t
        return is_void or tasks.node[task] != node or tasks.start[task] != start
    elif kind == FETCHED or kind == FETCH_FAILED:
        return w.faults.actors.down[node] == 1
    elif kind == STOP_TASK:
        return ignores_stop(w, node)
    elif kind == LAUNCH:
        task, stage, history = read_launch(w)
        note_history(w, task, history)
        job = w.stages.job[stage]
        was_stopped = preempts(w) and not note_sent(w, task)
        if w.faults.actors.down[node] == 1:
            lose_launch(w, t, node, task, job)
        elif was_stopped:  # by a message that has come before this one
            send_lost(w, t, node, w.work.home[job], job, task, NONE, w.faults.tasks.history[task])
        else:
            link_running(w, t, node, job, task)
            return False
    else:
        return False
    return True


@inlined
def fail(w: DagWorld, t: int, node: int) -> None:
    """Step 1. A task that is lost has no start, so that an end of it that is on its way is ignored."""
    begin_outage(w, t, node, np.int64(N_TASKS_LOST))
    if slows(w):
        lose_runs(w, node)
    task = w.faults.actors.running[node]
    while task != NONE:
        w.faults.tasks.start[task] = NONE
        task = w.faults.tasks.next[task]
    expect_detection(w, w.faults.actors.detect[node], node)


@inlined
def ignores_stop(w: DagWorld, node: int) -> bool:
    """Return whether a task that is to be stopped does not run here: it has ended, is lost, or has not come.

    The resource manager is sent its end or loss. A task that has not come is sent back when it comes.
    """
    task, _, _ = read_stop_task(w)
    is_newest = note_sent(w, task)
    return not is_newest or w.faults.actors.down[node] == 1 or w.faults.tasks.node[task] != node


@inlined
def lose_launch(w: DagWorld, t: int, node: int, task: int, job: int) -> None:
    """Lose a task that has come to a machine that is down."""
    w.counts[N_LAUNCHES_LOST] += 1
    if w.faults.actors.detected[node] == 1:
        send_lost(w, t, node, w.work.home[job], job, task, NONE, w.faults.tasks.history[task])
        return
    if w.faults.actors.running[node] == NONE:  # its detection stops to be a background event
        w.queue.now.background[0] -= 1
    link_running(w, NONE, node, job, task)
