"""The network of a run of DAG jobs, computed again in plain Python from where and when its tasks were launched.

It shares no code with the engine: max-min fair rates by progressive filling, flow by flow, in floating-point seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.outcome import Outcome
from tests.actors.water_filling import max_min

INPUT, HERE = -1, -2
NOWHERE: Mapping[int, int] = {}  # tasks read no input of their job
Fetch = tuple[int, int, float]  # stage, machine, and when its tasks were launched, s


class Flow(NamedTuple):
    begin_s: float
    source: int
    sink: int
    fetch: Fetch


def inputs_of(
    arrays: Any,
    stage: int,
    node: np.ndarray,
    origin: Mapping[int, int] = NOWHERE,
    part: np.ndarray | None = None,
) -> Iterator[tuple[int, int, dict[int, float]]]:
    """Yield a task of a stage, a parent, and the bytes it needs of each machine over that edge.

    `part`: what each task needs of a shuffle, in means of the tasks of its stage.
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
            yield (
                task,
                HERE if is_all else INPUT,
                {origin[task]: float(arrays.input_bytes[stage]) / len(tasks)},
            )


def fetched_s(
    arrays: Any,
    tasks: dict[str, np.ndarray],
    bytes_per_s: float,
    origin: Mapping[int, int] = NOWHERE,
    part: np.ndarray | None = None,
    is_pipelined: bool = False,
) -> tuple[np.ndarray, float, float]:
    """Return when each task had its input, s, NaN where it needs none; and the bytes that moved, and did not.

    Pipelined, what a task of a parent sends over an all-to-all edge is fetched from its end on, and the input is there
    when all of them have ended.
    """
    node, start, finish = tasks["node"], tasks["start_ns"] / 1e9, tasks["finish_ns"] / 1e9
    sizes: dict[tuple[Flow, int], float] = defaultdict(float)
    fetch_of: dict[int, Fetch] = {}
    last_s: dict[Fetch, float] = {}
    local = 0.0
    for stage in range(arrays.stage_first_task.size - 1):
        for task, parent, needed in inputs_of(arrays, stage, node, origin, part):
            fetch = stage if parent != HERE else HERE, int(node[task]), float(start[task])
            fetch_of[task] = fetch
            pieces = [(fetch[2], source, size) for source, size in needed.items()]
            if is_pipelined and is_shuffle(arrays, stage, parent):
                theirs = range(*arrays.stage_first_task[parent : parent + 2])
                each = sum(needed.values()) / len(theirs)
                pieces = [(max(fetch[2], float(finish[of])), int(node[of]), each) for of in theirs]
                last_s[fetch] = max(last_s.get(fetch, 0.0), *(finish[of] for of in theirs))
            for begin_s, source, size in pieces:
                if source == node[task]:
                    local += size
                else:
                    sizes[Flow(begin_s, source, fetch[1], fetch), parent] += size
    end_s = simulate(sorted((flow, size) for (flow, _), size in sizes.items()), bytes_per_s)
    found = np.full(start.size, np.nan)
    for task, fetch in fetch_of.items():
        found[task] = max(end_s.get(fetch, fetch[2]), last_s.get(fetch, 0.0))
    return found, sum(sizes.values()), local


def is_as_simulated(arrays: Any, found: Outcome, bytes_per_s: float, **given: Any) -> None:
    """Check when tasks of a run under max-min fair sharing had their input, when they ended, and what moved.

    `given`: of `fetched_s`.
    """
    tasks, fetched = found.tasks, found.series.fetched_ns
    assert tasks is not None
    expected, moved, local = fetched_s(arrays, tasks, bytes_per_s, **given)
    assert ((fetched >= 0) == np.isfinite(expected)).all()
    has_input = fetched >= 0
    assert np.allclose(fetched[has_input] / 1e9, expected[has_input], rtol=0, atol=1e-6)
    begin = np.where(has_input, fetched, tasks["start_ns"])
    assert (tasks["finish_ns"] - begin == arrays.duration_ns).all()
    assert np.isclose(found.series.moved_bytes, moved)
    assert np.isclose(found.series.local_bytes, local)


def is_shuffle(arrays: Any, stage: int, parent: int) -> bool:
    """Whether the edge from a parent to a stage is all-to-all."""
    edges = slice(*arrays.first_parent[stage : stage + 2])
    return bool((arrays.parent_one_to_one[edges][arrays.parent[edges] == parent] == 0).any())


def simulate(flows: list[tuple[Flow, float]], bytes_per_s: float) -> dict[Fetch, float]:
    """Return when the last flow of each fetch ends."""
    end_s: dict[Fetch, float] = {}
    running: list[tuple[Flow, float]] = []
    t, waiting = 0.0, list(flows)
    most = 1 + max((max(flow.source, flow.sink) for flow, _ in flows), default=0)
    for _ in range(2 * len(flows) + 1):
        if not running and not waiting:
            break
        ports = [(flow.source, most + flow.sink) for flow, _ in running]
        rates = max_min(ports, np.full(2 * most, bytes_per_s))
        ends = [t + left / rate for (_, left), rate in zip(running, rates, strict=True)]
        then = min([*ends, *(flow.begin_s for flow, _ in waiting[:1])])
        kept = []
        for (flow, left), rate, end in zip(running, rates, ends, strict=True):
            if end <= then + 1e-9:
                end_s[flow.fetch] = max(end_s.get(flow.fetch, 0.0), then)
            else:
                kept.append((flow, left - rate * (then - t)))
        t, running = then, kept
        while waiting and waiting[0][0].begin_s <= t + 1e-12:
            running.append(waiting.pop(0))
    assert not running
    assert not waiting
    return end_s
