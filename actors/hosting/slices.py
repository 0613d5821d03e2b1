"""A run in slices of wall time, to its end: between two slices progress is shown, and a checkpoint written."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from actors.compiling.kernel_cache import fingerprints_of, kept_fingerprints
from actors.hosting.checkpoint import Checkpoints
from actors.hosting.interrupts import interrupts_deferred
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Asked, Report, Tell
from actors.hosting.recovery import pause
from actors.hosting.snapshot import Snapshot
from actors.hosting.stall import StallWatch
from actors.setting import Setting
from workloads.doing import Step, doing
from workloads.units import format_duration

SLICE_S = 0.25
COMPILING = "compiling the kernel (first run of this scheduler on this machine; later runs load it)"
# The notice of how long the decisions of a user's own scheduler take:
FIRST_S = 3.0  # of a run, after which the mean time of a decision is clear enough
LONG_S = 30.0  # no notice of a run that is expected to be shorter
GROWTH = 2.0  # another notice when the expected time has grown by this factor


INNER_SHARE = 0.7
"""Of the time that compiling takes, what the functions take that a loop calls; the rest is the loop itself, which comes
last, with all of them in it: 0.7 of sparrow's 264."""


@contextmanager
def getting_ready(setting: Setting, warm: bool, tell: Tell | None) -> Iterator[None]:
    """Within, loops of a scheduler are compiled, or loaded where they are `warm`."""
    if tell is not None and not warm:
        tell(COMPILING)
    with doing("loading the kernel" if warm else "compiling the kernel") as step:
        if not warm:
            step.detail = compiled_so_far(setting.scheduler.loops, step)
        yield


def compiled_so_far(
    loops: Sequence[Any], step: Step, clock: Callable[[], float] = time.monotonic
) -> Callable[[], str]:
    """Return what says how many functions of loops are compiled since a step began, and how long the rest will take.

    It looks at the disk of this machine, whichever process compiles. Nothing is said while none is there.
    """
    wanted = fingerprints_of(loops) - kept_fingerprints()
    seen, seen_s = 0, 0.0

    def text() -> str:
        nonlocal seen, seen_s
        now_s = clock() - step.since
        done = len(wanted & kept_fingerprints())
        if done == 0:
            return ""
        if done > seen:
            seen, seen_s = done, now_s
        left_s = seen_s * len(wanted) / (seen * INNER_SHARE) - now_s
        left = f", about {format_duration(round(left_s))} left" if left_s >= 1 else ""
        return f"{done} of {len(wanted)} functions{left}"

    return text


class DecisionTime:
    """A notice of how long a run will take whose decisions are made in plain Python."""

    def __init__(self, scheduler: str, tell: Tell | None):
        self._scheduler = scheduler
        self._tell = tell
        self._announced_s = LONG_S / GROWTH

    def update(self, asked: Asked | None) -> None:
        """Send the notice if it is due."""
        if self._tell is None or asked is None or asked.wall_s < FIRST_S or not 0 < asked.share_done < 1:
            return
        expected_s = asked.wall_s / asked.share_done
        if expected_s >= GROWTH * self._announced_s:
            self._announced_s = expected_s
            each = format_duration(asked.took_s / max(asked.times, 1))
            self._tell(
                f"note: {self._scheduler}, in plain Python, takes {each} a decision, {asked.times:,} so far; about"
                f" {format_duration(expected_s)} for this run"
            )


def run_in_slices(
    running: Any,
    take: Callable[[], list[Snapshot]],
    setting: Setting,
    checkpoints: Checkpoints | None,
    progress: Report | None,
    tell: Tell | None,
) -> Outcome:
    """Run to the end and fetch the result.

    Args:
        running: all partitions, here or in the child that drives Ray; it has `Partition.run` and `Partition.outcome`.
        take: returns the snapshots of all partitions.
        setting: of the run.
        checkpoints, progress, tell: as `actors.hosting.virtual.emulate`.
    """
    slice_s = SLICE_S if checkpoints is None else min(SLICE_S, checkpoints.period_s)
    notice, stall = DecisionTime(setting.scheduler.name, tell), StallWatch(setting, progress, tell)
    with interrupts_deferred() as interrupted:
        while True:
            state = running.run(slice_s)
            notice.update(state.asked)
            stall.update(state.tasks_done, state.at.events, state.at.virtual_s)
            if progress is not None:
                if state.asked is not None and hasattr(progress, "share_done"):
                    progress.share_done(state.asked.share_done)
                progress(state.tasks_done, state.at.events, state.at.virtual_s)
            pause(checkpoints, interrupted(), take, state.at, stall.present)
            if state.done:
                with doing("collecting the results"):
                    outcome: Outcome = running.outcome()
                return replace(outcome, stall=stall.past)
