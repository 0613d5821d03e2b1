"""What became of coflows with deadlines, in one run and in several that are compared."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from coflow_cases import SWITCH, four_coflows, outcome_of, result_of

from actors.kernel.cost import COST
from actors.schedulers.coflows.learned_and_admitted import Admitted
from emu.families.coflows.deadlines import (
    DEADLINES,
    GAINS_HEAD,
    compare_gains,
    deadline_tables,
    describe_deadlines,
    gain_tables,
    gains_of,
    slack_used,
)
from emu.families.coflows.family import FAMILY as COFLOWS
from emu.families.coflows.plots import deadlines_figure, gains_figure
from emu.families.coflows.results import coflows_table, decision_figures
from emu.report.drawing import line_look
from emu.report.percentile_plots import Point, percentile_sheets, shares_figure
from emu.report.plots import Drawing
from emu.report.scales import short_labels
from emu.results.comparison import Comparison
from emu.results.result import Result
from emu.results.run_groups import Axis
from workloads.arrow import optional_column

NS = 10**9
NEVER = -1
ALL = np.ones(4, bool)


def admitted(verdicts: list[bool], admitted_s: list[int], rejected_s: list[int]) -> Admitted:
    at, no = (np.where(np.array(s) < 0, NEVER, np.array(s) * NS) for s in (admitted_s, rejected_s))
    return Admitted(np.array(verdicts), at, no, np.zeros(3), np.zeros(4))


# The first two have deadlines, 5 s and 2 s after they arrive, at 0 and 10 s.
BOTH = admitted([True, True, True, True], [1, 11, 20, 30], [NEVER, 10, NEVER, NEVER])
FIRST = admitted([True, False, True, True], [1, 10, 20, 30], [NEVER, 11, NEVER, NEVER])
NEITHER = admitted([False, False, True, True], [NEVER, NEVER, 20, 30], [2, 11, NEVER, NEVER])


def run_of(name: str, second_s: float, verdicts: Admitted | None = None, seed: int = 1) -> Result:
    """A run in which the first coflow takes 5 s, as long as it may, and the second one so long."""
    return result_of(name, outcome_of(four_coflows(), [5, second_s, 200, 400], admitted=verdicts), seed)


def test_times_of_admission_and_rejection_by_hand() -> None:
    both = run_of("a", 2.5, BOTH).summary["coflows"]
    assert both["admission"] == {
        "admitted": 1.0,
        "admitted_after": {"mean": 1.0, "p50": 1.0, "p90": 1.0},
    }  # what was rejected first, at 10 s, is not counted as rejected
    assert (both["acceptance_rate"], both["prediction_error"]) == (0.5, 0.5)
    first = run_of("a", 2.0, FIRST).summary["coflows"]
    assert first["admission"]["admitted"] == 0.5
    assert first["admission"]["rejected_after"]["mean"] == 1.0  # its admission at 10 s was taken back
    assert (first["acceptance_rate"], first["prediction_error"]) == (1.0, 0.0)
    neither = run_of("a", 2.0, NEITHER).summary["coflows"]
    assert neither["admission"] == {"admitted": 0.0, "rejected_after": {"mean": 1.5, "p50": 1.5, "p90": 1.9}}
    assert "prediction_error" not in neither
    assert "admission" not in run_of("a", 2.0).summary["coflows"]
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), [5, 2, 9, 9], admitted=FIRST), SWITCH)
    assert describe_deadlines(table, np.array([False, True, True, True]))["admission"]["admitted"] == 0.0
    assert describe_deadlines(table, np.array([False, False, True, True])) == {}


def test_bytes_of_late_and_dropped_coflows_by_hand() -> None:
    # The second coflow ends late; then it is dropped, with a tenth of it sent. Those without deadlines are left out.
    size = optional_column(four_coflows().coflows, "size_bytes")
    late = run_of("a", 2.5, BOTH)
    assert late.coflows["wasted_bytes"].to_pylist() == [0.0, size[1], None, None]
    assert late.summary["coflows"]["wasted"] == {
        "late_bytes": size[1], "dropped_bytes": 0.0, "share": size[1] / (size[0] + size[1])
    }  # fmt: skip
    dropped = outcome_of(
        four_coflows(),
        [5, None, 200, 400],
        admitted=BOTH._replace(sent_bytes=np.array([0.0, size[1] / 10, 0.0, 0.0])),
    )
    table = coflows_table(four_coflows(), dropped, SWITCH)
    assert table["wasted_bytes"].to_pylist() == [0.0, size[1] / 10, None, None]
    assert describe_deadlines(table, ALL)["wasted"]["dropped_bytes"] == size[1] / 10
    # Without admission it is not known what a coflow had sent that left.
    left = outcome_of(four_coflows(), [5, None, 200, 400])
    assert coflows_table(four_coflows(), left, SWITCH)["wasted_bytes"].to_pylist() == [0.0, None, None, None]


def test_rows_and_the_columns_that_are_shown() -> None:
    results = {"a": [run_of("a", 2.5, BOTH), run_of("a", 2.0, FIRST, 2)], "b": [run_of("b", 2.0)] * 2}
    found = DEADLINES.means(results)
    own, other = found.values()
    size = optional_column(four_coflows().coflows, "size_bytes")
    late = size[1] / (size[0] + size[1])
    assert [own[name][0] for name in ("met", "admitted", "late", "rejected after (s)")] == [
        0.75,
        0.75,
        0.25,
        1,
    ]
    assert own["CCT / alone"][0] == pytest.approx((5 / 4 + (5 / 4 + 2) / 2) / 2)
    assert other["met"] == (1.0, 0.0)
    assert math.isnan(other["admitted"][0])
    assert (own["wasted"][0], other["wasted"]) == (pytest.approx(late / 2), (0.0, 0.0))
    assert deadline_tables({"b": results["b"]})[0].head[1:] == ["met", "wasted", "CCT / alone"]
    assert deadline_tables(results)[0].rows[1][2:4] == ["-", "-"]
    lines = Comparison(results, "", {}).to_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("coflows with a deadline; "))
    assert lines[at + 1].split()[:3] == ["met", "admitted", "late"]
    assert lines[at + 1].split()[3] == "wasted"
    assert lines[at + 3].split() == ["b", "100.0%", "-", "-", "0.0%", "1.625", "-", "-"]
    assert DEADLINES.means({}) == {}


def test_gains_by_hand() -> None:
    results = {
        "a": [run_of("a", 2.5, seed=s) for s in (1, 2)],  # meets one of two
        "b": [run_of("b", took, seed=s) for s, took in ((1, 2.0), (2, 3.0))],  # both, and one
    }
    assert gains_of(results, "b", "acceptance_rate") == [1.0, 0.0]
    percentiles = compare_gains(results)["b"]["acceptance_rate"]
    assert percentiles["count"] == 2
    assert [percentiles[p] for p in GAINS_HEAD] == pytest.approx([0.01, 0.1, 0.5, 0.9, 0.99])
    none = {"a": [replace(r, summary=_without(r.summary)) for r in results["a"]], "b": results["b"]}
    assert compare_gains(none) == {"b": {}}
    assert gain_tables({"b": {}}, none)[0].caption.endswith("; 2 seeds in which a met none left out")
    assert compare_gains({name: runs[:1] for name, runs in results.items()}) == {}


def _without(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary in which no deadline was met."""
    return {
        **summary,
        "coflows": {**summary["coflows"], **dict.fromkeys(COFLOWS[Drawing].shares.values(), 0.0)},
    }


