"""The sections of a report about where the time went."""

import re
from pathlib import Path
from typing import Any

import pytest

import emu
from emu.families.jobs.family import FAMILY as JOBS
from emu.report.causes_sections import (
    causes_section,
    causes_tables,
    explained_section,
    recorded_all,
    slowest_section,
    time_by_cause,
)
from emu.report.report import render_report
from emu.results.comparison_tables import behind_note
from emu.results.reasons import bottlenecks
from emu.results.text_tables import TIMES, number

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 60,
    "workload_options": {"jobs": 30},
    "in_process": True,
}


def test_a_report_shows_where_the_time_went(tmp_path: Path) -> None:
    kept = {"output_events": "all", "output_tasks": True}
    runs = {name: emu.run(name, **SMALL, **kept, out=tmp_path / name) for name in ("sparrow", "hawk")}
    (text,) = causes_section(time_by_cause({name: [run] for name, run in runs.items()}), JOBS)
    assert "Where the time went" in text
    for name, run in runs.items():
        means = emu.causes(run).to_pandas().drop(columns="job_id").mean() / 1e9
        assert means.sum() == pytest.approx(run.summary["jobs"]["all"]["mean"])
        assert f'<th scope="row">{name}</th>' in text
    (slowest,) = explained_section(runs["hawk"])
    worst = int(runs["hawk"].jobs["slowdown"].to_numpy().argmax())
    assert f"job {worst}" in slowest
    assert "The longest wait" in slowest
    page = render_report(list(runs.values()))
    assert page.count("<h3>Where the time went</h3>") == 1
    assert page.count("<h3>The slowest, explained</h3>") == 2
    assert page.count("<h3>The slowest jobs</h3>") == 1


def test_a_run_without_events_has_no_such_sections() -> None:
    run = emu.run("sparrow", **SMALL)
    assert not recorded_all(run)
    assert causes_section(time_by_cause({"sparrow": [run]}), JOBS) == explained_section(run) == []
    few = emu.run("sparrow", **SMALL, output_events="job=3")
    assert not recorded_all(few)
    (text,) = explained_section(emu.run("sparrow", **SMALL, output_events="all"))
    assert "with --set output.tasks=true this page explains them" in text


def test_what_was_not_slowed_down_is_not_among_the_slowest() -> None:
    kept = {"output_events": "all", "output_tasks": True}
    run = emu.run("sparrow", **{**SMALL, "nodes": 2_000}, **kept)
    runs = {"sparrow": [run]}
    slowed = run.jobs.to_pandas().query("slowdown >= 1.01").job_id
    shown = "".join(slowest_section(runs, {}))
    assert shown.count("<tr>") == (len(slowed) + 1 if len(slowed) else 0)
    assert len(slowed) < 5
    (text,) = explained_section(run)
    assert text.count("<h4>") == len(slowed)
    assert ("None took more than 1 % longer" in text) == (not len(slowed))


def test_notebooks_show_results() -> None:
    comparison = emu.compare(["sparrow", "hawk"], **SMALL)
    assert "hawk" in comparison._repr_html_()
    result = comparison.results["hawk"][0]
    assert "<table" in result._repr_html_()
    assert "<table>" in emu.explain(result, 3)._repr_html_()


def test_the_slowest_are_those_with_the_greatest_slowdown_beside_what_they_are_elsewhere(
    tmp_path: Path,
) -> None:
    runs = {name: [emu.run(name, **SMALL, output_events="all")] for name in ("sparrow", "hawk")}
    (text,) = slowest_section(runs, causes_tables(runs))
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in text.split("<tr>")[2:]]
    frames = {name: run.jobs.to_pandas().set_index("job_id") for name, (run,) in runs.items()}
    for name, frame in frames.items():
        worst = frame["slowdown"].nlargest(5)
        own = [row for row in rows if row[0] == name]
        assert [int(row[1]) for row in own] == worst.index.tolist()
        for row in own:
            job = int(row[1])
            assert row[2:4] == [number(frame["num_tasks"][job]), number(frame["jct_s"][job])]
            assert row[4:6] == [number(other["slowdown"][job]) for other in frames.values()]
            assert row[6].startswith(("behind", "other", "work"))
    bare = {"sparrow": [emu.run("sparrow", **SMALL)]}
    (text,) = slowest_section(bare, causes_tables(bare))
    assert "mostly" not in text


@pytest.mark.slow("whole runs with their figures")
def test_what_is_behind_is_stated() -> None:
    pairs = {"philae": (0.9, 0.05), "sebf": (0.97, 0.05)}
    note = behind_note("aalo", {"average": pairs, "P50": {"philae": (1.2, float("nan"))}})
    assert note == f"Below 1{TIMES} the other is faster: than aalo here philae (average)."
    assert behind_note("aalo", {"average": {"philae": (1.0, float("nan"))}}) == ""
    runs = [
        emu.run(name, "synthetic-coflows", workload_options={"coflows": 60, "ports": 20}, in_process=True)
        for name in ("aalo", "sebf")
    ]
    assert "the other is faster: than aalo here sebf (average)" in render_report(runs)


@pytest.mark.slow("whole runs with their figures")
def test_runs_are_called_by_what_distinguishes_them() -> None:
    runs = [
        emu.run("sparrow", **{**SMALL, "workload_options": {"jobs": 30, "load": load}}, parameters=parameters)
        for load in (0.5, 0.9)
        for parameters in ({"probe_ratio": 2}, {"probe_ratio": 3})
    ]
    heads = re.findall("<summary>(sparrow.*?)</summary>", render_report(runs))
    assert "sparrow probe_ratio=3 on yahoo, 60 nodes, workload_options.load 0.5, seed 1" in heads
    assert len(set(heads)) == len(heads) == 4


def test_the_page_of_a_comparison_of_coflows_has_causes_though_its_flows_are_dropped(tmp_path: Path) -> None:
    small = {"coflows": 12, "ports": 4}
    kept = {"output_events": "all", "output_tasks": True, "in_process": True}
    emu.compare(["fifo", "sebf"], "synthetic-coflows", workload_options=small, **kept, out=tmp_path / "both")
    page = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert page.count("<h3>Where the time went</h3>") == 1
    assert page.count("<h3>The slowest, explained</h3>") == 2
    assert page.count("The longest wait: ") >= 2
    assert "is not recorded" not in page


def test_what_several_schedulers_were_held_up_by_is_stated_once() -> None:
    own = ["the nodes were 100% busy while jobs arrived"]
    summaries = [{"bottlenecks": own}, {"bottlenecks": [*own, "b was busy"]}, {}]
    assert bottlenecks(summaries) == [*own, "b was busy"]


def test_dag_jobs_of_one_class_are_all_jobs() -> None:
    given: dict[str, Any] = {"output_events": "all", "output_tasks": True, "in_process": True}
    run = emu.run("drf", "query-dags", 5, workload_options={"jobs": 3}, **given)
    assert list(time_by_cause({"drf": [run]})) == ["all"]
