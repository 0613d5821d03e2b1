"""Why: a scheduler that cannot keep up is named, in table, summary and report, with what waited for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from coflow_cases import four_coflows, outcome_of, result_of
from sweep_grids import write

import emu as package
from emu.report.report import render_report
from emu.results.bottlenecks import bottlenecks_of
from emu.results.comparison import Comparison
from emu.results.reasons import reason_rows, render_reasons
from emu.results.result import Result
from emu.sweeps.sweep import sweep
from workloads.jobs import JobWorkload, make_workload

Cli = Callable[..., Any]
# A job costs a central scheduler 1.1 s, and one arrives every second: it falls behind by 0.1 s each time.
JOBS, TASKS, NODES = 200, 5, 200  # nodes enough for slots whose ends are reported 20 s late
COST = {"cost_model": "fixed", "cost_per_job": "1 s", "cost_per_task": "20 ms"}
# The last job comes at 199 s and is done at 200 * 1.1 = 220 s. Who waits longest is the end of a task that comes after
# it: those of the 179th job, at 179 * 1.1 + 3 s.
LONGEST_S = 220 - 199.9


def steady() -> JobWorkload:
    """A job of five tasks of 3 s every second; the last one also has a task of 1,000 s."""
    durations = np.full(JOBS * TASKS, 3.0)
    durations[-1] = 1000.0
    return make_workload("steady", np.arange(JOBS), [TASKS] * JOBS, durations, short_cutoff_s=100.0)


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return package.compare(
        ["central-fifo", "sparrow"], steady(), NODES, in_process=True, network_delay=0, **COST
    )


def test_what_the_summary_says_by_hand(compared: Comparison) -> None:
    central, sparrow = compared.summaries
    schedulers = central["schedulers"]
    assert schedulers["busiest_while_arriving"] == pytest.approx(1.0)
    assert schedulers["busiest"] < 0.2  # of the whole run, which one task makes long
    assert schedulers["wait_max_s"] == pytest.approx(LONGEST_S)
    # When the last job comes, those from the 182nd on are not begun: it is the 19th of them. Ends of tasks wait too.
    assert schedulers["backlog_max"] >= 19
    # No other job has the scheduler's time: jobs wait for nothing but their turn and their own tasks.
    waits = [0.1 * i + 1.1 for i in range(JOBS)]
    assert central["jobs"]["all"]["wait"]["p99"] == pytest.approx(np.percentile(waits, 99), abs=0.2)
    assert central["decision_latency"]["all"]["p99"] == pytest.approx(np.percentile(waits, 99), abs=0.3)
    assert sparrow["schedulers"]["busiest_while_arriving"] < 0.2
    assert "bottlenecks" not in sparrow
    (said,) = central["bottlenecks"]
    assert said.startswith(
        "central-fifo was 100% busy while work arrived: messages waited up to 20.1 s for it"
    )


def test_utilisation_is_that_of_the_timeline(compared: Comparison) -> None:
    timeline = compared.results["sparrow"][0].timeline.to_pandas()
    figures = compared.summaries[1]["utilisation"]
    assert figures["mean"] == pytest.approx(timeline.utilisation.mean())
    assert figures["max"] == timeline.utilisation.max()
    arriving = timeline[timeline.time_s <= JOBS - 1].utilisation
    assert figures["while_arriving"] == pytest.approx(arriving.mean())
    # 15 s of work a second, but for the beginning.
    assert figures["while_arriving"] == pytest.approx(15 / NODES, rel=0.1)
    assert figures["mean"] < 0.3 * figures["while_arriving"]


def test_the_table_prints_the_reason(compared: Comparison) -> None:
    text = compared.to_text()
    assert text.splitlines()[-1].startswith(
        "central-fifo was 100% busy while work arrived: messages waited up to"
    )
    assert "busiest scheduler" not in text
    asked = compared.to_text(reasons=True)
    lines = {" ".join(line.split()[:-2]): line.split()[-2:] for line in asked.splitlines()}
    central = compared.summaries[0]
    assert lines["busiest scheduler, busy while work arrived"][0] == "100.0%"
    assert lines["wait of messages for their scheduler, max (s)"][0] == "20.1"
    assert lines["messages waiting for one scheduler, most"][0] == str(central["schedulers"]["backlog_max"])
    for name in ("p50", "p99"):
        assert f"decision latency, {name} (s)" in lines
        assert f"wait of short jobs, {name} (s)" in lines
    assert "nodes, busy while work arrived" in lines


def test_the_report_prints_it_too(compared: Comparison) -> None:
    page = render_report([r for runs in compared.runs for r in runs])
    assert '<p class="note">central-fifo was 100% busy while work arrived' in page
    assert "<h3>Reasons</h3>" in page
    assert '<th scope="row">wait of messages for their scheduler, max (s)</th><td>20.1</td>' in page
    assert "<h3>Queueing delay and slowdown</h3>" in page
    alone = render_report(compared.results["sparrow"])
    assert "was 100% busy" not in alone
    assert '<th scope="row">decision latency, p99 (s)</th>' in alone


@pytest.mark.slow("whole runs with their figures")
def test_a_sweep_prints_it_where_it_holds(tmp_path: Path) -> None:
    """A job of 1 ms of the scheduler's time leaves it idle, and one of 1 s does not; so it is over two seeds."""
    cost = {"model": "fixed", "per_task": "20 ms"}
    axes = {"scheduler": ["central-fifo", "sparrow"], "cost.per_job": ["1 ms", "1 s"], "seed": [1, 2]}
    grid = {"workload": steady(), "nodes": NODES, "network": {"delay": 0}, "cost": cost, "sweep": axes}
    result = sweep(grid, out=tmp_path / "s", in_process=True, progress=False)
    points = {(p["scheduler"], p["per_job"]): p for p in result.summary["points"]}
    (said,) = points["central-fifo", 1.0]["bottlenecks"]
    assert said.startswith("central-fifo was 100% busy while work arrived: messages waited up to")
    assert [name for name, point in points.items() if "bottlenecks" in point] == [("central-fifo", 1.0)]
    assert result.text.count("busy while work arrived") == result.text.count(said) == 1
    found = (
        pd.read_csv(tmp_path / "s" / "results.csv").set_index(["scheduler", "per_job", "seed"]).bottlenecks
    )
    assert found["central-fifo", 1.0, 1] == said
    table = pd.read_csv(tmp_path / "s" / "comparison.csv")
    row = table[(table.per_job == 1.0) & (table.scheduler == "central-fifo") & (table.metric == "schedulers")]
    busy = points["central-fifo", 1.0]["schedulers"]["busiest_while_arriving"]
    assert row[row.statistic == "busiest_while_arriving"].value.tolist() == [busy]


