"""The end of an error about an unknown name: the nearest one that exists, and what there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import islice
from pathlib import Path

_SHOWN = 12
_LONGEST = 200  # letters of a name that are compared
_COMPARED = 2000
"""Names that are compared letter by letter: of more, as in a table of a million columns, those that begin alike."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the hint to append to ``unknown … 'name'``.

    Examples
    --------
    >>> did_you_mean("eagel", ["sparrow", "hawk", "eagle"])
    "; did you mean 'eagle'? (known: eagle, hawk, sparrow)"
    >>> did_you_mean("xyz", ["sparrow", "hawk"])
    '; known: hawk, sparrow'
    >>> did_you_mean("--quiet", ["--set", "--seed"])
    '; known: --seed, --set'
    """
    names = dict.fromkeys(known)
    if not names:
        return ""
    near = nearest(str(name), names)
    listed = ", ".join(nsmallest(_SHOWN, names))
    if len(names) > _SHOWN:
        listed += f", … ({len(names)} in all)"
    if near:
        return f"; did you mean {near!r}? (known: {listed})"
    return f"; known: {listed}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that one was probably meant to be, or ``""`` where none is near.

    Two names are near if three edits in ten letters, or one edit, make one of the other, without dashes in front; or if
    one of them begins with the other, which has three letters or more.
    """
    meant = _plain(name)[:_LONGEST]
    names = [*names]
    if len(names) > _COMPARED:
        initials = (meant[:2], meant[:2].upper(), meant[:2].capitalize())
        names = [*islice((other for other in names if other.startswith(initials)), _COMPARED)]
    near = []
    for other in names:
        plain = _plain(other[:_LONGEST])
        longer, shorter = max(len(meant), len(plain)), min(len(meant), len(plain))
        distance = _edits(meant, plain)
        begins = shorter >= 3 and (plain.startswith(meant) or meant.startswith(plain))
        if begins or (distance < longer and distance <= max(1, round(0.3 * longer))):
            alike = next((i for i, (a, b) in enumerate(zip(meant, plain, strict=False)) if a != b), shorter)
            near.append((-distance / max(longer, 1), alike, other))
    return max(near, default=(0, 0, ""))[2]


def _plain(name: str) -> str:
    return name.lower().lstrip("-").replace("_", "-")


def _edits(one: str, other: str) -> int:
    """Return how many letters must be put in, left out, replaced or swapped with the next: optimal string alignment."""
    if abs(len(one) - len(other)) > 64:
        return max(len(one), len(other))
    before: list[int] = []
    last = [*range(len(other) + 1)]
    for i, a in enumerate(one, 1):
        now = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]


def names_beside(path: Path) -> list[str]:
    """Return the names in a path's folder, which a misspelt path may have meant; none if unreadable."""
    try:
        return [p.name for p in path.parent.iterdir()]
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return []


def in_words(names: Sequence[str]) -> str:
    """Return names as a text lists them.

    Examples
    --------
    >>> in_words(["hawk"]), in_words(["sparrow", "hawk", "eagle"])
    ('hawk', 'sparrow, hawk and eagle')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
