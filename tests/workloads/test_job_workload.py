import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from workloads.jobs import JOBS_SCHEMA, TASKS_SCHEMA, make_workload


def small(**changes):
    arguments = {"submit_s": [0.0, 1.5], "num_tasks": [2, 1], "duration_s": [1.0, 3.0, 0.5]} | changes
    return make_workload("small", **arguments)


def test_tables_have_the_schema_with_units():
    workload = small()
    assert workload.jobs.schema.equals(JOBS_SCHEMA, check_metadata=True)
    assert workload.tasks.schema.equals(TASKS_SCHEMA, check_metadata=True)
    assert JOBS_SCHEMA.field("submit_s").metadata[b"unit"] == b"s"
    assert JOBS_SCHEMA.metadata[b"schema_version"] == b"1"
    assert workload.jobs.to_pydict() == {
        "job_id": [0, 1],
        "submit_s": [0.0, 1.5],
        "num_tasks": [2, 1],
        "mean_task_s": [2.0, 0.5],
        "constraint": [None, None],
        "tenant": [None, None],
    }
    assert workload.tasks.to_pydict() == {"job_id": [0, 0, 1], "duration_s": [1.0, 3.0, 0.5]}
    assert (workload.num_jobs, workload.num_tasks) == (2, 3)


def test_arrays_are_read_only_int64_nanoseconds():
    arrays = small(submit_s=[0.1, 1.4999999996]).arrays()
    assert arrays.submit_ns.tolist() == [100_000_000, 1_500_000_000]
    assert arrays.first_task.tolist() == [0, 2, 3]
    assert arrays.duration_ns.tolist() == [10**9, 3 * 10**9, 5 * 10**8]
    assert arrays.mean_ns.tolist() == [2 * 10**9, 5 * 10**8]
    for array in arrays:
        assert array.dtype == np.int64
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_what_the_caller_keeps_cannot_change_the_workload():
    durations = np.array([1.0, 3.0, 0.5])
    workload = small(duration_s=durations)
    durations[0] = 99
    assert workload.tasks["duration_s"][0].as_py() == 1.0


def test_arrivals_out_of_order_are_sorted_with_their_tasks_and_it_is_said():
    workload = make_workload(
        "mixed",
        [5.0, 1.0, 5.0, 0.0],
        [1, 2, 3, 1],
        [50, 10, 11, 51, 52, 53, 0],
        tenant=pa.array(list("abcd")),
    )
    assert workload.jobs["submit_s"].to_pylist() == [0.0, 1.0, 5.0, 5.0]
    assert workload.jobs["tenant"].to_pylist() == ["d", "b", "a", "c"]
    assert workload.tasks["duration_s"].to_pylist() == [0, 10, 11, 50, 51, 52, 53]
    assert workload.jobs["job_id"].to_pylist() == [0, 1, 2, 3]
    assert workload.notes == ("arrivals of mixed were not in order: 3 jobs moved; sorted by submit time",)
    assert small().notes == ()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 9), min_size=1, max_size=4)), min_size=1)
)
def test_sorting_is_stable_and_loses_nothing(jobs):
    workload = make_workload(
        "w", [s for s, _ in jobs], [len(d) for _, d in jobs], [float(x) for _, d in jobs for x in d]
    )
    first = workload.arrays().first_task
    durations = workload.tasks["duration_s"].to_pylist()
    found = [
        (submit, durations[first[j] : first[j + 1]])
        for j, submit in enumerate(workload.jobs["submit_s"].to_pylist())
    ]
    assert found == sorted(jobs, key=lambda job: job[0])


def test_the_fingerprint_does_not_see_how_tables_are_cut():
    base = small(tenant=pa.array(["a", "b"]))
    halves = [base.jobs[:1], base.jobs[1:]]
    cut = type(base)("cut", pa.concat_tables(halves), pa.concat_tables([base.tasks[:1], base.tasks[1:]]))
    assert cut.fingerprint() == base.fingerprint()
    assert cut.arrays().duration_ns.tolist() == base.arrays().duration_ns.tolist()


def test_it_pickles():
    workload = small(metadata={"origin": "here"}, short_cutoff_s=1.0)
    copy = pickle.loads(pickle.dumps(workload))
    assert copy.fingerprint() == workload.fingerprint()
    assert copy.metadata == workload.metadata


def test_pandas_is_not_imported():
    """It would double the time a short run takes to start."""
    program = (
        "import sys; from workloads.catalogue import load_workload; from clusters import load_cluster;"
        "w = load_workload('poisson', options={'jobs': 10}); w.arrays(); w.fingerprint();"
        "load_cluster('homogeneous', 10).racks(); sys.exit('pandas' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0
