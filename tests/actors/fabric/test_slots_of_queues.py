"""Queues that share time in slots: which slots there are, and that no coflow starves in the last queue.

A port sends a byte in a second, so that bytes are seconds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from coflow_emulations import coflows, setting_of
from emulations import run_setting
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import switch

from actors.fabric.priority_queues import QUEUE_PARAMETERS, Queues, dequeue, enqueue, make_queues, update_slot
from actors.hosting.outcome import Observe

NS = 1_000_000_000
DEFAULTS = {p.name: p.default for p in QUEUE_PARAMETERS}


def queues_of(count: int, parameters: dict[str, Any]) -> Queues:
    """Queues of so many coflows, of one flow each."""
    return make_queues(switch([(0, [(0, 1, 1.0)])] * count, 2), parameters)


def slots_of(queues: list[int], until_s: float, **given: Any) -> list[tuple[int, int]]:
    """Whose slot it is, and for how many intervals, with a coflow in each of these queues, from 0 s on."""
    parameters = DEFAULTS | given
    q = queues_of(len(queues), parameters)
    for coflow, queue in enumerate(queues):
        enqueue(q, np.int64(coflow), np.int64(queue))
    found, t = [], 0
    while t < until_s * NS:
        update_slot(q, np.int64(t))
        found.append((int(q.clock.queue[0]), int((q.clock.end[0] - t) // q.interval)))
        t = int(q.clock.end[0])
    return found


def test_each_queue_with_a_coflow_has_a_slot_in_each_round() -> None:
    # A tenth of the one before; what is less than an interval is one.
    assert slots_of([0, 1, 2, 3, 6, 9], 2.4) == [(0, 256), (1, 25), (2, 2), (3, 1), (6, 1), (9, 1), (0, 256)]
    # The highest queue with a coflow begins the round. A queue has its slot of an interval or more also when it
    # is empty, as under Philae's authors; those below are served in it in their order.
    assert slots_of([2, 4, 8], 2.4) == [(2, 256), (3, 25), (4, 2), (8, 1), (2, 256)]
    assert slots_of([9], 4.0) == [(9, 256), (9, 256)]


def test_slots_as_philaes_authors_simulate_them() -> None:
    given = {"least_intervals": 0}
    assert slots_of([0, 1, 2, 3, 9], 2.3, **given) == [(0, 256), (1, 25), (2, 2), (0, 256)]
    assert slots_of([0, 3], 2.3, **given) == [(0, 256), (1, 25), (2, 2), (0, 256)]


def test_slots_may_be_longer_at_the_least() -> None:
    given = {"slot_intervals": 16, "share": 4, "least_intervals": 3}
    assert slots_of([0, 1, 2, 7], 0.2, **given) == [(0, 16), (1, 4), (2, 3), (7, 3)]
    assert slots_of([0, 1], 0.2, slot_intervals=2, least_intervals=5)[:2] == [(0, 5), (1, 5)]


@settings(max_examples=20)
@given(
    queues=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    slot=st.integers(1, 300),
    share=st.integers(1, 20),
    least=st.integers(1, 4),
)
def test_no_queue_waits_longer_than_a_round(queues: list[int], slot: int, share: int, least: int) -> None:
    given = {"slot_intervals": slot, "share": share, "least_intervals": least}
    found = slots_of(queues, 100.0, **given)
    round_of = sum(max(slot // share**i, least) for i in range(10))
    for queue in set(queues):
        begins, at = [0], 0
        for whose, intervals in found:
            if whose == queue:
                begins.append(at)
                assert intervals >= least
            at += intervals
        assert all(b - a <= round_of for a, b in pairwise(begins))
        assert at - begins[-1] <= round_of


def test_queues_that_empty_give_their_slots_up() -> None:
    q = queues_of(2, DEFAULTS)
    for coflow, queue in enumerate([0, 9]):
        enqueue(q, np.int64(coflow), np.int64(queue))
    update_slot(q, np.int64(0))
    assert (q.clock.queue[0], q.clock.end[0]) == (0, 256 * q.interval)
    dequeue(q, np.int64(1))
    update_slot(q, np.int64(q.clock.end[0]))
    dequeue(q, np.int64(0))
    update_slot(q, np.int64(q.clock.end[0]))
    assert q.clock.queue[0] == -1  # no coflow is active


LAST = {"first_limit_bytes": 1, "factor": 1.2, "interval_s": 1.0}
"""Ten queues: up to 1 B, up to 1.2 B, and so on; above 4.3 B the last."""


def finished_s(scheduler: str, large: list[tuple[int, int, float]], seconds: int, **given: Any) -> float:
    """When a coflow ends that comes at 5 s to a port that others fill for so many seconds.

    They come one a second, from 0 on, when there are three, and have a byte to send in two flows: the first queue.
    """
    small = [(0, 1, 0.5), (0, 2, 0.5)]
    stream = [(float(max(k - 2, 0)), small) for k in range(seconds)]
    work = coflows(*stream[:8], (5.0, large), *stream[8:], ports=43)
    outcome = run_setting(setting_of(scheduler, work, **LAST, **given), Observe())
    assert (outcome.finish_ns >= 0).all()
    return float(outcome.finish_ns[8] / NS)


@pytest.mark.slow("long runs, for a mean")
def test_no_coflow_starves_in_the_last_queue_of_philae() -> None:
    # The pilot of 40 flows has 0.2 B, so that they are taken for 8 B, and are in the last queue when the port is full.
    # What they have left are 0.39 B, less than the half of an interval that pilots leave it. Rounds are of 256, 25, 2
    # intervals, and one for the last queue, so that it is served within the first round or the second.
    large = [(0, 3, 0.2), *((0, 3 + i, 0.01) for i in range(1, 40))]
    given: dict[str, Any] = {"policy": "A", "thin_limit": 0}
    assert finished_s("philae", large, 620, **given) < 2 * (256 + 25 + 2 + 1)
    # With slots for the first three queues of a round alone, or none, it waits until the others have gone.
    assert finished_s("philae", large, 620, least_intervals=0, **given) > 620
    assert finished_s("philae", large, 620, starvation="strict", **given) > 620


@pytest.mark.slow("long runs, for a mean")
@pytest.mark.parametrize("scheduler", ["aalo", "aalo-oracle"])
def test_no_coflow_starves_in_the_last_queue_of_aalo(scheduler: str) -> None:
    # Only the first queue's coflows have a slot before it, and 5 B take five slots of a second, in rounds of 16,
    # 4, 1 and 1 intervals. Under Aalo it moves down queue by queue; once in the last one it goes on in the same way.
    large = [(0, 3, 5.0)]
    given = {"slot_intervals": 16, "share": 4}
    assert finished_s(scheduler, large, 250, **given) < 6 * (16 + 4 + 1 + 1)
    assert finished_s(scheduler, large, 250, starvation="strict", **given) > 250
    if scheduler == "aalo-oracle":
        assert finished_s(scheduler, large, 250, least_intervals=0, **given) > 250
