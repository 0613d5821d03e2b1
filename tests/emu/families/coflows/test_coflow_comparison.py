"""Comparisons of coflows: rows by hand, the tables as they are printed, figures, the report page."""

# ruff: noqa: RUF001 (the sign for "times" is what is printed)

from __future__ import annotations

import html.parser
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from coflow_cases import four_coflows, outcome_of, result_of

from emu.families.coflows.family import FAMILY as COFLOWS
from emu.families.coflows.metrics import shuffle_shares
from emu.families.coflows.plots import coflow_figures
from emu.families.coflows.tables import COORDINATORS, compare_job_times, job_speedups, learning
from emu.report.drawing import to_svg
from emu.report.percentile_plots import percentiles_figure
from emu.report.plots import timeline_figure
from emu.report.report import render_report
from emu.results.comparison import Comparison
from emu.results.paired_comparison import compare, compare_group
from emu.results.result import Result
from emu.results.run_groups import Axis
from emu.results.summary_text import render_summary
from emu.results.text_tables import TIMES
from emu.sweeps.report_input import read_runs

KNOWN = [math.nan, 3e6, math.nan, 900e6]


@pytest.fixture
def runs() -> dict[str, list[Result]]:
    """Philae learns two coflows, in 1 and 8 s; Aalo three, of these in 10 and 16 s; fair learns nothing."""
    four = four_coflows()
    counters = {"intervals": 100, "intervals_missed": 10, "updates": 250}
    return {
        "philae": [
            result_of("philae", outcome_of(four, [4, 2, 200, 400], [None, 1, None, 8], KNOWN, **counters))
        ],
        "aalo": [result_of("aalo", outcome_of(four, [8, 2, 300, 500], [0, 10, 30, 16]))],
        "fair": [result_of("fair", outcome_of(four, [4, 20, 200, 800]))],
    }


def test_rows_by_hand(runs: dict[str, list[Result]]) -> None:
    philae, aalo, _ = compare_group(runs, "all", 0.0)
    assert philae.figures["mean"][0] == 606 / 4
    assert all(math.isnan(mean) for mean, _ in philae.speedup.values())
    assert aalo.speedup["average"][0] == 810 / 606
    assert aalo.ratios["mean"][0] == 810 / 606
    assert [aalo.shares[s][0] for s in ("better", "equal", "worse")] == [0.0, 0.25, 0.75]
    # Flows begin a second after their coflows arrive; alone these take 4, 1, 200 and 200 s.
    assert (aalo.figures["wait.p99"][0], aalo.figures["slowdown.max"][0]) == (1.0, 2.5)
    assert aalo.figures["slowdown.mean"][0] == pytest.approx(np.mean([8 / 4, 2 / 1, 300 / 200, 500 / 200]))
    ratios = [8 / 4, 1.0, 300 / 200, 500 / 400]
    assert aalo.speedup["p50"][0] == np.median(ratios)
    assert aalo.speedup["p90"][0] == pytest.approx(np.percentile(ratios, 90))
    bins = [row.group for row in compare(runs, 0.0) if row.scheduler == "aalo"]
    assert bins == ["all", "bin-1", "bin-2", "bin-3", "bin-4"]
    late = compare_group(runs, "all", 25.0)[1]
    assert (late.count, late.speedup["p50"][0]) == (4, 500 / 400)  # the summary has its own warm-up


def test_learning_by_hand(runs: dict[str, list[Result]]) -> None:
    philae, aalo = learning(runs, 0.0).means(runs).values()
    assert (philae["coflows"][0], aalo["coflows"][0]) == (
        2,
        3,
    )  # what was known at the arrival was not learned
    assert philae["time p50"][0] == pytest.approx((1 / 2 + 8 / 400) / 2)
    assert philae["above 20%"][0] == 0.5
    assert aalo[f"time {TIMES} P50"][0] == np.median([10 / 1, 16 / 8])  # of the two that both learned
    assert aalo[f"bytes {TIMES} P50"][0] == 1.0
    assert philae["size error mean"][0] == pytest.approx((0.5 + 1.25) / 2)
    assert math.isnan(aalo["size error mean"][0])
    fair = {"fair": runs["fair"]}
    assert learning(fair, 0.0).tables(fair) == []


def test_a_comparison_without_anything_finished_says_so() -> None:
    nothing = {"a": [result_of("a", outcome_of(four_coflows(), [None] * 4))]}
    assert "no coflow finished under all schedulers" in Comparison(nothing, "", {}).to_text()
    assert "<h3>Deadlines</h3>" in render_report(nothing["a"])


def test_coordinators_that_work_in_intervals_are_compared(runs: dict[str, list[Result]]) -> None:
    ((name, figures),) = COORDINATORS.means(runs).items()
    assert (name, figures["missed"][0], figures["updates"][0]) == ("philae", 0.1, 2.5)
    (table,) = COORDINATORS.tables(runs)
    assert table.rows == [["philae", "10.0%", "0.0%", "0", "2.5", "0", "0"]]
    (own,) = runs["philae"]
    coordinator = own.summary["coordinator"] | {"work_s": 0.002}
    working = replace(own, summary={**own.summary, "coordinator": coordinator})
    (table,) = COORDINATORS.tables({"working": [working], "philae": [own]})
    assert [row[-1] for row in table.rows] == ["2", "-"]
    assert COORDINATORS.tables({"fair": runs["fair"]}) == []


