"""Matching of tasks to machines: which task the resource manager launches on a machine that has something free.

A scheduler of DAGs has three parts, which can be combined.

- Inter-job: the share of each job, or of each queue of jobs, and the order of jobs (`rank`, the least first).
- Intra-job: the order of the stages of a job (`Runnable.key`).
- Leftover: whether, and in which order, jobs get what is free when no task fits into the share of its job: in the same
  order, by the work they have left, the one that is furthest over its share first, or whichever fits best.

A job that is altruistic launches, in the first place, not what fits into its share but what its plan says must start
now (`actors.machines.carbyne_plan`); the rest of its share is left to the leftover part.

With `packing` the task of all jobs is launched that suits a machine best (`Packing`).

All of this is of the jobs of one band: those of a lower priority are served after it, in the same way.

The same rules stand here in two forms. `fill` is of one machine, and considers all stages (`choose`, `choose_packed`).
`place_fresh` and `pack_fresh` are of all machines, and consider the fresh stages: those of which tasks have become
launchable since the last match.
"""

from typing import NamedTuple

import numpy as np

from actors.initial_arrays import per, per_pair
from actors.inputs import can_lose_outputs, is_elsewhere, is_pushed, local_task, reads_part
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import charge_server
from actors.kernel.queue import NEVER, NONE, SPARE, lacks_room, wake
from actors.machines.carbyne_plan import Plan
from actors.machines.dag_world import N_LAUNCHES, N_LEFTOVER, DagWorld
from actors.machines.evictable import BLOCK, Evictable, block_of, is_to_wait, place_task, row_of, send_task
from actors.machines.messages import MATCH
from actors.machines.runnable import (
    Runnable,
    comes_before,
    end_of_fresh,
    end_of_jobs,
    make_job_fresh,
    note_launched,
    take_ready,
)
from actors.nodes.preemption import preempts

# Packing: the task of all jobs that suits best what a machine has free, and how fair that is to jobs.
#
# The value of a task on a machine is its stage's priority, times the alignment of its demand and what is free (Grandl
# et al., SIGCOMM 2014, section 3.2), less the work that its job has left. Alignment is the dot product of both, each
# relative to the machine's capacity. Without alignment tasks go by priority alone.
#
# Two rules keep it fair. With `fairness` only jobs that hold the least of the cluster may launch (SIGCOMM 2014, section
# 3.4). With `unfairness` jobs whose deficit is that large go first, the largest deficit first (Grandl et al., Graphene,
# OSDI 2016, section 5): each launch adds to the deficit of every job an equal part of what the task takes, and takes
# from that of its own job all of it.


class Values(NamedTuple):
    """What the value of a task on a machine depends on, and which jobs may launch."""

    by_alignment: bool = True  # how well the task suits the machine
    remaining_weight: float = 0.0  # of the work that the task's job has left
    renewed: bool = True  # its unit is that of each launch, and not of the begin of a pass over all machines
    remote_penalty: float = 0.0  # share lost on machines that have no input of the stage
    fairness: float = 0.0  # only the ceil((1 - fairness) jobs) with tasks that hold the least may launch
    unfairness: float = np.inf  # a job whose deficit is this part of the machines goes first


class Packing(NamedTuple):
    """What values of tasks are made of; J jobs, S stages, N machines, B bands."""

    priority: np.ndarray  # [S] float64
    score: np.ndarray  # [B, 2] the sum of the values of launched tasks so far, and how many, by band
    part: np.ndarray  # [S] of the cluster that a task takes: of the resource of which it is the largest
    ran: np.ndarray  # [S, N] bool: the machine has run a task of the stage; [S, 0] without remote penalty
    first_parent: np.ndarray  # [S + 1]
    parent: np.ndarray
    values: Values
    given: np.ndarray = per("band", 0.0)  # what a job would have got by now had it always got an equal part
    got: np.ndarray = per("job", 0.0)  # the same when the job arrived, and what it has launched since
    denied: np.ndarray = per("job", False)  # it could not launch at the last match, as it held too much
    most_used: np.ndarray = per("band", np.inf)  # jobs of a larger rank may not launch
    ranks: np.ndarray = per("job", 0.0)  # scratch


@inlined
def alignment(w: DagWorld, stage: int, node: int) -> float:
    """Return the dot product of a task's demand and what a machine has free, relative to the machine's capacity."""
    demand, free, capacity = w.tasks.demand, w.machines.free, w.machines.capacity
    total = 0.0
    for r in range(demand.shape[1]):
        if capacity[node, r] > 0:
            total += (demand[stage, r] / capacity[node, r]) * (free[node, r] / capacity[node, r])
    return total


