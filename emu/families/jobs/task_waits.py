"""How each task of a run waited: when it joined the queue of its node, what ran there before it, probes of its job.

All tasks at once, from the events of a run. Events carry no number of a queue's entry: probes of a job in one queue do
not differ, so the first that came is the first that goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import equals_text, make_table, null_unless
from emu.explaining.causes_text import of_config
from emu.explaining.event_blocks import records_by_block
from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.families.jobs.columns import FURTHER_TASKS, TASKS
from emu.results.slot_numbers import slot_numbers

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from emu.configuration.plan import Plan
    from emu.results.result import Result

BOUND = ("PLACED", "OFFERED")
"""The kinds of messages that bring a task that is bound to the node."""
KINDS = ("START", "PROBE", *BOUND, "MOVE", "TASK", "NO_TASK", "REQUEST", "REJECTED", "LOST", "DONE")
TASKS_A_BLOCK = 200_000
FIELDS = ("time_ns", "sender", "receiver", "job", "task", "left_ns", "number", "b", "d")


class Starts(NamedTuple):
    """The tasks that started, in order; one that was lost with its node starts again.

    Attributes
    ----------
    task, node, start_ns : ndarray of int64, shape (n,)
        The task from 0 over all in workload order, and its node.
    enqueued_ns : ndarray of int64, shape (n,)
        When the task, or its probe, joined the queue of the node; of a sticky probe, when the task before it ended;
        -1: unknown.
    """

    task: IntArray
    node: IntArray
    start_ns: IntArray
    enqueued_ns: IntArray


class Ran(NamedTuple):
    """The tasks that ran to their end: ndarrays of int64, shape (n,)."""

    node: IntArray
    start_ns: IntArray
    finish_ns: IntArray


def sticky_jobs(result: Result) -> BoolArray:
    """Return of which jobs the probes are sticky: one stays in its queue until its job has no task left."""
    of_policy = of_config(result, "parameters", result.summary["policy"], {})
    # Those of a variant stand under its own name.
    parameters = of_config(result, "parameters", result.summary["scheduler"], of_policy)
    return equals_text(result.jobs, "job_class", "short") & bool(parameters.get("sticky", False))


def starts_of(events: Record, num_nodes: int, is_sticky: BoolArray) -> Starts:
    """Return the tasks that started, and when each had joined the queue of its node.

    Parameters
    ----------
    events : Record
        All of some jobs, in order.
    num_nodes : int
        Actors below it are nodes.
    is_sticky : ndarray of bool, shape (num_jobs,)
        Whether the probes of a job are sticky (`sticky_jobs`).
    """
    e = events
    starts = np.flatnonzero(e.is_kind("START"))
    sent = np.flatnonzero(e.is_kind("TASK", *BOUND))
    bound = e.task * num_nodes + e.receiver  # a task and a node
    brought = latest(bound[sent], sent, bound[starts], starts)
    brought = np.where(brought == NONE, NONE, sent[brought])

    enqueued = np.where(brought == NONE, NONE, e.time_ns[brought])
    late = np.flatnonzero((brought != NONE) & e.is_kind("TASK")[brought])  # bound late: its probe had joined
    requests = np.flatnonzero(e.is_kind("REQUEST"))
    # The last request of the node for the job that had arrived when the scheduler sent the task.
    arrived = np.searchsorted(e.time_ns, e.left_ns[brought[late]], "right") - 1
    asked = latest(
        e.job[requests] * num_nodes + e.sender[requests],
        requests,
        e.job[starts[late]] * num_nodes + e.receiver[starts[late]],
        np.minimum(arrived, brought[late]),
    )
    joined = _joined_ns(e, requests, num_nodes, is_sticky)
    enqueued[late] = np.where(asked == NONE, NONE, joined[asked])
    return Starts(e.task[starts], e.receiver[starts], e.time_ns[starts], enqueued)


def _joined_ns(e: Record, requests: IntArray, num_nodes: int, is_sticky: BoolArray) -> IntArray:
    """Return when the probe joined its node's queue of which each request was sent."""
    enters = np.flatnonzero(e.is_kind("PROBE", "MOVE") & (e.receiver < num_nodes))
    enters = enters[~_refused(e, enters, num_nodes)]
    queue = e.job[enters] * num_nodes + e.receiver[enters]
    mine, left = e.job[requests] * num_nodes + e.sender[requests], e.left_ns[requests]
    sticky = is_sticky[e.job[requests]]
    index = _index(queue, e.time_ns[enters])
    gone = np.empty(requests.size, np.int64)  # how many probes of the job had left the queue
    gone[sticky] = _dropped(e, index, mine[sticky], left[sticky], num_nodes)
    gone[~sticky] = _departed(e, requests, num_nodes)[~sticky]
    begin, end = _until(index, mine, left)
    joined = np.full(requests.size, NONE)
    known = end > begin
    joined[known] = e.time_ns[enters[index.order[np.minimum(begin + gone, end - 1)[known]]]]
    if sticky.any():  # it waits again when a task of its job has ended here
        done = np.flatnonzero(e.is_kind("DONE"))
        finish_ns = e.field("finish", done)
        ended = latest(e.job[done] * num_nodes + e.sender[done], finish_ns, mine, left)
        again = sticky & (ended != NONE)
        joined[again] = np.maximum(joined[again], finish_ns[ended[again]])
    return joined


