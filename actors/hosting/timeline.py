"""The timeline of a run: tasks queued and running, at a period of virtual time, in a bounded number of rows.

A row is kept only where it differs from the one before, and the run does not stop for samples between which nothing
happens: the cost of a timeline depends on the events of a run and not on the period. Where there would be more rows
than asked for, every second, fourth, eighth … is given; which ones depends on the end of the run alone, so that
partitions agree on them.
"""

from collections.abc import Sequence

import numpy as np

from actors.kernel.queue import NEVER

NS = 1_000_000_000
MOST_ROWS = 1_000_000
TIMELINE = ("time_s", "utilisation", "queued_short", "queued_long", "running_short", "running_long")
STATE = ("next", "every", "taken")  # of `Samples.save`, in front of the rows


class Samples:
    """The rows of one partition.

    The timeline begins at `first_ns`, and its first row is a period later; with a period of 0 there is no timeline.
    """

    def __init__(self, first_ns: int, period_ns: int, most_rows: int = MOST_ROWS):
        self.first_ns, self.period_ns = first_ns, period_ns
        self._most = 4 * most_rows
        self._every = 1
        # After how many periods, and the counts from then on.
        self._rows: list[tuple[int, ...]] = [(0,) * len(TIMELINE)]
        self._next, self._taken = 1, 0

    @property
    def next_ns(self) -> int:
        """Return when the next sample is due: after all events before that time, and before those at it."""
        return min(self.first_ns + self._next * self.period_ns, int(NEVER)) if self.period_ns else int(NEVER)

    @property
    def skipped_ns(self) -> int:
        """Return the time before which an event, not known so far, makes an earlier sample due; -1: none does."""
        if not self.period_ns or self._next <= (self._taken // self._every + 1) * self._every:
            return -1
        return self.first_ns + (self._next - self._every) * self.period_ns

    def note(self, queued: Sequence[int], running: Sequence[int], next_event_ns: int) -> None:
        """Record the sample that is due; the next one is due after the next event."""
        counts = (sum(running), *queued, *running)
        if self._rows[-1][0] >= self._next:
            self._rows.pop()  # `_thin` moved an earlier row here
        if counts != self._rows[-1][1:]:
            self._rows.append((self._next, *counts))
        self._taken = self._next
        while len(self._rows) > self._most:
            self._thin()
        self._next = self._after(next_event_ns)

    def expect(self, event_ns: int) -> None:
        """Take into account an event at this time, earlier than was known."""
        if self.period_ns:
            self._next = min(self._next, self._after(event_ns))

    def _after(self, event_ns: int) -> int:
        """Return the number of the first sample after an event that is later than the last one."""
        step = self.period_ns * self._every
        least = self._taken // self._every + 1
        return max((event_ns - self.first_ns) // step + 1, least) * self._every

    def _thin(self) -> None:
        """Keep every second row."""
        self._every *= 2
        # A row holds from the next time on that is left; of several the last one.
        left = {-(-k // self._every) * self._every: counts for k, *counts in self._rows}
        self._rows = [(k, *counts) for k, counts in left.items()]

    def rows(self) -> np.ndarray:
        """Return [K, len(TIMELINE)] int64: after how many periods, and counts to be added up from then on."""
        return np.array(self._rows, np.int64)

    def save(self) -> np.ndarray:
        """Return the state of the timeline, [len(STATE) + K · len(TIMELINE)] int64."""
        return np.concatenate([[self._next, self._every, self._taken], self.rows().ravel()])

    def load(self, saved: np.ndarray) -> None:
        """Continue from what `save` returned."""
        self._next, self._every, self._taken = saved[: len(STATE)].tolist()
        rows = saved[len(STATE) :].reshape(-1, len(TIMELINE)).tolist()
        self._rows = [tuple(row) for row in rows]


def merge_samples(
    rows: Sequence[np.ndarray], first_ns: int, period_ns: int, last_ns: int, total_slots: int, most_rows: int
) -> tuple[dict[str, np.ndarray], int]:
    """Return the timeline up to the end of the last task, and how many periods lie between two of its rows.

    Args:
        rows: of all partitions, as `Samples.rows` returns them.
    """
    count, step = (last_ns - first_ns) // period_ns if period_ns else 0, 1
    while count // step > most_rows:
        step *= 2
    place = np.arange(1, count // step + 1, dtype=np.int64) * step
    counts = np.zeros((place.size, len(TIMELINE) - 1), np.int64)
    for own in rows:
        counts += own[np.searchsorted(own[:, 0], place, side="right") - 1, 1:]
    columns = [(first_ns + place * period_ns) / NS, counts[:, 0] / total_slots, *counts[:, 1:].T]
    return dict(zip(TIMELINE, columns, strict=True)), step
