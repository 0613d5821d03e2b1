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

from emu.configuration.plan import Plan, configure, prepare
from emu.results.result import read_result
from emu.results.run_groups import group_runs
from emu.sweeps.sweep import prepare_sweep
from tests.emu.conftest import CUTOFF_S, small_workload
from tests.workloads.google_2019_rows import write_cell
from tests.workloads.test_recognition import TASK_EVENTS, packed
from workloads.catalogue import convert_workload, load_workload, save_workload

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


LOG = "".join(f"{i} 2 {i + 1}.5 {i + 1} {i + 2}\n" for i in range(20))
"""Twenty jobs whose mean task durations are 1.5 to 20.5 s; no cut-off is known."""
QUANTILE_S = 1.5 + 0.9 * 19


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.tr"
    path.write_text(LOG)
    return path


def plan_of(log: Path | str, **keys: Any) -> Plan:
    return prepare(configure({"workload": str(log), "nodes": 20, **keys}))


@pytest.mark.parametrize(
    "schedulers", [["hawk"], ["sparrow", "hawk"], ["random", "eagle", "yacc-d"]], ids=len
)
def test_a_workload_without_a_cut_off_gets_the_quantile_where_a_scheduler_needs_one(
    log: Path, schedulers: list[str]
) -> None:
    plan = plan_of(log, scheduler=schedulers)
    assert plan.own["short_cutoff_s"] == pytest.approx(QUANTILE_S)
    assert plan.own["long_partition"] == 1
    needing = {"hawk": "hawk needs", "yacc-d": "eagle and yacc-d need"}[schedulers[-1]]
    assert plan.notes[-1] == (
        f"mine states no cut-off of short jobs, which {needing}: jobs are short up to a mean task duration of 18.6 s "
        "(90.0% of the jobs), as by --short-cutoff 90%"
    )
    assert plan.manifest()["notes"][-1] == plan.notes[-1]
    assert f'short_cutoff = "{plan.own["short_cutoff_s"]!r} s"' in plan.config_toml(0)
    given = plan_of(log, scheduler=schedulers, short_cutoff="90%")
    assert given.config_toml() == plan.config_toml()


def test_no_cut_off_is_chosen_where_no_scheduler_needs_one_unless_it_is_asked_for(log: Path) -> None:
    plan = plan_of(log, scheduler=["sparrow", "random"])
    assert plan.own["short_cutoff_s"] == np.inf
    assert "short_cutoff" not in plan.config_toml()
    assert not any("short" in text for text in plan.notes)
    assert plan_of(log, scheduler="sparrow", short_cutoff="auto").own["short_cutoff_s"] == pytest.approx(
        QUANTILE_S
    )


def test_a_cut_off_that_the_workload_states_or_the_user_gives_is_not_replaced(trace: Path, log: Path) -> None:
    for own in (None, "auto"):
        plan = plan_of(trace, scheduler="hawk", short_cutoff=own)
        assert (plan.own["short_cutoff_s"], plan.own["long_partition"]) == (CUTOFF_S, 0.75)
    assert plan_of(log, scheduler="hawk", short_cutoff="7 s").own["short_cutoff_s"] == 7
    assert plan_of(log, scheduler="hawk", long_partition="80%").own["long_partition"] == 0.8


def test_a_run_with_a_chosen_cut_off_is_repeated_by_its_configuration(emu: Cli, log: Path) -> None:
    ended = emu(
        "run", "--scheduler", "hawk", "--workload", log, "--nodes", 20, "--in-process", "--out", "run"
    )
    assert ended.code == 0
    assert "mine states no cut-off of short jobs, which hawk needs" in ended.err
    assert emu("run", "--config", "run/config.toml", "--in-process", "--out", "again").code == 0
    for name in ("jobs.parquet", "config.toml"):
        assert Path("run", name).read_bytes() == Path("again", name).read_bytes()
    assert emu("report", "run").code == 0
    assert "mine states no cut-off of short jobs" in Path("run/report.html").read_text()


