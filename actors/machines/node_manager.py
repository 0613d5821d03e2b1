"""A node manager: it runs what the resource manager launches, and reports ends of tasks.

With a heartbeat of 0 it reports each at once. Otherwise it does so with its next heartbeat, and the resource manager
matches tasks to a machine when that machine's heartbeat comes (YARN).
"""

from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.queue import NONE, send, wake
from actors.machines.dag_world import N_BEATS, DagWorld
from actors.machines.failing import apply_failure
from actors.machines.messages import BEAT, ENDED, FREE, LAUNCH, STAGE_TASK_END, STOP, TASK_DONE
from actors.nodes.failing import unlink_running


@compiled
def node_event(w: DagWorld, me: int) -> None:
    """Handle a message to a node manager."""
    message = w.queue.now
    if w.faults.active == 1 and apply_failure(w, me):
        return
    t, kind, task, stage = message.time[0], message.kind[0], message.a[0], message.b[0]
    if kind == LAUNCH:
        on_launch(w, t, me, task, stage)
    elif kind == STAGE_TASK_END:
        on_task_end(w, t, me, task, stage, message.c[0])
    elif kind == ENDED:
        tell_end(w, t, me, task, stage, message.c[0])
    elif kind == BEAT:
        on_beat(w, t, me)
    elif kind == STOP:
        on_stop(w, me)


@inlined
def on_launch(w: DagWorld, t: int, node: int, task: int, stage: int) -> None:
    """Start a task."""
    w.counts[N_STARTED] += 1
    if w.task_records.size > 0:
        w.task_records.node[task], w.task_records.start[task] = node, t
    wake(w, t + w.tasks.duration[task], node, STAGE_TASK_END, task, stage, t)


@inlined
def on_task_end(w: DagWorld, t: int, node: int, task: int, stage: int, started: int) -> None:
    """End a task: report it, now or with the next heartbeat."""
    if w.task_records.size > 0:
        w.task_records.finish[task] = t
    if w.heartbeat == 0:
        tell_end(w, t, node, task, stage, started)
    else:
        wake(w, next_beat(w, node, t), node, ENDED, task, stage, started)


@inlined
def tell_end(w: DagWorld, t: int, node: int, task: int, stage: int, started: int) -> None:
    """Report to the resource manager that a task has ended."""
    w.counts[N_FINISHED] += 1
    if w.faults.active == 1:
        unlink_running(w, node, task)
        w.queue.now.unfinished[0] -= 1
    send(w, t, node, w.nodes.size + w.manager[node], TASK_DONE, task, stage, node, started)


@inlined
def next_beat(w: DagWorld, node: int, t: int) -> int:
    """Return when the first heartbeat of a machine at or after `t` is, ns."""
    first = first_beat(w, node)
    return first + max((t - first + w.heartbeat - 1) // w.heartbeat, 0) * w.heartbeat


@inlined
def first_beat(w: DagWorld, node: int) -> int:
    """Return when the first heartbeat of a machine is: they are spread over a period."""
    return w.work.submit[0] + (node * w.heartbeat) // w.nodes.size


@inlined
def on_beat(w: DagWorld, t: int, node: int) -> None:
    """Send a heartbeat; when it is sent, all that has ended before has been reported."""
    if w.nodes.idle[node] == 0:  # it has not been stopped
        if w.faults.active == 0 or w.faults.actors.down[node] == 0:
            w.counts[N_BEATS] += 1
            send(w, t, node, w.nodes.size + w.manager[node], FREE, NONE, NONE, node, NONE)
        wake(w, t + w.heartbeat, node, BEAT, NONE, NONE, NONE)


@inlined
def on_stop(w: DagWorld, node: int) -> None:
    """End the heartbeats."""
    w.nodes.idle[node] = 1
