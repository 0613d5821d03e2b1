"""The network of a run in which machines fail, computed again in plain Python from where and when tasks were launched.

It shares no code with the engine: it has the attempts at tasks, and which machines fail when, and says of each attempt
that fetches its input when it has all of it, or gives up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests.actors.transfers.network_simulator import inputs_of
from tests.actors.water_filling import max_min

LOST = -5  # where an output is that is lost
CLOSE_S = 1e-6


class Failure(NamedTuple):
    node: int
    fail_s: float
    repair_s: float
    detected_s: float


class Attempt(NamedTuple):
    task: int
    node: int
    start_s: float
    end_s: float


@dataclass
class Fetch:
    """What the tasks of a stage fetch that were launched on a machine at one instant."""

    stage: int
    node: int
    start_s: float
    # bytes by source and parent
    left: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    given_up_s: float = np.inf
    is_over: bool = False


class Outcome(NamedTuple):
    fetched_s: dict[Attempt, float]
    given_up_s: dict[Attempt, float]
    ended: list[Attempt]  # those that ran to their end


def simulate(arrays: Any, attempts: list[Attempt], failures: list[Failure], bytes_per_s: float) -> Outcome:
    """Return what became of the attempts."""
    stage_of = np.repeat(np.arange(arrays.stage_first_task.size - 1), np.diff(arrays.stage_first_task))
    found = Outcome({}, {}, [])
    waiting = sorted(attempts, key=lambda one: one.start_s)
    ends_s = sorted({one.end_s for one in attempts})
    to_fail = sorted(failures, key=lambda one: one.fail_s)
    fetches: list[tuple[Fetch, list[Attempt]]] = []
    t = 0.0
    for _ in range(20 * len(attempts) + 20 * len(failures) + 1000):
        running = [one for one, _ in fetches if not one.is_over]
        flows = [(one, key) for one in running for key in one.left]
        rates = _rates(flows, bytes_per_s)
        times = [t + one.left[key] / rate for (one, key), rate in zip(flows, rates, strict=True)]
        times += [one.given_up_s for one in running]
        times += [one.start_s for one in waiting[:1]] + [one.fail_s for one in to_fail[:1]] + ends_s[:1]
        if not times:
            break
        then = min(times)
        for (one, key), rate in zip(flows, rates, strict=True):
            one.left[key] -= rate * (then - t)
            if one.left[key] <= rate * 1e-9:
                del one.left[key]
        t = then
        while to_fail and to_fail[0].fail_s <= t:
            _fail(to_fail.pop(0), running)
        for one, mine in fetches:
            if not one.is_over and not one.left and one.given_up_s == np.inf:
                one.is_over = True
                found.fetched_s.update(dict.fromkeys(mine, t))
        while ends_s and ends_s[0] <= t:
            ends_s.pop(0)
        _note_ends(arrays, found, attempts, t)
        fresh: dict[tuple[int, int], list[Attempt]] = defaultdict(list)
        while waiting and waiting[0].start_s <= t + 1e-12:
            one = waiting.pop(0)
            fresh[int(stage_of[one.task]), one.node].append(one)
        for (stage, node), mine in fresh.items():
            begun = _begin(arrays, stage, node, mine, found.ended, failures)
            if begun is not None:
                fetches.append((begun, mine))
                if not begun.left and begun.given_up_s == np.inf:
                    begun.is_over = True
                    found.fetched_s.update(dict.fromkeys(mine, t))
        for one, mine in fetches:
            if not one.is_over and one.given_up_s <= t + 1e-12:
                one.is_over = True
                found.given_up_s.update(dict.fromkeys(mine, t))
    assert not waiting
    return found


def _rates(flows: list[tuple[Fetch, tuple[int, int]]], bytes_per_s: float) -> Any:
    most = 1 + max((max(key[0], one.node) for one, key in flows), default=0)
    ports = [(key[0], most + one.node) for one, key in flows]
    return max_min(ports, np.full(2 * most, bytes_per_s))


def _fail(failure: Failure, running: list[Fetch]) -> None:
    for one in running:
        if one.node == failure.node and one.start_s <= failure.fail_s:
            one.is_over = True  # lost with its machine
            continue
        for key in [key for key in one.left if key[0] == failure.node]:
            del one.left[key]
            one.given_up_s = min(one.given_up_s, failure.detected_s)


def _note_ends(arrays: Any, found: Outcome, attempts: list[Attempt], t: float) -> None:
    """Note the attempts that have computed to their end."""
    for one in attempts:
        if one.end_s <= t and one not in found.ended:
            needs = one in found.fetched_s or one in found.given_up_s
            begin_s = found.fetched_s.get(one, np.inf) if needs else one.start_s
            if abs(one.end_s - begin_s - arrays.duration_ns[one.task] / 1e9) < CLOSE_S:
                found.ended.append(one)


def _begin(
    arrays: Any, stage: int, node: int, mine: list[Attempt], ended: list[Attempt], failures: list[Failure]
) -> Fetch | None:
    """Return the fetch of tasks of a stage; None: they have nothing to fetch."""
    start_s = mine[0].start_s
    where = np.full(arrays.duration_ns.size, LOST)
    known_s = np.zeros(arrays.duration_ns.size)  # of tasks of which the output is lost: when that is known
    for one in sorted(ended, key=lambda one: one.end_s):
        lost = [f for f in failures if f.node == one.node and one.end_s <= f.fail_s <= start_s]
        where[one.task] = LOST if lost else one.node
        known_s[one.task] = min((f.detected_s for f in lost), default=np.inf)
    parents = slice(*arrays.first_parent[stage : stage + 2])
    if not (arrays.parent_bytes[parents] > 0).any():
        return None
    fetch, tasks = Fetch(stage, node, start_s), {one.task for one in mine}
    for task, parent, needed in inputs_of(arrays, stage, where):
        if task in tasks:
            for source, size in needed.items():
                if source == LOST:
                    theirs = _needed_tasks(arrays, stage, parent, task)
                    known = min(float(known_s[other]) for other in theirs if where[other] == LOST)
                    fetch.given_up_s = min(fetch.given_up_s, max(known, start_s))
                elif source != node:
                    fetch.left[source, parent] += size
    return fetch


def _needed_tasks(arrays: Any, stage: int, parent: int, task: int) -> list[int]:
    """Return the tasks of a parent of which a task needs the output."""
    first = arrays.stage_first_task
    edges = range(*arrays.first_parent[stage : stage + 2])
    (edge,) = [e for e in edges if arrays.parent[e] == parent]
    if arrays.parent_one_to_one[edge]:
        return [int(task - first[stage] + first[parent])]
    return list(range(first[parent], first[parent + 1]))


def was_needed(
    arrays: Any, one: Attempt, attempts: list[Attempt], found: Outcome, failures: list[Failure]
) -> bool:
    """Return whether a task of a child had not fetched the output of an attempt when that was lost."""
    lost_s = min(f.fail_s for f in failures if f.node == one.node and f.fail_s >= one.end_s)
    stage_of = np.repeat(np.arange(arrays.stage_first_task.size - 1), np.diff(arrays.stage_first_task))
    for child in range(arrays.stage_first_task.size - 1):
        for e in range(*arrays.first_parent[child : child + 2]):
            if arrays.parent[e] != stage_of[one.task] or not arrays.parent_bytes[e] > 0:
                continue
            theirs = range(*arrays.stage_first_task[child : child + 2])
            if arrays.parent_one_to_one[e]:
                theirs = theirs[one.task - arrays.stage_first_task[arrays.parent[e]] :][:1]
            if any(
                later.task in theirs and found.fetched_s.get(later, np.inf) > lost_s for later in attempts
            ):
                return True
    return False
