"""The plan of one job in its share: how long it takes, and which of its tasks must start now (Carbyne).

`plan` follows Pseudocode 1 of Grandl et al., OSDI 2016, lines 17 to 22:

1. T is how long the job takes if its tasks are packed into its share from now on.
2. Precedence is reversed, and tasks are packed from T backward: each starts as late as it can.
3. Those whose latest start is now must start. The rest of the share is left to others.

Packing is a heuristic: the plan backward may take less than T, and a plan made later may end later. So that no job
ends later than its first plan says while its share does not fall (Theorem 3.1), with `keeps`:

- T is at most what an earlier plan said, and is the length of the plan backward where that is less.
- Where the plan backward takes more than T, the job follows the plan forward if that ends in time, and else the plan
  that it has.

Otherwise T is computed again with each plan, as the pseudocode has it: a job whose plan backward takes less than T may
then start nothing, again and again, unless it gets what is left over.

A plan depends on the job's share, but is the same in shares that differ little: it is made again when the room that the
job has is below `low` or above `high`.
"""

from typing import NamedTuple

import numpy as np

from actors.initial_arrays import per, per_pair
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, push
from actors.kernel.queue import NEVER, NONE
from actors.machines.dag_world import DagWorld

# Packing of the tasks of one job into its share, from now on forward or from its end backward.
#
# As long as tasks are left, those of the stage that fits best start together, as many as there is room for; then the
# first that end give their room back. Tasks of a stage are alike, so that those that start together are one batch.
# Running tasks of a stage are taken to end when the one that was launched last does.
#
# What a packing decides is the same in shares that differ little: `note_numbers` and `note_values` find how far the
# room may grow or fall until a number of tasks or the choice of a stage changes.

FORWARD, BACKWARD = np.int64(0), np.int64(1)
LONGEST = np.int64(1) << 61
"""73 years in ns: a job that takes so long in its share does what its plan forward does."""


class Batches(NamedTuple):
    """Tasks of a stage that start together."""

    stage: np.ndarray = per("batch")
    begin: np.ndarray = per("batch")  # ns
    tasks: np.ndarray = per("batch")


class SharePacking(NamedTuple):
    """Scratch space for a job of M stages at most, which a packing changes, but for the first ones."""

    first_parent: np.ndarray  # [S + 1]
    parent: np.ndarray
    key: np.ndarray  # [S] the order of stages inside jobs, the least goes first
    backward_key: np.ndarray  # [S] that of packings backward, the largest goes first
    in_order: bool  # stages go by these, and not by how well tasks fit
    part: np.ndarray  # [S, R] of its manager's resources that a task needs; float64
    made: Batches  # the first `num_made` are what was packed
    ends: Heap  # of batches, by their places in `made`; of running tasks, by their stages (`of_running`)
    running: np.ndarray = per("stage")  # tasks launched and not ended
    last: np.ndarray = per("stage")  # when the last of them was launched, ns
    num_made: np.ndarray = per("run")
    left: np.ndarray = per("stage of a job")  # tasks to place
    open: np.ndarray = per("stage of a job")  # stages that it waits for
    placed: np.ndarray = per("stage of a job")  # tasks placed and not ended
    # The first `num_able`: stages with tasks to place that wait for none
    able: np.ndarray = per("stage of a job")
    num_able: np.ndarray = per("run")
    value: np.ndarray = per("stage of a job", 0.0)  # how well a stage of `able` fits
    free_part: np.ndarray = per("resource", 0.0)  # what is left of the room, as a part of the manager's
    fitting: np.ndarray = per("run")  # tasks of the stage that fits best for which there is room
    whole: np.ndarray = per("resource")  # the room of the job
    room: np.ndarray = per("resource")  # what is left of it
    free: np.ndarray = per("resource")  # what is left of it when a stage is to begin
    held: np.ndarray = per("run")  # when, backward, the first running tasks take their room; NEVER: none are
    less: np.ndarray = per("resource")  # by how much the room may fall, and all is packed alike
    more: np.ndarray = per("resource")  # by how much it may grow
    change: np.ndarray = per("run", 0.0)  # the part of it by which it may change, and stages are chosen alike


@inlined
def of_running(stage: int) -> int:
    """Return what stands in `SharePacking.ends` for the running tasks of a stage, and back."""
    return -1 - stage


