"""What the coordinator does in each scheduling interval, and whether it is done in time.

An interval is missed if the coordinator had not done the work of that interval when it ended; the rest is added to the
work of the next interval (Philae, section 9.3). Nothing here changes what is scheduled.
"""

import numpy as np

from actors.fabric.counters import N_HEARD, N_INTERVALS, N_MISSED, N_SCHEDULES, N_WITHOUT
from actors.fabric.fabric_world import CoflowWorld
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import NO_COST, charge_server


@inlined
def charge(w: CoflowWorld, price: int) -> None:
    """Charge the coordinator `price` ns, if costs are fixed."""
    charge_server(w.cost, np.int64(0), price)


@inlined
def has_costs(w: CoflowWorld) -> bool:
    """Return whether the work of the coordinator costs time: then it handles the reports of every interval."""
    return w.cost.model != NO_COST


@inlined
def charge_updates(w: CoflowWorld, count: int) -> None:
    """Charge for `count` messages about ends or updates."""
    charge(w, (w.prices.message + w.prices.update) * count)


@inlined
def charge_reports(w: CoflowWorld, count: int) -> None:
    """Charge for `count` reports of agents without news; these are counted, but no messages are sent."""
    charge_updates(w, count)
    if has_costs(w):
        w.cost.servers.served[0] += count


@inlined
def note_heard(w: CoflowWorld, agent: int) -> None:
    """Note that the coordinator has received a message of an agent in this interval."""
    i = w.intervals
    if i.heard[agent] != i.now.number[0]:
        i.heard[agent] = i.now.number[0]
        i.now.heard[0] += 1


@inlined
def note_schedules(w: CoflowWorld, agents: int) -> None:
    """Count the schedules that this number of agents is sent."""
    w.intervals.now.sent[0] += agents
    w.counts[N_SCHEDULES] += agents


@inlined
def enter_interval(w: CoflowWorld, t: int, reporting: int) -> None:
    """Close all intervals before the one that contains t.

    Args:
        reporting: how many agents report in every interval, with or without a decision; 0: `note_heard` counts them.
    """
    if (t - w.intervals.origin) // w.intervals.length > w.intervals.now.number[0]:
        close_intervals(w, (t - w.intervals.origin) // w.intervals.length, reporting)


@compiled
def close_intervals(w: CoflowWorld, k: int, reporting: int) -> None:
    """Count the intervals from the present one up to before number k, and begin that one."""
    i, counts = w.intervals, w.counts
    busy = 0  # before the message at hand, which belongs to the interval that begins
    if has_costs(w):
        busy = w.cost.servers.busy[0] - w.cost.handler.spent[0]
    passed = k - i.now.number[0]
    left = busy - i.now.busy[0]  # work of the interval that ends
    missed = min(max(left - 1, 0) // i.length, passed)
    counts[N_INTERVALS] += passed
    counts[N_MISSED] += missed
    counts[N_WITHOUT] += passed - min(i.now.sent[0], 1)
    counts[N_HEARD] += passed * reporting if reporting > 0 else i.now.heard[0]
    i.now.number[0], i.now.heard[0], i.now.sent[0] = k, 0, 0
    i.now.busy[0] = busy - max(left - passed * i.length, 0)
