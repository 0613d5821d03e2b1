"""Outages of nodes and schedulers: a schedule read from a file.

A CSV file with a header, or a Parquet table with the same columns::

    target,fail_s,repair_s
    node 17,120,3720
    18,0.5,
    rack 2,1000,1600
    type fast,1000,1600
    10%,2000,
    5% of racks,2000,2600
    scheduler 3,600,900
    central,1000,1060

A target is a node (``node 17``, or the plain number), all nodes of a rack or of a machine type, a share of the nodes,
of whole racks, or of the nodes of a rack or type, a probe scheduler, or the central scheduler. The nodes of a share are
drawn from the seed. An empty `repair_s` (null in Parquet) stands for a failure without repair.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clusters.cluster import whole_share
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.small_files import check_header, check_is_file, read_csv

COLUMNS = ("target", "fail_s", "repair_s")
NODE, SCHEDULER, CENTRAL = range(3)
MOST_S = 1e9
"""The latest time, about 31 years."""

if TYPE_CHECKING:
    from clusters.cluster import Cluster

Int64Array = npt.NDArray[np.int64]
_TARGET = re.compile(r"(node|rack|scheduler)?\s*([0-9]{1,12})", re.ASCII | re.IGNORECASE)
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%(?:\s+of\s+(.*))?", re.ASCII | re.IGNORECASE)
_TYPE = re.compile(r"type\s+(.*)", re.IGNORECASE)
_FORMS = "'node 17', '17', 'rack 2', 'type fast', '10%', '5% of racks', '10% of type fast', 'scheduler 3', 'central'"
_GROUPS = "'nodes', 'racks', 'rack 2', 'type fast'"
_STREAM = 0xFA17


@dataclass(frozen=True, eq=False)
class Outages:
    """F outages, by target and then by time.

    Attributes
    ----------
    kind : ndarray of int64, shape (F,)
        `NODE`, `SCHEDULER` or `CENTRAL`.
    number : ndarray of int64, shape (F,)
        Of the node or probe scheduler; 0 for the central one.
    fail_s, repair_s : ndarray of float64, shape (F,)
        Begin and end; inf without a repair.
    """

    kind: np.ndarray
    number: np.ndarray
    fail_s: np.ndarray
    repair_s: np.ndarray


class _Outage(NamedTuple):
    """An outage of one target, by a row of the file."""

    kind: int
    number: int
    fail_s: float
    repair_s: float
    line: int
    drawn: bool


def load_outages(path: str | Path, cluster: Cluster, seed: int) -> Outages:
    """Return the outages of a CSV or Parquet file for a cluster; the nodes of shares are drawn from `seed`.

    A share is rounded to whole nodes or racks, at least one. Each row has its own random numbers. If a drawn outage
    overlaps another of the same node, the node is down from the earlier failure to the later repair.

    Raises
    ------
    InputError
        A row is wrong, or two outages of one target that are both listed overlap: file, line and field are named.
    """
    path = Path(path)
    reader = _Reader(path, cluster, seed)
    rows = sorted(outage for index, row in enumerate(_rows(path)) for outage in reader.outages(index, *row))
    if not rows:
        raise InputError("no outages; want rows of target,fail_s,repair_s", file=path)
    apart = rows[:1]
    for row in rows[1:]:
        before = apart[-1]
        if before[:2] != row[:2] or row.fail_s >= before.repair_s:
            apart.append(row)
        elif before.drawn or row.drawn:
            until_s = max(before.repair_s, row.repair_s)
            apart[-1] = before._replace(repair_s=until_s, drawn=True)
        else:
            lines = sorted((before.line, row.line))
            raise InputError(
                f"begins at {row.fail_s:g} s, before the outage in line {before.line} is over; one target's outages"
                " must not overlap",
                file=path,
                line=max(lines),
                field="fail_s",
            )
    kind, number, fail_s, repair_s, _, _ = zip(*apart, strict=True)
    return Outages(
        np.array(kind, np.int64),
        np.array(number, np.int64),
        np.array(fail_s, float),
        np.array(repair_s, float),
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line and values by column; in Parquet, lines are rows from 1 on."""
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    return read_csv(path, COLUMNS)


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    from workloads.readers.parquet_tables import parquet_file, read_columns

    check_is_file(path)
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        check_header(names, COLUMNS, path)
        table = read_columns(file, names, path)
    try:
        rows = table.to_pylist()
    except (ValueError, OverflowError) as error:  # dates outside of Python's range
        raise InputError(f"cannot be read: {error}", file=path) from None
    yield from enumerate(rows, start=1)


