"""Output to a terminal: results on standard output, all else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from workloads.errors import printable

_ASCII = str.maketrans({"\N{MULTIPLICATION SIGN}": "x", "±": "~", "→": "->", "≤": "<=", "…": "...", "µ": "u"})
_results: TextIO | None = None  # standard output, where it is for results alone


def put(text: str) -> None:
    """Print results to standard output; signs that its encoding lacks are replaced, others escaped (`printable`)."""
    stream = _results or sys.stdout
    text = printable(text, keep="\n\t")
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        text = to_ascii(text)
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


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line of progress, only to a terminal, except for lines that begin with ``note:``."""
    stream = stream or sys.stderr
    if text.startswith("note: ") or is_terminal(stream):
        print(printable(f"emu: {text}", keep="\n"), file=stream, flush=True)


def note(text: str) -> None:
    """Print a line for the user on standard error, also if that is not a terminal."""
    print(printable(f"emu: note: {text}"), file=sys.stderr, flush=True)


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person reads the stream; False for a closed or missing one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
