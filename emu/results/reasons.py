"""Reasons for completion times: waits for schedulers, and how busy schedulers and nodes were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from emu.results.bottlenecks import BOTTLENECKS
from emu.results.text_tables import Table, number, percent, render_tables

EXPLAINED = (
    "what jobs and messages waited for; busy: share of the time from the first arrival to the last finish"
)


class Reason(NamedTuple):
    """A figure of a summary that explains completion times.

    Attributes
    ----------
    label : str
        With its unit, if it has one.
    path : tuple of str
        Keys of ``summary.json``, from the outside in.
    is_share : bool
        Whether it is shown in per cent.
    """

    label: str
    path: tuple[str, ...]
    is_share: bool = False


CLASSES = ("short", "long")
REASONS = (
    *(Reason(f"decision latency, {s} (s)", ("decision_latency", "all", s)) for s in ("p50", "p99", "max")),
    Reason("busiest scheduler, busy while work arrived", ("schedulers", "busiest_while_arriving"), True),
    Reason("busiest scheduler, busy", ("schedulers", "busiest"), True),
    Reason("all schedulers, busy in the mean", ("schedulers", "utilisation"), True),
    *(
        Reason(f"wait of messages for their scheduler, {s} (s)", ("schedulers", f"wait_{s}_s"))
        for s in ("mean", "p99", "max")
    ),
    Reason("messages waiting for one scheduler, most", ("schedulers", "backlog_max")),
    *(
        Reason(f"lateness of events of {who}, p99 (s)", ("live", "lateness", who, "p99"))
        for who in ("schedulers", "nodes")
    ),
    Reason("coordinator, busy while work arrived", ("coordinator", "busy_while_arriving"), True),
    Reason("coordinator, busy", ("coordinator", "utilisation"), True),
    *(
        Reason(f"wait of messages for the coordinator, {s} (s)", ("coordinator", f"wait_{s}_s"))
        for s in ("mean", "p99", "max")
    ),
    Reason("messages waiting for the coordinator, most", ("coordinator", "backlog_max")),
    Reason("scheduling intervals missed", ("coordinator", "missed"), True),
    *(
        Reason(f"wait of {f'{name} jobs' if name in CLASSES else 'jobs'}, {s} (s)", ("jobs", name, "wait", s))
        for name in ("all", *CLASSES)
        for s in ("p50", "p99")
    ),
    *(Reason(f"wait of coflows, {s} (s)", ("coflows", "wait", s)) for s in ("p50", "p99")),
    Reason("nodes, busy while work arrived", ("utilisation", "while_arriving"), True),
    Reason("nodes, busy", ("utilisation", "mean"), True),
    Reason("offered load", ("offered_load",)),
)


def reason_rows(summaries: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the label, and a cell for each summary, of the reasons that any summary has.

    Waits are by class of jobs, or of all jobs where there is only one class.
    """
    classes = any(all(_value(s, ("jobs", name, "count")) for name in CLASSES) for s in summaries)
    left_out = {("jobs", name) for name in (("all",) if classes else CLASSES)}
    rows = []
    for reason in REASONS:
        if reason.path[:2] in left_out:
            continue
        values = [_value(summary, reason.path) for summary in summaries]
        if any(v is not None for v in values):
            shown = percent if reason.is_share else number
            rows.append([reason.label, *("" if v is None else shown(v) for v in values)])
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


def _value(summary: Mapping[str, Any], path: Sequence[str]) -> float | None:
    found: Any = summary
    for name in path:
        if not isinstance(found, Mapping) or found.get(name) is None:
            return None
        found = found[name]
    return float(found)
