"""Coflows in an order beside their examples (`golden/coflows`): an independent program, and the fluid that MADD is."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_runs import finish
from coflow_emulations import COSTS, NS, coflows, mixed_workload, setting_of
from emulations import OBSERVED, run_setting
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import by_madd, run

from actors.fabric.ports import build_fabric, merge_parallel
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.setting import Costs
from tests.actors.coflow_emulations import due
from tests.oracles.deadline_rules import Instance, finish_times

EXAMPLES = 5 if config.DISABLE_JIT else 10


@settings(max_examples=EXAMPLES)
@given(st.integers(1, 25), st.integers(1, 8), st.integers(0, 2**31), st.sampled_from([0.005, 0.05]))
def test_without_delays_and_costs_madd_is_the_fluid(
    num_coflows: int, ports: int, seed: int, gap: float
) -> None:
    workload = mixed_workload(num_coflows, max(ports, 3), seed, gap)
    for scheduler in ("fifo", "sebf"):
        outcome = run_setting(setting_of(scheduler, workload, speed=128e6), OBSERVED)
        fabric = build_fabric(merge_parallel(workload.arrays())[0], 128e6)
        run(by_madd(fabric, scheduler == "sebf"))
        assert np.array_equal(outcome.finish_ns, fabric.coflows.finish)
        assert outcome.tasks is not None
        assert np.array_equal(np.sort(outcome.tasks["finish_ns"]), np.sort(fabric.flows.finish))


@pytest.mark.parametrize("costs", [None, COSTS])
def test_what_one_event_may_not_send_goes_in_others(costs: Costs | None) -> None:
    setting = setting_of("sebf", mixed_workload(15, 6, seed=2), speed=128e6, delay_s=0.001, costs=costs)
    whole, narrow = Partition(setting, OBSERVED), Partition(setting, OBSERVED)
    narrow.world = narrow.world._replace(queue=narrow.world.queue._replace(room=9))
    for partition in (whole, narrow):
        partition.start()
        finish(partition)
    assert narrow.world.queue.now.events[0] > whole.world.queue.now.events[0] + 100
    assert np.array_equal(narrow.outcome().finish_ns, whole.outcome().finish_ns)
    assert narrow.outcome().counters == whole.outcome().counters


PORTS = 3
FLOW = st.tuples(st.integers(0, PORTS - 1), st.integers(0, PORTS - 1), st.integers(1, 4))
COFLOWS = st.lists(
    st.lists(FLOW, min_size=1, max_size=5, unique_by=lambda flow: flow[:2]), min_size=1, max_size=5
)


@settings(max_examples=EXAMPLES)
@given(COFLOWS, st.randoms(use_true_random=False))
def test_all_ends_as_in_an_independent_program(
    rows: list[list[tuple[int, int, int]]], random: object
) -> None:
    """In the order of deadlines, all there at time 0 and none dropped."""
    rank = list(range(len(rows)))
    random.shuffle(rank)
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
