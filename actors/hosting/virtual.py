"""The clock `virtual`: one partition holds all actors and runs as fast as it goes.

The partition is hosted in one Ray actor, or in this process.
"""

from typing import TYPE_CHECKING

from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position
from actors.hosting.outcome import Observe, Outcome
from actors.hosting.partition import Partition, Report, Tell
from actors.hosting.patience import Patience
from actors.hosting.recovery import interrupts_deferred, pause, recover
from actors.setting import Setting

if TYPE_CHECKING:
    from actors.hosting.ray_session import RemotePartition

SLICE_S = 0.25  # how long a partition runs between two looks at it


def emulate(
    setting: Setting,
    observe: Observe,
    *,
    in_process: bool,
    address: str | None = None,
    progress: Report | None = None,
    tell: Tell | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Run an emulation to its end.

    Args:
        in_process: run in this process; ray is not imported.
        address: an existing Ray cluster; None starts one on this machine.
        progress: called now and then with tasks done, events handled and virtual seconds. If it has an attribute
            `share_done`, that is called before with the share of the run that is done, where a user's own scheduler
            decides: tasks do not tell it there.
        tell: called with a line the user should see, such as that the first run compiles; what begins with "note: "
            also where no terminal is.
        checkpoints: to go on from, and to write; with them a run survives the loss of its actor.

    Raises:
        Lost: what Ray runs of this emulation has died too often.
        KeyboardInterrupt: the user interrupted; what Ray runs of this emulation is stopped.
    """
    name = setting.scheduler.name
    if in_process:

        def here(start: Checkpoint | None) -> Outcome:
            return _drive(Partition(setting, observe), name, start, checkpoints, progress, tell)

        return recover(here, checkpoints, lambda: None)
    from actors.hosting.ray_session import RemotePartition, revive

    def in_an_actor(start: Checkpoint | None) -> Outcome:
        partition = RemotePartition(setting, observe, address)
        try:
            return _drive(partition, name, start, checkpoints, progress, tell)
        finally:
            partition.close()

    return recover(in_an_actor, checkpoints, revive)


def _drive(
    partition: "Partition | RemotePartition",
    scheduler: str,
    start: Checkpoint | None,
    checkpoints: Checkpoints | None,
    progress: Report | None,
    tell: Tell | None,
) -> Outcome:
    """Compile, run in slices, and fetch the result."""
    if tell is not None and not partition.is_warm():
        tell("compiling the kernel (first run of this scheduler on this machine; later runs load it)")
    partition.start()
    if start is not None:
        partition.restore(start.snapshots[0])
    slice_s = SLICE_S if checkpoints is None else min(SLICE_S, checkpoints.period_s)
    patience = Patience(scheduler, tell)
    with interrupts_deferred() as interrupted:
        while True:
            state = partition.run(slice_s)
            patience.look(state.asked)
            if progress is not None:
                if state.asked is not None and hasattr(progress, "share_done"):
                    progress.share_done(state.asked.share_done)
                progress(state.tasks_done, state.events, state.virtual_s)
            at = Position(state.virtual_s, state.events)
            pause(checkpoints, interrupted(), lambda: [partition.snapshot()], at)
            if state.done:
                return partition.outcome()
