"""The clock `virtual`: one partition holds all actors and runs as fast as it goes.

The partition is hosted in one Ray actor, or in this process.
"""

from typing import TYPE_CHECKING

from actors.hosting.partition import Observe, Outcome, Partition, Progress, Report, Tell
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
) -> Outcome:
    """Run an emulation to its end.

    Args:
        in_process: run in this process; ray is not imported.
        address: an existing Ray cluster; None starts one on this machine.
        progress: called now and then with tasks done, events handled and virtual seconds.
        tell: called with a line the user should see, such as that the first run compiles.

    Raises:
        KeyboardInterrupt: the user interrupted; what Ray runs of this emulation is stopped.
    """
    if in_process:
        return _drive(Partition(setting, observe), progress, tell)
    from actors.hosting.ray_session import RemotePartition

    partition = RemotePartition(setting, observe, address)
    try:
        return _drive(partition, progress, tell)
    finally:
        partition.close()


def _drive(partition: "Partition | RemotePartition", progress: Report | None, tell: Tell | None) -> Outcome:
    """Compile, run in slices, and fetch the result."""
    if tell is not None and not partition.is_warm():
        tell("compiling the kernel (first run of this scheduler on this machine; later runs load it)")
    partition.start()
    state = Progress(0, 0, 0.0, False)
    while not state.done:
        state = partition.run(SLICE_S)
        if progress is not None:
            progress(state.tasks_done, state.events, state.virtual_s)
    return partition.outcome()
