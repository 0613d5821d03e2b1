"""Why a job waited: who held the slots, what its scheduler knew when it chose the node, and which slots were free."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from emu.explaining.causes_text import of_config, parameters_of
from emu.explaining.event_record import NONE, IntArray
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.families.jobs.causes import Step
from emu.families.jobs.job_wait import JobWait, facts_of
from emu.families.jobs.metrics import has_classes
from emu.families.jobs.room_reasons import (
    Room,
    blocked_by_front,
    elsewhere,
    facts_of_room,
    held_by_lower,
    lack_among_nodes,
    lack_at_node,
    room_of,
)
from emu.families.jobs.scheduler_wait import at_scheduler, held_all
from emu.families.jobs.serving_order import higher_priority, least_work
from emu.families.jobs.task_waits import BOUND
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column

MOST_JOBS = 20
"""Jobs that held the slots longest, of which the explanation says whether they came earlier or later."""
SAME_JOB = "the same job"
SOON = 0.1
"""Share by which a wait may differ from the expected one and still count as expected."""


def jobs_that_held(case: JobWait) -> list[int]:
    """Return the rows of the jobs that ran on the node during a wait: their events tell more about it."""
    if not case.is_at_node:
        return []
    return list(dict.fromkeys(case.tasks.job[case.rows_ahead()].tolist()))[:MOST_JOBS]


def wait_of(case: JobWait, link: Link) -> Wait:
    """Explain a wait, whose part of the chain is `link`."""
    if not (case.is_at_node or case.is_at_scheduler):
        return Wait(link, (), [_other(case)])
    room, facts = room_of(case), facts_of(case)
    facts |= {} if room is None else facts_of_room(room)
    other = _alternatives(facts) if room is None else [elsewhere(room)]
    if case.is_at_node:
        rows = _held_here(case, room)
        lack = [] if room is None else [*lack_at_node(room), *blocked_by_front(room), *held_by_lower(room)]
        return Wait(link, rows, [*lack, *_ahead(case, rows, room), *_belief(case, rows), *other], facts)
    needs = [] if room is None else [f"It needs {room.amounts(room.needs)}.", *lack_among_nodes(room)]
    return Wait(link, held_all(case), [*needs, *at_scheduler(case), *other], facts)


def _held_here(case: JobWait, room: Room | None) -> list[dict[str, Any]]:
    """Return a row for each task that ran on the node during a wait."""
    tasks, jobs = case.tasks, case.result.jobs
    ran = tasks.within(case.begin_ns, case.end_ns)
    known, first_task = jobs_that_held(case), _first_tasks(case.result)
    ids, classes, apart = column(jobs, "job_id"), jobs["job_class"], has_classes(jobs)

    def held(row: int) -> dict[str, float]:
        if room is None:
            return {}
        return {f"{room.resources[room.scarce]} held": float(room.demand[row, room.scarce])}

    return [
        {
            "job": int(ids[tasks.job[row]]),
            **({"class": classes[int(tasks.job[row])].as_py()} if apart else {}),
            "task": int(tasks.task[row] - first_task[tasks.job[row]]),
            "s": float(ran[row] / NS),
            "start_s": float((tasks.start_ns[row] - case.words.submit_ns) / NS),
            **held(row),
            "turn": _turn(case, int(row), known),
        }
        for row in case.rows_ahead().tolist()
    ]


def _first_tasks(result: Result) -> IntArray:
    return np.concatenate([[0], np.cumsum(column(result.jobs, "num_tasks"))])


def _turn(case: JobWait, row: int, known: Sequence[int]) -> str:
    """Return whether a task ran already, came before the job, or came later and passed it; empty if not known."""
    tasks = case.tasks
    if tasks.start_ns[row] < case.begin_ns:
        return "ran already"
    if tasks.job[row] == case.job:
        return SAME_JOB
    if tasks.job[row] not in known:
        return ""
    e = case.record
    mine = (e.job == tasks.job[row]) & (e.receiver == case.step.actor) & (e.time_ns <= tasks.start_ns[row])
    bound = mine & e.is_kind(*BOUND) & (e.task == tasks.task[row])
    came = e.time_ns[bound] if bound.any() else e.time_ns[mine & e.is_kind("PROBE", "MOVE")]
    if came.size == 0:
        return ""
    # A sticky probe serves several tasks: it came when the first one did.
    return "came before" if (came[-1] if bound.any() else came[0]) <= case.begin_ns else "came later"


def _ahead(case: JobWait, rows: Sequence[dict[str, Any]], room: Room | None) -> Iterator[str]:
    """Yield sentences about the tasks that ran on the node during a wait."""
    waited_s = (case.end_ns - case.begin_ns) / NS
    usable = case.usable
    slots = 1 if usable is None or case.holds_resources else int(usable[1][case.step.actor])
    classes = ("long", "short") if rows and "class" in rows[0] else ("",)
    sums = {name: math.fsum(row["s"] for row in rows if row.get("class", "") == name) for name in classes}
    parts = [f"{number(s)} s of {name} jobs" if name else f"{number(s)} s" for name, s in sums.items() if s]
    on = "" if slots == 1 else f", on its {slots} slots"
    of_one = Counter(row["job"] for row in rows if row["turn"] != SAME_JOB).most_common(1)
    most = f"; {of_one[0][1]:,} of them were of job {of_one[0][0]}" if of_one and of_one[0][1] > 1 else ""
    yield f"{counted(len(rows), 'task')} ran there in that time{on}: {' and '.join(parts) or 'none'}{most}."
    idle_s = waited_s * slots - math.fsum(row["s"] for row in rows)
    if idle_s > 0.01 * waited_s * slots and not case.holds_resources:
        why = "the node asked for tasks, or was down"
        yield f"For {number(idle_s)} s {'it ran' if slots == 1 else 'slots had'} no task: {why}."
    later = [i for i, row in enumerate(rows) if row["turn"] == "came later"]
    if later:
        passed = math.fsum(rows[i]["s"] for i in later)
        above, equal = higher_priority(case, rows, later)
        whys = [why for why in (above, least_work(case, equal)) if why]
        why = f": {'; of the others '.join(whys)}" if whys else ""
        yield (
            f"{len(later):,} of them ({number(passed)} s) came after it and were served before it, as the "
            f"queue is not served by arrival{why}."
        )


def _belief(case: JobWait, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about what was known when the node was chosen."""
    row, e, node = case.entering, case.events, case.step.actor
    if row == NONE and (e.is_kind("LOST") & (e.time_ns == case.begin_ns)).any():
        yield f"Its probe had come to node {node} before: the wait began when the task came back to its scheduler."
        return
    if row == NONE:
        yield "It had run a task there before, and stayed in that queue for the next one (a sticky probe)."
        return
    kind = str(e.kind[row])
    if kind == "MOVE" or e.sender[row] < case.result.summary["nodes"]:
        victim = e.value("from_node", row) if kind == "MOVE" else int(e.sender[row])
        yield f"Node {node} had nothing to run when it took it from the queue of node {victim}."
        return
    waiting = int(e.queued[row])
    queued = f"{waiting or 'no'} {'entry' if waiting < 2 else 'entries'} waited there when it came"
    if case.expected_ns is not None:
        yield from _expected(case, rows, case.expected_ns, queued)
    elif e.is_kind("LENGTH").any():
        of_node = e.is_kind("LENGTH") & (e.sender == node)
        lengths = e.field("length", np.flatnonzero(of_node & (e.time_ns <= e.left_ns[row])))
        said = f" said {lengths[-1]:,}" if lengths.size else ""
        yield f"Its scheduler had asked nodes for the length of their queues: this one{said}; {queued}."
    elif case.is_drawn:
        yield from _drawn(case, row, queued)
    else:
        yield f"What its scheduler believed of node {node} was not recorded; {queued}."
    if kind == "PROBE":
        yield from _turn_among_probes(case)


