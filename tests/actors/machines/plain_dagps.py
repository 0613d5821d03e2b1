"""DAGPS' plan of one job, written again from the paper's description, as plainly as can be: slow, and for tests alone.

Stages of like tasks, each with a duration, a demand of each resource, and parents. A plan is a list of batches (stage,
begin, tasks); amounts and times are whole numbers, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

STEPS = 10
ORDERS = ("S>C>P<", "S<C>P<", "S>P<C>", "S<P<C>", "C>S<P<", "P<S>C>")
"""Groups, and whether each goes forward (>) or backward (<)."""


class Stage(NamedTuple):
    """Tasks alike."""

    tasks: int
    duration: int
    demand: tuple[int, ...]
    parents: tuple[int, ...]


class Batch(NamedTuple):
    """Tasks of a stage that begin together."""

    stage: int
    begin: int
    tasks: int


class Job:
    """A job, and the room that it is planned for."""

    def __init__(self, stages: Sequence[Stage], room: Sequence[int]) -> None:
        self.stages, self.room = stages, room
        everything = range(len(stages))
        self.children = {i: [j for j in everything if i in stages[j].parents] for i in everything}

    def reached(self, begin: Iterable[int], backward: bool = False) -> set[int]:
        """Return all that waits for some stages, or all that they wait for."""
        found: set[int] = set()
        ahead = list(begin)
        while ahead:
            here = ahead.pop()
            new = set(self.stages[here].parents if backward else self.children[here]) - found
            found |= new
            ahead += new
        return found

    def fit(self, plan: list[Batch], stage: int, begin: int) -> int:
        """Return how many tasks of a stage can begin at a time and run to their end beside what is placed."""
        s = self.stages[stage]
        end, most = begin + s.duration, s.tasks
        inside = [b for b in plan if b.begin < end and begin < self.end(b)]
        for t in {begin, *(b.begin for b in inside if b.begin > begin)}:
            for r, need in enumerate(s.demand):
                held = sum(
                    b.tasks * self.stages[b.stage].demand[r] for b in inside if b.begin <= t < self.end(b)
                )
                most = min(most, (self.room[r] - held) // need) if need else most
        return most

    def end(self, batch: Batch) -> int:
        """Return when a batch ends."""
        return batch.begin + self.stages[batch.stage].duration

    def place(self, plan: list[Batch], stage: int, forward: bool) -> None:
        """Place all tasks of a stage as early, or as late, as what is placed lets them."""
        s, left = self.stages[stage], self.stages[stage].tasks
        parents = [self.end(b) for b in plan if b.stage in s.parents]
        children = [b.begin for b in plan if b.stage in self.children[stage]]
        if forward:
            at = max([min((b.begin for b in plan), default=0), *parents])
        else:
            at = min([max(map(self.end, plan), default=0), *children])
        while left:
            begin = at if forward else at - s.duration
            if count := min(self.fit(plan, stage, begin), left):
                plan.append(Batch(stage, begin, count))
                left -= count
            times = {t for b in plan for t in (b.begin, self.end(b))}
            if left:
                at = min(t for t in times if t > at) if forward else max(t for t in times if t < at)

    def place_group(self, plan: list[Batch], group: set[int], forward: bool) -> None:
        """Place stages, the longest first of those that wait for none of the group that is not placed."""
        left = set(group)
        while left:
            waits = {i: self.stages[i].parents if forward else self.children[i] for i in left}
            ready = [i for i in sorted(left) if not left.intersection(waits[i])]
            best = max(ready, key=lambda i: self.stages[i].duration)
            self.place(plan, best, forward)
            left.remove(best)

    def length(self, plan: list[Batch]) -> int:
        """Return how long a plan takes."""
        return max(map(self.end, plan)) - min(b.begin for b in plan) if plan else 0

    def troublesome(self) -> list[set[int]]:
        """Return all sets of stages whose tasks are long, or that pack badly, by one of the thresholds each."""
        longest = max(s.duration for s in self.stages)
        packed = []
        for i, s in enumerate(self.stages):
            batches = -(-s.tasks // self.fit([], i, 0))
            packed.append(
                max(Fraction(s.tasks * d, of) for d, of in zip(s.demand, self.room, strict=True)) / batches
            )
        found: list[set[int]] = []
        for long in range(STEPS + 1, 0, -1):
            for bad in range(STEPS + 1):
                those = {
                    i
                    for i, s in enumerate(self.stages)
                    if STEPS * s.duration >= long * longest or STEPS * packed[i] <= bad
                }
                between = self.reached(those) & self.reached(those, backward=True)
                if (those | between) not in found:
                    found.append(those | between)
        return found

    def plans(self) -> list[list[Batch]]:
        """Return the plans of all sets in all orders."""
        found = []
        for first in self.troublesome():
            starts: list[list[Batch]] = [[], []]
            for plan, forward in zip(starts, (True, False), strict=True):
                self.place_group(plan, first, forward)
            kept = min(starts, key=self.length)
            after = self.reached(first) - first
            before = self.reached(first, backward=True) - first
            groups = {"C": after, "P": before, "S": set(range(len(self.stages))) - first - after - before}
            for order in ORDERS:
                plan = list(kept)
                for group, direction in zip(order[::2], order[1::2], strict=True):
                    self.place_group(plan, groups[group], direction == ">")
                found.append(plan)
        return found

    def best(self) -> list[Batch]:
        """Return the first of the shortest plans."""
        return min(self.plans(), key=self.length)
