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


ONE, TWO = build_cluster("one", [1]), build_cluster("two", [2])
LOW_THEN_HIGH: list[Row] = [(0, [10.0], 0), (4, [3.0], 5)]


@pytest.mark.parametrize("scheduler", PREEMPTING)
def test_a_task_makes_room_for_one_of_higher_priority_and_starts_again(scheduler: str) -> None:
    """At 4 s the first has run for 4 of 10 s, which are lost; the second runs until 7 s, the first until 17 s."""
    outcome = run_setting(with_preemption(scheduler, workload_of(LOW_THEN_HIGH), ONE))
    assert spans(outcome) == [(7, 17), (4, 7)]
    assert evicted(outcome) == [(1, 4), (0, 0)]
    assert outcome.start_ns.tolist() == [0, 4_000_000_000]  # a job starts with the first attempt


@pytest.mark.parametrize("scheduler", PREEMPTING)
def test_with_a_checkpoint_it_goes_on_from_where_it_was(scheduler: str) -> None:
    """From 7 s on it is restored for 1 s, and runs for the 6 s that are left."""
    setting = with_preemption(scheduler, workload_of(LOW_THEN_HIGH), ONE, keeps=True, cost_s=1.0)
    outcome = run_setting(setting)
    assert spans(outcome) == [(7, 14), (4, 7)]
    assert evicted(outcome) == [(1, 1), (0, 0)]


def test_what_restores_a_task_is_lost_if_it_is_evicted_again() -> None:
    """It runs 0 to 4, is restored 5 to 7, runs to 8, is restored 9 to 11 of which only 9 to 10 pass, then again."""
    rows: list[Row] = [(0, [10.0], 0), (4, [1.0], 5), (8, [1.0], 5), (10, [1.0], 5)]
    outcome = run_setting(with_preemption("central-lwl", workload_of(rows), ONE, keeps=True, cost_s=2.0))
    assert spans(outcome)[0] == (11, 18)  # 2 s to restore it, and 5 s that are left
    assert evicted(outcome)[0] == (3, 2 + 1 + 2)


def test_the_lowest_priority_goes_first_and_of_equals_the_youngest() -> None:
    rows: list[Row] = [(0, [20.0], 1), (1, [20.0], 2), (2, [5.0], 9), (3, [5.0], 9)]
    found = run_setting(with_preemption("central-lwl", workload_of(rows), TWO))
    assert [times for times, _ in evicted(found)] == [1, 1, 0, 0]  # the third evicts priority 1, the fourth 2
    equal = [(0, [20.0], 1), (1, [20.0], 1), (2, [5.0], 9)]
    for oldest, due in ((False, [0, 1, 0]), (True, [1, 0, 0])):
        found = run_setting(with_preemption("central-lwl", workload_of(equal), TWO, oldest_first=oldest))
        assert [times for times, _ in evicted(found)] == due


def test_equal_priorities_do_not_evict_and_some_priorities_are_safe() -> None:
    rows: list[Row] = [(0, [10.0], 5), (4, [3.0], 5), (5, [1.0], 6)]
    found = run_setting(with_preemption("central-lwl", workload_of(rows), ONE))
    assert spans(found) == [(6, 16), (16, 19), (5, 6)]  # an evicted task stands before its equals
    safe = run_setting(with_preemption("central-lwl", workload_of(rows), ONE, below=5))
    assert spans(safe) == [(0, 10), (11, 14), (10, 11)]


def test_no_task_is_evicted_more_often_than_it_may_be() -> None:
    rows: list[Row] = [(0, [10.0], 0), (1, [1.0], 5), (3, [1.0], 5), (5, [1.0], 5)]
    found = run_setting(with_preemption("central-lwl", workload_of(rows), ONE, most=2))
    assert spans(found) == [(4, 14), (1, 2), (3, 4), (14, 15)]
    assert evicted(found)[0] == (2, 2)


