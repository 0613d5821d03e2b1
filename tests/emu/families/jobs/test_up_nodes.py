"""The timeline of nodes that are up: by hand, against what the counters say of drawn failures, and in its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu.report.plots import timeline_figure
from tests.actors.dag_settings import mixed_dags

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 90,
    "workload_options": {"jobs": 40, "nodes": 90},
    "in_process": True,
}


DAGS: dict[str, Any] = {"workload": mixed_dags(40), "nodes": 4, "in_process": True}


def test_a_rack_that_fails_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "failures.csv"
    file.write_text("target,fail_s,repair_s\nrack 1,1000,5000\nnode 3,2000,\n")  # a rack has 40 nodes
    run = emu.run("hawk", **SMALL, dynamics_failures=str(file), timeline_period="100 s", out=tmp_path / "run")
    time_s, up = (run.timeline[name].to_numpy() for name in ("time_s", "up_nodes"))
    wanted = 90 - 40 * ((time_s >= 1000) & (time_s < 5000)) - (time_s >= 2000)
    assert np.array_equal(up, wanted)
    assert set(wanted.tolist()) == {90, 50, 49, 89}
    assert emu.read_result(tmp_path / "run").timeline.equals(run.timeline)
    figure = timeline_figure({"hawk": [run]})
    assert figure is not None
    assert figure.axes[2].get_ylabel() == "nodes up"


@pytest.mark.parametrize(
    ("scheduler", "given", "nodes", "period_s", "failing"),
    [
        ("sparrow", SMALL, 90, 10.0, {"dynamics_mtbf": "2 h", "dynamics_mttr": "10 min"}),
        ("drf", DAGS, 4, 0.2, {"dynamics_mtbf": "40 s", "dynamics_mttr": "5 s"}),
    ],
)
def test_drawn_failures_take_the_time_that_is_counted(
    scheduler: str, given: dict[str, Any], nodes: int, period_s: float, failing: dict[str, str]
) -> None:
    run = emu.run(scheduler, **given, **failing, timeline_period=period_s)
    down = nodes - run.timeline["up_nodes"].to_numpy()
    counted_s = run.counters["node_downtime_ns"] / 1e9
    assert counted_s > 0
    assert down.min() >= 0
    assert down.sum() * period_s == pytest.approx(counted_s, rel=0.05)


def test_without_failures_there_is_no_such_column() -> None:
    run = emu.run("sparrow", **SMALL)
    assert "up_nodes" not in run.timeline.column_names
    figure = timeline_figure({"sparrow": [run]})
    assert figure is not None
    assert len(figure.axes) == 2
