"""Small workloads of DAGs and coflows from plain lists, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.dags import DagWorkload, make_dag_workload


def dags_of(
    jobs: Sequence[tuple[float, Sequence[Sequence[float]], Sequence[tuple[int, int]], str | None]],
    short_cutoff_s: float | None = None,
) -> DagWorkload:
    """Jobs as (submit_s, durations of the tasks of each stage, (parent, child) of each edge, tenant)."""
    stages = [stage for _, of_job, _, _ in jobs for stage in of_job]
    return make_dag_workload(
        "dags",
        [submit_s for submit_s, _, _, _ in jobs],
        [len(of_job) for _, of_job, _, _ in jobs],
        [len(stage) for stage in stages],
        [duration_s for stage in stages for duration_s in stage],
        [(j, *pair) for j, (_, _, pairs, _) in enumerate(jobs) for pair in pairs],
        stage_name=[f"s{s}" for _, of_job, _, _ in jobs for s in range(len(of_job))],
        cpu_cores=np.arange(len(stages)),
        tenant=[tenant for _, _, _, tenant in jobs],
        short_cutoff_s=short_cutoff_s,
    )


def coflows_of(
    coflows: Sequence[tuple[float, float | None, Mapping[tuple[int, int], float]]],
    ports: int,
    port_bytes_per_s: float | None = None,
) -> CoflowWorkload:
    """Coflows as (arrival_s, deadline_s, {(ingress, egress): size_bytes})."""
    flows = [(*pair, size) for _, _, sizes in coflows for pair, size in sizes.items()]
    speeds = None if port_bytes_per_s is None else np.full(ports, port_bytes_per_s)
    return make_coflow_workload(
        "coflows",
        [arrival_s for arrival_s, _, _ in coflows],
        [len(sizes) for _, _, sizes in coflows],
        *zip(*flows, strict=True),
        ports,
        deadline_s=np.array([deadline_s for _, deadline_s, _ in coflows], np.float64),
        ingress_bytes_per_s=speeds,
        egress_bytes_per_s=speeds,
    )


def a_flow() -> dict[tuple[int, int], float]:
    return {(0, 1): 1e6}