def _turn_among_probes(case: JobWait) -> Iterator[str]:
    """Yield a sentence about how many nodes asked for a task of the job before this one did."""
    e = case.events
    asked = e.is_kind("REQUEST") & (e.left_ns < case.end_ns)
    sent = e.is_kind("PROBE") & (e.sender >= case.result.summary["nodes"]) & (e.time_ns <= case.end_ns)
    probes = int(np.count_nonzero(sent)) - int(
        np.count_nonzero(e.is_kind("REJECTED") & (e.left_ns <= case.end_ns))
    )
    if case.step.kind == "REQUEST" and probes > 1:
        before = np.unique(e.sender[asked]).size
        yield (
            f"Of its {probes:,} probes that nodes did not refuse, {f'{before:,}' if before else 'none'} had their turn "
            "before this one."
        )


def _expected(case: JobWait, rows: Sequence[dict[str, Any]], expected_ns: int, queued: str) -> Iterator[str]:
    """Yield sentences about the wait by which a scheduler chose the node."""
    waited_s, expected_s = (case.end_ns - case.begin_ns) / NS, expected_ns / NS
    parameters = parameters_of(case.result)
    considered = "that it considered"
    if case.scheduler is not None and case.scheduler.considers:
        values = {p.name: p.default for p in case.scheduler.parameters} | parameters
        considered += f" ({case.scheduler.considers.format_map(values)})"
    fit = parameters.get("fit", "least-work")
    if fit != "least-work" and not case.is_drawn:
        yield (
            f"Its scheduler chose node {case.step.actor} by {fit} fit of the nodes {considered} and knew to have room, "
            "or, if it knew of none, because it expected the least wait there; "
            f"{queued}. The wait was {number(waited_s)} s."
        )
        return
    chose = (
        f"Its scheduler chose node {case.step.actor} because it expected the least wait there of the nodes "
        f"{considered}, {number(expected_s)} s; {queued}"
    )
    if abs(waited_s - expected_s) <= SOON * max(waited_s, expected_s):
        yield f"{chose}. The wait was about as long: it expected no shorter wait at the other nodes."
        return
    e = case.events
    is_served_first = e.is_kind("BYPASS", "REORDER") & (e.receiver == case.step.actor)
    passed = bool((is_served_first & (e.time_ns == case.end_ns)).any())
    why = ", as the node served it before others that had come earlier" if passed else ""
    yield f"{chose}. The wait was {number(waited_s)} s{why}."
    if waited_s < expected_s:
        return
    if (
        case.holds_resources
    ):  # the tasks below ran at the same time, so that their times do not add up to a wait
        return
    unknown = math.fsum(row["s"] for row in rows if _is_unknown(case, row))
    if unknown > SOON * (waited_s - expected_s):
        yield (
            f"It counts the tasks that it has placed alone: {number(unknown)} s of the wait were tasks of other "
            "schedulers, about which it gets no message."
        )
    long = [row for row in rows if row["turn"] != "came later" and not _is_unknown(case, row)]
    over = math.fsum(max(row["s"] - _estimate_s(case, row), 0.0) for row in long)
    is_exact = of_config(case.result, "estimates", "error", "none") == "none"
    if is_exact and over > SOON * (waited_s - expected_s):
        yield (
            "It counts each task as the mean that the workload states of its job: those that ran there took "
            f"{number(over)} s more than that."
        )


