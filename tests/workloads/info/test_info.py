"""Descriptions of workloads: jobs, DAGs and coflows, in numbers and as text."""

from __future__ import annotations

import json
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emu
from claims.eagle import SHARED
from tests.workloads.family_examples import coflows_of, dags_of
from tests.workloads.strategies import dags as any_dags
from tests.workloads.strategies import workloads
from workloads.arrow import column
from workloads.critical_path import LATEST_NS
from workloads.dags import DagWorkload, make_dag_workload
from workloads.info import QUANTILES, describe, distributions, render
from workloads.info.common import MAX_BINS, describe_arrivals
from workloads.info.dags import shapes
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.coflow_benchmark import read_coflow_benchmark
from workloads.readers.tr import read_tr

TRACES = SHARED / "traces"


@settings(max_examples=20)
@given(workload=workloads(labelled=True))
def test_every_workload_of_jobs_is_described(workload: JobWorkload) -> None:
    d = describe(workload)
    assert sum(d["arrivals"]["jobs"]) == workload.num_jobs
    assert sum(d["arrivals"]["task_seconds"]) == pytest.approx(d["task_seconds"])
    assert set(d["classes"]) == {"all"} if d["short_cutoff_s"] is None else {"all", "short", "long"}
    json.dumps(d)
    text = render(d)
    assert "\nall jobs: " in text
    assert all(len(q) in (0, len(QUANTILES)) for c in d["classes"].values() for q in (c["duration_s"],))


@given(
    gaps=st.lists(st.floats(0, 1e5), max_size=50),
    scale=st.sampled_from([1e-9, 1e-4, 1.0, 1e3]),
)
def test_bins_are_few_and_hold_all(gaps: list[float], scale: float) -> None:
    times_s = 5.0 + np.concatenate([[0.0], np.cumsum(gaps)]) * scale
    made = describe_arrivals(times_s, {"jobs": None})["arrivals"]
    assert sum(made["jobs"]) == len(times_s)
    assert len(made["jobs"]) <= MAX_BINS + 1
    assert made["start_s"] == times_s[0]


