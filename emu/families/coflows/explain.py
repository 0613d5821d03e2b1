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

from emu.explaining.event_record import Handled, IntArray, Record
from emu.explaining.explained_run import title_of
from emu.explaining.explanation import NS, Explanation, Link, Wait, counted, longest_wait
from emu.families.coflows.wait_reasons import RATES, Flows, LastFlow, wait_of
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.errors import InputError

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
    flows = Flows(result)
    side, port, bytes_there, speed = flows.bottleneck(row)
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
        *_learning(values, flows, row),
        *_messages(record, row),
    ]
    at, arrival_s = flows.last(row), values["arrival_s"]
    if at is not None:
        last = flows.row(at, arrival_s)
        uses = "" if flows.ports[side][at] == port else " (not by the bottleneck)"
        sentences.append(
            f"Flow {last['flow']} ended last: from ingress port {last['ingress']} to egress port "
            f"{last['egress']}{uses}, {number(last['size_bytes'])} bytes, begun {number(last['start_s'])} s after the "
            f"coflow's arrival."
        )
    chain: list[Link] = []
    wait: Wait | None = None
    if took is not None and at is not None:
        of = LastFlow(result, record, flows, row, at)
        chain = _chain(of, causes)
        longest = longest_wait(chain)
        wait = None if longest is None else wait_of(of, longest)
    return Explanation(
        title_of(result, values["coflow_id"]),
        sum(causes.values()) if took is not None else -1,
        causes,
        MEANINGS,
        sentences,
        {"flow": [flows.row(one, arrival_s) for one in np.flatnonzero(flows.coflow == row).tolist()]},
        chain,
        wait,
        round(arrival_s * NS),
    )


def _chain(last: LastFlow, causes: dict[str, int]) -> list[Link]:
    """Return the chain of a coflow: the causes before its first flow could be sent, then its last flow."""
    at, end = last.arrival_ns, last.arrival_ns + sum(causes.values())
    chain = []
    for cause, what in _FIRST.items():
        if causes[cause]:
            chain.append(last.link(at, at + causes[cause], cause, what))
            at += causes[cause]
    return [*chain, *last.links(at, end)]


_FIRST = {
    "decision": "the coordinator had not decided since it arrived",
    "network": "the first message of that decision was on its way",
}


def _learning(values: dict[str, Any], flows: Flows, row: int) -> Iterator[str]:
    """Yield what the scheduler learned of the coflow, and when."""
    if values["learned_s"] is None:
        return
    until = values["arrival_s"] + values["learned_s"]
    begun = int(np.count_nonzero((flows.coflow == row) & (flows.start < until)))
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
