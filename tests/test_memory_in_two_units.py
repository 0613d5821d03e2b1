"""Memory as a share of a node and in GiB in one workload: nodes have it once, so that tasks hold one of the two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import emu
from clusters.cluster import build_cluster
from clusters.figures import describe_resources, resource_figures
from workloads.dags import make_dag_workload, memory_in_two_units
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests
from workloads.transform.merging import merge

NONE = np.nan
MACHINE = '[[machines]]\ntype = "m"\ncount = 1\nslots = 4\ncores = 4\nmemory = "64 GiB"\n'
SAID = "2 jobs state memory, a share of a node (the first: job 0; tenant ads), and 1 job states memory_gib (job 2)"


def mixed() -> JobWorkload:
    """Three jobs, of which one states GiB, by its only task; half of one node and 60 of 64 GiB do not fit together."""
    asked = Requests(
        demands={"cpu_cores": [1.0] * 3, "memory": [0.5, 0.5, NONE]},
        task_demands={"memory_gib": [NONE, NONE, 60.0]},
    )
    return make_workload("mixed", [0.0] * 3, [1] * 3, [10.0] * 3, tenant=["ads", None, None], requests=asked)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """One node of 4 cores and 64 GiB."""
    path = tmp_path / "one.toml"
    path.write_text(MACHINE)
    return path


@pytest.mark.parametrize("use", ["auto", "stated", "memory, memory_gib"])
def test_both_units_at_once_are_refused(machine: Path, use: str) -> None:
    with pytest.raises(InputError) as error:
        emu.run("central-fifo", mixed(), cluster=machine, resources_use=use, in_process=True)
    assert SAID in error.value.message
    assert ("'cpu_cores, memory_gib'" in error.value.message) == (use != "memory, memory_gib")


@pytest.mark.parametrize("use", ["cpu_cores, memory_gib", "memory", "slots"])
def test_one_of_the_units_is_held(machine: Path, use: str) -> None:
    result = emu.run("central-fifo", mixed(), cluster=machine, resources_use=use, in_process=True)
    assert set(result.summary["jobs"].get("used", {})) == ({*use.split(", ")} if use != "slots" else set())


def test_where_tasks_take_slots_nothing_is_refused() -> None:
    assert emu.run("central-fifo", mixed(), 1, in_process=True).summary["jobs"]["all"]["count"] == 3


def test_stages_of_dags_in_both_units_are_refused(machine: Path) -> None:
    units = {"memory": [0.5, NONE], "memory_gib": [NONE, 60.0]}
    dags = make_dag_workload("mixed", [0.0, 0.0], [1, 1], [1, 1], [10.0, 10.0], [], demands=units)
    with pytest.raises(
        InputError, match=r"1 job states memory, a share of a node \(job 0\), and 1 job states memory_g"
    ):
        emu.run("drf", dags, cluster=machine, in_process=True)


def test_merging_and_comparing_with_a_cluster_say_so() -> None:
    one = make_workload("gib", [0.0], [1], [1.0], requests=Requests(demands={"memory_gib": [1.0]}))
    other = make_workload("share", [0.0], [1], [1.0], requests=Requests(demands={"memory": [1.0]}))
    both = merge([one, other])
    assert any("1 job states memory, a share of a node (job 1), and 1" in note for note in both.notes)
    assert not any("memory" in note for note in merge([one, one]).notes)
    assert (memory_in_two_units(one), memory_in_two_units(other)) == ("", "")
    cluster = build_cluster("two", [1, 1])
    text = describe_resources(mixed(), resource_figures(mixed(), cluster))
    assert f"  {SAID}: these are of the same memory" in text
    assert "same memory" not in describe_resources(one, resource_figures(one, cluster))
