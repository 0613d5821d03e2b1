"""Runs whose shuffles begin before their maps have ended: what they write, their stories, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import emu
from clusters.cluster import build_cluster
from tests.emu.families.dags.test_network_runs import HERE
from workloads.dags import DagWorkload, make_dag_workload


def uneven_shuffle() -> DagWorkload:
    """Maps of 1, 2 and 5 s on machine 0 send 2 GB each to a reducer of 1 s, which fits on machine 1 alone."""
    return make_dag_workload(
        "uneven", [0], [2], [3, 1], [1, 2, 5, 1], [(0, 0, 1)], cpu_cores=[1, 4], edge_bytes=[6e9]
    )


def of_two_machines(place: Path, work: DagWorkload, **given: Any) -> emu.Result:
    machines = build_cluster("machines", [3, 4], cpu_cores=[3.0, 4.0])
    pq.write_table(machines.table, place / "machines.parquet")
    return emu.run(
        "drf", work, **HERE | {"cluster": place / "machines.parquet"}, output_events="all", **given
    )


def test_a_pipelined_shuffle(tmp_path: Path) -> None:
    # The reducer is launched at 0 s, and has its input 2 s after the last map, which ends at 5 s.
    run = of_two_machines(tmp_path, uneven_shuffle(), network_registration="pipelined")
    assert run.tasks is not None
    reducer = run.tasks.slice(3, 1).to_pylist()[0]
    times = [reducer[f"{name}_s"] for name in ("runnable", "start", "parents_ended", "fetched", "finish")]
    assert times == [0, 0, 5, 7, 8]
    timeline = run.timeline
    assert timeline is not None
    assert set(timeline["runnable_tasks"].to_pylist()) == {0}
