"""A run in slices of wall time, to its end: between two slices progress is shown, and a checkpoint written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from actors.hosting.checkpoint import Checkpoints
from actors.hosting.decision_time import DecisionTime
from actors.hosting.interrupts import interrupts_deferred
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Progress, Report, Tell
from actors.hosting.recovery import pause
from actors.hosting.snapshot import Snapshot
from actors.hosting.stall import StallWatch
from actors.setting import Setting

SLICE_S = 0.25
COMPILING = "compiling the kernel (first run of this scheduler on this machine; later runs load it)"


class Running(Protocol):
    """All partitions of a run, in this process or in the child that drives Ray."""

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or to the end."""

    def outcome(self) -> Outcome:
        """Return the result."""


def run_in_slices(
    running: Running,
    take: Callable[[], list[Snapshot]],
    setting: Setting,
    checkpoints: Checkpoints | None,
    progress: Report | None,
    tell: Tell | None,
) -> Outcome:
    """Run to the end and fetch the result.

    Args:
        take: returns the snapshots of all partitions.
        setting: of the run.
        checkpoints, progress, tell: as `actors.hosting.virtual.emulate`.

    Raises:
        KeyboardInterrupt: the user interrupted.
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
                return replace(running.outcome(), stall=stall.past)
