"""Matching of tasks to machines: which task the resource manager launches on a machine that has something free.

A scheduler of DAGs has three parts, which can be combined.

- Inter-job: the share of each job, or of each queue of jobs, and the order of jobs (`rank`, the least first).
- Intra-job: the order of the stages of a job (`Runnable.key`).
- Leftover: whether, and in which order, jobs get what is free when no task fits into the share of its job: in the same
  order, by the work they have left, the one that is furthest over its share first, or whichever fits best.

A job that is altruistic launches, in the first place, not what fits into its share but what its plan says must start
now (`actors.machines.carbyne_plan`); the rest of its share is left to the leftover part.

With `packing` the task of all jobs is launched that suits a machine best (`actors.machines.packing`).

All of this is of the jobs of one band: those of a lower priority are served after it, in the same way.
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import charge_server
from actors.kernel.inputs import can_lose_outputs, is_elsewhere
from actors.kernel.queue import NONE, SPARE, lacks_room
from actors.machines.dag_world import N_LAUNCHES, N_LEFTOVER, DagWorld
from actors.machines.evictable import is_to_wait, place_task, send_task
from actors.machines.locality import is_to_be_passed, pass_over, take_task
from actors.machines.manager_state import (
    IN_ORDER,
    LEAST_LEFT_FIRST,
    MOST_OVER_FIRST,
    NO_LEFTOVER,
    ONLY,
    PACKING_FIRST,
    Manager,
    Matcher,
    fits,
    fits_share,
    next_with_room,
)
from actors.machines.packing import deficit, kth_least, note_launch, value_of
from actors.machines.runnable import (
    comes_before,
    end_of_fresh,
    end_of_jobs,
    make_job_fresh,
    note_launched,
)
from actors.machines.shares import over_share, update_rank
from actors.nodes.preemption import preempts


@inlined
def is_own(w: DagWorld, m: Matcher, job: int, stage: int) -> bool:
    """Whether a job may launch a task before the leftover part: it must start now, or fits into the job's share."""
    return m.must[stage] > 0 if m.altruistic[job] else fits_share(w, m, job, stage)


@inlined
def place_of(w: DagWorld, m: Matcher, job: int, own: bool) -> float:
    """Return the place of a job in the order for tasks of its own, or in that of the leftover part."""
    if own or m.leftover == IN_ORDER:
        return m.rank[m.queue[job]]
    return -over_share(w, m, job) if m.leftover == MOST_OVER_FIRST else m.left[job]


@inlined
def may_try(w: DagWorld, m: Matcher, stage: int, node: int) -> bool:
    """Whether a task of a stage fits on a machine, which may be its home, and it has not been passed over there."""
    return fits(w, stage, node) and m.passed[stage] != m.round[0] and not is_elsewhere(w, stage, node)


@compiled
def choose(w: DagWorld, m: Matcher, band: int, node: int, own: bool) -> int:
    """Return the stage whose task is launched on a machine: of the first job that has one; NONE if none fits."""
    best: int = NONE
    least = np.inf
    for i in range(m.run.first_job[band], end_of_jobs(m.run, band)):
        job = m.run.jobs[i]
        place = place_of(w, m, job, own)
        if place < least or (place == least and m.turn[job] < m.turn[w.stages.job[best]]):
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
        if may_try(w, m, stage, node) and (not own or is_own(w, m, job, stage)):
            if own or m.leftover != LEAST_LEFT_FIRST:
                return stage
            if best == NONE or m.size[stage] > m.size[best]:
                best = stage
        stage = m.run.next[stage]
    return best


@inlined
def weight_of_work(m: Matcher, band: int) -> float:
    """Return what a unit of the work that a job has left takes from the value of its tasks.

    Work counts in units of the mean of the jobs, alignment in units of its mean so far, so that both weigh alike with
    `remaining_weight` 1 (SIGCOMM 2014, section 3.3).
    """
    k, total = m.pack, m.total_left[band]
    mean_score = k.score[band, 0] / k.score[band, 1] if k.score[band, 1] > 0.0 else 1.0
    return k.values.remaining_weight * mean_score * m.num_active[band] / total if total > 0.0 else 0.0


