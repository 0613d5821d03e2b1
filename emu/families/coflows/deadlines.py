"""Deadlines and admission of coflows: what became of them in a run, and in runs that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from emu.columns import flags, numbers
from emu.configuration.seeds import instances_of
from emu.results.comparison_row import NOTHING, Pair
from emu.results.metrics import BoolArray, Float64Array, after_warmup, confidence_95, spread
from emu.results.result import Runs
from emu.results.text_tables import align, number, percent, with_error

RATES = ("acceptance_rate", "weighted_acceptance_rate")
"""Of a summary: those that `GainRow` has the gains of."""
GAIN_PERCENTILES = (1, 10, 50, 90, 99)
"""As in DCoflow's paper (IFIP Networking 2022, section IV-A)."""
GAINS_HEAD = tuple(f"p{percent}" for percent in GAIN_PERCENTILES)
EXPLAINED = (
    "coflows with a deadline; late is of those admitted, wasted of the bytes that were sent, CCT / alone of those that "
    "met it, and times are means from the arrival to the last verdict"
)
HEAD = (
    "met",
    "by weight",
    "admitted",
    "late",
    "wasted",
    "CCT / alone",
    "admitted after (s)",
    "rejected after (s)",
)


class DeadlineRow(NamedTuple):
    """What became of the coflows with a deadline under a scheduler; of one without admission four are NaN.

    Attributes
    ----------
    scheduler : str
    met, met_by_weight : Pair
        The share of them that met it, and that of their weight.
    admitted : Pair
        The share that the last decision admitted.
    late : Pair
        Of those: the share that did not meet it.
    wasted : Pair
        The share of the bytes that were sent which coflows sent that ended late, or were dropped.
    normalised : Pair
        Mean, over those that met it, of the completion time over that alone.
    admission_s, rejection_s : Pair
        Mean time from the arrival to the admission, and to the rejection of those that were not admitted in the end.
    """

    scheduler: str
    met: Pair
    met_by_weight: Pair
    admitted: Pair
    late: Pair
    wasted: Pair
    normalised: Pair
    admission_s: Pair
    rejection_s: Pair


class GainRow(NamedTuple):
    """What a scheduler gains over the first in deadlines that are met, replica by replica.

    Attributes
    ----------
    scheduler : str
    gains : dict of str to dict of str to float
        By `RATES`: ``count`` of the replicas in which the first met any deadline, and over those `GAIN_PERCENTILES` of
        (rate - rate of the first) / rate of the first.
    undefined : int
        Replicas in which the first met none, so that there is no gain.
    """

    scheduler: str
    gains: dict[str, dict[str, float]]
    undefined: int


def describe_deadlines(coflows: pa.Table, counts: BoolArray) -> dict[str, Any]:
    """Return what became of the coflows with a deadline, of those that count; nothing where none has one.

    Returns
    -------
    dict
        ``acceptance_rate`` and ``weighted_acceptance_rate``, the share of them, and of their weight, that met it. Where
        the scheduler has admission ``admission``: ``admitted``, the share that the last decision admitted, and
        ``admitted_after`` and ``rejected_after``, mean, p50 and p90 of the time from the arrival to the last admission,
        and to the last rejection of those that were not admitted; ``prediction_error``, the share of those admitted
        that did not meet it. ``wasted``: ``late_bytes`` and ``dropped_bytes``, what those sent that ended late, and
        that did not end, and ``share``, both of all that was sent. ``normalised_cct``, mean, p50 and p90 of the
        slowdown of those that met it.
    """
    met, due = flags(coflows, "met_deadline")
    due = due & counts
    if not due.any():
        return {}
    weight = numbers(coflows, "weight")
    described: dict[str, Any] = {
        "acceptance_rate": float(met[due].mean()),
        "weighted_acceptance_rate": float(weight[due & met].sum() / weight[due].sum()),
    }
    after = {name: numbers(coflows, f"{name}_s") - numbers(coflows, "arrival_s") for name in _VERDICTS}
    admitted = is_admitted(coflows) & due
    rejected = due & ~admitted & np.isfinite(after["rejected"])
    if admitted.any() or rejected.any():
        described["admission"] = {"admitted": float(admitted[due].mean())}
        for name, which in zip(_VERDICTS, (admitted, rejected), strict=True):
            if which.any():
                described["admission"][f"{name}_after"] = spread(after[name][which])
    if admitted.any():
        described["prediction_error"] = float((~met[admitted]).mean())
    described["wasted"] = _wasted(coflows, due, met)
    normalised = numbers(coflows, "slowdown")[due & met]
    normalised = normalised[np.isfinite(normalised)]
    if len(normalised):
        described["normalised_cct"] = spread(normalised)
    return described


