"""Workloads that papers derive from the one public trace of coflows: wide ones, those with skew, more skew."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column, optional_column
from workloads.coflows import PORT_SPEEDS, CoflowWorkload, make_coflow_workload, with_demands
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import RatedArrivals
from workloads.generators.deadline_coflows import Deadlines, draw_weights
from workloads.generators.draws import check_positive, check_whole, generator
from workloads.groups import first_rows
from workloads.isolation import isolated_s, with_port_speeds
from workloads.jobs import Float64Array, Int64Array
from workloads.limits import check_tasks
from workloads.transform.history import recorded
from workloads.transform.primitives import (
    W,
    Workload,
    arrivals_s,
    arriving_at,
    as_coflows,
    set_column,
    take,
    with_tables,
)

CV_MEDIAN, CV_P90 = 0.34, 3.1
"""Variation of what senders send in Microsoft's cluster, in Mantri (OSDI 2010) as Philae takes it."""

_NEAREST = 0.95
"""The largest c.v. as a share of its bound, at which one sender would send everything."""
_LEAST = 0.01
"""No sender has less than this share of the mean, so that flows are not absurdly short."""
_DIGITS = 9


def keep_coflows(
    workload: Workload, wider_than: int | None = None, skew_above: float | None = None
) -> CoflowWorkload:
    """Return the coflows that are wide enough and have skew enough; their times and ids stay.

    Parameters
    ----------
    workload : CoflowWorkload
    wider_than : int, optional
        Keep coflows of more flows than this: 7 for Philae's wide-only trace.
    skew_above : float, optional
        Keep coflows whose longest flow is more than this many times their shortest: 1 to 5 for Philae's
        low-skew-filtered traces.

    Raises
    ------
    InputError
        The workload has no coflows, an option is out of range, none is given, or nothing is left.
    """
    coflows = as_coflows(workload, "width and skew are of coflows")
    if wider_than is None and skew_above is None:
        raise InputError("give --wider-than, --skew-above or both", field="wider_than")
    keep = np.ones(coflows.num_coflows, bool)
    if wider_than is not None:
        check_whole("wider_than", wider_than, 0, 2**40)
        keep &= column(coflows.coflows, "width") > wider_than
    if skew_above is not None:
        check_positive("skew_above", skew_above)
        keep &= flow_skew(coflows) > skew_above
    if not keep.any():
        raise InputError(f"none of the coflows of {coflows.name} is so wide and so skewed")
    made = take(coflows, np.flatnonzero(keep))
    options = {"wider_than": wider_than, "skew_above": skew_above}
    outcome = f"{made.num_coflows:,} of {coflows.num_coflows:,} coflows, {made.num_flows:,} flows"
    return recorded(made, "filter", options, outcome)


def flow_skew(workload: CoflowWorkload) -> Float64Array:
    """Return the longest over the shortest flow of each coflow: shape (C,)."""
    arrays = workload.arrays()
    first = arrays.first_flow[:-1]
    ratio: Float64Array = np.maximum.reduceat(arrays.size_bytes, first)
    ratio /= np.minimum.reduceat(arrays.size_bytes, first)
    return ratio


