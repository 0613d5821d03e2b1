"""What jobs ask for beside time, as `emu workload info` describes it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from workloads.conversion import as_dags
from workloads.info import QUANTILES, describe, render
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

NONE = float("nan")


def four() -> JobWorkload:
    """Four jobs of 2, 1, 1 and 4 tasks and 8, 4, 2 and 6 task-seconds; the last is a gang of no stated nodes."""
    return make_workload(
        "four",
        [0.0, 0.0, 5.0, 10.0],
        [2, 1, 1, 4],
        [2.0, 6.0, 4.0, 2.0, 1.5, 1.5, 1.5, 1.5],
        requests=Requests(
            demands={"cpu_cores": [2, 4, NONE, 1], "memory_gib": [NONE, NONE, 3, NONE]},
            task_demands={"cpu_cores": [NONE, 0.5, NONE, NONE, NONE, NONE, 8, NONE]},
            priority=[9, NONE, -1, 9],
            gang_nodes=[2, NONE, NONE, 0],
            requested_s=[12, 2, NONE, 1.5],
        ),
    )


def test_demands_of_jobs_are_those_of_their_tasks() -> None:
    d = describe(four())
    assert [*d["demands"]] == ["cpu_cores", "memory_gib"]
    cores = [2, 0.5, 4, 1, 1, 8, 1]
    used = 2 * 2 + 0.5 * 6 + 4 * 4 + 1.5 * (1 + 1 + 8 + 1)
    assert d["demands"]["cpu_cores"] == {
        "unit": "cores",
        "known": 7 / 8,
        "without": 1,
        "quantiles": np.percentile(cores, QUANTILES).tolist(),
        "in_use": pytest.approx(used / 10),
    }
    json.dumps(d)
    text = render(d)
    assert "busy       2.0 one-slot nodes on average\n" in text
    assert "  in use on average: cpu_cores 3.95 cores, memory_gib 0.6 GiB\n" in text
    assert "  not stated: cpu_cores by 1 of 8 tasks, memory_gib by 7 of 8 tasks\n" in text


def test_priorities_are_counted_by_value() -> None:
    d = describe(four())
    assert d["priorities"] == {
        "distinct": 2,
        "without": 1,
        "values": [
            {"priority": 9, "jobs": 2, "tasks": 6, "work_share": pytest.approx(14 / 20)},
            {"priority": -1, "jobs": 1, "tasks": 1, "work_share": pytest.approx(2 / 20)},
        ],
        "others": None,
        "unstated": {"jobs": 1, "tasks": 1, "work_share": pytest.approx(4 / 20)},
    }
    text = render(d)
    assert "priorities: 2 distinct, the larger goes first; 1 jobs state none, which is 0\n" in text
    assert "  none stated           1   25.00%        1   12.50%   20.00%\n" in text
    assert "  9                     2   50.00%        6   75.00%   70.00%\n" in text


def test_of_many_priorities_those_of_few_jobs_are_summed() -> None:
    of_jobs = [*range(20), *range(10, 20), 19]
    count = len(of_jobs)
    d = describe(
        make_workload("w", np.arange(count), [1] * count, [1.0] * count, requests=Requests(priority=of_jobs))
    )
    found = d["priorities"]
    assert [of["priority"] for of in found["values"]] == [*range(19, 9, -1), 1, 0]
    assert found["others"] == {"values": 8, "jobs": 8, "tasks": 8, "work_share": pytest.approx(8 / 31)}
    assert sum(of["jobs"] for of in found["values"]) + 8 == count
    assert "\n  8 others " in render(d)


def test_gangs_and_requested_run_times() -> None:
    d = describe(four())
    assert d["gangs"] == {
        "jobs": 2,
        "work_share": pytest.approx(14 / 20),
        "width": np.percentile([2, 4], QUANTILES).tolist(),
        "stated_nodes": 1,
        "nodes": [2.0] * len(QUANTILES),
    }
    assert d["requested"] == {
        "jobs": 3,
        "requested_s": np.percentile([12, 2, 1.5], QUANTILES).tolist(),
        "over_run_time": np.percentile([12 / 6, 2 / 4, 1], QUANTILES).tolist(),
        "ran_longer": 1,
    }
    text = render(d)
    assert "gangs: 2 of 4 jobs, 70.00% of task-seconds; nodes stated for 1\n" in text
    assert "requested run times: 3 of 4 jobs; 1 ran longer\n" in text


def test_jobs_as_dags_have_the_same_requests() -> None:
    jobs, dags = describe(four()), describe(as_dags(four()))
    assert all(dags[name] == jobs[name] for name in ("priorities", "gangs", "requested"))
    assert dags["demands"]["cpu_cores"]["quantiles"][-1] == 8


def test_jobs_that_ask_for_nothing_have_no_lines_of_it() -> None:
    d = describe(make_workload("w", [0.0, 1.0], [1, 1], [1.0, 1.0]))
    assert (d["demands"], d["priorities"], d["gangs"], d["requested"]) == ({}, None, None, None)
    assert not any(word in render(d) for word in ("demands", "priorit", "gangs", "requested"))