@compiled
def choose_packed(w: DagWorld, m: Matcher, band: int, node: int, least_fair: float) -> int:
    """Return the stage whose task has the largest value on a machine; NONE if none fits.

    Jobs of which the rank is above `least_fair` may not launch.
    """
    k, per_work = m.pack, weight_of_work(m, band)
    best: int = NONE
    most, largest = -np.inf, 0.0
    for i in range(m.run.first_job[band], end_of_jobs(m.run, band)):
        job = m.run.jobs[i]
        lacks = deficit(k, band, job)
        if lacks < largest or m.rank[m.queue[job]] > least_fair:
            continue
        less = per_work * m.left[job]
        stage = m.run.first[job]
        while stage != NONE:
            if may_try(w, m, stage, node):
                value = value_of(w, k, stage, node) - less
                if lacks > largest or value > most or (value == most and stage < best):
                    best, most, largest = stage, value, lacks
            stage = m.run.next[stage]
    return best


@compiled
def choose_fresh(w: DagWorld, m: Matcher, band: int, node: int, per_work: float) -> int:
    """Return the stage that `choose_packed` returns, of those that are considered for all machines."""
    k, run = m.pack, m.run
    best: int = NONE
    most, largest = -np.inf, 0.0
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        stage = run.fresh[i]
        if w.stages.ready[stage] == 0 or not may_try(w, m, stage, node):
            continue
        job = w.stages.job[stage]
        lacks = deficit(k, band, job)
        if lacks < largest or m.rank[m.queue[job]] > k.most_used[band]:
            continue
        value = value_of(w, k, stage, node) - per_work * m.left[job]
        if lacks > largest or value > most or (value == most and stage < best):
            best, most, largest = stage, value, lacks
    return best


@compiled
def fill(w: DagWorld, p: Manager, band: int, t: int, node: int) -> None:
    """Step 3 for a band and one machine: launch until nothing fits, or the event has launched what it may."""
    m = p.matcher
    m.round[0] += 1
    while has_room(w, p):
        if m.packing:
            stage = choose_packed(w, m, band, node, m.pack.most_used[band])
        else:
            stage = choose(w, m, band, node, True)
            if stage == NONE and m.leftover == PACKING_FIRST:
                stage = choose_packed(w, m, band, node, np.inf)
            elif stage == NONE and m.leftover != NO_LEFTOVER:
                stage = choose(w, m, band, node, False)
        if stage == NONE:
            return
        if is_to_be_passed(w, m, t, node, stage):
            pass_over(w, p, w.manager[node], t, stage)
            m.passed[stage] = m.round[0]
        else:
            launch(w, p, w.manager[node], t, node, stage)


@inlined
def has_room(w: DagWorld, p: Manager) -> bool:
    """Whether the event under way may launch another task: how many messages one may send is bounded."""
    return p.launched[0] < w.queue.room - SPARE


@compiled
def launch(w: DagWorld, p: Manager, me: int, t: int, node: int, stage: int) -> None:
    """Launch a task of a stage on a machine."""
    m, job, demand = p.matcher, w.stages.job[stage], w.stages.demand
    band = m.band[job]
    charge_server(w.cost, me, w.cost.per_task)
    w.counts[N_LAUNCHES] += 1
    if m.leftover != NO_LEFTOVER and not fits_share(w, m, job, stage):
        w.counts[N_LEFTOVER] += 1
    m.must[stage] = max(m.must[stage] - 1, 0)
    if m.packing or m.leftover == PACKING_FIRST:
        note_launch(m.pack, band, job, stage, node, value_of(w, m.pack, stage, node), m.num_active[band])
    task = take_task(w, p, me, t, band, node, stage)
    note_launched(w, m.run, t, stage)
    if can_lose_outputs(w.inputs):
        p.lineage.node[task], p.lineage.start[task] = node, t
    for r in range(demand.shape[1]):
        w.machines.free[node, r] -= demand[stage, r]
        m.used[m.queue[job], r] += demand[stage, r]
    if m.bands > 1:
        for r in range(demand.shape[1]):
            m.held[band, r] += demand[stage, r]
    if preempts(w):
        place_task(w, p.evictable, node, task, stage)
    if not is_to_wait(w, p.evictable, task):
        send_task(w, p.evictable, me, t, node, task, stage)
    update_rank(w, m, me, job)
    p.launched[0] += 1
    p.plan.packing.running[stage] += 1
    p.plan.packing.last[stage] = t
    if m.pack.values.fairness > 0.0:
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
    m, k = p.matcher, p.matcher.pack
    first, size = m.run.first_job[band], m.run.num_jobs[band]
    for i in range(size):
        k.ranks[i] = m.rank[m.queue[m.run.jobs[first + i]]]
    allowed = max(np.int64(np.ceil((1.0 - k.values.fairness) * size)), 1)
    k.most_used[band] = kth_least(k.ranks, size, allowed - 1) if size > 0 else np.inf
    for i in range(size):
        job = m.run.jobs[first + i]
        is_denied = m.rank[m.queue[job]] > k.most_used[band]
        if k.denied[job] and not is_denied:
            make_job_fresh(m.run, band, job)
        k.denied[job] = is_denied


