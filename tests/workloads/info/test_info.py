"""Descriptions of workloads: jobs, DAGs and coflows, in numbers and as text."""

from __future__ import annotations

import json
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emu
from benchmarks.fidelity import SHARED
from tests.workloads.family_examples import coflows_of, dags_of
from tests.workloads.strategies import dags as any_dags
from tests.workloads.strategies import workloads
from workloads.arrow import column
from workloads.coflows import with_demands
from workloads.critical_path import LATEST_NS
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.info import QUANTILES, describe, distributions, render
from workloads.info.common import MAX_BINS, describe_arrivals, sparkline
from workloads.info.dags import shapes
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.coflow_benchmark import read_coflow_benchmark
from workloads.readers.tr import read_tr

MEDIAN = QUANTILES.index(50)
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


@pytest.mark.parametrize(
    ("span_s", "bin_s"),
    [
        (0.0, 1.0),
        (0.03, 0.0005),
        (59.0, 1.0),
        (61.0, 2.0),
        (3600.0, 60.0),
        (93_500.0, 1800.0),
        (2.5e6, 43_200.0),
    ],
)
def test_bins_are_round(span_s: float, bin_s: float) -> None:
    made = describe_arrivals(np.array([0.0, span_s]), {"jobs": None})["arrivals"]
    assert made["bin_s"] == pytest.approx(bin_s)


def test_arrivals_are_shown_over_time() -> None:
    submit_s = [0.0] * 8 + [1800.0] * 4 + [3600.0]
    text = render(describe(make_workload("w", submit_s, [1] * 13, [10.0] * 13)))
    assert "           |@" + " " * 29 + "+" + " " * 29 + ":| jobs per 1 min, up to 8\n" in text
    assert "| task-seconds per 1 min, up to 80\n" in text


def test_only_nothing_is_blank() -> None:
    assert sparkline([0, 1, 10**6, 0.5 * 10**6]) == " .@+"
    assert sparkline([0.0, 0.0]) == "  "
    assert sparkline([]) == ""


def test_task_durations_are_of_the_tasks_of_the_class() -> None:
    d = describe(make_workload("w", [0.0, 1.0], [3, 1], [1.0, 2.0, 9.0, 70.0], short_cutoff_s=10.0))
    assert [d["classes"][name]["duration_s"][MEDIAN] for name in ("all", "short", "long")] == [5.5, 2.0, 70.0]
    assert "  task (s)              1     1.03" in render(d)


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


def test_shapes_of_graphs_by_hand() -> None:
    assert {name: values.tolist() for name, values in shapes(diamond()).items()} == {
        "num_stages": [5, 1, 3],
        "barriers": [1, 0, 0],
        "depth": [3, 1, 3],
        "disjoint_paths": [3, 1, 1],
        "width": [2, 1, 1],
        "width_tasks": [3.0, 2.0, 1.0],
        "input_work": [7 / 19, 1.0, 0.0],
        "critical_path_s": [6.0, 2.0, 5.0],
        "parallelism": [pytest.approx(19 / 6), 2.0, 1.0],
    }


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


def test_demands_are_described_by_resource() -> None:
    dag = make_dag_workload(
        "w",
        [0.0, 10.0],
        [2, 1],
        [1, 2, 1],
        [2.0, 3.0, 5.0, 10.0],
        [],
        cpu_cores=[1.0, 2.0, 4.0],
        demands={"network_in": [0.5, np.nan, 1.0], "attr:gpu": [0, 0, 3]},
    )
    d = describe(dag)
    assert [*d["demands"]] == ["cpu_cores", "network_in", "attr:gpu"]
    assert d["demands"]["cpu_cores"]["in_use"] == pytest.approx((2 + 2 * 8 + 4 * 10) / 10)
    assert d["demands"]["cpu_cores"]["quantiles"][MEDIAN] == 2.0  # of 1, 2, 2, 4
    assert d["demands"]["network_in"] == {
        "unit": "1",
        "known": 0.5,
        "without": 2,
        "quantiles": np.percentile([0.5, 1.0], QUANTILES).tolist(),
        "in_use": pytest.approx((0.5 * 2 + 10) / 10),
    }
    text = render(d)
    assert "in use on average: cpu_cores 5.8 cores, network_in 1.1 nodes, attr:gpu 3\n" in text
    assert "  not stated: network_in by 2 of 4 tasks\n" in text
    json.dumps(d)
    assert describe(make_dag_workload("w", [0.0], [1], [1], [1.0], []))["demands"] == {}
    at_once = make_dag_workload("w", [0.0], [1], [1], [1.0], [], memory=[0.5])
    assert "in use" not in render(describe(at_once))


