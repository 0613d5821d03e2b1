"""Output to a terminal: results on standard output, all else on standard error."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from workloads.errors import printable

_ASCII = str.maketrans({"\N{MULTIPLICATION SIGN}": "x", "±": "~", "→": "->", "≤": "<=", "…": "...", "µ": "u"})
MOST_ALIKE = 3
"""How many are shown of notes of several runs that differ only in numbers."""
LOCK = threading.RLock()
"""Held while something is written to the screen: progress is written by a thread of its own."""
_results: TextIO | None = None  # standard output, where it is for results alone
_level = 0  # of what goes to standard error: -1 errors alone, 1 details too
_hide: list[Callable[[], None]] = []
"""Take what shows progress off the screen, for a line that is printed; what shows it puts it there again."""


def put(text: str) -> None:
    """Print results to standard output; signs that its encoding lacks are replaced, control characters escaped."""
    stream = _results or sys.stdout
    text = printable(text, keep="\n\t")
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        text = to_ascii(text)
    with LOCK:
        hide_progress()
        stream.write(text if text.endswith("\n") else text + "\n")


def to_ascii(text: str) -> str:
    """Return text for an output that is not UTF-8: our own signs in ASCII, others as ``?``."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


@contextmanager
def results_alone() -> Iterator[None]:
    """Within, standard output is for results; what a user's scheduler prints goes to standard error."""
    global _results
    _results, before = sys.stdout, _results
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _results = before


def warn(notes: Iterable[str]) -> None:
    """Print a line for the user on standard error, also if that is not a terminal."""
    for text in notes:
        note(text)


def few_alike(notes: Iterable[str]) -> list[str]:
    """Return each note once; of those that differ in numbers alone the first ones, and how many more there are.

    Examples
    --------
    >>> few_alike(f"seed {seed}: 2 jobs never start" for seed in range(1, 41))[2:]
    ['seed 3: 2 jobs never start', '37 more notes differ from it in numbers alone']
    """
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(notes):
        alike.setdefault(re.sub(r"\d[\d.,]*", "", text), []).append(text)
    shown = []
    for own in alike.values():
        shown += own[:MOST_ALIKE]
        if len(own) > MOST_ALIKE:
            more = len(own) - MOST_ALIKE
            what = "note differs" if more == 1 else "notes differ"
            shown.append(f"{more:,} more {what} from it in numbers alone")
    return shown


@contextmanager
def talking(*, quiet: bool = False, verbose: bool = False) -> Iterator[None]:
    """Within, standard error has errors alone (`quiet`), or what `detail` prints too (`verbose`)."""
    global _level
    before, _level = _level, -1 if quiet else int(verbose)
    try:
        yield
    finally:
        _level = before


def detail(text: str) -> None:
    """Print a line that ``--verbose`` asks for."""
    if _level > 0:
        print_line(text)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line of progress to a terminal, or with ``--verbose``; print one that begins with ``note:`` always."""
    stream = stream or sys.stderr
    if shows_progress(stream) or (_level >= 0 and text.startswith("note: ")) or _level > 0:
        print_line(text, stream, keep="\n")


def note(text: str) -> None:
    """Print a line for the user on standard error, also if that is not a terminal."""
    if _level >= 0:
        print_line(f"note: {text}")


def print_line(text: str, stream: TextIO | None = None, keep: str = "") -> None:
    """Print a line that begins with ``emu:``, by default on standard error; `keep` as of `printable`."""
    with LOCK:
        hide_progress()
        print(printable(f"emu: {text}", keep=keep), file=stream or sys.stderr, flush=True)


def hide_progress() -> None:
    """Take what shows progress off the screen."""
    for hide in _hide:
        hide()


@contextmanager
def hidden_by(hide: Callable[[], None]) -> Iterator[None]:
    """Within, `hide` takes something off the screen where a line is printed."""
    with LOCK:
        _hide.append(hide)
    try:
        yield
    finally:
        with LOCK:
            hide()
            _hide.remove(hide)


def is_quiet() -> bool:
    """Return whether standard error has errors alone, as with ``--quiet``."""
    return _level < 0


def shows_progress(stream: TextIO) -> bool:
    """Return whether progress is shown: to a person, without ``--quiet``."""
    return _level >= 0 and (is_terminal(stream) or in_notebook())


def in_notebook() -> bool:
    """Return whether this process runs the cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person reads the stream; False for a closed or missing one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
