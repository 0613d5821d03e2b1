"""A run as a timeline for Perfetto and Chrome's trace viewer: the Trace Event Format, as JSON.

Nodes are tracks, a track for each slot that was used at once; tasks are slices, and before them those of the time in
which they fetched their input; messages are arrows; queues, running tasks and utilisation are counters; each event is a
mark on the track of its receiver. Times are in microseconds.

Reference: "Trace Event Format", Google, 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from emu import disk
from emu.explaining.event_record import NONE, Record
from emu.families.registry import family_of_summary
from emu.results.result import Result
from emu.results.slot_numbers import slot_numbers
from workloads.arrow import column, optional_column
from workloads.errors import InputError

MOST_BYTES = 100_000_000
"""Trace viewers are slow with larger files."""
BYTES_EACH = 150
"""Of an entry, about."""
NODES, SCHEDULERS, RUN = 1, 2, 3
"""Process numbers: groups of tracks."""
COUNTERS = ("utilisation", "queued_short", "queued_long", "running_short", "running_long", "waiting_flows",
            "running_flows", "waiting_tasks", "running_tasks")  # fmt: skip
US = 1e6


def write_timeline(
    result: Result, path: Path, *, nodes: Sequence[int] | None = None, jobs: Sequence[int] | None = None
) -> int:
    """Write the timeline of a run, and return the number of its entries.

    Parameters
    ----------
    result : Result
        With its tasks or flows; with its events, messages and decisions are shown too.
    path : Path
        A file to write, such as ``trace.json``.
    nodes, jobs : sequence of int, optional
        Only these nodes (ports), and only tasks of these jobs (coflows), by their ids. By default all.

    Raises
    ------
    InputError
        The run has no tasks, nothing is left, or the file would be larger than a viewer can show.
    """
    parts = _chosen(result, nodes, jobs)
    slices = parts["node"].size + int(np.count_nonzero(parts["begin"] > parts["start"]))
    if not slices:
        raise InputError("none of the chosen nodes and jobs has a task that ran", file=result.path)
    if nodes is None and jobs is None:
        _check_size(slices, result.num_events, result.path)  # before all events are in memory
    record = None if result.events is None else Record.of(result.events)
    rows = np.zeros(0, np.int64) if record is None else _messages(record, result, nodes, jobs)
    _check_size(slices, rows.size, result.path)
    entries = [*_slices(result, parts), *_counters(result)]
    if record is not None:
        entries += _decisions(record.rows(rows), result.summary["nodes"])
    disk.write_text(
        path, json.dumps({"displayTimeUnit": "ms", "traceEvents": entries}, separators=(",", ":"))
    )
    return len(entries)


def _check_size(slices: int, events: int, place: Path | None) -> None:
    size = BYTES_EACH * (2 * slices + 3 * events)
    if size > MOST_BYTES:
        raise InputError(
            f"the timeline would have some {size / 1e6:,.0f} MB; choose nodes or jobs (--nodes 0-20, --jobs 3,17) to "
            f"stay below {MOST_BYTES // 1_000_000} MB",
            file=place,
        )


def _chosen(
    result: Result, nodes: Sequence[int] | None, jobs: Sequence[int] | None
) -> dict[str, npt.NDArray[Any]]:
    """Return the tasks, or flows, that ran, of chosen nodes and jobs, by start.

    By name: ``node``, ``start``, ``begin`` (when it had its input, s), ``finish``, ``job``, ``part``.
    """
    family = family_of_summary(result.summary)
    table = result.tables.get(family.part)
    if table is None:
        raise InputError(f"the run has no {family.part}; run it with output.tasks=true", file=result.path)
    node = "node" if "node" in table.column_names else "ingress"
    names = {"node": node, "start": "start_s", "finish": "finish_s", "job": f"{family.one}_id"}
    columns = {name: optional_column(table, column) for name, column in names.items()}
    columns["part"] = optional_column(table, family.part.removesuffix("s"))
    has_fetched = "fetched_s" in table.column_names
    fetched = optional_column(table, "fetched_s") if has_fetched else columns["start"]
    columns["begin"] = np.fmax(columns["start"], fetched)
    kept = np.isfinite(columns["start"]) & np.isfinite(columns["finish"])
    for name, chosen in (("node", nodes), ("job", jobs)):
        if chosen is not None:
            kept &= np.isin(columns[name], chosen)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(columns["start"][rows], kind="stable")]
    return {name: values[rows] for name, values in columns.items()}


def _slices(result: Result, parts: dict[str, npt.NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the names of tracks, and slices for each task; tasks that overlap on a node have tracks of their own."""
    family = family_of_summary(result.summary)
    what = family.part.removesuffix("s")
    yield {"ph": "M", "pid": NODES, "name": "process_name", "args": {"name": f"{family.node}s"}}
    slots = slot_numbers(parts["node"], parts["start"], parts["finish"])
    named: set[int] = set()
    for *whole, slot, start, begin, finish in zip(
        *(parts[name].astype(np.int64).tolist() for name in ("node", "job", "part")),
        *(values.tolist() for values in (slots, parts["start"], parts["begin"], parts["finish"])),
        strict=True,
    ):
        node, job, part = whole
        track = {"pid": NODES, "tid": node * 1000 + slot}
        if track["tid"] not in named:
            named.add(track["tid"])
            name = f"{family.node} {node}" + (f", slot {slot}" if slot else "")
            yield {"ph": "M", **track, "name": "thread_name", "args": {"name": name}}
            yield {"ph": "M", **track, "name": "thread_sort_index", "args": {"sort_index": track["tid"]}}
        name = f"{family.one} {job}"
        for kind, label, since, until in (
            ("fetch", f"fetch of {name}", start, begin),
            (what, name, begin, finish),
        ):
            if kind == what or until > since:
                first, last = round(since * US, 3), round(until * US, 3)
                times = {"ts": first, "dur": round(last - first, 3)}
                yield {"ph": "X", **track, "cat": kind, **times, "name": label, "args": {what: part}}


