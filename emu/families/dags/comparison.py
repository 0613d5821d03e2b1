"""Several schedulers over the same DAG jobs: completion times, factors of improvement, efficiency and fairness.

The factor of improvement of the first scheduler over another is the other's completion time over its own, above 1 where
the first is better (Grandl et al., OSDI 2016, equation 1): of means (``average``), and percentiles job by job.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from emu.families.jobs.comparison import GROUPS as OF_JOBS
from emu.families.jobs.comparison import classes_of_runs, compare_class, jobs_title
from emu.families.jobs.metrics import CLASSES, in_group
from emu.results.comparison_row import NOTHING, Pair, Row
from emu.results.metrics import Float64Array, after_warmup, confidence_95, ratios
from emu.results.paired_comparison import factors_of
from emu.results.result import Result, Runs
from emu.results.text_tables import TIMES
from workloads.arrow import optional_column

GROUPS = ("all", *(group for group in OF_JOBS if group != "all"))
TITLES = dict.fromkeys(GROUPS, jobs_title)
PERCENTILES = (50, 75, 95)


def compare_dags(results: Runs, warmup_s: float) -> list[Row]:
    """Return a row for each scheduler and group of jobs: all, and classes where there are two."""
    shown = classes_of_runs(results)
    groups = [name for name in GROUPS if name in shown or name not in CLASSES]
    rows = [row for group in groups for row in compare_class(results, group, warmup_s)]
    of = {g: partial(improvement_factors, group=g, warmup_s=warmup_s) for g in GROUPS}
    return [replace(row, speedup=factors_of(results, row, PERCENTILES, of[row.group])) for row in rows]


def improvement_factors(first: Result, other: Result, group: str, warmup_s: float) -> Float64Array:
    """Return completion times of the jobs of a group under another scheduler over those under the first."""
    one_s, other_s = optional_column(first.jobs, "jct_s"), optional_column(other.jobs, "jct_s")
    counts = after_warmup(optional_column(first.jobs, "submit_s"), warmup_s) & in_group(first.jobs, group)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor: Float64Array = other_s / one_s
    return factor[counts & np.isfinite(factor) & (one_s > 0)]


def compare_efficiency(results: Runs) -> dict[str, dict[str, Pair]]:
    """Return the makespan, fairness and use of resources by scheduler, with the names of the table's columns.

    ``×`` is the makespan over that of the first scheduler, seed by seed; ``over bound`` over what no scheduler is
    below; ``held`` is of the resource of which it is most; ``Jain mean`` to ``up to share`` are of windows.
    """
    first = next(iter(results.values()))
    base = [run.summary["jobs"].get("makespan_s", np.nan) for run in first]
    found = {}
    for name, runs in results.items():
        dags = [run.summary["dags"] for run in runs]
        spans = [run.summary["jobs"].get("makespan_s", np.nan) for run in runs]
        jain = {s: [d.get("fairness", {}).get(s, np.nan) for d in dags] for s in ("mean", "min", "max")}
        running, due = (
            [d.get(f"fairness_{of}", {}).get("mean", np.nan) for d in dags]
            for of in ("running", "up_to_share")
        )
        found[name] = {
            "makespan (s)": confidence_95(spans),
            TIMES: NOTHING if runs is first else ratios(base, spans),
            "over bound": ratios([d["bound_s"] for d in dags], spans),
            "held": confidence_95([max(d["used"].values()) for d in dags]),
            "Jain mean": confidence_95(jain["mean"]),
            "min": confidence_95(jain["min"]),
            "max": confidence_95(jain["max"]),
            "of running": confidence_95(running),
            "up to share": confidence_95(due),
            "leftover tasks": confidence_95([d.get("leftover_share", np.nan) for d in dags]),
        }
    return found


def slowed_down(factors: Float64Array) -> tuple[float, float, float]:
    """Return the shares of jobs that take longer, and above 1.25 times as long, under the first; and the least factor.

    A factor of 0.8 is a job that takes 1.25 times as long, as in Grandl et al., section 5.2.2.
    """
    if not factors.size:
        return np.nan, np.nan, np.nan
    return float((factors < 1).mean()), float((factors < 0.8).mean()), float(factors.min())
