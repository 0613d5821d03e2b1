"""The state of the resource manager: what machines have free, what jobs hold, and which tasks and machines wait."""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE, wake
from actors.machines.carbyne_plan import Plan
from actors.machines.dag_world import DagWorld
from actors.machines.evictable import BLOCK, Evictable, block_of, row_of
from actors.machines.messages import MATCH
from actors.machines.packing import Packing
from actors.machines.runnable import Runnable

NO_LEFTOVER, IN_ORDER, LEAST_LEFT_FIRST, PACKING_FIRST, MOST_OVER_FIRST = (np.int64(i) for i in range(5))
"""What is done with what is free when no task fits into the share of its job: it is left free; jobs get it, in the same
order, by the work they have left, or by how far they are over their shares; or the task that fits best gets it."""


class Matcher(NamedTuple):
    """What K resource managers go by; J jobs, S stages, N machines, R resources.

    The jobs of one priority of a manager are a band: all that is served in an order has one for each of the B bands.
    Those of manager k are `k * bands` to `(k + 1) * bands - 1`, the highest priority first.
    """

    run: Runnable
    band: np.ndarray  # [J] of each job
    bands: int  # of a manager
    # [J] of jobs of the same rank that with the least goes first: in most schedulers by arrival
    turn: np.ndarray
    room: np.ndarray  # [B, R] what the jobs of a band share: what those of higher bands do not hold
    held: np.ndarray  # [B, R] what its tasks hold, where a manager has several bands
    active: np.ndarray  # [J] jobs that have arrived and not ended, by band and arrival, as in `run.jobs`
    num_active: np.ndarray  # [B] how many there are
    queue: np.ndarray  # [J] the queue whose share a job may use; of Q, in most schedulers one for each job
    guarantee: np.ndarray  # [Q] jobs go by what their queue holds, relative to this; float64
    rank: np.ndarray  # [Q] queues go in this order, the least first; float64
    used: np.ndarray  # [Q, R] what its tasks hold
    share: np.ndarray  # [Q, R] what they may hold before the leftover part
    left: np.ndarray  # [J] work that is left: task-seconds times the mean share of the cluster that they hold
    total_left: np.ndarray  # [B] of all active jobs
    work: np.ndarray  # [S] that of a task
    # [S] leftovers go to a job's stage with the largest: alignment with an empty cluster, or the intra-job order
    size: np.ndarray
    cursor: np.ndarray  # [S] scratch: the next machine that has room for a task of a stage
    ceiling: np.ndarray  # [blocks, R] the most that a machine of a block of a manager's may have free
    dirty: np.ndarray  # [N] machines where something has ended since the last match, by manager
    is_dirty: np.ndarray  # [N] bool
    dirty_count: np.ndarray  # [K]
    must: np.ndarray  # [S] tasks that the plan of an altruistic job says must be launched now
    altruistic: np.ndarray  # [J] bool
    # [J] when a job has waited for local tasks, ns; NEVER: it was not passed over since the last
    wait_end: np.ndarray
    passed: np.ndarray  # [S] the last round in which a stage was passed over
    round: np.ndarray  # [1] of matching: one machine, or all with packing
    pack: Packing
    inter: int  # one of `actors.machines.shares`
    leftover: int
    packing: bool  # tasks of all jobs go by their values, and not by job
    prefers_local: bool  # of a stage tasks go first of which the part of the job's input is on the machine
    locality_wait: int  # how long a job waits for such tasks, ns


class Pending(NamedTuple):
    """Launches that a user's scheduler has decided on; S stages, T tasks. Empty where parts decide (`Manager`)."""

    stage: np.ndarray  # [T]
    node: np.ndarray  # [T]
    first: np.ndarray  # [1] the first that has not been sent
    end: np.ndarray  # [1] one behind the last; 0: there is none
    taken: np.ndarray  # [S] scratch of who fills it; 0 otherwise


class Lineage(NamedTuple):
    """The manager's books of lost outputs; S stages, T tasks; empty where none can be lost."""

    suspect: np.ndarray  # [S] 1: outputs of tasks of the stage that have ended may be lost
    stack: np.ndarray  # [S] scratch: stages of which the parents are to be considered
    is_stacked: np.ndarray  # [S]
    reopened: np.ndarray  # [T] the first `num_reopened`: tasks that run again, since the event at hand began
    num_reopened: np.ndarray  # [1]
    node: np.ndarray  # [T] where a task was launched last
    start: np.ndarray  # [T] and when, ns; of a task that has ended since when it had computed
    has_input: np.ndarray  # [T] 1: a task that has been launched has fetched its input


class Manager(NamedTuple):
    """The state of K resource managers. What is handled concerns one of them, `me`, from 0 to K - 1."""

    matcher: Matcher
    profile: np.ndarray  # [J, R] demand of the mean task over capacity, the largest element 1; float64
    plan: Plan  # of altruistic jobs
    altruism: float  # probability that a job is altruistic at a match; 0: none is planned
    turns: np.ndarray  # [J] draws of it
    shares_differ: (
        np.ndarray
    )  # [B] whether the shares of a band are to be divided again, before its jobs are served
    # [K] when the next planned task must start, or a wait ends, for which a match is pending, ns
    alarm: np.ndarray
    ended: np.ndarray  # [K] jobs, by manager
    due: np.ndarray  # [K] bool: a match is due at this instant
    launched: np.ndarray  # [1] tasks launched, or stopped, by the event under way
    above: np.ndarray  # [R] scratch: what the bands hold that have been served at the match under way
    evictable: Evictable
    lineage: Lineage
    pending: Pending


