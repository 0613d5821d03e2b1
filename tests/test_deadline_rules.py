"""The independent orders of coflows with deadlines: an example by hand, and what another program gave on CoflowLib."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from tests.oracles.deadline_rules import (
    ORDERS,
    RULES,
    Instance,
    acceptance,
    cs_mha,
    dcoflow,
    finish_times,
    moore_hodgson,
    read_instances,
)

COFLOWLIB = Path(__file__).parents[2] / "shared" / "traces" / "coflowlib"
# Mean acceptance rates that an independent program gave on the 100 instances of each archive.
MEASURED = {
    "off_synthetic_m10_c10": (0.515, 0.561, None, 0.567, 0.509, 0.482),
    "off_synthetic_m10_c40": (0.245, 0.276, None, 0.276, 0.152, 0.182),
    "off_facebook_m10_c10": (0.781, 0.786, None, 0.782, 0.778, 0.768),
    "off_facebook_m10_c40": (0.519, 0.521, None, 0.533, 0.477, 0.399),
}


def star(machines: int) -> Instance:
    """DCoflow's figure 1 for any number of machines: the first coflow is at all ports and is due first.

    It takes each port for 1 and is due at 1; each other coflow is one flow from a machine to its neighbour, takes its
    two ports for 1.2 and is due at 2.
    """
    here = np.arange(machines)
    flows = [(0, 1.0, i, machines + i) for i in here]
    flows += [(1 + i, 1.2, i, machines + (i + 1) % machines) for i in here]
    coflow, volume, source, sink = np.array(flows).T
    return Instance(
        np.ones(machines + 1),
        np.array([1.0] + [2.0] * machines),
        coflow.astype(int),
        volume,
        np.stack([source, sink], 1).astype(int),
        np.ones(2 * machines),
    )


@pytest.mark.parametrize("machines", [4, 20])
def test_the_paper_s_example_and_the_family_of_it(machines: int) -> None:
    # At each port Moore-Hodgson keeps the first coflow and rejects the longer one, so CS-MHA admits one coflow: the
    # others begin at 1 and end at 2.2. DCoflow rejects the first: no port of it would be in time.
    instance = star(machines)
    assert acceptance(instance, cs_mha(instance)) == pytest.approx(1 / (machines + 1))
    for rule in RULES[:3]:
        order = dcoflow(instance, rule)
        assert sorted(order) == list(range(1, machines + 1))
        assert acceptance(instance, order) == pytest.approx(machines / (machines + 1))


def test_moore_hodgson_by_hand_and_against_all_subsets() -> None:
    times, deadline = np.array([2.0, 3.0, 2.0, 4.0]), np.array([2.0, 4.0, 5.0, 9.0])
    assert moore_hodgson(times, deadline, range(4)) == [1]
    rng = np.random.default_rng(1)
    for _ in range(50):
        times, deadline = rng.integers(1, 6, 6).astype(float), rng.integers(1, 15, 6).astype(float)
        most = max(
            int((np.cumsum(times[list(order)]) <= deadline[list(order)]).sum())
            for order in permutations(range(6))
        )
        assert 6 - len(moore_hodgson(times, deadline, range(6))) == most


def test_flows_are_served_in_order_by_hand() -> None:
    # Two flows of coflow 0 share port 0: 0 to 1, 1 to 3. Coflow 1 goes from port 1 to the sink of the second: it runs
    # until 1, when the second takes its sink, and on from 3: it ends at 4.
    instance = Instance(
        np.ones(2),
        np.array([3.0, 3.0]),
        np.array([0, 0, 1]),
        np.array([1.0, 2.0, 2.0]),
        np.array([[0, 2], [0, 3], [1, 3]]),
        np.ones(4),
    )
    assert finish_times(instance, [0, 1]).tolist() == [3.0, 4.0]
    assert finish_times(instance, [1, 0]).tolist() == [4.0, 2.0]
    assert finish_times(instance, [1]).tolist() == [np.inf, 2.0]
    assert acceptance(instance, [0, 1]) == acceptance(instance, [1, 0]) == 0.5


@pytest.mark.reference
@pytest.mark.slow("hundreds of instances")
@pytest.mark.skipif(not COFLOWLIB.exists(), reason="no CoflowLib instances beside the repository")
@pytest.mark.parametrize("archive", MEASURED)
def test_acceptance_rates_are_those_of_another_program(archive: str) -> None:
    instances = read_instances(COFLOWLIB / f"{archive}.zip")
    assert len(instances) == 100
    for order_of, measured in zip(ORDERS.values(), MEASURED[archive], strict=True):
        if measured is not None:
            mean = np.mean([acceptance(one, order_of(one)) for one in instances])
            assert mean == pytest.approx(measured, abs=0.005)
