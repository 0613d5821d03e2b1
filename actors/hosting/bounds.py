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
from actors.kernel.kinds import MOST_RANK
from actors.kernel.queue import NEVER, NONE, SOURCE_SHIFT
from actors.kernel.trace import TRACE

FIXED, SCRATCH = "fixed", "scratch"
Bound = tuple[float, str | float]  # the least, and the most: a number, or what there are fewer than

LAST = float(NEVER) * 1.5  # ns; work that begins before the end of time ends before this
TIME: Bound = (float(NONE), LAST)
COUNT: Bound = (0, float(NEVER))
SIGNED: Bound = (-LAST, LAST)  # sums of two of them fit an int64
NUMBER: Bound = (float(NONE), float(1 << SOURCE_SHIFT))  # of a message of an actor
KIND: Bound = (0, float((MOST_RANK + 1) << 8))
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
    **{f"queue.trace.log.{name}": SCRATCH for name in TRACE.names or ()},
    "queue.trace.size": (0, 1),  # a snapshot is taken when the log has been written
    "queue.trace.span": FIXED,
    "queue.trace.chosen": FIXED,
    "queue.trace.owners": FIXED,
    "queue.trace.job_of": FIXED,
    "queue.trace.queued": COUNT,
    "queue.trace.event": SCRATCH,  # a snapshot is taken when no handler runs
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
    "log.kind": KIND,
    "log.decides": BIT,
    "handler.server": (float(NONE), float(NONE)),  # a snapshot is taken when no handler runs
    "handler.kind": KIND,
    "handler.decides": BIT,
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
