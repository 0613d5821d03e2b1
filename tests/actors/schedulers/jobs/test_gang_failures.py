"""Failures of nodes and preemption under schedulers of gangs: examples by hand, and partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import (
    NS,
    outages,
    run_setting,
    setting_of,
)

from actors.environment import Dynamics, Preemption
from actors.hosting.outcome import Outcome
from clusters.cluster import build_cluster
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")


def run_with(
    scheduler: str, workload: JobWorkload, slots: list[int], *down: tuple[str, float, float], **how: float
) -> Outcome:
    """Run with outages; a message takes 1 s."""
    dynamics = Dynamics(outages=outages(*down), **how) if down else Dynamics()
    return run_setting(setting_of(scheduler, workload, slots, network=1.0, dynamics=dynamics))


def starts_s(outcome: Outcome) -> list[float]:
    assert outcome.tasks is not None
    return (outcome.tasks["start_ns"] / NS).tolist()


# Two nodes of two slots. Job 0 has a task on each, of which one is short; job 1 comes later, and job 2 is no gang.
WORKLOAD = make_workload(
    "by hand", [0, 2, 3], [3, 2, 2], [20.0, 20, 2, 6, 6, 4, 4], requests=Requests(gang_nodes=[0, 0, np.nan])
)


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_a_gang_stops_with_a_node_and_starts_again_from_its_beginning_in_its_place(scheduler: str) -> None:
    #  t=1   job 0: two slots of node 0, and one of node 1, where its task ends at 3.
    #  t=3   job 2 takes the idle slot of node 1 (EASY and conservative: it ends before job 1 can start), another at 5.
    #  t=6   node 0 fails, detected at 8, known at 9: both tasks of job 0 are lost after 5 s, and the 2 s of its third.
    #  Nothing of job 0 runs any more. It waits again, before jobs 1 and 2, until three slots are there: when node 0 is
    #  up again, at 20, known at 21.
    found = run_with(scheduler, WORKLOAD, [2, 2], ("node 0", 6, 20), detection_s=2.0)
    assert starts_s(found)[:3] == [22, 22, 22]
    assert found.start_ns[0] == NS  # a job starts with the first attempt
    lost = {name: found.counters[name] for name in ("tasks_lost", "lost_work_ns", "sent_again", "placements")}
    assert lost == {"tasks_lost": 3, "lost_work_ns": 12 * NS, "sent_again": 3, "placements": 7}


def test_a_gang_without_demands_needs_nodes_that_last_too() -> None:
    asked = Requests({"cpu_cores": [1.0, np.nan]}, gang_nodes=[0, 2])
    workload = make_workload("zero", [0, 10], [1, 2], [1.0] * 3, requests=asked)
    fails = Dynamics(outages=outages(("node 0", 5, np.inf)))
    setting = setting_of("easy", workload, build_cluster("two", [2, 2], cpu_cores=[2.0, 2.0]), dynamics=fails)
    with pytest.raises(InputError, match="1 nodes fail for good, and the 2 tasks of job 1"):
        run_setting(replace(setting, resources=("cpu_cores",)))


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_tasks_of_the_gang_on_other_nodes_are_ended(scheduler: str) -> None:
    # Node 0 fails at 6, known at 7: the other task is ended at 8, after 7 s, which is known at 9. One slot of node 1
    # is idle until then; both take the gang again.
    workload = make_workload("two", [0], [2], [9.0] * 2, requests=Requests(gang_nodes=[2]))
    found = run_with(scheduler, workload, [1, 2, 1], ("node 0", 6, 50))
    assert starts_s(found) == [10, 10]
    assert found.counters["lost_work_ns"] == (5 + 7) * NS


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_a_node_whose_tasks_of_a_gang_have_ended_does_not_stop_it(scheduler: str) -> None:
    workload = make_workload("two", [0], [2], [2.0, 9], requests=Requests(gang_nodes=[2]))
    done_on = run_with(scheduler, workload, [1, 1]).tasks
    assert done_on is not None
    node = f"node {done_on['node'][0]}"
    assert "tasks_lost" not in run_with(scheduler, workload, [1, 1], (node, 5, 8)).counters


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_a_job_that_is_no_gang_loses_single_tasks(scheduler: str) -> None:
    workload = make_workload("four", [0], [4], [9.0] * 4)
    found = run_with(scheduler, workload, [2, 2], ("node 0", 6, 30))
    assert sorted(starts_s(found)) == [1, 1, 12, 12]  # the others end at 10, which is known at 11
    assert found.counters["tasks_lost"] == 2


def test_a_gang_that_would_wait_for_ever_is_refused() -> None:
    asked = Requests(gang_nodes=[0])
    workload = make_workload("wide", [0], [3], [1.0] * 3, requests=asked)
    with pytest.raises(InputError, match=r"1 nodes fail for good, and the 3 tasks of job 0"):
        run_with("easy", workload, [2, 2], ("node 1", 1, np.inf))


def run_evicting(scheduler: str, workload: JobWorkload, slots: list[int], **how: Any) -> Outcome:
    """Run with preemption; a message takes 1 s."""
    setting = setting_of(scheduler, workload, slots, network=1.0)
    return run_setting(replace(setting, priorities=True, preemption=Preemption(**how)))


def evicted_of(outcome: Outcome) -> list[tuple[int, float]]:
    """How often tasks of each job were evicted, and the work that was lost by that, s."""
    assert outcome.evicted is not None
    return [(int(times), us / 1e6) for times, us in outcome.evicted.T]


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
@pytest.mark.parametrize("keeps", [False, True])
def test_a_gang_makes_room_as_a_whole_and_starts_again_or_goes_on(scheduler: str, keeps: bool) -> None:
    # Four slots. Job 0 holds three, from 1 on; its first task ends at 3. Job 1, of higher priority, arrives at 8 and
    # needs three; two are idle. The other tasks of job 0 end at 9, when they have run for 8 s, which is known at 10.
    # Job 1 runs from 11 to 16, known at 17; job 0 again from 18 on, restored in 0.5 s.
    workload = make_workload(
        "two",
        [0, 8],
        [3, 3],
        [2.0, 18, 19, 5, 5, 5],
        requests=Requests(gang_nodes=[0, 0], priority=[0, 5]),
    )
    found = run_evicting(scheduler, workload, [2, 2], keeps=keeps, cost_s=0.5)
    assert starts_s(found) == [18, 18, 18, 11, 11, 11]
    assert found.tasks is not None
    ran = ((found.tasks["finish_ns"] - found.tasks["start_ns"]) / NS).tolist()
    assert ran[:3] == pytest.approx([0.5, 10.5, 11.5] if keeps else [2, 18.5, 19.5], abs=1e-3)
    # Without a checkpoint: the 2 s of the task that had ended, 8 s of each of the others, and to start two again.
    assert evicted_of(found)[0][0] == 2
    assert evicted_of(found)[0][1] == pytest.approx(1.5 if keeps else 2 + 2 * 8 + 2 * 0.5)


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_what_came_last_of_the_lowest_priority_ends_and_no_more_than_is_needed(scheduler: str) -> None:
    # Six slots: jobs 0 (priority 1, two), 1 (0, one), 2 (0, one), 3 (1, two). Job 4 needs two: jobs 2 and 1 end. Job 5
    # needs three: jobs 3 and 0, of which neither can be spared. The first two of job 6 need more than there is below.
    widths, priority = [2, 1, 1, 2, 2, 3], [1, 0, 0, 1, 2, 2]
    workload = make_workload(
        "six",
        [0, 1, 2, 3, 10, 20],
        widths,
        [100.0] * 11,
        requests=Requests(gang_nodes=[0] * 6, priority=priority),
    )
    found = run_evicting(scheduler, workload, [3, 3])
    assert [times for times, _ in evicted_of(found)] == [2, 1, 1, 2, 0, 0]
    # Job 3 alone is enough for two: job 1, chosen before it, is spared.
    spared = make_workload(
        "spared",
        [0, 1, 2],
        [1, 2, 2],
        [100.0] * 5,
        requests=Requests(gang_nodes=[0] * 3, priority=[0, 1, 2]),
    )
    found = run_evicting(scheduler, spared, [3])
    assert [times for times, _ in evicted_of(found)] == [0, 2, 0]


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_what_others_end_for_is_not_taken_by_jobs_behind(scheduler: str) -> None:
    """Job 0 is late: it counts as about to end. At 20 job 2 ends job 1, which is known at 22, and starts at 23.

    If job 3 took an idle slot before, as if job 0 were to end, it would have to end, too.
    """
    workload = make_workload(
        "late",
        [0, 1, 20, 21],
        [1, 2, 4, 1],
        [100.0] + [50.0] * 2 + [10.0] * 4 + [30.0],
        [1.0, 50.0, 10.0, 30.0],
        requests=Requests(gang_nodes=[0] * 4, priority=[9, 0, 5, 0]),
    )
    found = run_evicting(scheduler, workload, [5])
    assert [times for times, _ in evicted_of(found)] == [0, 2, 0, 0]
    assert found.tasks is not None
    assert (found.tasks["start_ns"][3:7] == 23_000_000_000).all()
