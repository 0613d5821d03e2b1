"""The measurements of a live run: lateness, latency, load and backlog, and whether its times can be trusted.

All times are emulated time, as everywhere in a result, also wall times that were measured: they are divided
by the dilation. Shares of the CPU and rates are of wall time.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actors.environment import Pace
from actors.hosting.grouping import Grouping
from actors.hosting.outcome import NS, Outcome, Paced, Share
from actors.kernel.histogram import quantiles
from actors.setting import Setting

SATURATED = 0.8  # busy share from which a scheduler is saturated: handing messages to it takes time too
EXPLAINED = (
    0.5  # share of the lateness that must be the scheduler's own work; a shared machine may cause the rest
)
LEAST_SPAN_S = 0.001  # in which jobs arrive
MEMORY, CALLS, BOTH = "shared memory", "Ray", "shared memory and Ray"
LIVE_TIMELINE = ("backlog", "scheduler_backlog")


def live_timeline(
    timeline: Mapping[str, np.ndarray], shares: Sequence[Share], grouping: Grouping, step: int
) -> dict[str, np.ndarray]:
    """Return a timeline with the columns of `LIVE_TIMELINE`: the most events due and not handled, since the row before.

    There are `step` periods between two rows.
    """
    rows = timeline["time_s"].size
    backlogs = np.array([_paced(share).backlogs[: rows * step] for share in shares], np.int64)
    backlogs = backlogs.reshape(len(shares), rows, step).max(axis=2)
    of_schedulers = backlogs[[grouping.has_schedulers(k) for k in range(grouping.size)]]
    return {**timeline, "backlog": backlogs.sum(axis=0), "scheduler_backlog": of_schedulers.sum(axis=0)}


def describe_live(
    shares: Sequence[Share], grouping: Grouping, pace: Pace, setting: Setting, outcome: Outcome
) -> dict[str, Any]:
    """Return the measurements of a live run, as `summary.json` has them; `notes` are for the user."""
    paced = [_paced(share) for share in shares]
    arrivals_ns, _ = setting.scheduler.worlds.span_ns(setting)
    arrivals_s = int(arrivals_ns[-1] - arrivals_ns[0]) / NS
    span_s = max((int(outcome.finish_ns.max()) - int(arrivals_ns[0])) / NS, 1e-9)
    wall_s = span_s * pace.dilation
    lateness = np.sum([p.lateness for p in paced], axis=0)
    floor_s = _median_s(np.sum([p.floor[0] for p in paced], axis=0), pace)
    busy = outcome.servers["busy"][outcome.servers["served"] > 0] / NS / span_s
    batches, sent = sum(p.batches for p in paced), sum(p.sent for p in paced)
    partitions = [_describe_partition(share, grouping, k, arrivals_s) for k, share in enumerate(shares)]
    delay_s = setting.network.delay_s
    live: dict[str, Any] = {
        "dilation": pace.dilation,
        "lateness": {
            name: _spread_s(lateness[row])
            for row, name in enumerate(("nodes", "schedulers"))
            if lateness[row].any()
        },
        "message_latency": _spread_s(np.sum([p.latency[0] for p in paced], axis=0), pace.dilation),
        "network_delay_s": delay_s,
        "floor_s": floor_s,
        "exchange": _exchange(paced),
        "scheduler_cpu": {"busiest": float(busy.max(initial=0.0)), "sum": float(busy.sum())},
        "backlog": {
            "mean": float(sum(p.backlog_sum / max(p.turns, 1) for p in paced)),
            "max": max(p.backlog_max for p in paced),
        },
        "batches_per_s": batches / wall_s,
        "messages_per_batch": sent / batches if batches else 0.0,
        "partitions": partitions,
    }
    late = [p for p in partitions if p["lateness"].get("p99", 0.0) > pace.lateness_bound_s]
    saturated = [p for p in late if _is_saturated(p)]
    overloaded = [p for p in late if not _is_saturated(p)]
    live["saturated"], live["overloaded"] = bool(saturated), bool(overloaded)
    live["verdict"] = _verdict(live, saturated, overloaded, pace)
    live["notes"] = [live["verdict"]] if live["overloaded"] else []
    live["notes"] += _floor_note(live, pace)
    return live


def _describe_partition(share: Share, grouping: Grouping, k: int, arrivals_s: float) -> dict[str, Any]:
    """Return the description of one partition.

    The load of its busiest scheduler is the work that it was given over the time in which jobs arrived. Unlike its busy
    share, this does not depend on how much of the machine it got.
    """
    paced = _paced(share)
    lateness = _spread_s(paced.lateness.sum(axis=0))
    busy_s = float(share.servers["busy"].max(initial=0)) / NS
    return {
        "hosts": grouping.describe(k),
        "lateness": lateness,
        "cpu": paced.cpu / paced.wall,
        "awake": paced.awake / paced.wall,
        "scheduler_busy_s": busy_s,
        "scheduler_load": busy_s / max(arrivals_s, LEAST_SPAN_S),
        "backlog_max": paced.backlog_max,
        "peak_rss_mb": share.peak_rss_mb,
    }


def _verdict(
    live: dict[str, Any], saturated: list[dict[str, Any]], overloaded: list[dict[str, Any]], pace: Pace
) -> str:
    """Return in words whether the run kept up, and if not, the cause."""
    parts = [
        f"the scheduler is saturated: it was given {p['scheduler_load']:.0%} of the work that it can do"
        f" ({p['hosts']}: {_how_late(p)})"
        for p in saturated
    ]
    if overloaded:
        which = "; ".join(f"{p['hosts']}: {_how_late(p)}" for p in overloaded)
        parts.append(
            f"the emulation itself was overloaded, not the scheduler ({which}, the bound is"
            f" {_ms(pace.lateness_bound_s)}): times are too long by about as much; a larger --dilation, more cores, or"
            " fewer nodes give it the time that it needs"
        )
    if not parts:
        worst = max(spread["p99"] for spread in live["lateness"].values())
        parts.append(
            f"the emulation kept up: 99 % of all events were handled within {_ms(worst)} of their time"
        )
    return "; ".join(parts)


def _is_saturated(partition: dict[str, Any]) -> bool:
    """Return whether a partition is late because its scheduler is saturated."""
    explains = partition["scheduler_busy_s"] >= EXPLAINED * partition["lateness"]["p99"]
    return partition["scheduler_load"] >= SATURATED and explains


def _how_late(partition: dict[str, Any]) -> str:
    return f"99 % of events within {_ms(partition['lateness']['p99'])} of their time"


def _exchange(paced: Sequence[Paced]) -> str:
    """Return how messages go from one partition to another."""
    if not any(p.apart for p in paced):
        return MEMORY
    return CALLS if all(p.apart == len(paced) - 1 for p in paced) else BOTH


def _floor_note(live: dict[str, Any], pace: Pace) -> list[str]:
    """Return a note where sending takes longer than the modelled network."""
    delay_s, floor_s = live["network_delay_s"], live["floor_s"]
    if floor_s is None or floor_s <= delay_s:
        return []
    needed = (
        f"; from --dilation {math.ceil(pace.dilation * floor_s / delay_s)} on it holds" if delay_s else ""
    )
    return [
        f"network.delay is {_ms(delay_s)}, but {live['exchange']} alone takes {_ms(floor_s)} from one partition to"
        f" another: messages between them are later than modelled{needed}"
    ]


def _spread_s(counts: np.ndarray, divisor: float = 1.0) -> dict[str, float]:
    """Return quantiles of a histogram, in seconds; none of an empty one."""
    if not counts.any():
        return {}
    found = quantiles(counts, (0.5, 0.9, 0.99, 1.0))
    return {name: ns / NS / divisor for name, ns in zip(("p50", "p90", "p99", "max"), found, strict=True)}


def _median_s(counts: np.ndarray, pace: Pace) -> float | None:
    return _spread_s(counts, pace.dilation).get("p50")


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _paced(share: Share) -> Paced:
    assert share.paced is not None
    return share.paced
