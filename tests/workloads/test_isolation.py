"""How long coflows take alone: by hand, and against a sum for each port."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.workloads.family_examples import coflows_of
from tests.workloads.strategies import coflows
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.errors import InputError
from workloads.isolation import isolated_s, with_port_speeds


def test_the_slowest_port_decides():
    workload = make_coflow_workload(
        "three",
        [0.0, 1.0, 2.0],
        [1, 3, 2],
        [0, 0, 0, 1, 1, 1],
        [1, 0, 1, 1, 1, 1],
        [6.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        2,
        ingress_bytes_per_s=[2.0, 1.0],
        egress_bytes_per_s=[10.0, 4.0],
    )
    # 6 bytes in at 2 a second; 3 in at 1 (5 out at 4 take less); 4 + 5 in at 1, between the same two ports.
    assert isolated_s(workload).tolist() == [3.0, 3.0, 9.0]


@given(coflows(complete=True))
def test_it_is_the_most_over_ports_of_bytes_over_speed(workload: CoflowWorkload) -> None:
    arrays = workload.arrays()
    sides = (
        (arrays.ingress, arrays.ingress_bytes_per_s),
        (arrays.egress, arrays.egress_bytes_per_s),
    )
    for c, alone_s in enumerate(isolated_s(workload)):
        flows = slice(arrays.first_flow[c], arrays.first_flow[c + 1])
        size, ports = arrays.size_bytes[flows], workload.num_ports
        busiest = max((np.bincount(port[flows], size, ports) / speed).max() for port, speed in sides)
        assert alone_s == pytest.approx(busiest, rel=1e-12)


def test_speeds_that_are_not_known_are_asked_for():
    workload = coflows_of([(0.0, None, {(0, 1): 1.0})], ports=3)
    with pytest.raises(
        InputError, match="field port_speed_bps: coflows does not state the speed of its ports; give"
    ):
        isolated_s(workload)
    assert isolated_s(with_port_speeds(workload, 0.5)).tolist() == [2.0]


def test_speeds_are_filled_in_where_there_are_none():
    some = make_coflow_workload(
        "some",
        [0.0],
        [1],
        [0],
        [1],
        [6.0],
        2,
        ingress_bytes_per_s=[2.0, np.nan],
        egress_bytes_per_s=[np.nan, 5.0],
    )
    arrays = with_port_speeds(some, 3.0).arrays()
    assert arrays.ingress_bytes_per_s.tolist() == [2.0, 3.0]
    assert arrays.egress_bytes_per_s.tolist() == [3.0, 5.0]
    assert with_port_speeds(some, 3.0).ports.schema.equals(some.ports.schema, check_metadata=True)
    assert isolated_s(some).tolist() == [3.0]  # those that are not known are not used
