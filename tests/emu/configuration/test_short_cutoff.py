"""Where short ends: the user's time, a share of the jobs, or what is published of a trace."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from emu.configuration.plan import configure, prepare
from tests.emu.conftest import small_workload
from tests.workloads.google_2019_rows import write_cell
from tests.workloads.test_recognition import TASK_EVENTS, packed
from workloads.catalogue import convert_workload, load_workload, save_workload
from workloads.errors import InputError

Cli = Callable[..., Any]
RUN = ("run", "--scheduler", "sparrow", "--nodes", 20, "--in-process")


def means(folder: Path) -> np.ndarray:
    """Mean task durations of the jobs, from the workload's own file."""
    return pq.read_table(folder / "jobs.parquet")["mean_task_s"].to_numpy()


@pytest.mark.parametrize(("share", "level"), [("90%", 0.9), (" 33.5 %", 0.335), ("0%", 0), ("100%", 1)])
def test_a_share_is_that_quantile_of_mean_task_durations(
    emu: Cli, trace: Path, share: str, level: float
) -> None:
    assert emu(*RUN, "--workload", "small", "--short-cutoff", share, "--out", "run").code == 0
    cutoff_s = float(tomllib.loads(Path("run/config.toml").read_text())["short_cutoff"].removesuffix(" s"))
    rank = level * (len(means(trace)) - 1)
    low, high = np.sort(means(trace))[[int(np.floor(rank)), int(np.ceil(rank))]]
    assert cutoff_s == pytest.approx(low + (high - low) * (rank - np.floor(rank)))
    classes = pq.read_table("run/jobs.parquet")["job_class"].to_pylist()
    assert classes == ["short" if round(mean * 1e9) <= cutoff_s * 1e9 else "long" for mean in means(trace)]
    assert classes.count("short") == int(rank) + 1
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["jobs"].get("short", {"count": 0})["count"] == classes.count("short")


def test_a_share_is_printed_and_recorded_in_seconds_so_that_the_run_can_be_repeated(
    emu: Cli, trace: Path
) -> None:
    ended = emu(*RUN, "--workload", "small", "--short-cutoff", "80%", "--out", "run")
    want = f"jobs are short up to a mean task duration of {np.quantile(means(trace), 0.8):.4g} s: 80% of the jobs"
    assert want in ended.err
    assert emu("run", "--config", "run/config.toml", "--in-process", "--out", "again").code == 0
    assert Path("run/jobs.parquet").read_bytes() == Path("again/jobs.parquet").read_bytes()
    assert Path("run/config.toml").read_text() == Path("again/config.toml").read_text()


def test_the_share_that_is_short_is_printed_where_many_jobs_are_equal(emu: Cli) -> None:
    lines = [f"{i} 1 {10 if i < 16 else 30} {10 if i < 16 else 30}" for i in range(20)]
    Path("equal.tr").write_text("\n".join(lines) + "\n")
    ended = emu(*RUN, "--workload", "equal.tr", "--short-cutoff", "50%", "--out", "run")
    assert "duration of 10 s: 50% of the jobs, and all others of that duration: 80.0% are short" in ended.err
    assert pq.read_table("run/jobs.parquet")["job_class"].to_pylist().count("short") == 16


def test_it_holds_for_each_workload_of_a_sweep_and_each_share(emu: Cli, trace: Path) -> None:
    save_workload(small_workload(jobs=40, seed=8), "other")
    Path("grid.toml").write_text(
        'scheduler = "sparrow"\nnodes = 20\n[sweep]\n'
        'workload = ["small", "other"]\nshort_cutoff = ["60%", "90%", "9 s"]\n'
    )
    assert emu("sweep", "grid.toml", "--in-process", "--out", "out").code == 0
    found = {}
    for path in Path("out").rglob("seed=1/config.toml"):
        config = tomllib.loads(path.read_text())
        found[Path(config["workload"]).name, path.parts[-3]] = float(
            config["short_cutoff"].removesuffix(" s")
        )
    assert len(found) == 6
    for name in ("small", "other"):
        assert found[name, "short_cutoff=9"] == 9
        for share, level in (("60", 0.6), ("90", 0.9)):
            assert found[name, f"short_cutoff={share}"] == pytest.approx(
                np.quantile(means(Path(name)), level)
            )


def test_python_takes_it_too(workload: Any) -> None:
    plan = prepare(configure({"scheduler": "hawk", "workload": workload, "nodes": 20, "short_cutoff": "90%"}))
    assert plan.own["short_cutoff_s"] == pytest.approx(
        np.quantile(workload.jobs["mean_task_s"].to_numpy(), 0.9)
    )


def test_the_error_names_the_share(emu: Cli, tmp_path: Path) -> None:
    Path("mine.tr").write_text("0 1 5 5\n1 2 1.5 1 2\n")
    command = (
        "compare",
        "--schedulers",
        "sparrow,hawk",
        "--workload",
        "mine.tr",
        "--nodes",
        20,
        "--in-process",
    )
    assert emu(*command).line() == (
        "emu: --short-cutoff: required: hawk treats short and long jobs apart, and the workload mine has no published "
        "cut-off; give a duration, or a share of the jobs such as 90%"
    )
    for wrong in ("90.x%", "1_0%", "101%"):
        assert (
            f"--short-cutoff: '{wrong}' is not a share of the jobs such as '90%'"
            in emu(*command, "--short-cutoff", wrong).line()
        )
    assert (
        "--short-cutoff: 'soon' is not a duration such as '90.58s', nor a share of the jobs"
        in emu(*command, "--short-cutoff", "soon").line()
    )


def test_google_2011_has_the_published_cut_off_and_partition(tmp_path: Path) -> None:
    source = packed(tmp_path / "any" / "part-00000-of-00500.csv.gz", TASK_EVENTS)
    convert_workload(source, tmp_path / "converted")
    for path in (source, source.parent, tmp_path / "converted"):
        workload = load_workload(path)
        assert (workload.short_cutoff_s, workload.long_partition) == (1129.532, 0.83)
    plan = prepare(configure({"scheduler": "hawk", "workload": str(tmp_path / "converted"), "nodes": 20}))
    assert (plan.own["short_cutoff_s"], plan.own["long_partition"]) == (1129.532, 0.83)


def test_no_cut_off_is_made_up_for_other_traces(tmp_path: Path) -> None:
    workload = load_workload(write_cell(tmp_path / "cell", "json"), options={"constraints": "no"})
    assert (workload.short_cutoff_s, workload.long_partition) == (None, None)
    with pytest.raises(InputError, match="has no published cut-off"):
        prepare(configure({"scheduler": "hawk", "workload": workload, "nodes": 20}))


def test_validate_shows_what_it_comes_to(emu: Cli, trace: Path) -> None:
    Path("e.toml").write_text('scheduler = "hawk"\nworkload = "small"\nnodes = 20\nshort_cutoff = "90 %"\n')
    ended = emu("validate", "e.toml")
    assert ended.code == 0
    cutoff = next(line for line in ended.out.splitlines() if line.startswith("short_cutoff"))
    assert float(cutoff.split('"')[1].removesuffix(" s")) == pytest.approx(np.quantile(means(trace), 0.9))