@compiled
def place_fresh(w: DagWorld, p: Manager, me: int, band: int, t: int, own: bool) -> None:
    """Launch tasks of the stages of a band that are considered for all machines, on the first machine that has room.

    What a machine has free only falls meanwhile: each stage goes over the machines once.
    """
    m, run = p.matcher, p.matcher.run
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        m.cursor[run.fresh[i]] = w.first_node[me]
    while has_room(w, p):
        best: int = NONE
        for i in range(run.first_stage[band], end_of_fresh(run, band)):
            stage = run.fresh[i]
            if w.stages.ready[stage] == 0 or m.cursor[stage] >= w.first_node[me + 1]:
                continue
            if best == NONE or precedes(w, m, stage, best, own):
                best = stage
        if best == NONE:
            return
        job = w.stages.job[best]
        node = w.first_node[me + 1]
        if not own or is_own(w, m, job, best):
            node = next_to_launch(w, p, me, t, best, m.cursor[best])
        m.cursor[best] = node
        if node < w.first_node[me + 1]:
            launch(w, p, me, t, node, best)


@compiled
def next_to_launch(w: DagWorld, p: Manager, me: int, t: int, stage: int, node: int) -> int:
    """Return the first machine from `node` on that has room, and on which a stage, whose turn it is, may launch."""
    m = p.matcher
    node = next_with_room(w, m, me, stage, node)
    while node < w.first_node[me + 1]:
        if not is_elsewhere(w, stage, node):
            if not is_to_be_passed(w, m, t, node, stage):
                break
            pass_over(w, p, me, t, stage)
        node = next_with_room(w, m, me, stage, node + 1)
    return node


@compiled
def pack_fresh(w: DagWorld, p: Manager, me: int, band: int, t: int) -> None:
    """Launch tasks of such stages with packing: each machine in turn gets the tasks that suit it best."""
    m, run = p.matcher, p.matcher.run
    per_work = weight_of_work(m, band)
    at: int = NONE
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        m.cursor[run.fresh[i]] = next_with_room(w, m, me, run.fresh[i], w.first_node[me])
    while has_room(w, p):
        node = w.first_node[me + 1]
        for i in range(run.first_stage[band], end_of_fresh(run, band)):
            if w.stages.ready[run.fresh[i]] > 0:
                node = min(node, m.cursor[run.fresh[i]])
        if node == w.first_node[me + 1]:
            return
        if node != at:
            at = node
            m.round[0] += 1
        if m.pack.values.renewed:
            per_work = weight_of_work(m, band)
        best = choose_fresh(w, m, band, node, per_work)
        if best != NONE and is_to_be_passed(w, m, t, node, best):
            pass_over(w, p, me, t, best)
            m.passed[best], m.cursor[best] = m.round[0], next_with_room(w, m, me, best, node + 1)
        elif best != NONE:
            launch(w, p, me, t, node, best)
        for i in range(run.first_stage[band], end_of_fresh(run, band)):
            stage = run.fresh[i]
            if m.cursor[stage] == node and w.stages.ready[stage] > 0:
                m.cursor[stage] = next_with_room(w, m, me, stage, node if best != NONE else node + 1)


@inlined
def precedes(w: DagWorld, m: Matcher, one: int, other: int, own: bool) -> bool:
    """Whether a stage is served before another: by its job, and within the job by the intra-job part."""
    first, second = w.stages.job[one], w.stages.job[other]
    if first == second:
        if not own and m.leftover == LEAST_LEFT_FIRST and m.size[one] != m.size[other]:
            return m.size[one] > m.size[other]
        return comes_before(m.run, one, other)
    before, after = place_of(w, m, first, own), place_of(w, m, second, own)
    return before < after or (before == after and m.turn[first] < m.turn[second])
