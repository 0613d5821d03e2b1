"""Coflows with deadlines, beside their examples (`golden/coflows`): what holds of each run that admits or reserves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import finish
from coflow_emulations import (
    ADMITTING,
    COSTS,
    RESERVING,
    SPEED,
    admitting_setting,
    coflows,
    due,
    instants,
    mixed_workload,
    parts_of_state,
    rates_now,
    setting_of,
    star,
    with_deadlines,
)
from emulations import OBSERVED, run_setting
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.fabric.agent import timer_for
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NONE

EXAMPLES = 5 if config.DISABLE_JIT else 10


def met_share(setting: Any) -> float:
    outcome, deadline_ns = run_setting(setting), setting.workload.arrays().deadline_ns
    return float(np.mean((outcome.finish_ns >= 0) & (outcome.finish_ns <= deadline_ns)))


@pytest.mark.parametrize("machines", [2, 10, 50])
def test_the_family_of_the_figure(machines: int) -> None:
    assert met_share(setting_of("dcoflow", star(machines))) == machines / (machines + 1)
    assert met_share(setting_of("cs-mha", star(machines))) == 1 / (machines + 1)


@pytest.mark.parametrize("scheduler", [*ADMITTING, *RESERVING, "edf", "order-ilp", "cds-lp"])
def test_ports_suffice_and_what_is_counted_balances(scheduler: str) -> None:
    # Of cds-lp: a flow at next to no rate, which was taken to end at once; and the flows of a coflow that was dropped.
    @example(38, 0.0005, False, 0)
    @example(693, 0.0005, True, 0)
    @example(36, 0.0005, False, 0)  # of varys-deadline: the coordinator knows of a coflow's last end first
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.integers(0, 1000), st.sampled_from([0.0, 0.0005, 0.003]), st.booleans(), st.integers(0, 4))
    def hold(seed: int, delay_s: float, costs: bool, which: int) -> None:
        setting = admitting_setting(scheduler, seed, delay_s, costs, which)
        partition = Partition(setting, OBSERVED)
        partition.start()
        fabric, a = partition.world.fabric, parts_of_state(partition).admission
        flows, since, steps = fabric.flows, 0, 0
        rates, sent, last_sent = (np.zeros(flows.size.size) for _ in range(3))
        for t in instants(partition):
            sent += rates * (t - since)
            last_sent[rates > 1e-5 * fabric.speed.max()] = t  # less is rounding
            rates, since, steps = rates_now(partition), t, steps + 1
            load = np.bincount(flows.source, rates, fabric.speed.size)
            load += np.bincount(flows.sink, rates, fabric.speed.size)
            assert (load <= fabric.speed * (1 + 1e-9)).all()
        outcome = partition.outcome()
        # What counts as in time has been sent by then, at the rates above; ends are in whole ns.
        met = (outcome.finish_ns >= 0) & (outcome.finish_ns <= setting.workload.arrays().deadline_ns)
        of_met = met[flows.coflow] & (flows.line[:, 0] != NONE)
        assert np.abs(sent - flows.size)[of_met].max(initial=0.0) <= fabric.speed.max() * steps
        assert (last_sent <= outcome.finish_ns[flows.coflow])[of_met].all()
        counts, records = partition.world.counts, partition.world.task_records
        assert counts[N_ARRIVED] == counts[N_STARTED] == counts[N_FINISHED]
        assert not rates.any()
        gone = a.verdict >= 2
        assert outcome.counters.get("dropped", 0) == gone.sum()
        last = np.maximum.reduceat(records.finish, fabric.coflows.first_flow)
        # A coflow that is dropped has ended if its flows have when the decision takes effect.
        ended = ~gone | (outcome.finish_ns != NONE)
        assert np.array_equal(outcome.finish_ns[ended], last[ended])
        assert (records.node >= 0)[~gone[fabric.flows.coflow]].all()
        endless = setting.workload.coflows["deadline_s"].is_null().to_numpy(zero_copy_only=False)
        assert not gone[endless].any()
        assert outcome.series.admitted[endless].all()
        rejected = (a.verdict == 0) | (a.verdict == 2)
        assert np.array_equal(outcome.series.admitted, ~rejected)
        assert (outcome.series.rejected_ns[rejected] >= 0).all()

    hold()


@pytest.mark.parametrize("scheduler", [*ADMITTING, *RESERVING])
def test_what_is_admitted_at_its_arrival_has_time_for_it(scheduler: str) -> None:
    for seed in range(5):
        setting = admitting_setting(scheduler, seed, 0.002, False, 0)
        outcome, arrays = run_setting(setting, OBSERVED), setting.workload.arrays()
        fabric = Partition(setting, OBSERVED).world.fabric
        need = np.zeros((arrays.arrival_ns.size, fabric.speed.size))
        for side in (fabric.flows.source, fabric.flows.sink):
            np.add.at(need, (fabric.flows.coflow, side), fabric.flows.size)
        alone_ns = (need[:, fabric.speed > 0] / fabric.speed[fabric.speed > 0]).max(axis=1)
        hopeless = arrays.deadline_ns - arrays.arrival_ns < alone_ns + 4e6 - 1
        assert hopeless.any()
        assert (outcome.series.admitted_ns[hopeless] < 0).all()


@pytest.mark.parametrize("scheduler", ["dcoflow", "chronos"])
def test_more_verdicts_than_one_event_may_send(scheduler: str) -> None:
    workload = with_deadlines(mixed_workload(120, 6, seed=3, mean_gap=0.0), most=5.0)
    setting = setting_of(scheduler, workload, speed=SPEED, delay_s=0.001, costs=COSTS)
    narrow, wide = Partition(setting, OBSERVED), Partition(setting, OBSERVED)
    wide.world = wide.world._replace(queue=wide.world.queue._replace(room=2000))
    for partition in (narrow, wide):
        partition.start()
        finish(partition)
    one, other = narrow.outcome(), wide.outcome()
    assert one.counters["verdicts"] > 2 * narrow.world.queue.room
    assert one.events > other.events
    assert np.array_equal(one.finish_ns, other.finish_ns)
    assert one.counters == other.counters


@pytest.mark.parametrize("scheduler", RESERVING)
def test_what_is_admitted_is_in_time(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.integers(0, 1000), st.sampled_from([0.0, 0.0005, 0.003]), st.booleans(), st.integers(0, 2))
    def hold(seed: int, delay_s: float, costs: bool, which: int) -> None:
        setting = admitting_setting(scheduler, seed, delay_s, costs, which)
        outcome, deadline_ns = run_setting(setting, OBSERVED), setting.workload.arrays().deadline_ns
        admitted = outcome.series.admitted
        assert (outcome.finish_ns >= 0)[admitted].all()
        assert (outcome.finish_ns <= deadline_ns)[admitted].all()

    hold()


def test_timers_end_with_what_they_are_for() -> None:
    # Coflow 0 leaves 1e-8 of port 0 (in), by which its share lets coflow 1 end in three years. What it is backfilled
    # ends it at 2; the timer for its line must not go on.
    rows = coflows((0, [(0, 0, 0.99999999)]), (0, [(0, 1, 1), (1, 2, 1)]), ports=3)
    work = due(rows, 1.0, 0.9)
    for scheduler, asked in (("chronos", {}), ("varys-deadline", {"rejected": "serve"})):
        partition = Partition(setting_of(scheduler, work, **asked), OBSERVED)
        partition.start()
        last = max(instants(partition))
        assert int(partition.world.queue.now.events[0]) < 40
        assert last <= partition.outcome().finish_ns.max() + 10**10


def test_the_timer_of_a_far_end_is_set_again_few_times() -> None:
    t, times, end = 0, 0, 10**18
    while t < end:
        after = timer_for(end, np.int64(0), np.int64(t))
        assert t < after <= min(end, t + max(t // 8, 10**10))
        t, times = after, times + 1
    assert times < 200
