"""No scheduler of coflows meets more deadlines than the optimum, and no order more than the best of all orders."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pytest
from coflow_emulations import NAMES, coflows, due, setting_of, variants_of
from emulations import OBSERVED, run_setting

from actors.schedulers.coflows.integer_programs import Demand
from tests.actors.schedulers.coflows.test_integer_programs import can_be_sent
from tests.oracles.deadline_rules import Instance, finish_times
from workloads.coflows import CoflowWorkload

PORTS = 3
SEEDS = (0, 1, 2, 3, 36, 64)  # in the last two no order meets as many deadlines as the optimum
ORDERS = ("dcoflow", "wdcoflow", "cs-mha", "edf", "order-ilp")
"""Schedulers whose order of coflows stays as it is when all are there at the beginning."""


class Case(NamedTuple):
    """A workload of up to seven coflows that are all there at the beginning, and the optimum."""

    workload: CoflowWorkload
    flows: list[list[tuple[int, int, float]]]  # of each coflow: ingress, egress, bytes
    due_s: list[float]
    weight: list[float]
    most: float  # coflows in time under any division of bandwidth
    most_weight: float
    most_in_order: int  # under any order, each flow of which has both of its ports, or waits


def case_of(seed: int) -> Case:
    """Coflows that use no port twice, so that the order of a coflow's own flows makes no difference."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 8)) if seed % 2 else 4
    flows = []
    for _ in range(count):
        width = int(rng.integers(1, PORTS + 1))
        ends = zip(rng.permutation(PORTS)[:width], rng.permutation(PORTS)[:width], strict=True)
        flows.append([(int(i), int(e), float(rng.integers(1, 5))) for i, e in ends])
    due_s = [float(max(size for *_, size in own) * rng.uniform(1.0, 3.0)) for own in flows]
    weight = rng.integers(1, 4, count).astype(float)
    workload = due(coflows(*((0.0, own) for own in flows), ports=PORTS), *due_s, weight=weight)
    demand = Demand(
        coflow=np.repeat(np.arange(count), [len(own) for own in flows]),
        ports=np.array([(i, PORTS + e) for own in flows for i, e, _ in own]),
        size_bytes=np.array([size for own in flows for *_, size in own]),
        time_left_s=np.array(due_s),
        weight=weight,
        bytes_per_s=np.ones(2 * PORTS),
    )
    sets = [chosen for n in range(count + 1) for chosen in combinations(range(count), n)]
    possible = [chosen for chosen in sets if can_be_sent(demand, chosen)]
    return Case(
        workload, flows, due_s, weight.tolist(), max(map(len, possible)),
        max(float(weight[list(chosen)].sum()) for chosen in possible),
        max(in_time(flows, due_s, order) for order in permutations(range(count))),
    )  # fmt: skip


def in_time(flows: list[list[tuple[int, int, float]]], due_s: list[float], order: tuple[int, ...]) -> int:
    """How many coflows are in time if flows have both of their ports in this order, decided at each end of a flow."""
    rows = [(k, *flow) for k, own in enumerate(flows) for flow in own]
    coflow, ingress, egress, size = (np.array(column) for column in zip(*rows, strict=True))
    ports = np.stack([ingress, PORTS + egress], axis=1)
    instance = Instance(np.ones(len(flows)), np.array(due_s), coflow, size, ports, np.ones(2 * PORTS))
    return int((finish_times(instance, list(order)) <= instance.deadline + 1e-9).sum())


IN_TURN = [pytest.param(seed, marks=pytest.mark.slow("four more cases")) for seed in SEEDS[:-2]] + [
    *SEEDS[-2:]
]


@pytest.fixture(scope="module", params=IN_TURN)
def case(request: pytest.FixtureRequest) -> Case:
    """One of the cases, with what is best in it."""
    return case_of(request.param)


def met(scheduler: str, case: Case, **parameters: object) -> np.ndarray:
    """Which coflows end by their deadlines."""
    finish_ns = run_setting(setting_of(scheduler, case.workload, **parameters), OBSERVED).finish_ns
    found: np.ndarray = (finish_ns >= 0) & (finish_ns <= case.workload.arrays().deadline_ns)
    return found


def test_the_cases_tell_schedulers_apart() -> None:
    cases = [case_of(seed) for seed in SEEDS]
    assert any(case.most < len(case.flows) for case in cases)
    assert [case.most_in_order < case.most for case in cases][-2:] == [True, True]
    assert len({tuple(met(name, case).sum() for case in cases) for name in ORDERS}) > 1


def test_none_meets_more_than_the_optimum(case: Case) -> None:
    for name in NAMES:
        for parameters in variants_of(name):
            found = met(name, case, **parameters)
            assert found.sum() <= case.most, (name, parameters)
            assert np.array(case.weight)[found].sum() <= case.most_weight, (name, parameters)
    assert np.array(case.weight)[met("cds-lp", case)].sum() == case.most_weight


def test_no_order_meets_more_than_the_best_of_all(case: Case) -> None:
    for name in ORDERS:
        for parameters in variants_of(name):
            assert met(name, case, **parameters).sum() <= case.most_in_order, (name, parameters)
    for name in ("fifo", "scf", "ncf", "lcf"):
        assert met(name, case, rates="greedy").sum() <= case.most_in_order, name
