"""Why a job waited at its scheduler: who held the slots that it may use, and whose turn it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from actors.tenants import given_to
from clusters.feasibility import gangs_of
from emu.explaining.event_record import NONE
from emu.explaining.explanation import NS, counted
from emu.families.jobs.job_wait import JobWait
from emu.families.jobs.metrics import has_classes
from emu.families.jobs.room_reasons import Room, room_of
from workloads.arrow import column
from workloads.requests import NO_GANG


def held_all(case: JobWait) -> list[dict[str, Any]]:
    """Return a row for each job that held slots that the waiting job may use, during its wait at a scheduler."""
    tasks, jobs = case.tasks, case.result.jobs
    ran = tasks.within(case.begin_ns, case.end_ns)
    if case.usable is not None:
        ran = np.where(case.usable[0][tasks.node], ran, 0)
    sums, counts = (np.bincount(tasks.job, weights, jobs.num_rows) for weights in (ran / NS, ran > 0))
    rows = np.flatnonzero(counts)
    ids, classes, apart = column(jobs, "job_id"), jobs["job_class"], has_classes(jobs)
    waited_s = (case.end_ns - case.begin_ns) / NS
    many = "tasks at once" if case.holds_resources else "slots"
    return [
        {
            "job": int(ids[row]),
            **({"class": classes[row].as_py()} if apart else {}),
            "tasks": int(counts[row]),
            "s": float(sums[row]),
            many: float(sums[row] / waited_s),
        }
        for row in rows[np.argsort(-sums[rows], kind="stable")].tolist()
    ]


def at_scheduler(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler."""
    trips = sum(step.kind == "RETURNED" for step in case.steps[case.first : case.end])
    if trips:
        yield f"{counted(trips, 'time')} it was sent to a node in that time, which had no room."
    if case.evicted_for != NONE:
        other = int(column(case.result.jobs, "job_id")[case.evicted_for])
        yield f"Its room went to job {other}, for which it was evicted."
    how = "" if case.scheduler is None else case.scheduler.waits
    if how == "reports":
        yield from _without_room(case)
    if case.setting is not None and how == "gangs":
        yield from _in_turn(case)
    if case.setting is not None and how == "queue":
        yield from _in_queue(case, case.setting.parameters["order"] != "arrival")


def _without_room(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler that knows nodes by their reports."""
    turn = ""
    if case.setting is not None and case.setting.parameters["backlog_order"] != "arrival":
        turn = ", or tasks of other tenants or of earlier jobs had their turn before it"
    yield f"By the reports that it had, its scheduler saw no node with room in its queue{turn}."
    if case.setting is None:
        return
    schedulers = case.setting.parameters["schedulers"]
    there = np.arange(case.result.jobs.num_rows) % schedulers == case.job % schedulers
    higher = np.flatnonzero(_waiting(case) & there & (case.priority > case.priority[case.job]))
    if higher.size:
        first = int(column(case.result.jobs, "job_id")[higher[0]])
        yield f"{counted(higher.size, 'job')} of higher priority waited there too (the first: job {first})."
    yield from _ceiling(case, f", an equal part at each of {schedulers} schedulers" if schedulers > 1 else "")


def _waiting(case: JobWait) -> np.ndarray:
    """Return [J] whether a job had come when the wait began, and tasks of it waited then."""
    waits = np.zeros(case.result.jobs.num_rows, bool)
    waits[case.tasks.job[case.tasks.start_ns > case.begin_ns]] = True
    return waits & (column(case.result.jobs, "submit_s") * NS <= case.begin_ns)


def _ceiling(case: JobWait, how: str = "") -> Iterator[str]:
    """Yield a sentence about the ceiling of the job's tenant, if it has one."""
    assert case.setting is not None
    tenant = case.result.jobs["tenant"].to_pylist()
    ceilings = given_to(case.setting.parameters["ceilings"], tenant, "ceilings")
    if tenant[case.job] in ceilings:
        yield f"Its tenant may hold {ceilings[tenant[case.job]]:.4g} of the cluster at most{how}."


def _in_queue(case: JobWait, by_tenant: bool) -> Iterator[str]:
    """Yield sentences about jobs before a job in its queue whose tasks waited too, and about its tenant's ceiling."""
    jobs, job = case.result.jobs, case.job
    before = (case.priority > case.priority[job]) | (case.priority == case.priority[job])
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
            f"{int(column(jobs, 'job_id')[first])}), which none of that queue passes."
        )
    start_s, submit_s = column(jobs, "start_s"), column(jobs, "submit_s")
    above = (
        (case.priority > case.priority[job]) & (submit_s * NS > case.begin_ns) & (start_s * NS < case.end_ns)
    )
    if count := int(np.count_nonzero(above)):
        yield f"{counted(count, 'job')} of higher priority came later and started before it."
    if by_tenant:
        yield from _ceiling(case)


