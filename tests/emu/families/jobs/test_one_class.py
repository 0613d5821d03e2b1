"""Where all jobs are of one class, results show all jobs alone, and explanations do not speak of classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import emu as package
from actors.causes import BEHIND_LONG, BEHIND_SHORT, BEHIND_TASKS
from emu.explaining.event_record import Record
from emu.families.jobs.run_causes import finer_causes_of_all
from emu.report.report import render_report
from emu.results.summary_text import render_summary
from tests.emu.conftest import Ended, small_workload

Cli = Callable[..., Ended]
KEPT = {"output_events": "all", "output_tasks": True, "in_process": True}
ONE_CLASS = {"above": 1e6, "below": 0.001}
"""Cut-offs above and below all mean task durations."""


def compared(cutoff_s: float) -> package.Comparison:
    return package.compare(
        ["random", "sparrow"], small_workload(), 20, short_cutoff=cutoff_s, long_partition=1.0, **KEPT
    )


@pytest.fixture(scope="module")
def comparisons() -> dict[str, package.Comparison]:
    return {name: compared(cutoff_s) for name, cutoff_s in {**ONE_CLASS, "between": 10.0}.items()}


@pytest.mark.parametrize("name", ONE_CLASS)
def test_tables_pages_and_records_have_all_jobs_alone(
    comparisons: dict[str, package.Comparison], name: str
) -> None:
    one = comparisons[name]
    assert {row.group for row in one.rows()} == {"all"}
    assert set(one.to_pandas()["job_class"]) == {"all"}
    assert {record["group"] for record in one.records()} == {"all", ""}
    run = one.runs[0][0]
    for text in (
        one.to_text(reasons=True),
        render_summary(run.summary),
        render_report([r for own in one.runs for r in own]),
    ):
        shown = re.sub(r"<(style|script).*?</\1>|short cut-off|shortest", "", text, flags=re.DOTALL)
        assert not re.search(r"\b(short|long) (jobs|tasks)\b|^ *(short|long) ", shown, re.MULTILINE)
    assert {"all", *({"short"} if name == "above" else {"long"})} <= run.summary["jobs"].keys()


def test_two_classes_are_shown(comparisons: dict[str, package.Comparison]) -> None:
    both = comparisons["between"]
    assert [row.group for row in both.rows()][::2] == ["short", "long", "all"]
    assert {record["group"] for record in both.records()} == {"all", "short", "long", ""}
    assert "short jobs (" in both.to_text()


@pytest.mark.parametrize("name", [*ONE_CLASS, "between"])
def test_a_story_names_the_class_of_a_job_where_there_are_two(
    comparisons: dict[str, package.Comparison], name: str
) -> None:
    stories = "\n".join(
        str(package.explain(run, int(job)))
        for run in (comparisons[name].runs[0][0],)
        for job in run.jobs["job_id"].to_pylist()
    )
    assert bool(re.search(r"\b(short|long) job", stories)) == (name == "between")
    assert bool(re.search(r"^ *job +class", stories, re.MULTILINE)) == (name == "between")
    assert "s of  jobs" not in stories
    assert "ran there in that time" in stories  # some job waited


def causes_of(run: package.Result) -> list[dict[str, int]]:
    return [of_job for _, of_job in finer_causes_of_all(run, Record.of(run.events), None)]


@pytest.mark.parametrize("name", [*ONE_CLASS, "between"])
def test_queueing_is_behind_the_tasks_of_a_class_where_there_are_two(
    comparisons: dict[str, package.Comparison], name: str
) -> None:
    run = comparisons[name].runs[0][0]
    causes = causes_of(run)
    assert {BEHIND_LONG, BEHIND_SHORT, BEHIND_TASKS} & causes[0].keys() == (
        {BEHIND_LONG, BEHIND_SHORT} if name == "between" else {BEHIND_TASKS}
    )
    behind = sum(
        of_job.get(cause, 0) for of_job in causes for cause in (BEHIND_LONG, BEHIND_SHORT, BEHIND_TASKS)
    )
    both = causes_of(comparisons["between"].runs[0][0])
    assert behind == sum(of_job[BEHIND_LONG] + of_job[BEHIND_SHORT] for of_job in both) > 0


def test_figures_of_one_class_are_of_all_jobs(emu: Cli, trace: Path) -> None:
    command = (
        "compare",
        "--schedulers",
        "random,sparrow",
        "--workload",
        trace,
        "--nodes",
        20,
        "--in-process",
    )
    assert emu(*command, "--short-cutoff", "1h", "--out", "both").code == 0
    assert sorted(path.stem for path in Path("both").glob("cdf-*.svg")) == ["cdf-all"]
    assert emu("plot", "both", "--kind", "bars", "--out", "bars.svg").code == 0
