"""Gangs that hold resources of nodes: those that never fit, and partitions."""

from __future__ import annotations

import pytest
from emulations import (
    NS,
)

from clusters.capacity import needs_of
from clusters.cluster import Cluster, build_cluster
from clusters.feasibility import drop_wide
from clusters.schema import encode_texts
from workloads.jobs import make_workload
from workloads.requests import Requests, gang_nodes

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")


def gpu_nodes(*gpus: int) -> Cluster:
    """Nodes of four cores with these GPUs."""
    return build_cluster(
        "gpus", [1] * len(gpus), cpu_cores=4.0, **{"attr:gpus": encode_texts([*map(str, gpus)])}
    )


@pytest.mark.parametrize("nodes", [0, 2])
def test_gangs_that_never_fit_can_be_left_out(nodes: int) -> None:
    asked = Requests({"attr:gpus": [1.0, 1.0]}, gang_nodes=[nodes, 0])
    workload, cluster = make_workload("wide", [0, 1], [4, 3], [1.0] * 7, requests=asked), gpu_nodes(2, 0, 1)
    needs = needs_of(workload, cluster, workload.resources)
    kept = drop_wide(workload, gang_nodes(workload.jobs), cluster, needs)
    assert kept.arrays().submit_ns.tolist() == [NS]
    assert kept.notes[-1].startswith("1 of 2 jobs dropped")
