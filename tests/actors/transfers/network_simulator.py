"""The network of a run of DAG jobs, computed again in plain Python from where and when its tasks were launched.

It shares no code with the engine: max-min fair rates by progressive filling, flow by flow, in floating-point seconds.
It has the attempts at tasks, and which machines fail when, and says of each attempt that fetches its input when it has
all of it, or gives up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.outcome import Outcome
from tests.actors.water_filling import max_min

INPUT, HERE = -1, -2
LOST = -5  # where an output is that is lost
CLOSE_S = 1e-6
NOWHERE: Mapping[int, int] = {}  # tasks read no input of their job


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


class Network(NamedTuple):
    """What crosses it: the speed of its ports, from where tasks read the input of their job, what each needs of a
    shuffle, in means of the tasks of its stage, and whether all-to-all edges are fetched as tasks of parents end.
    """

    bytes_per_s: float
    origin: Mapping[int, int] = NOWHERE
    part: np.ndarray | None = None
    is_pipelined: bool = False


@dataclass
class Fetch:
    """What tasks of a stage fetch that were launched on a machine at one instant."""

    attempts: list[Attempt]
    # bytes by when they are there to be sent, source and parent
    left: dict[tuple[float, int, int], float] = field(default_factory=lambda: defaultdict(float))
    ready_s: float = 0.0  # when all tasks have ended whose output is fetched as they end
    given_up_s: float = np.inf
    is_over: bool = False

    @property
    def node(self) -> int:
        return self.attempts[0].node

    @property
    def start_s(self) -> float:
        return self.attempts[0].start_s


@dataclass
class Found:
    fetched_s: dict[Attempt, float] = field(default_factory=dict)
    given_up_s: dict[Attempt, float] = field(default_factory=dict)
    ended: list[Attempt] = field(default_factory=list)  # those that ran to their end
    moved: float = 0.0  # bytes, where no machine fails
    local: float = 0.0


def inputs_of(
    arrays: Any,
    stage: int,
    node: np.ndarray,
    origin: Mapping[int, int] = NOWHERE,
    part: np.ndarray | None = None,
) -> Iterator[tuple[int, int, dict[int, float]]]:
    """Yield a task of a stage, a parent, and the bytes it needs of each machine over that edge.

    Parent `INPUT`: its part of the job's input, which tasks read from `origin`. `HERE`: the same, where it is all that
    the task needs, and on its machine, so that it is there at once and the task fetches with no other.
    """
    first = arrays.stage_first_task
    tasks = range(first[stage], first[stage + 1])
    for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
        parent, size = int(arrays.parent[e]), float(arrays.parent_bytes[e])
        if not size > 0:
            continue
        theirs = range(first[parent], first[parent + 1])
        for task in tasks:
            needed: dict[int, float] = defaultdict(float)
            for other in [theirs[task - tasks[0]]] if arrays.parent_one_to_one[e] else theirs:
                share = 1 if arrays.parent_one_to_one[e] else len(theirs)
                skewed = 1 if part is None or arrays.parent_one_to_one[e] else part[task]
                needed[int(node[other])] += size / len(tasks) / share * skewed
            yield task, parent, needed
    edges = slice(*arrays.first_parent[stage : stage + 2])
    for task in tasks:
        if task in origin:
            is_all = origin[task] == node[task] and not (arrays.parent_bytes[edges] > 0).any()
            size = float(arrays.input_bytes[stage]) / len(tasks)
            yield task, HERE if is_all else INPUT, {origin[task]: size}


def is_shuffle(arrays: Any, stage: int, parent: int) -> bool:
    """Whether the edge from a parent to a stage is all-to-all."""
    edges = slice(*arrays.first_parent[stage : stage + 2])
    return bool((arrays.parent_one_to_one[edges][arrays.parent[edges] == parent] == 0).any())


def simulate(arrays: Any, attempts: list[Attempt], net: Network, failures: Sequence[Failure] = ()) -> Found:
    """Return what became of the attempts. Where no machine fails there is one at each task, which runs to its end."""
    found = Found() if failures else Found(ended=attempts)
    waiting = sorted(attempts, key=lambda one: one.start_s)
    ends_s = sorted({one.end_s for one in attempts}) if failures else []
    to_fail = sorted(failures, key=lambda one: one.fail_s)
    fetches: list[Fetch] = []
    t = 0.0
    for _ in range(40 * len(attempts) + 20 * len(failures) + 1000):
        running = [one for one in fetches if not one.is_over]
        flows = [(one, key) for one in running for key in one.left if key[0] <= t + 1e-12]
        rates = _rates(flows, net.bytes_per_s)
        times = [t + one.left[key] / rate for (one, key), rate in zip(flows, rates, strict=True)]
        times += [key[0] for one in running for key in one.left if key[0] > t + 1e-12]
        times += [of for one in running for of in (one.ready_s, one.given_up_s) if t < of < np.inf]
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
        _note_fetched(found, running, t)
        if failures:
            ends_s = [end for end in ends_s if end > t]
            _note_ends(arrays, found, attempts, t)
        fresh: list[Attempt] = []
        while waiting and waiting[0].start_s <= t + 1e-12:
            fresh.append(waiting.pop(0))
        begun = _begin(arrays, fresh, found, net, failures) if fresh else []
        fetches = [*(one for one in running if not one.is_over), *begun]
        _note_fetched(found, begun, t)
        for one in fetches:
            if not one.is_over and one.given_up_s <= t + 1e-12:
                one.is_over = True
                found.given_up_s.update(dict.fromkeys(one.attempts, t))
    assert not waiting
    assert all(one.is_over for one in fetches)
    return found


def _rates(flows: list[tuple[Fetch, tuple[float, int, int]]], bytes_per_s: float) -> Any:
    most = 1 + max((max(key[1], one.node) for one, key in flows), default=0)
    ports = [(key[1], most + one.node) for one, key in flows]
    return max_min(ports, np.full(2 * most, bytes_per_s))


def _fail(failure: Failure, running: list[Fetch]) -> None:
    for one in running:
        if one.node == failure.node and one.start_s <= failure.fail_s:
            one.is_over = True  # lost with its machine
            continue
        for key in [key for key in one.left if key[1] == failure.node]:
            del one.left[key]
            one.given_up_s = min(one.given_up_s, failure.detected_s)


def _note_fetched(found: Found, fetches: list[Fetch], t: float) -> None:
    for one in fetches:
        if not one.is_over and not one.left and one.ready_s <= t and one.given_up_s == np.inf:
            one.is_over = True
            found.fetched_s.update(dict.fromkeys(one.attempts, t))


def _note_ends(arrays: Any, found: Found, attempts: list[Attempt], t: float) -> None:
    """Note the attempts that have computed to their end."""
    for one in attempts:
        if one.end_s <= t and one not in found.ended:
            needs = one in found.fetched_s or one in found.given_up_s
            begin_s = found.fetched_s.get(one, np.inf) if needs else one.start_s
            if abs(one.end_s - begin_s - arrays.duration_ns[one.task] / 1e9) < CLOSE_S:
                found.ended.append(one)


def _begin(
    arrays: Any, fresh: list[Attempt], found: Found, net: Network, failures: Sequence[Failure]
) -> list[Fetch]:
    """Return the fetches of tasks that are launched at one instant."""
    where, end_s, known_s = _outputs(arrays, found, fresh[0].start_s, failures)
    stage_of = np.repeat(np.arange(arrays.stage_first_task.size - 1), np.diff(arrays.stage_first_task))
    begun: dict[tuple[int, int, bool], Fetch] = {}
    mine = {one.task: one for one in fresh}
    for stage in sorted({int(stage_of[one.task]) for one in fresh}):
        here = (
            where.copy()
        )  # a task knows what lies on its machine; what runs again at this instant is not there yet
        for one in fresh:
            if stage_of[one.task] == stage:
                here[one.task] = one.node
        for task, parent, needed in inputs_of(arrays, stage, here, net.origin, net.part):
            if task not in mine:
                continue
            one = mine[task]
            # What gives up at once makes room for what is launched at the same instant, after it.
            gave_up = one.end_s == one.start_s
            fetch = begun.setdefault((stage if parent != HERE else HERE, one.node, gave_up), Fetch([]))
            if one not in fetch.attempts:
                fetch.attempts.append(one)
            pieces = [(one.start_s, source, size) for source, size in needed.items()]
            if net.is_pipelined and is_shuffle(arrays, stage, parent):
                theirs = range(*arrays.stage_first_task[parent : parent + 2])
                each = sum(needed.values()) / len(theirs)
                pieces = [(max(one.start_s, float(end_s[of])), int(where[of]), each) for of in theirs]
                fetch.ready_s = max(fetch.ready_s, *(end_s[of] for of in theirs))
            for there_s, source, size in pieces:
                if source == LOST:
                    lost = [of for of in needed_tasks(arrays, stage, parent, task) if where[of] == LOST]
                    known = min(float(known_s[of]) for of in lost)
                    fetch.given_up_s = min(fetch.given_up_s, max(known, one.start_s))
                elif source == one.node:
                    found.local += size
                else:
                    found.moved += size
                    fetch.left[there_s, source, parent] += size
    return list(begun.values())


def _outputs(
    arrays: Any, found: Found, at_s: float, failures: Sequence[Failure]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the output of each task is, when it ended, and when it is known that it is lost."""
    where = np.full(arrays.duration_ns.size, LOST)
    end_s, known_s = np.zeros(where.size), np.zeros(where.size)
    for one in sorted(found.ended, key=lambda one: one.end_s):
        lost = [f for f in failures if f.node == one.node and one.end_s <= f.fail_s <= at_s]
        where[one.task] = LOST if lost else one.node
        end_s[one.task] = one.end_s
        known_s[one.task] = min((f.detected_s for f in lost), default=np.inf)
    return where, end_s, known_s


