"""Runs of small emulations, and loops over them, that end: with an error if the run does not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from actors.hosting.partition import Observe, Partition
from actors.kernel.queue import NEVER
from actors.setting import Setting

ALL_TASKS = Observe(tasks=True)
# Of a small emulation, far more than one takes. One that goes on for ever, as where nodes fail far more often than a
# task takes, is then an error: no test hangs.
MOST_EVENTS, MOST_ROUNDS = 10_000_000, 200_000


def few_events(tasks_done: int, events: int, virtual_s: float) -> None:
    """Fail where a run has no end; the progress of `emulate`."""
    assert events < MOST_EVENTS, (
        f"the run has no end: {events:,} events, virtual time {virtual_s:,.0f} s, {tasks_done:,} tasks done"
    )


def bounded(rounds: int = MOST_ROUNDS) -> Iterator[int]:
    """Count the rounds of a loop over a run, and fail where it has no end."""
    yield from range(rounds)
    raise AssertionError(f"the run has no end: {rounds:,} rounds of the loop over it")


def started(setting: Setting, observe: Observe = ALL_TASKS) -> Partition:
    """A partition at its beginning."""
    partition = Partition(setting, observe)
    partition.start()  # or each step would describe the arguments' types again
    return partition


def finish(partition: Partition) -> Partition:
    """Run a partition that has been started to its end."""
    while not (progress := partition.run(0.2)).done:
        few_events(progress.tasks_done, progress.at.events, progress.at.virtual_s)
    return partition


def steps(partition: Partition, most: int = 1) -> Iterator[bool]:
    """Run a partition that has been started, so many events at a time; yields each time whether it has ended."""
    with np.errstate(over="ignore"):
        for _ in bounded():
            done = partition._step(int(NEVER), np.int64(most))
            yield done
            if done:
                return
