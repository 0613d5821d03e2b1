"""The queueing of jobs, by the class of the jobs whose tasks ran on their node meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emu.columns import equals_text
from emu.explaining.causes_text import Remedy, sum_by_cause
from emu.explaining.event_record import BoolArray, Handled, IntArray, Record
from emu.families.jobs.causes import chain_of, meanings_of
from emu.families.jobs.explain import submits_ns
from emu.families.jobs.slot_holders import lost_runs
from emu.families.jobs.task_waits import Ran, ahead_of, sticky_jobs
from emu.results.result import Result

LONG, SHORT, OTHER = "behind long tasks", "behind short tasks", "other queueing"
"""The parts of ``queueing``: while tasks of long, or of short jobs ran on the node where the job waited; and the rest,
such as the wait at a scheduler for a node."""


def finer_causes_of_all(
    result: Result, record: Record, handled: Handled | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield what `causes_of_all` yields, with `LONG`, `SHORT` and `OTHER` in place of ``queueing``.

    On a node with several slots the wait is divided in proportion to how long tasks of each class ran there.
    """
    submit_ns, nodes, is_sticky = submits_ns(result), result.summary["nodes"], sticky_jobs(result)
    meanings = meanings_of(result)
    found: list[tuple[int, dict[str, int]]] = []
    waits: list[tuple[int, int, int, int]] = []
    for job, events in record.by_job():
        if steps := chain_of(events, nodes, submit_ns[job], handled, bool(is_sticky[job])):
            found.append((job, sum_by_cause(steps, meanings)))
            waits += [
                (len(found) - 1, s.actor, s.begin_ns, s.end_ns)
                for s in steps
                if s.cause == "queueing" and 0 <= s.actor < nodes and s.end_ns > s.begin_ns
            ]
    place, *span = np.array(waits, np.int64).reshape(-1, 4).T
    is_long = equals_text(result.jobs, "job_class", "long")
    behind = np.zeros((2, len(found)), np.int64)
    for of_class, parts in zip(behind, _shares(record, is_long, *span), strict=True):
        np.add.at(of_class, place, parts)
    for (job, causes), long_ns, short_ns in zip(found, *behind.tolist(), strict=True):
        yield job, _split(causes, long_ns, short_ns)


def _split(causes: dict[str, int], long_ns: int, short_ns: int) -> dict[str, int]:
    """Return causes in their order, with the parts of ``queueing`` in its place."""
    parts: dict[str, int] = {}
    for name, ns in causes.items():
        parts |= (
            {LONG: long_ns, SHORT: short_ns, OTHER: ns - long_ns - short_ns}
            if name == "queueing"
            else {name: ns}
        )
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


_MORE_NODES = Remedy("nodes", "more of them, or a lower load, shorten queues under any scheduler")
REMEDIES = {
    LONG: (
        Remedy(
            "long_partition",
            "keeps long tasks off the rest of the nodes",
            ("hawk", "eagle", "yacc-d"),
            "short",
        ),
        Remedy(
            "reprobe_rounds",
            "nodes with long work reject probes, which are sent again",
            ("eagle", "phoenix"),
            "short",
        ),
        Remedy("steal_attempts", "idle nodes take probes from behind long work", ("hawk",), "short"),
        _MORE_NODES,
    ),
    SHORT: (
        Remedy("probe_ratio", "more probes for each task find shorter queues", ("sparrow", "hawk", "eagle")),
        Remedy("shortest_first", "nodes serve the job with the least work left first", ("eagle", "dist-lwl")),
        _MORE_NODES,
    ),
    OTHER: (_MORE_NODES,),
    "preemption": (
        Remedy("preemption.mode", "with checkpoints what was done is kept"),
        Remedy("preemption.most", "how often a task is evicted"),
        Remedy("preemption.below", "tasks of this priority and above are not evicted"),
    ),
    "network": (Remedy("network.delay", "the time of each message"),),
    "decision": (
        Remedy("schedulers", "more of them share the jobs", ("sparrow", "hawk", "eagle")),
        Remedy("cost.per_message", "what a message costs a scheduler, with the other keys of cost"),
    ),
    "failure": (
        Remedy("dynamics.detection", "how long a failure stays unknown"),
        Remedy("dynamics.mtbf", "how rarely nodes fail"),
    ),
}
"""What addresses each cause of delay."""