def test_jobs_gain_less_than_their_coflows(runs: dict[str, list[Result]]) -> None:
    share = shuffle_shares(4, seed=1)
    base, cct = np.array([4.0, 2, 200, 400]), np.array([8.0, 2, 300, 500])
    expected = (1 - share) + share * cct / base
    assert job_speedups(runs["philae"][0], runs["aalo"][0], 0.0) == pytest.approx(expected)
    found = compare_job_times(runs, 0.0)
    assert list(found) == ["aalo", "fair"]
    assert found["aalo"]["p50"][0] == pytest.approx(np.median(expected))
    assert 1 <= found["fair"]["p90"][0] < 10


def test_ratios_of_seeds_are_paired() -> None:
    four = four_coflows()
    pairs = {
        "a": [result_of("a", outcome_of(four, [t] * 4), s) for s, t in ((1, 1.0), (2, 10.0))],
        "b": [result_of("b", outcome_of(four, [t] * 4), s) for s, t in ((1, 2.0), (2, 20.0))],
    }
    row = compare_group(pairs, "all", 0.0)[1]
    assert row.speedup["average"] == row.speedup["p50"] == (2.0, 0.0)


def test_the_table_as_it_is_printed(runs: dict[str, list[Result]]) -> None:
    text = Comparison(runs, "", {}).to_text()
    assert text.splitlines()[:6] == [
        "coflows on 4 ports, seed 1: coflow completion time in seconds, and as speed-up of philae: the others' over "
        "its own",
        "",
        "all coflows (4)",
        "           mean  p50  p90  p99  average    P50    P90  better  equal  worse",
        "  philae  151.5  102  340  394",
        "  aalo    202.5  154  440  494    1.34×  1.38×  1.85×    0.0%  25.0%  75.0%",
    ]
    assert "\nbin-2, width above 7, up to 100 MB (1)\n" in text
    learning = next(line for line in text.splitlines() if line.startswith("  philae        2"))
    assert learning.split() == ["philae", "2", "26.0%", "45.2%", "50.0%", "25.1%", "87.5%", "37.5%"]
    assert text.splitlines()[-4].startswith("jobs that compute too")


def test_a_single_run_as_it_is_printed(runs: dict[str, list[Result]]) -> None:
    lines = render_summary(runs["philae"][0].summary).splitlines()
    assert lines[0] == "philae on coflows, 4 ports, seed 1"
    assert lines[3].split() == ["all", "coflows", "4", "151.5", "102", "340", "394"]
    assert "makespan 430 s, deadlines met 100.0%" in lines[-3]
    assert "intervals missed 10.0%" in lines[-3]
    assert lines[-2] == "20 flows, 40 events in 500 ms (40 flows/s)"


def test_rows_as_a_frame(runs: dict[str, list[Result]]) -> None:
    frame = Comparison(runs, "", {}).to_pandas()
    assert list(frame.columns[:8]) == [
        "scheduler",
        "group",
        "count",
        "mean_s",
        "p50_s",
        "p90_s",
        "p95_s",
        "p99_s",
    ]
    aalo = frame[frame.scheduler == "aalo"].iloc[0]
    assert (aalo.speedup_average, aalo.mean_ratio, aalo.worse) == (810 / 606, 810 / 606, 0.75)
    assert aalo.slowdown_max == 2.5


@pytest.mark.slow("whole runs with their figures")
@pytest.mark.drawn
def test_figures_are_the_same_bytes_every_time(runs: dict[str, list[Result]]) -> None:
    figures = {f.stem: f for f in coflow_figures(runs)}
    assert list(figures) == [
        "cdf-cct",
        "learning",
        "deadlines",
        "speedup",
        "speedup-bins",
        "speedup-jobs",
        "estimates-philae",
    ]
    again = {f.stem: to_svg(f.drawn) for f in coflow_figures(runs)}
    assert {stem: to_svg(f.drawn) for stem, f in figures.items()} == again
    one = [f.stem for f in coflow_figures({"fair": runs["fair"]})]
    assert one == ["cdf-cct", "deadlines"]
    drawn = timeline_figure({"fair": runs["fair"]})
    assert drawn is not None
    assert "flows under way" in to_svg(drawn)
    assert drawn.axes[0].get_ylim()[1] >= 1.05


def test_percentiles_along_an_axis_have_a_row_a_group(runs: dict[str, list[Result]]) -> None:
    summary, axis = runs["philae"][0].summary, Axis("load", (0.5, 0.9), False)
    figure = percentiles_figure({"philae": {0.5: summary, 0.9: summary}}, axis, COFLOWS)
    assert figure is not None
    assert len(figure.axes) == 5 * 3
    assert percentiles_figure({"philae": {0.5: {"coflows": {"count": 0}}}}, axis, COFLOWS) is None


def test_the_report_page_is_whole(runs: dict[str, list[Result]], tmp_path: Path) -> None:
    folders = [own[0].save(tmp_path / name) for name, own in runs.items()]
    page = render_report(read_runs(folders))
    html.parser.HTMLParser().feed(page)
    for expected in (
        "coflows on 4 ports, seed 1",
        "<h3>Bin-3, width up to 7, above 100 MB (1)</h3>",
        "<h3>Learning</h3>",
        "<h3>Coordinator</h3>",
        "<h3>Jobs</h3>",
        "<h3>What the mechanisms did</h3>",
        "Size of coflows as philae estimated it",
        "Flows that have begun and not ended per port",
        '<th scope="row">intervals missed</th><td>10.0%</td>',
    ):
        assert expected in page
    assert "queued" not in page


def test_runs_of_other_coflows_are_not_compared(runs: dict[str, list[Result]]) -> None:
    runs["aalo"][0].manifest["inputs"][0]["sha256"] = "other"
    page = render_report([own[0] for own in runs.values()])
    assert page.count("<h2>coflows on 4 ports") == 2
