"""What tables and pages say of runs of DAG jobs: groups, facts, factors of improvement, efficiency and fairness.

The factor of improvement of the first scheduler over another is the other's completion time over its own, above 1 where
the first is better (Grandl et al., OSDI 2016, equation 1): of means (``average``), and percentiles job by job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from emu.families.jobs import tables as of_jobs
from emu.families.jobs.tables import division_tables
from emu.results.comparison_tables import FactTable, Given, waits_table
from emu.results.measures import PAGE, Fact, Row
from emu.results.metrics import Float64Array, ratios
from emu.results.paired_comparison import Factors, single_factors
from emu.results.result import Runs
from emu.results.text_tables import TIMES, Table, number, percent, ratio
from workloads.units import format_duration, format_quantity

GROUPS = ("all", *(group for group in of_jobs.GROUPS if group != "all"))
FACTORS = Factors("factors of improvement", {"average": "average", "p50": "P50", "p75": "P75", "p95": "P95"})


def _of_network(dags: Mapping[str, Any], text: str, key: str = "moved_bytes") -> str:
    """Return a text with values of the ``dags`` part of a summary; nothing where a key of the network is absent."""
    if key not in dags:
        return ""
    moved, local = dags["moved_bytes"], dags["local_bytes"]
    shown = {name: format_quantity(dags[f"{name}_bytes"], "B") for name in ("moved", "local")}
    share = percent(local / max(moved + local, 1.0))
    return text.format(**{**dags, **shown}, share=share, cct=number(dags.get("mean_cct_s")))


def _busy(coordinator: Mapping[str, Any]) -> str:
    """Return how busy the coordinator of a network was; nothing where messages cost it nothing."""
    if "utilisation" not in coordinator:
        return ""
    mean, longest = (format_duration(coordinator[f"wait_{s}_s"]) for s in ("mean", "max"))
    busy = percent(coordinator["utilisation"])
    return f"busy {busy}, messages waited {mean} for it in the mean, at most {longest}"


def _missed(coordinator: Mapping[str, Any]) -> str:
    return percent(coordinator["missed"]) if {"missed", "utilisation"} <= coordinator.keys() else ""


FACTS = (
    Fact("stages", "dags.stages", ",.0f", PAGE),
    Fact("lower bound of the makespan", "dags.bound_s", lambda bound_s: f"{number(bound_s)} s"),
    Fact("held", "dags.used", lambda used: ", ".join(f"{name} {percent(v)}" for name, v in used.items())),
    Fact("Jain index over windows", "dags.fairness.mean", ".3f"),
    Fact("network", "dags", lambda dags: _of_network(dags, "moved {moved} in {flows:,} flows")),
    Fact(
        "coflows", "dags", lambda dags: _of_network(dags, "{coflows:,}, {cct} s each in the mean", "coflows")
    ),
    Fact("local input", "dags", lambda dags: _of_network(dags, "{local}, {share}")),
    Fact("mean time to fetch input", "dags.mean_fetch_s", lambda fetch_s: f"{number(fetch_s)} s"),
    Fact("leftover tasks", "dags.leftover_share", "share"),
    Fact("coordinator", "coordinator", _busy),
    Fact("intervals missed", "coordinator", _missed),
)


def _over_bound(summary: Mapping[str, Any]) -> float | None:
    bound_s, makespan_s = summary["dags"]["bound_s"], summary["jobs"].get("makespan_s")
    return None if makespan_s is None or bound_s <= 0 else makespan_s / bound_s


def efficiency(results: Runs) -> FactTable:
    """Return the table of efficiency and fairness.

    ``×`` is the makespan over that of the first scheduler, seed by seed; ``over bound`` over what no scheduler is
    below; ``held`` is of the resource of which it is most; ``Jain mean`` to ``up to share`` are of windows.
    """
    first, *others = results
    spans = {n: [r.summary["jobs"].get("makespan_s", np.nan) for r in runs] for n, runs in results.items()}
    against = {name: ratios(spans[first], spans[name]) for name in others}
    return FactTable(
        "Efficiency and fairness",
        "efficiency and fairness: makespan, also over the lower bound of any scheduler; share of the capacity of the "
        "most used resource that tasks held; Jain's index over windows, of the jobs that are there, of those that run "
        "tasks, and of what jobs held up to their fair share; tasks launched above their job's share",
        (
            Fact("makespan (s)", "jobs.makespan_s", "5 digits"),
            *([Given(TIMES, against)] if others else []),
            Fact("over bound", _over_bound, "ratio"),
            Fact("held", lambda summary: max(summary["dags"]["used"].values()), "share"),
            Fact("Jain mean", "dags.fairness.mean", "3 digits"),
            Fact("min", "dags.fairness.min", "3 digits"),
            Fact("max", "dags.fairness.max", "3 digits"),
            Fact("of running", "dags.fairness_running.mean", "3 digits"),
            Fact("up to share", "dags.fairness_up_to_share.mean", "3 digits"),
            Fact("leftover tasks", "dags.leftover_share", "share"),
        ),
    )


def further_tables(results: Runs, rows: Sequence[Row], warmup_s: float) -> Iterator[Table]:
    """Yield the tables of a comparison of DAG jobs besides those of completion times."""
    yield from efficiency(results).tables(results)
    yield from division_tables(results)
    if len(results) > 1:
        yield _slower_table(results, warmup_s)
    yield from waits_table(rows, "Wait and slowdown")


def _slower_table(results: Runs, warmup_s: float) -> Table:
    """Return for each other scheduler the share of the jobs that the first one slows down, and how far."""
    first, *others = results
    rows = []
    for name in others:
        pairs = zip(results[first], results[name], strict=True)
        found = [slowed_down(single_factors(a, b, "all", warmup_s)) for a, b in pairs]
        shares = [sum(one[i] for one in found) / len(found) for i in (0, 1)]
        rows.append([name, *map(percent, shares), ratio(min(one[2] for one in found))])
    caption = f"jobs that take longer under {first} than under another, of all seeds"
    note = "The share of them, and the smallest factor of improvement."
    return Table("Slower jobs", caption, ["than", "slower", "above 1.25 times", "worst factor"], rows, note)


def slowed_down(factors: Float64Array) -> tuple[float, float, float]:
    """Return the shares of jobs that take longer, and above 1.25 times as long, under the first; and the least factor.

    A factor of 0.8 is a job that takes 1.25 times as long, as in Grandl et al., section 5.2.2.
    """
    if not factors.size:
        return np.nan, np.nan, np.nan
    return float((factors < 1).mean()), float((factors < 0.8).mean()), float(factors.min())
