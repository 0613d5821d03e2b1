"""The queueing of jobs, by the class of the jobs whose tasks ran on their node meanwhile."""

from __future__ import annotations

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
from emu.columns import equals_text
from emu.explaining.causes_text import sum_by_cause
from emu.explaining.event_record import BoolArray, Handled, IntArray, Record
from emu.explaining.explained_plan import plan_of
from emu.families.jobs.causes import chain_of, meanings_of
from emu.families.jobs.explain import submits_ns
from emu.families.jobs.metrics import has_classes
from emu.families.jobs.slot_holders import lost_runs, runs_of
from emu.families.jobs.task_waits import Ran, ahead_of, sticky_jobs
from emu.families.jobs.waits_by_reason import Held
from emu.results.result import Result


def finer_causes_of_all(
    result: Result, record: Record, handled: Handled | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield what `causes_of_all` yields, with parts (`actors.causes`) in place of ``queueing``.

    These are `BEHIND_LONG` and `BEHIND_SHORT`, or `BEHIND_TASKS`, and `OTHER_QUEUEING`. On a node with several slots
    the wait is divided in proportion to how long tasks of each class ran there. Where tasks hold resources,
    `BEHIND_UNFIT` and `FOR_LOWER` come before that; they are 0 where the inputs of the run have changed.
    """
    submit_ns, nodes, is_sticky = submits_ns(result), result.summary["nodes"], sticky_jobs(result)
    meanings = meanings_of(result)
    found: list[tuple[int, dict[str, int]]] = []
    waits: list[tuple[int, int, int, int]] = []
    parts: list[tuple[int, int]] = []
    holds = bool(result.summary["jobs"].get("used"))
    held = Held(result, runs_of(record)) if holds and plan_of(result) is not None else None
    for job, events in record.by_job():
        if steps := chain_of(events, nodes, submit_ns[job], handled, bool(is_sticky[job])):
            found.append((job, sum_by_cause(steps, meanings)))
            own = [
                s for s in steps if s.cause == "queueing" and 0 <= s.actor < nodes and s.end_ns > s.begin_ns
            ]
            waits += [(len(found) - 1, s.actor, s.begin_ns, s.end_ns) for s in own]
            parts += [(0, 0) if held is None else held.fitted_and_lower(job, s) for s in own]
    place, *span = np.array(waits, np.int64).reshape(-1, 4).T
    is_long = equals_text(result.jobs, "job_class", "long")
    before, behind = np.array(parts, np.int64).reshape(-1, 2).T, _shares(record, is_long, *span)
    if holds:
        left = span[2] - span[1] - before.sum(axis=0)
        part = left / (span[2] - span[1])
        long_ns = np.minimum((behind[0] * part).astype(np.int64), left)
        behind = (long_ns, np.minimum((behind[1] * part).astype(np.int64), left - long_ns))
    sums = np.zeros((4, len(found)), np.int64)
    for of_part, ns in zip(sums, (*before, *behind), strict=True):
        np.add.at(of_part, place, ns)
    apart = has_classes(result.jobs)
    names = (
        (BEHIND_UNFIT, FOR_LOWER, BEHIND_LONG, BEHIND_SHORT)
        if apart
        else (BEHIND_UNFIT, FOR_LOWER, BEHIND_TASKS)
    )
    sums = sums if apart else np.vstack([sums[:2], sums[2:].sum(axis=0)])
    for (job, causes), *of_job in zip(found, *sums.tolist(), strict=True):
        own_parts = dict(zip(names, of_job, strict=True))
        yield job, _split(causes, own_parts if holds else {name: own_parts[name] for name in names[2:]})


def _split(causes: dict[str, int], queueing: dict[str, int]) -> dict[str, int]:
    """Return causes in their order, with the parts of ``queueing`` in its place."""
    parts: dict[str, int] = {}
    for name, ns in causes.items():
        rest = {OTHER_QUEUEING: ns - sum(queueing.values())}
        parts |= queueing | rest if name == "queueing" else {name: ns}
    return parts


def _shares(
    record: Record, is_long: BoolArray, node: IntArray, begin_ns: IntArray, end_ns: IntArray
) -> tuple[IntArray, IntArray]:
    """Return how much of each wait on a node is due to tasks of long jobs, and to those of short jobs, ns."""
    ran, of_long = _ran(record, is_long)
    of_class = []
    for mine in (of_long, ~of_long):
        own = Ran(*(values[mine] for values in ran))
        of_class.append(ahead_of(own, node, begin_ns, end_ns)[1])
    took = of_class[0] + of_class[1]
    span = end_ns - begin_ns
    share = np.where(took > span, span / np.maximum(took, 1), 1.0)  # several slots ran tasks at the same time
    parts = [np.where(share < 1.0, (part * share).astype(np.int64), part) for part in of_class]
    return parts[0], parts[1]


def _ran(record: Record, is_long: BoolArray) -> tuple[Ran, BoolArray]:
    """Return the tasks that ran on nodes, to their end or until they were lost, and which are of long jobs."""
    done, lost = np.flatnonzero(record.is_kind("DONE")), lost_runs(record)
    ran = Ran(
        np.concatenate([record.sender[done], lost.node]),
        np.concatenate([record.field("start", done), lost.start_ns]),
        np.concatenate([record.field("finish", done), lost.finish_ns]),
    )
    return ran, is_long[np.concatenate([record.job[done], lost.job])]


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
