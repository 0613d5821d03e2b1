"""Preemption: the resource manager has running tasks of lower priority stopped for a task that fits on no machine.

1. When all that fits has been launched for the jobs of a priority, the task whose turn it is, and that fits nowhere,
   gets room: on one machine tasks of lower priority are evicted, of those that hold what is lacking the lowest
   priority first, and among equals the one that was launched last, until it fits. If all of them would not suffice on
   any machine, none is evicted, and the next task has its turn.
2. The machine is the one where the highest priority that is evicted is the lowest; of these the one where what is
   evicted has run for the least time; of these the first. Of machines alike in priority the first `CANDIDATES` are
   compared.
3. The task has its room from then on. It is sent when the machine has answered for all that was stopped for it: an end
   that was on its way is an answer. What these held beyond that is free when the machine has answered for all. An
   evicted task may be launched again when the manager hears of it, as after a failure.

With shares and plans a job evicts for the tasks that it might launch: those within its share, or of its plan, first,
then those of the leftover part. With packing the task goes first that is worth the most on an empty machine. With
heartbeats tasks are evicted on the machine of which the heartbeat has come, for tasks that fit on no other either.
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.machines.dag_world import DagWorld
from actors.machines.evictable import (
    Evictable,
    block_of,
    groups_of,
    is_to_wait,
    level_of,
    remove_task,
    row_of,
    send_task,
    shift_reach,
)
from actors.machines.matching import (
    NO_LEFTOVER,
    Manager,
    Matcher,
    deficit,
    fits_in,
    has_room,
    is_own,
    launch,
    next_with_room,
    next_with_room_in,
    note_room,
    precedes,
    release,
    update_rank,
    weight_of_work,
)
from actors.machines.messages import send_stop_task
from actors.machines.runnable import end_of_fresh, end_of_jobs, make_job_fresh
from actors.nodes.preemption import lacks

CANDIDATES = np.int64(100)


@inlined
def note_lacking(w: DagWorld, node: int, stage: int) -> None:
    """Note in `lacking` what a machine lacks for a task of a stage."""
    for r in range(w.preemption.lacking.size):
        w.preemption.lacking[r] = w.tasks.demand[stage, r] - w.machines.free[node, r]


@inlined
def give(w: DagWorld, task: int) -> None:
    """Take what a task holds from what is lacking."""
    stage = w.stages.of_task[task]
    for r in range(w.preemption.lacking.size):
        w.preemption.lacking[r] -= w.tasks.demand[stage, r]


@inlined
def holds_lacking(w: DagWorld, task: int) -> bool:
    """Whether a task holds some of what is lacking."""
    stage, found = w.stages.of_task[task], False
    for r in range(w.preemption.lacking.size):
        found |= w.preemption.lacking[r] > 0 and w.tasks.demand[stage, r] > 0
    return found


@compiled
def next_victim(w: DagWorld, p: Manager, task: int, job: int) -> int:
    """Return the first task of a machine's list, from one on, that a job may evict and that holds what is lacking."""
    evictable, queue = p.evictable, p.matcher.queue
    if not lacks(w):
        return NONE
    while task != NONE and level_of(w, evictable, task) > evictable.level[job]:
        its_job = w.stages.job[w.stages.of_task[task]]
        if holds_lacking(w, task) and (not evictable.within_queues or queue[its_job] == queue[job]):
            return task
        task = evictable.tasks.next[task]
    return NONE


@compiled
def can_make_room(w: DagWorld, p: Manager, node: int, stage: int, t: int) -> bool:
    """Whether a task would fit on a machine after others are evicted; `found` has what these are."""
    evictable, job = p.evictable, w.stages.job[stage]
    evictable.found[0], evictable.found[1] = evictable.group.size, 0
    note_lacking(w, node, stage)
    task = next_victim(w, p, evictable.first[node], job)
    while task != NONE:
        evictable.found[0] = level_of(w, evictable, task)
        evictable.found[1] += t - evictable.tasks.since[task]
        give(w, task)
        task = next_victim(w, p, evictable.tasks.next[task], job)
    return not lacks(w)