def diamond() -> DagWorkload:
    return dags_of(
        [
            # 0 -> 1, 2 -> 3, and 0 -> 3 at once; 4 stands alone
            (
                0.0,
                [[1.0], [2.0, 4.0], [3.0], [1.0, 1.0, 1.0], [6.0]],
                [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)],
                None,
            ),
            (9.0, [[2.0, 2.0]], [], None),
            (9.0, [[0.0], [5.0], [0.0]], [(2, 1), (1, 0)], None),
        ]
    )


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 9), density=st.floats(0, 1))
def test_shapes_are_those_of_every_path(seed: int, size: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    names = rng.permutation(size)  # parents need not have lower numbers
    edges = [(int(names[a]), int(names[b])) for b in range(size) for a in range(b) if rng.random() < density]
    stages = [rng.integers(0, 9, rng.integers(1, 4)).astype(float).tolist() for _ in range(size)]

    def longest(stage: int, weight: list[float]) -> float:
        return weight[stage] + max((longest(a, weight) for a, b in edges if b == stage), default=0.0)

    levels = [longest(s, [1.0] * size) for s in range(size)]
    found = shapes(dags_of([(0.0, [[1.0]], [], None), (1.0, stages, edges, None)]))
    assert found["depth"][1] == max(levels)
    assert found["width"][1] == max(levels.count(level) for level in levels)
    assert found["critical_path_s"][1] == max(longest(s, [max(d) for d in stages]) for s in range(size))


def test_the_critical_path_follows_tasks_over_one_to_one_edges() -> None:
    """Tasks (1, 9), then one-to-one (8, 1), then all-to-all 2: task by task 9 and 10, so 12; all-to-all 9 + 8 + 2."""
    for kinds, ends_s in (
        (["one-to-one", None], 12.0),
        ([None, None], 19.0),
        (["one-to-one", "one-to-one"], 11.0),
    ):
        last = [2.0, 1.0] if kinds[1] else [2.0]
        dag = make_dag_workload(
            "w",
            [0.0],
            [3],
            [2, 2, len(last)],
            [1.0, 9.0, 8.0, 1.0, *last],
            [(0, 0, 1), (0, 1, 2)],
            edge_kind=kinds,
        )
        assert shapes(dag)["critical_path_s"].tolist() == [ends_s]


@settings(max_examples=20)
@given(dag=any_dags())
def test_paths_and_ends_are_those_of_every_task(dag: DagWorkload) -> None:
    """By a plain second computation: the end of each task, and the fewest paths by trying all sets of edges."""
    arrays = dag.arrays()
    tasks = [range(a, b) for a, b in pairwise(arrays.stage_first_task.tolist())]
    duration_s = column(dag.tasks, "duration_s").tolist()
    parents = [
        list(zip(arrays.parent[a:b].tolist(), arrays.parent_one_to_one[a:b].tolist(), strict=True))
        for a, b in pairwise(arrays.first_parent.tolist())
    ]

    def end_s(stage: int, nth: int) -> float:
        before = [
            end_s(parent, n)
            for parent, one in parents[stage]
            for n in ([nth] if one else range(len(tasks[parent])))
        ]
        return duration_s[tasks[stage][nth]] + min(max(before, default=0.0), LATEST_NS / 1e9)

    def fewest(stages: range) -> int:
        edges = [(parent, stage) for stage in stages for parent, _ in parents[stage]]
        for size in range(min(len(edges), len(stages) - 1), 0, -1):
            for some in combinations(edges, size):
                if len({a for a, _ in some}) == len({b for _, b in some}) == size:
                    return len(stages) - size
        return len(stages)

    found = shapes(dag)
    for job, (first, end) in enumerate(pairwise(arrays.first_stage.tolist())):
        ends = [end_s(stage, nth) for stage in range(first, end) for nth in range(len(tasks[stage]))]
        assert found["critical_path_s"][job] == pytest.approx(max(ends), rel=1e-12, abs=1e-8)  # in ns
        assert found["disjoint_paths"][job] == fewest(range(first, end))


@pytest.mark.parametrize(("over_ns", "early"), [(-10_000, 1), (-1, 1), (0, 0), (1, 0)])
def test_what_a_run_misses_by_a_nanosecond_is_too_early(over_ns: int, early: int) -> None:
    """2.7267 s alone; of a published instance the deadline is 10 microseconds short."""
    deadline_s = (69_225_000_000 + 2_726_700_000 + over_ns) / 1e9
    one = coflows_of([(69.225, deadline_s, {(0, 0): 2.7267})], 1, port_bytes_per_s=1.0)
    d = describe(one)
    assert (d["deadlines_too_early"], d["deadlines_rounded"]) == (early, early)
    assert ("1 cannot be met even alone, 1 of them by less than 0.1%" in render(d)) == bool(early)
    met = emu.run("edf", one, in_process=True).coflows["met_deadline"].to_pylist()
    assert met == [not early]


def test_quantiles_are_of_the_distributions() -> None:
    workload = make_workload("w", [0.0, 1.0], [3, 1], [1.0, 2.0, 9.0, 70.0], short_cutoff_s=10.0)
    d = describe(workload)
    for distribution in distributions(workload):
        for name, values in distribution.values.items():
            assert d["classes"][name][distribution.key] == np.percentile(values, QUANTILES).tolist()


@pytest.mark.reference
@pytest.mark.skipif(not (TRACES / "YH1_sub.tr").exists(), reason="no traces beside the repository")
def test_the_yahoo_excerpt_is_as_measured_before() -> None:
    """Figures of an own reading of the excerpt, rounded as they were written down."""
    classes = describe(read_tr(TRACES / "YH1_sub.tr"))["classes"]
    assert [round(q) for q in classes["short"]["num_tasks"]] == [1, 1, 2, 3, 7, 15, 29, 49, 63, 100, 1324]
    assert [round(q, 1) for q in classes["long"]["mean_task_s"]] == [
        91.7, 94.9, 113.9, 155.5, 334.6, 716.6, 1471.4, 2622.8, 3932.8, 6331.7, 17332.2,
    ]  # fmt: skip
    assert (classes["short"]["jobs"], classes["long"]["jobs"]) == (2634, 276)
    assert round(100 * classes["short"]["work_share"], 1) == 1.5


@pytest.mark.reference
@pytest.mark.skipif(not (TRACES / "FB2010-1Hr-150-0.txt").exists(), reason="no traces beside the repository")
def test_the_facebook_coflows_are_as_measured_before() -> None:
    d = describe(read_coflow_benchmark(TRACES / "FB2010-1Hr-150-0.txt"))
    assert (d["coflows"], d["flows"], d["ports"], d["flows_to_own_port"]) == (526, 706_397, 150, 4_911)
    assert d["size_bytes"] == 35_533_534 * 2**20
    assert d["busiest_ports"]["egress"]["bytes"] == 440_422 * 2**20
    assert sum(b["coflows"] for name, b in d["bins"]["philae"].items() if name.endswith("wide")) == 269
