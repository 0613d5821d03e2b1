"""The sentences at the beginning of a comparison's page, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import emu
from emu.families.coflows.family import FAMILY as COFLOWS
from emu.families.registry import find_family
from emu.report.answer import answer_of, answer_over
from emu.report.conditions import as_text, conditions_of
from emu.report.plots import Drawing
from emu.report.report import render_report
from emu.results.measures import Row
from emu.results.text_tables import TIMES
from workloads.arrow import optional_column

JOBS = find_family("jobs")
NONE = (math.nan, math.nan)


def row_of(
    scheduler: str, mean: float, p99: float, best: tuple[str, ...], ratio: float, group: str = "short"
) -> Row:
    figures = {"mean": (mean, 1.0), "p99": (p99, math.nan)}
    ratios = {"mean": (ratio, 0.02), "p99": (ratio, math.nan)}
    return Row(scheduler, group, 10, figures, ratios, frozenset(best), {}, math.nan)


def test_the_least_is_named_with_its_ratio_to_the_first() -> None:
    rows = [row_of("sparrow", 100.0, 400.0, (), 1.0), row_of("hawk", 50.0, 300.0, ("mean", "p99"), 0.5)]
    assert answer_of(rows, JOBS) == [
        f"Short jobs: the mean completion time is least under hawk, 50.0±1.0 s, 0.500±0.020{TIMES} that under sparrow "
        f"(100.0±1.0 s); the p99 is least under hawk, 300 s, 0.500{TIMES} that under sparrow (400 s)."
    ]


def test_the_first_is_compared_with_the_others() -> None:
    rows = [row_of("hawk", 50.0, 300.0, ("mean", "p99"), 1.0), row_of("sparrow", 100.0, 400.0, (), 2.0)]
    (text,) = answer_of(rows, JOBS)
    assert text.endswith(f"the p99 is least under hawk, 300 s (under sparrow 2.00{TIMES} that).")


def test_schedulers_that_differ_by_chance_are_named_together_and_equal_ones_are_called_equal() -> None:
    rows = [
        row_of("sparrow", 100.0, 400.0, (), 1.0),
        row_of("hawk", 51.0, 400.0, ("mean",), 0.51),
        row_of("eagle", 50.0, 400.0, ("mean",), 0.5),
    ]
    (text,) = answer_of(rows, JOBS)
    same = "and the same, to within chance or 1 %, under"
    want = (
        f"is least under eagle, 50.0±1.0 s, 0.500±0.020{TIMES} that under sparrow (100.0±1.0 s), {same} hawk"
    )
    assert f"{want} (51.0±1.0 s);" in text
    each = "400 s under sparrow, 400 s under hawk, 400 s under eagle"
    assert text.endswith(f"of the p99 no difference is shown: {each}.")
    rows = [row_of("sparrow", 90.0, 4.0, ("mean",), 1.0), row_of("eagle", 50.0, 4.0, ("mean",), 0.6)]
    rows.append(row_of("hawk", 400.0, 4.0, (), 4.0))
    (text,) = answer_of(rows, JOBS)
    assert f"least under eagle, 50.0±1.0 s, {same} sparrow (90.0±1.0 s);" in text


def test_each_class_has_a_sentence_and_all_jobs_have_one_where_there_are_no_classes() -> None:
    def both(group: str) -> list[Row]:
        return [row_of("a", 2.0, 2.0, (), 1.0, group), row_of("b", 1.0, 1.0, ("mean",), 0.5, group)]

    found = answer_of(
        [row for group in ("short", "long", "all", "constrained short") for row in both(group)], JOBS
    )
    assert [text.partition(":")[0] for text in found] == ["Short jobs", "Long jobs"]
    assert [text.partition(":")[0] for text in answer_of(both("all"), JOBS)] == ["All jobs"]
    assert answer_of(both("all")[:1], JOBS) == []


def test_the_page_begins_with_the_conditions() -> None:
    given: dict[str, Any] = {
        "workload": "yahoo",
        "nodes": 60,
        "workload_options": {"jobs": 30},
        "in_process": True,
    }
    run = emu.run("hawk", **given, network_delay=0.002)
    found = conditions_of([run])
    assert found == {
        "offered load": f"{run.summary['offered_load']:.1f}",
        "jobs": "30",
        "tasks": f"{run.summary['engine']['tasks']:,}",
        "seeds": "1 alone, so no figure has an interval",
        "failures": "none",
        "short cut-off": "90.58 s",
        "cluster": "homogeneous",
        "network delay": "2 ms",
    }
    page = render_report([run])
    for label, value in found.items():
        assert f"<div><dt>{label}</dt><dd>{value}</dd></div>" in page
    other = emu.run(
        "hawk",
        **given,
        seed=2,
        warmup=5,
        dynamics_mtbf="1 h",
        dynamics_mttr="60 s",
        dynamics_straggler_share=0.1,
        estimates_error="random",
        estimates_size=0.3,
        parameters={"probe_ratio": 3},
    )
    both = conditions_of([run, other])
    assert both["seeds"] == "1 to 2 (workload and scheduler), means ± 95 %"
    assert both["failures"] == "mtbf 60 min; mttr 60 s"
    assert both["stragglers"] == "share 0 to 0.1"
    assert both["network delay"] == "0.5 ms to 2 ms"
    assert both["error of estimates"] == "none, random"
    assert {"warm-up", "estimates.size", "hawk.probe_ratio"} <= set(both)
    assert as_text({"a": "1", "b": "2"}) == "a 1, b 2"


def test_deadlines_are_answered_first() -> None:
    runs = [emu.run(name, "deadline-coflows", in_process=True) for name in ("cs-mha", "dcoflow")]
    rates = {run.summary["scheduler"]: run.summary["coflows"]["acceptance_rate"] for run in runs}
    best = max(rates, key=lambda name: rates[name])
    page = str(render_report(runs))
    assert f"Deadlines: {best} meets most of them, {100 * rates[best]:.1f}%" in page
    ended = {
        run.summary["scheduler"]: int(np.isfinite(optional_column(run.coflows, "cct_s")).sum())
        for run in runs
    }
    counts = ", ".join(f"{count} under {name}" for name, count in ended.items())
    assert f"of the coflows that ended, which are not the same ones: {counts}." in page


def test_deadlines_that_seeds_do_not_tell_apart_are_called_the_same() -> None:
    def runs(*rates: float) -> list[Any]:
        return [
            SimpleNamespace(
                summary={"coflows": {"count": 9, "acceptance_rate": rate}}, coflows=table, warmup_s=0.0
            )
            for rate in rates
        ]

    table = pa.table(
        {
            "met_deadline": [True, False, False, False, None],
            "arrival_s": [1.0] * 5,
            "deadline_s": [3.0, 3.0, 3.0, 3.0, None],
            "ideal_s": [2.0, 2.0, 2.0, 2.5, 1.0],
            "finish_s": [3.0, 4.0, None, 4.0, 9.0],
        }
    )
    results: Any = {"a": runs(0.5, 0.6, 0.4), "b": runs(0.6, 0.5, 0.45), "c": runs(0.1, 0.2, 0.05)}
    text, missed = COFLOWS[Drawing].answers(results)
    one = "3 rejected or dropped, 3 ended late, 3 too long even alone"
    assert missed == (
        f"Coflows that missed theirs: under a {one}; under b {one}; under c {one}. No scheduler meets what takes too "
        "long even alone; a higher fabric.port_speed does."
    )
    assert text.startswith(
        "Deadlines: b meets most of them, 52±19%; the same, to within chance or 1 %: a 50±25% (c "
    )
    del results["c"]
    text = COFLOWS[Drawing].answers(results)[0]
    assert text.startswith("Deadlines: no difference is shown in the share that is met: b 52±19%, a 50±25%.")


@pytest.mark.slow("whole runs with their figures")
def test_each_counter_has_a_meaning() -> None:
    for family, scheduler in (("jobs", "hawk"), ("coflows", "philae"), ("dags", "tetris")):
        counted = find_family(family).counters()
        assert all(counted.values())
        workload = {"jobs": "yahoo", "coflows": "synthetic-coflows", "dags": "facebook-mapreduce"}[family]
        options = {"jobs": {"jobs": 10}, "coflows": {"coflows": 10}, "dags": {"jobs": 3, "tasks": 60}}[family]
        nodes = None if family == "coflows" else 30
        run = emu.run(scheduler, workload, nodes, workload_options=options, in_process=True)
        assert set(run.counters) <= set(counted)


def test_over_a_sweep_the_points_are_named_at_which_each_is_best() -> None:
    def at(ratio: float, best: tuple[str, ...]) -> list[Row]:
        return [
            row_of("sparrow", 100.0, 400.0, ("mean",) if "sparrow" in best else (), 1.0),
            row_of("hawk", 100.0 * ratio, 400.0, ("mean",) if "hawk" in best else (), ratio),
        ]

    points = {
        "load 0.3": at(1.1, ("sparrow",)),
        "load 0.6": at(0.8, ("hawk",)),
        "load 0.8": at(0.5, ("hawk",)),
        "load 0.9": at(0.4, ("hawk",)),
    }
    (text,) = answer_over(points, JOBS)
    assert text == (
        f"Short jobs: the mean completion time is least under hawk at 3 of 4 points (0.400{TIMES} to 0.800{TIMES} that "
        "under sparrow), under sparrow at load 0.3; the p99 is called equal under all at all 4 points."
    )
    del points["load 0.3"]
    assert "is least under hawk at all 3 points (0.400" in answer_over(points, JOBS)[0]
    points |= {
        "load 0.7": at(1.0, ()),
        "load 0.5": at(1.0, ()),
        "load 0.4": at(1.0, ()),
        "load 0.2": at(1.0, ()),
    }
    assert "under hawk at 3 of 7 points" in (text := answer_over(points, JOBS)[0])
    assert "under sparrow), called equal under all at 4 of 7 points;" in text
    for place in ("load 0.2", "load 0.4", "load 0.5", "load 0.7"):
        del points[place]
    points["load 0.3"] = at(1.0, ("sparrow", "hawk"))
    assert "under sparrow and hawk at load 0.3" in answer_over(points, JOBS)[0]
    points["load 0.2"] = []  # it has no comparison
    assert "hawk at 3 of 4 points" in answer_over(points, JOBS)[0]
    assert answer_over({"load 0.3": points["load 0.3"]}, JOBS) == []
