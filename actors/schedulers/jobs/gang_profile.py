"""How many slots are expected to be idle from now on: a step function of time, which reservations lower.

All costs are those of the steps: two for each reservation, one for each expected end of what runs.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.arrays import first_from
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER
from actors.kernel.records import Records, records
from actors.schedulers.jobs.gang_ends import Ends, row_at

STEP = np.dtype(
    [("time", "i8"), ("idle", "i8")]
)  # from `time`, ns, so many slots are idle, until the next step


class Profile(NamedTuple):
    """The steps, in order of time; the last one has no end."""

    steps: Records  # STEP
    number: np.ndarray  # [1] steps


def make_profile(idle: int, most: int) -> Profile:
    """Return the profile of so many idle slots, with room for `most` steps."""
    steps = records(STEP, most + 3)  # a change adds two steps before it takes any away
    steps.idle[0] = idle
    return Profile(steps, np.ones(1, np.int64))


@compiled
def restart(profile: Profile, ends: Ends, t: int, idle: int) -> None:
    """Make the profile of what runs alone; what should have ended ends 1 ns from `t`."""
    steps, last = profile.steps, np.int64(0)
    steps.time[0], steps.idle[0] = t, idle
    for i in range(ends.span[1]):
        row = row_at(ends, i)
        end = max(ends.rows.end[row], t + 1)
        if end > steps.time[last]:
            last += 1
            steps.time[last], steps.idle[last] = end, steps.idle[last - 1]
        steps.idle[last] += ends.rows.tasks[row]
    profile.number[0] = last + 1


@compiled
def pass_time(profile: Profile, t: int) -> None:
    """Drop what lies before `t`."""
    steps, past = profile.steps, np.int64(0)
    while past + 1 < profile.number[0] and steps.time[past + 1] <= t:
        past += 1
    if past > 0:
        for i in range(past, profile.number[0]):
            steps.time[i - past], steps.idle[i - past] = steps.time[i], steps.idle[i]
        profile.number[0] -= past
    steps.time[0] = max(steps.time[0], t)


@compiled
def split(profile: Profile, time: int) -> int:
    """Return the step that begins at `time`, which is not before the first; it is inserted where there is none."""
    steps = profile.steps
    low = first_from(steps.time, np.int64(0), profile.number[0], time)
    if low < profile.number[0] and steps.time[low] == time:
        return low
    for i in range(profile.number[0], low, -1):
        steps.time[i], steps.idle[i] = steps.time[i - 1], steps.idle[i - 1]
    steps.time[low], steps.idle[low] = time, steps.idle[low - 1]
    profile.number[0] += 1
    return low


@inlined
def join(profile: Profile, at: int) -> None:
    """Remove a step that is no step: as many slots are idle as before."""
    steps = profile.steps
    if 0 < at < profile.number[0] and steps.idle[at] == steps.idle[at - 1]:
        for i in range(at + 1, profile.number[0]):
            steps.time[i - 1], steps.idle[i - 1] = steps.time[i], steps.idle[i]
        profile.number[0] -= 1


@compiled
def change(profile: Profile, begin: int, end: int, slots: int) -> None:
    """Let so many more slots be idle from `begin` to `end`; a reservation is a change by less than none."""
    if begin >= end:
        return
    first = split(profile, begin)
    behind = split(profile, end)
    for i in range(first, behind):
        profile.steps.idle[i] += slots
    join(profile, behind)
    join(profile, first)


@compiled
def find_place(profile: Profile, slots: int, span: int) -> tuple[int, int]:
    """Return from when on so many slots are idle for `span`, ns, as early as possible, and the least idle in that time.

    (NEVER, 0): they never are, as nodes are down.
    """
    steps = profile.steps
    begin, least, i = steps.time[0], steps.idle[0], np.int64(0)
    while True:
        if steps.idle[i] < slots:
            i += 1
            if i == profile.number[0]:
                return NEVER, np.int64(0)
            begin, least = steps.time[i], steps.idle[i]
            continue
        least = min(least, steps.idle[i])
        i += 1
        if i == profile.number[0] or steps.time[i] - begin >= span:
            return begin, least
