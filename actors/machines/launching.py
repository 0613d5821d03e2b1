"""Launching: which tasks go where, on one machine that has room, or of stages that are considered for all machines.

The state of the resource manager is here, too: all parts of a scheduler of DAGs meet in these functions.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import charge_server
from actors.kernel.queue import NONE
from actors.machines.dag_world import DagWorld, end_of_nodes
from actors.machines.matching import (
    LEAST_LEFT_FIRST,
    NO_LEFTOVER,
    PACKING_FIRST,
    Matcher,
    choose,
    choose_fresh,
    choose_packed,
    is_own,
    launch,
    next_with_room,
    place_of,
    weight_of_work,
)
from actors.machines.packing import kth_least
from actors.machines.planning import Plan
from actors.machines.progress import end_of_fresh, make_fresh
from actors.machines.shares import update_rank

SPARE = np.int64(8)  # messages that an event may send besides launches


class Manager(NamedTuple):
    """The state of the resource manager."""

    matcher: Matcher
    profile: (
        np.ndarray
    )  # [J, R] demand of the mean task over the cluster's capacity, the largest element 1; float64
    plan: Plan  # of altruistic jobs
    altruism: float  # probability that a job is altruistic at a match; 0: none is planned
    turns: np.ndarray  # [J] draws of it
    alarm: np.ndarray  # [K] when the next planned task must start, for which a match is pending, ns
    ended: np.ndarray  # [K] jobs, by manager
    due: np.ndarray  # [K] bool: a match is due at this instant
    launched: np.ndarray  # [1] tasks launched by the event under way


@inlined
def try_again(p: Manager, job: int) -> None:
    """Consider the stages of a job for all machines: its share may have room again."""
    stage = p.matcher.run.first[job]
    while stage != NONE:
        make_fresh(p.matcher.run, stage)
        stage = p.matcher.run.next[stage]


@compiled
def fill(w: DagWorld, p: Manager, t: int, node: int) -> None:
    """Step 3 for one machine: launch until nothing fits, or the event has launched what it may."""
    m = p.matcher
    while has_room(w, p):
        if m.packing:
            stage = choose_packed(w, m, node, m.pack.most_used[w.me[0]])
        else:
            stage = choose(w, m, node, True)
            if stage == NONE and m.leftover == PACKING_FIRST:
                stage = choose_packed(w, m, node, np.inf)
            elif stage == NONE and m.leftover != NO_LEFTOVER:
                stage = choose(w, m, node, False)
        if stage == NONE:
            return
        start_task(w, p, t, node, stage)


@inlined
def has_room(w: DagWorld, p: Manager) -> bool:
    """Whether the event under way may launch another task: how many messages one may send is bounded."""
    return p.launched[0] < w.queue.room - SPARE


@inlined
def start_task(w: DagWorld, p: Manager, t: int, node: int, stage: int) -> None:
    """Launch a task, and note it."""
    charge_server(w.cost, w.me[0], w.cost.per_task)
    launch(w, p.matcher, t, node, stage)
    update_rank(w, p.matcher, w.stages.job[stage])
    p.launched[0] += 1
    p.plan.running[stage] += 1
    p.plan.last[stage] = t
    if p.matcher.pack.fairness > 0.0:
        bound_rank(p)


@compiled
def bound_rank(p: Manager) -> None:
    """Set the rank above which jobs may not launch: that of the last of those that hold the least.

    Stages of jobs that may launch again are considered for all machines: when these had room, the jobs might not.
    """
    m, k = p.matcher, p.matcher.pack
    me, first = k.me[0], m.run.first_job[k.me[0]]
    size = m.run.num_jobs[me]
    for i in range(size):
        k.ranks[i] = m.rank[m.queue[m.run.jobs[first + i]]]
    allowed = max(np.int64(np.ceil((1.0 - k.fairness) * size)), 1)
    k.most_used[me] = kth_least(k.ranks, size, allowed - 1) if size > 0 else np.inf
    for i in range(size):
        job = m.run.jobs[first + i]
        is_denied = m.rank[m.queue[job]] > k.most_used[me]
        if k.denied[job] and not is_denied:
            try_again(p, job)
        k.denied[job] = is_denied


@inlined
def forget_fresh(p: Manager) -> None:
    """All stages have been considered for all machines."""
    run = p.matcher.run
    for i in range(run.first_stage[run.me[0]], end_of_fresh(run)):
        run.is_fresh[run.fresh[i]] = False
    run.num_fresh[run.me[0]] = 0


@compiled
def place_fresh(w: DagWorld, p: Manager, t: int, own: bool) -> None:
    """Launch tasks of stages that are considered for all machines, on the first machine that has room.

    What a machine has free only falls meanwhile: each stage goes over the machines once.
    """
    m, run = p.matcher, p.matcher.run
    for i in range(run.first_stage[w.me[0]], end_of_fresh(run)):
        m.cursor[run.fresh[i]] = w.first_node[w.me[0]]
    while has_room(w, p):
        best: int = NONE
        for i in range(run.first_stage[w.me[0]], end_of_fresh(run)):
            stage = run.fresh[i]
            if w.stages.ready[stage] == 0 or m.cursor[stage] >= end_of_nodes(w):
                continue
            if best == NONE or precedes(w, m, stage, best, own):
                best = stage
        if best == NONE:
            return
        job = w.stages.job[best]
        node = end_of_nodes(w)
        if not own or is_own(w, m, job, best):
            node = next_with_room(w, m, best, m.cursor[best])
        m.cursor[best] = node
        if node < end_of_nodes(w):
            start_task(w, p, t, node, best)


@compiled
def pack_fresh(w: DagWorld, p: Manager, t: int) -> None:
    """The same with packing: each machine in turn gets the tasks that suit it best."""
    m, run = p.matcher, p.matcher.run
    per_work = weight_of_work(m)
    for i in range(run.first_stage[w.me[0]], end_of_fresh(run)):
        m.cursor[run.fresh[i]] = next_with_room(w, m, run.fresh[i], w.first_node[w.me[0]])
    while has_room(w, p):
        node = end_of_nodes(w)
        for i in range(run.first_stage[w.me[0]], end_of_fresh(run)):
            if w.stages.ready[run.fresh[i]] > 0:
                node = min(node, m.cursor[run.fresh[i]])
        if node == end_of_nodes(w):
            return
        best = choose_fresh(w, m, node, per_work)
        if best != NONE:
            start_task(w, p, t, node, best)
        for i in range(run.first_stage[w.me[0]], end_of_fresh(run)):
            stage = run.fresh[i]
            if m.cursor[stage] == node and w.stages.ready[stage] > 0:
                m.cursor[stage] = next_with_room(w, m, stage, node if best != NONE else node + 1)


@inlined
def precedes(w: DagWorld, m: Matcher, one: int, other: int, own: bool) -> bool:
    """Whether a stage is served before another: by its job, and within the job by the intra-job part."""
    first, second = w.stages.job[one], w.stages.job[other]
    if first == second:
        if not own and m.leftover == LEAST_LEFT_FIRST and m.size[one] != m.size[other]:
            return m.size[one] > m.size[other]
        return m.run.key[one] < m.run.key[other] or (m.run.key[one] == m.run.key[other] and one < other)
    before, after = place_of(m, first, own), place_of(m, second, own)
    return before < after or (before == after and first < second)
