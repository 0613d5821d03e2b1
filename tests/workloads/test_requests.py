"""What jobs ask for beside time: it stays with its jobs and tasks through sorting, files and transformations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from workloads.conversion import as_dags, as_jobs
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.parquet import read_dags, read_parquet, write_parquet
from workloads.requests import NO_GANG, Requests, gang_nodes, priorities, requested_s
from workloads.transform.merging import merge
from workloads.transform.primitives import take

NONE = float("nan")


def three() -> JobWorkload:
    """Three jobs that arrive out of order; job 11 arrives first."""
    return make_workload(
        "three",
        [5.0, 0.0, 9.0],
        [2, 1, 2],
        [10.0, 11.0, 20.0, 30.0, 31.0],
        job_id=[10, 11, 12],
        requests=Requests(
            demands={"cpu_cores": [2, 4, NONE], "attr:gpus": [NONE, 1, NONE]},
            task_demands={"cpu_cores": [3, NONE, NONE, 0.5, NONE], "memory_gib": [NONE, 8, NONE, NONE, NONE]},
            priority=[7, NONE, -1],
            gang_nodes=[NONE, 0, 2],
            requested_s=[NONE, 60, 0],
        ),
    )


def test_requests_are_sorted_with_their_jobs_and_tasks() -> None:
    jobs = three()
    assert jobs.jobs["job_id"].to_pylist() == [11, 10, 12]
    assert jobs.jobs.column_names[6:] == ["cpu_cores", "attr:gpus", "priority", "gang_nodes", "requested_s"]
    assert priorities(jobs.jobs).tolist() == [0, 7, -1]
    assert gang_nodes(jobs.jobs).tolist() == [0, NO_GANG, 2]
    assert requested_s(jobs.jobs).tolist()[::2] == [60, 0]
    assert np.isnan(requested_s(jobs.jobs)[1])
    assert jobs.resources == ("cpu_cores", "memory_gib", "attr:gpus")
    demands = jobs.demands()
    assert demands.vector[demands.of_job].tolist() == [[4, 0, 1], [3, 8, 0], [0.5, 0, 0]]
    tasks = [[4, 0, 1], [3, 0, 0], [2, 8, 0], [0.5, 0, 0], [0, 0, 0]]
    assert demands.vector[demands.of_task].tolist() == tasks
    assert len(demands.vector) == len({tuple(v) for v in demands.vector.tolist()})


def test_tasks_alike_need_no_array_of_their_own() -> None:
    jobs = make_workload("w", [0, 1], [3, 1], [1.0] * 4, requests=Requests({"memory": [0.5, 0.25]}))
    demands = jobs.demands()
    assert demands.of_task.size == 0
    assert demands.vector[demands.of_job].tolist() == [[0.5], [0.25]]


def test_a_folder_keeps_them(tmp_path: Path) -> None:
    jobs = three()
    write_parquet(jobs, tmp_path / "three")
    again = read_parquet(tmp_path / "three")
    assert again.jobs.equals(jobs.jobs)
    assert again.tasks.equals(jobs.tasks)
    assert again.fingerprint() == jobs.fingerprint()
    assert not again.notes


def test_jobs_that_ask_for_nothing_have_no_columns_for_it(tmp_path: Path) -> None:
    plain, asking = (
        make_workload("w", [0.0], [1], [1.0], requests=Requests(priority=[p])) for p in (NONE, 1)
    )
    assert plain.jobs.num_columns == 6
    assert plain.fingerprint() != asking.fingerprint()
    assert plain.fingerprint() == make_workload("w", [0.0], [1], [1.0]).fingerprint()
    assert take(three(), np.array([1]), np.array([3])).jobs["priority"].to_pylist() == [7]
    write_parquet(take(asking, np.array([0])), tmp_path / "w")
    assert read_parquet(tmp_path / "w").jobs.num_columns == 7


def test_merged_workloads_keep_their_own() -> None:
    other = make_workload("other", [1.0], [1], [1.0], requests=Requests({"memory": [0.5]}, priority=[3]))
    both = merge([three(), other])
    assert both.resources == ("cpu_cores", "memory", "memory_gib", "attr:gpus")
    assert priorities(both.jobs).tolist() == [0, 3, 7, -1]
    assert both.demands().vector[both.demands().of_job].tolist()[1] == [0, 0.5, 0, 0]


def test_dags_and_jobs_state_the_same_demands(tmp_path: Path) -> None:
    jobs = three()
    dags = as_dags(jobs)
    assert dags.arrays().demand.tolist() == jobs.demands().vector[jobs.demands().of_job].tolist()
    write_parquet(dags, tmp_path / "dags")
    again = read_dags(tmp_path / "dags")
    assert priorities(again.jobs).tolist() == [0, 7, -1]
    back = as_jobs(again)
    assert back.resources == jobs.resources
    assert back.demands().vector[back.demands().of_job].tolist() == dags.arrays().demand.tolist()


def test_priorities_are_exact_whole_numbers() -> None:
    stated = [2**53, 2**53 + 1, None, -(2**62) - 1]
    table = pa.table({"priority": pa.chunked_array([stated[:1], stated[1:]], pa.int64())})
    assert priorities(table).tolist() == [2**53, 2**53 + 1, 0, -(2**62) - 1]
    assert priorities(table.slice(0, 0)).tolist() == []


@given(st.data())
def test_vectors_are_those_of_a_table(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    amount = st.sampled_from([NONE, 0.0, 0.25, 1.0])
    jobs, tasks = len(counts), sum(counts)
    own, each = (
        {
            name: data.draw(st.lists(amount, min_size=rows, max_size=rows))
            for name in data.draw(st.sets(st.sampled_from(["cpu_cores", "memory", "attr:x"])))
        }
        for rows in (jobs, tasks)
    )
    made = make_workload("w", [0.0] * jobs, counts, [1.0] * tasks, requests=Requests(own, each))
    demands, task = made.demands(), 0
    for job, count in enumerate(counts):
        rows = []
        for at in range(task, task + count):
            stated = [each.get(n, [NONE] * tasks)[at] for n in demands.resources]
            of_job = [own.get(n, [NONE] * jobs)[job] for n in demands.resources]
            rows.append([(o if s != s else s) for s, o in zip(stated, of_job, strict=True)])
            rows[-1] = [0.0 if x != x else x for x in rows[-1]]
            if demands.of_task.size:
                assert demands.vector[demands.of_task[at]].tolist() == rows[-1]
        assert demands.vector[demands.of_job[job]].tolist() == np.max(rows, axis=0).tolist()
        task += count