def skew(
    workload: Workload,
    cv_median: float = CV_MEDIAN,
    cv_p90: float = CV_P90,
    of: str = "senders",
    seed: int = DEFAULT_SEED,
) -> CoflowWorkload:
    """Return the coflows with what each receiver gets divided again, and unequally, among those that send to it.

    What a receiver gets in all stays. Each sender of a coflow has a weight, and a receiver's flows are in
    proportion to their senders' weights: in a shuffle the coefficient of variation (c.v., the standard deviation
    over the mean) of what the senders send is that of their weights.

    1. Over all coflows the c.v. have the median and the 90th percentile that are asked for. Between them and beyond,
       the logarithm of the c.v. is linear in the rank: with the defaults the highest is 5.4.
    2. The c.v. of n senders is below ``sqrt(n - 1)``, so that a narrow coflow cannot have a high one. From the
       highest down each c.v. goes to a coflow drawn from those that can have it (to 95 % of their bound). Where none
       is left, the one with most senders gets what it can. A coflow of one sender has c.v. 0.
    3. The weights of n senders are ``exp(s z)`` of normal z, with the s that gives exactly that c.v.; none is below a
       hundredth of their mean.

    With ``of="flows"`` each receiver has weights of its own for those that send to it, drawn with its coflow's c.v.:
    flows are as unequal, but no sender has most of a whole coflow, so that its port does not become a bottleneck.

    A note compares the values reached with those asked for.

    Parameters
    ----------
    workload : CoflowWorkload
    cv_median, cv_p90 : float
        By default as in Philae's Mantri-like trace.
    of : str
        What the c.v. are of: what the ``senders`` of a coflow send, or the ``flows`` to a receiver.
    seed : int

    Raises
    ------
    InputError
        The workload has no coflows, or an option is out of range.
    """
    coflows = as_coflows(workload, "width and skew are of coflows")
    for name, value in (("cv_median", cv_median), ("cv_p90", cv_p90)):
        check_positive(name, value)
    if of not in ("senders", "flows"):
        raise InputError(f"{of!r} is neither senders nor flows", field="of")
    if cv_p90 < cv_median:
        raise InputError(f"{cv_p90!r} is below the median, {cv_median!r}", field="cv_p90")
    rng = generator(seed)
    count = coflows.num_coflows
    arrays = coflows.arrays()
    of_flow = np.repeat(np.arange(count), np.diff(arrays.first_flow))
    sender, receiver = (
        np.unique(of_flow * coflows.num_ports + port, return_inverse=True)[1]
        for port in (arrays.ingress, arrays.egress)
    )
    senders = column(coflows.coflows, "senders")

    rank = np.linspace(0, 1, count)
    wanted = cv_median * (cv_p90 / cv_median) ** ((rank - 0.5) / 0.4)
    given = _handed_out(rng, wanted, _NEAREST * np.sqrt(senders - 1))
    by_receiver, flows_in = np.argsort(receiver, kind="stable"), np.bincount(receiver)
    of_receiver = of_flow[by_receiver][first_rows(flows_in)[:-1]]
    if of == "senders":
        weight = _weights(rng, senders, given)[sender]
    else:
        most = _NEAREST * np.sqrt(flows_in - 1)  # not every sender of a coflow sends to each of its receivers
        weight = np.empty(len(receiver))
        weight[by_receiver] = _weights(rng, flows_in, np.minimum(given[of_receiver], most))
    total = np.bincount(receiver, arrays.size_bytes)
    sizes = weight * (total / np.bincount(receiver, weight))[receiver]

    made = with_tables(
        coflows,
        flows=set_column(coflows.flows, "size_bytes", sizes),
        coflows=set_column(coflows.coflows, "size_bytes", np.add.reduceat(sizes, arrays.first_flow[:-1])),
    )
    if of == "senders":
        got, what = _variation(np.bincount(sender, sizes), senders), "what senders send"
    else:
        of_each = _variation(sizes[by_receiver], flows_in)
        got, what = np.bincount(of_receiver, of_each) / np.bincount(of_receiver), "the flows to a receiver"
    options = {"cv_median": cv_median, "cv_p90": cv_p90, "of": of, "seed": seed}
    outcome = (
        f"c.v. of {what}: median {np.quantile(got, 0.5):.3g} ({cv_median:g} asked for), 90th percentile "
        f"{np.quantile(got, 0.9):.3g} ({cv_p90:g}); {int((senders == 1).sum()):,} of {count:,} coflows have one sender"
    )
    return recorded(made, "skew", options, outcome, note=True)


def _handed_out(rng: np.random.Generator, wanted: Float64Array, most: Float64Array) -> Float64Array:
    """Return the c.v. of each coflow: `wanted`, in ascending order, given to coflows that can have so much."""
    drawn = rng.random(len(wanted)).tolist()
    order = rng.permutation(len(most))
    widest_first = order[np.argsort(-most[order], kind="stable")].tolist()
    given = np.zeros(len(most))
    able: list[int] = []
    seen = 0
    for cv, chance in zip(wanted[::-1].tolist(), drawn, strict=True):
        while seen < len(most) and most[widest_first[seen]] >= cv:
            able.append(widest_first[seen])
            seen += 1
        if able:
            at = int(chance * len(able))
            able[at], able[-1] = able[-1], able[at]
            given[able.pop()] = cv
        else:
            coflow = widest_first[seen]
            given[coflow] = most[coflow]
            seen += 1
    return given


def _weights(rng: np.random.Generator, senders: Int64Array, cv: Float64Array) -> Float64Array:
    """Return weights of senders with mean 1 in each coflow and that coefficient of variation (step 3)."""
    first = first_rows(senders)
    normal = rng.standard_normal(int(first[-1]))
    normal -= np.repeat(np.maximum.reduceat(normal, first[:-1]), senders)  # no exponential overflows

    def weights(s: Float64Array) -> Float64Array:
        made = np.exp(np.repeat(s, senders) * normal)
        made /= np.repeat(np.add.reduceat(made, first[:-1]) / senders, senders)
        return np.maximum(made, _LEAST)

    low, high = np.zeros(len(cv)), np.full(len(cv), 1e6)
    for _ in range(70):
        middle = (low + high) / 2
        less = _variation(weights(middle), senders) < cv
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.round(weights(np.where(cv > 0, high, 0.0)), _DIGITS)  # the same on every machine


def _variation(values: npt.NDArray[Any], counts: Int64Array) -> Float64Array:
    """Return the coefficient of variation of each run of `counts` values."""
    first = first_rows(counts)[:-1]
    mean = np.add.reduceat(values, first) / counts
    square = np.add.reduceat((values / np.repeat(mean, counts) - 1) ** 2, first) / counts
    return np.sqrt(square)


# Deadlines and weights laid over coflows, coflows drawn from a trace, and other times of arrival.
#
# Together they make of the Facebook trace the workloads that DCoflow (IFIP Networking 2022) is evaluated on::
#
#     emu workload draw FB2010-1Hr-150-0.txt drawn --count 40 --max-width 40 --ports 10
#     emu workload deadlines drawn offline --most 2 --port-speed "1 Gbps"
#     emu workload retime offline online --rate-per-s 4

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
