"""Description of a workload of coflows: widths, sizes, skew, and the load of the ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.arrow import column, optional_column
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError
from workloads.info.common import (
    QUANTILES,
    Distribution,
    describe_arrivals,
    number,
    quantiles,
    render_arrivals,
    row,
    share,
)
from workloads.isolation import most_on_a_port
from workloads.jobs import Float64Array, Int64Array
from workloads.transform.coflows import flow_skew
from workloads.transform.load import fabric_bytes_per_s
from workloads.transform.selection import NARROW_FLOWS, SHORT_FLOW_BYTES
from workloads.units import format_quantity

THIN_FLOWS = 7
SMALL_BYTES = 100e6
_FEW = 8
"""The most weights that are shown one by one."""
_ROUNDED = 1e-3
"""A deadline that is too early by less than this share was most likely rounded: published instances have decimals."""
PORT_SPEEDS_BPS = (1e9, 10e9, 40e9)

_LABELS = {
    "width": "flows",
    "senders": "senders",
    "receivers": "receivers",
    "size_bytes": "size (MB)",
    "longest_flow_bytes": "longest (MB)",
    "skew": "skew",
    "bottleneck_bytes": "bottleneck(MB)",
}


class _Coflows(NamedTuple):
    """Figures of each coflow: shape (C,)."""

    width: Int64Array
    senders: Int64Array
    receivers: Int64Array
    size_bytes: Float64Array
    longest_flow_bytes: Float64Array
    skew: Float64Array
    bottleneck_bytes: Float64Array


def describe(workload: CoflowWorkload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of coflows.

    ``offered_load`` is the bytes of all coflows over the span of the arrivals and the bandwidth of all ports in one
    direction, by the speed of a port (bit/s), and as ``stated`` if the workload states the speeds; None when all arrive
    at once. ``busiest_ports`` are the ports that send and receive most. ``coflow`` holds quantiles over coflows: number
    of flows, senders and receivers, bytes in all, of the longest flow and of the busiest port, and skew, the longest
    flow over the shortest. ``flows_of_same_ports`` are flows between the same ports as an earlier flow of their coflow.
    ``bins`` groups coflows by size and width, as Varys (SIGCOMM 2014): short is a longest flow below 5 MB, narrow up to
    50 flows; and as Philae (its Table 4): small is below 100 MB, thin up to 7 flows. ``time_to_deadline_s`` holds
    quantiles over the coflows with a deadline, ``deadline_factor`` those of this time over the time that a coflow takes
    alone, if the workload states the speed of its ports (else None), ``weights`` the number of coflows by weight, as
    text, if there are few weights.

    Raises
    ------
    InputError
        Numbers of nodes are given.
    """
    if len(nodes):
        raise InputError(
            f"{workload.name} has coflows on {workload.num_ports:,} ports of its own; its load depends on "
            "the speed of a port",
            field="nodes",
        )
    figures = _figures(workload)
    total = float(figures.size_bytes.sum())
    times_s = column(workload.coflows, "arrival_s")
    arrivals = describe_arrivals(times_s, {"coflows": None, "bytes": figures.size_bytes})
    span_s = arrivals["span_s"]
    return {
        "name": workload.name,
        "family": "coflows",
        "coflows": workload.num_coflows,
        "flows": workload.num_flows,
        "ports": workload.num_ports,
        **_deadlines(workload),
        "first_arrival_s": float(times_s[0]),
        **arrivals,
        "size_bytes": total,
        "flows_to_own_port": int(
            (column(workload.flows, "ingress") == column(workload.flows, "egress")).sum()
        ),
        "flows_of_same_ports": _flows_of_same_ports(workload),
        "offered_bytes_per_s": total / span_s if span_s > 0 else None,
        "offered_load": _offered_load(workload, total / span_s) if span_s > 0 else None,
        "busiest_ports": {side: _busiest(workload, side) for side in ("ingress", "egress")},
        "quantiles": list(QUANTILES),
        "coflow": {name: quantiles(values) for name, values in figures._asdict().items()},
        "bins": _bins(figures),
    }