@inlined
def suffices(w: DagWorld, p: Manager, group: int, node: int, stage: int, t: int) -> bool:
    """Whether tasks of a group, and of those below it, suffice on a machine."""
    return fits_in(w, p.evictable.reach, stage, row_of(w, group, node)) and can_make_room(
        w, p, node, stage, t
    )


@compiled
def machine_for(w: DagWorld, p: Manager, me: int, stage: int, t: int, only: int) -> int:
    """Step 2: return the machine on which tasks are evicted for one; NONE if they would not suffice on any.

    Args:
        only: the machine at hand, with heartbeats; else NONE: all of them for a stage that is to be considered for
            all, otherwise those where something has ended.
    """
    evictable, matcher = p.evictable, p.matcher
    below = evictable.level[w.stages.job[stage]] + 1
    if below == evictable.group.size:
        return NONE
    lowest = evictable.group[below]
    if only != NONE:
        return only if suffices(w, p, lowest, only, stage, t) else NONE
    best: int = NONE
    if not matcher.run.is_fresh[stage]:
        level, time = NONE, NONE
        for i in range(w.first_node[me], w.first_node[me] + matcher.dirty_count[me]):
            node = matcher.dirty[i]
            if suffices(w, p, lowest, node, stage, t) and (
                best == NONE or is_better(evictable, node, level, time, best)
            ):
                best, level, time = node, evictable.found[0], evictable.found[1]
        return best
    group, end = groups_of(w, evictable), w.first_node[me + 1]
    if next_with_room_in(w, evictable.reach, evictable.ceiling, lowest, me, stage, w.first_node[me]) == end:
        return NONE
    if (
        evictable.within_queues
    ):  # of the tasks of a group only some may be evicted for this one: all machines are compared
        group = lowest + 1
    while best == NONE and group > lowest:
        group -= 1
        best = first_machine(w, p, me, stage, t, group)
    return best


@compiled
def first_machine(w: DagWorld, p: Manager, me: int, stage: int, t: int, group: int) -> int:
    """Return the best machine of those on which tasks of a group, and of those below it, suffice; NONE if none is."""
    evictable, end = p.evictable, w.first_node[me + 1]
    best, level, time, seen = NONE, NONE, NONE, np.int64(0)
    node = next_with_room_in(w, evictable.reach, evictable.ceiling, group, me, stage, w.first_node[me])
    while node < end and seen < CANDIDATES:
        if can_make_room(w, p, node, stage, t):
            seen += 1
            if best == NONE or is_better(evictable, node, level, time, best):
                best, level, time = node, evictable.found[0], evictable.found[1]
        node = next_with_room_in(w, evictable.reach, evictable.ceiling, group, me, stage, node + 1)
    return best


@inlined
def is_better(evictable: Evictable, node: int, level: int, time: int, best: int) -> bool:
    """Whether what `found` says of a machine is better than what is known of another one."""
    if evictable.found[0] != level:
        return evictable.found[0] > level
    return evictable.found[1] < time or (evictable.found[1] == time and node < best)


@inlined
def may_launch(w: DagWorld, matcher: Matcher, band: int, job: int, stage: int, own: bool) -> bool:
    """Whether a job might launch a task if it fitted; in the leftover part only what was not tried before it."""
    if matcher.packing:
        return matcher.rank[matcher.queue[job]] <= matcher.pack.most_used[band]
    return own == is_own(w, matcher, job, stage)


@compiled
def worth(w: DagWorld, matcher: Matcher, me: int, band: int, stage: int) -> float:
    """Return the value of a task on an empty machine of mean size, less the work that its job has left."""
    value, nodes = matcher.pack.priority[stage], w.first_node[me + 1] - w.first_node[me]
    if matcher.pack.values.by_alignment:
        aligned = 0.0
        for r in range(w.tasks.demand.shape[1]):
            aligned += w.tasks.demand[stage, r] * nodes / max(w.machines.total[me, r], np.int64(1))
        value *= aligned
    return value - weight_of_work(matcher, band) * matcher.left[w.stages.job[stage]]


