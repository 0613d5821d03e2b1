"""The event queue against a plain heap over (time, key): the same messages in the same order."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest
from emulations import mixed_workload, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.kernel import cost
from actors.kernel import queue as kinds
from actors.kernel.compiled import config, entry
from actors.kernel.messages import ARRIVAL
from actors.kernel.queue import CURSOR, GROW, HORIZON, IDLE, NEVER, RUNNING, Network, grow_queue, make_queue
from actors.kernel.records import records
from actors.nodes.messages import DONE, HEARTBEAT, PROBE, RETRY, TASK_END
from actors.nodes.world import ACTOR, World, grow_entries, make_entries


@entry
def take(w: World, until: int) -> int:
    return cost.take(w, until)


@entry
def send(w: World, t: int, src: int, dst: int, kind: int, a: int, b: int, c: int, d: int) -> None:
    kinds.send(w, t, src, dst, kind, a, b, c, d)


@entry
def wake(w: World, time: int, who: int, kind: int, a: int, b: int, c: int) -> None:
    kinds.wake(w, time, who, kind, a, b, c)


ACTORS = 6  # nodes 0 to 3, in two racks, and two schedulers
NETWORKS = {
    "none": (0, 0, 0.0),
    "constant": (5, 5, 0.0),
    "racks": (5, 20, 0.0),
    "random": (5, 20, 10.0),
    "random from zero": (0, 0, 0.6),
}


def make_world(network: tuple[int, int, float], room: int = 4, capacity: int = 2) -> World:
    """A world of the type that the kernel's own have, with a queue that is as small as it may be."""
    setting = setting_of("random", mixed_workload(1, 0), 4)
    world, _ = setting.scheduler.build(setting)
    table = records(ACTOR, ACTORS)
    delay, cross, spread = network
    rack = np.array([0, 0, 1, 1])
    rack.flags.writeable = False
    return world._replace(
        queue=make_queue(table.seq, room, capacity),
        network=Network(delay, cross, spread, rack, 7, int(cross != delay or spread > 0)),
        nodes=table[:4],
    )


class Model:
    """What the queue should do, as a heap of tuples."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, int]] = []

    def take(self, until: int) -> tuple[int, int, int, int] | None:
        if not self.heap or self.heap[0][0] >= until:
            return None
        return heapq.heappop(self.heap)


def newest(world: World) -> tuple[int, int]:
    """Time and key of the message that was sent last, wherever it is: the one with the highest number in column a."""
    queue = world.queue
    now, lane = queue.now[0], queue.lane
    places = np.arange(now.lane_head, now.lane_tail) & (lane.size - 1)
    slots = queue.heap.slot[: now.heap_size]
    rows = np.concatenate([np.asarray(lane)[places], np.asarray(queue.pool)[slots]])
    row = rows[np.argmax(rows["a"])]
    return int(row["time"]), int(row["key"])


def take_growing(world: World, until: int) -> tuple[World, int]:
    """Take a message, growing what must grow as the host does."""
    for _ in range(3):
        why = take(world, np.int64(until))
        if why != GROW:
            return world, why
        world = world._replace(queue=grow_queue(world.queue), entries=grow_entries(world.entries))
    raise AssertionError("the queue keeps asking to grow")


# An event: how many nanoseconds may pass until it, and what its handler sends: (kind, from, to) to others, and
# (kind, actor, later) to oneself.
KIND = st.sampled_from([TASK_END, PROBE, DONE, HEARTBEAT, ARRIVAL, RETRY])
ACTOR_ID = st.integers(0, ACTORS - 1)
SENDS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), KIND, ACTOR_ID, ACTOR_ID),
        st.tuples(st.just("wake"), KIND, ACTOR_ID, st.integers(0, 12)),
    ),
    max_size=4,
)


@pytest.mark.parametrize("network", NETWORKS)
def test_queue_against_a_heap(network: str) -> None:
    @settings(max_examples=20 if config.DISABLE_JIT else 60)
    @given(st.lists(SENDS, min_size=1, max_size=60))
    def hold(turns: list[Any]) -> None:
        world, model, number = make_world(NETWORKS[network]), Model(), 0
        delay = NETWORKS[network][0]
        for turn in [*turns, *[[]] * (4 * len(turns) + 1)]:
            t = int(world.queue.now[0].time)
            for what, kind, src, other in turn:
                number += 1
                before = int(world.queue.seq[src])
                if what == "send":
                    send(world, t, src, other, kind, number, 0, 0, 0)
                else:
                    wake(world, t + other, src, kind, number, 0, 0)
                time, key = newest(world)
                assert key == ((kind >> 8) << 59) | (src << 35) | before
                assert int(world.queue.seq[src]) == before + 1
                assert time >= t + delay if what == "send" else time == t + other
                heapq.heappush(model.heap, (time, key, kind, number))
            # Often a horizon comes first; it must not change what comes after.
            for until in (t + 3, int(NEVER)):
                world, why = take_growing(world, until)
                expected = model.take(until)
                if expected is None:
                    assert why == (HORIZON if model.heap else IDLE)
                else:
                    now = world.queue.now[0]
                    assert why == RUNNING
                    assert (int(now.time), int(now.key), int(now.kind), int(now.a)) == expected
                    break
        assert not model.heap

    hold()


def test_at_one_instant_completions_come_first_and_retries_last() -> None:
    world = make_world((5, 5, 0.0), room=16)
    # Sent in the opposite order, by senders in the opposite order; all for t = 5.
    wake(world, 5, 5, RETRY, 1, 0, 0)
    wake(world, 5, 4, ARRIVAL, 2, 0, 0)
    wake(world, 5, 3, HEARTBEAT, 3, 0, 0)
    send(world, 0, 2, 0, DONE, 4, 0, 0, 0)
    send(world, 0, 2, 0, PROBE, 5, 0, 0, 0)
    send(world, 0, 1, 0, DONE, 6, 0, 0, 0)
    wake(world, 5, 0, TASK_END, 7, 0, 0)
    order = []
    while take(world, NEVER) == RUNNING:
        order.append(int(world.queue.now[0].a))
    # Of messages of one rank the lower sender comes first, and one sender's in the order of sending.
    assert order == [7, 6, 4, 5, 3, 2, 1]


def test_queue_asks_for_room_before_it_takes_an_event() -> None:
    world = make_world((5, 5, 0.0), room=4, capacity=2)
    assert world.queue.heap.size >= 2 * 4
    for i in range(world.queue.heap.size - 3):
        wake(world, 10 + i, 0, TASK_END, i, 0, 0)
    assert take(world, NEVER) == GROW
    assert int(world.queue.now[0].events) == 0
    grown = grow_queue(world.queue)
    assert grown.heap.size == 2 * world.queue.heap.size
    assert grown.lane.size == world.queue.lane.size
    assert take(world._replace(queue=grown), NEVER) == RUNNING


def test_queue_asks_for_room_for_one_entry_of_a_node() -> None:
    world = make_world((5, 5, 0.0))
    wake(world, 1, 0, TASK_END, 0, 0, 0)
    entries = make_entries(4)
    entries.job[0] = 4  # all used, none freed
    assert take(world._replace(entries=entries), NEVER) == GROW
    wider = grow_entries(entries)
    assert wider.size == 8
    assert take(world._replace(entries=wider), NEVER) == RUNNING
    entries.next[0] = 2  # one is free: no need to grow
    assert grow_entries(entries) is entries


def test_a_message_and_its_cursor_are_plain_int64() -> None:
    assert kinds.MESSAGE.itemsize == 64
    assert {CURSOR[name] for name in CURSOR.names} == {np.dtype("i8")}
