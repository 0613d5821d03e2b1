"""Why a coflow took so long: the waits of the flow that ended last, and who used its ports meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emu.explaining.causes_text import parameters_of, scheduler_of
from emu.explaining.event_record import BoolArray, IntArray, Record
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.explaining.spans import covered_ns, merged, overlap_ns
from emu.results.metrics import Float64Array
from emu.results.result import Result
from emu.results.text_tables import number, percent

RATES = ("SET_RATE", "SET_EXTRA", "SET_LINE", "SHRINK", "PACE")
"""The messages that set rates: the first of one flow, the others of many at once."""
FULL = 0.999
"""A flow that is sent at a larger share of its ports' speed is sent at full speed."""


def rule_of(result: Result) -> str:
    """Return the rule of the scheduler of a run; empty where it is not known."""
    scheduler = scheduler_of(result)
    return "" if scheduler is None else scheduler.rule_with(parameters_of(result))


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


class Ports(NamedTuple):
    """The flow that ended last, its ports, and all that was sent there.

    Attributes
    ----------
    flow : int
        From 0 over all in workload order.
    name : str
        What it is called.
    ingress, egress : int
    speed : float
        Of the slower of the two, bytes per ns; NaN where it is not known.
    own, at_ingress, at_egress : Sending
        The flow itself; the others that use its ports.
    coflow : ndarray of int64, shape (F,)
        The coflow of each flow, by its row in the table of coflows.
    is_exact : bool
        Whether it is known when each flow was sent; else each is taken to be sent evenly from its start to its end.
    """

    flow: int
    name: str
    ingress: int
    egress: int
    speed: float
    own: Sending
    at_ingress: Sending
    at_egress: Sending
    coflow: IntArray
    is_exact: bool

    @property
    def where(self) -> str:
        """The two ports in words."""
        return f"ingress port {self.ingress} and egress port {self.egress}"

    def others(self) -> tuple[tuple[tuple[str, int], Sending], ...]:
        """Return the side and number of each of the two ports, and what was sent there."""
        return ((("ingress", self.ingress), self.at_ingress), (("egress", self.egress), self.at_egress))


def way_of(p: Ports, row: int, begin_ns: int, arrival_ns: int, end_ns: int) -> Iterator[Link]:
    """Yield the waits and sendings of the last flow since it could be sent, up to the end of its coflow.

    Parameters
    ----------
    row : int
        The coflow's, in the table of coflows.
    begin_ns : int
        When it could be sent first.
    """
    at = begin_ns
    for begin, end, rate in zip(
        p.own.begin_ns.tolist(), p.own.end_ns.tolist(), p.own.rate.tolist(), strict=True
    ):
        begin, end = max(begin, at), min(end, end_ns)
        if end <= begin:
            continue
        yield from _waited(p, row, at, begin, arrival_ns)
        yield from _sent(p, row, begin, end, rate, arrival_ns)
        at = end
    yield from _waited(p, row, at, end_ns, arrival_ns)


def _waited(p: Ports, row: int, begin_ns: int, end_ns: int, arrival_ns: int) -> Iterator[Link]:
    """Yield the parts of a wait: while other flows of the coflow use the ports, and while they do not."""
    if end_ns <= begin_ns:
        return
    spans = [of.rows((p.coflow[of.flow] == row) & (of.within(begin_ns, end_ns) > 0)) for _, of in p.others()]
    begins = np.maximum(np.concatenate([of.begin_ns for of in spans]), begin_ns)
    ends = np.minimum(np.concatenate([of.end_ns for of in spans]), end_ns)
    at = begin_ns
    what = f"{p.name} waited for {p.where}"
    for begin, end in [*merged(begins, ends), (end_ns, end_ns)]:
        if begin > at:
            yield Link(at - arrival_ns, begin - arrival_ns, "contention", what)
        if end > begin:
            same = f"{p.name} waited, as other flows of the coflow used its ports"
            yield Link(begin - arrival_ns, end - arrival_ns, "transmission", same)
        at = end


def _sent(p: Ports, row: int, begin_ns: int, end_ns: int, rate: float, arrival_ns: int) -> Iterator[Link]:
    """Yield the parts of a time in which the flow was sent: what it takes at full speed, and what a lower rate added.

    Where the rate is lower, both happen at the same time; each part has the length that it takes in all.
    """
    share = rate / p.speed if p.speed > 0 else 1.0
    full = end_ns if not share < FULL else begin_ns + round((end_ns - begin_ns) * share)
    sent = f"{p.name} was sent" + (", as long as that takes at full speed" if full < end_ns else "")
    yield Link(begin_ns - arrival_ns, full - arrival_ns, "transmission", sent)
    if full == end_ns:
        return
    own = [of.rows(p.coflow[of.flow] == row) for _, of in p.others()]
    own_ns = max(float((of.rate * of.within(begin_ns, end_ns)).sum()) for of in own) / p.speed
    then = min(full + round(own_ns), end_ns)
    same = "other flows of the coflow were sent at its ports, as long as that takes at full speed"
    paused = "" if p.is_exact else " or paused"
    slow = f"{p.name} was sent at {percent(share)} of the speed of {p.where}{paused}, which added this"
    for first, last, cause, what in ((full, then, "transmission", same), (then, end_ns, "contention", slow)):
        if last > first:
            yield Link(first - arrival_ns, last - arrival_ns, cause, what)


