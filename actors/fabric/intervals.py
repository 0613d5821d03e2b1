"""What the coordinator does in each scheduling interval, and whether it is done in time.

An interval is missed if what the coordinator had to do in it was not done when it ended; what is left over is the next
one's (Philae, section 9.3). Nothing here changes what is scheduled.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from actors.fabric.counters import N_HEARD, N_INTERVALS, N_MISSED, N_SCHEDULES, N_WITHOUT
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import FIXED, NO_COST, Cost
from actors.kernel.queue import records

INTERVAL = np.dtype(
    [
        ("number", "i8"),
        ("heard", "i8"),  # agents whose messages the coordinator has received in it
        ("sent", "i8"),  # schedules sent in it, one for each agent
        ("busy", "i8"),  # ns that the coordinator had worked when it began
    ]
)


class Intervals(NamedTuple):
    """The interval that is going on; P agents."""

    origin: int  # when the first one began, ns
    length: int  # ns
    now: np.recarray  # [1] INTERVAL, the one that is under way
    heard: np.ndarray  # [P] the last interval in which an agent was heard
    last_sent: np.ndarray  # [P] the last decision or refill that told an agent anything


class HasIntervals(Protocol):
    """What these functions need of a world."""

    @property
    def intervals(self) -> Intervals:
        """The interval that is under way."""

    @property
    def cost(self) -> Cost:
        """The cost model."""

    @property
    def prices(self) -> Any:
        """What the work of the coordinator costs: `Prices`."""

    @property
    def counts(self) -> np.ndarray:
        """The counters."""


def make_intervals(origin_ns: int, length_ns: int, ports: int) -> Intervals:
    """The first interval begins."""
    return Intervals(
        origin_ns,
        length_ns,
        records(INTERVAL, 1),
        np.full(ports, -1, np.int64),
        np.full(ports, -1, np.int64),
    )


@inlined
def charge(w: HasIntervals, price: int) -> None:
    """Let the coordinator spend so many ns on what it does, where costs are fixed."""
    if w.cost.model == FIXED:
        w.cost.handler.spent[0] += price
        w.cost.servers.busy[0] += price
        w.cost.servers.free[0] += price


@inlined
def has_costs(w: HasIntervals) -> bool:
    """Return whether the work of the coordinator costs time: then it handles the reports of every interval."""
    return w.cost.model != NO_COST


@inlined
def charge_message(w: HasIntervals) -> None:
    """Let the coordinator spend what any message costs."""
    charge(w, w.prices.message)


@inlined
def charge_updates(w: HasIntervals, count: int) -> None:
    """Let the coordinator spend what so many messages that tell of updates cost."""
    charge(w, (w.prices.message + w.prices.update) * count)


@inlined
def charge_reports(w: HasIntervals, count: int) -> None:
    """Let the coordinator handle so many reports of agents that bring nothing new, and are not sent one by one."""
    charge_updates(w, count)
    if w.cost.model != NO_COST:
        w.cost.servers.served[0] += count


@inlined
def note_heard(w: HasIntervals, agent: int) -> None:
    """An agent is heard in this interval."""
    i = w.intervals
    if i.heard[agent] != i.now.number[0]:
        i.heard[agent] = i.now.number[0]
        i.now.heard[0] += 1


@inlined
def note_schedules(w: HasIntervals, agents: int) -> None:
    """Count the schedules that are sent to so many agents."""
    w.intervals.now.sent[0] += agents
    w.counts[N_SCHEDULES] += agents


@inlined
def enter_interval(w: HasIntervals, t: int, reporting: int) -> None:
    """Close the intervals before the one that t is in.

    Args:
        reporting: agents that report in every interval, whether the coordinator looks or not; 0 if only `hear` counts.
    """
    if (t - w.intervals.origin) // w.intervals.length > w.intervals.now.number[0]:
        close_intervals(w, (t - w.intervals.origin) // w.intervals.length, reporting)


@compiled
def close_intervals(w: HasIntervals, k: int, reporting: int) -> None:
    """Count the intervals from the present one up to number k, which begins."""
    i, counts = w.intervals, w.counts
    busy = 0  # before the message at hand, which is of the interval that begins
    if w.cost.model != NO_COST:
        busy = w.cost.servers.busy[0] - w.cost.handler.spent[0]
    passed = k - i.now.number[0]
    left = busy - i.now.busy[0]  # to be done in the one that ends
    missed = min(max(left - 1, 0) // i.length, passed)
    counts[N_INTERVALS] += passed
    counts[N_MISSED] += missed
    counts[N_WITHOUT] += passed - min(i.now.sent[0], 1)
    counts[N_HEARD] += passed * reporting if reporting > 0 else i.now.heard[0]
    i.now.number[0], i.now.heard[0], i.now.sent[0] = k, 0, 0
    i.now.busy[0] = busy - max(left - passed * i.length, 0)
