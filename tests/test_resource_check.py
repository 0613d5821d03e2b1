"""The judge of runs with resources: it passes runs that are right, and finds what is wrong in forged ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emulations import emulate_small, mixed_workload
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import check_priorities, check_run

from clusters.cluster import Cluster, build_cluster
from emu.families.jobs.results import tasks_table
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

NONE = float("nan")
GIB = 2**30


def nodes() -> Cluster:
    """A node of 4 cores, 8 GiB and 1 GPU, and one of 2 cores and 16 GiB."""
    return build_cluster(
        "two",
        [1, 3],
        cpu_cores=[4.0, 2.0],
        memory_bytes=np.array([8, 16]) * GIB,
        **{"attr:gpus": ["1", ""]},
    )


def three_jobs(gang_nodes: list[float] | None = None) -> JobWorkload:
    """Jobs of 2, 2 and 1 tasks of 10 s at 0, 1 and 2 s: 2 cores, 1 and a GPU, half of the largest memory."""
    return make_workload(
        "three",
        [0.0, 1.0, 2.0],
        [2, 2, 1],
        [10.0] * 5,
        job_id=[7, 8, 9],
        requests=Requests(
            {"cpu_cores": [2, 1, NONE], "attr:gpus": [NONE, 1, NONE], "memory": [NONE, NONE, 0.5]},
            {"attr:gpus": [NONE, NONE, NONE, 0, NONE]},
            priority=[0, 5, NONE],
            gang_nodes=gang_nodes,
        ),
    )


def table(workload: JobWorkload, *rows: tuple[Any, ...]) -> pa.Table:
    """Rows of node, start, and if wanted when the task joined the queue, in the order of the tasks."""
    columns = {
        "job_id": workload.tasks["job_id"],
        "node": [row[0] for row in rows],
        "start_s": [row[1] for row in rows],
        "finish_s": [
            row[1] + d for row, d in zip(rows, workload.tasks["duration_s"].to_pylist(), strict=True)
        ],
        "enqueued_s": [row[-1] for row in rows],
    }
    return pa.table(columns)


RIGHT = ((0, 0.0), (1, 0.5), (0, 1.0), (0, 2.0), (1, 10.5))
"""The first node has 2 + 1 + 1 of its 4 cores in use; on the second half its memory is used after its cores."""


def test_a_run_that_is_right_passes_with_what_nodes_held() -> None:
    workload = three_jobs()
    assert check_run(table(workload, *RIGHT), workload, nodes()) == {
        "cpu_cores": [4.0, 2.0],
        "attr:gpus": [1.0, 0.0],
        "memory": [0.0, 0.5],
    }
    by_slots = table(workload, (0, 0.0), (1, 0.5), (1, 1.0), (1, 2.0), (0, 10.0))
    assert check_run(by_slots, workload, nodes(), resources=()) == {"slots": [1.0, 3.0]}


@pytest.mark.parametrize(
    ("place", "row", "message"),
    [
        (1, (0, 1.5), "node 0, 1.5 s: 5.000000000 of cpu_cores held, which is 1.000000000 more than it has"),
        (2, (1, 10.5), "node 1, 10.5 s: 1.000000000 of attr:gpus held"),
        (4, (0, 30.0), None),
        (4, (2, 30.0), "ran on node 2, which does not exist"),
        (2, (0, 0.5), "task 2, of job 8, started before its job arrived"),
        (0, (None, 0.0), "task 0, of job 7, did not run"),
    ],
)
def test_forged_runs_are_found(place: int, row: tuple[Any, ...], message: str | None) -> None:
    rows, workload = [*RIGHT], three_jobs()
    rows[place] = row
    if message is None:
        check_run(table(workload, *rows), workload, nodes())
        return
    with pytest.raises(AssertionError, match=message):
        check_run(table(workload, *rows), workload, nodes())


def test_a_billionth_too_much_is_found() -> None:
    def run(third: float, start_s: float) -> dict[str, list[float]]:
        needs = Requests(task_demands={"cpu_cores": [0.1, 0.2, third]})
        workload = make_workload("w", [0.0], [3], [5.0, 5.0, 0.0], requests=needs)
        return check_run(table(workload, (0, 0.0), (0, 0.0), (0, start_s)), workload, one)

    one = build_cluster("one", [1], cpu_cores=[0.6])
    assert run(0.3, 1.0) == {"cpu_cores": [0.6]}
    with pytest.raises(AssertionError, match=r"which is 0[.]000000001 more than it has"):
        run(0.300000001, 1.0)
    assert run(0.300000001, 5.0) == {"cpu_cores": [0.300000001]}
    assert run(0.300000001, 0.0)  # it takes no time: it may have run before the others started


def test_tasks_that_are_lost_doubled_or_cut_are_found() -> None:
    workload = three_jobs()
    right = table(workload, *RIGHT)
    for forged in (right.slice(1), pa.concat_tables([right, right.slice(4)]), right.take([1, 0, 2, 4, 3])):
        with pytest.raises(AssertionError, match="each once"):
            check_run(forged, workload, nodes())
    cut = right.set_column(3, "finish_s", [[10.0, 10.5, 11.0, 11.9, 20.5]])
    with pytest.raises(AssertionError, match="task 3, of job 8, did not run for its duration"):
        check_run(cut, workload, nodes())
    check_run(cut, workload, nodes(), lasting=False)


def test_gangs_start_together_on_as_many_nodes_as_they_say() -> None:
    for wanted, rows, message in (
        ([NONE, 1, NONE], RIGHT, "gang 1 started 1 s apart|tasks of gang 1 started 1 s apart"),
        ([NONE, NONE, 1], RIGHT, None),
        ([NONE, NONE, 4], RIGHT, None),  # of one task, which has one node
        ([NONE, 2, NONE], (*RIGHT[:2], (0, 10.0), (0, 10.0), (1, 10.5)), "gang 1 ran on 1 nodes, not on 2"),
        ([NONE, 0, NONE], (*RIGHT[:2], (0, 10.0), (0, 10.0), (1, 10.5)), None),
        ([2, NONE, NONE], RIGHT, "tasks of gang 0 started 0.5 s apart"),
    ):
        workload = three_jobs(wanted)
        run = table(workload, *rows)
        check_run(run, workload, nodes())
        if message is None:
            check_run(run, workload, nodes(), gangs_within_s=0.0)
            continue
        with pytest.raises(AssertionError, match=message):
            check_run(run, workload, nodes(), gangs_within_s=0.0)
    check_run(run, workload, nodes(), gangs_within_s=0.5)


def queued(*rows: tuple[int, float, float], priority: list[float], cores: list[float]) -> tuple[Any, ...]:
    """A run on one node of 4 cores, of one task a job of 10 s: node, start, when it joined the queue."""
    count = len(rows)
    workload = make_workload(
        "w",
        [0.0] * count,
        [1] * count,
        [10.0] * count,
        requests=Requests({"cpu_cores": cores}, priority=priority),
    )
    return table(workload, *rows), workload, build_cluster("one", [1], cpu_cores=[4.0])


def test_a_task_that_passes_one_of_higher_priority_that_would_fit_is_found() -> None:
    rows = ((0, 0.0, 0.0), (0, 10.0, 1.0), (0, 20.0, 2.0))
    message = "node 0, 10 s: a task of job 1, priority 3, started while one of job 2, priority 4, waited"
    with pytest.raises(AssertionError, match=message):
        check_priorities(*queued(*rows, priority=[0, 3, 4], cores=[4, 2, 4]))
    assert check_priorities(*queued(*rows, priority=[0, 4, 3], cores=[4, 2, 4])) == 0
    assert check_priorities(*queued(*rows, priority=[4, 3, 3], cores=[4, 2, 4])) == 0
    unstated = queued(*rows, priority=[0, -1, NONE], cores=[4, 2, 4])
    with pytest.raises(AssertionError, match="priority -1, started while one of job 2, priority 0"):
        check_priorities(*unstated)


def test_what_would_not_fit_may_be_passed_and_what_comes_later_was_not_waiting() -> None:
    first = (0, 0.0, 0.0)
    passed = queued(first, (0, 5.0, 1.0), (0, 10.0, 2.0), priority=[0, 3, 4], cores=[2, 2, 3])
    assert check_priorities(*passed) == 1
    fits = queued(first, (0, 5.0, 1.0), (0, 10.0, 2.0), priority=[0, 3, 4], cores=[2, 1, 2])
    with pytest.raises(AssertionError, match="would have fit"):
        check_priorities(*fits)
    late = queued(first, (0, 10.0, 1.0), (0, 20.0, 10.0), priority=[0, 3, 4], cores=[4, 4, 4])
    assert check_priorities(*late) == 0


def test_a_node_that_asked_before_a_task_came_is_not_to_blame() -> None:
    run = queued((0, 0.0, 0.0), (0, 11.0, 1.0), (0, 21.0, 10.5), priority=[0, 3, 4], cores=[4, 4, 4])
    with pytest.raises(AssertionError, match="would have fit"):
        check_priorities(*run)
    assert check_priorities(*run, asking_s=1.0) == 0


@settings(max_examples=300)
@given(st.data())
def test_a_run_passes_if_no_instant_has_too_much(data: st.DataObject) -> None:
    """Any run at all, right or wrong, judged at each instant at which a task starts."""
    amounts = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.25])
    count = data.draw(st.integers(1, 6))

    def of_tasks(values: Any) -> Any:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    needs = {"cpu_cores": of_tasks(amounts), "memory_gib": of_tasks(amounts)}
    lasts = of_tasks(st.integers(0, 4))
    workload = make_workload("w", [0.0], [count], lasts, requests=Requests(task_demands=needs))
    cluster = build_cluster("w", [1, 1], cpu_cores=[1.5, 2.0], memory_bytes=np.array([2, 1]) * GIB)
    where, starts = of_tasks(st.integers(0, 1)), of_tasks(st.integers(0, 5))
    capacity = {"cpu_cores": [1.5, 2.0], "memory_gib": [2.0, 1.0]}

    def too_much(at: int) -> bool:
        """Whether the node holds too much as the task starts; those that take no time come before other starts."""
        now_s, takes_time = starts[at], lasts[at] > 0
        now = [at]
        for n in range(count):
            began = starts[n] <= now_s if takes_time else starts[n] < now_s
            if n != at and where[n] == where[at] and began and now_s < starts[n] + lasts[n]:
                now.append(n)
        return any(
            sum(Fraction(of[n]) for n in now) > Fraction(capacity[name][where[at]])
            for name, of in needs.items()
        )

    wrong = any(too_much(at) for at in range(count))
    run = table(workload, *((node, float(at)) for node, at in zip(where, starts, strict=True)))
    if wrong:
        with pytest.raises(AssertionError, match="more than it has"):
            check_run(run, workload, cluster)
    else:
        check_run(run, workload, cluster)


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "central-lwl"])
def test_runs_of_slots_are_right_and_use_them_all(scheduler: str) -> None:
    workload, cluster = mixed_workload(40, seed=2), build_cluster("test", [1, 2, 3])
    outcome = emulate_small(scheduler, workload, cluster)
    assert outcome.tasks is not None
    run = tasks_table(workload, outcome.tasks)
    assert check_run(run, workload, cluster) == {"slots": [1.0, 2.0, 3.0]}
    fewer = build_cluster("fewer", [1, 2, 2])
    with pytest.raises(AssertionError, match=r"node 2, .* 3[.]0+ of slots held"):
        check_run(run, workload, fewer)
