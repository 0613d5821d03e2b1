"""Golden logs of coflows: what a case is given, and what its log has (how a file is written: `test_golden_logs.py`).

Given; a port sends a byte in a second, so that bytes are seconds:

    ports: 3
    coflow: 0 | 0>0 4, 1>1 4 | due=5.6 weight=2     when it arrives; its flows, with bytes; its deadline and weight
    update: 5 | 0 move receiver 1 3                 when which coflow is updated: `restart SIDE PORT`,
                                                    `move SIDE PORT PORT`, `deregister`

Options are those of the scheduler, and `delay_s`, `local_is_free`, `seed`, prices as `per_flow_s`, `costs=measured`.
Of alternatives, as `contention=queue|all` or `dcoflow|edf`, each has this log.

The log; a case has the sections that it names:

    sending     of each flow of coflow 2 from port 0 to port 1, "2 0>1": from when to when, and at which rate unless 1
    decisions   when the coordinator made a schedule
    refills     when it gave away what flows had left, by the last schedule
    queues      when which coflow enters which queue; -2: it is active in none; -1: it is not active
    counters    what was counted
    learned     of each coflow when its size was known, the bytes that it had sent, and the estimate if there is one
    verdicts    of each coflow whether it was admitted at the end, and when it was last admitted and rejected
    coflows     when each started and ended
    flows       of each flow when it started and ended, and from which port it was sent
    server      of the coordinator: messages served, seconds busy, seconds waited, the longest wait
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from coflow_emulations import NS, coflows, log_setting, setting_of

from actors.setting import Costs, Setting
from workloads.coflow_updates import DEREGISTER, MOVE, RECEIVER, RESTART, SENDER, Row, make_updates
from workloads.coflows import CoflowWorkload, with_demands

if TYPE_CHECKING:
    from test_golden_logs import Given, Run, Sections

PRICES = {field.name for field in fields(Costs) if field.name.startswith("per_")}
KINDS = {"restart": RESTART, "move": MOVE, "deregister": DEREGISTER}
SIDES = {"sender": SENDER, "receiver": RECEIVER}


def log(given: Given, run: Run) -> Sections:
    """Run a case with each of the alternatives, and write down the sections that it has."""
    found = [log_one(given, run, scheduler, asked) for scheduler, asked in alternatives(run)]
    assert all(one == found[0] for one in found), f"the alternatives differ: {found}"
    return found[0]


def alternatives(run: Run) -> list[tuple[str, dict[str, Any]]]:
    """Return schedulers and options, without `|`."""
    values = [value.split("|") if isinstance(value, str) else [value] for value in run.options.values()]
    asked = [dict(zip(run.options, map(value_of, each), strict=True)) for each in product(*values)]
    return [(scheduler, dict(one)) for scheduler in run.scheduler.split("|") for one in asked]


def value_of(value: Any) -> Any:
    """Return the number, or the truth value, that a text is, where it is one."""
    if value in ("true", "false"):
        return value == "true"
    for number in (int, float) if isinstance(value, str) else ():
        try:
            return number(value)
        except ValueError:
            continue
    return value


def log_one(given: Given, run: Run, scheduler: str, asked: dict[str, Any]) -> Sections:
    log, outcome = log_setting(setting_for(given, scheduler, asked))
    learned = log.learned
    ns = {name: [time_of(ns) for ns in column] for name, column in learned.items() if name.endswith("_ns")}
    spans = [[*map(time_of, of)] for of in (outcome.start_ns.tolist(), outcome.finish_ns.tolist())]
    sections = {
        "sending": [f"{flow} {' '.join(map(span_of, spans))}".strip() for flow, spans in log.sending.items()],
        "decisions": [" ".join(map(s, log.decisions))],
        "refills": [" ".join(map(s, log.refills))] if log.refills else [],
        "queues": [f"{s(t)} {coflow} {queue}" for t, coflow, queue in log.queues],
        "counters": [f"{count} {name}" for name, count in log.counters.items()],
        "coflows": [f"{start} {end}" for start, end in zip(*spans, strict=True)],
    }
    if "learned" in run.wanted:
        columns = [learned[name] for name in ("learned_bytes", "estimated_bytes")]
        columns = [column for column in columns if not np.isnan(column).all()]
        rows = zip(ns["learned_ns"], *([s(of) for of in column] for column in columns), strict=True)
        sections["learned"] = [" ".join(row) for row in rows]
    if "verdicts" in run.wanted:
        admitted = ["yes" if of else "no" for of in learned["admitted"]]
        rows = zip(admitted, ns["admitted_ns"], ns["rejected_ns"], strict=True)
        sections["verdicts"] = [" ".join(row) for row in rows]
    if "flows" in run.wanted:
        assert outcome.tasks is not None
        names = ("start_ns", "finish_ns", "node")
        start, end, node = (outcome.tasks[name].tolist() for name in names)
        sections["flows"] = [
            f"{time_of(a)} {time_of(b)} {port}" for a, b, port in zip(start, end, node, strict=True)
        ]
    if "server" in run.wanted:
        server, *_ = outcome.servers
        times = " ".join(s(server[name] / NS) for name in ("busy", "waited", "longest"))
        sections["server"] = [f"{server['served']} {times}"]
    return {name: sections[name] for name in run.wanted}


def s(number: float) -> str:
    """Return a number without zeros at its end, times to the nanosecond."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def time_of(ns: int) -> str:
    return s(ns / NS) if ns >= 0 else "-"


def span_of(span: tuple[float, ...]) -> str:
    begin, end, *rate = span
    return f"{s(begin)}-{s(end)}" + "".join(f"@{s(of)}" for of in rate)


def setting_for(given: Given, scheduler: str, asked: dict[str, Any]) -> Setting:
    workload = workload_of(given)
    prices = {name: asked.pop(name) for name in PRICES & asked.keys()}
    costs = Costs("fixed", **prices) if prices else Costs(asked.pop("costs", "none"))
    setting = setting_of(scheduler, workload, costs=costs, **asked)
    updates = [update_of(text) for name, text in given if name == "update"]
    return replace(setting, updates=make_updates(updates, workload)) if updates else setting


def workload_of(given: Given) -> CoflowWorkload:
    (ports,) = (int(text) for name, text in given if name == "ports")
    rows, said = [], []
    for text in (text for name, text in given if name == "coflow"):
        arrival, flows, words = [*text.split("|"), ""][:3]
        rows.append((float(arrival), [flow_of(flow) for flow in flows.split(",") if flow.strip()]))
        said.append(dict(word.split("=") for word in words.split()))
    due = [float(one.get("due", "nan")) for one in said]
    weight = [float(one["weight"]) for one in said] if any("weight" in one for one in said) else None
    workload = coflows(*rows, ports=ports)
    return with_demands(workload, deadline_s=due, weight=weight) if any(said) else workload


def flow_of(text: str) -> tuple[int, int, float]:
    ports, size = text.split()
    return (*map(int, ports.split(">")), float(size))


def update_of(text: str) -> Row:
    at, rest = text.split("|")
    coflow, kind, *where = rest.split()
    if not where:
        return Row(float(at), int(coflow), KINDS[kind])
    side, *ports = where
    return Row(float(at), int(coflow), KINDS[kind], SIDES[side], *map(int, ports))
