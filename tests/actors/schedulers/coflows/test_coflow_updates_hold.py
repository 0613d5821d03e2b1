"""Tasks of coflows that restart or move, at random: all that was lost is sent again, whatever else happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from checkpointing import digest_with_restores
from coflow_emulations import COSTS, Row, coflows, instants, mixed_workload, rates_now, updated, variants_of
from emulations import OBSERVED, digest, run_setting, run_windows
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from actors.fabric.counters import N_LOST
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.setting import Setting
from workloads.coflow_updates import DEREGISTER, MOVE, NO_SIDE, RECEIVER, RESTART, SENDER, make_updates
from workloads.coflow_updates import Row as Update
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError

NS = 1_000_000_000
MIB = 1 << 20
PORT = MIB / 0.008  # bytes per second: a MiB in an interval
WHERE = (0, 1, 70, 140)  # ports, so that lines are of several words
EXAMPLES = 15 if config.DISABLE_JIT else 20
PHASES = [p for p in Phase if p is not Phase.explain]


Case = tuple[list[Row], list[tuple[Any, ...]], dict[str, Any]]  # coflows, updates, settings
SIZES = st.one_of(st.integers(1, 8).map(lambda n: n * MIB // 4), st.sampled_from([1, 1000, 3 * MIB + 1]))
FLOWS = st.dictionaries(
    st.tuples(st.sampled_from(WHERE), st.sampled_from(WHERE)), SIZES, min_size=1, max_size=12
)


@st.composite
def cases(draw: st.DrawFn, exact: bool) -> Case:
    """A small case, with updates as `admitted` takes them; `exact`: without delays and costs."""
    rows: list[Row] = []
    at = 0.0
    for flows in draw(st.lists(FLOWS, min_size=1, max_size=4)):
        at += draw(st.sampled_from([0.0, 0.001, 0.008, 0.0123456]))
        rows.append((at, [(i, j, float(size)) for (i, j), size in flows.items()]))
    port = st.sampled_from(WHERE)
    update = st.tuples(
        st.integers(0, len(rows) - 1),
        st.sampled_from([0.0, 0.004, 0.008, 0.016, 0.0213, 0.05, 0.1]),
        st.sampled_from([RESTART, MOVE, MOVE, DEREGISTER]),
        st.sampled_from([SENDER, RECEIVER]),
        port,
        port,
    )
    asked = {
        "delay_s": 0.0 if exact else draw(st.sampled_from([0.0005, 0.003, 0.02])),
        "costs": None if exact else draw(st.sampled_from([None, COSTS])),
        "local_is_free": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
    }
    return rows, draw(st.lists(update, max_size=8)), asked


def admitted(workload: CoflowWorkload, wanted: Sequence[tuple[Any, ...]]) -> list[Update]:
    """Those of (coflow, seconds after its arrival, kind, side, port, to) that are of tasks that are there."""
    arrival_s, updates = workload.arrays().arrival_ns / NS, []
    for coflow, after_s, kind, side, port, to in wanted:
        ports = (NO_SIDE, -1, -1) if kind == DEREGISTER else (side, port, to if kind == MOVE else -1)
        update = Update(float(arrival_s[coflow]) + after_s, coflow, kind, *ports)
        try:
            make_updates([*updates, update], workload)
        except InputError:
            continue
        updates.append(update)
    return updates


def setting_for(scheduler: str, variant: dict[str, Any], case: Case) -> Setting:
    rows, wanted, asked = case
    workload = coflows(*rows, ports=WHERE[-1] + 1)
    return updated(scheduler, workload, admitted(workload, wanted), speed=PORT, **variant, **asked)


@pytest.mark.parametrize("scheduler", ["fifo", "sincronia", "aalo", "philae"])
def test_all_is_sent_again_that_was_lost(scheduler: str) -> None:
    variants = [v for v in variants_of(scheduler) if v.get("rates") != "madd"]

    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(st.data())
    def hold(data: st.DataObject) -> None:
        exact = data.draw(st.booleans())
        setting = setting_for(scheduler, data.draw(st.sampled_from(variants)), data.draw(cases(exact)))
        partition = Partition(setting, OBSERVED)
        partition.start()
        sent = sent_at_rates_that_ports_have(partition, exact)
        nothing_is_left(partition)
        bytes_add_up(setting, partition, sent)

    hold()


def sent_at_rates_that_ports_have(partition: Partition, exact: bool) -> np.ndarray:
    """[F] bytes sent; where nothing takes time, agents do what the coordinator believes."""
    fabric, matching = partition.world.fabric, partition.state.matching
    flows = fabric.flows
    sent, rates, since = np.zeros(flows.size.size), np.zeros(flows.size.size), 0
    for t in instants(partition):
        sent += rates * (t - since)
        rates, since = rates_now(partition), t
        load = np.bincount(flows.source, rates, fabric.speed.size)
        load += np.bincount(flows.sink, rates, fabric.speed.size)
        assert (load <= fabric.speed * (1 + 1e-9)).all(), f"at {t} ns"
        if exact:
            assert np.array_equal(np.unique(matching.flow[matching.flow >= 0]), np.flatnonzero(rates))
            if hasattr(partition.state, "coflows_at_port"):
                knows_the_coflows_at_each_port(partition, t)
    assert not rates.any()
    return sent


def knows_the_coflows_at_each_port(partition: Partition, t: int) -> None:
    """Philae's coordinator knows which coflows have anything to send at a port, and so their queues."""
    fabric, state = partition.world.fabric, partition.state
    flows, parameters = fabric.flows, partition.setting.parameters
    there = (flows.finish == NEVER) & (flows.line[:, 0] != NONE) & (fabric.coflows.arrival[flows.coflow] <= t)
    at = {
        (c, port)
        for side in (flows.source, flows.sink)
        for c, port in zip(flows.coflow[there], side[there], strict=True)
    }
    at_port = np.bincount([port for _, port in at], minlength=fabric.speed.size)
    assert np.array_equal(state.coflows_at_port, at_port)
    for c in np.flatnonzero(state.queues.queue >= 0) if parameters["policy"] == "D" else ():
        around = sum(at_port[port] - state.excludes_itself for coflow, port in at if coflow == c)
        assert state.contention_sum[c] == around
        if not parameters["size_correction"]:
            assert state.queues.queue[c] == np.searchsorted(state.queues.limit, state.length[c] * around)


