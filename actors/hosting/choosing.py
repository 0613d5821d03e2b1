"""How many partitions pay: an estimate of the time that a run takes in 1, 2, … of them, before anything is started.

The time of an event is that of `actors.worlds.Worlds`, measured on one core of this kind. What a barrier takes, how
much work messages add that cross it, and how uneven the work of a window is, is measured by ``python -m
benchmarks.windows`` and its section ``model``.
"""

import math
import os
from typing import NamedTuple

from actors.hosting.grouping import Cast
from actors.hosting.outcome import NS, Observe
from actors.hosting.partition import Partition
from actors.hosting.windows import divide, expected_windows
from actors.kernel.relay import WORD
from actors.kernel.window import FIELDS, header_size
from actors.setting import Setting
from workloads.errors import InputError
from workloads.units import format_duration

# A barrier, where each partition has a core; for each partition of a core, where they share cores; for each frame.
ALONE_US, SHARING_US, FRAME_US = 0.6, 2.5, 0.075
EXCHANGE_US = 40.0  # between machines, for the way alone
LINK_BYTES_A_US = 1250.0  # of a network of 10 Gbit/s
CROSSING = 0.3  # added to the work if all messages cross a barrier
BURST = 2.0  # variance of a partition's events in a window, over their mean
START_S = 0.7  # an actor more


class Expected(NamedTuple):
    """What a run is expected to take in so many partitions."""

    partitions: int
    windows: int
    events: int
    engine_s: float

    @property
    def seconds(self) -> float:
        """With the start of the other actors."""
        return self.engine_s + START_S * (self.partitions - 1)

    def __str__(self) -> str:
        if self.partitions == 1:
            return f"{format_duration(self.seconds)} in one partition"
        each = f"{self.windows:,} windows of {self.events / self.windows:.1f} events"
        return f"{format_duration(self.seconds)} in {self.partitions} ({each})"


def choose_partitions(setting: Setting, window: int, cores: int | None = None) -> tuple[int, str]:
    """Return in how many partitions a run is expected to be the fastest, and why, in one line.

    Over a network it is one (``python -m benchmarks.windows --rows mapreduce-fair,mapreduce-sebf --partitions 2``).

    Args:
        setting: the emulation.
        window: from the earliest next event to the barrier, ns.
        cores: for partitions; None: all of this machine.
    """
    if setting.switch.scheduler != "none":
        return 1, "--partitions auto: 1; others would wait for that which has the network and its nodes"
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


def expect(
    setting: Setting, cast: Cast, window: int, partitions: int, cores: int, machines: int = 1
) -> Expected:
    """Return what a run is expected to take in so many partitions on so many cores, of all machines together."""
    worlds = setting.scheduler.worlds
    events = round(worlds.events_a_part * setting.num_tasks)
    work_s = events * worlds.event_ns / NS
    if partitions == 1:
        return Expected(1, 1, events, work_s)
    windows = expected_windows(setting, window, partitions)
    share = max(*divide(setting, cast, partitions).work(), 1 / cores)
    # In a window the partition with the most to do decides: about the largest of so many normal variables.
    share *= 1 + math.sqrt(2 * math.log(partitions) * BURST * partitions * windows / events)
    work_s *= min(share, 1.0) * (1 + CROSSING * (1 - 1 / partitions))
    barriers_s = windows * barrier_us(partitions, cores, machines, events / windows) / 1e6
    return Expected(partitions, windows, events, work_s + barriers_s)


def barrier_us(partitions: int, cores: int, machines: int, events: float) -> float:
    """Return what a barrier takes, µs, after windows of so many events."""
    shared = ALONE_US if partitions <= cores else SHARING_US * partitions / cores
    shared += FRAME_US * partitions
    if machines == 1:
        return shared
    # A machine receives the headers of all others and the messages that are for it. Half of all events are messages.
    others = 1 - 1 / machines
    header = WORD * header_size(partitions) * partitions * others
    messages = WORD * FIELDS * events / 2 * others / machines
    return shared + EXCHANGE_US + (header + messages) / LINK_BYTES_A_US