def needed_tasks(arrays: Any, stage: int, parent: int, task: int) -> list[int]:
    """Return the tasks of a parent of which a task needs the output."""
    first = arrays.stage_first_task
    edges = range(*arrays.first_parent[stage : stage + 2])
    (edge,) = [e for e in edges if arrays.parent[e] == parent]
    if arrays.parent_one_to_one[edge]:
        return [int(task - first[stage] + first[parent])]
    return list(range(first[parent], first[parent + 1]))


def is_as_simulated(arrays: Any, found: Outcome, net: Network, begin_ns: np.ndarray | None = None) -> None:
    """Check when tasks of a run under max-min fair sharing, without failures, had their input, and what moved.

    `begin_ns`: when each task began to fetch, by default when it was launched.
    """
    tasks, fetched = found.tasks, found.series.fetched_ns
    assert tasks is not None
    begin = tasks["start_ns"] if begin_ns is None else begin_ns
    columns = (tasks["node"].tolist(), (begin / 1e9).tolist(), (tasks["finish_ns"] / 1e9).tolist())
    attempts = [Attempt(task, *row) for task, row in enumerate(zip(*columns, strict=True))]
    said = simulate(arrays, attempts, net)
    expected = np.array([said.fetched_s.get(one, np.nan) for one in attempts])
    assert ((fetched >= 0) == np.isfinite(expected)).all()
    has_input = fetched >= 0
    assert np.allclose(fetched[has_input] / 1e9, expected[has_input], rtol=0, atol=CLOSE_S)
    assert np.isclose(found.series.moved_bytes, said.moved)
    assert np.isclose(found.series.local_bytes, said.local)


def was_needed(
    arrays: Any, one: Attempt, attempts: list[Attempt], found: Found, failures: Sequence[Failure]
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
