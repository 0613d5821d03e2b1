"""Matching of tasks to machines: which task the resource manager launches on a machine that has something free.

A scheduler of DAGs has three parts, which can be combined.

- Inter-job: the share of each job, or of each queue of jobs, and the order of jobs (`rank`, the least first).
- Intra-job: the order of the stages of a job (`Runnable.key`).
- Leftover: whether, and in which order, jobs get what is free when no task fits into the share of its job: in the same
  order, by the work they have left, or whichever fits best.

A job that is altruistic launches, in the first place, not what fits into its share but what its plan says must start
now (`actors.machines.planning`); the rest of its share is left to the leftover part.

With `packing` the task of all jobs is launched that suits a machine best (`actors.machines.packing`).
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE, send
from actors.machines.dag_world import N_LAUNCHES, N_LEFTOVER, DagWorld, end_of_nodes
from actors.machines.messages import LAUNCH
from actors.machines.packing import Packing, deficit, note_launch, value_of
from actors.machines.progress import Runnable, end_of_fresh, end_of_jobs, take_ready

BLOCK = np.int64(64)
NO_LEFTOVER, IN_ORDER, LEAST_LEFT_FIRST, PACKING_FIRST = (np.int64(i) for i in range(4))


class Matcher(NamedTuple):
    """What the resource manager goes by; J jobs, N machines, R resources."""

    run: Runnable
    active: (
        np.ndarray
    )  # [J] jobs that have arrived and not ended, by manager and arrival; they begin at `run.first_job`
    num_active: np.ndarray  # [K] how many there are
    queue: (
        np.ndarray
    )  # [J] the queue whose share a job may use; Q queues, one for each job in most schedulers
    guarantee: np.ndarray  # [Q] jobs go by what their queue holds, relative to this; float64
    rank: np.ndarray  # [Q] queues go in this order, the least first; float64
    used: np.ndarray  # [Q, R] what its tasks hold
    share: np.ndarray  # [Q, R] what they may hold before the leftover part
    left: np.ndarray  # [J] work that is left: task-seconds times the mean share of the cluster that they hold
    total_left: np.ndarray  # [K] of all active jobs
    work: np.ndarray  # [S] that of a task
    size: np.ndarray  # [S] alignment of a task with an empty cluster
    cursor: np.ndarray  # [S] scratch: the next machine that has room for a task of a stage
    ceiling: (
        np.ndarray
    )  # [blocks, R] no machine of a block of a manager's machines has more of a resource free
    dirty: np.ndarray  # [N] machines where something has ended since the last match, by manager
    is_dirty: np.ndarray  # [N] bool
    dirty_count: np.ndarray  # [K]
    must: np.ndarray  # [S] tasks that the plan of an altruistic job says must be launched now
    altruistic: np.ndarray  # [J] bool
    pack: Packing
    inter: int
    leftover: int
    packing: bool


@inlined
def fits(w: DagWorld, stage: int, node: int) -> bool:
    """Whether a machine has room for a task."""
    demand, free = w.stages.demand, w.machines.free
    for r in range(demand.shape[1]):  # noqa: SIM110
        if demand[stage, r] > free[node, r]:
            return False
    return True


@compiled
def next_with_room(w: DagWorld, m: Matcher, stage: int, node: int) -> int:
    """Return the first machine from `node` on that has room for a task; behind the manager's last if none has.

    Blocks of machines without room are passed over by their ceilings, which are brought down when none of a block has.
    """
    demand, nodes, resources = w.stages.demand, end_of_nodes(w), w.stages.demand.shape[1]
    while node < nodes:
        block = node // BLOCK
        end = min((block + 1) * BLOCK, nodes)
        may_fit = True
        for r in range(resources):
            may_fit = may_fit and demand[stage, r] <= m.ceiling[block + w.me[0], r]
        if may_fit:
            for i in range(node, end):
                if fits(w, stage, i):
                    return i
            lower_ceiling(w, m, block, end)
        node = end
    return nodes


@compiled
def lower_ceiling(w: DagWorld, m: Matcher, block: int, end: int) -> None:
    """Set the ceiling of a block of the manager's machines to the most that one of them has free."""
    for r in range(m.ceiling.shape[1]):
        most: int = 0
        for i in range(max(block * BLOCK, w.first_node[w.me[0]]), end):
            most = max(most, w.machines.free[i, r])
        m.ceiling[block + w.me[0], r] = most


@inlined
def fits_share(w: DagWorld, m: Matcher, job: int, stage: int) -> bool:
    """Whether a task fits into what its job's share has left; it does if nothing of the share is in use."""
    demand, q = w.stages.demand, m.queue[job]
    for r in range(demand.shape[1]):
        if m.used[q, r] + demand[stage, r] > m.share[q, r]:
            return holds_nothing(m, q)
    return True


@inlined
def holds_nothing(m: Matcher, queue: int) -> bool:
    """Whether no task of a queue holds anything."""
    for r in range(m.used.shape[1]):  # noqa: SIM110
        if m.used[queue, r] > 0:
            return False
    return True


@inlined
def is_own(w: DagWorld, m: Matcher, job: int, stage: int) -> bool:
    """Whether a job may launch a task before the leftover part: it must start now, or fits into the job's share."""
    return m.must[stage] > 0 if m.altruistic[job] else fits_share(w, m, job, stage)


@inlined
def place_of(m: Matcher, job: int, own: bool) -> float:
    """Return the place of a job in the order for tasks of its own, or in that of the leftover part."""
    return m.rank[m.queue[job]] if own or m.leftover == IN_ORDER else m.left[job]


