"""Aalo with shares of bandwidth: examples worked out by hand.

A port sends a byte in a second, so that bytes are seconds; intervals are of 1. Two queues have 2/3 and 1/3 of a port.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coflow_emulations import SPEED, coflows, log_of, mixed_workload, setting_of
from emulations import run_setting

TWO: dict[str, Any] = {"queues": 2, "first_limit_bytes": 3, "interval_s": 1.0}
THIRD = 0.333333333


def test_queues_share_a_port_by_weight() -> None:
    # Coflow 0 has sent 4 B at 4 and goes down, as coflow 1 comes. That has sent 10/3 B at 9 and goes down, behind
    # coflow 0, which has the port alone for its last 13/3 B. What it leaves at 13 1/3 waits for the interval to end.
    work = coflows((0, [(0, 0, 10)]), (4, [(0, 0, 4)]), ports=2)
    log = log_of("aalo-shares", work, **TWO)
    assert log.decisions == [0, 4, 9, 14, 15]
    assert log.sending == {
        "0 0>0": [(0, 4), (4, 9, THIRD), (9, pytest.approx(13 + 1 / 3))],
        "1 0>0": [(4, 9, 2 * THIRD + 1e-9), (14, pytest.approx(14 + 2 / 3))],
    }
    assert [(t, c, q) for t, c, q in log.queues if q >= 0] == [(0, 0, 0), (4, 0, 1), (4, 1, 0), (9, 1, 1)]
    # Rates: 1 at 0, 2 at 4, 2 at 9 (one stops), 1 at 14, all to the agent of port 0, which sends when 15 intervals end.
    wanted = {"updates": 2, "decisions": 5, "schedules": 4, "rates": 6, "demotions": 2, "agents_heard": 15}
    assert {name: log.counters[name] for name in wanted} == wanted
    assert log.learned["learned_ns"] == [4e9, 9e9]
    assert log.learned["learned_bytes"] == pytest.approx([4, 10 / 3])


def test_what_a_queue_leaves_goes_to_the_others_and_a_coflow_that_finds_a_port_full_waits() -> None:
    # At 4 coflow 0 goes down; 1 and 2 come to the first queue. In its part coflow 1 has 2/3 of ports 1, and coflow 2
    # finds them full. What the queues leave makes coflows 0 and 1 as fast as their ports. At 6 coflow 2 has both of its
    # flows at 2/3, and coflow 0 what is left at its ports.
    work = coflows((0, [(0, 0, 10)]), (4, [(1, 1, 2)]), (4, [(0, 1, 1), (1, 0, 1)]), ports=2)
    log = log_of("aalo-shares", work, **TWO)
    assert log.sending == {
        "0 0>0": [(0, 6), (6, 8, THIRD), (8, pytest.approx(11 + 1 / 3))],
        "1 1>1": [(4, 6)],
        "2 0>1": [(6, 7.5, 2 * THIRD + 1e-9)],
        "2 1>0": [(6, 7.5, 2 * THIRD + 1e-9)],
    }


def test_one_queue_is_first_in_first_out_at_equal_rates() -> None:
    # With a single queue there are no shares: coflow 0's flows halve egress 0, coflow 1 has what is left at ingress 1.
    work = coflows((0, [(0, 0, 2), (1, 0, 2)]), (0, [(1, 1, 1)]), ports=2)
    log = log_of("aalo-shares", work, queues=1, interval_s=1.0)
    assert log.sending == {"0 0>0": [(0, 4, 0.5)], "0 1>0": [(0, 4, 0.5)], "1 1>1": [(0, 2, 0.5)]}


def test_a_coflow_that_starves_under_strict_priority_is_served() -> None:
    # Coflows that keep the first queue busy: the one that has gone down goes on all the same.
    small = [(float(k), [(0, 0, 0.9)]) for k in range(5, 40)]
    work = coflows((0, [(0, 0, 12)]), *small, ports=1)

    def first_cct_s(name: str, **more: Any) -> float:
        setting = setting_of(name, work, queues=2, first_limit_bytes=3, interval_s=1.0, **more)
        return float(run_setting(setting).finish_ns[0]) / 1e9

    assert first_cct_s("aalo-shares") < 30 < 40 < first_cct_s("aalo", starvation="strict")


def test_with_one_flow_at_a_time_it_is_aalo() -> None:
    rng = np.random.default_rng(3)
    alone = coflows(*[(10.0 * k, [(0, 0, float(rng.integers(1, 9)))]) for k in range(20)], ports=1)
    ends = [run_setting(setting_of(n, alone, interval_s=1.0)).finish_ns for n in ("aalo-shares", "aalo")]
    np.testing.assert_array_equal(*ends)
    mixed = mixed_workload(20, 5, seed=2)
    ends = [run_setting(setting_of(n, mixed, speed=SPEED)).finish_ns for n in ("aalo-shares", "aalo")]
    assert (ends[0] != ends[1]).any()
