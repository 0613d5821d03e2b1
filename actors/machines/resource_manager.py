"""The resource manager: the loop that all schedulers of DAGs share. They differ in the parts that its state names.

1. A job arrives: the jobs' shares change, and its stages without parents may be launched.
2. A task has ended: its machine has room again, and stages that waited for it may be launched.
3. When all messages of an instant are handled, tasks are matched to machines: first, within the shares of jobs, then,
   if there is a leftover part, beyond them. With heartbeats this is done for one machine, when its heartbeat comes.
   With priorities it is done for the jobs of the highest one, then for those of the next, in what is left (a *band*).
   With preemption tasks of a band may then evict those of lower ones (`actors.machines.preempting`).
4. Over pipelined edges children of stages whose last task was launched in it may then be launched: they are matched at
   the same instant, to what is left.

What is matched at ends of tasks: all stages to the machines where something has ended, and to all machines the stages
of which tasks have become launchable since the last match. No other task would fit anywhere: it would have been
launched before. Where nothing goes beyond the shares, what has room in its share again is tried everywhere, too.
"""

import numpy as np

from actors.failures import is_known_down, note_history, receive_node_state
from actors.inputs import can_lose_outputs, is_pushed
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import charge_server, take
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.messages import (
    LOST,
    NODE_DOWN,
    NODE_UP,
    RECEIVED,
    read_job,
    read_lost,
    read_node_state,
    read_received,
)
from actors.kernel.queue import GROW, NEVER, NONE, PYTHON, RUNNING, is_here, send, wake
from actors.machines import messages, runnable
from actors.machines.bands import (
    FALLEN,
    RISEN,
    begin_band,
    begin_match,
    divide_again,
    end_band,
    forget_plans,
)
from actors.machines.dag_world import N_RUN_AGAIN, N_SENT_AGAIN, DagWorld
from actors.machines.evictable import groups_of, shift_reach
from actors.machines.matching import (
    BLOCK,
    NO_LEFTOVER,
    Manager,
    Matcher,
    end_of_active,
    fill,
    forget_dirty,
    has_room,
    host_decides,
    lacks_room_for_pending,
    note_room,
    num_jobs,
    pack_fresh,
    place_fresh,
    release,
    set_alarm,
    update_rank,
)
from actors.machines.node_manager import node_event
from actors.machines.preempting import evict_for, held_until_now, make_queue_fresh, make_room
from actors.machines.pushing import on_push
from actors.nodes.preemption import preempts
from actors.stages import (
    forget_attempt,
    forget_changes,
    is_kept,
    note_has_input,
    restore_children,
    restore_input,
    suspect_machine,
)

BLOCKED = np.int64(1) << 61
"""Taken from what a machine that is down has free: nothing fits there. No machine has as much."""


