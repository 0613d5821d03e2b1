"""Whether the messages of a snapshot are some that an actor may get: what each kind's numbers are indexes of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.fabric import messages as fabric
from actors.hosting.snapshot import Refused, Snapshot
from actors.kernel import queue
from actors.kernel.queue import NEVER, NONE
from actors.kernel.window import FIELDS, HEADER
from actors.setting import Setting

NODE, HOME, SCHEDULER, LISTENER, LAST = "node", "home", "scheduler", "listener", "last"
Columns = dict[str, str]  # by column, what its number is an index of; those with a "?" may be NONE

# By kind: who gets such messages, and what their columns are. What has no name here is a number that no array is asked
# with. Nodes' messages that name a job may be about any; those of schedulers are about a job of their own.
JOBS: dict[int, tuple[str, Columns]] = {
    int(kind): (who, columns)
    for kind, who, columns in (
        (queue.TASK_END, NODE, {"a": "jobs", "b": "task"}),
        (queue.PUBLISHED, LISTENER, {"a": "nodes", "b": "bit"}),
        (queue.ANNOUNCED, LISTENER, {"a": "resources?"}),
        (queue.PROBE, NODE, {"a": "jobs", "b": "left", "d": "versions?"}),
        (queue.REQUEST, HOME, {"a": "jobs", "b": "nodes"}),
        (queue.TASK, NODE, {"a": "jobs", "b": "task"}),
        (queue.NO_TASK, NODE, {"a": "jobs"}),
        (queue.DONE, HOME, {"a": "jobs", "b": "nodes", "c": "time", "d": "time"}),
        (queue.PLACED, NODE, {"a": "jobs", "b": "task", "d": "placed"}),
        (queue.STARTED, HOME, {"a": "jobs", "b": "nodes", "c": "time"}),
        (queue.REJECTED, HOME, {"a": "jobs", "b": "rejected", "c": "rejecting"}),
        (queue.STEAL, NODE, {"a": "nodes", "b": "few"}),
        (queue.LOAD_REPORT, LISTENER, {"a": "reporter", "c": "report", "d": "report"}),
        (queue.ASK_LENGTH, NODE, {"a": "jobs", "b": "asked"}),
        (queue.LENGTH, HOME, {"a": "jobs", "b": "asked", "c": "nodes"}),
        (queue.LOST, HOME, {"a": "jobs", "b": "task?", "c": "nodes?", "d": "time"}),
        (queue.NODE_DOWN, LISTENER, {"a": "nodes", "c": "time"}),
        (queue.NODE_UP, LISTENER, {"a": "nodes", "c": "time"}),
        (queue.HEARTBEAT, NODE, {}),
        (queue.MONITOR, LAST, {}),
        (queue.FAIL, NODE, {}),
        (queue.DETECT, NODE, {}),
        (queue.REPAIR, NODE, {}),
        (queue.ARRIVAL, HOME, {"a": "jobs"}),
        (queue.RETRY, SCHEDULER, {"a": "jobs?"}),
    )
}
COFLOWS: dict[int, tuple[str, Columns]] = {
    int(kind): (who, columns)
    for kind, who, columns in (
        (fabric.FLOW_END, NODE, {"a": "flows", "b": "time"}),
        (fabric.LINE_END, NODE, {"a": "lines"}),
        (fabric.SET_RATE, NODE, {"a": "flows", "b": "amount"}),
        (fabric.SHRINK, NODE, {"a": "lines", "b": "amount"}),
        (fabric.PACE, NODE, {"a": "flows", "b": "amount"}),
        (fabric.SET_LINE, NODE, {"a": "lines", "b": "amount"}),
        (fabric.CHANGE, NODE, {"a": "stops"}),
        (fabric.FLOW_DONE, SCHEDULER, {"a": "flows", "b": "time"}),
        (fabric.LINE_DONE, SCHEDULER, {"a": "lines", "b": "time", "c": "few"}),
        (fabric.UPDATE, SCHEDULER, {"a": "updates"}),
        (fabric.DECIDE, SCHEDULER, {"a": "time"}),
        (fabric.TELL, SCHEDULER, {}),
        (queue.ARRIVAL, SCHEDULER, {"a": "coflows"}),
    )
}


def check_messages(
    setting: Setting, world: Any, saved: Snapshot, sizes: Mapping[str, int], partitions: int
) -> None:
    """Look at the messages that wait: in the lane, the heap, the outbox, and the frame of the last barrier.

    Raises:
        Refused: one is of no kind that there is, for nobody, or about what there is not.
    """
    now, lane, pool = saved["world.queue.now"][0], saved["world.queue.lane"], saved["world.queue.pool"]
    places = np.arange(int(now["lane_head"]), int(now["lane_tail"]))
    waiting = {
        "lane": lane[saved["world.queue.order"][places & (lane.size - 1)] & (lane.size - 1)],
        "pool": pool[saved["world.queue.heap"]["slot"][: int(now["heap_size"])]],
        "outbox": saved["world.queue.outbox"][: int(now["outbox_size"])],
        "frame": _frame(saved["frame"], partitions),
    }
    table = COFLOWS if setting.scheduler.family == "coflows" else JOBS
    for name, rows in waiting.items():
        times = rows["time"]
        if ((times < 0) | (times > 2 * np.float64(NEVER) - 1)).any() or (rows["key"] < 0).any():
            raise Refused(f"world.queue.{name} has a message of no time")
        for kind in np.unique(rows["kind"]).tolist():
            if kind not in table:
                raise Refused(f"world.queue.{name} has a message of no kind: {kind}")
            own = rows[rows["kind"] == kind]
            who, columns = table[kind]
            if not _is_for(who, own, now, world, name in ("outbox", "frame"), sizes).all():
                raise Refused(f"world.queue.{name} has a message of kind {kind:#x} for another actor")
            for column, what in columns.items():
                if not _fits(what, own[column], own, setting, world, sizes).all():
                    raise Refused(
                        f"world.queue.{name}: {column} of a message of kind {kind:#x} is no {what.rstrip('?s')}"
                    )


def _frame(frame: np.ndarray, partitions: int) -> np.ndarray:
    """The messages of a frame, which is empty where there is one partition."""
    if not frame.size:
        return np.zeros(0, queue.MESSAGE)
    if frame.size % 8 or frame.size < 8 * (HEADER + partitions):
        raise Refused("frame is none")
    numbers = np.frombuffer(frame.tobytes(), np.int64)
    counts, begin = numbers[HEADER : HEADER + partitions], HEADER + partitions
    if (counts < 0).any() or (counts > numbers.size).any() or begin + FIELDS * counts.sum() != numbers.size:
        raise Refused("frame has another length than it says")
    return numbers[begin:].view(queue.MESSAGE)


def _is_for(
    who: str, rows: np.ndarray, now: np.ndarray, world: Any, leaves: bool, sizes: Mapping[str, int]
) -> np.ndarray:
    """[rows] whether messages are for somebody who gets such ones; in the outbox, of other partitions too."""
    dst, nodes, actors = rows["dst"], sizes["nodes"], sizes["actors"]
    there = (dst >= 0) & (dst < actors)
    listener = dst == actors - 1
    if not leaves:
        there &= ((dst >= now["first"]) & (dst < now["end"])) | listener
    if who == NODE:
        # The heartbeat of all nodes of a partition is its first actor's.
        return there & (
            (dst < nodes) | ((dst == now["first"]) & (rows["kind"] == queue.HEARTBEAT) & (dst < nodes))
        )
    if who == LISTENER:
        return there & listener
    if who == LAST:
        return there & (dst == actors - 2)
    if who == HOME:
        job = rows["a"]
        known = (job >= 0) & (job < world.work.size)
        return there & known & (dst == world.work.home[np.where(known, job, 0)])
    return there & (dst >= nodes) & ~listener


def _fits(
    what: str, values: np.ndarray, rows: np.ndarray, setting: Setting, world: Any, sizes: Mapping[str, int]
) -> np.ndarray:
    """[rows] whether the numbers of a column are what they should be."""
    none = (values == NONE) if what.endswith("?") else np.zeros(values.size, bool)
    what = what.rstrip("?")
    if what == "stops":
        return (values >= 0) & (values < world.updates.stop.size)
    if what == "updates":
        return (values >= 0) & (values < world.updates.row.size)
    if what == "amount":
        with np.errstate(invalid="ignore"):
            return values.view(np.float64) >= 0.0
    if what in sizes:
        return none | ((values >= 0) & (values < sizes[what]))
    if what == "time":
        return (values >= -1) & (values <= 1.5 * np.float64(NEVER))
    if what == "bit":
        return (values == 0) | (values == 1)
    if what == "few":
        return (values >= 0) & (values < 1 << 31)
    if what == "task":
        return none | _are_tasks(values, rows["a"], world)
    if what == "left":
        low, level = values & ((1 << 32) - 1), values >> 32
        return (
            (level >= 0) & (level <= sizes["levels"]) & (low <= max(sizes["tasks"], 1 << 31)) & (values >= 0)
        )
    return _fits_policy(what, values, rows, setting, world, sizes)


def _fits_policy(
    what: str, values: np.ndarray, rows: np.ndarray, setting: Setting, world: Any, sizes: Mapping[str, int]
) -> np.ndarray:
    """The same of columns that one scheduler or another uses in its own way."""
    bounded = setting.scheduler.policy.startswith("yacc-d")
    contended = setting.scheduler.policy.startswith("phoenix")
    if what == "placed":
        return np.ones(values.size, bool) if bounded else (values >= -1) & (values < sizes["versions"])
    if what == "rejected":
        return (
            _are_tasks(values, rows["a"], world) if bounded else (values >= -1) & (values < sizes["versions"])
        )
    if what == "rejecting":
        return (values >= 0) & (values < (sizes["nodes"] if bounded else 1 << 31))
    if what == "reporter":
        node = values & (queue.MOST_ACTORS - 1)
        return ((values >= 0) & (node < sizes["nodes"])) | ((values == NONE) & contended)
    if what == "report":
        return (
            ~np.full(values.size, contended)
            | (values == NONE)
            | ((values >= 0) & (values & 63 < sizes["resources"]))
        )
    assert what == "asked", what
    probes = rows["a"]
    known = (probes >= 0) & (probes < world.work.size)
    return known & (values >= 0) & (values < 1 << 31)


def _are_tasks(column: np.ndarray, job: np.ndarray, world: Any) -> np.ndarray:
    """[rows] whether numbers are tasks of their jobs, with levels in the upper bits where there are any."""
    level = column >> 32 if world.eligible.active else np.zeros_like(column)
    task = column & ((1 << 32) - 1) if world.eligible.active else column
    known = (job >= 0) & (job < world.work.size)
    own = np.where(known, job, 0)
    inside = (task >= world.work.first_task[own]) & (task < world.work.end_task[own])
    return known & inside & (level >= 0) & (level <= world.eligible.factor.size)
