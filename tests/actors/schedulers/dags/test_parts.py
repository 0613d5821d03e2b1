"""A scheduler of DAG jobs of one's own: other parts, and all else is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from actors.machines import matching
from actors.machines.matching import NO_LEFTOVER, Values
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.capacity import CAPACITY
from actors.schedulers.dags.parts import Inter, Parts
from actors.schedulers.dags.stage_orders import by_level
from actors.setting import Setting
from clusters.cluster import build_cluster
from tests.actors.dag_emulations import run
from workloads.dags import make_dag_workload

JOBS = make_dag_workload("w", [0, 0, 0], [1, 1, 1], [2, 2, 2], [1, 1, 3, 3, 2, 2], [], cpu_cores=[1, 1, 1])
"""Three jobs of two tasks each, of 1, 3 and 2 s, for machines of one core."""


def ends_s(cores: int, **parts: Any) -> list[float]:
    """Return when the jobs end on so many machines of one core."""

    def parts_of(setting: Setting) -> Parts:
        return Parts(**{"inter": Inter(matching.DRF), "intra": by_level(setting)} | parts)

    scheduler = dag_scheduler(parts_of, "own", "of one's own", "-", parameters=())
    machines = build_cluster("machines", [1] * cores, cpu_cores=[1] * cores)
    return (run(scheduler, JOBS, machines).finish_ns / 1e9).tolist()


@pytest.mark.parametrize(
    ("order", "ends"), [([2, 1, 0], [6, 5, 2]), ([0, 1, 2], [1, 4, 6]), ([1, 0, 1], [4, 3, 6])]
)
def test_jobs_are_served_in_an_order_that_is_given(order: list[float], ends: list[float]) -> None:
    assert ends_s(2, inter=Inter(matching.FIXED, np.array(order, np.float64))) == ends


def test_with_packing_tasks_go_by_their_values_whatever_the_job() -> None:
    priority = np.array([1.0, 2.0, 3.0])
    assert ends_s(2, packing=True, values=Values(by_alignment=False), priority=priority) == [6, 5, 2]


def test_guarantees_of_queues_may_have_spaces() -> None:
    jobs = make_dag_workload("w", [0, 0], [1, 1], [3, 1], [1] * 4, [], cpu_cores=[1, 1], tenant=["a", "b"])
    found = run(CAPACITY, jobs, build_cluster("machine", [4], cpu_cores=[4]), guarantees="a = 0.75, b=0.25")
    assert found.finish_ns.tolist() == [1_000_000_000] * 2


def test_without_leftovers_each_job_keeps_to_its_share() -> None:
    # One core of three for each; later two jobs have one and a half each, and a task needs a whole one.
    assert ends_s(3, inter=Inter(matching.FAIR), leftover=NO_LEFTOVER) == [2, 6, 4]
