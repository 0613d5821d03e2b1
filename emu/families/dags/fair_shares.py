"""What dominant resource fairness would give to each job that is there, whatever the scheduler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]


class FairShares(NamedTuple):
    """The dominant share of a job that is there, the same for all of them, summed over time.

    With v_j the demand of the mean task of job j as shares of all machines, divided by its largest, it is 1 / max over
    resources of the sum of v_j over the jobs that are there (Parkes, Dolev and Shah, EC 2012), 0 where none is.
    """

    times_s: Float64Array  # (2 J,) when jobs come and go, ascending
    sums_s: Float64Array  # (2 J,) of it up to then, share times seconds

    def mean(self, begin_s: Float64Array, end_s: Float64Array) -> Float64Array:
        """Return its mean between times, each end after its begin."""
        until: Float64Array = np.interp(end_s, self.times_s, self.sums_s)
        return (until - np.interp(begin_s, self.times_s, self.sums_s)) / (end_s - begin_s)


def fair_shares(submit_s: Float64Array, end_s: Float64Array, demand: Float64Array) -> FairShares:
    """Return the share of jobs that are there from `submit_s` to `end_s`, shape (J,); `demand`, (J, R), as shares."""
    most = demand.max(axis=1, keepdims=True)
    profile = np.divide(demand, most, out=np.zeros_like(demand), where=most > 0)
    times = np.concatenate([submit_s, end_s])
    order = np.argsort(times, kind="stable")
    there = np.cumsum(np.repeat([1, -1], submit_s.size)[order])
    together = np.cumsum(np.concatenate([profile, -profile])[order], axis=0).max(axis=1)
    share = np.divide(1.0, together, out=np.zeros(order.size), where=(there > 0) & (together > 0.5))
    return FairShares(times[order], np.append(0.0, np.cumsum(share[:-1] * np.diff(times[order]))))