def _estimate_s(case: JobWait, row: dict[str, Any]) -> float:
    """Return what was left of the estimate of a task (the mean of its job) when the wait began."""
    at = int(np.flatnonzero(column(case.result.jobs, "job_id") == row["job"])[0])
    ran_s = max(case.begin_ns / NS - (row["start_s"] + case.words.submit_ns / NS), 0.0)
    return max(float(case.result.jobs["mean_task_s"][at].as_py()) - ran_s, 0.0)


def _is_unknown(case: JobWait, row: dict[str, Any]) -> bool:
    """Return whether the job's scheduler gets no message about a task that held the slot."""
    if not case.is_drawn:
        return False
    ids, e = column(case.result.jobs, "job_id"), case.record
    sent = e.is_kind("PROBE", *BOUND, "TASK") & (e.sender >= case.result.summary["nodes"])
    homes = [e.sender[sent & (e.job == at)] for at in (int(np.flatnonzero(ids == row["job"])[0]), case.job)]
    return all(home.size for home in homes) and homes[0][0] != homes[1][0]


def _drawn(case: JobWait, row: int, queued: str) -> Iterator[str]:
    """Yield sentences about a node that was drawn at random."""
    from actors.schedulers.jobs.eagle import LAST_ROUND

    e, node, usable = case.events, case.step.actor, case.usable
    of_round = e.value("round", row) if e.kind[row] == "PROBE" else 0
    refused = [
        step for step in case.steps[: case.first] if step.kind == "REJECTED" and step.cause == "network"
    ]
    of = "" if usable is None else f" of the {int(usable[0].sum()):,} that the job may use"
    if of_round == 0 and not refused:
        yield f"Its scheduler drew node {node} at random{of}, and knew nothing of its queue: {queued}."
        return
    which = "nodes"
    if node < case.first_long:
        which = f"the {case.first_long:,} nodes of the short partition, which run no long task and refuse no probe"
    elif case.scheduler is not None and "always" in case.scheduler.global_view:
        which = "the nodes that had no long work then"
    elif of_round == int(LAST_ROUND):
        which = "the nodes that the job may use, which must take it in this round, also with long work"
    elif refused:
        which = "the nodes without long work, by the newest state that it had"
    if refused:
        nodes = [case.words.actor(_sender_of(case, step)) for step in refused]
        yield f"{' and '.join(nodes[-2:])} had refused its probe, for long work.".capitalize()
    yield f"Its scheduler drew node {node} at random among {which}, and knew nothing of its queue: {queued}."


