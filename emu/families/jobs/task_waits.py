"""The wait of each task of a run: when it joined the queue of its node, what ran there before it, probes of its job.

All tasks at once, from the events of a run. Events do not identify entries of a queue: probes of a job in one queue are
alike, so that the first that joined is the first that leaves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import equals_text, make_table, null_unless
from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.explained_run import parameters_of
from emu.explaining.spans import Held
from emu.families.jobs.results import FURTHER_TASKS, TASKS
from emu.results.slot_numbers import slot_numbers

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from emu.configuration.plan import Plan
    from emu.results.result import Result

BOUND = ("PLACED", "OFFERED")
"""The kinds of messages that bring a task bound to the node."""
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


def sticky_jobs(result: Result) -> BoolArray:
    """Return which jobs have sticky probes, which stay in their queue until no task of the job is left."""
    is_sticky = bool(parameters_of(result).get("sticky", False))
    return equals_text(result.jobs, "job_class", "short") & is_sticky


def starts_of(events: Record, num_nodes: int, is_sticky: BoolArray) -> Starts:
    """Return the tasks that started, and when each joined the queue of its node.

    Parameters
    ----------
    events : Record
        All events of some jobs, in order.
    num_nodes : int
        Actors below it are nodes.
    is_sticky : ndarray of bool, shape (num_jobs,)
        Whether the probes of a job are sticky (`sticky_jobs`).
    """
    e = events
    starts = np.flatnonzero(e.is_kind("START"))
    sent = np.flatnonzero(e.is_kind("TASK", *BOUND))
    bound = e.task * num_nodes + e.receiver  # a task and a node
    brought = latest_key(bound[sent], sent, bound[starts], starts)
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
    joined = _waits_since(e, requests, num_nodes, is_sticky[e.job[requests]])
    enqueued[late] = np.where(asked == NONE, NONE, joined[asked])
    return Starts(e.task[starts], e.receiver[starts], e.time_ns[starts], enqueued)


def _waits_since(e: Record, requests: IntArray, num_nodes: int, sticky: BoolArray) -> IntArray:
    """Return since when the probe for which each request was sent waited at its node."""
    rows = joined_with(e, requests, num_nodes, sticky)
    since = np.where(rows == NONE, NONE, e.time_ns[rows])
    if not sticky.any():
        return since
    # It waits again when a task of its job has ended here.
    done = np.flatnonzero(e.is_kind("DONE"))
    where, mine = (e.job[of] * num_nodes + e.sender[of] for of in (done, requests))
    ended = latest_key(where, e.field("finish", done), mine, e.left_ns[requests])
    return np.where(sticky, np.maximum(since, ended), since)


def joined_with(e: Record, rows: IntArray, num_nodes: int, sticky: BoolArray) -> IntArray:
    """Return the event with which the probe joined its node's queue that each message of a node is about; -1: unknown.

    Probes of a job in one queue are alike: the first that joined is the first that leaves.

    Parameters
    ----------
    rows : ndarray of int64, shape (k,)
        Messages of nodes about probes that leave their queues.
    sticky : ndarray of bool, shape (k,)
        Whether the probe stays until it comes when no task is left.
    """
    enters = np.flatnonzero(e.is_kind("PROBE", "MOVE") & (e.receiver < num_nodes))
    enters = enters[~_refused(e, enters, num_nodes)]
    index = _index(e.job[enters] * num_nodes + e.receiver[enters], e.time_ns[enters])
    mine, left = e.job[rows] * num_nodes + e.sender[rows], e.left_ns[rows]
    gone = np.empty(rows.size, np.int64)  # how many probes of the job had left the queue
    gone[sticky] = _dropped(e, index, mine[sticky], left[sticky], num_nodes)
    gone[~sticky] = _departed(e, rows[~sticky], num_nodes)
    begin, end = _until(index, mine, left)
    joined, known = np.full(rows.size, NONE), end > begin
    joined[known] = enters[index.order[np.minimum(begin + gone, end - 1)[known]]]
    return joined


def _departed(e: Record, rows: IntArray, num_nodes: int) -> IntArray:
    """Return how many probes of its job had left a node's queue before each message did."""
    moved = e.is_kind("MOVE")
    goes = e.is_kind("REQUEST", "PROBE") | (e.is_kind("LOST") & (e.task == NONE))
    goes &= (e.sender < num_nodes) & (e.left_ns >= 0)
    goes[rows] = True
    leaves = np.flatnonzero(goes | moved)
    node = np.where(moved, e.field("from_node"), e.sender)[leaves]
    left_ns = np.where(moved, e.time_ns, e.left_ns)[leaves]
    nth = np.empty(len(e), np.int64)
    nth[leaves] = _place_in_group(e.job[leaves] * num_nodes + node, e.number[leaves], left_ns)
    return nth[rows]


