"""Philae's coordinator knows which coflows have anything to send at a port, and their queues, whatever is updated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bounded_runs import started
from coflow_emulations import instants, rates_now
from conformance import SCHEDULERS, planned
from emulations import OBSERVED

from actors.hosting.partition import Partition
from actors.kernel.queue import NEVER, NONE
from actors.setting import Costs, Network

SEEDS = range(6)


@pytest.mark.parametrize("policy", ["A", "B", "C", "D"])
def test_philae_knows_the_number_of_coflows_at_each_port(policy: str) -> None:
    for seed in SEEDS:
        setting = planned(SCHEDULERS["philae"], seed, {"policy": policy, "decide": "events"}).setting
        partition = started(replace(setting, network=Network(0.0), costs=Costs()), OBSERVED)
        for t in instants(partition):
            knows_the_coflows_at_each_port(partition, t)


def knows_the_coflows_at_each_port(partition: Partition, t: int) -> None:
    fabric, state, given = partition.world.fabric, partition.state, partition.setting.parameters
    flows = fabric.flows
    there = (flows.finish == NEVER) & (flows.line[:, 0] != NONE) & (fabric.coflows.arrival[flows.coflow] <= t)
    at = {
        (c, port)
        for side in (flows.source, flows.sink)
        for c, port in zip(flows.coflow[there], side[there], strict=True)
    }
    at_port = np.bincount([port for _, port in at], minlength=fabric.speed.size)
    assert np.array_equal(state.coflows_at_port, at_port)
    for c in np.flatnonzero(state.queues.queue >= 0) if given["policy"] == "D" else ():
        around = sum(at_port[port] - state.excludes_itself for coflow, port in at if coflow == c)
        assert state.contention_sum[c] == around
        if not given["size_correction"]:
            assert state.queues.queue[c] == np.searchsorted(state.queues.limit, state.length[c] * around)


@pytest.mark.parametrize("name", ["fifo", "sincronia", "aalo", "philae"])
def test_agents_do_at_once_what_the_coordinator_believes(name: str) -> None:
    """Without delays and costs, of flows that have rates of their own, while tasks restart and move."""
    given = {"rates": "greedy"} if name == "fifo" else {}
    for seed in SEEDS:
        setting = planned(SCHEDULERS[name], seed, given).setting
        partition = started(replace(setting, network=Network(0.0), costs=Costs()), OBSERVED)
        matching = getattr(partition.state, "ordered", partition.state).matching
        for _ in instants(partition):
            sent = np.flatnonzero(rates_now(partition))
            assert np.array_equal(np.unique(matching.flow[matching.flow >= 0]), sent)
