"""Whole runs with resources, priorities and gangs, as their files show them to `resource_check`.

That every scheduler keeps to them is tried by the conformance suite; here runs that do not are found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from resource_check import check_priorities, check_run

import emu
from clusters.cluster import Cluster, build_cluster
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

GIB = 2**30


def cluster() -> Cluster:
    """Six nodes of two types, with 36 cores and 96 GiB."""
    return build_cluster(
        "six",
        [4, 4, 4, 8, 8, 8],
        cpu_cores=[4.0] * 3 + [8.0] * 3,
        memory_bytes=np.array([8] * 3 + [24] * 3) * GIB,
    )


def banded(seed: int) -> JobWorkload:
    """80 jobs of 1 to 6 tasks in three priorities, at about the cluster's capacity: most tasks wait."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 7, 80)
    asked = Requests(
        {"cpu_cores": rng.choice([0.5, 1.0, 2.0, 4.0], 80), "memory_gib": rng.choice([0.5, 2.0, 8.0], 80)},
        priority=rng.choice([0, 2, 9], 80),
    )
    durations = rng.exponential(10.0, count.sum())
    return make_workload("banded", np.sort(rng.uniform(0, 60, 80)), count, durations, requests=asked)


def ran(scheduler: str, workload: JobWorkload, folder: Path, **given: Any) -> pa.Table:
    """Run, and return the rows of tasks.parquet."""
    pq.write_table(cluster().table, folder / "six.parquet")
    emu.run(
        scheduler,
        workload,
        cluster=folder / "six.parquet",
        out=folder / "run",
        output_tasks=True,
        output_events="all",
        in_process=True,
        short_cutoff="15 s",
        **given,
    )
    return pq.read_table(folder / "run" / "tasks.parquet")


def test_runs_that_ignore_what_is_asked_for_are_found(tmp_path: Path) -> None:
    workload = banded(1)
    (tmp_path / "slots").mkdir()
    run = ran("central-lwl", workload, tmp_path)
    assert max(check_run(run, workload, cluster())["cpu_cores"]) > 4
    assert check_priorities(run, workload, cluster()) == 0
    (tmp_path / "alike").mkdir()
    run = ran("central-lwl", workload, tmp_path / "alike", priorities=False)
    with pytest.raises(AssertionError, match="that would have fit"):
        check_priorities(run, workload, cluster())
    by_slots = ran("central-lwl", workload, tmp_path / "slots", resources_use="slots")
    check_run(by_slots, workload, cluster(), resources=())
    with pytest.raises(AssertionError, match="more than it has"):
        check_run(by_slots, workload, cluster())
    gangs = make_workload(
        "gangs", [0.0, 0.0], [6, 3], [9.0] * 6 + [5.0] * 3, requests=Requests(gang_nodes=[1, 0])
    )
    (tmp_path / "apart").mkdir()
    apart = ran("central-lwl", gangs, tmp_path / "apart")
    with pytest.raises(AssertionError, match=r"of gang .* started|gang .* ran on"):
        check_run(apart, gangs, cluster(), gangs_within_s=0.0)


@pytest.mark.parametrize(("scheduler", "mode"), [("central-lwl", "restart"), ("sparrow", "checkpoint")])
def test_evicted_tasks_hold_nothing_and_their_work_is_counted(
    scheduler: str, mode: str, tmp_path: Path
) -> None:
    workload = banded(3)
    run = ran(scheduler, workload, tmp_path, preemption_mode=mode, preemption_cost="2 s")
    events = pq.read_table(tmp_path / "run" / "events.parquet")
    check_run(run, workload, cluster(), lasting=False, events=events)
    jobs = pq.read_table(tmp_path / "run" / "jobs.parquet")
    evictions = events.filter(pc.equal(events["kind"].cast(pa.string()), "EVICT"))
    times = np.bincount(evictions["job"].to_numpy(), minlength=jobs.num_rows)
    assert jobs["evictions"].to_pylist() == times.tolist()
    assert times.sum() > 10
    assert (times[np.array(jobs["priority"].to_pylist()) == 9] == 0).all()  # nothing is above them
    # What the slots and cores were taken for is the work, and what was lost of it.
    first = workload.arrays().first_task
    job = np.repeat(np.arange(jobs.num_rows), np.diff(first))
    taken_s = np.bincount(job, run["finish_s"].to_numpy() - run["start_s"].to_numpy())
    ran_s = (evictions["time_ns"].to_numpy() - evictions["d"].to_numpy()) / 1e9
    taken_s += np.bincount(evictions["job"].to_numpy(), ran_s, jobs.num_rows)
    work_s = np.bincount(job, run["duration_s"].to_numpy())
    lost_s = jobs["evicted_work_s"].to_numpy()
    assert np.allclose(taken_s, work_s + lost_s, rtol=0, atol=1e-3 if mode == "checkpoint" else 1e-5)
    # Causes add up, also where a task of the chain was evicted.
    result = emu.read_result(tmp_path / "run")
    causes = emu.causes(result)
    total = sum(causes[name].to_numpy() for name in causes.column_names if name.endswith("_ns"))
    assert np.allclose(total / 1e9, jobs["jct_s"].to_numpy(), rtol=0, atol=1e-6)
    assert (causes["preemption_ns"].to_numpy() > 0).any() == (mode == "restart")
    found = emu.explain(result, int(jobs["job_id"][int(times.argmax())].as_py()))
    assert any(f"{times.max()} times a task of it was evicted" in one for one in found.sentences)
