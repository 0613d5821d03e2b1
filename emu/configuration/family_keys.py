"""The family of a run, and the keys that it has.

A run has schedulers of one family, such as those that place jobs on nodes, or those that schedule coflows over ports,
or of another one that it can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emu.configuration.keys import BY_NAME, SHARED
from emu.families.family import Family
from emu.families.registry import families, find_family, keys_of

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from emu.configuration.config import Config

_SHARED = frozenset(key.name for key in SHARED)


def family_of(config: Config, schedulers: Sequence[Scheduler]) -> Family:
    """Return the family of a run, which can run all of its schedulers; raise `InputError` if there is none.

    A family may run schedulers of another one, as that of DAG jobs runs those of jobs: with its own, or where a key is
    given that only it has (`Family.also_runs`, `Family.asked_by`).
    """
    first, given = schedulers[0], {scheduler.family for scheduler in schedulers}
    for family in families():
        others = given - {family.name}
        asked = family.name in given or any(name in config.places for name in family.asked_by)
        if others and asked and others <= {*family.also_runs}:
            return family
    for other in schedulers:
        if other.family != first.family:
            raise config.error(
                "scheduler",
                f"{first.name} is for {first.family} and {other.name} for {other.family}; "
                "a run has schedulers of one family",
            )
    return find_family(first.family)


def key_for_all(schedulers: Sequence[Scheduler]) -> str | None:
    """Return the key that must be given for each of schedulers of several families to be run by one of them, if any."""
    given = {scheduler.family for scheduler in schedulers}
    able = (one for one in families() if one.name in given and given - {one.name} <= {*one.also_runs})
    return next((one.asked_by[0] for one in able if len(given) > 1), None)


def for_family(config: Config, family: Family, scheduler: str) -> Config:
    """Return the configuration with the defaults of a family; refuse values of keys that the family lacks."""
    values = dict(config.values)
    for name, key in BY_NAME.items():
        given = name in config.places
        if given and not has_key(family, name) and config[name] != key.default:
            raise config.error(name, f"not for {scheduler}: {_why_lacking(family, name, scheduler)}")
        if not given and name in family.defaults:
            values[name] = family.defaults[name]
    return replace(config, values=values)


def has_key(family: Family, name: str) -> bool:
    """Return whether a family has a key."""
    return name in _SHARED or any(key.name == name for key in keys_of(family.name))


def own_keys(values: dict[str, Any], family: Family) -> dict[str, Any]:
    """Return the values of the keys that a family has."""
    return {name: value for name, value in values.items() if has_key(family, name)}


def _why_lacking(family: Family, name: str, scheduler: str) -> str:
    """Return why a family lacks a key."""
    table = name.partition(".")[0]
    if (why := family.without.get(name) or family.without.get(table)) is not None:
        return why
    for_which = " and ".join(other.name for other in families() if has_key(other, name))
    return f"it is for {for_which}, and {scheduler} schedules {family.name}"