def _dropped(e: Record, entered: _Index, mine: IntArray, left_ns: IntArray, num_nodes: int) -> IntArray:
    """Return how many sticky probes had left a queue at a time: those that had come when no task was left."""
    answers, losses = e.is_kind("NO_TASK"), e.is_kind("LOST") & (e.task == NONE)
    drops = np.flatnonzero(answers | losses)
    at_ns = np.where(answers, e.time_ns, e.left_ns)[drops]
    where = e.job[drops] * num_nodes + np.where(answers, e.receiver, e.sender)[drops]
    return _count_until(entered, mine, latest_key(where, at_ns, mine, left_ns))


def _refused(e: Record, enters: IntArray, num_nodes: int) -> BoolArray:
    """Return which probes a node refused, so that they did not join its queue."""
    refusals, at_ns = np.flatnonzero(e.is_kind("REJECTED")), e.time_ns[enters]
    where = e.job[refusals] * num_nodes + e.sender[refusals]
    found = latest_key(where, e.left_ns[refusals], e.job[enters] * num_nodes + e.receiver[enters], at_ns)
    return np.asarray(found == at_ns)


def ahead_of(
    ran: Held, node: IntArray, enqueued_ns: IntArray, start_ns: IntArray
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return how many tasks ran on a node while others waited there, and how long they ran in that time.

    Parameters
    ----------
    ran : Held
        All tasks that ran to an end.
    node, enqueued_ns, start_ns : ndarray of int64, shape (k,)
        Of the tasks that waited.

    Returns
    -------
    count : ndarray of int64, shape (k,)
    work_ns : ndarray of float64, shape (k,)
        Exact, then rounded. Both are 0 for a task that did not wait.
    """
    begun, ended = _index(ran.node, ran.begin_ns), _index(ran.node, ran.end_ns)
    count = _count_until(begun, node, start_ns - 1) - _count_until(ended, node, enqueued_ns)
    # Work in a span: the time that passed since each task began, less the time that passed since each ended.
    work_ns, about_ns = (
        _passed(begun, ran.begin_ns.astype(kind), node, enqueued_ns, start_ns)
        - _passed(ended, ran.end_ns.astype(kind), node, enqueued_ns, start_ns)
        for kind in (np.int64, np.float64)
    )
    # The first is exact modulo 2**64; the second tells how often to add 2**64.
    work_ns = work_ns + np.rint((about_ns - work_ns) / 2.0**64) * 2.0**64
    waited = start_ns > enqueued_ns
    return np.where(waited, count, 0), np.where(waited, work_ns, 0.0)


def add_waits(
    plan: Plan, result: Result, outcome: Outcome, events: Iterator[pa.RecordBatch], chosen: IntArray | None
) -> None:
    """Add the columns `FURTHER_TASKS` to the table of tasks of a result, if it has one.

    Parameters
    ----------
    chosen : ndarray of int64 or None
        The jobs whose events are recorded; None: all.
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
        # The table has the last start of each task, not those that were lost with a node.
        kept = (node[starts.task] == starts.node) & (start_ns[starts.task] == starts.start_ns)
        tasks = starts.task[kept]
        enqueued_ns[tasks] = starts.enqueued_ns[kept]
        sent = events_of_jobs.is_kind("PROBE") & (events_of_jobs.sender >= num_nodes)
        index = _index(events_of_jobs.job[sent], events_of_jobs.left_ns[sent])
        probes[tasks] = _count_until(index, job[tasks], start_ns[tasks])
    ended = finish_ns >= 0
    ran = Held(job, np.arange(job.size), node, start_ns, finish_ns).rows(ended)
    slot[ended] = slot_numbers(ran.node, ran.begin_ns, ran.end_ns)
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


def records_by_block(
    events: Iterator[pa.RecordBatch], block_of_job: IntArray, kinds: Sequence[str], fields: Sequence[str]
) -> Iterator[Record]:
    """Yield the events of each block of jobs, in order; they are kept in temporary files until then.

    Parameters
    ----------
    events : iterator of pyarrow.RecordBatch
        With the columns of ``events.parquet``.
    block_of_job : ndarray of int64, shape (num_jobs,)
        The block of each job, from 0.
    kinds, fields : sequence of str
        The kinds of events and the fields that are kept; ``job`` must be among the fields.
    """
    row = np.dtype([("code", np.int64), *((name, np.int64) for name in fields)])
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(int(block_of_job.max()) + 1)]
        for batch in events:
            record = Record.of(pa.Table.from_batches([batch]))
            record = record.rows(np.flatnonzero(record.is_kind(*kinds) & (record.job != NONE)))
            rows = np.empty(len(record), row)
            for code, kind in enumerate(kinds):
                rows["code"][record.is_kind(kind)] = code
            for name in fields:
                rows[name] = getattr(record, name)
            blocks = block_of_job[rows["job"]]
            for block in np.unique(blocks).tolist():
                rows[blocks == block].tofile(files[block])
        for file in files:
            file.seek(0)
            rows = np.fromfile(file, row)
            yield Record(
                rows["code"], list(kinds), {name: np.ascontiguousarray(rows[name]) for name in fields}
            )
            file.truncate(0)


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
    """Return where in the order a group begins, and where its part above a key begins."""
    base = group * (index.keys.size + 1)
    end = np.searchsorted(index.places, base + np.searchsorted(index.keys, key, "right"))
    return np.searchsorted(index.places, base), end


