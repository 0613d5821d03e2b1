"""Groups of jobs that targets of `emu size` may be on: a class, a priority, or a tenant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from emu.columns import equals_text
from emu.results.metrics import BoolArray, after_warmup
from emu.sweeps.targets import OF_PRIORITY, OF_TENANT
from workloads.arrow import coded_labels, column
from workloads.errors import InputError
from workloads.hints import did_you_mean, in_words
from workloads.requests import priorities

if TYPE_CHECKING:
    from emu.configuration.plan import Plan
    from emu.sweeps.targets import Target

_SHOWN = 12


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
