"""What tasks of DAG jobs fetched over the network, computed again from the table of tasks and the bytes on edges.

Tasks of a stage that are launched on one machine at one instant fetch together, until all of them have their input
(`actors.transfers.fetches`); or where shuffles are pushed those to which input is sent there from one instant on. The
table has both times. It does not have when each flow of a fetch ended, so that bytes
within a part of that time are counted as if every fetch had sent evenly: what a task of a parent sends from its end on,
where the fetch began before that (`network.registration=pipelined`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from emu.explaining.event_record import NONE, IntArray
from emu.explaining.explanation import NS
from emu.explaining.spans import overlap_ns, whole
from emu.results.metrics import Float64Array
from workloads.arrow import optional_column

if TYPE_CHECKING:
    from workloads.dag_arrays import DagArrays


class Fetches(NamedTuple):
    """Fetches in order of stage, machine and time: ndarrays of int64, shape (F,) where no other is given.

    Attributes
    ----------
    stage : from 0 over all in workload order
    node : the machine that receives
    begin_ns, end_ns : from when their input was sent, and when they had all of it
    tasks : how many they are
    of_task : shape (T,), the fetch of each task; -1 of those that needed no input
    """

    stage: IntArray
    node: IntArray
    begin_ns: IntArray
    end_ns: IntArray
    tasks: IntArray
    of_task: IntArray


class Ran(NamedTuple):
    """Of each task of a run: ndarrays, shape (T,).

    Attributes
    ----------
    node : where it ran
    part : what it needs of a shuffle, in means of the tasks of its stage
    origin : from which machine it read its part of the job's input; -1: from none
    finish_ns : when it ended; None: no fetch began before all that it fetches was there
    """

    node: IntArray
    part: Float64Array
    origin: IntArray
    finish_ns: IntArray | None = None


class Flows(NamedTuple):
    """What crosses the network: ndarrays, shape (n,), a row for each fetch, edge, machine that sends, and begin.

    Attributes
    ----------
    fetch, source, size_bytes : of which fetch it is, the machine that sends, and how much
    begin_ns : when it became known
    """

    fetch: IntArray
    source: IntArray
    size_bytes: Float64Array
    begin_ns: IntArray


def sent_of(table: pa.Table) -> IntArray:
    """Return when the input of each task began to be sent to its machine before it was launched, ns; -1: it was not."""
    if "sent_s" not in table.column_names:
        return np.full(table.num_rows, NONE)
    return whole(optional_column(table, "sent_s"), NS)


def fetches_of(stage: IntArray, node: IntArray, begin_ns: IntArray, fetched_ns: IntArray) -> Fetches:
    """Return the fetches of a run that has ended, so that none is under way.

    Parameters
    ----------
    stage, node, begin_ns, fetched_ns : ndarray of int64, shape (T,)
        Of each task of the workload: its input was sent from ``begin_ns`` on, at its launch unless it was pushed;
        ``fetched_ns`` is -1 where it needed none. What took no time is no fetch.
    """
    of_task, tasks = np.full(stage.size, NONE), np.flatnonzero(fetched_ns > begin_ns)
    keys, first, of, count = np.unique(
        np.stack([stage, node, begin_ns])[:, tasks],
        axis=1,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    of_task[tasks] = of.ravel()
    return Fetches(keys[0], keys[1], keys[2], fetched_ns[tasks[first]], count, of_task)


def flows_of(fetches: Fetches, which: IntArray, arrays: DagArrays, ran: Ran) -> Flows:
    """Return what crosses the network for some fetches.

    Parameters
    ----------
    which : ndarray of int64
        Rows of `fetches`, in rising order.
    arrays : DagArrays
        The workload, with the bytes on its edges.
    """
    found = [Flows(*_NOTHING)]
    stages, begins = np.unique(fetches.stage[which], return_index=True)
    for stage, rows in zip(stages.tolist(), np.split(which, begins[1:]), strict=True):
        for e in range(int(arrays.first_parent[stage]), int(arrays.first_parent[stage + 1])):
            if arrays.parent_bytes[e] > 0:
                over = _copies if arrays.parent_one_to_one[e] else _shuffle
                found.append(over(fetches, rows, stage, e, arrays, ran))
        found.append(_reads(fetches, rows, stage, arrays, ran))
    flows = _joined(found)
    crosses = flows.source != fetches.node[flows.fetch]
    return Flows(*(of[crosses] for of in flows))


def _shuffle(fetches: Fetches, rows: IntArray, stage: int, e: int, arrays: DagArrays, ran: Ran) -> Flows:
    """Return the flows over an all-to-all edge: each task of the parent sends to each task its part."""
    first, parent = arrays.stage_first_task, arrays.parent[e]
    own, theirs = slice(first[stage], first[stage + 1]), slice(first[parent], first[parent + 1])
    pairs = (own.stop - own.start) * (theirs.stop - theirs.start)
    parts = np.bincount(fetches.of_task[own] + 1, ran.part[own], minlength=fetches.tasks.size + 1)[1:]
    if ran.finish_ns is None:
        sources, count = np.unique(ran.node[theirs], return_counts=True)
        size_bytes = arrays.parent_bytes[e] / pairs * count * parts[rows][:, None]
        fetch = np.repeat(rows, sources.size)
        return Flows(fetch, np.tile(sources, rows.size), size_bytes.ravel(), fetches.begin_ns[fetch])
    found = [Flows(*_NOTHING)]
    for row in rows.tolist():
        known_ns = np.maximum(fetches.begin_ns[row], ran.finish_ns[theirs])
        sent, count = np.unique(np.stack([ran.node[theirs], known_ns]), axis=1, return_counts=True)
        size_bytes = arrays.parent_bytes[e] / pairs * count * parts[row]
        found.append(Flows(np.full(count.size, row), sent[0], size_bytes, sent[1]))
    return _joined(found)


_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))


def _joined(found: list[Flows]) -> Flows:
    return Flows(*map(np.concatenate, zip(*found, strict=True)))


def _copies(fetches: Fetches, rows: IntArray, stage: int, e: int, arrays: DagArrays, ran: Ran) -> Flows:
    """Return the flows over a one-to-one edge: task i of the parent sends to task i."""
    first, parent = arrays.stage_first_task, arrays.parent[e]
    sources = ran.node[first[parent] : first[parent + 1]]
    return _apart(fetches, rows, slice(first[stage], first[stage + 1]), sources, arrays.parent_bytes[e])


def _reads(fetches: Fetches, rows: IntArray, stage: int, arrays: DagArrays, ran: Ran) -> Flows:
    """Return the flows of the job's input."""
    own = slice(*arrays.stage_first_task[stage : stage + 2])
    return _apart(fetches, rows, own, ran.origin[own], arrays.input_bytes[stage])


def _apart(fetches: Fetches, rows: IntArray, tasks: slice, sources: IntArray, size_bytes: float) -> Flows:
    """Return the flows where each task of a stage has as much, from a machine of its own."""
    of = fetches.of_task[tasks]
    pairs = np.stack([of, sources])[:, np.isin(of, rows) & (sources >= 0)]
    (fetch, sender), count = np.unique(pairs, axis=1, return_counts=True)
    each: Float64Array = np.full(count.size, size_bytes / of.size)
    return Flows(fetch, sender, each * count, fetches.begin_ns[fetch])


def evenly(fetches: Fetches, flows: Flows, begin_ns: int, end_ns: int) -> Float64Array:
    """Return the bytes of each flow within a span of time, if it was sent evenly until its fetch ended."""
    begins, ends = flows.begin_ns, fetches.end_ns[flows.fetch]
    within: Float64Array = overlap_ns(begins, ends, begin_ns, end_ns) / np.maximum(ends - begins, 1)
    return flows.size_bytes * within
