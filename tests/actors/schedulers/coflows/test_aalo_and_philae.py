"""Aalo and Philae beside their examples (`golden/coflows`): what is drawn, and that no coflow starves.

A port sends a byte in a second, so that bytes are seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coflow_emulations import SPEED, coflows, log_of, mixed_workload, setting_of
from emulations import run_setting
from splitmix import draw

from actors.kernel.random import PROBES


@pytest.mark.parametrize("seed", range(3))
def test_philae_may_draw_the_ports_of_pilots(seed: int) -> None:
    # Two draws: which of three ingress ports, which of three egress ports. Only the pilot is sent in its first 2 s.
    work = coflows((0, [(i, j, 2) for i in range(3) for j in range(3)]), ports=3)
    given = {"work_conservation": False, "starvation": "strict", "pilot_ports": "random"}
    log = log_of("philae", work, seed=seed, **given)
    ingress, egress = (draw(seed, PROBES, 0, counter, 3) for counter in range(2))
    assert [flow for flow, spans in log.sending.items() if spans == [(0, 2)]] == [f"0 {ingress}>{egress}"]


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
