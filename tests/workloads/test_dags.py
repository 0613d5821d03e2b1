import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.strategies import dags
from workloads.arrow import column, optional_column
from workloads.conversion import as_jobs
from workloads.dags import make_dag_workload, stage_levels
from workloads.errors import InputError
from workloads.jobs import JOBS_SCHEMA, TASKS_SCHEMA, make_workload
from workloads.stages import DAG_TASKS_SCHEMA, EDGES_SCHEMA, STAGES_SCHEMA

OLD_FINGERPRINT = "5f43d483e1c45d74dfcadf7d812bb0b7750ac2f1b6ca8a999e0b64b49d7e2345"


def small(**changes):
    """Two jobs: a diamond (0 before 1 and 2, these before 3), and a single stage."""
    arguments = {
        "submit_s": [0.0, 1.5],
        "num_stages": [4, 1],
        "stage_tasks": [1, 2, 1, 1, 2],
        "duration_s": [1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 9.0],
        "edges": [(0, 2, 3), (0, 0, 1), (0, 1, 3), (0, 0, 2)],
    }
    return make_dag_workload("small", **(arguments | changes))


def test_tables_have_the_schema_with_units_and_the_order_of_jobs_and_stages():
    dag = small(stage_name=["a", None, "c", "d", "e"], memory=[0.5, np.nan, 0, 1, 0.25])
    for table, schema in (
        (dag.jobs, JOBS_SCHEMA),
        (dag.tasks, DAG_TASKS_SCHEMA),
        (dag.stages, STAGES_SCHEMA),
        (dag.edges, EDGES_SCHEMA),
    ):
        assert table.schema.equals(schema, check_metadata=True)
        table.validate(full=True)
    assert dag.stages.to_pydict() == {
        "job_id": [0, 0, 0, 0, 1],
        "stage": [0, 1, 2, 3, 0],
        "name": ["a", None, "c", "d", "e"],
        "num_tasks": [1, 2, 1, 1, 2],
        "mean_task_s": [1.0, 3.0, 5.0, 6.0, 8.0],
        "cpu_cores": [None] * 5,
        "memory": [0.5, None, 0.0, 1.0, 0.25],
    }
    assert dag.edges.to_pydict() == {"job_id": [0] * 4, "parent": [0, 0, 1, 2], "child": [1, 2, 3, 3]}
    assert dag.tasks["stage"].to_pylist() == [0, 1, 1, 2, 3, 0, 0]
    assert dag.jobs["num_tasks"].to_pylist() == [5, 2]
    assert (dag.num_jobs, dag.num_stages, dag.num_tasks) == (2, 5, 7)


def test_arrays_number_stages_through_and_know_children_and_parents():
    arrays = small(cpu_cores=[1, 2, np.nan, 4, 5]).arrays()
    assert arrays.first_stage.tolist() == [0, 4, 5]
    assert arrays.stage_first_task.tolist() == [0, 1, 3, 4, 5, 7]
    assert arrays.first_task.tolist() == [0, 5, 7]
    assert arrays.stage_mean_ns.tolist() == [10**9, 3 * 10**9, 5 * 10**9, 6 * 10**9, 8 * 10**9]
    assert arrays.first_child.tolist() == [0, 2, 3, 4, 4, 4]
    assert arrays.child.tolist() == [1, 2, 3, 3]
    assert arrays.first_parent.tolist() == [0, 0, 1, 2, 4, 4]
    assert arrays.parent.tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal(arrays.cpu_cores, [1, 2, np.nan, 4, 5])
    assert not any(array.flags.writeable for array in arrays)


def test_demands_are_those_that_some_stage_has_in_one_order():
    """Resources of all nodes come first, own ones then by name; what is not known of a stage is 0 in the array."""
    dag = small(
        memory=[0.5, np.nan, 0, 1, 0.25],
        demands={
            "attr:b": [1, 2, 3, 4, 5],
            "attr:a": [np.nan, 2e6, 0, 0, 0],
            "network_out": [np.nan, 0.5, 1, 0, 0],
            "disk_in": [np.nan] * 5,
        },
    )
    assert dag.resources == ("memory", "network_out", "attr:a", "attr:b")
    assert dag.arrays().demand.tolist() == [
        [0.5, 0, 0, 1], [0, 0.5, 2e6, 2], [0, 1, 0, 3], [1, 0, 0, 4], [0.25, 0, 0, 5]
    ]  # fmt: skip
    assert dag.stages.column_names[5:] == ["cpu_cores", "memory", "network_out", "attr:a", "attr:b"]
    assert dag.stages["network_out"].to_pylist() == [None, 0.5, 1.0, 0.0, 0.0]
    assert dag.stages.schema.field("network_out").metadata[b"unit"] == b"1"
    assert small(demands={"memory": [0.5] * 5}).resources == ("memory",)
    assert small().arrays().demand.shape == (5, 0)


