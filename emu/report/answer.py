"""The beginning of a comparison's page: which scheduler performed best, by how much, how surely, and what was run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emu.configuration.config import flatten
from emu.families.family import Family
from emu.results.measures import Measure
from emu.results.paired import Row, Runs
from emu.results.tables import number, percent, ratio, with_error
from workloads.hints import in_words

ONE_SEED = "One seed does not show random variation; --seeds 5 gives intervals."
_KEYS = {
    "short_cutoff": "short cut-off",
    "cluster": "cluster",
    "network.delay": "network delay",
    "cost.model": "cost of decisions",
    "constraints.model": "constraints",
    "warmup": "warm-up",
}
"""Keys that the facts show, to what they are called there; those that are none or zero are left out."""


def answer_of(rows: Sequence[Row], family: Family) -> list[str]:
    """Return a sentence for each group of jobs, or coflows: the schedulers with the least mean and the least tail.

    Of two schedulers that differ by no more than chance, or than what is called equal, both are named.
    """
    if len({row.scheduler for row in rows}) < 2:
        return []
    groups = list(dict.fromkeys(row.group for row in rows))
    plain = [g for g in groups if " " not in g and not g.startswith("bin-")]
    shown = [g for g in plain if g != "all"] or plain  # all are those of the classes, where there are classes
    measures = [Measure("", "mean"), Measure("", family.shown[-1])]
    sentences = []
    for group in shown:
        of_group = [row for row in rows if row.group == group]
        clauses = [_clause(of_group, measure) for measure in measures if measure.name in of_group[0].figures]
        title = family.group_titles.get(group, f"{group} {family.heads}")
        sentences.append(f"{title[0].upper()}{title[1:]}: {'; '.join(clauses)}.")
    return sentences


def _clause(rows: Sequence[Row], measure: Measure) -> str:
    """Return which schedulers have the least of a measure, and how it is under the first, or the next."""
    name = measure.name
    known = [row for row in rows if row.figures[name][0] == row.figures[name][0]]
    if not known:
        return f"{name} is not known"
    label = "the mean completion time" if name == "mean" else f"the {name}"
    best = [row for row in known if name in row.best]
    least = min(known, key=lambda row: row.figures[name][0])
    if not best:
        return f"{label} is {with_error(*least.figures[name])} s under all, to within what is called equal"
    text = f"{label} is least under {in_words([row.scheduler for row in best])}, {with_error(*least.figures[name])} s"
    first = rows[0]
    if first in best:
        others = [row for row in known if row not in best]
        return f"{text} ({', '.join(f'{ratio(*row.ratios[name])} that under {row.scheduler}' for row in others)})"
    return f"{text}, {ratio(*least.ratios[name])} that under {first.scheduler} ({with_error(*first.figures[name])} s)"


def facts_of(results: Runs, family: Family) -> str:
    """Return what was run in a line: load, how many jobs and tasks, and the settings that matter most."""
    runs = [run for own in results.values() for run in own]
    first = runs[0]
    config = dict(flatten(first.manifest.get("config", {})))
    facts = []
    loads = [run.summary["offered_load"] for run in runs if run.summary.get("offered_load") is not None]
    if loads:
        low, high = percent(min(loads)), percent(max(loads))
        facts.append(f"offered load {low if low == high else f'{low} to {high}'}")
    facts.append(f"{first.heads.num_rows:,} {family.heads}")
    parts = first.summary.get("engine", {}).get("tasks")
    if parts:
        facts.append(f"{number(parts)} {family.part}")
    for key, label in _KEYS.items():
        if not _is_nothing(config.get(key)):
            facts.append(f"{label} {config[key]}")
    return ", ".join(facts)


def _is_nothing(value: Any) -> bool:
    return value in (None, "none", "", 0) or str(value).startswith(("0.0 ", "0 "))
