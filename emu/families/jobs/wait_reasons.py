"""Why a job waited, in sentences: who ran meanwhile, what its scheduler knew, whose turn it was, what was free.

What was free is read off the table of tasks. A task holds what it needs from its start to its end; a probe stands for
the most that one task of its job needs, and while a node asks for a task it holds that, which the table does not show.
Schedulers that keep account of nodes' room themselves count so much for each task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from actors.resources import UNIT
from actors.tenants import given_to
from clusters.feasibility import gangs_of
from emu.explaining.event_record import NONE, BoolArray, IntArray
from emu.explaining.explained_run import of_config, parameters_of
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.families.jobs.job_wait import SAME_JOB, Inputs, JobWait, facts_of, held_anywhere, held_here
from emu.families.jobs.task_waits import BOUND
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column, optional_column
from workloads.requests import NO_GANG

SOON = 0.1
"""Share by which a wait may differ from the expected one and still count as expected."""
LITTLE = 0.01
"""Share of a wait below which a reason is left out."""


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
    other = _alternatives(facts) if room is None else _elsewhere(room, facts)
    if case.is_at_node:
        rows = held_here(case)
        lack = [] if room is None else _room_at_node(room)
        return Wait(link, rows, [*lack, *_ahead(case, rows), *_belief(case, rows), other], facts)
    needs = [] if room is None else _lack_among_nodes(room)
    return Wait(link, held_anywhere(case), [*needs, *_at_scheduler(case), other], facts)


def _ahead(case: JobWait, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about the tasks that ran on the node during a wait."""
    waited_s, slots = case.length_ns / NS, 1
    if case.inputs is not None and not case.holds_resources:
        slots = int(case.inputs.setting.cluster.slots()[case.link.actor])
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
    if case.resources is not None and case.resources.setting.passing:
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

    e, node, inputs = case.events, case.link.actor, case.inputs
    of_round = e.value("round", row) if e.kind[row] == "PROBE" else 0
    before = zip(case.chain.links[: case.first], case.chain.ends, strict=False)
    refused = [end for link, end in before if link.kind == "REJECTED" and link.cause == "network"]
    if of_round == 0 and not refused:
        of = "" if inputs is None else f" of the {int(inputs.usable.sum()):,} that the job may use"
        yield f"Its scheduler drew node {node} at random{of}, and knew nothing of its queue: {queued}."
        return
    which = "nodes"
    if inputs is not None and node < inputs.first_long:
        which = f"the {inputs.first_long:,} nodes of the short partition, which run no long task and refuse no probe"
    elif case.scheduler is not None and "always" in case.scheduler.global_view:
        which = "the nodes that had no long work then"
    elif of_round == int(LAST_ROUND):
        which = "the nodes that the job may use, which must take it in this round, also with long work"
    elif refused:
        which = "the nodes without long work, by the newest state that it had"
    if refused:
        nodes = [case.chain.name(int(e.sender[end])) for end in refused]
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


