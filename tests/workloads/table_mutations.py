"""Malformed tables of public traces in the forms that people have them: see `tests.workloads.mutations`."""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable

from tests.workloads.alibaba_files import JOB_A
from tests.workloads.google_2019_rows import as_pandas_csv, as_parquet, cell_rows

HEADER = "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n"
SHARD = """\
600000000,,3418309,0,4155527081,0,u=,3,9,0.125,0.07446,0.0004244,0
601000000,,3418309,0,329150663,1,u=,3,9,,,,
605500000,2,3418309,0,329150663,4,u=,3,9,0.125,0.07446,0.0004244,0
"""
NOT_A_NUMBER = ["abc", "1.5.5", "0x10", "--1", "1 2", "\x1b[31m", "nan", "None"]

Broken = tuple[str, bytes, str, int | None]
"""Label, bytes of the file, its name, and the line that the error must name."""


def _named(name: str, data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return a name and bytes, packed every other time."""
    return (f"{name}.gz", gzip.compress(data)) if rng.random() < 0.5 else (name, data)


def _rows_2019() -> list[list[str]]:
    return [
        *csv.reader(as_pandas_csv("instance_events", cell_rows()["instance_events"]).decode().splitlines())
    ]


def _as_csv(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def csv_with_a_wrong_field(rng: random.Random) -> Broken:
    rows = _rows_2019()
    at, column = rng.randrange(1, len(rows)), rng.choice(["time", "collection_id", "instance_index"])
    rows[at][rows[0].index(column)] = wrong = rng.choice(NOT_A_NUMBER)
    name, data = _named("instance_events-000000000000.csv", _as_csv(rows), rng)
    return f"{column} of CSV is {wrong!r}", data, name, at + 1


def csv_with_a_wrong_row(rng: random.Random) -> Broken:
    rows = _rows_2019()
    at = rng.randrange(1, len(rows))
    rows[at] = rows[at][: rng.randrange(2, len(rows[at]))] if rng.random() < 0.5 else [*rows[at], "1"]
    name, data = _named("instance_events-000000000000.csv", _as_csv(rows), rng)
    return f"a row of CSV has {len(rows[at])} fields", data, name, at + 1


def csv_with_a_wrong_header(rng: random.Random) -> Broken:
    rows = _rows_2019()
    column = rng.choice(["time", "type", "collection_id", "instance_index"])
    rows[0][rows[0].index(column)] = rng.choice(["x", "priority"])
    name, data = _named("instance_events-000000000000.csv", _as_csv(rows), rng)
    return f"no {column} in the header", data, name, None if column == "collection_id" else 1


def damaged_parquet(rng: random.Random) -> Broken:
    data = as_parquet("instance_events", cell_rows()["instance_events"])
    keep = rng.choice([12, rng.randrange(12, len(data)), len(data) - 1])
    name, data = rng.choice([("x.parquet", data[:keep]), ("x.parquet.gz", gzip.compress(data[:keep]))])
    return f"Parquet cut to {keep} bytes", data, name.replace("x", "instance_events-000000000000"), None


def bare_shard_with_a_wrong_field(rng: random.Random) -> Broken:
    rows = [line.split(",") for line in (SHARD * 10).splitlines()]
    at, column = rng.randrange(len(rows)), rng.choice([0, 2, 3, 5])
    rows[at][column] = wrong = rng.choice([*NOT_A_NUMBER, ""])
    name, data = _named("part-00000-of-00500.csv", "\n".join(map(",".join, rows)).encode(), rng)
    return f"field {column + 1} of a bare shard is {wrong!r}", data, name, at + 1


def excerpt_with_a_wrong_field(rng: random.Random) -> Broken:
    rows = [line.split(",") for line in (HEADER + JOB_A).splitlines()]
    at, column = rng.randrange(1, len(rows)), rng.choice([1, 5, 6, 7])
    rows[at][column] = wrong = rng.choice(NOT_A_NUMBER[:6])
    name, data = _named("selected.csv", "\n".join(map(",".join, rows)).encode(), rng)
    return f"{rows[0][column]} of an excerpt is {wrong!r}", data, name, at + 1


def no_known_format(rng: random.Random) -> Broken:
    text = rng.choice([
        "a,b,c\n1,2,3\n", "; Version: 2\n;\n", "10000,10050,1,2,5,Terminated\n", "{}\n", "[1]\n", "# x\n",
        "m_1932,386640,41,92,,,43.04,33.08,5\n", "HashOwner,HashApp,Trigger\na,b,http\n", "0 3 1.0 1.0\n", "\n",
    ])  # fmt: skip
    name, data = _named(rng.choice(["mine.csv", "mine.txt", "mine", "trace.json"]), text.encode(), rng)
    return f"of no known format: {text[:20]!r}", data, name, None


TABLE_FILES: list[Callable[[random.Random], Broken]] = [
    csv_with_a_wrong_field, csv_with_a_wrong_row, csv_with_a_wrong_header, damaged_parquet,
    bare_shard_with_a_wrong_field, excerpt_with_a_wrong_field, no_known_format,
]  # fmt: skip