def _departed(e: Record, requests: IntArray, num_nodes: int) -> IntArray:
    """Return how many probes of its job had left a node's queue before each request did."""
    moved = e.is_kind("MOVE")
    goes = e.is_kind("REQUEST", "PROBE") | (e.is_kind("LOST") & (e.task == NONE))
    goes &= (e.sender < num_nodes) & (e.left_ns >= 0)
    leaves = np.flatnonzero(goes | moved)
    node = np.where(moved, e.field("from_node"), e.sender)[leaves]
    left_ns = np.where(moved, e.time_ns, e.left_ns)[leaves]
    nth = np.empty(len(e), np.int64)
    nth[leaves] = _place_in_group(e.job[leaves] * num_nodes + node, e.number[leaves], left_ns)
    return nth[requests]


def _dropped(e: Record, entered: _Index, mine: IntArray, left_ns: IntArray, num_nodes: int) -> IntArray:
    """Return how many sticky probes had left a queue at a time: all that had come when their job had no task left."""
    answers, losses = e.is_kind("NO_TASK"), e.is_kind("LOST") & (e.task == NONE)
    drops = np.flatnonzero(answers | losses)
    at_ns = np.where(answers, e.time_ns, e.left_ns)[drops]
    where = e.job[drops] * num_nodes + np.where(answers, e.receiver, e.sender)[drops]
    last = latest(where, at_ns, mine, left_ns)
    until_ns = np.where(last == NONE, -1, at_ns[last]) if drops.size else np.full(mine.size, -1)
    return _count_until(entered, mine, until_ns)


def _refused(e: Record, enters: IntArray, num_nodes: int) -> BoolArray:
    """Return which probes a node refused when they came, so that they did not join its queue."""
    refusals = np.flatnonzero(e.is_kind("REJECTED"))
    if refusals.size == 0:
        return np.zeros(enters.size, bool)
    at_ns, left_ns = e.time_ns[enters], e.left_ns[refusals]
    found = latest(
        e.job[refusals] * num_nodes + e.sender[refusals],
        left_ns,
        e.job[enters] * num_nodes + e.receiver[enters],
        at_ns,
    )
    return (found != NONE) & (left_ns[found] == at_ns)


