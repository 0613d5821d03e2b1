"""The note of an answer of a search for a size: how sure it is, under which conditions, and why none was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clusters.machine_types import machines_text
from emu.configuration.seeds import seeds_text, varied
from emu.explaining.explain import with_events_of
from emu.families.registry import family_of_summary
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.measures import Measure
from emu.results.result import read_result
from emu.results.text_tables import number, percent
from emu.sweeps.mixed_sizes import Mixed
from emu.sweeps.sizes import NONE_LACKS, Probe
from emu.sweeps.targets import NOT_MET, SPANS, Search, Sizing, Target, Waits
from workloads.hints import in_words

_SLOWDOWN = Measure("slowdown", "p99")
_ALONE = 1.05
"""A job with a slowdown of at most this takes only the time of its tasks."""


class Found(NamedTuple):
    """What the note of an answer is made of.

    Attributes
    ----------
    search : Search
    targets : sequence of Target
    of_runs : sequence
        The summaries of the runs on the answer, or without an answer on the most nodes that were tried; none where
        some job cannot run there.
    low, high : int, optional
        The bounds that were given.
    fails, answer : Probe, optional
        On `search.fails` nodes, and on those of the answer.
    left_out : int
        How many jobs run on no size, and were left out.
    mixed : Mixed, optional
        The search for the cheapest mix, if there was one.
    without : float
        The share of the nodes that are missing in each run.
    open_from : int, optional
        The fewest nodes for which the seeds leave open whether the targets are met.
    in_proportion : sequence of Probe
        All sizes that were tried in the proportions of the cluster.
    """

    search: Search
    targets: Sequence[Target]
    of_runs: Sequence[Mapping[str, Any]]
    low: int | None = None
    high: int | None = None
    fails: Probe | None = None
    answer: Probe | None = None
    left_out: int = 0
    mixed: Mixed | None = None
    without: float = 0.0
    open_from: int | None = None
    in_proportion: Sequence[Probe] = ()


def note_of(found: Found) -> str:
    """Return the note of an answer."""
    search, targets, of_runs, low, high, fails, answer, left_out, mixed, without, *_ = found
    many = "all targets are" if len(targets) > 1 else f"{targets[0]} is"
    none = "not all targets are" if len(targets) > 1 else f"{targets[0]} is not"
    spanned = fails is not None and fails.verdict == SPANS
    lacking = fails.lacking if fails is not None else NONE_LACKS
    if answer is not None and answer.size.machines:
        note = f"{many} met"
    elif search.holds is None:
        which = "--high" if high is not None else "the most that was tried: more slots than tasks"
        note = f"{none} met even on {search.fails:,}, {which}"
        if lacking.jobs:
            note += f"; there {lacking}"
        elif spanned:
            note += "; there the 95 % interval spans the bound: more --seeds narrow it"
        note += _alone(targets, of_runs) if of_runs else ""
    elif search.fails is None:
        fewer = " already, fewer may do" if search.holds == low and low > 1 else ", the fewest there can be"
        note = f"{many} met{fewer}"
    elif lacking.jobs:
        none_below = "not all are" if len(targets) > 1 else "is not"
        note = f"{many} met, and {none_below} on {search.fails:,}, where {lacking}"
    else:
        below = "one is not" if len(targets) > 1 else "is not"
        if spanned:
            below = "the 95 % interval spans the bound"
        note = f"{many} met, and {below} on {search.fails:,}"
    note += _against(found)
    if answer is not None:
        machines = machines_text(answer.machines, of_one=mixed is not None)
        note += f"; machines: {machines}" if machines else ""
        note += "" if answer.price is None else f"; {number(answer.price)} an hour"
    note += "" if mixed is None else _mixed(mixed)
    if without:
        note += f"; {percent(without)} of the nodes, at least one, are missing in each run"
    seeds = [run["seed"] for run in of_runs]
    if len(seeds) > 1:
        note += f"; {seeds_text(seeds, varied(of_runs), of_runs[0].get('resample_block_s'))}"
    if left_out:
        note += f"; {left_out:,} jobs that run on no size are left out on each"
    return note + _failures(of_runs)


def _against(found: Found) -> str:
    """Return from which number of nodes the seeds leave the answer open, and sizes that contradict it."""
    search, answer = found.search, found.answer
    if answer is None or answer.size.machines:
        return ""
    note = ""
    if found.open_from is not None:
        note = f"; from {found.open_from:,} to {answer.nodes:,} the seeds leave it open"
    more = [f"{p.nodes:,}" for p in found.in_proportion if p.nodes > answer.nodes and p.verdict == NOT_MET]
    less = [f"{p.nodes:,}" for p in found.in_proportion if p.nodes < (search.fails or 0) and p.holds]
    note += f"; not met on {in_words(more)}, though there are more" if more else ""
    return note + (f"; met on {in_words(less)}, though there are fewer" if less else "")


def limits_of(of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what limits the runs on the answer, a sentence each: the fullest resource, and bottlenecks."""
    used = [run[family_of_summary(run).heads].get("used", {}) for run in of_runs]
    busy = [run.get("utilisation", {}).get("while_arriving") for run in of_runs]
    found = []
    if used and all(used):
        means = {name: sum(own[name] for own in used) / len(used) for name in used[0]}
        fullest = max(means, key=lambda name: means[name])
        rest = [f"{name} {percent(share)}" for name, share in means.items() if name != fullest]
        others = f", {in_words(rest)}" if rest else ""
        found.append(
            f"{fullest} is the fullest resource there: {percent(means[fullest])} of it is held in the mean{others}"
        )
    elif busy and None not in busy:
        found.append(f"nodes are {percent(sum(busy) / len(busy))} busy there while jobs arrive")
    texts = [text for run in of_runs for text in run.get(BOTTLENECKS, ())]
    return found + list(dict.fromkeys(texts))[:2]


