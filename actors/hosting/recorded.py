"""The events that partitions have recorded, in order, as arrays.

Events are ordered by the time at which they were due and by key, and a note follows the event during which it was
written: the order does not depend on the number of partitions, nor on what else is recorded. An event of which each
partition has a copy, such as an announcement, appears once.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actors.fabric import messages as messages_of_coflows
from actors.hosting.recording import NOT_SHARED, SUFFIX, Recording, trace_file
from actors.kernel.message_kinds import KINDS, Kind
from actors.kernel.queue import NONE, RANK_SHIFT, SOURCE_SHIFT, find_departures
from actors.kernel.records import as_records
from actors.kernel.trace import ACTOR_BITS, NO_JOB, NOTES, SENT_BITS, TRACE, owners_by_kind
from actors.machines import messages as messages_of_dags
from actors.nodes import messages as messages_of_jobs
from actors.schedulers.user import messages as messages_of_users
from actors.setting import Setting
from workloads.errors import InputError

CHUNK = 1 << 19  # rows that are read of each file at once

# Kinds are known when the modules are imported that declare them.
DECLARED_IN = (messages_of_jobs, messages_of_users, messages_of_coflows, messages_of_dags)
RECORDED: Mapping[int, Kind] = ChainMap(KINDS, NOTES)  # also of families that are imported later


class Events(NamedTuple):
    """Events in order; times in ns, NONE for what an event lacks."""

    time: np.ndarray  # [n] when the message arrived
    kind: np.ndarray  # [n] its number, or that of a note
    sender: np.ndarray  # [n] actor; of a note and of an actor's message to itself the receiver
    receiver: np.ndarray  # [n] actor
    job: np.ndarray  # [n] the job or coflow that it names
    task: np.ndarray  # [n] the task or flow that it names
    left: np.ndarray  # [n] when the message left its sender
    queued: np.ndarray  # [n] entries in the receiver's queue, before
    number: np.ndarray  # [n] the place of the message among those of its sender
    sent: np.ndarray  # [n] messages that the receiver had sent before
    b: np.ndarray  # [n] the message's other numbers, see `actors.kernel.message_kinds`
    c: np.ndarray
    d: np.ndarray


def check_recorded(recording: Recording, rows: Sequence[int]) -> None:
    """Raise InputError for files that lack rows which their partitions have written."""
    for k, wanted in enumerate(rows):
        path = trace_file(recording.folder, k)
        found = path.stat().st_size // TRACE.itemsize if path.is_file() else 0
        if wanted and not path.is_file():
            raise InputError(f"does not exist: it was removed, or {NOT_SHARED}", file=path)
        if found != wanted:
            raise InputError(f"has {found:,} of the {wanted:,} events that were written there", file=path)


def read_events(recording: Recording, setting: Setting) -> Iterator[Events]:
    """Yield what was recorded, in chunks."""
    world, _ = setting.scheduler.build(setting)
    owners = owners_by_kind(setting.scheduler.worlds.owners(world), setting.scheduler.worlds.messages)
    files = sorted(recording.folder.glob(f"*{SUFFIX}"))
    for rows in in_order([_rows_of(path) for path in files if path.stat().st_size]):
        yield _decode(rows, world, *owners)


def _rows_of(path: Path) -> np.ndarray:
    return np.memmap(path, TRACE, "r", shape=(path.stat().st_size // TRACE.itemsize,))


def in_order(files: list[np.ndarray], size: int = CHUNK) -> Iterator[np.ndarray]:
    """Yield the rows of several files in order, in chunks; each file is in order."""
    at = [0] * len(files)
    while any(begin < file.size for begin, file in zip(at, files, strict=True)):
        parts = [file[begin : begin + size] for begin, file in zip(at, files, strict=True)]
        dues = [np.maximum.accumulate(part["due"]) for part in parts]
        ends = [part.size for part in parts]
        if len(files) > 1:
            # Up to the last instant of the shortest unfinished part; its file may have more events of that instant.
            open_at = [
                due[-1]
                for due, part, begin, file in zip(dues, parts, at, files, strict=True)
                if begin + part.size < file.size
            ]
            if open_at:
                ends = [int(np.searchsorted(due, min(open_at))) for due in dues]
                if not any(ends):
                    size *= 2
                    continue
        at = [begin + end for begin, end in zip(at, ends, strict=True)]
        rows = np.concatenate([part[:end] for part, end in zip(parts, ends, strict=True)])
        if len(files) > 1:
            due = np.concatenate([due[:end] for due, end in zip(dues, ends, strict=True)])
            rows = rows[_merged(due, rows["key"], [end for end in ends if end])]
            # Copies have the same numbers; between them are the notes of each.
            events = np.flatnonzero(~is_note(rows))
            key, time = rows["key"][events], rows["time"][events]
            again = (key[1:] == key[:-1]) & (time[1:] == time[:-1])
            rows = np.delete(rows, events[1:][again])
        yield rows


def _merged(due: np.ndarray, key: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Return the order in which one partition would have handled the rows of several, each of so many rows.

    Of an instant the least key is first, but what an event sends its own actor at once, in whatever rank, comes after
    it: such rows follow the one with the largest key before them in their partition.
    """
    in_order = np.lexsort((key, due))
    rank = np.empty(due.size, np.int64)
    rank[in_order] = np.arange(due.size)
    parts = np.split(rank, np.cumsum(sizes)[:-1])
    leader = in_order[np.concatenate([np.maximum.accumulate(part) for part in parts])]
    follows = key != key[leader]
    return np.lexsort((follows, key[leader], due))


