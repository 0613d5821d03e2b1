"""The causes of a job's completion time: the chain of events that ends with the last of its tasks.

The chain is followed backwards, from the end of the task that ended last to the arrival of the job. An event was caused
by an earlier event of the same job: the message that brought the task or probe to its node, the request that was
answered, the rejection after which it was sent again. The time between two of them has one *cause*, so that the causes
add up to the completion time to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.failures import PROGRESS_BITS
from emu.explaining.event_record import NONE, BoolArray, Handled, IntArray, Record
from emu.families.jobs.task_waits import BOUND
from emu.results.result import Result

MEANINGS = {
    "work": "tasks of the chain that ended last ran",
    "queueing": "they waited in the queue of a node, or at the scheduler for a node",
    "network": "messages were on their way",
    "decision": "a scheduler was busy, or waited before it probed again",
    "failure": "what ran or waited was lost, until a scheduler knew",
    "preemption": "they ran until they were evicted for tasks of higher priority, and that work was lost",
}
"""What each cause means."""


def meanings_of(result: Result, meanings: Mapping[str, str] = MEANINGS) -> dict[str, str]:
    """Return what each cause of a run means; runs without preemption have no such cause."""
    has_preemption = "evictions" in result.summary["jobs"]
    return {cause: text for cause, text in meanings.items() if cause != "preemption" or has_preemption}


ENTERS = ("PROBE", *BOUND, "MOVE")
BROUGHT = ("REJECTED", "RETURNED", "LOST", "LENGTH", "REQUEST")


class Step(NamedTuple):
    """A part of a job's life: its cause, one of `MEANINGS`, and when it began and ended.

    ``actor`` is the actor that did it, of a message the receiver; ``kind`` the kind of the event at its end; ``task``
    the task that ran or was placed, -1 for a probe.
    """

    cause: str
    begin_ns: int
    end_ns: int
    actor: int
    kind: str
    task: int = NONE


Next = tuple[Any, ...] | None
"""The function that finds the step before, and its arguments; None at the beginning of the chain."""


class _Chain:
    """The chain of one job, followed backwards."""

    def __init__(
        self, events: Record, num_nodes: int, submit_ns: int, handled: Handled | None, is_sticky: bool
    ):
        self.e, self.num_nodes, self.submit_ns, self.handled = events, num_nodes, submit_ns, handled
        self.is_sticky = is_sticky
        self.steps: list[Step] = []
        self.at_ns = submit_ns
        self.lost = NONE  # the event that reported the loss of the task that the scheduler has sent again

    def add(self, cause: str, begin_ns: int, actor: int, kind: str, task: int = NONE) -> None:
        """Add a step before the others; it begins no earlier than the job arrived."""
        begin_ns = max(min(begin_ns, self.at_ns), self.submit_ns)
        self.steps.append(Step(cause, begin_ns, self.at_ns, actor, kind, task))
        self.at_ns = begin_ns

    def last(self, mask: BoolArray, before: int) -> int:
        """Return the last event of a mask up to row `before`; NONE if there is none."""
        found = np.flatnonzero(mask[: before + 1])
        return int(found[-1]) if found.size else NONE


def chain_of(
    events: Record, num_nodes: int, submit_ns: int, handled: Handled | None = None, is_sticky: bool = False
) -> list[Step]:
    """Return the steps from a job's arrival to its end, in order of time.

    Parameters
    ----------
    events : Record
        Those of the job, from its arrival on.
    num_nodes : int
        Actors below it are nodes.
    submit_ns : int
        When the job arrived.
    handled : callable, optional
        With costs of messages; without it a message leaves when the event that sends it arrives.
    is_sticky : bool
        Whether its probes are sticky (`emu.families.jobs.task_waits.sticky_jobs`).

    Returns
    -------
    list of Step
        Each begins where the one before it ends. Empty if no task of the job has ended.
    """
    e = events
    done = np.flatnonzero(e.kind == "DONE")
    if done.size == 0:
        return []
    end = int(done[np.argmax(e.field("finish", done))])
    c = _Chain(events, num_nodes, submit_ns, handled, is_sticky)
    c.at_ns = e.value("finish", end)
    following: Next = (_run, int(e.sender[end]), e.value("start", end), end)
    while following is not None:
        step, *arguments = following
        following = step(c, *arguments)
    if c.at_ns > submit_ns:  # the earlier events were not recorded
        c.add("queueing", submit_ns, NONE, "")
    return c.steps[::-1]


def _run(c: _Chain, node: int, start_ns: int, row: int) -> Next:
    """Follow a task that ran on a node until now, since `start_ns`."""
    e = c.e
    started = (e.kind == "START") & (e.receiver == node) & (e.time_ns == start_ns)
    at = c.last(started, row)
    if at == NONE:
        return None
    task = int(e.task[at])
    c.add("work", start_ns, node, "TASK_END", task)
    brought = c.last(c.e.is_kind("TASK", *BOUND) & (e.receiver == node) & (e.task == task), at)
    if brought != NONE:
        c.add("queueing", int(e.time_ns[brought]), node, "START", task)
        return (_sent, brought)
    return None


def _sent(c: _Chain, row: int) -> Next:
    """Follow a message that arrived now."""
    e = c.e
    sender, left_ns = int(e.sender[row]), int(e.left_ns[row])
    c.add("network", left_ns, int(e.receiver[row]), str(e.kind[row]), int(e.task[row]))
    return (_left_node, row) if sender < c.num_nodes else (_left_scheduler, row)


def _left_scheduler(c: _Chain, row: int) -> Next:
    """Follow a message that left a scheduler now."""
    e, kind = c.e, str(c.e.kind[row])
    scheduler = int(e.sender[row])
    if c.handled is not None and (known := c.handled(scheduler, int(e.number[row]))) != NONE:
        c.add("decision", known, scheduler, kind, int(e.task[row]))
    mine = (e.receiver == scheduler) & (e.time_ns <= c.at_ns)
    if kind == "TASK":
        cause = c.last(mine & (e.kind == "REQUEST") & (e.sender == e.receiver[row]), row)
        c.lost = c.last(mine & (e.kind == "LOST") & (e.task == e.task[row]), row)
    else:
        cause = _what_led_to(c, mine, row)
    if cause != NONE and e.kind[cause] == "LOST" and e.sender[cause] == scheduler:
        # While no node was up the scheduler sent messages to itself: it waited since a node reported, or since arrival.
        reported = (e.kind == "LOST") & (e.task == e.task[cause]) & (e.sender != scheduler)
        cause = c.last(mine & (reported | (e.kind == "ARRIVAL")), cause - 1)
    if cause == NONE:
        return None
    c.add("queueing", int(e.time_ns[cause]), scheduler, kind, int(e.task[row]))
    if e.kind[cause] == "RETRY":
        before = c.last(mine & c.e.is_kind("ARRIVAL", *BROUGHT), cause - 1)
        if before == NONE:
            return None
        c.add("decision", int(e.time_ns[before]), scheduler, "RETRY")
        cause = before
    return None if e.kind[cause] == "ARRIVAL" else (_sent, cause)


def _what_led_to(c: _Chain, mine: BoolArray, row: int) -> int:
    """Return the event because of which a scheduler sent a probe or a task."""
    e, task = c.e, int(c.e.task[row])
    now = mine & (e.time_ns == c.at_ns)
    if task != NONE:
        found = c.last(mine & e.is_kind("RETURNED", "LOST") & (e.task == task), row)
        if found == NONE:
            found = c.last(now & (e.kind == "LENGTH"), row)
        if found == NONE and c.last(e.is_kind(*BOUND) & (e.task == task), row - 1) != NONE:
            found = c.last(mine & (e.kind == "LOST"), row)  # it had ended, and starts again with its gang
    else:
        found = c.last(now & c.e.is_kind("RETRY", *BROUGHT), row)
    return found if found != NONE else c.last(mine & (e.kind == "ARRIVAL"), row)


def _left_node(c: _Chain, row: int) -> Next:
    """Follow a message that left a node now, about a probe or a task of its queue."""
    e, kind, node = c.e, str(c.e.kind[row]), int(c.e.sender[row])
    here = (e.receiver == node) & (e.time_ns <= c.at_ns)
    if kind == "LENGTH":
        asked = c.last(here & (e.kind == "ASK_LENGTH") & (e.field("probe") == e.value("probe", row)), row)
        if asked != NONE:
            c.add("queueing", int(e.time_ns[asked]), node, kind)
        return None if asked == NONE else (_sent, asked)
    if kind == "LOST" and (start_ns := e.value("start", row)) != NONE:
        mine = here & (e.task == e.task[row])
        started = c.last((e.kind == "START") & mine & (e.time_ns == start_ns), row)
        evicted = (e.kind == "EVICT") & mine & (e.time_ns == e.left_ns[row])
        cause = cause_of_loss(e, row, bool(evicted.any()))
        c.add(cause, start_ns, node, kind, int(e.task[row]))
        if started != NONE:
            brought = c.last(c.e.is_kind("TASK", *BOUND) & mine, started)
            if brought != NONE:
                c.add("queueing", int(e.time_ns[brought]), node, "START", int(e.task[row]))
                return (_sent, brought)
        return None
    if c.is_sticky and kind == "REQUEST":
        entered = _entered_sticky(c, node, here)
        finish_ns = e.field("finish")
        ended = np.flatnonzero(e.is_kind("DONE") & (e.sender == node) & (finish_ns <= c.at_ns))
        last = int(ended[np.argmax(finish_ns[ended])]) if ended.size else NONE
        # It has waited since its task ended, unless it came later.
        if last != NONE and (entered == NONE or finish_ns[last] >= e.time_ns[entered]):
            if (came_back := _came_back(c, node, int(finish_ns[last]))) is not None:
                return came_back
            c.add("queueing", int(finish_ns[last]), node, kind)
            return (_run, node, e.value("start", last), row)
    else:
        entered = _entered(c, row, node, here)
    if entered == NONE:
        return None
    if kind == "REQUEST" and (came_back := _came_back(c, node, int(e.time_ns[entered]))) is not None:
        return came_back
    task = int(e.task[entered])
    c.add("failure" if kind == "LOST" else "queueing", int(e.time_ns[entered]), node, kind, task)
    return (_moved if e.kind[entered] == "MOVE" else _sent, entered)


def cause_of_loss(e: Record, row: int, was_evicted: bool) -> str:
    """Return the cause of the time of an attempt that ended with the event LOST in a row: work where that was kept."""
    if not was_evicted:
        return "failure"
    return "work" if e.value("history", row) % (1 << PROGRESS_BITS) > 0 else "preemption"


def _came_back(c: _Chain, node: int, since_ns: int) -> Next:
    """Follow a task that was lost and came back to its scheduler while a probe waited here since `since_ns`; else None.

    The probe waits for the task from then on: before, the task ran elsewhere, or here.
    """
    e, back = c.e, c.lost
    c.lost = NONE
    if back == NONE or not since_ns < e.time_ns[back] <= c.at_ns:
        return None
    c.add("queueing", int(e.time_ns[back]), node, "REQUEST")
    return (_sent, back)


def _entered_sticky(c: _Chain, node: int, here: BoolArray) -> int:
    """Return the event with which a sticky probe of the job joined the queue of a node; NONE if there is none."""
    e = c.e
    dropped = e.time_ns[here & e.is_kind("NO_TASK")].max(initial=NONE)
    probes_lost = e.is_kind("LOST") & (e.task == NONE) & (e.sender == node)
    lost = e.left_ns[probes_lost & (e.left_ns <= c.at_ns)].max(initial=NONE)
    entered = _probes_entered(e, node, here)
    gone = int(np.count_nonzero(e.time_ns[entered] <= max(dropped, lost)))
    return int(entered[min(gone, entered.size - 1)]) if entered.size else NONE


def _probes_entered(e: Record, node: int, here: BoolArray) -> IntArray:
    """Return the events with which probes joined the queue of a node."""
    entered = np.flatnonzero(here & e.is_kind("PROBE", "MOVE"))
    refused = e.left_ns[e.is_kind("REJECTED") & (e.sender == node)]
    return entered[~np.isin(e.time_ns[entered], refused)]


def _moved(c: _Chain, row: int) -> Next:
    """Follow an entry that moved here in no time, from the queue of another node."""
    e, victim = c.e, c.e.value("from_node", row)
    here = (e.receiver == victim) & (e.time_ns <= c.at_ns)
    entered = c.last(here & c.e.is_kind(*ENTERS), row - 1)
    if entered == NONE:
        return None
    c.add("queueing", int(e.time_ns[entered]), victim, "MOVE")
    return (_moved if e.kind[entered] == "MOVE" else _sent, entered)


def _entered(c: _Chain, row: int, node: int, here: BoolArray) -> int:
    """Return the event with which the entry joined the queue that a node sends a message about; NONE: not found.

    Probes of a job in one queue are alike: the first that joined is the first that leaves.
    """
    e, kind = c.e, str(c.e.kind[row])
    if kind in ("REJECTED", "RETURNED", "LOST"):
        task = int(e.task[row])
        bound = c.last(here & e.is_kind(*BOUND) & (e.task == task), row) if task != NONE else NONE
        same = c.last(here & (e.kind == "PROBE") & (e.time_ns == c.at_ns), row)
        if kind == "REJECTED" and same != NONE and (bound == NONE or same > bound):
            return same
        if bound != NONE:
            return bound
    entered = _probes_entered(e, node, here)
    left = e.is_kind("REQUEST", "PROBE") | (e.is_kind("LOST") & (e.task == NONE))
    left &= (e.sender == node) & (e.left_ns >= 0)
    left |= (e.kind == "MOVE") & (e.field("from_node") == node)
    when = np.where(e.kind == "MOVE", e.time_ns, e.left_ns)
    earlier = int(
        np.count_nonzero(left & ((when < c.at_ns) | ((when == c.at_ns) & (e.number < e.number[row]))))
    )
    return int(entered[min(earlier, entered.size - 1)]) if entered.size else NONE
