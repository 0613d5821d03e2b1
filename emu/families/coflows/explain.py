"""The life of one coflow, from the events of a run and the table of its flows.

The causes of its completion time are by what would be left without the others: `transmission` is its completion time
were it alone on the switch; `decision` lasts from its arrival to the coordinator's first decision that knows it, and
`network` until the first message of that decision arrives, each no longer than what transmission leaves; `contention`
is the rest: the ports were given to other coflows, or stood idle under the schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from emu.explaining.explanation import NS, Explanation, counted
from emu.explaining.records import BoolArray, IntArray, Record
from emu.explaining.summary import of_config
from emu.results.result import Result
from emu.results.tables import number, percent
from workloads.arrow import column
from workloads.errors import InputError

MEANINGS = {
    "transmission": "what it takes alone on the switch: bytes over speed of its busiest port",
    "decision": "from its arrival to the coordinator's first decision that knew it",
    "network": "until the first message of that decision arrived",
    "contention": "its ports served other coflows, or stood idle under the schedule",
}
MOST_SHARED = 8
"""Coflows on shared ports are listed up to so many."""


def causes_of_all(
    result: Result, record: Record, handled: Any = None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each coflow that ended, by its row in the table of coflows, and nanoseconds of its time by cause."""
    coflows = result.coflows
    arrival, cct, ideal = (coflows[name].to_pylist() for name in ("arrival_s", "cct_s", "ideal_s"))
    decided = record.time_ns[record.kind == "DECIDE"]
    sent = np.isin(record.kind, RATES)
    by_coflow = record.rows(np.flatnonzero(sent)).by_job()
    first = {job: (int(e.time_ns[0]), int(max(e.left_ns[0], 0) or e.time_ns[0])) for job, e in by_coflow}
    for row, took_s in enumerate(cct):
        if took_s is not None:
            yield (
                row,
                _causes(
                    round(arrival[row] * NS),
                    round(took_s * NS),
                    round(ideal[row] * NS),
                    decided,
                    first.get(row),
                ),
            )


RATES = ("SET_RATE", "SET_LINE", "SHRINK", "PACE")


def _causes(
    arrival_ns: int, took_ns: int, ideal_ns: int, decided: IntArray, first: tuple[int, int] | None
) -> dict[str, int]:
    transmission = min(ideal_ns, took_ns)
    left = took_ns - transmission
    at = int(np.searchsorted(decided, arrival_ns))
    decision = min(int(decided[at]) - arrival_ns, left) if at < decided.size else 0
    network = min(max(first[0] - first[1], 0), left - decision) if first is not None else 0
    return {
        "transmission": transmission,
        "decision": decision,
        "network": network,
        "contention": left - decision - network,
    }


def explain_coflow(result: Result, record: Record, row: int, handled: Any = None) -> Explanation:
    """Explain a coflow, by its row in the table of coflows.

    Raises
    ------
    InputError
        The result has no table of flows.
    """
    if result.flows is None:
        raise InputError("the result has no flows; run it with output.tasks=true", file=result.path)
    values = {name: cells[0] for name, cells in result.coflows.slice(row, 1).to_pydict().items()}
    causes = dict(causes_of_all(result, record)).get(row, dict.fromkeys(MEANINGS, 0))
    flows = _Flows(result)
    mine = flows.coflow == values["coflow_id"]
    side, port, bytes_there, speed = flows.bottleneck(mine)
    took = values["cct_s"]
    sentences = [
        f"It has {counted(values['width'], 'flow')} of {number(values['size_bytes'])} bytes in all, from "
        f"{counted(values['senders'], 'ingress port')} to {counted(values['receivers'], 'egress port')}.",
        f"It arrived at {number(values['arrival_s'])} s and "
        + (f"ended after {number(took)} s." if took is not None else "did not end."),
        f"Its bottleneck is {side} port {port}, where it sends {number(bytes_there)} bytes "
        f"({percent(bytes_there / values['size_bytes'] if values['size_bytes'] else 0.0)} of its own)"
        + ("." if speed is None else f", at {number(speed)} bytes/s."),
        *_learning(values, flows, mine),
        *_messages(record, row),
    ]
    last = flows.last(mine)
    if last is not None:
        sentences.append(
            f"Flow {last['flow']} ended last: from ingress port {last['ingress']} to egress port {last['egress']}, "
            f"{number(last['size_bytes'])} bytes, begun {number(last['start_s'] - values['arrival_s'])} s after the "
            f"coflow's arrival."
        )
    return Explanation(
        f"coflow {values['coflow_id']}, {result.summary['scheduler']} on {result.summary['workload']}, "
        f"{result.summary['nodes']:,} ports",
        sum(causes.values()) if took is not None else -1,
        causes,
        MEANINGS,
        sentences,
        {f"shared {side} port {port} with": flows.shared(mine, side, port), "flow": flows.rows(mine)},
    )


