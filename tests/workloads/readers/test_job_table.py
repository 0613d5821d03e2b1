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
from tests.workloads.log_files import arrivals, assert_named, durations, written
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


def test_a_table_by_hand(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", TABLE)
    a_job = load_workload(
        str(path), format="job-table", options={**COLUMNS, "tasks": "parts", "constraints": "needs"}
    )
    assert arrivals(a_job) == [0.0, 10.0, 30.0]
    assert durations(a_job) == [[1.5, 1.5], [4.0], [2.5]]
    assert a_job.jobs["tenant"].to_pylist() == ["bob", "ada", "bob"]
    assert [kind is not None for kind in a_job.jobs["constraint"].to_pylist()] == [True, False, False]
    assert "dropped 1: rows without took" in " ".join(a_job.notes)
    a_task = load_workload(str(path), format="job-table", options={**COLUMNS, "job": "name"})
    assert durations(a_task) == [[1.5], [4.0, 2.5]]


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


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"duration": "tok"}, "duration.*has no column 'tok'; did you mean 'took'?"),
        ({"tasks": "who"}, "line 2, who.*'ada' is not a number"),
        ({"arrival": "who"}, "line 2, who.*'ada' is neither a number nor a time"),
        ({"unit": "days"}, "days"),
    ],
)
def test_wrong_tables(tmp_path: Path, changed: dict[str, str], why: str) -> None:
    path = written(tmp_path / "own.csv", TABLE)
    with pytest.raises(InputError) as caught:
        load_workload(str(path), format="job-table", options={**COLUMNS, **changed})
    if ".*" in why:
        assert_named(caught.value, why)
    else:
        assert why in str(caught.value)


DURATIONS = {
    "5e-05": 5e-05, "1.5": 1.5, " 90 ": 90.0, "00:01:30": 90.0, "1h": 3600.0, "2 days 03:00:00": 183600.0,
    "1 day, 3:00:00": 97200.0, "1-02:03:04": 93784.0, "1h30m": 5400.0, "1.5 hours": 5400.0, "PT1H30M": 5400.0,
    "P1DT2H": 93600.0, "0 days 00:00:00.123456789": 0.123456789, "5 days": 432000.0, "250 ms": 0.25, "1e-320": 0.0,
}  # fmt: skip
NO_DURATIONS = [
    "-5",
    "-1 days +23:59:50",
    "01:30",
    "inf",
    "1e400",
    "9" * 5000,
    "1e999999",
    "1,5",
    "\u0663",
    "0x10",
    "1_0",
]
TIMES = {
    "2026-01-31": 0, "2026-01-31T12:30:00.123456789Z": 45000123456789, "2026-01-31 12:30:00 UTC": 45000 * 10**9,
    "2026-01-31T12:30:00,5+05:30": 25200500000000, "20260131T123000": 45000 * 10**9,
    "2026-01-31 00:00:00.000000001 +0000": 1,
}  # fmt: skip
JANUARY_31_NS = 1769817600 * 10**9


@pytest.mark.parametrize("text", DURATIONS)
def test_lengths_of_time_as_programs_write_them(text: str) -> None:
    assert Cells("t").duration_s(text, "took", 2) == DURATIONS[text]


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Cells("t").duration_s(text, "took", 2)
    assert (caught.value.line, caught.value.field) == (2, "took")


@pytest.mark.parametrize("text", TIMES)
def test_times_as_programs_write_them(text: str) -> None:
    assert Cells("t").time_ns(text, "when", 2) - JANUARY_31_NS == TIMES[text]


