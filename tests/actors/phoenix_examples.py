"""Settings for tests of Phoenix: small examples, in which a message takes 1 s, and one where every mechanism fires."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulations import SETS, constrained, jobs, mixed_cluster, mixed_workload, setting_of

from actors.setting import Setting
from clusters.cluster import Cluster, build_cluster
from clusters.schema import encode_texts
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload

ONE_PROBE = {"cutoff_s": 100, "probe_ratio": 1, "least_probes": 1, "schedulers": 1}
BY_CRV: dict[str, Any] = ONE_PROBE | {"order": "crv", "report_change": 0}


def asking(*rows: tuple[float, list[float], str]) -> JobWorkload:
    """A workload of (submit_s, durations, constraints) rows."""
    sets = [parse_constraint_set(text) if text else () for _, _, text in rows]
    return with_constraints(jobs(*((at, tasks) for at, tasks, _ in rows)), sets, np.arange(len(rows)))


def nodes_of(*cores: int, isa: str = "") -> Cluster:
    """Nodes of one slot with so many cores, and with these instruction sets."""
    names = isa.split() or ["x86"] * len(cores)
    return build_cluster("by hand", [1] * len(cores), cpu_cores=list(cores), isa=encode_texts(names))


def contended(scheduler: str = "phoenix", num_jobs: int = 40, **settings: Any) -> Setting:
    """A setting in which every mechanism fires."""
    given = {"heartbeat_s": 1, "least_probes": 3} | settings
    if scheduler == "phoenix":
        given = {"crv_threshold": 0.1, "order": "crv"} | given
    workload = constrained(mixed_workload(num_jobs, seed=3), *SETS)
    return setting_of(scheduler, workload, mixed_cluster(), long_partition=0.7, seed=11, **given)
