"""Values of a table's cells: numbers, times and lengths of time, exact to the nanosecond.

A cell is a text, a number, a time or length of time of Python, or an `Instant` or `Span` for one of Arrow. Differences
of times must be exact, and a double of seconds since 1970 has steps of 0.2 microseconds. Times are whole nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from workloads.errors import InputError
from workloads.jobs import MAX_TIME_S
from workloads.readers.source import shown
from workloads.units import parse_gib

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "min": 60 * 10**9, "h": 3600 * 10**9}
"""Nanoseconds of each unit that numbers of a table may have."""
_SECOND, _DAY = 10**9, 86400 * 10**9
_MOST_NS = int(MAX_TIME_S) * _SECOND
_FARTHEST_NS = 2**62  # from 1970, 146 years: the difference of two fits an int64
_LONGEST = 64  # characters of a number
_MISSING = frozenset(("", "nan", "nat", "na", "n/a", "null", "none", "\\n", "<na>", "#n/a"))
"""What pandas, R, databases and spreadsheets write for an unknown value, in lower case."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_GROUPED = {
    decimal: re.compile(
        rf"[+-]?[1-9][0-9]{{0,2}}(?:(?:[{mark}][0-9]{{3}})+[{decimal}][0-9]+|(?:[{mark}][0-9]{{3}}){{2,}})"
    )
    for decimal, mark in ((".", ","), (",", "."))
}
"""Numbers with unambiguous marks between thousands: ``1,234.5``, and with decimal commas ``1.234,5``."""
_EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_CLOCK = re.compile(
    r"(?:([0-9]{1,7})\s*(?:days?,?\s*|-|\.))?\+?([0-9]{1,9}):([0-5]?[0-9]):([0-5]?[0-9](?:[.,][0-9]{1,12})?)",
    re.ASCII,
)
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([a-zµμ]+)[\s,]*", re.ASCII | re.IGNORECASE)
_ISO = re.compile(r"P(?:[0-9.]+D)?(?:T(?:[0-9.]+[HMS])*)?")
_AMOUNTS = {
    "w": 7 * _DAY, "week": 7 * _DAY, "d": _DAY, "day": _DAY, "h": UNITS["h"], "hr": UNITS["h"], "hour": UNITS["h"],
    "m": UNITS["min"], "min": UNITS["min"], "minute": UNITS["min"], "s": _SECOND, "sec": _SECOND, "second": _SECOND,
    "ms": UNITS["ms"], "millisecond": UNITS["ms"], "us": UNITS["us"], "µs": UNITS["us"], "μs": UNITS["us"],
    "microsecond": UNITS["us"], "ns": 1, "nanosecond": 1,
}  # fmt: skip
_TIME = re.compile(
    r"([0-9]{4}-?[0-9]{2}-?[0-9]{2}.*?)(?:[.,]([0-9]{1,12}))?\s*(Z|UTC|GMT|[+-][0-9:]{2,8})?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(int):
    """A time, in nanoseconds since 1970."""


class Span(int):
    """A length of time in nanoseconds."""


class Cells:
    """How the cells of a table are read.

    Parameters
    ----------
    path : object
        What errors name.
    unit : str
        Of numbers that are times: one of `UNITS`.
    decimal : str
        The decimal sign of numbers in text, ``"."`` or ``","``.

    Raises
    ------
    InputError
        Every method: names the line and the column of a cell with a wrong value.
    """

    def __init__(self, path: object, unit: str = "s", decimal: str = "."):
        if unit not in UNITS:
            raise InputError(f"{unit!r} is not a unit of time; want one of {', '.join(UNITS)}", field="unit")
        if decimal not in (".", ","):
            raise InputError(f"{decimal!r} is neither '.' nor ','", field="decimal")
        self._path, self._unit_ns, self._decimal = path, UNITS[unit], decimal
        self._kind_of: dict[str, type] = {}

    def duration_s(self, value: Any, name: str, line: int) -> float:
        """Return a length of time in seconds: from a number in the unit, or a text such as ``1h`` or ``00:01:30``."""
        span = self._span_ns(value)
        if span is None:
            wrong = f"is neither a number{self._comma(value)} nor a length of time such as 00:01:30 or 1h"
            self.refuse(value, wrong, name, line)
        return seconds_of(self._in_range(span, value, name, line))

    def time_ns(self, value: Any, name: str, line: int, like: str | None = None) -> Instant | Span:
        """Return a time in whole nanoseconds: since 1970 for a date, since the numbers' own zero for a number.

        A column, with those that are `like` it, holds dates only or numbers only.
        """
        found: Instant | Span
        if (span := self._span_ns(value)) is not None:
            found = Span(round(self._in_range(span, value, name, line)))
        elif (instant := _instant_ns(value)) is not None:
            found = Instant(instant)
        else:
            wrong = f"is neither a number{self._comma(value)} nor a time such as 2026-01-31T12:30:00"
            self.refuse(value, wrong, name, line)
        if not -_FARTHEST_NS <= found <= _FARTHEST_NS:
            self.refuse(value, "is out of range; want a time from 1824 to 2116", name, line)
        if self._kind_of.setdefault(like or name, type(found)) is not type(found):
            is_date = type(found) is Instant
            other = (
                "is a date, and an earlier one is not" if is_date else "is not a date, and an earlier one is"
            )
            self.refuse(value, other, name, line)
        return found

    def whole(self, value: Any, name: str, line: int) -> int:
        """Return a whole number, 0 or more; 4.0 counts as one."""
        number = self._number(value)
        if number is None or number < 0:
            mark = ", without marks between thousands" if isinstance(value, str) and "," in value else ""
            self.refuse(value, f"is not a number from 0 on{mark}", name, line)
        if number > 2**63 - 1:
            self.refuse(value, "is more than any machine holds", name, line)
        if number != int(number):
            self.refuse(value, "is not a whole number", name, line)
        return int(number)

    def integer(self, value: Any, name: str, line: int) -> int:
        """Return a whole number of any sign."""
        number = self._number(value)
        if number is None or number != int(number) or not -(2**53) <= number <= 2**53:
            self.refuse(value, "is not a whole number of at most 2**53", name, line)
        return int(number)

    def amount(self, value: Any, name: str, line: int) -> float:
        """Return a number, 0 or more."""
        number = self._number(value)
        if number is None or number < 0:
            self.refuse(value, f"is not a number from 0 on{self._comma(value)}", name, line)
        return float(number)

    def memory(self, value: Any, name: str, line: int, unit: str) -> float:
        """Return a size in GiB, from a number in the unit, or a text such as ``16 GiB``; a share as it is."""
        number = self._number(value)
        if unit == "share":
            if number is None or not 0 <= number <= 1:
                self.refuse(value, "is not a share of a node's memory, 0..1", name, line)
            return float(number)
        try:
            return parse_gib(str(value) if number is None else f"{number} {unit}", name)
        except InputError:
            self.refuse(value, f"is not a size such as 512 MiB{self._comma(value)}", name, line)

    def label(self, value: Any, name: str, line: int) -> Hashable:
        """Return the value by which rows of one job are grouped."""
        if isinstance(value, str | bytes):
            return self.text(value, name, line)
        if not isinstance(value, Hashable) or isinstance(value, tuple):
            self.refuse(value, "has several values; want text or a number", name, line)
        return value

    def text(self, value: Any, name: str, line: int) -> str:
        """Return a cell as text."""
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            self.refuse(value, "is not UTF-8 text; iconv -f latin1 -t utf-8 converts a file", name, line)
        return text.strip()

    def _number(self, value: Any) -> int | Decimal | None:
        """Return the number in a cell, None for anything else and for numbers of too many digits."""
        if isinstance(value, bool | Instant | Span):
            return None
        if isinstance(value, int):
            return value if -(10**30) < value < 10**30 else None
        if isinstance(value, str):
            text = value.strip()
            if len(text) > _LONGEST or (self._decimal == "," and _EITHER.fullmatch(text)):
                return None  # 1.234 where commas are decimal: a thousand, or one?
            if _GROUPED[self._decimal].fullmatch(text):
                text = text.replace("." if self._decimal == "," else ",", "")
            text = text.replace(",", ".") if self._decimal == "," and "." not in text else text
            return Decimal(text) if _NUMBER.fullmatch(text) else None
        if isinstance(value, float):
            value = Decimal(repr(float(value)))
        return value if isinstance(value, Decimal) and value.is_finite() else None

    def _span_ns(self, value: Any) -> Decimal | Fraction | int | None:
        """Return the nanoseconds of a number in the unit, or of a length of time; None for anything else."""
        number = self._number(value)
        return _span_ns(value) if number is None else number * self._unit_ns

    def _in_range(self, nanoseconds: Any, value: Any, name: str, line: int) -> Any:
        """Return a number of nanoseconds, 0 for a tiny one, whose exact form is long; refuse one out of range."""
        if not 0 <= nanoseconds <= _MOST_NS:
            if nanoseconds < 0:
                self.refuse(value, "is negative; want a time from 0 on", name, line)
            wrong = f"is more than {MAX_TIME_S:.0e} seconds; is the unit right?"
            self.refuse(value, f"{wrong} --set workload_options.unit=ms", name, line)
        tiny = isinstance(nanoseconds, Decimal) and nanoseconds.adjusted() < -30
        return 0 if tiny else nanoseconds

    def _comma(self, value: Any) -> str:
        """Return the hint about a number with a comma, or with a point of two meanings, or ``""``."""
        if not isinstance(value, str):
            return ""
        if self._decimal == ",":
            twofold = _EITHER.fullmatch(value.strip())
            return " (of decimal=, the point may be one of thousands, or the decimal one)" if twofold else ""
        if not re.fullmatch(r"\s*[0-9.]+,[0-9]+\s*", value):
            return ""
        return " (--set workload_options.decimal=, reads a comma as the decimal point)"

    def refuse(self, value: Any, wrong: str, name: str, line: int) -> NoReturn:
        """Raise the error for a cell."""
        raise InputError(f"{shown_cell(value)} {wrong}", file=self._path, line=line, field=name)


def shown_cell(value: Any) -> str:
    """Return a cell as an error shows it."""
    if isinstance(value, Instant):
        return (
            f"{_EPOCH + timedelta(microseconds=value // 1000):%Y-%m-%dT%H:%M:%S}"
            if abs(value) < 2**62
            else "a time"
        )
    if isinstance(value, Span):
        return f"{value / _SECOND:g} s"
    try:
        return shown(value if isinstance(value, str | bytes) else str(value))
    except ValueError:
        return "an integer of thousands of digits"


def seconds_of(nanoseconds: int | Decimal | Fraction) -> float:
    """Return the float nearest to an exact number of nanoseconds as seconds."""
    whole, parts = nanoseconds.as_integer_ratio()
    return whole / (parts * _SECOND)


def is_missing(value: Any) -> bool:
    """Return whether a cell holds no value: ``""``, NaN, NaT, ``NULL`` and the like."""
    if isinstance(value, str):
        return len(value) < 16 and value.strip().lower() in _MISSING
    if isinstance(value, Decimal):
        return value.is_nan()
    # by name: pandas is not imported for its two values
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _span_ns(value: Any) -> Fraction | int | None:
    """Return a length of time in nanoseconds, exact; None for anything else."""
    if isinstance(value, Span):
        return int(value)
    if isinstance(value, timedelta):
        return value // _MICROSECOND * 1000 + int(getattr(value, "nanoseconds", 0))
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * _SECOND + value.microsecond * 1000
    if not isinstance(value, str) or len(text := value.strip()) > _LONGEST:
        return None
    if text.startswith("-"):
        # refused as negative by the caller; pandas also writes "-1 days +23:59:59"
        return -1 if _span_ns(text[1:]) else None
    if found := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = found.groups()
        whole = (int(days or 0) * 24 + int(hours)) * 60 + int(minutes)
        return whole * 60 * _SECOND + Fraction(seconds.replace(",", ".")) * _SECOND
    if re.fullmatch(r"[0-9]+ days?", text):
        return int(text.split()[0]) * _DAY
    if _ISO.fullmatch(text) and len(text) > 2:
        text = text.replace("P", "").replace("T", " ").strip()
    total, at = Fraction(0), 0
    while found := _AMOUNT.match(text, at):
        amount, unit = found[1], found[2].lower()
        scale = _AMOUNTS.get(unit) or _AMOUNTS.get(unit.removesuffix("s"))
        if scale is None:
            return None
        total, at = total + Fraction(amount) * scale, found.end()
    return total if at and at == len(text) else None


def _instant_ns(value: Any) -> int | None:
    """Return a time in nanoseconds since 1970, in UTC where it states no zone; None for anything else."""
    if isinstance(value, Instant):
        return int(value)
    more = 0
    if isinstance(value, str):
        found = _TIME.fullmatch(value.strip()) if len(value) <= _LONGEST else None
        if found is None:
            return None
        begin, fraction, zone = found.groups()
        zone = "+00:00" if zone in ("Z", "UTC", "GMT") else zone or ""
        try:
            value = datetime.fromisoformat(begin.strip() + zone)
        except ValueError:
            return None
        more = int((fraction or "").ljust(9, "0")[:9])
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    value, own = (value if value.tzinfo else value.replace(tzinfo=UTC)), int(getattr(value, "nanosecond", 0))
    return (value - _EPOCH) // _MICROSECOND * 1000 + own + more
