"""Progress: what is being done, and for how long; tasks, events a second and virtual time of a run; runs of many.

A terminal shows it in its last line. Where standard error is no terminal, commands print a line every 30 s.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, TextIO

from emu.terminal import (
    LOCK,
    hidden_by,
    hide_progress,
    in_notebook,
    is_quiet,
    print_line,
    shows_progress,
)
from workloads.doing import Step, current, doing
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


class _Bars:
    """The bars of the steps that have one, and which are on the screen."""

    def __init__(self) -> None:
        self._of: dict[Step, Any] = {}
        self._visible: set[Step] = set()

    def add(self, step: Step, bar: Any) -> None:
        """Show the progress of a step by a bar of tqdm."""
        self._of[step] = bar

    def drop(self, step: Step) -> None:
        """Take the bar of a step off the screen for good."""
        with LOCK:
            self._visible.discard(step)
            if (bar := self._of.pop(step, None)) is not None:
                bar.close()

    def show(self, step: Step, write: Callable[[Any], object]) -> bool:
        """Let the bar of a step be written, in the place of the line that is there; return whether it has one."""
        if (bar := self._of.get(step)) is None:
            return False
        for teller in _tellers:
            teller.hide()
        write(bar)
        if step not in self._visible:
            self._visible.add(step)
            bar.refresh()
        return True

    def hide(self) -> None:
        """Take all bars off the screen, until they are written again."""
        while self._visible:
            self._of[self._visible.pop()].clear()


_BARS = _Bars()
TICK_S = 1.0
"""Between two looks at what is being done; so old is a step, at the least, that is shown."""
LINE_S = 30.0
"""Between two lines about what is being done, where no terminal shows it."""


class Teller:
    """Show what is being done, and for how long (`workloads.doing`), each time that `look` is called.

    On a terminal it is the bar of what runs, or a line of its own that is written over; else a line every `LINE_S`.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._one_line = shows_progress(stream)
        self._last_s = clock()
        self._shown = ""

    def look(self) -> None:
        """Show what is being done now."""
        with LOCK:
            now_s, step = self._clock(), current()
            if step is None:
                return
            if not self._one_line:
                if now_s - self._last_s >= LINE_S:
                    self._last_s = now_s
                    print_line(_lasting(step, now_s), self._stream)
            elif now_s - step.since >= TICK_S and not _BARS.show(step, lambda bar: bar.refresh()):
                hide_progress()
                room = shutil.get_terminal_size().columns - 1
                self._write(printable(f"emu: {_lasting(step, now_s)}")[:room])

    def hide(self) -> None:
        """Take the line off the screen."""
        if self._shown:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(len(self._shown)))
        self._stream.flush()
        self._shown = text


def _lasting(step: Step, now_s: float) -> str:
    """Return a step, how far it is and how long it has lasted.

    Examples
    --------
    >>> _lasting(Step("sparrow", "1,200 of 24,000 tasks", since=0.0), 60.4)
    'sparrow: 1,200 of 24,000 tasks, 60 s so far'
    """
    detail = step.detail() if callable(step.detail) else step.detail
    lasts_s = round(now_s - step.since)
    lasting = f", {format_duration(lasts_s)} so far" if lasts_s else ""
    return f"{step.what}: {detail}{lasting}" if detail else f"{step.what}{lasting}"


_tellers: list[Teller] = []  # the one that is at work


@contextmanager
def telling(stream: TextIO | None = None) -> Iterator[None]:
    """Within, what is being done is shown (`Teller`); nothing changes where that is so already, or with ``--quiet``."""
    if _tellers or is_quiet():
        yield
        return
    teller, ended = Teller(stream or sys.stderr), threading.Event()

    def look_again() -> None:
        while not ended.wait(TICK_S):
            with suppress(OSError, ValueError):  # the stream may be closed
                teller.look()

    thread = threading.Thread(target=look_again, daemon=True)
    _tellers.append(teller)
    thread.start()
    try:
        with hidden_by(_BARS.hide), hidden_by(teller.hide):
            yield
    finally:
        ended.set()
        thread.join()
        _tellers.remove(teller)


@contextmanager
def _shown_on(stream: TextIO, always: bool, what: str) -> Iterator[tuple[Step, bool] | None]:
    """Yield a step, and whether it has a bar on the stream; None where nothing shows it."""
    bar = always or shows_progress(stream)
    if not (bar or _tellers):
        yield None
        return
    with telling(stream) if shows_progress(stream) else nullcontext(), doing(what) as step:
        try:
            yield step, bar
        finally:
            _BARS.drop(step)


