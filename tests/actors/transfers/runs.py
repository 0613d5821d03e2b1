"""Runs of DAG jobs over a network, for tests: under managers and schedulers of jobs, fair sharing and coordinators."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from actors.hosting.outcome import Outcome
from actors.kernel.random import HOMES, PLACES
from actors.scheduler import resolve_parameters
from actors.schedulers.jobs.by_stage import by_stage
from actors.schedulers.registry import coordinator_names, find_scheduler
from actors.setting import Network, Setting, Switch
from actors.transfers.joined import FIRST_ROWS, with_network
from clusters.capacity import capacities, demands
from clusters.cluster import Cluster, build_cluster
from examples.smallest_coflow import EqualShares, LeastSent
from tests.actors.splitmix import draw
from tests.actors.transfers.own_coordinators import FirstComes, LeastLeft, Smallest
from workloads.dags import DagWorkload

GB = 1e9
MACHINES = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0])
MANAGERS = ("drf", "fair-dags", "cpm", "capacity", "sjf", "srtf", "tetris", "tetris-fair", "heft", "dagps")
JOB_SCHEDULERS = (
    *("random", "sparrow", "hawk", "eagle", "ideal-eagle", "central-fifo", "central-lwl", "dist-lwl"),
    *("phoenix", "yacc-d"),
)
COORDINATORS = coordinator_names()
OWN = (FirstComes, LeastSent, Smallest, EqualShares, LeastLeft)
OF_SWITCH, OF_SETTING = ({field.name for field in fields(of)} for of in (Switch, Setting))


def over(
    network: Any,
    workload: DagWorkload,
    nodes: Cluster = MACHINES,
    scheduler: Any = "drf",
    *,
    delay_s: float = 0.0,
    rows: int = FIRST_ROWS,
    speed: float = GB,
    **given: Any,
) -> Setting:
    """An emulation over "fair" sharing, under a coordinator, or over no network ("none").

    Schedulers of jobs run stage by stage. `rows` of flows there are at first; `given`: fields of `Switch` and of
    `Setting`, else parameters of the scheduler.
    """
    found = find_scheduler(scheduler)
    made = by_stage(found) if found.family == "jobs" else found
    if network != "none":
        made = with_network(made, None if network == "fair" else find_scheduler(network), rows)
    switch, own = ({name: given.pop(name) for name in of & given.keys()} for of in (OF_SWITCH, OF_SETTING))
    return Setting(
        made,
        resolve_parameters(found, given),
        workload,
        nodes,
        switch=Switch(speed, scheduler=str(network), **switch),
        **{"network": Network(delay_s), **own},
    )


def of_cores(*cores: float, **given: Any) -> Cluster:
    """Machines of so many cores, with more slots than tasks may want."""
    return build_cluster("machines", [max(8, int(of)) for of in cores], cpu_cores=list(cores), **given)


def places_of(setting: Setting) -> dict[int, list[int]]:
    """On which machines the part of each task lies, by the same draws with sets in place of arrays."""
    arrays, switch, nodes = setting.workload.arrays(), setting.switch, range(setting.cluster.num_nodes)
    racks = setting.cluster.racks().tolist()
    by_rack = sorted(nodes, key=lambda node: (racks[node], node))
    first = arrays.stage_first_task
    found = {}
    for stage in np.flatnonzero(np.nan_to_num(arrays.input_bytes) > 0):
        for task in range(first[stage], first[stage + 1]):
            chosen: list[int] = []
            for k in range(switch.replicas):
                left = [node for node in by_rack if node not in chosen]
                if switch.replica_placement == "racks" and k == 1:
                    left = [node for node in left if racks[node] != racks[chosen[0]]] or left
                if switch.replica_placement == "racks" and k == 2 and racks[chosen[1]] != racks[chosen[0]]:
                    left = [node for node in left if racks[node] == racks[chosen[1]]] or left
                chosen.append(left[draw(setting.seed, PLACES, task, k, len(left))])
            found[task] = chosen
    return found


def homes_of(setting: Setting) -> np.ndarray:
    """Where tasks run to which others send bytes, -1 for others, by the same draws from lists."""
    work, nodes = setting.workload, setting.cluster.num_nodes
    arrays, managers = work.arrays(), setting.parameters.get("managers", 1)
    found = np.full(arrays.stage_first_task[-1], -1)
    needs, has = (np.rint(of * 1e9) for of in (demands(work), capacities(setting.cluster, work.resources)))
    for job in range(work.num_jobs):
        own = range(*(nodes * (job % managers + k) // managers for k in (0, 1)))
        for stage in range(arrays.first_stage[job], arrays.first_stage[job + 1]):
            if not (arrays.parent_bytes[slice(*arrays.first_parent[stage : stage + 2])] > 0).any():
                continue
            fit = [node for node in own if (needs[stage] <= has[node]).all()]
            fit.sort(key=lambda node: (*has[node].tolist(), node))
            for task in range(*arrays.stage_first_task[stage : stage + 2]):
                found[task] = fit[draw(setting.seed, HOMES, task, 0, len(fit))]
    return found


def times_of(outcome: Outcome) -> list[list[Any]]:
    """What a run says of its tasks, of its fetches, and of its jobs: for comparing runs whose events differ."""
    assert outcome.tasks is not None
    columns = [*outcome.tasks.values(), outcome.finish_ns, *(outcome.series or ())]
    return [np.ravel(column).tolist() for column in columns]


def holds_what_it_has(setting: Setting, node: Any, start: Any, end: Any, task: Any = slice(None)) -> None:
    """Check that no machine holds more than it has: ends come before starts. `task`: what ran, by default each once."""
    arrays = setting.workload.arrays()
    needs = np.repeat(demands(setting.workload), np.diff(arrays.stage_first_task), axis=0)[task]
    has = capacities(setting.cluster, setting.workload.resources)
    for machine in range(setting.cluster.num_nodes):
        on = np.flatnonzero((node == machine) & (end > start))
        times = np.concatenate([2 * end[on], 2 * start[on] + 1])
        held = np.concatenate([-needs[on], needs[on]])[np.argsort(times, kind="stable")].cumsum(axis=0)
        assert (held <= has[machine] + 1e-9).all()
