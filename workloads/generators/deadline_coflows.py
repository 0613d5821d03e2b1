"""Coflows with deadlines: the synthetic traffic of DCoflow [1]_, as its authors' generator [2]_ makes it.

The switch has M ports on each side, all of one speed. One unit of volume is `mean_flow_bytes`, one unit of time what a
port takes for it: 1 s with the defaults, so that `rate_per_s` is the λ of the paper.

1. A coflow is of type 1 with probability `single_share`, else of type 2. The first is of type 1 and the second of type
   2, as in the authors' generator, where both are possible.
2. Type 1 has one flow, type 2 a number of flows that is uniform from ``ceil(2 M / 3)`` to M.
3. Flows go between pairs of an ingress and an egress port, drawn uniformly from all M² pairs, no pair twice in a
   coflow; a flow may go from a port to itself.
4. The volume of a flow is the absolute value of a normal variable: of mean 1 in type 1, of mean `wide_ratio` in type 2,
   of standard deviation `flow_sd` in both. It has five decimals, as in the published instances.
5. The deadline is the arrival and a factor, uniform in 1 to 2, times the time that the coflow takes alone.
6. A coflow has the weight `heavy_weight` with probability `heavy_share`, whatever its type, else 1.

Published instances (CoflowLib), measured: offline ``wide_ratio`` 0.8, online 1.0; weighted ones ``heavy_share`` 0.3.
Batches of the authors' code: ``batch_least`` 5, ``batch_most`` 15. The paper's text has lost most of its numbers; those
here are of the authors' code and instances.

What is drawn for one purpose does not depend on what another option is: with the same seed the same coflows arrive at
another rate, or have other deadlines.

References
----------
.. [1] Q.-T. Luu, O. Brun, R. El-Azouzi, F. De Pellegrini, B. J. Prabhu, C. Richier. DCoflow: Deadline-Aware Scheduling
   Algorithm for Coflows in Datacenter Networks. IFIP Networking 2022, section IV-A. arXiv:2205.01229.
.. [2] github.com/Nghason/arrayfactor-calc, generateTraces.m and Coflow2classesVol.m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workloads.coflows import MAX_BYTES, MAX_PORTS, CoflowWorkload, make_coflow_workload, with_demands
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import RatedArrivals
from workloads.generators.coflows import MAX_COFLOWS
from workloads.generators.draws import check_positive, check_share, check_whole, generator
from workloads.isolation import isolated_s
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array
from workloads.limits import check_tasks

# Deadlines and weights of coflows, drawn as the papers on deadlines draw them.
#
# A coflow's deadline is its arrival and a factor times the time that it takes alone (`workloads.isolation`); the factor
# is uniform in a range: 1 to 2 in DCoflow [1]_, 1 to 1 + x in Varys [2]_. Weights are of two values, as in the weighted
# instances of CoflowLib [3]_: 2 with probability 0.3, else 1, whatever else a coflow is.
#
# References
# ----------
# .. [1] Q.-T. Luu, O. Brun, R. El-Azouzi, F. De Pellegrini, B. J. Prabhu, C. Richier. DCoflow: Deadline-Aware
#    Scheduling Algorithm for Coflows in Datacenter Networks. IFIP Networking 2022. arXiv:2205.01229.
# .. [2] M. Chowdhury, Y. Zhong, I. Stoica. Efficient Coflow Scheduling with Varys. SIGCOMM 2014.
#    doi:10.1145/2619239.2626315
# .. [3] github.com/luuquangtrung/CoflowLib.

_NS = 1e9


@dataclass(frozen=True)
class Deadlines:
    """How deadlines are drawn.

    Attributes
    ----------
    least, most : float
        The factor on the time that a coflow takes alone is uniform between them. Below 1 no scheduler can meet it.
    share : float
        So many of the coflows have a deadline, each by chance.

    Raises
    ------
    InputError
        An attribute is out of its range; the field is the attribute's name behind `prefix`.
    """

    least: float = 1.0
    most: float = 2.0
    share: float = 1.0
    prefix: str = ""

    def __post_init__(self) -> None:
        for name in ("least", "most"):
            check_positive(self.prefix + name, getattr(self, name))
        if self.most < self.least:
            raise InputError(
                f"{self.most!r} is below {self.prefix}least, {self.least!r}", field=f"{self.prefix}most"
            )
        check_share(f"{self.prefix}share", self.share)

    def draw(
        self, rng: np.random.Generator, arrival_s: Float64Array, isolated_s: Float64Array
    ) -> Float64Array:
        """Return absolute deadlines (s), NaN for a coflow without one: shape (C,).

        The time to a deadline is rounded up to the nanosecond: a coflow that is alone meets one of factor 1.

        Raises
        ------
        InputError
            A deadline would be later than all times.
        """
        has, place = rng.random((2, len(arrival_s)))
        factor = self.least + place * (self.most - self.least)
        with np.errstate(over="ignore"):
            deadline_s = arrival_s + np.ceil(isolated_s * factor * _NS) / _NS
        deadline_s[has >= self.share] = np.nan
        if not (latest_s := float(np.fmax.reduce(deadline_s, initial=0.0))) <= MAX_TIME_S:
            raise InputError(
                f"makes a deadline at {latest_s:.2g} s; the most is {MAX_TIME_S:.0e} s",
                field=f"{self.prefix}most",
            )
        return deadline_s


def draw_weights(
    rng: np.random.Generator, count: int, heavy_share: float, heavy_weight: float
) -> Float64Array:
    """Return weights: `heavy_weight` with the probability `heavy_share`, else 1.

    Raises
    ------
    InputError
        An option is out of its range.
    """
    check_share("heavy_share", heavy_share)
    check_positive("heavy_weight", heavy_weight)
    if heavy_weight > MAX_BYTES:
        raise InputError(f"{heavy_weight!r} is more than {MAX_BYTES:.0e}", field="heavy_weight")
    return np.where(rng.random(count) < heavy_share, float(heavy_weight), 1.0)


_DECIMALS = 5


def deadline_coflows(
    *,
    coflows: int = 40,
    seed: int = DEFAULT_SEED,
    ports: int = 10,
    single_share: float = 0.6,
    least_width: int | None = None,
    most_width: int | None = None,
    mean_flow_bytes: float = 125e6,
    flow_sd: float = 0.2,
    wide_ratio: float = 0.8,
    port_speed_bps: float = 1e9,
    deadline_least: float = Deadlines.least,
    deadline_most: float = Deadlines.most,
    deadline_share: float = Deadlines.share,
    heavy_share: float = 0.0,
    heavy_weight: float = 2.0,
    arrivals: str = RatedArrivals.process,
    rate_per_s: float = RatedArrivals.rate_per_s,
    batch_least: int = RatedArrivals.batch_least,
    batch_most: int = RatedArrivals.batch_most,
    burst_ratio: float = RatedArrivals.burst_ratio,
    burst_jobs: float = RatedArrivals.burst_jobs,
    period_s: float = RatedArrivals.period_s,
    amplitude: float = RatedArrivals.amplitude,
) -> CoflowWorkload:
    """Return coflows with deadlines, of one flow or of many, as in the evaluation of DCoflow.

    Parameters
    ----------
    coflows, seed
        Number of coflows and seed.
    ports : int
        Ports of the switch, M.
    single_share : float
        Probability that a coflow has one flow.
    least_width, most_width : int, optional
        Flows of the others, uniformly; by default ``ceil(2 M / 3)`` and M, and at most M².
    mean_flow_bytes : float
        One unit of volume: the mean flow of coflows of one flow.
    flow_sd : float
        Standard deviation of flows, in units.
    wide_ratio : float
        Mean flow of the coflows of several flows, in units.
    port_speed_bps : float
        Speed of every port (bit/s). The workload states it, as deadlines are for it.
    deadline_least, deadline_most, deadline_share : float
        As in `Deadlines`.
    heavy_share, heavy_weight : float
        Probability of the weight `heavy_weight`, in place of 1.
    arrivals, rate_per_s, batch_least, batch_most, burst_ratio, burst_jobs, period_s, amplitude
        As in `RatedArrivals`: ``at-once`` (all at time 0), or a process with so many coflows per second, alone or in
        batches.

    Raises
    ------
    InputError
        A parameter is out of its range.

    Examples
    --------
    >>> made = deadline_coflows(coflows=3)
    >>> made.coflows["width"].to_pylist(), made.coflows["deadline_s"].null_count
    ([1, 8, 1], 0)
    """
    check_whole("coflows", coflows, 1, MAX_COFLOWS)
    check_whole("ports", ports, 1, MAX_PORTS)
    check_share("single_share", single_share)
    for name, value in (
        ("mean_flow_bytes", mean_flow_bytes),
        ("wide_ratio", wide_ratio),
        ("port_speed_bps", port_speed_bps),
    ):
        check_positive(name, value)
    if flow_sd != 0:
        check_positive("flow_sd", flow_sd)
    least, most = _widths(ports, least_width, most_width)
    check_tasks(coflows * (single_share + (1 - single_share) * (least + most) / 2), "flows", field="coflows")
    process = RatedArrivals(
        arrivals, rate_per_s, batch_least, batch_most, burst_ratio, burst_jobs, period_s, amplitude
    )
    limits = Deadlines(deadline_least, deadline_most, deadline_share, "deadline_")

    of_types, of_flows, of_times, of_deadlines, of_weights = (generator(seed, n) for n in range(5))
    weight = draw_weights(of_weights, coflows, heavy_share, heavy_weight)
    arrival_s = process.times(of_times, coflows)
    wide, width = _types(of_types, coflows, single_share, least, most)
    pairs = np.concatenate([of_flows.choice(ports**2, n, replace=False) for n in width.tolist()])
    size_bytes = _volumes(of_flows, np.repeat(wide, width), flow_sd, wide_ratio) * mean_flow_bytes
    speed = np.full(ports, port_speed_bps / 8)
    made = make_coflow_workload(
        "deadline-coflows",
        arrival_s,
        width,
        *np.divmod(pairs, ports),
        size_bytes,
        ports,
        weight=weight,
        ingress_bytes_per_s=speed,
        egress_bytes_per_s=speed,
        metadata={
            "origin": "generator deadline-coflows",
            "source": "synthetic traffic of DCoflow (IFIP Networking 2022) as its authors' generator makes it",
            "parameters": f"coflows={coflows} seed={seed} ports={ports} single_share={single_share:g} "
            f"least_width={least} most_width={most} mean_flow_bytes={mean_flow_bytes:g} flow_sd={flow_sd:g} "
            f"wide_ratio={wide_ratio:g} port_speed_bps={port_speed_bps:g} deadline_least={deadline_least:g} "
            f"deadline_most={deadline_most:g} deadline_share={deadline_share:g} heavy_share={heavy_share:g} "
            f"heavy_weight={heavy_weight:g} arrivals={process}",
            "trace_type": "0",
        },
    )
    alone_s = isolated_s(made)
    return with_demands(made, deadline_s=limits.draw(of_deadlines, arrival_s, alone_s))


def _widths(ports: int, least: int | None, most: int | None) -> tuple[int, int]:
    """Return the least and the most flows of a coflow of type 2."""
    pairs = ports**2
    most = max(ports, least or 1) if most is None else most
    check_whole("most_width", most, 1, pairs)
    least = min(-(-2 * ports // 3), most) if least is None else least
    check_whole("least_width", least, 1, pairs)
    if most < least:
        raise InputError(f"{most} is below least_width, {least}", field="most_width")
    return least, most


def _types(
    rng: np.random.Generator, count: int, single_share: float, least: int, most: int
) -> tuple[npt.NDArray[np.bool_], Int64Array]:
    """Return which coflows are of type 2, and how many flows each has (steps 1 and 2)."""
    of_type, of_width = rng.random((2, count))
    wide = of_type >= single_share
    if 0 < single_share < 1:
        wide[:2] = [False, True][:count]
    width = np.where(wide, least + np.floor(of_width * (most - least + 1)), 1.0)
    return wide, width.astype(np.int64)


def _volumes(
    rng: np.random.Generator, wide: npt.NDArray[np.bool_], flow_sd: float, wide_ratio: float
) -> Float64Array:
    """Return the volume of each flow in units (step 4); the least is one in the last decimal."""
    volumes = np.abs(np.where(wide, wide_ratio, 1.0) + flow_sd * rng.standard_normal(len(wide)))
    return np.maximum(np.round(volumes, _DECIMALS), 10.0**-_DECIMALS)
