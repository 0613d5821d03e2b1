"""The order of a coflow's own flows: by hand, and beside an independent program.

In examples a port sends a byte in a second, so that bytes are seconds; "2 0>1" is the flow of coflow 2 from port 0 to
port 1.
"""

from __future__ import annotations

import numpy as np
import pytest
from coflow_emulations import NS, coflows, log_of, setting_of
from emulations import OBSERVED, run_setting
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.kernel.compiled import config
from benchmarks.deadline_rules import Instance, finish_times
from tests.actors.schedulers.coflows.test_admission import due

PORTS = 3
EXAMPLES = 10 if config.DISABLE_JIT else 60
IN_ORDER = ("dcoflow", "wdcoflow", "cs-mha", "edf", "order-ilp", "sincronia")
FLOW = st.tuples(st.integers(0, PORTS - 1), st.integers(0, PORTS - 1), st.integers(1, 4))
COFLOWS = st.lists(
    st.lists(FLOW, min_size=1, max_size=5, unique_by=lambda flow: flow[:2]), min_size=1, max_size=5
)


@pytest.mark.parametrize("scheduler", IN_ORDER)
def test_flows_of_a_coflow_by_hand(scheduler: str) -> None:
    # As in the workload: 0>1 and 1>2 go first. At 1 port 1 is free again on both sides, but 0>2 waits for 1>2, until 3;
    # 0>0 is behind it and can begin at 1, and at 3 is stopped for 0>2, with 1 left, which it sends from 4 on.
    # By ports: 0>0 is the first of port 0, and 1>2 of port 1; at 3 0>1 follows, and the last is 0>2.
    one = coflows((0, [(0, 1, 1.0), (1, 2, 3.0), (0, 2, 1.0), (0, 0, 3.0)]), ports=3)
    workload = due(one, 100.0)
    assert log_of(scheduler, workload, flow_order="workload").sending == {
        "0 0>1": [(0, 1)],
        "0 1>2": [(0, 3)],
        "0 0>2": [(3, 4)],
        "0 0>0": [(1, 3), (4, 5)],
    }
    assert log_of(scheduler, workload, flow_order="ports").sending == {
        "0 0>0": [(0, 3)],
        "0 1>2": [(0, 3)],
        "0 0>1": [(3, 4)],
        "0 0>2": [(4, 5)],
    }


@settings(max_examples=EXAMPLES)
@given(COFLOWS, st.randoms(use_true_random=False))
def test_all_ends_as_in_an_independent_program(
    rows: list[list[tuple[int, int, int]]], random: object
) -> None:
    """In the order of deadlines, all there at time 0 and none dropped."""
    rank = list(range(len(rows)))
    random.shuffle(rank)  # type: ignore[attr-defined]
    flows = [(k, *flow) for k, own in enumerate(rows) for flow in own]
    coflow, source, sink, size = np.array(flows).T
    instance = Instance(
        weight=np.ones(len(rows)),
        deadline=np.array(rank, float),
        coflow=coflow,
        volume=size.astype(float),
        ports=np.stack([source, PORTS + sink], 1),
        capacity=np.ones(2 * PORTS),
    )
    workload = due(
        coflows(*((0.0, [(i, j, float(b)) for i, j, b in own]) for own in rows), ports=PORTS),
        *(100.0 + place for place in rank),
    )
    ended = run_setting(setting_of("edf", workload, drop_expired=False), OBSERVED).finish_ns / NS
    assert ended.tolist() == pytest.approx(finish_times(instance, list(np.argsort(rank))))
