"""What the user sees of priorities and of resources: figures by hand, tables as printed, files, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import emu
from clusters.cluster import build_cluster
from emu.families.jobs.divisions import BY_PRIORITY, MOST_GROUPS, priority_bands
from emu.families.jobs.further_tables import further_tables
from emu.families.jobs.metrics import in_group
from emu.families.jobs.plots import division_figure, use_figures
from emu.families.jobs.target_groups import jobs_of
from emu.families.jobs.terminal_text import render_summary
from emu.results.comparison import Comparison
from emu.results.result import Result
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

PLAIN = {"network_delay": 0.0, "short_cutoff": 100.0}


def run_of(tmp_path: Path, workload: JobWorkload, scheduler: str = "central-lwl", **more: Any) -> Result:
    """Run on one node of two cores, on which tasks hold what they need."""
    import pyarrow.parquet as pq

    file = tmp_path / "cluster.parquet"
    if not file.exists():
        pq.write_table(build_cluster("two cores", [1], cpu_cores=[2]).table, file)
    result = emu.run(scheduler, workload=workload, cluster=file, **PLAIN, **more)
    assert isinstance(result, Result)
    return result


@pytest.fixture
def workload() -> JobWorkload:
    """Four jobs of one task of both cores that arrive at once while another runs, the last without a priority."""
    requests = Requests(demands={"cpu_cores": [2.0] * 5}, priority=[9, 1, 5, 1, None])
    return make_workload("four", [0.0, 1.0, 1.0, 1.0, 1.0], [1] * 5, [10.0] * 5, requests=requests)


def test_waits_by_priority_by_hand(workload: JobWorkload, tmp_path: Path) -> None:
    """The node runs them in the order 9, 5, 1, 1, and the job without a priority last: at 0, 10, 20, 30 and 40 s."""
    result = run_of(tmp_path, workload)
    assert result.jobs["priority"].to_pylist() == [9, 1, 5, 1, None]
    bands = result.summary["jobs"]["by_priority"]
    assert list(bands) == ["9", "5", "1", "0"]
    assert [of["count"] for of in bands.values()] == [1, 1, 2, 1]
    assert [of["wait"]["mean"] for of in bands.values()] == pytest.approx([0.0, 9.0, 24.0, 39.0], abs=1e-6)
    assert bands["1"]["mean"] == pytest.approx(34.0)
    assert bands["1"]["wait"]["p50"] == pytest.approx((19.0 + 29.0) / 2)
    text = render_summary(result.summary)
    assert "queueing delay by priority (s)" in text
    assert "priority 1" in text
    assert "mean use of cpu_cores 100.0%" in text


def test_a_comparison_shows_priorities_and_use(workload: JobWorkload, tmp_path: Path) -> None:
    runs = {"a": [run_of(tmp_path, workload)], "b": [run_of(tmp_path, workload, priorities=False)]}
    waits, use = further_tables(runs)
    rows = {(row[0], row[1]): list(row[2:]) for row in waits.rows}
    assert [label for name, label in rows if name == "a"] == [
        "priority 9 (1 job)",
        "priority 5 (1 job)",
        "priority 1 (2 jobs)",
        "priority 0 (1 job)",
    ]
    # Without priorities they run as they came: those of priority 1 first and third, so that they wait 9 and 29 s.
    assert rows["a", "priority 1 (2 jobs)"][0] == "24"
    assert rows["b", "priority 1 (2 jobs)"][0] == "19"
    assert [list(row) for row in use.rows] == [["a", "100.0%"], ["b", "100.0%"]]
    text = Comparison(runs, "", {}).to_text()
    assert "queueing delay in seconds by priority" in text
    assert "mean use of resources, as a share of what all nodes have" in text
    records = [r for r in Comparison({"a": runs["a"]}, "", {}).records() if r["group"] == "priority 1"]
    found = {(r["metric"], r["statistic"]): r["value"] for r in records}
    assert found["count", ""] == 2
    assert found["wait_s", "mean"] == pytest.approx(24.0)


def test_pictures_of_priorities_and_use(workload: JobWorkload, tmp_path: Path) -> None:
    runs = {"a": [run_of(tmp_path, workload)]}
    figure = division_figure(runs, BY_PRIORITY)
    assert figure is not None
    upper, lower = figure.axes
    assert list(upper.lines[0].get_ydata()) == pytest.approx([0.0, 9.0, 24.0, 39.0], abs=1e-6)
    assert [tick.get_text() for tick in lower.get_xticklabels()] == ["9", "5", "1", "0"]
    (shown,) = use_figures(runs, {"run": ("running_short", "running_long")})
    assert shown.stem == "resources-a"
    assert "all nodes" in shown.caption
    share, tasks = shown.drawn.axes
    assert np.max(share.lines[0].get_ydata()) == pytest.approx(1.0)
    assert np.max(tasks.lines[0].get_ydata()) == 1


def test_a_workload_without_priorities_or_demands_has_none_of_it() -> None:
    plain = make_workload("plain", [0.0, 1.0], [1, 1], [1.0, 1.0])
    result = emu.run("sparrow", workload=plain, nodes=2)
    assert isinstance(result, Result)
    runs = {"a": [result]}
    assert "priority" not in result.jobs.column_names
    assert "by_priority" not in result.summary["jobs"]
    assert further_tables(runs) == list(use_figures(runs, {})) == []
    assert division_figure(runs, BY_PRIORITY) is None


def test_large_priorities_stay_apart() -> None:
    """Neighbours that float64 does not tell apart, beside a job that states none."""
    jobs = pa.table({"priority": pa.array([2**53, 2**53 + 1, None], pa.int64())})
    assert [*priority_bands(jobs)] == [str(2**53 + 1), str(2**53), "0"]
    assert jobs_of(jobs, f"priority:{2**53 + 1}").tolist() == [False, True, False]


@given(st.lists(st.one_of(st.none(), st.integers(-20, 20)), min_size=1, max_size=200))
def test_every_job_is_in_one_band(priorities: list[int | None]) -> None:
    jobs = pa.table({"priority": pa.array(priorities, pa.int64())})
    bands = priority_bands(jobs)
    assert len(bands) <= MOST_GROUPS
    assert np.all(sum(mask.astype(int) for mask in bands.values()) == 1)
    known = np.array([p or 0 for p in priorities])
    lows = [int(known[mask].min()) for mask in bands.values()]
    highs = [int(known[mask].max()) for mask in bands.values()]
    assert all(low > high for low, high in zip(lows, highs[1:], strict=False))
    for name, low, high in zip(bands, lows, highs, strict=True):
        assert name == (str(low) if low == high else f"{low} to {high}")
        assert np.array_equal(in_group(jobs, f"priority {name}"), bands[name])
    if len(set(known.tolist())) <= MOST_GROUPS:
        assert len(bands) == len(set(known.tolist()))
