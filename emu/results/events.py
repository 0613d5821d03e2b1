"""``events.parquet``: what happened in a run, a row for each message that arrived and for what happens in an actor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu import disk
from emu.columns import columns_of, null_unless, schema_of
from workloads.arrow import from_numpy
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.hosting.recorded import Events
    from actors.hosting.recording import Recording
    from actors.setting import Setting

COLUMNS = columns_of("""
    time_ns  int  ns When the message arrived at its receiver, or when it happened.
    kind     word -  Kind of the message, or of what happened: `START`, `BYPASS`, …
    sender   int  -  The actor that sent it: nodes from 0, then schedulers.
    receiver int  -  The actor that received it.
    node     int? -  The node of the two; null between schedulers. Of two nodes the receiver.
    job      int? -  The job, or coflow, that it names: its row in their table, from 0. Null for messages of agents and
          coordinators of a network of DAG jobs.
    task     int? -  The task, or flow, that it names, from 0 over all in workload order. Null for flows between tasks
          of DAG jobs, which are not in the workload.
    left_ns  int? ns When it left its sender; null for a message of an actor to itself.
    queued   int  -  Entries that waited in the receiver's queue when it arrived.
    number   int? -  Its place among the messages of its sender.
    sent     int  -  Messages that the receiver had sent before. A message was sent during the last event of its sender
          whose `sent` is at most its `number`.
    b        int  -  The second number of the message, by its kind; times in ns.
    c        int  -  The third.
    d        int  -  The fourth.
""")
SCHEMA = schema_of(COLUMNS)


def read_events(path: Path) -> pa.Table:
    """Return the content of ``events.parquet``.

    Raises
    ------
    InputError
        It cannot be read, or a column is missing, repeated, of another type, or null where it must not be.
    """
    table = disk.read_table(path, {column.name: column.type for column in COLUMNS})
    for column in COLUMNS:
        if not column.nullable and table[column.name].null_count:
            raise InputError("is null in some rows", file=path, field=column.name)
    return table


def batches(
    recording: Recording, setting: Setting, kept: npt.NDArray[np.int64] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the events that partitions have recorded, in order; if jobs are `kept`, only theirs."""
    from actors.hosting.recorded import read_events

    nodes = setting.cluster.num_nodes
    wanted = None
    if kept is not None:
        wanted = np.zeros(setting.num_jobs, bool)
        wanted[kept] = True
    for events in read_events(recording, setting):
        if wanted is not None:
            mine = (events.job >= 0) & wanted[events.job]
            events = type(events)(*(values[mine] for values in events))
        yield _batch(events, nodes)


def _batch(events: Events, nodes: int) -> pa.RecordBatch:
    from actors.hosting.recorded import RECORDED

    numbers, names = list(RECORDED), [kind.name for kind in RECORDED.values()]
    places = np.zeros(max(numbers) + 1, np.int32)
    places[numbers] = np.arange(len(numbers))
    kinds = pa.DictionaryArray.from_arrays(from_numpy(places[events.kind]), pa.array(names))
    node = np.where(
        events.receiver < nodes, events.receiver, np.where(events.sender < nodes, events.sender, -1)
    )
    own: dict[str, Any] = {
        "time_ns": from_numpy(events.time),
        "kind": kinds,
        "node": null_unless(node >= 0, node),
        "left_ns": null_unless(events.left >= 0, events.left),
    }
    for name in ("job", "task", "number"):
        values = getattr(events, name)
        own[name] = null_unless(values >= 0, values)
    columns = [own[c.name] if c.name in own else from_numpy(getattr(events, c.name)) for c in COLUMNS]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
