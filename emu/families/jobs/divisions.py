"""Divisions of jobs, by priority and by tenant, into the groups of which runs state figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from emu.results.measures import Measure
from emu.results.metrics import BoolArray
from workloads.arrow import coded_labels, column
from workloads.requests import priorities

MOST_GROUPS = 12
"""A division has at most so many groups; of tenants, and one of all others."""
NO_TENANT = "(none)"
OTHER_TENANTS = "(others)"
SHARE = Measure("", "dominant_share")
"""The share of the cluster that a tenant's tasks held: of the resource of which they held most, or of slots."""


class Division(NamedTuple):
    """A way to divide the jobs of a run into groups.

    Attributes
    ----------
    word : str
        By what: groups are called by it and their own name, as in ``priority 9``.
    masks : (jobs table) -> dict of str to BoolArray
        Which jobs are in each group, in order; empty where there is nothing to divide by.
    note : str
        What a table of groups says of them.
    order : str
        In which order groups are.
    columns : dict of str to Measure
        Further columns of a table of queueing delays.
    further : str
        What these are, for the table's caption.
    """

    word: str
    masks: Callable[[pa.Table], dict[str, BoolArray]]
    note: str
    order: str
    columns: Mapping[str, Measure]
    further: str

    @property
    def key(self) -> str:
        """The name of its part of a summary."""
        return f"by_{self.word}"

    def groups(self, figures: Mapping[str, Any]) -> list[str]:
        """Return the names of the groups that the ``jobs`` part of a summary describes."""
        return [f"{self.word} {name}" for name in figures.get(self.key, {})]


def priority_bands(jobs: pa.Table) -> dict[str, BoolArray]:
    """Return which jobs have each priority, the largest first; empty where the workload states none.

    A job that states none has 0. Of more than `MOST_GROUPS` priorities neighbours are one band, ``3 to 7``, so that
    bands have about as many jobs each.
    """
    if "priority" not in jobs.column_names:
        return {}
    priority = priorities(jobs)
    values, place, count = np.unique(priority, return_inverse=True, return_counts=True)
    band = np.arange(values.size)
    if values.size > MOST_GROUPS:
        band = ((np.cumsum(count) - count / 2) / priority.size * MOST_GROUPS).astype(np.int64)
    found = {}
    for one in np.unique(band)[::-1].tolist():
        own = values[band == one]
        name = str(own[0]) if own.size == 1 else f"{own[0]} to {own[-1]}"
        found[name] = band[place] == one
    return found


def tenant_groups(jobs: pa.Table) -> dict[str, BoolArray]:
    """Return which jobs each tenant has, the tenant with the most work first; empty where there are not two.

    Work is in seconds of tasks. Jobs without tenant are a group, ``(none)``; beyond `MOST_GROUPS` tenants the others
    are one, ``(others)``.
    """
    if "tenant" not in jobs.column_names:
        return {}
    tenants, code = coded_labels(jobs["tenant"])
    if not tenants:
        return {}
    code = np.where(code < 0, len(tenants), code)
    names = [*tenants, _unlike(NO_TENANT, tenants)]
    work_s = np.bincount(code, column(jobs, "num_tasks") * column(jobs, "mean_task_s"), len(names))
    there = np.flatnonzero(np.bincount(code, minlength=len(names)))
    if there.size < 2:
        return {}
    order = there[np.argsort(-work_s[there], kind="stable")]
    found = {names[tenant]: code == tenant for tenant in order[:MOST_GROUPS].tolist()}
    if order.size > MOST_GROUPS:
        found[_unlike(OTHER_TENANTS, tenants)] = np.isin(code, order[MOST_GROUPS:])
    return found


def _unlike(name: str, taken: list[str]) -> str:
    """Return a name that is none of those that are taken."""
    while name in taken:
        name = f"({name})"
    return name


BY_PRIORITY = Division(
    "priority",
    priority_bands,
    "The larger priority goes first. A job that states none has 0.",
    "the largest goes first",
    {"mean jct": Measure("", "mean")},
    "mean completion time",
)
BY_TENANT = Division(
    "tenant",
    tenant_groups,
    "The tenant with the most work is first. The share is of the resource of which the tenant's tasks held most, or of "
    "slots, in the mean from the first arrival to the last completion.",
    "that with the most work first",
    {"mean jct": Measure("", "mean"), "mean slowdown": Measure("slowdown", "mean"), "share held": SHARE},
    "mean completion time, mean slowdown and the mean share of the cluster that it held",
)
DIVISIONS = (BY_PRIORITY, BY_TENANT)


def division_of(group: str) -> tuple[Division | None, str]:
    """Return by what a group such as ``priority 9`` is divided, and its name there; None of other groups."""
    word, _, name = group.partition(" ")
    return next((division for division in DIVISIONS if division.word == word), None), name
