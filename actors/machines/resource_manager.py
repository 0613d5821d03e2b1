"""The resource manager: the loop that all schedulers of DAGs share. They differ in the parts that its state names.

1. A job arrives: the jobs' shares change, and its stages without parents may be launched.
2. A task has ended: its machine has room again, and stages that waited for it may be launched.
3. When all messages of an instant are handled, tasks are matched to machines: first, within the shares of jobs, then,
   if there is a leftover part, beyond them. With heartbeats this is done for one machine, when its heartbeat comes.

What is matched at ends of tasks: all stages to the machines where something has ended, and to all machines the stages
of which tasks have become launchable since the last match. No other task would fit anywhere: it would have been
launched before. Where nothing goes beyond the shares, what has room in its share again is tried everywhere, too.
"""

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import charge_server, take
from actors.kernel.counters import N_ARRIVED
from actors.kernel.messages import LOST, NODE_DOWN, NODE_UP
from actors.kernel.queue import NEVER, NONE, RUNNING, send, wake
from actors.kernel.random import random_bits, unit
from actors.machines.dag_world import N_MATCHES, N_SENT_AGAIN, DagWorld, end_of_nodes, expect_job
from actors.machines.failing import block
from actors.machines.launching import (
    Manager,
    bound_rank,
    fill,
    forget_fresh,
    has_room,
    pack_fresh,
    place_fresh,
    try_again,
)
from actors.machines.matching import BLOCK, NO_LEFTOVER, note_room, release
from actors.machines.messages import DAG_ARRIVAL, FREE, MATCH, STOP, TASK_DONE
from actors.machines.node_manager import node_event
from actors.machines.planning import plan
from actors.machines.progress import add_ready, add_ready_tasks, end_of_jobs, make_fresh, note_end
from actors.machines.shares import divide, update_rank

ALTRUISM = np.int64(0x70)  # a stream of random numbers


@compiled
def on_arrival(w: DagWorld, p: Manager, t: int, me: int, job: int) -> None:
    """Step 1."""
    m = p.matcher
    if job + w.first_node.size - 1 < w.work.size:  # the next one of this manager
        expect_job(w, job + w.first_node.size - 1)
    w.counts[N_ARRIVED] += w.jobs.unfinished[job]
    charge_server(w.cost, me - w.nodes.size, w.cost.per_job)
    first = m.run.first_job[w.me[0]]
    m.active[first + m.num_active[w.me[0]]] = job
    m.num_active[w.me[0]] += 1
    m.pack.got[job] = m.pack.given[w.me[0]]
    m.total_left[w.me[0]] += m.left[job]
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        add_ready_tasks(w, m.run, stage)
    for i in range(first, first + m.num_active[w.me[0]]):
        p.plan.promise[m.active[i]] = NEVER  # shares fall
    on_change(w, p, t, me)


@compiled
def on_done(w: DagWorld, p: Manager, t: int, me: int, task: int, stage: int, node: int, started: int) -> None:
    """Step 2."""
    m, job = p.matcher, w.stages.job[stage]
    release(w, m, node, stage)
    update_rank(w, m, job)
    p.plan.running[stage] -= 1
    before = m.run.num_fresh[w.me[0]]
    if note_end(w, m.run, task, stage, started):
        first = m.run.first_job[w.me[0]]
        place = first
        while m.active[place] != job and place < first + m.num_active[w.me[0]] - 1:
            place += 1
        m.num_active[w.me[0]] -= 1
        m.total_left[w.me[0]] = m.total_left[w.me[0]] if m.num_active[w.me[0]] > 0 else 0.0
        for i in range(place, first + m.num_active[w.me[0]]):
            m.active[i] = m.active[i + 1]
        p.ended[w.me[0]] += 1
        if p.ended[w.me[0]] == m.run.first_job[w.me[0] + 1] - first and w.heartbeat > 0:
            for other in range(w.first_node[w.me[0]], end_of_nodes(w)):
                send(w, t, me, other, STOP, NONE, NONE, NONE, NONE)
        on_change(w, p, t, me)
    elif m.leftover == NO_LEFTOVER:
        for i in range(m.run.first_job[w.me[0]], m.run.first_job[w.me[0]] + m.num_active[w.me[0]]):
            if m.queue[m.active[i]] == m.queue[job]:
                try_again(p, m.active[i])
    if m.run.num_fresh[w.me[0]] != before:  # other tasks may be launched
        p.plan.planned[job] = False
    request_match(w, p, t, me)


@compiled
def on_lost(w: DagWorld, p: Manager, t: int, me: int, job: int, task: int, node: int) -> None:
    """A task has been lost with its machine: it may be launched again."""
    m, stage = p.matcher, w.tasks.stage[task]
    w.counts[N_SENT_AGAIN] += 1
    release(w, m, node, stage)
    m.left[job] += m.work[stage]
    m.total_left[w.me[0]] += m.work[stage]
    update_rank(w, m, job)
    p.plan.running[stage] -= 1
    p.plan.planned[job] = False
    add_ready(w, m.run, stage, task)
    request_match(w, p, t, me)


