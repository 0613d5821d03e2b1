"""Runs whose shuffles are pushed to homes of tasks: what they write, their stories, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import Cluster, build_cluster
from emu.explaining.event_record import Record
from emu.families.dags.explain import causes_of_all
from emu.families.dags.testing import check_dag_result
from emu.report.gantt import parts_of
from tests.actors.dag_settings import mixed_dags, with_bytes
from workloads.arrow import optional_column
from workloads.dags import DagWorkload, make_dag_workload

HERE: dict[str, Any] = {
    "in_process": True,
    "network_delay": 0.5,
    "network_scheduler": "fair",
    "network_shuffle": "push",
    "fabric_port_speed": "8 Gbps",
    "output_tasks": True,
}
MACHINES = build_cluster("machines", [3, 4], cpu_cores=[3.0, 4.0])


def uneven_shuffle() -> DagWorkload:
    """J0: maps of 1, 2 and 5 s on machine 0 send 2 GB each to a reducer of 1 s, which fits on machine 1 alone. J1: a
    task of 6 s, from 7 s on, which fits there alone, too.
    """
    return make_dag_workload(
        "uneven",
        [0, 7],
        [2, 1],
        [3, 1, 1],
        [1, 2, 5, 1, 6],
        [(0, 0, 1)],
        cpu_cores=[1, 4, 4],
        edge_bytes=[6e9],
    )


def run_on(place: Path, machines: Cluster, scheduler: str, work: DagWorkload, **given: Any) -> emu.Result:
    file = place / "machines.parquet"
    pq.write_table(machines.table, file)
    return emu.run(scheduler, work, **HERE | {"cluster": file, "output_events": "all"} | given)


def test_a_pushed_shuffle_event_by_event(tmp_path: Path) -> None:
    # Messages take 0.5 s. The reducer's input is sent from 6.5 to 12.5 s, while machine 1 runs J1's task.
    run = run_on(tmp_path, MACHINES, "drf", uneven_shuffle())
    events = run.events.to_pandas()
    events["time_s"] = events.time_ns / 1e9
    job = events[(events.job == 0) & (events.task == 3)]
    assert job[["time_s", "kind", "sender", "receiver"]].to_numpy().tolist() == [
        [6.5, "RECEIVE", 2, 1],
        [6.5, "FETCH", 1, 1],
        [12.5, "FETCHED", 1, 1],
        [13.0, "RECEIVED", 1, 2],
        [14.5, "LAUNCH", 2, 1],
        [15.5, "STAGE_TASK_END", 1, 1],
        [16.0, "TASK_DONE", 1, 2],
    ]
    assert events[events.kind == "PUSH"].time_s.tolist() == [6.0]
    assert run.tasks is not None
    reducer = run.tasks.slice(3, 1).to_pylist()[0]
    names = ("parents_ended", "sent", "fetched", "runnable", "start", "finish")
    assert [reducer[f"{name}_s"] for name in names] == [5.5, 6.5, 12.5, 13, 14.5, 15.5]
    assert run.summary["dags"]["mean_fetch_s"] == 6
    assert (parts_of(run).fetched <= parts_of(run).start).all()  # a Gantt chart has no fetch on the machine
    at_10_s = run.timeline.to_pandas().set_index("time_s").loc[:10.0].iloc[-1]
    assert (at_10_s.running_tasks, at_10_s.runnable_tasks, at_10_s.running_jobs) == (1, 0, 2)


@pytest.mark.parametrize("network", ["fair", "sebf"])
@pytest.mark.parametrize(
    "scheduler", ["drf", "tetris@remote_penalty=0.2", "capacity@heartbeat_s=1", "srtf@managers=2"]
)
def test_causes_add_up(tmp_path: Path, scheduler: str, network: str) -> None:
    work = with_bytes(mixed_dags(jobs=12), 3)
    machines = build_cluster("machines", [4, 8, 4, 8, 6], cpu_cores=[4.0, 8.0, 4.0, 8.0, 6.0])
    run = run_on(tmp_path, machines, scheduler, work, network_delay=0.003, network_scheduler=network)
    check_dag_result(run, work, machines)
    found = dict(causes_of_all(run, Record.of(run.events)))
    assert len(found) == 12
    for row, jct_s in enumerate(optional_column(run.jobs, "jct_s")):
        assert sum(found[row].values()) == round(jct_s * 1e9)
        assert all(of >= 0 for of in found[row].values())
        emu.explain(run, row)
    fetched, sent, finish = (
        optional_column(run.tasks, f"{name}_s") for name in ("fetched", "sent", "finish")
    )
    has_home = np.isfinite(sent)
    assert (np.isfinite(fetched) == has_home).all()
    assert has_home.any()
    assert np.isfinite(finish).all()
    assert run.summary["dags"]["mean_fetch_s"] == pytest.approx((fetched - sent)[has_home].mean())


def test_two_schedulers_have_the_same_homes(tmp_path: Path) -> None:
    work = with_bytes(mixed_dags(jobs=12), 3)
    machines = build_cluster("machines", [8] * 4, cpu_cores=[8.0] * 4)
    runs = [run_on(tmp_path, machines, name, work).tasks.to_pandas() for name in ("drf", "tetris", "heft")]
    for run in runs[1:]:
        has_home = run.sent_s.notna()
        assert (run.node == runs[0].node)[has_home].all()
    assert not (runs[0].node == runs[1].node).all()
