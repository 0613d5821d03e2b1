"""Divisions of jobs, by priority and tenant: groups of which runs state figures, and that targets may be on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from emu.columns import equals_text
from emu.results.measures import Measure
from emu.results.metrics import BoolArray, after_warmup
from emu.sweeps.targets import OF_PRIORITY, OF_TENANT
from workloads.arrow import coded_labels, column
from workloads.errors import InputError
from workloads.hints import did_you_mean, in_words
from workloads.requests import priorities

if TYPE_CHECKING:
    from emu.configuration.plan import Plan
    from emu.sweeps.targets import Target

MOST_GROUPS = 12
"""A division has at most so many groups; of tenants, and one of all others."""
NO_TENANT = "(none)"
OTHER_TENANTS = "(others)"
_SHOWN = 12
"""Priorities that an error lists."""
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


def check_targets(plan: Plan, targets: Sequence[Target]) -> None:
    """Refuse a target of `emu size` on a group of which the workload has no jobs after the warm-up."""
    jobs, cutoff_s = plan.workload.jobs, plan.own["short_cutoff_s"]
    counted = after_warmup(column(jobs, "submit_s"), plan.config["warmup"])
    is_long = column(jobs, "mean_task_s")[counted] > cutoff_s
    there = {"all": True, "long": bool(np.any(is_long)), "short": not bool(np.all(is_long))}
    for target in targets:
        group = target.job_class
        if group in there:
            hint = "" if math.isfinite(cutoff_s) else "; --short-cutoff sets the limit of short jobs"
            is_there, what = there[group], f"no {group} jobs"
        else:
            is_there = bool(jobs_of(jobs, group)[counted].any())
            what, hint = _lacking(jobs, group, counted)
        if not is_there:
            raise InputError(f"--target: {target}: {plan.workload.name} has {what}{hint}")


def jobs_of(jobs: pa.Table, group: str) -> BoolArray:
    """Return which jobs of a table are of a priority, as ``priority:9``, or a tenant; without a priority it is 0."""
    kind, _, name = group.partition(":")
    if f"{kind}:" == OF_TENANT:
        return equals_text(jobs, "tenant", name)
    return np.equal(priorities(jobs), int(name))


def _lacking(jobs: pa.Table, group: str, counted: BoolArray) -> tuple[str, str]:
    """Return which jobs a workload lacks, and what it has instead."""
    name = group.partition(":")[2]
    if group.startswith(OF_PRIORITY):
        values = np.unique(priorities(jobs)[counted]).tolist()
        shown = [f"{value}" for value in values[:_SHOWN]] + ["…"] * (len(values) > _SHOWN)
        return f"no jobs of priority {name}", f"; there are {in_words(shown)}"
    texts, codes = coded_labels(jobs["tenant"])
    known = [texts[code] for code in np.unique(codes[counted & (codes >= 0)]).tolist()]
    return f"no jobs of tenant {name!r}", did_you_mean(name, known) if known else "; it names no tenants"
