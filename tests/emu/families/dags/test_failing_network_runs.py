"""Runs over a network in which machines fail: what they write, and their stories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emu
from examples.shortest_job import ShortestFirst
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.emu.families.dags.test_network_runs import HERE


@pytest.mark.parametrize(
    ("scheduler", "network", "parameters"),
    [
        ("drf", "fair", {}),
        ("carbyne", "sebf", {}),
        ("srtf", "philae", {"heartbeat_s": 2.0}),
        (ShortestFirst, "fair", {}),
        ("sparrow", "fair", {}),
        ("random", "aalo", {}),
    ],
)
def test_causes_of_all_jobs_add_up(scheduler: Any, network: str, parameters: dict[str, float]) -> None:
    given = HERE | {"network_delay": 0.0005, "network_scheduler": network, "fabric_port_speed": "1 Gbps"}
    del given["cluster"]
    run = emu.run(
        scheduler,
        with_bytes(mixed_dags(), 1),
        4,
        parameters=parameters,
        output_events="all",
        dynamics_mtbf=60.0,
        dynamics_mttr=5.0,
        dynamics_detection=1.0,
        **given,
    )
    assert run.counters["run_again"] > 0
    assert run.counters["fetches_failed"] > 0
    jobs, tasks = run.jobs.to_pandas().set_index("job_id"), run.tasks.to_pandas()
    sums = emu.causes(run).to_pandas().set_index("job_id").sum(axis=1) / 1e9
    assert np.allclose(sums, jobs["jct_s"], rtol=0, atol=1e-6)
    assert (tasks["runnable_s"] <= tasks["start_s"]).all()
    assert (run.timeline.to_pandas()["runnable_tasks"] >= 0).all()
