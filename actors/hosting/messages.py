"""Whether the messages of a snapshot are some that an actor may get: what each kind's numbers are indexes of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.hosting.snapshot import Refused, Snapshot
from actors.kernel.kinds import HEARTBEAT, HOME, LAST, LISTENER, NODE, kinds_of
from actors.kernel.queue import MESSAGE, NEVER, NONE
from actors.kernel.window import FIELDS, HEADER
from actors.setting import Setting


def check_messages(
    setting: Setting, world: Any, saved: Snapshot, sizes: Mapping[str, int], partitions: int
) -> None:
    """Look at the messages that wait: in the lane, the heap, the outbox, and the frame of the last barrier.

    Raises:
        Refused: the kind, the receiver, or what a message is about does not exist.
    """
    now, lane, pool = saved["world.queue.now"][0], saved["world.queue.lane"], saved["world.queue.pool"]
    places = np.arange(int(now["lane_head"]), int(now["lane_tail"]))
    waiting = {
        "lane": lane[saved["world.queue.order"][places & (lane.size - 1)] & (lane.size - 1)],
        "pool": pool[saved["world.queue.heap"]["slot"][: int(now["heap_size"])]],
        "outbox": saved["world.queue.outbox"][: int(now["outbox_size"])],
        "frame": _frame(saved["frame"], partitions),
    }
    table = kinds_of(setting.scheduler.family)
    for name, rows in waiting.items():
        times = rows["time"]
        if ((times < 0) | (times > 2 * np.float64(NEVER) - 1)).any() or (rows["key"] < 0).any():
            raise Refused(f"world.queue.{name} has a message of no time")
        for kind in np.unique(rows["kind"]).tolist():
            if kind not in table:
                raise Refused(f"world.queue.{name} has a message of no kind: {kind}")
            own = rows[rows["kind"] == kind]
            known = table[kind]
            if not _is_for(known.to, own, now, world, name in ("outbox", "frame"), sizes).all():
                raise Refused(f"world.queue.{name} has a message {known.name} for another actor")
            for column, what in known.ranges.items():
                if not _fits(what, own[column], own, setting, world, sizes).all():
                    raise Refused(
                        f"world.queue.{name}: {column} of a message {known.name} is no {what.rstrip('?s')}"
                    )


def _frame(frame: np.ndarray, partitions: int) -> np.ndarray:
    """The messages of a frame, which is empty where there is one partition."""
    if not frame.size:
        return np.zeros(0, MESSAGE)
    if frame.size % 8 or frame.size < 8 * (HEADER + partitions):
        raise Refused("frame is none")
    numbers = np.frombuffer(frame.tobytes(), np.int64)
    counts, begin = numbers[HEADER : HEADER + partitions], HEADER + partitions
    if (counts < 0).any() or (counts > numbers.size).any() or begin + FIELDS * counts.sum() != numbers.size:
        raise Refused("frame has another length than it says")
    return numbers[begin:].view(MESSAGE)


def _is_for(
    who: str, rows: np.ndarray, now: np.ndarray, world: Any, leaves: bool, sizes: Mapping[str, int]
) -> np.ndarray:
    """[rows] whether each receiver is an actor that gets such messages; in the outbox, of other partitions too."""
    dst, nodes, actors = rows["dst"], sizes["nodes"], sizes["actors"]
    there = (dst >= 0) & (dst < actors)
    listener = dst == actors - 1
    if not leaves:
        there &= ((dst >= now["first"]) & (dst < now["end"])) | listener
    if who == NODE:
        # The heartbeat of all nodes of a partition is its first actor's.
        return there & ((dst < nodes) | ((dst == now["first"]) & (rows["kind"] == HEARTBEAT) & (dst < nodes)))
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
    if what in sizes:
        return none | ((values >= 0) & (values < sizes[what]))
    if what == "time":
        return (values >= -1) & (values <= 1.5 * np.float64(NEVER))
    if what == "bit":
        return (values == 0) | (values == 1)
    if what == "few":
        return (values >= 0) & (values < 1 << 31)
    return none | setting.scheduler.worlds.fits(what, values, rows, setting, world, dict(sizes))
