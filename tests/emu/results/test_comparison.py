"""Comparisons: rows by hand, the table as it is printed, figures, the report page."""

# ruff: noqa: RUF001 (the sign for "times" is what is printed)

from __future__ import annotations

import html.parser
import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import emu
from emu.columns import make_table
from emu.directories.names import REPORT_MARK
from emu.families.jobs.metrics import describe_jobs
from emu.families.jobs.plots import cdf_figure
from emu.families.jobs.results import JOBS, TIMELINE
from emu.report.drawing import save_figure, to_png, to_svg
from emu.report.plots import timeline_figure
from emu.report.report import render_report, write_report
from emu.results.comparison import Comparison
from emu.results.comparison_tables import render_rows
from emu.results.measures import DEFAULT
from emu.results.paired_comparison import Tolerance, compare_group
from emu.results.result import Result
from emu.results.run_groups import group_runs
from emu.sweeps.report_input import read_runs
from workloads.errors import InputError
from workloads.jobs import JobWorkload


def result_of(scheduler: str, jct_s: list[float], seed: int = 1, nodes: int = 10) -> Result:
    """A run of jobs that arrive every second; every second one is long."""
    count = len(jct_s)
    submit = np.arange(count, dtype=float)
    jobs = make_table(
        JOBS,
        {
            "job_id": np.arange(count),
            "submit_s": submit,
            "start_s": submit,
            "finish_s": submit + jct_s,
            "jct_s": np.array(jct_s),
            "wait_s": np.zeros(count),
            "ideal_s": np.ones(count),
            "slowdown": np.array(jct_s),
            "num_tasks": np.ones(count, np.int64),
            "mean_task_s": np.ones(count),
            "job_class": pa.array(["short", "long"] * (count // 2)),
            "constraint": pa.nulls(count, pa.string()),
            "tenant": pa.nulls(count, pa.string()),
        },
    )
    rows = {c.name: np.arange(3) / (4 if c.name == "utilisation" else 1) for c in TIMELINE}
    timeline = make_table(TIMELINE, {c.name: rows[c.name].astype(c.type.to_pandas_dtype()) for c in TIMELINE})
    engine = {"wall_s": 0.5, "load_s": 0.1, "compile_s": 0.0, "peak_rss_mb": 90.0}
    engine |= {"events": 800, "tasks": 100, "tasks_per_s": 200.0}
    summary = {"scheduler": scheduler, "workload": "w", "nodes": nodes, "seed": seed, "clock": "virtual"}
    summary |= {"jobs": describe_jobs(jobs), "engine": engine, "counters": {"probes": 1234}}
    inputs = [{"what": "workload", "name": "w", "sha256": "0"}]
    manifest = {"config": {"warmup": "0.0 s"}, "inputs": inputs, "versions": {"python": "3"}}
    tables = {"jobs": jobs, "timeline": timeline}
    return Result(tables, summary, {"probes": 1234}, 'scheduler = "x"\n', manifest)


@pytest.fixture
def two() -> dict[str, list[Result]]:
    return {
        "base": [
            result_of("base", [10.0, 100.0, 20.0, 200.0], 1),
            result_of("base", [20.0, 100.0, 40.0, 200.0], 2),
        ],
        "other": [
            result_of("other", [5.0, 100.0, 10.0, 100.0], 1),
            result_of("other", [30.0, 100.0, 60.0, 100.0], 2),
        ],
    }


def test_rows_by_hand(two: dict[str, list[Result]]) -> None:
    base, other = compare_group(two, "short", 0.0)
    assert base.figures["mean"][0] == (15 + 30) / 2
    assert base.ratios["mean"] == (1.0, 0.0)
    assert math.isnan(base.improved)
    # Seed by seed: 7.5 / 15 and 45 / 30; the ratio of the means would be 1.17.
    assert other.ratios["mean"][0] == pytest.approx((0.5 + 1.5) / 2)
    assert other.ratios["mean"][1] == pytest.approx(12.7062 * np.std([0.5, 1.5], ddof=1) / math.sqrt(2))
    # Both better with seed 1, both worse with seed 2.
    assert [other.shares[s][0] for s in ("better", "equal", "worse")] == [0.5, 0.0, 0.5]
    assert other.shares["better"][1] == pytest.approx(12.7062 * 0.5)
    assert all(math.isnan(mean) for mean, _ in base.shares.values())
    assert other.improved == 0.5
    assert other.count == 2
    (_, long) = compare_group(two, "long", 0.0)
    assert [long.shares[s][0] for s in ("better", "equal", "worse")] == [0.5, 0.5, 0.0]


def test_a_class_that_has_no_jobs_has_no_rows(two: dict[str, list[Result]]) -> None:
    for runs in two.values():
        for run in runs:
            del run.summary["jobs"]["long"]
    assert compare_group(two, "long", 0.0) == []
    assert "long jobs" not in render_rows(
        compare_group(two, "short", 0.0), "jobs", "head", Tolerance(), DEFAULT
    )


def test_the_table_as_printed() -> None:
    one = {
        "base": [result_of("base", [10.0, 1e5, 20.0, 2e5])],
        "other": [result_of("other", [5.0, 1e5, 8.0, 1e5])],
    }
    rows = [r for c in ("short", "long", "all") for r in compare_group(one, c, 0.0)]
    text = render_rows(rows, "jobs", "w on 10 nodes", Tolerance(), DEFAULT)
    assert text == (
        "w on 10 nodes: job completion time in seconds, and × that of base, below a tenth as 1/20×\n"
        "\n"
        "short jobs (2)\n"
        "         mean          p50          p90           p99          better  equal  worse\n"
        "  base     15           15           19          19.9\n"
        "  other   6.5  0.433×  6.5  0.433×  7.7  0.405×  7.97  0.401×  100.0%   0.0%   0.0%\n"
        "\n"
        "long jobs (2)\n"
        "            mean              p50              p90              p99          better  equal  worse\n"
        "  base   150,000          150,000          190,000          199,000\n"
        "  other  100,000  0.667×  100,000  0.667×  100,000  0.526×  100,000  0.503×   50.0%  50.0%   0.0%\n"
        "\n"
        "all jobs (4)\n"
        "           mean             p50             p90              p99          better  equal  worse\n"
        "  base   75,008          50,010         170,000          197,000\n"
        "  other  50,003  0.667×  50,004  1.00×  100,000  0.588×  100,000  0.508×   75.0%  25.0%   0.0%\n"
        "\n"
        "better, equal, worse: share of the jobs by completion time, against base; equal is within 10 ms or 0.1 %\n"
    )


def test_the_columns_that_are_asked_for(two: dict[str, list[Result]]) -> None:
    text = Comparison(two, "", {}).to_text(["max", "wait.p99", "bounded_slowdown.mean"])
    head = text.splitlines()[3].split()
    assert head == ["max", "wait.p99", "bounded_slowdown.mean", "better", "equal", "worse"]
    assert "waits in seconds" in text.splitlines()[0]
    with pytest.raises(InputError, match=r"columns: unknown column 'p98'; did you mean 'p99'"):
        Comparison(two, "", {}).to_text(["p98"])
    with pytest.raises(InputError, match="columns: 'p99' is given twice"):
        Comparison(two, "", {}).to_text(["p99", "p99"])


def test_several_seeds_are_printed_with_intervals(two: dict[str, list[Result]]) -> None:
    text = Comparison(two, "", {}).to_text()
    assert text.startswith(
        "w on 10 nodes, seeds 1 to 2 (scheduler's draws; the workload is the same), means ± 95 %"
    )
    assert re.search(r"other .*1±6×", text)


def test_frames_of_a_comparison(two: dict[str, list[Result]]) -> None:
    frame = Comparison(two, "", {}).to_pandas().set_index(["scheduler", "job_class"])
    assert frame.loc[("other", "short"), "mean_ratio"] == pytest.approx(1.0)
    assert frame.loc[("base", "long"), "mean_s"] == 150.0


@pytest.mark.drawn
def test_figures_are_the_same_bytes_each_time(two: dict[str, list[Result]], tmp_path: Path) -> None:
    first, second = (cdf_figure(two, "short") for _ in range(2))
    assert first is not None
    assert second is not None
    assert to_svg(first) == to_svg(second)
    assert to_png(first) == to_png(second)
    assert save_figure(first, tmp_path / "cdf-a=b.c") == ["cdf-a=b.c.svg", "cdf-a=b.c.png"]
    assert (tmp_path / "cdf-a=b.c.png").read_bytes().startswith(b"\x89PNG")


def test_a_cdf_goes_from_the_least_to_the_greatest_time(two: dict[str, list[Result]]) -> None:
    figure = cdf_figure(two, "short")
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    x, y = axes.lines[0].get_data()
    assert (x[0], x[-1], y[0], y[-1]) == (10.0, 40.0, 0.0, 1.0)
    assert (np.diff(x) >= 0).all()
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["base", "other"]


def test_figures_of_nothing() -> None:
    run = result_of("s", [0.0, 0.0])
    assert cdf_figure({"s": [run]}, "short") is None
    run.timeline = run.timeline.slice(0, 0)
    assert timeline_figure({"s": [run]}) is None


def test_the_timeline_figure_shows_queues_by_class() -> None:
    figure = timeline_figure({"s": [result_of("s", [1.0, 2.0])]})
    assert figure is not None
    upper, lower = figure.axes
    assert upper.get_ylabel() == "utilisation"
    assert [line.get_label() for line in lower.lines] == ["short", "long"]


def test_a_timeline_ends_where_its_last_peak_has_fallen() -> None:
    run = result_of("s", [1.0, 2.0])
    busy = [0.0, 0.9, 0.0, 0.8, 0.1, *[0.01] * 15]
    columns = {name: [0.0] * len(busy) for name in run.timeline.column_names}
    run.timeline = pa.table({**columns, "time_s": np.arange(20.0), "utilisation": busy})
    figure = timeline_figure({"s": [run]})
    assert figure is not None
    assert figure.axes[-1].get_xlim() == (0.0, 4.0)
    assert figure.axes[-1].get_xlabel() == "virtual time (s); the last run ends at 19 s"


class Page(html.parser.HTMLParser):
    """Checks that tags are balanced and collects text and addresses."""

    VOID = frozenset({"meta", "br", "img", "path", "use", "rect", "line", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_a_page_needs_nothing_but_itself_and_escapes_everything(two: dict[str, list[Result]]) -> None:
    evil = "<script>alert(1)</script>$x^2$ & _é"
    for run in two["other"]:
        run.summary["scheduler"] = evil
        run.config = f"# {evil}"
        run.notes = (evil,)
    text = render_report([r for runs in two.values() for r in runs], title=evil)
    page = Page(text)
    assert text.count("<script") == 1  # ours, at the end
    assert all(a.startswith("#") for a in page.addresses)
    assert "url(http" not in text
    shown = "".join(page.text)
    for expected in (
        evil,
        "better",
        "equal",
        "worse",
        "probes",
        "1,234",
        "probes that schedulers sent",
        "Utilisation of all slots",
        "1±6×",
    ):
        assert expected in shown
    assert page.tags >= {"svg", "table", "pre", "details"}


def test_runs_that_cannot_be_paired_are_not_compared(two: dict[str, list[Result]]) -> None:
    together = group_runs([r for runs in two.values() for r in runs])
    assert [list(g.results) for g in together] == [["base", "other"]]
    lone = result_of("base", [1.0, 2.0], seed=9)
    apart = group_runs([*two["base"], *two["other"][:1], lone])
    assert [{n: len(runs) for n, runs in g.results.items()} for g in apart] == [{"base": 3}, {"other": 1}]
    twice = group_runs([*two["base"], two["base"][0]])
    assert [len(g.results["base"]) for g in twice] == [1, 1, 1]
    assert len(group_runs([two["base"][0], result_of("other", [1.0, 2.0], nodes=11)])) == 2


def test_compare_writes_a_directory_that_report_reads(workload: JobWorkload, tmp_path: Path) -> None:
    seen = tmp_path / "c"
    comparison = emu.compare(["random", "sparrow"], workload, 12, seeds=2, in_process=True, out=seen)
    names = {"config.toml", "manifest.json", "summary.json", "comparison.csv", "report.html", "cdf-short.png"}
    assert names <= {p.name for p in seen.iterdir()}
    runs = sorted(p.relative_to(seen).as_posix() for p in seen.glob("scheduler=*/seed=*"))
    assert runs == [f"scheduler={s}/seed={k}" for s in ("random", "sparrow") for k in (1, 2)]
    summaries = json.loads((seen / "summary.json").read_text())
    assert [s["scheduler"] for s in summaries] == ["random", "sparrow"]
    assert [s["path"] for s in comparison.summaries] == [(seen / s["path"]).as_posix() for s in summaries]
    paths = [{k: s.pop(k) for k in ("path", "paths")} for s in summaries]
    assert [p["path"] for p in paths] == ["scheduler=random", "scheduler=sparrow"]
    assert paths[1]["paths"] == ["scheduler=sparrow/seed=1", "scheduler=sparrow/seed=2"]
    here = [{k: v for k, v in s.items() if k not in paths[0]} for s in comparison.summaries]
    assert summaries == json.loads(json.dumps(here))
    assert summaries[0]["confidence_95"]["jobs"]["all"]["mean"][0] < summaries[0]["jobs"]["all"]["mean"]
    read = read_runs([seen])
    assert [(r.summary["scheduler"], r.summary["seed"]) for r in read] == [
        ("random", 1), ("random", 2), ("sparrow", 1), ("sparrow", 2),
    ]  # fmt: skip
    assert render_report(read) == (seen / "report.html").read_text()
    with pytest.raises(InputError, match="is given twice"):
        read_runs([seen, seen / "scheduler=random" / "seed=1"])


def test_a_report_replaces_only_a_report(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    write_report(page, f"<!DOCTYPE html>\n{REPORT_MARK}")
    write_report(page, "mine")
    with pytest.raises(InputError, match=r"r\.html: exists and is not a report"):
        write_report(page, "x")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(tmp_path / "none" / "r.html", "x")
