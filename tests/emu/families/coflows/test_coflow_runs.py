"""Coflows from the command line and from Python: run, compare, sweep, resume, report, and the two clocks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from emu.directories import run_directory as rd
from workloads.arrow import optional_column

Cli = Callable[..., Any]
# ports and coflows; id, arrival (ms), mappers, their ports, reducers, port:MB of each
TRACE = """\
4 5
1 0 2 0 1 2 2:40.0 3:20.0
2 500 1 2 2 0:10.0 1:300.0
3 600 3 0 1 2 3 0:90.0 1:30.0 3:60.0
4 700 1 3 1 3:5.0
5 900 4 0 1 2 3 3 0:40.0 1:40.0 2:40.0
"""
HERE = ("--workload", "shuffles.txt", "--in-process")
SWEEP = """\
workload = "shuffles.txt"
[sweep]
scheduler = ["philae", "aalo"]
load = [0.5, 1.5]
[sweep.parameters.philae]
thin_limit = [3, 7]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder with a trace of coflows."""
    monkeypatch.chdir(tmp_path)
    Path("shuffles.txt").write_text(TRACE)
    return tmp_path


def test_a_run_of_coflows(folder: Path, emu: Cli) -> None:
    ended = emu("run", "--scheduler", "aalo", *HERE, "--set", "output.tasks=true", "--out", "r", "--json")
    assert ended.code == 0, ended.err
    summary = json.loads(ended.out)
    assert (summary["nodes"], summary["coflows"]["count"], summary["engine"]["flows"]) == (4, 5, 28)
    assert "jobs" not in summary
    coflows = pq.read_table("r/coflows.parquet")
    assert (optional_column(coflows, "slowdown") >= 1 - 1e-9).all()
    flows = pq.read_table("r/flows.parquet")
    owner, place = np.unique(optional_column(flows, "coflow_id"), return_inverse=True)
    last_s = np.zeros(len(owner))
    np.maximum.at(last_s, place, optional_column(flows, "finish_s"))
    assert last_s.tolist() == optional_column(coflows, "finish_s").tolist()
    took_s = optional_column(flows, "finish_s") - optional_column(flows, "start_s")
    assert (
        took_s >= optional_column(flows, "size_bytes") / 125e6 - 1e-9
    ).all()  # no flow is faster than its port
    shown = emu("run", "--resume", "r").out
    assert shown.startswith("aalo on shuffles, 4 ports, seed 1\n")


def test_a_comparison_with_its_report(folder: Path, emu: Cli) -> None:
    ended = emu("compare", "--schedulers", "philae,aalo", *HERE, "--seeds", "2", "--out", "c")
    assert ended.code == 0, ended.err
    head = "shuffles on 4 ports, seeds 1 to 2 (scheduler's draws; the workload is the same), means ± 95 %: "
    assert f"{head}coflow completion time" in ended.out
    assert "speed-up of philae" in ended.out
    summaries = json.loads(Path("c/summary.json").read_text())
    assert [s["scheduler"] for s in summaries] == ["philae", "aalo"]
    assert "coflows" in summaries[0]["confidence_95"]
    for name in ("cdf-cct.svg", "speedup.svg", "speedup-bins.png", "speedup-jobs.svg", "report.html"):
        assert Path("c", name).is_file()
    one = Path("c/scheduler=aalo/seed=2/coflows.parquet")
    was = one.read_bytes()
    for folder in (one.parent, Path("c")):
        rd.write_manifest(folder, {**rd.read_manifest(folder), "status": "interrupted"})
    again = emu("compare", "--resume", "c")
    assert again.code == 0, again.err
    assert one.read_bytes() == was
    assert again.out == ended.out
    assert emu("report", "c", "--out", "page.html").code == 0
    assert "2 schedulers on shuffles, 4 ports, 2 seeds" in Path("page.html").read_text()


def test_a_sweep_over_load_and_a_parameter(folder: Path, emu: Cli) -> None:
    Path("grid.toml").write_text(SWEEP)
    ended = emu("sweep", "grid.toml", "--in-process", "--out", "s")
    assert ended.code == 0, ended.err
    assert "offered load is 1.50" in ended.err
    assert "shuffles on 4 ports, load=0.5, seed 1: coflow completion time" in ended.out
    rows = pq.read_table("s/results.parquet").to_pylist()
    assert [(r["scheduler"], r["load"], r["thin_limit"]) for r in rows] == [
        ("philae", 0.5, 3.0),
        ("philae", 0.5, 7.0),
        ("philae", 1.5, 3.0),
        ("philae", 1.5, 7.0),
        ("aalo", 0.5, None),
        ("aalo", 1.5, None),
    ]
    assert [r["offered_load"] for r in rows] == pytest.approx([r["load"] for r in rows])
    points = json.loads(Path("s/summary.json").read_text())["points"]
    assert {p["scheduler"] for p in points} == {"philae", "aalo"}
    aalo = next(p for p in points if p["scheduler"] == "aalo")
    assert aalo["speedup"]["all"]["average"]["mean"] > 0
    assert len(list(Path("s").glob("percentiles*.svg"))) == 1
    again = emu("sweep", "grid.toml", "--in-process", "--out", "s")
    assert again.out == ended.out
    path = next(Path("s").rglob("coflows.parquet"))
    config = path.with_name("config.toml")
    assert emu("run", "--config", str(config), "--out", "once").code == 0
    assert Path("once/coflows.parquet").read_bytes() == path.read_bytes()