def distributions(workload: CoflowWorkload) -> list[Distribution]:
    """Return flows, bytes and skew of coflows."""
    figures = _figures(workload)
    return [
        Distribution("width", "flows of a coflow", "coflows", {"all": figures.width}),
        Distribution("size_bytes", "size of a coflow (bytes)", "coflows", {"all": figures.size_bytes}),
        Distribution("skew", "longest over shortest flow", "coflows", {"all": figures.skew}),
    ]


def render(d: dict[str, Any]) -> list[str]:
    """Return the lines of a description of coflows."""
    lines = [
        f"{d['name']}: {d['coflows']:,} coflows, {d['flows']:,} flows, {d['ports']:,} ports",
        *render_arrivals(d, {"coflows": "coflows", "bytes": "bytes"}),
        f"size       {format_quantity(d['size_bytes'], 'B')}, {d['flows_to_own_port']:,} flows from a port to itself",
    ]
    if again := d["flows_of_same_ports"]:
        lines[-1] += f", {again:,} between the ports of another of their coflow"
    if d["offered_load"] is not None:
        loads = [
            f"{load:.3f} on ports " + ("as stated" if speed == "stated" else f"of {speed / 1e9:g} Gbps")
            for speed, load in d["offered_load"].items()
        ]
        lines += [
            f"busy       {format_quantity(d['offered_bytes_per_s'], 'B')}/s on average",
            f"load       {', '.join(loads)}",
        ]
    busiest = [
        f"{port['port']} {verb} {format_quantity(port['bytes'], 'B')} ({port['times_mean']:.2f} times the mean)"
        for verb, port in zip(("sends", "receives"), d["busiest_ports"].values(), strict=True)
    ]
    lines.append(f"busiest    port {', port '.join(busiest)}")
    lines += _render_deadlines(d)
    lines += ["", "all coflows", row("quantile", [f"{q} %" for q in d["quantiles"]])]
    for name, label in _LABELS.items():
        scale = 1e6 if name.endswith("_bytes") else 1
        lines.append(row(label, [number(x / scale) for x in d["coflow"][name]]))
    for source, bins in d["bins"].items():
        lines += ["", f"{_BINS[source]}:"]
        lines += [
            f"  {name.replace('_', ' and '):<18}{b['coflows']:>9,} coflows ({b['coflow_share']:>7.2%}), "
            f"{b['byte_share']:>7.2%} of bytes"
            for name, b in bins.items()
        ]
    return lines


_BINS = {
    "varys": f"bins of Varys (short: flows below {SHORT_FLOW_BYTES / 1e6:g} MB; narrow: to {NARROW_FLOWS} flows)",
    "philae": f"bins of Philae (small: below {SMALL_BYTES / 1e6:g} MB in all; thin: to {THIN_FLOWS} flows)",
}


def _deadlines(workload: CoflowWorkload) -> dict[str, Any]:
    """Return the figures of deadlines and weights."""
    relative_s = optional_column(workload.coflows, "deadline_s") - column(workload.coflows, "arrival_s")
    known = ~np.isnan(relative_s)
    factor, early, rounded = None, None, None
    if known.any():
        arrays = workload.arrays()
        alone_s = most_on_a_port(arrays, arrays.ingress_bytes_per_s, arrays.egress_bytes_per_s)
        if not np.isnan(alone_s).any():
            factor = relative_s[known] / alone_s[known]
            # In nanoseconds, as in a run, so that both miss the same deadlines.
            left_ns = arrays.deadline_ns[known] - arrays.arrival_ns[known]
            missed = left_ns < np.ceil(alone_s[known] * 1e9 * (1 - 1e-12))
            early, rounded = int(missed.sum()), int((missed & (factor >= 1 - _ROUNDED)).sum())
    found, counts = np.unique(column(workload.coflows, "weight"), return_counts=True)
    weights = None
    if len(found) <= _FEW:
        each = zip(found.tolist(), counts.tolist(), strict=True)
        weights = {repr(weight).removesuffix(".0"): count for weight, count in each}
    return {
        "with_deadline": int(known.sum()),
        "time_to_deadline_s": quantiles(relative_s[known]),
        "deadline_factor": None if factor is None else quantiles(factor),
        "deadlines_too_early": early,
        "deadlines_rounded": rounded,
        "weights": weights,
        "mean_weight": float(np.average(found, weights=counts)),
    }


