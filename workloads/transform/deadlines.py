"""Deadlines and weights laid over coflows, coflows drawn from a trace, and other times of arrival.

Together they make of the Facebook trace the workloads that DCoflow (IFIP Networking 2022) is evaluated on::

    emu workload draw FB2010-1Hr-150-0.txt drawn --count 40 --max-width 40 --ports 10
    emu workload deadlines drawn offline --most 2 --port-speed "1 Gbps"
    emu workload retime offline online --rate-per-s 4
"""

from __future__ import annotations

import numpy as np

from workloads.arrow import column, optional_column
from workloads.coflows import PORT_SPEEDS, CoflowWorkload, make_coflow_workload, with_demands
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import RatedArrivals
from workloads.generators.deadline_coflows import Deadlines, draw_weights
from workloads.generators.draws import check_positive, check_whole, generator
from workloads.isolation import isolated_s, with_port_speeds
from workloads.limits import check_tasks
from workloads.transform.history import recorded
from workloads.transform.primitives import (
    W,
    Workload,
    arrivals_s,
    arriving_at,
    as_coflows,
    take,
)

MAX_DRAWN = 10_000_000
# Streams of a seed: with the same seed, which is the default, steps draw nothing that goes together.
_DRAW, _DEADLINES, _WEIGHTS, _RETIME = range(0xDEAD, 0xDEAD + 4)


def deadlines(
    workload: Workload,
    least: float = Deadlines.least,
    most: float = Deadlines.most,
    share: float = Deadlines.share,
    port_speed_bps: float | None = None,
    seed: int = DEFAULT_SEED,
) -> CoflowWorkload:
    """Return the coflows with deadlines drawn for them, in place of those they have.

    A deadline is the arrival and a factor times what the coflow takes alone on the switch.

    Parameters
    ----------
    workload : CoflowWorkload
    least, most : float
        The factor is uniform between them; above 0.
    share : float
        Probability that a coflow has a deadline; 0 takes all away.
    port_speed_bps : float, optional
        Speed of the ports (bit/s) of which the workload states none; it does from now on, as deadlines are for it.
    seed : int

    Raises
    ------
    InputError
        The workload has no coflows; it does not state the speed of its ports and none is given, or the reverse; or an
        option is out of range.
    """
    coflows = as_coflows(workload, "deadlines are of coflows")
    limits = Deadlines(least, most, share)
    if port_speed_bps is not None:
        check_positive("port_speed_bps", port_speed_bps)
        if all(coflows.ports[name].null_count == 0 for name in PORT_SPEEDS):
            raise InputError(f"the ports of {coflows.name} state their speed", field="port_speed_bps")
        coflows = with_port_speeds(coflows, port_speed_bps / 8)
    rng = generator(seed, _DEADLINES)
    alone_s = isolated_s(coflows) if share > 0 else np.zeros(coflows.num_coflows)
    made = with_demands(coflows, deadline_s=limits.draw(rng, arrivals_s(coflows), alone_s))
    options = {"least": least, "most": most, "share": share, "port_speed_bps": port_speed_bps, "seed": seed}
    have = coflows.num_coflows - made.coflows["deadline_s"].null_count
    return recorded(made, "deadlines", options, f"{have:,} of {coflows.num_coflows:,} coflows have one")


def weights(
    workload: Workload, heavy_share: float = 0.3, heavy_weight: float = 2.0, seed: int = DEFAULT_SEED
) -> CoflowWorkload:
    """Return the coflows with weights drawn for them, in place of those they have: a heavy one, or 1.

    Parameters
    ----------
    workload : CoflowWorkload
    heavy_share : float
        Probability of `heavy_weight`; the defaults are those of CoflowLib's weighted instances. 0 gives all 1.
    heavy_weight : float
        Above 0.
    seed : int

    Raises
    ------
    InputError
        The workload has no coflows, or an option is out of range.
    """
    coflows = as_coflows(workload, "weights are of coflows")
    weight = draw_weights(generator(seed, _WEIGHTS), coflows.num_coflows, heavy_share, heavy_weight)
    options = {"heavy_share": heavy_share, "heavy_weight": heavy_weight, "seed": seed}
    heavy = int(np.count_nonzero(weight != 1))
    outcome = f"{heavy:,} of {coflows.num_coflows:,} coflows weigh {heavy_weight:g}, the others 1"
    return recorded(with_demands(coflows, weight=weight), "weights", options, outcome)


