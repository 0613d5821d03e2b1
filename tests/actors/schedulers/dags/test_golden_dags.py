"""Examples worked out by hand: schedulers of DAG jobs. Times are in seconds; messages take no time."""

from __future__ import annotations

from typing import Any

import pytest

from actors.hosting.outcome import Outcome
from actors.scheduler import Scheduler
from actors.schedulers.dags.capacity import CAPACITY
from actors.schedulers.dags.drf import CPM, DRF
from actors.schedulers.dags.heft import HEFT
from actors.schedulers.dags.tetris import TETRIS, TETRIS_FAIR
from clusters.cluster import Cluster, build_cluster
from tests.actors.dag_emulations import run
from workloads.dags import make_dag_workload
from workloads.errors import InputError


def machines(*cores: int) -> Cluster:
    return build_cluster("machines", list(cores), cpu_cores=list(cores))


def starts_s(outcome: Outcome) -> list[float]:
    assert outcome.tasks is not None
    return (outcome.tasks["start_ns"] / 1e9).tolist()


def ends_s(outcome: Outcome) -> list[float]:
    return (outcome.finish_ns / 1e9).tolist()


@pytest.mark.parametrize(
    ("scheduler", "starts"),
    [
        (DRF, [0, 0, 1, 4]),  # by level, and there by number: A, B, C, D
        (CPM, [0, 1, 0, 3]),  # C begins the longest path, 4 s
    ],
)
def test_cpm_begins_with_the_longest_path(scheduler: Scheduler, starts: list[float]) -> None:
    # A and B take 1 s, C takes 3 s, and D takes 1 s after C. Two of them run at once.
    job = make_dag_workload("w", [0], [4], [1, 1, 1, 1], [1, 1, 3, 1], [(0, 2, 3)], cpu_cores=[1, 1, 1, 1])
    assert starts_s(run(scheduler, job, machines(2))) == starts


@pytest.mark.parametrize(
    ("scheduler", "starts"),
    [
        (DRF, [0, 1, 2, 3]),  # neither job holds anything when the core falls free: the first job goes first
        (HEFT, [6, 7, 0, 1]),  # upward ranks are 1 of J0, 6 and 5 of J1
    ],
)
def test_heft_goes_by_the_longest_path_of_all_jobs(scheduler: Scheduler, starts: list[float]) -> None:
    # J0: two tasks of 1 s. J1: a task of 1 s, then one of 5 s. There is one core.
    jobs = make_dag_workload("w", [0, 0], [1, 2], [2, 1, 1], [1, 1, 1, 5], [(1, 0, 1)], cpu_cores=[1, 1, 1])
    assert starts_s(run(scheduler, jobs, machines(1))) == starts


def test_heft_leaves_no_room_for_a_task_that_does_not_fit() -> None:
    # The task of 2 cores has the larger rank, and waits for two cores: the other two run meanwhile.
    jobs = make_dag_workload("w", [0, 1, 1], [1, 1, 1], [1, 1, 2], [3, 9, 1, 1], [], cpu_cores=[1, 2, 1])
    assert starts_s(run(HEFT, jobs, machines(2))) == [0, 3, 1, 2]


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        # Two tasks of each queue at once; at 20 b has none left, and a lends its half to J1.
        ({}, [30, 30, 20]),
        # Three of a and one of b; at 20 a has two left, of J1, and b gets two cores.
        ({"guarantees": "a=0.75"}, [20, 30, 30]),
        ({"guarantees": "a = 0.75, b=0.25", "leftover": "none"}, [20, 30, 40]),
        # J1 is served after J0 in its queue, although it needs less.
        ({"guarantees": "b=0.25,a=0.5", "leftover": "none"}, [30, 40, 40]),
    ],
)
def test_capacity_guarantees_parts_of_the_cluster(given: dict[str, Any], ends: list[float]) -> None:
    # Tasks of a core and 10 s: 6 of J0 and 2 of J1, both of a, and 4 of J2, of b. There are four cores.
    jobs = make_dag_workload(
        "w", [0, 0, 0], [1, 1, 1], [6, 2, 4], [10] * 12, [], cpu_cores=[1, 1, 1], tenant=["a", "a", "b"]
    )
    assert ends_s(run(CAPACITY, jobs, machines(4), **given)) == ends


