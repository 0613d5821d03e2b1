"""Coflows that reserve bandwidth: examples worked out by hand, and that what is admitted is in time.

In examples a port sends a byte in a second, so that bytes are seconds; "2 0>1" is the flow of coflow 2 from port 0 to
port 1.
"""

from __future__ import annotations

import numpy as np
import pytest
from coflow_emulations import coflows, instants, log_of, setting_of
from emulations import OBSERVED, run_setting
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.fabric.agent import timer_for
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.setting import Costs
from tests.actors.schedulers.coflows.test_admission import NEVER, RESERVING, admitting_setting, due, verdicts
from workloads.errors import InputError

EXAMPLES = 5 if config.DISABLE_JIT else 12

# All are at port 0 (in). Coflow 0 has 2 until 4: it reserves half of the port. Coflow 1 would need 6 with the other
# half, and has 4. Coflow 2 comes at 1 with 1 until 3.5.
THREE = due(coflows((0, [(0, 0, 2)]), (0, [(0, 1, 3)]), (1, [(0, 2, 1)]), ports=3), 4.0, 4.0, 3.5)


def test_varys_reserves_and_backfills_the_first_to_be_due() -> None:
    # At 0 coflow 0 has all of the port by backfill. At 1 it has 1 left for 3, a third of the port. Coflow 2 needs 1.5
    # with the rest, reserves 1 / 2.5, and has the rest by backfill, as it is due first: 2/3, until 2.5. Then coflow 0
    # has 0.5 left, and the port.
    log = log_of("varys-deadline", THREE)
    assert verdicts(log) == [(True, 0, NEVER), (False, NEVER, 0), (True, 1, NEVER)]
    assert log.sending == {
        "0 0>0": [(0, 1), (1, 2.5, 0.333333333), (2.5, 3)],
        "1 0>1": [],
        "2 0>2": [(1, 2.5, 0.666666667)],
    }
    assert log.decisions == [0, 1, 2.5, 3]
    counted = {"admissions": 2, "rejections": 1, "dropped": 1, "verdicts": 3}
    assert {name: log.counters[name] for name in counted} == counted


def test_a_rejected_coflow_asks_again_while_it_could_be_in_time_alone() -> None:
    # Coflow 1 asks at 1, when it has 3 left for 3, and is dropped at 2.5.
    log = log_of("varys-deadline", THREE, rejected="retry")
    assert log.sending == log_of("varys-deadline", THREE).sending
    assert verdicts(log)[1] == (False, NEVER, 0)
    assert (log.counters["verdicts"], log.counters["dropped"]) == (4, 1)
    # With time until 5.9 it needs 6 with half of the port at 0, and at 1, before coflow 2, 4.5 with two thirds: it has
    # 4.9, and is admitted. Coflow 2 waits for what coflow 0 has, and is dropped when that ends.
    log = log_of("varys-deadline", due(THREE, 4.0, 5.9, 3.5), rejected="retry")
    assert verdicts(log) == [(True, 0, NEVER), (True, 1, 0), (False, NEVER, 1)]
    assert log.sending["2 0>2"] == []
    assert log.counters["dropped"] == 1


def test_varys_own_rules_ask_for_more_time_and_serve_by_arrival() -> None:
    # Both coflows need 1 with all of a port. The first has 1.05, the second 1.2 and 10 % more than it needs is 1.1.
    rows = coflows((0, [(0, 0, 1)]), (0, [(1, 1, 1)]), ports=2)
    log = log_of("varys-deadline", due(rows, 1.05, 1.2), padding=0.1)
    assert log.learned["admitted"] == [False, True]
    # Next, 0.15 is enough for 0.1, but is no 200 ms.
    short = coflows((0, [(0, 0, 0.1)]), (0, [(1, 1, 0.1)]), ports=2)
    assert log_of("varys-deadline", due(short, 0.15, 0.2), least_s=0.2).learned["admitted"] == [False, True]
    # Coflow 0 reserves a quarter and coflow 1 a half of port 0 (in); the last quarter goes to the first of them.
    both = due(coflows((0, [(0, 0, 1)]), (0, [(0, 1, 1)]), ports=2), 4.0, 2.0)
    assert log_of("varys-deadline", both).sending["1 0>1"][0] == (0, pytest.approx(4 / 3), 0.75)
    assert log_of("varys-deadline", both, backfill="arrival").sending["0 0>0"][0] == (0, 2, 0.5)


