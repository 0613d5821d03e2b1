"""Sweeps: the grid, its errors, what is run again and what is not, failures, paired figures, Ray."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu import batch
from emu.batch import Hosting, memory_bytes
from emu.grid import read_grid
from emu.plots import percentiles_figure
from emu.progress import runs_bar
from emu.sweeps import SweepResult, prepare_sweep, run_sweep, sweep
from workloads.jobs import JobWorkload

ROOT = Path(__file__).parents[2]
Cli = Callable[..., Any]
HERE = Hosting(in_process=True)

GRID = """\
workload = "small"
nodes = 20

[sweep]
scheduler = ["sparrow", "random"]
seed = [1, 2]
load = ["50%", 0.8]

[sweep.parameters]
probe_ratio = [2, 3]
"""

SMALL = """\
workload = "small"
nodes = 20
[sweep]
scheduler = ["random", "central-fifo"]
seed = [1, 2]
"""


def write(text: str, name: str = "grid.toml") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def status(folder: Path) -> str:
    return json.loads((folder / "manifest.json").read_text())["status"]


def folders(text: str) -> list[str]:
    grid = read_grid(write(text))
    return [grid.folder(point).as_posix() for point in grid.points]


# The grid


def test_a_parameter_is_an_axis_of_the_schedulers_that_have_it(trace: Path) -> None:
    found = folders(GRID)
    assert len(found) == len(set(found)) == 2 * 2 * 2 + 2 * 2
    assert found[0] == "scheduler=sparrow/load=0.5/probe_ratio=2/seed=1"
    assert found[-1] == "scheduler=random/load=0.8/seed=2"


def test_points_have_what_they_are_given(trace: Path) -> None:
    grid = read_grid(write(GRID))
    point = grid.points[3]
    assert grid.columns(point) == {"scheduler": "sparrow", "load": 0.5, "probe_ratio": 3.0, "seed": 2}
    assert [point.config[name] for name in ("scheduler", "load", "seed", "seeds", "nodes")] == [
        ("sparrow",),
        0.5,
        2,
        1,
        20,
    ]
    assert prepare_sweep("grid.toml").runs[3].plan.parameters[0]["probe_ratio"] == 3


def test_a_scheduler_s_own_parameter_takes_the_place_of_the_common_one(trace: Path) -> None:
    found = folders(
        'workload = "small"\nnodes = 20\n[parameters]\nslack = 7\n[sweep]\nscheduler = ["hawk", "eagle"]\n'
        "[sweep.parameters]\nprobe_ratio = [2, 3]\neagle.probe_ratio = [4, 5]\n"
    )
    assert found == [
        "scheduler=hawk/parameters.probe_ratio=2/seed=1",
        "scheduler=hawk/parameters.probe_ratio=3/seed=1",
        "scheduler=eagle/eagle.probe_ratio=4/seed=1",
        "scheduler=eagle/eagle.probe_ratio=5/seed=1",
    ]
    runs = prepare_sweep("grid.toml").runs
    assert [run.plan.parameters[0]["probe_ratio"] for run in runs] == [2, 3, 4, 5]
    assert runs[2].plan.parameters[0]["slack"] == 7


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (
            'scheduler = ["random", "sparrow"]\nseeds = 2\n[sweep]\nnodes = 20',
            ["random/seed=1", "random/seed=2"],
        ),
        ('seed = 5\nnodes = 20\n[sweep]\nscheduler = "random"', ["random/seed=5"]),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n[sweep.network]\ndelay = ["0.5 ms", "5 ms"]',
            ["random/delay=0.0005/seed=1"],
        ),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n"network.delay" = ["0.5 ms", "5 ms"]',
            ["random/delay=0.0005/seed=1"],
        ),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n"network.delay" = [0, 1]\n"network.spread" = [0, 1]',
            ["random/delay=0/spread=0/seed=1", "random/delay=0/spread=1/seed=1"],
        ),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n"output.tasks" = [true, false]',
            ["random/tasks=true/seed=1"],
        ),
    ],
)
def test_paths(trace: Path, text: str, paths: list[str]) -> None:
    found = folders(f'workload = "small"\n{text}\n')
    assert found[: len(paths)] == [f"scheduler={path}" for path in paths]


def test_values_with_equal_ends_lie_apart(trace: Path) -> None:
    shutil.copytree("small", "more/small")
    assert folders('nodes = 9\nscheduler = "random"\n[sweep]\nworkload = ["./small", "more/small"]\n') == [
        "scheduler=random/workload=small/seed=1",
        "scheduler=random/workload=small-2/seed=1",
    ]


def test_set_beats_the_file_and_its_axes(trace: Path) -> None:
    grid = read_grid(write(GRID), ["load=0.9", "probe_ratio=4", "seed=3", "network.delay=1 ms"])
    assert [grid.folder(p).as_posix() for p in grid.points] == [
        "scheduler=sparrow/seed=3",
        "scheduler=random/seed=3",
    ]
    assert [p.config["load"] for p in grid.points] == [0.9, 0.9]
    assert prepare_sweep("grid.toml", sets=["probe_ratio=4"]).runs[0].plan.parameters[0]["probe_ratio"] == 4


def test_a_mapping_is_as_good_as_a_file(workload: JobWorkload, tmp_path: Path) -> None:
    source = {"workload": workload, "nodes": 20, "sweep": {"scheduler": ["random"], "seed": range(1, 4)}}
    result = sweep(source, out=tmp_path / "s", in_process=True)
    assert [row["seed"] for row in result.rows] == [1, 2, 3]
    again = emu_run(tmp_path / "s" / "scheduler=random" / "seed=2" / "config.toml")
    assert again.jobs.equals(read_jobs(tmp_path / "s" / "scheduler=random" / "seed=2"))


def emu_run(config: Path) -> Any:
    from emu.config import resolve
    from emu.config_file import layer_from_file
    from emu.emulation import execute
    from emu.plan import prepare

    return execute(prepare(resolve([layer_from_file(config)])), 0, 2)


def read_jobs(folder: Path) -> Any:
    from emu.results import read_result

    return read_result(folder).jobs


# Errors


BASE = 'workload = "small"\nnodes = 20\n[sweep]\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            BASE + 'shceduler = ["random"]',
            "line 4: field sweep.shceduler: unknown key 'shceduler'; did you mean",
        ),
        (
            BASE + 'scheduler = ["random", "sparow"]',
            "line 4: field sweep.scheduler: no scheduler 'sparow'; did you",
        ),
        (BASE + 'scheduler = ["random", "random"]', "line 4: field sweep.scheduler: 'random' is there twice"),
        (BASE + "scheduler = []", "line 4: field sweep.scheduler: an axis needs a value"),
        (
            BASE + 'scheduler = "random"\n"network.delay" = ["1 ms", 0.001]',
            "line 5: field sweep.network.delay: 0.001 is there twice",
        ),
        (
            BASE + 'scheduler = "random"\nload = [0.5, 80]',
            "line 5: field sweep.load: 80 is more than 10 times what a cluster can do; did you mean '80%'?",
        ),
        (BASE + 'scheduler = "random"\nload = [0]', "line 5: field sweep.load: 0 is not a load such as"),
        (
            BASE + 'scheduler = "random"\n"long_partition" = ["98%", 98]',
            "line 5: field sweep.long_partition: 98 is more than the whole",
        ),
        (BASE + 'scheduler = "random"\nseeds = [1, 2]', "'seeds' is no axis; give `seed = [1, 2, 3]`"),
        (BASE + 'scheduler = "random"\nin_process = [true]', "'in_process' is no axis"),
        (
            BASE + 'scheduler = "random"\n[sweep.parameters]\nprobe_ratio = [2]',
            "line 6: field sweep.parameters.probe_ratio: 'probe_ratio' is neither a key nor a parameter of random",
        ),
        (
            BASE + 'scheduler = ["sparrow"]\n[sweep.parameters]\nprobe_ratio = [2, 0]',
            "line 6: field sweep.parameters.probe_ratio: parameter probe_ratio of sparrow: 0",
        ),
        (
            'workload = "small"\nnodes = 2\n[parameters]\neagle.slak = 3\n[sweep]\nscheduler = ["eagle"]',
            "line 4: field parameters.eagle.slak: eagle has no parameter 'slak'; did you mean 'slack'",
        ),
        ('workload = "small"\nsweep = 3', "line 2: field sweep: 'sweep' is a table"),
        ('workload = "small"\nnodes = 2\n[sweep]\nseed = [1]', "grid.toml: no scheduler"),
        ('nodes = 2\n[sweep]\nscheduler = "random"', "grid.toml: --workload: required"),
        ('workload = "small"\n[sweep]\nscheduler = "random"', "grid.toml: --nodes: required"),
        (
            'workload = "small"\nseeds = 2\nnodes = 2\n[sweep]\nscheduler = "random"\nseed = [1, 2]',
            "line 2: field seeds: not allowed with [sweep] seed",
        ),
        (
            'wrokload = "small"\n[sweep]\nscheduler = "random"',
            "line 1: field wrokload: unknown key 'wrokload'; did",
        ),
        (
            BASE.replace("nodes = 20\n", "") + 'scheduler = "random"\nnodes = [5, "x"]',
            "line 4: field sweep.nodes",
        ),
        (
            BASE + 'scheduler = "random"\n[sweep.workload_options]\njobs = [10]',
            "small: a workload from a file takes no options",
        ),
        (
            'workload = "poisson"\nnodes = 2\n[sweep]\nscheduler = "random"\n[sweep.workload_options]\njobs = [10, 0]',
            "line 6: field sweep.workload_options.jobs: ",
        ),
        (
            BASE + 'scheduler = "random"\nwarmup = [0, "30 d"]',
            "line 5: field sweep.warmup: leaves no job",
        ),
    ],
)
def test_errors_name_file_line_and_key(emu: Cli, trace: Path, text: str, told: str) -> None:
    write(text + "\n")
    ended = emu("sweep", "grid.toml", "--in-process", "--out", "s")
    assert ended.code == 2
    assert told in ended.line()
    assert "grid.toml" in ended.line() or "small:" in ended.line()
    assert not Path("s").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ("--parallel 0", "--parallel: '0' is not a whole number, 1 or more"),
        ("--retries x", "--retries: 'x' is not a whole number, 0 or more"),
        ("--set nodse=3", "--set nodse: "),
        ("--set nodes=x", "--set nodes: 'x' is not a whole number"),
        ("--address nowhere:1", "--address nowhere:1: no Ray cluster answers there"),
    ],
)
def test_wrong_options(emu: Cli, trace: Path, argv: str, told: str) -> None:
    write(SMALL)
    ended = emu("sweep", "grid.toml", *argv.split(" ", 1)[:1], argv.split(" ", 1)[1])
    assert ended.code == 2
    assert told in ended.line()


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


def test_load_by_nodes_takes_no_nodes(emu: Cli, trace: Path) -> None:
    argv = ("run", "--scheduler", "random", "--workload", "small", "--in-process", "--set", "load=80%")
    ended = emu(*argv, "--nodes", "9", "--set", "load_by=nodes")
    assert "--nodes: not allowed with load_by 'nodes'" in ended.line()
    ended = emu(*argv, "--set", "load_by=nodes", "--json")
    assert json.loads(ended.out)["nodes"] > 1


def test_jobs_that_arrive_at_once_have_no_load(emu: Cli, trace: Path) -> None:
    Path("burst.tr").write_text("0 1 3 3\n0 1 3 3\n")
    argv = ("run", "--scheduler", "random", "--workload", "burst.tr", "--in-process", "--set", "load=80%")
    for more in (("--nodes", "3"), ("--set", "load_by=nodes")):
        assert "--set load: all jobs of burst arrive at once" in emu(*argv, *more).line()


def test_equal_workloads_are_loaded_once(trace: Path) -> None:
    runs = prepare_sweep(write(GRID)).runs
    assert len({id(run.plan.source) for run in runs}) == 1
    assert len({id(run.plan.workload) for run in runs}) == 2
    assert len({id(run.plan.cluster) for run in runs}) == 1
    assert memory_bytes(runs[0].plan) > 100 << 20


# Running and running again


@pytest.fixture
def done(trace: Path) -> SweepResult:
    """A finished sweep in `runs/sweep-grid`."""
    return sweep(write(SMALL), in_process=True)


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


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is executed from here on."""
    ran: list[str] = []
    execute = batch.execute

    def counting(plan: Any, index: int, seed: int, *rest: Any) -> Any:
        ran.append(f"{plan.schedulers[0].name} {seed}")
        return execute(plan, index, seed, *rest)

    monkeypatch.setattr(batch, "execute", counting)
    return ran


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