def is_note(rows: np.ndarray) -> np.ndarray:
    """[rows] whether each is a note, not a message."""
    return rows["what"] >> ACTOR_BITS >= min(NOTES)


def _parts_of(kinds: np.ndarray, rows: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return [rows] the task or flow that each names, NONE for none, and whether it stands in column a.

    A flow of a network that moves input of tasks is no part of the workload: its row goes to another flow when it ends.
    """
    part, is_first = np.full(rows.size, NONE), np.zeros(rows.size, bool)
    for number in np.unique(kinds).tolist():
        fields = RECORDED[number].fields
        field = fields.get("task") or (None if begins[number] == NO_JOB else fields.get("flow"))
        if field is not None:
            own = kinds == number
            part[own] = field.of(rows[field.column][own])
            is_first[own] = field.column == "a"
    return part, is_first


def _decode(rows: np.ndarray, world: Any, begins: np.ndarray, job_of: np.ndarray) -> Events:
    kind, receiver = rows["what"] >> ACTOR_BITS, rows["what"] & ((1 << ACTOR_BITS) - 1)
    note, key = is_note(rows), rows["key"]
    sender = np.where(note, receiver, (key >> SOURCE_SHIFT) & ((1 << (RANK_SHIFT - SOURCE_SHIFT)) - 1))
    left = np.full(rows.size, NONE)
    find_departures(world.network, sender, receiver, as_records(rows), left)
    sent_mask = (1 << SENT_BITS) - 1
    a = rows["a"]
    task, is_first = _parts_of(kind, rows, begins)
    job, named = np.full(rows.size, NONE), (begins[kind] != NO_JOB) & (a >= 0)
    job[named] = job_of[begins[kind[named]] + a[named]]
    if (rows_of_flows := getattr(world, "row_of_flow", None)) is not None:
        # Rows that only moves create have no flow in the workload.
        flows = np.full(world.fabric.flows.coflow.size, NONE)
        flows[rows_of_flows] = np.arange(rows_of_flows.size)
        task[is_first] = flows[a[is_first]]
    return Events(
        rows["time"], kind, sender, receiver, job, task, left, rows["state"] >> SENT_BITS,
        np.where(note, NONE, key & sent_mask), rows["state"] & sent_mask, rows["b"], rows["c"], rows["d"],
    )  # fmt: skip
