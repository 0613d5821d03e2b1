"""Whether a snapshot is one that a run may have: its ranges, and what its numbers say of each other.

Compiled code checks no index and follows lists to their end. So before it goes on from a checkpoint of another process,
lists are walked, and messages looked at by their kind.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.hosting.bounds import COST, FAULTS, JOBS, LAST, QUEUE, check_bounds
from actors.hosting.coflow_bounds import COFLOWS
from actors.hosting.job_structures import check_jobs
from actors.hosting.messages import check_messages
from actors.hosting.outcome import Observe
from actors.hosting.partition import build_partition
from actors.hosting.snapshot import Refused, Snapshot, leaves, walk
from actors.hosting.timeline import STATE, TIMELINE
from actors.kernel.queue import NEVER, NONE
from actors.setting import Setting

OTHERS = {"own", "samples", "barrier", "delayed", "frame", "wall_s"}  # besides the arrays of world and state
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
    coflows = setting.scheduler.family == "coflows"
    trees = {"world": world, "state": state}
    expected = OTHERS | {path for root, tree in trees.items() for path, _ in leaves(tree, root)}
    if expected != set(saved):
        raise Refused(f"it has other arrays: {', '.join(sorted(expected ^ set(saved)))}")
    sizes = sizes_of(world, state, saved)
    if coflows:
        sizes |= coflow_sizes(world, state)
    table = {**QUEUE, **COST, **FAULTS, **(COFLOWS if coflows else JOBS)}
    for root, tree in trees.items():
        check_bounds(tree, root, saved, table, sizes)
    _check_others(saved)
    check_queue(saved, sizes)
    check_messages(setting, world, saved, sizes, partitions)
    if saved["world.cost.servers"].size:
        _check_waiting(saved)
    if coflows:
        check_lines(world, saved)
    else:
        check_jobs(world, state, saved, sizes)


def sizes_of(world: Any, state: Any, saved: Snapshot) -> Sizes:
    """How many there are of what numbers are indexes of."""
    queue, faults = world.queue, world.faults
    named = dict(leaves(state, "state"))
    log = next((saved[path].size for path in named if path.endswith("shared.previous")), 0)
    told = next((a.shape[1] for path, a in named.items() if path.endswith("monitor.told")), 0)
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
        "resources": told,
        "rows of the monitor + 1": rows // (1 + 2 * told) + 1,
    }


def coflow_sizes(world: Any, state: Any) -> Sizes:
    """The same of the switch."""
    fabric, named = world.fabric, {path.partition(".")[2]: leaf for path, leaf in leaves(state, "state")}
    flows, lines, ports = fabric.flows.size.size, fabric.lines.port.size, fabric.speed.size
    groups = fabric.lines.of_group.shape[0] - 1
    changes = max((a.size for path, a in named.items() if path.endswith((".changed", "changed"))), default=0)

    def size(path: str) -> int:
        return int(named[path].size) if path in named else 1

    pairs = next((path.rpartition(".")[0] for path in named if path.endswith("pairs.pair")), "")
    return {
        "flows": flows, "flows + 1": flows + 1, "coflows": fabric.coflows.arrival.size,
        "coflows + 1": fabric.coflows.arrival.size + 1, "lines": lines, "lines + 1": lines + 1, "ports": ports,
        "ports + 1": ports + 1, "groups": groups, "groups + 1": groups + 1, "words + 1": fabric.lines.word.size + 1,
        "words of a set": ports // 64 + 1, "places": fabric.lines.flow.size + 1, "lines and ports": lines + ports,
        "changes + 1": changes + 1, "pairs": size(f"{pairs}.head"), "pairs + 1": size(f"{pairs}.pair") + 1,
        "places of pairs": size(f"{pairs}.pair"), "ends + 1": size("shortest.ends.time") + 1,
        "queues": size("queues.size"), "places of flows": size("equal.heap"),
        "ends of flows + 1": size("equal.end_time") + 1, "places served": size("serving.heap"),
    }  # fmt: skip


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
    wanted = {"barrier": ((), "i"), "delayed": ((3,), "i"), "wall_s": ((), "f")}
    for name, (shape, kind) in wanted.items():
        if saved[name].shape != shape or saved[name].dtype.kind != kind or saved[name].dtype.itemsize != 8:
            raise Refused(f"{name} has another type or shape")
    if not -1 <= saved["barrier"] <= LAST or not 0 <= saved["wall_s"] < 1e12:
        raise Refused("barrier or wall_s is out of range")
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


def check_lines(world: Any, saved: Snapshot) -> None:
    """The words of a line are those that it was built with, in any order; ports' flows and bits are there.

    Raises:
        Refused: they are not.
    """
    built, path = world.fabric.lines, "world.fabric.lines."
    block = built.block
    line = np.repeat(np.arange(block.size - 1), np.diff(block))
    own = built.port[line] != NONE  # those of pilots are laid out under way
    words, mask, first = (saved[path + name] for name in ("word", "mask", "first"))
    orders = [np.lexsort((w, line)) for w in (built.word, words)]
    for ours, theirs in ((built.word, words), (built.mask, mask), (built.first, first)):
        mine, kept = ours[orders[0]], theirs[orders[1]]
        if (mine != kept)[own].any():
            raise Refused("world.fabric.lines has other words than are built here")
    if (saved[path + "bits"] & ~mask).any():
        raise Refused("world.fabric.lines.bits has flows that there are not")
    end = saved[path + "end"]
    if ((end < block[:-1]) | (end > block[1:])).any():
        raise Refused("world.fabric.lines.end is outside of its line")