def make_pending(stages: int, tasks: int) -> Pending:
    """Return launches of none, with room for those of so many tasks."""
    rows = [np.zeros(size, np.int64) for size in (tasks, tasks, 1, 1, stages)]
    return Pending(*rows)


ONLY = np.int64(0)
"""The manager whose launches the host decides on: a user's scheduler is the only one."""


@inlined
def host_decides(p: Manager) -> bool:
    """Whether the host is asked what is launched: the scheduler is a user's own."""
    return p.pending.stage.size > 0


@inlined
def set_alarm(w: DagWorld, p: Manager, me: int, t: int, nearest: int) -> None:
    """Match again when a planned task must start or a wait ends, unless a match is pending that is earlier."""
    if nearest < NEVER and (nearest < p.alarm[me] or p.alarm[me] <= t):
        p.alarm[me] = nearest
        wake(w, nearest, w.nodes.size + me, MATCH, NONE, NONE, NONE)


@inlined
def num_jobs(m: Matcher, me: int) -> int:
    """Return how many jobs a manager gets."""
    return m.run.first_job[(me + 1) * m.bands] - m.run.first_job[me * m.bands]


@inlined
def end_of_active(m: Matcher, band: int) -> int:
    """Return the place behind the last active job of a band; they begin at its first."""
    return m.run.first_job[band] + m.num_active[band]


@inlined
def fits(w: DagWorld, stage: int, node: int) -> bool:
    """Whether a machine has room for a task."""
    return fits_in(w, w.machines.free, stage, node)


@inlined
def fits_in(w: DagWorld, room: np.ndarray, stage: int, row: int) -> bool:
    """Whether a task fits into the room of a machine, a row of `room`."""
    demand = w.stages.demand
    for r in range(demand.shape[1]):  # noqa: SIM110
        if demand[stage, r] > room[row, r]:
            return False
    return True


@inlined
def next_with_room(w: DagWorld, m: Matcher, me: int, stage: int, node: int) -> int:
    """Return the first machine from `node` on that has room for a task; behind the manager's last if none has."""
    return next_with_room_in(w, w.machines.free, m.ceiling, np.int64(0), me, stage, node)


@compiled
def next_with_room_in(
    w: DagWorld, room: np.ndarray, ceiling: np.ndarray, group: int, me: int, stage: int, node: int
) -> int:
    """Return the first machine from `node` on that has room for a task in a group of rows (`row_of`, `block_of`).

    The search skips blocks whose ceilings show no room; a ceiling is lowered when no machine of its block has room.
    """
    demand, nodes, resources = w.stages.demand, w.first_node[me + 1], w.stages.demand.shape[1]
    while node < nodes:
        block = node // BLOCK
        end = min((block + 1) * BLOCK, nodes)
        may_fit = True
        for r in range(resources):
            may_fit = may_fit and demand[stage, r] <= ceiling[block_of(w, group, node), r]
        if may_fit:
            for i in range(node, end):
                if fits_in(w, room, stage, row_of(w, group, i)):
                    return i
            lower_ceiling(w, room, ceiling, group, max(block * BLOCK, w.first_node[me]), end)
        node = end
    return nodes


@compiled
def lower_ceiling(
    w: DagWorld, room: np.ndarray, ceiling: np.ndarray, group: int, first: int, end: int
) -> None:
    """Set the ceiling of a block, the machines `first` to `end` - 1, to the most room that one of them has."""
    for r in range(ceiling.shape[1]):
        most: int = 0
        for i in range(first, end):
            most = max(most, room[row_of(w, group, i), r])
        ceiling[block_of(w, group, first), r] = most


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
def release(w: DagWorld, m: Matcher, me: int, node: int, stage: int) -> None:
    """Give back what a task that has ended held of its machine and of the share of its job."""
    job, demand = w.stages.job[stage], w.stages.demand
    for r in range(demand.shape[1]):
        w.machines.free[node, r] += demand[stage, r]
        block = node // BLOCK + w.manager[node]
        m.ceiling[block, r] = max(m.ceiling[block, r], w.machines.free[node, r])
        m.used[m.queue[job], r] -= demand[stage, r]
    if m.bands > 1:
        for r in range(demand.shape[1]):
            m.held[m.band[job], r] -= demand[stage, r]
    m.left[job] -= m.work[stage]
    m.total_left[m.band[job]] -= m.work[stage]
    note_room(w, m, me, node)


@inlined
def note_room(w: DagWorld, m: Matcher, me: int, node: int) -> None:
    """Note that a machine has room again, to be considered at the next match."""
    if not m.is_dirty[node]:
        m.is_dirty[node] = True
        m.dirty[w.first_node[me] + m.dirty_count[me]] = node
        m.dirty_count[me] += 1


@inlined
def forget_dirty(w: DagWorld, m: Matcher, me: int) -> None:
    """Note that the machines where something has ended have been considered."""
    for i in range(w.first_node[me], w.first_node[me] + m.dirty_count[me]):
        m.is_dirty[m.dirty[i]] = False
    m.dirty_count[me] = 0
