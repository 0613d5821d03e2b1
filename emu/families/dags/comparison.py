"""Several schedulers over the same DAG jobs: completion times, factors of improvement, efficiency and fairness.

The factor of improvement of the first scheduler over another is the other's completion time over its own: above 1 the
first one is better (Grandl et al., OSDI 2016, equation 1). ``average`` is that of the means, percentiles are of the
factors job by job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from emu.columns import numbers
from emu.families.jobs.comparison import GROUPS as OF_JOBS
from emu.families.jobs.comparison import compare_class
from emu.families.jobs.metrics import in_group
from emu.results.comparison_row import NOTHING, Pair, Row
from emu.results.metrics import Float64Array, after_warmup, confidence_95, ratios
from emu.results.paired_comparison import factors_of
from emu.results.result import Result, Runs

GROUPS = ("all", *(group for group in OF_JOBS if group != "all"))
PERCENTILES = (50, 75, 95)


@dataclass(frozen=True)
class EfficiencyRow:
    """Efficiency and fairness of one scheduler.

    Attributes
    ----------
    scheduler : str
    makespan_s, over_bound : Pair
        And the makespan over what no scheduler is below.
    makespan_times : Pair
        Over that of the first scheduler, seed by seed.
    used : Pair
        Of the resource of which it is most.
    fairness : dict of str to Pair
        Mean, min and max of Jain's index over windows.
    fairness_running : Pair
        The mean of that of jobs that run a task.
    leftover : Pair
        Share of the tasks that were launched above the share of their job.
    """

    scheduler: str
    makespan_s: Pair
    makespan_times: Pair
    over_bound: Pair
    used: Pair
    fairness: dict[str, Pair]
    fairness_running: Pair
    leftover: Pair


def compare_dags(results: Runs, warmup_s: float) -> list[Row]:
    """Return a row for each scheduler and group of jobs: all first, and classes where there are two."""
    rows = [row for group in GROUPS for row in compare_class(results, group, warmup_s)]
    if not any(row.group == "long" for row in rows):
        rows = [row for row in rows if row.group != "short"]  # which are all
    of = {g: partial(improvement_factors, group=g, warmup_s=warmup_s) for g in GROUPS}
    return [replace(row, speedup=factors_of(results, row, PERCENTILES, of[row.group])) for row in rows]


def improvement_factors(first: Result, other: Result, group: str, warmup_s: float) -> Float64Array:
    """Return completion times of the jobs of a group under another scheduler over those under the first."""
    one_s, other_s = numbers(first.jobs, "jct_s"), numbers(other.jobs, "jct_s")
    counts = after_warmup(numbers(first.jobs, "submit_s"), warmup_s) & in_group(first.jobs, group)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor: Float64Array = other_s / one_s
    return factor[counts & np.isfinite(factor) & (one_s > 0)]


def compare_efficiency(results: Runs) -> list[EfficiencyRow]:
    """Return efficiency and fairness of each scheduler."""
    first = next(iter(results.values()))
    rows = []
    for name, runs in results.items():
        dags = [run.summary["dags"] for run in runs]
        spans = [run.summary["jobs"].get("makespan_s", np.nan) for run in runs]
        base = [run.summary["jobs"].get("makespan_s", np.nan) for run in first]
        jain = {s: [d.get("fairness", {}).get(s, np.nan) for d in dags] for s in ("mean", "min", "max")}
        rows.append(
            EfficiencyRow(
                scheduler=name,
                makespan_s=confidence_95(spans),
                makespan_times=NOTHING if runs is first else ratios(base, spans),
                over_bound=ratios([d["bound_s"] for d in dags], spans),
                used=confidence_95([max(d["used"].values()) for d in dags]),
                fairness={s: confidence_95(own) for s, own in jain.items()},
                fairness_running=confidence_95(
                    [d.get("fairness_running", {}).get("mean", np.nan) for d in dags]
                ),
                leftover=confidence_95([d.get("leftover_share", np.nan) for d in dags]),
            )
        )
    return rows


def slowed_down(factors: Float64Array) -> tuple[float, float, float]:
    """Return the share of the jobs that take longer under the first, that of those by more than 1.25, and the worst.

    A factor of 0.8 is a job that takes 1.25 times as long, as in Grandl et al., section 5.2.2.
    """
    if not factors.size:
        return np.nan, np.nan, np.nan
    return float((factors < 1).mean()), float((factors < 0.8).mean()), float(factors.min())
