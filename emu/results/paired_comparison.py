"""Schedulers against the first, seed by seed: means, ratios, which are the best, what became better, equal or worse.

Runs of equal seeds are of the same workload, so that differences and ratios are taken seed by seed, and it is their
mean and interval that tell whether there is any (a paired t-test).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from emu.configuration.keys import BY_NAME
from emu.results.comparison_row import NOTHING, SHARES, Pair, Row
from emu.results.measures import Measure
from emu.results.metrics import BoolArray, Float64Array, confidence_95, ratios
from emu.results.result import Result, Runs
from emu.results.text_tables import align, percent, ratio, with_error
from workloads.errors import InputError
from workloads.units import format_duration, parse_duration, parse_share

DELAYS = 20
"""Network delays that a difference must exceed to be more than a matter of messages: Hawk's ten attempts to steal take
as many, and no scheduler here sends more one after another for a task."""
BEST_WITHIN = 0.01
"""The relative margin of the best figures where a single seed, or equal results, show no variation."""


class Tolerance(NamedTuple):
    """The difference up to which two completion times are equal: in seconds, or as a share of the longer."""

    absolute_s: float = 0.01
    relative: float = BY_NAME["tolerance.relative"].default

    def of(self, one: Any, other: Any) -> Any:
        """Return how much two values, or arrays of them, may differ."""
        return np.maximum(self.absolute_s, self.relative * np.maximum(one, other))

    def __str__(self) -> str:
        share = f"{100 * self.relative:g} %"
        return f"{format_duration(self.absolute_s)} or {share}" if self.absolute_s else share


def tolerance_of(results: Runs) -> Tolerance:
    """Return when two completion times of a comparison are called equal, by the configuration of its runs."""
    config = next(iter(results.values()))[0].manifest.get("config", {})
    given, network = config.get("tolerance", {}), config.get("network", {})
    relative = parse_share(given.get("relative", Tolerance().relative), "tolerance.relative")
    absolute = given.get("absolute", BY_NAME["tolerance.absolute"].default)
    if absolute != "auto":
        return Tolerance(parse_duration(absolute, "tolerance.absolute"), relative)
    delays = [
        parse_duration(network[d], f"network.{d}") for d in ("delay", "cross_rack_delay") if d in network
    ]
    return Tolerance(DELAYS * max(delays) if delays else Tolerance().absolute_s, relative)


def compare_parts(
    results: Runs,
    parts: Mapping[str, Sequence[Mapping[str, Any]]],
    group: str,
    measures: Sequence[Measure],
    times_of: Callable[[Result], Float64Array],
    counted: Callable[[Result], BoolArray],
) -> list[Row]:
    """Return a row for each scheduler and one group.

    Parameters
    ----------
    results : mapping
    parts : mapping
        By scheduler, seed by seed: what the summary has of the group.
    group : str
    measures : sequence of Measure
    times_of : callable
        From a result to the completion times of all jobs, or coflows.
    counted : callable
        From a result to which of them are of the group and count.
    """
    tolerance = tolerance_of(results)
    first = next(iter(parts))
    values = {m: {name: [m.of(p) for p in own] for name, own in parts.items()} for m in measures}
    best = {m.name: best_of(by_name, tolerance if m.is_time else None) for m, by_name in values.items()}
    rows = []
    for name, own in parts.items():
        judged = [
            _judge(a, b, times_of, counted, tolerance)
            for a, b in zip(results[first], results[name], strict=True)
        ]
        rows.append(
            Row(
                scheduler=name,
                group=group,
                count=float(np.mean([p["count"] for p in own])),
                figures={m.name: confidence_95(values[m][name]) for m in measures},
                ratios={m.name: ratios(values[m][first], values[m][name]) for m in measures},
                best=frozenset(m for m, names in best.items() if name in names),
                shares={
                    s: NOTHING if name == first else confidence_95([j[s] for j in judged]) for s in SHARES
                },
                improved=math.nan if name == first else float(np.mean([j["improved"] for j in judged])),
            )
        )
    return rows


def _judge(
    first: Result,
    other: Result,
    times_of: Callable[[Result], Float64Array],
    counted: Callable[[Result], BoolArray],
    tolerance: Tolerance,
) -> dict[str, float]:
    """Return `shares_of` of a seed, and what has improved by however little.

    Raises
    ------
    InputError
        The two have not the same jobs, or coflows: a file of one of them is not as it was written.
    """
    own, want = other.heads.num_rows, first.heads.num_rows
    if own != want:
        wrong = f"has {own:,} {other.family}, and {first.path} has {want:,}; they cannot be compared"
        raise InputError(wrong, file=other.path)
    mask, times = counted(first), (times_of(first), times_of(other))
    with np.errstate(invalid="ignore"):
        improved = float((times[1] < times[0])[mask].mean()) if mask.any() else math.nan
    return {**shares_of(*times, mask, tolerance), "improved": improved}


def shares_of(
    first_s: Float64Array, other_s: Float64Array, mask: BoolArray, tolerance: Tolerance
) -> dict[str, float]:
    """Return the shares of `SHARES` of what is in `mask` and finished under one of the two at least.

    What finished under one alone is better, or worse, by that.
    """
    first, other = (np.where(np.isfinite(t), t, np.inf)[mask] for t in (first_s, other_s))
    some = np.isfinite(first) | np.isfinite(other)
    first, other = first[some], other[some]
    if not len(first):
        return dict.fromkeys(SHARES, math.nan)
    both = np.isfinite(first) & np.isfinite(other)
    equal = np.zeros(len(first), bool)
    equal[both] = np.abs(other - first)[both] <= tolerance.of(first[both], other[both])
    better = ~equal & (other < first)
    return {
        "better": float(better.mean()),
        "equal": float(equal.mean()),
        "worse": float((~equal & ~better).mean()),
    }


def best_of(values: Mapping[str, Sequence[float]], tolerance: Tolerance | None = None) -> frozenset[str]:
    """Return those with the least mean, and those that are as good; none where all are.

    Of several seeds, one is as good as the least if the 95 % intervals of its differences to that, seed by seed, and of
    the logarithms of its ratios both reach the tolerance: the workloads of some seeds take many times as long as those
    of others, and then a few differences are most of all. With one seed, or where all give the same difference, one is
    as good if it is within the tolerance or `BEST_WITHIN` of the least.

    Parameters
    ----------
    values : mapping
        By name, seed by seed; NaN where there is none.
    tolerance : Tolerance, optional
        Of times; ratios are compared by `Tolerance.relative` alone.
    """
    known = {name: np.asarray(own, np.float64) for name, own in values.items() if np.isfinite(own).all()}
    if not known:
        return frozenset()
    least = min(known.values(), key=lambda own: float(own.mean()))
    allowed = float((tolerance or Tolerance(0.0)).of(least.mean(), least.mean()))
    untold = max(allowed, BEST_WITHIN * abs(float(least.mean())))
    good = set()
    for name, own in known.items():
        mean, half = confidence_95((own - least).tolist())
        if (mean - half <= allowed and not _is_longer(own, least, allowed)) if half > 0 else mean <= untold:
            good.add(name)
    return frozenset(good) if len(good) < len(values) else frozenset()


def _is_longer(own: Float64Array, least: Float64Array, allowed: float) -> bool:
    """Return whether ratios, seed by seed, are above what may differ, by more than chance."""
    if min(own.min(), least.min()) <= 0:
        return False
    mean, half = confidence_95(np.log(own / least).tolist())
    return mean - half > math.log1p(allowed / float(least.mean()))


def factors_of(
    results: Runs, row: Row, percentiles: Sequence[int], measure: Callable[[Result, Result], Float64Array]
) -> dict[str, Pair]:
    """Return the factors by which the first scheduler is faster than that of a row.

    ``average`` is that of the mean completion times; percentiles are of the factors of single jobs, or coflows, which
    `measure` gives of a result of the first scheduler and one of the other.
    """
    first = next(iter(results))
    nothing = dict.fromkeys(("average", *(f"p{q}" for q in percentiles)), NOTHING)
    if row.scheduler == first:
        return nothing
    found = [measure(a, b) for a, b in zip(results[first], results[row.scheduler], strict=True)]
    of_single = percentiles_over_seeds(found, percentiles) if all(map(len, found)) else {}
    return nothing | {"average": row.ratios["mean"]} | of_single


def percentiles_over_seeds(found: Sequence[Float64Array], percentiles: Sequence[int]) -> dict[str, Pair]:
    """Return the mean and interval of each percentile of the values of several seeds."""
    return {f"p{q}": confidence_95([float(np.percentile(own, q)) for own in found]) for q in percentiles}


def render_factors(
    rows: Sequence[Row],
    head: str,
    tolerance: Tolerance,
    columns: Sequence[Measure],
    one: str,
    clause: str,
    labels: Mapping[str, str],
    titles: Mapping[str, Callable[[Sequence[Row]], str]],
) -> str:
    """Return completion times, and factors (`factors_of`) by the labels of their names, as a table for each group.

    `one` is what one of those that are compared is called, `clause` what the factors are, and `titles` go from each
    group, in order, to the title of its rows.
    """
    if not rows:
        return f"{head}: no {one} finished under all schedulers\n"
    first = rows[0].scheduler
    several = any(row.scheduler != first for row in rows)
    what = f", and as {clause} of {first}: the others' over its own" if several else ""
    lines = [f"{head}: {column_names(columns, one)}{what}"]
    for group, title in titles.items():
        own = [row for row in rows if row.group == group]
        if not own:
            continue
        table = [["", *(m.name for m in columns), *([*labels.values(), *SHARES] if several else [])]]
        for row in own:
            cells = [row.scheduler, *(with_error(*row.figures[m.name]) for m in columns)]
            if several:
                cells += [*(ratio(*row.speedup[name]) for name in labels), *shares_cells(row)]
            table.append(cells)
        lines += ["", title(own), *(f"  {line}" for line in align(table))]
    if several:
        lines += ["", shares_caption(first, f"{one}s", tolerance)]
    return "\n".join(lines) + "\n"


def column_names(columns: Sequence[Measure], what: str) -> str:
    """Return what the columns of a table show."""
    others = "; waits in seconds" if any(m.metric == "wait" for m in columns) else ""
    return f"{what} completion time in seconds{others}"


def shares_caption(first: str, what: str, tolerance: Tolerance) -> str:
    """Return what the columns of `SHARES` show."""
    return (
        f"better, equal, worse: share of the {what} by completion time, against {first}; "
        f"equal is within {tolerance}"
    )


def shares_cells(row: Row) -> list[str]:
    """Return the cells of `SHARES`: means over the seeds."""
    return [percent(row.shares[name][0]) for name in SHARES]
