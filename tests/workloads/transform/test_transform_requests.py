"""What jobs ask for stays with them through every transformation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workloads.arrow import column, optional_column
from workloads.catalogue import load_workload, save_workload
from workloads.conversion import as_dags
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests, requests_of
from workloads.stages import STAGES_SCHEMA
from workloads.transform import (
    demands,
    priorities,
    redo,
    truncate,
)

NONE = float("nan")


def asking(count: int = 12) -> JobWorkload:
    """Jobs that differ in all that they ask for; the stated mean duration tells which one a job is."""
    each = np.arange(count, dtype=float)
    tasks = np.repeat(each, 2)
    return make_workload(
        "asking",
        10 * each,
        [2] * count,
        1 + tasks,
        1 + each,
        tenant=["ab"[n % 2] for n in range(count)],
        requests=Requests(
            {"cpu_cores": each, "attr:gpus": np.where(each % 3 == 0, NONE, each)},
            {"memory_gib": np.where(tasks % 4 == 1, NONE, 5 + np.arange(2.0 * count))},
            priority=np.where(each == 5, NONE, each - 3),
            gang_nodes=np.where(each % 2 == 0, NONE, each),
            requested_s=np.where(each == 6, NONE, 100 + each),
        ),
        short_cutoff_s=6.0,
    )


def requests_by_job(*workloads: JobWorkload) -> dict[float, Any]:
    """By stated mean duration: what the job asks for, and what its tasks do, where they state something."""
    found: dict[float, Any] = {}
    for workload in workloads:
        jobs, tasks = (
            table.select(requests_of(table)).to_pylist() for table in (workload.jobs, workload.tasks)
        )
        first = workload.arrays().first_task
        for job, mean_s in enumerate(column(workload.jobs, "mean_task_s").tolist()):
            rows = [jobs[job], *tasks[first[job] : first[job + 1]]]
            stated = [{name: value for name, value in row.items() if value is not None} for row in rows]
            assert found.setdefault(mean_s, stated) == stated
    return found


def test_a_run_time_that_was_requested_shrinks_as_the_longest_task_does() -> None:
    workload = make_workload(
        "w",
        [0.0, 1.0, 2.0],
        [2, 1, 1],
        [5.0, 20.0, 8.0, 40.0],
        requests=Requests(requested_s=[50.0, 9.0, NONE], priority=[1, 2, 3]),
    )
    cut = truncate(workload, 10.0)
    assert cut.jobs["requested_s"].to_pylist() == [25.0, 9.0, None]
    assert cut.jobs["priority"].to_pylist() == [1, 2, 3]
    assert truncate(as_dags(workload), 10.0).jobs["requested_s"].to_pylist() == [25.0, 9.0, None]


def test_a_text_format_says_what_it_leaves_out(tmp_path: Path) -> None:
    jobs = make_workload(
        "w", [0.0], [1], [1.0], requests=Requests({"cpu_cores": [2]}, {"memory": [0.5]}, [3])
    )
    (note,) = save_workload(jobs, tmp_path / "w.tr")
    assert "w.tr: the format tr does not hold cpu_cores, priority, memory, left out; a Parquet folder" in note
    assert requests_by_job(load_workload(tmp_path / "w.tr")) == {1.0: [{}, {}]}
    (note,) = save_workload(as_dags(jobs), tmp_path / "w.dags", "dag-text")
    assert "the format dag-text does not hold priority, left out" in note
    assert save_workload(jobs, tmp_path / "folder") == ()
    plain = make_workload("w", [0.0], [1], [1.0], requests=Requests(priority=[NONE]))
    assert save_workload(plain, tmp_path / "plain.tr") == ()


def plain(count: int = 2000) -> JobWorkload:
    return make_workload("plain", np.arange(count), [2] * count, np.ones(2 * count))


def test_demands_as_in_googles_trace_have_its_quantiles_and_go_together() -> None:
    made = demands(plain(), seed=3)
    assert made.resources == ("cpu_cores", "memory")
    cores, memory = (optional_column(made.jobs, name) for name in made.resources)
    wanted = {25: (0.1, 0.002728), 50: (0.2, 0.007767), 75: (0.5, 0.0159), 95: (1.0, 0.04773)}
    for level, (of_cores, of_memory) in wanted.items():
        assert np.percentile(cores, level) == pytest.approx(of_cores, rel=0.02)
        assert np.percentile(memory, level) == pytest.approx(of_memory, rel=0.02)
    ranks = [np.argsort(np.argsort(values)) for values in (cores, memory)]
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(0.566, abs=0.05)
    assert (
        demands(plain(), seed=3).fingerprint() == made.fingerprint() != demands(plain(), seed=4).fingerprint()
    )
    assert made.metadata["transformed.1"].endswith("# 2,000 of 2,000 jobs state demands of cpu_cores, memory")


def test_own_demands_have_their_shares_and_replace_what_was_there(tmp_path: Path) -> None:
    workload = asking()
    made = demands(workload, "cpu_cores=2 memory_gib=4: 50%, attr:gpus=1 cpu_cores=8: 0.25")
    rows = Counter(
        tuple(row.values()) for row in made.jobs.select(["cpu_cores", "memory_gib", "attr:gpus"]).to_pylist()
    )
    assert rows == {(2.0, 4.0, None): 6, (8.0, None, 1.0): 3, (None, None, None): 3}
    assert requests_of(made.tasks) == []
    for name in ("priority", "gang_nodes", "requested_s"):
        assert made.jobs[name].equals(workload.jobs[name])
    save_workload(made, tmp_path / "w")
    again = load_workload(tmp_path / "w")
    assert again.jobs.equals(made.jobs)
    assert again.fingerprint() == made.fingerprint()
    assert redo([workload], made.metadata["transformed.1"]).fingerprint() == made.fingerprint()
    for alone in ("cpu_cores=1 attr:gpus=2", "attr:gpus=2 cpu_cores=1: 100%"):
        assert demands(workload, alone).jobs["attr:gpus"].to_pylist() == [2.0] * 12


def test_stages_of_dags_get_demands_and_jobs_of_both_priorities() -> None:
    dags = as_dags(asking())
    made = demands(dags, "memory=0.5: 50%")
    assert made.resources == ("memory",)
    assert made.stages["memory"].null_count == 6
    assert made.stages.schema.names == [*STAGES_SCHEMA.names]
    for workload in (asking(), dags):
        drawn = priorities(workload, "7: 50%, -2: 25%")
        assert Counter(drawn.jobs["priority"].to_pylist()) == {7: 6, -2: 3, None: 3}
        assert drawn.jobs.schema.names == workload.jobs.schema.names
        assert drawn.jobs.drop_columns("priority").equals(workload.jobs.drop_columns("priority"))
    of_google = Counter(priorities(plain(914)).jobs["priority"].to_pylist())
    assert of_google == {0: 167, 1: 202, 2: 295, 8: 160, 9: 90}
