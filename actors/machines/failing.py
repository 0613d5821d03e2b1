"""Failure and repair of a machine: what it loses, what the resource manager is sent, what happens to messages to it.

1. FAIL: the tasks that run are lost. The machine is down.
   So are the outputs of tasks that ran there, which others fetch (`actors.machines.lineage`).
2. DETECT: after the detection time (the failure detector stands for missed heartbeats), or at the repair if that is
   earlier, the resource manager is sent that the machine is down, and the loss of each task. It launches lost tasks
   again, from their beginning, or from what evictions before have kept.
3. REPAIR: the machine is up again and empty, and the resource manager is sent that.

A task that is launched on a machine that is down is lost like those that ran there; once the failure is detected, the
resource manager is sent that at once. With heartbeats an end that has not been reported is lost with its machine: the
task runs again. Failures are background events, as those of nodes with slots (`actors.nodes.failing`).
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.faults import (
    announce_state,
    is_known_down,
    note_history,
    receive_node_state,
    record_lost_output,
)
from actors.kernel.inputs import can_lose_outputs, is_fetching
from actors.kernel.messages import (
    DETECT,
    FAIL,
    FETCH_FAILED,
    FETCHED,
    NODE_UP,
    REPAIR,
    read_fetch_failed,
    read_node_state,
    send_broken,
    send_fetch_failed,
    send_lost,
)
from actors.kernel.queue import SPARE
from actors.kernel.sums import carry
from actors.kernel.world import NONE
from actors.machines.dag_world import (
    N_FETCHES_FAILED,
    N_LAUNCHES_LOST,
    N_LOST_NS,
    N_LOST_WHOLES,
    N_TASKS_LOST,
    DagWorld,
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
from actors.machines.overuse import lose_runs, slows
from actors.nodes.failing import (
    begin_outage,
    count_lost_run,
    detect,
    expect_detection,
    expect_failure,
    link_running,
    note_sent,
    unlink_running,
)
from actors.nodes.preemption import preempts

BLOCKED = np.int64(1) << 61
"""Taken from what a machine that is down has free: nothing fits there. No machine has as much."""


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
        if is_fetching(w.inputs, task):
            w.inputs.fetching[w.inputs.stage[task]] -= 1
        if can_lose_outputs(w.inputs):  # an end that was not reported is none
            w.inputs.outputs.ended[task] = NONE
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


@inlined
def on_fetch_failed(w: DagWorld, t: int, node: int) -> None:
    """Lose tasks that fetch together, as some of their input is lost; their number may need several events."""
    task, room = read_fetch_failed(w), w.queue.room - SPARE
    while task != NONE and room > 0:
        job, start = w.faults.tasks.job[task], w.faults.tasks.start[task]
        count_lost_run(w, t, node, task, np.int64(N_TASKS_LOST))
        w.counts[N_FETCHES_FAILED] += 1
        w.inputs.fetching[w.tasks.stage[task]] -= 1
        unlink_running(w, node, task)
        send_lost(w, t, node, w.work.home[job], job, task, start, w.faults.tasks.history[task])
        task = w.inputs.next[task]
        room -= 1
    if task != NONE:
        send_fetch_failed(w, t, node, task)


@inlined
def note_runs_again(w: DagWorld, task: int, stage: int) -> None:
    """Note that a task runs again that had ended: its output, which is lost, is not what it will have made."""
    if can_lose_outputs(w.inputs) and w.inputs.outputs.ended[task] != NONE:
        begin, end = w.inputs.launched[task], w.inputs.outputs.ended[task]
        record_lost_output(w, task, w.inputs.node[task], begin, end)
        w.counts[N_LOST_NS], w.counts[N_LOST_WHOLES] = carry(
            w.counts[N_LOST_NS] + end - begin, w.counts[N_LOST_WHOLES]
        )
        w.inputs.outputs.ended[task], w.inputs.sources[stage] = NONE, NONE


@inlined
def block(w: DagWorld, ceiling: np.ndarray, per_block: int) -> bool:
    """Record for the resource manager that a machine is down or up; return whether it is up again.

    ``ceiling`` bounds what machines of a block of `per_block` have free.
    """
    node, _, _ = read_node_state(w)
    was_down = is_known_down(w, node)
    if not receive_node_state(w) or was_down == is_known_down(w, node):
        return False
    free = w.machines.free
    for r in range(free.shape[1]):
        free[node, r] += BLOCKED if was_down else -BLOCKED
        at = node // per_block + w.manager[node]
        ceiling[at, r] = max(ceiling[at, r], free[node, r])
    return was_down
