"""Bytes on edges and of input stay with their jobs through every transformation, and through files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from workloads.catalogue import load_workload, save_workload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.stages import STAGES_SCHEMA
from workloads.transform import (
    time_slice,
)

JOBS = 8
UNKNOWN = float("nan")


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
