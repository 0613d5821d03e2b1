"""Workloads and clusters are pickled with their rows: those of a slice alone, and Ray need not import pandas."""

import io
import pickle
from dataclasses import fields

import pyarrow as pa
import pytest

from clusters.cluster import load_cluster
from tests.workloads.family_examples import a_flow, coflows_of, dags_of
from workloads.catalogue import load_workload
from workloads.transform import constrain, time_slice

WITH_TABLES = {
    "cluster": lambda: load_cluster("phoenix", 30),
    "jobs": lambda: load_workload("poisson", options={"jobs": 2_000}),
    "constrained": lambda: constrain(load_workload("poisson", options={"jobs": 50}), jobs="all"),
    "dags": lambda: dags_of([(0.0, [[1.0, 2.0], [3.0]], [(0, 1)], "a"), (1.5, [[4.0]], [], None)]),
    "coflows": lambda: coflows_of([(0.0, 2.0, a_flow()), (1.0, None, {(1, 0): 2e6, (0, 0): 1.0})], 2),
}


@pytest.fixture(params=WITH_TABLES.values(), ids=WITH_TABLES.keys())
def value(request):
    return request.param()


def test_what_is_pickled_comes_back(value):
    copy = pickle.loads(pickle.dumps(value))
    for each in fields(value):
        before, after = getattr(value, each.name), getattr(copy, each.name)
        if isinstance(before, pa.Table):
            assert after.equals(before, check_metadata=True)
        else:
            assert after == before


def test_no_arrow_table_is_pickled(value):
    """Ray would import pandas for it."""

    class Pickler(pickle.Pickler):
        def reducer_override(self, each):
            assert not isinstance(each, pa.Table)
            return NotImplemented

    Pickler(io.BytesIO()).dump(value)


def test_of_a_slice_its_rows_are_pickled():
    whole = WITH_TABLES["jobs"]()
    few = time_slice(whole, 0.0, float(whole.arrays().submit_ns[10]) / 1e9)
    assert 0 < few.num_jobs < 20
    assert len(pickle.dumps(few)) < len(pickle.dumps(whole)) / 20