@contextmanager
def progress_bar(
    label: str, total: int, stream: TextIO | None = None, unit: str = "tasks", always: bool = False
) -> Iterator[Callback | None]:
    """Yield a callback for `progress` of `emu.run`, or None where nothing would show it, unless `always`."""
    stream = stream or sys.stderr
    with _shown_on(stream, always, label) as shown:
        yield None if shown is None else _RunProgress(*shown, label, total, unit, stream)


_BY_SHARE = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]"
_STALLED = "{desc}: {percentage:3.0f}% [{elapsed}{postfix}]"


class _RunProgress:
    """The progress of a run: by tasks, or by the share of the run that is done where tasks do not show it."""

    def __init__(self, step: Step, has_bar: bool, label: str, total: int, unit: str, stream: TextIO) -> None:
        self._step, self._has_bar, self._total, self._unit = step, has_bar, total, unit
        self._look = {"desc": printable(label), "total": total, "unit": f" {unit}", "file": stream}
        self._started = time.perf_counter()
        self._share: float | None = None
        self._stall: str | None = None
        self._bar: Any = None

    def share_done(self, share: float) -> None:
        """Go by this share, 0..1, from now on; see `actors.hosting.runs.emulate`."""
        self._share = share

    def stalled(self, stall: str | None) -> None:
        """Show these words about a stall, None while tasks end; see `actors.hosting.runs.emulate`."""
        self._stall = stall

    def __call__(self, tasks_done: int, events: int, virtual_s: float) -> None:
        if not self._has_bar:
            far = f"{tasks_done:,} of {self._total:,} {self._unit}" if self._share is None else (
                f"{self._share:.0%} done"
            )  # fmt: skip
            self._step.detail = f"{far}, {self._stall or f'virtual time {format_duration(virtual_s)}'}"
            return
        elapsed_s = time.perf_counter() - self._started
        text = self._stall or describe(events, elapsed_s, virtual_s)
        form = _STALLED if self._stall is not None else None if self._share is None else _BY_SHARE
        with LOCK:
            if self._bar is None:  # made late: lines may be printed until then
                # leave=False: only the table that follows stays on the screen.
                hide_progress()
                look = {**self._look, "unit_scale": True, "dynamic_ncols": True, "bar_format": form}
                self._bar = _bar_class()(leave=False, postfix=text, **look)
                _BARS.add(self._step, self._bar)
            self._bar.bar_format = form
            self._bar.set_postfix_str(text, refresh=False)
            done = tasks_done if self._share is None else max(round(self._share * self._total), self._bar.n)
            _BARS.show(self._step, lambda bar: bar.update(done - bar.n))


@contextmanager
def runs_bar(
    label: str, total: int, done: int = 0, stream: TextIO | None = None, always: bool = False
) -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield a callback for runs done, runs failed and the current run; None as `progress_bar` does."""
    stream = stream or sys.stderr
    with _shown_on(stream, always, label) as shown:
        if shown is None:
            yield None
            return
        step, has_bar = shown
        look = {"desc": printable(label), "unit": " runs", "leave": False, "dynamic_ncols": True}
        if has_bar:
            with LOCK:
                hide_progress()
                _BARS.add(step, _bar_class()(total=total, initial=done, file=stream, **look))

        def show(done: int, failed: int, current: str) -> None:
            text = f"{failed} failed, {current}" if failed else current
            step.detail = f"{done:,} of {total:,} runs, {text}"

            def write(bar: Any) -> None:
                bar.set_postfix_str(printable(text), refresh=False)
                bar.n = done
                bar.refresh()

            with LOCK:
                _BARS.show(step, write)

        yield show


@contextmanager
def bytes_bar(stream: TextIO | None = None) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a callback for a file, its bytes done and in all (0: not known), or None where nothing shows it."""
    stream = stream or sys.stderr
    with _shown_on(stream, False, "reading") as shown:
        if shown is None:
            yield None
            return
        step, has_bar = shown
        look = {"unit": "B", "unit_scale": True, "dynamic_ncols": True, "leave": False}
        of: str | None = None  # what the bar that is there is of

        def show(what: str, done: int, total: int) -> None:
            nonlocal of
            step.what = what
            step.detail = f"{done / 1e6:,.0f} MB" + (f" of {total / 1e6:,.0f}" if total else "")
            if not has_bar:
                return

            def write(bar: Any) -> None:
                bar.total = total or None
                bar.update(done - bar.n)

            with LOCK:
                if of != what:
                    _BARS.drop(step)
                    hide_progress()
                    _BARS.add(
                        step, _bar_class()(total=total or None, desc=printable(what), file=stream, **look)
                    )
                    of = what
                _BARS.show(step, write)

        yield show


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
