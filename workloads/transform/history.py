"""The transformations of a workload, in its metadata: ``transformed.1``, ``transformed.2``, ... in order.

Each says a transformation and its options, so that it can be done again::

    transformed.1: slice start_s=0.0 end_s=3600.0 rebase=yes # 812 of 24,262 jobs
    transformed.2: scale load=0.9 nodes=15000 slots=1

The text after ``#`` states the result.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from workloads.transform.primitives import W, Workload, with_tables

_KEY = re.compile(r"transformed\.([1-9][0-9]*)")


def recorded(
    workload: W, step: str, options: Mapping[str, object], outcome: str = "", *, note: bool = False
) -> W:
    """Return the workload with one more line of history; options that are None are left out.

    With `note` the outcome is also a note for the user.
    """
    words = [f"{name}={shlex.quote(_text(value))}" for name, value in options.items() if value is not None]
    line, outcome = " ".join([step, *words]), " ".join(outcome.split())
    key = f"transformed.{1 + max(_numbers(workload), default=0)}"
    return with_tables(
        workload,
        metadata={**workload.metadata, key: f"{line} # {outcome}" if outcome else line},
        notes=(*workload.notes, f"{step}: {outcome}") if note and outcome else workload.notes,
    )


def history(workload: Workload) -> tuple[str, ...]:
    """Return what was done to a workload, first to last."""
    return tuple(workload.metadata[f"transformed.{n}"] for n in sorted(_numbers(workload)))


def parse_step(line: str) -> tuple[str, dict[str, str]]:
    """Return a line of history as the transformation's name and its options as text."""
    name, *words = shlex.split(line, comments=True)
    return name, dict(word.split("=", 1) for word in words)


def _numbers(workload: Workload) -> list[int]:
    return [int(match[1]) for key in workload.metadata if (match := _KEY.fullmatch(key))]


def _text(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
