"""Gantt charts of machines and of one job, and a job's running tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu.report.drawing import to_svg
from emu.report.gantt import job_figure, machines_figure, running_figure, shown_job
from emu.results.result import Result
from tests.actors.dag_settings import mixed_dags
from workloads.errors import InputError

QUICK: dict[str, Any] = {"in_process": True, "output_tasks": True}


@pytest.fixture(scope="module")
def result() -> Result:
    return emu.run("drf", mixed_dags(), 2, in_process=True, output_tasks=True)


def spans(axes: Any, which: slice = slice(None)) -> list[tuple[float, float]]:
    """Return start and length of the bars of some collections."""
    corners = [path.vertices[:, 0] for bars in axes.collections[which] for path in bars.get_paths()]
    return sorted((float(x.min()), float(np.ptp(x))) for x in corners)


@pytest.mark.drawn
def test_a_machine_has_a_bar_for_each_of_its_tasks(result: Result) -> None:
    axes = machines_figure(result, [1]).axes[0]
    assert result.tasks is not None
    own = result.tasks.to_pandas().query("node == 1")
    bars = spans(axes)
    wanted = sorted(zip(own.start_s, own.finish_s - own.start_s, strict=True))
    assert np.array(bars) == pytest.approx(np.array(wanted))
    with pytest.raises(InputError, match="nodes: the run has no node 2; it has 0 to 1"):
        machines_figure(result, [2])


@pytest.mark.drawn
def test_a_job_has_a_row_for_each_stage(result: Result) -> None:
    job = shown_job({"drf": [result]})
    axes = job_figure(result, job).axes[0]
    row = result.jobs.to_pandas().set_index("job_id").loc[job]
    assert len(spans(axes)) == row.num_tasks
    assert max(start + length for start, length in spans(axes)) == pytest.approx(row.jct_s)
    assert all(float(place).is_integer() for place in axes.get_yticks())
    with pytest.raises(InputError, match="job 99 has no tasks in the run"):
        job_figure(result, 99)


@pytest.mark.drawn
def test_all_tasks_of_machines_are_drawn_however_many() -> None:
    many = emu.run("sparrow", "poisson", 13, workload_options={"jobs": 10_314, "nodes": 13}, **QUICK)
    figure = machines_figure(many, range(13))
    (bars,) = figure.axes[0].collections
    assert len(bars.get_paths()) == 10_314
    assert bars.get_rasterized()
    assert len(to_svg(figure)) < 1_000_000
    assert figure.axes[0].get_ylabel() == ""
    assert machines_figure(many).axes[0].get_ylabel() == "6 of 13 nodes, those that ran most"


@pytest.mark.drawn
def test_flows_that_did_not_end_have_no_bar_and_are_counted() -> None:
    late = emu.run("dcoflow", "deadline-coflows", **QUICK)
    flows = late.tables["flows"].to_pandas()
    lost = int(flows.finish_s.isna().sum())
    assert lost > 0
    axes = machines_figure(late, range(int(late.summary["nodes"]))).axes[0]
    assert axes.get_xlabel() == f"virtual time (s); {lost} flows that did not end are left out"
    assert len(spans(axes)) == len(flows) - lost


@pytest.mark.drawn
def test_running_tasks_of_a_job_begin_and_end_with_it(result: Result) -> None:
    line = running_figure({"drf": [result]}, 3).axes[0].lines[0]
    assert line.get_ydata()[-1] == 0
    assert result.tasks is not None
    own = result.tasks.to_pandas().query("job_id == 3")
    assert max(line.get_ydata()) <= len(own)
    assert np.trapezoid(np.append(0, line.get_ydata()[:-1]), line.get_xdata()) >= 0


def test_without_tasks_there_is_none(result: Result, tmp_path: Path) -> None:
    bare = emu.run("drf", mixed_dags(), 2, in_process=True)
    with pytest.raises(InputError, match="the run has no tasks; run it with output"):
        machines_figure(bare)
    out = tmp_path / "c"
    emu.compare(["drf", "sjf"], mixed_dags(), 2, in_process=True, output_tasks=True, out=out)
    assert {"gantt-drf.svg", "gantt-job-sjf.svg", "running.svg"} <= {file.name for file in out.iterdir()}
