"""The time that decisions of a user's own scheduler take: a notice where it makes the whole run long."""

from collections.abc import Callable

from actors.hosting.partition import Asked
from workloads.units import format_duration

FIRST_S = 3.0  # of a run, after which the mean time of a decision is clear enough
LONG_S = 30.0  # no notice of a run that is expected to be shorter
GROWTH = 2.0  # another notice when the expected time has grown by this factor


class DecisionTime:
    """A notice of how long a run will take whose decisions are made in plain Python."""

    def __init__(self, scheduler: str, tell: Callable[[str], None] | None):
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
