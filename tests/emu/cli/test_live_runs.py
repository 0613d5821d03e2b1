"""`--clock live` from the command line: what is written, what is said, what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from python_process import PATIENCE_S, ROOT

import emu as package
from emu.families.jobs.results import FURTHER_TIMELINE, TIMELINE
from emu.results.metrics import summarise_replicas
from emu.results.result import read_result
from emu.results.summary_text import render_summary
from workloads.catalogue import save_workload
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload

pytestmark = pytest.mark.compiled

LIVE = ("run", "--scheduler", "sparrow", "--workload", "brief", "--nodes", "50", "--clock", "live")


def brief(jobs: int = 20, span_s: float = 0.6) -> JobWorkload:
    durations = np.where(np.arange(2 * jobs) % 4 < 2, 0.01, 0.1)
    return make_workload(
        "brief", np.linspace(5.0, 5.0 + span_s, jobs), np.full(jobs, 2), durations, short_cutoff_s=0.05
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_workload(brief(), "brief")
    return tmp_path


def test_a_run_directory(emu: Callable, folder: Path) -> None:
    ended = emu(*LIVE, "--in-process", "--out", "r", "--json")
    assert ended.code == 0
    summary = json.loads(ended.out)
    assert summary == {**read_result(folder / "r").summary, "path": "r"}
    assert summary["clock"] == "live"
    assert summary["jobs"]["all"]["count"] == 20
    live, latency = summary["live"], summary["decision_latency"]
    assert set(live["lateness"]) == {"nodes", "schedulers"}
    for spread in (*live["lateness"].values(), live["message_latency"], *latency.values()):
        assert 0 <= spread["p50"] <= spread["p90"] <= spread["p99"] <= spread["max"]
    assert set(latency) == {"all", "short", "long"}
    assert latency["all"]["p50"] >= 3 * 0.0005 * 0.99
    assert [part["hosts"] for part in live["partitions"]] == ["25 nodes, 5 probe schedulers"] * 2
    assert summary["schedulers"]["busiest"] == pytest.approx(live["scheduler_cpu"]["busiest"])
    # What must be said is said once, on standard error, and kept.
    notes = [f"emu: note: {note}" for note in live["notes"]]
    assert ended.err.splitlines()[-len(notes) or len(ended.err) :] == notes
    timeline = pq.read_table(folder / "r" / "timeline.parquet")
    further = [c for c in FURTHER_TIMELINE if c.name != "up_nodes"]  # nothing fails
    assert timeline.column_names == [c.name for c in (*TIMELINE, *further)]
    assert not (folder / "r" / "tasks.parquet").exists()
    text = render_summary(summary)
    assert "decision latency: p50 " in text
    assert live["verdict"] in text
    assert 'clock = "live"' in (folder / "r" / "config.toml").read_text()


def test_in_python_with_tasks_and_a_dilation(folder: Path) -> None:
    result = package.run(
        "sparrow", "brief", 50, clock="live", in_process=True, dilation=0.5, output_tasks=True, partitions=3
    )
    assert result.summary["live"]["dilation"] == 0.5
    assert len(result.summary["live"]["partitions"]) == 3
    assert result.tasks is not None
    assert result.tasks.num_rows == 40
    assert result.notes[len(result.notes) - len(result.summary["live"]["notes"]) :] == tuple(
        result.summary["live"]["notes"]
    )
    virtual = package.run("sparrow", "brief", 50, in_process=True, output_tasks=True)
    assert "decision_latency" in virtual.summary
    assert "live" not in virtual.summary
    assert "backlog" not in virtual.timeline.column_names


def test_costs_record_tasks_and_write_none(folder: Path) -> None:
    result = package.run("sparrow", "brief", 50, in_process=True, cost_model="fixed", cost_per_job="20 ms")
    plain = package.run("sparrow", "brief", 50, in_process=True, output_tasks=True)
    assert result.tasks is None
    added = result.summary["decision_latency"]["all"]["p50"] - plain.summary["decision_latency"]["all"]["p50"]
    assert added >= 0.02 * 0.99
    assert "decision_latency" not in package.run("sparrow", "brief", 50, in_process=True).summary


def test_seeds_together(folder: Path) -> None:
    runs = [
        package.run("sparrow", "brief", 50, clock="live", in_process=True, dilation=0.5, seed=seed).summary
        for seed in (1, 2)
    ]
    runs[1]["live"]["overloaded"] = True
    together = summarise_replicas(runs)
    p99 = [run["decision_latency"]["all"]["p99"] for run in runs]
    assert together["decision_latency"]["all"]["p99"] == pytest.approx(np.mean(p99))
    assert together["live"]["overloaded"] is True
    late = [run["live"]["lateness"]["nodes"]["p99"] for run in runs]
    assert together["live"]["lateness"]["nodes"]["p99"] == pytest.approx(np.mean(late))
    assert render_summary(together)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--dilation", "2"), "--dilation: goes with clock=live, and clock is "),
        (("--set", "live.tick=1 ms"), "live.tick: goes with clock=live, and clock is "),
        (("--clock", "live", "--dilation", "0"), "'0' is too little; the least is 0.001"),
        (("--clock", "live", "--dilation", "-1"), "'-1' is too little; the least is 0.001"),
        (("--clock", "live", "--quantum", "1 s"), "--quantum: goes with clock=windows, and clock is live"),
        (("--clock", "live", "--set", "cost.model=fixed"), "with 'live' handlers take their real time"),
        (("--clock", "live", "--partitions", "99"), "99 partitions for 50 nodes"),
    ],
)
def test_what_is_refused(emu: Callable, folder: Path, arguments: tuple[str, ...], expected: str) -> None:
    ended = emu(
        "run", "--scheduler", "sparrow", "--workload", "brief", "--nodes", "50", "--in-process", *arguments
    )
    assert ended.code == 2
    assert expected in ended.line()


def test_a_global_view_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="only 'virtual' can"):
        package.run("ideal-eagle", "brief", 50, clock="live", in_process=True)


@pytest.mark.ray
def test_ctrl_c_stops_all_actors(folder: Path) -> None:
    save_workload(brief(4, 3600.0), "hour")
    argv = [*LIVE, "--workload", "hour", "--out", "r", "--set", "timeline.period=1"]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "", "RAY_raylet_start_wait_time_s": "60"},
    )
    until(lambda: len(below(process.pid, "ray::Host")) == 2 or process.poll() is not None)
    actors = below(process.pid, "ray::Host")
    process.send_signal(signal.SIGINT)  # into the run, or into its preparation: both must end
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    assert json.loads((folder / "r" / "manifest.json").read_text())["status"] == "interrupted"
    assert len(actors) == 2
    until(lambda: not any(title_of(pid).startswith("ray::Host") for pid in actors))


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true, however long it takes; fail if it does not come to be."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it does not come to be"
        time.sleep(0.2)


def below(ancestor: int, title: str) -> list[int]:
    """The processes whose title begins so, of the Ray instance that a process has started."""
    pids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    return [pid for pid in pids if title_of(pid).startswith(title) and descends(pid, ancestor)]


def title_of(pid: int) -> str:
    """The title of a process; none if there is no such process."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""


def descends(pid: int, ancestor: int) -> bool:
    """Whether a process descends from another that is still there."""
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False
