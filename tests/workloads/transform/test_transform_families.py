"""Transformations of DAGs and coflows: what belongs to a job or a coflow goes with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import coflows_of, dags_of
from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.stages import edges_schema, stages_schema
from workloads.transform import (
    merge,
    replicate,
    sample,
    scale,
    time_slice,
    truncate,
)
from workloads.transform.load import fabric_bytes_per_s, offered_bytes_per_s
from workloads.transform.primitives import row_counts

MANY = settings(max_examples=20)


@st.composite
def dags(draw: Any) -> DagWorkload:
    jobs = []
    for _ in range(draw(st.integers(1, 5))):
        stages = draw(st.lists(st.lists(st.floats(0, 1e3), min_size=1, max_size=3), min_size=1, max_size=4))
        pairs = [(a, b) for b in range(len(stages)) for a in range(b)]
        edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        jobs.append((draw(st.floats(0, 1e4)), stages, edges, draw(st.sampled_from(["a", "b", None]))))
    made = dags_of(sorted(jobs, key=lambda job: job[0]))
    return with_bytes(made, draw(st.integers(0, 9)))


def with_bytes(workload: DagWorkload, every: int) -> DagWorkload:
    """The workload with bytes of which one in `every` is not known, and none are known for 1; 0: without columns."""
    if every == 0:
        return workload
    tables = {}
    for table, name, schema in (
        ("edges", "size_bytes", edges_schema),
        ("stages", "input_bytes", stages_schema),
    ):
        rows = getattr(workload, table)
        sizes = [None if n % every == 0 else 10.0**n for n in range(rows.num_rows)]
        names = [*rows.column_names, name]
        columns = [*rows.columns, pa.array(sizes, pa.float64())]
        tables[table] = pa.table(dict(zip(names, columns, strict=True))).cast(schema(names))
    return replace(workload, **tables)


@st.composite
def coflows(draw: Any) -> CoflowWorkload:
    flows = st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)), st.floats(1, 1e9), min_size=1, max_size=6
    )
    made = []
    for arrival_s in sorted(draw(st.lists(st.floats(0, 1e4), min_size=1, max_size=6))):
        deadline_s = draw(st.none() | st.floats(0, 100).map(lambda left_s, at=arrival_s: at + left_s))
        made.append((arrival_s, deadline_s, draw(flows)))
    return coflows_of(made, ports=4)


def owners_lie_in_order(workload: DagWorkload | CoflowWorkload) -> bool:
    """Whether ids differ, arrivals are in order, and each part's rows lie in the order of what arrives."""
    coflows = isinstance(workload, CoflowWorkload)
    head, key, time, parts = (
        ("coflows", "coflow_id", "arrival_s", ["flows"])
        if coflows
        else ("jobs", "job_id", "submit_s", ["stages", "edges", "tasks"])
    )
    ids = column(getattr(workload, head), key)
    return (
        len(set(ids.tolist())) == len(ids)
        and bool((np.diff(column(getattr(workload, head), time)) >= 0).all())
        and all(
            np.repeat(ids, row_counts(workload, part)).tolist() == getattr(workload, part)[key].to_pylist()
            for part in parts
        )
    )


def two_dags() -> DagWorkload:
    return dags_of(
        [
            (5.0, [[1.0, 2.0], [4.0], [10.0]], [(0, 1), (0, 2)], "a"),
            (9.0, [[3.0], [5.0, 5.0]], [(1, 0)], "b"),
        ]
    )


def rich() -> DagWorkload:
    """Two DAGs with demands, kinds of edges and bytes; the second knows none of them."""
    return make_dag_workload(
        "rich",
        [0.0, 8.0],
        [2, 1],
        [2, 2, 1],
        [1.0] * 5,
        [(0, 0, 1)],
        demands={"attr:gpu": [1, np.nan, np.nan], "disk_in": [0.5, 0.25, np.nan]},
        edge_kind=["one-to-one"],
        edge_bytes=[7.0],
        input_bytes=[5.0, 0.0, np.nan],
    )


def two_coflows(port_bytes_per_s: float | None = None) -> CoflowWorkload:
    return coflows_of(
        [(0.0, 8.0, {(0, 1): 6e6, (1, 1): 2e6}), (10.0, None, {(2, 0): 12e6})],
        ports=3,
        port_bytes_per_s=port_bytes_per_s,
    )


