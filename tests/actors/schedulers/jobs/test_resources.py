"""Tasks that need resources: no node is ever over its capacity, under every scheduler, and everything is given back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import run_setting, setting_of

from clusters.cluster import Cluster, build_cluster
from workloads.errors import InputError
from workloads.jobs import make_workload
from workloads.requests import Requests
from workloads.transform.primitives import joined


def started(
    scheduler: str, rows: list[tuple[float, list[float], Requests]], cluster: Cluster, **settings: Any
) -> list[tuple[int, float]]:
    """Return node and start (s) of each task of jobs that arrive at these times, with what each asks for."""
    extra = {name: settings.pop(name) for name in ("passing", "priorities", "resources") if name in settings}
    made = [make_workload("one", [t], [len(d)], d, requests=asked) for t, d, asked in rows]
    workload = joined(made)
    setting = setting_of(scheduler, workload, cluster, cutoff_s=math.inf, **settings)
    setting = replace(setting, **{"resources": workload.resources} | extra)
    tasks = run_setting(setting).tasks
    assert tasks is not None
    return [(int(n), t / 1e9) for n, t in zip(tasks["node"], tasks["start_ns"], strict=True)]


def cores(amount: float, **more: Any) -> Requests:
    return Requests({"cpu_cores": [amount]}, **more)


FOUR_CORES = build_cluster("four", [1], cpu_cores=4.0, memory_bytes=8 << 30)


@pytest.mark.parametrize(
    ("passing", "due"),
    [
        (0.0, [0, 10, 10, 10]),  # the second needs 2 cores, 1 is free: all behind it wait
        (5.0, [0, 10, 2, 3]),  # the others may pass it by 25 s of work
        (0.3, [0, 10, 2, 10]),  # by 1.5 s: after the third, of 1 s, none may
        (0.1, [0, 10, 10, 10]),  # by 0.5 s, less than the third takes
    ],
)
def test_what_fits_passes_what_does_not_within_its_bound(passing: float, due: list[float]) -> None:
    rows = [(0, [10], cores(3)), (1, [5], cores(2)), (2, [1], cores(1)), (3, [1], cores(1))]
    found = started("central-lwl", rows, FOUR_CORES, network=0.0, passing=passing)
    assert found == [(0, t) for t in due]


def test_the_scarcest_resource_decides() -> None:
    asked = Requests({"cpu_cores": [1.0], "memory_gib": [5.0]})
    rows = [(0, [4.0, 4.0], asked)]
    assert started("central-lwl", rows, FOUR_CORES, network=0.0) == [(0, 0), (0, 4)]
    assert started("central-lwl", rows, FOUR_CORES, network=0.0, resources=("cpu_cores",)) == [(0, 0), (0, 0)]


def test_a_probe_holds_the_most_that_a_task_of_its_job_needs_until_the_task_is_there() -> None:
    """The first probe holds 3 of 4 cores until its task, of 1 core, comes after 3 delays; then the second asks."""
    rows = [(0, [9.0, 9.0], Requests({}, {"cpu_cores": [1.0, 3.0]}))]
    assert started("sparrow", rows, FOUR_CORES, network=1.0) == [(0, 3), (0, 5)]


TWO_AND_EIGHT = build_cluster("two and eight", [1, 1], cpu_cores=[2.0, 8.0])


def test_tasks_go_only_where_they_ever_fit() -> None:
    rows = [(0, [5.0, 5.0, 5.0], cores(3))]
    for scheduler in ("central-lwl", "random", "hawk"):
        assert started(scheduler, rows, TWO_AND_EIGHT, network=0.0)[:2] == [(1, 0), (1, 0)]


def test_the_work_of_a_task_counts_by_the_part_of_the_node_that_it_takes() -> None:
    """8 s on half of the first node are 4 s of it, on an eighth of the second 1 s: the third and fourth go there."""
    rows = [(t, [8.0], cores(1)) for t in (0.0, 0.1, 0.2, 0.3)]
    assert [node for node, _ in started("central-lwl", rows, TWO_AND_EIGHT, network=0.0)] == [0, 1, 1, 1]


@pytest.mark.parametrize("scheduler", ["sparrow", "eagle", "central-lwl", "dist-lwl"])
def test_the_higher_priority_goes_first_and_does_not_interrupt(scheduler: str) -> None:
    rows = [(t, [10.0], Requests(priority=[p])) for t, p in ((0, 0), (1, 0), (2, 5), (3, 9), (4, 5))]
    one = build_cluster("one", [1])
    order = [0, 40, 20, 10, 30]
    found = started(scheduler, rows, one, network=0.0, priorities=True)
    assert found == [(0, t) for t in order]
    assert started(scheduler, rows, one, network=0.0) == [(0, t) for t in (0, 10, 20, 30, 40)]


def test_a_node_of_a_user_s_scheduler_must_have_what_a_task_needs() -> None:
    class First:
        def place(self, job: Any, nodes: Any) -> np.ndarray:
            return np.zeros(job.num_tasks, int)

    with pytest.raises(
        InputError, match=r"returned node 0 for job 0, whose tasks need 3 of cpu_cores; the node has 2"
    ):
        started(First, [(0, [1.0], cores(3))], TWO_AND_EIGHT)


def test_a_task_that_fits_on_no_node_is_refused() -> None:
    with pytest.raises(InputError, match=r"job 0: a task needs 9 of cpu_cores \(the most of a node is 8\)"):
        started("sparrow", [(0, [1.0], cores(9))], TWO_AND_EIGHT)
