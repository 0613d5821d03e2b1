"""Gantt charts of machines and of one job, and a job's running tasks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import emu
from emu.report.drawing import to_svg
from emu.report.gantt import early_clause, job_figure, machines_figure, running_figure, shown_job
from emu.results.result import Result
from tests.actors.dag_settings import mixed_dags
from workloads.conversion import as_dags
from workloads.dags import make_dag_workload
from workloads.errors import InputError
from workloads.jobs import make_workload
from workloads.requests import Requests

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
def test_the_time_in_which_tasks_fetch_is_marked() -> None:
    # Two reducers, each on a machine, fetch from 1 to 2 s and end at 3 s.
    work = make_dag_workload(
        "shuffle", [0], [2], [2, 2], [1] * 4, [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[4e9]
    )
    given = {"network_delay": 0.0, "network_scheduler": "sebf", "fabric_port_speed": "8 Gbps"}
    run = emu.run("drf", work, 2, **QUICK, **given, cluster="homogeneous")
    axes = machines_figure(run, [1]).axes[0]
    assert spans(axes, slice(0, 1)) == [(0, 1), (1, 2)]
    assert spans(axes, slice(1, 2)) == [(1, 1)]
    assert axes.collections[1].get_label() == "fetches input"
    axes = job_figure(run, 0).axes[0]
    assert spans(axes, slice(-1, None)) == [(1, 1), (1, 1)]


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


@pytest.mark.slow("whole runs with their figures")
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


@pytest.fixture(scope="module", params=["jobs", "dags"])
def evicting(request: pytest.FixtureRequest) -> Result:
    """Two nodes run a task of 10 s of job 0 each; at 4 s and 9 s jobs of higher priority take the place of one."""
    asked = Requests(priority=[0, 9, 9])
    jobs = make_workload("three", [0.0, 4.0, 9.0], [2, 1, 1], [10.0, 10.0, 3.0, 2.0], requests=asked)
    options = {"network_delay": 0.0, "preemption_mode": "restart", "slots": 1, **QUICK}
    if request.param == "dags":
        return emu.run("drf", as_dags(jobs), 2, **options)
    return emu.run("central-lwl", jobs, 2, short_cutoff=100.0, **options)


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.drawn
def test_attempts_that_were_evicted_are_drawn_hatched_and_counted(evicting: Result) -> None:
    assert evicting.attempts is not None
    attempts = evicting.attempts.to_pandas()
    assert attempts[["job_id", "end_s"]].to_numpy().tolist() == [[0, 4.0], [0, 9.0]]
    early = sorted(zip(attempts.start_s, attempts.end_s - attempts.start_s, strict=True))
    for figure in (machines_figure(evicting), job_figure(evicting, 0)):
        hatched = figure.axes[0].collections[-1]
        assert (hatched.get_hatch(), spans(figure.axes[0], slice(-1, None))) == ("/////", early)
        assert legend_of(figure)[-1] == "2 attempts that came to nothing"
        assert "left out" not in figure.axes[0].get_xlabel()
    assert len(spans(machines_figure(evicting).axes[0], slice(0, 1))) == 4
    assert early_clause(evicting) == early_clause(evicting, 0) == "; hatched: 2 attempts that came to nothing"
    assert (early_clause(evicting, 1), legend_of(machines_figure(evicting))) == (
        "",
        ["2 attempts that came to nothing"],
    )
    running = running_figure({"x": [evicting]}, 0).axes[0].lines[0]
    held = np.dot(running.get_ydata()[:-1], np.diff(running.get_xdata()))
    assert held == pytest.approx(20.0 + sum(length for _, length in early))


@pytest.mark.drawn
def test_charts_say_which_attempts_they_leave_out(evicting: Result) -> None:
    assert evicting.attempts is not None
    on_first = evicting.attempts["node"].to_pylist().count(0)
    shown = [
        f"{on_first} attempt{'s' * (on_first > 1)} that came to nothing{', of 2 in the run' * (on_first < 2)}"
    ]
    assert legend_of(machines_figure(evicting, [0])) == shown
    tables = {name: table for name, table in evicting.tables.items() if name != "attempts"}
    older = dataclasses.replace(evicting, tables=tables)
    for figure in (machines_figure(older), job_figure(older, 0)):
        assert (
            figure.axes[0]
            .get_xlabel()
            .endswith("; attempts that came to nothing are left out: no attempts.parquet")
        )


@pytest.mark.drawn
def test_an_attempt_is_in_the_row_of_its_task_or_of_its_stage(evicting: Result) -> None:
    assert evicting.tasks is not None
    assert evicting.attempts is not None
    rows, ends_s = [-0.4, -0.4], evicting.tasks["finish_s"].to_pylist()[:2]
    if evicting.family == "jobs":  # the task that ends last is in the first row
        rows[int(np.argmin(ends_s))] = 0.6
    hatched = job_figure(evicting, 0).axes[0].collections[-1]
    low = [float(path.vertices[:, 1].min()) for path in hatched.get_paths()]
    assert low == [rows[task] for task in evicting.attempts["task"].to_pylist()]


def test_without_tasks_there_is_none(result: Result, tmp_path: Path) -> None:
    bare = emu.run("drf", mixed_dags(), 2, in_process=True)
    with pytest.raises(InputError, match="the run has no tasks; run it with output"):
        machines_figure(bare)
    out = tmp_path / "c"
    emu.compare(["drf", "sjf"], mixed_dags(), 2, in_process=True, output_tasks=True, out=out)
    assert {"gantt-drf.svg", "gantt-job-sjf.svg", "running.svg"} <= {file.name for file in out.iterdir()}
