"""Bytes of DAGs as they are described: totals, quantiles over jobs, and the time that edges take at a network."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.strategies import dags as any_dags
from workloads.critical_path import network_paths_s
from workloads.dags import DagWorkload, make_dag_workload

NONE = float("nan")


def shuffling(between_s: float = 2.0) -> DagWorkload:
    """A stage of 4 s before one of 2 s, and one of `between_s` between; a job that knows nothing; and one stage."""
    return make_dag_workload(
        "w",
        [0.0, 1.0, 2.0],
        [3, 2, 1],
        [4, 2, 2, 1, 1, 1],
        [4.0] * 4 + [between_s] * 2 + [2.0] * 2 + [1.0, 1.0, 9.0],
        [(0, 0, 2), (0, 0, 1), (0, 1, 2), (1, 0, 1)],
        edge_kind=[None, None, "one-to-one", None],
        edge_bytes=[10e9, 5e9, 2.5e9, NONE],
        input_bytes=[40e9, NONE, NONE, NONE, NONE, 1e9],
    )


@settings(max_examples=20)
@given(dag=any_dags(), bytes_per_s=st.floats(1e3, 1e12))
def test_paths_with_edges_are_the_longest_of_all(dag: DagWorkload, bytes_per_s: float) -> None:
    """By a plain second computation; at an infinite speed the edges take nothing."""
    arrays = dag.arrays()
    tasks = np.diff(arrays.stage_first_task).tolist()
    sizes = np.nan_to_num(arrays.parent_bytes).tolist()
    parents = [range(a, b) for a, b in pairwise(arrays.first_parent.tolist())]

    def longest(stage: int) -> tuple[float, float]:
        ways = [(0.0, 0.0)] if not parents[stage] else []
        for edge in parents[stage]:
            parent = int(arrays.parent[edge])
            edge_s = sizes[edge] / (bytes_per_s * min(tasks[parent], tasks[stage]))
            before_s, of_edges_s = longest(parent)
            ways.append((before_s + edge_s, of_edges_s + edge_s))
        end_s, network_s = max(ways)
        return arrays.stage_mean_ns[stage] / 1e9 + end_s, network_s

    path_s, network_s = network_paths_s(dag, bytes_per_s)
    bare_s, nothing_s = network_paths_s(dag, np.inf)
    for job, (first, end) in enumerate(pairwise(arrays.first_stage.tolist())):
        assert (path_s[job], network_s[job]) == pytest.approx(max(map(longest, range(first, end))), rel=1e-9)
    assert not nothing_s.any()
    assert (bare_s <= path_s).all()
    assert (path_s <= bare_s + network_s * (1 + 1e-9) + 1e-6 * path_s).all()