@pytest.mark.parametrize("scheduler", ["central-lwl", "sparrow"])
def test_tasks_go_only_if_what_they_hold_suffices(scheduler: str) -> None:
    """Of 8 cores 4 are held at priority 9, 3 at 0: one that needs 5 waits and evicts nothing; one that needs 4 does."""
    node = build_cluster("eight", [1], cpu_cores=[8.0])
    rows: list[Row] = [(0, [20.0], 9), (0, [10.0], 0), (1, [1.0], 5)]
    waits = run_setting(with_preemption(scheduler, workload_of(rows, [4, 3, 5]), node))
    assert spans(waits)[1:] == [(0, 10), (20, 21)]
    goes = run_setting(with_preemption(scheduler, workload_of(rows, [4, 3, 4]), node))
    assert spans(goes)[1:] == [(2, 12), (1, 2)]


@pytest.mark.parametrize("scheduler", ["central-lwl", "sparrow", "hawk", "eagle"])
@pytest.mark.parametrize("preemption", [False, True])
def test_one_event_makes_room_for_more_than_it_has_messages_for(scheduler: str, preemption: bool) -> None:
    """300 tasks start when one ends that held all cores, and one of all cores evicts them: more than 16 messages."""
    node, small = build_cluster("eight", [1], cpu_cores=[8.0]), 300
    rows: list[Row] = [(0, [10.0], 0), *((1, [30.0], 0) for _ in range(small)), (20, [5.0], 9)]
    workload = workload_of(rows, [8.0, *[8 / 1024] * small, 8.0])
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


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "phoenix"])
@pytest.mark.parametrize("cores", [False, True])
def test_an_entry_that_comes_while_an_answer_is_on_its_way_evicts_the_task(
    scheduler: str, cores: bool
) -> None:
    """The first asks at 0.1 s and starts at 0.3; the second comes at 0.25, and asks then: its task is there at 0.5."""
    rows: list[Row] = [(0, [100.0], 0), (0.15, [1.0], 5)]
    workload = workload_of(rows, [8, 8] if cores else None)
    node = build_cluster("eight", [1], cpu_cores=[8.0])
    found = run_setting(with_preemption(scheduler, workload, node, network=0.1))
    assert spans(found)[1] == pytest.approx((0.5, 1.5))


def test_a_task_that_ends_at_this_instant_is_not_evicted() -> None:
    """Of 8 cores the first two hold 4 each until 10 s; the third needs 5: it starts then, and nothing is lost."""
    node = build_cluster("eight", [1], cpu_cores=[8.0])
    rows: list[Row] = [(0, [10.0], 9), (0, [10.0], 0), (1, [2.0], 5)]
    found = run_setting(with_preemption("central-lwl", workload_of(rows, [4, 4, 5]), node))
    assert spans(found) == [(0, 10), (0, 10), (10, 12)]
    assert evicted(found) == [(0, 0)] * 3


def test_what_holds_nothing_that_is_lacking_is_not_evicted() -> None:
    node = build_cluster("eight", [1], cpu_cores=[8.0])
    rows: list[Row] = [(0, [10.0], 0), (0, [10.0], 1), (4, [2.0], 9)]
    found = run_setting(with_preemption("central-lwl", workload_of(rows, [0, 8, 4]), node))
    assert evicted(found) == [(0, 0), (1, 4), (0, 0)]


def test_an_answer_evicts_for_itself_alone() -> None:
    """Both nodes run two low tasks and ask for both of the two that come: each of these evicts one task."""
    rows: list[Row] = [(0, [50.0] * 4, 0), (5, [1.0], 5), (5.01, [1.0], 5)]
    found = run_setting(
        with_preemption("sparrow", workload_of(rows), build_cluster("two", [2, 2]), network=0.1)
    )
    assert sum(times for times, _ in evicted(found)) == 2


def test_equal_priorities_evict_none_and_the_columns_are_there() -> None:
    found = run_setting(with_preemption("sparrow", workload_of([(0, [5.0], 3), (1, [1.0], 3)]), ONE))
    assert evicted(found) == [(0, 0), (0, 0)]