@compiled
def on_node_state(w: DagWorld, p: Manager, t: int) -> None:
    """A machine is known to be down, or up again: then it has room."""
    node = block(w, p.matcher.ceiling, BLOCK)
    actor, now = w.nodes.size + w.me[0], w.queue.now
    if node != NONE and now.first[0] <= actor < now.end[0]:  # other partitions have a copy of the state alone
        note_room(w, p.matcher, node)
        request_match(w, p, t, actor)


@compiled
def on_change(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """A job has come or gone: all have other shares."""
    m = p.matcher
    divide(w, m, p.profile)
    first = m.run.first_job[w.me[0]]
    for i in range(first, first + m.num_active[w.me[0]]):
        p.plan.planned[m.active[i]] = False
    if m.leftover == NO_LEFTOVER:
        for i in range(first, first + m.num_active[w.me[0]]):
            try_again(p, m.active[i])
    request_match(w, p, t, me)


@inlined
def request_match(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """Match when all messages of this instant are handled."""
    if w.heartbeat == 0 and not p.due[w.me[0]]:
        p.due[w.me[0]] = True
        wake(w, t, me, MATCH, NONE, NONE, NONE)


@compiled
def plan_jobs(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """Plan the jobs that have another share or other tasks than when they were planned, or of which a task is due."""
    m = p.matcher
    for i in range(m.run.first_job[w.me[0]], end_of_jobs(m.run)):
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
    for i in range(m.run.first_job[w.me[0]], end_of_jobs(m.run)):
        nearest = min(nearest, p.plan.due[m.run.jobs[i]])
    if w.heartbeat == 0 and nearest < NEVER and (nearest < p.alarm[w.me[0]] or p.alarm[w.me[0]] <= t):
        p.alarm[w.me[0]] = nearest
        wake(w, nearest, me, MATCH, NONE, NONE, NONE)


@compiled
def on_match(w: DagWorld, p: Manager, t: int, me: int) -> None:
    """Step 3 for all machines; it goes on with another event where it launches more than one may."""
    m = p.matcher
    p.due[w.me[0]], p.launched[0] = False, 0
    w.counts[N_MATCHES] += 1
    if p.altruism > 0.0:
        plan_jobs(w, p, t, me)
    if p.matcher.pack.fairness > 0.0:
        bound_rank(p)
    while m.dirty_count[w.me[0]] > 0 and has_room(w, p):
        node = m.dirty[w.first_node[w.me[0]] + m.dirty_count[w.me[0]] - 1]
        fill(w, p, t, node)
        if has_room(w, p):
            m.is_dirty[node] = False
            m.dirty_count[w.me[0]] -= 1
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
def on_free(w: DagWorld, p: Manager, t: int, me: int, node: int) -> None:
    """Step 3 at a heartbeat; it goes on with another event where the machine takes more tasks than one may launch."""
    m = p.matcher
    w.counts[N_MATCHES] += 1
    p.launched[0] = 0
    forget_fresh(p)
    first = w.first_node[w.me[0]]
    for i in range(first, first + m.dirty_count[w.me[0]]):
        m.is_dirty[m.dirty[i]] = False
    m.dirty_count[w.me[0]] = 0
    if p.altruism > 0.0:
        plan_jobs(w, p, t, me)
    if p.matcher.pack.fairness > 0.0:
        bound_rank(p)
    fill(w, p, t, node)
    if not has_room(w, p):
        wake(w, t, me, MATCH, NONE, NONE, node)


@inlined
def set_manager(w: DagWorld, me: int) -> None:
    """Note whose message is handled: a manager's, or to all of them about a machine."""
    managers = w.first_node.size - 1
    if me >= w.nodes.size + managers:
        w.me[0] = w.manager[w.queue.now.a[0]]
    elif me >= w.nodes.size:
        w.me[0] = me - w.nodes.size


@entry
def advance(w: DagWorld, p: Manager, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me, a, b = message.time[0], message.kind[0], message.dst[0], message.a[0], message.b[0]
        set_manager(w, me)
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == TASK_DONE:
            on_done(w, p, t, me, a, b, message.c[0], message.d[0])
        elif kind == MATCH and message.c[0] == NONE:
            on_match(w, p, t, me)
        elif kind == MATCH or kind == FREE:
            on_free(w, p, t, me, message.c[0])
        elif kind == DAG_ARRIVAL:
            on_arrival(w, p, t, me, a)
        elif kind == LOST:
            on_lost(w, p, t, me, a, b, message.c[0])
        elif kind == NODE_DOWN or kind == NODE_UP:
            on_node_state(w, p, t)
    return RUNNING
