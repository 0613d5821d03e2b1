"""What attempts held that failures or evictions ended is in the use of resources: counted from events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import Cluster, build_cluster
from emu.results.result import Result
from workloads.conversion import as_dags
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

GIB = 2**30
FAILING = {"dynamics_mtbf": "60 s", "dynamics_mttr": "5 s"}
EVICTING = {"preemption_mode": "restart"}
Interval = tuple[int, float, float]
"""A task, and from when to when (s) it held what it needs."""


def machines() -> Cluster:
    return build_cluster(
        "six", [4, 8] * 3, cpu_cores=[4.0, 8.0] * 3, memory_bytes=np.array([8 * GIB, 24 * GIB] * 3)
    )


def busy(seed: int) -> JobWorkload:
    """80 jobs of 1 to 6 tasks, in three priorities and of two tenants, at about the cluster's capacity."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 7, 80)
    asked = Requests(
        {"cpu_cores": rng.choice([0.5, 1.0, 4.0], 80), "memory_gib": rng.choice([0.5, 2.0, 8.0], 80)},
        priority=rng.choice([0, 2, 9], 80),
    )
    durations = rng.exponential(10.0, count.sum())
    submit_s, tenant = np.sort(rng.uniform(0, 60, 80)), rng.choice(["ads", "web"], 80).tolist()
    return make_workload("busy", submit_s, count, durations, tenant=tenant, requests=asked)


def held_in(events: pa.Table) -> list[Interval]:
    """Read off the events which task held its demand when: from a start to its end, an eviction or a failure."""
    since: dict[int, tuple[int, int]] = {}  # by task: its node, and when it started
    found = []
    for event in events.select(["kind", "time_ns", "node", "task", "c"]).to_pylist():
        kind, now, task = event["kind"], event["time_ns"], event["task"]
        if kind == "START":
            since[task] = (event["node"], now)
        gone = [t for t, (node, _) in since.items() if node == event["node"]] if kind == "FAIL" else []
        if kind == "EVICT" or (kind == "TASK_END" and since.get(task, (0, -1))[1] == event["c"]):
            gone = [task]
        found += [(t, since.pop(t)[1] / 1e9, now / 1e9) for t in gone]
    assert not since
    return found


def within(intervals: list[Interval], begin_s: float, end_s: float, tasks: int) -> Any:
    """Return for how long each task held what it needs between two times (s)."""
    held = np.zeros(tasks)
    for task, start_s, finish_s in intervals:
        held[task] += max(0.0, min(finish_s, end_s) - max(start_s, begin_s))
    return held


@pytest.mark.parametrize("scheduler", ["central-lwl", "sparrow"])
@pytest.mark.parametrize("more", [FAILING, EVICTING, FAILING | EVICTING], ids=["fails", "evicts", "both"])
def test_the_use_is_what_the_events_say(scheduler: str, more: dict[str, Any], tmp_path: Path) -> None:
    workload, cluster, out = busy(1), machines(), tmp_path / "run"
    pq.write_table(cluster.table, tmp_path / "six.parquet")
    result = emu.run(
        scheduler, workload, cluster=tmp_path / "six.parquet", out=out, output_tasks=True, short_cutoff="15 s",
        output_events="all", timeline_period="5 s", in_process=True, **more,
    )  # fmt: skip
    assert isinstance(result, Result)
    assert result.counters.get("tasks_lost", 0) > (10 if FAILING.items() <= more.items() else -1)
    assert result.counters.get("evictions", 0) > (10 if EVICTING.items() <= more.items() else -1)
    intervals = held_in(pq.read_table(out / "events.parquet"))
    total = {"cpu_cores": 36.0, "memory_gib": 96.0}
    of_job = np.repeat(np.arange(80), np.diff(workload.arrays().first_task))
    share = np.stack([workload.jobs[name].to_numpy()[of_job] / total[name] for name in total], axis=1)
    tenant = np.array(workload.jobs["tenant"].to_pylist())[of_job]
    first_s = float(workload.jobs["submit_s"][0].as_py())
    last_s = float(result.jobs["finish_s"].to_numpy().max())

    def mean(begin_s: float, end_s: float, of: Any = True) -> Any:
        return (within(intervals, begin_s, end_s, of_job.size) * of) @ share / (end_s - begin_s)

    summary = result.summary["jobs"]
    assert list(summary["used"].values()) == pytest.approx(mean(first_s, last_s))
    for name in ("ads", "web"):
        own = mean(first_s, last_s, tenant == name).max()
        assert summary["by_tenant"][name]["dominant_share"] == pytest.approx(own)
    times = result.timeline["time_s"].to_numpy()
    use = pq.read_table(out / "resources.parquet")["used"].to_numpy().reshape(-1, 2)
    tenants = pq.read_table(out / "tenants.parquet")
    by_tenant = tenants["share"].to_numpy().reshape(times.size, 2)
    names = tenants["tenant"].to_pylist()[:2]
    assert times.size > 15
    for row, end_s in enumerate(times.tolist()):
        assert use[row] == pytest.approx(mean(end_s - 5.0, end_s))
        shares = [mean(end_s - 5.0, end_s, tenant == name).max() for name in names]
        assert by_tenant[row] == pytest.approx(shares)
    assert result.timeline["utilisation"].to_numpy() == pytest.approx(use.max(axis=1))


def test_attempts_do_not_depend_on_partitions(tmp_path: Path) -> None:
    pq.write_table(machines().table, tmp_path / "six.parquet")
    used = []
    for partitions in (1, 3):
        result = emu.run(
            "central-lwl", busy(2), cluster=tmp_path / "six.parquet", clock="windows", partitions=partitions,
            short_cutoff="15 s", **FAILING, **EVICTING,
        )  # fmt: skip
        assert isinstance(result, Result)
        used.append((result.summary["jobs"], result.tables["resources"], result.tables["tenants"]))
    assert used[0][0] == used[1][0]
    assert used[0][1].equals(used[1][1])
    assert used[0][2].equals(used[1][2])
    assert used[0][0]["evictions"] > 10


def test_dag_jobs_hold_machines_also_in_attempts_that_failures_ended(
    tmp_path: Path,
) -> None:
    """A task of 10 s is lost after its end at 18 s, which the next heartbeat would report."""
    outages = tmp_path / "outages.csv"
    outages.write_text("target,fail_s,repair_s\nnode 0,20,22\n")
    workload = as_dags(make_workload("one", [0.0], [1], [10.0]))
    result = emu.run(
        "drf", workload, 1, slots=1, network_delay=0.0, dynamics_failures=outages, dynamics_detection=0.0,
        timeline_period="1 s", output_tasks=True, parameters={"heartbeat_s": 8.0}, fairness_window=100.0,
    )  # fmt: skip
    assert isinstance(result, Result)
    (end_s,) = result.tasks["finish_s"].to_pylist()
    assert result.summary["dags"]["used"] == {"slots": pytest.approx(20.0 / end_s)}
    rows = result.timeline.to_pylist()
    assert sum(row["utilisation"] for row in rows) == pytest.approx(20.0)
