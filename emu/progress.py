"""Progress on a terminal: tasks, events a second and virtual time of a run; runs of many; bytes of files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from emu.terminal import is_terminal
from workloads.units import format_duration


@contextmanager
def progress_bar(
    label: str, total: int, stream: TextIO | None = None, unit: str = "tasks"
) -> Iterator[Callable[[int, int, float], None] | None]:
    """Yield what `emu.run` wants as `progress`, or None where no terminal would show it."""
    stream = stream or sys.stderr
    if not is_terminal(stream):
        yield None
        return
    from tqdm import tqdm

    started = time.perf_counter()
    bar: Any = None

    def show(tasks_done: int, events: int, virtual_s: float) -> None:
        nonlocal bar
        if bar is None:  # not before there is something to show: lines may be said until then
            look = {"unit": f" {unit}", "unit_scale": True, "dynamic_ncols": True}
            # leave=False: the table that follows is what stays on the screen.
            bar = tqdm(total=total, desc=label, file=stream, leave=False, **look)
        bar.set_postfix_str(describe(events, time.perf_counter() - started, virtual_s), refresh=False)
        bar.update(tasks_done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def runs_bar(
    label: str, total: int, done: int = 0, stream: TextIO | None = None
) -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield what is told runs done, runs failed and what is being run, or None where no terminal would show it."""
    stream = stream or sys.stderr
    if not is_terminal(stream):
        yield None
        return
    from tqdm import tqdm

    with tqdm(
        total=total, initial=done, desc=label, unit=" runs", file=stream, leave=False, dynamic_ncols=True
    ) as bar:

        def show(done: int, failed: int, current: str) -> None:
            bar.set_postfix_str(f"{failed} failed, {current}" if failed else current, refresh=False)
            bar.n = done
            bar.refresh()

        yield show


@contextmanager
def bytes_bar(stream: TextIO | None = None) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield what is told a file, its bytes done and in all (0: not known), or None where no terminal shows it."""
    stream = stream or sys.stderr
    if not is_terminal(stream):
        yield None
        return
    from tqdm import tqdm

    look = {"unit": "B", "unit_scale": True, "dynamic_ncols": True, "leave": False}
    bar: Any = None

    def show(what: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None or bar.desc.removesuffix(": ") != what:
            if bar is not None:
                bar.close()
            bar = tqdm(total=total or None, desc=what, file=stream, **look)
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