@compiled
def is_remote(w: DagWorld, packing: Packing, stage: int, node: int) -> bool:
    """Whether a stage has input with known places, and none on a machine.

    A machine has some if it has run a task of the stage's parents, or has the part of the job's input of a task that
    may be launched. A task with a home has all of it there, and runs nowhere else.
    """
    if is_pushed(w.inputs, stage):
        return False
    for edge in range(packing.first_parent[stage], packing.first_parent[stage + 1]):
        if packing.ran[packing.parent[edge], node]:
            return False
    has_places = reads_part(w.inputs, stage) and w.inputs.job_input.lies.shape[0] > 0
    if has_places and local_task(w, stage, node) != NONE:
        return False
    return has_places or packing.first_parent[stage + 1] > packing.first_parent[stage]


@inlined
def value_of(w: DagWorld, packing: Packing, stage: int, node: int) -> float:
    """Return the value of a task on a machine, before the work that its job has left."""
    value = packing.priority[stage]
    if packing.values.by_alignment:
        value *= alignment(w, stage, node)
    if packing.values.remote_penalty > 0.0 and is_remote(w, packing, stage, node):
        value *= 1.0 - packing.values.remote_penalty
    return value


@inlined
def deficit(packing: Packing, band: int, job: int) -> float:
    """Return the deficit of a job if it is so large that the job goes first, else 0."""
    less = packing.given[band] - packing.got[job]
    return less if less >= packing.values.unfairness else 0.0


@inlined
def note_launch(
    packing: Packing, band: int, job: int, stage: int, node: int, value: float, num_active: int
) -> None:
    """Note a launch: the value of the task, and what its job has got."""
    packing.score[band, 0] += value
    packing.score[band, 1] += 1.0
    packing.given[band] += packing.part[stage] / num_active
    packing.got[job] += packing.part[stage]
    if packing.values.remote_penalty > 0.0:
        packing.ran[stage, node] = True


@compiled
def kth_least(values: np.ndarray, size: int, k: int) -> float:
    """Return the value of rank `k`, from 0, of the first `size`, which are reordered (Hoare's selection)."""
    low, high = np.int64(0), size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


# The state of the resource manager: what machines have free, what jobs hold, and which tasks and machines wait.

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
    queue: np.ndarray  # [J] the queue whose share a job may use; of Q, in most schedulers one for each job
    guarantee: np.ndarray  # [Q] jobs go by what their queue holds, relative to this; float64
    rank: np.ndarray  # [Q] queues go in this order, the least first; float64
    share: np.ndarray  # [Q, R] what they may hold before the leftover part
    left: np.ndarray  # [J] work that is left: task-seconds times the mean share of the cluster that they hold
    work: np.ndarray  # [S] that of a task
    # [S] leftovers go to a job's stage with the largest: alignment with an empty cluster, or the intra-job order
    size: np.ndarray
    ceiling: np.ndarray  # [blocks, R] the most that a machine of a block of a manager's may have free
    pack: Packing
    inter: int  # DRF, FAIR, FIXED, LEAST_LEFT or QUEUES
    leftover: int
    packing: bool  # tasks of all jobs go by their values, and not by job
    prefers_local: bool  # of a stage tasks go first of which the part of the job's input is on the machine
    locality_wait: int  # how long a job waits for such tasks, ns
    held: np.ndarray = per_pair("band", "resource")  # what tasks of a band hold, where a manager has several
    # Jobs that have arrived and not ended, by band and arrival, as in `run.jobs`
    active: np.ndarray = per("job")
    num_active: np.ndarray = per("band")  # how many there are
    used: np.ndarray = per_pair("queue", "resource")  # what tasks of a queue hold
    total_left: np.ndarray = per("band", 0.0)  # work that is left of all active jobs
    cursor: np.ndarray = per("stage")  # scratch: the next machine that has room for a task of a stage
    dirty: np.ndarray = per("machine")  # machines where something has ended since the last match, by manager
    is_dirty: np.ndarray = per("machine", False)
    dirty_count: np.ndarray = per("manager")
    must: np.ndarray = per("stage")  # tasks that the plan of an altruistic job says must be launched now
    altruistic: np.ndarray = per("job", False)
    # When a job has waited for local tasks, ns; NEVER: it was not passed over since the last
    wait_end: np.ndarray = per("job", NEVER)
    passed: np.ndarray = per("stage", NONE)  # the last round in which a stage was passed over
    round: np.ndarray = per("run")  # of matching: one machine, or all with packing


