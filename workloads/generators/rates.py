"""Arrivals at a given rate: one by one or in batches, or all at time 0.

The arrival processes are those of `workloads.generators.arrivals`. In batches the process is that of the batches: as
many arrive together as is drawn for each, and batches are as much rarer as they are large in the mean, so that the
rate of what arrives stays (as in DCoflow, IFIP Networking 2022, section IV-C).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workloads.errors import InputError
from workloads.generators.arrivals import PROCESSES, Arrivals
from workloads.generators.draws import MAX_JOBS, check_positive, check_whole
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S, Float64Array

AT_ONCE = "at-once"
RATED_PROCESSES = (AT_ONCE, *PROCESSES)
_DIGITS = 9


@dataclass(frozen=True)
class RatedArrivals:
    """Arrivals at a rate; `times` draws them.

    Attributes
    ----------
    process : str
        ``at-once``: all at time 0, and no other attribute counts. Else one of `PROCESSES`.
    rate_per_s : float
        Mean number of arrivals (not of batches) per second.
    batch_least, batch_most : int
        How many arrive together, uniformly; 1 and 1: one by one.
    burst_ratio, burst_jobs, period_s, amplitude : float
        As in `Arrivals`; a burst has so many batches.

    Raises
    ------
    InputError
        There is no such process, or an attribute is out of its range.
    """

    process: str = AT_ONCE
    rate_per_s: float = 4.0
    batch_least: int = 1
    batch_most: int = 1
    burst_ratio: float = Arrivals.burst_ratio
    burst_jobs: float = Arrivals.burst_jobs
    period_s: float = Arrivals.period_s
    amplitude: float = Arrivals.amplitude

    def __post_init__(self) -> None:
        if self.process not in RATED_PROCESSES:
            hint = did_you_mean(self.process, RATED_PROCESSES)
            raise InputError(f"unknown arrival process {self.process!r}{hint}", field="arrivals")
        check_positive("rate_per_s", self.rate_per_s)
        check_whole("batch_least", self.batch_least, 1, MAX_JOBS)
        check_whole("batch_most", self.batch_most, 1, MAX_JOBS)
        if self.batch_most < self.batch_least:
            raise InputError(
                f"{self.batch_most} is below batch_least, {self.batch_least}", field="batch_most"
            )
        self._of_batches("poisson" if self.process == AT_ONCE else self.process)  # checks the others

    def times(self, rng: np.random.Generator, count: int) -> Float64Array:
        """Return the first `count` arrivals, in order, in seconds rounded to the nanosecond; the last batch is cut."""
        if self.process == AT_ONCE:
            return np.zeros(count)
        mean = (self.batch_least + self.batch_most) / 2
        batches = math.ceil(count / self.batch_least)  # enough even if all are of the least size
        sizes = rng.integers(self.batch_least, self.batch_most, batches, endpoint=True)
        batches = 1 + int(np.searchsorted(np.cumsum(sizes), count))
        times_s = self._of_batches(self.process).times(rng, batches, mean / self.rate_per_s)
        return np.round(np.repeat(times_s, sizes[:batches])[:count], _DIGITS)

    def times_within(self, rng: np.random.Generator, count: int, field: str) -> Float64Array:
        """Return what `times` does; refuse arrivals later than all times, naming the option that sets the rate.

        Raises
        ------
        InputError
            The last would arrive too late.
        """
        times_s = self.times(rng, count)
        if times_s[-1] > MAX_TIME_S:
            raise InputError(f"the last job would arrive after {times_s[-1]:.2g} s", field=field)
        return times_s

    def __str__(self) -> str:
        """Return the process and the parameters it has, as metadata state them."""
        if self.process == AT_ONCE:
            return self.process
        batches = f" batch_least={self.batch_least} batch_most={self.batch_most}" * (self.batch_most > 1)
        return f"{self._of_batches(self.process)} rate_per_s={self.rate_per_s:g}{batches}"

    def _of_batches(self, process: str) -> Arrivals:
        return Arrivals(process, self.burst_ratio, self.burst_jobs, self.period_s, self.amplitude)