@compiled
def on_arrival(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Step 1."""
    matcher, job = p.matcher, read_job(w)
    band = matcher.band[job]
    following = job + w.first_node.size - 1  # the next one of this manager
    if following < w.work.size:
        messages.send_dag_arrival(w, w.work.submit[following], w.nodes.size + me, following)
    w.counts[N_ARRIVED] += w.jobs.unfinished[job]
    charge_server(w.cost, me, w.cost.per_job)
    matcher.active[end_of_active(matcher, band)] = job
    matcher.num_active[band] += 1
    matcher.pack.got[job] = matcher.pack.given[band]
    matcher.total_left[band] += matcher.left[job]
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        runnable.add_ready_tasks(w, matcher.run, band, stage)
    p.shares_differ[band] = FALLEN
    forget_plans(p, me)
    request_match(w, p, me, t)


@compiled
def on_done(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Step 2."""
    matcher = p.matcher
    task, stage, node, start, finish = messages.read_task_done(w)
    job = w.stages.job[stage]
    band = matcher.band[job]
    if not preempts(w) or held_until_now(w, p, me, t, node, task, stage):
        release(w, matcher, me, node, stage)
    else:
        matcher.left[job] -= matcher.work[stage]
        matcher.total_left[band] -= matcher.work[stage]
    update_rank(w, matcher, me, job)
    p.plan.packing.running[stage] -= 1
    before = matcher.run.num_fresh[band]
    if runnable.note_end(w, matcher.run, band, task, stage, start, finish):
        forget_job(w, p, me, t, job)
        p.shares_differ[band] = max(p.shares_differ[band], RISEN)
    elif matcher.leftover == NO_LEFTOVER:
        make_queue_fresh(matcher, band, job)
    note_output(w, p, me, task, stage, start)
    if matcher.run.num_fresh[band] != before:  # other tasks may be launched
        p.plan.planned[job] = False
    forget_plans(p, me)
    request_match(w, p, me, t)


@compiled
def forget_job(w: DagWorld, p: Manager, me: int, t: int, job: int) -> None:
    """Remove a job that has ended. With the last one, the heartbeats of the machines end."""
    matcher, band = p.matcher, p.matcher.band[job]
    place = matcher.run.first_job[band]
    while matcher.active[place] != job and place < end_of_active(matcher, band) - 1:
        place += 1
    matcher.num_active[band] -= 1
    for i in range(place, end_of_active(matcher, band)):
        matcher.active[i] = matcher.active[i + 1]
    p.ended[me] += 1
    if p.ended[me] == num_jobs(matcher, me) and w.heartbeat > 0:
        for node in range(w.first_node[me], w.first_node[me + 1]):
            send(w, t, w.nodes.size + me, node, messages.STOP, NONE, NONE, NONE, NONE)


@compiled
def on_lost(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Note that a task was lost with its machine, or evicted, and may be launched again."""
    matcher = p.matcher
    job, task, node, history, start = read_lost(w)
    stage = w.stages.of_task[task]
    w.counts[N_SENT_AGAIN] += 1
    note_history(w, task, history)
    if preempts(w) and start != NONE:  # a job starts with the first attempt at a task
        w.jobs.start[job] = min(w.jobs.start[job], start)
    if not preempts(w) or held_until_now(w, p, me, t, node, task, stage):
        release(w, matcher, me, node, stage)
        matcher.left[job] += matcher.work[stage]
        matcher.total_left[matcher.band[job]] += matcher.work[stage]
    update_rank(w, matcher, me, job)
    p.plan.packing.running[stage] -= 1
    p.plan.planned[job] = False
    forget_plans(p, me)
    note_task_back(w, p, me, task, stage)
    request_match(w, p, me, t)


@inlined
def block(w: DagWorld, ceiling: np.ndarray, per_block: int) -> bool:
    """Record for the resource manager that a machine is down or up; return whether it is up again.

    ``ceiling`` bounds what machines of a block of `per_block` have free.
    """
    node, _, _ = read_node_state(w)
    was_down = is_known_down(w, node)
    if not receive_node_state(w) or was_down == is_known_down(w, node):
        return False
    free = w.machines.free
    for r in range(free.shape[1]):
        free[node, r] += BLOCKED if was_down else -BLOCKED
        at = node // per_block + w.manager[node]
        ceiling[at, r] = max(ceiling[at, r], free[node, r])
    return was_down


@compiled
def on_node_state(w: DagWorld, p: Manager, t: int) -> None:
    """Note that a machine is down, or up again and has room."""
    node, _, _ = read_node_state(w)
    me, evictable = w.manager[node], p.evictable
    free, failures = w.machines.free[node, 0], w.faults.actors.heard[node] >> 1
    is_up_again = block(w, p.matcher.ceiling, BLOCK)
    for r in range(w.machines.free.shape[1]):
        shift_reach(
            w, evictable, node, r, np.int64(0), groups_of(w, evictable), w.machines.free[node, 0] - free
        )
    if not is_here(w.queue, w.nodes.size + me):
        return  # other partitions have a copy of the state alone
    may_run_again = can_lose_outputs(w.inputs) and w.faults.actors.heard[node] >> 1 > failures
    if may_run_again:
        suspect_machine(w, node)
        run_lost_again(w, p, me)
    if is_up_again:
        note_room(w, p.matcher, me, node)
    if (may_run_again or is_up_again) and p.ended[me] < num_jobs(p.matcher, me):
        request_match(w, p, me, t)


@compiled
def on_received(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Note that the input of a task is on its machine; at home it may be launched, and nowhere else."""
    task, stage, node, since = read_received(w)
    if is_pushed(w.inputs, stage):
        w.inputs.homes.ready[task] = t
        note_room(w, p.matcher, me, w.inputs.homes.of_task[task])
        runnable.list_ready(w, p.matcher.run, p.matcher.band[w.stages.job[stage]], stage, task)
        request_match(w, p, me, t)
    else:
        note_has_input(w, task, node, since)


@compiled
def run_lost_again(w: DagWorld, p: Manager, me: int) -> None:
    """Let all tasks run again of which the output is lost, and needed."""
    suspect = w.stages.lineage.suspect
    for stage in range(suspect.size):
        if suspect[stage] == 1 and w.jobs.unfinished[w.stages.job[stage]] == 0:
            suspect[stage] = 0
        if suspect[stage] == 1:
            restore_children(w, stage)
    note_reopened(w, p, me)


@compiled
def note_reopened(w: DagWorld, p: Manager, me: int) -> None:
    """Note which tasks run again, and which wait again; those that wait for no other may be launched."""
    stages, matcher, book = w.stages, p.matcher, w.stages.lineage
    for i in range(book.num_withdrawn[0]):
        stage = book.withdrawn[i]
        if w.tasks.ready[stage] > 0:
            runnable.list_again(w, matcher.run, matcher.band[stages.job[stage]], stage)
    for i in range(book.num_reopened[0]):
        stage = stages.of_task[book.reopened[i]]
        job = stages.job[stage]
        w.counts[N_RUN_AGAIN] += 1
        w.counts[N_FINISHED] -= 1
        w.counts[N_STARTED] -= 1
        w.jobs.unfinished[job] += 1
        matcher.left[job] += matcher.work[stage]
        matcher.total_left[matcher.band[job]] += matcher.work[stage]
        update_rank(w, matcher, me, job)
        p.plan.planned[job] = False
    for i in range(book.num_reopened[0]):
        stage = stages.of_task[book.reopened[i]]
        runnable.add_if_complete(w, matcher.run, matcher.band[stages.job[stage]], stage, book.reopened[i])
    forget_changes(book)


@inlined
def note_task_back(w: DagWorld, p: Manager, me: int, task: int, stage: int) -> None:
    """Note that a task that was lost is to be launched again, when its input is there."""
    run, band = p.matcher.run, p.matcher.band[w.stages.job[stage]]
    if can_lose_outputs(w.inputs):
        forget_attempt(w, task)
        restore_input(w, stage)
        note_reopened(w, p, me)
        runnable.add_if_complete(w, run, band, stage, task)
    else:
        runnable.add_ready(w, run, band, stage, task)


@inlined
def note_output(w: DagWorld, p: Manager, me: int, task: int, stage: int, start: int) -> None:
    """Note that a task has ended; it runs again if the manager knows that its machine has failed since."""
    if can_lose_outputs(w.inputs):
        w.stages.lineage.start[task] = start
        if not is_kept(w, task):
            w.stages.lineage.suspect[stage] = 1
            run_lost_again(w, p, me)


@inlined
def request_match(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Match when all messages of this instant are handled."""
    if w.heartbeat == 0 and not p.due[me]:
        p.due[me] = True
        wake(w, t, w.nodes.size + me, messages.MATCH, NONE, NONE, NONE)


@compiled
def on_match(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Step 3 for all machines; it goes on with another event where it launches more than one may."""
    matcher = p.matcher
    p.due[me] = False
    begin_match(w, p)
    if preempts(w):
        make_room(w, p, me, t)
    last = (me + 1) * matcher.bands - 1
    nearest: int = NEVER
    for band in range(me * matcher.bands, last + 1):
        if matcher.run.num_jobs[band] > 0 or band == last:
            nearest = min(nearest, begin_band(w, p, me, band, t))
            if band == last:
                set_alarm(w, p, me, t, nearest)
            match_band(w, p, me, band, t, band == last and not preempts(w))
            if preempts(w):
                evict_for(w, p, me, band, t, NONE)
        end_band(p, band)
    if preempts(w) and has_room(w, p):
        forget_dirty(w, matcher, me)
    # A job that could not launch while its stages went over machines may do so after another launch, or eviction.
    is_final = matcher.pack.values.fairness == 0.0 and not (preempts(w) and matcher.leftover == NO_LEFTOVER)
    is_settled = has_room(w, p) and (is_final or p.launched[0] == 0)
    if is_settled:
        forget_all_fresh(matcher, me)
    if runnable.add_children(w, matcher.run, matcher.band) or not is_settled:
        request_match(w, p, me, t)


@inlined
def match_band(w: DagWorld, p: Manager, me: int, band: int, t: int, is_last: bool) -> None:
    """Step 3 for the jobs of a band; the last one notes which machines need not be considered again."""
    matcher = p.matcher
    waiting = matcher.dirty_count[me]
    while waiting > 0 and has_room(w, p):
        waiting -= 1
        node = matcher.dirty[w.first_node[me] + waiting]
        fill(w, p, band, t, node)
        if is_last and has_room(w, p):
            matcher.is_dirty[node] = False
            matcher.dirty_count[me] = waiting
    if matcher.packing:
        pack_fresh(w, p, me, band, t)
    else:
        place_fresh(w, p, me, band, t, True)
        if matcher.leftover != NO_LEFTOVER:
            place_fresh(w, p, me, band, t, False)


@inlined
def forget_all_fresh(matcher: Matcher, me: int) -> None:
    """Note that all stages of a manager have been considered for all machines."""
    for band in range(me * matcher.bands, (me + 1) * matcher.bands):
        runnable.forget_fresh(matcher.run, band)


@inlined
def on_free(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Step 3 at a heartbeat; it goes on with another event where the machine takes more tasks than one may launch."""
    matcher, node = p.matcher, messages.read_free(w)
    forget_all_fresh(matcher, me)
    forget_dirty(w, matcher, me)
    begin_match(w, p)
    if preempts(w):
        make_room(w, p, me, t)
    for band in range(me * matcher.bands, (me + 1) * matcher.bands):
        if matcher.run.num_jobs[band] > 0:
            begin_band(w, p, me, band, t)
            fill(w, p, band, t, node)
            if preempts(w):
                evict_for(w, p, me, band, t, node)
        end_band(p, band)
    if runnable.add_children(w, matcher.run, matcher.band) or not has_room(w, p):
        messages.send_free_again(w, t, w.nodes.size + me, node)


@inlined
def on_event(w: DagWorld, p: Manager, t: int, kind: int, actor: int) -> bool:
    """Handle a message between machines and managers; return whether the host must decide what is launched."""
    me = actor - w.nodes.size
    if kind == messages.MATCH or kind == messages.FREE or kind == messages.FREE_AGAIN:
        if host_decides(p):  # its jobs are one band
            divide_again(w, p, me, me)
            p.due[me] = False
            return p.matcher.run.num_jobs[me] > 0
        if kind == messages.MATCH:
            on_match(w, p, me, t)
        else:
            on_free(w, p, me, t)
    elif actor < w.nodes.size:
        node_event(w, actor)
    elif kind == messages.TASK_DONE:
        on_done(w, p, me, t)
    elif kind == messages.DAG_ARRIVAL:
        on_arrival(w, p, me, t)
    elif kind == messages.PUSH:
        on_push(w, p.matcher.run.pushes, me, t)
    elif kind == RECEIVED:
        on_received(w, p, me, t)
    elif kind == LOST:
        on_lost(w, p, me, t)
    elif kind == NODE_DOWN or kind == NODE_UP:
        on_node_state(w, p, t)
    return False


@entry
def advance(w: DagWorld, p: Manager, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    if lacks_room_for_pending(w, p):
        return GROW
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        if on_event(w, p, message.time[0], message.kind[0], message.dst[0]):
            return PYTHON
    return RUNNING