def test_dags_are_described_as_jobs_and_by_shape() -> None:
    d = describe(diamond(), [2])
    assert (d["family"], d["jobs"], d["tasks"], d["stages"], d["edges"]) == ("dags", 3, 13, 9, 7)
    assert d["offered_load"] == {2: pytest.approx(28 / 9 / 2)}
    assert d["shape"]["depth"][MEDIAN] == 3.0
    json.dumps(d)
    text = render(d)
    assert text.startswith("dags: 3 jobs, 13 tasks, 9 stages, 7 edges\n")
    assert "\n  crit. path (s)        2" in text


def test_coflows_by_hand() -> None:
    workload = coflows_of(
        [
            (10.0, None, {(0, 1): 4e6, (1, 1): 1e6}),
            (12.0, 20.0, {(2, 2): 5e6}),
            (18.0, None, {(n % 3, n // 3): 2e6 for n in range(9)}),
        ],
        ports=3,
    )
    d = describe(workload)
    assert (d["family"], d["coflows"], d["flows"], d["ports"], d["span_s"]) == ("coflows", 3, 12, 3, 8.0)
    assert (d["size_bytes"], d["flows_to_own_port"], d["with_deadline"]) == (28e6, 5, 1)
    assert d["offered_load"][10**9] == pytest.approx(28e6 / 8 / (3 * 125e6))
    assert "stated" not in d["offered_load"]
    assert d["busiest_ports"]["egress"] == {
        "port": 1,
        "bytes": 11e6,
        "times_mean": pytest.approx(11 / 28 * 3),
    }
    assert {name: values[MEDIAN] for name, values in d["coflow"].items()} == {
        "width": 2,
        "senders": 2,
        "receivers": 1,
        "size_bytes": 5e6,
        "longest_flow_bytes": 4e6,
        "skew": 1.0,
        "bottleneck_bytes": 5e6,
    }
    assert d["coflow"]["skew"][-1] == 4.0
    assert {name: b["coflows"] for name, b in d["bins"]["varys"].items() if b["coflows"]} == {
        "short_narrow": 2,
        "long_narrow": 1,
    }
    assert {name: b["coflows"] for name, b in d["bins"]["philae"].items() if b["coflows"]} == {
        "small_thin": 2,
        "small_wide": 1,
    }
    json.dumps(d)
    text = render(d)
    assert text.startswith("coflows: 3 coflows, 12 flows, 3 ports\n")
    assert "size       28 MB, 5 flows from a port to itself\n" in text
    assert "  short and narrow          2 coflows ( 66.67%),  82.14% of bytes\n" in text


def test_the_bottleneck_is_the_busiest_port_of_either_side() -> None:
    fan_in, fan_out = {(0, 2): 3.0, (1, 2): 4.0}, {(0, 1): 5.0, (0, 2): 6.0}
    d = describe(coflows_of([(0.0, None, fan_in), (1.0, None, fan_out)], ports=3))
    assert (d["coflow"]["bottleneck_bytes"][0], d["coflow"]["bottleneck_bytes"][-1]) == (7.0, 11.0)


def test_coflows_have_ports_and_no_nodes() -> None:
    workload = coflows_of([(0.0, None, {(0, 0): 1.0}), (1.0, None, {(0, 1): 3.0})], 2, port_bytes_per_s=4.0)
    assert describe(workload)["offered_load"]["stated"] == 0.5
    assert "0.500 on ports as stated" in render(describe(workload))
    with pytest.raises(InputError, match="field nodes: coflows has coflows on 2 ports of its own"):
        describe(workload, [5])


def test_deadlines_are_shown_beside_what_coflows_take_alone() -> None:
    rows = [(0.0, 3.0, {(0, 0): 4.0}), (1.0, None, {(0, 1): 9.0}), (2.0, 3.0, {(0, 1): 2.0, (1, 1): 6.0})]
    stated = coflows_of(rows, 2, port_bytes_per_s=4.0)
    d = describe(stated)
    assert (d["time_to_deadline_s"][0], d["time_to_deadline_s"][-1]) == (1.0, 3.0)
    assert (d["deadline_factor"][0], d["deadline_factor"][-1]) == (0.5, 3.0)  # alone: 1 s and 2 s
    assert (d["weights"], d["mean_weight"], d["deadlines_too_early"]) == ({"1": 3}, 1.0, 1)
    assert (
        "deadlines  2 coflows have one, 1 to 3 s after the arrival, median 2 s; 0.5 to 3 times what they take alone, "
        "median 1.75; 1 cannot be met even alone\n"
    ) in render(d)
    assert "weights" not in render(d)
    d = describe(coflows_of(rows, 2))  # no speeds
    assert (d["deadline_factor"], d["deadlines_too_early"]) == (None, None)
    assert "deadlines  2 coflows have one, 1 to 3 s after the arrival, median 2 s\n" in render(d)
    json.dumps(d)


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


def test_weights_are_counted_where_they_are_few() -> None:
    two = with_demands(coflows_of([(0.0, None, {(0, 0): 1.0})] * 3, 1), weight=[2.0, 0.5, 2.0])
    assert "weights    0.5: 1 coflows, 2: 2 coflows\n" in render(describe(two))
    many = with_demands(coflows_of([(0.0, None, {(0, 0): 1.0})] * 9, 1), weight=np.arange(1.0, 10.0))
    d = describe(many)
    assert (d["weights"], d["mean_weight"]) == (None, 5.0)
    assert "weights    mean 5\n" in render(d)


def test_what_arrives_at_once_has_no_load() -> None:
    for workload in (coflows_of([(3.0, None, {(0, 0): 1.0})], 1), dags_of([(3.0, [[1.0]], [], None)])):
        d = describe(workload)
        assert (d["offered_load"], d["gap_cv"], d["span_s"]) == (None, None, 0.0)
        assert "load  " not in render(d)


def test_quantiles_are_of_the_distributions() -> None:
    workload = make_workload("w", [0.0, 1.0], [3, 1], [1.0, 2.0, 9.0, 70.0], short_cutoff_s=10.0)
    d = describe(workload)
    for distribution in distributions(workload):
        for name, values in distribution.values.items():
            assert d["classes"][name][distribution.key] == np.percentile(values, QUANTILES).tolist()


@pytest.mark.parametrize("about", [{"notes": ("said",)}, {"metadata": {"origin": "by hand"}}])
def test_metadata_and_notes_are_printed(about: dict[str, object]) -> None:
    text = render(describe(make_workload("w", [0.0], [1], [1.0], **about)))  # type: ignore[arg-type]
    assert text.endswith("note: said\n" if "notes" in about else "\n\norigin: by hand\n")


def test_what_notes_count_is_not_said_once_more() -> None:
    about = {
        "metadata": {"origin": "by hand", "read": "5 rows", "dropped": "2 jobs"},
        "notes": ("read 5 rows",),
    }
    text = render(describe(make_workload("w", [0.0], [1], [1.0], **about)))  # type: ignore[arg-type]
    assert text.endswith("\n\norigin: by hand\ndropped: 2 jobs\nnote: read 5 rows\n")


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
