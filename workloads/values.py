"""Values as users give them: what each kind looks like, and the one place where it is read.

Keys of the configuration, parameters of schedulers, options of generators, readers and transformations all have a kind
of `KINDS`, and are read by `read_value`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import parse_bandwidth, parse_duration, parse_share, parse_size

MAX_LOAD = 10
"""A larger offered load is refused as a mistake: 80 probably means 80 %."""
MOST_INTEGER = 2**63 - 1
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_WORDS = {"true": True, "false": False, "none": None}


class Kind(NamedTuple):
    """The form of the values of a kind.

    Attributes
    ----------
    unit : str
        The unit they are kept in; empty: none.
    wants : str
        What to write, with an example, in Markdown.
    read : callable
        From a value, text or not, and what it was given for, to the value in the kind's own type.
    """

    unit: str
    wants: str
    read: Callable[[Any, str], Any]


def read_value(
    kind: str,
    value: Any,
    what: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    kinds: Mapping[str, Kind] | None = None,
) -> Any:
    """Return a value in the type and unit of its kind.

    Parameters
    ----------
    kind : str
        A key of `KINDS`, or ``choice``.
    value : object
        Text, or what a Python program or a TOML file gives.
    what : str
        The option, key or parameter it was given for; errors begin with it.
    low, high : float, optional
        The least and the most that a number may be; a whole number is at most `MOST_INTEGER` unless `high` is given.
    choices : sequence of str
        All values of a ``choice``.
    kinds : mapping, optional
        Kinds beside, or in place of, those of `KINDS`.

    Raises
    ------
    InputError
        The value is not of the kind; the message states what would be right.

    Examples
    --------
    >>> read_value("flag", "on", "--fast"), read_value("integer", "15,000", "--nodes", low=1)
    (True, 15000)
    """
    if kind == "choice":
        if not isinstance(value, str) or value not in choices:
            hint = did_you_mean(str(value), choices)
            raise InputError(f"{what}: {value!r} is not one of its values{hint}")
        return value
    number = (KINDS if kinds is None else kinds)[kind].read(value, what)
    if kind == "integer" and high is None:
        high = MOST_INTEGER
    if low is not None and number < low:
        raise InputError(f"{what}: {value!r} is too little; the least is {low:g}")
    if high is not None and number > high:
        raise InputError(f"{what}: {value!r} is too much; the most is {high:g}")
    return number


def _read_flag(value: Any, what: str) -> bool:
    text = str(value).strip().lower()
    if text not in _FLAGS:
        raise InputError(f"{what}: {value!r} is neither true nor false")
    return _FLAGS[text]


def _read_integer(value: Any, what: str) -> int:
    """Read a whole number of 64 bits, signed or not; text may have commas, as in ``15,000``."""
    try:
        if isinstance(value, bool):
            raise ValueError
        number = _whole(value.replace(",", "_")) if isinstance(value, str) else _whole(value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{what}: {_shown(value)} is not a whole number") from None
    if not -(2**63) <= number < 2**64:
        raise InputError(f"{what}: {_shown(value)} has more than 64 bits")
    return number


def _whole(value: Any) -> int:
    """Return a whole number; text may be one such as ``1e6``."""
    try:
        number = int(value)
    except ValueError:
        value = float(value)
        number = int(value)
    if number != value and not isinstance(value, str):
        raise ValueError
    return number


def _read_number(value: Any, what: str) -> float:
    """Read a finite number; ``150%`` is 1.5."""
    try:
        number = _plain_number(value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{what}: {_shown(value)} is not a number") from None
    return number


def _read_load(value: Any, what: str) -> float:
    """Read an offered load: a share that may be more than the whole, though hardly ten times."""
    try:
        load = _plain_number(value)
        if load <= 0:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{what}: {_shown(value)} is not a load such as '80%' or 0.8") from None
    if load > MAX_LOAD:
        text = str(value).strip()
        percent = f"; did you mean '{text}%'?" if "%" not in text and load <= 100 * MAX_LOAD else ""
        raise InputError(
            f"{what}: {_shown(value)} is more than {MAX_LOAD} times what a cluster can do{percent}"
        )
    return load


def _plain_number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError
    text = str(value).strip()
    number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not math.isfinite(number):
        raise ValueError
    return number


def _read_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{what}: {_shown(value)} is not text")
    return value


def _read_any(value: Any, what: str) -> Any:
    """Read a value as it is; of text what it reads as in TOML, else the text."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 66 else f"{shown[:60]}…"


KINDS = {
    "text": Kind("", "text", _read_text),
    "integer": Kind("", "whole number", _read_integer),
    "number": Kind("", "number", _read_number),
    "duration": Kind("s", 'duration: `"90.58s"`, `"10 ms"`, `8`', parse_duration),
    "size": Kind("bytes", 'size: `"10 MB"`, `"64 KiB"`', parse_size),
    "bandwidth": Kind("bit/s", 'speed: `"1 Gbps"`, `1e9`', parse_bandwidth),
    "share": Kind("", 'share: `"98%"`, `0.98`', parse_share),
    "load": Kind("", 'share, may be more than 1: `"80%"`, `1.2`', _read_load),
    "flag": Kind("", "`true` or `false`", _read_flag),
    "any": Kind("", "anything", _read_any),
    "choice": Kind("", "one of its values", _read_text),
}
"""The kinds of values that all share; `emu.configuration.key_types` has those of single keys besides."""
