"""Preemption of DAG jobs: examples by hand, an independent simulation event by event, and what always holds."""

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
from tests.actors.dag_emulations import ALL
from tests.actors.dag_settings import setting_of, three_priorities
from tests.actors.machines.preempting_simulator import How, Job, Simulator
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests

NO_DELAY = Network(0.0)
NS, BILLION = 1_000_000_000, 1_000_000_000
NAMES = [scheduler.name for scheduler in ALL]


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


def single_tasks(rows: list[tuple[float, float, int]], cores: list[float]) -> DagWorkload:
    """Jobs of one task: arrival (s), duration (s), priority; and the cores that each needs."""
    submit_s, duration_s, priority = zip(*rows, strict=True)
    ones = [1] * len(rows)
    return make_dag_workload(
        "by hand", submit_s, ones, ones, duration_s, [], cpu_cores=cores, tenant=["a"] * len(rows),
        requests=Requests(priority=list(priority)),
    )  # fmt: skip


def machines(*cores: float) -> Cluster:
    return build_cluster("machines", [int(c) for c in cores], cpu_cores=list(cores))


@pytest.mark.parametrize("scheduler", NAMES)
def test_a_job_takes_the_machines_of_lower_priorities_and_gives_them_back(scheduler: str) -> None:
    """Two cores, for the jobs of `three_priorities`.

    At 1 s both tasks that run are evicted, and a second of each is lost. J1 has both cores until 5 s, then J2 has one
    until 7 s. J0 goes on with the tasks that have not run, and begins again with the others at 9 and 11 s.
    """
    jobs = three_priorities()
    outcome = run_setting(with_preemption(scheduler, jobs, machines(2)))
    assert [start for start, _ in spans(outcome)] == [11, 9, 5, 7, 1, 1, 4, 5]
    assert evicted(outcome) == [(2, 2), (0, 0), (0, 0)]
    assert outcome.start_ns.tolist() == [0, 1 * NS, 5 * NS]  # a job starts with the first attempt at a task


@pytest.mark.parametrize("scheduler", NAMES)
def test_with_a_checkpoint_it_goes_on_from_where_it_was(scheduler: str) -> None:
    """It runs until 4 s, is restored from 7 to 8, is evicted at 9 and restored for 2 s: 5 s of it are left then."""
    rows = [(0.0, 10.0, 0), (4.0, 3.0, 5), (9.0, 1.0, 9)]
    how = Preemption(keeps=True, cost_s=1.0)
    outcome = run_setting(with_preemption(scheduler, single_tasks(rows, [2, 2, 2]), machines(2), how))
    assert spans(outcome) == [(10, 16), (4, 7), (9, 10)]
    assert evicted(outcome) == [(2, 2), (0, 0), (0, 0)]


def test_the_lowest_priority_goes_first_and_of_equals_the_youngest() -> None:
    rows = [(0.0, 20.0, 1), (1.0, 20.0, 2), (2.0, 20.0, 1), (3.0, 5.0, 9)]
    jobs = single_tasks(rows, [1, 1, 1, 1])
    for oldest, due in ((False, [0, 0, 1, 0]), (True, [1, 0, 0, 0])):
        found = run_setting(with_preemption("drf", jobs, machines(3), Preemption(oldest_first=oldest)))
        assert [times for times, _ in evicted(found)] == due


def test_the_machine_is_the_one_of_the_lowest_priorities_then_of_the_least_lost_then_the_first() -> None:
    """The first machine runs priority 2; of the two that run priority 1 the third has done so for 1 s less."""
    rows = [(0.0, 20.0, 2), (0.0, 20.0, 1), (1.0, 20.0, 1), (3.0, 5.0, 9)]
    found = run_setting(with_preemption("drf", single_tasks(rows, [4, 4, 4, 4]), machines(4, 4, 4)))
    assert [times for times, _ in evicted(found)] == [0, 0, 1, 0]
    rows = [(0.0, 20.0, 1), (0.0, 20.0, 1), (3.0, 5.0, 9)]
    found = run_setting(with_preemption("drf", single_tasks(rows, [4, 4, 4]), machines(4, 4)))
    assert [times for times, _ in evicted(found)] == [1, 0, 0]


