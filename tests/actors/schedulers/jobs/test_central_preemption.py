"""One queue with preemption: how many priorities there may be, and partitions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import run_setting, setting_of
from hypothesis import strategies as st

from actors.environment import Dynamics, Preemption
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

S = 1_000_000_000  # ns


def workload_of(*rows: tuple[float, float, int]) -> JobWorkload:
    """Jobs of one task: when it comes and how long it runs (s), and its priority."""
    submit_s, duration_s, priority = zip(*rows, strict=True)
    return make_workload(
        "by hand", submit_s, [1] * len(rows), duration_s, requests=Requests(priority=list(priority))
    )


def with_preemption(workload: JobWorkload, cluster: Any, delay_s: float = 0.0, **how: Any) -> Setting:
    setting = setting_of("central-fifo", workload, cluster, cutoff_s=math.inf, network=delay_s)
    return replace(setting, priorities=True, resources=workload.resources, preemption=Preemption(**how))


def test_more_priorities_than_there_are_levels_are_refused() -> None:
    workload = workload_of(*((0, 1, p) for p in range(65)))
    with pytest.raises(
        InputError, match="jobs have 65 priorities; one queue with preemption takes at most 64"
    ):
        run_setting(with_preemption(workload, build_cluster("one", [1])))


@st.composite
def preempting(draw: st.DrawFn, with_failures: bool = False) -> tuple[Setting, int]:
    """Up to 30 jobs of four priorities on one to five nodes of slots, or of cores and memory."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, nodes = draw(st.integers(2, 30)), draw(st.integers(1, 5))
    counts = rng.integers(1, 4, n)
    tasks = int(counts.sum())
    resources = draw(st.sampled_from([(), ("cpu_cores",), ("cpu_cores", "memory_gib")]))
    requests = Requests(
        {name: rng.choice([0.5, 1.0, 2.0], n) for name in resources},
        priority=[0, 3, *rng.integers(0, 4, n - 2).tolist()],
    )
    submit, durations = np.sort(rng.integers(0, 4_000 * n, n)) / 1e3, rng.integers(1, 20_000, tasks) / 1e3
    workload = make_workload("preempting", submit, counts, durations, requests=requests)
    cluster = build_cluster(
        "some", rng.integers(1, 4, nodes), cpu_cores=rng.choice([2.0, 4.0], nodes), memory_bytes=4 << 30
    )
    delay_s = draw(st.sampled_from([0.25, 0.0]))
    how = {
        "keeps": draw(st.booleans()),
        "cost_s": draw(st.sampled_from([0.0, 0.7])),
        "most": draw(st.sampled_from([1, 2, 1000])),
        "below": draw(st.sampled_from([None, 2])),
        "oldest_first": draw(st.booleans()),
    }
    setting = with_preemption(workload, cluster, delay_s, **how)
    if with_failures:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=80.0, mttr_s=5.0, detection_s=2.0))
    return setting, round(delay_s * S)
