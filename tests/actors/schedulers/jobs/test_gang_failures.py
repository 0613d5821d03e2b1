"""Failures of nodes under schedulers of gangs: examples by hand, and partitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulations import (
    NS,
    OBSERVED,
    Network,
    cluster_of,
    digest,
    outages,
    run_setting,
    run_windows,
    setting_of,
    with_failures,
)

from actors.environment import Dynamics
from actors.hosting.outcome import Outcome
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


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
@pytest.mark.parametrize("on_nodes", [False, True])
def test_partitions_do_not_change_what_failures_do(scheduler: str, on_nodes: bool) -> None:
    """Messages take times that differ, so that a node may have to end a task before it has come."""
    rng = np.random.default_rng(5)
    nodes = rng.choice([0, 1, 2, 3] if on_nodes else [0], 60).astype(float)
    nodes[rng.random(60) < 0.3] = np.nan
    widths = np.where(nodes > 0, 2 * nodes, rng.integers(1, 7, 60)).astype(int)
    asked = Requests(gang_nodes=nodes, priority=rng.integers(0, 3, 60))
    workload = make_workload(
        "many",
        np.cumsum(rng.exponential(3.0, 60)),
        widths,
        rng.exponential(9.0, widths.sum()),
        requests=asked,
    )
    network = Network(delay_s=0.5, spread_s=1.5, cross_rack_delay_s=1.0)
    nodes_of_racks = cluster_of([2] * 5, [0, 0, 1, 1, 2])
    setting = replace(
        setting_of(scheduler, workload, nodes_of_racks, network=network, seed=3), priorities=True
    )
    setting = with_failures(setting)
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["tasks_lost"] > 50
    assert digest(run_windows(setting, OBSERVED, 3)) == digest(whole)
