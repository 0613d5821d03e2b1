"""Sentences about what would change the answer of a page: the causes of delay, and what addresses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.causes import Remedy
from actors.schedulers.registry import built_in_schedulers
from emu.configuration.config import flatten
from emu.configuration.keys import BY_NAME
from emu.explaining.causes import Causes, Means
from emu.explaining.explained_run import parameters_of, scheduler_of
from emu.families.family import Family
from emu.report.answer import group_title
from emu.report.causes_sections import TimeByCause
from emu.results.result import Result, Runs
from emu.results.run_groups import base_value, value_text
from emu.results.text_tables import number, percent
from workloads.hints import in_words

MOST_SCHEDULERS = 4
"""Schedulers whose delay a sentence has; the table has all."""
MOST_CAUSES = 2
MOST_USERS = 3
"""Schedulers named that use what none of the compared ones does."""
LEAST_DELAY = 0.01
"""Share of the mean completion time below which a delay is not worth a sentence."""
NOT_RECORDED = (
    "What that wait is due to, and what would change it, is not recorded: with --set output.events=all{parts} "
    "this page states it."
)


def changes_of(results: Runs, found: TimeByCause, family: Family) -> list[str]:
    """Return for each group of jobs, or coflows, the causes of its delay, and what addresses them.

    Without events, the share of the time that is a wait for the first task, or flow, if it is known.
    """
    if not found:
        waits = [words for group in _shown(family, results) if (words := _waits_of(results, group, family))]
        parts = " --set output.tasks=true" if family[Causes].needs_all else ""
        return [*waits, NOT_RECORDED.format(parts=parts)] if waits else []
    groups = [g for g in ("short", "long") if g in found] or list(found)
    return [text for group in groups for text in _of_group(results, group, found[group], family)]


def _shown(family: Family, results: Runs) -> list[str]:
    summary = next(iter(results.values()))[0].summary
    figures = summary[family.heads]
    shown = [
        g for g in family.shown_groups([figures]) if " " not in g and family.part_of(figures, g).get("count")
    ]
    return [g for g in shown if g in ("short", "long")] or shown[:1]


def _waits_of(results: Runs, group: str, family: Family) -> str:
    """Return the share of the mean completion time that is the wait for the first part."""
    shares = []
    for name, runs in list(results.items())[:MOST_SCHEDULERS]:
        part = family.part_of(runs[0].summary[family.heads], group)
        mean, wait = part.get("mean"), part.get("wait", {}).get("mean")
        if mean and wait is not None and wait >= LEAST_DELAY * mean:
            shares.append(f"{percent(wait / mean)} of it under {name} ({number(wait)} of {number(mean)} s)")
    if not shares:
        return ""
    seed = " (first seed)" if any(len(runs) > 1 for runs in results.values()) else ""
    first = f"the wait until the first of a {family.one}'s {family.part} starts"
    return f"{group_title(group, family)}, mean completion time{seed}: {first} is {', '.join(shares)}."


def _of_group(
    results: Runs, group: str, means: Sequence[tuple[str, int, Means]], family: Family
) -> list[str]:
    shares: list[str] = []
    largest: dict[str, None] = {}
    for name, _, causes in means:
        delays = list(causes)[1:]
        total, delay = sum(causes.values()), sum(causes[cause] for cause in delays)
        if total <= 0 or delay < LEAST_DELAY * total:
            continue
        most = max(delays, key=lambda cause: causes[cause])
        largest[most] = None
        shares.append(
            f"{percent(delay / total)} under {name} ({percent(causes[most] / delay)} of that {most})"
        )
    if not shares:
        return []
    seed = " (first seed)" if any(len(runs) > 1 for runs in results.values()) else ""
    what = f"{group_title(group, family)}: of the mean completion time{seed} delay is"
    text = f"{what} {', '.join(shares[:MOST_SCHEDULERS])}."
    return [
        text,
        *(_change(results, cause, means, group, family) for cause in list(largest)[:MOST_CAUSES]),
    ]


def _change(
    results: Runs, cause: str, means: Sequence[tuple[str, int, Means]], group: str, family: Family
) -> str:
    """Return what addresses a cause, and under which schedulers the cause takes least and most."""
    remedies = _remedies(results, family, cause, group)
    named = [_remedy(name, remedy, results, family) for name, remedy in remedies]
    delay = (
        f"Delay {cause}" if cause.startswith(("behind ", "for ")) else f"{cause[0].upper()}{cause[1:]} delay"
    )
    text = f"{delay} is addressed by {'; '.join(named)}." if named else ""
    of_cause = {name: causes[cause] for name, _, causes in means}
    least, most = (pick(of_cause, key=lambda name: of_cause[name]) for pick in (min, max))
    if of_cause[least] < of_cause[most]:
        seconds = (
            f"{number(of_cause[least])} s in the mean, and most under {most}, {number(of_cause[most])} s"
        )
        text += f" Of these runs it is least under {least}, {seconds}."
    return text.strip()


def _remedies(results: Runs, family: Family, cause: str, group: str) -> list[tuple[str, Remedy]]:
    figures = [own[0].summary[family.heads] for own in results.values()]
    return [
        (name, remedy)
        for name, found in _known_remedies(results, family).items()
        for remedy in found
        if remedy.cause == cause
        and remedy.group in ("", group)
        and (not remedy.needs or any(remedy.needs in of_run for of_run in figures))
    ]


def _known_remedies(results: Runs, family: Family) -> dict[str, Sequence[Remedy]]:
    """Return what addresses causes of delay: parameters of all schedulers of the family, then keys."""
    compared = [scheduler for own in results.values() if (scheduler := scheduler_of(own[0])) is not None]
    parameters = [
        parameter
        for scheduler in (*built_in_schedulers(family.name), *compared)
        for parameter in scheduler.parameters
    ]
    return {p.name: p.addresses for p in parameters if p.addresses} | dict(family[Causes].remedies)


def _remedy(remedied_by: str, remedy: Remedy, results: Runs, family: Family) -> str:
    """Return what addresses a cause, and which of the compared schedulers use it, with which value."""
    runs = {name: own[0] for name, own in results.items()}
    values = {name: _value(run, remedied_by) for name, run in runs.items()}
    having = {name: value for name, value in values.items() if value is not None}
    without = [name for name in runs if name not in having]
    if not having:
        where = f"not used by {in_words(without)}{_users(remedied_by, family)}"
    elif not without and len({*having.values()}) == 1:
        where = f"here {next(iter(having.values()))}"
    else:
        where = ", ".join(f"{name} {value}" for name, value in having.items())
        where += f"; not used by {in_words(without)}" if without else ""
    return f"{remedied_by} ({where}): {remedy.does}"


def _users(name: str, family: Family) -> str:
    """Return which schedulers use a key or a parameter that none of the compared ones does, as a clause."""
    users = [
        scheduler.name
        for scheduler in built_in_schedulers(family.name)
        if any(p.name == name for p in scheduler.parameters)
        or (name in BY_NAME and scheduler.why_ignored(name) is None)
    ]
    shown = users[:MOST_USERS] + ["others"] * (len(users) > MOST_USERS)
    return f"; {in_words(shown)} {'uses' if len(shown) == 1 else 'use'} it" if shown else ""


def _value(run: Result, name: str) -> Any:
    """Return the value of a key or a parameter in a run; None where its scheduler does not use it."""
    config = run.manifest.get("config", {})
    if name not in BY_NAME:
        parameters = parameters_of(run)
        return None if name not in parameters else value_text(name, parameters[name])
    scheduler = scheduler_of(run)
    if scheduler is not None and scheduler.why_ignored(name) is not None:
        return None
    value = dict(flatten(config)).get(name)
    return "none" if value is None else value_text(name, base_value(name, value))
