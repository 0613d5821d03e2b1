"""The clock `virtual`: one partition holds all actors and runs as fast as it can.

The partition is hosted in one Ray actor, or in this process.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from actors.hosting.checkpoint import Checkpoint, Checkpoints
from actors.hosting.child import in_child, pickle_by_value
from actors.hosting.outcome import Observe, Outcome
from actors.hosting.partition import Partition, Report, Tell
from actors.hosting.recovery import recover
from actors.hosting.slices import getting_ready, run_in_slices
from actors.setting import Setting
from workloads.doing import doing


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
        progress: called now and then with tasks done, events handled and virtual seconds. An attribute `share_done` is
            called first, with the share of the run that is done, if a user's own scheduler decides, as the tasks done
            do not show it then. An attribute `stalled` is called with a few words about the stall that lasts
            (`actors.hosting.stall`), or None.
        tell: called with a line the user should see, such as that the first run compiles; a line that begins with
            "note: " is printed also without a terminal.
        checkpoints: to continue from, and to write; with them a run survives the loss of its actor.

    Raises:
        Lost: Ray's processes of this emulation have died too often.
    """

    def attempt(start: Checkpoint | None) -> Outcome:
        with hosted() as partition:
            with getting_ready(setting, partition.is_warm(), tell):
                partition.start()
            if start is not None:
                with doing("restoring the checkpoint"):
                    partition.restore(start.snapshots[0])
            return run_in_slices(
                partition, lambda: [partition.snapshot()], setting, checkpoints, progress, tell
            )

    def hosted() -> AbstractContextManager[Any]:
        if in_process:
            return nullcontext(Partition(setting, observe))
        from actors.hosting.ray_session import RemotePartition

        return in_child(RemotePartition, setting, observe, address=address)

    if not in_process:
        pickle_by_value(setting.scheduler)
    return recover(attempt, checkpoints)