def _wasted(coflows: pa.Table, due: BoolArray, met: BoolArray) -> dict[str, float]:
    wasted = np.nan_to_num(numbers(coflows, "wasted_bytes"))
    late = due & np.isfinite(numbers(coflows, "finish_s"))
    parts = {"late_bytes": float(wasted[late].sum()), "dropped_bytes": float(wasted[due & ~late].sum())}
    total = sum(parts.values())
    sent = total + float(numbers(coflows, "size_bytes")[due & met].sum())
    return {**parts, "share": total / sent if sent > 0 else 0.0}


class Missed(NamedTuple):
    """How many coflows did not meet their deadline: for what reason.

    Attributes
    ----------
    alone : int
        They take longer than that alone: no scheduler meets it.
    late, unended : int
        Of the others: those that ended, and those that did not, as they were rejected or dropped.
    """

    alone: int
    late: int
    unended: int


def missed_by_reason(coflows: pa.Table, warmup_s: float) -> Missed:
    """Return why deadlines were missed, of the coflows that arrive after the warm-up."""
    met, due = flags(coflows, "met_deadline")
    arrival_s = numbers(coflows, "arrival_s")
    missed = due & ~met & after_warmup(arrival_s, warmup_s)
    left_s = numbers(coflows, "deadline_s") - arrival_s
    alone = missed & (numbers(coflows, "ideal_s") > left_s + _HALF_NS)
    ended = np.isfinite(numbers(coflows, "finish_s"))
    counts = (alone, missed & ~alone & ended, missed & ~alone & ~ended)
    return Missed(*(int(which.sum()) for which in counts))


_HALF_NS = 0.5e-9
"""Times are whole nanoseconds."""
_VERDICTS = ("admitted", "rejected")


def is_admitted(coflows: pa.Table) -> BoolArray:
    """Return which coflows a decision admitted, and none has rejected since; none where there is no admission."""
    admitted: BoolArray = flags(coflows, "admitted")[0] & np.isfinite(numbers(coflows, "admitted_s"))
    return admitted


def slack_used(coflows: pa.Table, at: str, warmup_s: float) -> Float64Array:
    """Return the share of the time to its deadline that had passed at a time of each coflow, NaN for none.

    Parameters
    ----------
    coflows : pyarrow.Table
        ``coflows.parquet``; those without a deadline, and those within the warm-up, are left out.
    at : str
        ``admitted_s``, of those that were admitted; or ``finish_s``, of those that finished.
    """
    due = flags(coflows, "met_deadline")[1]
    arrival_s, deadline_s = numbers(coflows, "arrival_s"), numbers(coflows, "deadline_s")
    counts = after_warmup(arrival_s, warmup_s) & due & (deadline_s > arrival_s)
    time_s = numbers(coflows, at)
    if at == "admitted_s":
        time_s = np.where(is_admitted(coflows), time_s, np.nan)
    used: Float64Array = ((time_s - arrival_s) / (deadline_s - arrival_s))[counts]
    return used


def compare_deadlines(results: Runs) -> list[DeadlineRow]:
    """Return what became of coflows with deadlines; none where coflows have none."""
    rows = []
    for name, runs in results.items():
        parts = [r.summary["coflows"] for r in runs]
        if all("acceptance_rate" in part for part in parts):
            own = [_mean(parts, *path) for path in _COLUMNS]
            rows.append(DeadlineRow(name, *own))
    return rows


_COLUMNS = (
    *((rate,) for rate in RATES),
    ("admission", "admitted"),
    ("prediction_error",),
    ("wasted", "share"),
    ("normalised_cct", "mean"),
    ("admission", "admitted_after", "mean"),
    ("admission", "rejected_after", "mean"),
)
"""Where a summary has what the attributes of `DeadlineRow` are means of."""


