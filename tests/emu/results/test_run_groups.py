"""What differs between runs: headings that name it, and percentiles against it that can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_grids import write

import emu as emu_package
from emu.families.jobs.family import FAMILY as JOBS
from emu.report.drawing import figure_style, new_figure
from emu.report.percentile_plots import Point, percentile_sheets, percentiles_figure, ratio_points
from emu.report.report import render_report
from emu.report.scales import fit_times
from emu.results.measures import read_measures
from emu.results.metrics import summarise_replicas
from emu.results.result import Result
from emu.results.run_groups import Axis, axes_of, group_runs
from emu.sweeps.report_input import read_runs
from emu.sweeps.sweep import sweep
from tests.emu.conftest import small_workload
from tests.emu.results.test_comparison import result_of

Cli = Callable[..., Any]
LOAD = Axis("load", (0.5, 0.7, 0.9), False)


def headings(page: str) -> list[str]:
    """What stands above the groups of a report."""
    found = re.findall(r'<(?:h2|details class="group"(?: open)?><summary)>(.*?)</', page)
    return [head for head in found if head not in ("Runs", "All runs together")]


def run_of(scheduler: str, seed: int = 1, sha: str = "0", **config: Any) -> Result:
    """A run with a configuration; its jobs do not matter."""
    run = result_of(scheduler, [10.0, 20.0], seed)
    run.manifest = {
        "config": {"workload": "w", "nodes": 10, "seed": seed, **config},
        "inputs": [{"what": "workload", "name": "w", "sha256": sha}],
        "versions": {},
    }
    return run


def summary_of(values: Sequence[float], nodes: int = 10) -> dict[str, Any]:
    """The summary of seeds whose p50, p90 and p99 of short jobs are these."""
    runs = []
    for seed, value in enumerate(values, 1):
        run = result_of("s", [10.0, 20.0], seed, nodes).summary
        figures = {"count": 5, "mean": value, "p50": value, "p90": value, "p99": value}
        runs.append({**run, "jobs": {"all": figures, "short": figures}})
    return runs[0] if len(runs) == 1 else summarise_replicas(runs)


# Headings


@pytest.mark.slow("whole runs with their figures")
def test_a_report_of_a_sweep_names_every_axis(emu: Cli, trace: Path) -> None:
    text = """\