def _in_turn(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler of gangs: what the job needed, and which jobs had their turn."""
    assert case.setting is not None
    jobs, job = case.result.jobs, case.job
    if gangs_of(case.setting.workload, case.setting.parameters["gangs"])[job] != NO_GANG:
        yield _start_at_once(case)
    # One that was evicted has started before: jobs before and behind it are those that start after this wait began.
    is_first = case.evicted_for == NONE
    submit_s, start_s = column(jobs, "submit_s"), column(jobs, "start_s")
    ahead = np.flatnonzero(start_s[:job] > submit_s[job] if is_first else _waiting(case)[:job])
    if ahead.size:
        wide = int(column(jobs, "num_tasks")[ahead[0]])
        yield (
            f"{counted(ahead.size, 'job')} that had come earlier waited then; the first of them, job "
            f"{int(column(jobs, 'job_id')[ahead[0]])}, has {counted(wide, 'task')}."
        )
    passed = start_s[job + 1 :] < start_s[job] if is_first else _started_within(case)[job + 1 :]
    count = int(np.count_nonzero(passed))
    above = int(np.count_nonzero(passed & (case.priority[job + 1 :] > case.priority[job])))
    why = f", {'as it has' if count == 1 else f'{above:,} of them with'} a higher priority" if above else ""
    when = "before it" if is_first else "in that time"
    yield f"{counted(count, 'job') if count else 'No job'} that came later started {when}{why}."
    if case.setting.parameters.get("order", "arrival") != "arrival":
        yield "The turn is that of the tenant with the smallest share over its weight, or guarantee."
        yield from _ceiling(case)


def _started_within(case: JobWait) -> np.ndarray:
    """Return [J] whether tasks of a job started during the wait."""
    started, tasks = np.zeros(case.result.jobs.num_rows, bool), case.tasks
    started[tasks.job[(tasks.start_ns >= case.begin_ns) & (tasks.start_ns < case.end_ns)]] = True
    return started


def _start_at_once(case: JobWait) -> str:
    """Return a sentence about the room for a gang; after an eviction that is on its way to another job."""
    assert case.setting is not None
    job, running = case.job, case.tasks
    tasks = int(column(case.result.jobs, "num_tasks")[job])
    if case.evicted_for != NONE:
        return f"Its {counted(tasks, 'task')} start at once."
    if (room := room_of(case)) is not None:
        nodes = gangs_of(case.setting.workload, case.setting.parameters["gangs"])[job]
        return room_for_gang(room, tasks, int(nodes))
    runs = (running.start_ns <= case.begin_ns) & (running.finish_ns > case.begin_ns)
    idle = max(case.setting.cluster.total_slots - int(np.count_nonzero(runs)), 0)
    there = f"{counted(idle, 'slot')} {'was' if idle == 1 else 'were'} idle"
    return f"Its {counted(tasks, 'task')} start at once; {there} when it began to wait."


def room_for_gang(room: Room, tasks: int, nodes: int) -> str:
    """Return a sentence about the room for a gang, on `nodes` nodes or, if 0, any, when it began to wait."""
    there = np.minimum(room.tasks_with_room(room.case.begin_ns), tasks)
    when = "when it began to wait,"
    if nodes == 0:
        on = counted(int((there > 0).sum()), "node")
        found = (
            f"there was room for {int(there.sum()):,} of them, on {on}"
            if there.any()
            else "there was no room"
        )
        return f"Its {counted(tasks, 'task')} start at once; {when} {found}."
    nodes = min(nodes, tasks)
    share, larger = divmod(tasks, nodes)
    had = counted(int((there >= share).sum()), "node")
    each = f"{share} or {share + 1}" if larger else f"{share}"
    on = f"on {counted(nodes, 'node')}, {each} on {'each' if nodes > 1 else 'it'}"
    return f"Its {counted(tasks, 'task')} start at once {on}; {when} {had} had room for {share}."
