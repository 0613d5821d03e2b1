"""Rings between partitions, in which every message arrives once and in order; and when the loop handles events."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulations import named, setting_of
from live_runs import OBSERVED, check, mixed, run_live
from python_process import PATIENCE_S, run_python

from actors.environment import Pace
from actors.hosting import live, paced
from actors.hosting.grouping import Grouping
from actors.hosting.paced import PacedPartition
from actors.hosting.shared_memory import offer_words
from actors.hosting.windows import divide
from actors.kernel import pacing
from actors.kernel.messages import ARRIVAL
from actors.kernel.queue import HORIZON, IDLE, NEVER, RUNNING, post
from actors.kernel.system_calls import CAN_SHARE

pytestmark = pytest.mark.compiled

LATER_NS = 10**15


class Talkers:
    """Partitions that send each other numbered messages, in place of those of a scheduler."""

    def __init__(self, partitions: int, machines: int = 1):
        self.setting = setting_of("sparrow", mixed(), 12)
        self.partitions = [
            PacedPartition(self.setting, OBSERVED, Pace(), time.thread_time_ns) for _ in range(partitions)
        ]
        self.grouping: Grouping = divide(self.setting, self.partitions[0].cast(), partitions)
        for k, p in enumerate(self.partitions):
            p.start()
            p.join(self.grouping, k)
            p.connect([other.receive for other in self.partitions], 0)
        for machine in range(machines):
            members = range(machine, partitions, machines)
            words = np.zeros(pacing.words_of(partitions, paced.RING_ROWS), np.int64)
            for k in members:
                self.partitions[k].take_part(words, members)

    def say(self, me: int, rng: np.random.Generator, counts: list[int]) -> None:
        """Put a few numbered messages for random others into the outbox, all of one instant that does not come."""
        queue = self.partitions[me].world.queue
        for _ in range(int(rng.integers(0, 4))):
            to = int(rng.choice([k for k in range(len(self.partitions)) if k != me]))
            room = queue.outbox.size - queue.now.outbox_size[0]
            if room > queue.room:
                words = (LATER_NS, me, ARRIVAL, int(self.grouping.first[to]), me, counts[to], 0, 0)
                post(queue.now, queue.outbox, *map(np.int64, words))
                counts[to] += 1

    def heard(self, me: int) -> list[tuple[int, int]]:
        """Return the senders and numbers of the messages that have come to a partition, as they came."""
        now, lane = self.partitions[me].world.queue.now[0], self.partitions[me].world.queue.lane
        rows = lane[np.arange(now.lane_head, now.lane_tail) & (lane.size - 1)]
        return list(zip(rows.a.tolist(), rows.b.tolist(), strict=True))


def talk(talkers: Talkers, messages: int, seed: int) -> None:
    """Let all partitions say so much, each in a thread of its own with pauses, and then listen until all is there."""
    size = len(talkers.partitions)
    sent = [[0] * size for _ in range(size)]
    quiet = threading.Barrier(size)

    def run(me: int) -> None:
        rng, p = np.random.default_rng([seed, me]), talkers.partitions[me]
        p._begin_at(time.monotonic_ns() + LATER_NS)
        with np.errstate(over="ignore"):
            while sum(sent[me]) < messages:
                talkers.say(me, rng, sent[me])
                p._go_on(float(rng.choice([0.0, 0.0001, 0.001])))
                if rng.random() < 0.05:
                    time.sleep(0.002)
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end and not is_all_there():
                p._go_on(0.001)
            quiet.wait(PATIENCE_S)

    def is_all_there() -> bool:
        if any(sum(of) < messages for of in sent):  # the last ones may say more than they must
            return False
        return bool(sum(p._own[pacing.RECEIVED] for p in talkers.partitions) == sum(map(sum, sent)))

    with ThreadPoolExecutor(size) as threads:
        for call in [threads.submit(run, me) for me in range(size)]:
            call.result(2 * PATIENCE_S)
    for me in range(size):
        heard = talkers.heard(me)
        for source in range(size):
            numbers = [number for by, number in heard if by == source]
            assert numbers == list(range(sent[source][me])), f"{source} to {me}"


@pytest.mark.parametrize(("partitions", "rows"), [(2, 4), (3, 4), (4, 64)])
@pytest.mark.parametrize("machines", [1, 2])
def test_each_message_arrives_once(
    partitions: int, rows: int, machines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced, "RING_ROWS", rows)
    talk(Talkers(partitions, machines), messages=300, seed=partitions)


@pytest.mark.parametrize("machines", [2, 5])
def test_partitions_on_several_machines(machines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.Threads, "machines", machines)
    workload = mixed()
    found = check(run_live(setting_of("sparrow", workload, 30, cutoff_s=0.1), 5), workload)
    assert found["exchange"] == ("Ray" if machines == 5 else "shared memory and Ray")
    assert found["floor_s"] > 0


@pytest.mark.parametrize("scheduler", ["eagle", "own"])
def test_rings_that_are_always_full_lose_nothing(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paced, "RING_ROWS", 2)  # a batch is one message
    monkeypatch.setattr(live, "RING_ROWS", 2)
    workload = mixed()
    setting = setting_of(named(scheduler), workload, 30, cutoff_s=0.1, seed=2)
    found = check(run_live(setting), workload)
    assert found["messages_per_batch"] == 1
    assert found["exchange"] == "shared memory"


@pytest.mark.skipif(not CAN_SHARE, reason="plain Python, or a processor without such waiting")
def test_the_words_of_another_process() -> None:
    place = offer_words(16)
    try:
        assert place.is_here()
        assert not place._replace(file=place.file + 1000).is_here()
        code = f"from actors.hosting.shared_memory import Place; Place(*{tuple(place)}).open()[3] = 7"
        run_python(code)
        assert place.open().tolist() == [0, 0, 0, 7, *[0] * 12]
    finally:
        os.close(place.file)


def test_the_words_of_rings_do_not_overlap() -> None:
    partitions, rows = 3, 4
    words = np.zeros(pacing.words_of(partitions, rows), np.int64)
    for k in range(partitions):
        words[[pacing.LINE * k + pacing.BELL, pacing.LINE * k + pacing.SLEEPS]] += 1
        for to in range(partitions):
            ring = pacing.ring_of(partitions, k, to)
            words[[ring + pacing.TAIL, ring + pacing.HEAD]] += 1
            for number in range(rows):
                begin = pacing.row_of(partitions, rows, k, to, number)
                words[begin : begin + pacing.FIELDS] += 1
    assert set(words.tolist()) == {0, 1}
    assert words.sum() == 2 * partitions + partitions**2 * (2 + rows * pacing.FIELDS)
    assert pacing.rows_of(words.size, partitions) == rows


@pytest.mark.parametrize("dilation", [0.5, 1.0, 4.0])
def test_events_are_handled_when_the_clock_reaches_them(
    dilation: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on only where the loop reads it, looks for messages, or sleeps."""
    left, handled = [0, 300, 1_000_000, 1_000_050, 1_000_060, 9_000_000], []
    due, origin, deadline, now, slept = [*left], 20_000, 40_000_000, 0, []
    words, own = np.zeros(pacing.words_of(1, 1), np.int64), np.zeros(pacing.OWN, np.int64)

    def passes(ns: int) -> int:
        nonlocal now
        now += ns
        return now

    def sleeps(bell: int, value: int, most: int) -> None:
        slept.append(most)
        passes(most)

    def loop(world: Any, state: Any, until: int, most: int) -> int:
        done = 0
        while left and left[0] < until and done < most:
            handled.append(now)
            left.pop(0)
            done += 1
        world.queue.now.events[0] += done
        return RUNNING if done == most else HORIZON if left else IDLE

    fakes: dict[str, Any] = {
        "clock_ns": lambda _: passes(10),
        "pause": lambda: passes(20),
        "sleep_while": sleeps,
        "address": lambda base, i: i,
        "load": lambda i: words[i],
        "swap": lambda i, value: words.__setitem__(i, value),
        "next_time": lambda queue: left[0] if left else int(NEVER),
        "take_batches": lambda *_: True,
        "settle": lambda _: None,
        "rest": getattr(pacing.rest, "py_func", pacing.rest),
        "EVENTS": 2,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(pacing, name, fake)
    one = SimpleNamespace(events=np.zeros(1, np.int64), outbox_size=np.zeros(1, np.int64))
    world: Any = SimpleNamespace(
        queue=SimpleNamespace(now=one), cost=SimpleNamespace(origin=origin, dilation=dilation)
    )
    own[pacing.DEADLINE], own[pacing.SAMPLE] = deadline, NEVER
    pace = getattr(pacing.pace, "py_func", pacing.pace)
    none = np.zeros(0, np.int64)
    rings = pacing.Rings(0, words, own, none, none, none, np.zeros(2, np.int64), 0, 1, 1)
    why = pace(world, None, rings, loop)
    assert why == pacing.PAUSED
    assert not left
    late_ns = np.array(handled) - (origin + dilation * np.array(due))
    assert late_ns.min() > 0
    assert late_ns.max() < 500 + dilation
    # It sleeps until shortly before the next event, and is awake for the rest.
    assert deadline <= now < deadline + 500
    assert len(slept) == 3
    assert now - sum(slept) < 4 * (pacing.EARLY_NS + 1000) + origin
    assert 0 < own[pacing.WAITED_AWAKE] < now - sum(slept)
    assert (own[pacing.BACKLOG_SUM], own[pacing.BACKLOG_MAX] >= 1) == (len(due), True)