def test_a_workload_that_changed_is_run_anew(done: SweepResult, counted: list[str]) -> None:
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


def test_a_directory_of_something_else_is_refused(emu: Cli, trace: Path) -> None:
    write(SMALL)
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    assert "--out: full is not empty" in emu("sweep", "grid.toml", "--in-process", "--out", "full").line()
    emu("run", "--scheduler", "random", "--workload", "small", "--nodes", "9", "--in-process", "--out", "run")
    assert "--out: run holds a run" in emu("sweep", "grid.toml", "--in-process", "--out", "run").line()
    assert sorted(p.name for p in Path("full").iterdir()) == ["mine.txt"]


def test_its_config_file_runs_it_again(done: SweepResult) -> None:
    again = read_grid(done.path / "config.toml")
    assert again.described() == read_grid("grid.toml").described()


def test_dry_run_runs_nothing(emu: Cli, trace: Path) -> None:
    write(GRID)
    ended = emu("sweep", "grid.toml", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "to do  scheduler=sparrow/load=0.5/probe_ratio=2/seed=1"
    assert lines[-1].startswith(
        "12 runs, 12 to do, of 1 workload; up to 0.3 GiB each; results in runs/sweep-grid"
    )
    assert not Path("runs").exists()
    told = json.loads(emu("sweep", "grid.toml", "--dry-run", "--json").out)
    assert [run["done"] for run in told["runs"]] == [False] * 12


FAILS = """\
class Fails:
    def place(self, job, nodes):
        import os
        if os.path.exists("fail"):
            raise ValueError("no place\\nfor job")
        return [0] * job.num_tasks
"""


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
    execute = batch.execute

    def interrupted(plan: Any, index: int, seed: int, *rest: Any) -> Any:
        if seed == 2:
            raise KeyboardInterrupt
        return execute(plan, index, seed, *rest)

    monkeypatch.setattr(batch, "execute", interrupted)
    ended = emu("sweep", "grid.toml", "--in-process")
    assert (ended.code, ended.line()) == (
        130,
        "emu: interrupted; the same command goes on with runs/sweep-grid",
    )
    folder = Path("runs/sweep-grid")
    assert status(folder) == "interrupted"
    assert status(folder / "scheduler=random/seed=2") == "interrupted"
    assert not (folder / "scheduler=central-fifo").exists()
    assert (folder / "results.csv").read_text().count("\n") == 2  # the table has grown to where it got
    monkeypatch.setattr(batch, "execute", execute)
    assert emu("sweep", "grid.toml", "--in-process").code == 0
    assert counted == ["random 1", "random 2", "central-fifo 1", "central-fifo 2"]


# What the runs come to


def test_figures_are_those_of_emu_compare(trace: Path) -> None:
    import emu

    result = sweep(write(SMALL.replace("[1, 2]", "[1, 2, 3]")), in_process=True)
    compared = emu.compare(["random", "central-fifo"], "small", 20, seeds=3, in_process=True)
    assert compared.to_text() in result.text.replace("seeds 1, 2, 3", "seeds 1 to 3")
    summaries = {p["scheduler"]: p for p in result.summary["points"]}
    for theirs in compared.summaries:
        ours = summaries[theirs["scheduler"]]
        assert (ours["jobs"], ours["confidence_95"]) == (theirs["jobs"], theirs["confidence_95"])
    for row in compared.rows():
        ours = summaries[row.scheduler]
        for statistic, (mean, half) in row.ratios.items():
            assert ours["ratios"][row.job_class][statistic] == {"mean": mean, "half_95": half}
        improved = ours["improved"][row.job_class]
        assert improved == row.improved or (improved is None and math.isnan(row.improved))


def test_pairs_are_of_seeds_that_all_have(done: SweepResult, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(done.path / "scheduler=random" / "seed=2")

    def fails(*_: Any) -> Any:
        raise ValueError("not today")

    monkeypatch.setattr(batch, "execute", fails)
    again = sweep("grid.toml", in_process=True)
    assert again.failures == {"scheduler=random/seed=2": "ValueError: not today"}
    assert "small on 20 nodes, seed 1: " in again.text
    assert "left out: 2" in again.text
    assert [p["seeds"] for p in again.summary["points"]] == [[1], [1, 2]]


def test_variants_of_a_scheduler_are_lines_of_their_own(trace: Path) -> None:
    result = sweep(write(GRID), in_process=True)
    head = "small on 20 nodes, load=0.5, seeds 1, 2, means ± 95 %"
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
    assert percentiles_figure({"a": {1.0: {"all": {"count": 0}}}}, "nodes") is None


# On Ray


@pytest.mark.ray
def test_ray_gives_the_bytes_of_this_process(trace: Path, ray_session: None, workload: JobWorkload) -> None:
    write(GRID)
    there, here = sweep("grid.toml", out="there"), sweep("grid.toml", out="here", in_process=True)
    assert len(there.rows) == len(here.rows) == 12
    for row in here.rows:
        ours, theirs = (Path(where) / row["path"] / "jobs.parquet" for where in ("here", "there"))
        assert ours.read_bytes() == theirs.read_bytes()
    assert there.summary["points"] == here.summary["points"]


DIES = """\
import os
import re
class Dies:
    def place(self, job, nodes):
        with open("{place}/attempts", "a") as file:
            file.write(".")
        if os.path.getsize("{place}/attempts") <= {times}:
            os._exit(1)
        return [0] * job.num_tasks
"""


@pytest.mark.ray
@pytest.mark.parametrize(("times", "code"), [(1, 0), (100, 1)])
def test_a_worker_that_dies_is_tried_again(
    emu: Cli, trace: Path, ray_session: None, times: int, code: int
) -> None:
    Path("dies.py").write_text(DIES.format(place=Path.cwd(), times=times))
    write(SMALL.replace('"random"', '"dies.py:Dies"').replace("[1, 2]", "[1]"))
    ready = prepare_sweep("grid.toml")
    result = run_sweep(ready, Hosting(parallel=1, retries=1))
    if code == 0:
        assert result.failures == {}
        assert len(result.rows) == 2
    else:
        assert result.failures == {"scheduler=Dies/seed=1": "its worker process died, 2 times"}
        assert [row["scheduler"] for row in result.rows] == ["central-fifo"]
        assert Path("attempts").stat().st_size == 2


@pytest.mark.ray
def test_a_run_s_own_error_is_not_tried_again(trace: Path, ray_session: None) -> None:
    Path("fails.py").write_text(FAILS.replace('"fail"', repr(str(Path.cwd() / "fail"))))
    Path("fail").touch()
    write(SMALL.replace('"random"', '"fails.py:Fails"'))
    result = sweep("grid.toml", parallel=1)
    assert list(result.failures) == ["scheduler=Fails/seed=1", "scheduler=Fails/seed=2"]
    assert all("no place for job" in error for error in result.failures.values())


SLOW = """
import time
import tomllib
class Slow:
    def place(self, job, nodes):
        open("{place}/started", "w").close()
        time.sleep(0.2)
        return [0] * job.num_tasks
"""


@pytest.mark.ray
def test_ctrl_c_from_outside(trace: Path) -> None:
    Path("slow.py").write_text(SLOW.format(place=Path.cwd()))
    write(SMALL.replace('["random", "central-fifo"]', '["slow.py:Slow"]').replace("[1, 2]", "[1, 2, 3, 4]"))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), "sweep", "grid.toml", "--parallel", "2", "--out", "s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    waited = time.monotonic() + 120
    while not Path("started").exists() and process.poll() is None and time.monotonic() < waited:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, ""), err
    assert err == "emu: interrupted; the same command goes on with s\n"
    assert status(Path("s")) == "interrupted"
    begun = sorted(Path("s").glob("scheduler=Slow/seed=*"))
    assert 1 <= len(begun) <= 2
    assert {status(run) for run in begun} == {"interrupted"}


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


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("sweep*.toml")), ids=lambda p: p.stem)
def test_examples_are_sweeps(path: Path, tmp_path: Path) -> None:
    ready = prepare_sweep(path, tmp_path / "s")
    said = re.search(r": (\d+) runs", path.read_text())
    assert said is not None
    assert len(ready.runs) == len(ready.missing) == int(said[1])
    assert ready.notes == ()