workload = "small"
nodes = 20
[sweep]
scheduler = ["sparrow", "random"]
load = ["50%", "80%"]
"network.delay" = ["0.5 ms", "5 ms"]
"""
    result = sweep(write(text), in_process=True)
    page = Path(emu("report", result.path).out.strip()).read_text()
    assert headings(page) == [
        f"small on 20 nodes, load {load}, network.delay {delay}, seed 1"
        for load in ("0.5", "0.8")
        for delay in ("0.5 ms", "5 ms")
    ]
    assert "Completion times against load, network.delay 5 ms<" in page
    # Each group has the tolerance of its own network.
    assert page.count("equal is within 10 ms or 0.1 %") == page.count("equal is within 100 ms or 0.1 %") == 2


def test_loads_of_a_workload_from_python_are_an_axis(emu: Cli, trace: Path) -> None:
    source = {
        "workload": small_workload(),
        "nodes": 20,
        "sweep": {"scheduler": ["random"], "load": [0.5, 0.8]},
    }
    result = sweep(source, in_process=True, out="s")
    page = render_report(read_runs([result.path]))
    assert headings(page) == [f"small on 20 nodes, offered_load {load}, seed 1" for load in ("0.5", "0.8")]


def test_one_size_more_is_a_heading_more(emu: Cli, trace: Path) -> None:
    for nodes in (9, 12):
        emu("run", "--scheduler", "random", "--workload", "small", "--nodes", nodes, "--in-process",
            "--out", f"n{nodes}")  # fmt: skip
    page = render_report(read_runs(["n9", "n12"]))
    assert headings(page) == ["small on 9 nodes, seed 1", "small on 12 nodes, seed 1"]
    assert "Completion times against nodes" in page


def test_runs_of_one_comparison_have_no_axis(emu: Cli, trace: Path) -> None:
    emu("compare", "--schedulers", "random,sparrow", "--workload", "small", "--nodes", 9, "--seeds", 2,
        "--in-process", "--out", "c")  # fmt: skip
    runs = read_runs(["c"])
    (group,) = group_runs(runs)
    assert (group.at, list(group.results)) == ({}, ["random", "sparrow"])
    assert axes_of([group]) == []
    assert "All runs together" not in render_report(runs)


def test_seeds_that_follow_the_runs_seed_are_no_axis() -> None:
    runs = [
        run_of(name, seed, sha=str(seed), workload_seed=seed, constraints={"seed": seed})
        for name in ("a", "b")
        for seed in (1, 2)
    ]
    (group,) = group_runs(runs)
    assert {name: [r.summary["seed"] for r in own] for name, own in group.results.items()} == {
        "a": [1, 2],
        "b": [1, 2],
    }
    apart = group_runs([run_of("a", 1, workload_seed=1), run_of("a", 1, sha="1", workload_seed=2)])
    assert [group.at for group in apart] == [{"workload_seed": 1}, {"workload_seed": 2}]


def test_nodes_that_a_load_picks_for_each_seed_are_no_axis(tmp_path: Path) -> None:
    given = {
        "workload": "poisson",
        "workload_options": {"jobs": 40, "nodes": 8},
        "load_by": "nodes",
        "seeds": 3,
    }
    for load in (0.4, 0.8):
        compared = emu_package.compare(
            ["random", "sparrow"], load=load, in_process=True, out=tmp_path / str(load), **given
        )
        figures = compared.summaries[0]
        assert len(set(figures["nodes_by_seed"])) > 1  # else this test shows nothing
        loads = [run.summary["offered_load"] for run in compared.results["random"]]
        assert figures["offered_load"] == pytest.approx(np.mean(loads))
        assert figures["offered_load"] != loads[0]
    runs = read_runs([tmp_path / "0.4"])
    (group,) = group_runs(runs)
    assert [len(own) for own in group.results.values()] == [3, 3]
    (heading,) = headings(render_report(runs))
    assert re.fullmatch(
        r"poisson on \d+ to \d+ nodes, seeds 1 to 3 \(workload and scheduler\), means ± 95 %", heading
    )
    page = render_report(read_runs([tmp_path / "0.4", tmp_path / "0.8"]))
    assert [head.split(", ")[1] for head in headings(page)] == ["load 0.4", "load 0.8"]
    assert "Completion times against load" in page


def test_what_is_not_the_same_workload_is_not_compared() -> None:
    together = group_runs([run_of("a"), run_of("b"), run_of("c", sha="1")])
    assert [list(group.results) for group in together] == [["a", "b"], ["c"]]


def test_variants_are_named_by_the_parameters_that_differ() -> None:
    runs = [run_of("a", parameters={"a": {"slack": slack, "ratio": 2.0}}) for slack in (3, 5)]
    runs.append(run_of("b", parameters={"b": {"ratio": 4.0}}))
    (group,) = group_runs(runs)
    assert list(group.results) == ["a slack=3", "a slack=5", "b"]
    assert axes_of([group]) == [Axis("slack", (3, 5), True)]


# Figures


def drawn(lines: dict[str, dict[Any, dict[str, Any]]], axis: Axis = LOAD) -> Any:
    figure = percentiles_figure(lines, axis, JOBS)
    assert figure is not None
    figure.draw_without_rendering()
    return figure.axes[0]


def labels(axis: Any) -> list[str]:
    """The texts of ticks within the limits."""
    low, high = axis.get_view_interval()
    return [
        t.get_text()
        for t in axis.get_majorticklabels()
        if low <= (t.get_position()[axis.axis_name == "y"]) <= high
    ]


def test_rounding_is_not_blown_up_into_a_gap() -> None:
    """Three values that differ in the 12th digit: the axis was as narrow as they, with six equal labels."""
    noisy = {"a": {x: summary_of([39122.2 * (1 + i * 1e-12)]) for i, x in enumerate(LOAD.values)}}
    place = drawn(noisy)
    low, high = place.get_ylim()
    assert high - low >= 0.09 * 39122
    shown = labels(place.yaxis)
    assert len(set(shown)) == len(shown) >= 2
    assert all(re.fullmatch(r"[\d,]+", text) for text in shown)


@given(st.floats(-6, 9), st.one_of(st.floats(0, 1e-9), st.floats(0, 8)))
def test_tick_labels_are_plain_and_distinct_whatever_the_values(exponent: float, decades: float) -> None:
    low, high = 10.0**exponent, 10.0 ** (exponent + decades)
    with figure_style():
        _, axes = new_figure(3.0, 2.7)
        fit_times(axes, low, high)
        least, most = axes.get_ylim()
        assert least < low
        assert most > high
        shown = [axes.yaxis.get_major_formatter()(tick) for tick in axes.yaxis.get_majorticklocs()]
    assert len(set(shown)) == len(shown)
    assert not any("e" in text or "\N{MULTIPLICATION SIGN}" in text or "$" in text for text in shown)


def test_error_bars_are_the_intervals_of_the_table() -> None:
    seeds = {0.5: [100.0, 104.0, 108.0], 0.7: [200.0, 200.0, 200.0], 0.9: [300.0, 330.0, 360.0]}
    place = drawn({"a": {x: summary_of(v) for x, v in seeds.items()}})
    (bars,) = place.containers
    segments = {round(s[0, 0], 3): s[:, 1] for s in bars[2][0].get_segments()}
    half = 4.3027 * np.std(seeds[0.9], ddof=1) / np.sqrt(3)
    assert segments[0.9] == pytest.approx([330 - half, 330 + half])
    assert segments[0.7] == pytest.approx([200, 200])
    alone = drawn({"a": {x: summary_of(v[:1]) for x, v in seeds.items()}})
    assert not any(len(c[2]) for c in alone.containers)


def test_a_bar_that_leaves_the_figure_does_not_flatten_the_lines() -> None:
    lines = {
        "a": {x: summary_of([v, 3 * v]) for x, v in zip(LOAD.values, (100.0, 200.0, 400.0), strict=True)}
    }
    low, high = drawn(lines).get_ylim()
    assert low > 20
    assert high < 4000


def test_one_point_and_one_place() -> None:
    one = drawn({"a": {0.7: summary_of([50.0, 60.0])}})
    assert labels(one.xaxis) == ["0.5", "0.7", "0.9"]
    assert one.get_ylim()[0] < 55 < one.get_ylim()[1]
    (place,) = [drawn({"a": {0.7: summary_of([50.0])}}, Axis("load", (0.7,), False))]
    assert labels(place.xaxis) == ["0.7"]


def test_places_that_are_no_numbers_stand_side_by_side() -> None:
    axis = Axis("estimates.error", ("none", "random"), False)
    place = drawn({"a": {v: summary_of([50.0]) for v in axis.values}}, axis)
    assert labels(place.xaxis) == ["none", "random"]
    assert place.lines[0].get_linestyle() == "None"


def test_sizes_over_scales_stand_on_a_logarithmic_axis() -> None:
    axis = Axis("nodes", (100, 1000, 15000), False)
    place = drawn({"a": {v: summary_of([50.0]) for v in axis.values}}, axis)
    assert place.get_xscale() == "log"
    assert labels(place.xaxis) == ["100", "1,000", "15,000"]
    near = Axis("nodes", (100, 101, 102, 15000), False)  # no room for a label each
    assert len(labels(drawn({"a": {v: summary_of([50.0]) for v in near.values}}, near).xaxis)) < 5


def test_the_legend_hides_no_line() -> None:
    figure = percentiles_figure({name: {0.5: summary_of([1.0])} for name in ("a", "_b", "$c$")}, LOAD, JOBS)
    assert figure is not None
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["a", " _b", "$c$"]
    assert figure.axes[0].get_legend() is None


def test_which_axis_figures_are_drawn_against() -> None:
    def stems(*axes: Axis) -> list[str]:
        places = [{}]
        for axis in axes:
            places = [{**at, axis.label: value} for at in places for value in axis.values]
        return [
            sheet.stem
            for sheet in percentile_sheets(axes, [Point("a", at, summary_of([1.0])) for at in places])
        ]

    load, nodes = Axis("load", (0.5, 0.7), False), Axis("nodes", (10, 20, 30), False)
    delay, error = (
        Axis("network.delay", (1, 2, 3, 4), False),
        Axis("estimates.error", ("none", "random"), False),
    )
    slack = Axis("slack", (3, 5), True)
    assert stems() == stems(Axis("load", (0.5,), False)) == []
    assert stems(load) == stems(nodes) == stems(delay) == stems(error) == ["percentiles"]
    assert stems(load, nodes) == ["percentiles-load=0.5", "percentiles-load=0.7"]
    assert stems(load, delay) == [f"percentiles-network.delay={v}" for v in (1, 2, 3, 4)]
    assert stems(delay, error) == ["percentiles-estimates.error=none", "percentiles-estimates.error=random"]
    assert stems(load, slack) == stems(slack) == ["percentiles"]  # parameters tell lines apart


def over(network: str, speed: str = "1 Gbps", **more: Any) -> Result:
    """A run whose tasks fetch their input over a network."""
    return run_of(
        more.pop("scheduler", "drf"), network={"scheduler": network}, fabric={"port_speed": speed}, **more
    )


def test_networks_are_compared_and_named() -> None:
    (group,) = group_runs([over("fair"), over("sebf"), over("sebf", scheduler="tetris")])
    assert list(group.results) == ["drf network=fair", "drf network=sebf", "tetris network=sebf"]
    assert group.at == {}
    assert axes_of([group])[0] == Axis("network", ("fair", "sebf"), True)
    (group,) = group_runs([over("fair"), over("fair", scheduler="tetris")])
    assert list(group.results) == ["drf", "tetris"]


def test_schedulers_are_not_compared_over_unlike_networks_without_their_names() -> None:
    (group,) = group_runs([over("fair"), over("sebf", scheduler="tetris")])
    assert list(group.results) == ["drf network=fair", "tetris network=sebf"]


def test_a_run_without_network_is_beside_those_of_any_speed_of_ports() -> None:
    groups = group_runs([over("none"), over("fair", "10 Gbps"), over("fair", "40 Gbps")])
    assert [(group.at, list(group.results)) for group in groups] == [
        ({"fabric.port_speed": 1e10}, ["drf network=none", "drf network=fair"]),
        ({"fabric.port_speed": 4e10}, ["drf network=none", "drf network=fair"]),
    ]
    (group,) = group_runs([over("none"), over("fair", "10 Gbps")])
    assert group.at == {}
    (group,) = group_runs([over("none"), over("none", scheduler="tetris")])
    assert list(group.results) == ["drf", "tetris"]


def test_networks_with_other_workloads_are_not_compared() -> None:
    groups = group_runs([over("none"), over("fair", sha="1")])
    assert [list(group.results) for group in groups] == [["drf network=none"], ["drf network=fair"]]


def test_ratios_are_to_the_baseline_over_the_same_network() -> None:
    groups = group_runs([over(n, scheduler=s) for s in ("drf", "tetris") for n in ("fair", "sebf")])
    points = ratio_points(groups, "drf", read_measures(["mean"], "jobs"), ["all"])
    assert [(point.scheduler, point.at["network"]) for point in points] == [
        ("tetris", "fair"),
        ("tetris", "sebf"),
    ]
    with pytest.raises(emu_package.InputError, match="all runs are of 'drf'"):
        ratio_points(
            group_runs([over("fair"), over("sebf")]), "drf", read_measures(["mean"], "jobs"), ["all"]
        )
    with pytest.raises(emu_package.InputError, match="want runs of one 'drf'"):
        ratio_points(group_runs([over("fair"), over("sebf", scheduler="tetris")]), "drf", [], ["all"])