def latest(group: IntArray, key: IntArray, at_group: IntArray, at_key: IntArray) -> IntArray:
    """Return the last member of a group with the largest key up to a key; -1 if there is none."""
    index = _index(group, key)
    begin, end = _until(index, at_group, at_key)
    found = np.full(at_group.size, NONE)
    found[end > begin] = index.order[end[end > begin] - 1]
    return found


def latest_key(group: IntArray, key: IntArray, at_group: IntArray, at_key: IntArray) -> IntArray:
    """Return the largest key of a group up to a key; -1 if there is none."""
    return np.append(key, NONE)[latest(group, key, at_group, at_key)]


def _count_until(index: _Index, group: IntArray, key: IntArray) -> IntArray:
    """Return how many members of a group have a key up to a key."""
    begin, end = _until(index, group, key)
    return end - begin


def _passed(
    index: _Index, time_ns: npt.NDArray[Any], group: IntArray, from_ns: IntArray, until_ns: IntArray
) -> npt.NDArray[Any]:
    """Return the time that passed in a span since each member of a group, summed over them.

    Of the type of `time_ns`: float64, or int64 modulo 2**64.
    """
    sums = np.concatenate([np.zeros(1, time_ns.dtype), np.cumsum(time_ns[index.order])])
    passed = np.zeros(group.size, time_ns.dtype)
    for sign, at_ns in ((1, until_ns), (-1, from_ns)):
        begin, end = _until(index, group, at_ns)
        passed += sign * ((end - begin) * at_ns.astype(time_ns.dtype) - (sums[end] - sums[begin]))
    return passed


def _place_in_group(group: IntArray, *keys: IntArray) -> IntArray:
    """Return the place of each member in its group, in order of the last key, then of the one before."""
    order = np.lexsort((*keys, group))
    ordered = group[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: order.size]
    here = np.arange(order.size)
    place = np.empty(order.size, np.int64)
    place[order] = here - np.maximum.accumulate(np.where(is_first, here, 0))
    return place
