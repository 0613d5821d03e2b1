"""Sweeps: loads, what is run again and what is not, failures, paired figures."""

from __future__ import annotations

import io
import json
import math
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweep_grids import FAILS, GRID, SMALL, status, write

from emu.families.jobs.family import FAMILY as JOBS
from emu.report.percentile_plots import percentiles_figure
from emu.results.measures import all_measures
from emu.results.run_groups import Axis
from emu.running.progress import runs_bar
from emu.sweeps import parallel_runs
from emu.sweeps.grid import read_grid
from emu.sweeps.sweep import SweepResult, prepare_sweep, sweep

Cli = Callable[..., Any]


# Load


def test_load_scales_arrivals(trace: Path) -> None:
    rows = sweep(write(SMALL + 'load = ["50%", 1.2]\n'), in_process=True).rows
    assert [round(row["offered_load"], 9) for row in rows] == [0.5, 0.5, 1.2, 1.2] * 2
    assert {row["nodes"] for row in rows} == {20}


def test_load_picks_nodes(trace: Path) -> None:
    text = SMALL.replace("nodes = 20", 'load_by = "nodes"')
    rows = sweep(write(text + "load = [0.5, 1.2]\n"), in_process=True).rows
    loads = np.array([row["offered_load"] for row in rows])
    assert loads == pytest.approx([0.5, 0.5, 1.2, 1.2] * 2, rel=0.1)
    assert rows[0]["nodes"] > 2 * rows[2]["nodes"] - 2
    folder = Path("runs/sweep-grid") / rows[0]["path"]
    config = tomllib.loads((folder / "config.toml").read_text())
    assert (config["nodes"], config["load_by"]) == (rows[0]["nodes"], "arrivals")
    assert "load" not in config


def test_equal_workloads_are_loaded_once(trace: Path) -> None:
    runs = prepare_sweep(write(GRID)).runs
    assert len({id(run.plan.source) for run in runs}) == 1
    assert len({id(run.plan.workload) for run in runs}) == 2
    assert len({id(run.plan.cluster) for run in runs}) == 1
    assert runs[0].memory_bytes > 100 << 20


# Running and running again


def test_every_run_has_a_directory_and_a_row(done: SweepResult) -> None:
    import pyarrow.parquet as pq

    assert [row["path"] for row in done.rows] == [
        f"scheduler={name}/seed={seed}" for name in ("random", "central-fifo") for seed in (1, 2)
    ]
    for row in done.rows:
        summary = json.loads((done.path / row["path"] / "summary.json").read_text())
        assert row["jobs.short.p99"] == summary["jobs"]["short"]["p99"]
        assert row["engine.events"] == summary["engine"]["events"]
    table = pq.read_table(done.path / "results.parquet", partitioning=None)
    assert table.to_pylist() == done.rows
    assert (done.path / "results.csv").read_text().count("\n") == 5
    assert status(done.path) == "finished"
    assert done.summary["runs"] == {"all": 4, "finished": 4, "failed": 0}
    assert list(done.to_pandas()["scheduler"]) == ["random", "random", "central-fifo", "central-fifo"]


def test_what_is_done_is_not_done_again(done: SweepResult, counted: list[str]) -> None:
    again = sweep("grid.toml", in_process=True)
    assert counted == []
    assert again.rows == done.rows
    assert again.summary == done.summary


def test_only_what_is_missing_is_done(done: SweepResult, counted: list[str]) -> None:
    runs = [done.path / row["path"] for row in done.rows]
    before = (runs[0] / "jobs.parquet").stat().st_mtime_ns
    shutil.rmtree(runs[1])  # never begun
    for run, word in ((runs[2], "running"), (runs[3], "failed")):
        manifest = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(json.dumps({**manifest, "status": word}))
    (runs[2] / "jobs.parquet").unlink()
    again = sweep("grid.toml", in_process=True)
    assert counted == ["random 2", "central-fifo 1", "central-fifo 2"]
    assert (runs[0] / "jobs.parquet").stat().st_mtime_ns == before
    assert [status(run) for run in runs] == ["finished"] * 4
    assert len(again.rows) == 4


def test_a_run_with_a_file_gone_is_missing(done: SweepResult, counted: list[str]) -> None:
    (done.path / done.rows[1]["path"] / "timeline.parquet").unlink()
    sweep("grid.toml", in_process=True)
    assert counted == ["random 2"]


def test_a_workload_that_changed_is_run_again(done: SweepResult, counted: list[str]) -> None:
    from tests.emu.conftest import small_workload
    from workloads.catalogue import save_workload

    save_workload(small_workload(seed=6), "small", overwrite=True)
    sweep("grid.toml", in_process=True)
    assert len(counted) == 4


def test_a_directory_of_another_sweep_is_refused(emu: Cli, done: SweepResult) -> None:
    write(SMALL.replace("[1, 2]", "[1, 3]"))
    ended = emu("sweep", "grid.toml", "--in-process")
    assert ended.code == 2
    assert "holds another sweep: sweep.seed is [1, 3] here and [1, 2] there" in ended.line()
    ended = emu("sweep", "grid.toml", "--in-process", "--set", "network.delay=1 ms", "--set", "seed=1")
    assert ended.code == 2
    assert "--out: runs/sweep-grid holds another sweep: " in ended.line()


def test_its_config_file_runs_it_again(done: SweepResult) -> None:
    again = read_grid(done.path / "config.toml")
    assert again.described() == read_grid("grid.toml").described()