def _counters(result: Result) -> Iterator[dict[str, Any]]:
    """Yield the columns of the table of the timeline as counters."""
    table = result.timeline
    yield {"ph": "M", "pid": RUN, "name": "process_name", "args": {"name": "the run"}}
    times = (column(table, "time_s") * US).round(3).tolist()
    for name in COUNTERS:
        if name in table.column_names:
            for time, value in zip(times, optional_column(table, name).tolist(), strict=True):
                yield {"ph": "C", "pid": RUN, "ts": time, "name": name, "args": {name: value}}


def _messages(
    record: Record, result: Result, nodes: Sequence[int] | None, jobs: Sequence[int] | None
) -> npt.NDArray[np.int64]:
    """Return the events of chosen nodes and jobs."""
    kept = np.ones(len(record), bool)
    if nodes is not None:
        kept &= np.isin(record.receiver, nodes) | np.isin(record.sender, nodes)
    if jobs is not None:
        family = family_of_summary(result.summary)
        rows = np.flatnonzero(np.isin(column(result.heads, f"{family.one}_id"), jobs))
        kept &= np.isin(record.job, rows)
    return np.flatnonzero(kept)


def _decisions(record: Record, nodes: int) -> Iterator[dict[str, Any]]:
    """Yield a mark for each event, and an arrow for each message between actors."""
    yield {"ph": "M", "pid": SCHEDULERS, "name": "process_name", "args": {"name": "schedulers"}}
    for actor in np.unique(record.receiver[record.receiver >= nodes]).tolist():
        name = {"name": f"scheduler {actor - nodes}"}
        yield {"ph": "M", "pid": SCHEDULERS, "tid": actor, "name": "thread_name", "args": name}
    columns = (
        record.time_ns,
        record.kind,
        record.sender,
        record.receiver,
        record.left_ns,
        record.job,
        record.queued,
    )
    for i, (time, kind, sender, receiver, left, job, queued) in enumerate(
        zip(*(values.tolist() for values in columns), strict=True)
    ):
        at, track = _track(receiver, nodes)
        args = {"queued": queued} | ({} if job == NONE else {"job": job})
        yield {"ph": "i", "s": "t", "pid": at, "tid": track, "ts": time / 1e3, "name": kind, "args": args}
        if left != NONE:
            pid, tid = _track(sender, nodes)
            arrow = {"cat": "message", "name": kind, "id": i}
            yield {"ph": "s", "pid": pid, "tid": tid, "ts": left / 1e3, **arrow}
            yield {"ph": "f", "bp": "e", "pid": at, "tid": track, "ts": time / 1e3, **arrow}


def _track(actor: int, nodes: int) -> tuple[int, int]:
    return (NODES, actor * 1000) if actor < nodes else (SCHEDULERS, actor)
