"""What jobs of a group waited for, in shares by reason: resources, higher priorities, failures, messages.

The delay of a job is the part of its completion time in which no task of its chain ran (`emu.families.jobs.causes`). A
wait in a queue, or at a scheduler for a node, is divided by what was free meanwhile, read off the table of tasks: for
each span between two starts or ends, the resources of which too little was free, in equal parts; `HIGHER` where the job
would have fit without tasks of higher priority; `TURN` where it fitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from actors.resources import demands_of
from clusters.capacity import capacities
from clusters.feasibility import gangs_of
from emu.explaining.causes_text import has_costs
from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.explained_plan import plan_of
from emu.explaining.explanation import NS
from emu.families.jobs.causes import Step, chain_of
from emu.families.jobs.explain import submits_ns
from emu.families.jobs.metrics import in_group
from emu.families.jobs.room_reasons import SLACK
from emu.families.jobs.slot_holders import Tasks, tasks_of
from emu.families.jobs.target_groups import jobs_of
from emu.families.jobs.task_waits import sticky_jobs
from emu.results.metrics import after_warmup
from emu.results.result import Result
from emu.sweeps.targets import Waits, WithEvents
from workloads.arrow import column, optional_column
from workloads.requests import NO_GANG, priorities

SLOTS = "slots"
HIGHER = "what tasks of higher priority held"
TURN = "their turn, while there was room"
MOST_JOBS = 300
"""Jobs that are looked at; of more, so many at equal distances."""
MOMENTS = 16
"""Moments of a wait at a scheduler at which the room on nodes is looked at."""


def waits_by_reason(result: Result, group: str, with_events: WithEvents) -> Waits | None:
    """Return what jobs of a group waited for; None where none of them ended, or the run's inputs have changed.

    Parameters
    ----------
    result : Result
    group : str
        A class, or a priority or a tenant, as targets of `emu size` name them; those that arrive after the warm-up.
    with_events : (run, rows of jobs) -> run
        Returns the run with its tasks, and the events of these jobs at least.
    """
    jobs = result.jobs
    mine = jobs_of(jobs, group) if ":" in group else in_group(jobs, group)
    mine &= after_warmup(column(jobs, "submit_s"), result.warmup_s)
    ended = np.flatnonzero(mine & np.isfinite(optional_column(jobs, "finish_s")))
    if not ended.size:
        return None
    chosen = ended[np.unique(np.linspace(0, ended.size - 1, min(ended.size, MOST_JOBS)).round().astype(int))]
    again = with_events(result, chosen.tolist())
    record = Record.of(again.events)
    if plan_of(again) is None:
        return None
    held, sums, total_ns = Held(again, tasks_of(again, record)), defaultdict[str, float](float), 0
    wanted, submit_ns, is_sticky = set(chosen.tolist()), submits_ns(again), sticky_jobs(again)
    handled = record.handled_ns if has_costs(again) else None
    for job, events in record.by_job():
        if job not in wanted:
            continue
        for step in chain_of(events, held.num_nodes, submit_ns[job], handled, bool(is_sticky[job])):
            total_ns += step.end_ns - step.begin_ns
            for reason, ns in held.reasons(job, step):
                sums[reason] += ns / NS
    shown = {reason: s for reason, s in sorted(sums.items(), key=lambda one: -one[1]) if s > 0}
    return Waits(chosen.size, ended.size, total_ns / NS, shown)


class Held:
    """What tasks of a run held of nodes, over time; amounts in the units of demands, of slots 1 each."""

    def __init__(self, result: Result, tasks: Tasks):
        plan = plan_of(result)
        assert plan is not None
        setting, self.num_nodes = plan.setting(0), int(result.summary["nodes"])
        self.tasks = tasks
        self.names, jobs = setting.resources or (SLOTS,), result.jobs.num_rows
        self.capacity = capacities(setting.cluster, setting.resources)
        self.needs, self.demand = np.ones((jobs, 1)), np.ones((len(self.tasks.job), 1))
        if setting.resources:
            found = demands_of(setting)
            self.needs = found.vector[found.of_job]
            of_task = found.of_task if found.of_task.size else found.of_job[_job_of_task(result)]
            self.demand = found.vector[of_task[self.tasks.task]]
        self.priority = priorities(result.jobs) if setting.priorities else np.zeros(jobs, np.int64)
        self.width = np.ones(jobs, np.int64)  # tasks that start at once
        if setting.scheduler.gangs:
            is_gang = gangs_of(setting.workload, setting.parameters["gangs"]) != NO_GANG
            self.width = np.where(is_gang, column(result.jobs, "num_tasks"), 1)
        self.by_node = np.argsort(self.tasks.node, kind="stable")
        self.bounds = np.searchsorted(self.tasks.node[self.by_node], np.arange(self.num_nodes + 1))

    def reasons(self, job: int, step: Step) -> Iterator[tuple[str, float]]:
        """Yield why a step of a job's chain took long, and for how many ns; nothing for work."""
        length_ns = step.end_ns - step.begin_ns
        if step.cause == "work" or length_ns == 0:
            return
        if step.cause != "queueing" or step.actor == NONE:
            yield step.cause, length_ns
        elif step.actor < self.num_nodes:
            yield from self._at_node(job, step)
        else:
            at = step.begin_ns + (np.arange(MOMENTS) * 2 + 1) * length_ns // (2 * MOMENTS)
            for moment in at.tolist():
                yield from self._among_nodes(job, moment, length_ns / MOMENTS)

    def fitted_and_lower(self, job: int, step: Step) -> tuple[int, int]:
        """Return for how many ns of a wait at a node a job fitted, and would have without tasks of lower priority."""
        lasted, lacks, _, without_lower = self._spans(job, step)
        fitted = ~lacks.any(axis=1)
        return int(lasted[fitted].sum()), int(lasted[~fitted & ~without_lower.any(axis=1)].sum())

    def _at_node(self, job: int, step: Step) -> Iterator[tuple[str, float]]:
        lasted, lacks, without_higher, _ = self._spans(job, step)
        for k in np.flatnonzero(lasted).tolist():
            yield from self._named(lacks[k], without_higher[k], float(lasted[k]))

    def _spans(self, job: int, step: Step) -> tuple[IntArray, BoolArray, BoolArray, BoolArray]:
        """Return the spans of a wait at a node, ns, (K,), and in each which resources lack, shape (K, R).

        As it was, and without tasks of higher, and of lower priority.
        """
        rows, tasks = self.by_node[self.bounds[step.actor] : self.bounds[step.actor + 1]], self.tasks
        rows = rows[(tasks.finish_ns[rows] > step.begin_ns) & (tasks.start_ns[rows] < step.end_ns)]
        ends = np.concatenate([tasks.start_ns[rows], tasks.finish_ns[rows]]).clip(step.begin_ns, step.end_ns)
        order = np.argsort(ends, kind="stable")
        changes = np.concatenate([-self.demand[rows], self.demand[rows]])[order]
        priority = np.tile(self.priority[tasks.job[rows]], 2)[order, None]

        def lacking(counts: BoolArray) -> BoolArray:
            free = np.concatenate(
                [np.zeros((1, len(self.names))), np.where(counts, changes, 0.0).cumsum(axis=0)]
            )
            lacks: BoolArray = self.capacity[step.actor] + free < self.needs[job] - SLACK
            return lacks

        own = self.priority[job]
        lasted = np.diff(np.concatenate([[step.begin_ns], ends[order], [step.end_ns]]))
        return lasted, lacking(priority == priority), lacking(priority <= own), lacking(priority >= own)

    def _among_nodes(self, job: int, at_ns: int, ns: float) -> Iterator[tuple[str, float]]:
        tasks, width = self.tasks, int(self.width[job])
        rows = np.flatnonzero((tasks.start_ns <= at_ns) & (tasks.finish_ns > at_ns))
        is_above = self.priority[tasks.job[rows]] > self.priority[job]
        lacks = self._lacking_among(job, width, rows)
        yield from self._named(lacks, self._lacking_among(job, width, rows[~is_above]), ns)

    def _lacking_among(self, job: int, width: int, rows: IntArray) -> BoolArray:
        """Return of which resources all nodes have too little for so many tasks of a job while some tasks run.

        All that it needs where there is enough of each, and too little of all on the same nodes; none where it fits.
        """
        free, needed = self.capacity.copy(), self.needs[job] > 0
        np.subtract.at(free, self.tasks.node[rows], self.demand[rows])
        count = np.full(free.shape, float(width))
        np.floor_divide(free + SLACK, self.needs[job], out=count, where=needed)
        count = count.clip(0, width)
        if count.min(axis=1).sum() >= width:
            return np.zeros(needed.size, bool)
        lacks: BoolArray = count.sum(axis=0) < width
        return lacks if lacks.any() else needed

    def _named(self, lacks: BoolArray, without_higher: BoolArray, ns: float) -> Iterator[tuple[str, float]]:
        """Yield the reasons of a span: what lacks, and what of it also without tasks of higher priority."""
        if not lacks.any():
            yield TURN, ns
        for r in np.flatnonzero(lacks).tolist():
            yield self.names[r] if without_higher[r] else HIGHER, ns / int(lacks.sum())


def _job_of_task(result: Result) -> IntArray:
    return np.repeat(np.arange(result.jobs.num_rows), column(result.jobs, "num_tasks"))
