"""When jobs arrive: Poisson, bursty (on/off) or diurnal, all with the same mean rate.

``poisson``
    Independent exponential gaps.
``bursty``
    An interrupted Poisson process [1]_: bursts in which jobs come at `burst_ratio` times the mean rate, and
    silences between them, both of exponential length. A burst holds `burst_jobs` jobs in the mean. Gaps are
    independent, with the squared coefficient of variation ``1 + 2 burst_jobs (1 - 1 / burst_ratio)**2``: 13.8
    by default, as in the excerpt of the Yahoo trace (measured: 3.7 squared).
``diurnal``
    A Poisson process whose rate is proportional to ``1 + amplitude sin(2π t / period_s)``: it starts at the
    mean, rising. Drawn by inverting the cumulative rate [2]_, so that the rate over the span of the arrivals,
    whole periods or not, has the mean that was asked for.

References
----------
.. [1] A. Kuczura. The Interrupted Poisson Process as an Overflow Process. Bell System Technical Journal
   52(3), 1973. doi:10.1002/j.1538-7305.1973.tb01971.x
.. [2] E. Çinlar. Introduction to Stochastic Processes, section 4.7. Prentice-Hall, 1975.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workloads.errors import InputError
from workloads.generators.draws import MAX_JOBS, check_positive, check_share, check_whole
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S, Float64Array

PROCESSES = ("poisson", "bursty", "diurnal")
_STEPS = 4096
_GRID = np.arange(_STEPS + 1) / _STEPS


@dataclass(frozen=True)
class Arrivals:
    """An arrival process; `times` draws from it.

    Attributes
    ----------
    process : str
        ``poisson``, ``bursty`` or ``diurnal``.
    burst_ratio : float
        ``bursty``: the rate in a burst over the mean rate, 1 or more.
    burst_jobs : float
        ``bursty``: mean number of jobs in a burst, 1 or more.
    period_s : float
        ``diurnal``: length of a period.
    amplitude : float
        ``diurnal``: how far the rate swings about its mean, as a share of it, 0..1.

    Raises
    ------
    InputError
        There is no such process, or a parameter is out of its range.
    """

    process: str = "poisson"
    burst_ratio: float = 5.0
    burst_jobs: float = 10.0
    period_s: float = 86400.0
    amplitude: float = 0.5

    def __post_init__(self) -> None:
        if self.process not in PROCESSES:
            raise InputError(
                f"unknown arrival process {self.process!r}{did_you_mean(self.process, PROCESSES)}",
                field="arrivals",
            )
        for name in ("burst_ratio", "burst_jobs", "period_s"):
            check_positive(name, getattr(self, name))
        for name, why in (
            ("burst_ratio", "jobs come faster in a burst than in the mean"),
            ("burst_jobs", "a burst holds a job or more in the mean"),
        ):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)!r} is below 1; {why}", field=name)
        check_share("amplitude", self.amplitude)

    def times(self, rng: np.random.Generator, count: int, mean_gap_s: float) -> Float64Array:
        """Return the first `count` arrivals from time 0 on, in seconds and in order.

        The last comes after ``count * mean_gap_s`` in the mean; with ``bursty`` later by a few gaps, as the
        first burst must be waited for.
        """
        # Time in mean gaps first: points of a Poisson process of rate 1.
        points = np.cumsum(rng.standard_exponential(count))
        if self.process == "bursty":
            return _with_silences(rng, points / self.burst_ratio, self) * mean_gap_s
        if self.process == "diurnal":
            span_s = count * mean_gap_s
            return _by_inversion(points / count, span_s / self.period_s, self.amplitude) * span_s
        return points * mean_gap_s

    def __str__(self) -> str:
        """Return the process and the parameters it has, as metadata state them."""
        if self.process == "bursty":
            return f"bursty burst_ratio={self.burst_ratio:g} burst_jobs={self.burst_jobs:g}"
        if self.process == "diurnal":
            return f"diurnal period_s={self.period_s:g} amplitude={self.amplitude:g}"
        return self.process


def _with_silences(rng: np.random.Generator, busy: Float64Array, process: Arrivals) -> Float64Array:
    """Return arrivals by the clock that also runs in silences, given those by the clock of the bursts.

    Bursts end as a Poisson process on their own clock; at each end stands a silence. Whether time 0 lies in
    a burst is drawn by the share of time that bursts have.
    """
    burst = process.burst_jobs / process.burst_ratio
    silence = burst * (process.burst_ratio - 1)
    ends = np.sort(rng.random(rng.poisson(busy[-1] / burst))) * busy[-1]
    starts_silent = rng.random() * process.burst_ratio >= 1
    waited = np.cumsum(rng.standard_exponential(len(ends) + 1)) * silence
    waited -= 0.0 if starts_silent else waited[0]
    return busy + waited[np.searchsorted(ends, busy)]


def _by_inversion(points: Float64Array, periods: float, amplitude: float) -> Float64Array:
    """Return arrivals, in spans, for `points` of a uniform rate in spans, where a span has so many periods.

    The rate is constant over 1/4096 of a period. Whole periods need no inversion: each holds its share.
    """
    at = np.append(_GRID, periods)
    # Rounded, so that every machine's cosine gives the same bits.
    rate_sum = at + np.round(amplitude * (1 - np.cos(2 * np.pi * at)) / (2 * np.pi), 12)
    whole, rest = np.divmod(points * rate_sum[-1], 1.0)
    # Interpolation may be off order by a last bit.
    return np.maximum.accumulate((whole + np.interp(rest, rate_sum[:-1], _GRID)) / periods)


# Arrivals at a given rate: one by one or in batches, or all at time 0.
#
# The processes are those of `Arrivals`. In batches the process is that of the batches: as
# many arrive together as is drawn for each, and batches are as much rarer as they are large in the mean, so that the
# rate of what arrives stays (as in DCoflow, IFIP Networking 2022, section IV-C).

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
