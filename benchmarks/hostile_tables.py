"""Job tables for `benchmarks.hostile`, and the options with which they are read."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_MEANT = (
    {}, {"tasks": "parts"}, {"job": "name", "user": "name"}, {"start": "begin", "end": "took"}, {"estimate": "took"},
    {"unit": "ms", "decimal": ","}, {"arrival": "name"}, {"constraints": "name"}, {"separator": "tab"},
)  # fmt: skip


def job_table_options(rng: random.Random) -> list[str]:
    """Return options that name the columns of the samples, some of them wrongly."""
    meant = rng.choice(_MEANT)
    options = {"arrival": "begin", **({} if "start" in meant else {"duration": "took"}), **meant}
    sets = (text for name, value in options.items() for text in ("--set", f"{name}={value}"))
    return ["--from", "job-table", *sets]


def make_job_tables(place: Path) -> None:
    """Write tables with times, lengths of time and numbers, as text and in the types of Arrow."""
    begin = [np.datetime64("2026-01-31T00:00:00", "ns") + np.timedelta64(i, "s") for i in range(6)]
    took = pa.array([10**9 * i + i for i in range(6)], pa.duration("ns"))
    rows = {
        "begin": pa.array(begin),
        "took": took,
        "parts": [*range(1, 7)],
        "name": ["a", "b", None, "a", "c", "b"],
    }
    pq.write_table(pa.table(rows), place / "times.parquet")
    numbers = {
        "begin": [0, 5, 5, 7],
        "took": [1.5, float("nan"), 5e-05, 3.0],
        "name": [7, 7, 2**62, 1],
        "parts": [1] * 4,
    }
    pq.write_table(pa.table(numbers), place / "numbers.parquet")
    text = "begin,took,parts,name\n2026-01-31T00:00:00.123456789,00:01:30,1,a\n2026-01-31 00:00:05Z,1h,2,b\n"
    (place / "times.csv").write_text(text)
    (place / "numbers.tsv").write_text("begin\ttook\tparts\tname\n0\t5e-05\t1\ta\n1.5\t2\t3\t\n")