def wait_of(
    p: Ports,
    row: int,
    link: Link,
    arrival_ns: int,
    coflows: Mapping[str, npt.NDArray[Any]],
    sent: Sending,
    rule: str,
) -> Wait:
    """Explain a wait of the last flow: which coflows used its ports meanwhile, and by which rule.

    Parameters
    ----------
    link : Link
        The wait.
    coflows : mapping
        Columns of the table of coflows by name: ``coflow_id``, ``arrival_s``, ``size_bytes``.
    sent : Sending
        Of all flows.
    rule : str
        Of the scheduler; empty where it is not known.
    """
    if link.cause != "contention":
        return Wait(link)
    begin_ns, end_ns = arrival_ns + link.begin_ns, arrival_ns + link.end_ns
    is_spread = "added" in link.what  # over the time in which the flow was sent
    if is_spread:
        begin_ns = int(max(p.own.begin_ns[p.own.begin_ns < end_ns].max(), arrival_ns))
    before = _sent_before(sent, p.coflow, coflows["coflow_id"].size, begin_ns)
    rows: list[dict[str, Any]] = []
    used: set[int] = set()  # by whom, by their rows
    for (side, port), of in p.others():
        lasted = of.within(begin_ns, end_ns)
        for other in np.unique(p.coflow[of.flow[lasted > 0]]).tolist():
            if other == row:
                continue
            used.add(other)
            mine = of.rows((p.coflow[of.flow] == other) & (lasted > 0))
            rows.append(
                {
                    "coflow": int(coflows["coflow_id"][other]),
                    "side": side,
                    "port": port,
                    "bytes": float((mine.rate * mine.within(begin_ns, end_ns)).sum()),
                    "s": mine.covered_ns(begin_ns, end_ns) / NS,
                    "arrived_s": float(coflows["arrival_s"][other] - arrival_ns / NS),
                    "sent_before": float(before[other]),
                }
            )
    rows.sort(key=lambda one: -one["bytes"])
    facts = _facts(p, row, begin_ns, end_ns)
    reasons = [_busy(p, facts), *_rule(row, np.array(sorted(used), np.int64), coflows, before, rule)]
    if not p.is_exact:
        reasons.append("Bytes are by the mean rate of each flow from its begin to its end.")
    return Wait(link, rows, reasons, facts, (end_ns - begin_ns) / NS if is_spread else 0.0)


def _sent_before(sent: Sending, coflow: IntArray, count: int, at_ns: int) -> Float64Array:
    """Return the bytes that each coflow had sent by a time."""
    lasted = np.maximum(np.minimum(sent.end_ns, at_ns) - sent.begin_ns, 0)
    return np.asarray(np.bincount(coflow[sent.flow], sent.rate * lasted, count), np.float64)


def _facts(p: Ports, row: int, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """Return the share of a wait in which others used the ingress port, the egress port, and any of the two."""
    theirs = [of.rows(p.coflow[of.flow] != row) for _, of in p.others()]
    both = Sending(*(np.concatenate(values) for values in zip(*theirs, strict=True)))
    found = [of.covered_ns(begin_ns, end_ns) / max(end_ns - begin_ns, 1) for of in (*theirs, both)]
    return {
        "flow": p.name.removeprefix("flow "),
        "ingress": p.ingress,
        "egress": p.egress,
        "ingress_used": found[0],
        "egress_used": found[1],
        "any_used": found[2],
    }


def _busy(p: Ports, facts: Mapping[str, Any]) -> str:
    idle = 1.0 - facts["any_used"]
    text = (
        f"Other coflows used ingress port {p.ingress} for {percent(facts['ingress_used'])} of that time and egress "
        f"port {p.egress} for {percent(facts['egress_used'])}"
    )
    return text + (f"; for {percent(idle)} no other coflow used either." if idle > 5e-4 else ".")


def _rule(
    row: int, holders: IntArray, coflows: Mapping[str, npt.NDArray[Any]], before: Float64Array, rule: str
) -> Iterator[str]:
    """Yield how the coflows that went ahead differ from the one that waited, and the scheduler's rule."""
    if holders.size:
        earlier: BoolArray = coflows["arrival_s"][holders] < coflows["arrival_s"][row]
        less = before[holders] < before[row]
        smaller = coflows["size_bytes"][holders] < coflows["size_bytes"][row]
        yield (
            f"Of the {counted(holders.size, 'coflow')} that used them {int(earlier.sum()):,} had arrived earlier, "
            f"{int(less.sum()):,} had sent less than its {number(float(before[row]))} bytes by then, and "
            f"{int(smaller.sum()):,} are smaller."
        )
    if rule:
        yield f"The rule: {rule}."
