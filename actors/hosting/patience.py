"""What a user's own scheduler in Python takes: told after some seconds, where the whole run will be long."""

from collections.abc import Callable

from actors.hosting.partition import Asked
from workloads.units import format_duration

FIRST_S = 3.0  # of a run, after which it is clear enough what a decision takes
LONG_S = 30.0  # a run that is expected to be shorter is not told of
AGAIN = 2.0  # an expectation that has grown by this factor is told once more


class Patience:
    """Tells how long a run will take whose decisions are made in plain Python."""

    def __init__(self, scheduler: str, tell: Callable[[str], None] | None):
        self._scheduler = scheduler
        self._tell = tell
        self._told_s = LONG_S / AGAIN

    def look(self, asked: Asked | None) -> None:
        """Tell if it is time to."""
        if self._tell is None or asked is None or asked.wall_s < FIRST_S or not 0 < asked.share_done < 1:
            return
        expected_s = asked.wall_s / asked.share_done
        if expected_s >= AGAIN * self._told_s:
            self._told_s = expected_s
            each = format_duration(asked.took_s / max(asked.times, 1))
            self._tell(
                f"note: {self._scheduler}, in plain Python, takes {each} a decision, {asked.times:,} so far; about"
                f" {format_duration(expected_s)} for this run"
            )
