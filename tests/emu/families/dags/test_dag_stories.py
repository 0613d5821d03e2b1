"""The longest wait of a DAG job, by hand: what lacked, who held it, and what went ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emu
from tests.actors.dag_settings import mixed_dags

HERE: dict[str, Any] = {
    "in_process": True,
    "network_delay": 0.0,
    "output_events": "all",
    "output_tasks": True,
}


@pytest.mark.parametrize("scheduler", ["carbyne", "tetris", "capacity", "srtf"])
def test_the_links_of_a_chain_are_its_causes(scheduler: str) -> None:
    result = emu.run(scheduler, mixed_dags(8), 1, **HERE)
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
    result = emu.run("drf", "query-dags", 4, workload_options={"jobs": 4}, **HERE, **failures)
    waits = [emu.explain(result, job).longest for job in result.jobs["job_id"].to_pylist()]
    queueing = [wait for wait in waits if wait is not None and wait.link.cause == "queueing"]
    assert queueing
    assert all(wait.facts["had_room_s"] == 0.0 and wait.facts["lacking"] > 0.0 for wait in queueing)
    assert any("machines were down" in text for wait in queueing for text in wait.reasons) == bool(failures)