class Pending(NamedTuple):
    """Launches that a user's scheduler has decided on; S stages, T tasks. Empty where parts decide (`Manager`)."""

    stage: np.ndarray = per("task")
    node: np.ndarray = per("task")
    first: np.ndarray = per("run")  # the first that has not been sent
    end: np.ndarray = per("run")  # one behind the last; 0: there is none
    taken: np.ndarray = per("stage")  # scratch of who fills it; 0 otherwise


class Manager(NamedTuple):
    """The state of K resource managers. What is handled concerns one of them, `me`, from 0 to K - 1."""

    matcher: Matcher
    profile: np.ndarray  # [J, R] demand of the mean task over capacity, the largest element 1; float64
    plan: Plan  # of altruistic jobs
    altruism: float  # probability that a job is altruistic at a match; 0: none is planned
    evictable: Evictable
    pending: Pending
    turns: np.ndarray = per("job")  # draws of whether a job is altruistic
    # Whether the shares of a band are to be divided again, before its jobs are served
    shares_differ: np.ndarray = per("band")
    # When the next planned task must start, or a wait ends, for which a match is pending, ns
    alarm: np.ndarray = per("manager")
    ended: np.ndarray = per("manager")  # jobs, by manager
    due: np.ndarray = per("manager", False)  # its match is due at this instant
    launched: np.ndarray = per("run")  # tasks launched, or stopped, by the event under way
    # Scratch: what the bands hold that have been served at the match under way
    above: np.ndarray = per("resource")


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
def num_jobs(matcher: Matcher, me: int) -> int:
    """Return how many jobs a manager gets."""
    return matcher.run.first_job[(me + 1) * matcher.bands] - matcher.run.first_job[me * matcher.bands]


@inlined
def end_of_active(matcher: Matcher, band: int) -> int:
    """Return the place behind the last active job of a band; they begin at its first."""
    return matcher.run.first_job[band] + matcher.num_active[band]


@inlined
def fits(w: DagWorld, stage: int, node: int) -> bool:
    """Whether a machine has room for a task."""
    return fits_in(w, w.machines.free, stage, node)


@inlined
def fits_in(w: DagWorld, room: np.ndarray, stage: int, row: int) -> bool:
    """Whether a task fits into the room of a machine, a row of `room`."""
    demand = w.tasks.demand
    for r in range(demand.shape[1]):  # noqa: SIM110
        if demand[stage, r] > room[row, r]:
            return False
    return True


@inlined
def next_with_room(w: DagWorld, matcher: Matcher, me: int, stage: int, node: int) -> int:
    """Return the first machine from `node` on that has room for a task; behind the manager's last if none has."""
    return next_with_room_in(w, w.machines.free, matcher.ceiling, np.int64(0), me, stage, node)


@compiled
def next_with_room_in(
    w: DagWorld, room: np.ndarray, ceiling: np.ndarray, group: int, me: int, stage: int, node: int
) -> int:
    """Return the first machine from `node` on that has room for a task in a group of rows (`row_of`, `block_of`).

    The search skips blocks whose ceilings show no room; a ceiling is lowered when no machine of its block has room.
    """
    demand, nodes, resources = w.tasks.demand, w.first_node[me + 1], w.tasks.demand.shape[1]
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
def fits_share(w: DagWorld, matcher: Matcher, job: int, stage: int) -> bool:
    """Whether a task fits into what its job's share has left; it does if nothing of the share is in use."""
    demand, q = w.tasks.demand, matcher.queue[job]
    for r in range(demand.shape[1]):
        if matcher.used[q, r] + demand[stage, r] > matcher.share[q, r]:
            return holds_nothing(matcher, q)
    return True


@inlined
def holds_nothing(matcher: Matcher, queue: int) -> bool:
    """Whether no task of a queue holds anything."""
    for r in range(matcher.used.shape[1]):  # noqa: SIM110
        if matcher.used[queue, r] > 0:
            return False
    return True


