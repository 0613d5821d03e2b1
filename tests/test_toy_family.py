"""A family in one folder: with one line in the registry it runs, is compared, swept and reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from actors.kernel.message_kinds import kinds_of
from actors.worlds import Worlds
from emu.families import registry
from emu.families.family import Family
from emu.results.result import Summarising, read_result
from tests.toy_family import family as toy

FAMILY = "tests.toy_family"
SCHEDULERS = ("tests.toy_family.desk:FCFS", "tests.toy_family.desk:LCFS")
KEYS = {"workload_options": {"jobs": 40, "nodes": 1}, "in_process": True}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line."""
    monkeypatch.setitem(registry.FAMILIES, "tickets", FAMILY)
    registry._packages.cache_clear()
    yield
    registry._packages.cache_clear()


def served(arrival_s: np.ndarray, work_s: np.ndarray, last_first: bool) -> np.ndarray:
    """When a desk has served each ticket, in plain Python."""
    finish, waiting, now = np.zeros(arrival_s.size), [], 0.0
    left = list(range(arrival_s.size))
    while left or waiting:
        if not waiting and arrival_s[left[0]] > now:
            now = arrival_s[left[0]]
        while left and arrival_s[left[0]] <= now:
            waiting.append(left.pop(0))
        ticket = waiting.pop(-1 if last_first else 0)
        now += work_s[ticket]
        finish[ticket] = now
    return finish


def run(name: str, **more: Any) -> Any:
    return emu.run(name, "poisson", **KEYS, **more)


@pytest.mark.parametrize("last_first", [False, True])
def test_it_runs_and_its_results_are_right(last_first: bool) -> None:
    result = run(SCHEDULERS[last_first])
    tickets = result.tables["tickets"]
    workload = emu.run("random", "poisson", 1, **KEYS, output_tasks=True)
    work_s = np.bincount(
        np.repeat(np.arange(40), workload.jobs["num_tasks"].to_numpy()),
        workload.tasks["duration_s"].to_numpy(),
    )
    arrival_s = tickets["arrival_s"].to_numpy()
    finish_s = served(arrival_s, work_s, last_first)
    assert tickets["turnaround_s"].to_numpy() == pytest.approx(finish_s - arrival_s, abs=1e-6)
    assert result.summary["tickets"]["count"] == 40
    assert result.counters["tickets_that_waited"] > 0
    assert result.summary["engine"]["customers"] == 40


def test_it_is_written_and_read_again(tmp_path: Path) -> None:
    first = run(SCHEDULERS[0], out=tmp_path / "r")
    again = read_result(tmp_path / "r")
    assert again.family == "tickets"
    assert again.tables["tickets"].equals(first.tables["tickets"])


def test_it_is_compared() -> None:
    comparison = emu.compare(list(SCHEDULERS), "poisson", **KEYS, seeds=2)
    text = comparison.to_text()
    assert "fcfs" in text
    assert "lcfs" in text
    means = [row.figures["mean"][0] for row in comparison.rows()]
    assert means[0] != means[1]


def test_it_is_swept_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid = Path("desk.toml")
    grid.write_text(
        f'scheduler = ["{SCHEDULERS[0]}", "{SCHEDULERS[1]}"]\nworkload = "poisson"\nseeds = 2\n'
        "[workload_options]\njobs = 40\nnodes = 1\n"
    )
    rows = emu.sweep(grid, in_process=True).rows
    assert [row["scheduler"] for row in rows] == ["fcfs", "fcfs", "lcfs", "lcfs"]
    means = {row["path"]: row["tickets.mean"] for row in rows}
    assert len(set(means.values())) == 4
    from emu.cli import main

    assert main(["report", "runs/sweep-desk"]) == 0
    assert "lcfs" in Path("runs/sweep-desk/report.html").read_text()


def test_its_load_is_brought_about() -> None:
    slow, fast = (run(SCHEDULERS[0], load=load) for load in (0.2, 0.9))
    assert slow.summary["tickets"]["mean"] < fast.summary["tickets"]["mean"]


def test_a_family_that_leaves_something_out_is_no_family() -> None:
    given = {one.name: getattr(toy.FAMILY, one.name) for one in fields(Family)}
    Family(**given)
    with pytest.raises(
        TypeError, match=r"Summarising.* missing 2 required keyword-only arguments: 'results'"
    ):
        Family(**given | {"functions": ()})[Summarising]
    del given["take"]
    with pytest.raises(TypeError, match=r"missing 1 required keyword-only argument: 'take'"):
        Family(**given)
    with pytest.raises(TypeError, match=r"abstract method.*needed_bytes"):
        type("Empty", (Worlds,), {})()


def test_what_it_does_not_give_is_refused_by_name() -> None:
    recorded = run(SCHEDULERS[0], output_events="all")
    with pytest.raises(emu.InputError, match="what happens in a run of tickets is not explained yet"):
        emu.causes(recorded)
    with pytest.raises(emu.InputError, match="tickets, whose number of desks is not searched"):
        emu.size("p50 < 1s", SCHEDULERS[0], "poisson", **KEYS)


def test_its_keys_and_messages_are_its_own() -> None:
    with pytest.raises(emu.InputError, match="it is for coflows and dags, and fcfs schedules tickets"):
        run(SCHEDULERS[0], fabric_port_speed="2 Gbps")
    assert {kind.name for kind in kinds_of("tickets").values()} == {"TICKET", "SERVED"}
