"""Functions of all descriptions of workloads: arrivals over time, quantiles, rows of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.jobs import Float64Array
from workloads.units import format_duration

QUANTILES = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100)
"""Percentages at which quantiles are given; they interpolate linearly."""

MAX_BINS = 60
_RAMP = " .:-=+*#%@"
_ROUND_S = tuple(x * unit for unit in (1, 60) for x in (1, 2, 5, 10, 15, 30)) + tuple(
    3600 * x for x in (1, 2, 3, 6, 12, 24, 48, 168)
)


class Distribution(NamedTuple):
    """Values of one quantity, one per job, task or coflow.

    Attributes
    ----------
    key, label : str
        Its name in a description, and on an axis with its unit.
    of : str
        The owners of the values, in the plural, such as ``jobs``.
    values : mapping of str to ndarray
        By class; ``all`` first.
    """

    key: str
    label: str
    of: str
    values: Mapping[str, npt.NDArray[Any]]


def quantiles(values: npt.NDArray[Any]) -> list[float]:
    """Return the `QUANTILES` of values; [] without values."""
    return np.percentile(values, QUANTILES).tolist() if len(values) else []


def describe_arrivals(
    times_s: Float64Array, amounts: Mapping[str, npt.NDArray[Any] | None]
) -> dict[str, Any]:
    """Return span, gaps, and arrivals over time.

    Parameters
    ----------
    times_s : ndarray, shape (N,)
        In order.
    amounts : mapping
        Name to the amount of each arrival, shape (N,); None counts the arrivals.
    """
    gaps = np.diff(times_s)
    span_s = float(times_s[-1] - times_s[0])
    bin_s = _bin_s(span_s)
    place = ((times_s - times_s[0]) / bin_s).astype(np.int64)
    size = int(place[-1]) + 1
    binned = {
        name: np.bincount(place, None if amount is None else amount, size).tolist()
        for name, amount in amounts.items()
    }
    return {
        "span_s": span_s,
        "mean_gap_s": float(gaps.mean()) if len(gaps) else None,
        "gap_cv": float(gaps.std() / gaps.mean()) if span_s > 0 else None,
        "arrivals": {"start_s": float(times_s[0]), "bin_s": bin_s, **binned},
    }


def render_arrivals(d: Mapping[str, Any], units: Mapping[str, str]) -> list[str]:
    """Return span, gaps and arrivals over time as text; `units` has the unit of each row of arrivals."""
    line = f"arrivals   over {format_duration(d['span_s'])}"
    if d["gap_cv"] is not None:
        line += f", mean gap {format_duration(d['mean_gap_s'])} (cv {d['gap_cv']:.2f})"
    lines = [line]
    if d["span_s"] > 0:
        every = _round_duration(d["arrivals"]["bin_s"])
        for name, unit in units.items():
            row = d["arrivals"][name]
            lines.append(f"           |{sparkline(row)}| {unit} per {every}, up to {max(row):,.6g}")
    return lines


def render_end(d: Mapping[str, Any]) -> list[str]:
    """Return metadata and notes as text, a line each, without metadata that repeat the notes."""
    notes = [f"note: {note}" for note in d["notes"]]
    counted = {note.partition(" ")[0] for note in d["notes"]} & {"read", "repaired", "dropped"}
    about = [f"{key}: {value}" for key, value in d["metadata"].items() if key not in counted]
    return [" ".join(line.splitlines()) for line in ([""] if about else []) + about + notes]


def sparkline(values: Sequence[float]) -> str:
    """Return one ASCII sign per value, darker for larger values; only a 0 is blank.

    Examples
    --------
    >>> sparkline([0, 1, 50, 100])
    ' .+@'
    """
    most = max(values, default=0)
    steps = len(_RAMP) - 1
    return "".join(_RAMP[int(np.ceil(v / most * steps))] if v > 0 else _RAMP[0] for v in values)


def row(label: str, cells: Iterable[str]) -> str:
    """Return a row of quantiles."""
    return f"  {label:<14}" + "".join(f" {cell:>8}" for cell in cells)


def number(value: float) -> str:
    """Return four digits of a value, in full from 10,000 to a million: no more than nine signs.

    Examples
    --------
    >>> number(0.123456), number(1234.5), number(123456.0), number(2.5e6)
    ('0.1235', '1,234', '123,456', '2.5e+06')
    """
    return f"{value:,.0f}" if 1e4 <= value < 1e6 else f"{value:,.4g}"


def share(part: float, whole: float) -> float:
    """Return a part over the whole, 0 if the whole is 0."""
    return float(part) / float(whole) if whole > 0 else 0.0


def _round_duration(seconds: float) -> str:
    """Return a round duration in the largest unit that divides it."""
    for unit, scale in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds % scale == 0:
            return f"{seconds / scale:g} {unit}"
    return format_duration(seconds)


def _bin_s(span_s: float) -> float:
    """Return the least round width (s) that divides a span into about `MAX_BINS` bins or fewer."""
    least = span_s / MAX_BINS
    if least <= 0:
        return 1.0
    for width in _ROUND_S:
        if 0.5 < least <= width:
            return float(width)
    scale = 10.0 ** np.floor(np.log10(least))
    return float(next(m * scale for m in (1, 2, 5, 10, 20) if m * scale >= least))