@inlined
def release(w: DagWorld, matcher: Matcher, me: int, node: int, stage: int) -> None:
    """Give back what a task that has ended held of its machine and of the share of its job."""
    job, demand = w.stages.job[stage], w.tasks.demand
    for r in range(demand.shape[1]):
        w.machines.free[node, r] += demand[stage, r]
        block = node // BLOCK + w.manager[node]
        matcher.ceiling[block, r] = max(matcher.ceiling[block, r], w.machines.free[node, r])
        matcher.used[matcher.queue[job], r] -= demand[stage, r]
    if matcher.bands > 1:
        for r in range(demand.shape[1]):
            matcher.held[matcher.band[job], r] -= demand[stage, r]
    matcher.left[job] -= matcher.work[stage]
    matcher.total_left[matcher.band[job]] -= matcher.work[stage]
    note_room(w, matcher, me, node)


@inlined
def note_room(w: DagWorld, matcher: Matcher, me: int, node: int) -> None:
    """Note that a machine has room again, to be considered at the next match."""
    if not matcher.is_dirty[node]:
        matcher.is_dirty[node] = True
        matcher.dirty[w.first_node[me] + matcher.dirty_count[me]] = node
        matcher.dirty_count[me] += 1


@inlined
def forget_dirty(w: DagWorld, matcher: Matcher, me: int) -> None:
    """Note that the machines where something has ended have been considered."""
    for i in range(w.first_node[me], w.first_node[me] + matcher.dirty_count[me]):
        matcher.is_dirty[matcher.dirty[i]] = False
    matcher.dirty_count[me] = 0


# Shares of jobs, and the order in which jobs are served: the inter-job part of a scheduler of DAGs.

DRF, FAIR, FIXED, LEAST_LEFT, QUEUES = (np.int64(i) for i in range(5))
"""How jobs are served: by what they hold, with a DRF share or an equal one; in an order that does not change; the job
with the least work left first; by queues."""

ROUNDING = 2.0**-40
"""What a sum over thousands of jobs may lose, as a part of it: else 49 equal jobs would have one task each, not two."""


@compiled
def divide(w: DagWorld, matcher: Matcher, me: int, band: int, profile: np.ndarray) -> None:
    """Give every active job of a band its share, of what the bands above leave.

    Dominant resource fairness in closed form (Parkes, Dolev and Shah, EC 2012): with v_j the demand of a job's mean
    task over the cluster's capacity, divided by its largest element, each job gets x v_j of the capacity, where x = 1 /
    max over resources of the sum of v_j; where bands above hold a part of a resource, the largest x with which the
    sum fits into the rest. Fair: each gets the same part of every resource. Queues keep their guarantees. Others: all
    of the cluster.
    """
    total, room, first, end = (
        w.machines.total,
        matcher.room,
        matcher.run.first_job[band],
        end_of_active(matcher, band),
    )
    if matcher.inter == QUEUES:
        return
    if matcher.inter != DRF:
        parts = np.int64(max(end - first, 1)) if matcher.inter == FAIR else np.int64(1)
        for i in range(first, end):
            for r in range(total.shape[1]):
                whole = room[band, r] if matcher.inter == FAIR else total[me, r]
                matcher.share[matcher.active[i], r] = whole // parts
        return
    most = 0.0
    for r in range(total.shape[1]):
        together = 0.0
        for i in range(first, end):
            together += profile[matcher.active[i], r]
        if room[band, r] < total[me, r]:
            together = together * total[me, r] / max(room[band, r], np.int64(1))
        most = max(most, together)
    for i in range(first, end):
        job = matcher.active[i]
        for r in range(total.shape[1]):
            matcher.share[job, r] = (
                nearest_whole(profile[job, r] / most * total[me, r]) if most > 0.0 else total[me, r]
            )


@inlined
def nearest_whole(amount: float) -> int:
    """Return the whole number that is nearest to an amount, which rounding may have made smaller than it is."""
    return np.int64(amount * (1.0 + ROUNDING) + 0.5)


@compiled
def dominant_share(w: DagWorld, matcher: Matcher, me: int, queue: int) -> float:
    """Return the largest share of a resource of the manager that a queue holds (Ghodsi et al., NSDI 2011)."""
    most = 0.0
    for r in range(matcher.used.shape[1]):
        if w.machines.total[me, r] > 0:
            most = max(most, matcher.used[queue, r] / w.machines.total[me, r])
    return most


@compiled
def over_share(w: DagWorld, matcher: Matcher, job: int) -> float:
    """Return how far the queue of a job is over its share: the most by a resource, as a part of the manager's.

    Less than 0 where it holds less than its share of each.
    """
    me, queue, most = matcher.band[job] // matcher.bands, matcher.queue[job], -np.inf
    for r in range(matcher.used.shape[1]):
        if w.machines.total[me, r] > 0:
            most = max(most, (matcher.used[queue, r] - matcher.share[queue, r]) / w.machines.total[me, r])
    return most


