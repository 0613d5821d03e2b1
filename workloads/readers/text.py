"""Fields of text formats: read from a line one by one and checked; numbers that are written read back the same."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import NoReturn

from workloads.errors import InputError
from workloads.readers.source import shown

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER = 64


def is_number(text: str) -> bool:
    """Return whether a text is a number that a format can have: in ASCII, and not as ``1_000``."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


class Fields:
    """The fields of one line, taken from the left; errors name file, line and field.

    Parameters
    ----------
    file : object
        Named in errors.
    line : int
        1-based number of the line.
    form : str
        The form that the line must have, for errors.
    """

    def __init__(self, file: object, line: int, fields: list[bytes], form: str) -> None:
        self.file, self.line, self.form = file, line, form
        self._fields = fields
        self._at = 0

    def text(self, name: str) -> bytes:
        """Return the next field."""
        if self._at == len(self._fields):
            self.refuse(name, f"the line ends after {self._at} fields; want {self.form!r}")
        self._at += 1
        return self._fields[self._at - 1]

    def exact(self, name: str, most: float) -> Fraction:
        """Return the next field as an exact number in 0..most."""
        return self.as_exact(name, self.text(name), most)

    def as_exact(self, name: str, text: bytes, most: float) -> Fraction:
        """Return a part of a field as an exact number in 0..most."""
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            self.refuse(name, f"{shown(text)} is not a number")
        value = Fraction(text.decode())
        if value < 0:
            self.refuse(name, f"{shown(text)} is negative")
        if value > most:
            self.refuse(name, f"{shown(text)} is more than {most:g}")
        return value

    def number(self, name: str, most: float) -> float:
        """Return the next field as a number in 0..most."""
        text = self.text(name)
        if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) and 0 < (value := float(text)) < most:
            return value  # the same as from exact arithmetic, several times faster
        return float(self.as_exact(name, text, most))

    def whole(self, name: str, least: int, most: int) -> int:
        """Return the next field as a whole number in ``least..most``."""
        return self.as_whole(name, self.text(name), least, most)

    def as_whole(self, name: str, text: bytes, least: int, most: int) -> int:
        """Return a part of a field as a whole number in ``least..most``."""
        if len(text) > _LONGEST_NUMBER or not text.isdigit() or not least <= int(text) <= most:
            self.refuse(name, f"{shown(text)} is not a whole number from {least} to {most}")
        return int(text)

    def end(self) -> None:
        """Refuse a line that has more fields."""
        if len(self._fields) > self._at:
            wrong = f"the line has {len(self._fields)} fields; want {self.form!r}"
            self.refuse(str(self._at + 1), wrong)

    def looks_like(self, form: bytes) -> bool:
        """Return whether the fields, with blanks between them, match a regular expression."""
        return re.fullmatch(form, b" ".join(self._fields)) is not None

    def refuse(self, name: str | None, wrong: str) -> NoReturn:
        """Raise the error for a field of this line."""
        raise InputError(wrong, file=self.file, line=self.line, field=name)


def number_text(value: float, scale: Fraction = Fraction(1)) -> str:
    """Return a short decimal that, times `scale` and rounded once, is `value`.

    Examples
    --------
    >>> number_text(65536.0, Fraction(1 << 20))
    '0.0625'
    """
    exact = Fraction(value) / scale
    for digits in count(15):  # a number with 15 digits reads back the same; a scale may need up to 20
        text = str(Context(prec=digits).divide(Decimal(exact.numerator), Decimal(exact.denominator)))
        if float(Fraction(text) * scale) == value:
            break
    plain = repr(float(text))
    return plain if Fraction(plain) == Fraction(text) else text


def write_text(path: str | Path, parts: Iterable[str]) -> None:
    """Write text, gzip when the name ends in ``.gz``; the same text gives the same bytes.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    try:
        with open(path, "wb") as raw:
            if str(path).endswith(".gz"):
                # No name, no time: they would make the bytes differ.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
                    packed.writelines(part.encode() for part in parts)
            else:
                raw.writelines(part.encode() for part in parts)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from None