def test_kinds_of_edges_lie_beside_children_and_parents():
    """The edges are given in another order than they lie in: by parent, and by child."""
    kinds = [None, "one-to-one", "all-to-all", None]
    dag = small(edges=[(0, 2, 3), (0, 0, 2), (0, 0, 1), (0, 1, 3)], edge_kind=kinds)
    assert dag.edges["kind"].to_pylist() == ["all-to-all", "one-to-one", "all-to-all", "all-to-all"]
    arrays = dag.arrays()
    assert (arrays.child.tolist(), arrays.edge_one_to_one.tolist()) == ([1, 2, 3, 3], [0, 1, 0, 0])
    assert (arrays.parent.tolist(), arrays.parent_one_to_one.tolist()) == ([0, 0, 1, 2], [0, 1, 0, 0])
    assert arrays.edge_one_to_one.dtype == np.int8
    plain = small(edge_kind=["all-to-all", None, None, None])
    assert plain.edges.column_names == ["job_id", "parent", "child"]
    assert plain.fingerprint() == small().fingerprint() != dag.fingerprint()


def test_bytes_are_sorted_with_their_edges_and_stages():
    """Both orders of edges have them; what is not known is null in the tables and NaN in arrays."""
    dag = small(
        submit_s=[1.5, 0.0],
        edge_bytes=[7.0, np.nan, 0.0, 1e18],
        input_bytes=[5.0, np.nan, -0.0, np.nan, 1.0],
    )
    assert dag.edges.to_pydict() == {
        "job_id": [1] * 4,
        "parent": [0, 0, 1, 2],
        "child": [1, 2, 3, 3],
        "size_bytes": [None, 1e18, 0.0, 7.0],
    }
    assert dag.edges.schema.field("size_bytes").metadata[b"unit"] == b"B"
    assert dag.stages.column_names[5:] == ["cpu_cores", "memory", "input_bytes"]
    assert dag.stages["input_bytes"].to_pylist() == [1.0, 5.0, None, 0.0, None]
    arrays = dag.arrays()
    np.testing.assert_array_equal(arrays.edge_bytes, [np.nan, 1e18, 0, 7])
    np.testing.assert_array_equal(arrays.parent_bytes, [np.nan, 1e18, 0, 7])
    np.testing.assert_array_equal(arrays.input_bytes, [1, 5, np.nan, 0, np.nan])
    assert not np.signbit(arrays.input_bytes).any()
    backwards = small(edges=[(0, 3, 2), (0, 2, 1), (0, 3, 1)], edge_bytes=[1, 2, 3]).arrays()
    assert (backwards.child.tolist(), backwards.edge_bytes.tolist()) == ([1, 1, 2], [2.0, 3.0, 1.0])
    assert (backwards.parent.tolist(), backwards.parent_bytes.tolist()) == ([2, 3, 3], [2.0, 3.0, 1.0])


def test_bytes_of_which_none_is_known_have_no_column_and_do_not_count():
    dag = small(edge_bytes=[np.nan] * 4, input_bytes=[np.nan] * 5)
    assert dag.bytes_known == ()
    assert dag.edges.schema.equals(EDGES_SCHEMA, check_metadata=True)
    assert dag.stages.schema.equals(STAGES_SCHEMA, check_metadata=True)
    assert dag.fingerprint() == small().fingerprint()
    assert np.isnan([*dag.arrays().edge_bytes, *dag.arrays().parent_bytes, *dag.arrays().input_bytes]).all()


def test_a_workload_without_the_optional_columns_keeps_its_fingerprint():
    """As before there were any: digits computed at that time."""
    assert small(memory=[0.5, np.nan, 0, 1, 0.25]).fingerprint() == OLD_FINGERPRINT


def test_levels_are_the_longest_paths():
    assert stage_levels(small()).tolist() == [0, 1, 1, 2, 0]
    assert stage_levels(small(edges=[(0, 3, 2), (0, 2, 0), (0, 3, 0)])).tolist() == [2, 0, 1, 0, 0]


def test_as_jobs_are_the_jobs_without_precedence_and_say_so():
    dag = small(tenant=["x", None], short_cutoff_s=3.0, metadata={"a": "b"})
    jobs = as_jobs(dag)
    plain = make_workload(
        "small", [0.0, 1.5], [5, 2], [1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 9.0], tenant=["x", None]
    )
    assert jobs.fingerprint() == plain.fingerprint()
    assert jobs.tasks.schema.equals(TASKS_SCHEMA, check_metadata=True)
    assert (jobs.short_cutoff_s, jobs.metadata) == (3.0, {"a": "b"})
    assert jobs.notes == ("precedence between stages is left out",)
    assert as_jobs(small(input_bytes=[0.0] + [np.nan] * 4)).notes == (
        "precedence between stages is left out",
        "bytes on edges and of input are left out",
    )