@compiled
def choose(w: DagWorld, m: Matcher, node: int, own: bool) -> int:
    """Return the stage whose task is launched on a machine: of the first job that has one; NONE if none fits."""
    best: int = NONE
    least = np.inf
    for i in range(m.run.first_job[w.me[0]], end_of_jobs(m.run)):
        job = m.run.jobs[i]
        place = place_of(m, job, own)
        if place < least or (place == least and job < w.stages.job[best]):
            stage = first_that_fits(w, m, job, node, own)
            if stage != NONE:
                best, least = stage, place
    return best


@inlined
def first_that_fits(w: DagWorld, m: Matcher, job: int, node: int, own: bool) -> int:
    """Return the first stage of a job whose task fits on a machine; for leftovers, that of the largest tasks."""
    best: int = NONE
    stage = m.run.first[job]
    while stage != NONE:
        if fits(w, stage, node) and (not own or is_own(w, m, job, stage)):
            if own or m.leftover != LEAST_LEFT_FIRST:
                return stage
            if best == NONE or m.size[stage] > m.size[best]:
                best = stage
        stage = m.run.next[stage]
    return best


@inlined
def weight_of_work(m: Matcher) -> float:
    """Return what a unit of the work that a job has left takes from the value of its tasks.

    Work counts in units of the mean of the jobs, alignment in units of its mean so far, so that both weigh alike with
    `remaining_weight` 1 (SIGCOMM 2014, section 3.3).
    """
    k, me = m.pack, m.pack.me[0]
    total = m.total_left[me]
    mean_score = k.score[me, 0] / k.score[me, 1] if k.score[me, 1] > 0.0 else 1.0
    return k.remaining_weight * mean_score * m.num_active[me] / total if total > 0.0 else 0.0


@compiled
def choose_packed(w: DagWorld, m: Matcher, node: int, least_fair: float) -> int:
    """Return the stage whose task has the largest value on a machine; NONE if none fits.

    Jobs of which the rank is above `least_fair` may not launch.
    """
    k, per_work = m.pack, weight_of_work(m)
    best: int = NONE
    most, largest = -np.inf, 0.0
    for i in range(m.run.first_job[w.me[0]], end_of_jobs(m.run)):
        job = m.run.jobs[i]
        lacks = deficit(k, job)
        if lacks < largest or m.rank[m.queue[job]] > least_fair:
            continue
        less = per_work * m.left[job]
        stage = m.run.first[job]
        while stage != NONE:
            if fits(w, stage, node):
                value = value_of(w, k, stage, node) - less
                if lacks > largest or value > most or (value == most and stage < best):
                    best, most, largest = stage, value, lacks
            stage = m.run.next[stage]
    return best


@compiled
def choose_fresh(w: DagWorld, m: Matcher, node: int, per_work: float) -> int:
    """Return the same of the stages that are considered for all machines."""
    k, run = m.pack, m.run
    best: int = NONE
    most, largest = -np.inf, 0.0
    for i in range(run.first_stage[w.me[0]], end_of_fresh(run)):
        stage = run.fresh[i]
        if w.stages.ready[stage] == 0 or not fits(w, stage, node):
            continue
        job = w.stages.job[stage]
        lacks = deficit(k, job)
        if lacks < largest or m.rank[m.queue[job]] > k.most_used[k.me[0]]:
            continue
        value = value_of(w, k, stage, node) - per_work * m.left[job]
        if lacks > largest or value > most or (value == most and stage < best):
            best, most, largest = stage, value, lacks
    return best


@compiled
def dominant_share(w: DagWorld, m: Matcher, queue: int) -> float:
    """Return the largest share of a resource of the cluster that a queue holds (Ghodsi et al., NSDI 2011)."""
    most = 0.0
    for r in range(m.used.shape[1]):
        if w.machines.total[w.me[0], r] > 0:
            most = max(most, m.used[queue, r] / w.machines.total[w.me[0], r])
    return most


@compiled
def launch(w: DagWorld, m: Matcher, t: int, node: int, stage: int) -> None:
    """Launch the next task of a stage on a machine."""
    job, demand = w.stages.job[stage], w.stages.demand
    task = take_ready(w, m.run, stage)
    w.counts[N_LAUNCHES] += 1
    if m.leftover != NO_LEFTOVER and not fits_share(w, m, job, stage):
        w.counts[N_LEFTOVER] += 1
    m.must[stage] = max(m.must[stage] - 1, 0)
    if m.packing or m.leftover == PACKING_FIRST:
        note_launch(m.pack, job, stage, node, value_of(w, m.pack, stage, node), m.num_active[w.me[0]])
    for r in range(demand.shape[1]):
        w.machines.free[node, r] -= demand[stage, r]
        m.used[m.queue[job], r] += demand[stage, r]
    send(w, t, w.nodes.size + w.me[0], node, LAUNCH, task, stage, NONE, NONE)


@inlined
def release(w: DagWorld, m: Matcher, node: int, stage: int) -> None:
    """A task has ended: its machine, and its job, have what it held."""
    job, demand = w.stages.job[stage], w.stages.demand
    for r in range(demand.shape[1]):
        w.machines.free[node, r] += demand[stage, r]
        block = node // BLOCK + w.manager[node]
        m.ceiling[block, r] = max(m.ceiling[block, r], w.machines.free[node, r])
        m.used[m.queue[job], r] -= demand[stage, r]
    m.left[job] -= m.work[stage]
    m.total_left[w.me[0]] -= m.work[stage]
    note_room(w, m, node)


@inlined
def note_room(w: DagWorld, m: Matcher, node: int) -> None:
    """A machine has room again: it is considered at the next match."""
    if not m.is_dirty[node]:
        m.is_dirty[node] = True
        m.dirty[w.first_node[w.me[0]] + m.dirty_count[w.me[0]]] = node
        m.dirty_count[w.me[0]] += 1
