"""Packing of the tasks of one job into its share, from now on forward or from its end backward.

As long as tasks are left, those of the stage that fits best start together, as many as there is room for; then the
first that end give their room back. Tasks of a stage are alike, so that those that start together are one batch.
Running tasks of a stage are taken to end when the one that was launched last does.

What a packing decides is the same in shares that differ little: `note_numbers` and `note_values` find how far the room
may grow or fall until a number of tasks or the choice of a stage changes.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, push
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


class SharePacking(NamedTuple):
    """Scratch space for a job of M stages at most, in whose packing all but the first seven change."""

    first_parent: np.ndarray  # [S + 1]
    parent: np.ndarray
    key: np.ndarray  # [S] the order of stages inside jobs, the least goes first
    backward_key: np.ndarray  # [S] that of packings backward, the largest goes first
    in_order: bool  # stages go by these, and not by how well tasks fit
    part: np.ndarray  # [S, R] of its manager's resources that a task needs; float64
    running: np.ndarray  # [S] tasks launched and not ended
    last: np.ndarray  # [S] when the last of them was launched, ns
    made: Batches  # the first `num_made` are what was packed
    num_made: np.ndarray  # [1]
    left: np.ndarray  # [M] tasks to place
    open: np.ndarray  # [M] stages that it waits for
    placed: np.ndarray  # [M] tasks placed and not ended
    able: np.ndarray  # [M] the first `num_able`: stages with tasks to place that wait for none
    num_able: np.ndarray  # [1]
    value: np.ndarray  # [M] how well a stage of `able` fits
    free_part: np.ndarray  # [R] what is left of the room, as a part of the manager's; float64
    fitting: np.ndarray  # [1] tasks of the stage that fits best for which there is room
    whole: np.ndarray  # [R] the room of the job
    room: np.ndarray  # [R] what is left of it
    free: np.ndarray  # [R] of it, when a stage is to begin
    ends: Heap  # of batches, by their places in `made`; of running tasks, by their stages (`of_running`)
    held: np.ndarray  # [1] when, backward, the first running tasks take their room; NEVER: none are
    less: np.ndarray  # [R] by how much the room may fall, and all is packed alike
    more: np.ndarray  # [R] grow
    change: np.ndarray  # [1] the part of it by which it may change, and stages are chosen alike


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
    return max(p.last[stage] + w.stages.duration[stage] - t, 0) if p.running[stage] > 0 else 0


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
        p.room[r] += count * w.stages.demand[stage, r]


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
        push(p.ends, min(now + w.stages.duration[stage], LONGEST), p.num_made[0])
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
    count, until = most_at(w, p, stage, left, NONE), now + w.stages.duration[stage]
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
    demand, count, limit = w.stages.demand, most, NONE
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
    free, demand = p.room[r], w.stages.demand
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
