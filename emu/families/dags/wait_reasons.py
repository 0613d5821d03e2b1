"""Why a task of a DAG job waited: which resources were scarce, which jobs held them, and what went ahead of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emu.explaining.event_record import NONE, IntArray, Record
from emu.explaining.explained_plan import plan_of
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.explaining.spans import covered_ns
from emu.families.dags.fetches import sent_of
from emu.families.dags.machine_holders import (
    Held,
    Machines,
    down,
    held,
    held_by_tasks,
    machines_during,
)
from emu.results.metrics import Float64Array
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column
from workloads.requests import priorities

if TYPE_CHECKING:
    from emu.configuration.plan import Plan


class Case(NamedTuple):
    """A task that waited, and all tasks that held machines of its manager; times in ns of the run."""

    job: int  # row in the table of jobs
    task: int  # from 0 over all in workload order
    begin_ns: int
    end_ns: int
    of: Held
    job_of: IntArray  # of each row of `of`
    demand: Float64Array  # of each row of `of`
    capacity: Float64Array  # of machines
    needs: Float64Array  # of the task
    resources: tuple[str, ...]
    down: Held  # machines that were down
    ids: IntArray  # of jobs
    home: int  # the only machine that is counted, as its input had been sent there; NONE: all count

    @property
    def length_ns(self) -> int:
        """How long it waited."""
        return self.end_ns - self.begin_ns


def wait_of(result: Result, record: Record, row: int, link: Link, task: int, arrival_ns: int) -> Wait:
    """Explain a wait, from the events of all jobs.

    Parameters
    ----------
    row : int
        The job's in the table of jobs.
    link : Link
        The wait, a part of the job's chain.
    task : int
        The task of it, from 0 over all in workload order.
    arrival_ns : int
        Of the job.
    """
    if link.cause != "queueing":
        return Wait(link, (), [_OTHER[link.cause]])
    plan = plan_of(result)
    if plan is None:
        return Wait(link, (), ["The inputs of the run have changed: what tasks need is not known."])
    launches = held_by_tasks(result) if _is_by_stage(plan) else held(record)
    home = int(column(result.tasks, "node")[task]) if sent_of(result.tasks)[task] >= 0 else NONE
    span = (arrival_ns + link.begin_ns, arrival_ns + link.end_ns)
    case = _case(plan, record, launches, row, task, home, *span)
    machines = machines_during(
        Held(*map(np.concatenate, zip(case.of, case.down, strict=True))),
        np.concatenate([case.demand, case.capacity[case.down.node]]),
        case.capacity,
        case.needs,
        case.begin_ns,
        case.end_ns,
    )
    scarce = int(np.argmax(np.where(case.needs > 0, machines.lacking, -1.0)))
    launched = (case.of.begin_ns > case.begin_ns) & (case.of.begin_ns < case.end_ns)
    reasons = [*_lack(case, machines), *_ahead(plan, case, launched), *_room(plan, case, machines)]
    facts = {
        "resource": case.resources[scarce],
        "lacking": float(machines.lacking[scarce]),
        "had_room_s": machines.fits_ns / NS,
        "launched": int(launched.sum()),
        "launched_of_this_job": int((launched & (case.job_of == row)).sum()),
    }
    return Wait(link, _holders(case, scarce, launched), reasons, facts)


_OTHER = {
    "network": "Messages were on their way. With heartbeats an end is reported with the next heartbeat of its machine.",
    "decision": "Its scheduler was busy: with messages that had come before, and with this decision.",
    "failure": "The task, its input or its output was lost with a machine. It was launched again when its scheduler "
    "knew that, and a machine had room.",
    "preemption": "What it had run was lost; it is launched again.",
}


def _is_by_stage(plan: Plan) -> bool:
    """Whether stages go to a scheduler of jobs, which sends their tasks to nodes that may have no room yet."""
    from actors.schedulers.jobs.by_stage import STAGE_WORLDS

    return plan.schedulers[0].worlds is STAGE_WORLDS


def _case(
    plan: Plan, record: Record, launches: Held, row: int, task: int, home: int, begin_ns: int, end_ns: int
) -> Case:
    from actors.machines.demands import needs_and_capacity, seen_resources
    from actors.resources import UNIT

    setting, arrays = plan.setting(0), plan.workload.arrays()
    needs, capacity = (amounts / UNIT for amounts in needs_and_capacity(setting))
    names = tuple(plan.workload.resources) or ("slots",)
    managers = int(setting.parameters.get("managers", 1))
    first, end = (capacity.shape[0] * (row % managers + i) // managers for i in (0, 1))
    if home != NONE:
        first, end = home, home + 1
    of, is_down = (_of_machines(some, first, end) for some in (launches, down(record)))
    capacity = capacity[first:end]
    stage_of = np.repeat(np.arange(needs.shape[0]), np.diff(arrays.stage_first_task))
    job_of = np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_task))
    return Case(
        row,
        task,
        begin_ns,
        end_ns,
        of,
        job_of[of.task],
        needs[stage_of[of.task]],
        capacity,
        needs[stage_of[task]],
        tuple(names[r] for r in seen_resources(setting)),
        is_down,
        column(plan.workload.jobs, "job_id"),
        home,
    )


def _of_machines(of: Held, first: int, end: int) -> Held:
    """Return the rows of some machines, which are numbered from 0."""
    own = (of.node >= first) & (of.node < end)
    return Held(of.task[own], of.node[own] - first, of.begin_ns[own], of.end_ns[own])


def _holders(case: Case, resource: int, launched: Any) -> list[dict[str, Any]]:
    """Return a row for each job that held a resource while the task waited, the largest holder first."""
    lasted = case.of.within(case.begin_ns, case.end_ns)
    amount = np.bincount(case.job_of, lasted / case.length_ns * case.demand[:, resource], case.ids.size)
    total = case.capacity[:, resource].sum()
    rows = []
    for job in np.argsort(-amount, kind="stable").tolist():
        if amount[job] <= 0.0:
            break
        mine = (case.job_of == job) & (lasted > 0)
        begins = np.maximum(case.of.begin_ns[mine], case.begin_ns)
        rows.append(
            {
                "job": int(case.ids[job]),
                "whose": "this job" if job == case.job else "another",
                f"{case.resources[resource]} held": float(amount[job]),
                "of all (%)": float(100.0 * amount[job] / total),
                "tasks": int(mine.sum()),
                "launched meanwhile": int((mine & launched).sum()),
                "s": covered_ns(begins, np.minimum(case.of.end_ns[mine], case.end_ns)) / NS,
            }
        )
    return rows


def _lack(case: Case, machines: Machines) -> Iterator[str]:
    if case.home != NONE:
        yield f"Its input had been sent to node {case.home}, and it runs there alone: no other machine is counted."
    needs = ", ".join(
        f"{name} {number(float(amount))}"
        for name, amount in zip(case.resources, case.needs, strict=True)
        if amount > 0
    )
    without = 1.0 - machines.fits_ns / case.length_ns
    lacked = [
        f"{case.resources[r]} on {percent(machines.lacking[r])}"
        for r in np.argsort(-machines.lacking, kind="stable").tolist()
        if machines.lacking[r] > 0
    ]
    text = f"It needs {needs or 'nothing'}. No machine had that for {percent(without)} of the wait"
    yield text + (f": of all machines' time too little was free of {', '.join(lacked)}." if lacked else ".")
    if out_ns := int(case.down.within(case.begin_ns, case.end_ns).sum()):
        yield f"In the mean {number(out_ns / case.length_ns)} of {case.capacity.shape[0]:,} machines were down."


def _ahead(plan: Plan, case: Case, launched: Any) -> Iterator[str]:
    """Yield what was launched during the wait, and the rule by which it went first."""
    own = int((launched & (case.job_of == case.job)).sum())
    others = np.flatnonzero(launched & (case.job_of != case.job))
    jobs, of_priorities = np.unique(case.job_of[others]).size, _of_priorities(plan, case, others)
    who = "nodes started" if _is_by_stage(plan) else "the manager launched"
    yield (
        f"Meanwhile {who} {counted(own, 'task')} of this job, and {counted(others.size, 'task')} of "
        f"{counted(jobs, 'other job')}{of_priorities}."
    )
    scheduler = plan.schedulers[0]
    rule = "" if _is_by_stage(plan) else scheduler.rule_with(plan.setting(0).parameters)
    bands = of_priorities and not scheduler.priorities and scheduler.own is None
    first = "jobs of a higher priority go first; of equal ones " if bands else ""
    if rule:
        yield f"Its rule: {first}{rule}."


def _of_priorities(plan: Plan, case: Case, others: IntArray) -> str:
    """Return how many of the tasks of other jobs have a higher priority, and how many a lower one, as text."""
    if not plan.setting(0).priorities:
        return ""
    of_jobs = priorities(plan.workload.jobs)
    of, own = of_jobs[case.job_of[others]], int(of_jobs[case.job])
    if not np.ptp(of_jobs):
        return ""
    return f", {int((of > own).sum()):,} of higher priority than its own {own}, {int((of < own).sum()):,} of lower"


def _room(plan: Plan, case: Case, machines: Machines) -> Iterator[str]:
    """Yield why the task was not launched while a machine had room for it."""
    if machines.fits_ns == 0:
        return
    if _is_by_stage(plan):
        why = "its scheduler had sent it, or probes for it, to other nodes, and nodes serve their own queues"
        yield f"For {number(machines.fits_ns / NS)} s a node had room for it: {why}."
        return
    given, wait_s = plan.setting(0).parameters, plan.setting(0).switch.locality_wait_s
    reasons = []
    if wait_s > 0 and case.home == NONE:
        reasons.append(f"a job waits up to {number(wait_s)} s for a machine that has its input")
    if float(given.get("heartbeat_s", 0.0)) > 0:
        reasons.append(
            f"a machine gets tasks with its heartbeat alone, every {number(given['heartbeat_s'])} s"
        )
    if given.get("leftover") == "none":
        reasons.append("its job had used its share, and what is left over goes to none")
    if float(given.get("altruism", 0.0)) > 0 and given.get("leftover") == "none":
        reasons.append("the plan of its job said that it need not start yet")
    if float(given.get("fairness", 0.0)) > 0:
        reasons.append("its job was not among those that hold the least")
    if plan.costs.model != "none":
        reasons.append("the manager was busy")
    why = "; ".join(reasons) or "the manager had tasks to launch that came first"
    yield f"For {number(machines.fits_ns / NS)} s a machine had room for it: {why}."