def test_what_is_called_a_bottleneck() -> None:
    schedulers = {"count": 4, "busiest": 0.3, "wait_mean_s": 0.5, "wait_max_s": 120.0}
    summary = {"scheduler": "s", "jobs": {}, "schedulers": schedulers, "utilisation": {"mean": 0.4}}
    assert bottlenecks_of(summary) == {}
    schedulers["busiest_while_arriving"] = 0.9612
    (said,) = bottlenecks_of(summary)["bottlenecks"]
    assert said == (
        "the busiest of 4 schedulers of s was 96% busy while work arrived: messages waited up to 120 s for it, "
        "500 ms in the mean"
    )
    schedulers["busiest_while_arriving"] = 0.79
    summary["utilisation"]["while_arriving"] = 0.993
    (said,) = bottlenecks_of(summary)["bottlenecks"]
    assert said.startswith("the nodes were 99% busy while jobs arrived")
    live = {"verdict": "the emulation kept up", "saturated": False, "overloaded": False}
    assert (
        bottlenecks_of({"scheduler": "s", "live": live, "schedulers": schedulers | {"busiest": 0.99}}) == {}
    )
    live |= {"verdict": "the scheduler is saturated", "saturated": True}
    assert bottlenecks_of({"scheduler": "s", "live": live})["bottlenecks"] == [
        "s: the scheduler is saturated"
    ]


def test_of_coflows_the_coordinator_is_named() -> None:
    four = four_coflows()
    counters = {"intervals": 100, "intervals_missed": 35}
    runs = {"philae": [result_of("philae", outcome_of(four, [4, 2, 200, 400], **counters))]}
    runs["philae"][0].summary |= bottlenecks_of(runs["philae"][0].summary)
    assert (
        "philae had more to do than time in 35% of its scheduling intervals"
        in Comparison(runs, "", {}).to_text()
    )
    rows = dict(reason_rows([runs["philae"][0].summary]))
    assert rows["scheduling intervals missed"] == "35.0%"
    assert rows["wait of coflows, p50 (s)"] == "1"
    assert not any("jobs" in label or "nodes" in label for label in rows)