@inlined
def unplaced(w: DagWorld, p: SharePacking, stage: int) -> int:
    """Return how many tasks of a stage have not been launched."""
    return w.stages.unfinished[stage] - p.running[stage]


@inlined
def until_end(w: DagWorld, p: SharePacking, stage: int, t: int) -> int:
    """Return how long the running tasks of a stage are taken to run from now on, ns; 0 if there are none."""
    return max(p.last[stage] + w.tasks.estimate[stage] - t, 0) if p.running[stage] > 0 else 0


@compiled
def begin(w: DagWorld, p: SharePacking, job: int, direction: int) -> None:
    """Set the scratch space: all tasks that have not been launched are to be placed, into the room of a job."""
    first, end, stages = w.first_stage[job], w.first_stage[job + 1], w.stages
    p.held[0], p.num_made[0], p.num_able[0], p.ends.size[0] = NEVER, 0, 0, 0
    for r in range(p.room.size):
        p.room[r] = p.whole[r]
    for stage in range(first, end):
        i = stage - first
        p.left[i], p.placed[i], p.open[i] = unplaced(w, p, stage), 0, 0
        if p.left[i] > 0:
            if direction == BACKWARD:
                for edge in range(stages.first_child[stage], stages.first_child[stage + 1]):
                    p.open[i] += 1 if unplaced(w, p, stages.child[edge]) > 0 else 0
            else:
                for edge in range(p.first_parent[stage], p.first_parent[stage + 1]):
                    p.open[i] += 1 if stages.unfinished[p.parent[edge]] > 0 else 0
            if p.open[i] == 0:
                note_able(p, stage)


@inlined
def note_able(p: SharePacking, stage: int) -> None:
    """Note that tasks of a stage can be placed."""
    p.able[p.num_able[0]] = stage
    p.num_able[0] += 1


@compiled
def place_running(w: DagWorld, p: SharePacking, job: int, t: int, direction: int, length: int) -> None:
    """Let running tasks hold their room until they end, or backward from `length` less that on."""
    first = w.first_stage[job]
    for stage in range(first, w.first_stage[job + 1]):
        if p.running[stage] > 0:
            ends = until_end(w, p, stage, t)
            if direction == FORWARD:
                give_back(w, p, stage, -p.running[stage])
                p.placed[stage - first] += p.running[stage]
            else:
                ends = max(length - ends, 0)
                p.held[0] = min(p.held[0], ends)
            push(p.ends, ends, of_running(stage))


@inlined
def give_back(w: DagWorld, p: SharePacking, stage: int, count: int) -> None:
    """Give back the room of tasks."""
    for r in range(p.room.size):
        p.room[r] += count * w.tasks.demand[stage, r]


@compiled
def pack(w: DagWorld, p: SharePacking, me: int, job: int, direction: int, now: int) -> None:
    """Place tasks at a time until no stage fits; batches begin at `now`, or backward end there."""
    while p.num_able[0] > 0:
        at = best_stage(w, p, me, job, direction, now)
        if at == NONE:
            return
        if p.num_able[0] > 1 and not p.in_order:
            note_values(w, p, me, at)
        stage, count = p.able[at], p.fitting[0]
        here = stage - w.first_stage[job]
        give_back(w, p, stage, -count)
        p.left[here] -= count
        p.placed[here] += count
        if p.left[here] == 0:
            p.num_able[0] -= 1
            p.able[at] = p.able[p.num_able[0]]
        push(p.ends, min(now + w.tasks.estimate[stage], LONGEST), p.num_made[0])
        note_batch(p, stage, now, count)


@inlined
def note_batch(p: SharePacking, stage: int, begin: int, count: int) -> None:
    """Add a batch to what was packed."""
    i = p.num_made[0]
    p.made.stage[i], p.made.begin[i], p.made.tasks[i] = stage, begin, count
    p.num_made[0] += 1


@compiled
def best_stage(w: DagWorld, p: SharePacking, me: int, job: int, direction: int, now: int) -> int:
    """Return the place in `able` of the stage whose demand fits best into the room that is left; NONE if none fits.

    In the order of stages it is the first, or backward the last, that fits.
    """
    total, first = w.machines.total, w.first_stage[job]
    best: int = NONE
    for r in range(p.room.size):
        p.free_part[r] = p.room[r] / total[me, r] if total[me, r] > 0 else 0.0
    for i in range(p.num_able[0]):
        stage, value = p.able[i], 0.0
        if p.in_order:
            value = -p.key[stage] if direction == FORWARD else p.backward_key[stage]
        else:
            for r in range(p.room.size):
                value += p.part[stage, r] * p.free_part[r]
        p.value[i] = value
        if best == NONE or value > p.value[best] or (value == p.value[best] and stage < p.able[best]):
            count = room_for(w, p, stage, p.left[stage - first], now)
            if count > 0:
                best, p.fitting[0] = i, count
    return best