def draw(
    workload: Workload,
    count: int,
    max_width: int | None = None,
    ports: int | None = None,
    seed: int = DEFAULT_SEED,
) -> CoflowWorkload:
    """Return coflows drawn with replacement from those that are narrow enough, on fewer ports, all at time 0.

    As DCoflow's authors draw from the Facebook trace: port p becomes p modulo `ports`, so that flows of a coflow may
    come to lie between the same two ports, or from a port to itself; what a coflow has in flows is counted before.
    Coflows keep the time to their deadline and their weight, and are numbered from 0. (`sample` draws without
    replacement and keeps the mix; `resample` draws blocks of time.)

    Parameters
    ----------
    workload : CoflowWorkload
    count : int
        How many to draw.
    max_width : int, optional
        Draw from coflows of up to so many flows.
    ports : int, optional
        Of the switch; by default, and at most, as many as it has.
    seed : int

    Raises
    ------
    InputError
        The workload has no coflows, none is so narrow, ports that differ in speed would become one, or an option is
        out of range.
    """
    coflows = as_coflows(workload, "what is drawn are coflows")
    check_whole("count", count, 1, MAX_DRAWN)
    width = column(coflows.coflows, "width")
    able = np.arange(len(width))
    if max_width is not None:
        check_whole("max_width", max_width, 1, 2**40)
        able = np.flatnonzero(width <= max_width)
    if len(able) == 0:
        raise InputError(
            f"no coflow of {coflows.name} has so few flows; the narrowest has {width.min():,}",
            field="max_width",
        )
    places = able[generator(seed, _DRAW).integers(0, len(able), count)]
    check_tasks(int(width[places].sum()), "flows", field="count")
    drawn = arriving_at(take(coflows, places, np.arange(count)), np.zeros(count))
    if ports is not None:
        drawn = _folded(drawn, ports)
    options = {"count": count, "max_width": max_width, "ports": ports, "seed": seed}
    outcome = f"{count:,} from {len(able):,} of {coflows.num_coflows:,} coflows, {drawn.num_flows:,} flows"
    return recorded(drawn, "draw", options, outcome)


def retime(
    workload: W,
    arrivals: str = "poisson",
    rate_per_s: float = RatedArrivals.rate_per_s,
    batch_least: int = RatedArrivals.batch_least,
    batch_most: int = RatedArrivals.batch_most,
    burst_ratio: float = RatedArrivals.burst_ratio,
    burst_jobs: float = RatedArrivals.burst_jobs,
    period_s: float = RatedArrivals.period_s,
    amplitude: float = RatedArrivals.amplitude,
    seed: int = DEFAULT_SEED,
) -> W:
    """Return the workload with other times of arrival, in the order that it has: drawn at a rate, or all at time 0.

    A deadline moves with its coflow's arrival.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    arrivals, rate_per_s, batch_least, batch_most, burst_ratio, burst_jobs, period_s, amplitude
        As in `RatedArrivals`.
    seed : int

    Raises
    ------
    InputError
        An option is out of range, or the last arrival or deadline would be later than all times.
    """
    options = {
        "arrivals": arrivals,
        "rate_per_s": rate_per_s,
        "batch_least": batch_least,
        "batch_most": batch_most,
        "burst_ratio": burst_ratio,
        "burst_jobs": burst_jobs,
        "period_s": period_s,
        "amplitude": amplitude,
        "seed": seed,
    }
    process = RatedArrivals(
        arrivals, rate_per_s, batch_least, batch_most, burst_ratio, burst_jobs, period_s, amplitude
    )
    made = arriving_at(workload, process.times(generator(seed, _RETIME), len(arrivals_s(workload))))
    return recorded(made, "retime", options, f"the last arrives at {arrivals_s(made)[-1]:.6g} s")


def _folded(workload: CoflowWorkload, ports: int) -> CoflowWorkload:
    """Return the coflows on the first ports alone: port p becomes p modulo their number."""
    check_whole("ports", ports, 1, workload.num_ports)
    for side in PORT_SPEEDS:
        speed = optional_column(workload.ports, side)
        folded = speed[np.arange(len(speed)) % ports]
        if not np.array_equal(speed, folded, equal_nan=True):
            port = int(np.argmax((speed != folded) & ~(np.isnan(speed) & np.isnan(folded))))
            raise InputError(
                f"port {port} would become port {port % ports}, which has another {side}: {folded[port]:g} and not "
                f"{speed[port]:g}",
                field="ports",
            )
    arrays, table = workload.arrays(), workload.coflows
    return make_coflow_workload(
        workload.name,
        arrivals_s(workload),
        np.diff(arrays.first_flow),
        arrays.ingress % ports,
        arrays.egress % ports,
        arrays.size_bytes,
        ports,
        coflow_id=column(table, "coflow_id"),
        weight=arrays.weight,
        deadline_s=optional_column(table, "deadline_s"),
        ingress_bytes_per_s=arrays.ingress_bytes_per_s[:ports],
        egress_bytes_per_s=arrays.egress_bytes_per_s[:ports],
        metadata=workload.metadata,
        notes=workload.notes,
    )
