"""Schedulers against the first, seed by seed: means, ratios, the best, what became better, equal or worse.

Runs with equal seeds have the same workload, so that differences and ratios are taken seed by seed; their mean and
interval show whether schedulers differ (a paired t-test).
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
from emu.results.text_tables import TIMES, align, indented, percent, ratio, with_error
from workloads.errors import InputError
from workloads.hints import in_words
from workloads.units import format_duration, parse_duration, parse_share

DELAYS = 20
"""Network delays up to which a difference may be due to messages: Hawk's ten attempts to steal take as many, and no
scheduler sends more messages in sequence for a task."""
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
    """Return the tolerance of a comparison, by the configuration of its runs."""
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
    parts : mapping
        By scheduler, seed by seed: the figures of the group in the summary.
    times_of : callable
        From a result to the completion times of all jobs, or coflows.
    counted : callable
        From a result to which of them belong to the group and count.
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
    """Return `shares_of` of a seed, and the share that improved by however little.

    Raises
    ------
    InputError
        The two have different numbers of jobs, or coflows: a file has changed since it was written.
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
    """Return the `SHARES` of the jobs in `mask` that finished under at least one of the two schedulers.

    A job that finished under one of them only is better, or worse.
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

    With several seeds, one is as good if the 95 % intervals of its differences to the least, seed by seed, and of the
    logarithms of its ratios both reach the tolerance: where the workloads of some seeds take many times as long, a few
    differences dominate. With one seed, or where all differences are equal, one is as good if it is within the
    tolerance or `BEST_WITHIN` of the least.

    Parameters
    ----------
    values : mapping
        By name, seed by seed; NaN for no value.
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
    """Return whether ratios, seed by seed, are above the tolerance by more than chance."""
    if min(own.min(), least.min()) <= 0:
        return False
    mean, half = confidence_95(np.log(own / least).tolist())
    return mean - half > math.log1p(allowed / float(least.mean()))


def factors_of(
    results: Runs, row: Row, percentiles: Sequence[int], measure: Callable[[Result, Result], Float64Array]
) -> dict[str, Pair]:
    """Return the factors by which the first scheduler is faster than that of a row.

    ``average`` is the factor of mean completion times; percentiles are of the factors of single jobs, or coflows, which
    `measure` returns for a result of the first scheduler and one of the other.
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

    `one` is the word for what is compared, `clause` the words for the factors, and `titles` go from each group, in
    order, to the function that gives the title of its rows.
    """
    if not rows:
        return f"{head}: no {one} finished under all schedulers\n"
    first = rows[0].scheduler
    several = any(row.scheduler != first for row in rows)
    what = f", and as {clause} of {first}: the others' over its own" if several else ""
    names = [*(m.name for m in columns), *(labels.values() if several else ())]

    def cells(row: Row) -> list[str]:
        factors = (ratio(*row.speedup[name]) for name in labels) if several else ()
        return [*(with_error(*row.figures[m.name]) for m in columns), *factors]

    return render_groups(
        rows, f"{head}: {column_names(columns, one)}{what}", names, cells, titles, f"{one}s", tolerance
    )


def render_groups(
    rows: Sequence[Row],
    head: str,
    names: Sequence[str],
    cells: Callable[[Row], list[str]],
    titles: Mapping[str, Callable[[Sequence[Row]], str]],
    heads: str,
    tolerance: Tolerance,
) -> str:
    """Return a table for each group of rows as text below a head, and of several schedulers the shares of `SHARES`.

    `names` are those of the columns that `cells` gives of a row, and `heads` is what is compared.
    """
    first = rows[0].scheduler
    several = any(row.scheduler != first for row in rows)
    lines = [head]
    for group, title in titles.items():
        if own := [row for row in rows if row.group == group]:
            table = [["", *names, *(SHARES if several else ())]]
            table += [[row.scheduler, *cells(row), *(shares_cells(row) if several else ())] for row in own]
            lines += ["", title(own), *indented(align(table))]
    lines += ["", shares_caption(first, heads, tolerance)] if several else []
    return "\n".join(lines) + "\n"


def behind_note(first: str, speedups: Mapping[str, Mapping[str, Pair]]) -> str:
    """Return which others are faster than the first scheduler, by the columns of a table in which it is below 1.

    Parameters
    ----------
    speedups : mapping
        By the label of a column: the speed-up of the first over each other scheduler, and its half-width.
    """
    faster = {
        label: [name for name, (mean, half) in of_column.items() if mean + (half if half > 0 else 0.0) < 1]
        for label, of_column in speedups.items()
    }
    clauses = [f"{in_words(names)} ({label})" for label, names in faster.items() if names]
    return f"Below 1{TIMES} the other is faster: than {first} here {', '.join(clauses)}." if clauses else ""


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
