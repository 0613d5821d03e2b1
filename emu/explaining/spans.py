"""Spans of time as arrays: their overlap with another span, and the time that they cover together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from emu.explaining.event_record import NONE, IntArray, Record

NEVER = np.iinfo(np.int64).max


def whole(values: npt.NDArray[np.float64], scale: float = 1.0) -> IntArray:
    """Return values times a scale as whole numbers; -1 for what is not finite."""
    known = np.isfinite(values)
    return np.where(known, np.rint(np.where(known, values, 0.0) * scale), NONE).astype(np.int64)


def overlap_ns(begins: IntArray, ends: IntArray, begin_ns: int, end_ns: int) -> IntArray:
    """Return the length of each span within another one, ns."""
    return np.maximum(np.minimum(ends, end_ns) - np.maximum(begins, begin_ns), 0)


def merged(begins: IntArray, ends: IntArray) -> list[tuple[int, int]]:
    """Return the union of spans as pairs of times, in order."""
    found: list[tuple[int, int]] = []
    order = np.argsort(begins, kind="stable")
    for begin, end in zip(begins[order].tolist(), ends[order].tolist(), strict=True):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > begin:
            found.append((begin, end))
    return found


def covered_ns(begins: IntArray, ends: IntArray) -> int:
    """Return the length of the union of spans, ns; a span that ends before it begins counts as empty."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    before = np.concatenate([begins[:1], ends[:-1]])
    return int(np.maximum(ends - np.maximum(begins, before), 0).sum())


def until_ns(record: Record, begins: IntArray, ends: IntArray, of: IntArray) -> IntArray:
    """Return when each of the events `begins` is followed by one of `ends` of the same actor or task; NEVER if not.

    Parameters
    ----------
    begins, ends : ndarray of int64
        Rows of the record.
    of : ndarray of int64
        By row of the record: the actor, or task, that begins and ends in turn.
    """
    if begins.size == 0:
        return np.zeros(0, np.int64)
    rows = np.concatenate([begins, ends])
    order = np.lexsort((rows, record.time_ns[rows], of[rows]))
    following = np.empty(rows.size, np.int64)
    following[order] = np.append(order[1:], NONE)
    after = following[: begins.size]
    is_end = (after >= begins.size) & (of[rows[after]] == of[begins])
    return np.where(is_end, record.time_ns[rows[after]], NEVER)
