"""The plan of a whole job with its troublesome stages first (Grandl et al., Graphene, OSDI 2016, section 4).

1. A stage is troublesome if its tasks take long, relative to the longest of the job, or if they are hard to pack: work
   over the time in which the stage alone can be packed. Both thresholds go over a grid; stages on paths between two
   troublesome ones join them (T).
2. The others are those that T waits for (P), those that wait for T (C), and the rest (S).
3. T is packed into an empty space of resources and time, the longest stage first, forward or backward, whichever ends
   sooner. The others follow in each of four orders: P backward from what waits for it, C forward, S in the direction
   in which what is not placed yet will find a place, or in both.
4. The shortest of all plans is the job's. The order in which the last tasks of its stages begin is that of its stages.

A stage's tasks are alike and are placed in batches that start together. The space is one machine as large as a part of
the cluster. One-to-one edges count as all-to-all.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NEVER, NONE

STEPS = np.int64(10)  # of each threshold
OTHERS, TROUBLESOME, BEFORE, AFTER = (np.int64(i) for i in range(4))  # S, T, P and C
FORWARD, BACKWARD = np.int64(0), np.int64(1)
# Groups and directions of each order.
ORDERS = np.array(
    [
        [(OTHERS, FORWARD), (AFTER, FORWARD), (BEFORE, BACKWARD)],
        [(OTHERS, BACKWARD), (AFTER, FORWARD), (BEFORE, BACKWARD)],
        [(OTHERS, FORWARD), (BEFORE, BACKWARD), (AFTER, FORWARD)],
        [(OTHERS, BACKWARD), (BEFORE, BACKWARD), (AFTER, FORWARD)],
        [(AFTER, FORWARD), (OTHERS, BACKWARD), (BEFORE, BACKWARD)],
        [(BEFORE, BACKWARD), (OTHERS, FORWARD), (AFTER, FORWARD)],
    ],
    np.int64,
)


class Graphs(NamedTuple):
    """The jobs; S stages, R resources."""

    first_stage: np.ndarray  # [J + 1]
    first_child: np.ndarray  # [S + 1]
    child: np.ndarray
    first_parent: np.ndarray  # [S + 1]
    parent: np.ndarray
    level: np.ndarray  # [S]
    tasks: np.ndarray  # [S]
    duration: np.ndarray  # [S] ns
    demand: np.ndarray  # [S, R]
    room: np.ndarray  # [J, R] that a job is planned for
    orders: np.ndarray  # ORDERS


class Space(NamedTuple):
    """Resources over time, and where the stages of one job are placed; M stages and B times at most."""

    size: np.ndarray  # [1] times
    time: np.ndarray  # [B] rising, ns
    free: np.ndarray  # [B, R] from each of them on; all before the first and after the last
    start: np.ndarray  # [M]
    end: np.ndarray  # [M]
    placed: np.ndarray  # [M] bool


class Work(NamedTuple):
    """Scratch space for one job of M stages at most."""

    space: Space
    kept: Space  # with T placed, forward
    group: np.ndarray  # [M]
    reached: np.ndarray  # [M] bool: it waits for T
    needed: np.ndarray  # [M] bool: T waits for it
    longness: np.ndarray  # [M] float64
    packedness: np.ndarray  # [M] float64
    counts: np.ndarray  # [STEPS + 1] stages of T by the second threshold, at the first one before
    start: np.ndarray  # [M] of the shortest plan
    end: np.ndarray  # [M]


def make_work(stages: int, tasks: int, resources: int) -> Work:
    """Return scratch space for jobs of at most these numbers of stages and tasks: a batch adds two times at most."""

    def space() -> Space:
        times = 2 * tasks + 2
        return Space(
            np.zeros(1, np.int64),
            np.zeros(times, np.int64),
            np.zeros((times, resources), np.int64),
            np.zeros(stages, np.int64),
            np.zeros(stages, np.int64),
            np.zeros(stages, np.bool_),
        )

    return Work(
        space=space(),
        kept=space(),
        group=np.zeros(stages, np.int64),
        reached=np.zeros(stages, np.bool_),
        needed=np.zeros(stages, np.bool_),
        longness=np.zeros(stages),
        packedness=np.zeros(stages),
        counts=np.zeros(STEPS + 1, np.int64),
        start=np.zeros(stages, np.int64),
        end=np.zeros(stages, np.int64),
    )


@inlined
def place_of_time(space: Space, t: int) -> int:
    """Return how many times are at most `t`."""
    low, high = np.int64(0), space.size[0]
    while low < high:
        middle = (low + high) // 2
        if space.time[middle] <= t:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def split(graphs: Graphs, space: Space, job: int, t: int) -> int:
    """Return the place of a time, which is added if need be."""
    at = place_of_time(space, t)
    if at > 0 and space.time[at - 1] == t:
        return at - 1
    for i in range(space.size[0], at, -1):
        space.time[i] = space.time[i - 1]
        for r in range(graphs.room.shape[1]):
            space.free[i, r] = space.free[i - 1, r]
    space.time[at] = t
    for r in range(graphs.room.shape[1]):
        space.free[at, r] = space.free[at - 1, r] if at > 0 else graphs.room[job, r]
    space.size[0] += 1
    return at


@compiled
def most_at(graphs: Graphs, space: Space, job: int, stage: int, begin: int, end: int) -> int:
    """Return how many tasks of a stage there is room for from `begin` to `end`."""
    count = graphs.tasks[stage]
    at = place_of_time(space, begin) - 1
    while at < space.size[0] and (at < 0 or space.time[at] < end):
        for r in range(graphs.room.shape[1]):
            if graphs.demand[stage, r] > 0:
                free = space.free[at, r] if at >= 0 else graphs.room[job, r]
                count = min(count, free // graphs.demand[stage, r])
        at += 1
    return count


@compiled
def place_stage(graphs: Graphs, space: Space, job: int, stage: int, direction: int) -> None:
    """For step 3: place all tasks of a stage as early, or as late, as what is placed allows."""
    first = graphs.first_stage[job]
    t = bound(graphs, space, job, stage, direction)
    left, length = graphs.tasks[stage], graphs.duration[stage]
    here = stage - first
    space.start[here], space.end[here] = (t, t + length) if direction == FORWARD else (t - length, t)
    space.placed[here] = True
    while left > 0 and length > 0:
        begin = t if direction == FORWARD else t - length
        count = min(most_at(graphs, space, job, stage, begin, begin + length), left)
        if count > 0:
            one = split(graphs, space, job, begin)
            other = split(graphs, space, job, begin + length)
            for i in range(one, other):
                for r in range(graphs.room.shape[1]):
                    space.free[i, r] -= count * graphs.demand[stage, r]
            # The first batch of all ends last if placed backward, and starts first if forward.
            if direction == FORWARD:
                space.start[here] = begin if left == graphs.tasks[stage] else space.start[here]
                space.end[here] = begin + length
            else:
                space.end[here] = begin + length if left == graphs.tasks[stage] else space.end[here]
                space.start[here] = begin
            left -= count
        at = place_of_time(space, t)
        if direction == FORWARD:
            t = space.time[at] if left > 0 else t
        elif left > 0:
            t = space.time[at - 2] if space.time[at - 1] == t else space.time[at - 1]


@compiled
def bound(graphs: Graphs, space: Space, job: int, stage: int, direction: int) -> int:
    """Return the earliest start of a stage, or its latest end, by the stages that are placed.

    Where no parent, or child, is: where the whole plan begins, or ends.
    """
    first, end = graphs.first_stage[job], graphs.first_stage[job + 1]
    begins, ends, is_any = NEVER, -NEVER, False
    for i in range(end - first):
        if space.placed[i]:
            begins, ends, is_any = min(begins, space.start[i]), max(ends, space.end[i]), True
    if not is_any:
        return 0
    if direction == FORWARD:
        t = begins
        for edge in range(graphs.first_parent[stage], graphs.first_parent[stage + 1]):
            if space.placed[graphs.parent[edge] - first]:
                t = max(t, space.end[graphs.parent[edge] - first])
    else:
        t = ends
        for edge in range(graphs.first_child[stage], graphs.first_child[stage + 1]):
            if space.placed[graphs.child[edge] - first]:
                t = min(t, space.start[graphs.child[edge] - first])
    return t


@compiled
def is_open(graphs: Graphs, w: Work, first: int, stage: int, direction: int) -> bool:
    """Whether all parents of a stage that are in its group, or all such children, are placed."""
    firsts, others = (
        (graphs.first_parent, graphs.parent) if direction == FORWARD else (graphs.first_child, graphs.child)
    )
    for edge in range(firsts[stage], firsts[stage + 1]):
        other = others[edge] - first
        if w.group[other] == w.group[stage - first] and not w.space.placed[other]:
            return False
    return True


@compiled
def place_group(graphs: Graphs, w: Work, job: int, group: int, direction: int) -> None:
    """For step 3: place the stages of a group, the longest first of those that may be placed."""
    first, end = graphs.first_stage[job], graphs.first_stage[job + 1]
    while True:
        best: int = NONE
        for stage in range(first, end):
            if w.group[stage - first] == group and not w.space.placed[stage - first]:
                if best != NONE and graphs.duration[stage] <= graphs.duration[best]:
                    continue
                if is_open(graphs, w, first, stage, direction):
                    best = stage
        if best == NONE:
            return
        place_stage(graphs, w.space, job, best, direction)


@compiled
def length_of(space: Space, count: int) -> int:
    """Return how long the plan of what is placed takes, ns."""
    begins, ends = NEVER, -NEVER
    for i in range(count):
        if space.placed[i]:
            begins, ends = min(begins, space.start[i]), max(ends, space.end[i])
    return max(ends - begins, 0) if ends > -NEVER else 0


@compiled
def copy(space: Space, to: Space, count: int, resources: int) -> None:
    """Copy a space with `count` stages."""
    to.size[0] = space.size[0]
    for i in range(space.size[0]):
        to.time[i] = space.time[i]
        for r in range(resources):
            to.free[i, r] = space.free[i, r]
    for i in range(count):
        to.start[i], to.end[i], to.placed[i] = space.start[i], space.end[i], space.placed[i]


@inlined
def clear(space: Space, count: int) -> None:
    """Empty a space."""
    space.size[0] = 0
    for i in range(count):
        space.placed[i] = False


@compiled
def score_stages(graphs: Graphs, w: Work, job: int) -> None:
    """Step 1: how long tasks of stages take, relative to the longest, and how well they pack; both up to 1."""
    first, end = graphs.first_stage[job], graphs.first_stage[job + 1]
    longest: int = 0
    clear(w.space, end - first)
    for stage in range(first, end):
        longest = max(longest, graphs.duration[stage])
    for stage in range(first, end):
        at_once = most_at(graphs, w.space, job, stage, np.int64(0), np.int64(1))
        batches = (graphs.tasks[stage] + at_once - 1) // at_once
        work = 0.0
        for r in range(graphs.room.shape[1]):
            if graphs.room[job, r] > 0:
                work = max(
                    work, float(graphs.tasks[stage]) * float(graphs.demand[stage, r]) / graphs.room[job, r]
                )
        w.longness[stage - first] = graphs.duration[stage] / longest if longest > 0 else 0.0
        w.packedness[stage - first] = work / batches


@compiled
def divide_stages(graphs: Graphs, w: Work, job: int, long: int, packed: int) -> int:
    """Steps 1 and 2: find T and the other groups; return how many stages T has before those between them join."""
    first, end = graphs.first_stage[job], graphs.first_stage[job + 1]
    size: int = 0
    for i in range(end - first):
        is_long, is_hard = STEPS * w.longness[i] >= long, STEPS * w.packedness[i] <= packed
        w.group[i] = TROUBLESOME if is_long or is_hard else OTHERS
        size += 1 if is_long or is_hard else 0
        w.reached[i], w.needed[i] = False, False
    # Rising and falling levels: stages of a job may be numbered in any order.
    for level in range(end - first):
        for stage in range(first, end):
            if graphs.level[stage] == level and (
                w.reached[stage - first] or w.group[stage - first] == TROUBLESOME
            ):
                for edge in range(graphs.first_child[stage], graphs.first_child[stage + 1]):
                    w.reached[graphs.child[edge] - first] = True
    for level in range(end - first - 1, -1, -1):
        for stage in range(first, end):
            if graphs.level[stage] == level and (
                w.needed[stage - first] or w.group[stage - first] == TROUBLESOME
            ):
                for edge in range(graphs.first_parent[stage], graphs.first_parent[stage + 1]):
                    w.needed[graphs.parent[edge] - first] = True
    for i in range(end - first):
        if w.group[i] == OTHERS:
            if w.reached[i] and w.needed[i]:
                w.group[i] = TROUBLESOME
            elif w.reached[i]:
                w.group[i] = AFTER
            elif w.needed[i]:
                w.group[i] = BEFORE
    return size


@compiled
def try_orders(graphs: Graphs, w: Work, job: int, shortest: int) -> int:
    """Step 3: place the groups in all orders; return how long the shortest plan takes, and keep it."""
    count, resources = graphs.first_stage[job + 1] - graphs.first_stage[job], graphs.room.shape[1]
    clear(w.space, count)
    place_group(graphs, w, job, TROUBLESOME, FORWARD)
    copy(w.space, w.kept, count, resources)
    clear(w.space, count)
    place_group(graphs, w, job, TROUBLESOME, BACKWARD)
    if length_of(w.space, count) < length_of(w.kept, count):
        copy(w.space, w.kept, count, resources)
    for order in range(graphs.orders.shape[0]):
        copy(w.kept, w.space, count, resources)
        for i in range(graphs.orders.shape[1]):
            place_group(graphs, w, job, graphs.orders[order, i, 0], graphs.orders[order, i, 1])
        length = length_of(w.space, count)
        if length < shortest:
            shortest = length
            for i in range(count):
                w.start[i], w.end[i] = w.space.start[i], w.space.end[i]
    return shortest


@entry
def plan_jobs(graphs: Graphs, w: Work, start: np.ndarray, end: np.ndarray) -> None:
    """Do steps 1 to 4: write when each stage starts and ends in the plan of its job, [S], ns from the plan's start."""
    for job in range(graphs.first_stage.size - 1):
        first, count = graphs.first_stage[job], graphs.first_stage[job + 1] - graphs.first_stage[job]
        score_stages(graphs, w, job)
        shortest: int = NEVER
        for i in range(w.counts.size):
            w.counts[i] = NONE
        # The sets of stages grow with each threshold: where their sizes are the same, they are.
        for long in range(STEPS + 1, 0, -1):
            before: int = NONE
            for packed in range(STEPS + 1):
                size = divide_stages(graphs, w, job, long, packed)
                if size != before and size != w.counts[packed]:
                    shortest = try_orders(graphs, w, job, shortest)
                before = size
                w.counts[packed] = size
        begin: int = NEVER
        for i in range(count):
            begin = min(begin, w.start[i])
        for i in range(count):
            start[first + i], end[first + i] = w.start[i] - begin, w.end[i] - begin