@MANY
@given(workload=coflows(), copies=st.integers(1, 3))
def test_copies_of_coflows_have_ports_of_their_own(workload: CoflowWorkload, copies: int) -> None:
    made = replicate(workload, copies)
    assert owners_lie_in_order(made)
    assert made.ports["port"].to_pylist() == list(range(4 * copies))
    size = column(made.flows, "size_bytes")
    for side in ("ingress", "egress"):
        was = np.bincount(column(workload.flows, side), column(workload.flows, "size_bytes"), 4)
        assert np.bincount(column(made.flows, side), size, 4 * copies) == pytest.approx(np.tile(was, copies))
    assert (column(made.flows, "ingress") // 4 == column(made.flows, "egress") // 4).all()
    assert (
        column(made.coflows, "arrival_s").tolist()
        == np.repeat(column(workload.coflows, "arrival_s"), copies).tolist()
    )


def test_demands_bytes_and_kinds_of_edges_go_with_their_stages() -> None:
    """Where one of two workloads knows none, all of its are unknown; where none is left, none is written."""
    both = merge([rich(), two_dags()])
    assert both.resources == ("cpu_cores", "disk_in", "attr:gpu")
    assert both.arrays().edge_one_to_one.tolist() == [1, 0, 0, 0]
    assert both.edges.schema.equals(edges_schema(rich().edges.column_names), check_metadata=True)
    assert both.stages.schema.equals(stages_schema(rich().stages.column_names), check_metadata=True)
    later = time_slice(rich(), 4.0, 9.0, rebase=False)
    plain = make_dag_workload("plain", [8.0], [1], [1], [1.0], [], job_id=[1])
    assert (later.resources, later.bytes_known) == ((), ())
    assert later.fingerprint() == plain.fingerprint()
    again = replicate(both, 2, 0.0)
    assert again.arrays().edge_one_to_one.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert again.arrays().demand.sum(axis=0).tolist() == (2 * both.arrays().demand.sum(axis=0)).tolist()


@MANY
@given(workload=dags(), cap_s=st.floats(1e-3, 1e3))
def test_truncated_dags(workload: DagWorkload, cap_s: float) -> None:
    made = truncate(workload, cap_s)
    assert column(made.tasks, "duration_s").max() <= cap_s
    assert owners_lie_in_order(made)
    assert made.edges.equals(workload.edges)
    assert (column(made.stages, "mean_task_s") <= column(workload.stages, "mean_task_s")).all()


@MANY
@given(workload=coflows(), load=st.floats(0.01, 2))
def test_coflows_are_scaled_to_a_load_of_their_ports(workload: CoflowWorkload, load: float) -> None:
    times_s = column(workload.coflows, "arrival_s")
    if times_s[-1] - times_s[0] < 1e-3:
        return
    made = scale(workload, load, port_speed_bps=1e9)
    assert offered_bytes_per_s(made) / (4 * 125e6) == pytest.approx(load, rel=1e-6)
    was, now = workload.coflows.to_pylist(), made.coflows.to_pylist()
    for before, after in zip(was, now, strict=True):
        if before["deadline_s"] is None:
            assert after["deadline_s"] is None
        else:  # as much time as before
            left_s = before["deadline_s"] - before["arrival_s"]
            assert after["deadline_s"] - after["arrival_s"] == pytest.approx(left_s, abs=1e-9)
            assert after["deadline_s"] >= after["arrival_s"]
    assert made.flows.equals(workload.flows)


def test_stated_speeds_of_ports_are_used() -> None:
    stated = two_coflows(1e6)
    assert fabric_bytes_per_s(stated) == 3e6
    assert scale(stated, 2.0 / 3.0).coflows["arrival_s"].to_pylist() == pytest.approx([0.0, 10.0])
    slower = pa.array([1e6, 1e6, 0.5e6])
    ports = stated.ports.set_column(2, stated.ports.schema.field(2), slower)
    from dataclasses import replace

    assert fabric_bytes_per_s(replace(stated, ports=ports)) == 2.5e6


def test_a_sample_of_coflows_keeps_short_and_long() -> None:
    made = [(float(n), None, {(0, 1): 1e6 if n % 4 else 50e6}) for n in range(40)]
    sizes = sample(coflows_of(made, ports=2), share=0.5).coflows["size_bytes"].to_pylist()
    assert Counter(sizes) == {1e6: 15, 50e6: 5}
