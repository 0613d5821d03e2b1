"""Causes of delay, and what parameters of schedulers and keys of the configuration do about them."""

from typing import NamedTuple

# The parts of the time that jobs wait in queues; `emu causes` names the other causes.
BEHIND_LONG, BEHIND_SHORT = "behind long tasks", "behind short tasks"
"""While tasks of long, or of short jobs ran on the node where the job waited."""
BEHIND_TASKS = "behind other tasks"
"""What takes the place of both where all jobs are of one class."""
BEHIND_EQUALS = (BEHIND_SHORT, BEHIND_TASKS)
BEHIND_UNFIT, FOR_LOWER = "behind what did not fit", "for room of lower priorities"
"""Where tasks hold resources: while the node had room for the job, and while it would have had room without tasks of
lower priority."""
OTHER_QUEUEING = "other queueing"
"""The rest, such as the wait at a scheduler for a node."""


class Remedy(NamedTuple):
    """What a parameter, or a key, does about a cause of delay."""

    cause: str
    does: str  # its effect, as a clause that follows its name
    group: str = ""  # of jobs whose delay it addresses; empty: all
    needs: str = ""  # the figure of the summary that a run must have for it to have an effect; empty: none
