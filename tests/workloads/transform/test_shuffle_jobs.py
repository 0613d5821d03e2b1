"""Jobs around coflows: bytes that stay, shares of time that are as stated, and notes on what is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import coflows_of
from tests.workloads.strategies import coflows
from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.generators.coflows import synthetic_coflows
from workloads.isolation import isolated_s, with_port_speeds
from workloads.jobs import MAX_TIME_S, make_workload
from workloads.readers.coflow_benchmark import read_coflow_benchmark
from workloads.transform import TRANSFORMATIONS, history, redo, shuffle_jobs
from workloads.transform.registry import parse_steps

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
TRACE = SHARED / "traces" / "FB2010-1Hr-150-0.txt"
with_trace = pytest.mark.skipif(not TRACE.exists(), reason="no traces beside the repository")
GBPS = 1e9
# Philae, section 9.2: shares of jobs that spend less than so much of their time in the shuffle.
PHILAE = {0.25: 0.61, 0.50: 0.74, 0.75: 0.88}


def three() -> CoflowWorkload:
    """A shuffle of two and three ports, equal flows; a flow; three flows that differ between two and two ports."""
    return coflows_of(
        [
            (0.0, None, {(s, r): 4.0 for r in range(3) for s in range(2)}),
            (2.0, None, {(0, 2): 30.0}),
            (5.0, 9.0, {(0, 1): 1.0, (0, 2): 3.0, (1, 2): 5.0}),
        ],
        ports=3,
        port_bytes_per_s=2.0,
    )


def stage_times(dag: DagWorkload) -> np.ndarray:
    """The mean times of maps and of reducers, a row a job."""
    return column(dag.stages, "mean_task_s").reshape(-1, 2)


def shares_of(coflows: CoflowWorkload, dag: DagWorkload) -> np.ndarray:
    """The share of each job's time that its coflow takes alone."""
    alone_s = isolated_s(coflows)
    return alone_s / (alone_s + stage_times(dag).sum(axis=1))


def test_three_coflows_by_hand() -> None:
    """Alone they take 12 B at 2 B/s, or 6 s; 15 s; and 8 B, or 4 s: tasks take three times that, maps a quarter."""
    made = shuffle_jobs(three(), "25%", 0.25)
    assert made.jobs["job_id"].to_pylist() == [0, 1, 2]
    assert made.jobs["submit_s"].to_pylist() == [0.0, 2.0, 5.0]
    assert made.stages.select(["job_id", "name", "num_tasks"]).to_pydict() == {
        "job_id": [0, 0, 1, 1, 2, 2],
        "name": ["map", "reduce"] * 3,
        "num_tasks": [2, 3, 1, 1, 2, 2],
    }
    assert stage_times(made) == pytest.approx(np.array([[4.5, 13.5], [11.25, 33.75], [3.0, 9.0]]))
    assert made.tasks["duration_s"].to_pylist()[:5] == [4.5, 4.5, 13.5, 13.5, 13.5]
    assert made.edges.to_pydict() == {
        "job_id": [0, 1, 2],
        "parent": [0, 0, 0],
        "child": [1, 1, 1],
        "size_bytes": [24.0, 30.0, 9.0],
    }
    assert "input_bytes" not in made.stages.column_names
    assert made.notes == (
        "jobs: ports of coflows are left out: tasks run where a scheduler places them; 1 of 3 coflows have flows that "
        "differ, or lack some: their bytes are spread evenly; 1 of 3 deadlines are left out",
    )
    assert history(made) == (
        "jobs shuffle_share=25% map_share=0.25 seed=1 # 3 jobs, 11 tasks, 25.0% of their time in shuffles",
    )


@pytest.mark.parametrize("count", [100, 526, 2000])
def test_shares_are_those_that_philae_states(count: int) -> None:
    coflows = synthetic_coflows(coflows=count, ports=40)
    for seed in (1, 2):
        made = shuffle_jobs(coflows, port_speed_bps=GBPS, seed=seed)
        share = shares_of(with_port_speeds(coflows, GBPS / 8), made)
        for below, of_jobs in PHILAE.items():
            assert np.mean(share < below) == pytest.approx(of_jobs, abs=1 / count)
        assert share.min() >= 0.05 - 1e-6
        assert share.max() <= 0.95 + 1e-6
        assert np.corrcoef(share, np.log(column(coflows.coflows, "size_bytes")))[0, 1] == pytest.approx(
            0, abs=0.25
        )


