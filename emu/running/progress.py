"""Progress on a terminal: tasks, events a second and virtual time of a run; runs of many; bytes of files."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TextIO

from emu.terminal import in_notebook, shows_progress
from workloads.errors import printable
from workloads.units import format_duration

Callback = Callable[[int, int, float], None]
"""Gets tasks done, events, and virtual time in seconds."""


def watch_of(
    progress: bool | Callback | None, unit: str
) -> Callable[[str, int], AbstractContextManager[Callback | None]] | None:
    """Return what makes the bar of each run, or None: as the argument `progress` of `emu.run` asks for it."""
    if progress is False:
        return None
    if callable(progress):
        return lambda *_: nullcontext(progress)
    return partial(progress_bar, unit=unit, always=bool(progress))


def bar_of(progress: bool | None) -> Callable[..., AbstractContextManager[Any]] | None:
    """Return what makes the bar of many runs, `runs_bar`, or None."""
    return None if progress is False else partial(runs_bar, always=bool(progress))


def _bar_class() -> Any:
    """Return the class of bars: widgets in a notebook that has them, else text."""
    if in_notebook():
        with warnings.catch_warnings():  # tqdm warns if there are no widgets, and uses text
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm as found
        return found
    from tqdm import tqdm

    return tqdm


@contextmanager
def progress_bar(
    label: str, total: int, stream: TextIO | None = None, unit: str = "tasks", always: bool = False
) -> Iterator[Callback | None]:
    """Yield a callback for `progress` of `emu.run`, or None where no terminal would show it, unless `always`."""
    stream = stream or sys.stderr
    if not (always or shows_progress(stream)):
        yield None
        return
    show = _RunBar(label, total, unit, stream)
    try:
        yield show
    finally:
        show.close()


_BY_SHARE = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]"
_STALLED = "{desc}: {percentage:3.0f}% [{elapsed}{postfix}]"


class _RunBar:
    """The bar of a run: by tasks, or by the share of the run that is done where tasks do not show it."""

    def __init__(self, label: str, total: int, unit: str, stream: TextIO) -> None:
        self._look = {"desc": printable(label), "total": total, "unit": f" {unit}", "file": stream}
        self._started = time.perf_counter()
        self._share: float | None = None
        self._stall: str | None = None
        self._bar: Any = None

    def share_done(self, share: float) -> None:
        """Go by this share, 0..1, from now on; see `actors.hosting.virtual.emulate`."""
        self._share = share

    def stalled(self, stall: str | None) -> None:
        """Show these words about a stall, None while tasks end; see `actors.hosting.virtual.emulate`."""
        self._stall = stall

    def __call__(self, tasks_done: int, events: int, virtual_s: float) -> None:
        elapsed_s = time.perf_counter() - self._started
        text = self._stall or describe(events, elapsed_s, virtual_s)
        form = _STALLED if self._stall is not None else None if self._share is None else _BY_SHARE
        if self._bar is None:  # made late: lines may be printed until then
            # leave=False: only the table that follows stays on the screen.
            look = {**self._look, "unit_scale": True, "dynamic_ncols": True, "bar_format": form}
            self._bar = _bar_class()(leave=False, postfix=text, **look)
        self._bar.bar_format = form
        self._bar.set_postfix_str(text, refresh=False)
        done = tasks_done if self._share is None else max(round(self._share * self._bar.total), self._bar.n)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._bar is not None:
            self._bar.close()


@contextmanager
def runs_bar(
    label: str, total: int, done: int = 0, stream: TextIO | None = None, always: bool = False
) -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield a callback for runs done, runs failed and the current run; None as `progress_bar` does."""
    stream = stream or sys.stderr
    if not (always or shows_progress(stream)):
        yield None
        return
    look = {"desc": printable(label), "unit": " runs", "leave": False, "dynamic_ncols": True}
    with _bar_class()(total=total, initial=done, file=stream, **look) as bar:

        def show(done: int, failed: int, current: str) -> None:
            current = printable(current)
            bar.set_postfix_str(f"{failed} failed, {current}" if failed else current, refresh=False)
            bar.n = done
            bar.refresh()

        yield show


@contextmanager
def bytes_bar(stream: TextIO | None = None) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a callback for a file, its bytes done and in all (0: not known), or None where no terminal shows it."""
    stream = stream or sys.stderr
    if not shows_progress(stream):
        yield None
        return
    look = {"unit": "B", "unit_scale": True, "dynamic_ncols": True, "leave": False}
    bar: Any = None

    def show(what: str, done: int, total: int) -> None:
        nonlocal bar
        what = printable(what)
        if bar is None or bar.desc.removesuffix(": ") != what:
            if bar is not None:
                bar.close()
            bar = _bar_class()(total=total or None, desc=what, file=stream, **look)
        bar.total = total or None
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


def describe(events: int, elapsed_s: float, virtual_s: float) -> str:
    """Return the text beside the bar.

    Examples
    --------
    >>> describe(9_000_000, 3.0, 7261.0)
    '3.0M events/s, virtual time 2.017 h'
    """
    rate = events / elapsed_s if elapsed_s > 0 else 0.0
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{suffix} events/s, virtual time {format_duration(virtual_s)}"
    return f"{rate:.0f} events/s, virtual time {format_duration(virtual_s)}"
