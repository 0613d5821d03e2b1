"""Constraints and heterogeneous clusters from the command line: notes, refusals and dropped jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusters.cluster import load_cluster
from workloads.catalogue import save_workload
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import make_workload

Cli = Callable[..., Any]
TYPES = """
order = "shuffled"
machines = [
    { type = "small", count = 6, cores = 4 },
    { type = "large", count = 2, cores = 16 },
]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with jobs, of which the third cannot run on the cluster beside them."""
    monkeypatch.chdir(tmp_path)
    jobs = make_workload("jobs", [0, 1, 2, 3], [1, 2, 1, 1], [4, 1, 3, 2, 9])
    sets = [parse_constraint_set("cores >= 16"), parse_constraint_set("cores >= 32")]
    save_workload(with_constraints(jobs, sets, [-1, 0, 1, 0]), "jobs")
    Path("two.toml").write_text(TYPES)
    return tmp_path


RUN = (
    "run",
    "--scheduler",
    "random",
    "--workload",
    "jobs",
    "--cluster",
    "two.toml",
    "--in-process",
    "--out",
    "r",
)


def test_a_job_that_no_node_can_run_ends_the_run_before_it_starts(folder: Path, emu: Cli) -> None:
    ended = emu(*RUN)
    assert (ended.code, ended.line()) == (
        2,
        "emu: --workload: job 2: no node satisfies cores >= 32; cores >= 32 none (cores is 4 to 16) on cluster two of 8"
        " nodes; --infeasible drop leaves such jobs out",
    )
    assert not Path("r").exists()


def test_such_jobs_are_dropped_and_counted_where_that_is_asked_for(folder: Path, emu: Cli) -> None:
    ended = emu(*RUN, "--infeasible", "drop", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["jobs"]["all"]["count"] == 3
    assert "1 of 4 jobs dropped, whose hard constraints cluster two of 8 nodes cannot meet" in ended.err
    assert "2 jobs have constraints, which random ignores" in ended.err
    notes = json.loads(Path("r/manifest.json").read_text())["notes"]
    assert any("1 of 4 jobs dropped" in note for note in notes)


def test_a_scheduler_that_respects_them_runs_tasks_where_they_may_run(folder: Path, emu: Cli) -> None:
    import pyarrow.parquet as pq

    options = ("--infeasible", "drop", "--set", "output.tasks=true")
    ended = emu(*RUN[:2], "sparrow-c", *RUN[3:], *options)
    assert ended.code == 0, ended.err
    assert "have constraints" not in ended.err
    tasks = pq.read_table("r/tasks.parquet")
    of_large = [
        node for node, job in zip(*(tasks[c].to_pylist() for c in ("node", "job_id")), strict=True) if job
    ]
    cores = load_cluster("two.toml").attribute("cores")
    assert len(of_large) == 3
    assert (cores[of_large] == 16).all()
    ended = emu(*RUN[:2], "sparrow", *RUN[3:9], "s", *options)
    assert "which sparrow ignores: tasks run on any node; sparrow-c respects them" in ended.err


def test_nodes_run_tasks_by_their_speed_where_that_is_asked_for(folder: Path, emu: Cli) -> None:
    save_workload(make_workload("even", [0, 100], [1, 1], [4, 8]), "even")
    Path("fast.toml").write_text('[[machines]]\ntype = "fast"\ncount = 3\nspeed = 4\n')
    options = (
        "--workload",
        "even",
        "--cluster",
        "fast.toml",
        "--in-process",
        "--json",
        "--set",
        "network.delay=0",
    )
    slow = json.loads(emu("run", "--scheduler", "random", *options).out)
    fast = json.loads(emu("run", "--scheduler", "random", *options, "--set", "machine_speed=true").out)
    assert slow["jobs"]["all"]["mean"] == 6
    assert fast["jobs"]["all"]["mean"] == 1.5


def test_sweeps_drop_them_too(folder: Path, emu: Cli) -> None:
    base = 'workload = "jobs"\ncluster = "two.toml"\ninfeasible = "drop"\n'
    Path("s.toml").write_text(f'{base}[sweep]\nscheduler = ["random"]\nload = [0.1, 0.2]\n')
    ended = emu("sweep", "s.toml", "--in-process", "--out", "s", "--json")
    assert ended.code == 0, ended.err
    found = [json.loads(p.read_text()) for p in Path("s").rglob("seed=*/summary.json")]
    assert [summary["jobs"]["all"]["count"] for summary in found] == [3, 3]


def test_the_seed_of_a_cluster_places_its_machines(folder: Path, emu: Cli) -> None:
    def info(*options: str) -> Any:
        ended = emu("cluster", "info", "phoenix", "--nodes", "50", *options)
        assert ended.code == 0, ended.err
        return ended.out

    assert info() == info("--set", "cluster_seed=0")
    figures = json.loads(info("--json"))
    assert figures["nodes"] == 50
    config = emu(*RUN, "--infeasible", "drop", "--set", "cluster_seed=3")
    assert config.code == 0
    assert "cluster_seed = 3" in Path("r/config.toml").read_text()


def test_info_says_which_nodes_satisfy_constraints(folder: Path, emu: Cli) -> None:
    ended = emu("workload", "info", "jobs", "--cluster", "two.toml")
    assert ended.code == 0
    assert "3 of 4 jobs have constraints, 2 distinct sets; 1 jobs cannot run on two of 8 nodes" in ended.out
    assert "what tasks hold of two of 8 nodes, on average and in the busiest" in ended.out
    figures = json.loads(emu("workload", "info", "jobs", "--cluster", "two.toml", "--json").out)
    assert [row["nodes"] for row in figures["constraints"]["constraints"]] == [2, 0]
    assert [*figures["resources"]["resources"]] == ["slots"]


def test_constraints_are_drawn_by_a_command_that_tells_how_often(folder: Path, emu: Cli) -> None:
    ended = emu("workload", "synth", "poisson", "plain", "--set", "jobs=500")
    ended = emu("workload", "constrain", "plain", "constrained", "--model", "phoenix", "--jobs", "all")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[1].split() == ["constraint", "jobs", "drawn", "asked"]


def test_a_gang_that_never_fits_is_refused_or_dropped_and_counted(folder: Path, emu: Cli) -> None:
    save_workload(make_workload("wide", [0, 1, 2], [1, 3, 2], [4.0] * 6), "wide")
    run = ("run", "--scheduler", "easy", "--workload", "wide", "--nodes", "2", "--in-process", "--out", "r")
    assert emu(*run).code == 0
    ended = emu(*run, "--set", "gangs=all", "--overwrite")
    assert (ended.code, ended.line()) == (
        2,
        "emu: --workload: job 1: its 3 tasks start at once, for which cluster homogeneous of 2 nodes and 2 slots has no"
        " room; --infeasible drop leaves such jobs out",
    )
    ended = emu(*run, "--set", "gangs=all", "--overwrite", "--infeasible", "drop")
    assert ended.code == 0
    assert (
        "1 of 3 jobs dropped, whose tasks start at once, for which cluster homogeneous of 2 nodes"
        in ended.err
    )
