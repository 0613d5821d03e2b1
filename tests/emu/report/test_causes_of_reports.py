"""The sections of a report about where the time went."""

from pathlib import Path
from typing import Any

import pytest

import emu
from emu.report.causes import causes_section, recorded_all, slowest_section, time_by_cause
from emu.report.report import render_report

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 60,
    "workload_options": {"jobs": 30},
    "in_process": True,
}


def test_a_report_shows_where_the_time_went(tmp_path: Path) -> None:
    kept = {"output_events": "all", "output_tasks": True}
    runs = {name: emu.run(name, **SMALL, **kept, out=tmp_path / name) for name in ("sparrow", "hawk")}
    (text,) = causes_section(time_by_cause({name: [run] for name, run in runs.items()}))
    assert "Where the time went" in text
    for name, run in runs.items():
        means = emu.causes(run).to_pandas().drop(columns="job_id").mean() / 1e9
        assert means.sum() == pytest.approx(run.summary["jobs"]["all"]["mean"])
        assert f"<td>{name}</td>" in text.replace(' class="name"', "")
    (slowest,) = slowest_section(runs["hawk"])
    worst = int(runs["hawk"].jobs["jct_s"].to_numpy().argmax())
    assert f"job {worst}" in slowest
    assert "The longest wait" in slowest
    page = render_report(list(runs.values()))
    assert page.count("Where the time went") == 1
    assert page.count("The slowest") == 2


def test_a_run_without_events_has_no_such_sections() -> None:
    run = emu.run("sparrow", **SMALL)
    assert not recorded_all(run)
    assert causes_section(time_by_cause({"sparrow": [run]})) == slowest_section(run) == []
    few = emu.run("sparrow", **SMALL, output_events="job=3")
    assert not recorded_all(few)


def test_notebooks_show_results() -> None:
    comparison = emu.compare(["sparrow", "hawk"], **SMALL)
    assert "hawk" in comparison._repr_html_()
    result = comparison.results["hawk"][0]
    assert result._repr_html_().startswith("<pre>")
    assert "<table>" in emu.explain(result, 3)._repr_html_()