@inlined
def goes_before(w: DagWorld, matcher: Matcher, me: int, band: int, stage: int, other: int, own: bool) -> bool:
    """Whether the turn of a stage comes before that of another one."""
    if not matcher.packing:
        return precedes(w, matcher, stage, other, own)
    lacking = deficit(matcher.pack, band, w.stages.job[stage])
    others = deficit(matcher.pack, band, w.stages.job[other])
    if lacking != others:
        return lacking > others
    value, its = worth(w, matcher, me, band, stage), worth(w, matcher, me, band, other)
    return value > its or (value == its and stage < other)


@inlined
def holds_lower(w: DagWorld, evictable: Evictable, node: int, level: int) -> bool:
    """Whether a machine runs a task of lower priority that may be evicted."""
    return evictable.first[node] != NONE and level_of(w, evictable, evictable.first[node]) > level


@compiled
def has_freed(w: DagWorld, p: Manager, me: int, band: int, only: int) -> bool:
    """Whether stages that have been considered for all machines may evict: where something has ended since."""
    evictable, matcher = p.evictable, p.matcher
    level = np.int64(0) if evictable.within_queues else band - me * matcher.bands
    if only != NONE:
        return holds_lower(w, evictable, only, level)
    for i in range(w.first_node[me], w.first_node[me] + matcher.dirty_count[me]):
        if holds_lower(w, evictable, matcher.dirty[i], level):
            return True
    return False


@compiled
def place_in_turn(
    w: DagWorld, p: Manager, me: int, band: int, t: int, only: int, own: bool, stage: int, best: int
) -> int:
    """Return the machine where tasks are evicted for a stage, if its turn comes before that of `best`; NONE if none."""
    matcher, job = p.matcher, w.stages.job[stage]
    if w.tasks.ready[stage] == 0 or not may_launch(w, matcher, band, job, stage, own):
        return NONE
    if best != NONE and not goes_before(w, matcher, me, band, stage, best, own):
        return NONE
    node = machine_for(w, p, me, stage, t, only)
    if node != NONE and next_with_room(w, matcher, me, stage, w.first_node[me]) < w.first_node[me + 1]:
        return NONE
    return node


@compiled
def next_in_turn(
    w: DagWorld, p: Manager, me: int, band: int, t: int, only: int, own: bool
) -> tuple[int, int]:
    """Return the stage whose turn it is of those of a band for which tasks can be evicted, and the machine; or NONE."""
    run = p.matcher.run
    best, at = NONE, NONE
    if not has_freed(w, p, me, band, only):
        for i in range(run.first_stage[band], end_of_fresh(run, band) if only == NONE else np.int64(0)):
            node = place_in_turn(w, p, me, band, t, only, own, run.fresh[i], best)
            if node != NONE:
                best, at = run.fresh[i], node
        return best, at
    for i in range(run.first_job[band], end_of_jobs(run, band)):
        stage = run.first[run.jobs[i]]
        while stage != NONE:
            node = place_in_turn(w, p, me, band, t, only, own, stage, best)
            if node != NONE:
                best, at = stage, node
            stage = run.next[stage]
    return best, at


@compiled
def evict_for(w: DagWorld, p: Manager, me: int, band: int, t: int, only: int) -> None:
    """Step 1 for the jobs of a band; `only` as of `machine_for`."""
    evict_in_turn(w, p, me, band, t, only, True)
    if not p.matcher.packing and p.matcher.leftover != NO_LEFTOVER:
        evict_in_turn(w, p, me, band, t, only, False)


@compiled
def evict_in_turn(w: DagWorld, p: Manager, me: int, band: int, t: int, only: int, own: bool) -> None:
    """Make room for one task of a band after the other."""
    making = p.evictable.making
    while has_room(w, p):
        stage, node = next_in_turn(w, p, me, band, t, only, own)
        if stage == NONE:
            return
        making[me, 0], making[me, 1] = stage, node
        p.evictable.tasks.owed[w.tasks.head[stage]] = 1  # until it is launched
        make_room(w, p, me, t)