@compiled
def room_for(w: DagWorld, p: SharePacking, stage: int, left: int, now: int) -> int:
    """Return how many of the tasks of a stage that are left there is room for, until they end.

    Backward, running tasks take their room later than `now`: so many must fit then, too.
    """
    count, until = most_at(w, p, stage, left, NONE), now + w.tasks.estimate[stage]
    if until > p.held[0]:
        for i in range(p.ends.size[0]):
            if p.ends.values[i] < 0 and p.ends.keys[i] < until:
                count = most_at(w, p, stage, count, p.ends.keys[i])
    return count


@compiled
def most_at(w: DagWorld, p: SharePacking, stage: int, most: int, time: int) -> int:
    """Return for how many of `most` tasks of a stage there is room when what ends until `time` has; NONE: now.

    Notes how far the room may grow or fall with the same number.
    """
    demand, count, limit = w.tasks.demand, most, NONE
    for r in range(demand.shape[1]):
        if demand[stage, r] > 0:
            p.free[r] = room_at(w, p, r, time)
            if p.free[r] < demand[stage, r]:
                p.more[r] = min(p.more[r], demand[stage, r] - 1 - p.free[r])
                return 0
            here = p.free[r] // demand[stage, r]
            if here < count:
                count, limit = here, r
    if limit != NONE:
        p.more[limit] = min(p.more[limit], (count + 1) * demand[stage, limit] - 1 - p.free[limit])
    for r in range(demand.shape[1]):
        if demand[stage, r] > 0:
            p.less[r] = min(p.less[r], p.free[r] - count * demand[stage, r])
    return count


@inlined
def room_at(w: DagWorld, p: SharePacking, r: int, time: int) -> int:
    """Return what of a resource is free when the batches have ended that end until `time`; NONE: now."""
    free, demand = p.room[r], w.tasks.demand
    if time != NONE:
        for i in range(p.ends.size[0]):
            if p.ends.keys[i] <= time:
                at = p.ends.values[i]
                if at >= 0:
                    free += p.made.tasks[at] * demand[p.made.stage[at], r]
                else:  # backward they take their room then
                    free -= p.running[of_running(at)] * demand[of_running(at), r]
    return free


@compiled
def note_values(w: DagWorld, p: SharePacking, me: int, best: int) -> None:
    """Note by which part of the room it may change such that the stage that fits best is the same."""
    total, one = w.machines.total, p.able[best]
    for r in range(p.room.size):
        p.free_part[r] = p.whole[r] / total[me, r] if total[me, r] > 0 else 0.0
    for i in range(p.num_able[0]):
        slope, other = 0.0, p.able[i]
        for r in range(p.room.size):
            slope += abs(p.part[one, r] - p.part[other, r]) * p.free_part[r]
        gap = abs(p.value[best] - p.value[i])
        if i != best and slope > 0.0 and gap < p.change[0] * slope:
            p.change[0] = gap / slope


@compiled
def end_first(w: DagWorld, p: SharePacking, job: int, direction: int) -> int:
    """End the batches that end first, and let stages be placed that waited for them; return when that is, ns."""
    now, first, stages = p.ends.keys[0], w.first_stage[job], w.stages
    while p.ends.size[0] > 0 and p.ends.keys[0] == now:
        at = p.ends.values[0]
        drop(p.ends)
        stage, count = NONE, NONE
        if at >= 0:
            stage, count = p.made.stage[at], p.made.tasks[at]
        else:
            stage = of_running(at)
            count = p.running[stage]
        if at < 0 and direction == BACKWARD:
            give_back(w, p, stage, -count)
            continue
        give_back(w, p, stage, count)
        p.placed[stage - first] -= count
        if p.placed[stage - first] == 0 and p.left[stage - first] == 0:
            if direction == FORWARD:
                open_all(p, first, stages.child, stages.first_child[stage], stages.first_child[stage + 1])
            else:
                open_all(p, first, p.parent, p.first_parent[stage], p.first_parent[stage + 1])
    return now