@pytest.mark.parametrize("text", ["2026-13-01", "1500-01-01", "9999-01-01", "31/01/2026 10:00", "soon"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError, match=r"neither a number nor a time|out of range"):
        Cells("t").time_ns(text, "when", 2)


def test_numbers_of_a_unit_are_converted_exactly() -> None:
    """1706612566062 ms less 1706612566000 ms are 62 ms, and 35 ms are the double nearest to 0.035 s."""
    cells = Cells("t", "ms")
    assert cells.time_ns(1706612566062, "t", 2) - cells.time_ns("1706612566000", "t", 2) == 62 * 10**6
    assert [cells.duration_s(value, "t", 2) for value in (35, "35", 35.0, Decimal(35))] == [0.035] * 4


SEPARATED = {
    "comma": ("a,b\n0,1.5\n1,2\n", {}),
    "semicolon": ("a;b\n0;1,5\n1;2\n", {"decimal": ","}),
    "tab": ("a\tb\n0\t1.5\n1\t2\n", {}),
    "tab by its escape": ("a\tb\n0\t1.5\n1\t2\n", {"separator": "\\t"}),
    "tab by name": ("a\tb\n0\t1.5\n1\t2\n", {"separator": "tab"}),
    "blanks": ("a   b\n0 1.5\n1   2\n", {"separator": " "}),
    "in quotes, with a byte order mark": ('\ufeff"a", "b"\r\n"0","1.5"\r\n\r\n1,2\r\n', {}),
    "carriage returns": ("a|b\r0|1.5\r1|2\r", {}),
    "a blank": ("a b\n0 1.5\n1 2\n", {}),
    "Excel's own line": ("sep=;\na;b\n0;1.5\n1;2\n", {}),
}


@pytest.mark.parametrize("how", SEPARATED)
def test_fields_and_what_is_between_them(tmp_path: Path, how: str) -> None:
    text, options = SEPARATED[how]
    made = read(written(tmp_path / "own.csv", text), arrival="a", duration="b", **options)
    assert (arrivals(made), durations(made)) == ([0.0, 1.0], [[1.5], [2.0]])


def test_starts_and_ends_are_subtracted_in_nanoseconds(tmp_path: Path) -> None:
    """As doubles of seconds since 1970 the first would take 238 ns, or nothing."""
    text = "begin,end\n2026-01-31T00:00:10.123456789,2026-01-31T00:00:10.123456796\n2026-01-31,2026-01-31T00:00:01\n"
    made = read(written(tmp_path / "own.csv", text), arrival="begin", start="begin", end="end")
    assert (arrivals(made), durations(made)) == ([0.0, 10.123456789], [[1.0], [7e-9]])
    numbers = written(tmp_path / "n.csv", "begin,end\n1706612566.000000000,1706612566.000000007\n")
    assert durations(read(numbers, arrival="begin", start="begin", end="end")) == [[7e-9]]


@pytest.mark.parametrize(
    ("row", "options", "why"),
    [
        ("5,3", {"start": "a", "end": "b"}, "field b: '3' is before '5', which is the a"),
        ("5,3", {"start": "a"}, "field start: start needs end"),
        ("5,3", {"start": "a", "end": "b", "duration": "b"}, "durations are given, or start and end"),
        ("2026-01-31,3", {"start": "a", "end": "b"}, "field b: '3' is not a date, and an earlier one is"),
        ("5,J\udcf6rg", {"duration": "a", "user": "b"}, "line 2: field b: 'J\\udcf6rg' is not UTF-8 text"),
        ("5,'1,5'", {"duration": "b"}, "the line has 3 fields, and the first line names 2"),
        ('5,"1,5"', {"duration": "b"}, "--set workload_options.decimal=, reads a comma"),
        ("5,1706612566062", {"duration": "b"}, "is the unit right?"),
        ("5,1e25", {"duration": "a", "tasks": "b"}, "is more than any machine holds"),
        ("5,Infinity", {"duration": "b"}, "'Infinity' is neither a number nor a length of time"),
        ("5,NaN", {"duration": "b"}, "holds no job that ran: dropped 1: rows without b"),
        ('5,"1,000"', {"duration": "a", "tasks": "b"}, "'1,000' is not a number from 0 on, without marks"),
        ("5,1.234", {"duration": "b", "decimal": ","}, "the point may be one of thousands"),
        ("5,3", {"duration": "b", "separator": "xx"}, "for a tab write tab"),
        ("5,3", {"duration": "b", "decimal": "x"}, "'x' is neither '.' nor ','"),
    ],
)
def test_rows_that_cannot_be_used(tmp_path: Path, row: str, options: dict[str, str], why: str) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(f"a,b\n{row}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        read(path, arrival="a", **options)
    assert why in str(caught.value)


def test_marks_between_thousands_that_cannot_be_decimal() -> None:
    point, comma = Cells("t"), Cells("t", decimal=",")
    assert [point.duration_s(text, "t", 2) for text in ("1,234.5", "1,234,567")] == [1234.5, 1234567.0]
    assert [comma.duration_s(text, "t", 2) for text in ("1.234,5", "1.234.567", "1,234", "0.5")] == [
        1234.5, 1234567.0, 1.234, 0.5,
    ]  # fmt: skip


def test_what_is_passed_over_is_counted(tmp_path: Path) -> None:
    """A column called as an option is that is not set; users and constraints of rows that their job's first has not."""
    text = "arrival,duration,job,tasks,who\n0,1,x,4,ada\n1,1,x,4,bob\n2,1,y,4,bob\n"
    made = read(written(tmp_path / "own.csv", text), job="job", user="who")
    assert (durations(made), made.jobs["tenant"].to_pylist()) == ([[1.0, 1.0], [1.0]], ["ada", "bob"])
    assert "dropped 1: the column tasks: --set workload_options.tasks=tasks reads it" in made.notes
    other = "rows with another user than the first of their job: that of the first taken"
    assert f"repaired 1: {other}" in made.notes
    assert (
        "tasks=tasks reads it"
        in emu.workload_from(pa.table({"arrival": [0], "duration": [1], "tasks": [4]})).notes[1]
    )


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


ASKING = """\
arrival,duration,id,n,cpus,ram,cards,prio,hosts,limit
0,10,a,2,4,512 MiB,1,5,,1h
5,10,b,4,2,1.7,,-3,2,
9,10,c,1,,,0,,0,90
9,20,c,2,1.5,3,,7,,80
"""
ASKED_COLUMNS = {
    "job": "id", "tasks": "n", "cores": "cpus", "memory": "ram", "gpus": "cards", "priority": "prio",
    "nodes": "hosts", "requested_time": "limit",
}  # fmt: skip


def test_columns_of_what_jobs_ask_for(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", ASKING)
    found = read(path, **ASKED_COLUMNS)
    assert found.jobs["cpu_cores"].to_pylist() == [4.0, 2.0, None]
    assert found.tasks["cpu_cores"].to_pylist()[-3:] == [None, 1.5, 1.5]
    assert found.jobs["memory_gib"].to_pylist() == [0.5, 1.7, None]
    assert found.tasks["memory_gib"].to_pylist()[-3:] == [None, 3.0, 3.0]
    assert found.jobs["attr:gpus"].to_pylist() == [1.0, None, None]
    assert found.jobs["priority"].to_pylist() == [5, -3, 7]
    assert found.jobs["gang_nodes"].to_pylist() == [None, 2, 0]
    assert found.jobs["requested_s"].to_pylist() == [3600.0, None, 90.0]
    assert "1 tasks that state no cpu_cores" in found.metadata["read"]
    of_frame = emu.workload_from(pd.read_csv(path), **ASKED_COLUMNS)
    assert of_frame.jobs.equals(found.jobs)
    assert of_frame.tasks.equals(found.tasks)


def test_units_of_demands(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", "arrival,duration,n,cpus,ram\n0,10,4,8,1024\n1,5,2,,3e3\n")
    found = read(
        path, tasks="n", cores="cpus", memory="ram", memory_unit="MiB", demands_of="row", gangs="yes"
    )
    assert found.jobs["cpu_cores"].to_pylist() == [2.0, None]
    assert found.jobs["memory_gib"].to_pylist() == [0.25, 1500 / 1024]
    assert found.jobs["gang_nodes"].to_pylist() == [0, 0]
    share = written(tmp_path / "share.csv", "arrival,duration,ram\n0,10,0.25\n")
    assert read(share, memory="ram", memory_unit="share").jobs["memory"].to_pylist() == [0.25]


def test_columns_of_what_jobs_ask_for_are_not_overlooked(tmp_path: Path) -> None:
    found = read(written(tmp_path / "own.csv", "arrival,duration,cores,priority\n0,10,2,3\n"))
    assert found.jobs.num_columns == 6
    for name in ("cores", "priority"):
        assert any(f"the column {name}: " in note for note in found.notes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (",4,512 MiB", ",four,512 MiB", "line 2, cpus.*'four' is not a number from 0 on"),
        ("512 MiB", "much", "line 2, ram.*'much' is not a size such as 512 MiB"),
        ("512 MiB", "-5", "line 2, ram.*'-5' is not a size"),
        (",1,5,,1h", ",1,2.5,,1h", "line 2, prio.*'2.5' is not a whole number of at most 2**53"),
        (",2,\n", ",1.5,\n", "line 3, hosts.*'1.5' is not a whole number"),
        (",1h", ",soon", "line 2, limit.*'soon' is neither a number nor a length of time"),
        (",4,512 MiB", ",4e9,512 MiB", "line 2, cpu_cores.*is more than 1,000,000,000, the most that a task"),
    ],
)
def test_wrong_cells_of_what_jobs_ask_for(tmp_path: Path, old: str, new: str, why: str) -> None:
    path = written(tmp_path / "own.csv", ASKING.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read(path, **ASKED_COLUMNS)
    assert_named(caught.value, why)
