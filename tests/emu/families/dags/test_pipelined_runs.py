"""Runs whose shuffles begin before their maps have ended: what they write, their stories, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from tests.emu.families.dags.test_network_runs import HERE
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError


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
    found = emu.explain(run, 0)
    chain = [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in found.chain]
    assert chain == [(0, 5, "work"), (5, 7, "fetching"), (7, 8, "work")]
    assert "fetched the rest of its input" in found.chain[1].what
    assert found.longest is not None
    assert found.longest.reasons == [
        "It fetched 6 GB from 1 machine: 6 s at 8 Gbps, if node 1 received nothing else.",
        "It began 5 s before the last of its parents had ended, and fetched as they ended. The time from that end on "
        "is explained, with what was sent to it from then on.",
        "Of the ports on the way the port by which node 1 receives had most to do: 2 GB (2 s at that speed) are of "
        "this fetch; no other fetch used it meanwhile.",
        "This fetch alone filled the port for 100.0% of the time.",
    ]
    timeline = run.timeline
    assert timeline is not None
    assert set(timeline["runnable_tasks"].to_pylist()) == {0}


def test_a_pipelined_reducer_that_waits_for_a_machine(tmp_path: Path) -> None:
    # Another job holds machine 1 until 9 s: the reducer waits for that from 0 s on, and in the chain from 5 s on, when
    # the last map has ended. No report of that end is waited for.
    work = make_dag_workload(
        "late", [0, 0], [1, 2], [1, 3, 1], [9, 1, 2, 5, 1], [(1, 0, 1)], cpu_cores=[4, 1, 4], edge_bytes=[6e9]
    )
    run = of_two_machines(tmp_path, work, network_registration="pipelined")
    assert run.tasks is not None
    reducer = run.tasks.slice(4, 1).to_pylist()[0]
    times = [reducer[f"{name}_s"] for name in ("runnable", "start", "parents_ended", "fetched", "finish")]
    assert times == [0, 9, 5, 15, 16]
    chain = [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in emu.explain(run, 1).chain]
    assert chain == [(0, 5, "work"), (5, 9, "queueing"), (9, 15, "fetching"), (15, 16, "work")]


class Never:
    """A scheduler of one's own, which is never asked."""

    def launch(self, stages: Any, machines: Any, now_s: float) -> list[tuple[int, int]]:
        raise AssertionError


@pytest.mark.parametrize(
    ("scheduler", "why"),
    [
        (
            "carbyne",
            "pipelined does not go with scheduler=carbyne: it plans tasks to start when their parents have",
        ),
        (
            Never,
            "pipelined does not go with scheduler=Never: a scheduler of one's own gets tasks when their",
        ),
    ],
)
def test_who_does_not_launch_before_parents_have_ended(scheduler: Any, why: str) -> None:
    with pytest.raises(InputError, match=re.escape(why)):
        emu.run(scheduler, uneven_shuffle(), 2, **HERE, network_registration="pipelined")
    with pytest.raises(InputError, match="network_registration: has no effect on drf: input takes no time"):
        emu.run("drf", uneven_shuffle(), 2, in_process=True, network_registration="pipelined")
