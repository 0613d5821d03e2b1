"""What the values of a snapshot may be: a checkpoint on disk may be forged, and compiled code checks no index.

`BOUNDS` says for every array of every scheduler's state, or field of its records, by the end of its path, between which
numbers it lies, which are mostly the sizes of what it is an index of; that it never changes, so that it is compared
with the one that is built here; or that it is scratch space, whose contents do not count. What numbers say of each
other (lists without cycles, heaps, messages by their kind) is in `actors.hosting.structures`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.hosting.snapshot import MEASURED_HERE, Refused, Snapshot, leaves
from actors.kernel.queue import MOST_ACTORS, NEVER, NONE, SOURCE_SHIFT

FIXED, SCRATCH = "fixed", "scratch"
Bound = tuple[float, str | float]  # the least, and the most: a number, or what there are fewer than

LAST = float(NEVER) * 1.5  # ns; work that begins before the end of time ends before this
TIME: Bound = (float(NONE), LAST)
COUNT: Bound = (0, float(NEVER))
SIGNED: Bound = (-LAST, LAST)  # sums of two of them fit an int64
NUMBER: Bound = (float(NONE), float(1 << SOURCE_SHIFT))  # of a message of an actor
BIT: Bound = (0, 1)
BITS: Bound = (0, float(np.iinfo(np.int64).max))
AMOUNT: Bound = (0, np.inf)  # of bytes, rates, times as floats
REAL: Bound = (-np.inf, np.inf)
SET: Bound = (0, float(np.iinfo(np.uint64).max))  # of ports


def of(what: str) -> Bound:
    """An index."""
    return (0, what)


def of_or_none(what: str) -> Bound:
    """An index, or NONE."""
    return (float(NONE), what)


GROWS = {
    "queue.lane", "queue.order", "queue.heap", "queue.pool", "queue.outbox", "world.entries", "cost.log",
    "cost.waiting", "shared.previous", "monitor.log",
}  # fmt: skip
"""Arrays that may be longer than they were built, by the end of their path."""

QUEUE: dict[str, Bound | str] = {
    **{f"queue.{rows}.{name}": (-float(1 << 63), float(1 << 63)) for rows in ("lane", "pool", "outbox", "now")
       for name in ("key", "kind", "dst", "a", "b", "c", "d")},
    **{f"queue.{rows}.time": SIGNED for rows in ("lane", "pool", "outbox", "now")},
    **{f"queue.now.{name}": COUNT for name in ("lane_head", "lane_tail", "lane_group", "lane_ready", "heap_size",
                                              "events", "outbox_size", "background", "unfinished")},
    "queue.now.events": SIGNED,
    "queue.now.background": SIGNED,
    "queue.now.first": of("actors"),
    "queue.now.end": (0, "actors + 1"),
    "queue.order": COUNT,
    "queue.heap.time": SIGNED,
    "queue.heap.slot": of("slots"),
    "queue.seq": (0, float((1 << SOURCE_SHIFT) - 1)),
    "counts": SIGNED,
    "task_records.node": of_or_none("nodes"),
    "task_records.start": TIME,
    "task_records.finish": TIME,
    "network.rack": FIXED,
}  # fmt: skip
"""What all partitions have."""

COST: dict[str, Bound | str] = {
    **{f"servers.{name}": COUNT for name in ("served", "busy", "waited", "waited_wholes", "most")},
    "servers.free": TIME,
    "servers.longest": TIME,
    "servers.arriving": TIME,
    "servers.next_cost": (0, "costs + 1"),
    "servers.end_cost": FIXED,
    "servers.first": of_or_none("waiting"),
    "servers.last": of_or_none("waiting"),
    "servers.length": of("waiting"),
    "log.scheduler": of("servers or more"),
    "log.cost": COUNT,
    "handler.server": (float(NONE), float(NONE)),  # a snapshot is taken when no handler runs
    "handler.spent": COUNT,
    "handler.begin": SIGNED,
    "handler.staged": COUNT,
    "handler.first": of("actors"),
    "handler.end": (0, "actors + 1"),
    "handler.recorded": (0, "costs + 1"),
    "cost.lateness": COUNT,
    "waiting.start": TIME,
    "waiting.next": of_or_none("waiting"),
}
FAULTS: dict[str, Bound | str] = {
    "actors.down": BIT,
    "actors.detected": BIT,
    "actors.generation": (0, float(1 << 38)),  # it shares a number with a node
    "actors.running": of_or_none("tasks"),
    "actors.slots": FIXED,
    "actors.detect": TIME,
    "actors.repair": TIME,
    "actors.next_outage": (0, "outages + 1"),
    "actors.end_outage": FIXED,
    "actors.heard": COUNT,
    "actors.since": TIME,
    "faults.tasks.node": of_or_none("nodes"),
    "faults.tasks.start": TIME,
    "faults.tasks.job": of("jobs"),
    "faults.tasks.next": of_or_none("tasks"),
    "faults.tasks.previous": of_or_none("tasks"),
    "faults.tasks.again": of_or_none("tasks"),
    "faults.tasks.lost_job": of("jobs"),
    "faults.jobs.again": of_or_none("tasks"),
    "faults.jobs.lost": (0, "tasks + 1"),
    "faults.jobs.epoch": (0, float(1 << 31)),
    "faults.jobs.draws": COUNT,
    "schedule.start": FIXED,
    "schedule.end": FIXED,
}
JOBS: dict[str, Bound | str] = {
    "nodes.head": of_or_none("entries"),
    "nodes.tail": of_or_none("entries"),
    "nodes.idle": (0, "slots of a node + 1"),
    "nodes.longs": COUNT,
    "nodes.version": of_or_none("versions"),
    "nodes.started": TIME,
    "nodes.running": of_or_none("jobs"),
    "nodes.seq": (0, float((1 << SOURCE_SHIFT) - 1)),
    "entries.next": of_or_none("entries"),
    "entries.job": SIGNED,  # row 0 counts the rows that were ever used
    "entries.task": SIGNED,
    "entries.left": COUNT,
    "entries.bypassed": COUNT,
    "entries.is_long": BIT,
    "entries.epoch": (float(NONE), float(1 << 62)),
    "entries.level": of_or_none("levels"),
    "entries.more": of_or_none("entries"),
    "world.jobs.next_task": (0, "tasks + 1"),
    "world.jobs.unfinished": (0, "tasks + 1"),
    "world.jobs.start": TIME,
    "world.jobs.finish": TIME,
    "world.jobs.version": of_or_none("versions"),
    "world.jobs.rejected": (0, "room"),
    "world.jobs.answers": COUNT,
    "world.jobs.draws": COUNT,
    "eligible.jobs.level": of_or_none("levels"),
    "eligible.jobs.begin": (0, "nodes + 1"),
    "eligible.jobs.count": (0, "nodes + 1"),
    "eligible.jobs.rack": of_or_none("racks"),
    "eligible.jobs.held": (0, "tasks + 1"),
    "eligible.jobs.placed": BIT,
    "eligible.jobs.draws": COUNT,
    "eligible.held": of("nodes"),
    "probing.marked": SCRATCH,
    "probing.nodes": SCRATCH,
    "drawing.marked": SCRATCH,
    "drawing.nodes": SCRATCH,
    "sampling.first_answer": FIXED,
    "answers.node": of("nodes"),
    "answers.length": SIGNED,
    "choice.wait": SCRATCH,
    "choice.node": SCRATCH,
    "trial.wait": SCRATCH,
    "trial.node": SCRATCH,
    "ledger.work": SIGNED,
    "ledger.started": TIME,
    "ledger.running": COUNT,
    "ledger.slots": FIXED,
    "assigned": SCRATCH,
    "stealing.searches": COUNT,
    "shared.latest": (-2, "2 versions"),
    "shared.previous": (-2, "2 versions"),
    "shared.length": of("versions"),
    "counted.version": of_or_none("versions"),
    "counted.low": (float(NONE), float(MOST_ACTORS)),
    "counted.first": COUNT,
    "counted.end": (0, "nodes + 1"),
    "counted.free": (0, "nodes + 1"),
    "state.idle": of("nodes"),
    "state.cursor": COUNT,
    "state.free": (0, "slots + 1"),
    "state.again": of_or_none("tasks"),
    "state.tasks": SIGNED,
    "state.load": SIGNED,
    "state.to_report": BIT,
    "state.newest": NUMBER,
    "contention.crv": COUNT,
    "contention.hot": BITS,
    "contention.open": BIT,
    "contention.asks": FIXED,
    "contention.scarcity": FIXED,
    "nodes.seen": COUNT,
    "nodes.since": TIME,
    "nodes.unused": AMOUNT,
    "contention.nodes.idle": AMOUNT,
    "nodes.service": AMOUNT,
    "nodes.square": AMOUNT,
    "nodes.wait": COUNT,
    "nodes.asked": BITS,
    "nodes.to_report": BIT,
    "contention.busy": (0, "slots + 1"),
    "contention.told": BITS,
    "contention.counts": SCRATCH,
    "contention.total": SCRATCH,
    "contention.slots": FIXED,
    "contention.ring": of("nodes"),
    "round.next": COUNT,
    "round.end": COUNT,
    "round.messages": COUNT,
    "round.loads": (0, "nodes + 1"),
    "loads.node": of("nodes"),
    "loads.wait": COUNT,
    "loads.busy": (0, "slots + 1"),
    "contention.more": SIGNED,
    "monitor.wait": COUNT,
    "monitor.busy": (0, "slots + 1"),
    "monitor.slots": FIXED,
    "monitor.told": BITS,
    "monitor.newest": NUMBER,
    "monitor.newest_of": NUMBER,
    "monitor.demand": SIGNED,
    "monitor.pressure": SIGNED,
    "monitor.announced": COUNT,
    "total.busy": SIGNED,
    "total.slots": SIGNED,
    "total.nodes": SIGNED,
    "total.waits": BIT,
    "total.open": BIT,
    "total.rows": (0, "rows of the monitor + 1"),
    "monitor.log": SIGNED,
    "queues.limit": FIXED,
    "queues.slots": FIXED,
    "queues.load": SIGNED,
    "queues.to_report": BIT,
    "queues.mean": SIGNED,
    "known.nodes.rest": SIGNED,
    "known.nodes.busy_until": TIME,
    "known.nodes.room": SIGNED,
    "known.nodes.report": COUNT,
    "known.nodes.place": of_or_none("nodes"),
    "known.newest": NUMBER,
    "known.open": of("nodes"),
    "totals.open": (0, "nodes + 1"),
    "totals.rest": (0, float(1 << 60)),
    "totals.rest_wholes": (-float(1 << 30), float(1 << 30)),
    "sent.report": COUNT,
    "sent.work": SIGNED,
    "sent.room": SIGNED,
    "known.slots": FIXED,
    "known.empty_room": FIXED,
    "schedulers.head": of_or_none("jobs"),
    "schedulers.tail": of_or_none("jobs"),
    "schedulers.jobs": (0, "jobs + 1"),
    "schedulers.awake": BIT,
    "backlog.jobs.task": of_or_none("tasks"),
    "backlog.jobs.next": of_or_none("jobs"),
    "tasks.returns": COUNT,
    "backlog.tasks.next": of_or_none("tasks"),
}
"""Schedulers of jobs."""


def bound_of(path: str, bounds: Mapping[str, Bound | str]) -> Bound | str:
    """What holds of a path: the entry with the longest end of it.

    Raises:
        KeyError: nothing is declared.
    """
    parts = path.split(".")
    for begin in range(len(parts)):
        if (found := bounds.get(".".join(parts[begin:]))) is not None:
            return found
    raise KeyError(path)


def _bound_or_none(path: str, bounds: Mapping[str, Bound | str]) -> Bound | str | None:
    """The same; None of the state of a scheduler that is not built in, of which types and sizes are compared alone."""
    try:
        return bound_of(path, bounds)
    except KeyError:
        return None


def columns(path: str, array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The fields of records, or the array itself, each with its path."""
    if array.dtype.names is None:
        return [(path, array)]
    return [(f"{path}.{name}", array[name]) for name in array.dtype.names]


