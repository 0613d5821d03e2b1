"""Coflows by the wall clock: all bytes are sent, no flow is faster than its port, and times are those of `virtual`.

How many coflows meet their deadlines depends on the machine: `python -m benchmarks.live coflows` measures it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coflow_emulations import NAMES, SPEED, coflows, fit_for, mixed_workload, setting_of, variants_of
from emulations import run_setting
from live_runs import OBSERVED, run_live, worst_ns

from actors.hosting.outcome import NS, Outcome
from actors.scheduler import needs_global_view
from actors.setting import Setting
from workloads.arrow import column

pytestmark = [pytest.mark.compiled, pytest.mark.slow("compiles eight coordinators")]

DELAY_S = 0.001
PORTS = 5


def of_all(name: str) -> Setting:
    workload = fit_for(name, mixed_workload(10, PORTS, seed=7))
    return setting_of(name, workload, speed=SPEED, delay_s=DELAY_S, seed=11, **variants_of(name)[0])


LOCAL = [name for name in NAMES if not needs_global_view(of_all(name).scheduler, of_all(name).parameters)]
# One of each loop: those of a loop differ in what they compute of coflows, which no clock changes.
LOOPS = list({of_all(name).scheduler.advance: name for name in reversed(LOCAL)}.values())


@pytest.mark.parametrize("name", LOOPS)
def test_each_coordinator_s_run_ends_and_no_flow_is_faster_than_its_port(name: str) -> None:
    setting = of_all(name)
    outcome = run_live(setting)
    flows, sent, served = outcome.tasks, setting.workload, outcome.finish_ns >= 0
    assert flows is not None
    # However late its rates come: an agent sends what a rate and its time give. Both ends are recorded when it handles
    # them, and that of the coflow is the time at which its last flow has really ended.
    ended, late_ns = flows["finish_ns"] >= 0, worst_ns(outcome)
    took_ns = (flows["finish_ns"] - flows["start_ns"])[ended]
    assert (took_ns >= column(sent.flows, "size_bytes")[ended] / SPEED * NS - late_ns - 2).all()
    first = np.concatenate([[0], np.cumsum(np.bincount(column(sent.flows, "coflow_id")))])[:-1]
    noticed_ns = (np.maximum.reduceat(flows["finish_ns"], first) - outcome.finish_ns)[served]
    assert noticed_ns.min(initial=0) >= 0
    assert noticed_ns.max(initial=0) <= late_ns + 1
    # A coflow has all its flows ended, or it has a deadline and is dropped.
    assert np.minimum.reduceat(ended, first)[served].all()
    dropped = outcome.counters.get("dropped", 0) if setting.scheduler.uses_deadlines else 0
    assert (~served).sum() <= dropped
    assert outcome.counters["intervals"] > 0
    assert outcome.partitions == 2


def apart(count: int = 4) -> Any:
    """Coflows of three flows, two of which share a port; each has ports of its own, so that none delays another."""
    rows = []
    for i in range(count):
        one, two, three, *_, last = range(5 * i, 5 * i + 5)
        rows.append((0.01 * i, [(one, last, 0.3e6), (two, last, 0.7e6 + 1e3 * i), (three, one, 1.1e6)]))
    return coflows(*rows, ports=5 * count)


def with_virtual(setting: Setting, **options: Any) -> tuple[Outcome, Outcome, np.ndarray]:
    """A run by each clock, and how much later coflows ended by the wall clock, ns."""
    virtual, outcome = run_setting(setting, OBSERVED), run_live(setting, **options)
    return virtual, outcome, outcome.finish_ns - virtual.finish_ns


# The coflow's registration, and of each of its flows the report of its end, each with a schedule after it.
HOPS = 2 * (1 + 3)


@pytest.mark.parametrize(("name", "parameters"), [("philae", {}), ("sebf", {"rates": "madd"}), ("fifo", {})])
@pytest.mark.parametrize("dilation", [1.0, 3.0])
def test_times_are_those_of_virtual_as_far_as_lateness_explains(
    name: str, parameters: dict[str, Any], dilation: float
) -> None:
    setting = setting_of(name, apart(), speed=SPEED, delay_s=DELAY_S, seed=3, **parameters)
    virtual, outcome, late_ns = with_virtual(setting, dilation=dilation)
    assert late_ns.min() >= -2
    assert late_ns.max() <= HOPS * worst_ns(outcome) + 2
    assert outcome.counters["updates"] == virtual.counters["updates"]


def test_decisions_of_intervals_are_at_most_an_interval_later() -> None:
    setting = setting_of("aalo", apart(), speed=SPEED, delay_s=DELAY_S, interval_s=0.004)
    _, outcome, late_ns = with_virtual(setting)
    assert np.abs(late_ns).max() <= HOPS * (worst_ns(outcome) + 4_000_000)
    assert outcome.counters["decisions"] > 0
