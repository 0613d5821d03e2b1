"""Values of options that are not keys: lists of names, and of numbers with spans."""

from __future__ import annotations

from workloads.errors import InputError

MOST_NUMBERS = 10_000_000
"""Of a span."""


def read_names(text: str | None) -> list[str] | None:
    """Return the names of a text such as ``sparrow,hawk``; None for None."""
    return None if text is None else [name.strip() for name in text.split(",")]


def read_numbers(what: str, text: str | None) -> list[int] | None:
    """Return the numbers of a text such as ``0-20,31``, None for None; errors name the option `what`."""
    if text is None:
        return None
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if (
            not first.isdecimal()
            or (dash and not last.isdecimal())
            or (dash and int(last) - int(first) > MOST_NUMBERS)
        ):
            raise InputError(f"{what}: {part.strip()!r} is neither a number nor a span such as 0-20")
        found += range(int(first), int(last if dash else first) + 1)
    return found