class _Reader:
    """Rows of a file, as outages of a cluster."""

    def __init__(self, path: Path, cluster: Cluster, seed: int):
        self._path, self._cluster, self._seed = path, cluster, seed

    def outages(self, index: int, line: int, values: dict[str, Any]) -> list[_Outage]:
        """Return the outages of a row, one for each node or scheduler."""
        kind, numbers, drawn = self._target(index, line, values["target"])
        fail_s = _time(values["fail_s"], "fail_s", self._path, line)
        repair = values["repair_s"]
        never = repair is None or (isinstance(repair, str) and not repair.strip())
        repair_s = math.inf if never else _time(repair, "repair_s", self._path, line)
        if repair_s <= fail_s:
            message = f"{repair_s:g} s is not after the failure at {fail_s:g} s"
            raise InputError(message, file=self._path, line=line, field="repair_s")
        return [_Outage(kind, number, fail_s, repair_s, line, drawn) for number in numbers]

    def _target(self, index: int, line: int, value: Any) -> tuple[int, list[int], bool]:
        """Return the kind of a target, its numbers, and whether they are drawn."""
        text = "" if value is None else str(value).strip()
        if text.lower() == "central":
            return CENTRAL, [0], False
        if share := _SHARE.fullmatch(text):
            random = np.random.Generator(
                np.random.Philox(np.random.SeedSequence([self._seed, _STREAM, index]))
            )
            return NODE, self._share(line, random, float(share[1]) / 100, share[2] or "nodes"), True
        match = _TARGET.fullmatch(text)
        if match and (match[1] or "").lower() == "scheduler":
            return SCHEDULER, [int(match[2])], False
        return NODE, self._nodes(line, text).tolist(), False

    def _share(self, line: int, random: np.random.Generator, share: float, group: str) -> list[int]:
        """Return the nodes of a share of a group."""
        if not 0 < share <= 1:
            raise self._error(line, f"{100 * share:g}% is not a share above 0% and up to 100%")
        racks = self._cluster.racks()
        whole = group.lower() == "racks"
        among = np.unique(racks) if whole else self._nodes(line, group, _GROUPS)
        found = random.permutation(among)[: whole_share(share, among.size)]
        return (np.flatnonzero(np.isin(racks, found)) if whole else np.sort(found)).tolist()

    def _nodes(self, line: int, text: str, forms: str = _FORMS) -> Int64Array:
        """Return the nodes of a node's number, a rack, a machine type, or all."""
        cluster = self._cluster
        if text.lower() == "nodes":
            return np.arange(cluster.num_nodes)
        if of_type := _TYPE.fullmatch(text):
            names = cluster.attribute_names("type")
            if of_type[1] not in names:
                raise self._error(line, f"no node is of type {of_type[1]!r}{did_you_mean(of_type[1], names)}")
            return np.flatnonzero(cluster.attribute("type") == names.index(of_type[1]))
        match = _TARGET.fullmatch(text)
        if match is None or (match[1] or "").lower() == "scheduler":
            raise self._error(line, f"{text!r} is not one of {forms}")
        number = int(match[2])
        if (match[1] or "").lower() == "rack":
            racks = cluster.racks()
            if not (found := np.flatnonzero(racks == number)).size:
                between = f"the cluster has racks {racks.min()} to {racks.max()}"
                raise self._error(line, f"there is no rack {number}; {between}")
            return found
        if number >= cluster.num_nodes:
            between = f"the cluster has nodes 0 to {cluster.num_nodes - 1}"
            wrong = f"there is no node {number}; {between} (a share, as 10%, fits every cluster)"
            raise self._error(line, wrong)
        return np.array([number])

    def _error(self, line: int, message: str) -> InputError:
        return InputError(message, file=self._path, line=line, field="target")


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
