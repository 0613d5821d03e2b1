"""Where the completion times of all jobs of a run went: by cause, by who ran meanwhile, and by what they waited for.

The delay of a job is the part of its completion time in which no task of its chain ran (`emu.families.jobs.chain`). A
wait in a queue, or at a scheduler for a node, is divided by what was free meanwhile: for each span between two starts
or ends, the resources of which too little was free, in equal parts; `HIGHER` where the job would have fit without tasks
of higher priority; `TURN` where it fitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from actors.causes import (
    BEHIND_LONG,
    BEHIND_SHORT,
    BEHIND_TASKS,
    BEHIND_UNFIT,
    FOR_LOWER,
    OTHER_QUEUEING,
    Remedy,
)
from clusters.feasibility import gangs_of
from emu.columns import equals_text
from emu.explaining.causes import sum_by_cause
from emu.explaining.event_record import NONE, BoolArray, Handled, IntArray, Record
from emu.explaining.explained_run import has_costs, plan_of
from emu.explaining.explanation import NS, Link
from emu.explaining.spans import ByNode, Held
from emu.families.jobs.chain import Chain, meanings_of
from emu.families.jobs.divisions import jobs_of
from emu.families.jobs.holders import Room, runs_of, tasks_of, times_that_fit
from emu.families.jobs.metrics import has_classes, in_group
from emu.families.jobs.task_waits import sticky_jobs
from emu.results.metrics import after_warmup
from emu.results.result import Result
from emu.sweeps.targets import Waits, WithEvents
from workloads.arrow import column, optional_column
from workloads.requests import NO_GANG, priorities

HIGHER = "what tasks of higher priority held"
TURN = "their turn, while there was room"
MOST_JOBS = 300
"""Jobs that are looked at; of more, so many at equal distances."""
MOMENTS = 16
"""Moments of a wait at a scheduler at which the room on nodes is looked at."""


def chain_of(result: Result, events: Record, job: int, handled: Handled | None) -> Chain:
    """Return the chain of a job, by its row in the table of jobs, from its events."""
    submit_ns = round(float(column(result.jobs, "submit_s")[job]) * NS)
    first_task, is_sticky = int(column(result.jobs, "num_tasks")[:job].sum()), sticky_jobs(result)[job]
    return Chain(events, result.summary["nodes"], submit_ns, handled, bool(is_sticky), first_task)


def chains_of_all(result: Result, record: Record, handled: Handled | None) -> Iterator[tuple[int, Chain]]:
    """Yield each job whose events are known and that ended, by its row in the table of jobs, and its chain."""
    submit_s, is_sticky = column(result.jobs, "submit_s").tolist(), sticky_jobs(result).tolist()
    for job, events in record.by_job():
        submit_ns = round(submit_s[job] * NS)
        chain = Chain(events, result.summary["nodes"], submit_ns, handled, is_sticky[job])
        if chain.links:
            yield job, chain


def causes_of_all(
    result: Result, record: Record, handled: Handled | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each job that ended, by its row in the table of jobs, and nanoseconds of its completion time by cause."""
    meanings = meanings_of(result)
    for job, chain in chains_of_all(result, record, handled):
        yield job, sum_by_cause(chain.links, meanings)