def ahead_of(
    ran: Ran, node: IntArray, enqueued_ns: IntArray, start_ns: IntArray
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return how many tasks ran on a node while others waited there, and how long they ran in that time.

    Parameters
    ----------
    ran : Ran
        All tasks that ran.
    node, enqueued_ns, start_ns : ndarray of int64, shape (k,)
        Of those that waited.

    Returns
    -------
    count : ndarray of int64, shape (k,)
    work_ns : ndarray of float64, shape (k,)
        The exact time, rounded. Both are 0 for what did not wait.
    """
    begun, ended = _index(ran.node, ran.start_ns), _index(ran.node, ran.finish_ns)
    count = _count_until(begun, node, start_ns - 1) - _count_until(ended, node, enqueued_ns)
    # What a node did in a span: the time that passed for each task that had begun, less for each that had ended.
    work_ns, about_ns = (
        _passed(begun, ran.start_ns.astype(kind), node, enqueued_ns, start_ns)
        - _passed(ended, ran.finish_ns.astype(kind), node, enqueued_ns, start_ns)
        for kind in (np.int64, np.float64)
    )
    # The first is exact modulo 2**64, and the second tells how many times that is to be added.
    work_ns = work_ns + np.rint((about_ns - work_ns) / 2.0**64) * 2.0**64
    waited = start_ns > enqueued_ns
    return np.where(waited, count, 0), np.where(waited, work_ns, 0.0)


def add_waits(
    plan: Plan, result: Result, outcome: Outcome, events: Iterator[pa.RecordBatch], chosen: IntArray | None
) -> None:
    """Add to the table of tasks of a result, if it has one, how each task waited: ``FURTHER_TASKS``.

    Parameters
    ----------
    chosen : ndarray of int64 or None
        The jobs of which there are events; None: all.
    """
    if result.tasks is None:
        return
    assert outcome.tasks is not None
    num_nodes, arrays = plan.cluster.num_nodes, plan.workload.arrays()
    node, start_ns, finish_ns = (outcome.tasks[name] for name in ("node", "start_ns", "finish_ns"))
    job = np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_task))
    is_known = np.isin(job, chosen) if chosen is not None else np.ones(job.size, bool)
    is_sticky = sticky_jobs(result)
    enqueued_ns, probes, count, slot = np.full((4, node.size), NONE)
    work_ns = np.zeros(node.size)
    for events_of_jobs in records_by_block(events, arrays.first_task[:-1] // TASKS_A_BLOCK, KINDS, FIELDS):
        starts = starts_of(events_of_jobs, num_nodes, is_sticky)
        # Not those that were lost with their node: the table has the last start of each task.
        kept = (node[starts.task] == starts.node) & (start_ns[starts.task] == starts.start_ns)
        tasks = starts.task[kept]
        enqueued_ns[tasks] = starts.enqueued_ns[kept]
        sent = events_of_jobs.is_kind("PROBE") & (events_of_jobs.sender >= num_nodes)
        index = _index(events_of_jobs.job[sent], events_of_jobs.left_ns[sent])
        probes[tasks] = _count_until(index, job[tasks], start_ns[tasks])
    ended = finish_ns >= 0
    ran = Ran(node[ended], start_ns[ended], finish_ns[ended])
    slot[ended] = slot_numbers(*ran)
    slot[~is_known] = NONE
    waited = enqueued_ns != NONE
    count[waited], work_ns[waited] = ahead_of(ran, node[waited], enqueued_ns[waited], start_ns[waited])
    further = {
        "slot": null_unless(slot != NONE, slot),
        "enqueued_s": null_unless(waited, enqueued_ns / 1e9),
        "ahead": null_unless(waited, count),
        "ahead_s": null_unless(waited, work_ns / 1e9),
        "probes_sent": null_unless(probes != NONE, probes),
    }
    before = {name: result.tasks[name].combine_chunks() for name in result.tasks.column_names}
    result.tables["tasks"] = make_table(TASKS + FURTHER_TASKS, before | further)


class _Index(NamedTuple):
    """Keys in order by group."""

    order: IntArray
    places: IntArray
    keys: IntArray


def _index(group: IntArray, key: IntArray) -> _Index:
    keys, rank = np.unique(key, return_inverse=True)
    places = group * (keys.size + 1) + rank
    order = np.argsort(places, kind="stable")
    return _Index(order, places[order], keys)


def _until(index: _Index, group: IntArray, key: IntArray) -> tuple[IntArray, IntArray]:
    """Return where in the order those of a group begin, and those of it that are above a key."""
    base = group * (index.keys.size + 1)
    end = np.searchsorted(index.places, base + np.searchsorted(index.keys, key, "right"))
    return np.searchsorted(index.places, base), end


def latest(group: IntArray, key: IntArray, at_group: IntArray, at_key: IntArray) -> IntArray:
    """Return which of a group has the largest key that is not above another one; the last of equal ones, -1: none."""
    index = _index(group, key)
    begin, end = _until(index, at_group, at_key)
    found = np.full(at_group.size, NONE)
    found[end > begin] = index.order[end[end > begin] - 1]
    return found


def _count_until(index: _Index, group: IntArray, key: IntArray) -> IntArray:
    """Return how many of a group have a key that is not above another one."""
    begin, end = _until(index, group, key)
    return end - begin


def _passed(
    index: _Index, time_ns: npt.NDArray[Any], group: IntArray, from_ns: IntArray, until_ns: IntArray
) -> npt.NDArray[Any]:
    """Return the time that passed in a span since those of a group, summed over them.

    Of the type of `time_ns`: int64 modulo 2**64, as are its terms, or float64.
    """
    sums = np.concatenate([np.zeros(1, time_ns.dtype), np.cumsum(time_ns[index.order])])
    passed = np.zeros(group.size, time_ns.dtype)
    for sign, at_ns in ((1, until_ns), (-1, from_ns)):
        begin, end = _until(index, group, at_ns)
        passed += sign * ((end - begin) * at_ns.astype(time_ns.dtype) - (sums[end] - sums[begin]))
    return passed


def _place_in_group(group: IntArray, *keys: IntArray) -> IntArray:
    """Return the place of each in its group in order of keys, of which the last counts first."""
    order = np.lexsort((*keys, group))
    ordered = group[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: order.size]
    here = np.arange(order.size)
    place = np.empty(order.size, np.int64)
    place[order] = here - np.maximum.accumulate(np.where(is_first, here, 0))
    return place
