"""The note of an answer of a search for a size: how sure it is, under which conditions, and why none was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.configuration.seeds import seeds_text, varied
from emu.families.registry import family_of_summary
from emu.results.measures import Measure
from emu.results.text_tables import number
from emu.sweeps.targets import Search, Target

_SLOWDOWN = Measure("slowdown", "p99")
_ALONE = 1.05
"""A job with a slowdown of at most this takes only the time of its tasks."""


def note_of(
    search: Search,
    targets: Sequence[Target],
    low: int | None,
    high: int | None,
    spanned: bool,
    of_runs: Sequence[Mapping[str, Any]],
) -> str:
    """Return the note of an answer.

    `spanned` is whether on `search.fails` nodes an interval spans its bound; `of_runs` are the summaries of the runs on
    the answer, or without an answer on the most nodes that were tried.
    """
    many = "all targets are" if len(targets) > 1 else f"{targets[0]} is"
    none = "not all targets are" if len(targets) > 1 else f"{targets[0]} is not"
    if search.holds is None:
        which = "--high" if high is not None else "the most that was tried: more slots than tasks"
        spans = "; there the 95 % interval spans the bound: more --seeds narrow it"
        note = f"{none} met even on {search.fails:,}, {which}{spans * spanned}{_alone(targets, of_runs)}"
    elif search.fails is None:
        fewer = " already, fewer may do" if search.holds == low and low > 1 else ", the fewest there can be"
        note = f"{many} met{fewer}"
    else:
        below = "one is not" if len(targets) > 1 else "is not"
        if spanned:
            below = "the 95 % interval spans the bound"
        note = f"{many} met, and {below} on {search.fails:,}"
    seeds = [run["seed"] for run in of_runs]
    if len(seeds) > 1:
        note += f"; {seeds_text(seeds, varied(of_runs), of_runs[0].get('resample_block_s'))}"
    return note + _failures(of_runs)


def _alone(targets: Sequence[Target], of_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the remark that jobs take as long alone, so that more nodes cannot help; empty if that is not so."""
    for target in targets:
        if target.measure.metric:  # not of completion times
            continue
        groups = [_group(run, target.job_class) for run in of_runs]
        if any(target.holds(target.measure.of(group)) for group in groups):
            continue
        slowdown = max(_SLOWDOWN.of(group) for group in groups)
        if slowdown <= _ALONE:
            jobs = "jobs" if target.job_class == "all" else f"{target.job_class} jobs"
            alone = f"{jobs} take that long alone, too (slowdown {number(slowdown)} at p99)"
            return f"; there {alone}, so that no number of nodes meets {target}"
    return ""


def _group(summary: Mapping[str, Any], job_class: str) -> Mapping[str, Any]:
    family = family_of_summary(summary)
    return family.part_of(summary[family.heads], job_class)


def _failures(of_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return how many times nodes failed, which is a condition of the answer; empty if none did."""
    counts = sorted(run["counters"].get("node_failures", 0) for run in of_runs)
    if not any(counts):
        return ""
    least, most = f"{counts[0]:,}", f"{counts[-1]:,}"
    times = "once" if most == least == "1" else f"{least if least == most else f'{least} to {most}'} times"
    return f"; nodes failed {times} in {'its run' if len(counts) == 1 else 'each run'}"
