"""The record of a run, so that it can be cited: date, command, host, and version of the source."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_SOURCES = ("run.py", "emu", "actors", "clusters", "workloads", "pyproject.toml")
_command: ContextVar[tuple[str, ...] | None] = ContextVar("command", default=None)


@contextmanager
def commanded(argv: Sequence[str]) -> Iterator[None]:
    """Within, what is recorded was asked for by this command line, without the program's name."""
    token = _command.set(("emu", *argv))
    try:
        yield
    finally:
        _command.reset(token)


def provenance() -> dict[str, Any]:
    """Return when, where and by what a run is made; nothing of it decides what comes out.

    Returns
    -------
    dict
        ``date`` (UTC, ISO 8601), ``host``; ``command``, the words of the command line, but in Python; and where Emu
        runs from a git checkout ``source`` with its ``commit``, and ``modified``, whether the source differs from it.
    """
    command, source = _command.get(), _source()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "host": socket.gethostname(),
        **({} if command is None else {"command": list(command)}),
        **({} if source is None else {"source": source}),
    }


@cache
def _source() -> dict[str, Any] | None:
    """Return the commit that Emu runs from; None where there is no checkout, or no git."""
    if not (_ROOT / ".git").exists():  # else a repository around an installed Emu would be taken for its own
        return None
    import subprocess

    try:
        commit = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--", *_SOURCES)
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "modified": bool(changes)}


def _git(*arguments: str) -> str:
    """Return git's description of the checkout, whatever repository the environment may name."""
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(_ROOT), *arguments],
        capture_output=True, text=True, check=True, timeout=10, env=environment,
    )  # fmt: skip
    return done.stdout.strip()
