"""Decision latency: against a count instant by instant, by hand, and as part of a summary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emu.families.jobs.decision_latency import decision_latency_ns, describe_latency
from emu.results.result import Result

INSTANTS = 40
Rows = list[tuple[int, int, int, int]]  # node, start, run, waited

rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 9), st.integers(0, 20)), min_size=1
)


def brute_force(
    submit: np.ndarray, node: np.ndarray, start: np.ndarray, finish: np.ndarray, slots: np.ndarray
) -> list:
    """Of each task, the instants from submission to start at which its node has a slot to spare."""
    found = []
    for i in range(start.size):
        waited = 0
        for instant in range(submit[i], start[i]):
            there = (node == node[i]) & (start <= instant) & (instant < finish) & (start >= 0)
            waited += int(there.sum() < slots[node[i]])
        found.append(waited if start[i] >= 0 else -1)
    return found


def columns(drawn: Rows) -> tuple[np.ndarray, ...]:
    node, start, run, waited = np.array(drawn, np.int64).T
    return np.maximum(start - waited, 0), node, start, start + run


@given(rows, st.lists(st.integers(1, 3), min_size=4, max_size=4))
def test_as_counted_instant_by_instant(drawn: Rows, slots: list[int]) -> None:
    tasks, room = columns(drawn), np.array(slots)
    assert decision_latency_ns(*tasks, slots=room).tolist() == brute_force(*tasks, room)


@given(rows, st.data())
def test_tasks_that_never_start_or_finish(drawn: Rows, data: st.DataObject) -> None:
    submit, node, start, finish = columns(drawn)
    for i in range(start.size):
        fate = data.draw(st.sampled_from(["finishes", "runs on", "never starts"]))
        finish[i] = finish[i] if fate == "finishes" else -1
        start[i] = -1 if fate == "never starts" else start[i]
    room = np.array([1, 1, 2, 2])
    found = decision_latency_ns(submit, node, start, finish, room)
    finish = np.where((start >= 0) & (finish < 0), INSTANTS, finish)
    assert found.tolist() == brute_force(submit, node, start, finish, room)


def test_by_hand() -> None:
    # A node with one slot: 0..10 and 12..15; the second came at 4, so that it lost what is between 10 and 12.
    # A node with two: both tasks start 1 late, with room all the time.
    submit, node = np.array([0, 4, 0, 0]), np.array([0, 0, 1, 1])
    start, finish = np.array([0, 12, 1, 1]), np.array([10, 15, 9, 9])
    assert decision_latency_ns(submit, node, start, finish, np.array([1, 2])).tolist() == [0, 2, 1, 1]


def test_of_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert decision_latency_ns(none, none, none, none, np.array([1])).size == 0
    never = np.array([-1])
    assert decision_latency_ns(np.array([3]), never, never, never, np.array([1])).tolist() == [-1]


def test_an_empty_cluster_costs_the_way_to_it(workload: object, tmp_path: Path) -> None:
    """With more nodes than tasks, placing a task takes Sparrow three messages and nothing else."""
    import emu

    result = emu.run("sparrow", workload, 400, in_process=True, output_tasks=True, network_delay="1 ms")
    tasks = tasks_of(result)
    slots = np.ones(400, np.int64)
    figures = describe_latency(workload, tasks, slots, result.jobs)
    assert set(figures) == {"all", "short", "long"}
    assert np.isclose(figures["all"]["p50"], 0.003)
    assert figures["all"]["p50"] <= figures["all"]["p90"] <= figures["all"]["p99"] <= figures["all"]["max"]
    late = describe_latency(workload, tasks, slots, result.jobs, warmup_s=50.0)
    assert set(late) <= set(figures)


def tasks_of(result: Result) -> dict[str, np.ndarray]:
    """The columns of tasks.parquet as the engine has them."""
    assert result.tasks is not None
    table = result.tasks.to_pandas()
    return {
        "node": table["node"].to_numpy(np.int64),
        "start_ns": np.rint(table["start_s"].to_numpy() * 1e9).astype(np.int64),
        "finish_ns": np.rint(table["finish_s"].to_numpy() * 1e9).astype(np.int64),
    }
