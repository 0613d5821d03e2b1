import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from tests.workloads.strategies import coflows, dags
from workloads.coflows import make_coflow_workload
from workloads.conversion import as_jobs
from workloads.dags import make_dag_workload
from workloads.errors import InputError
from workloads.jobs import make_workload
from workloads.readers.parquet import (
    FAMILIES,
    family_of,
    read_coflows,
    read_dags,
    read_folder,
    read_parquet,
    write_parquet,
)

DAG = make_dag_workload(
    "dag",
    [0.0, 1.0],
    [3, 1],
    [1, 2, 1, 1],
    [1.0, 2.0, 3.0, 4.0, 5.0],
    [(0, 0, 1), (0, 1, 2)],
    stage_name=["a", "b", None, "c"],
    memory=[0.1, np.nan, 0.3, 0.4],
    edge_bytes=[6.0, np.nan],
    input_bytes=[8.0, np.nan, np.nan, 0.0],
    job_id=[7, 5],
)
COFLOWS = make_coflow_workload(
    "coflows",
    [0.0, 1.0],
    [3, 1],
    [0, 0, 1, 2],
    [1, 1, 2, 2],
    [1.0, 2.0, 4.0, 8.0],
    3,
    coflow_id=[7, 5],
    deadline_s=[np.nan, 9.0],
)
JOBS = make_workload("jobs", [0.0], [1], [1.0])


@settings(max_examples=20)
@given(dags())
def test_a_round_trip_of_dags_keeps_everything(tmp_path_factory, dag):
    check_round_trip(dag, tmp_path_factory.mktemp("w"), read_dags)


@settings(max_examples=20)
@given(coflows())
def test_a_round_trip_of_coflows_keeps_everything(tmp_path_factory, workload):
    check_round_trip(workload, tmp_path_factory.mktemp("w"), read_coflows)