def _mean(parts: Iterable[Mapping[str, Any]], *path: str) -> Pair:
    """Return the mean, and its half-width, of a figure of the summaries that have it."""
    values = []
    for part in parts:
        found: Any = part
        for name in path:
            found = found.get(name, {})
        if found != {}:
            values.append(found)
    return confidence_95(values) if values else NOTHING


def compare_gains(results: Runs) -> list[GainRow]:
    """Return what each scheduler but the first gains in deadlines met; none of one replica, or without deadlines."""
    rows = []
    for name in list(results)[1:]:
        found = {rate: gains_of(results, name, rate) for rate in RATES}
        if any(gains is None for gains in found.values()):
            return []
        described = {
            rate: {"count": len(own)} | {f"p{q}": float(np.percentile(own, q)) for q in GAIN_PERCENTILES}
            for rate, own in found.items()
            if own is not None and len(own)
        }
        rows.append(GainRow(name, described, len(results[name]) - len(found[RATES[0]] or ())))
    return rows


def gains_of(results: Runs, name: str, rate: str) -> list[float] | None:
    """Return (rate - first's) / first's, replica by replica without those in which the first's is 0.

    None of one replica, or where coflows have no deadlines.
    """
    first, own = ([r.summary["coflows"].get(rate) for r in results[n]] for n in (next(iter(results)), name))
    if len(first) < 2 or None in first or None in own:
        return None
    return [(b - a) / a for a, b in zip(first, own, strict=True) if a > 0]


def render_deadlines(rows: Sequence[DeadlineRow]) -> str:
    """Return what became of coflows with deadlines as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    table = [["", *deadline_head(rows)], *([row.scheduler, *deadline_cells(row, rows)] for row in rows)]
    return "\n".join(["", EXPLAINED, *(f"  {line}" for line in align(table)), ""])


def deadline_head(rows: Sequence[DeadlineRow]) -> list[str]:
    """Return the names of the columns of that table."""
    return [name for i, name in enumerate(HEAD) if _is_shown(rows, i)]


def deadline_cells(row: DeadlineRow, rows: Sequence[DeadlineRow]) -> list[str]:
    """Return the cells of a row of that table."""
    cells = [*(percent(*pair) or "-" for pair in row[1:6]), *(_value(*pair) for pair in row[6:])]
    return [cell for i, cell in enumerate(cells) if _is_shown(rows, i)]


def _is_shown(rows: Sequence[DeadlineRow], column: int) -> bool:
    """Return whether some row has something in a column, and that by weight whether weights make a difference."""
    if HEAD[column] == "by weight":
        return any(row.met_by_weight != row.met for row in rows)
    return any(np.isfinite(row[column + 1][0]) for row in rows)


def _value(mean: float, half: float) -> str:
    return with_error(mean, half) if np.isfinite(half) else number(mean)


def render_gains(rows: Sequence[GainRow], results: Runs) -> str:
    """Return gains in deadlines met over the first scheduler as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    table = [["", *GAINS_HEAD], *gain_cells(rows)]
    return "\n".join(["", gains_caption(rows, results), *(f"  {line}" for line in align(table)), ""])


def gains_caption(rows: Sequence[GainRow], results: Runs) -> str:
    """Return what the table of gains shows."""
    first, runs = next(iter(results.items()))
    unit = "instance" if len(instances_of([r.summary for r in runs])) > 1 else "seed"
    few = rows[0].undefined
    clause = f"; {few:,} {unit}{'s'[: few != 1]} in which {first} met none left out" if few else ""
    return f"gain over {first} in the share of deadlines met, {unit} by {unit}: (share - its share) / its share{clause}"


def gain_cells(rows: Sequence[GainRow]) -> list[list[str]]:
    """Return the rows of that table; those by weight only where weights make a difference."""
    weighted = any(len({str(gain) for gain in row.gains.values()}) > 1 for row in rows)
    return [
        [f"{row.scheduler}{suffix}", *(percent(row.gains[rate][p]) for p in GAINS_HEAD)]
        for rate, suffix in zip(RATES, ("", ", by weight"), strict=True)
        for row in rows
        if rate in row.gains and (weighted or not suffix)
    ]