@inlined
def update_rank(w: DagWorld, matcher: Matcher, me: int, job: int) -> None:
    """Update the rank of a job that has got or given back resources."""
    if matcher.inter == LEAST_LEFT:
        matcher.rank[job] = matcher.left[job]
    elif matcher.inter != FIXED:
        queue = matcher.queue[job]
        matcher.rank[queue] = dominant_share(w, matcher, me, queue) / matcher.guarantee[queue]


# Locality by delay scheduling (Zaharia et al., EuroSys 2010, sections 3.3 and 4.1).
#
# A task whose part of the job's input is on a machine goes before the other tasks of its stage there. A stage without
# such a task is passed over on a machine, until its job has waited since it was first passed over; from then on the job
# launches anywhere, until it has launched a local task. Stages that read no part of the job's input do not wait, nor do
# those whose tasks have homes: these run there alone, without a wait.

# Of `Matcher.wait_end`: the job launches anywhere, and all machines have been considered since; or it has launched a
# local task, and where it was passed over before that it will be again.
OVER, ENDED_BY_LAUNCH = np.int64(0), NEVER - 1


@inlined
def is_to_be_passed(w: DagWorld, matcher: Matcher, t: int, node: int, stage: int) -> bool:
    """Whether a stage has no task that may be launched on a machine, as its job waits for local ones."""
    is_waiting = matcher.locality_wait > 0 and matcher.wait_end[w.stages.job[stage]] > t
    return is_waiting and reads_part(w.inputs, stage) and local_task(w, stage, node) == NONE


@compiled
def pass_over(w: DagWorld, p: Manager, me: int, t: int, stage: int) -> None:
    """Pass over a stage whose turn it was: its job's wait begins, unless it has begun.

    At its end the manager matches again. With heartbeats the next one of a machine is early enough.
    """
    matcher, job = p.matcher, w.stages.job[stage]
    if matcher.wait_end[job] >= ENDED_BY_LAUNCH:
        matcher.wait_end[job] = t + matcher.locality_wait
        if w.heartbeat == 0:
            set_alarm(w, p, me, t, matcher.wait_end[job])


@compiled
def end_waits(w: DagWorld, matcher: Matcher, band: int, t: int) -> int:
    """Consider the jobs whose wait has ended for all machines; return when the next wait of a job of the band ends."""
    nearest: int = NEVER
    for i in range(matcher.run.first_job[band], end_of_jobs(matcher.run, band)):
        job = matcher.run.jobs[i]
        if matcher.wait_end[job] == ENDED_BY_LAUNCH:
            matcher.wait_end[job] = NEVER
            make_job_fresh(matcher.run, band, job)
        elif matcher.wait_end[job] > t:
            nearest = min(nearest, matcher.wait_end[job])
        elif matcher.wait_end[job] != OVER:
            matcher.wait_end[job] = OVER
            make_job_fresh(matcher.run, band, job)
    return nearest


@inlined
def take_task(w: DagWorld, p: Manager, me: int, t: int, band: int, node: int, stage: int) -> int:
    """Return the task of a stage that is launched on a machine: the next one, or with locality first a local one.

    A local one ends its job's wait. Another one begins if the job is passed over on a machine that has room still: the
    manager matches again to find out. With heartbeats the next one of a machine is early enough.
    """
    matcher, job = p.matcher, w.stages.job[stage]
    local: int = NONE
    if is_pushed(w.inputs, stage):
        local = local_task(w, stage, node)
    elif matcher.prefers_local and reads_part(w.inputs, stage):
        local = local_task(w, stage, node)
        if local != NONE and matcher.wait_end[job] != NEVER:
            matcher.wait_end[job] = NEVER if w.heartbeat > 0 else ENDED_BY_LAUNCH
            if w.heartbeat == 0:
                set_alarm(w, p, me, t, t)
    return take_ready(w, matcher.run, band, stage, local)


@inlined
def is_own(w: DagWorld, matcher: Matcher, job: int, stage: int) -> bool:
    """Whether a job may launch a task before the leftover part: it must start now, or fits into the job's share."""
    return matcher.must[stage] > 0 if matcher.altruistic[job] else fits_share(w, matcher, job, stage)