def check_round_trip(workload, folder, read):
    write_parquet(workload, folder)
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = read(folder)
    assert again.fingerprint() == workload.fingerprint()
    assert (again.name, again.metadata, again.notes) == (folder.name, workload.metadata, ())
    write_parquet(again, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


@pytest.mark.parametrize("workload", [JOBS, DAG, COFLOWS], ids=["jobs", "dags", "coflows"])
def test_the_family_is_known_by_the_files(tmp_path, workload):
    write_parquet(workload, tmp_path)
    again = read_folder(tmp_path)
    assert type(again) is type(workload)
    assert again.fingerprint() == workload.fingerprint()
    assert {path.name for path in tmp_path.iterdir()} == {*FAMILIES[family_of(tmp_path)]}


def test_dags_read_as_jobs_say_what_is_left_out(tmp_path):
    write_parquet(DAG, tmp_path)
    jobs = read_parquet(tmp_path)
    assert jobs.tasks["duration_s"].to_pylist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert jobs.notes == (
        "precedence between stages is left out",
        "bytes on edges and of input are left out",
    )
    assert jobs.fingerprint() == as_jobs(DAG).fingerprint()


def test_a_folder_of_one_family_does_not_become_one_of_another(tmp_path):
    write_parquet(DAG, tmp_path / "dag")
    write_parquet(COFLOWS, tmp_path / "coflows")
    write_parquet(JOBS, tmp_path / "jobs")
    for workload, name, file in (
        (JOBS, "dag", r"(stages|edges)"),
        (COFLOWS, "dag", r"\w+"),
        (COFLOWS, "jobs", r"(jobs|tasks)"),
        (DAG, "coflows", r"\w+"),
        (JOBS, "coflows", r"\w+"),
    ):
        with pytest.raises(InputError, match=rf"/{name}: holds {file}\.parquet of another workload"):
            write_parquet(workload, tmp_path / name)
    write_parquet(DAG, tmp_path / "jobs")  # all files of jobs are replaced
    assert family_of(tmp_path / "jobs") == "dags"


@pytest.mark.parametrize("name", ["none", "x" * 300])
def test_a_folder_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(InputError) as caught:
        read_folder(tmp_path / name)
    assert "jobs.parquet: no such file; a workload folder holds jobs.parquet and tasks.parquet" in str(
        caught.value
    )


def test_a_folder_of_two_families_is_refused(tmp_path):
    write_parquet(DAG, tmp_path)
    write_parquet(COFLOWS, tmp_path / "coflows")
    (tmp_path / "coflows" / "flows.parquet").rename(tmp_path / "flows.parquet")
    with pytest.raises(
        InputError, match=r"holds edges\.parquet and flows\.parquet; a workload is of jobs or"
    ):
        read_folder(tmp_path)


def test_dags_of_others_are_read(tmp_path):
    """No names and demands, other widths, edges in any order, arrivals out of order."""
    write_parquet(DAG, tmp_path)
    columns = {name: DAG.stages[name] for name in ("job_id", "stage", "num_tasks", "mean_task_s")}
    pq.write_table(pa.table(columns | {"colour": ["r"] * 4}), tmp_path / "stages.parquet")
    edges = {"job_id": [7, 7], "parent": pa.array([1, 0], pa.int8()), "child": [2, 1]}
    pq.write_table(pa.table(edges), tmp_path / "edges.parquet")
    jobs = DAG.jobs.set_column(1, "submit_s", pa.array([2, 1]))
    pq.write_table(jobs, tmp_path / "jobs.parquet")
    dag = read_dags(tmp_path)
    assert dag.stages["job_id"].to_pylist() == [5, 7, 7, 7]
    assert dag.stages["memory"].null_count == 4
    assert dag.edges.to_pydict() == {"job_id": [7, 7], "parent": [0, 1], "child": [1, 2]}
    assert "stages.parquet has columns that are not used: colour" in dag.notes[0]
    assert "2 jobs moved" in dag.notes[1]


def test_bytes_of_others_are_read(tmp_path):
    """Whole numbers, edges in another order; columns of which nothing is known are not kept."""
    write_parquet(DAG, tmp_path)
    edges = {"size_bytes": pa.array([3, 4]), "child": [2, 1], "parent": [1, 0], "job_id": [7, 7]}
    pq.write_table(pa.table(edges), tmp_path / "edges.parquet")
    stages = {name: DAG.stages[name] for name in DAG.stages.column_names[:5]}
    pq.write_table(pa.table(stages | {"input_bytes": pa.nulls(4)}), tmp_path / "stages.parquet")
    dag = read_dags(tmp_path)
    assert dag.notes == ()
    assert dag.edges["size_bytes"].to_pylist() == [4.0, 3.0]
    assert (dag.bytes_known, "input_bytes" in dag.stages.column_names) == (("size_bytes",), False)


def test_demands_and_kinds_of_others_are_read_and_what_is_wrong_is_named(tmp_path):
    """Whole numbers for demands, an own attribute, and text as dictionaries; columns that say nothing are not kept."""
    write_parquet(DAG, tmp_path)
    stages = {name: DAG.stages[name] for name in DAG.stages.column_names}
    more = {"attr:gpu": [0, 1, 2, None], "disk_out": [1, 0, None, 0], "disk_in": pa.nulls(4, pa.float64())}
    pq.write_table(pa.table(stages | more), tmp_path / "stages.parquet")
    edges = {name: DAG.edges[name] for name in DAG.edges.column_names}
    kinds = pa.array(["all-to-all", None]).dictionary_encode()
    pq.write_table(pa.table(edges | {"kind": kinds}), tmp_path / "edges.parquet")
    dag = read_dags(tmp_path)
    assert dag.notes == ()
    assert dag.resources == ("memory", "disk_out", "attr:gpu")
    assert dag.stages["attr:gpu"].to_pylist() == [0.0, 1.0, 2.0, None]
    assert dag.edges.column_names == ["job_id", "parent", "child", "size_bytes"]
    for column_, values, wrong in (
        ("disk_out", [1, 0, 1.5, 0], "line 3: field disk_out: 1.5 is not a share of a node's disk write"),
        ("attr:gpu", [0, 0, 0, -2], "line 4: field attr:gpu: -2.0 is not an amount, 0 or more"),
        ("attr:gpu", ["a", "b", "c", "d"], "field attr:gpu: has type string, want double"),
        ("network_in", [0.5, math.nan, 0, 0], "line 2: field network_in: is NaN; want a number or null"),
    ):
        pq.write_table(pa.table(stages | {column_: values}), tmp_path / "stages.parquet")
        with pytest.raises(InputError, match=rf"stages\.parquet: {wrong}"):
            read_dags(tmp_path)
    write_parquet(DAG, tmp_path)
    pq.write_table(pa.table(edges | {"kind": [None, "some"]}), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match=r"edges\.parquet: line 2: field kind: 'some' is not a kind of edge"):
        read_dags(tmp_path)


def test_coflows_of_others_are_read(tmp_path):
    """Only what cannot be known otherwise, and arrivals out of order."""
    write_parquet(COFLOWS, tmp_path)
    coflows_ = pa.table({"coflow_id": [7, 5], "arrival_s": [2, 1], "width": [3, 1]})
    pq.write_table(coflows_, tmp_path / "coflows.parquet")
    pq.write_table(pa.table({"port": [0, 1, 2]}), tmp_path / "ports.parquet")
    workload = read_coflows(tmp_path)
    assert workload.coflows.to_pydict() == {
        "coflow_id": [5, 7],
        "arrival_s": [1.0, 2.0],
        "width": [1, 3],
        "senders": [1, 2],
        "receivers": [1, 2],
        "size_bytes": [8.0, 7.0],
        "weight": [1.0, 1.0],
        "deadline_s": [None, None],
    }
    assert "2 coflows moved" in workload.notes[0]


def with_column(workload, table: str, column: str, values: list):
    """What is read of a workload with another column, for calls/parquet_families.txt."""
    write_parquet(workload, Path("w"))
    columns = getattr(workload, table)
    at = columns.column_names.index(column)
    pq.write_table(columns.set_column(at, column, pa.array(values)), Path("w") / f"{table}.parquet")
    return read_folder(Path("w"))


def test_a_job_that_says_another_number_of_tasks_than_its_stages_is_named(tmp_path):
    write_parquet(DAG, tmp_path)
    jobs = DAG.jobs.set_column(2, "num_tasks", pa.array([3, 2]))
    tasks = DAG.tasks.set_column(0, "job_id", pa.array([7, 7, 7, 5, 5]))
    pq.write_table(jobs, tmp_path / "jobs.parquet")
    pq.write_table(tasks, tmp_path / "tasks.parquet")
    with pytest.raises(InputError, match=r"jobs\.parquet: line 1: field num_tasks: 3 tasks, but the job's"):
        read_folder(tmp_path)
