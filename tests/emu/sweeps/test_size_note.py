"""What the answer of `emu size` says of its conditions."""

from __future__ import annotations

from emu.sweeps.sizing import Found, note_of
from emu.sweeps.targets import Search, read_targets


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