@inlined
def place_of(w: DagWorld, matcher: Matcher, job: int, own: bool) -> float:
    """Return the place of a job in the order for tasks of its own, or in that of the leftover part."""
    if own or matcher.leftover == IN_ORDER:
        return matcher.rank[matcher.queue[job]]
    return -over_share(w, matcher, job) if matcher.leftover == MOST_OVER_FIRST else matcher.left[job]


@inlined
def may_try(w: DagWorld, matcher: Matcher, stage: int, node: int) -> bool:
    """Whether a task of a stage fits on a machine, which may be its home, and it has not been passed over there."""
    return (
        fits(w, stage, node)
        and matcher.passed[stage] != matcher.round[0]
        and not is_elsewhere(w, stage, node)
    )


@compiled
def choose(w: DagWorld, matcher: Matcher, band: int, node: int, own: bool) -> int:
    """Return the stage whose task is launched on a machine: of the first job that has one; NONE if none fits."""
    best: int = NONE
    least = np.inf
    for i in range(matcher.run.first_job[band], end_of_jobs(matcher.run, band)):
        job = matcher.run.jobs[i]
        place = place_of(w, matcher, job, own)
        if place < least or (place == least and matcher.turn[job] < matcher.turn[w.stages.job[best]]):
            stage = first_that_fits(w, matcher, job, node, own)
            if stage != NONE:
                best, least = stage, place
    return best


@inlined
def first_that_fits(w: DagWorld, matcher: Matcher, job: int, node: int, own: bool) -> int:
    """Return the first stage of a job whose task fits on a machine; for leftovers, that of the largest tasks."""
    best: int = NONE
    stage = matcher.run.first[job]
    while stage != NONE:
        if may_try(w, matcher, stage, node) and (not own or is_own(w, matcher, job, stage)):
            if own or matcher.leftover != LEAST_LEFT_FIRST:
                return stage
            if best == NONE or matcher.size[stage] > matcher.size[best]:
                best = stage
        stage = matcher.run.next[stage]
    return best


@inlined
def weight_of_work(matcher: Matcher, band: int) -> float:
    """Return what a unit of the work that a job has left takes from the value of its tasks.

    Work counts in units of the mean of the jobs, alignment in units of its mean so far, so that both weigh alike with
    `remaining_weight` 1 (SIGCOMM 2014, section 3.3).
    """
    k, total = matcher.pack, matcher.total_left[band]
    mean_score = k.score[band, 0] / k.score[band, 1] if k.score[band, 1] > 0.0 else 1.0
    return k.values.remaining_weight * mean_score * matcher.num_active[band] / total if total > 0.0 else 0.0


@compiled
def choose_packed(w: DagWorld, matcher: Matcher, band: int, node: int, least_fair: float) -> int:
    """Return the stage whose task has the largest value on a machine; NONE if none fits.

    Jobs of which the rank is above `least_fair` may not launch.
    """
    k, per_work = matcher.pack, weight_of_work(matcher, band)
    best: int = NONE
    most, largest = -np.inf, 0.0
    for i in range(matcher.run.first_job[band], end_of_jobs(matcher.run, band)):
        job = matcher.run.jobs[i]
        lacks = deficit(k, band, job)
        if lacks < largest or matcher.rank[matcher.queue[job]] > least_fair:
            continue
        less = per_work * matcher.left[job]
        stage = matcher.run.first[job]
        while stage != NONE:
            if may_try(w, matcher, stage, node):
                value = value_of(w, k, stage, node) - less
                if lacks > largest or value > most or (value == most and stage < best):
                    best, most, largest = stage, value, lacks
            stage = matcher.run.next[stage]
    return best


@compiled
def choose_fresh(w: DagWorld, matcher: Matcher, band: int, node: int, per_work: float) -> int:
    """Return the stage that `choose_packed` returns, of those that are considered for all machines."""
    k, run = matcher.pack, matcher.run
    best: int = NONE
    most, largest = -np.inf, 0.0
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        stage = run.fresh[i]
        if w.tasks.ready[stage] == 0 or not may_try(w, matcher, stage, node):
            continue
        job = w.stages.job[stage]
        lacks = deficit(k, band, job)
        if lacks < largest or matcher.rank[matcher.queue[job]] > k.most_used[band]:
            continue
        value = value_of(w, k, stage, node) - per_work * matcher.left[job]
        if lacks > largest or value > most or (value == most and stage < best):
            best, most, largest = stage, value, lacks
    return best


