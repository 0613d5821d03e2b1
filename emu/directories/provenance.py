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
    """Within, runs record this command line, which is given without the program's name."""
    token = _command.set(("emu", *argv))
    try:
        yield
    finally:
        _command.reset(token)


def provenance() -> dict[str, Any]:
    """Return when, where and by what a run is made; it does not affect the result.

    ``date`` (UTC, ISO 8601) and ``host``; of a command line ``command``, its words; and where Emu runs from a git
    checkout, ``source`` with its ``commit``, and ``modified``, whether the source differs from that.
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
    """Return the commit that Emu runs from; None without a checkout or without git."""
    if not (_ROOT / ".git").exists():  # a repository around an installed Emu is not its own
        return None
    import subprocess

    try:
        commit = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--", *_SOURCES)
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "modified": bool(changes)}


def _git(*arguments: str) -> str:
    """Return the output of a git command in the checkout, whichever repository the environment names."""
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(_ROOT), *arguments],
        capture_output=True, text=True, check=True, timeout=10, env=environment,
    )  # fmt: skip
    return done.stdout.strip()