@compiled
def make_room(w: DagWorld, p: Manager, me: int, t: int) -> None:
    """Evict tasks for a task, and launch it; where one event may not send so many messages another one goes on."""
    evictable = p.evictable
    stage, node = evictable.making[me, 0], evictable.making[me, 1]
    if stage == NONE:
        return
    task, job = w.tasks.head[stage], w.stages.job[stage]
    note_lacking(w, node, stage)
    victim = next_victim(w, p, evictable.first[node], job)
    while victim != NONE and has_room(w, p):
        following = evictable.tasks.next[victim]
        give(w, victim)
        stop(w, p, me, t, node, victim, task)
        victim = next_victim(w, p, following, job)
    if victim == NONE and has_room(w, p):
        evictable.making[me, 0] = NONE
        evictable.tasks.owed[task] -= 1
        for r in range(w.tasks.demand.shape[1]):
            if evictable.asked[node] > 0:
                withhold(w, p, node, r, max(evictable.won[me, r] - w.tasks.demand[stage, r], np.int64(0)))
            evictable.won[me, r] = 0
        launch(w, p, me, t, node, stage)


@inlined
def withhold(w: DagWorld, p: Manager, node: int, r: int, amount: int) -> None:
    """Take an amount from what a machine has free until it has answered; a negative one: give it back."""
    evictable, matcher, free = p.evictable, p.matcher, w.machines.free
    evictable.withheld[node, r] += amount
    free[node, r] -= amount
    shift_reach(w, evictable, node, r, np.int64(0), groups_of(w, evictable), -amount)
    block = block_of(w, np.int64(0), node)
    matcher.ceiling[block, r] = max(matcher.ceiling[block, r], free[node, r])


@compiled
def stop(w: DagWorld, p: Manager, me: int, t: int, node: int, task: int, for_task: int) -> None:
    """Have a machine stop a task. What it holds is for another one; its job has its work to do again."""
    matcher, stage = p.matcher, w.stages.of_task[task]
    job = w.stages.job[stage]
    band = matcher.band[job]
    remove_task(w, p.evictable, node, task, stage)
    release(w, matcher, me, node, stage)
    matcher.left[job] += matcher.work[stage]
    matcher.total_left[band] += matcher.work[stage]
    update_rank(w, matcher, me, job)
    p.evictable.tasks.for_task[task] = for_task
    p.evictable.tasks.owed[for_task] += 1
    p.evictable.asked[node] += 1
    for r in range(w.tasks.demand.shape[1]):
        p.evictable.won[me, r] += w.tasks.demand[stage, r]
    for_job = w.stages.job[w.stages.of_task[for_task]]
    send_stop_task(w, t, w.nodes.size + me, node, task, stage, for_job)
    p.launched[0] += 1
    if matcher.leftover == NO_LEFTOVER:
        make_queue_fresh(matcher, band, job)


@compiled
def make_queue_fresh(matcher: Matcher, band: int, job: int) -> None:
    """Have all stages of the jobs of a job's queue considered for all machines: their share has room again."""
    for i in range(matcher.run.first_job[band], matcher.run.first_job[band] + matcher.num_active[band]):
        if matcher.queue[matcher.active[i]] == matcher.queue[job]:
            make_job_fresh(matcher.run, band, matcher.active[i])


@inlined
def give_back(w: DagWorld, p: Manager, me: int, node: int) -> None:
    """Let what is withheld of a machine be used, and what runs there be evicted: it has answered."""
    for r in range(w.tasks.demand.shape[1]):
        withhold(w, p, node, r, -p.evictable.withheld[node, r])
    note_room(w, p.matcher, me, node)


@compiled
def held_until_now(w: DagWorld, p: Manager, me: int, t: int, node: int, task: int, stage: int) -> bool:
    """Note that a task has ended or is lost; return whether it held its machine: not so if it has been stopped.

    Step 3: the task for which it was stopped is sent when it has waited for nothing else.
    """
    evictable = p.evictable
    waits = evictable.tasks.for_task[task]
    if waits == NONE:
        remove_task(w, evictable, node, task, stage)
        return True
    evictable.tasks.for_task[task] = NONE
    evictable.tasks.owed[waits] -= 1
    evictable.asked[node] -= 1
    if evictable.asked[node] == 0:
        give_back(w, p, me, node)
    if not is_to_wait(w, evictable, waits):
        at = evictable.tasks.node[waits]
        send_task(w, evictable, me, t, at, waits, w.stages.of_task[waits])
        note_room(w, p.matcher, me, at)  # it may be evicted now
    return False