@compiled
def fill(w: DagWorld, p: Manager, band: int, t: int, node: int) -> None:
    """Step 3 for a band and one machine: launch until nothing fits, or the event has launched what it may."""
    matcher = p.matcher
    matcher.round[0] += 1
    while has_room(w, p):
        if matcher.packing:
            stage = choose_packed(w, matcher, band, node, matcher.pack.most_used[band])
        else:
            stage = choose(w, matcher, band, node, True)
            if stage == NONE and matcher.leftover == PACKING_FIRST:
                stage = choose_packed(w, matcher, band, node, np.inf)
            elif stage == NONE and matcher.leftover != NO_LEFTOVER:
                stage = choose(w, matcher, band, node, False)
        if stage == NONE:
            return
        if is_to_be_passed(w, matcher, t, node, stage):
            pass_over(w, p, w.manager[node], t, stage)
            matcher.passed[stage] = matcher.round[0]
        else:
            launch(w, p, w.manager[node], t, node, stage)


@inlined
def has_room(w: DagWorld, p: Manager) -> bool:
    """Whether the event under way may launch another task: how many messages one may send is bounded."""
    return p.launched[0] < w.queue.room - SPARE


@compiled
def launch(w: DagWorld, p: Manager, me: int, t: int, node: int, stage: int) -> None:
    """Launch a task of a stage on a machine."""
    matcher, job, demand = p.matcher, w.stages.job[stage], w.tasks.demand
    band = matcher.band[job]
    charge_server(w.cost, me, w.cost.per_task)
    w.counts[N_LAUNCHES] += 1
    if matcher.leftover != NO_LEFTOVER and not fits_share(w, matcher, job, stage):
        w.counts[N_LEFTOVER] += 1
    matcher.must[stage] = max(matcher.must[stage] - 1, 0)
    if matcher.packing or matcher.leftover == PACKING_FIRST:
        note_launch(
            matcher.pack,
            band,
            job,
            stage,
            node,
            value_of(w, matcher.pack, stage, node),
            matcher.num_active[band],
        )
    task = take_task(w, p, me, t, band, node, stage)
    note_launched(w, matcher.run, t, stage)
    if can_lose_outputs(w.inputs):
        w.stages.lineage.node[task], w.stages.lineage.start[task] = node, t
    for r in range(demand.shape[1]):
        w.machines.free[node, r] -= demand[stage, r]
        matcher.used[matcher.queue[job], r] += demand[stage, r]
    if matcher.bands > 1:
        for r in range(demand.shape[1]):
            matcher.held[band, r] += demand[stage, r]
    if preempts(w):
        place_task(w, p.evictable, node, task, stage)
    if not is_to_wait(w, p.evictable, task):
        send_task(w, p.evictable, me, t, node, task, stage)
    update_rank(w, matcher, me, job)
    p.launched[0] += 1
    p.plan.packing.running[stage] += 1
    p.plan.packing.last[stage] = t
    if matcher.pack.values.fairness > 0.0:
        bound_rank(p, band)


@inlined
def lacks_room_for_pending(w: DagWorld, p: Manager) -> bool:
    """Launch what the host has decided on, before the next event; return whether the queue must grow for the rest."""
    while p.pending.end[0] > 0:
        if lacks_room(w.queue):
            return True
        launch_pending(w, p, w.queue.now.time[0])
    return False


@compiled
def launch_pending(w: DagWorld, p: Manager, t: int) -> None:
    """Launch what the host has decided on and what has not been sent, as much as one event may send messages."""
    pending = p.pending
    p.launched[0] = 0
    while pending.first[0] < pending.end[0] and has_room(w, p):
        i = pending.first[0]
        launch(w, p, ONLY, t, pending.node[i], pending.stage[i])
        pending.first[0] = i + 1
    if pending.first[0] == pending.end[0]:
        pending.first[0], pending.end[0] = 0, 0


@compiled
def bound_rank(p: Manager, band: int) -> None:
    """Set the rank above which jobs may not launch: that of the last of those that hold the least.

    Stages of jobs that may launch again are considered for all machines: when these had room, the jobs might not.
    """
    matcher, pack = p.matcher, p.matcher.pack
    first, size = matcher.run.first_job[band], matcher.run.num_jobs[band]
    for i in range(size):
        pack.ranks[i] = matcher.rank[matcher.queue[matcher.run.jobs[first + i]]]
    allowed = max(np.int64(np.ceil((1.0 - pack.values.fairness) * size)), 1)
    pack.most_used[band] = kth_least(pack.ranks, size, allowed - 1) if size > 0 else np.inf
    for i in range(size):
        job = matcher.run.jobs[first + i]
        is_denied = matcher.rank[matcher.queue[job]] > pack.most_used[band]
        if pack.denied[job] and not is_denied:
            make_job_fresh(matcher.run, band, job)
        pack.denied[job] = is_denied