def test_the_share_of_the_slack_that_was_used() -> None:
    table = run_of("a", 2.5, FIRST).coflows
    assert slack_used(table, "admitted_s", 0.0) == pytest.approx([0.2, math.nan], nan_ok=True)
    assert slack_used(table, "finish_s", 0.0).tolist() == [1.0, 1.25]
    assert slack_used(table, "finish_s", 5.0).tolist() == [1.25]


def test_figures_end_at_the_shares() -> None:
    results = {"a": [run_of("a", 2.5, FIRST)], "b": [run_of("b", 2.0)]}
    figure = deadlines_figure(results)
    assert figure is not None
    admission, ended = figure.axes
    (line,) = admission.lines  # b has no admission
    assert line.get_ydata()[-1] == 0.5
    assert [line.get_ydata()[-1] for line in ended.lines] == [0.5, 1.0]
    assert [line.get_ydata()[-2] for line in ended.lines] == [0.5, 1.0]
    without = {"a": [result_of("a", outcome_of(four_coflows(), [None] * 4))]}
    assert deadlines_figure(without) is None
    assert gains_figure(results) is None
    seeds = {name: [run_of(name, took, seed=s) for s in (1, 2)] for name, took in (("a", 2.5), ("b", 2.0))}
    gains = gains_figure(seeds)
    assert gains is not None
    assert set(gains.axes[0].lines[1].get_xdata()) == {1.0}


def test_shares_against_an_axis() -> None:
    axis = Axis("rate_per_s", (1.0, 2.0), False)
    points = [
        Point(name, {"rate_per_s": rate}, run_of(name, took).summary)
        for name, took in (("a", 2.0), ("b", 2.5))
        for rate in axis.values
    ]
    sheets = {sheet.stem: sheet for sheet in percentile_sheets([axis], points)}
    assert [*sheets] == ["percentiles", "shares"]
    assert sheets["shares"].caption == "Shares of coflows against rate_per_s"
    (place,) = sheets["shares"].drawn.axes  # weights make no difference
    assert place.get_ylim()[0] == 0.0
    lines = {c.get_label(): c.lines[0].get_ydata().tolist() for c in place.containers}
    assert lines == {"a": [1.0, 1.0], "b": [0.5, 0.5]}
    heavy = points[2].summary
    heavy["coflows"]["weighted_acceptance_rate"] = 0.25
    figure = shares_figure({"b": {1.0: heavy}}, axis, COFLOWS)
    assert figure is not None
    assert [place.get_title() for place in figure.axes] == [*COFLOWS[Drawing].shares]
    assert shares_figure({"b": {1.0: {"coflows": {}}}}, axis, COFLOWS) is None


def test_what_a_decision_takes() -> None:
    costs = np.array([(0, 5, 1, 0), (0, 3000, 1, 1), (0, 1000, 1, 1)], COST)
    outcome = replace(outcome_of(four_coflows(), [1, 1, 1, 1]), costs=costs)
    (found,) = decision_figures(outcome).values()
    assert (found["count"], found["mean"], found["p50"], found["max"]) == (2, 2e-6, 2e-6, 3e-6)
    assert decision_figures(replace(outcome, costs=costs[:1])) == {}


def test_sixteen_lines_and_long_texts_are_distinct() -> None:
    looks = {(line_look(n)["color"], line_look(n)["linestyle"]) for n in range(16)}
    assert len(looks) == 16
    steps = [f"draw count={n} max_width=10 ports=10; deadlines port_speed_bps='1 Gbps'" for n in (10, 20)]
    assert short_labels(steps) == ["count=10", "count=20"]
    assert short_labels([steps[0], steps[0] + " most=4"]) == [
        f"{text[:23]}…" for text in (steps[0], steps[0])
    ]
