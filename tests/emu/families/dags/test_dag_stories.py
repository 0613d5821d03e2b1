"""The longest wait of a DAG job, by hand: what lacked, who held it, and what went ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emu
from emu.explaining.explanation import Explanation
from emu.results.result import Result
from workloads.dags import make_dag_workload
from workloads.requests import Requests

NS = 1e9
HERE: dict[str, Any] = {
    "in_process": True,
    "network_delay": 0.0,
    "output_events": "all",
    "output_tasks": True,
}


def queue_of_jobs() -> Any:
    """Two tasks of two cores; from 1 s on a job of two tasks, one after the other, and from 2 s on one of a task."""
    return make_dag_workload(
        "queue",
        [0.0, 1.0, 2.0],
        [1, 2, 1],
        [2, 1, 1, 1],
        [10.0, 10.0, 3.0, 2.0, 4.0],
        [(1, 0, 1)],
        cpu_cores=[2.0, 1.0, 1.0, 1.0],
        memory=[0.1, 0.1, 0.1, 0.1],
    )


def explained(scheduler: str, job: int, machines: int = 1, **parameters: Any) -> Explanation:
    machine = {"cluster": "homogeneous", "slots": 2, "parameters": parameters}
    return emu.explain(emu.run(scheduler, queue_of_jobs(), machines, **machine, **HERE), job)


def test_a_task_waits_for_cores_that_another_job_holds() -> None:
    """The first job's tasks have both cores until 20 s: at 10 s no job holds anything, and it arrived first."""
    story = explained("drf", 1)
    assert [(link.begin_ns / NS, link.end_ns / NS, link.cause) for link in story.chain] == [
        (0.0, 19.0, "queueing"),
        (19.0, 22.0, "work"),
        (22.0, 24.0, "work"),
    ]
    assert story.longest is not None
    assert story.longest.link == story.chain[0]
    assert story.longest.facts == {
        "resource": "cpu_cores", "lacking": 1.0, "had_room_s": 0.0, "launched": 1, "launched_of_this_job": 0,
    }  # fmt: skip
    (holder,) = story.longest.holders
    assert (holder["job"], holder["cpu_cores held"], holder["tasks"], holder["s"]) == (0, 2.0, 2, 19.0)
    assert holder["launched meanwhile"] == 1
    lacked, ahead, rule = story.longest.reasons
    assert "No machine had that for 100.0% of the wait" in lacked
    assert ahead.endswith("launched 0 tasks of this job, and 1 task of 1 other job.")
    assert "smallest dominant share goes first, of equal ones" in rule


def test_a_job_waits_for_its_own_tasks() -> None:
    story = explained("drf", 0)
    assert story.longest is not None
    assert (story.longest.link.begin_ns, story.longest.link.s) == (0, 10.0)
    assert [(one["job"], one["whose"], one["s"]) for one in story.longest.holders] == [(0, "this job", 10.0)]


def test_room_that_no_heartbeat_has_offered_yet() -> None:
    """Two machines beat at 0, 4, 8 and at 2, 6, 10 s; the second job's task gets the first at 4 s."""
    story = explained("drf", 2, machines=3, heartbeat_s=6.0)
    waits = [link for link in story.chain if link.cause == "queueing"]
    assert story.longest is not None
    assert story.longest.link == max(waits, key=lambda link: link.s)
    assert story.longest.facts["had_room_s"] == pytest.approx(story.longest.link.s)
    assert any("heartbeat alone, every 6 s" in text for text in story.longest.reasons)


@pytest.mark.parametrize("scheduler", ["carbyne", "tetris", "capacity", "srtf"])
def test_the_links_of_a_chain_are_its_causes(scheduler: str) -> None:
    result = emu.run(scheduler, "query-dags", 2, workload_options={"jobs": 6}, **HERE)
    for job in result.jobs["job_id"].to_pylist():
        story = emu.explain(result, job)
        sums = dict.fromkeys(story.causes, 0)
        for link in story.chain:
            sums[link.cause] += link.end_ns - link.begin_ns
        assert sums == dict(story.causes)
        if story.longest is not None and story.longest.holders:
            held = [next(v for k, v in one.items() if k.endswith(" held")) for one in story.longest.holders]
            assert held == sorted(held, reverse=True)
            assert np.isclose(
                story.longest.link.s, max(link.s for link in story.chain if link.cause != "work")
            )


@pytest.mark.parametrize("failures", [{}, {"dynamics_mtbf": 600.0, "dynamics_mttr": 200.0}])
def test_no_task_waits_while_a_machine_has_room_where_ends_are_queueing_at_once(
    failures: dict[str, Any],
) -> None:
    """What is left over goes to any job: a task waits only while no machine that is up has room for it."""
    result = emu.run("drf", "query-dags", 4, workload_options={"jobs": 6}, **HERE, **failures)
    waits = [emu.explain(result, job).longest for job in result.jobs["job_id"].to_pylist()]
    queueing = [wait for wait in waits if wait is not None and wait.link.cause == "queueing"]
    assert queueing
    assert all(wait.facts["had_room_s"] == 0.0 and wait.facts["lacking"] > 0.0 for wait in queueing)
    assert any("machines were down" in text for wait in queueing for text in wait.reasons) == bool(failures)


@pytest.mark.parametrize(
    ("leftover", "starts_s", "says"),
    [
        ("in-order", [10, 10, 0, 0, 5, 5], ""),
        ("srtf", [0, 1, 0, 2, 5, 7], "; what is left over goes to the job with the least work left"),
        ("packing", [0, 1, 0, 2, 5, 7], "; what is left over goes to the task that suits a machine best"),
    ],
)
def test_what_capacity_says_of_priorities_is_what_it_does(
    leftover: str, starts_s: list[float], says: str
) -> None:
    """Two cores, one of them guaranteed to the first queue: J1, of the higher priority, has it; J0 may get the other.

    J0 has two tasks of 1 s, J1 four of 5 s; the job of the second queue comes at 50 s.
    """
    jobs = make_dag_workload(
        "queues", [0, 0, 50], [1, 1, 1], [2, 4, 1], [1.0] * 2 + [5.0] * 4 + [1.0], [], cpu_cores=[1] * 3,
        tenant=["a", "a", "b"], requests=Requests(priority=[0, 9, 0]),
    )  # fmt: skip
    machine: dict[str, Any] = {"cluster": "homogeneous", "slots": 2, "parameters": {"leftover": leftover}}
    run = emu.run("capacity", jobs, 1, **machine, **HERE)
    assert isinstance(run, Result)
    assert run.tasks is not None
    assert run.tasks["start_s"].to_pylist()[:6] == pytest.approx(starts_s)
    wait = emu.explain(run, 1).longest
    assert wait is not None
    end = f"{says}, whatever its queue and priority." if says else "."
    assert wait.reasons[-1].endswith(f"of it the first job of the highest priority{end}")
    assert any("and not with what leftover=srtf or packing hands out" in note for note in run.notes)