def finer_causes_of_all(
    result: Result, record: Record, handled: Handled | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield what `causes_of_all` yields, with parts (`actors.causes`) in place of ``queueing``.

    These are `BEHIND_LONG` and `BEHIND_SHORT`, or `BEHIND_TASKS`, and `OTHER_QUEUEING`. On a node with several slots
    the wait is divided in proportion to how long tasks of each class ran there. Where tasks hold resources,
    `BEHIND_UNFIT` and `FOR_LOWER` come before that; they are 0 where the inputs of the run have changed.
    """
    meanings, tasks = meanings_of(result), runs_of(record)
    holds = bool(result.summary["jobs"].get("used"))
    names = (BEHIND_UNFIT, FOR_LOWER) if holds else ()
    divided = Divided(result, tasks) if holds and plan_of(result) is not None else None
    of_class = {BEHIND_TASKS: np.ones(result.jobs.num_rows, bool)}
    if has_classes(result.jobs):
        is_long = equals_text(result.jobs, "job_class", "long")
        of_class = {BEHIND_LONG: is_long, BEHIND_SHORT: ~is_long}
    by_node = ByNode(tasks, result.summary["nodes"])
    for job, chain in chains_of_all(result, record, handled):
        parts = dict.fromkeys((*names, *of_class), 0)
        for link in chain.links:
            if link.cause != "queueing" or not 0 <= link.actor < chain.num_nodes or not link.s:
                continue
            span = (link.actor, chain.submit_ns + link.begin_ns, chain.submit_ns + link.end_ns)
            left = length_ns = link.end_ns - link.begin_ns
            if divided is not None:
                for name, ns in zip(names, divided.fitted_and_lower(job, *span), strict=True):
                    parts[name] += ns
                    left -= ns
            share, there = left / length_ns, tasks.rows(by_node.rows(*span))
            ran = there.within(*span[1:])
            took = {name: int(ran[mine[there.job]].sum()) for name, mine in of_class.items()}
            # Several slots ran tasks at the same time where these took longer than the wait.
            at_once = min(length_ns / max(sum(took.values()), 1), 1.0)
            for name, ns in took.items():
                own = min(int(int(ns * at_once) * share), left)
                parts[name] += own
                left -= own
        yield job, _split(sum_by_cause(chain.links, meanings), parts)


def _split(causes: dict[str, int], queueing: dict[str, int]) -> dict[str, int]:
    """Return causes in their order, with the parts of ``queueing`` in its place."""
    parts: dict[str, int] = {}
    for name, ns in causes.items():
        rest = {OTHER_QUEUEING: ns - sum(queueing.values())}
        parts |= queueing | rest if name == "queueing" else {name: ns}
    return parts


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
    divided, sums, total_ns = Divided(again, tasks_of(again, record)), defaultdict[str, float](float), 0
    wanted, handled = set(chosen.tolist()), record.handled_ns if has_costs(again) else None
    for job, chain in chains_of_all(again, record, handled):
        if job not in wanted:
            continue
        total_ns += chain.links[-1].end_ns
        for link in chain.links:
            for reason, ns in divided.reasons(job, link, chain.submit_ns):
                sums[reason] += ns / NS
    shown = {reason: s for reason, s in sorted(sums.items(), key=lambda one: -one[1]) if s > 0}
    return Waits(chosen.size, ended.size, total_ns / NS, shown)


class Divided:
    """Waits of jobs, divided by what the tasks of a run held of nodes meanwhile."""

    def __init__(self, result: Result, tasks: Held):
        plan = plan_of(result)
        assert plan is not None
        setting, jobs = plan.setting(0), result.jobs
        self.room, self.tasks = Room(setting, tasks), tasks
        self.priority = priorities(jobs) if setting.priorities else np.zeros(jobs.num_rows, np.int64)
        self.width = np.ones(jobs.num_rows, np.int64)  # tasks that start at once
        if setting.scheduler.gangs:
            is_gang = gangs_of(setting.workload, setting.parameters["gangs"]) != NO_GANG
            self.width = np.where(is_gang, column(jobs, "num_tasks"), 1)

    def reasons(self, job: int, link: Link, submit_ns: int) -> Iterator[tuple[str, float]]:
        """Yield why a link of a job's chain took long, and for how many ns; nothing for work."""
        length_ns, begin_ns = link.end_ns - link.begin_ns, submit_ns + link.begin_ns
        if link.cause == "work" or length_ns == 0:
            return
        if link.cause != "queueing" or link.actor == NONE:
            yield link.cause, length_ns
        elif link.actor < len(self.room.capacity):
            spans = self._spans(job, link.actor, begin_ns, begin_ns + length_ns)
            for lasted, lacks, without_higher, _ in zip(*spans, strict=True):
                yield from self._named(lacks, without_higher, float(lasted))
        else:
            at = begin_ns + (np.arange(MOMENTS) * 2 + 1) * length_ns // (2 * MOMENTS)
            is_above = self.priority[self.tasks.job] > self.priority[job]
            for moment in at.tolist():
                lacks = self._lacking_among(job, self.room.at(moment))
                without_higher = self._lacking_among(job, self.room.at(moment, is_above))
                yield from self._named(lacks, without_higher, length_ns / MOMENTS)

    def fitted_and_lower(self, job: int, node: int, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """Return for how many ns of a wait at a node a job fitted, and would have without tasks of lower priority."""
        lasted, lacks, _, without_lower = self._spans(job, node, begin_ns, end_ns)
        fitted = ~lacks.any(axis=1)
        return int(lasted[fitted].sum()), int(lasted[~fitted & ~without_lower.any(axis=1)].sum())

    def _spans(
        self, job: int, node: int, begin_ns: int, end_ns: int
    ) -> tuple[IntArray, BoolArray, BoolArray, BoolArray]:
        """Return the spans of a wait at a node, ns, (K,), and in each which resources lack, shape (K, R).

        As it was, and without tasks of higher, and of lower priority.
        """
        rows, own = self.room.by_node.rows(node, begin_ns, end_ns), self.priority[job]
        priority = self.priority[self.tasks.job[rows]]
        free = self.room.during(node, begin_ns, end_ns, rows, priority > own, priority < own)
        lacks = free.amount < np.tile(self.room.of_job[job], 3)
        now, without_higher, without_lower = np.split(lacks, 3, axis=1)
        return free.lasted, now, without_higher, without_lower

    def _lacking_among(self, job: int, free: IntArray) -> BoolArray:
        """Return of which resources all nodes have too little for the tasks of a job that start at once.

        All that it needs where there is enough of each, and too little of all on the same nodes; none where it fits.
        """
        width, needs = int(self.width[job]), self.room.of_job[job]
        count = times_that_fit(free, needs).clip(0, width)
        if count.min(axis=1).sum() >= width:
            return np.zeros(needs.size, bool)
        lacks: BoolArray = count.sum(axis=0) < width
        return lacks if lacks.any() else needs > 0

    def _named(self, lacks: BoolArray, without_higher: BoolArray, ns: float) -> Iterator[tuple[str, float]]:
        """Yield the reasons of a span: what lacks, and what of it also without tasks of higher priority."""
        if not lacks.any():
            yield TURN, ns
        for r in np.flatnonzero(lacks).tolist():
            yield self.room.names[r] if without_higher[r] else HIGHER, ns / int(lacks.sum())


_MORE_NODES = "more of them, or a lower load, shorten queues under any scheduler"
_QUEUEING = (BEHIND_LONG, BEHIND_SHORT, BEHIND_TASKS, BEHIND_UNFIT, FOR_LOWER, OTHER_QUEUEING)
REMEDIES = {
    "long_partition": (Remedy(BEHIND_LONG, "keeps long tasks off the rest of the nodes", group="short"),),
    "resources.passing": (Remedy(BEHIND_UNFIT, "what fits goes before what does not, within this bound"),),
    "preemption.mode": (
        Remedy(FOR_LOWER, "with restart or checkpoint running tasks of lower priority make room"),
        Remedy("preemption", "with checkpoints what was done is kept"),
    ),
    "preemption.most": (Remedy("preemption", "how often a task is evicted"),),
    "preemption.below": (Remedy("preemption", "tasks of this priority and above are not evicted"),),
    "network.delay": (Remedy("network", "the time of each message"),),
    "cost.per_message": (
        Remedy("decision", "what a message costs a scheduler, with the other keys of cost"),
    ),
    "dynamics.detection": (Remedy("failure", "how long a failure stays unknown"),),
    "dynamics.mtbf": (Remedy("failure", "how rarely nodes fail"),),
    "nodes": tuple(Remedy(cause, _MORE_NODES) for cause in _QUEUEING),
}
"""The keys that address causes of delay."""
