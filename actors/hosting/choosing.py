"""How many partitions pay: an estimate of the time that a run takes in 1, 2, … of them, before anything is started.

The time of an event is that of `actors.worlds.Worlds`, measured on one core of this kind; what a barrier takes, and how
much of the work is added by messages that cross it, is measured by ``python -m benchmarks.windows``.
"""

import os
from typing import NamedTuple

from actors.hosting.grouping import Cast
from actors.hosting.outcome import NS, Observe
from actors.hosting.partition import Partition
from actors.hosting.windows import divide, expected_windows
from actors.setting import Setting
from workloads.errors import InputError
from workloads.units import format_duration

# A barrier, where each partition has a core; and for each partition of a core, where they share cores.
ALONE_US, SHARING_US = 0.6, 2.5
CROSSING = 0.3  # added to the work if all messages cross a barrier
START_S = 0.7  # an actor more


class Expected(NamedTuple):
    """What a run is expected to take in so many partitions."""

    partitions: int
    windows: int
    events: int
    seconds: float

    def __str__(self) -> str:
        if self.partitions == 1:
            return f"{format_duration(self.seconds)} in one partition"
        each = f"{self.windows:,} windows of {self.events / self.windows:.1f} events"
        return f"{format_duration(self.seconds)} in {self.partitions} ({each})"


def choose_partitions(setting: Setting, window: int, cores: int | None = None) -> tuple[int, str]:
    """Return in how many partitions a run is expected to be the fastest, and why, in one line.

    Args:
        setting: the emulation.
        window: from the earliest next event to the barrier, ns.
        cores: for partitions; None: all of this machine.
    """
    cores = cores or len(os.sched_getaffinity(0))
    cast = Partition(setting, Observe(), whole=False).cast()
    expected = []
    for partitions in sorted({1, 2, 4, cores}):
        try:
            expected.append(expect(setting, cast, window, partitions, cores))
        except InputError:  # more than there are actors
            break
    best = min(expected, key=lambda e: e.seconds)
    times = ", ".join(map(str, expected))
    return best.partitions, f"--partitions auto: {best.partitions}; expected are {times}, on {cores} cores"


def expect(setting: Setting, cast: Cast, window: int, partitions: int, cores: int) -> Expected:
    """Return what a run is expected to take in so many partitions on so many cores."""
    worlds = setting.scheduler.worlds
    events = round(worlds.events_a_part * setting.num_tasks)
    work_s = events * worlds.event_ns / NS
    if partitions == 1:
        return Expected(1, 1, events, work_s)
    windows = expected_windows(setting, window, partitions)
    share = max(*divide(setting, cast, partitions).work(), 1 / cores) * (1 + CROSSING * (1 - 1 / partitions))
    barrier_us = ALONE_US if partitions <= cores else SHARING_US * partitions / cores
    seconds = work_s * share + windows * barrier_us / 1e6 + START_S * (partitions - 1)
    return Expected(partitions, windows, events, seconds)
