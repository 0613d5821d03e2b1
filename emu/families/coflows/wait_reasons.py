"""Why a coflow took so long: how the flow that ended last waited and was sent, and who used its ports meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emu.explaining.event_record import BoolArray, IntArray, Record
from emu.explaining.explained_run import of_config, rule_of
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.explaining.spans import covered_ns, merged, overlap_ns, whole
from emu.results.metrics import Float64Array
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column
from workloads.groups import positions

RATES = ("SET_RATE", "SET_EXTRA", "SET_LINE", "SHRINK", "PACE")
"""The messages that set rates: the first of one flow, the others of many at once."""
FULL = 0.999
"""A flow that is sent at a larger share of its ports' speed is sent at full speed."""
SLOW = "slow"
"""The kind of a link that is what a low rate added to a time in which the flow was sent."""


class Sending(NamedTuple):
    """Spans in which flows were sent at one rate: ndarrays, shape (n,).

    Attributes
    ----------
    flow : the flow from 0 over all in workload order
    begin_ns, end_ns : int64
    rate : float64, bytes per ns
    """

    flow: IntArray
    begin_ns: IntArray
    end_ns: IntArray
    rate: Float64Array

    def rows(self, which: npt.NDArray[Any]) -> Sending:
        """Return some of the spans."""
        return Sending(*(values[which] for values in self))

    def within(self, begin_ns: int, end_ns: int) -> IntArray:
        """Return the length of each within a span of time, ns."""
        return overlap_ns(self.begin_ns, self.end_ns, begin_ns, end_ns)

    def covered_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return how much of a span of time they cover together, ns."""
        return covered_ns(np.maximum(self.begin_ns, begin_ns), np.minimum(self.end_ns, end_ns))


def is_exact(record: Record) -> bool:
    """Return whether the events of a run tell the rate of each flow at each time."""
    return bool(record.is_kind("SET_RATE").any() and not record.is_kind(*RATES[1:]).any())


def sendings(record: Record, start_ns: IntArray, finish_ns: IntArray, size_bytes: Float64Array) -> Sending:
    """Return the spans of all flows, by flow and time.

    Where the rates of single flows are not known, a flow has one span at its mean rate.

    Parameters
    ----------
    start_ns, finish_ns : ndarray of int64, shape (F,)
        Of flows; -1 for never.
    size_bytes : ndarray of float64, shape (F,)
    """
    if not is_exact(record):
        flow = np.flatnonzero((start_ns >= 0) & (finish_ns > start_ns))
        begin, end = start_ns[flow], finish_ns[flow]
        return Sending(flow, begin, end, size_bytes[flow] / (end - begin))
    rows = np.flatnonzero(record.is_kind("SET_RATE") & (record.task >= 0) & (record.task < start_ns.size))
    rows = rows[np.lexsort((rows, record.time_ns[rows], record.task[rows]))]
    flow, begin = record.task[rows], record.time_ns[rows]
    rate = record.rows(rows).field("rate")
    last = np.iinfo(np.int64).max
    end = np.where(finish_ns < 0, last, finish_ns)[flow]
    is_followed = flow[:-1] == flow[1:]
    end[:-1][is_followed] = np.minimum(end[:-1], begin[1:])[is_followed]
    kept: BoolArray = (rate > 0.0) & (end > begin) & (end != last)
    return Sending(flow[kept], begin[kept], end[kept], rate[kept])


class Flows:
    """The table of flows of a run as arrays, shape (F,), and their coflows by rows in the table of these."""

    def __init__(self, result: Result):
        table = result.flows
        self.coflow = positions(column(result.coflows, "coflow_id"), column(table, "coflow_id"))
        self.flow, self.size = column(table, "flow"), column(table, "size_bytes")
        self.ports = {"ingress": column(table, "ingress"), "egress": column(table, "egress")}
        speeds = {side: f"{side}_bytes_per_s" for side in self.ports}
        has_speeds = all(name in table.column_names for name in speeds.values())
        self.speeds = {side: column(table, name) for side, name in speeds.items()} if has_speeds else {}
        self.crosses = np.ones(self.flow.size, bool)  # which use their ports
        if of_config(result, "fabric", "local", "") == "free":
            self.crosses = self.ports["ingress"] != self.ports["egress"]
        self.start, self.finish = (
            table[name].fill_null(np.inf).to_numpy() for name in ("start_s", "finish_s")
        )

    def bottleneck(self, coflow: int) -> tuple[str, int, float, float | None]:
        """Return the side and port that take a coflow longest, its bytes there, and the speed if ports differ."""
        mine = self.coflow == coflow
        crossing = mine & self.crosses if (mine & self.crosses).any() else mine
        found = []
        for side, ports in self.ports.items():
            speed = self.speeds[side][crossing] if self.speeds else 1.0
            there = np.bincount(ports[crossing], self.size[crossing] / speed)
            found.append((float(there.max()), side, int(there.argmax())))
        _, side, port = max(found, key=lambda one: one[0])
        own = crossing & (self.ports[side] == port)
        speed = float(self.speeds[side][own][0]) if self.speeds else None
        return side, port, float(self.size[own].sum()), speed

    def last(self, coflow: int) -> int | None:
        """Return the row of the flow of a coflow that ended last."""
        ended = np.flatnonzero((self.coflow == coflow) & np.isfinite(self.finish))
        return int(ended[np.argmax(self.finish[ended])]) if ended.size else None

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


class LastFlow:
    """The flow of a coflow that ended last, its ports, and all that was sent there.

    Attributes
    ----------
    row : int
        The coflow's, in the table of coflows.
    at : int
        The flow's, in the table of flows.
    is_exact : bool
        Whether it is known when each flow was sent; else each is taken to be sent evenly from its start to its end.
    sent, own : Sending
        Of all flows, and of this one.
    others : mapping of str to Sending
        By side, "ingress" and "egress", the others that use its port there.
    """

    def __init__(self, result: Result, record: Record, flows: Flows, row: int, at: int):
        self.result, self.flows, self.row, self.at = result, flows, row, at
        self.name, self.is_exact = f"flow {flows.flow[at]}", is_exact(record)
        self.port = {side: int(ports[at]) for side, ports in flows.ports.items()}
        self.where = f"ingress port {self.port['ingress']} and egress port {self.port['egress']}"
        self.arrival_ns = round(float(column(result.coflows, "arrival_s")[row]) * NS)
        self.sent = sendings(record, whole(flows.start, NS), whole(flows.finish, NS), flows.size)
        of = self.sent.flow
        self.own, counts = self.sent.rows(of == at), (of != at) & flows.crosses[of]
        self.others = {
            side: self.sent.rows(counts & (ports[of] == ports[at])) for side, ports in flows.ports.items()
        }

    @cached_property
    def speed(self) -> float:
        """The speed of the slower of its ports, bytes per ns; NaN where it is not known."""
        if self.flows.speeds:
            return float(min(speeds[self.at] for speeds in self.flows.speeds.values())) / NS
        ideal_s = float(column(self.result.coflows, "ideal_s")[self.row])
        return self.flows.bottleneck(self.row)[2] / ideal_s / NS if ideal_s > 0 else np.nan

    def of_coflow(self, sent: Sending) -> Sending:
        """Return those of some spans in which flows of the coflow were sent."""
        return sent.rows(self.flows.coflow[sent.flow] == self.row)

    def link(self, begin_ns: int, end_ns: int, cause: str, what: str, kind: str = "") -> Link:
        """Return a part of its time."""
        return Link(begin_ns - self.arrival_ns, end_ns - self.arrival_ns, cause, what, kind=kind)

    def links(self, begin_ns: int, end_ns: int) -> Iterator[Link]:
        """Yield its waits and sendings from when it could be sent first, up to the end of its coflow."""
        at, own = begin_ns, self.own
        for begin, end, rate in zip(
            own.begin_ns.tolist(), own.end_ns.tolist(), own.rate.tolist(), strict=True
        ):
            begin, end = max(begin, at), min(end, end_ns)
            if end > begin:
                yield from self._waited(at, begin)
                yield from self._sent(begin, end, rate)
                at = end
        yield from self._waited(at, end_ns)

    def _waited(self, begin_ns: int, end_ns: int) -> Iterator[Link]:
        """Yield the parts of a wait: while other flows of the coflow use the ports, and while they do not."""
        if end_ns <= begin_ns:
            return
        spans = [self.of_coflow(of.rows(of.within(begin_ns, end_ns) > 0)) for of in self.others.values()]
        begins = np.maximum(np.concatenate([of.begin_ns for of in spans]), begin_ns)
        ends = np.minimum(np.concatenate([of.end_ns for of in spans]), end_ns)
        at = begin_ns
        for begin, end in [*merged(begins, ends), (end_ns, end_ns)]:
            if begin > at:
                yield self.link(at, begin, "contention", f"{self.name} waited for {self.where}")
            if end > begin:
                same = f"{self.name} waited, as other flows of the coflow used its ports"
                yield self.link(begin, end, "transmission", same)
            at = end

    def _sent(self, begin_ns: int, end_ns: int, rate: float) -> Iterator[Link]:
        """Yield the parts of a time in which it was sent: what it takes at full speed, and what a lower rate added.

        Where the rate is lower, both happen at the same time; each part has the length that it takes in all.
        """
        share = rate / self.speed if self.speed > 0 else 1.0
        full = end_ns if not share < FULL else begin_ns + round((end_ns - begin_ns) * share)
        sent = f"{self.name} was sent" + (", as long as that takes at full speed" if full < end_ns else "")
        yield self.link(begin_ns, full, "transmission", sent)
        if full == end_ns:
            return
        own = [self.of_coflow(of) for of in self.others.values()]
        own_ns = max(float((of.rate * of.within(begin_ns, end_ns)).sum()) for of in own) / self.speed
        then = min(full + round(own_ns), end_ns)
        if then > full:
            same = "other flows of the coflow were sent at its ports, as long as that takes at full speed"
            yield self.link(full, then, "transmission", same)
        if end_ns > then:
            paused = "" if self.is_exact else " or paused"
            slow = f"was sent at {percent(share)} of the speed of {self.where}{paused}, which added this"
            yield self.link(then, end_ns, "contention", f"{self.name} {slow}", SLOW)


def wait_of(last: LastFlow, link: Link) -> Wait:
    """Explain a wait of the last flow: which coflows used its ports meanwhile, and by which rule."""
    if link.cause != "contention":
        return Wait(link)
    arrival_ns, coflows, of_coflow = last.arrival_ns, last.result.coflows, last.flows.coflow
    begin_ns, end_ns = arrival_ns + link.begin_ns, arrival_ns + link.end_ns
    if link.kind == SLOW:  # it is spread over the time in which the flow was sent
        begin_ns = int(max(last.own.begin_ns[last.own.begin_ns < end_ns].max(), arrival_ns))
    sent, ids, arrival_s = last.sent, column(coflows, "coflow_id"), column(coflows, "arrival_s")
    lasted = np.maximum(np.minimum(sent.end_ns, begin_ns) - sent.begin_ns, 0)
    before: Float64Array = np.bincount(of_coflow[sent.flow], sent.rate * lasted, coflows.num_rows).astype(
        float
    )
    rows: list[dict[str, Any]] = []
    used: set[int] = set()  # by whom, by their rows
    for side, of in last.others.items():
        there = of.rows(of.within(begin_ns, end_ns) > 0)
        coflow = of_coflow[there.flow]
        for other in np.unique(coflow[coflow != last.row]).tolist():
            used.add(other)
            mine = there.rows(coflow == other)
            rows.append(
                {
                    "coflow": int(ids[other]),
                    "side": side,
                    "port": last.port[side],
                    "bytes": float((mine.rate * mine.within(begin_ns, end_ns)).sum()),
                    "s": mine.covered_ns(begin_ns, end_ns) / NS,
                    "arrived_s": float(arrival_s[other] - arrival_ns / NS),
                    "sent_before": float(before[other]),
                }
            )
    rows.sort(key=lambda one: -one["bytes"])
    facts = _facts(last, begin_ns, end_ns)
    reasons = [_busy(facts), *_rule(last, np.array(sorted(used), np.int64), before)]
    if not last.is_exact:
        reasons.append("Bytes are by the mean rate of each flow from its begin to its end.")
    return Wait(link, rows, reasons, facts, (end_ns - begin_ns) / NS if link.kind == SLOW else 0.0)


def _facts(last: LastFlow, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """Return the share of a wait in which others used the ingress port, the egress port, and any of the two."""
    theirs = [of.rows(last.flows.coflow[of.flow] != last.row) for of in last.others.values()]
    both = Sending(*(np.concatenate(values) for values in zip(*theirs, strict=True)))
    shares = (of.covered_ns(begin_ns, end_ns) / max(end_ns - begin_ns, 1) for of in (*theirs, both))
    used = dict(zip(("ingress_used", "egress_used", "any_used"), shares, strict=True))
    return {"flow": last.name.removeprefix("flow "), **last.port, **used}


def _busy(facts: Mapping[str, Any]) -> str:
    idle = 1.0 - facts["any_used"]
    text = (
        f"Other coflows used ingress port {facts['ingress']} for {percent(facts['ingress_used'])} of that time and "
        f"egress port {facts['egress']} for {percent(facts['egress_used'])}"
    )
    return text + (f"; for {percent(idle)} no other coflow used either." if idle > 5e-4 else ".")


def _rule(last: LastFlow, holders: IntArray, before: Float64Array) -> Iterator[str]:
    """Yield how the coflows that went ahead differ from the one that waited, and the scheduler's rule.

    ``before``: the bytes that each coflow had sent when the wait began.
    """
    if holders.size:
        arrival_s, size = (column(last.result.coflows, name) for name in ("arrival_s", "size_bytes"))
        earlier, less, smaller = (
            int(np.count_nonzero(of[holders] < of[last.row])) for of in (arrival_s, before, size)
        )
        yield (
            f"Of the {counted(holders.size, 'coflow')} that used them {earlier:,} had arrived earlier, "
            f"{less:,} had sent less than its {number(float(before[last.row]))} bytes by then, and "
            f"{smaller:,} are smaller."
        )
    if rule := rule_of(last.result):
        yield f"The rule: {rule}."