def test_none_is_evicted_where_all_would_not_suffice_or_one_is_spared() -> None:
    """Of 8 cores 4 are held at priority 9, 3 at 0: what needs 5 waits, what needs 4 does not."""
    rows = [(0.0, 20.0, 9), (0.0, 10.0, 0), (1.0, 1.0, 5)]
    for needs, how, due in (
        (5, None, [(0, 20), (0, 10), (20, 21)]),
        (4, None, [(0, 20), (2, 12), (1, 2)]),
        (4, Preemption(below=0), [(0, 20), (0, 10), (10, 11)]),
    ):
        setting = with_preemption("sjf", single_tasks(rows, [4, 3, needs]), machines(8), how)
        assert spans(run_setting(setting)) == due
    rows = [(0.0, 10.0, 0), (1.0, 1.0, 5), (3.0, 1.0, 5), (5.0, 1.0, 5)]
    found = run_setting(with_preemption("sjf", single_tasks(rows, [1] * 4), machines(1), Preemption(most=2)))
    assert spans(found) == [(4, 14), (1, 2), (3, 4), (14, 15)]


def test_a_queue_evicts_its_own_tasks_alone() -> None:
    """Two cores, half for each tenant: the job of priority 9 has the core of its own queue, not the other one."""
    jobs = make_dag_workload(
        "by hand", [0, 0, 1], [1, 1, 1], [1, 1, 2], [10.0] * 4, [], cpu_cores=[1, 1, 1],
        tenant=["a", "b", "b"], requests=Requests(priority=[0, 0, 9]),
    )  # fmt: skip
    found = run_setting(with_preemption("capacity", jobs, machines(2)))
    assert [times for times, _ in evicted(found)] == [0, 1, 0]
    assert spans(found)[0] == (0, 10)


@pytest.mark.parametrize("first", ["a", "b"])
def test_tasks_of_other_queues_do_not_choose_the_machine(first: str) -> None:
    """Machine 0 runs the lowest priority, of tenant b, and 5; machine 1 runs 3. For a's 9 the 3 goes."""
    jobs = make_dag_workload(
        "by hand", [0, 0.1, 0.2, 1], [1] * 4, [1] * 4, [10.0] * 4, [], cpu_cores=[2, 2, 4, 2],
        tenant=[first, "a", "a", "a"], requests=Requests(priority=[0 if first == "b" else 7, 5, 3, 9]),
    )  # fmt: skip
    found = run_setting(with_preemption("capacity", jobs, machines(4, 4)))
    assert [times for times, _ in evicted(found)] == [0, 0, 1, 0]


@pytest.mark.parametrize("heartbeat_s", [0.0, 2.0])
def test_the_place_is_held_until_the_machine_has_answered(heartbeat_s: float) -> None:
    """Messages take 0.1 s: a task is stopped at 1.1 s, the manager hears of it at 1.2, and the other starts at 1.3 s.

    Heartbeats are at 0, 2, 4 s, and there at 2.1 s: what is stopped is reported at once all the same.
    """
    rows = [(0.0, 10.0, 0), (1.0, 2.0, 5)]
    jobs = single_tasks(rows, [2, 2])
    given = {"network": Network(0.1), "heartbeat_s": heartbeat_s}
    found = run_setting(with_preemption("drf", jobs, machines(2), **given))
    assert found.tasks is not None
    begins = (1.0 if heartbeat_s == 0 else 2.1) + 0.3
    assert found.tasks["start_ns"][1] / NS == pytest.approx(begins)
    assert evicted(found)[0][1] == pytest.approx(begins - 0.2 - (0.1 if heartbeat_s == 0 else 0.2))


def test_an_end_that_is_on_its_way_counts_as_an_end() -> None:
    """The first ends at 1.1 s, and is to be stopped at 1.05: that comes too late. Nothing is lost."""
    rows = [(0.0, 1.0, 0), (1.05, 2.0, 5)]
    found = run_setting(with_preemption("drf", single_tasks(rows, [2, 2]), machines(2), network=Network(0.1)))
    assert evicted(found) == [(0, 0), (0, 0)]
    assert spans(found)[0] == pytest.approx((0.1, 1.1))
    assert spans(found)[1] == pytest.approx((1.3, 3.3))


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


def test_equal_priorities_evict_none() -> None:
    found = run_setting(with_preemption("drf", single_tasks([(0, 5, 3), (1, 1, 3)], [2, 2]), machines(2)))
    assert spans(found) == [(0, 5), (5, 6)]
    assert evicted(found) == [(0, 0), (0, 0)]


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