@settings(deadline=None)
@given(coflows=coflows(complete=True), map_share=st.floats(0, 1), seed=st.integers(0, 9))
def test_bytes_and_tasks_stay_whatever_the_coflows(
    coflows: CoflowWorkload, map_share: float, seed: int
) -> None:
    assume(isolated_s(coflows).max() <= MAX_TIME_S / 19)  # with a share of 5 %
    made = shuffle_jobs(coflows, map_share=map_share, seed=seed)
    table = coflows.coflows
    assert made.arrays().edge_bytes.tolist() == column(table, "size_bytes").tolist()
    assert made.jobs["job_id"].equals(table["coflow_id"])
    assert made.jobs["submit_s"].equals(table["arrival_s"])
    tasks = column(made.stages, "num_tasks").reshape(-1, 2)
    assert tasks[:, 0].tolist() == column(table, "senders").tolist()
    assert tasks[:, 1].tolist() == column(table, "receivers").tolist()


@with_trace
@pytest.mark.reference
def test_the_facebook_trace_keeps_its_bytes() -> None:
    coflows = read_coflow_benchmark(TRACE)
    made = shuffle_jobs(coflows, port_speed_bps=GBPS)
    lines = [line.split() for line in TRACE.read_text().splitlines()[1:]]
    megabytes, tasks = 0.0, 0
    for line in lines:
        mappers = int(line[2])
        reducers = line[4 + mappers :]
        megabytes += sum(float(field.partition(":")[2]) for field in reducers)
        tasks += mappers + len(reducers)
    assert (made.num_jobs, made.num_tasks) == (526, tasks)
    assert float(made.arrays().edge_bytes.sum()) == pytest.approx(megabytes * 2**20, rel=1e-12)
    assert "142 of 526 coflows have flows that differ" in made.notes[-1]  # those of Philae's low-skew filter
    share = shares_of(with_port_speeds(coflows, GBPS / 8), made)
    found = np.diff([0, *(np.count_nonzero(share < below) for below in PHILAE), len(share)])
    assert found.tolist() == [321, 68, 74, 63]


def test_it_can_be_done_again_and_is_a_step() -> None:
    coflows = synthetic_coflows(coflows=30, ports=8)
    made = shuffle_jobs(coflows, port_speed_bps=GBPS, seed=4)
    assert redo([coflows], history(made)[-1]).fingerprint() == made.fingerprint()
    (step,) = parse_steps("jobs --port-speed '1 Gbps'")
    assert step.follows_seed
    assert step.apply(coflows, 4).fingerprint() == made.fingerprint()
    assert [option.flag for option in TRANSFORMATIONS["jobs"].options] == [
        "--shuffle-share",
        "--map-share",
        "--port-speed",
        "--seed",
    ]


def test_what_cannot_be_is_named() -> None:
    unstated = coflows_of([(0.0, None, {(0, 1): 5.0})], ports=2)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (make_workload("plain", [0.0], [1], [1.0]), {}, "plain has jobs; jobs are made around coflows"),
        (unstated, {}, "field port_speed_bps: coflows does not state the speed of its ports"),
        (three(), {"port_speed_bps": GBPS}, "field port_speed_bps: the ports of coflows state their speed"),
        (unstated, {"port_speed_bps": 0.0}, "field port_speed_bps: 0.0 is not a number above 0"),
        (three(), {"map_share": 1.5}, "field map_share: 1.5 is not a share in 0..1"),
        (
            three(),
            {"shuffle_share": "aalo"},
            "field shuffle_share: 'aalo' is neither 'philae' nor a share above 0",
        ),
        (three(), {"shuffle_share": "0%"}, "field shuffle_share: '0%' is neither"),
        (three(), {"shuffle_share": "120%"}, "field shuffle_share: '120%' is neither"),
    ]
    for workload, options, message in cases:
        with pytest.raises(InputError) as caught:
            shuffle_jobs(workload, **options)
        assert str(caught.value).startswith(message)