@given(dags(), st.randoms(use_true_random=False))
def test_the_order_of_jobs_and_edges_does_not_matter(dag, random):
    """Jobs given in another order are sorted back with their stages, edges and tasks."""
    arrays = dag.arrays()
    order = list(range(dag.num_jobs))
    if len(set(column(dag.jobs, "submit_s").tolist())) == dag.num_jobs:  # ties would keep their order
        random.shuffle(order)
    stages = [s for j in order for s in range(arrays.first_stage[j], arrays.first_stage[j + 1])]
    tasks = [t for j in order for t in range(arrays.first_task[j], arrays.first_task[j + 1])]
    place = {job_id: order.index(j) for j, job_id in enumerate(dag.jobs["job_id"].to_pylist())}
    edges = [
        ((place[e["job_id"]], e["parent"], e["child"]), e.get("kind"), e.get("size_bytes"))
        for e in dag.edges.to_pylist()
    ]
    random.shuffle(edges)
    again = make_dag_workload(
        "again",
        column(dag.jobs, "submit_s")[order],
        np.diff(arrays.first_stage)[order],
        column(dag.stages, "num_tasks")[stages],
        column(dag.tasks, "duration_s")[tasks],
        [edge for edge, _, _ in edges],
        column(dag.jobs, "mean_task_s")[order],
        stage_mean_s=column(dag.stages, "mean_task_s")[stages],
        stage_name=dag.stages["name"].take(stages).combine_chunks(),
        cpu_cores=arrays.cpu_cores[stages],
        memory=arrays.memory[stages],
        demands={name: optional_column(dag.stages, name)[stages] for name in dag.resources},
        edge_kind=[kind for _, kind, _ in edges],
        edge_bytes=np.array([moved for _, _, moved in edges], float),
        input_bytes=arrays.input_bytes[stages],
        job_id=column(dag.jobs, "job_id")[order],
        tenant=dag.jobs["tenant"].take(order).combine_chunks(),
    )
    assert again.fingerprint() == dag.fingerprint()
    assert bool(again.notes) == (sorted(order) != order)


@given(dags())
def test_children_and_parents_are_the_edges_and_levels_rise(dag):
    arrays, levels = dag.arrays(), stage_levels(dag)
    down = np.repeat(np.arange(dag.num_stages), np.diff(arrays.first_child))
    up = np.repeat(np.arange(dag.num_stages), np.diff(arrays.first_parent))
    pairs = sorted(zip(down.tolist(), arrays.child.tolist(), strict=True))
    assert pairs == sorted(zip(arrays.parent.tolist(), up.tolist(), strict=True))
    assert len(pairs) == dag.edges.num_rows
    ones = [e.get("kind") == "one-to-one" for e in dag.edges.to_pylist()]
    assert arrays.edge_one_to_one.tolist() == ones
    moved = [e.get("size_bytes") for e in dag.edges.to_pylist()]
    np.testing.assert_array_equal(arrays.edge_bytes, np.array(moved, float))
    by_child = [up, arrays.parent, arrays.parent_one_to_one, np.nan_to_num(arrays.parent_bytes, nan=-1)]
    by_parent = [arrays.child, down, arrays.edge_one_to_one, np.nan_to_num(arrays.edge_bytes, nan=-1)]
    assert sorted(np.stack(by_child, 1).tolist()) == sorted(np.stack(by_parent, 1).tolist())
    for parent, child in pairs:
        assert levels[child] > levels[parent]
    for stage in range(dag.num_stages):
        parents = [levels[p] for p, c in pairs if c == stage]
        assert levels[stage] == (max(parents) + 1 if parents else 0)


def test_a_long_chain_is_accepted_and_a_long_cycle_is_an_error():
    count = 3000
    chain = [(0, i + 1, i) for i in range(count - 1)]
    dag = make_dag_workload("chain", [0.0], [count], [1] * count, [1.0] * count, chain)
    assert stage_levels(dag).tolist() == list(range(count - 1, -1, -1))
    with pytest.raises(InputError, match=r"wait for each other: (\d+ -> ){8}\.\.\.$"):
        make_dag_workload("circle", [0.0], [count], [1] * count, [1.0] * count, [*chain, (0, 0, count - 1)])


def test_names_may_be_an_arrow_array():
    names = pa.array(["a", "b", None, "d", "e"])
    assert small(stage_name=names).fingerprint() == small(stage_name=names.to_pylist()).fingerprint()
