"""The report of a reader: counts of what it read, repaired and dropped, and why; and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being read, the bytes done, and the bytes in all."""


class Report:
    """Counts of what was read, repaired and dropped, in the order in which each was first met.

    Counts under the same words add up. A count of 0 of what was repaired or dropped is not listed.

    Examples
    --------
    >>> report = Report()
    >>> report.read("rows of batch_task.csv", 14295)
    >>> report.repaired("end before start: taken as 0 s long", 2)
    >>> report.dropped("tasks that never ended", 0)
    >>> report.lines()
    ['read 14,295 rows of batch_task.csv', 'repaired 2: end before start: taken as 0 s long']
    """

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in ("read", "repaired", "dropped")}

    def read(self, what: str, count: int) -> None:
        """Count what was read, such as ``"rows of batch_task.csv"``."""
        self._counts["read"][what] += count

    def repaired(self, what: str, count: int) -> None:
        """Count a fault and its repair, such as ``"end before start: taken as 0 s long"``."""
        if count:
            self._counts["repaired"][what] += count

    def dropped(self, what: str, count: int) -> None:
        """Count what was left out, by reason, such as ``"tasks that never ended"``."""
        if count:
            self._counts["dropped"][what] += count

    def lines(self) -> list[str]:
        """Return a line for each count: read, then repaired, then dropped."""
        joint = {"read": " ", "repaired": ": ", "dropped": ": "}
        return [
            f"{done} {count:,}{joint[done]}{what}"
            for done, counts in self._counts.items()
            for what, count in counts.items()
        ]

    def left_out(self) -> str:
        """Return what was dropped as the end of an error: ``: dropped 3: …; dropped 1: …``, or ``""``."""
        dropped = "; ".join(line for line in self.lines() if line.startswith("dropped"))
        return f": {dropped}" if dropped else ""

    def notes(self) -> tuple[str, ...]:
        """Return the lines as a workload's notes: none where nothing was repaired or dropped."""
        return tuple(self.lines()) if self._counts["repaired"] or self._counts["dropped"] else ()

    def as_metadata(self) -> dict[str, str]:
        """Return the counts as a workload's metadata: keys ``read``, ``repaired``, ``dropped`` where any."""
        return {
            done: "; ".join(f"{count:,} {what}" for what, count in counts.items())
            for done, counts in self._counts.items()
            if counts
        }
