"""What holds for every scheduler of coflows, tried on small hard workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpointing import digest_with_restores
from coflow_emulations import (
    COSTS,
    NAMES,
    Row,
    cases,
    coflows,
    digests,
    fit_for,
    instants,
    mixed_workload,
    rates_now,
    setting_of,
    variants_of,
)
from emulations import OBSERVED, differing, digest, run_setting, run_windows
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from python_process import run_python

from actors.fabric.counters import N_DECISIONS
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting

NS = 1_000_000_000
MIB = 1 << 20
PORT = MIB / 0.008  # bytes per second: a MiB in an interval, so that much falls on its end
EXAMPLES = 5 if config.DISABLE_JIT else 12
PHASES = [p for p in Phase if p is not Phase.explain]
PORTS = 4
SIZES = st.one_of(
    st.integers(1, 8).map(lambda n: n * MIB // 4), st.sampled_from([1, 1000, 77_777, 3 * MIB + 1])
)
FLOWS = st.dictionaries(
    st.tuples(st.integers(0, PORTS - 1), st.integers(0, PORTS - 1)), SIZES, min_size=1, max_size=12
)
GAPS = st.sampled_from([0.0, 0.0, 0.001, 0.008, 0.0123456, 0.1])
DIVISIBLE = [name for name in NAMES if "always" not in find_scheduler(name).global_view]


Case = tuple[
    list[Row], dict[str, Any]
]  # coflows, and settings: what hypothesis shows of an example that fails


@st.composite
def cases_of(draw: st.DrawFn, scheduler: str, exact: bool = False) -> Case:
    """A small case; `exact`: without delays and costs."""
    rows: list[Row] = []
    at = 0.0
    for flows in draw(st.lists(FLOWS, min_size=1, max_size=8)):
        at += draw(GAPS)
        rows.append((at, [(i, j, float(size)) for (i, j), size in flows.items()]))
    given = {
        "delay_s": 0.0 if exact else draw(st.sampled_from([0.0, 0.0005, 0.003])),
        "costs": None if exact else draw(st.sampled_from([None, COSTS])),
        "local_is_free": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(variants_of(scheduler))),
    }
    return rows, given


def setting_for(scheduler: str, case: Case) -> Setting:
    rows, given = case
    return setting_of(scheduler, coflows(*rows, ports=PORTS), speed=PORT, **given)


def started(setting: Setting) -> Partition:
    partition = Partition(setting, OBSERVED)
    partition.start()
    return partition


@pytest.mark.parametrize("scheduler", NAMES)
def test_ports_suffice_and_all_is_sent_once(scheduler: str) -> None:
    # Settings are drawn inside, so that every scheduler has its own examples.
    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(cases_of(scheduler))
    def hold(case: Case) -> None:
        setting = setting_for(scheduler, case)
        partition = started(setting)
        all_is_sent_at_rates_that_ports_have(partition)
        outcome = partition.outcome()
        flows_end_once(setting, partition)
        coflows_follow_their_flows(partition, outcome)
        nothing_is_left(partition)

    hold()


def all_is_sent_at_rates_that_ports_have(partition: Partition) -> None:
    fabric = partition.world.fabric
    flows, arrival = fabric.flows, fabric.coflows.arrival[fabric.flows.coflow]
    local = fabric.flows.line[:, 0] == NONE
    sent, rates, since, steps = np.zeros(local.size), np.zeros(local.size), 0, 0
    for t in instants(partition):
        sent += rates * (t - since)
        rates, since, steps = rates_now(partition), t, steps + 1
        load = np.bincount(flows.source, rates, fabric.speed.size) + np.bincount(
            flows.sink, rates, fabric.speed.size
        )
        assert (load <= fabric.speed * (1 + 1e-9)).all(), f"at {t} ns"
        assert (arrival[rates > 0] <= t).all()
        assert not rates[local].any()
    assert not rates.any()
    # Ends are in whole ns, and so is whatever changes a rate.
    assert np.abs(np.where(local, flows.size, sent) - flows.size).max() <= fabric.speed.max() * steps


def flows_end_once(setting: Setting, partition: Partition) -> None:
    fabric, counts, records = partition.world.fabric, partition.world.counts, partition.world.task_records
    flows, arrival = fabric.flows, fabric.coflows.arrival[fabric.flows.coflow]
    for which in (N_ARRIVED, N_STARTED, N_FINISHED):
        assert counts[which : which + 2].tolist() == [arrival.size, 0]
    assert np.array_equal(records.finish, flows.finish)
    assert np.array_equal(records.node, flows.source)
    free = setting.switch.local_is_free & (flows.source + fabric.side == flows.sink)
    assert (records.finish[free] == arrival[free]).all()
    assert (records.start[free] == arrival[free]).all()
    hops = 0 if setting.scheduler.global_view else 2
    least = hops * round(setting.network.delay_s * NS)
    assert (records.start[~free] >= arrival[~free] + least).all()
    steps = int(partition.world.queue.now.events[0])
    assert (records.finish - records.start >= np.where(free, 0, flows.size / fabric.speed[0] - steps)).all()


def coflows_follow_their_flows(partition: Partition, outcome: Outcome) -> None:
    records, first = partition.world.task_records, partition.world.fabric.coflows.first_flow
    assert np.array_equal(outcome.start_ns, np.minimum.reduceat(records.start, first))
    assert np.array_equal(outcome.finish_ns, np.maximum.reduceat(records.finish, first))
    assert outcome.tasks is not None  # in the order of the workload
    assert np.array_equal(np.sort(outcome.tasks["finish_ns"]), np.sort(records.finish))


def nothing_is_left(partition: Partition) -> None:
    world, state = partition.world, partition.state
    assert not world.sending.rate.any()
    assert not world.fabric.coflows.left.any()
    assert state.agenda.due[0] == NEVER
    if hasattr(state, "matching") and not getattr(state, "by_madd", False):
        assert (state.matching.flow < 0).all()
        assert state.matching.running[0] == 0


# Where decisions are made at the end of intervals, ports may wait for it. Nothing waits elsewhere, except for
# pilots where coflows that are being sampled get nothing else.
BY_INTERVAL = {"aalo", "aalo-oracle", "aalo-shares", "saath"}
NOT_CONSERVING = {"cds-lp", "cds-lpa", "sebf-deadline"}  # by plan, and where nothing is backfilled


def waits_for_interval(setting: Setting) -> bool:
    given = setting.parameters
    periodic = given.get("decide") == "interval" or given.get("update_period_s", 0.0) > 0
    return periodic or setting.scheduler.name in BY_INTERVAL


@pytest.mark.parametrize("scheduler", [name for name in NAMES if name not in NOT_CONSERVING])
def test_no_flow_waits_while_both_of_its_ports_idle(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(cases_of(scheduler, exact=True))
    def hold(case: Case) -> None:
        conserves(setting_for(scheduler, case))

    hold()


def conserves(setting: Setting) -> None:
    if not setting.parameters.get("work_conservation", True):
        return
    partition, made = started(setting), 0
    fabric, counts, flows = partition.world.fabric, partition.world.counts, partition.world.fabric.flows
    arrival, crossing = fabric.coflows.arrival[flows.coflow], flows.line[:, 0] != NONE
    for t in instants(partition):
        decided, made = counts[N_DECISIONS] > made, counts[N_DECISIONS]
        if decided or not waits_for_interval(setting):
            rates = rates_now(partition)
            busy = np.union1d(flows.source[rates > 0], flows.sink[rates > 0])
            waits = crossing & (arrival <= t) & (flows.finish == NEVER) & (rates == 0)
            idle = ~np.isin(flows.source, busy) & ~np.isin(flows.sink, busy)
            assert not (waits & idle).any(), f"at {t} ns"


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(cases_of("philae", exact=True))
def test_philae_knows_the_number_of_coflows_at_each_port(case: Case) -> None:
    philae_knows(setting_for("philae", case))


def philae_knows(setting: Setting) -> None:
    partition = started(setting)
    fabric, state = partition.world.fabric, partition.state
    flows, queue = fabric.flows, state.queues.queue
    limits = state.queues.limit
    for t in instants(partition):
        there = (
            (flows.finish == NEVER) & (flows.line[:, 0] != NONE) & (fabric.coflows.arrival[flows.coflow] <= t)
        )
        at = {
            (c, port)
            for side in (flows.source, flows.sink)
            for c, port in zip(flows.coflow[there], side[there], strict=True)
        }
        at_port = np.bincount([port for _, port in at], minlength=fabric.speed.size)
        assert np.array_equal(state.coflows_at_port, at_port)
        if setting.parameters["policy"] != "D":
            continue
        for c in np.flatnonzero(queue >= 0):
            around = sum(at_port[port] - state.excludes_itself for coflow, port in at if coflow == c)
            assert state.contention_sum[c] == around
            if not setting.parameters["size_correction"]:
                assert queue[c] == np.searchsorted(limits, state.length[c] * around)


def late(scheduler: str, i: int, costs: bool) -> Setting:
    """A setting with network delays that takes few windows."""
    return setting_of(
        scheduler,
        fit_for(scheduler, mixed_workload(10, 5, seed=5)),
        speed=PORT,
        delay_s=0.002,
        costs=COSTS if costs else None,
        local_is_free=costs,
        **variants_of(scheduler)[i],
    )


@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("scheduler", DIVISIBLE)
def test_results_are_the_same_for_any_number_of_partitions(scheduler: str, costs: bool) -> None:
    for i in range(len(variants_of(scheduler))):
        setting = late(scheduler, i, costs)
        whole = run_setting(setting, OBSERVED)
        for partitions in (1, 2, 3, 4):
            outcome = run_windows(setting, OBSERVED, partitions)
            assert digest(outcome) == digest(whole), f"{variants_of(scheduler)[i]}, {partitions} partitions"
            assert outcome.delayed == (0, 0, 0)
            assert (outcome.series is None) == (whole.series is None)
            for column, again in zip(whole.series or (), outcome.series or (), strict=True):
                assert np.array_equal(again, column, equal_nan=True)


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    return digests()


@pytest.mark.parametrize("scheduler", NAMES)
def test_what_is_tried_of_a_scheduler_differs(scheduler: str, expected: dict[str, str]) -> None:
    own = [found for name, found in expected.items() if name.split()[0] == scheduler]
    assert len(set(own)) == len(own) > 0


def test_the_same_after_checkpoints(expected: dict[str, str]) -> None:
    for seed, (name, setting) in enumerate(cases()):
        found, moves = digest_with_restores(setting, seed)
        assert found == expected[name], name
        assert moves > 0


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compares with compiled code")
def test_the_same_as_plain_python(expected: dict[str, str]) -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    code += "from actors.kernel.cost import take; assert type(take).__name__ == 'function'\n"
    code += "import json, coflow_emulations; print(json.dumps(coflow_emulations.digests()))"
    plain: dict[str, Any] = json.loads(run_python(code, NUMBA_DISABLE_JIT="1"))
    assert not differing(expected, plain)
