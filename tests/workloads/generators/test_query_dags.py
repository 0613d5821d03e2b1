"""DAG jobs like those of Carbyne's evaluation: shapes that are as asked for, and quantiles that the paper states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.dags import DagWorkload, stage_levels
from workloads.generators.demands import draw_demands
from workloads.generators.mapreduce import facebook_mapreduce
from workloads.generators.query_dags import BENCHMARKS, MIXES, draw_shapes, query_dags
from workloads.resources import RESOURCES

# Carbyne, OSDI 2016, Table 1: 50th and 95th percentile of stages, barriers, and the share of work that reads input.
TABLE_1 = {
    "microsoft": ((13, 121), (4, 13), (0.34, 0.85)),
    "tpc-ds": ((8, 23), (1, 4), (0.11, 0.88)),
    "tpc-h": ((8, 12), (2, 4), (0.46, 0.82)),
    "bigbench": ((7, 19), (2, 6), (0.24, 0.70)),
}
CRITICAL_PATH = 5  # the median, section 2.2


def shape_of(dag: DagWorkload) -> dict[str, np.ndarray]:
    """Stages, barriers, stages on the longest path, and share of work in stages without parents, of each job."""
    arrays = dag.arrays()
    first, counts = arrays.first_stage[:-1], np.diff(arrays.first_stage)
    parents = np.diff(arrays.first_parent)
    work_s = np.add.reduceat(column(dag.tasks, "duration_s"), arrays.stage_first_task[:-1])
    return {
        "stages": counts,
        "barriers": np.add.reduceat((parents > 1).astype(int), first),
        "depth": np.maximum.reduceat(stage_levels(dag), first) + 1,
        "input_work": np.add.reduceat(np.where(parents == 0, work_s, 0), first)
        / np.add.reduceat(work_s, first),
    }


@pytest.mark.parametrize("jobs", [250, 2000])
@pytest.mark.parametrize("mix", MIXES)
def test_quantiles_are_those_of_the_tables(mix, jobs):
    for seed in (1, 2, 3):
        shape = shape_of(query_dags(mix=mix, jobs=jobs, seed=seed))
        stages, barriers, input_work = TABLE_1[mix]
        assert tuple(np.percentile(shape["stages"], [50, 95])) == stages
        assert tuple(np.percentile(shape["barriers"], [50, 95])) == barriers
        assert np.percentile(shape["input_work"], [50, 95]) == pytest.approx(input_work, abs=0.005)
        assert np.median(shape["depth"]) == CRITICAL_PATH


@st.composite
def wanted(draw: Any) -> tuple[np.ndarray, ...]:
    jobs = draw(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30)), min_size=1))
    return tuple(np.array(jobs, np.int64).T)


@given(wanted=wanted(), seed=st.integers(0, 99))
def test_graphs_have_what_is_wanted_of_them(wanted, seed):
    """Stages, barriers and depth as far as they are possible; edges are distinct, and go to a later level."""
    stages, barriers, depth = wanted
    shapes = draw_shapes(np.random.default_rng(seed), stages, barriers, depth)
    job = np.repeat(np.arange(len(stages)), stages)
    assert np.diff(shapes.first_stage).tolist() == stages.tolist()
    edges = list(zip(shapes.parent.tolist(), shapes.child.tolist(), strict=True))
    assert len(set(edges)) == len(edges)
    assert (job[shapes.parent] == job[shapes.child]).all()
    assert (shapes.level[shapes.parent] < shapes.level[shapes.child]).all()
    longest = np.zeros(len(job), int)
    for parent, child in sorted(edges, key=lambda edge: edge[1]):  # stages are numbered by level
        longest[child] = max(longest[child], longest[parent] + 1)
    assert longest.tolist() == shapes.level.tolist()
    assert [int(longest[job == j].max()) + 1 for j in range(len(stages))] == np.clip(
        depth, np.minimum(2, stages), stages
    ).tolist()
    parents = np.bincount(shapes.child, minlength=len(job))
    found = np.bincount(job[parents > 1], minlength=len(stages))
    assert found.tolist() == np.minimum(barriers, np.maximum(stages - 2, 0)).tolist()


options = st.fixed_dictionaries(
    {
        "mix": st.sampled_from([*MIXES, BENCHMARKS]),
        "jobs": st.integers(1, 20),
        "seed": st.integers(0, 99),
        "arrivals": st.sampled_from(["poisson", "at-once", "bursty", "diurnal"]),
        "tasks_per_job": st.none() | st.floats(0.5, 200),
        "task_cv": st.sampled_from([0.0, 0.5]),
        "diversity": st.floats(0, 1),
        "one_to_one": st.floats(0, 1),
        "tenants": st.integers(1, 3),
    }
)


@settings(max_examples=20)
@given(options=options)
def test_any_options_make_a_workload(options):
    dag = query_dags(**options)
    assert dag.num_jobs == options["jobs"]
    assert dag.fingerprint() == query_dags(**options).fingerprint()
    assert dag.resources == tuple(RESOURCES)
    demand = dag.arrays().demand
    assert demand[:, 0].min() >= 0.25
    assert 0 < demand[:, 1:].min() <= demand[:, 1:].max() <= 0.5
    assert (dag.jobs["tenant"].null_count == 0) == (options["tenants"] > 1)
    assert (column(dag.jobs, "submit_s").max() == 0) == (options["arrivals"] == "at-once")
    assert column(dag.tasks, "duration_s").min() > 0
    ones = dag.arrays().edge_one_to_one
    single = np.diff(dag.arrays().first_parent)[dag.arrays().child] == 1
    assert not (ones.astype(bool) & ~single).any()
    if options["one_to_one"] == 1.0:
        assert ones.astype(bool).tolist() == single.tolist()


def test_numbers_of_tasks_and_durations_are_those_asked_for():
    dag = query_dags(mix="tpc-h", jobs=400, tasks_per_job=300, mean_task_s=10.0)
    assert dag.num_tasks == pytest.approx(400 * 300, rel=2e-3)
    assert column(dag.stages, "mean_task_s").mean() == pytest.approx(10.0, rel=0.1)
    varied = query_dags(mix="tpc-h", jobs=400, tasks_per_job=300, mean_task_s=10.0, task_cv=0.5)
    assert varied.stages["mean_task_s"].equals(dag.stages["mean_task_s"])
    means = np.repeat(column(dag.stages, "mean_task_s"), column(dag.stages, "num_tasks"))
    factor = column(varied.tasks, "duration_s") / means
    assert (factor.mean(), factor.std()) == pytest.approx((1.0, 0.5), rel=0.02)


def test_the_mix_of_the_benchmarks_has_jobs_of_all_three():
    names = query_dags(mix=BENCHMARKS, jobs=60).stages["name"].to_pylist()
    assert {name.partition("/")[0] for name in names} == {"tpc-ds", "tpc-h", "bigbench"}


@pytest.mark.parametrize("make", [query_dags, facebook_mapreduce])
def test_the_same_jobs_come_with_other_arrivals_tenants_and_demands(make):
    dag = make(jobs=50, **({"tasks": 3000} if make is facebook_mapreduce else {}))
    for other in ({"arrivals": "at-once"}, {"tenants": 3}, {"diversity": 0.5}):
        again = make(jobs=50, **({"tasks": 3000} if make is facebook_mapreduce else {}), **other)
        assert again.tasks.equals(dag.tasks)
        # What queries read goes by their demand of disks, and so does what they send.
        by_demand = make is query_dags and "diversity" in other
        assert again.edges["size_bytes"].equals(dag.edges["size_bytes"]) != by_demand
        assert again.edges.drop_columns(["size_bytes"]).equals(dag.edges.drop_columns(["size_bytes"]))
        assert again.stages.equals(dag.stages) == ("diversity" not in other)
        assert again.jobs["submit_s"].equals(dag.jobs["submit_s"]) == ("arrivals" not in other)


def test_arrivals_are_as_far_apart_as_asked_for():
    gaps = np.diff(column(query_dags(jobs=4000, tasks_per_job=1).jobs, "submit_s"))
    assert gaps.mean() == pytest.approx(20.0, rel=0.05)
    assert gaps.std() == pytest.approx(20.0, rel=0.05)


def test_demands_depend_on_the_place_of_a_stage_and_differ_as_far_as_asked_for():
    """Without diversity: cores 1, and the medians of reading stages, of others, and of those at the end."""
    source, sink = np.array([True, False, False, True]), np.array([False, False, True, True])
    drawn = draw_demands(np.random.default_rng(1), source, sink, 0.0)
    assert {name: values.tolist() for name, values in drawn.items()} == {
        "cpu_cores": [1.0] * 4,
        "memory": [0.04, 0.06, 0.06, 0.04],
        "disk_in": [0.06, 0.01, 0.01, 0.06],
        "disk_out": [0.02, 0.02, 0.06, 0.06],
        "network_in": [0.005, 0.05, 0.05, 0.005],
        "network_out": [0.04, 0.03, 0.01, 0.02],
    }
    many = np.ones(4000, bool)
    far = draw_demands(np.random.default_rng(1), many, ~many)
    assert np.median(far["memory"]) == pytest.approx(0.04, rel=0.1)
    assert np.abs(np.corrcoef(np.stack([*far.values()])) - np.eye(6)).max() < 0.06
