"""Reasons for completion times: waits for schedulers, and how busy schedulers and nodes were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.families.registry import family_of_summary
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.measures import Fact
from emu.results.result import Summarising
from emu.results.text_tables import Table, render_tables

EXPLAINED = (
    "what jobs and messages waited for; busy: share of the time from the first arrival to the last finish"
)


def _of_server(part: str, who: str, backlog: str) -> list[Fact]:
    """Return the facts of messages that waited for a server."""
    waits = [
        Fact(f"wait of messages for {who}, {s} (s)", f"{part}.wait_{s}_s") for s in ("mean", "p99", "max")
    ]
    return [*waits, Fact(f"messages waiting for {backlog}, most", f"{part}.backlog_max")]


_OF_SERVERS = (
    *(Fact(f"decision latency, {s} (s)", f"decision_latency.all.{s}") for s in ("p50", "p99", "max")),
    Fact("busiest scheduler, busy while work arrived", "schedulers.busiest_while_arriving", "share"),
    Fact("busiest scheduler, busy", "schedulers.busiest", "share"),
    Fact("all schedulers, busy in the mean", "schedulers.utilisation", "share"),
    *_of_server("schedulers", "their scheduler", "one scheduler"),
    Fact("lateness of events of schedulers, p99 (s)", "live.lateness.schedulers.p99"),
    Fact("lateness of events of nodes, p99 (s)", "live.lateness.nodes.p99"),
    Fact("coordinator, busy while work arrived", "coordinator.busy_while_arriving", "share"),
    Fact("coordinator, busy", "coordinator.utilisation", "share"),
    *_of_server("coordinator", "the coordinator", "the coordinator"),
    Fact("scheduling intervals missed", "coordinator.missed", "share"),
)
_OF_NODES = (
    Fact("nodes, busy while work arrived", "utilisation.while_arriving", "share"),
    Fact("nodes, busy", "utilisation.mean", "share"),
    Fact("offered load", "offered_load"),
)


def reason_rows(summaries: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the label, and a cell for each summary, of the reasons that any summary has."""
    own = family_of_summary(summaries[0])[Summarising].reasons(summaries)
    rows = []
    for reason in (*_OF_SERVERS, *own, *_OF_NODES):
        values = [reason.of(summary) for summary in summaries]
        if any(v is not None for v in values):
            rows.append([reason.label, *("" if v is None else reason.text(float(v)) for v in values)])
    return rows


def reasons_tables(summaries: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the table of the reasons, a column for each scheduler; none where there are no reasons."""
    rows, head = reason_rows(summaries), ["reason", *(s["scheduler"] for s in summaries)]
    return [Table("Reasons", EXPLAINED, head, rows)] if rows else []


def render_reasons(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return the reasons as text behind a blank line; nothing where there are none."""
    return render_tables(reasons_tables(summaries))


def bottlenecks(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the bottlenecks of runs, a sentence each; one that several runs share is returned once."""
    return list(dict.fromkeys(text for summary in summaries for text in summary.get(BOTTLENECKS, ())))


def render_bottlenecks(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return the bottlenecks of runs, a line each behind a blank line; nothing without bottlenecks."""
    lines = bottlenecks(summaries)
    return "\n".join(["", *lines, ""]) if lines else ""
