"""The record of what happened: each event as a row, when it is handled, before its handler runs.

A run that is not recorded has an empty log, and a loop then compares one number for each event. In a run that is
recorded `take` (actors/kernel/cost.py) appends a row for each event, and handlers append *notes*: what happens within
an actor, without a message, such as the start of a task. When the log is full the loop stops with GROW, and the
partition writes the rows to a file (actors/hosting/recording.py): memory does not grow with the run.

A row has the message with the number of messages that its receiver had sent before. So the event during which a message
was sent is known: of its sender's events the last one with a smaller or equal number. A note has the time and the key
of its event, which need not be recorded itself: by these rows of several partitions are put in order.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.message_kinds import FIELDS, Kind, describe, kinds_of
from actors.kernel.records import Records, records

ACTOR_BITS, SENT_BITS = 24, 35
TRACE = np.dtype(
    [
        ("time", "i8"),  # ns
        ("due", "i8"),  # when the event was due, ns; of a note, its event
        ("key", "i8"),  # of the message; of a note, that of its event
        ("what", "i8"),  # kind, or number of a note, above `ACTOR_BITS` bits of the receiver
        *((name, "i8") for name in ("a", "b", "c", "d")),
        ("state", "i8"),  # entries in the receiver's queue, above `SENT_BITS` bits: messages it had sent
    ]
)
ROWS = 1 << 13  # half a megabyte: what is written at once stays in the cache until then

# Notes: no message has their numbers, as no message has this rank.
NOTES: dict[int, Kind] = {}
"""All kinds of notes, by number; those of jobs and tasks have the job in column a and the task in b, if any."""
FIELDS.update(
    own_left="work that the entry's job has left: ns, or tasks where the rule is by tasks",
    first_left="work that the job of the queue's first entry has left",
    crv="the CRV (Constraint Resource Vector) of a resource, times 2^32",
    from_node="the node that it leaves",
    wait="the wait that the scheduler expects there",
    for_job="the job for which there is room then; none: a node has failed that ran another task of its gang",
    rate_millionths="millionths of a byte per second",
)


def _note(name: str, about: str, **columns: str) -> Any:
    number = 0xF00 + len(NOTES)
    NOTES[number] = describe(number, name, "", about, columns)
    return np.int64(number)


STARTS = _note("START", "a task starts on a node", a="job", b="task")
BYPASSED = _note(
    "BYPASS",
    "an entry is served before its turn: its job has the least work left",
    a="job", b="task", c="own_left", d="first_left",
)  # fmt: skip
REORDERED = _note(
    "REORDER",
    "an entry is served before its turn for its constraints' sake",
    a="job", b="task", c="crv", d="own_left",
)  # fmt: skip
RELAXED = _note("RELAX", "a job drops a soft constraint", a="job")
MOVED = _note("MOVE", "an entry moves between queues at once, without a message", a="job", b="from_node")
CHOSEN = _note(
    "CHOICE",
    "a scheduler chooses a node for a task because it waits least",
    a="job", b="task", c="node", d="wait",
)  # fmt: skip
RATED = _note(
    "RATE",
    "an agent sends a flow at another rate from now on, 0 when it has ended or stops; with `rates` in `output.events`",
    a="flow", b="rate_millionths",
)  # fmt: skip
EVICTS = _note(
    "EVICT",
    "a node ends a running task before its time, to make room for one of higher priority",
    a="job", b="task", c="for_job", d="start",
)  # fmt: skip
NO_JOB = -1


class Trace(NamedTuple):
    """The log of a partition, and what is recorded."""

    log: Records  # [rows] TRACE; empty: nothing is recorded
    size: np.ndarray  # [1] rows written
    span: np.ndarray  # [2] recorded from, and before, ns
    chosen: np.ndarray  # [jobs] 1: of these jobs alone; empty: all, and what belongs to no job
    # [kinds] where `job_of` begins for what column a of a message numbers; NO_JOB: it numbers nothing that has a job
    owners: np.ndarray
    job_of: np.ndarray  # the job of each job, task, flow, line …: all of these one after the other
    queued: np.ndarray  # [actors] entries in the queue of each; empty: nothing is recorded
    event: np.ndarray  # [2] when the event that is handled was due, ns, and its key
    rates: bool  # those of flows are recorded


@inlined
def is_recorded(trace: Trace) -> bool:
    """Return whether anything is recorded."""
    return trace.log.size > 0


@compiled
def append_row(trace: Trace, time: int, what: int, a: int, b: int, c: int, d: int, state: int) -> None:
    """Append a row of the event that is handled, if it is of what is recorded."""
    if time < trace.span[0] or time >= trace.span[1]:
        return
    if trace.chosen.size > 0:
        begin = trace.owners[what >> ACTOR_BITS]
        if begin == NO_JOB or a < 0 or trace.chosen[trace.job_of[begin + a]] == 0:
            return
    i, log = trace.size[0], trace.log
    log.time[i], log.what[i], log.state[i] = time, what, state
    log.due[i], log.key[i] = trace.event[0], trace.event[1]
    log.a[i], log.b[i], log.c[i], log.d[i] = a, b, c, d
    trace.size[0] = i + 1


@inlined
def count_queued(trace: Trace, actor: int, change: int) -> None:
    """Count the entries that join or leave the queue of an actor."""
    if is_recorded(trace):
        trace.queued[actor] += change


def no_trace() -> Trace:
    """Return the trace of a run that is not recorded."""
    empty = np.zeros(0, np.int64)
    two = np.zeros(2, np.int64)
    return Trace(records(TRACE, 0), np.zeros(1, np.int64), two, empty, empty, empty, empty, two.copy(), False)


def owners_by_kind(owners: Mapping[str, np.ndarray], families: str) -> tuple[np.ndarray, np.ndarray]:
    """Return `owners` and `job_of` of a trace, from the jobs of all that messages number, by the name of its kind.

    Kinds of other families are left out: whether a process knows them depends on what else it has run.
    """
    offsets = np.cumsum([0, *(jobs.size for jobs in owners.values())])
    begin_of = dict(zip(owners, offsets.tolist(), strict=False))
    begins = np.full(int(max(NOTES)) + 1, NO_JOB)
    for number, kind in (kinds_of(families) | NOTES).items():
        begins[number] = begin_of.get(kind.owners, NO_JOB)
    return begins, np.concatenate(list(owners.values()))


def make_trace(
    actors: int,
    room: int,
    span_ns: tuple[int, int],
    chosen: np.ndarray | None,
    owners: Mapping[str, np.ndarray],
    families: str,
    rates: bool = False,
) -> Trace:
    """Return an empty trace.

    Parameters:
        room: the most messages that the handling of one event may send.
        span_ns: recorded from, and before.
        chosen: [jobs] bool: which are recorded; None: all, and what belongs to no job.
        owners: as of `actors.worlds.Worlds.owners`.
        families: whose messages there are, with spaces between.
        rates: those of flows, too.
    """
    begins, job_of = owners_by_kind(owners, families)
    rows = ROWS
    while rows < 4 * room:
        rows *= 2
    return Trace(
        records(TRACE, rows),
        np.zeros(1, np.int64),
        np.array(span_ns, np.int64),
        np.zeros(0, np.int64) if chosen is None else chosen.astype(np.int64),
        begins,
        job_of,
        np.zeros(actors, np.int64),
        np.zeros(2, np.int64),
        rates,
    )
