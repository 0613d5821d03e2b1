"""The end of an error about an unknown name: the nearest one that exists, and what there is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

_SHOWN = 12


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the hint to append to ``unknown … 'name'``.

    Examples
    --------
    >>> did_you_mean("eagel", ["sparrow", "hawk", "eagle"])
    "; did you mean 'eagle'? (known: eagle, hawk, sparrow)"
    >>> did_you_mean("xyz", ["sparrow", "hawk"])
    '; known: hawk, sparrow'
    """
    names = sorted(set(known))
    if not names:
        return ""
    by_lower = {n.lower(): n for n in names}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.5)
    listed = ", ".join(names[:_SHOWN])
    if len(names) > _SHOWN:
        listed += f", … ({len(names)} in all)"
    if near:
        return f"; did you mean {by_lower[near[0]]!r}? (known: {listed})"
    return f"; known: {listed}"


def names_beside(path: Path) -> list[str]:
    """Return the names in a path's folder, which a misspelt path may have meant; none if unreadable."""
    try:
        return [p.name for p in path.parent.iterdir()]
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return []