def _at_scheduler(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler."""
    trips = sum(link.kind == "RETURNED" for link in case.chain.links[case.first : case.end])
    if trips:
        yield f"{counted(trips, 'time')} it was sent to a node in that time, which had no room."
    if case.evicted_for != NONE:
        yield f"Its room went to job {int(case.ids[case.evicted_for])}, for which it was evicted."
    how = "" if case.scheduler is None else case.scheduler.waits
    if case.inputs is not None and case.scheduler is not None and case.scheduler.rule:
        yield f"Its rule: {case.scheduler.rule_with(case.inputs.setting.parameters)}."
    if how == "reports":
        yield from _without_room(case)
    if case.inputs is not None and how == "gangs":
        yield from _in_turn(case.inputs)
    if case.inputs is not None and how == "queue":
        yield from _in_queue(case.inputs)


def _without_room(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler that knows nodes by their reports."""
    given = {} if case.inputs is None else case.inputs.setting.parameters
    turn = ""
    if given.get("backlog_order", "arrival") != "arrival":
        turn = ", or tasks of other tenants or of earlier jobs had their turn before it"
    yield f"By the reports that it had, its scheduler saw no node with room in its queue{turn}."
    if case.inputs is None:
        return
    schedulers = given.get("schedulers", 1)
    there = np.arange(case.ids.size) % schedulers == case.job % schedulers
    higher = np.flatnonzero(_waiting(case) & there & (case.priority > case.priority[case.job]))
    if higher.size:
        first = int(case.ids[higher[0]])
        yield f"{counted(higher.size, 'job')} of higher priority waited there too (the first: job {first})."
    how = f", an equal part at each of {schedulers} schedulers" if schedulers > 1 else ""
    yield from _ceiling(case.inputs, how)


def _jobs_of(case: JobWait, tasks: BoolArray) -> BoolArray:
    """Return [J] whether a job has one of some tasks."""
    found: BoolArray = np.isin(np.arange(case.ids.size), case.tasks.job[tasks])
    return found


def _waiting(case: JobWait) -> BoolArray:
    """Return [J] whether a job had come when the wait began, and tasks of it waited then."""
    has_come = column(case.result.jobs, "submit_s") * NS <= case.begin_ns
    return _jobs_of(case, case.tasks.begin_ns > case.begin_ns) & has_come


def _ceiling(inputs: Inputs, how: str = "") -> Iterator[str]:
    """Yield a sentence about the ceiling of the job's tenant, if it has one."""
    tenant, job = inputs.case.result.jobs["tenant"].to_pylist(), inputs.case.job
    ceilings = given_to(inputs.setting.parameters.get("ceilings", ""), tenant, "ceilings")
    if tenant[job] in ceilings:
        yield f"Its tenant may hold {ceilings[tenant[job]]:.4g} of the cluster at most{how}."


def _in_queue(inputs: Inputs) -> Iterator[str]:
    """Yield sentences about jobs before a job in its queue whose tasks waited too, and about its tenant's ceiling."""
    case, by_tenant = inputs.case, inputs.setting.parameters.get("order", "arrival") != "arrival"
    jobs, job = case.result.jobs, case.job
    before = case.priority >= case.priority[job]
    before[job:] &= case.priority[job:] > case.priority[job]
    tenant = jobs["tenant"].to_pylist()
    if by_tenant:
        before &= np.array([of == tenant[job] for of in tenant])
    ahead = np.flatnonzero(before & _waiting(case))
    whose = "" if not by_tenant else f" of tenant {tenant[job]}" if tenant[job] else " of jobs without tenant"
    if ahead.size:
        first = ahead[np.lexsort((ahead, -case.priority[ahead]))[0]]
        yield (
            f"In the queue{whose} {counted(ahead.size, 'job')} stood before it (the first: job "
            f"{int(case.ids[first])}), which none of that queue passes."
        )
    is_above = case.priority > case.priority[job]
    came_later = column(jobs, "submit_s") * NS > case.begin_ns
    above = is_above & came_later & (column(jobs, "start_s") * NS < case.end_ns)
    if count := int(np.count_nonzero(above)):
        yield f"{counted(count, 'job')} of higher priority came later and started before it."
    if by_tenant:
        yield from _ceiling(inputs)


def _in_turn(inputs: Inputs) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler of gangs: what the job needed, and which jobs had their turn."""
    case, setting = inputs.case, inputs.setting
    jobs, job, tasks = case.result.jobs, case.job, case.tasks
    nodes = int(gangs_of(setting.workload, setting.parameters["gangs"])[job])
    if nodes != NO_GANG:
        yield _start_at_once(inputs, nodes)
    # One that was evicted has started before: jobs before and behind it are those that start after this wait began.
    is_first = case.evicted_for == NONE
    submit_s, start_s = column(jobs, "submit_s"), column(jobs, "start_s")
    ahead = np.flatnonzero(start_s[:job] > submit_s[job] if is_first else _waiting(case)[:job])
    if ahead.size:
        wide = int(column(jobs, "num_tasks")[ahead[0]])
        yield (
            f"{counted(ahead.size, 'job')} that had come earlier waited then; the first of them, job "
            f"{int(case.ids[ahead[0]])}, has {counted(wide, 'task')}."
        )
    within = _jobs_of(case, (tasks.begin_ns >= case.begin_ns) & (tasks.begin_ns < case.end_ns))
    passed = (start_s < start_s[job] if is_first else within)[job + 1 :]
    count = int(np.count_nonzero(passed))
    above = int(np.count_nonzero(passed & (case.priority[job + 1 :] > case.priority[job])))
    why = f", {'as it has' if count == 1 else f'{above:,} of them with'} a higher priority" if above else ""
    when = "before it" if is_first else "in that time"
    yield f"{counted(count, 'job') if count else 'No job'} that came later started {when}{why}."
    if setting.parameters.get("order", "arrival") != "arrival":
        yield "The turn is that of the tenant with the smallest share over its weight, or guarantee."
        yield from _ceiling(inputs)


def _start_at_once(inputs: Inputs, nodes: int) -> str:
    """Return a sentence about the room for a gang; after an eviction that is on its way to another job."""
    case = inputs.case
    tasks = int(column(case.result.jobs, "num_tasks")[case.job])
    if case.evicted_for != NONE:
        return f"Its {counted(tasks, 'task')} start at once."
    if inputs.setting.resources:
        return _room_for_gang(inputs, tasks, nodes)
    idle = max(inputs.setting.cluster.total_slots - case.tasks.at(case.begin_ns).size, 0)
    there = f"{counted(idle, 'slot')} {'was' if idle == 1 else 'were'} idle"
    return f"Its {counted(tasks, 'task')} start at once; {there} when it began to wait."


def _needs_text(r: Inputs, amounts: IntArray) -> str:
    """Return amounts of the resources that a job needs as text."""
    parts = zip(r.names, amounts, r.needs, strict=True)
    return ", ".join(f"{name} {number(float(v / UNIT))}" for name, v, n in parts if n) or "nothing"


def _asked(r: Inputs, free: IntArray, lacking: Iterable[int]) -> str:
    """Return of each resource that lacks how much is asked, and how much is free."""
    return " and ".join(
        f"{r.names[i]}: {number(float(r.needs[i] / UNIT))} asked, {number(max(float(free[i] / UNIT), 0.0))} free"
        for i in lacking
    )


def _room_at_node(r: Inputs) -> Iterator[str]:
    """Yield why a job had no room, or no turn, at its node."""
    yield from _lack_at_node(r)
    yield from _turn(r)
    yield from _blocked_by_front(r)
    yield from _held_by_lower(r)


def _lack_at_node(r: Inputs) -> Iterator[str]:
    """Yield what a job that waited at a node needs, and for how long less was free there."""
    without = float(r.free.lasted @ r.lacks.any(axis=1)) / r.case.length_ns
    order = np.argsort(-r.lacking, kind="stable").tolist()
    lacked = [f"{r.names[i]} for {percent(r.lacking[i])}" for i in order if r.lacking[i] > 0]
    needs, node = _needs_text(r, r.needs), r.case.link.actor
    text = f"It needs {needs}. Node {node} had less free than that for {percent(without)} of the wait"
    yield text + (f": too little was free of {', '.join(lacked)}." if lacked else ".")


def _turn(r: Inputs) -> Iterator[str]:
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


def _blocked_by_front(r: Inputs) -> Iterator[str]:
    """Yield for how long the node had room for the job, and the entry in front of it needed more than was free.

    The entry in front is the first to start of the tasks that waited there then.
    """
    case, tasks, free = r.case, r.case.tasks, r.free
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
    bound = f"resources.passing={number(r.setting.passing)}"
    rule = (
        f"{bound} bounds what may pass it" if r.setting.passing else f"nothing passes such an entry ({bound})"
    )
    yield (
        f"For {number(total / NS)} s the node had room for it, and of what waited there the entry that went first "
        f"needed more than was free ({whose}, {_needs_text(r, r.room.demand[most])}): {rule}."
    )


def _held_by_lower(r: Inputs) -> Iterator[str]:
    """Yield for how long a job would have had room at its node without tasks of lower priority, if none is evicted."""
    case = r.case
    if r.setting.preemption is not None or not r.setting.scheduler.preempts:
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


def _lack_among_nodes(r: Inputs) -> Iterator[str]:
    """Yield what a job that waited at its scheduler needs, and lacked on all nodes when it began to wait."""
    yield f"It needs {_needs_text(r, r.needs)}."
    case = r.case
    free = r.room.at(case.begin_ns)[r.usable]
    needed = np.flatnonzero(r.needs > 0)
    if not needed.size or not len(free):
        return
    most = free.max(axis=0)
    if short := [i for i in needed.tolist() if most[i] < r.needs[i]]:
        yield f"When it began to wait, it waited for {_asked(r, most, short)} at the most on one node."
    elif not r.tasks_with_room(case.begin_ns).any():
        yield "When it began to wait, there was enough of each resource on some node, and of all of them on none."


def _elsewhere(r: Inputs, facts: Mapping[str, Any]) -> str:
    """Return a sentence about the room on other nodes when the node was chosen, and while the job waited."""
    case, usable = r.case, facts["usable_nodes"]
    so = "; its scheduler counts for each task the most that one of its job needs" if r.room.is_by_job else ""
    free = f"while it waited, {percent(facts['free_share'])} of their {facts['resource']} was free on the mean{so}."
    if case.evicted_for != NONE and case.is_at_scheduler:  # what was free then was on its way to another job
        return f"It may use {counted(usable, 'node')}; {free}"
    when = "When its node was chosen" if case.is_at_node else "When it began to wait"
    had = f"{facts['had_room']:,}" if facts["had_room"] else "none"
    what = f"{had} of the {counted(usable, 'node')} that it may use had room for it"
    if usable == 1:
        what = f"the one node that it may use had {'' if facts['had_room'] else 'no '}room for it"
    return f"{when}, {what}, apart from what waited in their queues; {free}{_other_fit(r, facts)}"


def _other_fit(r: Inputs, facts: Mapping[str, Any]) -> str:
    """Return a sentence that names the parameter that chooses nodes by room; empty where it would not help."""
    case = r.case
    goes_by_work = case.is_at_node and r.setting.parameters.get("fit") == "least-work"
    placed = case.entering != NONE and str(case.events.kind[case.entering]) in BOUND
    if not (facts["had_room"] and goes_by_work and placed):
        return ""
    return " It was placed by least work left: fit=best or fit=worst chooses among nodes that have room."


def _room_for_gang(r: Inputs, tasks: int, nodes: int) -> str:
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
