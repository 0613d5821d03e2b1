"""Why a job waited, in sentences: what ran on its node, what its scheduler knew when it chose it, what was free."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from emu.explaining.causes_text import of_config, parameters_of
from emu.explaining.event_record import NONE
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.families.jobs.job_wait import SAME_JOB, JobWait, facts_of, held_anywhere, held_here
from emu.families.jobs.room_reasons import elsewhere, lack_among_nodes, room_at_node
from emu.families.jobs.scheduler_wait import at_scheduler
from emu.families.jobs.task_waits import BOUND
from emu.results.result import Result
from emu.results.text_tables import number, percent

SOON = 0.1
"""Share by which a wait may differ from the expected one and still count as expected."""


def order_of(result: Result) -> str:
    """Return the parameter `order`, by which nodes serve their queues.

    `srjf` (the default) compares the work left of jobs, `sjf` estimates of tasks, `lrtf` the tasks left of jobs.
    """
    return str(parameters_of(result).get("order", "srjf"))


def wait_of(case: JobWait, link: Link) -> Wait:
    """Explain a wait, whose part of the chain is `link`."""
    if not (case.is_at_node or case.is_at_scheduler):
        return Wait(link, (), [_other(case)])
    room, facts = case.resources, facts_of(case)
    other = _alternatives(facts) if room is None else elsewhere(room, facts)
    if case.is_at_node:
        rows = held_here(case)
        lack = [] if room is None else room_at_node(room)
        return Wait(link, rows, [*lack, *_ahead(case, rows), *_belief(case, rows), other], facts)
    needs = [] if room is None else lack_among_nodes(room)
    return Wait(link, held_anywhere(case), [*needs, *at_scheduler(case), other], facts)


def _ahead(case: JobWait, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about the tasks that ran on the node during a wait."""
    waited_s, slots = case.length_ns / NS, 1
    if case.setting is not None and not case.holds_resources:
        slots = int(case.setting.cluster.slots()[case.link.actor])
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
        above, equal = _higher_priority(case, rows, later)
        whys = [why for why in (above, _preferred(case, equal)) if why]
        why = f": {'; of the others '.join(whys)}" if whys else ""
        yield (
            f"{len(later):,} of them ({number(passed)} s) came after it and were served before it, as the "
            f"queue is not served by arrival{why}."
        )


def _higher_priority(
    case: JobWait, rows: Sequence[dict[str, Any]], later: Sequence[int]
) -> tuple[str, set[int]]:
    """Return how many of the tasks that came later have a higher priority, as text, and the jobs of the others."""
    of, own = case.priority[case.tasks.job[case.rows_ahead[later]]], int(case.priority[case.job])
    equal = {rows[i]["job"] for i, one in zip(later, of.tolist(), strict=True) if one <= own}
    higher = of[of > own]
    if not higher.size:
        return "", equal
    which = " to ".join(map(str, dict.fromkeys((int(higher.min()), int(higher.max())))))
    have = f"{higher.size:,} {'has' if higher.size == 1 else 'have'}" if equal else "they have"
    return f"{have} a higher priority ({which}; its own {own})", equal


