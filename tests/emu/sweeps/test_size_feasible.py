"""Sizes on which some job cannot run: they do not meet a target, and nothing is run there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emu.sweeps.size_report import render_probe, runs_of, size_sections
from emu.sweeps.sizing import SizeResult, size
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

HERE = {"in_process": True, "tolerance": 0, "network_delay": 0}
MACHINES = """
[[machines]]
type = "small"
share = "75%"
cores = 2
[[machines]]
type = "big"
share = "25%"
cores = 8
tags = ["ssd"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("machines.toml").write_text(MACHINES)
    return tmp_path


def gangs(*widths: int) -> JobWorkload:
    """Jobs of 2 s that start all their tasks at once, 10 s apart."""
    tasks = [2.0] * sum(widths)
    asked = Requests(gang_nodes=[0] * len(widths))
    return make_workload("gangs", [10.0 * i for i in range(len(widths))], list(widths), tasks, requests=asked)


def asking(*cores: float) -> JobWorkload:
    """Jobs of a task of 1 s that needs cores, 10 s apart."""
    asked, jobs = Requests(demands={"cpu_cores": list(cores)}), len(cores)
    return make_workload("asking", [10.0 * i for i in range(jobs)], [1] * jobs, [1.0] * jobs, requests=asked)


def lacking(found: SizeResult) -> dict[int, int]:
    return {probe.nodes: probe.lacking.jobs for probe in found.probes}


def test_gangs_wider_than_a_size_are_not_met_there_and_not_run(here: Path) -> None:
    found = size("p99 < 1 h", "easy", gangs(1, 4, 16, 4), **HERE)
    assert (found.nodes, found.fails) == (16, 15)
    assert found.answer == "16 nodes: all.p99 < 60 min is met, and is not on 15, where 1 of 4 jobs cannot run"
    below = {nodes: jobs for nodes, jobs in lacking(found).items() if nodes < 16}
    assert below
    assert all(jobs == (1 if nodes >= 4 else 3) for nodes, jobs in below.items())
    assert {f.parent.name for f in found.path.glob("nodes=*/seed=*")} == {
        f"nodes={nodes}" for nodes, jobs in lacking(found).items() if not jobs
    }
    text = render_probe(next(p for p in found.probes if p.nodes == 15), found.targets)
    assert text == "15 nodes: not met (1 of 4 jobs cannot run)"


def test_only_what_runs_on_no_size_is_dropped_and_the_same_on_each(here: Path) -> None:
    given: dict[str, Any] = {**HERE, "cluster": "machines.toml", "infeasible": "drop", "short_cutoff": 5}
    found = size("p99 < 1 h", "central-lwl", asking(1, 6, 2, 9, 9), **given)
    assert (found.nodes, found.fails) == (3, 2)  # of 2 nodes none is big
    assert lacking(found) | {2: 1, 3: 0} == lacking(found)
    assert found.note.endswith("machines: 2 small and 1 big; 2 jobs that run on no size are left out on each")
    for run in found.path.glob("nodes=*/seed=*"):
        assert json.loads((run / "summary.json").read_text())["jobs"]["all"]["count"] == 3
    assert found.summary["left_out"] == 2
    with pytest.raises(
        InputError, match=r"job 3: a task needs 9 of cpu_cores .* which no node of machines has"
    ):
        size("p99 < 1 h", "central-lwl", asking(1, 6, 2, 9, 9), **{**given, "infeasible": "fail"}, out="no")
    assert not Path("no").exists()


def test_with_high_what_no_size_up_to_it_runs_is_dropped(here: Path) -> None:
    jobs, given = gangs(1, 4, 16, 4), {**HERE, "high": 8}
    none = size("p99 < 1 h", "easy", jobs, **given)
    assert none.nodes is None
    assert none.note == "all.p99 < 60 min is not met even on 8, --high; there 1 of 4 jobs cannot run"
    assert runs_of(none.path) == []
    assert "not met: 1 of 4 jobs cannot run" in size_sections(none.path)[0]
    found = size("p99 < 1 h", "easy", jobs, **given, infeasible="drop", out="dropped")
    assert (found.nodes, found.fails, found.summary["left_out"]) == (4, 3, 1)


def test_constraints_that_no_node_of_a_size_satisfies_count_alike(here: Path) -> None:
    plain = make_workload("tagged", [0.0, 5.0, 9.0], [1, 1, 2], [1.0] * 4)
    sets = [parse_constraint_set("tags = ssd"), parse_constraint_set("spread-nodes")]
    found = size(
        "p99 < 1 h", "sparrow-c", with_constraints(plain, sets, [-1, 0, 1]), **HERE, cluster="machines.toml"
    )
    assert (found.nodes, found.fails) == (3, 2)
    assert lacking(found)[2] == 1


def test_a_target_that_no_size_meets_is_said_after_sizes_on_which_all_run(here: Path) -> None:
    found = size("p99 < 1 s", "easy", gangs(1, 4), **HERE)
    assert found.nodes is None
    assert "there jobs take that long alone, too" in found.note
