"""MapReduce jobs like Facebook's: one or two stages, and the numbers that the paper states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.errors import InputError
from workloads.generators.mapreduce import facebook_mapreduce


def test_defaults_are_those_of_the_paper_and_of_the_sample():
    dag = facebook_mapreduce()
    assert (dag.num_jobs, dag.num_tasks) == (7_000, 650_000)
    assert column(dag.jobs, "submit_s").max() == pytest.approx(6 * 3600, rel=0.05)
    stages = np.diff(dag.arrays().first_stage)
    assert np.bincount(stages).tolist() == [0, 5_250, 1_750]
    tasks = column(dag.jobs, "num_tasks")
    assert np.percentile(tasks, [50, 90, 95, 99]) == pytest.approx([1, 10, 113, 1200], rel=0.1)
    names = dag.stages["name"].to_pylist()
    assert names.count("map") == 7_000
    of_maps = column(dag.stages, "mean_task_s")[np.array(names) == "map"]
    assert of_maps.mean() == pytest.approx(40.0, rel=0.05)


@given(
    jobs=st.integers(1, 40),
    more=st.integers(0, 500),
    map_only=st.floats(0, 1),
    tenants=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def test_any_numbers_of_jobs_and_tasks_are_met(jobs, more, map_only, tenants, seed):
    least = 2 * jobs - round(map_only * jobs)
    dag = facebook_mapreduce(jobs=jobs, tasks=least + more, map_only=map_only, tenants=tenants, seed=seed)
    assert (dag.num_jobs, dag.num_tasks) == (jobs, least + more)
    assert dag.num_stages == least
    edges = dag.edges.to_pylist()
    assert len(edges) == least - jobs
    assert {(edge["parent"], edge["child"]) for edge in edges} <= {(0, 1)}
    assert (dag.jobs["tenant"].null_count == 0) == (tenants > 1)
    with pytest.raises(
        InputError, match=f"have reducers, need {least} tasks or more; got {least - 1}|whole number"
    ):
        facebook_mapreduce(jobs=jobs, tasks=least - 1, map_only=map_only)
