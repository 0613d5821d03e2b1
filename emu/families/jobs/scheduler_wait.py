"""Why a job waited at its scheduler, in sentences: what it needs at once, and whose turn it was."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from actors.tenants import given_to
from clusters.feasibility import gangs_of
from emu.explaining.event_record import NONE, BoolArray, IntArray
from emu.explaining.explanation import NS, counted
from emu.families.jobs.job_wait import JobWait
from emu.families.jobs.room_reasons import room_for_gang
from workloads.arrow import column
from workloads.requests import NO_GANG


def at_scheduler(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler."""
    trips = sum(link.kind == "RETURNED" for link in case.chain.links[case.first : case.end])
    if trips:
        yield f"{counted(trips, 'time')} it was sent to a node in that time, which had no room."
    if case.evicted_for != NONE:
        yield f"Its room went to job {int(case.ids[case.evicted_for])}, for which it was evicted."
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
    there = np.arange(case.ids.size) % schedulers == case.job % schedulers
    higher = np.flatnonzero(_waiting(case) & there & (case.priority > case.priority[case.job]))
    if higher.size:
        first = int(case.ids[higher[0]])
        yield f"{counted(higher.size, 'job')} of higher priority waited there too (the first: job {first})."
    yield from _ceiling(case, f", an equal part at each of {schedulers} schedulers" if schedulers > 1 else "")


def _jobs_of(case: JobWait, tasks: BoolArray) -> BoolArray:
    """Return [J] whether a job has one of some tasks."""
    found: BoolArray = np.isin(np.arange(case.ids.size), case.tasks.job[tasks])
    return found


def _waiting(case: JobWait) -> BoolArray:
    """Return [J] whether a job had come when the wait began, and tasks of it waited then."""
    has_come = column(case.result.jobs, "submit_s") * NS <= case.begin_ns
    return _jobs_of(case, case.tasks.begin_ns > case.begin_ns) & has_come


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
        yield from _ceiling(case)


def _gangs(case: JobWait) -> IntArray:
    """Return [J] on how many nodes each gang starts, as `gangs_of`."""
    assert case.setting is not None
    return gangs_of(case.setting.workload, case.setting.parameters["gangs"])


def _in_turn(case: JobWait) -> Iterator[str]:
    """Yield sentences about a wait at a scheduler of gangs: what the job needed, and which jobs had their turn."""
    assert case.setting is not None
    jobs, job, tasks = case.result.jobs, case.job, case.tasks
    if _gangs(case)[job] != NO_GANG:
        yield _start_at_once(case)
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
    if case.setting.parameters.get("order", "arrival") != "arrival":
        yield "The turn is that of the tenant with the smallest share over its weight, or guarantee."
        yield from _ceiling(case)


def _start_at_once(case: JobWait) -> str:
    """Return a sentence about the room for a gang; after an eviction that is on its way to another job."""
    assert case.setting is not None
    tasks = int(column(case.result.jobs, "num_tasks")[case.job])
    if case.evicted_for != NONE:
        return f"Its {counted(tasks, 'task')} start at once."
    if case.resources is not None:
        return room_for_gang(case.resources, tasks, int(_gangs(case)[case.job]))
    idle = max(case.setting.cluster.total_slots - case.tasks.at(case.begin_ns).size, 0)
    there = f"{counted(idle, 'slot')} {'was' if idle == 1 else 'were'} idle"
    return f"Its {counted(tasks, 'task')} start at once; {there} when it began to wait."
