"""What the coordinator does in each scheduling interval, and whether it is done in time.

An interval is missed if the coordinator's work of that interval was not done when it ended; the rest is added to the
work of the next one (Philae, section 9.3). Nothing here changes what is scheduled.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from actors.fabric.counters import N_HEARD, N_INTERVALS, N_MISSED, N_SCHEDULES, N_WITHOUT
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import NO_COST, Cost, charge_server
from actors.kernel.records import Records, records

INTERVAL = np.dtype(
    [
        ("number", "i8"),
        ("heard", "i8"),  # agents whose messages the coordinator has received in it
        ("sent", "i8"),  # schedules sent in it, one for each agent
        ("busy", "i8"),  # ns that the coordinator had worked when it began
    ]
)


class Intervals(NamedTuple):
    """The scheduling interval that is under way; P agents."""

    origin: int  # when the first one began, ns
    length: int  # ns
    now: Records  # [1] INTERVAL, the one that is under way
    heard: np.ndarray  # [P] the last interval in which a message of an agent was received
    last_sent: np.ndarray  # [P] the last decision or refill that sent an agent anything


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
    """Return the first interval."""
    return Intervals(
        origin_ns,
        length_ns,
        records(INTERVAL, 1),
        np.full(ports, -1, np.int64),
        np.full(ports, -1, np.int64),
    )


@inlined
def charge(w: HasIntervals, price: int) -> None:
    """Charge the coordinator's work with so many ns, if costs are fixed."""
    charge_server(w.cost, np.int64(0), price)


@inlined
def has_costs(w: HasIntervals) -> bool:
    """Return whether the work of the coordinator costs time: then it handles the reports of every interval."""
    return w.cost.model != NO_COST


@inlined
def charge_message(w: HasIntervals) -> None:
    """Charge what any message costs."""
    charge(w, w.prices.message)


@inlined
def charge_updates(w: HasIntervals, count: int) -> None:
    """Charge what so many messages cost that tell of ends or updates."""
    charge(w, (w.prices.message + w.prices.update) * count)


@inlined
def charge_reports(w: HasIntervals, count: int) -> None:
    """Charge for so many reports of agents without news, which are counted and not sent."""
    charge_updates(w, count)
    if w.cost.model != NO_COST:
        w.cost.servers.served[0] += count


@inlined
def note_heard(w: HasIntervals, agent: int) -> None:
    """Note that the coordinator has received a message of an agent in this interval."""
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
    """Close all intervals before the one that contains t.

    Args:
        reporting: agents that report in every interval, with or without a decision; 0 if `note_heard` counts them.
    """
    if (t - w.intervals.origin) // w.intervals.length > w.intervals.now.number[0]:
        close_intervals(w, (t - w.intervals.origin) // w.intervals.length, reporting)


@compiled
def close_intervals(w: HasIntervals, k: int, reporting: int) -> None:
    """Count the intervals from the present one up to before number k, and begin that one."""
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
