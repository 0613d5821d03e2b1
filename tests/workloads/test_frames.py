"""Workloads from frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from workloads.errors import InputError
from workloads.frames import is_frame, workload_of_frame
from workloads.jobs import make_workload

ROWS = {"submit_s": [5, 0.5, 0], "durations_s": [[1.0], [2, 3], (4.0, 5.0, 6.0)]}


def framed(**changed: Any) -> pd.DataFrame:
    """A frame of `ROWS` with other columns, or without those that are None: for calls/frames.txt."""
    rows = {**ROWS, **changed}
    return pd.DataFrame({name: column for name, column in rows.items() if column is not None})


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(ROWS), pa.table({**ROWS, "durations_s": [[1.0], [2, 3], [4, 5, 6]]})]
)
def test_a_row_is_a_job(frame: Any) -> None:
    assert is_frame(frame)
    made = workload_of_frame(frame)
    by_hand = make_workload("frame", [0, 0.5, 5], [3, 2, 1], [4, 5, 6, 2, 3, 1])
    assert made.fingerprint() == by_hand.fingerprint()


def test_what_else_a_frame_may_say() -> None:
    more = {
        "job_id": [7, 8, 9],
        "mean_task_s": [1, 9, 9.5],
        "tenant": [1, None, "b"],
        "num_tasks": [1, 2, 3],
    }
    made = workload_of_frame(pd.DataFrame({**ROWS, **more}))
    assert made.jobs["job_id"].to_pylist() == [9, 8, 7]
    assert made.jobs["mean_task_s"].to_pylist() == [9.5, 9, 1]
    assert made.jobs["tenant"].to_pylist() == ["b", None, "1"]


def test_jobs_of_a_frame_may_ask_for_something() -> None:
    asked = {
        "cpu_cores": [2, 0.5, None],
        "attr:gpus": [None, 1, 2],
        "priority": pd.array([3, None, -1], dtype="Int64"),
        "gang_nodes": [0, None, 2],
        "requested_s": [60.0, np.nan, 5.0],
    }
    frame = pd.DataFrame({**ROWS, **asked})
    made = workload_of_frame(frame)
    assert made.resources == ("cpu_cores", "attr:gpus")
    assert made.jobs["cpu_cores"].to_pylist() == [None, 0.5, 2]
    assert made.jobs["attr:gpus"].to_pylist() == [2, 1, None]
    assert made.jobs["priority"].to_pylist() == [-1, None, 3]
    assert made.jobs["gang_nodes"].to_pylist() == [2, None, 0]
    assert made.jobs["requested_s"].to_pylist() == [5, None, 60]
    table = pa.table({name: [*column] if name == "durations_s" else column for name, column in frame.items()})
    assert workload_of_frame(table).fingerprint() == made.fingerprint()


def test_a_column_that_is_there_twice() -> None:
    twice = pd.DataFrame([[0.0, 1.0, [1.0]]], columns=["submit_s", "submit_s", "durations_s"])
    for frame in (twice, pa.Table.from_arrays([pa.array([1.0])] * 2, names=["submit_s"] * 2)):
        with pytest.raises(InputError, match="the frame has the column 'submit_s' 2 times"):
            workload_of_frame(frame)


def test_what_is_no_frame() -> None:
    assert not any(map(is_frame, ({}, [], np.zeros(3), "x", pd.Series([1]), pa.array([1]))))
