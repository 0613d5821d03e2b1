"""Schedulers of DAG jobs from the command line, compared, swept, sized and reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import emu
from emu.cli import main
from emu.families.dags.tables import efficiency, slowed_down
from emu.results.paired_comparison import single_factors
from emu.results.text_tables import TIMES
from tests.actors.dag_settings import mixed_dags
from workloads.arrow import optional_column
from workloads.catalogue import save_workload


def test_a_comparison_shows_improvement_efficiency_and_fairness(tmp_path: Path) -> None:
    comparison = emu.compare(["carbyne", "drf", "sjf"], mixed_dags(), 1, in_process=True, out=tmp_path / "c")
    rows = {row.scheduler: row for row in comparison.rows()}
    jct = {name: optional_column(runs[0].jobs, "jct_s") for name, runs in comparison.results.items()}
    factors = jct["drf"] / jct["carbyne"]
    assert rows["drf"].speedup["average"][0] == pytest.approx(jct["drf"].mean() / jct["carbyne"].mean())
    for percent in (50, 75, 95):
        assert rows["drf"].speedup[f"p{percent}"][0] == pytest.approx(np.percentile(factors, percent))
    assert {row.group for row in comparison.rows()} == {"all"}
    found = list(efficiency(comparison.results).means(comparison.results).values())
    spans = [runs[0].summary["jobs"]["makespan_s"] for runs in comparison.results.values()]
    assert [row[TIMES][0] for row in found][1:] == pytest.approx([s / spans[0] for s in spans[1:]])
    assert all(row["over bound"][0] >= 1.0 for row in found)
    text = comparison.to_text()
    for part in ("factors of improvement of carbyne", "Jain mean", "jobs that take longer under carbyne"):
        assert part in text
    first, other = (comparison.results[name][0] for name in ("carbyne", "drf"))
    assert single_factors(first, other, "all", 0.0) == pytest.approx(factors)
    assert slowed_down(np.array([0.5, 0.9, 1.0, 2.0])) == (0.5, 0.25, 0.5)
    page = (tmp_path / "c" / "report.html").read_text()
    for part in (
        "Efficiency and fairness",
        "factors of improvement of carbyne",
        "Use of resources under drf",
    ):
        assert part in page
    assert (tmp_path / "c" / "improvement.svg").exists()


@pytest.mark.slow("whole runs with their figures")
def test_a_sweep_over_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_workload(mixed_dags(), "dags")
    Path("loads.toml").write_text(
        'workload = "dags"\nnodes = 2\n[sweep]\nscheduler = ["tetris", "drf"]\nload = [0.3, 0.9]\n'
    )
    rows = emu.sweep("loads.toml", in_process=True).rows
    means = [row["jobs.all.mean"] for row in rows]
    assert len(set(means)) == 4
    assert {"dags.fairness.mean", "dags.used.cpu_cores"} <= set(rows[0])
    assert main(["report", "runs/sweep-loads"]) == 0


def test_the_fewest_machines_for_a_target(tmp_path: Path) -> None:
    found = emu.size("all.mean < 20s", "drf", mixed_dags(), in_process=True, out=tmp_path / "s")
    assert found.nodes is not None


def test_a_trace_of_coflows_is_run_as_jobs_around_them(tmp_path: Path) -> None:
    """Alone a coflow takes 4 MB or 3 MB at 8 Mbps; half of a job's time are tasks, as long before it as after it."""
    trace = tmp_path / "shuffles.txt"
    trace.write_text("3 2\n1 0 2 0 1 1 2:4.0\n2 500000 1 2 2 0:1.0 1:2.0\n")
    result = emu.run(
        "drf",
        str(trace),
        4,
        in_process=True,
        workload_options={"megabyte_bytes": 10**6},
        workload_steps=["jobs --port-speed '8 Mbps' --shuffle-share 50%"],
    )
    assert result.jobs["job_id"].to_pylist() == [1, 2]
    assert result.jobs["num_tasks"].to_pylist() == [3, 3]
    assert result.jobs["mean_task_s"].to_pylist() == [2.0, 1.5]
