import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.strategies import coflows
from workloads.arrow import column
from workloads.coflows import (
    COFLOWS_SCHEMA,
    FLOWS_SCHEMA,
    NO_DEADLINE_NS,
    PORTS_SCHEMA,
    make_coflow_workload,
    with_demands,
)
from workloads.errors import InputError


def small(**changes):
    """Two coflows on three ports: three flows (two of them between the same ports), and one to itself."""
    arguments = {
        "arrival_s": [0.5, 2.0],
        "width": [3, 1],
        "ingress": [0, 0, 1, 2],
        "egress": [1, 1, 2, 2],
        "size_bytes": [1.0, 2.0, 4.0, 8.0],
        "num_ports": 3,
    }
    return make_coflow_workload("small", **(arguments | changes))


def test_tables_have_the_schema_with_units():
    workload = small(deadline_s=[np.nan, 2.5], egress_bytes_per_s=[1.0, np.nan, 3.0])
    for table, schema in (
        (workload.coflows, COFLOWS_SCHEMA),
        (workload.flows, FLOWS_SCHEMA),
        (workload.ports, PORTS_SCHEMA),
    ):
        assert table.schema.equals(schema, check_metadata=True)
        table.validate(full=True)
    assert workload.coflows.to_pydict() == {
        "coflow_id": [0, 1],
        "arrival_s": [0.5, 2.0],
        "width": [3, 1],
        "senders": [2, 1],
        "receivers": [2, 1],
        "size_bytes": [7.0, 8.0],
        "weight": [1.0, 1.0],
        "deadline_s": [None, 2.5],
    }
    assert workload.flows["coflow_id"].to_pylist() == [0, 0, 0, 1]
    assert workload.ports.to_pydict() == {
        "port": [0, 1, 2],
        "ingress_bytes_per_s": [None] * 3,
        "egress_bytes_per_s": [1.0, None, 3.0],
    }
    assert (workload.num_coflows, workload.num_flows, workload.num_ports) == (2, 4, 3)


def test_arrays_are_read_only_nanoseconds_and_bytes():
    arrays = small(deadline_s=[np.nan, 2.5], ingress_bytes_per_s=[1.0, np.nan, 3.0]).arrays()
    assert arrays.arrival_ns.tolist() == [5 * 10**8, 2 * 10**9]
    assert arrays.deadline_ns.tolist() == [NO_DEADLINE_NS, 25 * 10**8]
    assert arrays.first_flow.tolist() == [0, 3, 4]
    assert arrays.ingress.tolist() == [0, 0, 1, 2]
    assert arrays.egress.tolist() == [1, 1, 2, 2]
    assert arrays.size_bytes.tolist() == [1.0, 2.0, 4.0, 8.0]
    np.testing.assert_array_equal(arrays.ingress_bytes_per_s, [1.0, np.nan, 3.0])
    assert np.isnan(arrays.egress_bytes_per_s).all()
    assert not any(array.flags.writeable for array in arrays)


def test_arrivals_out_of_order_are_sorted_with_their_flows_and_it_is_said():
    workload = small(arrival_s=[9.0, 2.0], coflow_id=[7, 3], weight=[5.0, 6.0], deadline_s=[np.nan, 3.0])
    assert workload.coflows["coflow_id"].to_pylist() == [3, 7]
    assert workload.coflows["weight"].to_pylist() == [6.0, 5.0]
    assert workload.coflows["deadline_s"].to_pylist() == [3.0, None]
    assert workload.coflows["senders"].to_pylist() == [1, 2]
    assert workload.flows.to_pydict() == {
        "coflow_id": [3, 7, 7, 7],
        "ingress": [2, 0, 0, 1],
        "egress": [2, 1, 1, 2],
        "size_bytes": [8.0, 1.0, 2.0, 4.0],
    }
    assert workload.notes == ("arrivals of small were not in order: 2 coflows moved; sorted by arrival",)


@given(coflows())
def test_what_is_stated_of_a_coflow_is_that_of_its_flows(workload):
    flows = workload.flows.to_pylist()
    assert sorted(column(workload.coflows, "arrival_s")) == column(workload.coflows, "arrival_s").tolist()
    for coflow in workload.coflows.to_pylist():
        own = [flow for flow in flows if flow["coflow_id"] == coflow["coflow_id"]]
        assert coflow["width"] == len(own)
        assert coflow["senders"] == len({flow["ingress"] for flow in own})
        assert coflow["receivers"] == len({flow["egress"] for flow in own})
        assert coflow["size_bytes"] == pytest.approx(sum(flow["size_bytes"] for flow in own))


@given(coflows(), st.randoms(use_true_random=False))
def test_the_order_of_coflows_does_not_matter(workload, random):
    table = workload.coflows
    order = list(range(workload.num_coflows))
    if len(set(table["arrival_s"].to_pylist())) == len(order):
        random.shuffle(order)
    arrays = workload.arrays()
    flows = [f for c in order for f in range(arrays.first_flow[c], arrays.first_flow[c + 1])]
    again = make_coflow_workload(
        "again",
        column(table, "arrival_s")[order],
        column(table, "width")[order],
        arrays.ingress[flows],
        arrays.egress[flows],
        arrays.size_bytes[flows],
        workload.num_ports,
        coflow_id=column(table, "coflow_id")[order],
        weight=arrays.weight[order],
        deadline_s=np.array(table["deadline_s"].to_pylist(), float)[order],
        ingress_bytes_per_s=arrays.ingress_bytes_per_s,
        egress_bytes_per_s=arrays.egress_bytes_per_s,
    )
    assert again.fingerprint() == workload.fingerprint()


def test_other_deadlines_and_weights_take_the_place_of_those_there_are():
    was = small(weight=[5.0, 6.0], deadline_s=[np.nan, 3.0])
    made = with_demands(was, deadline_s=[1.0, np.nan])
    assert made.coflows["deadline_s"].to_pylist() == [1.0, None]
    assert made.coflows["weight"].to_pylist() == [5.0, 6.0]
    heavy = with_demands(made, weight=[7.0, 8.0])
    assert heavy.coflows["deadline_s"].to_pylist() == [1.0, None]
    assert heavy.fingerprint() == small(weight=[7.0, 8.0], deadline_s=[1.0, np.nan]).fingerprint()
    assert heavy.coflows.schema.equals(was.coflows.schema, check_metadata=True)
    for changes, message in (
        ({"weight": [1.0, -1.0]}, "line 2: field weight: -1.0 is not a number above 0"),
        ({"deadline_s": [0.0, 1.0]}, "line 1: field deadline_s: 0.0 is before the arrival"),
        ({"deadline_s": [3.0]}, "field deadline_s: 1 values for 2 coflows"),
    ):
        with pytest.raises(InputError, match=message):
            with_demands(was, **changes)
