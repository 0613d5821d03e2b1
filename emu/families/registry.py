"""The list of families, one line each; another package registers its own in the entry-point group `emu.families`.

A line names the package of a family. `KEYS` of its module `keys` and `FAMILY` of its module `family` are imported
when each is asked for (`emu.families.family` says why).
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from workloads.errors import InputError
from workloads.hints import did_you_mean

if TYPE_CHECKING:
    from emu.configuration.key import Key
    from emu.families.family import Family

ENTRY_POINTS = "emu.families"
FAMILIES = {"jobs": "emu.families.jobs", "coflows": "emu.families.coflows", "dags": "emu.families.dags"}


@cache
def find_family(name: str) -> Family:
    """Return the family of a name.

    Raises
    ------
    InputError
        There is no family of this name; the message gives the nearest one.
    """
    found: Family = importlib.import_module(f"{_package_of(name)}.family").FAMILY
    return found


@cache
def keys_of(name: str) -> tuple[Key, ...]:
    """Return the keys that a family has and not all families have; two families may have the same key.

    Raises
    ------
    InputError
        There is no family of this name; the message gives the nearest one.
    """
    found: tuple[Key, ...] = importlib.import_module(f"{_package_of(name)}.keys").KEYS
    return found


def family_names() -> tuple[str, ...]:
    """Return the names of all families, the built-in ones first."""
    return tuple(_packages())


def families() -> tuple[Family, ...]:
    """Return all families, the built-in ones first."""
    return tuple(map(find_family, family_names()))


def family_of_workload(given: Any) -> tuple[Family, Any] | None:
    """Return the family that takes a workload, and the workload as that family runs it; None if no family does."""
    for family in families():
        if (workload := family.take(given)) is not None:
            return family, workload
    return None


def family_of_summary(summary: Mapping[str, Any]) -> Family:
    """Return the family of the runs that a summary describes."""
    found = [family for family in families() if family.name in summary]
    return next((family for family in found if family.heads != family.name), found[0])


def _package_of(name: str) -> str:
    package = _packages().get(name)
    if package is None:
        raise InputError(f"no family {name!r}{did_you_mean(name, _packages())}")
    return package


@cache
def _packages() -> dict[str, str]:
    """Return the name of each family, and its package."""
    found = {entry.name: entry.value for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    return {**FAMILIES, **{name: package for name, package in found.items() if name not in FAMILIES}}
