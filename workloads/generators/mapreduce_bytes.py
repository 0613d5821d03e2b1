"""Bytes of MapReduce jobs: what their maps read, and what reducers get of them.

Measured on SWIM's sample of Facebook's cluster of 2009 [1]_, a day of 5,894 jobs of which 1,446 shuffle, with a map for
each block of 64 MiB (`workloads.readers.swim`):

- Input of jobs of one map: the quantiles `_ONE_MAP`. Half of those without a shuffle (4,280 jobs) read less than 5 kB,
  half of those with one (782) less than 1 MB.
- Input of jobs of more maps: full blocks, and a last one of which the used part is uniform (832 jobs; its quartiles are
  at 22, 48 and 75 %, and 5 and 95 % at 3 and 95 %).
- Shuffle over input: the quantiles `_RATIOS` by number of maps. It falls with the size of the job: the rank correlation
  with the number of maps is -0.19, and all bytes of jobs of 10 maps and fewer are 3.2 times their input, of those of
  more than 1,000 maps 0.94 times.

Quantiles are of 5, 10, 25, 50, 75, 90, 95 and 99 %. The values of a workload are at evenly spaced ranks of the curves
through them, which are straight in the logarithm, and are given to jobs in random order, so that each workload meets
them.

Assumed: the curves end where the quantiles do (the largest ratio of the sample is 82); the ratio depends on nothing but
the number of maps, and not on the number of reducers. Output is left out: no workload of Emu has it.

References
----------
.. [1] github.com/SWIMProjectUCB/SWIM, workloadSuite/FB-2009_samples_24_times_1hr_0.tsv.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.jobs import Float64Array, Int64Array

BLOCK_BYTES = 64 << 20
"""What a map reads, except for the last of a job: a block of the file system of that time."""

_RANKS = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)
# By whether the job shuffles: input (B) of jobs of one map.
_ONE_MAP: dict[bool, tuple[float, ...]] = {
    False: (62, 62, 154, 5_030, 36_200, 52_000, 58_500, 13_800_000),
    True: (918, 3_010, 35_700, 961_000, 12_200_000, 27_500_000, 45_000_000, 55_900_000),
}
# By the most maps that jobs have: shuffle over input, of 981, 225, 181 and 59 jobs.
_RATIOS: dict[int, tuple[float, ...]] = {
    10: (0.000211, 0.000456, 0.5, 2.0, 3.31, 5.76, 8.14, 12.8),
    100: (4.67e-6, 0.00096, 0.0423, 1.1, 2.83, 5.97, 6.94, 9.37),
    1_000: (1.8e-6, 3.19e-5, 0.00932, 1.03, 1.23, 3.03, 4.11, 7.47),
    2**62: (3.78e-8, 2.72e-7, 0.00292, 0.24, 1.2, 2.97, 4.61, 8.19),
}


class Bytes(NamedTuple):
    """Bytes of J jobs: arrays of shape (J,), whole numbers.

    Attributes
    ----------
    read : ndarray of float64
        By all maps; at least 1.
    shuffled : ndarray of float64
        From all maps to all reducers: 0 of jobs that do not shuffle, else at least 1.
    """

    read: Float64Array
    shuffled: Float64Array


def draw_bytes(
    rng: np.random.Generator, maps: Int64Array, shuffles: npt.NDArray[np.bool_], scale: float = 1.0
) -> Bytes:
    """Return the bytes of jobs with so many maps.

    Parameters
    ----------
    maps : ndarray of int64, shape (J,)
    shuffles : ndarray of bool, shape (J,)
        Whether the job has reducers.
    scale : float
        Factor on all bytes, above 0.
    """
    read = (maps - rng.random(len(maps))) * BLOCK_BYTES
    for with_shuffle, curve in _ONE_MAP.items():
        here = np.flatnonzero((maps == 1) & (shuffles == with_shuffle))
        read[here] = _on_curve(rng, curve, len(here))
    shuffled, fewest = np.zeros(len(maps)), 0
    for most, curve in _RATIOS.items():
        here = np.flatnonzero(shuffles & (maps > fewest) & (maps <= most))
        shuffled[here] = read[here] * _on_curve(rng, curve, len(here))
        fewest = most
    return Bytes(_whole(read * scale), np.where(shuffles, _whole(shuffled * scale), 0.0))


def _whole(size: Float64Array) -> Float64Array:
    return np.maximum(np.rint(size), 1.0)


def _on_curve(rng: np.random.Generator, curve: tuple[float, ...], count: int) -> Float64Array:
    """Return values at evenly spaced ranks of a curve, in random order."""
    ranks = (rng.permutation(count) + 0.5) / max(count, 1)
    return np.exp(np.interp(ranks, _RANKS, np.log(curve)))
