"""Small emulations of DAG jobs for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Network, Setting
from clusters.cluster import Cluster, build_cluster
from workloads.arrow import from_optional
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests
from workloads.stages import EDGE_BYTES, INPUT_BYTES, edges_schema, stages_schema
from workloads.transform.primitives import with_tables

CORES = [4.0, 8.0, 4.0, 2.0, 6.0]


def unlike_machines() -> Cluster:
    """Five machines, of which no two of the first four hold the same."""
    return build_cluster("unlike machines", [4, 8, 4, 2, 6], cpu_cores=CORES)


def mixed_dags(
    jobs: int = 14, seed: int = 7, mean_gap_s: float = 1.5, tenants: int = 3, priorities: int = 1
) -> DagWorkload:
    """Jobs of one to six stages in trees, with some one-to-one edges, that come and go and get in each other's way."""
    rng = np.random.default_rng(seed)
    stages = rng.integers(1, 7, jobs)
    tasks = rng.integers(1, 7, stages.sum())
    first = np.cumsum(stages) - stages
    edges, kinds = [], []
    for job in range(jobs):
        for stage in range(1, stages[job]):
            parent = int(rng.integers(stage))
            alike = tasks[first[job] + parent] == tasks[first[job] + stage]
            edges.append((job, parent, stage))
            kinds.append("one-to-one" if alike else "all-to-all")
    return make_dag_workload(
        "mixed dags",
        np.cumsum(rng.exponential(mean_gap_s, jobs)),
        stages,
        tasks,
        rng.exponential(3.0, tasks.sum()),
        edges,
        cpu_cores=rng.choice([0.5, 1.0, 1.5, 2.0], stages.sum()),
        memory=rng.choice([0.05, 0.1, 0.2, 0.3], stages.sum()),
        edge_kind=kinds,
        tenant=[f"t{job % tenants}" for job in range(jobs)],
        requests=Requests(priority=rng.integers(priorities, size=jobs)) if priorities > 1 else Requests(),
    )


def two_shuffles(first_gb: float, second_gb: float) -> DagWorkload:
    """Two jobs of a map and a reducer of 1 s. Both maps run on machine 0, the reducers on 1 and 2: they fit nowhere
    else.
    """
    return make_dag_workload(
        "by hand",
        [0, 0],
        [2, 2],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
        [(0, 0, 1), (1, 0, 1)],
        cpu_cores=[1, 4, 1, 4],
        edge_bytes=[first_gb * 1e9, second_gb * 1e9],
    )


def with_bytes(workload: DagWorkload, seed: int) -> DagWorkload:
    """Edges of 0 to 3 GB; of some it is not known."""
    size = (
        np.random.default_rng(seed).choice([np.nan, 0.0, 0.01, 0.3, 1.0, 3.0], workload.edges.num_rows) * 1e9
    )
    table = workload.edges.append_column(EDGE_BYTES, from_optional(size))
    return with_tables(workload, edges=table.cast(edges_schema(table.column_names)))


def with_input(workload: DagWorkload, seed: int) -> DagWorkload:
    """Stages read 0 to 3 GB of their job's input; of some it is not known."""
    draws = np.random.default_rng(seed)
    size = draws.choice([np.nan, 0.0, 0.01, 0.3, 1.0, 3.0], workload.num_stages) * 1e9
    table = workload.stages.append_column(INPUT_BYTES, from_optional(size))
    return with_tables(workload, stages=table.cast(stages_schema(table.column_names)))


def setting_of(
    scheduler: str,
    workload: DagWorkload | None = None,
    nodes: Cluster | None = None,
    *,
    seed: int = 0,
    network: Network | None = None,
    costs: Any = None,
    priorities: bool = False,
    **parameters: Any,
) -> Setting:
    """An emulation of DAG jobs by a scheduler's name."""
    found = find_scheduler(scheduler)
    return Setting(
        found,
        resolve_parameters(found, parameters),
        mixed_dags() if workload is None else workload,
        nodes or unlike_machines(),
        network=network or Network(),
        seed=seed,
        priorities=priorities,
        **({} if costs is None else {"costs": costs}),
    )
