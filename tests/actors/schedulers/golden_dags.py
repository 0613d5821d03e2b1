"""Golden logs of DAG jobs: what a case is given, and what its log has (how a file is written: `test_golden_logs.py`).

Given, times in seconds:

    cores: 2 4                          the cores of each machine; others as `rack: 0 1`, `memory_gib: 8 4`,
                                        `attr_gpus: 2 0`
    job: 0 | tenant=a priority=5        when a job arrives, and what it says; its stages follow, one a line:
      map     1 5*2                     a name, how long its tasks take (`5*2`: two of 5), and what each needs:
      reduce  2  cores=4 memory=0.1     cores (one if it does not say), or another demand;
      last    1  from=map:6 copy=reduce:2 reads=3
                                        parents, over all-to-all and one-to-one edges of so many GB, or of unknown size,
                                        and the GB that its tasks read of their job's input
    down: node 1 | 3 100                an outage of "node 1", "scheduler 0" or "central": from when, until when
    homes: - - 1 0                      the seed is the first by which tasks have these homes,
    parts: 1 0                          or by which the parts that they read lie on these machines

Options are parameters of the scheduler, fields of `Setting` and `Switch`, and: `over=fair` or a coordinator (by default
there is no network); `delay_s`, `speed` (GB a second; 1), `rows`; prices as `per_message_s`; `detection_s`;
`preempt=restart` or `preempt=keep` with `cost_s`, `most`, `below` and `oldest_first`. Of alternatives, as
`over=fifo|sebf` or `drf|tetris`, each has this log.

The log; a case has the sections that it names:

    node, start, fetched, finish        of all tasks in order: where, and when the last run began, had its input (-: it
                                        fetches nothing), and ended
    begins, ends                        of all jobs
    launched                            of the stages whose tasks fetch as others end: when the first task was launched
    sent, ready                         of tasks with homes: when these were asked, and when all was there
    bytes                               GB that crossed the network, and GB that were on the machine
    coflows                             how many there were, and the mean of their completion times
    counters                            what was counted
    evicted                             of each job: times, lost seconds
    servers                             of managers, or schedulers, then the coordinator: messages served, seconds busy
    attempts                            all attempts at tasks: task, machine, start, end
    long                                of each job whether it is long
"""

from __future__ import annotations

import dataclasses
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from emulations import NS, outages, run_setting
from golden_coflows import PRICES, alternatives, s, time_of

from actors.environment import Preemption
from actors.hosting.outcome import Outcome
from actors.setting import Costs, Dynamics, Estimates, Setting
from clusters.cluster import Cluster, build_cluster
from examples.smallest_coflow import LeastSent
from tests.actors.transfers.runs import GB, homes_of, over, places_of
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests

if TYPE_CHECKING:
    from test_golden_logs import Given, Run, Sections

NOT_OF_NODES = ("job", "down", "homes", "parts")
OWN: dict[str, Any] = {"LeastSent": LeastSent}
EVICTION = ("cost_s", "most", "below", "oldest_first")


def log(given: Given, run: Run) -> Sections:
    """Run a case with each of the alternatives, and write down the sections that it has."""
    found = []
    for scheduler, asked in alternatives(run):
        setting = setting_for(given, scheduler, asked)
        sections = sections_of(run_setting(setting), run)
        found.append({name: sections[name] for name in run.wanted})
    assert all(one == found[0] for one in found), f"the alternatives differ: {found}"
    return found[0]


def sections_of(outcome: Outcome, run: Run) -> Sections:
    tasks, series = outcome.tasks, outcome.series
    assert tasks is not None
    found = {
        "node": row(tasks["node"].tolist()),
        "start": times(tasks["start_ns"]),
        "finish": times(tasks["finish_ns"]),
        "begins": times(outcome.start_ns),
        "ends": times(outcome.finish_ns),
        "counters": [f"{count} {name}" for name, count in outcome.counters.items()],
        "long": row(["yes" if of else "no" for of in outcome.is_long]),
    }
    for name in ("fetched", "launched", "sent", "ready"):
        if name in run.wanted:
            found[name] = times(getattr(series, f"{name}_ns"))
    if "bytes" in run.wanted:
        found["bytes"] = [f"{s(series.moved_bytes / GB)} moved {s(series.local_bytes / GB)} local"]
    if "coflows" in run.wanted:
        found["coflows"] = [f"{series.coflows} {s(series.mean_cct_s)}"]
    if "servers" in run.wanted:
        found["servers"] = [f"{one['served']} {s(one['busy'] / NS)}" for one in outcome.servers]
    if "evicted" in run.wanted:
        assert outcome.evicted is not None
        found["evicted"] = [f"{times} {s(us / 1e6)}" for times, us in outcome.evicted.T]
    if "attempts" in run.wanted:
        last = zip(*(tasks[name].tolist() for name in ("node", "start_ns", "finish_ns")), strict=True)
        rows = [(task, *of) for task, of in enumerate(last)]
        rows += [tuple(int(of[name]) for name in ("task", "node", "start", "end")) for of in outcome.attempts]
        found["attempts"] = [f"{task} {node} {time_of(a)} {time_of(b)}" for task, node, a, b in sorted(rows)]
    return found


