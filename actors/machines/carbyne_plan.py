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

Tasks of a stage are alike, so that those that start together are one batch. Running tasks of a stage are taken to end
when the one that was launched last does.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.machines.dag_world import DagWorld

FORWARD, BACKWARD = np.int64(0), np.int64(1)
LONGEST = np.int64(1) << 61
"""73 years in ns: a job that takes so long in its share does what its plan forward does."""


class Batches(NamedTuple):
    """Tasks of a stage that start together."""

    stage: np.ndarray
    begin: np.ndarray  # ns
    tasks: np.ndarray


class Plan(NamedTuple):
    """What the plans of jobs say, and scratch space; M stages of the largest job.

    The plan of a job is the first `batches` of its rows of `Batches`, which are as many as its tasks.
    """

    of_job: Batches  # [T]
    first: np.ndarray  # [J + 1] where the rows of a job begin
    batches: np.ndarray  # [J]
    made: Batches  # scratch: the first `num_made` are the plan that is made
    num_made: np.ndarray  # [1]
    must: np.ndarray  # [S] tasks that must be launched now
    due: np.ndarray  # [J] when the next task must, ns
    planned: np.ndarray  # [J] bool: the plan is of what the job has now
    promise: np.ndarray  # [J] when the job ends by its plans since its share fell last, ns
    running: np.ndarray  # [S] tasks launched and not ended
    last: np.ndarray  # [S] when the last of them was launched, ns
    largest: np.ndarray  # [J, R] the largest demand of a task of the job: it has at least room for that
    first_parent: np.ndarray  # [S + 1]
    parent: np.ndarray
    key: np.ndarray  # [S] the order of stages inside jobs
    in_order: bool  # plans go by it, and not by how well tasks fit
    keeps: bool  # what plans promised
    held: np.ndarray  # [1] scratch: when, backward, the first running tasks take their room; NEVER: none are
    left: np.ndarray  # [M] scratch: tasks to place
    open: np.ndarray  # [M] scratch: stages that it waits for
    placed: np.ndarray  # [M] scratch: tasks placed and not ended
    room: np.ndarray  # [R] scratch
    end: np.ndarray  # [heap] scratch: ends of batches
    batch_stage: np.ndarray  # [heap]
    batch_count: np.ndarray  # [heap] less than 0: running tasks take their room then, backward