@compiled
def place_fresh(w: DagWorld, p: Manager, me: int, band: int, t: int, own: bool) -> None:
    """Launch tasks of the stages of a band that are considered for all machines, on the first machine that has room.

    What a machine has free only falls meanwhile: each stage goes over the machines once.
    """
    matcher, run = p.matcher, p.matcher.run
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        matcher.cursor[run.fresh[i]] = w.first_node[me]
    while has_room(w, p):
        best: int = NONE
        for i in range(run.first_stage[band], end_of_fresh(run, band)):
            stage = run.fresh[i]
            if w.tasks.ready[stage] == 0 or matcher.cursor[stage] >= w.first_node[me + 1]:
                continue
            if best == NONE or precedes(w, matcher, stage, best, own):
                best = stage
        if best == NONE:
            return
        job = w.stages.job[best]
        node = w.first_node[me + 1]
        if not own or is_own(w, matcher, job, best):
            node = next_to_launch(w, p, me, t, best, matcher.cursor[best])
        matcher.cursor[best] = node
        if node < w.first_node[me + 1]:
            launch(w, p, me, t, node, best)


@compiled
def next_to_launch(w: DagWorld, p: Manager, me: int, t: int, stage: int, node: int) -> int:
    """Return the first machine from `node` on that has room, and on which a stage, whose turn it is, may launch."""
    matcher = p.matcher
    node = next_with_room(w, matcher, me, stage, node)
    while node < w.first_node[me + 1]:
        if not is_elsewhere(w, stage, node):
            if not is_to_be_passed(w, matcher, t, node, stage):
                break
            pass_over(w, p, me, t, stage)
        node = next_with_room(w, matcher, me, stage, node + 1)
    return node


@compiled
def pack_fresh(w: DagWorld, p: Manager, me: int, band: int, t: int) -> None:
    """Launch tasks of such stages with packing: each machine in turn gets the tasks that suit it best."""
    matcher, run = p.matcher, p.matcher.run
    per_work = weight_of_work(matcher, band)
    at: int = NONE
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        matcher.cursor[run.fresh[i]] = next_with_room(w, matcher, me, run.fresh[i], w.first_node[me])
    while has_room(w, p):
        node = w.first_node[me + 1]
        for i in range(run.first_stage[band], end_of_fresh(run, band)):
            if w.tasks.ready[run.fresh[i]] > 0:
                node = min(node, matcher.cursor[run.fresh[i]])
        if node == w.first_node[me + 1]:
            return
        if node != at:
            at = node
            matcher.round[0] += 1
        if matcher.pack.values.renewed:
            per_work = weight_of_work(matcher, band)
        best = choose_fresh(w, matcher, band, node, per_work)
        if best != NONE and is_to_be_passed(w, matcher, t, node, best):
            pass_over(w, p, me, t, best)
            matcher.passed[best], matcher.cursor[best] = (
                matcher.round[0],
                next_with_room(w, matcher, me, best, node + 1),
            )
        elif best != NONE:
            launch(w, p, me, t, node, best)
        for i in range(run.first_stage[band], end_of_fresh(run, band)):
            stage = run.fresh[i]
            if matcher.cursor[stage] == node and w.tasks.ready[stage] > 0:
                matcher.cursor[stage] = next_with_room(
                    w, matcher, me, stage, node if best != NONE else node + 1
                )


@inlined
def precedes(w: DagWorld, matcher: Matcher, one: int, other: int, own: bool) -> bool:
    """Whether a stage is served before another: by its job, and within the job by the intra-job part."""
    first, second = w.stages.job[one], w.stages.job[other]
    if first == second:
        if not own and matcher.leftover == LEAST_LEFT_FIRST and matcher.size[one] != matcher.size[other]:
            return matcher.size[one] > matcher.size[other]
        return comes_before(matcher.run, one, other)
    before, after = place_of(w, matcher, first, own), place_of(w, matcher, second, own)
    return before < after or (before == after and matcher.turn[first] < matcher.turn[second])
