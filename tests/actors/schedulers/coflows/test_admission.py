"""Admission of coflows with deadlines: examples worked out by hand, and what holds in every run.

In examples a port sends a byte in a second, so that bytes are seconds; "2 0>1" is the flow of coflow 2 from port 0 to
port 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import finish
from checkpointing import digest_with_restores
from coflow_emulations import (
    COSTS,
    NS,
    SPEED,
    Log,
    coflows,
    instants,
    log_of,
    mixed_workload,
    rates_now,
    setting_of,
    variants_of,
    with_deadlines,
)
from emulations import OBSERVED, digest, run_setting
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NONE
from actors.setting import Costs
from workloads.coflows import CoflowWorkload, make_coflow_workload, with_demands

EXAMPLES = 5 if config.DISABLE_JIT else 10
ADMITTING = ("dcoflow", "wdcoflow", "cs-mha")
RESERVING = ("varys-deadline", "chronos")
NEVER = -1.0


def star(machines: int) -> CoflowWorkload:
    """DCoflow's figure 1, for any number of machines: the first coflow is at all ports and is due first.

    It takes each port for 1 and is due at 1; each other coflow is one flow from a machine to its neighbour, takes its
    two ports for 1.2 and is due at 2.
    """
    here = np.arange(machines)
    return make_coflow_workload(
        "star",
        np.zeros(machines + 1),
        [machines] + [1] * machines,
        np.concatenate([here, here]),
        np.concatenate([here, (here + 1) % machines]),
        np.repeat([1.0, 1.2], machines),
        machines,
        deadline_s=[1.0] + [2.0] * machines,
    )


def due(workload: CoflowWorkload, *deadline_s: float, weight: Any = None) -> CoflowWorkload:
    return with_demands(workload, deadline_s=deadline_s, weight=weight)


def verdicts(log: Log) -> list[tuple[bool, float, float]]:
    """Of each coflow whether it was admitted, and when it was last admitted and rejected, s; -1: never."""
    times = [
        [t / NS if t >= 0 else NEVER for t in log.learned[f"{name}_ns"]] for name in ("admitted", "rejected")
    ]
    return list(zip(log.learned["admitted"], *times, strict=True))  # type: ignore[arg-type]


def met_share(setting: Any) -> float:
    outcome, deadline_ns = run_setting(setting), setting.workload.arrays().deadline_ns
    return float(np.mean((outcome.finish_ns >= 0) & (outcome.finish_ns <= deadline_ns)))


@pytest.mark.parametrize("reject", ["min-negative", "min-congested", "min-all"])
def test_dcoflow_admits_all_but_one_of_the_paper_s_figure(reject: str) -> None:
    # At each port 2.2 is needed, and the last deadline is 2: one is rejected. The wide coflow would be late by 1.2 at
    # all of its 8 ports, -1.2 at each; the others by 0.2 at two, -0.24 at each.
    log = log_of("dcoflow", star(4), reject=reject)
    assert verdicts(log) == [(False, NEVER, 0.0)] + [(True, 0.0, NEVER)] * 4
    assert log.sending == {
        **{f"0 {i}>{i}": [] for i in range(4)},
        **{f"{1 + i} {i}>{(i + 1) % 4}": [(0.0, 1.2)] for i in range(4)},
    }
    counted = {"admissions": 4, "rejections": 1, "dropped": 1, "verdicts": 8}
    assert {name: log.counters[name] for name in counted} == counted


def test_cs_mha_admits_one_of_the_paper_s_figure() -> None:
    # Each port keeps the wide coflow, which is due first, and rejects the longer one, which comes behind, too late.
    log = log_of("cs-mha", star(4))
    assert verdicts(log) == [(True, 0.0, NEVER)] + [(False, NEVER, 0.0)] * 4
    assert log.sending == {
        **{f"0 {i}>{i}": [(0.0, 1.0)] for i in range(4)},
        **{f"{1 + i} {i}>{(i + 1) % 4}": [(1.0, 2.2)] for i in range(4)},
    }
    alone = log_of("cs-mha", star(4), serve_rejected=False)
    assert [name for name, spans in alone.sending.items() if spans] == [f"0 {i}>{i}" for i in range(4)]
    assert alone.counters["dropped"] == 4


@pytest.mark.parametrize("machines", [2, 10, 50])
def test_the_family_of_the_figure(machines: int) -> None:
    assert met_share(setting_of("dcoflow", star(machines))) == machines / (machines + 1)
    assert met_share(setting_of("cs-mha", star(machines))) == 1 / (machines + 1)


# Coflow 0 has 4 at ports 0 and 1, is due at 5.6. Coflow 1 comes at 1 with 3 at port 0, due at 5.5; coflow 2 at 2 with
# 3 at port 1, due at 6.
COMES_BACK = due(
    coflows((0, [(0, 0, 4), (1, 1, 4)]), (1, [(0, 3, 3)]), (2, [(1, 2, 3)]), ports=4), 5.6, 5.5, 6.0
)


@pytest.mark.parametrize("scheduler", ["dcoflow", "wdcoflow"])
def test_a_rejected_coflow_comes_back(scheduler: str) -> None:
    # At 1 coflow 0 has 3 left, and port 0 needs 6: by 4.6 and 4.5 neither is in time behind the other. The measures
    # are 3 (4.6 - 6) = -4.2 and 3 (4.5 - 6) = -4.5: coflow 1 is rejected. At 2 coflow 0 has 2 left in 3.6, and ports
    # 0 and 1 need 5: it would be late at both, 2 * 2 (3.6 - 5) = -5.6, coflow 1 with 3 (3.5 - 5) = -4.5 at one.
    # Coflow 0 is rejected; as none is to come, for good.
    log = log_of(scheduler, COMES_BACK)
    assert verdicts(log) == [(False, 0.0, 2.0), (True, 2.0, 1.0), (True, 2.0, NEVER)]
    assert log.sending == {"0 0>0": [(0, 2)], "0 1>1": [(0, 2)], "1 0>3": [(2, 5)], "2 1>2": [(2, 5)]}
    assert log.decisions == [0, 1, 2]
    counted = {"admissions": 3, "rejections": 2, "dropped": 1, "verdicts": 7}
    assert {name: log.counters[name] for name in counted} == counted


def test_rejected_coflows_may_be_served_behind_the_others() -> None:
    # Coflow 0 goes on at 5, behind coflows 1 and 2, and ends late.
    log = log_of("dcoflow", COMES_BACK, serve_rejected=True)
    assert verdicts(log) == [(False, 0.0, 2.0), (True, 2.0, 1.0), (True, 2.0, NEVER)]
    assert log.sending["0 0>0"] == log.sending["0 1>1"] == [(0, 2), (5, 7)]
    assert "dropped" not in log.counters


@pytest.mark.parametrize("scheduler", [*ADMITTING, *RESERVING])
@pytest.mark.parametrize(("delay_s", "is_admitted"), [(0.4, True), (0.5, True), (0.6, False)])
def test_a_coflow_whose_messages_take_longer_than_its_slack_is_not_admitted(
    scheduler: str, delay_s: float, is_admitted: bool
) -> None:
    # It takes 1 and is due 2 after it arrives: its slack is 1, which is two messages of 0.5.
    workload = due(coflows((1, [(0, 1, 1)]), ports=2), 3.0)
    log = log_of(scheduler, workload, delay_s=delay_s)
    asked = round(1 + delay_s, 9)
    assert verdicts(log) == [(True, asked, NEVER) if is_admitted else (False, NEVER, asked)]
    begin = round(1 + 2 * delay_s, 9)
    served = is_admitted or scheduler in ("cs-mha", "chronos")  # which serve what they reject
    assert log.sending == {"0 0>1": [(begin, round(begin + 1, 9))] if served else []}


@pytest.mark.parametrize("scheduler", [*ADMITTING, *RESERVING])
def test_what_a_decision_costs_is_part_of_the_delay(scheduler: str) -> None:
    workload = due(coflows((0, [(0, 1, 1)]), ports=2), 2.0)
    for price, is_admitted in ((1.0, True), (1.1, False)):
        log = log_of(scheduler, workload, costs=Costs("fixed", per_coflow_s=price))
        assert [row[0] for row in verdicts(log)] == [is_admitted]


def test_verdicts_cost_as_much_as_schedules() -> None:
    # At 0 three agents are sent an admission, and one of them a rate: 4 schedules.
    flows = [(0, 1, 1.0), (2, 1, 1.0), (3, 1, 1.0)]
    workload = due(coflows((0, flows), ports=4), 100.0)
    log = log_of("dcoflow", workload, costs=Costs("fixed", per_schedule_s=0.5))
    assert log.sending["0 0>1"] == [(2.0, 3.0)]


def test_decisions_at_a_period() -> None:
    # Coflow 0 comes at 0.25, and the first decision is at 1. Coflow 1 comes at 1.5: at 2 it has 1.9 left for 2.
    workload = due(coflows((0.25, [(0, 0, 4)]), (1.5, [(1, 1, 2)]), ports=2), 6.0, 3.9)
    log = log_of("dcoflow", workload, update_period_s=1.0)
    assert verdicts(log) == [(True, 1.0, NEVER), (False, NEVER, 2.0)]
    assert log.sending == {"0 0>0": [(1, 5)], "1 1>1": []}
    assert log.decisions == [1, 2, 3, 4, 5]
    assert verdicts(log_of("dcoflow", workload))[1] == (True, 1.5, NEVER)


def test_earliest_deadline_first() -> None:
    # Coflow 1, which is due first, stops coflow 0 from 1 to 3. Coflow 2 is late at 4, and is dropped then, when
    # coflow 3 comes; without that it is the first, and goes on.
    rows = coflows((0, [(0, 0, 3)]), (1, [(0, 1, 2)]), (2, [(1, 2, 4)]), (4, [(1, 3, 1)]), ports=4)
    workload = due(rows, 9.0, 4.0, 3.5, np.nan)
    log = log_of("edf", workload)
    assert log.sending == {"0 0>0": [(0, 1), (3, 5)], "1 0>1": [(1, 3)], "2 1>2": [(2, 4)], "3 1>3": [(4, 5)]}
    assert verdicts(log) == [(True, NEVER, NEVER)] * 4  # no admission
    assert log.counters["dropped"] == 1
    kept = log_of("edf", workload, drop_expired=False)
    assert (kept.sending["2 1>2"], kept.sending["3 1>3"]) == ([(2, 6)], [(6, 7)])


def test_what_is_admitted_and_late_is_dropped_at_the_next_decision() -> None:
    # Coflow 2 is in time by the estimate: its three ports have 2 each, and it is due at 2.5. But until 1 its ports
    # 0 and 1 (in) are those of coflows 0 and 1, so that port 1 (out) idles, and then has both of its flows to receive.
    # When coflow 3 comes, at 2.6, it is dropped; it was admitted, and never rejected.
    rows = coflows(
        (0, [(0, 0, 1)]), (0, [(1, 2, 1)]), (0, [(0, 1, 1), (1, 1, 1)]), (2.6, [(3, 3, 1)]), ports=4
    )
    log = log_of("dcoflow", due(rows, 1.0, 1.0, 2.5, 9.0))
    assert log.sending == {
        "0 0>0": [(0, 1)],
        "1 1>2": [(0, 1)],
        "2 0>1": [(1, 2)],
        "2 1>1": [(2, 2.6)],
        "3 3>3": [(2.6, 3.6)],
    }
    assert verdicts(log) == [(True, 0, NEVER)] * 3 + [(True, 2.6, NEVER)]
    assert (log.counters["dropped"], log.counters["admissions"]) == (1, 4)
    assert "rejections" not in log.counters


def test_sincronia_may_order_at_arrivals_alone() -> None:
    rows = coflows((0, [(0, 0, 2)]), (0, [(1, 0, 3), (1, 1, 1)]), (0, [(2, 0, 2.5), (2, 1, 0.5)]), ports=3)
    once, again = (log_of("sincronia", rows, reorder=reorder) for reorder in ("arrivals", "ends"))
    assert len(once.decisions) == 1
    assert len(again.decisions) == 4  # and when each has ended
    heavy = with_demands(rows, weight=[1.0, 9.0, 1.0])
    assert log_of("sincronia", heavy, weights=False).sending == again.sending
    assert log_of("sincronia", heavy).sending != again.sending


def admitting_setting(
    scheduler: str, seed: int, delay_s: float, costs: bool, which: int, gap: float = 0.003
) -> Any:
    workload = with_deadlines(mixed_workload(12, 4, seed, gap), seed)
    own = variants_of(scheduler)
    return setting_of(
        scheduler,
        workload,
        speed=SPEED,
        delay_s=delay_s,
        costs=COSTS if costs else None,
        local_is_free=costs,
        **own[which % len(own)],
    )


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
        fabric, a = partition.world.fabric, partition.state.admission
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


@pytest.mark.parametrize("scheduler", [*ADMITTING, *RESERVING, "edf"])
def test_admissions_are_the_same_after_checkpoints(scheduler: str) -> None:
    for seed in range(2):
        setting = admitting_setting(scheduler, seed, 0.0005, True, seed, 0.001)
        found, moves = digest_with_restores(setting, seed)
        assert moves > 0
        assert found == digest(run_setting(setting, OBSERVED))