def test_each_seed_has_the_cut_off_of_its_own_jobs(tmp_path: Path) -> None:
    plan = plan_of("poisson", scheduler=["sparrow", "hawk"], seeds=3, workload_options={"jobs": 30})
    assert "short_cutoff" not in plan.config_toml()
    cutoffs = {plan.of_replica(replica).own["short_cutoff_s"] for replica in plan.replicas}
    assert len(cutoffs) == 3


def test_reports_of_seeds_with_a_cut_off_each_compare_them_together(emu: Cli, tmp_path: Path) -> None:
    command = ("compare", "--schedulers", "sparrow,hawk", "--workload", "poisson", "--nodes", 9, "--seeds", 2)
    assert emu(*command, "--set", "workload_options.jobs=20", "--in-process", "--out", "both").code == 0
    runs = [read_result(path.parent) for path in sorted(Path("both").rglob("jobs.parquet"))]
    assert [len(results) for results in group_runs(runs)[0].results.values()] == [2, 2]


def test_dags_get_one_where_schedulers_of_jobs_run_them(tmp_path: Path) -> None:
    plan = plan_of(
        "query-dags", scheduler=["drf", "hawk"], network_scheduler="fair", workload_options={"jobs": 10}
    )
    means_s = plan.workload.arrays().mean_ns / 1e9
    assert plan.own["short_cutoff_s"] == pytest.approx(np.quantile(means_s, 0.9))
    assert any("which hawk needs" in text for text in plan.notes)


def test_all_runs_of_a_sweep_have_it_where_one_of_its_schedulers_needs_it(log: Path) -> None:
    def cutoffs(schedulers: str) -> list[Any]:
        Path("grid.toml").write_text(f'workload = "mine.tr"\nnodes = 20\n[sweep]\nscheduler = {schedulers}\n')
        return [run.plan.own["short_cutoff_s"] for run in prepare_sweep("grid.toml").runs]

    assert cutoffs('["sparrow", "hawk", "random"]') == pytest.approx([QUANTILE_S] * 3)
    assert cutoffs('["sparrow", "random"]') == [np.inf] * 2


def test_a_size_is_searched_for_short_jobs_of_a_log(emu: Cli, log: Path) -> None:
    command = ("size", "--scheduler", "sparrow", "--workload", log, "--in-process", "--out", "size")
    assert emu(*command, "--target", "short.p99 < 1h").code == 0
    assert "short" in json.loads(Path("size/nodes=1/seed=1/summary.json").read_text())["jobs"]


def test_a_wrong_cut_off_is_refused(emu: Cli, log: Path) -> None:
    command = ("compare", "--schedulers", "sparrow,hawk", "--workload", log, "--nodes", 20, "--in-process")
    for wrong in ("90.x%", "1_0%", "101%"):
        assert (
            f"--short-cutoff: '{wrong}' is not a share of the jobs such as '90%'"
            in emu(*command, "--short-cutoff", wrong).line()
        )
    assert (
        "--short-cutoff: 'soon' is not a duration such as '90.58s', nor a share of the jobs such as '90%', or 'auto'"
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


def test_other_traces_state_no_cut_off(tmp_path: Path) -> None:
    workload = load_workload(write_cell(tmp_path / "cell", "json"), options={"constraints": "no"})
    assert (workload.short_cutoff_s, workload.long_partition) == (None, None)


def test_validate_shows_what_it_comes_to(emu: Cli, trace: Path) -> None:
    Path("e.toml").write_text('scheduler = "hawk"\nworkload = "small"\nnodes = 20\nshort_cutoff = "90 %"\n')
    ended = emu("validate", "e.toml")
    assert ended.code == 0
    cutoff = next(line for line in ended.out.splitlines() if line.startswith("short_cutoff"))
    assert float(cutoff.split('"')[1].removesuffix(" s")) == pytest.approx(np.quantile(means(trace), 0.9))
