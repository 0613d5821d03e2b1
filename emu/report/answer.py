"""The answer at the beginning of a comparison's page: the best scheduler, by how much, and how certainly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from emu.families.family import Family
from emu.report.page import sentence
from emu.report.plots import Drawing
from emu.results.measures import Measure, Row
from emu.results.paired_comparison import Comparing
from emu.results.text_tables import ratio, with_error
from workloads.hints import in_words

ONE_SEED = "One seed does not show random variation; --seeds 5 gives intervals."
MOST_PLACES = 2
"""Up to this many points of a sweep at which a scheduler is best are named."""


def answer_of(rows: Sequence[Row], family: Family) -> list[str]:
    """Return a sentence for each group of jobs, or coflows: the schedulers with the least mean and the least tail.

    Schedulers that differ by no more than chance, or the tolerance, are all named.
    """
    if len({row.scheduler for row in rows}) < 2:
        return []
    sentences = []
    for group in _shown_groups(rows, family):
        of_group = [row for row in rows if row.group == group]
        clauses = [_clause(of_group, m) for m in _measures(family) if m.name in of_group[0].figures]
        sentences.append(f"{group_title(group, family)}: {'; '.join(clauses)}.")
    return sentences


def answer_over(points: Mapping[str, Sequence[Row]], family: Family) -> list[str]:
    """Return a sentence for each group of jobs, or coflows: the points of a sweep at which each scheduler is best.

    `points` go from the label of each point, such as ``load 0.9``, to the rows of its comparison. Points at which not
    all schedulers are compared are left out.
    """
    schedulers = list(dict.fromkeys(row.scheduler for rows in points.values() for row in rows))
    whole = {at: rows for at, rows in points.items() if {row.scheduler for row in rows} == set(schedulers)}
    if len(schedulers) < 2 or len(whole) < 2:
        return []
    sentences = []
    for group in _shown_groups(next(iter(whole.values())), family):
        of_group = {
            at: own for at, rows in whole.items() if (own := [row for row in rows if row.group == group])
        }
        clauses = [
            _clause_over(of_group, m)
            for m in _measures(family)
            if all(m.name in rows[0].figures for rows in of_group.values())
        ]
        sentences.append(f"{group_title(group, family)}: {'; '.join(clauses)}.")
    return sentences


def _shown_groups(rows: Sequence[Row], family: Family) -> list[str]:
    groups = list(dict.fromkeys(row.group for row in rows))
    classes = [group for group in groups if group in family[Comparing].classes]
    return classes or [group for group in groups if group == "all"]


def group_title(group: str, family: Family) -> str:
    """Return what a group is called at the beginning of a sentence."""
    return sentence(family.group_titles.get(group, f"{group} {family.heads}"))


def _measures(family: Family) -> list[Measure]:
    return [Measure("", "mean"), Measure("", family[Drawing].statistics[-1])]


def _label(name: str) -> str:
    return "the mean completion time" if name == "mean" else f"the {name}"


def _clause_over(points: Mapping[str, Sequence[Row]], measure: Measure) -> str:
    """Return at which points each scheduler has the least of a measure, alone or with others."""
    name = measure.name
    won: dict[str, list[str]] = {}
    for at, rows in points.items():
        best = [row.scheduler for row in rows if name in row.best]
        won.setdefault(in_words(best) if best else "", []).append(at)
    parts = []
    for schedulers, places in sorted(won.items(), key=lambda one: (not one[0], -len(one[1]))):
        where = f"{len(places)} of {len(points)} points"
        if len(places) == len(points):
            where = f"all {where.partition(' of ')[2]}"
        elif len(places) <= MOST_PLACES:
            where = in_words(places)
        ratios = _ratios(points, schedulers, places, name)
        equal = f"called equal under all at {where}"
        parts.append(f"under {schedulers} at {where}{ratios}" if schedulers else equal)
    least = "least " if any(won) else ""
    return f"{_label(name)} is {least}{', '.join(parts)}"


def _ratios(points: Mapping[str, Sequence[Row]], scheduler: str, places: Sequence[str], name: str) -> str:
    """Return the range of a scheduler's ratios to the first one; empty for several schedulers, or the first."""
    first = next(iter(points.values()))[0].scheduler
    found = [
        row.ratios[name][0]
        for at in places
        for row in points[at]
        if row.scheduler == scheduler != first and math.isfinite(row.ratios[name][0])
    ]
    if not found:
        return ""
    low, high = ratio(min(found)), ratio(max(found))
    return f" ({low if low == high else f'{low} to {high}'} that under {first})"


def _clause(rows: Sequence[Row], measure: Measure) -> str:
    """Return which schedulers have the least of a measure, and its value under the first one, or the others."""
    name = measure.name
    known = [row for row in rows if row.figures[name][0] == row.figures[name][0]]
    if not known:
        return f"{name} is not known"
    label = _label(name)
    best = [row for row in known if name in row.best]
    least = min(known, key=lambda row: row.figures[name][0])
    if not best:
        figures = [f"{with_error(*row.figures[name])} s under {row.scheduler}" for row in known]
        return f"of {label} no difference is shown: {', '.join(figures)}"
    text = f"{label} is least under {least.scheduler}, {with_error(*least.figures[name])} s"
    first = rows[0]
    if first is least:
        others = [
            f"under {row.scheduler} {ratio(*row.ratios[name])} that" for row in known if row not in best
        ]
        text += f" ({', '.join(others)})"
    elif first not in best:
        text += f", {ratio(*least.ratios[name])} that under {first.scheduler} ({with_error(*first.figures[name])} s)"
    same = [f"{row.scheduler} ({with_error(*row.figures[name])} s)" for row in best if row is not least]
    return f"{text}, and the same, to within chance or 1 %, under {in_words(same)}" if same else text