def check_bounds(
    tree: Any, root: str, saved: Snapshot, bounds: Mapping[str, Bound | str], sizes: Mapping[str, int]
) -> None:
    """Compare what was saved of nested named tuples with what was built here: types, sizes, ranges of values.

    Args:
        tree: as it was built.
        root: the first part of the paths.
        sizes: by the names that bounds use.

    Raises:
        Refused: it names the array.
    """
    for path, built in leaves(tree, root):
        if not isinstance(built, np.ndarray):
            _check_scalar(path, built, saved[path])
            continue
        check_shape(path, built, saved[path])
        mine = dict(columns(path, built))
        for name, values in columns(path, saved[path]):
            bound = _bound_or_none(name, bounds)
            if bound == FIXED:
                if not np.array_equal(values, mine[name]):
                    raise Refused(f"{name} is another one than is built here")
            elif bound not in (SCRATCH, None) and values.size:
                _check_range(name, values, bound, sizes)


def _check_scalar(path: str, built: Any, kept: np.ndarray) -> None:
    """Numbers that never change, but for what this machine measured."""
    if kept.shape != () or kept.dtype.kind not in "biuf" or not np.isfinite(kept):
        raise Refused(f"{path} is no number")
    if path not in MEASURED_HERE and kept != built:
        raise Refused(f"{path} is {built} here and {kept} there")


def check_shape(path: str, built: np.ndarray, kept: np.ndarray) -> None:
    """Compare types and sizes.

    Raises:
        Refused: they differ, and not as what grows may.
    """
    if built.dtype != kept.dtype:
        raise Refused(f"{path} is of type {kept.dtype}, here {built.dtype}")
    grows = ".".join(path.split(".")[-2:]) in GROWS
    if built.shape != kept.shape and not (grows and kept.ndim == 1 and kept.size >= built.size):
        raise Refused(f"{path} has shape {kept.shape}, here {built.shape}")


def _check_range(name: str, values: np.ndarray, bound: Any, sizes: Mapping[str, int]) -> None:
    low, high = bound
    most = sizes[high] - 1 if isinstance(high, str) else high
    least, largest = values.min(), values.max()
    if np.isnan(least):  # of floats
        raise Refused(f"{name} is not a number in {int(np.isnan(values).sum())} places")
    if values.dtype != np.bool_ and (least < low or largest > most):
        wrong = least if least < low else largest
        raise Refused(f"{name} is {wrong} somewhere; it goes from {low:.20g} to {most:.20g}")
