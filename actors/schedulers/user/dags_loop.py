"""The compiled part of a user's own scheduler of DAG jobs (`dags.py`): what it sees, and what it launches.

The loop of all resource managers (`actors.machines.resource_manager`) returns `PYTHON` where the user's class is to be
asked: when all messages of an instant are handled or, with heartbeats, when that of a machine has come. `Host` then
calls `collect`, asks the class, and calls `launch_pairs`. The event may launch more tasks than one event may send
messages: the loop goes on with the others before it takes the next event, and returns `GROW` where the queue lacks room
for them.
"""

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NONE
from actors.machines.dag_world import N_MATCHES, DagWorld
from actors.machines.matching import (
    ONLY,
    Manager,
    Matcher,
    Pending,
    end_of_active,
    fits,
    forget_dirty,
    launch_pending,
    next_with_room,
)
from actors.machines.messages import FREE, read_free

NUMBERS = ("stage", "ready", "running", "left", "fits", "job_tasks_left", "fetching")
"""The rows of whole numbers of `collect`."""


@entry
def collect(w: DagWorld, p: Manager, numbers: np.ndarray, amounts: np.ndarray, at: np.ndarray) -> int:
    """Write down what the class sees of stages with tasks that may be launched; return how many there are.

    They are in the order in which their jobs have arrived, then of their levels. If there are more than `numbers` has
    room for, nothing changes; otherwise the class knows from now on where tasks have ended.

    Args:
        numbers: [7, K] the rows `NUMBERS`.
        amounts: [K, R + 1] what the job holds, in billionths, and its work left, ns of the cluster.
        at: [3] time and kind of the event, and the machine whose heartbeat it is, else NONE.
    """
    m, stages, now = p.matcher, w.stages, w.queue.now
    at[0], at[1], at[2] = now.time[0], now.kind[0], read_free(w) if now.kind[0] == FREE else NONE
    count, resources = np.int64(0), w.tasks.demand.shape[1]
    for i in range(end_of_active(m, ONLY)):
        job = m.active[i]
        stage = m.run.first[job]
        while stage != NONE:
            if count < numbers.shape[1]:
                numbers[0, count], numbers[1, count] = stage, w.tasks.ready[stage]
                numbers[2, count], numbers[3, count] = p.plan.packing.running[stage], stages.unfinished[stage]
                numbers[4, count] = 1 if fits_somewhere(w, m, stage, at) else 0
                numbers[5, count] = w.jobs.unfinished[job]
                numbers[6, count] = w.inputs.fetching[stage] if w.inputs.active == 1 else 0
                for r in range(resources):
                    amounts[count, r] = m.used[job, r]
                amounts[count, resources] = m.left[job]
            count += 1
            stage = m.run.next[stage]
    if count <= numbers.shape[1]:
        w.counts[N_MATCHES] += 1
        forget_dirty(w, m, ONLY)
    return count


@inlined
def fits_somewhere(w: DagWorld, m: Matcher, stage: int, at: np.ndarray) -> bool:
    """Whether a machine that the class sees has room for a task of a stage."""
    if at[1] == FREE:
        return fits(w, stage, at[2])
    return next_with_room(w, m, ONLY, stage, np.int64(0)) < w.nodes.size


@entry
def launch_pairs(
    w: DagWorld, p: Manager, t: int, pairs: np.ndarray, numbers: np.ndarray, count: int, first: int, end: int
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
    demand, free = w.tasks.demand, w.machines.free
    wrong, noted = NONE, np.int64(0)
    while noted < pairs.shape[0] and wrong == NONE:
        place, node = pairs[noted, 0], first + pairs[noted, 1]
        if place < 0 or place >= count or node < first or node >= end:
            wrong = noted
            break
        stage = numbers[0, place]
        if pending.taken[stage] == w.tasks.ready[stage]:
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
