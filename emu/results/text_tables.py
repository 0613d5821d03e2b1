"""Results as text for a terminal: pure functions from numbers to lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from workloads.errors import printable

TIMES = "\N{MULTIPLICATION SIGN}"
NODE_HOUR_NS = 3.6e12
LEAST_RATIO = 0.1
"""Ratios below it are shown as one over their inverse."""
WIDEST_INVERSE = 0.25
"""Share of a ratio above which its error is too large to invert it: the interval would be far from symmetric."""


class Cell(NamedTuple):
    """A cell of a table with a `look` on pages, a class of page.html's style."""

    words: str
    look: str


class Table(NamedTuple):
    """A table of a comparison, for a terminal and for a page.

    Attributes
    ----------
    title : str
        On a page, above the table.
    caption : str
        What it shows, without a full stop.
    head : sequence of str
        A terminal does not show the heads of the first columns, which are names.
    rows : sequence of sequence of str or Cell
    note : str
        Further sentences for a page.
    names : int
        How many of the first columns are names.
    only : str
        Where it is shown, if not in both places: ``page`` or ``terminal``.
    """

    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    note: str = ""
    names: int = 1
    only: str = ""


def render_tables(tables: Iterable[Table]) -> str:
    """Return the tables that a terminal shows as text, each behind a blank line."""
    lines = []
    for table in tables:
        if table.only != "page":
            head = [*[""] * table.names, *table.head[table.names :]]
            lines += ["", table.caption, *indented(align([head, *map(words_of, table.rows)], table.names))]
    return "".join(f"{line}\n" for line in lines)


def words_of(row: Sequence[str | Cell]) -> list[str]:
    """Return the cells of a row without their looks."""
    return [cell.words if isinstance(cell, Cell) else cell for cell in row]


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines that begin with two spaces."""
    return [f"  {line}" for line in lines]


def number(value: float | None) -> str:
    """Return four significant digits, in full from 1,000 on and without exponents; ``-`` for none.

    Examples
    --------
    >>> number(0.00123456), number(12.3456), number(117452.4), number(None)
    ('0.001235', '12.35', '117,452', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    text = _rounded(value, min(_exponent(value) - 3, 0))
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_error(value: float, half: float, digits: int = 5) -> str:
    """Return ``value±half``, or only the value where the interval is empty or unknown.

    The error is rounded as by the Particle Data Group: to two digits where it begins with 100 to 354, else to one. The
    value ends at the same place. A value has at most `digits` digits, and all digits before the point; where that cuts
    the error, it is rounded up, so that it is never shown too small.

    References
    ----------
    Workman et al., Review of Particle Physics, 2022, section 5.3 of the introduction, "Rounding".

    Examples
    --------
    >>> with_error(592.3, 43.81), with_error(96.5937, 0.242), with_error(96.59, 0.00012)
    ('590±40', '96.59±0.24', '96.590±0.001')
    """
    if not (half > 0 and math.isfinite(half) and math.isfinite(value)):
        return number(value)
    lead = int(f"{half:.2e}"[:4].replace(".", ""))
    place = _exponent(half, 3) - (1 if lead <= 354 else 0)
    least = min(_exponent(value, digits) - digits + 1, 0)
    error = round(half, -place) if place >= least else math.ceil(half / 10.0**least) * 10.0**least
    place = max(place, least)
    shown = _rounded(value, place)
    return f"{shown if shown.strip('-0.') else '0'}±{_rounded(error, place)}"


def ratio(mean: float, half: float = math.nan) -> str:
    """Return a ratio as ``0.153×``, and below a tenth as ``1/21.4×``; empty where it is not finite.

    It has three digits, or as many as its interval allows. The interval of an inverse is that of the ratio over the
    ratio squared; a ratio with an error above a quarter of it is not inverted.

    Examples
    --------
    >>> print(ratio(0.153), ratio(0.0467), ratio(0.0341, 8.4e-05), ratio(0.0341, 0.04))
    0.153× 1/21.4× 1/29.33±0.07× 0.03±0.04×
    """
    if not math.isfinite(mean):
        return ""
    if 0 < mean < LEAST_RATIO and not half > WIDEST_INVERSE * mean:
        return f"1/{_three_digits(1 / mean, half / mean**2)}{TIMES}"
    return f"{_three_digits(mean, half)}{TIMES}" if mean else f"0{TIMES}"


def times_clause(first: str) -> str:
    """Return the text of a table's head about ratios to the first scheduler."""
    return f", and {TIMES} that of {first}, below a tenth as 1/20{TIMES}"


def _three_digits(value: float, half: float) -> str:
    if math.isfinite(half) and half > 0:
        return with_error(value, half, digits=4)
    return _rounded(value, _exponent(value, 3) - 2)


def percent(share: float, half: float = math.nan) -> str:
    """Return a share as ``81.0%``, and as ``<0.1%`` or ``>99.9%`` near 0 and 1."""
    if not math.isfinite(share):
        return ""
    if math.isfinite(half) and half > 0:
        return f"{with_error(100 * share, 100 * half)}%"
    if 0 < share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 < share < 1 else f"{share:.1%}"


def _exponent(value: float, digits: int = 4) -> int:
    """Return the power of ten of the first digit of a value that is rounded to a number of digits."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _rounded(value: float, place: int) -> str:
    """Return a value rounded at a power of ten, without an exponent."""
    text = f"{round(value, -place):,.{max(-place, 0)}f}"
    return text if text.strip("-0.,") else text.lstrip("-")


def align(rows: Sequence[Sequence[str]], right_from: int = 1, right_until: int | None = None) -> list[str]:
    """Return rows of cells as lines; columns from `right_from` to before `right_until` are flush right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [
            c.rjust(w) if right_from <= i and (right_until is None or i < right_until) else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def counter_texts(counters: Mapping[str, float]) -> dict[str, str]:
    """Return the counters that are not zero as name to text; times are given in node-hours."""
    return {counter_name(name): counter_text(name, value) for name, value in counters.items() if value}


def counter_name(name: str) -> str:
    """Return the name of a counter in tables."""
    return name.removesuffix("_ns").replace("_", " ")


def counter_text(name: str, value: float, half: float = math.nan) -> str:
    """Return the value of a counter as text; nanoseconds, which add up over nodes, in node-hours."""
    if name.endswith("_ns"):
        return f"{with_error(value / NODE_HOUR_NS, half / NODE_HOUR_NS)} node-hours"
    return f"{value:,.0f}" if math.isnan(half) else with_error(value, half)
