"""The list of families, one line each; another package registers its own in the entry-point group `emu.families`."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from functools import cache
from typing import Any

from emu.families.family import Family
from workloads.errors import InputError
from workloads.hints import did_you_mean

ENTRY_POINTS = "emu.families"
FAMILIES = {
    "jobs": "emu.families.jobs.family:JOBS",
    "coflows": "emu.families.coflows.family:COFLOWS",
}


@cache
def find_family(name: str) -> Family:
    """Return the family of a name.

    Raises
    ------
    InputError
        There is none; the message gives the nearest name.
    """
    place = _places().get(name)
    if place is None:
        raise InputError(f"no family {name!r}{did_you_mean(name, _places())}")
    module, _, attribute = place.partition(":")
    found: Family = getattr(importlib.import_module(module), attribute)
    return found


def families() -> tuple[Family, ...]:
    """Return all families, the built-in ones first."""
    return tuple(map(find_family, _places()))


def family_of_workload(given: Any) -> tuple[Family, Any] | None:
    """Return the family of a workload that was read or given, and the workload as it is run; None if it is none."""
    for family in families():
        if (workload := family.take(given)) is not None:
            return family, workload
    return None


def family_of_summary(summary: Mapping[str, Any]) -> Family:
    """Return the family of the run, or runs, that a summary is of."""
    return next(family for family in families() if family.name in summary)


@cache
def _places() -> dict[str, str]:
    """Return the name of each family, and where it is."""
    found = {entry.name: entry.value for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    return {**FAMILIES, **{name: place for name, place in found.items() if name not in FAMILIES}}
