"""Why a task of a DAG job waited: which resources were scarce, which jobs held them, and what went ahead of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from actors.resources import UNIT
from emu.explaining.event_record import NONE, IntArray, Record
from emu.explaining.explained_run import plan_of
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.explaining.spans import Held, covered_ns, free_during, held_by_tasks, outages, until_ns
from emu.families.dags.fetches import sent_of
from emu.results.metrics import Float64Array
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column
from workloads.requests import priorities

if TYPE_CHECKING:
    from emu.configuration.plan import Plan


class Case:
    """A task that waited, and all tasks that held machines of its manager; times in ns of the run.

    Amounts are in whole billionths, of R resources that the manager sees.

    Attributes
    ----------
    job : int
        Its row in the table of jobs.
    home : int
        The only machine that is counted, as its input had been sent there; -1: all of its manager count.
    held, down : Held
        What tasks held of these machines, numbered from 0, and when they were down.
    launched : ndarray of bool, shape (n,)
        Which rows of `held` began within the wait.
    demand, capacity, needs : ndarray of int64, shape (n, R), (N, R) and (R,)
        Of each row of `held`, of the machines, and of the task.
    """

    def __init__(
        self, plan: Plan, result: Result, record: Record, row: int, task: int, span: tuple[int, int]
    ):
        from actors.machines.demands import needs_and_capacity, seen_resources

        setting, arrays = plan.setting(0), plan.workload.arrays()
        needs, capacity = needs_and_capacity(setting)
        names, managers = plan.workload.resources or ("slots",), int(setting.parameters.get("managers", 1))
        self.plan, self.job, (self.begin_ns, self.end_ns) = plan, row, span
        self.resources = [names[r] for r in seen_resources(setting)]
        self.home = int(column(result.tasks, "node")[task]) if sent_of(result.tasks)[task] >= 0 else NONE
        first, end = (len(capacity) * (row % managers + i) // managers for i in (0, 1))
        if self.home != NONE:
            first, end = self.home, self.home + 1
        stage_of = np.repeat(np.arange(needs.shape[0]), np.diff(arrays.stage_first_task))
        job_of = np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_task))
        self.held, self.down = (
            some.rows((some.node >= first) & (some.node < end))
            for some in (
                held_by_tasks(result.tasks, job_of) if self.is_by_stage else _held_by_launches(record),
                outages(record, "NODE_DOWN", "NODE_UP", record.sender, len(capacity)),
            )
        )
        self.held, self.down = (some._replace(node=some.node - first) for some in (self.held, self.down))
        self.launched = (self.held.begin_ns > self.begin_ns) & (self.held.begin_ns < self.end_ns)
        self.demand, self.needs = needs[stage_of[self.held.task]], needs[stage_of[task]]
        self.capacity = capacity[first:end]

    @property
    def length_ns(self) -> int:
        """How long it waited."""
        return self.end_ns - self.begin_ns

    @property
    def is_by_stage(self) -> bool:
        """Whether stages go to a scheduler of jobs, which sends their tasks to nodes that may have no room yet."""
        from actors.schedulers.jobs.by_stage import STAGE_WORLDS

        return self.plan.schedulers[0].worlds is STAGE_WORLDS


def wait_of(result: Result, record: Record, row: int, link: Link, arrival_ns: int) -> Wait:
    """Explain a wait, from the events of all jobs.

    Parameters
    ----------
    row : int
        The job's in the table of jobs.
    link : Link
        The wait of a task, a part of the job's chain.
    arrival_ns : int
        Of the job.
    """
    if link.cause != "queueing":
        return Wait(link, (), [_OTHER[link.cause]])
    plan = plan_of(result)
    if plan is None:
        return Wait(link, (), ["The inputs of the run have changed: what tasks need is not known."])
    case = Case(plan, result, record, row, link.task, (arrival_ns + link.begin_ns, arrival_ns + link.end_ns))
    demand = np.concatenate([case.demand, case.capacity[case.down.node]])
    nodes, held = np.arange(len(case.capacity)), case.held.beside(case.down)
    free = free_during(case.capacity, held, demand, nodes, case.begin_ns, case.end_ns)
    lacks = free.amount < case.needs
    has_room = ~lacks.any(axis=1)
    fits_ns = covered_ns(free.begin_ns[has_room], free.end_ns[has_room])
    lacking = free.lasted @ lacks / (nodes.size * case.length_ns)
    scarce = int(np.argmax(np.where(case.needs > 0, lacking, -1.0)))
    reasons = [*_lack(case, fits_ns, lacking), *_ahead(case), *_room(case, fits_ns)]
    facts = {
        "resource": case.resources[scarce],
        "lacking": float(lacking[scarce]),
        "had_room_s": fits_ns / NS,
        "launched": int(case.launched.sum()),
        "launched_of_this_job": int((case.launched & (case.held.job == row)).sum()),
    }
    return Wait(link, _holders(case, scarce), reasons, facts)


_OTHER = {
    "network": "Messages were on their way. With heartbeats an end is reported with the next heartbeat of its machine.",
    "decision": "Its scheduler was busy: with messages that had come before, and with this decision.",
    "failure": "The task, its input or its output was lost with a machine. It was launched again when its scheduler "
    "knew that, and a machine had room.",
    "preemption": "What it had run was lost; it is launched again.",
}


def _held_by_launches(record: Record) -> Held:
    """Return what tasks held as the manager knew it, from all events: from launches to reports of their ends."""
    reported = record.is_kind("TASK_DONE", "LOST") & (record.task != NONE)
    launched = np.flatnonzero(record.is_kind("LAUNCH"))
    left_ns = record.left_ns[launched]
    begin_ns = np.where(left_ns == NONE, record.time_ns[launched], left_ns)
    end_ns = until_ns(record, launched, np.flatnonzero(reported), record.task)
    return Held(record.job[launched], record.task[launched], record.receiver[launched], begin_ns, end_ns)


def _holders(case: Case, resource: int) -> list[dict[str, Any]]:
    """Return a row for each job that held a resource while the task waited, the largest holder first."""
    held, ids = case.held, column(case.plan.workload.jobs, "job_id")
    lasted = held.within(case.begin_ns, case.end_ns)
    amounts = lasted / case.length_ns * (case.demand[:, resource] / UNIT)
    amount = np.bincount(held.job, amounts, ids.size)
    total = case.capacity[:, resource].sum() / UNIT
    rows = []
    for job in np.argsort(-amount, kind="stable").tolist():
        if amount[job] <= 0.0:
            break
        mine = (held.job == job) & (lasted > 0)
        begins = np.maximum(held.begin_ns[mine], case.begin_ns)
        rows.append(
            {
                "job": int(ids[job]),
                "whose": "this job" if job == case.job else "another",
                f"{case.resources[resource]} held": float(amount[job]),
                "of all (%)": float(100.0 * amount[job] / total),
                "tasks": int(mine.sum()),
                "launched meanwhile": int((mine & case.launched).sum()),
                "s": covered_ns(begins, np.minimum(held.end_ns[mine], case.end_ns)) / NS,
            }
        )
    return rows


def _lack(case: Case, fits_ns: int, lacking: Float64Array) -> Iterator[str]:
    """Yield what the task needs, and what machines lacked of it."""
    if case.home != NONE:
        yield f"Its input had been sent to node {case.home}, and it runs there alone: no other machine is counted."
    asked = zip(case.resources, case.needs / UNIT, strict=True)
    needs = ", ".join(f"{name} {number(float(amount))}" for name, amount in asked if amount > 0)
    order = np.argsort(-lacking, kind="stable").tolist()
    lacked = [f"{case.resources[r]} on {percent(lacking[r])}" for r in order if lacking[r] > 0]
    without = percent(1.0 - fits_ns / case.length_ns)
    text = f"It needs {needs or 'nothing'}. No machine had that for {without} of the wait"
    yield text + (f": of all machines' time too little was free of {', '.join(lacked)}." if lacked else ".")
    if out_ns := int(case.down.within(case.begin_ns, case.end_ns).sum()):
        yield f"In the mean {number(out_ns / case.length_ns)} of {len(case.capacity):,} machines were down."


def _ahead(case: Case) -> Iterator[str]:
    """Yield what was launched during the wait, and the rule by which it went first."""
    setting, scheduler, job = case.plan.setting(0), case.plan.schedulers[0], case.held.job
    own = int((case.launched & (job == case.job)).sum())
    others = job[case.launched & (job != case.job)]
    of_priorities = _of_priorities(case, others)
    who = "nodes started" if case.is_by_stage else "the manager launched"
    yield (
        f"Meanwhile {who} {counted(own, 'task')} of this job, and {counted(others.size, 'task')} of "
        f"{counted(np.unique(others).size, 'other job')}{of_priorities}."
    )
    bands = of_priorities and not scheduler.priorities and scheduler.own is None
    first = "jobs of a higher priority go first; of equal ones " if bands else ""
    if not case.is_by_stage and (rule := scheduler.rule_with(setting.parameters)):
        yield f"Its rule: {first}{rule}."


def _of_priorities(case: Case, jobs: IntArray) -> str:
    """Return how many of some tasks, by their jobs, have a higher priority, and how many a lower one, as text."""
    if not case.plan.setting(0).priorities:
        return ""
    of_jobs = priorities(case.plan.workload.jobs)
    of, own = of_jobs[jobs], int(of_jobs[case.job])
    if not np.ptp(of_jobs):
        return ""
    return f", {int((of > own).sum()):,} of higher priority than its own {own}, {int((of < own).sum()):,} of lower"


def _room(case: Case, fits_ns: int) -> Iterator[str]:
    """Yield why the task was not launched while a machine had room for it."""
    if fits_ns == 0:
        return
    if case.is_by_stage:
        why = "its scheduler had sent it, or probes for it, to other nodes, and nodes serve their own queues"
        if case.plan.setting(0).scheduler.waits:
            why = "its scheduler placed other tasks first, or did not know of the room"
        yield f"For {number(fits_ns / NS)} s a node had room for it: {why}."
        return
    given, wait_s = case.plan.setting(0).parameters, case.plan.setting(0).switch.locality_wait_s
    heartbeat_s, gives_none = float(given.get("heartbeat_s", 0.0)), given.get("leftover") == "none"
    reasons = {
        f"a job waits up to {number(wait_s)} s for a machine that has its input": wait_s > 0
        and case.home == NONE,
        f"a machine gets tasks with its heartbeat alone, every {number(heartbeat_s)} s": heartbeat_s > 0,
        "its job had used its share, and what is left over goes to none": gives_none,
        "the plan of its job said that it need not start yet": gives_none
        and float(given.get("altruism", 0.0)) > 0,
        "its job was not among those that hold the least": float(given.get("fairness", 0.0)) > 0,
        "the manager was busy": case.plan.costs.model != "none",
    }
    why = "; ".join(reason for reason, holds in reasons.items() if holds)
    why = why or "the manager had tasks to launch that came first"
    yield f"For {number(fits_ns / NS)} s a machine had room for it: {why}."
