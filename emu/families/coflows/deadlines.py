"""Deadlines and admission of coflows, in a run and in comparisons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from emu.columns import flags
from emu.configuration.seeds import instances_of
from emu.results.comparison_tables import FactTable
from emu.results.measures import Fact, Pair
from emu.results.metrics import BoolArray, Float64Array, after_warmup, spread
from emu.results.paired_comparison import best_of
from emu.results.result import Runs
from emu.results.text_tables import Table, percent
from workloads.arrow import optional_column

RATES = ("acceptance_rate", "weighted_acceptance_rate")
"""Rates of a summary of which gains are shown."""
GAIN_PERCENTILES = (1, 10, 50, 90, 99)
"""As in DCoflow's paper (IFIP Networking 2022, section IV-A)."""
GAINS_HEAD = tuple(f"p{percent}" for percent in GAIN_PERCENTILES)
_FACTS = (
    Fact("met", "coflows.acceptance_rate", "share or -"),
    Fact("by weight", "coflows.weighted_acceptance_rate", "share or -"),
    Fact("admitted", "coflows.admission.admitted", "share or -"),
    Fact("late", "coflows.prediction_error", "share or -"),
    Fact("wasted", "coflows.wasted.share", "share or -"),
    Fact("CCT / alone", "coflows.normalised_cct.mean"),
    Fact("admitted after (s)", "coflows.admission.admitted_after.mean"),
    Fact("rejected after (s)", "coflows.admission.rejected_after.mean"),
)
DEADLINES = FactTable(
    "Deadlines",
    "coflows with a deadline; late is of those admitted, wasted of the bytes that were sent, CCT / alone of those that "
    "met it, and times are means from the arrival to the last verdict",
    _FACTS,
    needs="coflows.acceptance_rate",
    of_some=True,
    optional=[fact.label for fact in _FACTS],
)
Gains = Mapping[str, Mapping[str, float]]
"""By `RATES`: ``count`` of the replicas in which the first scheduler met any deadline, and over those the
`GAIN_PERCENTILES` of (rate - rate of the first) / rate of the first."""


def describe_deadlines(coflows: pa.Table, counts: BoolArray) -> dict[str, Any]:
    """Return the figures of coflows with a deadline, of those that count; nothing without deadlines.

    Returns
    -------
    dict
        ``acceptance_rate`` and ``weighted_acceptance_rate``, the share of them, and of their weight, that met it. With
        admission ``admission``: ``admitted``, the share that the last decision admitted, and ``admitted_after`` and
        ``rejected_after``, mean, p50 and p90 of the time from the arrival to the last admission, or for coflows that
        were not admitted to the last rejection; ``prediction_error``, the share of admitted ones that did not meet it.
        ``wasted``: ``late_bytes`` and ``dropped_bytes``, sent by coflows that ended late, and that did not end, and
        ``share``, both over all bytes sent. ``normalised_cct``: mean, p50 and p90 of slowdown of those that met it.
    """
    met, due = flags(coflows, "met_deadline")
    due = due & counts
    if not due.any():
        return {}
    weight = optional_column(coflows, "weight")
    described: dict[str, Any] = {
        "acceptance_rate": float(met[due].mean()),
        "weighted_acceptance_rate": float(weight[due & met].sum() / weight[due].sum()),
    }
    after = {
        name: optional_column(coflows, f"{name}_s") - optional_column(coflows, "arrival_s")
        for name in _VERDICTS
    }
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
    normalised = optional_column(coflows, "slowdown")[due & met]
    normalised = normalised[np.isfinite(normalised)]
    if len(normalised):
        described["normalised_cct"] = spread(normalised)
    return described


def _wasted(coflows: pa.Table, due: BoolArray, met: BoolArray) -> dict[str, float]:
    wasted = np.nan_to_num(optional_column(coflows, "wasted_bytes"))
    late = due & np.isfinite(optional_column(coflows, "finish_s"))
    parts = {"late_bytes": float(wasted[late].sum()), "dropped_bytes": float(wasted[due & ~late].sum())}
    total = sum(parts.values())
    sent = total + float(optional_column(coflows, "size_bytes")[due & met].sum())
    return {**parts, "share": total / sent if sent > 0 else 0.0}


def missed_by_reason(coflows: pa.Table, warmup_s: float) -> dict[str, int]:
    """Return how many deadlines were missed for which reason, of the coflows that arrive after the warm-up.

    Coflows that are `TOO_LONG` take longer even alone, so that no scheduler meets their deadline.
    """
    met, due = flags(coflows, "met_deadline")
    arrival_s = optional_column(coflows, "arrival_s")
    missed = due & ~met & after_warmup(arrival_s, warmup_s)
    left_s = optional_column(coflows, "deadline_s") - arrival_s
    alone = missed & (optional_column(coflows, "ideal_s") > left_s + _HALF_NS)
    ended = np.isfinite(optional_column(coflows, "finish_s"))
    found = {
        "rejected or dropped": missed & ~alone & ~ended,
        "ended late": missed & ~alone & ended,
        TOO_LONG: alone,
    }
    return {reason: int(which.sum()) for reason, which in found.items()}


TOO_LONG = "too long even alone"
_HALF_NS = 0.5e-9
"""Times are whole nanoseconds."""
_VERDICTS = ("admitted", "rejected")


def is_admitted(coflows: pa.Table) -> BoolArray:
    """Return which coflows the last decision admitted; none without admission."""
    admitted: BoolArray = flags(coflows, "admitted")[0] & np.isfinite(optional_column(coflows, "admitted_s"))
    return admitted


