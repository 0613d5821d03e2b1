"""Why a job whose tasks need resources waited, in sentences: what was free, and which entries did not fit.

All of it is read off the table of tasks. A task holds what it needs from its start to its end; a probe stands for the
most that one task of its job needs, and while a node asks for a task it holds that, which the table does not show.
Schedulers that keep account of nodes' room themselves count so much for each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from actors.resources import UNIT
from emu.explaining.event_record import NONE, IntArray
from emu.explaining.explanation import NS, counted
from emu.families.jobs.job_wait import JobWait, Resources
from emu.families.jobs.task_waits import BOUND
from emu.results.text_tables import number, percent
from workloads.arrow import optional_column

LITTLE = 0.01
"""Share of a wait below which a reason is left out."""


def needs_text(r: Resources, amounts: IntArray) -> str:
    """Return amounts of the resources that a job needs as text."""
    parts = zip(r.names, amounts, r.needs, strict=True)
    return ", ".join(f"{name} {number(float(v / UNIT))}" for name, v, n in parts if n) or "nothing"


def _asked(r: Resources, free: IntArray, lacking: Iterable[int]) -> str:
    """Return of each resource that lacks how much is asked, and how much is free."""
    return " and ".join(
        f"{r.names[i]}: {number(float(r.needs[i] / UNIT))} asked, {number(max(float(free[i] / UNIT), 0.0))} free"
        for i in lacking
    )


def room_at_node(r: Resources) -> Iterator[str]:
    """Yield why a job had no room, or no turn, at its node."""
    yield from _lack_at_node(r)
    yield from _turn(r)
    yield from _blocked_by_front(r)
    yield from _held_by_lower(r)


def _lack_at_node(r: Resources) -> Iterator[str]:
    """Yield what a job that waited at a node needs, and for how long less was free there."""
    without = float(r.free.lasted @ r.lacks.any(axis=1)) / r.case.length_ns
    order = np.argsort(-r.lacking, kind="stable").tolist()
    lacked = [f"{r.names[i]} for {percent(r.lacking[i])}" for i in order if r.lacking[i] > 0]
    needs, node = needs_text(r, r.needs), r.case.link.actor
    text = f"It needs {needs}. Node {node} had less free than that for {percent(without)} of the wait"
    yield text + (f": too little was free of {', '.join(lacked)}." if lacked else ".")


def _turn(r: Resources) -> Iterator[str]:
    """Yield what was free when no other task started before it any more."""
    case = r.case
    starts = case.tasks.begin_ns[r.here]
    turn_ns = int(starts[(starts >= case.begin_ns) & (starts < case.end_ns)].max(initial=case.begin_ns))
    last = case.end_ns - turn_ns
    if last < LITTLE / 100 * case.length_ns:
        return
    at = int(np.searchsorted(r.free.begin_ns, turn_ns, "right")) - 1
    if (lacking := np.flatnonzero(r.lacks[at])).size:
        yield (
            f"In the last {number(last / NS)} s of the wait no other task started there: it waited for "
            f"{_asked(r, r.free.amount[at], lacking.tolist())} on node {case.link.actor} when that began."
        )


def _blocked_by_front(r: Resources) -> Iterator[str]:
    """Yield for how long the node had room for the job, and the entry in front of it needed more than was free.

    The entry in front is the first to start of the tasks that waited there then.
    """
    case, tasks, free = r.case, r.case.tasks, r.free
    assert case.result.tasks is not None
    assert case.setting is not None
    if "enqueued_s" not in case.result.tasks.column_names:
        return
    enqueued_ns = optional_column(case.result.tasks, "enqueued_s")[tasks.task] * NS
    later = r.here[tasks.begin_ns[r.here] > case.begin_ns]
    if np.isnan(enqueued_ns[later]).any():  # of jobs whose events are not recorded
        return
    blocked: dict[int, int] = {}  # by task, a row of `tasks`
    for k in np.flatnonzero(~r.lacks.any(axis=1)).tolist():
        following = later[np.searchsorted(tasks.begin_ns[later], free.end_ns[k]) :]
        waiting = following[enqueued_ns[following] <= free.begin_ns[k]]
        if waiting.size and (free.amount[k] < r.room.demand[waiting[0]]).any():
            blocked[int(waiting[0])] = blocked.get(int(waiting[0]), 0) + int(free.lasted[k])
    total = sum(blocked.values())
    if total < LITTLE * case.length_ns:
        return
    most = max(blocked, key=lambda row: blocked[row])
    whose = f"{'' if len(blocked) == 1 else 'above all '}a task of job {case.ids[tasks.job[most]]}"
    bound = f"resources.passing={number(case.setting.passing)}"
    passes = case.setting.passing > 0
    rule = f"{bound} bounds what may pass it" if passes else f"nothing passes such an entry ({bound})"
    yield (
        f"For {number(total / NS)} s the node had room for it, and of what waited there the entry that went first "
        f"needed more than was free ({whose}, {needs_text(r, r.room.demand[most])}): {rule}."
    )


def _held_by_lower(r: Resources) -> Iterator[str]:
    """Yield for how long a job would have had room at its node without tasks of lower priority, if none is evicted."""
    case = r.case
    assert case.setting is not None
    if case.setting.preemption is not None or not case.setting.scheduler.preempts:
        return
    is_lower = case.priority[case.tasks.job[r.here]] < case.priority[case.job]
    free = r.room.during(case.link.actor, case.begin_ns, case.end_ns, r.here, is_lower)
    lacks, without = (some.any(axis=1) for some in np.split(free.amount < np.tile(r.needs, 2), 2, axis=1))
    held_ns = float(free.lasted @ (lacks & ~without))
    if held_ns >= LITTLE * case.length_ns:
        yield (
            f"For {number(held_ns / NS)} s it would have had room without tasks of lower priority: "
            "preemption.mode=restart or checkpoint lets it take that."
        )


def lack_among_nodes(r: Resources) -> Iterator[str]:
    """Yield what a job that waited at its scheduler needs, and lacked on all nodes when it began to wait."""
    yield f"It needs {needs_text(r, r.needs)}."
    case = r.case
    free = r.room.at(case.begin_ns)[case.usable]
    needed = np.flatnonzero(r.needs > 0)
    if not needed.size or not len(free):
        return
    most = free.max(axis=0)
    if short := [i for i in needed.tolist() if most[i] < r.needs[i]]:
        yield f"When it began to wait, it waited for {_asked(r, most, short)} at the most on one node."
    elif not r.tasks_with_room(case.begin_ns).any():
        yield "When it began to wait, there was enough of each resource on some node, and of all of them on none."


def elsewhere(r: Resources, facts: Mapping[str, Any]) -> str:
    """Return a sentence about the room on other nodes when the node was chosen, and while the job waited."""
    case, usable = r.case, facts["usable_nodes"]
    so = "; its scheduler counts for each task the most that one of its job needs" if r.is_by_job else ""
    free = f"while it waited, {percent(facts['free_share'])} of their {facts['resource']} was free on the mean{so}."
    if case.evicted_for != NONE and case.is_at_scheduler:  # what was free then was on its way to another job
        return f"It may use {counted(usable, 'node')}; {free}"
    when = "When its node was chosen" if case.is_at_node else "When it began to wait"
    had = f"{facts['had_room']:,}" if facts["had_room"] else "none"
    what = f"{had} of the {counted(usable, 'node')} that it may use had room for it"
    if usable == 1:
        what = f"the one node that it may use had {'' if facts['had_room'] else 'no '}room for it"
    return f"{when}, {what}, apart from what waited in their queues; {free}{_other_fit(case, facts)}"


def _other_fit(case: JobWait, facts: Mapping[str, Any]) -> str:
    """Return a sentence that names the parameter that chooses nodes by room; empty where it would not help."""
    assert case.setting is not None
    goes_by_work = case.is_at_node and case.setting.parameters.get("fit") == "least-work"
    placed = case.entering != NONE and str(case.events.kind[case.entering]) in BOUND
    if not (facts["had_room"] and goes_by_work and placed):
        return ""
    return " It was placed by least work left: fit=best or fit=worst chooses among nodes that have room."


def room_for_gang(r: Resources, tasks: int, nodes: int) -> str:
    """Return a sentence about the room for a gang, on `nodes` nodes or, if 0, any, when it began to wait."""
    there = np.minimum(r.tasks_with_room(r.case.begin_ns), tasks)
    all_of_it, when = f"Its {counted(tasks, 'task')} start at once", "when it began to wait,"
    if nodes == 0:
        on = counted(int((there > 0).sum()), "node")
        found = "there was no room"
        if there.any():
            found = f"there was room for {int(there.sum()):,} of them, on {on}"
        return f"{all_of_it}; {when} {found}."
    nodes = min(nodes, tasks)
    share, larger = divmod(tasks, nodes)
    had = counted(int((there >= share).sum()), "node")
    each = f"{share} or {share + 1}" if larger else f"{share}"
    on = f"on {counted(nodes, 'node')}, {each} on {'each' if nodes > 1 else 'it'}"
    return f"{all_of_it} {on}; {when} {had} had room for {share}."