@compiled
def open_all(p: SharePacking, first: int, others: np.ndarray, begin: int, end: int) -> None:
    """Let stages wait for one stage less."""
    for edge in range(begin, end):
        i = others[edge] - first
        p.open[i] -= 1
        if p.open[i] == 0 and p.left[i] > 0:
            note_able(p, others[edge])


ROUNDED = 1.0 - 2.0**-40
"""What is left of a bound where its computation may have been rounded."""


class Plan(NamedTuple):
    """What the plans of jobs say; J jobs, S stages, T tasks, R resources.

    The plan of a job is the first `batches` of its rows of `of_job`, which are as many as its tasks.
    """

    of_job: Batches  # [T]
    first: np.ndarray  # [J + 1] where the rows of a job begin
    must: np.ndarray  # [S] tasks that must be launched now
    largest: np.ndarray  # [J, R] the largest demand of a task of the job: it has at least room for that
    keeps: bool  # what plans promised
    with_events: bool  # jobs are planned again with every event, and not where their plans may be others
    packing: SharePacking
    batches: np.ndarray = per("job")  # its rows of `of_job`
    due: np.ndarray = per("job")  # when the next task must be launched, ns
    planned: np.ndarray = per("job", False)  # the plan is of what the job has now
    promise: np.ndarray = per("job", NEVER)  # when the job ends by its plans since its share fell last, ns
    low: np.ndarray = per_pair("job", "resource")  # the least room in which the plan is the same
    high: np.ndarray = per_pair("job", "resource")  # and the most


@compiled
def forward(w: DagWorld, p: SharePacking, me: int, job: int, t: int) -> int:
    """Step 1: return how long the job takes in its share, ns; NEVER if a task does not fit there."""
    begin(w, p, job, FORWARD)
    place_running(w, p, job, t, FORWARD, np.int64(0))
    now: int = 0
    pack(w, p, me, job, FORWARD, now)
    while p.ends.size[0] > 0:
        now = end_first(w, p, job, FORWARD)
        pack(w, p, me, job, FORWARD, now)
    return now if p.num_able[0] == 0 else NEVER


@compiled
def backward(w: DagWorld, p: SharePacking, me: int, job: int, t: int, length: int) -> None:
    """Step 2: pack tasks from the end backward, while running tasks hold their room, which end `length` before that."""
    begin(w, p, job, BACKWARD)
    place_running(w, p, job, t, BACKWARD, length)
    pack(w, p, me, job, BACKWARD, np.int64(0))
    while p.ends.size[0] > 0:
        pack(w, p, me, job, BACKWARD, end_first(w, p, job, BACKWARD))


@compiled
def takes(w: DagWorld, p: SharePacking, job: int, t: int) -> int:
    """Return how long the job takes if its plan backward starts now, ns; NEVER if some tasks have no room."""
    if p.num_able[0] > 0:
        return NEVER
    longest: int = 0
    for i in range(p.num_made[0]):
        stage = p.made.stage[i]
        ends = p.made.begin[i] + w.tasks.estimate[stage]
        longest = max(longest, ends + until_parents_end(w, p, stage, t))
    return longest


@compiled
def until_parents_end(w: DagWorld, p: SharePacking, stage: int, t: int) -> int:
    """Return how long a stage must wait for running tasks of its parents, ns."""
    longest: int = 0
    for edge in range(p.first_parent[stage], p.first_parent[stage + 1]):
        longest = max(longest, until_end(w, p, p.parent[edge], t))
    return longest


@compiled
def longest_running(w: DagWorld, p: SharePacking, job: int, t: int) -> int:
    """Return when the last of a job's running tasks ends, ns from now."""
    longest: int = 0
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        longest = max(longest, until_end(w, p, stage, t))
    return longest


@compiled
def plan_kept(w: DagWorld, p: Plan, me: int, job: int, t: int, length: int) -> None:
    """Plan backward from what plans have promised, or from earlier; where that is too early, keep the plan there is."""
    within = min(length, p.promise[job] - t)
    backward(w, p.packing, me, job, t, within)
    shortest = takes(w, p.packing, job, t)
    if shortest <= within:
        adopt(w, p, job, t, BACKWARD, within)
        sooner = max(shortest, longest_running(w, p.packing, job, t))
        if sooner < within:
            backward(w, p.packing, me, job, t, sooner)
            if takes(w, p.packing, job, t) <= sooner:
                adopt(w, p, job, t, BACKWARD, sooner)
    elif length == within:
        forward(w, p.packing, me, job, t)
        adopt(w, p, job, t, FORWARD, within)


