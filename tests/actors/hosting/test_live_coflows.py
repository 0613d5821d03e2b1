"""Coflows by the wall clock: all bytes are sent, no port sends faster than it can, and times are those of `virtual`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from bounded_runs import ALL_TASKS
from coflow_emulations import NAMES, SPEED, coflows, fit_for, mixed_workload, setting_of, variants_of
from emulations import run_setting

from actors.environment import Pace
from actors.hosting.live import emulate_live
from actors.hosting.outcome import NS, Outcome
from actors.scheduler import needs_global_view
from actors.setting import Setting
from workloads.isolation import isolated_s, with_port_speeds

OBSERVED = dataclasses.replace(ALL_TASKS, timeline_period_s=0.01)
DELAY_S = 0.001
PORTS = 5


def live(setting: Setting, **options: Any) -> Outcome:
    return emulate_live(setting, OBSERVED, Pace(**options), in_process=True)


def worst_ns(outcome: Outcome) -> float:
    assert outcome.live is not None
    return float(max(spread["max"] for spread in outcome.live["lateness"].values())) * NS


def of_all(name: str) -> Setting:
    workload = fit_for(name, mixed_workload(10, PORTS, seed=7))
    return setting_of(name, workload, speed=SPEED, delay_s=DELAY_S, seed=11, **variants_of(name)[0])


LOCAL = [name for name in NAMES if not needs_global_view(of_all(name).scheduler, of_all(name).parameters)]


@pytest.mark.parametrize("name", LOCAL)
def test_every_coordinator_runs(name: str) -> None:
    setting = of_all(name)
    outcome = live(setting)
    arrays = setting.workload.arrays()
    served = outcome.finish_ns >= 0
    took = (outcome.finish_ns - arrays.arrival_ns)[served]
    # No faster than the ports can, even if rates come late: agents send what a rate and its time give.
    alone_ns = isolated_s(with_port_speeds(setting.workload, SPEED)) * NS
    assert (took >= alone_ns[served] - worst_ns(outcome) - 10).all()
    virtual = run_setting(setting, OBSERVED)
    if not setting.scheduler.uses_deadlines:
        assert served.all()
    assert served.sum() >= (virtual.finish_ns >= 0).sum() // 2
    assert outcome.counters["intervals"] > 0
    assert outcome.partitions == 2


def one_by_one(count: int = 8) -> Any:
    """Coflows of three flows, of which two share a port; each ends before the next arrives."""
    rows = [
        (0.06 * i, [(i % 4, 4, 0.3e6), ((i + 1) % 4, 4, 0.7e6 + 1e3 * i), ((i + 2) % 4, i % 4, 1.1e6)])
        for i in range(count)
    ]
    return coflows(*rows, ports=PORTS)


@pytest.mark.parametrize(("name", "parameters"), [("philae", {}), ("sebf", {"rates": "madd"}), ("fifo", {})])
@pytest.mark.parametrize("dilation", [1.0, 3.0])
def test_times_are_those_of_virtual_as_far_as_lateness_explains(
    name: str, parameters: dict[str, Any], dilation: float
) -> None:
    setting = setting_of(name, one_by_one(), speed=SPEED, delay_s=DELAY_S, seed=3, **parameters)
    virtual, outcome = run_setting(setting, OBSERVED), live(setting, dilation=dilation)
    late = outcome.finish_ns - virtual.finish_ns
    hops = 2 * (
        1 + 3
    )  # its registration, and of each flow the report of its end, each with a schedule after it
    assert late.min() >= -2
    assert late.max() <= hops * worst_ns(outcome) + 2
    assert outcome.counters["updates"] == virtual.counters["updates"]


def test_decisions_of_intervals_are_at_most_an_interval_later() -> None:
    setting = setting_of("aalo", one_by_one(), speed=SPEED, delay_s=DELAY_S, interval_s=0.004)
    virtual, outcome = run_setting(setting, OBSERVED), live(setting)
    late = outcome.finish_ns - virtual.finish_ns
    assert np.abs(late).max() <= 8 * (worst_ns(outcome) + 4_000_000)
    assert outcome.counters["decisions"] > 0
