"""Forged checkpoints: what compiled code would follow out of its arrays is refused before, in one line."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulations import NETWORKS, mixed_workload
from emulations import setting_of as job_setting

from actors.hosting import windows
from actors.hosting.bounds import COST, FAULTS, QUEUE, bound_of, columns
from actors.hosting.checkpoint import Refused
from actors.hosting.partition import Partition, build_partition
from actors.hosting.snapshot import Snapshot, leaves
from actors.hosting.structures import check_snapshot, check_snapshots
from actors.kernel.compiled import config
from actors.kernel.kinds import TASK_END
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.scheduler import Scheduler
from actors.schedulers.registry import built_in_schedulers
from tests.actors.hosting.forged import OBSERVED, end_of_run, forged, setting_of, snapshot_of
from tests.forking import Forks


@pytest.mark.parametrize("scheduler", built_in_schedulers(), ids=lambda s: s.name)
def test_of_every_array_is_said_what_it_may_hold(scheduler: Scheduler) -> None:
    table = {**QUEUE, **COST, **FAULTS, **scheduler.worlds.bounds}
    for seed in range(2):
        trees = build_partition(setting_of(scheduler.name, seed), OBSERVED)
        for root, tree in zip(("world", "state"), trees, strict=True):
            for path, leaf in leaves(tree, root):
                if isinstance(leaf, np.ndarray):
                    for name, _ in columns(path, leaf):
                        bound_of(name, table)  # or KeyError: add it to actors/hosting/bounds.py


@pytest.mark.parametrize("scheduler", built_in_schedulers(), ids=lambda s: s.name)
def test_what_a_run_has_at_any_time_is_taken(scheduler: Scheduler) -> None:
    for seed in range(6):
        setting = setting_of(scheduler.name, seed)
        check_snapshot(setting, *build_partition(setting, OBSERVED), snapshot_of(setting, 5 * seed))


def test_so_is_that_of_several_partitions() -> None:
    setting = job_setting("eagle", mixed_workload(30, 4), 6, network=NETWORKS["varies"], long_partition=0.7)
    hosts = [Partition(setting, OBSERVED) for _ in range(3)]
    grouping = windows.divide(setting, hosts[0].cast(), 3)
    for host in hosts:
        host.start()
    frames, with_messages = [host.join(grouping, k) for k, host in enumerate(hosts)], 0

    def barrier(message_in: bytes) -> list[bytes]:
        nonlocal with_messages
        found = [host.window(message_in) for host in hosts]
        with_messages += sum(len(frame) for frame in found) > 3 * 8 * (6 + 3)
        if with_messages % 40 == 1:
            snapshots = [host.snapshot() for host in hosts]
            check_snapshots(setting, OBSERVED, snapshots, 3)
            with pytest.raises(Refused, match="it is of 3 partitions, and the run has 4"):
                check_snapshots(setting, OBSERVED, snapshots, 4)
            frame = np.frombuffer(snapshots[0]["frame"].tobytes(), np.int64).copy()
            frame[6] += 1 << 40
            with pytest.raises(Refused, match=r"0\.npz: frame "):
                check_snapshots(
                    setting, OBSERVED, [{**snapshots[0], "frame": frame.view(np.uint8)}, *snapshots[1:]], 3
                )
        return found

    windows.Windows(barrier, frames, windows.window_ns(setting, None)).run(math.inf)
    assert with_messages > 10


def with_value(path: str, place: Any, value: Any, field: str | None = None) -> Callable[[Snapshot], Snapshot]:
    """A snapshot in which one number is another one."""

    def change(whole: Snapshot) -> Snapshot:
        array = whole[path].copy()
        (array if field is None else array[field])[place] = value
        return {**whole, path: array}

    return change


def queue_that_comes_round(whole: Snapshot) -> Snapshot:
    nodes = whole["world.nodes"]
    at = int(nodes["head"][np.flatnonzero(nodes["head"] != NONE)[0]])
    return with_value("world.entries", at, at, "next")(whole)


def run_that_comes_round(whole: Snapshot) -> Snapshot:
    entries = whole["world.entries"]
    at = int(np.flatnonzero(entries["more"][1:] > 0)[0]) + 1
    return with_value("world.entries", int(entries["more"][at]), at, "more")(whole)


def message(field: str, value: int) -> Callable[[Snapshot], Snapshot]:
    """A snapshot whose next TASK_END has another number."""

    def change(whole: Snapshot) -> Snapshot:
        heap, pool = whole["world.queue.heap"], whole["world.queue.pool"].copy()
        slots = heap["slot"][: whole["world.queue.now"]["heap_size"][0]]
        at = next(int(s) for s in slots if pool["kind"][s] == TASK_END)
        pool[field][at] = value
        return {**whole, "world.queue.pool": pool}

    return change


SHAPES: dict[str, tuple[Callable[[Snapshot], Snapshot], str]] = {
    "an array is missing": (lambda s: {n: a for n, a in s.items() if n != "world.jobs"}, "it has other arrays"),
    "one more": (lambda s: {**s, "world.more": np.zeros(3)}, "it has other arrays: world.more"),
    "shorter": (lambda s: {**s, "world.jobs": s["world.jobs"][:-1]}, r"world\.jobs has shape \(23,\), here"),
    "longer": (lambda s: {**s, "world.nodes": np.tile(s["world.nodes"], 2)}, r"world\.nodes has shape"),
    "another type": (lambda s: {**s, "world.counts": s["world.counts"].astype(float)}, r"world\.counts is of type"),
    "of 32 bits": (lambda s: {**s, "world.queue.order": s["world.queue.order"].astype("i4")}, "is of type int32"),
    "lane of no power of two": (
        lambda s: {
            **s, "world.queue.lane": np.resize(s["world.queue.lane"], 20_000),
            "world.queue.order": np.resize(s["world.queue.order"], 20_000),
        },
        r"world\.queue\.lane has not the size",
    ),
    "rows of a timeline": (lambda s: {**s, "samples": s["samples"][:-1]}, "samples are no rows"),
}  # fmt: skip
NUMBERS: dict[str, tuple[Callable[[Snapshot], Snapshot], str]] = {
    "head": (with_value("world.nodes", 3, 1 << 31, "head"), r"world\.nodes\.head is 2147483648 somewhere"),
    "negative head": (with_value("world.nodes", 3, -2, "head"), r"world\.nodes\.head is -2 somewhere"),
    "next task": (with_value("world.jobs", 0, 1 << 62, "next_task"), r"world\.jobs\.next_task is 4611"),
    "task of another job": (with_value("world.jobs", 0, 60, "next_task"), "is no task of its job"),
    "slots": (with_value("world.nodes", 1, 1 << 40, "idle"), r"world\.nodes\.idle is"),
    "heap size": (with_value("world.queue.now", 0, 1 << 40, "heap_size"), "more messages than there is room"),
    "lane": (with_value("world.queue.now", 0, 1 << 61, "lane_tail"), "no possible places in the lane"),
    "slot": (with_value("world.queue.heap", 0, 5, "slot"), "does not have every slot once|is no heap"),
    "free list": (with_value("world.entries", 0, 0, "next"), "lists that meet or come round"),
    "used": (with_value("world.entries", 0, 1 << 50, "job"), "has used more rows than there are"),
    "queue": (queue_that_comes_round, r"world\.entries has queues that meet or come round"),
    "job of a message": (message("a", 24), r"a of a message TASK_END is no job"),
    "task of a message": (message("b", -3), r"b of a message TASK_END is no task"),
    "kind": (message("kind", 0x77), "a message of no kind: 119"),
    "another actor's": (message("dst", 1 << 30), "a message TASK_END for another actor"),
    "a scheduler's": (message("kind", 0x300), "for another actor|is no job"),
    "a scalar": (lambda s: {**s, "world.seed": np.array(4)}, r"world\.seed is 3 here and 4 there"),
    "version": (with_value("state.shared.length", 0, 1 << 40), r"state\.shared\.length is"),
    "later change": (with_value("state.shared.latest", 0, 40), "refer to later ones|goes from -2"),
    "work": (with_value("state.placer.ledger.work", 0, -(1 << 63)), r"ledger\.work is -9223372036854775808"),
    "slots of the ledger": (
        with_value("state.placer.ledger.slots", 0, 0),
        "is another one than is built here",
    ),
}


@pytest.fixture(scope="module")
def whole() -> Snapshot:
    """Eagle with messages on their way, and queues with runs in them."""
    return snapshot_of(setting_of("eagle", 0), 3)


@pytest.mark.parametrize("what", [*SHAPES, *NUMBERS])
def test_what_cannot_be_is_refused(what: str, whole: Snapshot) -> None:
    change, wrong = (SHAPES | NUMBERS)[what]
    setting = setting_of("eagle", 0)
    check_snapshots(setting, OBSERVED, [whole], 1)
    with pytest.raises(Refused, match=wrong) as error:
        check_snapshots(setting, OBSERVED, [change(whole)], 1)
    assert str(error.value).startswith("0.npz")
    assert "\n" not in str(error.value)


def test_a_run_of_entries_that_comes_round() -> None:
    setting = setting_of("eagle", 1)
    saved = snapshot_of(setting, 1)
    with pytest.raises(Refused, match=r"world\.entries has queues that meet or come round"):
        check_snapshots(setting, OBSERVED, [run_that_comes_round(saved)], 1)


@pytest.mark.parametrize("value", [np.nan, -np.inf, -1.0])
def test_floats_that_cannot_be(value: float) -> None:
    setting = setting_of("sebf", 0)
    saved = snapshot_of(setting, 3)
    with pytest.raises(Refused, match=r"world\.sending\.left is"):
        check_snapshots(setting, OBSERVED, [with_value("world.sending.left", 0, value)(saved)], 1)


@pytest.mark.parametrize("scheduler", ["aalo", "fair", "saath", "sebf", "philae"])
def test_lines_of_ports_are_those_of_the_workload(scheduler: str) -> None:
    setting = setting_of(scheduler, 0)
    saved = snapshot_of(setting, 3)
    for path, value in (
        ("word", 0),
        ("first", 3),
        ("mask", np.uint64(1) << np.uint64(60)),
        ("flow", 1 << 40),
    ):
        with pytest.raises(Refused, match=r"world\.fabric\.lines"):
            check_snapshots(setting, OBSERVED, [with_value(f"world.fabric.lines.{path}", 0, value)(saved)], 1)


FEW = 4 if config.DISABLE_JIT else 12


PROGRAM = f"""
import sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = {sys.path}
from tests.actors.hosting.forged import main
main()
"""


@pytest.mark.parametrize(
    "scheduler", ["sparrow", "hawk", "eagle", "yacc-d", "fifo", "aalo", "fair", "tetris-fair", "carbyne"]
)
def test_a_run_from_a_forged_one_is_refused_or_ends(scheduler: str, forks: Forks) -> None:
    """In a process of its own, compiled: it would die of an index that is out of range."""
    done = forks.run("-c", PROGRAM, scheduler, "7", FEW, cwd=Path(__file__).parent)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-500:])
    assert len(lines) == FEW
    assert not [line for line in lines if " goes on " in line] or config.DISABLE_JIT
    assert all(isinstance(json.loads(line.rsplit(" ", 2)[0]), str) for line in lines)


def test_forged_ones_differ_from_the_whole() -> None:
    found = [what for what, _, _ in forged("sparrow", 2, 20)]
    assert len(set(found)) > 15
    setting = setting_of("sparrow", 2)
    assert end_of_run(setting, snapshot_of(setting, 2)) == "done"
    assert NEVER > 0
