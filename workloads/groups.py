"""Rows that lie together in groups (tasks of jobs, stages of jobs, flows of coflows); columns checked and converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError

Int64Array = npt.NDArray[np.int64]


def first_rows(counts: Int64Array) -> Int64Array:
    """Return where each of G groups begins, and the end of the last: shape (G + 1,)."""
    first = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return first


def rows_of_groups(counts: Int64Array, groups: Int64Array) -> Int64Array:
    """Return the rows of some groups, one group after the other; `counts` are the rows of each group.

    Examples
    --------
    >>> rows_of_groups(np.array([2, 1, 3]), np.array([2, 0])).tolist()
    [3, 4, 5, 0, 1]
    """
    end = np.cumsum(counts)
    return rows_between((end - counts)[groups], end[groups])


def rows_between(first: Int64Array, end: Int64Array) -> Int64Array:
    """Return the rows from each of `first` to before each of `end`, one run of rows after the other.

    Examples
    --------
    >>> rows_between(np.array([7, 2]), np.array([9, 3])).tolist()
    [7, 8, 2]
    """
    sizes = end - first
    return np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))


def positions(ids: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return where in `ids`, which are distinct, each wanted one is; -1 where it is not there."""
    if len(ids) == 0:
        return np.full(len(wanted), -1)
    order = np.argsort(ids, kind="stable")
    found = order[np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)]
    return np.where(ids[found] == wanted, found, -1)


def nanoseconds(seconds: npt.NDArray[np.float64]) -> Int64Array:
    """Return times as the kernel has them, rounded to the nanosecond."""
    return np.rint(seconds * 1e9).astype(np.int64)


def whole_numbers(
    values: npt.ArrayLike, name: str, least: int, most: int, *, file: object = None
) -> Int64Array:
    """Return whole numbers as an int64 array, or name the first that is not one in ``least..most``."""
    given = np.asarray(values)
    if given.size == 0:
        return np.zeros(0, np.int64)
    if given.dtype.kind not in "iuf":
        raise InputError(f"want whole numbers, have {given.dtype}", file=file, field=name)
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    bad = (whole != given) | (given < least) | (given > most)
    refuse_first(bad, given, f"is not a whole number from {least} to {most}", name, file=file)
    return whole


def refuse_first(
    bad: npt.NDArray[np.bool_],
    values: npt.NDArray[Any],
    wrong: str,
    name: str,
    *,
    file: object = None,
    lines: Sequence[int] | Int64Array | None = None,
) -> None:
    """Raise an `InputError` for the first bad value, if any: ``VALUE WRONG``, with its line, by default its row."""
    if bad.any():
        at = int(np.argmax(bad))
        line = at + 1 if lines is None else int(lines[at])
        raise InputError(f"{values[at]} {wrong}", file=file, line=line, field=name)


def checked_ids(values: npt.ArrayLike, count: int, name: str, of: str, *, file: object = None) -> Int64Array:
    """Return the ids of `count` rows as a new int64 array; refuse other numbers of them, and ids given twice."""
    ids = np.array(values, np.int64)
    same_length(ids, count, name, of, file=file)
    distinct_ids(ids, name, file=file)
    return ids


def distinct_ids(ids: Int64Array, name: str, *, file: object = None) -> None:
    """Refuse ids of which one is given twice; the second is named."""
    again = np.ones(len(ids), bool)
    again[np.unique(ids, return_index=True)[1]] = False
    refuse_first(again, ids, "is given twice", name, file=file)


def same_length(values: npt.NDArray[Any], count: int, name: str, of: str, *, file: object = None) -> None:
    """Refuse an array that is not one value for each of `count` rows."""
    if values.shape != (count,):
        raise InputError(f"{len(values)} values for {count} {of}", file=file, field=name)


def check_sum(counts: Int64Array, have: int, name: str, of: str, *, file: object = None) -> None:
    """Refuse counts, none negative, that do not add up to the rows there are."""
    small = int(counts.max(initial=0)) <= have  # a sum of absurd counts would wrap
    if (total := int(counts.sum()) if small else sum(counts.tolist())) != have:
        raise InputError(f"adds up to {total}, but there are {have} {of}", file=file, field=name)


def file_of(origin: object, table: str) -> object:
    """Return the file that an error in a table names: `origin`, or where it is a mapping the table's."""
    return origin.get(table) if isinstance(origin, Mapping) else origin


# Whole numbers in given proportions, by largest remainder.


def apportion(total: int, weights: Sequence[float]) -> npt.NDArray[np.int64]:
    """Split `total` in proportion to `weights`; the parts add up to `total`, ties go to the first.

    Examples
    --------
    >>> apportion(10, [2, 1]).tolist()
    [7, 3]
    """
    whole = sum(map(Fraction, weights))
    exact = [Fraction(w) * total / whole for w in weights]
    parts = np.array([int(x) for x in exact], np.int64)
    by_remainder = sorted(range(len(exact)), key=lambda i: int(exact[i]) - exact[i])
    parts[by_remainder[: total - int(parts.sum())]] += 1
    return parts