def test_waits_are_of_all_jobs_where_they_have_one_class() -> None:
    def part(s: float) -> dict[str, Any]:
        return {"count": 2, "wait": {"p50": s, "p99": s}}

    one = {"scheduler": "s", "jobs": {"all": part(1.0), "short": part(1.0)}}
    assert [row[0] for row in reason_rows([one])] == ["wait of jobs, p50 (s)", "wait of jobs, p99 (s)"]
    two = {"scheduler": "s", "jobs": {"all": part(1.0), "short": part(1.0), "long": part(2.0)}}
    assert [row[0] for row in reason_rows([one, two])][::2] == [
        "wait of short jobs, p50 (s)",
        "wait of long jobs, p50 (s)",
    ]


def test_reasons_of_nothing() -> None:
    assert render_reasons([{"scheduler": "s", "jobs": {}}]) == ""


@pytest.fixture(scope="module")
def live() -> Result:
    """A live run of 20 jobs."""
    brief = make_workload(
        "brief", np.linspace(0.0, 0.5, 20), np.full(20, 2), np.full(40, 0.02), short_cutoff_s=1.0
    )
    return package.run("central-fifo", brief, 50, clock="live", in_process=True)


@pytest.mark.compiled
def test_a_live_report_has_latency_and_the_verdict(live: Result) -> None:
    page = render_report([live])
    figures = live.summary
    verdict = figures["live"]["verdict"]
    assert verdict[1:] in page
    assert "<dt>dilation</dt><dd>1</dd>" in page
    latency = next(value for label, value in reason_rows([figures]) if label == "decision latency, p99 (s)")
    assert f'<th scope="row">decision latency, p99 (s)</th><td>{latency}</td>' in page
    for row in (
        "lateness of nodes",
        "lateness of schedulers",
        "message latency",
        "CPU of the busiest scheduler",
    ):
        assert f'<th scope="row">{row}</th>' in page
    # The two clocks name things alike.
    virtual = package.run("central-fifo", live.workload, 50, in_process=True, **COST).summary
    assert set(figures["schedulers"]) == set(virtual["schedulers"])
    assert set(figures["decision_latency"]) == set(virtual["decision_latency"])
    assert set(figures["utilisation"]) == set(virtual["utilisation"])


@pytest.mark.parametrize("scheduler", ["dist-lwl", "eagle"])  # they have a listener, which is no scheduler
def test_partitions_change_no_reason(scheduler: str, workload: JobWorkload) -> None:
    given = {"nodes": 12, "in_process": True, "cost_per_message": "5 ms", **COST}
    virtual = package.run(scheduler, workload, **given).summary
    windows = package.run(scheduler, workload, clock="windows", partitions=3, **given).summary
    for part in ("schedulers", "utilisation", "decision_latency", "jobs"):
        assert windows[part] == virtual[part], part
    assert windows.get("bottlenecks") == virtual.get("bottlenecks")


def test_options_of_the_command_line(emu: Cli, trace: Path) -> None:
    command = [
        "--workload",
        "small",
        "--nodes",
        "12",
        "--in-process",
        "--columns",
        "max,wait.p99",
        "--reasons",
    ]
    ended = emu("compare", "--schedulers", "random,sparrow", *command, "--out", "c")
    assert ended.code == 0, ended.err
    assert "wait of short jobs, p99 (s)" in ended.out
    assert ended.out.splitlines()[3].split()[:2] == ["max", "wait.p99"]
    one = emu("run", "--scheduler", "random", *command, "--out", "r").out
    assert "nodes, busy" in one
    assert one.splitlines()[2].split()[-2:] == ["max", "wait.p99"]
    assert emu("run", "--resume", "r", "--columns", "max,wait.p99", "--reasons").out in one
    write('workload = "small"\nnodes = 20\n[sweep]\nscheduler = ["random", "sparrow"]\n')
    output = emu("sweep", "grid.toml", "--in-process", "--columns", "p99.9", "--reasons").out
    assert "wait of short jobs, p99 (s)" in output
    assert "p99.9" in output.splitlines()[3]