def row(values: list[Any]) -> list[str]:
    return [" ".join(map(str, values))]


def times(ns: np.ndarray) -> list[str]:
    return row([time_of(of) for of in ns.tolist()])


def setting_for(given: Given, scheduler: str, asked: dict[str, Any]) -> Setting:
    more: dict[str, Any] = {}
    prices = {name: asked.pop(name) for name in PRICES & asked.keys()}
    if prices:
        more["costs"] = Costs("fixed", **prices)
    if preempt := asked.pop("preempt", None):
        how = {name: asked.pop(name) for name in EVICTION if name in asked}
        more |= {"priorities": True, "preemption": Preemption(keeps=preempt == "keep", **how)}
    if "estimates" in asked:
        more["estimates"] = Estimates("constant", asked.pop("estimates"), demands=True)
    down = [text.partition("|") for name, text in given if name == "down"]
    if down:
        rows = [(who.strip(), *map(float, span.split())) for who, _, span in down]
        more["dynamics"] = Dynamics(outages=outages(*rows), detection_s=asked.pop("detection_s", 0.0))
    workload, nodes = workload_of([text for name, text in given if name == "job"]), nodes_of(given)
    network, speed = asked.pop("over", "none"), asked.pop("speed", 1)
    network = OWN.get(network, network)
    setting = over(network, workload, nodes, scheduler, speed=speed * GB, **more, **asked)
    for name, text in given:
        wanted = [-1 if of == "-" else int(of) for of in text.split()] if name in ("homes", "parts") else []
        if name == "homes":
            return next(one for one in by_seed(setting) if homes_of(one).tolist() == wanted)
        if name == "parts":
            return next(
                one for one in by_seed(setting) if [of[0] for of in places_of(one).values()] == wanted
            )
    return setting


def by_seed(setting: Setting) -> Any:
    return (dataclasses.replace(setting, seed=seed) for seed in count())


def nodes_of(given: Given) -> Cluster:
    columns = {name: text.split() for name, text in given if name not in NOT_OF_NODES}
    attributes: dict[str, Any] = {
        name.replace("attr_", "attr:"): of if name.startswith("attr_") else [float(x) for x in of]
        for name, of in columns.items()
    }
    cores = attributes.pop("cores")
    if "memory_gib" in attributes:
        attributes["memory_bytes"] = np.array(attributes.pop("memory_gib")) * 2**30
    if "rack" in attributes:
        attributes["rack"] = [int(of) for of in attributes["rack"]]
    return build_cluster("by hand", [max(1, int(of)) for of in cores], cpu_cores=cores, **attributes)


def workload_of(jobs: list[str]) -> DagWorkload:
    """Return the workload of `job:` entries."""
    submit_s, said, stages, tasks, needs, edges = [], [], [], [], [], []
    for job, text in enumerate(jobs):
        head, *lines = text.splitlines()
        at, _, words = head.partition("|")
        submit_s.append(float(at))
        said.append(words_of(words.split()))
        names = [line.split()[0] for line in lines]
        stages.append(len(lines))
        for place, line in enumerate(lines):
            parts = line.split()[1:]
            tasks.append([float(of) for text in parts if "=" not in text for of in repeated(text)])
            own = [text for text in parts if "=" in text]
            needs.append(words_of([of for of in own if not of.startswith(("from=", "copy="))]))
            for word in own:
                kind, _, which = word.partition("=")
                if kind in ("from", "copy"):
                    parent, _, size = which.partition(":")
                    gb = float(size) if size else np.nan
                    edges.append((job, names.index(parent), place, kind == "copy", gb * GB))
    demands = {name for one in needs for name in one} - {"cores", "reads"}
    tenant = [one.get("tenant") for one in said] if any("tenant" in one for one in said) else None
    priority = [int(one["priority"]) if "priority" in one else None for one in said]
    reads = [GB * float(one.get("reads", 0)) for one in needs]
    has_bytes = not np.isnan([size for *_, size in edges]).all()
    return make_dag_workload(
        "by hand",
        submit_s,
        stages,
        [len(of) for of in tasks],
        [duration for of in tasks for duration in of],
        [edge[:3] for edge in edges] or np.zeros((0, 3), int),
        cpu_cores=[float(one.get("cores", 1)) for one in needs],
        demands={name: [float(one.get(name, 0)) for one in needs] for name in sorted(demands)},
        edge_kind=["one-to-one" if edge[3] else "all-to-all" for edge in edges]
        if any(e[3] for e in edges)
        else None,
        edge_bytes=[edge[4] for edge in edges] if edges and has_bytes else None,
        input_bytes=reads if any(reads) else None,
        tenant=tenant,
        requests=Requests(priority=priority) if any(of is not None for of in priority) else Requests(),
    )


def words_of(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def repeated(text: str) -> list[str]:
    each, _, times = text.partition("*")
    return [each] * int(times or 1)
