"""Runs over a network in which machines fail: what they write, and their stories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from examples.shortest_job import ShortestFirst
from tests.emu.families.dags.test_network_runs import HERE
from workloads.dags import make_dag_workload


def two_of_each() -> Any:
    """Two maps of 1 s and two reducers of 3 s, which need 4 GB of every map; each fills a machine."""
    return make_dag_workload(
        "by hand", [0], [2], [2, 2], [1, 1, 3, 3], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[16e9]
    )


def test_what_was_lost_stands_in_its_tables(tmp_path: Path) -> None:
    # As in tests/actors/schedulers/golden/dags/lost.txt: machine 1 fails at 3 s, which is known at 4 s.
    (tmp_path / "failures.csv").write_text("target,fail_s,repair_s\nnode 1,3,100\n", encoding="utf-8")
    given = HERE | {"dynamics_failures": tmp_path / "failures.csv", "dynamics_detection": 1.0}
    run = emu.run("drf", two_of_each(), 3, out=tmp_path / "run", output_events="all", **given)
    assert run.attempts is not None
    attempts = run.attempts.to_pandas()
    assert attempts[["task", "start_s", "end_s", "ended", "runnable_s"]].to_numpy().tolist() == [
        [1, 0, 1, True, 0],
        [2, 1, 3, False, 1],
        [3, 1, 4, False, 1],
    ]
    tasks = run.tasks.to_pandas()
    assert tasks["runnable_s"].tolist() == [0, 1, 5, 5]  # the second map had ended itself, at 1 s
    assert tasks["finish_s"].tolist() == [1, 5, 12, 12]
    counts = ("tasks_lost", "fetches_failed", "run_again")
    assert [run.counters[name] for name in counts] == [2, 1, 1]
    chain = [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in emu.explain(run, 0).chain]
    assert chain == [(0, 1, "work"), (1, 4, "failure"), (4, 5, "work"), (5, 9, "fetching"), (9, 12, "work")]
    assert "its output was lost" in emu.explain(run, 0).chain[1].what
    again = emu.read_result(tmp_path / "run")
    assert emu.causes(again).to_pandas().drop(columns="job_id").sum().sum() == 12_000_000_000


def test_only_what_came_after_the_last_end_before_a_failure_is_its_fault(tmp_path: Path) -> None:
    # A map of 1 s on node 0 sends 4 GB to each of three tasks, of 60 s there, and of 3 s and 60 s on the others. The
    # second one ends at 12 s. Node 0 fails at 20 s, which is known at 20.5 s: the map runs again, and the first task.
    (tmp_path / "failures.csv").write_text("target,fail_s,repair_s\nnode 0,20,300\n", encoding="utf-8")
    work = make_dag_workload(
        "by hand", [0], [2], [1, 3], [1, 60, 3, 60], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[12e9]
    )
    given = HERE | {"dynamics_failures": tmp_path / "failures.csv", "dynamics_detection": 0.5}
    found = emu.explain(emu.run("drf", work, 3, output_events="all", **given), 0)
    assert [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in found.chain] == [
        (0, 1, "work"),
        (1, 9, "fetching"),
        (9, 12, "work"),
        (12, 20.5, "failure"),
        (20.5, 21.5, "work"),
        (21.5, 81.5, "work"),
    ]
    assert "1 time a task of it ran again after it had ended, as its output was lost." in found.sentences
    assert any("at which port it waited is not known" in text for text in found.sentences)


@pytest.mark.parametrize(
    ("scheduler", "network", "parameters"),
    [
        ("drf", "fair", {}),
        ("carbyne", "sebf", {}),
        ("srtf", "philae", {"heartbeat_s": 2.0}),
        (ShortestFirst, "fair", {}),
    ],
)
def test_causes_of_all_jobs_add_up(scheduler: Any, network: str, parameters: dict[str, float]) -> None:
    given = HERE | {"network_delay": 0.0005, "network_scheduler": network, "fabric_port_speed": "2 Gbps"}
    del given["cluster"]
    run = emu.run(
        scheduler,
        "query-dags",
        20,
        workload_options={"jobs": 12},
        parameters=parameters,
        output_events="all",
        dynamics_mtbf=2500.0,
        dynamics_mttr=60.0,
        dynamics_detection=10.0,
        **given,
    )
    assert run.counters["run_again"] > 0
    assert run.counters["fetches_failed"] > 0
    jobs, tasks = run.jobs.to_pandas().set_index("job_id"), run.tasks.to_pandas()
    sums = emu.causes(run).to_pandas().set_index("job_id").sum(axis=1) / 1e9
    assert np.allclose(sums, jobs["jct_s"], rtol=0, atol=1e-6)
    assert (tasks["runnable_s"] <= tasks["start_s"]).all()
    assert (run.timeline.to_pandas()["runnable_tasks"] >= 0).all()
