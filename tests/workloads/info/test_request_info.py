"""What jobs ask for beside time, as `emu workload info` describes it."""

from __future__ import annotations

from workloads.conversion import as_dags
from workloads.info import describe
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


def test_jobs_as_dags_have_the_same_requests() -> None:
    jobs, dags = describe(four()), describe(as_dags(four()))
    assert all(dags[name] == jobs[name] for name in ("priorities", "gangs", "requested"))
    assert dags["demands"]["cpu_cores"]["quantiles"][-1] == 8