@inlined
def push_batch(p: Plan, size: int, end: int, stage: int, count: int) -> None:
    """Add a batch to the heap of ends."""
    i = size
    while i > 0 and p.end[(i - 1) // 2] > end:
        up = (i - 1) // 2
        p.end[i], p.batch_stage[i], p.batch_count[i] = p.end[up], p.batch_stage[up], p.batch_count[up]
        i = up
    p.end[i], p.batch_stage[i], p.batch_count[i] = end, stage, count


@inlined
def drop_batch(p: Plan, size: int) -> None:
    """Remove the first of `size` batches from the heap."""
    end, stage, count = p.end[size - 1], p.batch_stage[size - 1], p.batch_count[size - 1]
    i: int = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and p.end[child + 1] < p.end[child]:
            child += 1
        if p.end[child] >= end:
            break
        p.end[i], p.batch_stage[i], p.batch_count[i] = (
            p.end[child],
            p.batch_stage[child],
            p.batch_count[child],
        )
        i = child
    p.end[i], p.batch_stage[i], p.batch_count[i] = end, stage, count


@compiled
def room_for(w: DagWorld, p: Plan, stage: int, first: int, size: int, now: int) -> int:
    """Return how many tasks of a stage there is room for, until they end; `size` batches have not.

    Backward, running tasks take their room later than `now`: so many must fit then, too.
    """
    demand, count, until = w.stages.demand, p.left[stage - first], now + w.stages.duration[stage]
    for r in range(demand.shape[1]):
        if demand[stage, r] > 0:
            count = min(count, max(p.room[r], 0) // demand[stage, r])
    if until > p.held[0]:
        for i in range(size):
            if p.batch_count[i] < 0 and p.end[i] < until:
                count = min(count, room_at(w, p, stage, size, p.end[i]))
    return count


@compiled
def room_at(w: DagWorld, p: Plan, stage: int, size: int, time: int) -> int:
    """Return for how many tasks of a stage there is room when those of `size` batches have ended that end by then."""
    demand, count = w.stages.demand, NEVER
    for r in range(demand.shape[1]):
        if demand[stage, r] > 0:
            free = p.room[r]
            for i in range(size):
                if p.end[i] <= time:
                    free += p.batch_count[i] * demand[p.batch_stage[i], r]
            count = min(count, max(free, 0) // demand[stage, r])
    return count


@compiled
def best_stage(
    w: DagWorld, p: Plan, me: int, first: int, end: int, direction: int, size: int, now: int
) -> int:
    """Return the stage whose demand fits best into the room that is left; NONE if none fits.

    In the order of stages it is the first, or backward the last, that fits.
    """
    demand, total = w.stages.demand, w.machines.total
    best: int = NONE
    most = -np.inf
    for stage in range(first, end):
        if p.left[stage - first] > 0 and p.open[stage - first] == 0:
            value, does_fit = 0.0, True
            for r in range(demand.shape[1]):
                does_fit = does_fit and demand[stage, r] <= p.room[r]
                if total[me, r] > 0 and not p.in_order:
                    value += (demand[stage, r] / total[me, r]) * (p.room[r] / total[me, r])
            if p.in_order:
                value = -p.key[stage] if direction == FORWARD else p.key[stage]
            if does_fit and value > most and room_for(w, p, stage, first, size, now) > 0:
                best, most = stage, value
    return best


@compiled
def place(w: DagWorld, p: Plan, stage: int, first: int, size: int, now: int, begin: int) -> None:
    """Take the room of as many tasks of a stage as there is room for, as a batch that begins at a time."""
    demand = w.stages.demand
    count = room_for(w, p, stage, first, size, now)
    for r in range(demand.shape[1]):
        p.room[r] -= count * demand[stage, r]
    p.left[stage - first] -= count
    p.placed[stage - first] += count
    push_batch(p, size, min(now + w.stages.duration[stage], LONGEST), stage, count)
    note_batch(p, stage, begin, count)


@inlined
def note_batch(p: Plan, stage: int, begin: int, count: int) -> None:
    """Add a batch to the plan that is made."""
    i = p.num_made[0]
    p.made.stage[i], p.made.begin[i], p.made.tasks[i] = stage, begin, count
    p.num_made[0] += 1


@inlined
def give_back(w: DagWorld, p: Plan, stage: int, count: int) -> None:
    """Give back the room of tasks."""
    for r in range(p.room.size):
        p.room[r] += count * w.stages.demand[stage, r]


@compiled
def begin(w: DagWorld, p: Plan, share: np.ndarray, job: int, direction: int) -> None:
    """Set the scratch space: all tasks that have not been launched are to be placed, into the share of the job."""
    first, end = w.first_stage[job], w.first_stage[job + 1]
    p.held[0], p.num_made[0] = NEVER, 0
    for r in range(p.room.size):
        p.room[r] = max(share[job, r], p.largest[job, r])
    for stage in range(first, end):
        i = stage - first
        p.left[i] = unplaced(w, p, stage)
        p.placed[i], p.open[i] = 0, 0
        if direction == BACKWARD:
            for edge in range(w.stages.first_child[stage], w.stages.first_child[stage + 1]):
                p.open[i] += 1 if unplaced(w, p, w.stages.child[edge]) > 0 else 0
        else:
            for edge in range(p.first_parent[stage], p.first_parent[stage + 1]):
                p.open[i] += 1 if w.stages.unfinished[p.parent[edge]] > 0 else 0


@inlined
def unplaced(w: DagWorld, p: Plan, stage: int) -> int:
    """Return how many tasks of a stage have not been launched."""
    return w.stages.unfinished[stage] - p.running[stage]


@compiled
def end_batches(w: DagWorld, p: Plan, size: int, first: int, direction: int) -> int:
    """End those of `size` batches that end first, and open stages that waited for them; return how many are left."""
    now, stages = p.end[0], w.stages
    while size > 0 and p.end[0] == now:
        stage, count = p.batch_stage[0], p.batch_count[0]
        drop_batch(p, size)
        size -= 1
        give_back(w, p, stage, count)
        if count < 0:
            continue
        p.placed[stage - first] -= count
        if p.placed[stage - first] > 0 or p.left[stage - first] > 0:
            continue
        if direction == FORWARD:
            for edge in range(stages.first_child[stage], stages.first_child[stage + 1]):
                p.open[stages.child[edge] - first] -= 1
        else:
            for edge in range(p.first_parent[stage], p.first_parent[stage + 1]):
                p.open[p.parent[edge] - first] -= 1
    return size


@compiled
def forward(w: DagWorld, p: Plan, me: int, share: np.ndarray, job: int, t: int) -> int:
    """Step 1: return how long the job takes in its share, ns; NEVER if a task does not fit there."""
    first, end = w.first_stage[job], w.first_stage[job + 1]
    begin(w, p, share, job, FORWARD)
    size: int = 0
    for stage in range(first, end):
        if p.running[stage] > 0:
            give_back(w, p, stage, -p.running[stage])
            p.placed[stage - first] += p.running[stage]
            push_batch(p, size, until_end(w, p, stage, t), stage, p.running[stage])
            size += 1
    now: int = 0
    while True:
        stage = best_stage(w, p, me, first, end, FORWARD, size, now)
        while stage != NONE:
            place(w, p, stage, first, size, now, t + now)
            size += 1
            stage = best_stage(w, p, me, first, end, FORWARD, size, now)
        if size == 0:
            break
        now = p.end[0]
        size = end_batches(w, p, size, first, FORWARD)
    for i in range(end - first):
        if p.left[i] > 0:
            return NEVER
    return now


@compiled
def backward(w: DagWorld, p: Plan, me: int, share: np.ndarray, job: int, t: int, length: int) -> int:
    """Step 2: pack tasks from the end backward; return how long the job takes if the first one starts now, ns.

    NEVER: not all have room while running tasks hold theirs. These take it from when, backward, they have ended; a
    negative number of them stands for them.
    """
    first, end = w.first_stage[job], w.first_stage[job + 1]
    begin(w, p, share, job, BACKWARD)
    size: int = 0
    for stage in range(first, end):
        if p.running[stage] > 0:
            hold = max(length - until_end(w, p, stage, t), 0)
            p.held[0] = min(p.held[0], hold)
            push_batch(p, size, hold, stage, -p.running[stage])
            size += 1
    now: int = 0
    longest: int = 0
    while True:
        stage = best_stage(w, p, me, first, end, BACKWARD, size, now)
        while stage != NONE:
            before_end = now + w.stages.duration[stage]
            longest = max(longest, before_end + until_parents_end(w, p, stage, t))
            place(w, p, stage, first, size, now, t + length - before_end)
            size += 1
            stage = best_stage(w, p, me, first, end, BACKWARD, size, now)
        if size == 0:
            break
        now = p.end[0]
        size = end_batches(w, p, size, first, BACKWARD)
    for stage in range(first, end):
        if p.left[stage - first] > 0:
            note_batch(p, stage, NEVER, p.left[stage - first])
            longest = NEVER
    return longest


@inlined
def until_end(w: DagWorld, p: Plan, stage: int, t: int) -> int:
    """Return how long the running tasks of a stage are taken to run from now on, ns; 0 if there are none."""
    return max(p.last[stage] + w.stages.duration[stage] - t, 0) if p.running[stage] > 0 else 0


@compiled
def until_parents_end(w: DagWorld, p: Plan, stage: int, t: int) -> int:
    """Return how long a stage must wait for running tasks of its parents, ns."""
    longest: int = 0
    for edge in range(p.first_parent[stage], p.first_parent[stage + 1]):
        longest = max(longest, until_end(w, p, p.parent[edge], t))
    return longest


@compiled
def longest_running(w: DagWorld, p: Plan, job: int, t: int) -> int:
    """Return when the last of a job's running tasks ends, ns from now."""
    longest: int = 0
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        longest = max(longest, until_end(w, p, stage, t))
    return longest


@compiled
def plan_kept(w: DagWorld, p: Plan, me: int, share: np.ndarray, job: int, t: int, length: int) -> None:
    """Plan backward from what plans have promised, or from earlier; where that is too early, keep the plan there is."""
    within = min(length, p.promise[job] - t)
    takes = backward(w, p, me, share, job, t, within)
    if takes <= within:
        adopt(p, job, t + within)
        sooner = max(takes, longest_running(w, p, job, t))
        if sooner < within and backward(w, p, me, share, job, t, sooner) <= sooner:
            adopt(p, job, t + sooner)
    elif length == within:
        forward(w, p, me, share, job, t)
        adopt(p, job, t + within)


@compiled
def adopt(p: Plan, job: int, ends: int) -> None:
    """Let the plan that was made be that of the job, which is to end by a time."""
    first, made, of_job = p.first[job], p.made, p.of_job
    p.promise[job] = ends
    p.batches[job] = p.num_made[0]
    for i in range(p.num_made[0]):
        of_job.stage[first + i], of_job.begin[first + i] = made.stage[i], made.begin[i]
        of_job.tasks[first + i] = made.tasks[i]


@compiled
def follow(w: DagWorld, p: Plan, job: int, t: int) -> None:
    """Step 3: note which tasks must start now by the job's plan, and when the next ones must."""
    of_job = p.of_job
    p.due[job] = NEVER
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        p.must[stage] = unplaced(w, p, stage)
    for i in range(p.first[job], p.first[job] + p.batches[job]):
        if of_job.begin[i] > t:
            p.must[of_job.stage[i]] -= of_job.tasks[i]
            p.due[job] = min(p.due[job], of_job.begin[i])


@compiled
def plan(w: DagWorld, p: Plan, me: int, share: np.ndarray, job: int, t: int) -> None:
    """Plan a job of manager `me` from now on. If a task does not fit into its share, all that may be launched must."""
    length = forward(w, p, me, share, job, t)
    if length == NEVER:
        p.due[job] = NEVER
        for stage in range(w.first_stage[job], w.first_stage[job + 1]):
            p.must[stage] = w.stages.ready[stage]
    else:
        if length < LONGEST and p.keeps:
            plan_kept(w, p, me, share, job, t, length)
        else:
            if length < LONGEST:
                backward(w, p, me, share, job, t, length)
            adopt(p, job, t + length)
        follow(w, p, job, t)
    p.planned[job] = True