def _sender_of(case: JobWait, step: Step) -> int:
    e = case.events
    found = np.flatnonzero((e.kind == step.kind) & (e.receiver == step.actor) & (e.time_ns == step.end_ns))
    return int(e.sender[found[0]]) if found.size else NONE


def _alternatives(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about the slots that were free when the node was chosen, and while the job waited."""
    if "usable_nodes" not in facts:
        yield "The input of the run has changed, so that it is not known which nodes the job could have used."
        return
    when = "When its node was chosen" if "node" in facts else "When it began to wait"
    down = f" ({facts['down_nodes']:,} of them down)" if facts["down_nodes"] else ""
    mean, of = facts["free_slots_mean"], f"{facts['usable_nodes']:,} nodes that it may use{down}"
    free = f"{mean:,.0f}" if mean >= 1 else "fewer than 1"
    meanwhile = f"while it waited, {free} of {facts['usable_slots']:,} slots were free on the mean"
    if facts["free_nodes"]:
        yield f"{when}, {facts['free_nodes']:,} of the {of} had a free slot; {meanwhile}."
    elif facts["first_free_s"] is not None and facts["first_free_s"] < facts["ended_s"]:
        yield (
            f"{when}, none of the {of} had a free slot; node {facts['first_free_node']} had one first, "
            f"{number(facts['first_free_s'] - facts['chosen_s'])} s later; {meanwhile}."
        )
    else:
        yield f"{when}, none of the {of} had a free slot, nor did one of them have one before the wait ended."


def _other(case: JobWait) -> str:
    """Return a sentence about a wait that is not queueing."""
    ran_ns = sum(step.end_ns - step.begin_ns for step in case.steps if step.cause == "work")
    took_ns = max(case.steps[-1].end_ns - case.words.submit_ns, 1)
    cause = case.step.cause
    if cause == "network":
        return f"It waited for no more than messages; its tasks ran {percent(ran_ns / took_ns)} of the time."
    if cause == "failure":
        return (
            "What it had run was lost; its scheduler sends it to another node when it knows of the failure."
        )
    if cause == "preemption":
        return "What it had run was lost; its scheduler sends it to a node again."
    if case.step.kind == "RETRY":
        return "A parameter of the scheduler sets how long it waits before it probes again."
    return "Messages that had come before, and this decision, took that time, by the keys of `cost`."
