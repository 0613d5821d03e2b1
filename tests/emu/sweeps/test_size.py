"""Sizing: targets, the search on known functions, the answer on a queue that is known, what is kept."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emu
from emu.directories import run_directory as rd
from emu.results.measures import Measure
from emu.sweeps import parallel_runs
from emu.sweeps.size_report import render_probe, size_sections
from emu.sweeps.sizing import size
from emu.sweeps.targets import Target, find_fewest, read_targets
from workloads.jobs import JobWorkload, make_workload

Cli = Callable[..., Any]
SIZE = ("size", "--scheduler", "central-fifo", "--in-process", "--workload")


# Targets


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("short.p99 < 60s", Target("short", Measure("", "p99"), True, 60.0)),
        ("p50<=1.5 min", Target("all", Measure("", "p50"), False, 90.0)),
        (" long.mean  <  2h ", Target("long", Measure("", "mean"), True, 7200.0)),
        ("all.p90 < 8", Target("all", Measure("", "p90"), True, 8.0)),
        ("short.p99.9 < 60s", Target("short", Measure("", "p99.9"), True, 60.0)),
        ("p99.9 < 60s", Target("all", Measure("", "p99.9"), True, 60.0)),
        ("short.wait.p99 < 5s", Target("short", Measure("wait", "p99"), True, 5.0)),
        ("wait.max<=1 h", Target("all", Measure("wait", "max"), False, 3600.0)),
        ("all.slowdown.p99 < 3", Target("all", Measure("slowdown", "p99"), True, 3.0)),
        (
            "long.bounded_slowdown.mean <= 1.5",
            Target("long", Measure("bounded_slowdown", "mean"), False, 1.5),
        ),
    ],
)
def test_targets_are_read(text: str, target: Target) -> None:
    assert read_targets([text]) == (target,)


def test_at_the_bound() -> None:
    below, up_to = read_targets(["p99 < 60", "p99 <= 60"])
    assert [below.holds(60.0), up_to.holds(60.0), below.holds(float("nan"))] == [False, True, False]


@pytest.mark.parametrize("text", ["short.p99.9 < 60 s", "all.wait.p99 <= 5 s", "all.slowdown.p99 < 3"])
def test_a_target_reads_back(text: str) -> None:
    (target,) = read_targets([text])
    assert str(target) == text
    assert read_targets([str(target)]) == (target,)


# The search


@given(
    least=st.integers(1, 10**6),
    start=st.integers(1, 10**6),
    low=st.none() | st.integers(1, 10**6),
    more=st.none() | st.integers(0, 10**6),
    tolerance=st.sampled_from([0.0, 0.01, 0.2]),
)
def test_a_threshold_is_found(
    least: int, start: int, low: int | None, more: int | None, tolerance: float
) -> None:
    high = None if more is None else (low or 1) + more
    tried: list[int] = []

    def holds(n: int) -> bool:
        assert n not in tried
        tried.append(n)
        return n >= least

    found = find_fewest(holds, start, low=low, high=high, tolerance=tolerance)
    assert all(n >= (low or 1) for n in tried)
    assert high is None or all(n <= high for n in tried)
    if high is not None and high < least:
        assert found == (None, high)
    elif low is not None and low >= least:
        assert found == (low, None)
    elif least == 1:
        assert found == (1, None)
    else:
        assert found.holds is not None
        assert found.fails is not None
        assert found.fails < least <= found.holds
        assert found.holds - found.fails <= max(1, tolerance * found.holds)
    assert len(tried) <= 45


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.integers(1, 60))
def test_whatever_the_function_the_answer_holds_and_its_neighbour_does_not(
    good: list[bool], start: int
) -> None:
    def holds(n: int) -> bool:
        return n > len(good) or good[n - 1]

    found = find_fewest(holds, start, tolerance=0)
    assert found.holds is not None
    assert holds(found.holds)
    if found.holds > 1:
        assert found.fails == found.holds - 1
        assert not holds(found.fails)


def test_doubling_ends() -> None:
    assert find_fewest(lambda n: False, 3, most=100) == (None, 100)
    assert find_fewest(lambda n: n >= 90, 3, most=100, tolerance=0) == (90, 89)


# The answer


def steady(gap_s: float, task_s: float, jobs: int = 200) -> JobWorkload:
    """A job every `gap_s` seconds: D/D/c, in which no job waits from ceil(task_s / gap_s) nodes on."""
    return make_workload("steady", [gap_s * i for i in range(jobs)], [1] * jobs, [task_s] * jobs)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("bounds", [{}, {"low": 2, "high": 9}, {"low": 4}, {"high": 40}])
def test_a_queue_that_is_known(here: Path, bounds: dict[str, int]) -> None:
    found = size(
        "p99 <= 4.6s",
        "central-fifo",
        steady(1.0, 4.5),
        tolerance=0,
        in_process=True,
        network_delay=0,
        **bounds,
    )
    assert (found.nodes, found.fails) == (5, 4)
    assert found.answer == "5 nodes: all.p99 <= 4.6 s is met, and is not on 4"
    at_5 = next(p for p in found.probes if p.nodes == 5)
    assert at_5.values[0][0] == pytest.approx(4.5)


def test_poisson_arrivals_by_brute_force(here: Path) -> None:
    options = {"jobs": 400, "nodes": 8, "load": 0.8, "service": "deterministic"}
    given = {"workload_options": options, "in_process": True, "network_delay": 0}

    def p90_s(nodes: int) -> float:
        result = emu.run("central-fifo", "poisson", nodes, **given)
        return result.summary["jobs"]["all"]["p90"]

    fewest = next(n for n in range(6, 20) if p90_s(n) < 1.2)
    assert 6 < fewest < 19
    assert size("p90 < 1.2", "central-fifo", "poisson", tolerance=0, **given).nodes == fewest


def test_several_targets_must_all_hold(here: Path) -> None:
    both = size(["p99 <= 4.6", "mean < 1 h"], "central-fifo", steady(1.0, 4.5), tolerance=0, in_process=True)
    assert both.nodes == 5
    assert both.answer == "5 nodes: all targets are met, and one is not on 4"
    assert list(both.to_pandas().columns)[:3] == ["nodes", "holds", "all.p99 <= 4.6 s"]
    assert "all.p99 <= 4.6 s" in both.to_text().splitlines()[0]


def test_jobs_that_arrive_at_once(here: Path) -> None:
    burst = make_workload("burst", [0.0] * 12, [1] * 12, [2.0] * 12)
    assert size("all.p99 <= 4.1s", "central-fifo", burst, tolerance=0, in_process=True).nodes == 6


@pytest.mark.slow("several whole runs")
def test_an_interval_that_spans_the_bound_is_not_met(here: Path) -> None:
    (target,) = read_targets(["p90 < 60s"])
    verdicts = [target.verdict(*pair) for pair in ((50.0, 9.0), (50.0, 10.0), (65.0, 6.0), (65.0, 5.0))]
    assert verdicts == ["met", "spans the bound", "spans the bound", "not met"]
    assert [target.verdict(mean, float("nan")) for mean in (59.0, 60.0)] == ["met", "not met"]
    found = size("p90 < 5.2", "random", steady(1.0, 4.5), seeds=3, tolerance=0, in_process=True)
    below, at = (next(p for p in found.probes if p.nodes == n) for n in (found.fails, found.nodes))
    assert sum(at.values[0]) < 5.2 <= sum(below.values[0])
    folders = (found.path / f"nodes={found.nodes}" / f"seed={seed}" for seed in (1, 2, 3))
    runs = [json.loads((folder / "summary.json").read_text()) for folder in folders]
    assert at.values[0][0] == pytest.approx(sum(r["jobs"]["all"]["p90"] for r in runs) / 3)
    (spans,) = [p for p in found.probes if p.verdict == "spans the bound"][-1:]
    assert abs(spans.values[0][0] - 5.2) <= spans.values[0][1]
    assert not spans.holds
    assert "spans the bound (all.p90 < 5.2 s: " in render_probe(spans, found.targets)
    (page,) = size_sections(found.path)
    assert f"On {found.nodes:,} nodes all.p90 is " in page


# What is kept, and what is refused


def test_what_was_measured_is_not_measured_again(
    emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    execute = parallel_runs.execute

    def counting(plan: Any, *rest: Any, **more: Any) -> Any:
        ran.append(plan.cluster.num_nodes)
        return execute(plan, *rest, **more)

    monkeypatch.setattr(parallel_runs, "execute", counting)
    argv = (*SIZE, "small", "--out", "s", "--json", "--tolerance", "0")
    first = emu(*argv, "--target", "p90 < 60s")
    probes = [p["nodes"] for p in json.loads(first.out)["probes"]]
    assert sorted(ran) == probes
    ran.clear()
    assert emu(*argv, "--target", "p90 < 60s").out == first.out
    assert ran == []
    emu(*argv, "--target", "p90 < 50s", "--seeds", "2")
    assert ran  # the second seed, and other numbers of nodes
    assert len(ran) == len(list(Path("s").glob("nodes=*/seed=*"))) - len(probes)
    ended = emu(*argv, "--target", "p90 < 60s", "--set", "network.delay=2 ms")
    assert "--out: s holds another size: network.delay is 0.002 here and not given there" in ended.line()


def test_ctrl_c(emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel_runs, "execute", interrupted)
    ended = emu(*SIZE, "small", "--target", "p90 < 60s", "--out", "s")
    assert (ended.code, ended.line()) == (130, "emu: interrupted; the same command resumes s")
    assert json.loads(Path("s/manifest.json").read_text())["status"] == "interrupted"


def test_a_run_that_fails_ends_the_search(emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError("not today")

    monkeypatch.setattr(parallel_runs, "execute", fails)
    ended = emu(*SIZE, "small", "--target", "p90 < 60s", "--out", "s", "--low", "3")
    assert ended.code == 1
    assert ended.line().endswith("seed=1 failed: ValueError: not today")
    assert json.loads(Path("s/manifest.json").read_text())["status"] == "failed"


def test_a_directory_that_a_process_writes_is_left_alone(emu: Cli, trace: Path) -> None:
    command = (*SIZE, "small", "--target", "p90 < 60s", "--out", "s", "--low", "3")
    assert emu(*command).code == 0
    with rd.claimed_again(Path("s")) as manifest:
        rd.begin(Path("s"), manifest)
        ended = emu(*command)
    assert (ended.code, ended.line().partition(" on ")[0]) == (
        2,
        f"emu: --out: s is being run by process {os.getpid()}",
    )


@pytest.mark.slow("whole runs with their figures")
@pytest.mark.drawn
def test_its_report_shows_what_was_tried_and_the_bounds(emu: Cli, trace: Path) -> None:
    targets = ("--target", "p90 < 60s", "--target", "short.slowdown.p99 <= 40")
    assert emu(*SIZE, "small", *targets, "--seeds", "2", "--out", "s").code == 0
    ended = emu("report", "s")
    assert (ended.code, ended.out) == (0, "s/report.html\n")
    page = Path("s/report.html").read_text()
    summary = json.loads(Path("s/summary.json").read_text())
    answer = f"<strong>{summary['nodes']:,} nodes: {summary['note']}</strong>"
    assert answer in html.unescape(page)
    rows = re.findall(r'<tr><th scope="row">([\d,]+)</th>.*<td>(met|spans the bound|not met)</td></tr>', page)
    assert [(nodes, word == "met") for nodes, word in rows] == [
        (f"{p['nodes']:,}", p["holds"]) for p in summary["probes"]
    ]
    for text in (
        "bound",
        "answer",
        "met",
        "not met",
        "nodes",
        "all.p90 &lt; 60 s",
        "short.slowdown.p99 &lt;= 40",
    ):
        assert f">{text}</text>" in page
    assert page.count("<details") == 2  # the runs of the answer
    os.truncate("s/summary.json", 40)
    assert "s: summary.json is not as it was written" in emu("report", "s").line()
    assert emu(*SIZE, "small", *targets, "--seeds", "2", "--out", "s").code == 0
    assert emu("report", "s").code == 0


def test_the_figure_has_each_target_with_its_bound() -> None:
    from emu.sweeps.size_report import Tried, targets_figure
    from emu.sweeps.targets import read_targets

    target, other = read_targets(["short.p99 < 60s", "mean <= 10s"])
    points = [Tried(10, 90.0, 5.0, "not met"), Tried(20, 50.0, 0.0, "met"), Tried(200, 4.0, 9.0, "met")]
    points.insert(1, Tried(15, 59.0, 3.0, "spans the bound"))
    figure = targets_figure({target: points, other: points[:1]}, 20)
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["short.p99 < 60 s", "all.mean <= 10 s"]
    lines = {line.get_label(): line.get_xydata().tolist() for line in panels[0].lines}
    assert lines["bound"] == [[0.0, 60.0], [1.0, 60.0]]
    assert lines["answer"] == [[20.0, 0.0], [20.0, 1.0]]
    marked = [c for c in panels[0].containers if c.get_label() in ("met", "spans the bound", "not met")]
    assert {c.get_label(): c.lines[0].get_xydata().tolist() for c in marked} == {
        "met": [[20.0, 50.0], [200.0, 4.0]],
        "spans the bound": [[15.0, 59.0]],
        "not met": [[10.0, 90.0]],
    }
    assert panels[1].get_ylim()[0] < 10.0 < panels[1].get_ylim()[1]


@pytest.mark.ray
def test_on_ray_the_answer_is_the_same(here: Path, ray_session: None) -> None:
    workload = steady(1.0, 4.5)
    given = {"tolerance": 0, "low": 2, "high": 9, "seeds": 2}
    there = size("p99 <= 4.6s", "central-fifo", workload, out="there", **given)
    ours = size("p99 <= 4.6s", "central-fifo", workload, out="here", in_process=True, **given)
    assert there.summary == ours.summary
