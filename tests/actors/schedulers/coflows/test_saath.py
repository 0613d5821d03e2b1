"""Saath beside its examples (`golden/coflows/saath.txt`): the same in the fluid, where flows end without messages."""

from __future__ import annotations

import equal_loop
import numpy as np
import pytest
from coflow_emulations import COSTS, SPEED, TASKS, mixed_workload, setting_of, variants_of
from emulations import run_setting

from actors.fabric import equal_rates
from actors.fabric.equal_rates import reported_sent
from actors.fabric.order import Order, set_order
from actors.fabric.ports import Fabric, build_fabric, merge_parallel
from actors.initial_arrays import at_start
from actors.kernel.queue import NEVER
from actors.setting import Setting
from workloads.coflows import CoflowWorkload


def fluid(setting: Setting) -> Fabric:
    """Serve coflows by a plain reading of the steps, with the rates of `actors.fabric.equal_rates`."""
    given, now, tick = setting.parameters, np.int64(0), np.int64(0)
    assert isinstance(setting.workload, CoflowWorkload)
    fabric = build_fabric(merge_parallel(setting.workload.arrays())[0], setting.switch.port_bytes_per_s)
    flows, finish, arrival = fabric.flows, fabric.coflows.finish, fabric.coflows.arrival
    interval, width = round(given["interval_s"] * 1e9), fabric.coflows.end_flow - fabric.coflows.first_flow
    limits = given["first_limit_bytes"] * given["factor"] ** np.arange(given["queues"], dtype=float)
    order, e, arrived, entries = at_start(Order, fabric), equal_rates.make_equal(fabric), 0, 0
    queue, entered, deadline = ({} for _ in range(3))

    def go_to(coflow: int, which: int) -> None:
        nonlocal entries
        queue[coflow], entered[coflow], entries = which, entries, entries + 1
        size = sum(queue[c] == which for c in there())
        deadline[coflow] = now + given["deadline_factor"] * size * limits[which] / fabric.speed.max()

    def next_arrival() -> np.int64:
        return arrival[arrived] if arrived < arrival.size else NEVER

    def there() -> list[int]:
        return [c for c in range(arrived) if finish[c] == NEVER]

    def most_sent(coflow: int) -> float:
        own = np.flatnonzero(flows.coflow == coflow)
        return max(
            flows.size[f] if flows.finish[f] < NEVER else reported_sent(fabric, e, now, f) for f in own
        )

    def key(coflow: int) -> tuple[float, ...]:
        if deadline[coflow] <= now:
            return (0, deadline[coflow], coflow)
        own = ports[coflow]
        same = [c for c in ports if given["contention"] == "all" or queue[c] == queue[coflow]]
        return (
            1,
            queue[coflow],
            sum(c != coflow and not own.isdisjoint(ports[c]) for c in same),
            entered[coflow],
        )

    while (finish == NEVER).any():
        while min(end := equal_loop.next_end(fabric, order, e), next_arrival()) <= tick:
            if next_arrival() < end:
                now, arrived = next_arrival(), arrived + 1
                go_to(arrived - 1, 0)
            else:
                now = end
                equal_loop.end_due(fabric, order, e, now)
        now, tick = tick, tick + interval
        for coflow in there():
            down = queue[coflow]
            while most_sent(coflow) > (limits[down] / width[coflow] if down + 1 < limits.size else np.inf):
                down += 1
            if down > queue[coflow]:
                go_to(coflow, down)
        unfinished = flows.finish == NEVER
        ports = {
            c: {
                *flows.source[unfinished & (flows.coflow == c)],
                *flows.sink[unfinished & (flows.coflow == c)],
            }
            for c in there()
        }
        equal_rates.progress(fabric, order, e, now)
        groups = np.array(sorted(ports, key=key), np.int64)
        set_order(order, groups, groups.size)
        equal_loop.decide(fabric, order, e)
    return fabric


@pytest.mark.parametrize("variant", range(2))
def test_without_delays_coflows_end_when_they_do_in_the_fluid(variant: int) -> None:
    for seed in range(2):
        setting = setting_of(
            "saath", mixed_workload(10, 5, seed), speed=SPEED, **variants_of("saath")[variant]
        )
        outcome = run_setting(setting, TASKS)
        assert outcome.counters["demotions"] > 0
        assert np.array_equal(outcome.finish_ns, fluid(setting).coflows.finish)


def test_results_do_not_depend_on_how_many_events_send_the_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of("saath", mixed_workload(15, 5, 3), speed=SPEED, delay_s=0.001, costs=COSTS)
    whole = run_setting(setting, TASKS)
    monkeypatch.setattr(equal_rates, "_MOST_SENDS", 0)
    parts = run_setting(setting, TASKS)
    assert parts.events > whole.events
    assert np.array_equal(parts.finish_ns, whole.finish_ns)
    assert parts.counters == whole.counters
