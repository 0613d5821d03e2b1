"""Results of runs for programs: figures against the first scheduler in summaries, and rows of a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emu import disk
from emu.families.registry import family_of_summary, find_family
from emu.results.measures import NOTHING, SHARES, TIMES, Measure, Pair, Row, all_measures, measure_of
from emu.results.metrics import EVERY_STATISTIC

HEAD = ("scheduler", "baseline", "group", "metric", "statistic", "value", "half_95", "ratio", "ratio_half_95")
"""Columns of a CSV file, and after them ``seeds``, and of a batch ``instances``; a sweep's axes stand before them."""
OUTSIDE = ("seed", "seeds", "instances", "drawn", "nodes", "resample_block_s", "confidence_95", "ratios", *SHARES,
           "improved", "speedup", "gains", "left_out")  # fmt: skip
"""Keys of a summary that are not figures of a run, or that have columns of their own."""
OF_MACHINE = ("wall_s", "load_s", "compile_s", "tasks_per_s", "peak_rss_mb")
"""Figures of the engine that differ from run to run: they are in summaries, and not in files of records."""


def compared(rows: Sequence[Row], first: str) -> dict[str, Any]:
    """Return a summary's entries of one scheduler against the first, from the rows of that scheduler.

    By group: ``ratios``, nested as in the summary; ``better``, ``equal``, ``worse`` and ``improved``; of DAG jobs and
    coflows ``speedup``. Each figure is ``{"mean", "half_95"}``, None for no value. Of coflows with deadlines also
    percentiles of ``gains`` (`Row.gains`), and ``left_out``, a number of replicas.
    """
    fields: dict[str, Any] = {
        "baseline": first,
        "ratios": {r.group: _nested(r.ratios) for r in rows},
        **{name: {r.group: _pair(r.shares[name]) for r in rows} for name in SHARES},
        "improved": {r.group: _number(r.improved) for r in rows},
    }
    if any(row.speedup for row in rows):
        fields["speedup"] = {r.group: {s: _pair(pair) for s, pair in r.speedup.items()} for r in rows}
    if any(row.left_out for row in rows):
        fields["left_out"] = {r.group: r.left_out for r in rows if r.left_out}
    if any(row.gains for row in rows):
        fields["gains"] = {r.group: r.gains for r in rows if r.gains}
    return fields


def tidy(summary: Mapping[str, Any], rows: Sequence[Row] = (), first: str = "") -> Iterator[dict[str, Any]]:
    """Yield the figures of a summary, a row each: `HEAD` and ``seeds``, and of a batch ``instances``.

    `OF_MACHINE` is left out, so that equal results have equal records. In a comparison, `rows` are those of the
    summary's scheduler, and `first` is the scheduler that it is compared with.
    """
    family = family_of_summary(summary)
    figures, intervals = summary[family.heads], summary.get("confidence_95", {}).get(family.heads, {})
    same = {"scheduler": summary["scheduler"], "baseline": first or None}
    seeds = {"seeds": len(summary.get("seeds", (0,)))}
    if "instances" in summary:
        seeds["instances"] = len(summary["instances"])
    ratios = {(row.group, name): pair for row in rows for name, pair in row.ratios.items()}

    def row(group: str, metric: str, statistic: str, value: Pair, ratio: Pair = NOTHING) -> dict[str, Any]:
        numbers = zip(HEAD[5:], map(_number, (*value, *ratio)), strict=True)
        return {**same, "group": group, "metric": metric, "statistic": statistic, **dict(numbers), **seeds}

    groups = list(family.groups(figures))
    for group, path in groups:
        part, interval = _at(figures, path), _at(intervals, path)
        yield row(group, "count", "", (part["count"], math.nan))
        for m in all_measures(family.name):
            low, high = m.interval(interval)
            figure = (m.of(part), (high - low) / 2)
            yield row(
                group, _unit(m.metric, family.time), m.statistic, figure, ratios.get((group, m.name), NOTHING)
            )
    named = {group for group, _ in groups}
    left_out = {group for group in family.group_titles if group not in named}  # a class that has all jobs
    for name, spread in summary.get("decision_latency", {}).items():
        if name in left_out:
            continue
        for statistic, value in spread.items():
            yield row(name, "decision_latency_s", statistic, (value, math.nan))
    of_groups = {path[0] for _, path in groups if path} | left_out
    inner = {
        k: v for k, v in figures.items() if k not in (*of_groups, "count", *family.metrics, *EVERY_STATISTIC)
    }
    outer = {k: v for k, v in summary.items() if k not in (family.heads, "decision_latency", *OUTSIDE)}
    outer["engine"] = {k: v for k, v in summary.get("engine", {}).items() if k not in OF_MACHINE}
    for group, of_all, bounds in (("all", inner, intervals), ("", outer, {})):
        for path, value in _leaves(of_all):
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high = _at(bounds, path[:-1]).get(path[-1], NOTHING)
                yield row(group, path[0], ".".join(path[1:]), (value, (high - low) / 2))
    for own in rows:
        for name, pair in {**own.shares, "improved": (own.improved, math.nan)}.items():
            yield row(own.group, "share", name, pair)
        for name, pair in own.speedup.items():
            yield row(own.group, "speedup", name, pair)
        for path, value in _leaves(own.gains):
            yield row(own.group, "gain", ".".join(path), (value, math.nan))


