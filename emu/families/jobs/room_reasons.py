"""Why a job whose tasks need resources waited: what was free, and which entries did not fit.

All of it is read off the table of tasks. A task holds what it needs from its start to its end; a probe stands for the
most that one task of its job needs, and while a node asks for a task it holds that, which the table does not show.
Schedulers that keep account of nodes' room themselves count so much for each task.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from actors.resources import UNIT, demands_of
from actors.setting import Setting
from clusters.capacity import capacities
from emu.explaining.event_record import NONE, BoolArray, IntArray
from emu.explaining.explanation import NS, counted
from emu.families.jobs.job_wait import JobWait
from emu.families.jobs.task_waits import BOUND
from emu.results.metrics import Float64Array
from emu.results.text_tables import number, percent
from workloads.arrow import column, optional_column

SLACK = 0.5 / UNIT
"""Runs count amounts in whole billionths."""
MANY = 2.0**53
"""Tasks that fit where they need nothing."""
LITTLE = 0.01
"""Share of a wait below which a reason is left out."""


class Room:
    """What a job that waits needs, and what tasks hold of the nodes; amounts in the units of demands.

    Attributes
    ----------
    needs : ndarray, shape (R,)
    capacity : ndarray, shape (N, R)
    demand : ndarray, shape (n, R)
        Of each row of `JobWait.tasks`.
    is_by_job : bool
        Needs and demands are the most that a task of the job needs, as the scheduler counts them.
    """

    def __init__(self, case: JobWait, setting: Setting):
        found = demands_of(setting)
        self.case, self.resources, self.passing = case, setting.resources, setting.passing
        self.capacity = capacities(setting.cluster, setting.resources)
        has_account = setting.scheduler.waits in ("gangs", "queue")
        self.is_by_job = found.of_task.size > 0 and case.is_at_scheduler and has_account
        of_task, of_job, task = found.of_task[: 0 if self.is_by_job else None], found.of_job, case.step.task
        self.needs = found.vector[of_task[task] if of_task.size and task != NONE else of_job[case.job]]
        rows = case.tasks
        self.demand = found.vector[of_task[rows.task] if of_task.size else of_job[rows.job]]

    @cached_property
    def here(self) -> IntArray:
        """The tasks that ran on the node during the wait, in order of their start."""
        case = self.case
        rows = case.rows_ahead()
        return rows[np.argsort(case.tasks.start_ns[rows], kind="stable")]

    @cached_property
    def spans(self) -> tuple[IntArray, Float64Array]:
        """The times at which what was free on the node changed, (K + 1,), and what was free between them, (K, R)."""
        case = self.case
        free = self.free_beside(np.zeros(self.here.size, bool))
        return np.concatenate([[case.begin_ns], np.sort(self._changes), [case.end_ns]]), free

    @property
    def _changes(self) -> IntArray:
        """When the tasks of `here` began and ended within the wait, shape (2 n,)."""
        case, rows = self.case, self.here
        times = np.concatenate([case.tasks.start_ns[rows], case.tasks.finish_ns[rows]])
        return np.asarray(times.clip(case.begin_ns, case.end_ns))

    def free_beside(self, left_out: BoolArray) -> Float64Array:
        """Return what was free on the node between the times of `spans`, (K, R), without some of the tasks `here`."""
        demand = np.where(left_out[:, None], 0.0, self.demand[self.here])
        changes = np.concatenate([-demand, demand])[np.argsort(self._changes, kind="stable")]
        free = np.concatenate([np.zeros((1, len(self.resources))), changes.cumsum(axis=0)])
        return np.asarray(self.capacity[self.case.step.actor] + free)

    @cached_property
    def lacks(self) -> BoolArray:
        """Whether less of a resource was free than it needs, shape (K, R)."""
        return self.spans[1] < self.needs - SLACK

    @property
    def lacking(self) -> Float64Array:
        """The share of the wait at the node in which less of each resource was free than it needs, shape (R,)."""
        return np.asarray(np.diff(self.spans[0]) @ self.lacks / (self.case.end_ns - self.case.begin_ns))

    @property
    def scarce(self) -> int:
        """The resource of which too little was free for longest; if none, that of which all nodes had the least."""
        if self.case.is_at_node and self.lacking.max() > 0:
            return int(np.argmax(self.lacking))
        return int(np.argmin(np.where(self.needs > 0, self.free_share(), 2.0)))

    def free_share(self) -> Float64Array:
        """Return the share of each resource of the usable nodes that was free, the mean over the wait, shape (R,)."""
        case = self.case
        assert case.usable is not None
        usable = case.usable[0]
        busy = case.busy
        lasted = np.where(usable[busy.node], busy.within(case.begin_ns, case.end_ns), 0)
        total = self.capacity[usable].sum(axis=0)
        # A node that is down is in `busy` once for each of its slots.
        of_node = self.capacity[busy.node] / case.usable[1][busy.node][:, None]
        held = lasted @ np.where((busy.job == NONE)[:, None], of_node, self._demand_of_busy())
        return np.asarray(1.0 - held / (case.end_ns - case.begin_ns) / np.where(total > 0, total, 1.0)).clip(
            0.0, 1.0
        )

    def _demand_of_busy(self) -> Float64Array:
        """Return the demand of each row of `JobWait.busy`: the tasks, then nodes that were down."""
        down = len(self.case.busy.job) - len(self.demand)
        return np.concatenate([self.demand, np.zeros((down, len(self.resources)))])

    def nodes_with_room(self, at_ns: int) -> int:
        """Return how many of the usable nodes had room for it at a time."""
        return int((self.tasks_with_room(at_ns) > 0).sum())

    def _there(self, at_ns: int) -> IntArray:
        """Return the rows of `JobWait.busy` that held something at a time."""
        busy = self.case.busy
        return np.flatnonzero((busy.start_ns <= at_ns) & (busy.finish_ns > at_ns))

    def free_at(self, at_ns: int) -> Float64Array:
        """Return what was free on each node at a time, shape (N, R); of a node that was down all."""
        free, there = self.capacity.copy(), self._there(at_ns)
        np.subtract.at(free, self.case.busy.node[there], self._demand_of_busy()[there])
        return free

    def tasks_with_room(self, at_ns: int) -> IntArray:
        """Return for how many such tasks each of the nodes had room at a time, shape (N,); 0 if it is not usable."""
        case = self.case
        assert case.usable is not None
        busy, there, free = case.busy, self._there(at_ns), self.free_at(at_ns)
        up = case.usable[0].copy()
        up[busy.node[there[busy.job[there] == NONE]]] = False
        needed = self.needs > 0
        room = np.full(free.shape, MANY)
        np.floor_divide(free + SLACK, self.needs, out=room, where=needed)
        return np.where(up, room.min(axis=1).clip(0), 0).astype(np.int64)

    def amounts(self, values: Float64Array) -> str:
        """Return amounts of the resources that it needs as text."""
        parts = [
            f"{name} {number(float(v))}"
            for name, v, n in zip(self.resources, values, self.needs, strict=True)
            if n
        ]
        return ", ".join(parts) or "nothing"


def room_of(case: JobWait) -> Room | None:
    """Return what is known of resources; None where tasks take slots, or the inputs of the run have changed."""
    return Room(case, case.setting) if case.setting is not None and case.setting.resources else None


def facts_of_room(room: Room) -> dict[str, Any]:
    """Return the numbers of a wait for resources: the scarcest ``resource``, what it ``needs`` and ``had_room`` nodes.

    ``lacking`` is the share of the wait in which its node had too little free of that resource, ``free_share`` what was
    free of it on all usable nodes.
    """
    scarce, case = room.scarce, room.case
    at_node = {"lacking": float(room.lacking[scarce])} if case.is_at_node else {}
    return {
        "resource": room.resources[scarce],
        "needs": float(room.needs[scarce]),
        **at_node,
        "had_room": room.nodes_with_room(case.chosen_ns),
        "free_share": float(room.free_share()[scarce]),
    }


def lack_at_node(room: Room) -> Iterator[str]:
    """Yield what a job that waited at a node needs, what was free there, and what was free at its turn."""
    case = room.case
    node, length_ns = case.step.actor, case.end_ns - case.begin_ns
    without = float(np.diff(room.spans[0]) @ room.lacks.any(axis=1)) / length_ns
    lacked = [
        f"{room.resources[r]} for {percent(room.lacking[r])}"
        for r in np.argsort(-room.lacking, kind="stable").tolist()
        if room.lacking[r] > 0
    ]
    text = f"It needs {room.amounts(room.needs)}. Node {node} had less free than that for {percent(without)}"
    yield text + " of the wait" + (f": too little was free of {', '.join(lacked)}." if lacked else ".")
    yield from _turn(room)


def _turn(room: Room) -> Iterator[str]:
    """Yield what was free when no other task started before it any more."""
    case, tasks = room.case, room.case.tasks
    starts = tasks.start_ns[room.here]
    others = starts[(starts >= case.begin_ns) & (starts < case.end_ns)]
    turn_ns = int(others.max()) if others.size else case.begin_ns
    last = case.end_ns - turn_ns
    edges, free = room.spans
    at = int(np.searchsorted(edges, turn_ns, "right")) - 1
    if at >= len(free) or last < LITTLE / 100 * (case.end_ns - case.begin_ns):
        return
    lacking = np.flatnonzero(room.lacks[at])
    if lacking.size:
        short = " and ".join(
            f"{room.resources[r]}: {number(room.needs[r])} asked, {number(max(free[at, r], 0.0))} free"
            for r in lacking.tolist()
        )
        yield (
            f"In the last {number(last / NS)} s of the wait no other task started there: it waited for {short} on "
            f"node {case.step.actor} when that began."
        )


def blocked_by_front(room: Room) -> Iterator[str]:
    """Yield for how long the node had room for the job, and the entry in front of it needed more than was free.

    The entry in front is the first to start of the tasks that waited there then.
    """
    case, tasks = room.case, room.case.tasks
    assert case.result.tasks is not None
    if "enqueued_s" not in case.result.tasks.column_names:
        return
    enqueued_ns = optional_column(case.result.tasks, "enqueued_s")[tasks.task] * NS
    later = room.here[tasks.start_ns[room.here] > case.begin_ns]
    if np.isnan(enqueued_ns[later]).any():  # of jobs whose events are not recorded
        return
    edges, free = room.spans
    blocked: dict[int, int] = {}  # by task, a row of `tasks`
    for k in np.flatnonzero(~room.lacks.any(axis=1) & (np.diff(edges) > 0)).tolist():
        following = later[np.searchsorted(tasks.start_ns[later], edges[k + 1]) :]
        waiting = following[enqueued_ns[following] <= edges[k]]
        if not waiting.size:
            continue
        first = int(waiting[0])
        if (free[k] < room.demand[first] - SLACK).any():
            blocked[first] = blocked.get(first, 0) + int(edges[k + 1] - edges[k])
    total = sum(blocked.values())
    if total < LITTLE * (case.end_ns - case.begin_ns):
        return
    most = max(blocked, key=lambda row: blocked[row])
    whose = f"a task of job {column(case.result.jobs, 'job_id')[tasks.job[most]]}"
    whose = whose if len(blocked) == 1 else f"above all {whose}"
    bound = f"resources.passing={number(room.passing)}"
    rule = f"{bound} bounds what may pass it" if room.passing else f"nothing passes such an entry ({bound})"
    yield (
        f"For {number(total / NS)} s the node had room for it, and of what waited there the entry that went first "
        f"needed more than was free ({whose}, {room.amounts(room.demand[most])}): {rule}."
    )


def lack_among_nodes(room: Room) -> Iterator[str]:
    """Yield what a job that waited at its scheduler lacked on all nodes when it began to wait."""
    case = room.case
    assert case.usable is not None
    free = room.free_at(case.begin_ns)[case.usable[0]]
    needed = np.flatnonzero(room.needs > 0)
    if not needed.size or not len(free):
        return
    most = free.max(axis=0)
    short = [r for r in needed.tolist() if most[r] < room.needs[r] - SLACK]
    if short:
        texts = (
            f"{room.resources[r]}: {number(float(room.needs[r]))} asked, {number(max(float(most[r]), 0.0))} free"
            for r in short
        )
        yield f"When it began to wait, it waited for {' and '.join(texts)} at the most on one node."
    elif not room.nodes_with_room(case.begin_ns):
        yield "When it began to wait, there was enough of each resource on some node, and of all of them on none."


def held_by_lower(room: Room) -> Iterator[str]:
    """Yield for how long a job would have had room at its node without tasks of lower priority, if none is evicted."""
    case = room.case
    assert case.setting is not None
    if case.setting.preemption is not None or not case.setting.scheduler.preempts:
        return
    is_lower = case.priority[case.tasks.job[room.here]] < case.priority[case.job]
    without = room.free_beside(is_lower)
    would = room.lacks.any(axis=1) & ~(without < room.needs - SLACK).any(axis=1)
    held_ns = float(np.diff(room.spans[0]) @ would)
    if held_ns >= LITTLE * (case.end_ns - case.begin_ns):
        yield (
            f"For {number(held_ns / NS)} s it would have had room without tasks of lower priority: "
            "preemption.mode=restart or checkpoint lets it take that."
        )


def elsewhere(room: Room) -> str:
    """Return a sentence about the room on other nodes when the node was chosen, and while the job waited."""
    case, facts = room.case, facts_of_room(room)
    assert case.usable is not None
    when = "When its node was chosen" if case.is_at_node else "When it began to wait"
    counted_so = (
        "; its scheduler counts for each task the most that one of its job needs" if room.is_by_job else ""
    )
    had, usable = f"{facts['had_room']:,}" if facts["had_room"] else "none", int(case.usable[0].sum())
    what = f"{had} of the {counted(usable, 'node')} that it may use had room for it"
    if usable == 1:
        what = f"the one node that it may use had {'' if facts['had_room'] else 'no '}room for it"
    free = f"{percent(facts['free_share'])} of their {facts['resource']} was free on the mean{counted_so}."
    if case.evicted_for != NONE and case.is_at_scheduler:  # what was free then was on its way to another job
        return f"It may use {counted(usable, 'node')}; while it waited, {free}"
    return f"{when}, {what}, apart from what waited in their queues; while it waited, {free}{_other_fit(room, facts)}"


def _other_fit(room: Room, facts: dict[str, Any]) -> str:
    """Return a sentence that names the parameter that chooses nodes by room; empty where it would not help."""
    case = room.case
    assert case.setting is not None
    goes_by_work = case.is_at_node and case.setting.parameters.get("fit") == "least-work"
    placed = case.entering != NONE and str(case.events.kind[case.entering]) in BOUND
    if not (facts["had_room"] and goes_by_work and placed):
        return ""
    return " It was placed by least work left: fit=best or fit=worst chooses among nodes that have room."
