"""Bytes on edges and of input stay with their jobs through every transformation, and through files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.catalogue import load_workload, save_workload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.stages import STAGES_SCHEMA
from workloads.transform import (
    TRANSFORMATIONS,
    constrain,
    demands,
    merge,
    priorities,
    replicate,
    resample,
    retime,
    sample,
    scale,
    split,
    time_slice,
    truncate,
)

JOBS = 8
UNKNOWN = float("nan")
PLAIN_DAG = make_dag_workload("plain", [3.0], [2], [1, 1], [1.0, 1.0], [(0, 0, 1)], [99.0])


def moving(edge_bytes: list[float], input_bytes: list[float]) -> DagWorkload:
    """Jobs of three stages and two edges each; the stated mean duration tells which one a job is."""
    each = np.arange(JOBS)
    return make_dag_workload(
        "moving",
        10.0 * each[::-1],
        [3] * JOBS,
        [1, 2, 2] * JOBS,
        1.0 + np.arange(5 * JOBS),
        [edge for n in range(JOBS) for edge in ((n, 2, 0), (n, 2, 1))],
        1.0 + each,
        edge_kind=[None, "one-to-one"] * JOBS,
        edge_bytes=edge_bytes,
        input_bytes=input_bytes,
        tenant=["ab"[n % 2] for n in range(JOBS)],
    )


def bytes_by_job(*workloads: DagWorkload) -> dict[float, Any]:
    """By stated mean duration: the job's edges and the input of its stages, text as NaN is not equal to itself."""
    found: dict[float, Any] = {}
    for workload in workloads:
        arrays = workload.arrays()
        for job, mean_s in enumerate(column(workload.jobs, "mean_task_s").tolist()):
            stages = slice(arrays.first_stage[job], arrays.first_stage[job + 1])
            edges = slice(arrays.first_child[stages.start], arrays.first_child[stages.stop])
            moved = (
                (arrays.child[edges] - stages.start).tolist(),
                arrays.edge_one_to_one[edges].tolist(),
                repr(arrays.edge_bytes[edges].tolist()),
                repr(arrays.input_bytes[stages].tolist()),
            )
            assert found.setdefault(mean_s, moved) == moved
    return found


MADE: dict[str, Callable[[DagWorkload], list[DagWorkload]]] = {
    "scale": lambda w: [scale(w, load=0.5, nodes=7)],
    "slice": lambda w: [time_slice(w, 20.0, 60.0)],
    "sample": lambda w: [sample(w, count=5)],
    "replicate": lambda w: [replicate(w, 3)],
    "resample": lambda w: [resample(w, 25.0, seed=3)],
    "merge": lambda w: [merge([w, PLAIN_DAG]), merge([PLAIN_DAG, w], label=True)],
    "truncate": lambda w: [truncate(w, 100.0)],
    "split": lambda w: [*split(w).values()],
    "retime": lambda w: [retime(w, "bursty", seed=4)],
    "constrain": lambda w: [constrain(w, "cores >= 2: 50%")],
    "demands": lambda w: [demands(w, "cpu_cores=1 disk_in=0.5: 50%")],
    "priorities": lambda w: [priorities(w, "7: 50%")],
}
OF_COFLOWS = {"filter", "skew", "deadlines", "weights", "draw", "jobs"}
sizes = st.just(UNKNOWN) | st.just(0.0) | st.floats(1.0, 1e18)


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=25)
@given(
    edge_bytes=st.lists(sizes, min_size=2 * JOBS, max_size=2 * JOBS),
    input_bytes=st.lists(sizes, min_size=3 * JOBS, max_size=3 * JOBS),
)
def test_bytes_stay_with_their_jobs(name: str, edge_bytes: list[float], input_bytes: list[float]) -> None:
    workload = moving(edge_bytes, input_bytes)
    before = bytes_by_job(workload)
    made = bytes_by_job(*MADE[name](workload))
    if name == "merge":
        assert made.pop(99.0) == ([1], [0], "[nan]", "[nan, nan]")
    assert made
    assert all(before[job] == moved for job, moved in made.items())
    assert len(made) == JOBS or name in ("slice", "sample", "resample")


def test_every_transformation_of_dags_is_tried() -> None:
    assert set(TRANSFORMATIONS) == set(MADE) | OF_COFLOWS


@pytest.mark.parametrize("name", MADE)
def test_what_is_transformed_is_written_and_read_back(tmp_path: Path, name: str) -> None:
    """Merged tables too have their columns in the order of the schema."""
    known = [UNKNOWN, 5.0] * JOBS
    for n, made in enumerate(MADE[name](moving(known, [*known, *known[:JOBS]]))):
        assert save_workload(made, tmp_path / str(n)) == ()
        assert load_workload(tmp_path / str(n)).fingerprint() == made.fingerprint()


def test_bytes_of_which_none_are_left_have_no_column_in_a_file(tmp_path: Path) -> None:
    """As where nothing was known: the first of the jobs to arrive is the last of those given."""
    first = time_slice(moving([5.0] * 14 + [UNKNOWN] * 2, [5.0] * 21 + [UNKNOWN] * 3), 0.0, 5.0)
    assert (first.num_jobs, first.bytes_known) == (1, ())
    save_workload(first, tmp_path / "w")
    names = [pq.read_schema(tmp_path / "w" / f"{table}.parquet").names for table in ("edges", "stages")]
    assert names == [["job_id", "parent", "child", "kind"], STAGES_SCHEMA.names]


def test_text_of_dags_says_that_bytes_are_left_out(tmp_path: Path) -> None:
    def dag(**more: Any) -> DagWorkload:
        return make_dag_workload("w", [0.0], [2], [1, 1], [1.0, 1.0], [(0, 0, 1)], memory=[1.0, 1.0], **more)

    (note,) = save_workload(dag(edge_bytes=[4.0], input_bytes=[0.0, UNKNOWN]), tmp_path / "a.txt", "dag-text")
    assert "the format dag-text does not hold size_bytes, input_bytes, left out; a Parquet folder" in note
    (note,) = save_workload(dag(input_bytes=[0.0, 1.0]), tmp_path / "b.txt", "dag-text")
    assert "does not hold input_bytes, left out" in note
    assert save_workload(dag(), tmp_path / "c.txt", "dag-text") == ()
    again = {load_workload(tmp_path / name).fingerprint() for name in ("a.txt", "b.txt", "c.txt")}
    assert len(again) == 1