@pytest.mark.parametrize(
    ("guarantees", "wrong"),
    [
        ("c=0.5", "no tenant 'c'"),
        ("a=1", "nothing is left for tenant b"),
        ("a=0.7,b=0.7", "sum to 1.4"),
        ("a", "'a' is not a tenant and a part"),
        ("a=0", "'a=0' is not"),
        ("a=0.2,a=0.3", "'a' is given twice"),
    ],
)
def test_capacity_refuses_other_guarantees(guarantees: str, wrong: str) -> None:
    jobs = make_dag_workload("w", [0, 0], [1, 1], [1, 1], [1, 1], [], cpu_cores=[1, 1], tenant=["a", "b"])
    with pytest.raises(InputError, match=wrong):
        run(CAPACITY, jobs, machines(4), guarantees=guarantees)


@pytest.mark.parametrize(
    ("scheduler", "given", "ends"),
    [
        (TETRIS, {}, [20, 10]),  # the larger tasks fit better
        # J1, then J0 twice, as it holds less: the second half of both comes after 10 s.
        (TETRIS_FAIR, {"fairness": 1}, [20, 20]),
        (TETRIS_FAIR, {"fairness": 0.5}, [20, 20]),  # one of two jobs
        (TETRIS_FAIR, {"fairness": 0.4}, [20, 10]),  # both
    ],
)
def test_tetris_with_fairness_serves_jobs_that_hold_the_least(
    scheduler: Scheduler, given: dict[str, Any], ends: list[float]
) -> None:
    # Tasks of 10 s: four of one core of J0, two of two cores of J1. There are four cores.
    jobs = make_dag_workload("w", [0, 0], [1, 1], [4, 2], [10] * 6, [], cpu_cores=[1, 2])
    assert ends_s(run(scheduler, jobs, machines(4), remaining_weight=0, **given)) == ends


def test_tetris_prefers_the_task_of_a_job_with_little_left() -> None:
    # J1 has 4 s of half a core left, J0 10 s of a core: with weight 1 that outweighs the better fit.
    jobs = make_dag_workload("w", [0, 0], [1, 1], [10, 4], [1] * 14, [], cpu_cores=[1, 0.6])
    assert starts_s(run(TETRIS, jobs, machines(1), remaining_weight=0))[-4:] == [10, 11, 12, 13]
    assert starts_s(run(TETRIS, jobs, machines(1)))[-4:] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("given", "starts"),
    [
        # The mean value is 1, and J1 goes first by its work: 0.25 - 0.7 over 0.5 - 1.3. Then it is 0.25, and of three
        # cores the second task of J1 is worth 0.1875 - 0.25 x 0.7, less than that of J0, 0.375 - 0.25 x 1.3.
        ({}, [0, 13, 0, 0, 7, 7]),
        # While it is 1 no task of J0 is worth more than one of J1.
        ({"weight": "pass"}, [7, 7, 0, 0, 0, 0]),
    ],
)
def test_tetris_weighs_the_work_that_is_left_by_the_mean_value_so_far(
    given: dict[str, Any], starts: list[float]
) -> None:
    # J0: two tasks of two cores and 13 s. J1: four of one core and 7 s. Of four cores that is 13 s and 7 s of work.
    jobs = make_dag_workload("w", [0, 0], [1, 1], [2, 4], [13] * 2 + [7] * 4, [], cpu_cores=[2, 1])
    assert starts_s(run(TETRIS, jobs, machines(4), **given)) == starts


def test_at_heartbeats_tetris_weighs_the_work_that_is_left_before_each_launch() -> None:
    jobs = make_dag_workload("w", [0, 0], [1, 1], [2, 4], [13] * 2 + [7] * 4, [], cpu_cores=[2, 1])
    found = [starts_s(run(TETRIS, jobs, machines(4), heartbeat_s=1, weight=w)) for w in ("launch", "pass")]
    assert found[0] == found[1] == [1, 14, 1, 1, 8, 8]


@pytest.mark.parametrize(("penalty", "node"), [(0.0, 1), (0.2, 0)])
def test_tetris_with_a_remote_penalty_runs_a_child_where_its_parent_ran(penalty: float, node: int) -> None:
    # At 1 both machines fall free, the second is served first: there B, after A on the first machine, is worth 1, or
    # 0.8 with the penalty, and another task of J1 0.9.
    jobs = make_dag_workload("w", [0, 0], [2, 1], [1, 1, 4], [1] * 6, [(0, 0, 1)], cpu_cores=[1, 1, 0.9])
    outcome = run(TETRIS, jobs, machines(1, 1), remaining_weight=0, remote_penalty=penalty)
    assert outcome.tasks is not None
    assert outcome.tasks["node"][:3].tolist() == [0, node, 1]