@inlined
def begin_of(w: DagWorld, packing: SharePacking, i: int, t: int, direction: int, length: int) -> int:
    """Return when a batch that was packed begins, ns."""
    if direction == FORWARD:
        return t + packing.made.begin[i]
    return t + length - packing.made.begin[i] - w.tasks.estimate[packing.made.stage[i]]


@compiled
def adopt(w: DagWorld, p: Plan, job: int, t: int, direction: int, length: int) -> None:
    """Let what was packed be the plan of the job, which ends so long from now; what had no room does not begin."""
    packing, of_job, first = p.packing, p.of_job, p.first[job]
    rows = packing.num_made[0]
    for i in range(rows):
        stage = packing.made.stage[i]
        of_job.stage[first + i], of_job.tasks[first + i] = stage, packing.made.tasks[i]
        of_job.begin[first + i] = begin_of(w, packing, i, t, direction, length)
    if packing.num_able[0] > 0:
        for stage in range(w.first_stage[job], w.first_stage[job + 1]):
            left = packing.left[stage - w.first_stage[job]]
            if left > 0:
                of_job.stage[first + rows], of_job.tasks[first + rows] = stage, left
                of_job.begin[first + rows] = NEVER
                rows += 1
    p.promise[job], p.batches[job] = t + length, rows


@compiled
def follow(w: DagWorld, p: Plan, job: int, t: int) -> None:
    """Step 3: note which tasks must start now by the job's plan, and when the next ones must."""
    of_job = p.of_job
    p.due[job] = NEVER
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        p.must[stage] = unplaced(w, p.packing, stage)
    for i in range(p.first[job], p.first[job] + p.batches[job]):
        if of_job.begin[i] > t:
            p.must[of_job.stage[i]] -= of_job.tasks[i]
            p.due[job] = min(p.due[job], of_job.begin[i])


@inlined
def room_of(p: Plan, share: np.ndarray, job: int, r: int) -> int:
    """Return the room that a job has for its plans: its share, and at least what its largest task needs."""
    return max(share[job, r], p.largest[job, r])


@compiled
def is_other_room(p: Plan, share: np.ndarray, job: int) -> bool:
    """Whether a job's share may give it another plan than the share that it had."""
    for r in range(p.low.shape[1]):
        room = room_of(p, share, job, r)
        if room < p.low[job, r] or room > p.high[job, r]:
            return True
    return False


@compiled
def plan(w: DagWorld, p: Plan, me: int, share: np.ndarray, job: int, t: int) -> None:
    """Plan a job of manager `me` from now on. If a task does not fit into its share, all that may be launched must."""
    packing = p.packing
    packing.change[0] = np.inf
    for r in range(packing.whole.size):
        packing.whole[r], packing.less[r], packing.more[r] = room_of(p, share, job, r), NEVER, NEVER
    length = forward(w, packing, me, job, t)
    if length == NEVER:
        p.due[job] = NEVER
        for stage in range(w.first_stage[job], w.first_stage[job + 1]):
            p.must[stage] = w.tasks.ready[stage]
    else:
        if length < LONGEST and p.keeps:
            plan_kept(w, p, me, job, t, length)
        elif length < LONGEST:
            backward(w, packing, me, job, t, length)
            adopt(w, p, job, t, BACKWARD, length)
        else:
            adopt(w, p, job, t, FORWARD, length)
        follow(w, p, job, t)
    note_range(p, job)
    p.planned[job] = True


@compiled
def note_range(p: Plan, job: int) -> None:
    """Note in which rooms of a job all packings of its plan are the same."""
    packing = p.packing
    for r in range(packing.whole.size):
        room = packing.whole[r]
        change = NEVER
        if packing.change[0] < np.inf:  # of no room, the product with infinity is no number
            change = np.int64(min(packing.change[0] * ROUNDED * room, float(NEVER)))
        p.low[job, r] = room - min(packing.less[r], change)
        p.high[job, r] = room + min(packing.more[r], change)
