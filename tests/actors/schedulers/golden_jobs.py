"""Golden logs of jobs: what a case is given, and what its log has (how a file is written: `test_golden_logs.py`).

Given, times in seconds:

    slots: 1 2                          the slots of each node
    cpu_cores: 4 1                      any other name of an attribute of nodes, one value each; `rack: 0 1`
    job: 0 | 3 5 | if cores >= 4        when a job arrives, how long its tasks take (`2*3`: three of 2), what else it
                                        says: constraints after `if`, and tenant=ads, priority=5, cpu_cores=2,
                                        gang_nodes=1, requested_s=12
    down: node 0 | 3 10                 an outage of "node 0", "scheduler 0" or "central": from when, until when
    draw: PROBES 1 0 of 2 is 0          what the case takes for granted of its seed: stream, owner, counter, how many

Options are those of `emulations.setting_of`, of the scheduler, and: `detection_s`, `failover_s` (outages); `spread_s`,
`cross_rack_delay_s`; `estimates=constant:0.5`; `resources=cpu_cores`, `passing` and `priorities` of the setting;
`preempt=restart` or `preempt=keep`, with `cost_s`, `most`, `below` and `oldest_first`. A message takes 1 s unless
`network` says otherwise, so that every hop shows: a probe that finds an idle slot at t has its task at t + 2.

The log, whole: `tasks:` ("job.task", node, start, finish of the last run, by start, then node), `messages:` (how many
of each kind), `counters:` (what the mechanisms counted), with preemption `evicted:` (of each job that was: times, lost
seconds). If the case has them: `jobs:` (of each job its first start and its end), and `sent PROBE DONE:` (each message
of these kinds, or of all if none is named: time, kind, source, destination, first number, mostly the job). Actors are
the nodes, then the probe schedulers, the central scheduler and the monitor. At one instant a node's own completion
comes first, then messages by sender, then heartbeats, then arrivals, then retries.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from emulations import NS, FewestTasks, outages, setting_of, step_setting
from splitmix import draw

from actors.environment import Preemption
from actors.kernel import random
from actors.setting import Dynamics, Estimates, Network, Setting
from clusters.cluster import Cluster, build_cluster
from clusters.schema import encode_texts
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

if TYPE_CHECKING:
    from test_golden_logs import Given, Run, Sections

OWN: dict[str, Any] = {"FewestTasks": FewestTasks}
DELAY_S = 1.0


def log(given: Given, run: Run) -> Sections:
    """Run a case and write down all of it."""
    setting = setting_for(given, run)
    for premise in of(given, "draw"):
        stream, owner, counter, _, count, _, due = premise.split()
        found = draw(setting.seed, getattr(random, stream), int(owner), int(counter), int(count))
        assert found == int(due), f"{premise}: it is {found}"
    log, outcome = step_setting(setting)
    sections = {
        "tasks": [f"{task} {node} {s(start)} {s(end)}" for task, node, start, end in log.tasks],
        "messages": [f"{count} {kind}" for kind, count in log.kinds.items()],
        "counters": [f"{count} {name}" for name, count in log.counters.items()],
    }
    if outcome.evicted is not None:
        evicted = enumerate(outcome.evicted.T)
        sections["evicted"] = [f"{job} {times} {s(us / 1e6)}" for job, (times, us) in evicted if times]
    if "jobs" in run.wanted:
        spans = zip(outcome.start_ns / NS, outcome.finish_ns / NS, strict=True)
        sections["jobs"] = [f"{job} {s(start)} {s(end)}" for job, (start, end) in enumerate(spans)]
    for name in run.wanted:
        if name.startswith("sent"):
            kinds = name.split()[1:]
            sent = [m for m in log.messages if not kinds or m.kind in kinds]
            sections[name] = [f"{s(m.time_s)} {m.kind} {m.src} {m.dst} {m.a}" for m in sent]
    return sections


def s(seconds: float) -> str:
    """Return a time to the nanosecond, without zeros at its end."""
    return f"{seconds:.9f}".rstrip("0").rstrip(".")


def of(given: Given, name: str) -> list[str]:
    return [text for each, text in given if each == name]


def setting_for(given: Given, run: Run) -> Setting:
    asked, workload = dict(run.options), jobs_of(of(given, "job"))
    network = {key: asked.pop(key) for key in ("spread_s", "cross_rack_delay_s") if key in asked}
    dynamics = {key: asked.pop(key) for key in ("detection_s", "failover_s") if key in asked}
    down = [(who.strip(), *map(float, span.split())) for who, _, span in map(split, of(given, "down"))]
    eviction = {key: asked.pop(key) for key in ("cost_s", "most", "below", "oldest_first") if key in asked}
    estimates = asked.pop("estimates", None)
    resources = tuple(filter(None, asked.pop("resources", ",".join(workload.resources)).split(",")))
    more: dict[str, Any] = {"resources": resources}
    more |= {key: asked.pop(key) for key in ("priorities", "passing") if key in asked}
    if preempt := asked.pop("preempt", None):
        assert preempt in ("keep", "restart")
        more["preemption"] = Preemption(keeps=preempt == "keep", **eviction)
    setting = setting_of(
        OWN.get(run.scheduler, run.scheduler),
        workload,
        nodes_of(given),
        network=Network(asked.pop("network", DELAY_S), **network),
        estimates=Estimates(*map(number, estimates.split(":"))) if estimates else None,
        dynamics=Dynamics(outages=outages(*down) if down else None, **dynamics),
        **asked,
    )
    return dataclasses.replace(setting, **more)


def split(text: str) -> tuple[str, str, str]:
    return text.partition("|")


def number(text: str) -> Any:
    return float(text) if re.fullmatch(r"-?[\d.]+(e-?\d+)?", text) else text


NOT_OF_NODES = ("job", "down", "draw")


def nodes_of(given: Given) -> Cluster:
    """Return the cluster: slots, and the other attributes that are given."""
    columns = {name: text.split() for name, text in given if name not in NOT_OF_NODES}
    slots = [int(x) for x in columns.pop("slots")]
    attributes = {
        name: encode_texts(values)
        if name == "isa" or name.startswith("attr")
        else [number(x) for x in values]
        for name, values in columns.items()
    }
    return build_cluster("by hand", slots, **attributes)


def jobs_of(rows: Sequence[str]) -> JobWorkload:
    """Return the workload of `job:` rows."""
    submit_s, tasks, sets, said = [], [], [], []
    for row in rows:
        at, durations, *more = (part.strip() for part in row.split("|"))
        submit_s.append(float(at))
        tasks.append([float(d) for text in durations.split() for d in repeated(text)])
        sets.append("".join(part.removeprefix("if ") for part in more if part.startswith("if ")))
        words = " ".join(part for part in more if not part.startswith("if ")).split()
        said.append(dict(word.split("=", 1) for word in words))
    names = {name for one in said for name in one}
    column = {name: [number(one.get(name, "nan")) for one in said] for name in names}
    tenant = [one.get("tenant") for one in said] if "tenant" in column else None
    fields = {name: column[name] for name in names & {"gang_nodes", "requested_s"}}
    if "priority" in names:
        fields["priority"] = [int(one.get("priority", 0)) for one in said]
    demands = {
        name: [float(one.get(name, 0)) for one in said] for name in sorted(names - fields.keys() - {"tenant"})
    }
    workload = make_workload(
        "by hand",
        submit_s,
        [len(each) for each in tasks],
        [d for each in tasks for d in each],
        tenant=tenant,
        requests=Requests(demands, **fields),
    )
    if not any(sets):
        return workload
    return with_constraints(
        workload, [parse_constraint_set(x) if x else () for x in sets], np.arange(len(sets))
    )


def repeated(text: str) -> list[str]:
    each, _, times = text.partition("*")
    return [each] * int(times or 1)
