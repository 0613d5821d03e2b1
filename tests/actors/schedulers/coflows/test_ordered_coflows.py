"""Coflows in an order, by MADD or greedily: examples worked out by hand, a single port, and the fluid that MADD is.

A port sends a byte in a second, so that bytes are seconds, and all times are in seconds. "2 0>1" is the flow of coflow
2 from port 0 to port 1; a log has when each flow is sent, and at which rate if it is not a byte a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bounded_runs import finish
from coflow_emulations import COSTS, NS, coflows, log_of, mixed_workload, setting_of
from emulations import OBSERVED, run_setting
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import by_madd, run

from actors.fabric.ports import build_fabric, merge_parallel
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.setting import Costs
from workloads.errors import InputError

EXAMPLES = 5 if config.DISABLE_JIT else 10

# At 0 come an incast of 6 B; three flows of 2 B side by side; and one flow of 5 B. All have a flow 0>0.
#                     length  width  bytes  bottleneck
#  0  0>0 3, 1>0 3         3      1      6           6
#  1  0>0, 1>1, 2>2 2      2      3      6           2
#  2  0>0 5                5      1      5           5
THREE = coflows(
    (0, [(0, 0, 3), (1, 0, 3)]), (0, [(0, 0, 2), (1, 1, 2), (2, 2, 2)]), (0, [(0, 0, 5)]), ports=3
)


def halves(begin: float) -> dict[str, list[tuple[float, ...]]]:
    """The incast alone at port 0 (out): both of its flows have half of it."""
    return {"0 0>0": [(begin, begin + 6, 0.5)], "0 1>0": [(begin, begin + 6, 0.5)]}


# While the incast has half of port 1 (in), 1>1 gets the other half by backfill, and 2>2 its ports.
BACKFILLED = {"1 1>1": [(0, 4, 0.5)], "1 2>2": [(0, 2)]}
ALONE = {"1 0>0": [(0, 2)], "1 1>1": [(0, 2)], "1 2>2": [(0, 2)]}


@pytest.mark.parametrize(
    ("scheduler", "decisions", "refills", "sending"),
    [
        # In order 0, 1, 2.
        ("fifo", [0, 6, 8, 13], [2, 4], {**halves(0), **BACKFILLED, "1 0>0": [(6, 8)], "2 0>0": [(8, 13)]}),
        # 1, 0, 2: coflow 1 has all of its ports.
        ("scf", [0, 2, 8, 13], [], {**ALONE, **halves(2), "2 0>0": [(8, 13)]}),
        # 0, 2, 1: of two that are equally narrow the first to come.
        ("ncf", [0, 6, 11, 13], [2, 4], {**halves(0), **BACKFILLED, "2 0>0": [(6, 11)], "1 0>0": [(11, 13)]}),
        # 2, 0, 1: backfill gives 1>1 and 2>2 their ports; 1>0 finds port 0 (out) full.
        (
            "lcf",
            [0, 5, 11, 13],
            [2],
            {"2 0>0": [(0, 5)], **halves(5), "1 0>0": [(11, 13)], "1 1>1": [(0, 2)], "1 2>2": [(0, 2)]},
        ),
        # 1, 2, 0.
        ("sebf", [0, 2, 7, 13], [], {**ALONE, "2 0>0": [(2, 7)], **halves(7)}),
    ],
)
def test_madd_in_the_order_of_a_key(
    scheduler: str, decisions: list[float], refills: list[float], sending: dict[str, Any]
) -> None:
    log = log_of(scheduler, THREE)
    assert (log.decisions, log.refills) == (decisions, refills)
    assert log.sending == sending


GREEDY_INCAST = {"0 0>0": [(0, 3)], "0 1>0": [(3, 6)]}  # port 0 (out) serves one flow after the other


@pytest.mark.parametrize(
    ("scheduler", "decisions", "refills", "sending"),
    [
        # In order 0, 1, 2: 1>1 has port 1 (in) before 1>0 may have it.
        (
            "fifo",
            [0, 6, 8, 13],
            [2, 3],
            {**GREEDY_INCAST, "1 0>0": [(6, 8)], "1 1>1": [(0, 2)], "1 2>2": [(0, 2)], "2 0>0": [(8, 13)]},
        ),
        # 1, 2, 0: as Sincronia's. Port 0 (out) has most, 13 B; per byte there coflow 0 has the least weight, 1/6, and
        # is last. That lowers the weight of coflow 1 by 2/6 and of coflow 2 by 5/6; of those that have the 7 B at
        # port 0 (in), coflow 2 has the least then, 1/6 for 5 B and not 4/6 for 2 B.
        ("sebf", [0, 2, 7, 13], [10], {**ALONE, "2 0>0": [(2, 7)], "0 0>0": [(7, 10)], "0 1>0": [(10, 13)]}),
        (
            "sincronia",
            [0, 2, 7, 13],
            [10],
            {**ALONE, "2 0>0": [(2, 7)], "0 0>0": [(7, 10)], "0 1>0": [(10, 13)]},
        ),
    ],
)
def test_greedy_rates_in_an_order(
    scheduler: str, decisions: list[float], refills: list[float], sending: dict[str, Any]
) -> None:
    log = log_of(scheduler, THREE, **({} if scheduler == "sincronia" else {"rates": "greedy"}))
    assert (log.decisions, log.refills) == (decisions, refills)
    assert log.sending == sending


def test_sincronia_goes_by_weights_and_what_is_left() -> None:
    # At 1 coflow 0 has 3 B left, and coflow 1 comes with 4 B: it waits. At 2 coflow 2 has 1 B, and is first.
    log = log_of("sincronia", coflows((0, [(0, 0, 4)]), (1, [(0, 1, 4)]), (2, [(1, 0, 1)]), ports=2))
    assert log.sending == {"0 0>0": [(0, 2), (3, 5)], "1 0>1": [(2, 3), (5, 8)], "2 1>0": [(2, 3)]}


# Coflow 0 has port 0 (in) until its end; of coflow 1, which waits for it, 1>1 is backfilled, and then 1>2.
REFILLED = coflows((0, [(0, 0, 4)]), (0, [(0, 3, 0.5), (1, 1, 1), (1, 2, 2)]), ports=4)


def test_sebf_deadline_leaves_unused_what_madd_leaves() -> None:
    # Both need 4 alone. Coflow 0 has port 0 (in), so that coflow 1 waits, though its flow 1>1 could have both of its
    # ports; then port 1 (out) is its slowest, with 4 for both of its flows.
    rows = coflows((0, [(0, 0, 4)]), (0, [(0, 1, 2), (1, 1, 2)]), ports=2)
    log = log_of("sebf-deadline", rows)
    assert log.sending == {"0 0>0": [(0, 4)], "1 0>1": [(4, 8, 0.5)], "1 1>1": [(4, 8, 0.5)]}
    assert (log.decisions, log.refills) == ([0, 4, 8], [])
    assert log_of("sebf", rows).sending["1 1>1"] == [(0, 2)]


def test_what_a_backfilled_flow_leaves_is_given_away() -> None:
    log = log_of("fifo", REFILLED)
    assert log.decisions == [0, 4, 4.5]
    assert log.refills == [1, 3]
    assert log.sending == {"0 0>0": [(0, 4)], "1 0>3": [(4, 4.5)], "1 1>1": [(0, 1)], "1 1>2": [(1, 3)]}
    # Only new rates are sent: coflow 0's line and 1>1 at 0, 1>2 at 1, and the line that coflow 1 has left at 4.
    expected = {"updates": 4, "decisions": 3, "refills": 2, "schedules": 4, "rates": 4}
    assert {name: log.counters[name] for name in expected} == expected


def test_the_coordinator_knows_what_will_have_ended_when_its_schedule_holds() -> None:
    # A message takes 0.25, so coflows register at 0.25 and are sent from 0.5. 1>1 ends at 1.5, reported at 1.75;
    # 1>2 begins at 2 and ends at 4, reported at 4.25. What is sent then holds at 4.5, when coflow 0 will have ended:
    # 0>3 goes on at once, and the news of that end, at 4.75, changes nothing.
    log = log_of("fifo", REFILLED, delay_s=0.25)
    assert log.decisions == [0.25, 4.25, 5.25]
    assert log.refills == [1.75]
    assert log.sending == {
        "0 0>0": [(0.5, 4.5)],
        "1 0>3": [(4.5, 5)],
        "1 1>1": [(0.5, 1.5)],
        "1 1>2": [(2, 4)],
    }


def test_what_a_decision_costs_is_known_before() -> None:
    # A whole decision costs 0.1 a coflow, 0.05 a flow, 0.2 an agent. At 0 it is of two coflows with four flows at two
    # ports: sent at 0.8. An end that releases bandwidth costs 0.05 + 0.2: reported at 1.8, sent at 2.05; reported at
    # 4.05, with no agent to send to. At 4.8, when coflow 0 ends, it is of two coflows, two flows and one port, 0.5:
    # sent at 5.3.
    costs = Costs("fixed", per_flow_s=0.05, per_coflow_s=0.1, per_schedule_s=0.2)
    log = log_of("fifo", REFILLED, costs=costs)
    assert log.decisions == [0, 4.8, 5.8]
    assert log.refills == [1.8, 4.05]
    assert log.sending == {
        "0 0>0": [(0.8, 4.8)],
        "1 0>3": [(5.3, 5.8)],
        "1 1>1": [(0.8, 1.8)],
        "1 1>2": [(2.05, 4.05)],
    }


def test_costs_that_are_measured_are_known_too_late() -> None:
    with pytest.raises(InputError, match=r"sebf with MADD's rates .*; use cost.model fixed"):
        Partition(setting_of("sebf", THREE, costs=Costs("measured")), OBSERVED)
    Partition(setting_of("sebf", THREE, costs=Costs("measured"), rates="greedy"), OBSERVED)


def one_server(work: list[tuple[int, int]], key: Callable[[int, int, int], Any]) -> list[int]:
    """When (arrival, size) ends at one server that decides at arrivals and ends, by key(number, size, what is left)."""
    left, ends, t = [size for _, size in work], [0] * len(work), 0
    while any(left):
        there = [i for i, (arrival, _) in enumerate(work) if arrival <= t and left[i] > 0]
        coming = [arrival for arrival, _ in work if arrival > t]
        if not there:
            t = min(coming)
            continue
        first = min(there, key=lambda i: (key(i, work[i][1], left[i]), i))
        step = min([left[first], *(arrival - t for arrival in coming)])
        t, left[first] = t + step, left[first] - step
        if left[first] == 0:
            ends[first] = t
    return ends


KEYS: dict[str, Callable[[int, int, int], Any]] = {
    "fifo": lambda number, size, left: number,
    "scf": lambda number, size, left: size,
    "ncf": lambda number, size, left: 1,
    "lcf": lambda number, size, left: size,
    "sebf": lambda number, size, left: left,
    "sincronia": lambda number, size, left: left,
}


@pytest.mark.parametrize("rates", ["madd", "greedy"])
@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 12)), min_size=1, max_size=8))
def test_one_port_is_a_server(rates: str, work: list[tuple[int, int]]) -> None:
    arrivals = np.cumsum([gap for gap, _ in work]).tolist()
    # All is whole at any instant. What is left of two coflows is never equal: by powers of 3 it tells what was sent
    # before, whether sums or differences of sizes.
    unit = 3 ** (len(work) + 1)
    sizes = [unit * size + 3**number for number, (_, size) in enumerate(work)]
    rows = [
        (float(unit * arrival), [(0, 0, float(size))]) for arrival, size in zip(arrivals, sizes, strict=True)
    ]
    for scheduler, key in KEYS.items():
        given = {} if scheduler == "sincronia" else {"rates": rates}
        outcome = run_setting(setting_of(scheduler, coflows(*rows, ports=1), **given))
        expected = one_server(
            [(unit * arrival, size) for arrival, size in zip(arrivals, sizes, strict=True)], key
        )
        assert np.abs(outcome.finish_ns - np.array(expected) * NS).max() <= len(rows), scheduler


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
