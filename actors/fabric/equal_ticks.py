"""Decisions at the ends of intervals under equal rates: what Saath and Aalo with shares have in common.

The coordinator decides only at those multiples of the interval at which something can change. In all functions `p` is a
policy's state with the fields of `ticking_state`, `equal`, `idle_until`, `num_sending` and `num_sent`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from actors.fabric.coordinator import Agenda, remove_ended, request_decision
from actors.fabric.equal_agent import make_serving
from actors.fabric.equal_coordinator import enforce_decision, send_rates
from actors.fabric.equal_rates import backfill, progress, reset_residual
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.initial_arrays import at_start
from actors.fabric.intervals import charge_reports, enter_interval, has_costs
from actors.fabric.priority_queues import make_queues, next_tick, sort_groups
from actors.fabric.service_order import Order, set_order
from actors.kernel.compiled import compiled, inlined, template
from actors.setting import Setting

_MOST_SENDS = 1 << 13  # of one event; further events at the same time send the rest of a decision
# intervals: a longer wait is divided, so that a deadline far ahead does not prolong a run
_MOST_IDLE_INTERVALS = np.int64(128)


@inlined
def request_tick(w: CoflowWorld, p: Any, t: int) -> None:
    """Request a decision at the end of the interval, as something has changed."""
    p.idle_until[0] = 0
    request_decision(w, p.agenda, next_tick(t, p.queues.interval))


@inlined
def await_change(w: CoflowWorld, p: Any, t: int) -> None:
    """Request a decision at `idle_until`; if that is far ahead, an earlier one, which requests the next."""
    request_decision(
        w,
        p.agenda,
        min(p.idle_until[0], next_tick(t + _MOST_IDLE_INTERVALS * p.queues.interval, p.queues.interval)),
    )


@compiled
def begin_tick(w: CoflowWorld, p: Any, t: int) -> bool:
    """Receive the agents' reports at the end of an interval if anything can have changed; return whether it can."""
    if t < p.idle_until[0]:
        await_change(w, p, t)
        return False
    enter_interval(w, t, p.num_sending[0])
    charge_reports(w, p.num_sending[0])
    remove_ended(w, p.agenda)
    return True


@template
def put_in_order(w: CoflowWorld, p: Any, t: int, key_of: Callable) -> None:
    """Put the active coflows in order of ``key_of(p, t, coflow)``, and make all bandwidth of the ports residual."""
    q, count = p.queues, p.agenda.used[0]
    for i in range(count):
        q.groups[i] = p.agenda.active[i]
        q.keys[i] = key_of(p, t, q.groups[i])
    sort_groups(w.fabric.coflows, q.groups, q.keys, count)
    progress(w.fabric, p.order, p.equal, t)
    set_order(p.order, q.groups, count)
    reset_residual(w.fabric, p.equal)


@template
def end_tick(w: CoflowWorld, p: Any, t: int, next_change: Callable) -> None:
    """Backfill, send the new rates, and request a decision for ``next_change(w, p, t)``, when it can be another one."""
    count, interval = p.agenda.used[0], p.queues.interval
    backfill(w.fabric, p.order, p.equal)
    enforce_decision(w, p.order, p.equal, p.num_sending, count, t)
    p.num_sent[0] = 0
    send_rates(w, p, t)
    if count > 0:
        following = next_tick(t + 1, interval)
        p.idle_until[0] = max(following, next_change(w, p, t)) if not has_costs(w) else following
        await_change(w, p, t)


def build_serving_world(setting: Setting) -> CoflowWorld:
    """Return a world in which a decision may send the rates of many flows."""
    return build_world(
        setting,
        interval_s=setting.parameters["interval_s"],
        most_sends=max(min(2 * setting.num_tasks, _MOST_SENDS), 2 * setting.cluster.num_nodes),
    )


def ticking_state(setting: Setting, world: CoflowWorld) -> dict[str, Any]:
    """Return what policies that use these functions have in their states, at time 0."""
    return {
        "agenda": at_start(Agenda, world.fabric),
        "order": at_start(Order, world.fabric),
        "serving": make_serving(world.fabric),
        "queues": make_queues(world.fabric, {**setting.parameters, "starvation": "strict"}),
    }
