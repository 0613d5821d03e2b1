"""What this program is doing now, and since when: for who waits for it.

    with doing("starting Ray"):
        ...

Whoever shows progress looks at `current` (`emu.running.progress`); nothing is shown by this module.
"""  # fmt: skip

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class Step:
    """Something that is being done.

    Attributes
    ----------
    what : str
        In a few words, as they follow "is": ``starting Ray``; or the name of what runs.
    detail : str or callable
        How far it is, such as ``1,200 of 24,000 tasks``, or what returns that when it is shown; may be set at any time.
    since : float
        By `time.monotonic`, seconds.
    """

    what: str
    detail: str | Callable[[], str] = ""
    since: float = field(default_factory=time.monotonic)


_steps: list[Step] = []  # that have begun and not ended, the innermost last


@contextmanager
def doing(what: str) -> Iterator[Step]:
    """Within, this is what is being done; a step within it is shown in its place while that lasts."""
    step = Step(what)
    _steps.append(step)
    try:
        yield step
    finally:
        _steps.remove(step)  # not always the last: a step of another thread may have begun since


def current() -> Step | None:
    """Return the innermost step; None where nothing is being done."""
    return next(reversed(_steps), None)
