"""Histograms of times from 1 ns to a century, in buckets as wide as 1/16 of the times in them.

Within each power of two there are 16 buckets of equal width, as in HdrHistogram: a quantile has an error of at
most 6 %, and to count a time takes a few shifts.
"""

import numpy as np

from actors.kernel.compiled import inlined

BUCKETS = 960
_STEPS = 16  # buckets in a power of two


@inlined
def bucket_of(time: int) -> int:
    """Return the bucket of a time, ns; negative times are in bucket 0."""
    bucket = max(time, np.int64(0))
    shift = np.int64(0)
    while bucket >= 2 * _STEPS:
        bucket >>= 1
        shift += 1
    return _STEPS * shift + bucket


@inlined
def note_time(histogram: np.ndarray, row: int, time: int) -> None:
    """Count a time, ns, in a row of a histogram [rows, BUCKETS]."""
    histogram[row, bucket_of(time)] += 1


def lower_edges() -> np.ndarray:
    """Return [BUCKETS + 1] the least time of each bucket, ns, and the end of the last one."""
    bucket = np.arange(BUCKETS + 1)
    shift = np.maximum(bucket // _STEPS - 1, 0)
    return (bucket - _STEPS * shift) << shift


def quantiles(counts: np.ndarray, shares: tuple[float, ...]) -> list[float]:
    """Return the times, ns, at or below which the given shares of those counted lie; 1.0 gives the largest.

    Args:
        counts: [BUCKETS], not all zero; within a bucket times are taken to be spread evenly.
    """
    edges = lower_edges()
    upto = np.concatenate([[0], np.cumsum(counts)])
    found = []
    for share in shares:
        rank = share * upto[-1]
        bucket = min(int(np.searchsorted(upto, rank, side="left")), BUCKETS)
        bucket = max(bucket - 1, int(np.flatnonzero(counts)[0]))
        part = (rank - upto[bucket]) / counts[bucket]
        width = edges[bucket + 1] - edges[bucket]
        found.append(float(edges[bucket] + max(part, 0.0) * max(width - 1, 0)))
    return found
