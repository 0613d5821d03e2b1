"""The chain of a job: the events that end with the last of its tasks, and what each link of it means, in words.

The chain is followed backwards, from the end of the task that ended last to the arrival of the job. An event was caused
by an earlier event of the same job: the message that brought the task or probe to its node, the request that was
answered, the rejection after which it was sent again. The time between two of them has one *cause*, so that the causes
add up to the completion time to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from actors.failures import PROGRESS_BITS
from emu.explaining.event_record import NONE, BoolArray, Handled, Record
from emu.explaining.explanation import Link
from emu.families.jobs.task_waits import BOUND, joined_with
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
LEAST_SHARE = 0.5
"""Least share that a job spends at the scheduler in a wait that trips to full nodes interrupt."""
ENTERS = ("PROBE", *BOUND, "MOVE")
BROUGHT = ("REJECTED", "RETURNED", "LOST", "LENGTH", "REQUEST")


def meanings_of(result: Result, meanings: Mapping[str, str] = MEANINGS) -> dict[str, str]:
    """Return what each cause of a run means; runs without preemption have no such cause."""
    has_preemption = "evictions" in result.summary["jobs"]
    return {cause: text for cause, text in meanings.items() if cause != "preemption" or has_preemption}


class Chain:
    """The chain of one job.

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
    first_task : int
        The job's first task, from 0 over all in workload order.

    Attributes
    ----------
    links : list of Link
        From the arrival to the end, without words. ``actor`` is the actor that did it, of a message the receiver;
        ``kind`` the kind of the event at its end; ``task`` the task that ran or was placed, -1 for a probe. Empty if no
        task of the job has ended.
    ends : list of int
        The row of the message that arrived at the end of each link, or left its actor then; -1 of others.
    """

    def __init__(
        self,
        events: Record,
        num_nodes: int,
        submit_ns: int,
        handled: Handled | None = None,
        is_sticky: bool = False,
        first_task: int = 0,
    ):
        self.e, self.num_nodes, self.submit_ns, self.first_task = events, num_nodes, submit_ns, first_task
        self._handled, self._is_sticky = handled, is_sticky
        self._lost = NONE  # the event that reported the loss of the task that the scheduler has sent again
        self._at_ns = submit_ns
        self.links: list[Link] = []
        self.ends: list[int] = []
        done = np.flatnonzero(events.is_kind("DONE"))
        if done.size:
            self._follow(int(done[np.argmax(events.field("finish", done))]))

    def _follow(self, end: int) -> None:
        """Follow the chain from the end of a task, whose event DONE is in a row."""
        e = self.e
        self._at_ns = e.value("finish", end)
        row = self._ran(int(e.sender[end]), e.value("start", end), end)
        while row != NONE:
            row = self._before(row)
        if self._at_ns > self.submit_ns:  # the earlier events were not recorded
            self._add("queueing", self.submit_ns, NONE, "")
        self.links.reverse()
        self.ends.reverse()

    def _add(
        self, cause: str, begin_ns: int, actor: int, kind: str, task: int = NONE, end: int = NONE
    ) -> None:
        """Add a link before the others; it begins no earlier than the job arrived. ``end``: as in `ends`."""
        begin_ns = max(min(begin_ns, self._at_ns), self.submit_ns)
        since, until = begin_ns - self.submit_ns, self._at_ns - self.submit_ns
        self.links.append(Link(since, until, cause, "", actor, kind, task))
        self.ends.append(end)
        self._at_ns = begin_ns

    def _last(self, mask: BoolArray, before: int) -> int:
        """Return the last event of a mask up to row `before`; NONE if there is none."""
        found = np.flatnonzero(mask[: before + 1])
        return int(found[-1]) if found.size else NONE

    def _ran(self, node: int, start_ns: int, before: int) -> int:
        """Follow a task that ran on a node until now, since `start_ns`, to the message that brought it."""
        e = self.e
        at = self._last(e.is_kind("START") & (e.receiver == node) & (e.time_ns == start_ns), before)
        if at == NONE:
            return NONE
        self._add("work", start_ns, node, "TASK_END", int(e.task[at]))
        return self._waited_bound(node, at, e.receiver == node)

    def _waited_bound(self, node: int, started: int, here: BoolArray) -> int:
        """Follow the task of an event START from now to the message that brought it to its node."""
        e, task = self.e, int(self.e.task[started])
        brought = self._last(e.is_kind("TASK", *BOUND) & here & (e.task == task), started)
        if brought != NONE:
            self._add("queueing", int(e.time_ns[brought]), node, "START", task)
        return brought

    def _before(self, row: int) -> int:
        """Follow what arrived now, the event in a row, to what arrived before it; return the row of that, or NONE."""
        e, sender = self.e, int(self.e.sender[row])
        if e.kind[row] == "MOVE":
            return self._moved(row)
        receiver, kind, task = int(e.receiver[row]), str(e.kind[row]), int(e.task[row])
        self._add("network", int(e.left_ns[row]), receiver, kind, task, row)
        return self._left_node(row) if sender < self.num_nodes else self._left_scheduler(row)

    def _left_scheduler(self, row: int) -> int:
        """Follow a message that left a scheduler now."""
        e, kind, task, scheduler = (
            self.e,
            str(self.e.kind[row]),
            int(self.e.task[row]),
            int(self.e.sender[row]),
        )
        if self._handled and (known := self._handled(scheduler, int(e.number[row]))) != NONE:
            self._add("decision", known, scheduler, kind, task)
        mine = (e.receiver == scheduler) & (e.time_ns <= self._at_ns)
        if kind == "TASK":
            cause = self._last(mine & e.is_kind("REQUEST") & (e.sender == e.receiver[row]), row)
            self._lost = self._last(mine & e.is_kind("LOST") & (e.task == task), row)
        else:
            cause = self._what_led_to(mine, row)
        if cause != NONE and e.kind[cause] == "LOST" and e.sender[cause] == scheduler:
            # While no node was up it sent messages to itself: it waited since a node reported, or since arrival.
            reported = e.is_kind("LOST") & (e.task == e.task[cause]) & (e.sender != scheduler)
            cause = self._last(mine & (reported | e.is_kind("ARRIVAL")), cause - 1)
        if cause == NONE:
            return NONE
        self._add("queueing", int(e.time_ns[cause]), scheduler, kind, task)
        if e.kind[cause] == "RETRY":
            cause = self._last(mine & e.is_kind("ARRIVAL", *BROUGHT), cause - 1)
            if cause == NONE:
                return NONE
            self._add("decision", int(e.time_ns[cause]), scheduler, "RETRY")
        return NONE if e.kind[cause] == "ARRIVAL" else cause

    def _what_led_to(self, mine: BoolArray, row: int) -> int:
        """Return the event because of which a scheduler sent a probe or a task."""
        e, task = self.e, int(self.e.task[row])
        now = mine & (e.time_ns == self._at_ns)
        if task != NONE:
            found = self._last(mine & e.is_kind("RETURNED", "LOST") & (e.task == task), row)
            if found == NONE:
                found = self._last(now & e.is_kind("LENGTH"), row)
            if found == NONE and self._last(e.is_kind(*BOUND) & (e.task == task), row - 1) != NONE:
                found = self._last(
                    mine & e.is_kind("LOST"), row
                )  # it had ended, and starts again with its gang
        else:
            found = self._last(now & e.is_kind("RETRY", *BROUGHT), row)
        if found == NONE:
            found = self._last(mine & e.is_kind("ARRIVAL"), row)
        if found == NONE:  # the job came to another scheduler, which has handed its tasks over
            found = self._last(mine & (e.sender >= self.num_nodes) & (e.sender != e.receiver[row]), row)
        return found

    def _left_node(self, row: int) -> int:
        """Follow a message that left a node now, about a probe or a task of its queue."""
        e, kind, node, task = self.e, str(self.e.kind[row]), int(self.e.sender[row]), int(self.e.task[row])
        here = (e.receiver == node) & (e.time_ns <= self._at_ns)
        if kind == "LENGTH":
            same = e.field("probe") == e.value("probe", row)
            asked = self._last(here & e.is_kind("ASK_LENGTH") & same, row)
            if asked != NONE:
                self._add("queueing", int(e.time_ns[asked]), node, kind)
            return asked
        if kind == "LOST" and (start_ns := e.value("start", row)) != NONE:
            mine = here & (e.task == task)
            started = self._last(e.is_kind("START") & mine & (e.time_ns == start_ns), row)
            evicted = e.is_kind("EVICT") & mine & (e.time_ns == e.left_ns[row])
            self._add(cause_of_loss(e, row, bool(evicted.any())), start_ns, node, kind, task)
            return NONE if started == NONE else self._waited_bound(node, started, mine)
        sticky = self._is_sticky and kind == "REQUEST"
        entered = self._entered(row, here)
        if sticky:
            finish_ns = e.field("finish")
            ended = np.flatnonzero(e.is_kind("DONE") & (e.sender == node) & (finish_ns <= self._at_ns))
            last = int(ended[np.argmax(finish_ns[ended])]) if ended.size else NONE
            # It has waited since its task ended, unless it came later.
            if last != NONE and (entered == NONE or finish_ns[last] >= e.time_ns[entered]):
                if (back := self._came_back(node, int(finish_ns[last]))) != NONE:
                    return back
                self._add("queueing", int(finish_ns[last]), node, kind)
                return self._ran(node, e.value("start", last), row)
        if entered == NONE:
            return NONE
        if kind == "REQUEST" and (back := self._came_back(node, int(e.time_ns[entered]))) != NONE:
            return back
        cause = "failure" if kind == "LOST" else "queueing"
        self._add(cause, int(e.time_ns[entered]), node, kind, int(e.task[entered]), row)
        return entered

    def _came_back(self, node: int, since_ns: int) -> int:
        """Follow a task that was lost and came back to its scheduler while a probe waited here since `since_ns`.

        The probe waits for the task from then on: before, the task ran elsewhere, or here. NONE: none came back.
        """
        e, back = self.e, self._lost
        self._lost = NONE
        if back == NONE or not since_ns < e.time_ns[back] <= self._at_ns:
            return NONE
        self._add("queueing", int(e.time_ns[back]), node, "REQUEST")
        return back

    def _moved(self, row: int) -> int:
        """Follow an entry that moved here in no time, from the queue of another node."""
        e, victim = self.e, self.e.value("from_node", row)
        here = (e.receiver == victim) & (e.time_ns <= self._at_ns)
        entered = self._last(here & e.is_kind(*ENTERS), row - 1)
        if entered != NONE:
            self._add("queueing", int(e.time_ns[entered]), victim, "MOVE", end=row)
        return entered

    def _entered(self, row: int, here: BoolArray) -> int:
        """Return the event with which the entry joined the queue that a node sends a message about; NONE: not found."""
        e, kind, task = self.e, self.e.kind[row], int(self.e.task[row])
        if kind in ("REJECTED", "RETURNED", "LOST"):
            bound = self._last(here & e.is_kind(*BOUND) & (e.task == task), row) if task != NONE else NONE
            same = self._last(here & e.is_kind("PROBE") & (e.time_ns == self._at_ns), row)
            if kind == "REJECTED" and same != NONE and (bound == NONE or same > bound):
                return same
            if bound != NONE:
                return bound
        is_sticky = np.array([self._is_sticky and kind == "REQUEST"])
        return int(joined_with(e, np.array([row]), self.num_nodes, is_sticky)[0])

    def described(self) -> list[Link]:
        """Return the links with words."""
        rows = zip(self.links, self.ends, strict=True)
        return [link._replace(what=self._what(link, row)) for link, row in rows]

    def has_started(self, link: Link) -> bool:
        """Return whether a task started on the node of a link when it began."""
        e, at_ns = self.e, self.submit_ns + link.begin_ns
        started = e.is_kind("START") & (e.receiver == link.actor) & (e.time_ns == at_ns)
        return bool((started & (e.task == link.task)).any())

    def name(self, actor: int) -> str:
        """Return the name of an actor."""
        if actor == NONE:
            return "an actor that was not recorded"
        return f"node {actor}" if actor < self.num_nodes else f"scheduler {actor - self.num_nodes}"

    def _what(self, link: Link, row: int) -> str:
        at, task = self.name(link.actor), "its probe"
        if link.task != NONE:
            task = f"task {link.task - self.first_task}"
        if link.cause == "preemption" or (link.cause == "work" and link.kind == "LOST"):
            kept = ", and what it had done was kept" if link.cause == "work" else ""
            return f"{task} ran on {at} until it was evicted and its scheduler knew{kept}"
        if link.cause == "work":
            return f"{task} ran on {at}"
        if link.cause == "network":
            return self._message(link, task, at, self.name(int(self.e.sender[row])))
        if link.cause == "failure":
            did = f"ran on {at}" if self.has_started(link) else f"waited in the queue of {at}"
            return f"{task} {did} until the node failed and its scheduler knew"
        if link.cause == "decision":
            return f"{at} waited before it probed again" if link.kind == "RETRY" else f"{at} was busy"
        if link.actor >= self.num_nodes or link.actor == NONE:
            return f"{task} waited at {at}"
        until = ""
        if link.kind in ("MOVE", "PROBE"):
            until = f", until node {self.e.receiver[row]} took it"
        elif link.kind in ("REJECTED", "RETURNED"):
            until = ", until the node gave it back" if link.s else ", which refused it"
        return f"{task} waited in the queue of {at}{until}"

    def _message(self, link: Link, task: str, to: str, sender: str) -> str:
        if link.kind == "PROBE":
            return f"its probe went {f'from {sender} ' if sender.startswith('node') else ''}to {to}"
        texts = {
            **dict.fromkeys(("TASK", *BOUND), f"{task} went to {to}"),
            **dict.fromkeys(("REJECTED", "RETURNED"), f"{sender} sent it back"),
            "REQUEST": f"{sender} asked for a task",
            "LOST": f"word of what was lost went to {to}",
            "ASK_LENGTH": f"{to} was asked for the length of its queue",
            "LENGTH": f"{sender} reported the length of its queue",
        }
        if sender.startswith("scheduler") and to.startswith("scheduler"):
            return texts.get(link.kind, f"{sender} handed tasks over to {to}")
        return texts.get(link.kind, f"a message went to {to}")


def cause_of_loss(e: Record, row: int, was_evicted: bool) -> str:
    """Return the cause of the time of an attempt that ended with the event LOST in a row: work where that was kept."""
    if not was_evicted:
        return "failure"
    return "work" if e.value("history", row) % (1 << PROGRESS_BITS) > 0 else "preemption"


def longest_span(links: Sequence[Link], num_nodes: int) -> tuple[int, int] | None:
    """Return the first link of the longest wait, and the one behind its last; None if the job did not wait.

    Waits at a scheduler are one wait if only trips to nodes without room lie between them.
    """
    best, longest, end = None, 0, 0
    for i, link in enumerate(links):
        if i < end or link.cause == "work" or link.end_ns == link.begin_ns:
            continue
        end = i + 1
        if link.cause == "queueing" and link.actor >= num_nodes:
            end = _end_of_stay(links, i)
        took = links[end - 1].end_ns - link.begin_ns
        if took > longest:
            best, longest = (i, end), took
    return best


def _end_of_stay(links: Sequence[Link], begin: int) -> int:
    """Return the link behind the last wait at the scheduler where the job waits from `begin` on."""
    end, stayed = begin + 1, 0
    for i in range(begin, len(links)):
        link = links[i]
        if link.cause == "work":
            break
        if link.cause == "queueing" and link.actor == links[begin].actor:
            stayed += link.end_ns - link.begin_ns
            if stayed >= LEAST_SHARE * (link.end_ns - links[begin].begin_ns):
                end = i + 1
    return end
