"""Whether a snapshot is one that a run may have: its ranges, and what its numbers say of each other.

Compiled code checks no index and follows lists to their end. So before it goes on from a checkpoint of another process,
lists are walked, and messages looked at by their kind.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.hosting.bounds import COST, FAULTS, LAST, QUEUE, check_bounds
from actors.hosting.messages import check_messages
from actors.hosting.outcome import Observe
from actors.hosting.partition import build_partition
from actors.hosting.snapshot import Refused, Snapshot, leaves, walk
from actors.hosting.timeline import STATE, TIMELINE
from actors.kernel.queue import NEVER
from actors.setting import Setting

# Besides the arrays of world and state.
OTHERS = {"own", "samples", "barrier", "delayed", "frame", "wall_s", "recorded"}
Sizes = dict[str, int]


def check_snapshots(setting: Setting, observe: Observe, snapshots: list[Snapshot], partitions: int) -> None:
    """Refuse snapshots, one of each partition, that no run of the setting can have written.

    Raises:
        Refused: in one line, what is wrong.
    """
    if len(snapshots) != partitions:
        raise Refused(f"it is of {len(snapshots)} partitions, and the run has {partitions}")
    world, state = build_partition(setting, observe)
    for k, saved in enumerate(snapshots):
        try:
            check_snapshot(setting, world, state, saved, partitions)
        except Refused as why:
            raise Refused(f"{k}.npz: {why}") from None
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise Refused(f"{k}.npz is no state of this run: {error}") from None


def check_snapshot(setting: Setting, world: Any, state: Any, saved: Snapshot, partitions: int = 1) -> None:
    """Refuse a snapshot of one partition; `world` and `state` as they are at time 0.

    Raises:
        Refused: in one line, what is wrong.
    """
    family = setting.scheduler.worlds
    trees = {"world": world, "state": state}
    expected = OTHERS | {path for root, tree in trees.items() for path, _ in leaves(tree, root)}
    if expected != set(saved):
        raise Refused(f"it has other arrays: {', '.join(sorted(expected ^ set(saved)))}")
    sizes = sizes_of(world, state, saved) | family.sizes(world, state, saved)
    table = {**QUEUE, **COST, **FAULTS, **family.bounds}
    for root, tree in trees.items():
        check_bounds(tree, root, saved, table, sizes)
    _check_others(saved)
    check_queue(saved, sizes)
    check_messages(setting, world, saved, sizes, partitions)
    if saved["world.cost.servers"].size:
        _check_waiting(saved)
    family.check(world, state, saved, sizes)


def sizes_of(world: Any, state: Any, saved: Snapshot) -> Sizes:
    """How many there are of what numbers are indexes of."""
    queue, faults = world.queue, world.faults
    named = dict(leaves(state, "state"))
    log = next((saved[path].size for path in named if path.endswith("shared.previous")), 0)
    resources = next((a.shape[1] for path, a in named.items() if path.endswith("monitor.reported")), 0)
    rows = next((saved[path].size for path in named if path.endswith("monitor.log")), 0)
    slots = world.nodes.idle.max() if len(world.nodes) else 0
    if faults.active:
        slots = faults.actors.slots.max()
    eligible = getattr(world, "eligible", None)
    return {
        "actors": queue.seq.size,
        "actors + 1": queue.seq.size + 1,
        "slots": saved["world.queue.heap"].size,
        "room": max(queue.room - 8, 1),
        "nodes": world.nodes.size,
        "nodes + 1": world.nodes.size + 1,
        "slots of a node + 1": int(slots) + 1,
        "slots + 1": int(slots) + 1,
        "entries": saved["world.entries"].size,
        "jobs": world.work.size,
        "jobs + 1": world.work.size + 1,
        "tasks": int(world.work.end_task[-1]),
        "tasks + 1": int(world.work.end_task[-1]) + 1,
        "costs + 1": saved["world.cost.log"].size + 1,
        "waiting": max(saved["world.cost.waiting"].size, 1),
        "servers or more": max(world.cost.servers.size, 1),
        "outages + 1": faults.schedule.size + 1,
        "versions": max(log, 1) if log else int(NEVER),  # without a log they are other numbers
        "2 versions": 2 * max(log, 1),
        "levels": max(0 if eligible is None else eligible.factor.size, 1),
        "racks": 0 if eligible is None else max(eligible.rack_end.size, 1),
        "resources": resources,
        "rows of the monitor + 1": rows // (1 + 2 * resources) + 1,
    }


def _check_others(saved: Snapshot) -> None:
    """What is no part of world and state."""
    samples = saved["samples"]
    rows = samples.size - len(STATE)
    if samples.dtype != np.int64 or samples.ndim != 1 or rows <= 0 or rows % len(TIMELINE):
        raise Refused("samples are no rows of a timeline")
    first = samples[len(STATE) :: len(TIMELINE)]
    if (
        min(samples[:2]) < 1
        or samples[1] > 1 << 40
        or samples[2] < 0
        or first[0] != 0
        or (np.diff(first) <= 0).any()
    ):
        raise Refused("samples are not in order")
    wanted = {"barrier": ((), "i"), "delayed": ((4,), "i"), "wall_s": ((), "f"), "recorded": ((2,), "i")}
    for name, (shape, kind) in wanted.items():
        if saved[name].shape != shape or saved[name].dtype.kind != kind or saved[name].dtype.itemsize != 8:
            raise Refused(f"{name} has another type or shape")
    if (
        not -1 <= saved["barrier"] <= LAST
        or not 0 <= saved["wall_s"] < 1e12
        or not 0 <= saved["recorded"].min() <= saved["recorded"].max() <= NEVER
    ):
        raise Refused("barrier, wall_s or recorded is out of range")
    for name in ("own", "frame"):
        if saved[name].dtype != np.uint8 or saved[name].ndim != 1:
            raise Refused(f"{name} has another type or shape")


def check_queue(saved: Snapshot, sizes: Mapping[str, int]) -> None:
    """The event queue: cursors, the order of the lane, the heap.

    Raises:
        Refused: it is none.
    """
    lane, heap, pool = (saved[f"world.queue.{name}"] for name in ("lane", "heap", "pool"))
    order, outbox, now = saved["world.queue.order"], saved["world.queue.outbox"], saved["world.queue.now"][0]
    if lane.size != order.size or lane.size & (lane.size - 1) or heap.size != pool.size:
        raise Refused("world.queue.lane has not the size of world.queue.order, or heap of pool")
    head, tail, group, ready = (int(now[f"lane_{name}"]) for name in ("head", "tail", "group", "ready"))
    if not group <= head <= tail or not head <= max(ready, head) <= tail or tail - group > lane.size:
        raise Refused("world.queue.now has no possible places in the lane")
    if not 0 <= now["heap_size"] <= heap.size or not 0 <= now["outbox_size"] <= outbox.size:
        raise Refused("world.queue.now has more messages than there is room for")
    if not 0 <= now["first"] <= now["end"] <= sizes["actors"]:
        raise Refused("world.queue.now has no possible range of actors")
    places = np.arange(head, tail)
    taken = order[places & (lane.size - 1)]
    behind = places >= ready  # what comes before is the rest of an instant, in order of keys
    if ((taken < group) | (taken >= tail)).any() or np.unique(taken).size != taken.size:
        raise Refused("world.queue.order is no order of the lane")
    if (taken[behind] != places[behind]).any() or (taken[~behind] >= max(ready, group)).any():
        raise Refused("world.queue.order is no order of the lane")
    if (np.diff(lane["time"][np.sort(taken) & (lane.size - 1)]) < 0).any():
        raise Refused("world.queue.lane is not in order of time")
    if not np.array_equal(np.sort(heap["slot"]), np.arange(heap.size)):
        raise Refused("world.queue.heap does not have every slot once")
    size = int(now["heap_size"])
    used, slots = heap["time"][:size], heap["slot"][:size]
    if (used != pool["time"][slots]).any() or (used[(np.arange(1, size) - 1) >> 2] > used[1:]).any():
        raise Refused("world.queue.heap is no heap")


def _check_waiting(saved: Snapshot) -> None:
    """The lines of messages before schedulers, and the list of free rows."""
    rows, servers = saved["world.cost.waiting"], saved["world.cost.servers"]
    used = int(rows["start"][0])
    if not 1 <= used <= rows.size:
        raise Refused("world.cost.waiting has used more rows than there are")
    seen = np.zeros(rows.size, bool)
    seen[0] = True
    seen[used:] = True
    walk("world.cost.waiting", [int(rows["next"][0])], rows["next"], seen)
    for server in servers:
        at = int(server["first"])
        for i in range(int(server["length"])):
            if not 0 < at < used or seen[at]:
                raise Refused("world.cost.waiting has lines that meet or come round")
            seen[at] = True
            if i == server["length"] - 1 and at != server["last"]:
                raise Refused("world.cost.waiting has a line with another end")
            at = int(rows["next"][at])
