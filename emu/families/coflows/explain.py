"""The life of one coflow, from the events of a run and the table of its flows.

The causes of its completion time: `transmission` is its completion time alone on the switch; `decision` lasts from its
arrival to the coordinator's first decision that knows it, and `network` until the first message of that decision
arrives, each no longer than the time besides transmission; `contention` is the rest: its ports served other coflows, or
were idle under the schedule.

The chain follows the flow that ended last: when it waited for its two ports, and when it was sent. There,
`transmission` is the time in which it, or other flows of the coflow at its ports, were sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from emu.explaining.causes_text import of_config, title_of
from emu.explaining.event_record import BoolArray, Handled, IntArray, Record
from emu.explaining.explanation import NS, Explanation, Link, Wait, counted, longest_wait
from emu.explaining.spans import whole
from emu.families.coflows.wait_reasons import RATES, Ports, is_exact, rule_of, sendings, wait_of, way_of
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column
from workloads.errors import InputError
from workloads.groups import positions

MEANINGS = {
    "transmission": "what it takes alone on the switch: bytes over speed of its busiest port",
    "decision": "from its arrival to the coordinator's first decision that knew it",
    "network": "until the first message of that decision arrived",
    "contention": "its ports served other coflows, or were idle under the schedule",
}


def causes_of_all(
    result: Result, record: Record, handled: Handled | None = None
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
            arrival_ns, took_ns, ideal_ns = (round(s * NS) for s in (arrival[row], took_s, ideal[row]))
            yield row, _causes(arrival_ns, took_ns, ideal_ns, decided, first.get(row))


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


def explain_coflow(result: Result, record: Record, row: int, handled: Handled | None = None) -> Explanation:
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
        *_deadline(values),
        *_learning(values, flows, mine),
        *_messages(record, row),
    ]
    at = flows.last(mine)
    arrival_ns = round(values["arrival_s"] * NS)
    if at is not None:
        last = flows.row(at, values["arrival_s"])
        uses = "" if flows.ports[side][at] == port else " (not by the bottleneck)"
        sentences.append(
            f"Flow {last['flow']} ended last: from ingress port {last['ingress']} to egress port "
            f"{last['egress']}{uses}, {number(last['size_bytes'])} bytes, begun {number(last['start_s'])} s after the "
            f"coflow's arrival."
        )
    chain: list[Link] = []
    wait = None
    if took is not None and at is not None:
        chain, wait = _way(result, record, flows, row, at, causes, speed)
    return Explanation(
        title_of(result, values["coflow_id"]),
        sum(causes.values()) if took is not None else -1,
        causes,
        MEANINGS,
        sentences,
        {"flow": flows.rows(mine, values["arrival_s"])},
        chain,
        wait,
        arrival_ns,
    )


def _way(
    result: Result,
    record: Record,
    flows: _Flows,
    row: int,
    at: int,
    causes: dict[str, int],
    speed: float | None,
) -> tuple[list[Link], Wait | None]:
    """Return the chain of a coflow, by its row, whose flow `at` ended last, and the longest wait of it."""
    coflows = {name: column(result.coflows, name) for name in ("coflow_id", "arrival_s", "size_bytes")}
    arrival_ns = round(float(coflows["arrival_s"][row]) * NS)
    took_ns = sum(causes.values())
    sent = sendings(record, flows.start_ns, flows.finish_ns, flows.size)
    of_row = positions(coflows["coflow_id"], flows.coflow)
    ends = {side: int(ports[at]) for side, ports in flows.ports.items()}
    there = {
        side: sent.rows(
            (flows.ports[side][sent.flow] == ends[side]) & (sent.flow != at) & flows.crosses(sent.flow)
        )
        for side in ends
    }
    ports = Ports(
        at,
        f"flow {flows.flow[at]}",
        ends["ingress"],
        ends["egress"],
        flows.speed(at, result.coflows, speed) / NS,
        sent.rows(sent.flow == at),
        there["ingress"],
        there["egress"],
        of_row,
        is_exact(record),
    )
    begin, chain = 0, []
    for cause, what in _FIRST.items():
        if causes[cause]:
            chain.append(Link(begin, begin + causes[cause], cause, what))
            begin += causes[cause]
    chain += way_of(ports, row, arrival_ns + begin, arrival_ns, arrival_ns + took_ns)
    longest = longest_wait(chain)
    wait = None
    if longest is not None:
        wait = wait_of(ports, row, longest, arrival_ns, coflows, sent, rule_of(result))
    return chain, wait


_FIRST = {
    "decision": "the coordinator had not decided since it arrived",
    "network": "the first message of that decision was on its way",
}


def _learning(values: dict[str, Any], flows: _Flows, mine: BoolArray) -> Iterator[str]:
    """Yield what the scheduler learned of the coflow, and when."""
    if values["learned_s"] is None:
        return
    until = values["arrival_s"] + values["learned_s"]
    begun = int(np.count_nonzero(mine & (flows.start < until)))
    after = f"{number(values['learned_s'])} s after its arrival"
    if values["estimated_bytes"] is None:
        sent = number(values["learned_bytes"])
        if values["learned_s"] > 0.0:
            yield f"It came to its last priority queue {after}, when it had sent {sent} bytes."
        else:
            yield "It was in one priority queue from its arrival to its end."
    else:
        text = f"Its scheduler had learned its size {after}"
        off = values["estimated_bytes"] / values["size_bytes"] if values["size_bytes"] else 0.0
        yield (
            f"{text}, from its pilot flows: {begun:,} of its flows had begun. It estimated "
            f"{number(values['estimated_bytes'])} bytes, {percent(off)} of its size."
        )


def _deadline(values: dict[str, Any]) -> Iterator[str]:
    """Yield when the coflow was due, whether it ended by then, and what its scheduler decided about its admission."""
    if values["deadline_s"] is None:
        return
    arrival, took = values["arrival_s"], values["cct_s"]
    due = values["deadline_s"] - arrival
    if took is None:
        fate = "it did not end"
    else:
        left = number(abs(due - took))
        fate = f"it ended {left} s {'before' if values['met_deadline'] else 'too late'}"
    alone = number(values["ideal_s"])
    yield f"Its deadline was {number(due)} s after its arrival, and it takes {alone} s alone; {fate}."
    first, last = ("rejected", "admitted") if values["admitted"] else ("admitted", "rejected")
    verdicts = [
        f"{name} it {number(values[f'{name}_s'] - arrival)} s after its arrival"
        for name in (first, last)
        if values[f"{name}_s"] is not None
    ]
    if verdicts:
        yield f"Its scheduler {', and '.join(verdicts)}."


def _messages(record: Record, row: int) -> Iterator[str]:
    kinds = Counter(record.kind[record.job == row].tolist())
    rates = sum(kinds[kind] for kind in RATES)
    if rates:
        yield f"The coordinator sent {counted(rates, 'message')} about its rates to the agents at its ports."
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
        self.start_ns, self.finish_ns = (whole(seconds, NS) for seconds in (self.start, self.finish))

    def bottleneck(self, mine: BoolArray) -> tuple[str, int, float, float | None]:
        """Return the side and port that take a coflow longest, its bytes there, and the speed if ports differ."""
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
        speed = float(self.speeds[side][own][0]) if self.speeds else None
        return side, port, float(self.size[own].sum()), speed

    def last(self, mine: BoolArray) -> int | None:
        """Return the row of the flow that ended last."""
        ended = np.flatnonzero(mine & np.isfinite(self.finish))
        return int(ended[np.argmax(self.finish[ended])]) if ended.size else None

    def crosses(self, flows: IntArray) -> BoolArray:
        """Return which flows use their ports."""
        if not self.local_is_free:
            return np.ones(flows.size, bool)
        found: BoolArray = self.ports["ingress"][flows] != self.ports["egress"][flows]
        return found

    def speed(self, at: int, coflows: Any, bottleneck: float | None) -> float:
        """Return the speed of a flow's ports, bytes per s; NaN where it is not known."""
        if bottleneck is not None:
            return float(min(speeds[at] for speeds in self.speeds.values()))
        row = int(np.flatnonzero(column(coflows, "coflow_id") == self.coflow[at])[0])
        ideal_s = column(coflows, "ideal_s")[row]
        there = self.bottleneck(self.coflow == self.coflow[at])[2]
        return float(there / ideal_s) if ideal_s > 0 else np.nan

    def rows(self, mine: BoolArray, arrival_s: float) -> list[dict[str, Any]]:
        """Return the flows of a coflow; times since its arrival."""
        return [self.row(at, arrival_s) for at in np.flatnonzero(mine).tolist()]

    def row(self, at: int, arrival_s: float) -> dict[str, Any]:
        """Return a flow; times since the arrival of its coflow."""
        begin, end = float(self.start[at]), float(self.finish[at])
        return {
            "flow": int(self.flow[at]),
            **{side: int(ports[at]) for side, ports in self.ports.items()},
            "size_bytes": float(self.size[at]),
            "start_s": begin - arrival_s if np.isfinite(begin) else None,
            "finish_s": end - arrival_s if np.isfinite(end) else None,
        }
