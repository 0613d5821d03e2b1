"""Recovery of a run from its newest checkpoint when a process that it needs dies; a last checkpoint after Ctrl-C."""

import dataclasses
import time
from collections.abc import Callable

from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position
from actors.hosting.interrupts import Lost, interrupt
from actors.hosting.outcome import Outcome
from actors.hosting.snapshot import Refused, Snapshot

MOST_RESTARTS = 3  # in a row, without a checkpoint in between
PAUSE_S = 1.0  # for a cluster to notice which other processes are gone

Attempt = Callable[[Checkpoint | None], Outcome]


def recover(attempt: Attempt, checkpoints: Checkpoints | None) -> Outcome:
    """Run to the end; continue from the newest checkpoint each time that a process is lost.

    `attempt` runs from a checkpoint, or from the beginning; it raises `Lost` when a process is lost, and `Refused` if
    the arrays of the checkpoint are not those of this run. Without checkpoints the first loss ends the run, else more
    than MOST_RESTARTS losses without a checkpoint in between.
    """
    if checkpoints is None:
        return attempt(None)
    start = checkpoints.load()
    if start is not None:
        checkpoints.restarts = start.at.restarts + 1
    losses, saved = 0, checkpoints.saved
    while True:
        try:
            outcome = attempt(start)
            return dataclasses.replace(outcome, restarts=checkpoints.restarts)
        except Refused as why:
            assert start is not None
            checkpoints.refuse(start.number, why)
            start = checkpoints.load()
        except Lost as loss:
            losses = 1 if checkpoints.saved > saved else losses + 1
            saved = checkpoints.saved
            if losses > MOST_RESTARTS:
                raise Lost(f"{loss}; {losses} times without a checkpoint in between") from None
            time.sleep(PAUSE_S)
            checkpoints.restarts += 1
            start = checkpoints.load()
            where = "from the beginning" if start is None else f"from virtual time {start.at.virtual_s:.6g} s"
            checkpoints.warn(f"{loss}; the run goes on {where}")


def pause(
    checkpoints: Checkpoints | None,
    interrupted: bool,
    take: Callable[[], list[Snapshot]],
    at: Position,
    stall: str | None = None,
) -> None:
    """Write a checkpoint if one is due, or after Ctrl-C a last one; no partition may be running.

    `take` returns the snapshots of all partitions, which are at `at`. After Ctrl-C raise KeyboardInterrupt, with the
    note on the stall that lasts.
    """
    if not interrupted:
        if checkpoints is not None and checkpoints.due():
            checkpoints.save(take(), at)
        return
    if checkpoints is not None and checkpoints.wanted():
        try:
            checkpoints.save(take(), at)
        except Exception as error:  # the run ends, as the user asked
            checkpoints.warn(f"no last checkpoint: {error}")
    raise interrupt(stall)
