"""What the answer of `emu size` says of its conditions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from emu.sweeps.size_note import Found, note_of
from emu.sweeps.targets import Search, read_targets

Cli = Callable[..., Any]
SIZE = ("size", "--scheduler", "central-fifo", "--in-process", "--workload")


def test_the_answer_states_the_machines_that_are_lost(emu: Cli, trace: Path) -> None:
    Path("lost.csv").write_text("target,fail_s,repair_s\n10%,0,\n")
    asked = (*SIZE, "small", "--target", "p90 < 10 h", "--low", "30", "--set", "dynamics.failures=lost.csv")
    assert (
        emu(*asked)
        .out.splitlines()[-3]
        .endswith("is met already, fewer may do; nodes failed 3 times in its run")
    )
    seeds = emu(*asked, "--seeds", "2", "--out", "two").out.splitlines()[-3]
    assert seeds.endswith("; nodes failed 3 times in each run")


def test_more_nodes_are_said_not_to_help_only_where_jobs_take_as_long_alone() -> None:
    def note(slowdown: float, *targets: str) -> str:
        group = {"count": 9, "p99": 240.0, "slowdown": {"p99": slowdown}, "wait": {"p99": 9.0}}
        run = {"seed": 1, "scheduler": "eagle", "jobs": {"all": group, "short": group}, "counters": {}}
        return note_of(Found(Search(None, 50), read_targets(targets), [run], low=1))

    none = "is not met even on 50, the most that was tried: more slots than tasks"
    assert note(3.0, "short.p99 < 60s") == f"short.p99 < 60 s {none}"
    said = (
        "there short jobs take that long alone, too (slowdown 1.01 at p99), so that no number of nodes meets"
    )
    assert note(1.01, "short.p99 < 60s") == f"short.p99 < 60 s {none}; {said} short.p99 < 60 s"
    assert "alone" not in note(1.01, "short.wait.p99 < 1s")
    assert note(1.01, "p99 < 300s", "p99 < 60s").endswith("no number of nodes meets all.p99 < 60 s")


def test_a_search_that_ran_nothing_at_its_last_size_has_a_page(emu: Cli, trace: Path) -> None:
    argv = "--scheduler random --workload small --target p99<9h --without 60% --low 1 --high 1 --out none"
    assert emu("size", *argv.split()).code == 1
    assert emu("report", "none").code == 0
    page = Path("none/report.html").read_text()
    assert "<h2>Runs</h2>" not in page
    assert "jobs cannot run" in page