def test_one_failed_run_does_not_stop_the_others(emu: Cli, trace: Path, counted: list[str]) -> None:
    Path("fails.py").write_text(FAILS)
    Path("fail").touch()
    write(SMALL.replace('"random"', '"fails.py:Fails"'))
    ended = emu("sweep", "grid.toml", "--in-process")
    assert ended.code == 1
    assert "failed: scheduler=Fails/seed=1: " in ended.out
    assert "no place for job" in ended.out
    assert "central-fifo" in ended.out
    folder = Path("runs/sweep-grid")
    manifest = json.loads((folder / "scheduler=Fails/seed=1/manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "no place for job" in manifest["error"]
    assert status(folder) == "failed"
    assert json.loads((folder / "summary.json").read_text())["runs"] == {"all": 4, "finished": 2, "failed": 2}
    Path("fail").unlink()
    ended = emu("sweep", "grid.toml", "--in-process", "--json")
    assert ended.code == 0
    assert counted == ["Fails 1", "Fails 2", "central-fifo 1", "central-fifo 2", "Fails 1", "Fails 2"]
    assert status(folder) == "finished"


def test_ctrl_c_leaves_what_can_be_taken_up(
    emu: Cli, trace: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(SMALL)
    execute = parallel_runs.execute

    def interrupted(plan: Any, *rest: Any) -> Any:
        if plan.seed == 2:
            raise KeyboardInterrupt
        return execute(plan, *rest)

    monkeypatch.setattr(parallel_runs, "execute", interrupted)
    ended = emu("sweep", "grid.toml", "--in-process")
    assert (ended.code, ended.line()) == (
        130,
        "emu: interrupted; the same command resumes runs/sweep-grid",
    )
    folder = Path("runs/sweep-grid")
    assert status(folder) == "interrupted"
    assert status(folder / "scheduler=random/seed=2") == "interrupted"
    assert not (folder / "scheduler=central-fifo").exists()
    assert (folder / "results.csv").read_text().count("\n") == 2  # the table has grown to where it got
    monkeypatch.setattr(parallel_runs, "execute", execute)
    assert emu("sweep", "grid.toml", "--in-process").code == 0
    assert counted == ["random 1", "random 2", "central-fifo 1", "central-fifo 2"]


def test_the_bar_shows_runs_and_failures() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with runs_bar("sweep-grid", 8, 2, stream) as show:
        assert show is not None
        show(5, 1, "scheduler=eagle/seed=1")
    assert "5/8" in stream.getvalue()
    assert "1 failed, scheduler=eagle/seed=1" in stream.getvalue()
    with runs_bar("sweep-grid", 8, 2, io.StringIO()) as show:
        assert show is None


# What the runs come to


def known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def test_figures_are_those_of_emu_compare(trace: Path) -> None:
    import emu

    result = sweep(write(SMALL.replace("[1, 2]", "[1, 2, 3]")), in_process=True)
    compared = emu.compare(["random", "central-fifo"], "small", 20, seeds=3, in_process=True)
    assert compared.to_text() in result.text
    summaries = {p["scheduler"]: p for p in result.summary["points"]}
    for theirs in compared.summaries:
        ours = summaries[theirs["scheduler"]]
        assert (ours["jobs"], ours["confidence_95"]) == (theirs["jobs"], theirs["confidence_95"])
    for row in compared.rows():
        ours = summaries[row.scheduler]
        for measure in all_measures("jobs"):
            mean, half = row.ratios[measure.name]
            of_group = ours["ratios"][row.group]
            found = (of_group[measure.metric] if measure.metric else of_group)[measure.statistic]
            assert found == {"mean": known(mean), "half_95": known(half)}
        improved = ours["improved"][row.group]
        assert improved == row.improved or (improved is None and math.isnan(row.improved))


def test_pairs_are_of_seeds_that_all_have(done: SweepResult, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(done.path / "scheduler=random" / "seed=2")

    def fails(*_: Any) -> Any:
        raise ValueError("not today")

    monkeypatch.setattr(parallel_runs, "execute", fails)
    again = sweep("grid.toml", in_process=True)
    assert again.failures == {"scheduler=random/seed=2": "ValueError: not today"}
    assert "small on 20 nodes, seed 1: " in again.text
    assert "left out: 2" in again.text
    assert [p["seeds"] for p in again.summary["points"]] == [[1], [1, 2]]


@pytest.mark.drawn
def test_variants_of_a_scheduler_are_lines_of_their_own(trace: Path) -> None:
    result = sweep(write(GRID), in_process=True)
    head = "small on 20 nodes, load=0.5, seeds 1 to 2 (scheduler's draws; the workload is the same), means ± 95 %"
    assert head in result.text
    for name in ("sparrow probe_ratio=2", "sparrow probe_ratio=3", "random"):
        assert f"\n  {name} " in result.text
    assert [(p["scheduler"], p.get("probe_ratio")) for p in result.summary["points"][:3]] == [
        ("sparrow", 2.0),
        ("sparrow", 3.0),
        ("random", None),
    ]
    assert {p.name for p in result.path.glob("percentiles*")} == {"percentiles.svg", "percentiles.png"}
    svg = (result.path / "percentiles.svg").read_text()
    for text in ("sparrow probe_ratio=3", "p99, short jobs", "p50, long jobs", ">load<"):
        assert text in svg


def test_a_plot_for_each_value_of_other_axes(trace: Path) -> None:
    text = SMALL.replace("nodes = 20\n", "").replace("[1, 2]", "[1]")
    result = sweep(write(text + "nodes = [10, 20, 30]\nload = [0.5, 0.7]\n"), in_process=True)
    names = {p.name for p in result.path.glob("percentiles*.svg")}
    assert names == {"percentiles-load=0.5.svg", "percentiles-load=0.7.svg"}


def test_a_plot_needs_jobs() -> None:
    lines = {"a": {1.0: {"jobs": {"all": {"count": 0}}}}}
    assert percentiles_figure(lines, Axis("nodes", (1.0,), False), JOBS) is None