def _preferred(case: JobWait, job_ids: set[int]) -> str:
    """Return what the node compared when it served other jobs first, by the notes among the events."""
    e = case.record
    here = (e.receiver == case.link.actor) & (e.time_ns > case.begin_ns) & (e.time_ns <= case.end_ns)
    notes = np.flatnonzero(here & e.is_kind("BYPASS", "REORDER"))
    notes = notes[np.isin(case.ids[e.job[notes]], list(job_ids))]
    if notes.size == 0:
        return ""
    if case.setting is not None and case.setting.resources and case.setting.passing:
        return "they fitted where the entries in front of them did not, or were preferred by the scheduler's order"
    by_crv = int(np.count_nonzero(e.is_kind("REORDER")[notes]))
    if by_crv:
        return f"{by_crv} times one was preferred because of its constraints"
    own, first = (np.sort(e.field(name, notes))[notes.size // 2] for name in ("own_left", "first_left"))
    order = order_of(case.result)
    if order == "lrtf":
        return f"their jobs had fewer tasks left (in the median {own:,}; the first in the queue {first:,})"
    less = "their tasks took less" if order == "sjf" else "their jobs had less work left"
    return f"{less} (in the median {number(own / NS)} s; the first in the queue {number(first / NS)} s)"


def _belief(case: JobWait, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about what was known when the node was chosen."""
    row, e, node = case.entering, case.events, case.link.actor
    if row == NONE and (e.is_kind("LOST") & (e.time_ns == case.begin_ns)).any():
        yield f"Its probe had come to node {node} before: the wait began when the task came back to its scheduler."
        return
    if row == NONE:
        yield "It had run a task there before, and stayed in that queue for the next one (a sticky probe)."
        return
    kind = str(e.kind[row])
    if kind == "MOVE" or e.sender[row] < case.chain.num_nodes:
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
    sent = e.is_kind("PROBE") & (e.sender >= case.chain.num_nodes) & (e.time_ns <= case.end_ns)
    refused = e.is_kind("REJECTED") & (e.left_ns <= case.end_ns)
    probes = int(np.count_nonzero(sent)) - int(np.count_nonzero(refused))
    if case.link.kind == "REQUEST" and probes > 1:
        before = np.unique(e.sender[asked]).size
        yield (
            f"Of its {probes:,} probes that nodes did not refuse, {f'{before:,}' if before else 'none'} had their turn "
            "before this one."
        )


def _expected(case: JobWait, rows: Sequence[dict[str, Any]], expected_ns: int, queued: str) -> Iterator[str]:
    """Yield sentences about the wait by which a scheduler chose the node."""
    waited_s, expected_s = case.length_ns / NS, expected_ns / NS
    parameters = parameters_of(case.result)
    considered = "that it considered"
    if case.scheduler is not None and case.scheduler.considers:
        values = {p.name: p.default for p in case.scheduler.parameters} | parameters
        considered += f" ({case.scheduler.considers.format_map(values)})"
    fit = parameters.get("fit", "least-work")
    if fit != "least-work" and not case.is_drawn:
        yield (
            f"Its scheduler chose node {case.link.actor} by {fit} fit of the nodes {considered} and knew to have room, "
            "or, if it knew of none, because it expected the least wait there; "
            f"{queued}. The wait was {number(waited_s)} s."
        )
        return
    chose = (
        f"Its scheduler chose node {case.link.actor} because it expected the least wait there of the nodes "
        f"{considered}, {number(expected_s)} s; {queued}"
    )
    if abs(waited_s - expected_s) <= SOON * max(waited_s, expected_s):
        yield f"{chose}. The wait was about as long: it expected no shorter wait at the other nodes."
        return
    e = case.events
    is_served_first = e.is_kind("BYPASS", "REORDER") & (e.receiver == case.link.actor)
    passed = bool((is_served_first & (e.time_ns == case.end_ns)).any())
    why = ", as the node served it before others that had come earlier" if passed else ""
    yield f"{chose}. The wait was {number(waited_s)} s{why}."
    # Where tasks hold resources, they ran at the same time, so that their times do not add up to a wait.
    if waited_s >= expected_s and not case.holds_resources:
        yield from _not_expected(case, rows, SOON * (waited_s - expected_s))


def _not_expected(case: JobWait, rows: Sequence[dict[str, Any]], least_s: float) -> Iterator[str]:
    """Yield what a scheduler did not expect of the tasks that held the slot, if it is more than some seconds."""
    jobs = [int(np.flatnonzero(case.ids == row["job"])[0]) for row in rows]
    is_unknown = [_is_unknown(case, job) for job in jobs]
    unknown = math.fsum(row["s"] for row, no_message in zip(rows, is_unknown, strict=True) if no_message)
    if unknown > least_s:
        yield (
            f"It counts the tasks that it has placed alone: {number(unknown)} s of the wait were tasks of other "
            "schedulers, about which it gets no message."
        )
    over = math.fsum(
        max(row["s"] - _estimate_s(case, job, row["start_s"]), 0.0)
        for row, job, no_message in zip(rows, jobs, is_unknown, strict=True)
        if row["turn"] != "came later" and not no_message
    )
    if over > least_s and of_config(case.result, "estimates", "error", "none") == "none":
        yield (
            "It counts each task as the mean that the workload states of its job: those that ran there took "
            f"{number(over)} s more than that."
        )


def _estimate_s(case: JobWait, job: int, start_s: float) -> float:
    """Return what was left of the estimate of a task (the mean of its job) when the wait began."""
    ran_s = max(case.begin_ns / NS - (start_s + case.chain.submit_ns / NS), 0.0)
    return max(float(case.result.jobs["mean_task_s"][job].as_py()) - ran_s, 0.0)


def _is_unknown(case: JobWait, job: int) -> bool:
    """Return whether the scheduler of the job that waits gets no message about the tasks of another."""
    if not case.is_drawn:
        return False
    e = case.record
    sent = e.is_kind("PROBE", *BOUND, "TASK") & (e.sender >= case.chain.num_nodes)
    homes = [e.sender[sent & (e.job == at)] for at in (job, case.job)]
    return all(home.size for home in homes) and homes[0][0] != homes[1][0]


def _drawn(case: JobWait, row: int, queued: str) -> Iterator[str]:
    """Yield sentences about a node that was drawn at random."""
    from actors.schedulers.jobs.eagle import LAST_ROUND

    e, node = case.events, case.link.actor
    of_round = e.value("round", row) if e.kind[row] == "PROBE" else 0
    before = case.chain.links[: case.first]
    refused = [link for link in before if link.kind == "REJECTED" and link.cause == "network"]
    if of_round == 0 and not refused:
        of = "" if case.usable is None else f" of the {int(case.usable.sum()):,} that the job may use"
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
        nodes = [case.chain.name(case.chain.sender_of(link)) for link in refused]
        yield f"{' and '.join(nodes[-2:])} had refused its probe, for long work.".capitalize()
    yield f"Its scheduler drew node {node} at random among {which}, and knew nothing of its queue: {queued}."


def _alternatives(facts: Mapping[str, Any]) -> str:
    """Return a sentence about the slots that were free when the node was chosen, and while the job waited."""
    if "usable_nodes" not in facts:
        return (
            "The input of the run has changed, so that it is not known which nodes the job could have used."
        )
    when = "When its node was chosen" if "node" in facts else "When it began to wait"
    down = f" ({facts['down_nodes']:,} of them down)" if facts["down_nodes"] else ""
    mean, of = facts["free_slots_mean"], f"{facts['usable_nodes']:,} nodes that it may use{down}"
    free = f"{mean:,.0f}" if mean >= 1 else "fewer than 1"
    meanwhile = f"while it waited, {free} of {facts['usable_slots']:,} slots were free on the mean"
    if facts["free_nodes"]:
        return f"{when}, {facts['free_nodes']:,} of the {of} had a free slot; {meanwhile}."
    if facts["first_free_s"] is not None and facts["first_free_s"] < facts["ended_s"]:
        return (
            f"{when}, none of the {of} had a free slot; node {facts['first_free_node']} had one first, "
            f"{number(facts['first_free_s'] - facts['chosen_s'])} s later; {meanwhile}."
        )
    return f"{when}, none of the {of} had a free slot, nor did one of them have one before the wait ended."


def _other(case: JobWait) -> str:
    """Return a sentence about a wait that is not queueing."""
    cause, links = case.link.cause, case.chain.links
    if cause == "network":
        ran_ns = sum(link.end_ns - link.begin_ns for link in links if link.cause == "work")
        share = percent(ran_ns / max(links[-1].end_ns, 1))
        return f"It waited for no more than messages; its tasks ran {share} of the time."
    if cause == "failure":
        return (
            "What it had run was lost; its scheduler sends it to another node when it knows of the failure."
        )
    if cause == "preemption":
        return "What it had run was lost; its scheduler sends it to a node again."
    if case.link.kind == "RETRY":
        return "A parameter of the scheduler sets how long it waits before it probes again."
    return "Messages that had come before, and this decision, took that time, by the keys of `cost`."
