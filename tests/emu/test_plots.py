"""`emu.plots`: what each figure shows beside the tables of the runs, and names and runs that it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu import plots
from emu.results.comparison import Comparison
from emu.results.metrics import confidence_95
from workloads.errors import InputError

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 60,
    "workload_options": {"jobs": 30},
    "in_process": True,
    "output_tasks": True,
}


@pytest.fixture(scope="module")
def both() -> Comparison:
    return emu.compare(["sparrow", "hawk"], **SMALL, seeds=2)


def legend_of(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_cdf_is_of_the_metric_and_the_group(both: Comparison) -> None:
    for metric, column in (("", "jct_s"), ("slowdown", "slowdown")):
        axes = plots.cdf(both, metric, "short").axes[0]
        tables = [run.jobs.to_pandas().query("job_class == 'short'") for run in both.results["hawk"]]
        values = np.concatenate([table[column] for table in tables])
        x = axes.lines[1].get_xdata()
        assert (x[0], x[-1]) == pytest.approx((values.min(), values.max()))
    assert "short jobs (s)" in plots.cdf(both, group="short").axes[0].get_xlabel()
    assert plots.ccdf(both).axes[0].get_yscale() == "log"


def test_schedulers_are_drawn_as_they_are_named(both: Comparison) -> None:
    assert legend_of(plots.cdf(both, schedulers=["hawk", "sparrow"])) == ["hawk", "sparrow"]
    assert legend_of(plots.cdf(both, schedulers=["hawk"])) == ["hawk"]


def test_bars_are_the_figures_of_the_summary(both: Comparison) -> None:
    figure = plots.bars(both, "wait", ["long", "short"], ["p90", "mean"])
    assert [axes.get_title() for axes in figure.axes] == ["long jobs", "short jobs"]
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    wanted = [s["jobs"]["short"]["wait"][name] for s in both.summaries for name in ("p90", "mean")]
    assert heights == pytest.approx(wanted)
    assert figure.axes[0].get_ylabel() == "queueing delay (s)"
    assert len(figure.axes[1].collections) == 2  # intervals over two seeds, for each scheduler


def test_a_timeline_has_the_rows_of_each_scheduler(both: Comparison) -> None:
    used, short, long = plots.timeline(both).axes
    for number, name in enumerate(("sparrow", "hawk")):
        table = both.results[name][0].timeline
        for axes, column in ((used, "utilisation"), (short, "queued_short"), (long, "queued_long")):
            assert axes.lines[number].get_ydata().tolist() == table[column].to_pylist()


def test_a_timeline_leaves_out_queues_in_which_nothing_waits() -> None:
    three = emu.variant("sparrow", probe_ratio=3)
    idle = emu.compare(["sparrow", three], **SMALL | {"nodes": 20_000})
    assert [axes.get_ylabel() for axes in plots.timeline(idle).axes] == ["utilisation"]


@pytest.mark.slow("whole runs with their figures")
def test_a_sweep_has_a_line_for_each_scheduler_and_other_key() -> None:
    runs = [
        emu.run(name, "yahoo", nodes, workload_options={"jobs": 30}, in_process=True, network_delay=delay)
        for name in ("sparrow", "hawk")
        for nodes in (50, 100)
        for delay in (0.0005, 0.005)
    ]
    figure = plots.sweep(runs, statistics=["p50"], groups=["short"])
    assert [axes.get_xlabel() for axes in figure.axes] == ["nodes"]
    assert legend_of(figure) == [
        f"{name} network.delay={delay}" for name in ("sparrow", "hawk") for delay in ("0.5 ms", "5 ms")
    ]
    points = figure.axes[0].lines[0].get_data()
    assert points[1].tolist() == [runs[i].summary["jobs"]["short"]["p50"] for i in (0, 2)]
    assert plots.sweep(runs, along="network.delay").axes[-1].get_xlabel() == "network.delay"
    with pytest.raises(
        InputError, match=r"along: the runs do not differ in 'load', but in nodes, network\.delay"
    ):
        plots.sweep(runs, along="load")
    with pytest.raises(InputError, match=r"the runs differ in nodes, network\.delay: give those that can be"):
        plots.cdf(runs)
    with pytest.raises(InputError, match="the runs do not differ in a key"):
        plots.sweep(runs[:1])


def test_a_gantt_chart_of_a_job_begins_with_its_arrival(both: Comparison) -> None:
    run = both.results["hawk"][0]
    assert run.tasks is not None
    tasks = run.tasks.to_pandas()
    job = int(tasks.job_id.value_counts().loc[lambda counts: counts <= 100].index[0])
    own = tasks[tasks.job_id == job]
    arrival = run.jobs.to_pandas().set_index("job_id").submit_s[job]
    axes = plots.gantt(run, job=job).axes[0]
    waits, runs = (
        sorted(np.ptp(path.vertices[:, 0]) for path in bars.get_paths()) for bars in axes.collections
    )
    assert waits == pytest.approx(sorted(own.start_s - arrival))
    assert runs == pytest.approx(sorted(own.finish_s - own.start_s))
    assert len(plots.gantt(run, nodes=[4, 5, 6]).axes[0].get_yticks()) == 3
    with pytest.raises(InputError, match="nodes and job: give one of them"):
        plots.gantt(run, nodes=[1], job=3)
    with pytest.raises(InputError, match="job 99 has no tasks in the run"):
        plots.gantt(run, job=99)
    with pytest.raises(InputError, match="shows one run, and 4 are given"):
        plots.gantt(both)


@pytest.mark.slow("whole runs with their figures")
def test_a_gantt_chart_of_coflows_is_of_flows_and_ports() -> None:
    run = emu.run(
        "aalo", "synthetic-coflows", workload_options={"coflows": 10}, in_process=True, output_tasks=True
    )
    assert run.flows is not None
    flows = run.flows.to_pandas()
    widest = int(flows.coflow_id.mode()[0])
    axes = plots.gantt(run, job=widest).axes[0]
    assert len(axes.collections[1].get_paths()) == (flows.coflow_id == widest).sum() > 100
    assert axes.get_xlabel() == f"time since coflow {widest} arrived (s)"
    assert (
        plots.gantt(run, nodes=[int(flows.ingress[0])])
        .axes[0]
        .get_yticklabels()[0]
        .get_text()
        .startswith("port")
    )


def test_the_look_is_that_of_all_text(both: Comparison, tmp_path: Path) -> None:
    figure = plots.bars(both, look=plots.Look(font_size=7.0, width=3.33))
    assert figure.get_size_inches() == pytest.approx([3.33, 3.33 * 3.8 / 6.4])
    assert plots.bars(both, look=plots.Look(width=3.33)).axes[0].title.get_fontsize() == 7.5
    narrow = plots.bars(both, look=plots.Look(width=2.5))
    assert [axes.get_subplotspec().rowspan.start for axes in narrow.axes] == [0, 1]
    assert len({axes.get_ylabel() for axes in narrow.axes}) == 1
    plots.save(figure, tmp_path / "f.svg")
    axes = figure.axes[0]
    texts = [axes.title, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels()]
    sizes = {text.get_fontsize() for text in texts}
    assert sizes == {7.0}
    assert {text.get_fontsize() for text in figure.legends[0].get_texts()} == {7.0}
    later = plots.bars(both)
    assert later.axes[0].title.get_fontsize() == 9.0


def test_ratios_are_taken_seed_by_seed() -> None:
    grid = [
        emu.run(name, "yahoo", nodes, seed=seed, workload_options={"jobs": 12}, in_process=True)
        for name in ("sparrow", "hawk", "eagle")
        for nodes in (60, 100)
        for seed in (1, 2)
    ]
    figure = plots.ratio(grid, groups=["short"], statistics=["p90"])
    axes = figure.axes[0]
    assert axes.get_ylabel() == "completion time / that of sparrow"
    assert legend_of(figure) == ["hawk", "eagle"]
    p90 = {
        (r.summary["scheduler"], r.summary["nodes"], r.summary["seed"]): r.summary["jobs"]["short"]["p90"]
        for r in grid
    }
    for bars, name in zip(axes.containers, ("hawk", "eagle"), strict=True):
        each = np.array([[p90[name, n, s] / p90["sparrow", n, s] for s in (1, 2)] for n in (60, 100)])
        assert bars[0].get_ydata() == pytest.approx(each.mean(axis=1))
        half = [confidence_95(of.tolist())[1] for of in each]
        upper = [path.vertices[:, 1].max() for path in bars[2][0].get_paths()]
        assert upper == pytest.approx(each.mean(axis=1) + half)
    against = plots.ratio(grid, baseline="hawk", schedulers=["eagle"])
    assert legend_of(against) == ["eagle"]
    with pytest.raises(InputError, match="no run is of 'phoenix'"):
        plots.ratio(grid, baseline="phoenix")
    with pytest.raises(InputError, match="all runs are of 'sparrow'"):
        plots.ratio(grid[:4])
    with pytest.raises(
        InputError, match="baseline: want runs of one 'sparrow' at nodes 100; there is only hawk"
    ):
        plots.ratio(grid[:2] + grid[4:8])


@pytest.mark.drawn
def test_fonts_of_a_pdf_are_truetype(both: Comparison, tmp_path: Path) -> None:
    written = plots.save(plots.cdf(both), tmp_path / "f.pdf")[0].read_bytes()
    kinds = set(re.findall(rb"/Subtype /(Type\w+|CIDFont\w+)", written))
    assert kinds == {b"Type0", b"CIDFontType2"}
    assert b"/FontFile2" in written


def test_equal_figures_have_equal_bytes(both: Comparison, tmp_path: Path) -> None:
    for form in ("svg", "png", "pdf"):
        files = [plots.save(plots.cdf(both), tmp_path / f"{n}.{form}")[0] for n in range(2)]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert [path.name for path in plots.save(plots.cdf(both), tmp_path / "x")] == ["x.svg", "x.png"]


def test_a_figure_of_the_page_has_its_name(both: Comparison) -> None:
    assert len(plots.named(both, "cdf-short").axes) == 1
    with pytest.raises(InputError, match="these runs have no figure 'cdf-shrt'; did you mean 'cdf-short'"):
        plots.named(both, "cdf-shrt")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"metric": "wiat"}, "metric: unknown name 'wiat'; did you mean 'wait'"),
        ({"group": "shrt"}, "of: unknown name 'shrt'; did you mean 'short'"),
        ({"band": "all"}, "band: 'all' is not one of none, range, interval"),
        ({"schedulers": ["eagle"]}, "schedulers: no run is of 'eagle'"),
    ],
)
def test_wrong_names_are_refused(both: Comparison, wrong: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        plots.cdf(both, **wrong)
    with pytest.raises(InputError, match="statistics: unknown name 'p98'"):
        plots.bars(both, statistics=["p98"])
    with pytest.raises(InputError, match="no runs are given"):
        plots.cdf([])
