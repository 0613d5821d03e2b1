"""Invariants of every scheduler of DAG jobs, checked on small drawn cases, from the tables of results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clusters.capacity import capacities, demands
from clusters.cluster import Cluster, build_cluster
from emu.families.dags.keys import MAX_MIN_FAIR
from emu.families.drawn_cases import (
    Case,
    draw_parameters,
    drawn_features,
    draws_of,
    effective_settings,
)
from emu.families.jobs.testing import (
    check_durations,
    check_result,
    check_troubles,
    draw_outages,
    draw_trouble,
)
from emu.families.result_checks import SLACK_S, hold
from emu.results.result import Result
from workloads.arrow import column, optional_column
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests

if TYPE_CHECKING:
    from actors.scheduler import Scheduler

SHAPES = ("mixed", "burst", "chains", "diamonds", "mixed", "few")
"""What the jobs of a case are like, in turn."""
TEXTS = {"guarantees": "t0=0.6, t1=0.1", "sees": "cpu_cores"}
"""Values of parameters that are text."""


def features_of(scheduler: Scheduler) -> tuple[str, ...]:
    """Return what cases of a scheduler may have, but for a network, with which tasks are not evicted."""
    ignored = dict(scheduler.ignores)
    return (
        "two resources",
        "tenants",
        "priorities",
        *(("preemption",) if scheduler.preempts else ()),
        "failures",
        "stragglers",
        *(("estimates",) if "estimates" not in ignored else ()),
        "costs",
        "delays",
    )


def draw_case(
    scheduler: Scheduler, seed: int, given: Mapping[str, Any] | None = None, features: str | None = None
) -> Case:
    """Return the case of a seed, with features that the scheduler declares: each by chance, or `drawn_cases.ALL`.

    `given` are values of parameters; others are drawn. Every third case has a network that moves the tasks' input.
    """
    rng, shape = draws_of(scheduler, seed), SHAPES[seed % len(SHAPES)]
    has = drawn_features(rng, features_of(scheduler), features)
    if {"guarantees"} & {name for name, value in (given or {}).items() if value}:
        has.add("tenants")
    network = features is None and seed % 3 == 2
    if network:
        has = (has | {"network"}) - {"preemption"}
    parameters = draw_parameters(
        rng, scheduler, given or {}, scale_s=1.5, texts=TEXTS if "tenants" in has else None
    )
    workload = _draw_dags(rng, shape, has)
    cluster = _draw_machines(
        rng, int(rng.integers(3, 6)), alike=scheduler.own is not None or parameters.get("managers", 1) > 1
    )
    settings: dict[str, Any] = {
        "network_delay": float(rng.choice([0.0005, 0.05, 0.25])),
        "timeline_period": 5.0,
        "infeasible": "drop",
    }
    if "estimates" in has:
        settings |= {"estimates_error": "random", "estimates_size": 0.8}
        if rng.random() < 0.3 and parameters.get("managers", 1) == 1:  # or what fits seems to fit no machine
            settings["estimates_demands"] = True
    if "delays" in has:
        settings |= {"network_spread": 0.3, "network_cross_rack_delay": 0.6}
    if "costs" in has:
        settings |= {
            "cost_model": "fixed",
            "cost_per_message": 0.01,
            "cost_per_job": 0.05,
            "cost_per_task": 0.02,
        }
    settings |= draw_trouble(rng, has)
    files = {"dynamics_failures": draw_outages(rng, cluster.num_nodes)} if "failures" in has else {}
    settings = effective_settings(scheduler, settings)
    if network:
        settings |= _draw_network(rng, scheduler, "failures" in has)
    name = ", ".join([f"case {seed} ({shape}", *sorted(has)]) + ")"
    return Case(name, workload, settings, parameters, cluster, files)


def _draw_network(rng: np.random.Generator, scheduler: Scheduler, fails: bool) -> dict[str, Any]:
    from actors.schedulers.registry import coordinator_names

    settings = {
        "network_scheduler": str(rng.choice([MAX_MIN_FAIR, rng.choice(coordinator_names())])),
        "fabric_port_speed": 8e9,
    }
    settings["network_skew"] = float(rng.choice([0.0, 1.0]))
    waves = str(rng.choice(["together", "apart"]))
    if settings["network_scheduler"] != MAX_MIN_FAIR:
        settings["network_waves"] = waves
    if fails:
        return settings
    plain = scheduler.own is None and not scheduler.plans
    way = rng.integers(3) if plain else 0
    if way == 1:
        settings["network_registration"] = "pipelined"
    elif way == 2:
        settings["network_shuffle"] = "push"
    read = str(rng.choice(["outside", "share", "replicas"]))
    settings["network_input"] = read
    if read == "share":
        settings["network_local_share"] = 0.5
    if read == "replicas":
        settings |= {"network_replicas": 2, "network_locality_wait": float(rng.choice([0.0, 2.0]))}
        settings["network_replica_placement"] = str(rng.choice(["random", "racks"]))
    return settings


def _draw_machines(rng: np.random.Generator, nodes: int, alike: bool) -> Cluster:
    """Return machines in two racks, of which the first holds any task; `alike`: all of them do."""
    cores = np.array([4.0, *rng.choice([4.0, 8.0] if alike else [2.0, 4.0, 6.0, 8.0], nodes - 1)])
    gib = np.array([16, *rng.choice([16] if alike else [16, 8], nodes - 1)])
    return build_cluster("drawn", cores, cpu_cores=cores, memory_bytes=gib * 2**30, rack=np.arange(nodes) % 2)


def _draw_dags(rng: np.random.Generator, shape: str, has: set[str]) -> DagWorkload:
    """Return jobs of one to five stages: trees, chains or diamonds, some of whose edges are one-to-one."""
    jobs = 2 if shape == "few" else int(rng.integers(8, 13))
    stages = np.full(jobs, 4) if shape == "diamonds" else rng.integers(1, 6, jobs)
    stages[0] = max(stages[0], 2)  # so that there is an edge
    tasks = rng.integers(1, 6, stages.sum())
    edges, first = [], np.cumsum(stages) - stages
    for job, count in enumerate(stages.tolist()):
        if shape == "diamonds":
            edges += [(job, 0, 1), (job, 0, 2), (job, 1, 3), (job, 2, 3)]
        else:
            before = (lambda s: s - 1) if shape == "chains" else (lambda s: int(rng.integers(s)))
            edges += [(job, before(stage), stage) for stage in range(1, count)]
    alike = [tasks[first[job] + parent] == tasks[first[job] + child] for job, parent, child in edges]
    kinds = ["one-to-one" if same and rng.random() < 0.7 else "all-to-all" for same in alike]
    count = int(stages.sum())
    sizes = np.array([np.nan, 0.0, 0.01, 0.3, 1.0, 3.0]) * 1e9
    edge_bytes, input_bytes = rng.choice(sizes, len(edges)), rng.choice(sizes, count)
    edge_bytes[:1], input_bytes[:1] = 1e9, 1e9
    evicts = "priorities" in has or "preemption" in has
    return make_dag_workload(
        "drawn",
        np.zeros(jobs) if shape == "burst" else np.cumsum(rng.choice([0.0, 0.25, 1.0, 3.0], jobs)),
        stages,
        tasks,
        rng.choice([0.0, 0.1, 1.0, 1.0, 2.5, 4.0, 9.0], tasks.sum()),
        edges,
        cpu_cores=rng.choice([0.5, 1.0, 2.0, 4.0], count),
        memory=rng.choice([0.0, 0.05, 0.2, 0.6], count) if "two resources" in has else None,
        edge_kind=kinds,
        edge_bytes=edge_bytes if "network" in has and edges else None,
        input_bytes=input_bytes if "network" in has else None,
        tenant=[f"t{job % 3}" for job in range(jobs)] if "tenants" in has else None,
        requests=Requests(priority=rng.integers(0, 4, jobs)) if evicts else Requests(),
    )


def check_case(scheduler: Scheduler, case: Case, result: Result) -> None:
    """Check the result of a drawn case by its tables alone; raises as `check_scheduler`."""
    settings, workload, cluster = case.settings, result.workload or case.workload, case.cluster
    assert isinstance(workload, DagWorkload)
    assert cluster is not None
    check_result(result, workload, cluster.num_nodes, workload.num_tasks, case.name, lasting=False)
    check_troubles(case, result)
    moves = "network_scheduler" in settings
    if not moves:  # a task holds its room while it fetches its input
        check_durations(case, result, workload, np.ones(cluster.num_nodes))
    start, end, node = (optional_column(result.tasks, name) for name in ("start_s", "finish_s", "node"))
    early = settings.get("network_registration") == "pipelined" or result.counters.get("run_again", 0)
    ends = end if early else None
    if ends is None:
        _check_precedence(workload, start, end, case.name)
    blind = result.summary.get("overused") or "sees" in case.parameters or settings.get("estimates_demands")
    if not blind:
        _check_capacity(workload, cluster, _spans(result, workload, start, end, node), case.name)
    jct_s, path_s = optional_column(result.jobs, "jct_s"), critical_paths_ns(workload) / 1e9
    if settings.get("preemption_mode") != "checkpoint":
        hold(
            bool((jct_s >= path_s - SLACK_S).all()), case.name, "a job ended before its critical path allows"
        )


def _spans(
    result: Result, workload: DagWorkload, start: Any, end: Any, node: Any
) -> tuple[npt.NDArray[Any], ...]:
    """Return task, start, end and machine of all attempts at tasks, of those that came to nothing, too."""
    task = np.arange(workload.num_tasks)
    if result.attempts is None:
        return task, start, end, node.astype(np.int64)
    before = {name: column(result.attempts, name) for name in ("job_id", "task", "start_s", "end_s", "node")}
    first = dict(
        zip(column(workload.jobs, "job_id").tolist(), workload.arrays().first_task.tolist(), strict=False)
    )
    rows = np.array([first[job] for job in before["job_id"].tolist()], np.int64) + before["task"]
    pairs = ((task, rows), (start, before["start_s"]), (end, before["end_s"]), (node, before["node"]))
    task, start, end, node = (np.concatenate(pair) for pair in pairs)
    return task, start, end, node.astype(np.int64)


def check_dag_result(result: Result, workload: DagWorkload, cluster: Cluster, case: str = "the run") -> None:
    """Check a result with tasks against its workload and cluster; raises as `check_scheduler`.

    Every task runs once, for its duration, after all that it waits for; no machine holds more than it has; no job ends
    before its critical path allows, and no makespan is below the time that all work takes all machines.
    """
    check_result(result, workload, cluster.num_nodes, workload.num_tasks, case)
    start, end, node = (optional_column(result.tasks, name) for name in ("start_s", "finish_s", "node"))
    _check_precedence(workload, start, end, case)
    _check_capacity(workload, cluster, _spans(result, workload, start, end, node), case)
    jct, path = optional_column(result.jobs, "jct_s"), critical_paths_ns(workload) / 1e9
    hold(bool((jct >= path - SLACK_S).all()), case, "a job ended before its critical path allows")


def _check_precedence(
    workload: DagWorkload, start: npt.NDArray[Any], end: npt.NDArray[Any], case: str
) -> None:
    a = workload.arrays()
    for stage in range(workload.num_stages):
        own = start[a.stage_first_task[stage] : a.stage_first_task[stage + 1]]
        for edge in range(a.first_parent[stage], a.first_parent[stage + 1]):
            parent = a.parent[edge]
            ends = end[a.stage_first_task[parent] : a.stage_first_task[parent + 1]]
            waits_for = ends if a.parent_one_to_one[edge] else ends.max()
            waited = bool((own >= waits_for - SLACK_S).all())
            hold(waited, case, f"a task of stage {stage} did not wait for its parents")


def _check_capacity(
    workload: DagWorkload, cluster: Cluster, spans: tuple[npt.NDArray[Any], ...], case: str
) -> None:
    """Check that no machine holds more than it has: ends count before starts of the same time; spans as of `_spans`."""
    task, start, end, node = spans
    demand = np.repeat(demands(workload), np.diff(workload.arrays().stage_first_task), axis=0)[task]
    capacity = capacities(cluster, workload.resources)
    for machine in range(cluster.num_nodes):
        on = np.flatnonzero((node == machine) & (end > start))
        times = np.concatenate([end[on] - SLACK_S / 2, start[on]])
        held = np.concatenate([-demand[on], demand[on]])[np.argsort(times, kind="stable")].cumsum(axis=0)
        over = held > capacity[machine] * (1 + 1e-6) + 1e-6
        hold(not over.any(), case, f"machine {machine} held more than it has")
