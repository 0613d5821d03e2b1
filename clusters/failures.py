"""Outages of nodes and schedulers: a schedule read from a file.

A CSV file with a header, or a Parquet table with the same columns::

    target,fail_s,repair_s
    node 17,120,3720
    18,0.5,
    rack 2,1000,1600
    scheduler 3,600,900
    central,1000,1060

A target is a node (``node 17``, or the plain number), all nodes of a rack, a probe scheduler, or the central
scheduler. An empty `repair_s` (null in Parquet) means that it does not come back.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.small_files import check_is_file, read_csv

COLUMNS = ("target", "fail_s", "repair_s")
NODE, SCHEDULER, CENTRAL = range(3)
MOST_S = 1e9
"""The latest time, about 31 years."""

Int64Array = npt.NDArray[np.int64]
_TARGET = re.compile(r"(node|rack|scheduler)?\s*([0-9]{1,12})", re.ASCII)


@dataclass(frozen=True, eq=False)
class Outages:
    """F outages, by target and then by time.

    Attributes
    ----------
    kind : ndarray of int64, shape (F,)
        `NODE`, `SCHEDULER` or `CENTRAL`.
    number : ndarray of int64, shape (F,)
        Which node or probe scheduler; 0 for the central one.
    fail_s, repair_s : ndarray of float64, shape (F,)
        From when until when; inf for good.
    """

    kind: np.ndarray
    number: np.ndarray
    fail_s: np.ndarray
    repair_s: np.ndarray


def load_outages(path: str | Path, racks: Int64Array) -> Outages:
    """Return the outages of a CSV or Parquet file; `racks`, shape (N,), has the rack of each node.

    Raises
    ------
    InputError
        A row is wrong, or two outages of one target overlap: file, line and field are named.
    """
    path = Path(path)
    rows = [row for line, values in _rows(path) for row in _read_row(line, values, racks, path)]
    if not rows:
        raise InputError("no outages; want rows of target,fail_s,repair_s", file=path)
    rows.sort()
    for before, row in itertools.pairwise(rows):
        if before[:2] == row[:2] and row[2] < before[3]:
            lines = sorted((before[4], row[4]))
            raise InputError(
                f"begins at {row[2]:g} s, before the outage in line {before[4]} is over; one target's outages must not"
                " overlap",
                file=path,
                line=max(lines),
                field="fail_s",
            )
    kind, number, fail_s, repair_s, _ = zip(*rows, strict=True)
    return Outages(
        np.array(kind, np.int64),
        np.array(number, np.int64),
        np.array(fail_s, float),
        np.array(repair_s, float),
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line and values by column; in a table, lines are rows from 1 on."""
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    return read_csv(path, partial(_check_header, path))


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    from workloads.readers.parquet_tables import parquet_file, read_columns

    check_is_file(path)
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        _check_header(path, names)
        table = read_columns(file, names, path)
    try:
        rows = table.to_pylist()
    except (ValueError, OverflowError) as error:  # dates that Python has no word for
        raise InputError(f"cannot be read: {error}", file=path) from None
    yield from enumerate(rows, start=1)


def _check_header(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            raise InputError(
                f"no such column{did_you_mean(name, COLUMNS)}",
                file=path,
                field=name,
            )
    for name in COLUMNS:
        if names.count(name) != 1:
            raise InputError(
                f"want one such column; the header is {','.join(COLUMNS)}", file=path, line=1, field=name
            )


def _read_row(
    line: int, values: dict[str, Any], racks: Int64Array, path: Path
) -> list[tuple[int, int, float, float, int]]:
    """Return kind, number, times and line of the outage of a row; of a rack those of its nodes."""
    kind, numbers = _target(values["target"], racks, path, line)
    fail_s = _time(values["fail_s"], "fail_s", path, line)
    repair = values["repair_s"]
    never = repair is None or (isinstance(repair, str) and not repair.strip())
    repair_s = math.inf if never else _time(repair, "repair_s", path, line)
    if repair_s <= fail_s:
        raise InputError(
            f"{repair_s:g} s is not after the failure at {fail_s:g} s", file=path, line=line, field="repair_s"
        )
    return [(kind, number, fail_s, repair_s, line) for number in numbers]


def _target(value: Any, racks: Int64Array, path: Path, line: int) -> tuple[int, list[int]]:
    text = "" if value is None else str(value).strip().lower()
    if text == "central":
        return CENTRAL, [0]
    match = _TARGET.fullmatch(text)
    if match is None:
        raise InputError(
            f"{value!r} is none of 'node 17', '17', 'rack 2', 'scheduler 3', 'central'",
            file=path,
            line=line,
            field="target",
        )
    number = int(match[2])
    if match[1] == "scheduler":
        return SCHEDULER, [number]
    if match[1] == "rack":
        if not (found := np.flatnonzero(racks == number).tolist()):
            raise InputError(
                f"there is no rack {number}; the cluster has racks {racks.min()} to {racks.max()}",
                file=path,
                line=line,
                field="target",
            )
        return NODE, found
    if number >= racks.size:
        raise InputError(
            f"there is no node {number}; the cluster has nodes 0 to {racks.size - 1}",
            file=path,
            line=line,
            field="target",
        )
    return NODE, [number]


def _time(value: Any, field: str, path: Path, line: int) -> float:
    try:
        seconds = math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds <= MOST_S:
        raise InputError(
            f"{value!r} is not a time in seconds, from 0 to {MOST_S:g}", file=path, line=line, field=field
        )
    return seconds
