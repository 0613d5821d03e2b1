"""Workloads that papers derive from the one public trace of coflows: wide ones, those with skew, more skew."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.draws import check_positive, check_whole, generator
from workloads.groups import first_rows
from workloads.jobs import Float64Array, Int64Array
from workloads.transform.history import recorded
from workloads.transform.primitives import Workload, as_coflows, set_column, take, with_tables

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