def placed(summary: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Return a summary that a run directory holds with its paths from the current folder."""
    paths = {"paths": [(out / path).as_posix() for path in summary["paths"]]} if "paths" in summary else {}
    return {**summary, "path": (out / summary.get("path", "")).as_posix(), **paths}


def write_csv(records: Iterable[Mapping[str, Any]], path: str | Path | None = None) -> str:
    """Return records as CSV text, and write it to a path if one is given; missing columns are empty."""
    found = list(records)
    names = list(dict.fromkeys(name for record in found for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    if path is not None:
        disk.write_text(Path(path), text.getvalue())
    return text.getvalue()


def wide(rows: Iterable[Row], family: str) -> Iterator[dict[str, Any]]:
    """Yield a record for each row: means over the seeds, without intervals."""
    group, measures = find_family(family).group_column, all_measures(family)
    for row in rows:
        yield (
            {"scheduler": row.scheduler, group: row.group, "count": row.count}
            | {_column(m): row.figures[m.name][0] for m in measures}
            | {f"{_plain(m)}_ratio": row.ratios[m.name][0] for m in measures}
            | {f"speedup_{s}": pair[0] for s, pair in row.speedup.items()}
            | {name: row.shares[name][0] for name in SHARES}
            | {"improved": row.improved}
        )


def _plain(measure: Measure) -> str:
    return measure.name.replace(".", "_", 1) if measure.metric else measure.statistic


def _column(measure: Measure) -> str:
    return f"{_plain(measure)}_s" if measure.is_time else _plain(measure)


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield path and value of what is nested in mappings."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _at(tree: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    for name in path:
        tree = tree.get(name, {})
    return tree


def _unit(metric: str, time: str) -> str:
    """Return a metric's name with its unit, if it has one; for completion times the name of their column."""
    if not metric:
        return time
    return f"{metric}_s" if metric in TIMES else metric


def _nested(pairs: Mapping[str, Pair]) -> dict[str, Any]:
    """Return figures by the names of measures as a summary nests them."""
    nested: dict[str, Any] = {}
    for measure in map(measure_of, pairs):
        place = nested.setdefault(measure.metric, {}) if measure.metric else nested
        place[measure.statistic] = _pair(pairs[measure.name])
    return nested


def _pair(pair: Pair) -> dict[str, float | None]:
    return {"mean": _number(pair[0]), "half_95": _number(pair[1])}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
