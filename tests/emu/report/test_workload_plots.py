"""Figures of workloads: one look for jobs, DAGs and coflows, and the same bytes every time."""

from __future__ import annotations

import pytest

from emu.report.drawing import to_png, to_svg
from emu.report.workload_plots import workload_figure
from tests.workloads.family_examples import coflows_of, dags_of
from workloads.info import describe
from workloads.jobs import make_workload
from workloads.transform.primitives import Workload

pytestmark = pytest.mark.drawn

JOBS = make_workload("a $ b_", [0.0, 4.0, 9.0], [1, 2, 1], [0.0, 3.0, 4.0, 11.0], short_cutoff_s=5.0)
DAGS = dags_of([(n * 60.0, [[1.0], [2.0, 60.0]], [(0, 1)], None) for n in range(30)])
COFLOWS = coflows_of([(n * 1.0, None, {(0, 1): 1e6, (1, 2): 10.0**n}) for n in range(1, 9)], ports=3)


def drawn(workload: Workload) -> str:
    return to_svg(workload_figure(workload, describe(workload)))


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (
            JOBS,
            [
                "a $ b_: 3 jobs, 4 tasks",
                "tasks per job",
                "task duration (s)",
                "one-slot nodes",
                "jobs per 0.2 s",
                ">long<",
                ">short<",
            ],
        ),
        (DAGS, ["depth (stages on the longest path)", "critical path (s)", "task-seconds per 0.5 min"]),
        (COFLOWS, ["size of a coflow (bytes)", "speed of a port (Gbps)", "longest over shortest flow"]),
    ],
    ids=["jobs", "dags", "coflows"],
)
def test_a_figure_has_its_axes(workload: Workload, expected: list[str]) -> None:
    text = drawn(workload)
    assert all(label in text for label in expected)


@pytest.mark.slow("whole runs with their figures")
def test_figures_have_equal_bytes() -> None:
    first, second = (to_png(workload_figure(COFLOWS, describe(COFLOWS))) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_what_arrives_at_once_is_drawn_without_a_load() -> None:
    assert "all arrive at once" in drawn(make_workload("w", [0.0, 0.0], [1, 1], [0.0, 0.0]))


def test_the_load_is_drawn_at_the_nodes_asked_for() -> None:
    figure = workload_figure(JOBS, describe(JOBS, [3, 4]))
    points = figure.axes[2].get_lines()[1]
    assert points.get_xdata().tolist() == [3.0, 4.0]
    assert points.get_ydata().tolist() == pytest.approx([18 / 9 / 3, 18 / 9 / 4])
