"""The resource manager: the loop that all schedulers of DAGs share. They differ in the parts that its state names.

1. A job arrives: the jobs' shares change, and its stages without parents may be launched.
2. A task has ended: its machine has room again, and stages that waited for it may be launched.
3. When all messages of an instant are handled, tasks are matched to machines: first, within the shares of jobs, then,
   if there is a leftover part, beyond them. With heartbeats this is done for one machine, when its heartbeat comes.

What is matched at ends of tasks: all stages to the machines where something has ended, and to all machines the stages
of which tasks have become launchable since the last match. No other task would fit anywhere: it would have been
launched before. Where nothing goes beyond the shares, what has room in its share again is tried everywhere, too.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import charge_server, take
from actors.kernel.counters import N_ARRIVED
from actors.kernel.kinds import LOST, NODE_DOWN, NODE_UP
from actors.kernel.queue import NEVER, NONE, RUNNING, send, wake
from actors.kernel.random import random_bits, unit
from actors.machines.dag_world import N_MATCHES, N_SENT_AGAIN, DagWorld, expect_job
from actors.machines.failing import block
from actors.machines.kinds import DAG_ARRIVAL, FREE, MATCH, STOP, TASK_DONE
from actors.machines.matching import (
    BLOCK,
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
    note_room,
    place_of,
    release,
    weight_of_work,
)
from actors.machines.node_manager import node_event
from actors.machines.packing import kth_least
from actors.machines.planning import Plan, plan
from actors.machines.progress import add_ready, add_ready_tasks, make_fresh, note_end
from actors.machines.shares import divide, update_rank

SPARE = np.int64(8)  # messages that an event may send besides launches
ALTRUISM = np.int64(0x70)  # a stream of random numbers


class Manager(NamedTuple):
    """The state of the resource manager."""

    matcher: Matcher
    profile: (
        np.ndarray
    )  # [J, R] demand of the mean task over the cluster's capacity, the largest element 1; float64
    plan: Plan  # of altruistic jobs
    altruism: float  # probability that a job is altruistic at a match; 0: none is planned
    turns: np.ndarray  # [J] draws of it
    alarm: np.ndarray  # [1] when the next planned task must start, for which a match is pending, ns
    ended: np.ndarray  # [1] jobs
    due: np.ndarray  # [1] bool: a match is due at this instant
    launched: np.ndarray  # [1] tasks launched by the event under way


@compiled
def on_arrival(w: DagWorld, p: Manager, t: int, me: int, job: int) -> None:
    """Step 1."""
    m = p.matcher
    if job + 1 < w.work.size:
        expect_job(w, job + 1)
    w.counts[N_ARRIVED] += w.jobs.unfinished[job]
    charge_server(w.cost, me - w.nodes.size, w.cost.per_job)
    m.active[m.num_active[0]] = job
    m.num_active[0] += 1
    m.pack.got[job] = m.pack.given[0]
    m.total_left[0] += m.left[job]
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        add_ready_tasks(w, m.run, stage)
    for i in range(m.num_active[0]):
        p.plan.promise[m.active[i]] = NEVER  # shares fall
    on_change(w, p, t, me)


@compiled
def on_done(w: DagWorld, p: Manager, t: int, me: int, task: int, stage: int, node: int, started: int) -> None:
    """Step 2."""
    m, job = p.matcher, w.stages.job[stage]
    release(w, m, node, stage)
    update_rank(w, m, job)
    p.plan.running[stage] -= 1
    before = m.run.num_fresh[0]
    if note_end(w, m.run, task, stage, started):
        place = 0
        while m.active[place] != job and place < m.num_active[0] - 1:
            place += 1
        m.num_active[0] -= 1
        m.total_left[0] = m.total_left[0] if m.num_active[0] > 0 else 0.0
        for i in range(place, m.num_active[0]):
            m.active[i] = m.active[i + 1]
        p.ended[0] += 1
        if p.ended[0] == w.work.size and w.heartbeat > 0:
            for other in range(w.nodes.size):
                send(w, t, me, other, STOP, NONE, NONE, NONE, NONE)
        on_change(w, p, t, me)
    elif m.leftover == NO_LEFTOVER:
        for i in range(m.num_active[0]):
            if m.queue[m.active[i]] == m.queue[job]:
                try_again(p, m.active[i])
    if m.run.num_fresh[0] != before:  # other tasks may be launched
        p.plan.planned[job] = False
    request_match(w, p, t, me)


@compiled
def on_lost(w: DagWorld, p: Manager, t: int, me: int, job: int, task: int, node: int) -> None:
    """A task has been lost with its machine: it may be launched again."""
    m, stage = p.matcher, w.tasks.stage[task]
    w.counts[N_SENT_AGAIN] += 1
    release(w, m, node, stage)
    m.left[job] += m.work[stage]
    m.total_left[0] += m.work[stage]
    update_rank(w, m, job)
    p.plan.running[stage] -= 1
    p.plan.planned[job] = False
    add_ready(w, m.run, stage, task)
    request_match(w, p, t, me)


@compiled
def on_node_state(w: DagWorld, p: Manager, t: int) -> None:
    """A machine is known to be down, or up again: then it has room."""
    node = block(w, p.matcher.ceiling, BLOCK)
    if node != NONE:
        note_room(p.matcher, node)
        request_match(w, p, t, w.nodes.size)


@compiled
def on_change(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """A job has come or gone: all have other shares."""
    m = p.matcher
    divide(w, m, p.profile)
    for i in range(m.num_active[0]):
        p.plan.planned[m.active[i]] = False
    if m.leftover == NO_LEFTOVER:
        for i in range(m.num_active[0]):
            try_again(p, m.active[i])
    request_match(w, p, t, me)


@inlined
def try_again(p: Manager, job: int) -> None:
    """Consider the stages of a job for all machines: its share may have room again."""
    stage = p.matcher.run.first[job]
    while stage != NONE:
        make_fresh(p.matcher.run, stage)
        stage = p.matcher.run.next[stage]


@inlined
def request_match(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """Match when all messages of this instant are handled."""
    if w.heartbeat == 0 and not p.due[0]:
        p.due[0] = True
        wake(w, t, me, MATCH, NONE, NONE, NONE)


@compiled
def fill(w: DagWorld, p: Manager, t: int, node: int) -> None:
    """Step 3 for one machine: launch until nothing fits, or the event has launched what it may."""
    m = p.matcher
    while has_room(w, p):
        if m.packing:
            stage = choose_packed(w, m, node, m.pack.most_used[0])
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
    charge_server(w.cost, np.int64(0), w.cost.per_task)
    launch(w, p.matcher, t, node, stage)
    update_rank(w, p.matcher, w.stages.job[stage])
    p.launched[0] += 1
    p.plan.running[stage] += 1
    p.plan.last[stage] = t
    if p.matcher.pack.fairness > 0.0:
        bound_rank(p)


@compiled
def plan_jobs(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """Plan the jobs that have another share or other tasks than when they were planned, or of which a task is due."""
    m = p.matcher
    for i in range(m.run.num_jobs[0]):
        job = m.run.jobs[i]
        if not p.plan.planned[job] or p.plan.due[job] <= t:
            p.turns[job] += 1
            m.altruistic[job] = unit(random_bits(w.seed, ALTRUISM, job, p.turns[job])) <= p.altruism
            if m.altruistic[job]:
                plan(w, p.plan, m.share, job, t)
                stage = m.run.first[job]
                while stage != NONE:
                    if m.must[stage] > 0:
                        make_fresh(m.run, stage)
                    stage = m.run.next[stage]
            else:
                p.plan.planned[job], p.plan.due[job] = True, NEVER
    nearest: int = NEVER
    for i in range(m.run.num_jobs[0]):
        nearest = min(nearest, p.plan.due[m.run.jobs[i]])
    if w.heartbeat == 0 and nearest < NEVER and (nearest < p.alarm[0] or p.alarm[0] <= t):
        p.alarm[0] = nearest
        wake(w, nearest, me, MATCH, NONE, NONE, NONE)


@compiled
def bound_rank(p: Manager) -> None:
    """Set the rank above which jobs may not launch: that of the last of those that hold the least.

    Stages of jobs that may launch again are considered for all machines: when these had room, the jobs might not.
    """
    m, k = p.matcher, p.matcher.pack
    size = m.run.num_jobs[0]
    for i in range(size):
        k.ranks[i] = m.rank[m.queue[m.run.jobs[i]]]
    allowed = max(np.int64(np.ceil((1.0 - k.fairness) * size)), 1)
    k.most_used[0] = kth_least(k.ranks, size, allowed - 1) if size > 0 else np.inf
    for i in range(size):
        job = m.run.jobs[i]
        is_denied = m.rank[m.queue[job]] > k.most_used[0]
        if k.denied[job] and not is_denied:
            try_again(p, job)
        k.denied[job] = is_denied


@compiled
def on_match(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """Step 3 for all machines; it goes on with another event where it launches more than one may."""
    m = p.matcher
    p.due[0], p.launched[0] = False, 0
    w.counts[N_MATCHES] += 1
    if p.altruism > 0.0:
        plan_jobs(w, p, t, me)
    if p.matcher.pack.fairness > 0.0:
        bound_rank(p)
    while m.dirty_count[0] > 0 and has_room(w, p):
        node = m.dirty[m.dirty_count[0] - 1]
        fill(w, p, t, node)
        if has_room(w, p):
            m.is_dirty[node] = False
            m.dirty_count[0] -= 1
    if m.packing:
        pack_fresh(w, p, t)
    elif m.leftover == NO_LEFTOVER:
        place_fresh(w, p, t, True)
    else:
        place_fresh(w, p, t, True)
        place_fresh(w, p, t, False)
    # A job that could not launch while its stages went over machines may do so after another launch.
    is_settled = has_room(w, p) and (m.pack.fairness == 0.0 or p.launched[0] == 0)
    if is_settled:
        forget_fresh(p)
    else:
        request_match(w, p, t, me)


@inlined
def forget_fresh(p: Manager) -> None:
    """All stages have been considered for all machines."""
    run = p.matcher.run
    for i in range(run.num_fresh[0]):
        run.is_fresh[run.fresh[i]] = False
    run.num_fresh[0] = 0


@compiled
def place_fresh(w: DagWorld, p: Manager, t: int, own: bool) -> None:
    """Launch tasks of stages that are considered for all machines, on the first machine that has room.

    What a machine has free only falls meanwhile: each stage goes over the machines once.
    """
    m, run = p.matcher, p.matcher.run
    for i in range(run.num_fresh[0]):
        m.cursor[run.fresh[i]] = 0
    while has_room(w, p):
        best: int = NONE
        for i in range(run.num_fresh[0]):
            stage = run.fresh[i]
            if w.stages.ready[stage] == 0 or m.cursor[stage] >= w.nodes.size:
                continue
            if best == NONE or precedes(w, m, stage, best, own):
                best = stage
        if best == NONE:
            return
        job = w.stages.job[best]
        node = np.int64(w.nodes.size)
        if not own or is_own(w, m, job, best):
            node = next_with_room(w, m, best, m.cursor[best])
        m.cursor[best] = node
        if node < w.nodes.size:
            start_task(w, p, t, node, best)


@compiled
def pack_fresh(w: DagWorld, p: Manager, t: int) -> None:
    """The same with packing: each machine in turn gets the tasks that suit it best."""
    m, run = p.matcher, p.matcher.run
    per_work = weight_of_work(m)
    for i in range(run.num_fresh[0]):
        m.cursor[run.fresh[i]] = next_with_room(w, m, run.fresh[i], np.int64(0))
    while has_room(w, p):
        node = np.int64(w.nodes.size)
        for i in range(run.num_fresh[0]):
            if w.stages.ready[run.fresh[i]] > 0:
                node = min(node, m.cursor[run.fresh[i]])
        if node == w.nodes.size:
            return
        best = choose_fresh(w, m, node, per_work)
        if best != NONE:
            start_task(w, p, t, node, best)
        for i in range(run.num_fresh[0]):
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


@inlined
def on_free(w: DagWorld, p: Manager, t: int, me: int, node: int) -> None:
    """Step 3 at a heartbeat."""
    m = p.matcher
    w.counts[N_MATCHES] += 1
    p.launched[0] = 0
    forget_fresh(p)
    for i in range(m.dirty_count[0]):
        m.is_dirty[m.dirty[i]] = False
    m.dirty_count[0] = 0
    if p.altruism > 0.0:
        plan_jobs(w, p, t, me)
    if p.matcher.pack.fairness > 0.0:
        bound_rank(p)
    fill(w, p, t, node)


@entry
def advance(w: DagWorld, p: Manager, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me, a, b = message.time[0], message.kind[0], message.dst[0], message.a[0], message.b[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == TASK_DONE:
            on_done(w, p, t, me, a, b, message.c[0], message.d[0])
        elif kind == MATCH:
            on_match(w, p, t, me)
        elif kind == FREE:
            on_free(w, p, t, me, message.c[0])
        elif kind == DAG_ARRIVAL:
            on_arrival(w, p, t, me, a)
        elif kind == LOST:
            on_lost(w, p, t, me, a, b, message.c[0])
        elif kind == NODE_DOWN or kind == NODE_UP:
            on_node_state(w, p, t)
    return RUNNING
