"""Tables of one's own: columns that options name, numbers and times as programs write them, frames of any library."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emu
from tests.workloads.log_files import arrivals, durations, written
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers.cell_values import Cells


def read(path: Path, **options: str) -> JobWorkload:
    return load_workload(str(path), format="job-table", options=options)


TABLE = """\
when,took,who,needs,parts,name
2026-03-01T00:00:10,4000,ada,,1,x
2026-03-01T00:00:00,1500,bob,cpu_cores>=8,2,y
2026-03-01T00:00:20,,eve,,1,z
2026-03-01T00:00:30,2500,bob,,1,x
"""
COLUMNS = {"arrival": "when", "duration": "took", "user": "who", "unit": "ms"}


def test_a_frame_and_parquet_give_the_same(tmp_path: Path) -> None:
    frame = pd.read_csv(written(tmp_path / "own.csv", TABLE))
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "own.parquet")
    options = {**COLUMNS, "job": "name"}
    of_csv = load_workload(str(tmp_path / "own.csv"), format="job-table", options=options)
    of_parquet = load_workload(str(tmp_path / "own.parquet"), format="job-table", options=options)
    of_frame = emu.workload_from(frame, **options)
    timed = emu.workload_from(frame.assign(when=pd.to_datetime(frame.when)), **options)
    for other in (of_parquet, of_frame, timed):
        assert other.jobs.equals(of_csv.jobs)
        assert other.tasks.equals(of_csv.tasks)
    assert emu.run("sparrow", of_frame, 4, in_process=True).jobs.num_rows == 2


def test_numbers_of_a_unit_are_converted_exactly() -> None:
    """1706612566062 ms less 1706612566000 ms are 62 ms, and 35 ms are the double nearest to 0.035 s."""
    cells = Cells("t", "ms")
    assert cells.time_ns(1706612566062, "t", 2) - cells.time_ns("1706612566000", "t", 2) == 62 * 10**6
    assert [cells.duration_s(value, "t", 2) for value in (35, "35", 35.0, Decimal(35))] == [0.035] * 4


def test_marks_between_thousands_that_cannot_be_decimal() -> None:
    point, comma = Cells("t"), Cells("t", decimal=",")
    assert [point.duration_s(text, "t", 2) for text in ("1,234.5", "1,234,567")] == [1234.5, 1234567.0]
    assert [comma.duration_s(text, "t", 2) for text in ("1.234,5", "1.234.567", "1,234", "0.5")] == [
        1234.5, 1234567.0, 1.234, 0.5,
    ]  # fmt: skip


def test_columns_of_pandas_are_named_by_numbers_and_an_index_is_none() -> None:
    numbered = pd.DataFrame([[0, "1,5"], [1, "2"]])
    first: Any = 0  # a number, as the columns of this frame have
    assert durations(emu.workload_from(numbered, arrival=first, duration="1", decimal=",")) == [[1.5], [2.0]]
    with pytest.raises(
        InputError, match=r"'arrival' is the index, not a column; reset_index\(\) makes it one"
    ):
        emu.workload_from(pd.DataFrame({"duration": [1]}, index=pd.Index([0], name="arrival")))
    with pytest.raises(InputError, match="no column 'arrival'; known: duration: arrival=NAME names one"):
        emu.workload_from(pd.DataFrame({"duration": [1]}))
    nothing: Any = None
    with pytest.raises(InputError, match="field arrival: names no column"):
        emu.workload_from(numbered, arrival=nothing)


def test_numbers_of_numpy_in_a_column_of_several_kinds_of_values() -> None:
    arrival = pd.Series([np.int64(0), "5", np.float32(7.5)], dtype=object)
    frame = pd.DataFrame({"arrival": arrival, "duration": pd.arrays.SparseArray([0, 0, 3])})
    made = emu.workload_from(frame)
    assert (arrivals(made), durations(made)) == ([0.0, 5.0, 7.5], [[0.0], [0.0], [3.0]])


def test_a_column_whose_name_begins_like_an_orc_file(tmp_path: Path) -> None:
    made = read(written(tmp_path / "own.csv", "ORCID,a,b\nx,0,1\n"), arrival="a", duration="b", job="ORCID")
    assert durations(made) == [[1.0]]


def test_text_that_is_stored_as_bytes() -> None:
    table = pa.table({"arrival": [0], "duration": pa.array([b"1h"])})
    assert durations(emu.workload_from(table)) == [[3600.0]]


def test_what_is_missing_is_dropped_and_counted_and_rows_without_a_job_stay_apart(tmp_path: Path) -> None:
    text = "when,took,name,parts\n0,1,x,1\n,1,x,1\n2,NaN,x,1\n3,NULL,y,1\n4,4,,1\n5,5,,1\n6,6,x,\n7,7,x,2\n"
    path = written(tmp_path / "own.csv", text)
    made = read(path, arrival="when", duration="took", job="name", tasks="parts")
    assert durations(made) == [[1.0, 7.0, 7.0], [4.0], [5.0]]
    for note in ("1: rows without when", "2: rows without took", "1: rows without parts"):
        assert f"dropped {note}" in made.notes
    assert "repaired 2: rows without name: each taken as a job of its own" in made.notes
    times = pd.DataFrame({"arrival": pd.DatetimeIndex(["2026-01-31", None]), "duration": [1.0, 2.0]})
    assert durations(emu.workload_from(times)) == [[1.0]]


def test_columns_of_arrow_and_pandas_that_are_times(tmp_path: Path) -> None:
    when = [datetime(2026, 1, 31), datetime(2026, 1, 31, 0, 0, 10, 123456)]
    took = [timedelta(seconds=90), timedelta(days=2, hours=3)]
    table = pa.table(
        {"arrival": pa.array(when, pa.timestamp("ns", "UTC")), "duration": pa.array(took, pa.duration("us"))}
    )
    pq.write_table(table, tmp_path / "without-an-ending")
    exact = table.set_column(0, "arrival", pa.array([0, 10_123_456_000], pa.timestamp("ns")))
    frame = pd.DataFrame({"arrival": pd.array([*when], dtype=object), "duration": took})
    for made in (
        read(tmp_path / "without-an-ending"),
        *map(emu.workload_from, (table, exact, frame, table.to_reader())),
    ):
        assert (arrivals(made), durations(made)) == ([0.0, 10.123456], [[90.0], [183600.0]])


class Foreign:
    """A frame of another library, such as Polars."""

    columns = ("arrival", "duration")

    def __init__(self, table: pa.Table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_frame_of_another_library() -> None:
    made = emu.workload_from(Foreign(pa.table({"arrival": [0, 1], "duration": [1.0, 2.0]})))
    assert durations(made) == [[1.0], [2.0]]
    own = Foreign(pa.table({"submit_s": [0.0, 1.0], "durations_s": [[1.0], [2.0, 3.0]]}))
    assert emu.run("sparrow", own, 4, in_process=True).jobs["num_tasks"].to_pylist() == [1, 2]
    with pytest.raises(InputError, match="a list is not a frame"):
        emu.workload_from([1, 2])


NESTED = {
    "a list": [[1], [2]],
    "a struct": [{"a": 1}, {"a": 2}],
    "a list in one row": pd.Series([[1], "x"], dtype=object),
}


@pytest.mark.parametrize("what", NESTED)
def test_several_values_in_a_cell_are_refused_by_column(tmp_path: Path, what: str) -> None:
    frame = pd.DataFrame({"arrival": [0, 1], "duration": [1, 2], "name": NESTED[what]})
    with pytest.raises(InputError, match="field name: "):
        emu.workload_from(frame, job="name")
    if what != "a list in one row":
        pq.write_table(pa.Table.from_pandas(frame), tmp_path / "own.parquet")
        with pytest.raises(InputError, match="field name: "):
            read(tmp_path / "own.parquet", job="name")
        assert durations(read(tmp_path / "own.parquet")) == [[1.0], [2.0]]


def test_numbers_that_no_column_holds() -> None:
    for value in (10**5000, 10**400, 10**25, float("inf"), 2**64 - 1):
        for column in ("arrival", "duration", "parts"):
            row = {"arrival": 0, "duration": 1, "parts": 1, column: value}
            frame = pd.DataFrame({name: pd.Series([own], dtype=object) for name, own in row.items()})
            with pytest.raises(InputError, match=f"line 0: field {column}: "):
                emu.workload_from(frame, tasks="parts")
    ids = pd.DataFrame(
        {"arrival": [0, 1], "duration": [1, 1], "name": np.array([2**64 - 1, 2**63], np.uint64)}
    )
    assert emu.workload_from(ids, job="name").num_jobs == 2