def _learning(values: dict[str, Any], flows: _Flows, mine: BoolArray) -> Iterator[str]:
    """Yield what the scheduler learned of the coflow, and when."""
    if values["learned_s"] is None:
        return
    until = values["arrival_s"] + values["learned_s"]
    begun = int(np.count_nonzero(mine & (flows.start < until)))
    text = f"Its scheduler had learned what it needs {number(values['learned_s'])} s after its arrival"
    if values["estimated_bytes"] is None:
        yield f"{text}, when it had sent {number(values['learned_bytes'])} bytes: it was then in its last queue."
    else:
        off = values["estimated_bytes"] / values["size_bytes"] if values["size_bytes"] else 0.0
        yield (
            f"{text}, from its pilot flows: {begun:,} of its flows had begun. It estimated "
            f"{number(values['estimated_bytes'])} bytes, {percent(off)} of its size."
        )


def _messages(record: Record, row: int) -> Iterator[str]:
    kinds = Counter(record.kind[record.job == row].tolist())
    rates = sum(kinds[kind] for kind in RATES)
    if rates:
        yield f"The coordinator sent {counted(rates, 'message')} with rates of it to its agents."
    if kinds["VERDICT"]:
        yield f"The coordinator decided {counted(kinds['VERDICT'], 'time')} about its admission."


class _Flows:
    """The table of flows as arrays."""

    def __init__(self, result: Result):
        table = result.flows
        self.coflow, self.flow = column(table, "coflow_id"), column(table, "flow")
        self.ports = {"ingress": column(table, "ingress"), "egress": column(table, "egress")}
        self.size = column(table, "size_bytes")
        speeds = {side: f"{side}_bytes_per_s" for side in self.ports}
        has_speeds = all(name in table.column_names for name in speeds.values())
        self.speeds = {side: column(table, name) for side, name in speeds.items()} if has_speeds else {}
        self.local_is_free = of_config(result, "fabric", "local", "") == "free"
        self.start, self.finish = (
            table[name].fill_null(np.inf).to_numpy() for name in ("start_s", "finish_s")
        )

    def bottleneck(self, mine: BoolArray) -> tuple[str, int, float, float | None]:
        """Return the side and the port that take a coflow longest, its bytes there, and the speed if ports differ."""
        crossing = mine & (self.ports["ingress"] != self.ports["egress"]) if self.local_is_free else mine
        if not crossing.any():
            crossing = mine
        found = []
        for side, ports in self.ports.items():
            speed = self.speeds[side][crossing] if self.speeds else 1.0
            there = np.bincount(ports[crossing], self.size[crossing] / speed)
            found.append((float(there.max()), side, int(there.argmax())))
        _, side, port = max(found, key=lambda one: one[0])
        own = crossing & (self.ports[side] == port)
        return (
            side,
            port,
            float(self.size[own].sum()),
            float(self.speeds[side][own][0]) if self.speeds else None,
        )

    def last(self, mine: BoolArray) -> dict[str, Any] | None:
        """Return the flow that ended last."""
        ended = np.flatnonzero(mine & np.isfinite(self.finish))
        return self._row(int(ended[np.argmax(self.finish[ended])])) if ended.size else None

    def rows(self, mine: BoolArray) -> list[dict[str, Any]]:
        """Return the flows of a coflow."""
        return [self._row(at) for at in np.flatnonzero(mine).tolist()]

    def _row(self, at: int) -> dict[str, Any]:
        return {
            "flow": int(self.flow[at]),
            **{side: int(ports[at]) for side, ports in self.ports.items()},
            "size_bytes": float(self.size[at]),
            "start_s": float(self.start[at]) if np.isfinite(self.start[at]) else None,
            "finish_s": float(self.finish[at]) if np.isfinite(self.finish[at]) else None,
        }

    def shared(self, mine: BoolArray, side: str, port: int) -> list[dict[str, Any]]:
        """Return the coflows that sent at a port while a coflow was under way there, those with most bytes first."""
        there = self.ports[side] == port
        own = mine & there & np.isfinite(self.finish)
        if not own.any():
            return []
        begin, end = self.start[own].min(), self.finish[own].max()
        others = there & ~mine & (self.start < end) & (self.finish > begin)
        ids = np.unique(self.coflow[others])
        rows = []
        for coflow in ids.tolist():
            its = others & (self.coflow == coflow)
            rows.append(
                {
                    "coflow": coflow,
                    "flows": int(its.sum()),
                    "bytes": float(self.size[its].sum()),
                    "from_s": float(self.start[its].min()),
                    "to_s": float(self.finish[its].max()),
                }
            )
        rows.sort(key=lambda one: -one["bytes"])
        return rows[:MOST_SHARED]
