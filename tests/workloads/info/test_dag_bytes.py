"""Bytes of DAGs as they are described: totals, quantiles over jobs, and the time that edges take at a network."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import dags_of
from tests.workloads.strategies import dags as any_dags
from workloads.critical_path import network_paths_s
from workloads.dags import DagWorkload, make_dag_workload
from workloads.info import QUANTILES, describe, render

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


def test_bytes_by_hand() -> None:
    """At 10 Gbit/s a port: 10 GB between 4 and 2 tasks take 4 s; around it 5 GB take 2 s, and 2.5 GB 1 s, one each."""
    path_s, network_s = network_paths_s(shuffling(), 1.25e9)
    assert path_s.tolist() == [4 + 2 + 2 + 1 + 2, 2.0, 9.0]
    assert network_s.tolist() == [3.0, 0.0, 0.0]
    assert network_paths_s(shuffling(), 0.5e9)[1].tolist() == [10.0, 0.0, 0.0]
    assert network_paths_s(shuffling(1.0), 1.25e9)[1].tolist() == [4.0, 0.0, 0.0]  # both ways take 10 s
    d = describe(shuffling())
    json.dumps(d)
    assert d["bytes"] == {
        "edges": {"all-to-all": 15e9, "one-to-one": 2.5e9},
        "edges_known": 0.75,
        "input": 41e9,
        "stages_known": pytest.approx(1 / 3),
        "port_bps": 10e9,
        "job": {
            "edge_bytes": [17.5e9] * len(QUANTILES),
            "input_bytes": np.percentile([40e9, 1e9], QUANTILES).tolist(),
            "network_share": pytest.approx([3 / 11] * len(QUANTILES)),
        },
    }
    text = render(d)
    assert (
        "\nbytes on edges: 15 GB all-to-all, 2.5 GB one-to-one (known of 75 % of edges)\n"
        "bytes of input: 41 GB (known of 33.33 % of stages)\n" in text
    )
    assert "\n  edges (MB)       17,500   17,500" in text
    assert "\n  network (%)       27.27    27.27" in text
    assert "a machine a task and\n  ports of 10 Gbps." in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_is_not_known_is_not_shown() -> None:
    plain = dags_of([(3.0, [[1.0], [2.0]], [(0, 1)], None)])
    assert describe(plain)["bytes"] is None
    assert "bytes" not in render(describe(plain))
    read = describe(make_dag_workload("w", [0.0], [1], [2], [1.0, 1.0], [], input_bytes=[0.0]))
    assert read["bytes"]["edges_known"] is None
    assert read["bytes"]["job"]["network_share"] == []
    text = render(read)
    assert "bytes on edges: not known\nbytes of input: 0 B (known of 100 % of stages)\n" in text
    assert "network" not in text
    sent = describe(make_dag_workload("w", [0.0], [2], [1, 1], [0.0, 0.0], [(0, 0, 1)], edge_bytes=[0.0]))
    assert sent["bytes"]["job"] == {
        "edge_bytes": [0.0] * len(QUANTILES),
        "input_bytes": [],
        "network_share": [],  # of a path that takes no time
    }
    assert "0 B all-to-all (known of 100 % of edges)\nbytes of input: not known\n" in render(sent)


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
