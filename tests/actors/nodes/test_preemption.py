"""Preemption at nodes: which tasks are evicted, what becomes of their work, and what the table of jobs says of it."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulations import OBSERVED, run_setting, run_windows, setting_of

from actors.environment import Dynamics, Preemption
from actors.hosting.outcome import Outcome
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Setting
from clusters.cluster import Cluster, build_cluster
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

PREEMPTING = [
    name for name in scheduler_names("jobs") if find_scheduler(name).preempts and not name.endswith("-c")
]
Row = tuple[float, list[float], int]
"""When a job arrives (s), how long its tasks take (s), and its priority."""


def workload_of(rows: list[Row], cores: list[float] | None = None) -> JobWorkload:
    submit_s, tasks, priority = zip(*rows, strict=True)
    return make_workload(
        "by hand",
        submit_s,
        [len(durations) for durations in tasks],
        [d for durations in tasks for d in durations],
        requests=Requests({} if cores is None else {"cpu_cores": cores}, priority=list(priority)),
    )


def with_preemption(
    scheduler: str, workload: JobWorkload, cluster: Cluster, network: float = 0.0, **how: Any
) -> Setting:
    setting = setting_of(scheduler, workload, cluster, cutoff_s=math.inf, network=network)
    return replace(setting, priorities=True, resources=workload.resources, preemption=Preemption(**how))


def spans(outcome: Outcome) -> list[tuple[float, float]]:
    """When the last run of each task started and ended (s)."""
    assert outcome.tasks is not None
    found = np.stack([outcome.tasks["start_ns"], outcome.tasks["finish_ns"]], axis=1) / 1e9
    return [(start, end) for start, end in found.tolist()]


def evicted(outcome: Outcome) -> list[tuple[int, float]]:
    """How often tasks of each job were evicted, and the work that was lost by that (s)."""
    assert outcome.evicted is not None
    return [(int(times), us / 1e6) for times, us in outcome.evicted.T]


LOW_THEN_HIGH: list[Row] = [(0, [10.0], 0), (4, [3.0], 5)]


@pytest.mark.parametrize("scheduler", PREEMPTING)
def test_a_task_makes_room_for_one_of_higher_priority_and_starts_again_or_goes_on(scheduler: str) -> None:
    """At 4 s the first has run for 4 of 10 s. The second runs until 7 s; the first again, or for the 6 s that are left.

    With a checkpoint it is restored for 1 s.
    """
    one, work = build_cluster("one", [1]), workload_of(LOW_THEN_HIGH)
    again = run_setting(with_preemption(scheduler, work, one))
    assert spans(again) == [(7, 17), (4, 7)]
    assert evicted(again) == [(1, 4), (0, 0)]
    assert again.start_ns.tolist() == [0, 4_000_000_000]  # a job starts with the first attempt
    goes_on = run_setting(with_preemption(scheduler, work, one, keeps=True, cost_s=1.0))
    assert spans(goes_on) == [(7, 14), (4, 7)]
    assert evicted(goes_on) == [(1, 1), (0, 0)]


@pytest.mark.parametrize("oldest", [False, True])
@pytest.mark.parametrize("first", ["memory", "cores"])
def test_a_task_that_holds_nothing_of_what_is_lacking_is_not_evicted(oldest: bool, first: str) -> None:
    """Two tasks run, one of which holds memory alone: of memory what is free is just enough for the third."""
    asked = {"cpu_cores": [0.0, 2.0, 1.0], "memory_gib": [1.0, 0.0, 3.0]}
    if first == "cores":
        asked = {name: [values[1], values[0], values[2]] for name, values in asked.items()}
    node = build_cluster("one", [1], cpu_cores=[2.0], memory_bytes=[4 * 2**30])
    work = make_workload(
        "by hand", [0, 1, 5], [1, 1, 1], [30.0, 30.0, 3.0], requests=Requests(asked, priority=[0, 0, 9])
    )
    found = run_setting(with_preemption("central-lwl", work, node, oldest_first=oldest))
    assert [times for times, _ in evicted(found)] == ([0, 1, 0] if first == "memory" else [1, 0, 0])
    assert spans(found)[2] == (5, 8)


@pytest.mark.parametrize("scheduler", ["central-lwl", "sparrow", "hawk", "eagle"])
@pytest.mark.parametrize("preemption", [False, True])
def test_one_event_makes_room_for_more_than_it_has_messages_for(scheduler: str, preemption: bool) -> None:
    """50 tasks start when one ends that held all cores, and one of all cores evicts them: more than 16 messages."""
    node, small = build_cluster("eight", [1], cpu_cores=[8.0]), 50
    rows: list[Row] = [(0, [10.0], 0), *((1, [30.0], 0) for _ in range(small)), (20, [5.0], 9)]
    workload = workload_of(rows, [8.0, *[8 / 64] * small, 8.0])
    setting = with_preemption(scheduler, workload, node, network=0.001)
    found = spans(run_setting(setting if preemption else replace(setting, preemption=None)))
    assert [start for start, _ in found[1:-1]] == pytest.approx([25 if preemption else 10] * small, abs=0.1)
    assert found[-1][0] == pytest.approx(20 if preemption else 40, abs=0.1)


class Entry(NamedTuple):
    """A task that waits in the simulation below: the larger priority first, then who came first."""

    minus_priority: int
    since: int
    job: int


def simulated(
    rows: list[Row], needs: list[int], room: int, keeps: bool, cost_s: float
) -> list[tuple[float, float, int]]:
    """Start and end (s) of the last run of each job of one task, and its evictions, on a node with some room."""
    queue: list[Entry] = []
    running: dict[int, tuple[float, float]] = {}  # by job: start, end
    left = [durations[0] for _, durations, _ in rows]
    times, ends = [0] * len(rows), [(0.0, 0.0)] * len(rows)
    arrivals = sorted(range(len(rows)), key=lambda job: rows[job][0])
    came = 0
    for _ in range(100 * len(rows)):
        ending = min(running, key=lambda job: running[job][1], default=None)
        if not arrivals and ending is None:
            break
        coming: list[int] = []  # evicted tasks come back from the scheduler one by one, in the same instant
        if ending is not None and (not arrivals or running[ending][1] <= rows[arrivals[0]][0]):
            now = running[ending][1]
            ends[ending] = running.pop(ending)
        else:
            now = rows[arrivals[0]][0]
            coming.append(arrivals.pop(0))
        for _ in range(100 * len(rows)):
            if coming:
                came += 1
                job = coming.pop(0)
                since = -came if times[job] else came  # one that was evicted stands before its equals
                heapq.heappush(queue, Entry(-rows[job][2], since, job))
            while queue:
                first = queue[0].job
                free = room - sum(needs[job] for job in running)
                lower = [job for job in running if rows[job][2] < rows[first][2]]
                if free + sum(needs[job] for job in lower) < needs[first]:
                    break
                lower.reverse()  # of one instant the one that started last goes first
                lower.sort(key=lambda job: (rows[job][2], -running[job][0]))
                lower = [job for job in lower if needs[job]]  # the others hold nothing that is lacking
                while free < needs[first]:
                    victim = lower.pop(0)
                    start, _ = running.pop(victim)
                    free += needs[victim]
                    if keeps:
                        left[victim] -= max(now - start - cost_s * (times[victim] > 0), 0.0)
                    times[victim] += 1
                    coming.append(victim)
                heapq.heappop(queue)
                running[first] = (now, now + left[first] + cost_s * (times[first] > 0))
            if not coming:
                break
    return [(*ends[job], times[job]) for job in range(len(rows))]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cores", [False, True])
@pytest.mark.parametrize(("keeps", "cost_s"), [(False, 0.0), (False, 0.3), (True, 0.0), (True, 0.3)])
def test_a_node_does_what_an_independent_simulation_does(
    seed: int, cores: bool, keeps: bool, cost_s: float
) -> None:
    rng = np.random.default_rng(seed)
    room, count = int(rng.integers(1, 5)), 300
    arrives = np.cumsum(rng.exponential(1.0, count)).tolist()
    takes, priority = rng.exponential(0.9 * room, count).tolist(), rng.integers(0, 4, count).tolist()
    needs = rng.integers(0, room + 1, count).tolist() if cores else [1] * count
    rows: list[Row] = [(arrives[j], [takes[j]], priority[j]) for j in range(count)]
    workload = workload_of(rows, needs if cores else None)
    cluster = build_cluster("node", [room], cpu_cores=[float(room)])
    outcome = run_setting(with_preemption("central-lwl", workload, cluster, keeps=keeps, cost_s=cost_s))
    due = simulated(rows, needs, room, keeps, cost_s)
    assert [times for times, _ in evicted(outcome)] == [times for *_, times in due]
    assert sum(times for *_, times in due) > 20
    assert np.allclose(spans(outcome), [span[:2] for span in due], rtol=0, atol=1e-3 if keeps else 1e-6)


PARTED = [name for name in PREEMPTING if find_scheduler(name).global_view != ("always",)]


@pytest.mark.slow("many partitions")
@pytest.mark.parametrize("scheduler", PARTED)
@pytest.mark.parametrize(("keeps", "cores"), [(False, True), (True, True), (False, False)])
def test_partitions_do_not_change_who_is_evicted(scheduler: str, keeps: bool, cores: bool) -> None:
    """With failures: what a task has done and how often it was evicted go with messages, not by shared memory."""
    rng = np.random.default_rng(11)
    counts = rng.integers(1, 5, 80)
    tasks = int(counts.sum())
    asked = {"cpu_cores": rng.choice([0.5, 1, 3], 80)} if cores else {}
    workload = make_workload(
        "eighty",
        np.sort(rng.uniform(0, 60, 80)),
        counts,
        rng.exponential(6, tasks),
        requests=Requests(asked, priority=rng.integers(0, 6, 80)),
    )
    cluster = build_cluster("ten", [2] * 10, cpu_cores=[4.0, 8.0] * 5)
    setting = with_preemption(scheduler, workload, cluster, 0.25, keeps=keeps, cost_s=0.5, most=2)
    setting = replace(
        setting, short_cutoff_s=5.0, dynamics=Dynamics(mtbf_s=200.0, mttr_s=10.0, detection_s=1.0)
    )
    whole, parts = run_setting(setting), run_windows(setting, OBSERVED, 3)
    assert whole.tasks is not None
    assert parts.tasks is not None
    assert whole.counters["evictions"] > 5
    assert np.array_equal(whole.evicted, parts.evicted)
    for name, values in whole.tasks.items():
        assert np.array_equal(values, parts.tasks[name]), name