def slack_used(coflows: pa.Table, at: str, warmup_s: float) -> Float64Array:
    """Return the share of the time from arrival to deadline that had passed at a time of each coflow; NaN for no time.

    `at` is ``admitted_s``, of coflows that were admitted, or ``finish_s``. Coflows without a deadline, or within the
    warm-up, are left out.
    """
    due = flags(coflows, "met_deadline")[1]
    arrival_s, deadline_s = optional_column(coflows, "arrival_s"), optional_column(coflows, "deadline_s")
    counts = after_warmup(arrival_s, warmup_s) & due & (deadline_s > arrival_s)
    time_s = optional_column(coflows, at)
    if at == "admitted_s":
        time_s = np.where(is_admitted(coflows), time_s, np.nan)
    used: Float64Array = ((time_s - arrival_s) / (deadline_s - arrival_s))[counts]
    return used


def compare_gains(results: Runs) -> dict[str, Gains]:
    """Return what each scheduler but the first gains in deadlines met; none of one replica, or without deadlines."""
    rows: dict[str, Gains] = {}
    for name in list(results)[1:]:
        found = {rate: gains_of(results, name, rate) for rate in RATES}
        if any(gains is None for gains in found.values()):
            return {}
        rows[name] = {
            rate: {"count": len(own)} | {f"p{q}": float(np.percentile(own, q)) for q in GAIN_PERCENTILES}
            for rate, own in found.items()
            if own
        }
    return rows


def gains_of(results: Runs, name: str, rate: str) -> list[float] | None:
    """Return (rate - first's) / first's by replica, without replicas in which the first's rate is 0.

    None with one replica, or without deadlines.
    """
    first, own = ([r.summary["coflows"].get(rate) for r in results[n]] for n in (next(iter(results)), name))
    if len(first) < 2 or None in first or None in own:
        return None
    return [(b - a) / a for a, b in zip(first, own, strict=True) if a > 0]


def deadline_tables(results: Runs) -> list[Table]:
    """Return the table of deadlines, by weight too where that makes a difference; none without deadlines."""
    same = all(row["by weight"] == row["met"] for row in DEADLINES.means(results).values())
    return DEADLINES.tables(results, ("by weight",) if same else ())


def gain_tables(found: Mapping[str, Gains], results: Runs) -> list[Table]:
    """Return the table of gains in deadlines met, also by weight if weights make a difference; none without gains."""
    if not found:
        return []
    first, runs = next(iter(results.items()))
    unit = "instance" if len(instances_of([r.summary for r in runs])) > 1 else "seed"
    few = len(runs) - int(next(iter(found.values())).get(RATES[0], {}).get("count", 0))
    clause = f"; {few:,} {unit}{'s'[: few != 1]} in which {first} met none left out" if few else ""
    what = f"gain over {first} in the share of deadlines met, {unit} by {unit}"
    weighted = any(len({str(gain) for gain in gains.values()}) > 1 for gains in found.values())
    table = [
        [f"{name}{suffix}", *(percent(gains[rate][p]) for p in GAINS_HEAD)]
        for rate, suffix in zip(RATES, ("", ", by weight"), strict=True)
        for name, gains in found.items()
        if rate in gains and (weighted or not suffix)
    ]
    caption = f"{what}: (share - its share) / its share{clause}"
    return [Table("Gain in deadlines met", caption, ["scheduler", *GAINS_HEAD], table)]


def answers(results: Runs) -> list[str]:
    """Return which scheduler meets most deadlines, where coflows have any."""
    rows = DEADLINES.means(results)
    if not rows:
        return []
    found = [f"Deadlines: {_most_met(results, rows)}.", *_why_missed(results)]
    ended = {name: sum(run.summary["coflows"]["count"] for run in runs) for name, runs in results.items()}
    if len(set(ended.values())) > 1:
        counts = ", ".join(f"{count:,} under {name}" for name, count in ended.items())
        found.append(
            f"Completion times are of the coflows that ended, which are not the same ones: {counts}."
        )
    return found


def _most_met(results: Runs, rows: Mapping[str, Mapping[str, Pair]]) -> str:
    """Return which schedulers meet most deadlines: all that differ by no more than chance, or 1 %, from the best."""
    missed = {
        name: [1.0 - run.summary["coflows"].get("acceptance_rate", math.nan) for run in runs]
        for name, runs in results.items()
    }
    best, order = best_of(missed), sorted(rows, key=lambda name: 1.0 - rows[name]["met"][0])
    shown = {name: f"{name} {percent(*rows[name]['met'])}" for name in order}
    most, *equal = [name for name in shown if name in best] or [""]
    if not most:
        return f"no difference is shown in the share that is met: {', '.join(shown.values())}"
    same = f"; the same, to within chance or 1 %: {', '.join(shown[name] for name in equal)}" * bool(equal)
    others = [text for name, text in shown.items() if name not in best]
    fewer = f" ({', '.join(others)})" if others else ""
    return f"{most} meets most of them, {shown[most].removeprefix(most).strip()}{same}{fewer}"


def _why_missed(results: Runs) -> list[str]:
    """Return how many deadlines were missed for what reason, of all seeds; nothing where all were met."""
    parts, too_long = [], 0
    for name, runs in results.items():
        counts: Counter[str] = Counter()
        for run in runs:
            counts.update(missed_by_reason(run.coflows, run.warmup_s))
        too_long += counts[TOO_LONG]
        if counts.total():
            listed = ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
            parts.append(f"under {name} {listed}")
    faster = " No scheduler meets what takes too long even alone; a higher fabric.port_speed does."
    return [f"Coflows that missed theirs: {'; '.join(parts)}.{faster * bool(too_long)}"] if parts else []
