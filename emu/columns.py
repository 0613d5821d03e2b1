"""The columns of result files: type, unit, meaning, formula; the source of schemas and reference page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import column, from_numpy, to_numpy

SCHEMA_VERSION = 1


class Column(NamedTuple):
    """One column of a result file."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    nullable: bool = False


JOBS = (
    Column("job_id", pa.int64(), "", "The job's id in the workload."),
    Column("submit_s", pa.float64(), "s", "When the job arrived."),
    Column("start_s", pa.float64(), "s", "When its first task started; null if none did.", True),
    Column(
        "finish_s", pa.float64(), "s", "When its last task finished; null if the job did not finish.", True
    ),
    Column("jct_s", pa.float64(), "s", "Job completion time, finish_s - submit_s.", True),
    Column("wait_s", pa.float64(), "s", "Time until the first task started, start_s - submit_s.", True),
    Column(
        "ideal_s",
        pa.float64(),
        "s",
        "Duration of the job's longest task: its completion time on an empty cluster without end and without "
        "network delay.",
    ),
    Column(
        "slowdown", pa.float64(), "", "jct_s / ideal_s; null if ideal_s is 0 or the job did not finish.", True
    ),
    Column("num_tasks", pa.int64(), "", "Tasks of the job."),
    Column("mean_task_s", pa.float64(), "s", "Mean task duration as the workload states it."),
    Column("job_class", pa.string(), "", "`long` if mean_task_s is above the short cut-off, else `short`."),
    Column("constraint", pa.string(), "", "Kind of the job's placement constraint, or null.", True),
    Column("tenant", pa.string(), "", "Who submitted the job, or null.", True),
)
"""``jobs.parquet``: one row per job of the workload, in workload order."""

TIMELINE = (
    Column("time_s", pa.float64(), "s", "Virtual time of the row."),
    Column("utilisation", pa.float64(), "", "Share of all slots that run a task, 0..1."),
    Column("queued_short", pa.int64(), "tasks", "Tasks of short jobs that have arrived and not started."),
    Column("queued_long", pa.int64(), "tasks", "Tasks of long jobs that have arrived and not started."),
    Column("running_short", pa.int64(), "tasks", "Tasks of short jobs that run."),
    Column("running_long", pa.int64(), "tasks", "Tasks of long jobs that run."),
)
"""``timeline.parquet``: one row per `timeline.period` of virtual time."""

LIVE_TIMELINE = (
    Column(
        "backlog",
        pa.int64(),
        "events",
        "Events that were due and not handled when their partition looked for some: the most since the row before, "
        "summed over partitions.",
    ),
    Column("scheduler_backlog", pa.int64(), "events", "The same of partitions with schedulers."),
)
"""What ``timeline.parquet`` has besides with the clock `live`."""

TASKS = (
    Column("job_id", pa.int64(), "", "The task's job."),
    Column("task", pa.int64(), "", "Position of the task in its job, from 0, in workload order."),
    Column("node", pa.int64(), "", "Node that ran the task; null if it did not start.", True),
    Column("start_s", pa.float64(), "s", "When the task started; null if it did not.", True),
    Column("finish_s", pa.float64(), "s", "When the task finished; null if it did not.", True),
    Column("duration_s", pa.float64(), "s", "Duration of the task in the workload."),
)
"""``tasks.parquet``, on request: one row per task, in workload order."""

COSTS = (
    Column(
        "scheduler",
        pa.int64(),
        "",
        "The scheduler: probe schedulers from 0, then the central one, then the listener.",
    ),
    Column("cost_ns", pa.int64(), "ns", "CPU time of its handler for one message."),
)
"""``costs.parquet``, of runs with measured costs: one row per message, by scheduler in the order of handling."""

CRV = (
    Column("time_s", pa.float64(), "s", "When the scheduler's monitor made the row, in virtual time."),
    Column("resource", pa.string(), "", "The attribute of nodes that constraints are on."),
    Column(
        "demand",
        pa.float64(),
        "",
        "Demand for the resource as the monitor knew it: queued tasks that ask for it.",
    ),
    Column("supply", pa.float64(), "", "Supply of the resource: nodes that have what is asked for."),
    Column(
        "crv", pa.float64(), "", "The resource's entry of the Constraint Resource Vector: demand over supply."
    ),
)
"""``crv.parquet``, of schedulers that keep such a table: one row per time and resource."""

COFLOWS = (
    Column("coflow_id", pa.int64(), "", "The coflow's id in the workload."),
    Column("arrival_s", pa.float64(), "s", "When the coflow arrived."),
    Column(
        "finish_s",
        pa.float64(),
        "s",
        "When its last flow ended; null if the coflow did not finish.",
        True,
    ),
    Column("cct_s", pa.float64(), "s", "Coflow completion time, finish_s - arrival_s.", True),
    Column("width", pa.int64(), "flows", "Flows of the coflow."),
    Column("senders", pa.int64(), "ports", "Distinct ingress ports of its flows."),
    Column("receivers", pa.int64(), "ports", "Distinct egress ports of its flows."),
    Column("size_bytes", pa.float64(), "B", "Sum over its flows."),
    Column("weight", pa.float64(), "", "How much the coflow counts."),
    Column(
        "deadline_s", pa.float64(), "s", "When it should end, in absolute time; null for no deadline.", True
    ),
    Column("admitted", pa.bool_(), "", "Whether the scheduler took it on."),
    Column(
        "met_deadline",
        pa.bool_(),
        "",
        "Whether it ended by its deadline; null where there is none.",
        True,
    ),
    Column("start_s", pa.float64(), "s", "When its first flow began to be sent; null if none did.", True),
    Column(
        "ideal_s",
        pa.float64(),
        "s",
        "Completion time were it alone on the switch: bytes over speed of the port where that is most.",
    ),
    Column(
        "slowdown",
        pa.float64(),
        "",
        "cct_s / ideal_s; null if ideal_s is 0 or the coflow did not finish.",
        True,
    ),
    Column(
        "learned_s",
        pa.float64(),
        "s",
        "From its arrival until the scheduler knew what it needs to place it for good: the queue in which it ends, or "
        "its size by its pilot flows. Null where there was nothing to learn, or it was not learned.",
        True,
    ),
    Column("learned_bytes", pa.float64(), "B", "What the coflow had sent by then.", True),
    Column("estimated_bytes", pa.float64(), "B", "Its size as the scheduler estimated it, or null.", True),
)
"""``coflows.parquet``: one row per coflow of the workload, in workload order."""