def _render_deadlines(d: dict[str, Any]) -> list[str]:
    lines = []
    if d["with_deadline"]:
        least, median, most = (d["time_to_deadline_s"][d["quantiles"].index(q)] for q in (0, 50, 100))
        line = (
            f"deadlines  {d['with_deadline']:,} coflows have one, {least:.4g} to {most:.4g} s after the arrival, "
            f"median {median:.4g} s"
        )
        if (factor := d["deadline_factor"]) is not None:
            least, median, most = (factor[d["quantiles"].index(q)] for q in (0, 50, 100))
            line += f"; {least:.4g} to {most:.4g} times what they take alone, median {median:.4g}"
        if early := d["deadlines_too_early"]:
            line += f"; {early:,} cannot be met even alone"
            if rounded := d["deadlines_rounded"]:
                line += f", {rounded:,} of them by less than {_ROUNDED:.1%} of that, as by rounding"
        lines.append(line)
    if d["weights"] is None:
        lines.append(f"weights    mean {d['mean_weight']:.4g}")
    elif [*d["weights"]] != ["1"]:
        each = ", ".join(f"{weight}: {count:,} coflows" for weight, count in d["weights"].items())
        lines.append(f"weights    {each}")
    return lines


def _figures(workload: CoflowWorkload) -> _Coflows:
    arrays = workload.arrays()
    sizes, first = arrays.size_bytes, arrays.first_flow[:-1]
    width = column(workload.coflows, "width")
    longest = np.maximum.reduceat(sizes, first)
    one = np.ones(workload.num_ports)
    return _Coflows(
        width,
        column(workload.coflows, "senders"),
        column(workload.coflows, "receivers"),
        column(workload.coflows, "size_bytes"),
        longest,
        flow_skew(workload),
        most_on_a_port(arrays, one, one),
    )


def _flows_of_same_ports(workload: CoflowWorkload) -> int:
    arrays = workload.arrays()
    of_flow = np.repeat(np.arange(workload.num_coflows), np.diff(arrays.first_flow))
    sender = np.unique(of_flow * workload.num_ports + arrays.ingress, return_inverse=True)[1]
    pair = np.sort(sender * workload.num_ports + arrays.egress)
    return int(np.count_nonzero(pair[1:] == pair[:-1]))


def _bins(figures: _Coflows) -> dict[str, dict[str, dict[str, Any]]]:
    wide, thick = figures.width > NARROW_FLOWS, figures.width > THIN_FLOWS
    long, large = figures.longest_flow_bytes >= SHORT_FLOW_BYTES, figures.size_bytes >= SMALL_BYTES
    return {
        "varys": {
            "short_narrow": _bin(figures, ~long & ~wide),
            "long_narrow": _bin(figures, long & ~wide),
            "short_wide": _bin(figures, ~long & wide),
            "long_wide": _bin(figures, long & wide),
        },
        "philae": {
            "small_thin": _bin(figures, ~large & ~thick),
            "small_wide": _bin(figures, ~large & thick),
            "large_thin": _bin(figures, large & ~thick),
            "large_wide": _bin(figures, large & thick),
        },
    }


def _bin(figures: _Coflows, mask: npt.NDArray[np.bool_]) -> dict[str, Any]:
    sizes = figures.size_bytes
    return {
        "coflows": int(mask.sum()),
        "coflow_share": share(mask.sum(), len(mask)),
        "byte_share": share(sizes[mask].sum(), sizes.sum()),
    }


def _offered_load(workload: CoflowWorkload, bytes_per_s: float) -> dict[Any, float]:
    loads: dict[Any, float] = {}
    arrays = workload.arrays()
    if not np.isnan(arrays.ingress_bytes_per_s).any() and not np.isnan(arrays.egress_bytes_per_s).any():
        loads["stated"] = bytes_per_s / fabric_bytes_per_s(workload)
    for speed in PORT_SPEEDS_BPS:
        loads[int(speed)] = bytes_per_s / fabric_bytes_per_s(workload, speed)
    return loads


def _busiest(workload: CoflowWorkload, side: str) -> dict[str, Any]:
    carried = np.bincount(
        column(workload.flows, side), column(workload.flows, "size_bytes"), workload.num_ports
    )
    port = int(np.argmax(carried))
    return {"port": port, "bytes": float(carried[port]), "times_mean": float(carried[port] / carried.mean())}
