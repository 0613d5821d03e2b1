"""Preemption of DAG jobs beside examples (`golden/dags/priorities.txt`): an independent simulation, event by event."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import KINDS, run_setting

from actors.environment import Preemption
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.setting import Network, Setting
from clusters.cluster import Cluster, build_cluster
from tests.actors.dag_settings import setting_of
from tests.actors.machines.preempting_simulator import How, Job, Simulator
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests

NO_DELAY = Network(0.0)
NS, BILLION = 1_000_000_000, 1_000_000_000


def with_preemption(
    scheduler: str, workload: DagWorkload, cluster: Cluster, how: Preemption | None = None, **given: Any
) -> Setting:
    given = {"network": NO_DELAY, **given}
    setting = setting_of(scheduler, workload, cluster, priorities=True, **given)
    return dataclasses.replace(setting, preemption=how or Preemption())


def spans(outcome: Outcome) -> list[tuple[float, float]]:
    """When the last run of each task started and ended (s)."""
    assert outcome.tasks is not None
    found = np.stack([outcome.tasks["start_ns"], outcome.tasks["finish_ns"]], axis=1) / NS
    return [(start, end) for start, end in found.tolist()]


def evicted(outcome: Outcome) -> list[tuple[int, float]]:
    """How often tasks of each job were evicted, and the work that was lost by that (s)."""
    assert outcome.evicted is not None
    return [(int(times), us / 1e6) for times, us in outcome.evicted.T]


def machines(*cores: float) -> Cluster:
    return build_cluster("machines", [int(c) for c in cores], cpu_cores=list(cores))


def test_one_event_evicts_more_tasks_than_it_has_messages_for() -> None:
    """300 tasks run on one machine; one that needs all of it evicts them, 57 with each event."""
    jobs = make_dag_workload(
        "by hand", [0, 5], [1, 1], [300, 1], [30.0] * 300 + [5.0], [], cpu_cores=[8 / 1024, 8],
        requests=Requests(priority=[0, 9]),
    )  # fmt: skip
    for network, heartbeat_s in ((NO_DELAY, 0.0), (Network(0.001), 0.0), (Network(0.001), 1.0)):
        setting = with_preemption("drf", jobs, machines(8), network=network, heartbeat_s=heartbeat_s)
        found = run_setting(setting)
        assert evicted(found)[0][0] == 300
        assert found.counters["launches"] == 601
        assert spans(found)[300][0] == pytest.approx(5, abs=1.1 if heartbeat_s else 0.01)
        assert min(start for start, _ in spans(found)[:300]) >= spans(found)[300][1]


def random_case(rng: np.random.Generator) -> tuple[list[Job], list[tuple[int, ...]], How]:
    """Jobs of one or two stages on one to four machines with cores and memory."""
    has = [(int(rng.integers(2, 9)), int(rng.integers(2, 9))) for _ in range(rng.integers(1, 5))]
    most = np.array(max(has, key=min))
    now, jobs = 0, []
    for _ in range(40):
        now += int(rng.exponential(1.5 * NS))
        stages = []
        for _ in range(rng.integers(1, 3)):
            demand = tuple(int(rng.integers(0, m + 1)) * BILLION for m in most)
            takes = [int(d) for d in rng.exponential(2.0 * len(has) * NS, rng.integers(1, 4)) + 1]
            stages.append((demand, takes))
        jobs.append(Job(now, int(rng.integers(0, 5)), 0.0, stages))
    return (
        jobs,
        [tuple(amount * BILLION for amount in machine) for machine in has],
        How(
            keeps=bool(rng.integers(2)),
            cost=int(rng.integers(2)) * 300_000_000,
            most=int(rng.choice([1, 3, 1000])),
            below=[None, 3][rng.integers(2)],
            oldest_first=bool(rng.integers(2)),
        ),
    )


def setting_of_case(jobs: list[Job], has: list[tuple[int, ...]], how: How) -> Setting:
    stages = [(j, s, stage) for j, job in enumerate(jobs) for s, stage in enumerate(job.stages)]
    workload = make_dag_workload(
        "random",
        [job.submit / NS for job in jobs],
        [len(job.stages) for job in jobs],
        [len(takes) for _, _, (_, takes) in stages],
        [d / NS for _, _, (_, takes) in stages for d in takes],
        [(j, s - 1, s) for j, s, _ in stages if s],
        cpu_cores=[demand[0] / BILLION for _, _, (demand, _) in stages],
        demands={"memory_gib": [demand[1] / BILLION for _, _, (demand, _) in stages]},
        requests=Requests(priority=[job.priority for job in jobs]),
    )
    cores, memory = ([amounts[r] // BILLION for amounts in has] for r in (0, 1))
    cluster = build_cluster(
        "random", [1] * len(has), cpu_cores=cores, memory_bytes=[gib << 30 for gib in memory]
    )
    preemption = Preemption(how.keeps, how.cost / NS, how.most, how.below, how.oldest_first)
    return with_preemption("sjf", workload, cluster, preemption)


def log_of(partition: Partition) -> list[tuple[str, int, int, int]]:
    """The launches, ends and evictions of a run, in order: kind, ns, machine and task."""
    found, events, world = [], 0, partition.world
    for _ in steps(partition):
        now, times = world.queue.now, world.counts
        if now.events[0] == events:
            continue
        events, kind = now.events[0], KINDS[int(now.kind[0])]
        row = (int(now.time[0]), int(now.dst[0]))
        if kind == "LAUNCH":
            found.append(("launch", *row, int(now.a[0])))
        elif kind == "LOST":
            found.append(("evict", row[0], int(now.c[0]) & 0xFFFFFFFF, int(now.b[0])))
        elif kind == "TASK_DONE":
            found.append(("end", row[0], int(now.b[0]) >> 32, int(now.a[0])))
        assert (times >= 0).all()
    return found


@pytest.mark.parametrize("seed", range(60))
def test_every_event_is_that_of_an_independent_simulation(seed: int) -> None:
    jobs, has, how = random_case(np.random.default_rng(seed))
    setting = setting_of_case(jobs, has, how)
    paths = [sum(np.mean(takes) for _, takes in job.stages) for job in jobs]
    partition = started(setting)
    rank = partition.state.matcher.rank
    assert np.allclose(rank, paths, rtol=1e-6)
    simulator = Simulator([job._replace(place=rank[j]) for j, job in enumerate(jobs)], has, how)
    due = simulator.run()
    found = log_of(partition)
    assert sorted(found) == sorted(due)  # in one instant messages of several machines come in another order