def remarks_of(summary: Mapping[str, Any]) -> list[str]:
    """Return what limits the answer of a search, and what jobs wait for there, a sentence each."""
    return [text for key in ("limits", "waits") for text in summary.get(key, ())]


def waits_of(folder: Path, targets: Sequence[Target]) -> dict[str, Any]:
    """Return what the jobs of each target waited for in a run, as sentences and as numbers by group."""
    run = read_result(folder)
    of_group = family_of_summary(run.summary)[Sizing].waits
    groups = {target.job_class: target for target in targets}
    found = {group: known for group in groups if (known := of_group(run, group, with_events_of)) is not None}
    texts = [_waits_text(groups[group], known) for group, known in found.items()]
    return {"waits": texts, "waits_by_reason": {group: known._asdict() for group, known in found.items()}}


def _waits_text(target: Target, waits: Waits) -> str:
    """Return what the jobs of a target waited for, in shares of their delay, as a sentence."""
    delay_s = sum(waits.reasons.values())
    which = target.jobs if waits.jobs == waits.of else f"{target.jobs} ({waits.jobs:,} of {waits.of:,})"
    if not delay_s:
        return f"{which} wait for nothing there"
    shares = [f"{percent(s / delay_s)} for {reason}" for reason, s in waits.reasons.items()]
    part = percent(delay_s / waits.total_s)
    return f"{which} wait for {part} of their completion times there: of that {', '.join(shares)}"


def _mixed(mixed: Mixed) -> str:
    """Return how sure it is that a mix is the cheapest."""
    if mixed.size is None:
        return f"; of {mixed.tried:,} sizes and mixes that were tried none meets it"
    note = (
        f", the least of {mixed.tried:,} sizes and mixes that were tried, not proved to be the least there is"
    )
    if mixed.is_cut:
        note += "; the search ended for its number of mixes, a larger --mix tries more"
    if mixed.own is not None and mixed.own != mixed.size:
        note += f"; in the proportions of the cluster it takes {mixed.own}"
    return note


def _alone(targets: Sequence[Target], of_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the remark that jobs take as long alone, so that more nodes cannot help; empty if that is not so."""
    for target in targets:
        if target.measure.metric or not target.is_on_class:  # not of completion times in a summary
            continue
        groups = [_group(run, target.job_class) for run in of_runs]
        if any(target.holds(target.measure.of(group)) for group in groups):
            continue
        slowdown = max(_SLOWDOWN.of(group) for group in groups)
        if slowdown <= _ALONE:
            alone = f"{target.jobs} take that long alone, too (slowdown {number(slowdown)} at p99)"
            return f"; there {alone}, so that no number of nodes meets {target}"
    return ""


def _group(summary: Mapping[str, Any], job_class: str) -> Mapping[str, Any]:
    family = family_of_summary(summary)
    return family.part_of(summary[family.heads], job_class)


def _failures(of_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return how many times nodes failed, which is a condition of the answer; empty if none did."""
    counts = sorted(run["counters"].get("node_failures", 0) for run in of_runs)
    if not any(counts):  # also without runs
        return ""
    least, most = f"{counts[0]:,}", f"{counts[-1]:,}"
    times = "once" if most == least == "1" else f"{least if least == most else f'{least} to {most}'} times"
    return f"; nodes failed {times} in {'its run' if len(counts) == 1 else 'each run'}"
