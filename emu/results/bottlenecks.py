"""Bottlenecks of a run, as text: a scheduler, a coordinator or nodes that were saturated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emu.families.registry import family_of_summary
from workloads.units import format_duration

BOTTLENECKS = "bottlenecks"
"""The key of a summary that has them, where there are any."""
SATURATED = 0.8
"""Busy share from which a scheduler counts as a bottleneck, as with the clock `live` (`actors.hosting.live_report`)."""
NODES_BUSY = 0.98
INTERVALS_MISSED = 0.05


def bottlenecks_of(summary: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the part of a summary that names its bottlenecks, a sentence each; nothing without bottlenecks."""
    found = list(_bottlenecks(summary))
    return {BOTTLENECKS: found} if found else {}


def _bottlenecks(summary: Mapping[str, Any]) -> Iterator[str]:
    live, name = summary.get("live", {}), summary["scheduler"]
    if "verdict" in live:
        if live["saturated"] or live["overloaded"]:
            yield f"{name}: {live['verdict']}"
    elif "schedulers" in summary:
        yield from _schedulers(name, summary["schedulers"])
    busy = summary.get("utilisation", {}).get("while_arriving", 0.0)
    if busy >= NODES_BUSY:
        of = family_of_summary(summary)
        were = f"the {of.node}s were {_share(busy)} busy while {of.heads} arrived"
        yield f"{were}: {of.part} waited for {of.node}s under any scheduler"
    coordinator = summary.get("coordinator")
    if coordinator is None:
        return
    who = family_of_summary(summary).coordinator.format(name)
    if "utilisation" in coordinator:  # that of coflows is the scheduler
        yield from _server(who, coordinator, "busy_while_arriving", "utilisation")
    missed = coordinator.get("missed", 0.0)
    if missed >= INTERVALS_MISSED:
        yield f"{who} had more to do than time in {_share(missed)} of its scheduling intervals"


def _schedulers(name: str, figures: Mapping[str, Any]) -> Iterator[str]:
    which = name if figures["count"] == 1 else f"the busiest of {figures['count']:,.0f} schedulers of {name}"
    yield from _server(which, figures, "busiest_while_arriving", "busiest")


def _server(which: str, figures: Mapping[str, Any], while_arriving: str, in_all: str) -> Iterator[str]:
    """Yield that a server was busy, by the figures under these names, if it was."""
    arriving = figures.get(while_arriving)
    busy = figures[in_all] if arriving is None else arriving
    if busy < SATURATED:
        return
    what = "" if arriving is None else " while work arrived"
    longest, mean = (format_duration(figures[f"wait_{s}_s"]) for s in ("max", "mean"))
    yield f"{which} was {_share(busy)} busy{what}: messages waited up to {longest} for it, {mean} in the mean"


def _share(share: float) -> str:
    return f"{share:.0%}" if share < 0.995 or share >= 0.9995 else f"{share:.1%}"