def nothing_is_left(partition: Partition) -> None:
    world, state = partition.world, partition.state
    counts, crossing = world.counts, world.fabric.flows.line[:, 0] != NONE
    assert not world.sending.left[crossing].any()
    assert not world.fabric.coflows.left.any()
    assert not world.fabric.lines.left.any()
    assert counts[N_ARRIVED] == counts[N_STARTED] == counts[N_FINISHED]
    assert (state.matching.flow < 0).all()
    assert state.matching.running[0] == 0
    assert state.agenda.due[0] == NEVER


def bytes_add_up(setting: Setting, partition: Partition, sent: np.ndarray) -> None:
    outcome, world = partition.outcome(), partition.world
    gone = outcome.finish_ns < 0
    assert gone.sum() == outcome.counters.get("deregistered", 0)
    if gone.any():
        return
    assert outcome.tasks is not None
    assert (outcome.tasks["finish_ns"] >= 0).all()
    if setting.switch.local_is_free:
        return
    # Ends are in whole ns, and so is whatever changes a rate.
    rounding = world.fabric.speed.max() * float(world.queue.now.events[0]) + 100
    wanted = setting.workload.arrays().size_bytes.sum() + world.counts[N_LOST]
    assert abs(sent.sum() - wanted) <= rounding


def rough(scheduler: str) -> Setting:
    """A setting in which updates of all kinds meet late schedules and costs."""
    workload, rng = mixed_workload(8, 5, seed=5), np.random.default_rng(3)
    kinds = rng.choice([RESTART, MOVE, DEREGISTER], 60, p=[0.5, 0.4, 0.1])
    columns = (
        rng.integers(8, size=60),
        rng.exponential(0.02, 60),
        kinds,
        *rng.integers(0, (2, 5, 5), (60, 3)).T,
    )
    updates = admitted(workload, list(zip(*(column.tolist() for column in columns), strict=True)))
    variant = {} if scheduler == "fifo" else variants_of(scheduler)[0]
    return updated(scheduler, workload, updates, speed=PORT, delay_s=0.002, costs=COSTS, **variant)


@pytest.mark.parametrize("scheduler", ["fifo", "aalo", "philae"])
def test_results_do_not_depend_on_partitions_or_checkpoints(scheduler: str) -> None:
    setting = rough(scheduler)
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["coflow_updates"] > whole.counters.get("updates_without_effect", 0)
    assert digest(whole) != digest(run_setting(replace(setting, updates=None), OBSERVED))
    for partitions in (2, 3):
        outcome = run_windows(setting, OBSERVED, partitions)
        assert digest(outcome) == digest(whole), partitions
        assert outcome.delayed == (0, 0, 0)
    found, moves = digest_with_restores(setting, seed=1)
    assert found == digest(whole)
    assert moves > 0