COFLOW_TIMELINE = (
    Column("time_s", pa.float64(), "s", "Virtual time of the row."),
    Column(
        "utilisation",
        pa.float64(),
        "",
        "Flows that have begun and not ended, over the number of ports; above 1 where flows share ports or pause.",
    ),
    Column("waiting_flows", pa.int64(), "flows", "Flows that have arrived and not begun to be sent."),
    Column("running_flows", pa.int64(), "flows", "Flows that have begun and not ended."),
)
"""``timeline.parquet`` of a run of coflows: one row per `timeline.period` of virtual time."""

FLOWS = (
    Column("coflow_id", pa.int64(), "", "The flow's coflow."),
    Column("flow", pa.int64(), "", "Position of the flow in its coflow, from 0, in workload order."),
    Column("ingress", pa.int64(), "", "Port it enters the switch by."),
    Column("egress", pa.int64(), "", "Port it leaves by."),
    Column("size_bytes", pa.float64(), "B", "What is to be sent."),
    Column("start_s", pa.float64(), "s", "When it began to be sent; null if it did not.", True),
    Column("finish_s", pa.float64(), "s", "When it ended; null if it did not.", True),
)
"""``flows.parquet``, on request: one row per flow, in workload order."""

FILES = {
    "jobs.parquet": JOBS,
    "timeline.parquet": TIMELINE,
    "crv.parquet": CRV,
    "tasks.parquet": TASKS,
    "costs.parquet": COSTS,
}
COFLOW_FILES = {
    "coflows.parquet": COFLOWS,
    "timeline.parquet": COFLOW_TIMELINE,
    "flows.parquet": FLOWS,
}
"""Of runs of coflows, in place of jobs, timeline and tasks."""


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of columns, with units and meanings in the fields' metadata."""
    return pa.schema(
        [
            pa.field(c.name, c.type, nullable=c.nullable, metadata={"unit": c.unit, "description": c.meaning})
            for c in columns
        ],
        metadata={"schema_version": str(SCHEMA_VERSION)},
    )


def make_table(columns: tuple[Column, ...], data: Mapping[str, Any]) -> pa.Table:
    """Return a table of exactly these columns, from Arrow or NumPy arrays by name."""
    arrays = [a if isinstance(a := data[c.name], pa.Array) else from_numpy(a) for c in columns]
    return pa.Table.from_arrays(arrays, schema=schema_of(columns))


# pyarrow's own ways from and to NumPy import pandas: half a second of a run that takes two.


def null_unless(valid: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
    """Return an array that is null where `valid` is false."""
    if valid.all():
        return from_numpy(values)
    plain = from_numpy(np.where(valid, values, 0).astype(values.dtype))
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(plain.type, len(values), [bits, plain.buffers()[1]])


def from_flags(values: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return booleans as an Arrow array, null where `valid` is false."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    known = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [known, bits])


def flags(table: pa.Table, name: str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return a column of booleans, false for null, and which rows are not null."""
    array = table[name].combine_chunks()
    known = to_numpy(array.is_valid().cast(pa.int32())) == 1
    return to_numpy(array.fill_null(False).cast(pa.int32())) == 1, known


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return a numeric column; as float64 with NaN for null, where there are nulls."""
    if not table[name].null_count:
        return column(table, name)
    array = table[name].combine_chunks()
    bits, data = array.buffers()
    end = array.offset + len(array)
    kind = array.type.to_pandas_dtype()
    values = np.frombuffer(data, kind)[array.offset : end].astype(np.float64)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[array.offset : end]
    values[valid == 0] = np.nan
    return values


def text_codes(table: pa.Table, name: str) -> tuple[npt.NDArray[Any], list[str]]:
    """Return the distinct texts of a column and each row's place among them, -1 for null; no texts if all are null."""
    if table[name].null_count == table.num_rows:
        return np.full(table.num_rows, -1), []
    coded = table[name].combine_chunks().dictionary_encode()
    return to_numpy(coded.indices.fill_null(-1)), coded.dictionary.to_pylist()


def equals_text(table: pa.Table, name: str, text: str) -> npt.NDArray[np.bool_]:
    """Return which rows of a text column without nulls hold `text`."""
    array = table[name].combine_chunks()
    _, offsets, data = array.buffers()
    want = np.frombuffer(text.encode(), np.uint8)
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    equal = np.diff(ends) == len(want)
    letters = np.frombuffer(data, np.uint8) if data is not None else want[:0]
    equal[equal] = (letters[ends[:-1][equal, None] + np.arange(len(want))] == want).all(axis=1)
    return equal