def test_what_may_never_be_admitted_is_not_asked_about_again() -> None:
    # Alone it needs 1 and has 1.05, but must have 1.1.
    log = log_of(
        "varys-deadline", due(coflows((0, [(0, 0, 1)]), ports=1), 1.05), padding=0.1, rejected="retry"
    )
    assert (log.counters["dropped"], log.decisions) == (1, [0])


def test_rejected_coflows_may_be_served_with_what_is_left() -> None:
    # Coflow 1 has half of the port. At 1 coflow 0 has 1.5 left for 3, and coflow 2 reserves 0.4, which leaves 0.1.
    # Both end when they are due, and coflow 1 has 2 left at 4.
    log = log_of("varys-deadline", THREE, rejected="serve")
    assert verdicts(log) == [(True, 0, NEVER), (False, NEVER, 0), (True, 1, NEVER)]
    assert log.sending == {
        "0 0>0": [(0, 4, 0.5)],
        "1 0>1": [(0, 1, 0.5), (1, 3.5, 0.1), (3.5, 4, 0.5), (4, 6)],
        "2 0>2": [(1, 3.5, 0.4)],
    }


def test_chronos_shares_by_demand_what_reservations_leave() -> None:
    # Coflows 1 and 2 would need 12 and 6 with half of port 0 (in). They share it by their 6 and 3 bytes, and when
    # coflow 0 has ended, at 4, still as 2 to 1. None is dropped.
    rows = coflows((0, [(0, 0, 2)]), (0, [(0, 1, 6)]), (0, [(0, 2, 3)]), ports=3)
    log = log_of("chronos", due(rows, 4.0, 5.0, 5.5))
    assert verdicts(log) == [(True, 0, NEVER), (False, NEVER, 0), (False, NEVER, 0)]
    assert log.sending == {
        "0 0>0": [(0, 4, 0.5)],
        "1 0>1": [(0, 4, 0.333333333), (4, 11, 0.666666667)],
        "2 0>2": [(0, 4, 0.166666667), (4, 11, 0.333333333)],
    }
    assert "dropped" not in log.counters


def test_a_reservation_of_chronos_gives_way_and_one_of_varys_does_not() -> None:
    # At 1 coflow 0 has 2 left for 3. Coflow 1 needs all of port 0 (in) until 2.5, when it is due.
    workload = due(coflows((0, [(0, 0, 3)]), (1, [(0, 1, 1.5)]), ports=2), 4.0, 2.5)
    log = log_of("chronos", workload)
    assert verdicts(log) == [(False, 0, 1), (True, 1, NEVER)]
    assert log.sending == {"0 0>0": [(0, 1), (2.5, 4.5)], "1 0>1": [(1, 2.5)]}
    log = log_of("varys-deadline", workload)
    assert verdicts(log) == [(True, 0, NEVER), (False, NEVER, 1)]
    assert log.sending == {"0 0>0": [(0, 3)], "1 0>1": []}


def test_chronos_may_go_by_what_coflows_need() -> None:
    # Both cannot be in time: coflow 0 is due first, and coflow 1 needs less.
    workload = due(coflows((0, [(0, 0, 3)]), (0, [(0, 1, 2)]), ports=2), 3.0, 3.5)
    assert log_of("chronos", workload).learned["admitted"] == [True, False]
    assert log_of("chronos", workload, order="bottleneck").learned["admitted"] == [False, True]


@pytest.mark.parametrize("scheduler", RESERVING)
def test_coflows_without_deadlines_have_what_is_left(scheduler: str) -> None:
    # Coflow 0 has none; coflow 1 reserves half of port 0 (in), of which the other half is left.
    workload = due(coflows((0, [(0, 0, 2)]), (0, [(0, 1, 2)]), ports=2), np.nan, 4.0)
    log = log_of(scheduler, workload)
    assert verdicts(log) == [(True, 0, NEVER)] * 2
    assert log.sending == {"0 0>0": [(0, 4, 0.5)], "1 0>1": [(0, 4, 0.5)]}


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


@pytest.mark.parametrize("scheduler", RESERVING)
def test_costs_that_are_measured_are_known_too_late(scheduler: str) -> None:
    with pytest.raises(InputError, match=r"use cost\.model fixed"):
        log_of(scheduler, THREE, costs=Costs("measured"))


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
