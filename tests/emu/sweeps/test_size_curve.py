"""What lies around an answer of `emu size`: sizes that the seeds leave open, the curve, and what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.sweeps.size_report import size_sections
from emu.sweeps.sizing import Found, Probe, Size, limits_of, note_of, size
from emu.sweeps.targets import MET, NOT_MET, SPANS, Search, read_targets
from workloads.jobs import make_workload
from workloads.requests import Requests

HERE: dict[str, Any] = {"in_process": True, "network_delay": 0}


def steady(**asked: Any) -> Any:
    requests = Requests(**asked) if asked else Requests()
    return make_workload("steady", np.arange(200.0), [1] * 200, [4.5] * 200, requests=requests)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow("several whole runs")
def test_the_seeds_leave_open_from_the_fewest_that_is_not_excluded(here: Path) -> None:
    found = size("p90 < 5.2", "random", steady(), seeds=3, tolerance=0, **HERE)
    verdicts = {p.nodes: p.verdict for p in found.probes}
    first, last = found.summary["open"]
    assert last == found.nodes
    assert verdicts[first] != NOT_MET
    assert verdicts[first - 1] == NOT_MET
    assert verdicts[last - 1] == SPANS
    assert f"; from {first:,} to {last:,} the seeds leave it open; seeds 1 to 3" in found.note
    decided = size("p99 <= 4.6s", "central-fifo", steady(), seeds=2, tolerance=0, **HERE)
    assert "open" not in decided.summary


def test_sizes_around_the_answer_are_measured_and_do_not_move_it(here: Path) -> None:
    found = size("p99 <= 4.6s", "central-fifo", steady(), tolerance=0, curve=[0.6, 1.5, 4], **HERE)
    assert (found.nodes, found.fails) == (5, 4)
    assert {3, 8, 20} <= {p.nodes for p in found.probes}
    assert [p.holds for p in found.probes] == [p.nodes >= 5 for p in found.probes]
    (page,) = size_sections(found.path)
    assert "nodes are" in page.lower()


def test_the_fullest_resource_limits(here: Path) -> None:
    Path("machines.toml").write_text('[[machines]]\ncount = 1\ncores = 4\nmemory = "16 GiB"\n')
    asked = {"demands": {"cpu_cores": [1.0] * 200, "memory_gib": [8.0] * 200}}
    given = {**HERE, "cluster": "machines.toml", "short_cutoff": 10, "tolerance": 0}
    found = size("wait.max < 1s", "central-lwl", steady(**asked), **given)
    assert found.nodes == 3  # of memory each has room for two of the five that run at a time
    (limits,) = found.summary["limits"]
    assert limits.startswith("memory_gib is the fullest resource there: 7")
    assert limits.partition(", cpu_cores ")[2].startswith("3")
    assert found.to_text().endswith(f"{limits}\n")


def test_limits_of_nothing_are_not_known() -> None:
    assert limits_of([]) == []


def test_sizes_that_contradict_the_answer_are_named() -> None:
    def probe(nodes: int, verdict: str) -> Probe:
        return Probe(Size(nodes), ((1.0, 0.0),), verdict)

    tried = [probe(5, MET), probe(7, NOT_MET), probe(8, MET), probe(12, NOT_MET), probe(16, MET)]
    targets = read_targets(["p99 < 60s"])
    note = note_of(Found(Search(8, 7), targets, [], answer=tried[2], fails=tried[1], in_proportion=tried))
    assert note.endswith("not on 7; not met on 12, though there are more; met on 5, though there are fewer")
