"""Runs of DAG jobs under schedulers that do not see all resources: what they write, and what goes with over-use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emu
from emu.cli import main
from emu.results.result import Result
from tests.actors.dag_settings import mixed_dags, with_bytes
from workloads.arrow import column
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError

HERE: dict[str, Any] = {"in_process": True, "output_tasks": True}
BLIND = "drf@sees=cores+memory"


def readers(tasks: int = 8) -> DagWorkload:
    """Jobs of a task of 10 s that all fit on a machine by their cores, and of which each reads with 0.6 of a disk."""
    ones = [1] * tasks
    return make_dag_workload(
        "readers",
        np.arange(float(tasks)),
        ones,
        ones,
        [10.0] * tasks,
        [],
        demands={"cpu_cores": ones, "memory": [0.1] * tasks, "disk_in": [0.6] * tasks},
    )


def took_s(run: Result) -> Any:
    assert run.tasks is not None
    return column(run.tasks, "finish_s") - column(run.tasks, "start_s")


def most_used(run: Result, resource: str) -> float:
    of_it = column(run.resources, "used")[np.array(run.resources["resource"].to_pylist()) == resource]
    return float(of_it.max())


def test_what_is_not_seen_is_over_used() -> None:
    """`used` is of what tasks need of each resource, seen or not."""
    seeing, blind, slow = (
        emu.run(name, readers(), 1, overuse=overuse, timeline_period="1 s", **HERE)
        for name, overuse in (("drf", "slows"), (BLIND, "ignored"), (BLIND, "slows"))
    )
    assert most_used(seeing, "disk_in") == pytest.approx(0.6)
    assert most_used(blind, "disk_in") == pytest.approx(8 * 0.6)
    assert most_used(slow, "disk_in") == pytest.approx(8 * 0.6)
    assert took_s(seeing) == pytest.approx(10)
    assert took_s(blind) == pytest.approx(10)
    assert (took_s(slow) > 10).all()
    assert slow.summary["dags"]["used"]["disk_in"] > 1
    # What is read takes the disk 8 · 6 s; it has less to do than it can while one task runs, at the begin and the end.
    assert 48.4 < slow.summary["jobs"]["makespan_s"] < 48.6
    assert seeing.summary["jobs"]["makespan_s"] == pytest.approx(80, abs=0.1)


def test_clocks_write_the_same_bytes() -> None:
    keys = {"overuse": "slows", "seed": 4, **HERE}
    virtual, windows = (
        emu.run("carbyne@sees=cores@managers=2", readers(12), 2, **keys, **clock)
        for clock in ({"clock": "virtual"}, {"clock": "windows", "partitions": 3})
    )
    for name in ("jobs", "tasks", "resources", "fairness", "timeline"):
        assert getattr(virtual, name).equals(getattr(windows, name)), name
    assert virtual.summary["dags"]["used"]["disk_in"] != virtual.summary["dags"]["used"]["cpu_cores"]


def test_slowing_goes_with_a_network() -> None:
    """A task that fetches its input is not slow, and slows no other: it computes from `fetched_s` on."""
    keys = {"network_scheduler": "fair", "fabric_port_speed": "10 Gbps", "seed": 1, **HERE}
    jobs = mixed_dags(40, mean_gap_s=0.2)
    plain, slow = (
        emu.run("drf@sees=cores", with_bytes(jobs, 1), 2, overuse=overuse, **keys)
        for overuse in ("ignored", "slows")
    )
    computed = []
    for run in (plain, slow):
        assert run.tasks is not None
        fetched = np.nan_to_num(run.tasks["fetched_s"].to_numpy(zero_copy_only=False), nan=0.0)
        computed.append(column(run.tasks, "finish_s") - np.maximum(column(run.tasks, "start_s"), fetched))
    work = jobs.arrays().duration_ns / 1e9
    assert np.allclose(computed[0], work)
    assert (computed[1] > work - 1e-6).all()
    assert (computed[1] > 1.01 * work).mean() > 0.2


def test_a_wait_is_explained_by_what_the_manager_sees() -> None:
    run = emu.run("drf@sees=memory", readers(20), 1, output_events="all", **HERE)
    story = emu.explain(run, 19)
    assert story.longest is not None
    assert story.longest.facts["resource"] == "memory"


def test_it_does_not_go_with_preemption() -> None:
    with pytest.raises(
        InputError, match=r"^overuse: slows does not go with preemption\.mode: .*; want ignored$"
    ):
        emu.run(
            "drf", mixed_dags(priorities=3), 3, overuse="slows", preemption_mode="restart", in_process=True
        )


@pytest.mark.slow("several whole runs")
def test_schedulers_of_jobs_ignore_it(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--workload", "query-dags", "--nodes", "4", "--in-process", "--set", "workload_options.jobs=2"]
    slows = ["--short-cutoff", "90%", "--set", "overuse=slows"]
    assert main(["compare", "--schedulers", f"{BLIND},sparrow", *given, *slows]) == 0
    assert main(["run", "--scheduler", "sparrow", "--network", "none", *given, *slows]) == 2
    assert "no effect on sparrow: its nodes start no task that does not fit" in capsys.readouterr().err


def test_tasks_that_no_node_has_room_for_are_refused_by_all_they_need() -> None:
    """The disk is not seen; a task that needs more than one has is refused nevertheless."""
    workload = make_dag_workload(
        "large", [0], [1], [1], [1], [], demands={"cpu_cores": [1], "attr:gpus": [3.0]}
    )
    with pytest.raises(InputError, match="gpus"):
        emu.run("drf@sees=cores", workload, 2, in_process=True)
