"""Quantities with units as users write them: durations, shares, bandwidths, sizes.

Inside Emu times are float seconds (tables) or int64 nanoseconds (kernel), sizes are bytes, speeds are bits
per second. Conversion is exact decimal arithmetic, rounded once: ``"0.1ms"`` is the float nearest to 0.0001.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

from workloads.errors import InputError

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9+.-]\S*)?", re.ASCII
)

_DURATIONS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_BANDWIDTHS = {
    f"{prefix}{unit}": Fraction(scale)
    for unit in ("bps", "bit/s", "b/s")
    for prefix, scale in (("", 1), ("k", 10**3), ("K", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12))
}
_SIZES = {"B": Fraction(1)} | {
    name: Fraction(scale)
    for i, letter in enumerate("KMGT", start=1)
    for name, scale in ((f"{letter}B", 1000**i), (f"{letter}iB", 1024**i))
}
_SIZES["kB"] = _SIZES["KB"]


def parse_duration(value: str | float, what: str) -> float:
    """Return a duration in seconds; a number without a unit is seconds.

    Parameters
    ----------
    value : str or number
        Such as ``"90.58s"``, ``"10 ms"``, ``"2h"``, ``8``; units ns, us, ms, s, min, h, d.
    what : str
        The option or key the value was given for; errors name it.

    Raises
    ------
    InputError
        When the value is not a duration, is negative or is not finite.

    Examples
    --------
    >>> parse_duration("10 ms", "--net-delay")
    0.01
    """
    return _to_float(value, what, _DURATIONS, "a duration such as '90.58s', '10 ms' or '2h'")


def parse_bandwidth(value: str | float, what: str) -> float:
    """Return a speed in bits per second (``"1 Gbps"`` is 1e9); a number without a unit is bits per second."""
    return _to_float(value, what, _BANDWIDTHS, "a speed in bits such as '1 Gbps' or '400 Mbps'")


def parse_size(value: str | float, what: str) -> int:
    """Return a size in bytes (``"64 KiB"`` is 65536, ``"10 MB"`` 10 million); a bare number is bytes."""
    want = "a size such as '10 MB' or '64 KiB'"
    size = _exact(value, what, _SIZES, want)
    if size.denominator != 1:
        raise InputError(f"{what}: {value!r} is not a whole number of bytes; want {want}")
    return int(size)


def parse_gib(value: str | float, what: str) -> float:
    """Return a size in GiB (``"512 MiB"`` is 0.5), which need not be whole bytes; a bare number is bytes."""
    return _to_float(value, what, _SIZES, "a size such as '10 MB' or '64 KiB'") / 2**30


def parse_share(value: str | float, what: str) -> float:
    """Return a share in 0..1, from ``"98%"`` or ``0.98``.

    A number above 1 without ``%`` is an error: 98 could be meant as 98 % or be a slip.
    """
    want = "a share such as '98%' or 0.98"
    share = _exact(value, what, {"%": Fraction(1, 100)}, want)
    if share > 1:
        percent = f"; did you mean '{value}%'?" if share <= 100 and "%" not in str(value) else ""
        raise InputError(f"{what}: {value!r} is more than the whole; want {want}{percent}")
    return float(share)


def format_duration(seconds: float) -> str:
    """Return a duration for people, four digits and the unit that suits.

    Examples
    --------
    >>> format_duration(0.0005), format_duration(90.5811), format_duration(117452)
    ('0.5 ms', '90.58 s', '32.63 h')
    """
    if not math.isfinite(seconds):
        return str(seconds)
    size = abs(seconds)
    for unit, scale, below in (
        ("ns", 1e-9, 1e-6),
        ("us", 1e-6, 1e-4),
        ("ms", 1e-3, 1.0),
        ("s", 1.0, 600.0),
        ("min", 60.0, 7200.0),
        ("h", 3600.0, 172800.0),
    ):
        if 0 < size < below:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 86400:.4g} d" if size else "0 s"


def format_quantity(value: float, unit: str, *, base: int = 1000, digits: int = 4) -> str:
    """Return an amount for people, with the prefix that suits; `base` is 1000, or 1024 for KiB and larger units.

    Examples
    --------
    >>> format_quantity(21.5e9, "B"), format_quantity(2.4e9, "Hz"), format_quantity(1 << 34, "B", base=1024)
    ('21.5 GB', '2.4 GHz', '16 GiB')
    """
    power = max((p for p in range(6) if value >= base**p), default=0)
    prefix = " kMGTP"[power].strip()
    if base == 1024 and power:
        prefix = f"{prefix.upper()}i"
    return f"{value / base**power:.{digits}g} {prefix}{unit}"


def _to_float(value: str | float, what: str, units: dict[str, Fraction], want: str) -> float:
    """Return a quantity as the float nearest to what was written."""
    try:
        return float(_exact(value, what, units, want))
    except OverflowError:
        _refuse(value, what, want)


def _exact(value: str | float, what: str, units: dict[str, Fraction], want: str) -> Fraction:
    """Return a finite, non-negative quantity as an exact number in the base unit."""
    if isinstance(value, bool) or len(str(value)) > 64:
        _refuse(value, what, want)
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or (match[2] or "") not in {"", *units}:
        _refuse(value, what, want)
    size = float(match[1])
    if not math.isfinite(size) or size < 0:
        _refuse(value, what, want)
    if size == 0:  # also keeps 1e-999999999 from becoming a fraction of a billion digits
        return Fraction(0)
    return Fraction(Decimal(match[1])) * units.get(match[2] or "", Fraction(1))


def _refuse(value: object, what: str, want: str) -> NoReturn:
    shown = repr(value)
    raise InputError(f"{what}: {shown if len(shown) < 66 else shown[:60] + '…'} is not {want}")
