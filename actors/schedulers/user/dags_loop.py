"""The compiled loop of a user's own scheduler of DAG jobs (`dags.py`): its events, what it sees, what it launches.

The loop returns `PYTHON` where the user's class is to be asked: when all messages of an instant are handled or, with
heartbeats, when that of a machine has come. `Host` then calls `collect`, asks the class, and calls `launch_pairs`. The
event may launch more tasks than one event may send messages: the loop goes on with the others before it takes the next
event, and returns `GROW` where the queue lacks room for them.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.queue import GROW, NONE, PYTHON, RUNNING, lacks_room
from actors.machines.dag_world import N_MATCHES, DagWorld
from actors.machines.manager_state import Manager, Matcher, end_of_active, fits, forget_dirty, next_with_room
from actors.machines.matching import has_room, launch
from actors.machines.messages import FREE, MATCH, read_free
from actors.machines.resource_manager import on_message

ME = np.int64(0)
"""A user's scheduler is the only manager."""
NUMBERS = ("stage", "ready", "running", "left", "fits", "job_tasks_left")
"""The rows of whole numbers of `collect`."""


class Pending(NamedTuple):
    """Launches that the class has returned; S stages, T tasks."""

    stage: np.ndarray  # [T]
    node: np.ndarray  # [T]
    first: np.ndarray  # [1] the first that has not been sent
    end: np.ndarray  # [1] one behind the last; 0: there is none
    taken: np.ndarray  # [S] scratch of `check_pairs`; 0 otherwise


class State(NamedTuple):
    """The resource manager's bookkeeping, and what is launched by the event under way."""

    manager: Manager
    pending: Pending


@entry
def collect(w: DagWorld, p: State, numbers: np.ndarray, amounts: np.ndarray, at: np.ndarray) -> int:
    """Write down what the class sees of stages with tasks that may be launched; return how many there are.

    They are in the order in which their jobs have arrived, then of their levels. If there are more than `numbers` has
    room for, nothing changes; otherwise the class knows from now on where tasks have ended.

    Args:
        numbers: [6, K] the rows `NUMBERS`.
        amounts: [K, R + 1] what the job holds, in billionths, and its work left, ns of the cluster.
        at: [3] time and kind of the event, and the machine whose heartbeat it is, else NONE.
    """
    m, stages, now = p.manager.matcher, w.stages, w.queue.now
    at[0], at[1], at[2] = now.time[0], now.kind[0], read_free(w) if now.kind[0] == FREE else NONE
    count, resources = np.int64(0), stages.demand.shape[1]
    for i in range(end_of_active(m, ME)):
        job = m.active[i]
        stage = m.run.first[job]
        while stage != NONE:
            if count < numbers.shape[1]:
                numbers[0, count], numbers[1, count] = stage, stages.ready[stage]
                numbers[2, count], numbers[3, count] = p.manager.plan.running[stage], stages.unfinished[stage]
                numbers[4, count] = 1 if fits_somewhere(w, m, stage, at) else 0
                numbers[5, count] = w.jobs.unfinished[job]
                for r in range(resources):
                    amounts[count, r] = m.used[job, r]
                amounts[count, resources] = m.left[job]
            count += 1
            stage = m.run.next[stage]
    if count <= numbers.shape[1]:
        w.counts[N_MATCHES] += 1
        forget_dirty(w, m, ME)
    return count


@inlined
def fits_somewhere(w: DagWorld, m: Matcher, stage: int, at: np.ndarray) -> bool:
    """Whether a machine that the class sees has room for a task of a stage."""
    if at[1] == FREE:
        return fits(w, stage, at[2])
    return next_with_room(w, m, ME, stage, np.int64(0)) < w.nodes.size


@entry
def launch_pairs(
    w: DagWorld, p: State, t: int, pairs: np.ndarray, numbers: np.ndarray, count: int, first: int, end: int
) -> int:
    """Launch what the class has returned; return the first pair that is wrong, of which none is launched, else NONE.

    Args:
        pairs: [M, 2] places among the `count` stages of `numbers`, and among the machines `first` to `end` - 1.
    """
    wrong = check_pairs(w, p.pending, pairs, numbers, count, first, end)
    if wrong == NONE:
        p.pending.first[0], p.pending.end[0] = 0, pairs.shape[0]
        launch_pending(w, p, t)
    return wrong


@compiled
def check_pairs(
    w: DagWorld, pending: Pending, pairs: np.ndarray, numbers: np.ndarray, count: int, first: int, end: int
) -> int:
    """Note the pairs; return the first one that does not stand for a task, or that does not fit; else NONE."""
    demand, free = w.stages.demand, w.machines.free
    wrong, noted = NONE, np.int64(0)
    while noted < pairs.shape[0] and wrong == NONE:
        place, node = pairs[noted, 0], first + pairs[noted, 1]
        if place < 0 or place >= count or node < first or node >= end:
            wrong = noted
            break
        stage = numbers[0, place]
        if pending.taken[stage] == w.stages.ready[stage]:
            wrong = noted
        for r in range(demand.shape[1]):
            if demand[stage, r] > free[node, r]:
                wrong = noted
        if wrong == NONE:
            pending.stage[noted], pending.node[noted] = stage, node
            pending.taken[stage] += 1
            for r in range(demand.shape[1]):
                free[node, r] -= demand[stage, r]
            noted += 1
    for i in range(noted):
        pending.taken[pending.stage[i]] = 0
        for r in range(demand.shape[1]):
            free[pending.node[i], r] += demand[pending.stage[i], r]
    return wrong


@compiled
def launch_pending(w: DagWorld, p: State, t: int) -> None:
    """Launch what has not been sent, up to the messages that one event may send."""
    pending = p.pending
    p.manager.launched[0] = 0
    while pending.first[0] < pending.end[0] and has_room(w, p.manager):
        i = pending.first[0]
        launch(w, p.manager, ME, t, pending.node[i], pending.stage[i])
        pending.first[0] = i + 1
    if pending.first[0] == pending.end[0]:
        pending.first[0], pending.end[0] = 0, 0


@entry
def advance(w: DagWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    while p.pending.end[0] > 0:
        if lacks_room(w.queue):
            return GROW
        launch_pending(w, p, message.time[0])
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        kind = message.kind[0]
        if kind == MATCH or kind == FREE:
            p.manager.due[ME] = False
            if p.manager.matcher.run.num_jobs[ME] > 0:
                return PYTHON
        else:
            on_message(w, p.manager, message.time[0], kind, message.dst[0])
    return RUNNING
