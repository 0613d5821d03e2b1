"""What constraints cost, and what Phoenix gains: the experiment of its paper beside the paper's figures.

How to run: `emu sweep examples/phoenix.toml`, then `python -m claims.phoenix runs/sweep-phoenix [more sweeps]` For
debugging: as in examples/phoenix.toml
From each sweep, paired by seed, each of which has a workload of its own: percentiles of short jobs, the rise that
constraints bring, the relative slowdown by kind of constraint, and whether long and unconstrained jobs are harmed.
`--variants WORKLOAD` runs Phoenix with each of its mechanisms off in turn, with other parameters, and on other
constraints and clusters, each beside eagle-c, at one `--load`, with so many `--seeds`.
`--speed WORKLOAD` measures what constraints cost the emulation.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

import emu
from benchmarks import measuring
from benchmarks.measuring import in_turn, show
from emu.results.metrics import confidence_95
from emu.results.text_tables import with_error
from workloads.constraints import set_text
from workloads.generators.constraints import MODELS, expected

SCHEDULERS = ("phoenix", "eagle-c", "hawk-c", "sparrow-c", "yacc-d")
QUANTILES = (50, 90, 99)
WITH, WITHOUT = "phoenix", "none"
# Table II of the paper by the attributes of Emu's nodes; the number of nodes is not an attribute of a node.
PAPER_SLOWDOWN = {
    "isa": 2.03,
    "port": 1.91,
    "cores": 1.90,
    "max_disks": 1.90,
    "kernel": 1.77,
    "platform": 1.77,
    "clock": 1.76,
    "min_disks": 0.91,
}


SOFT = "clock, port"
ALL_SOFT = "cores, max_disks, min_disks, cpus, kernel, clock, port"
OFF = {"reorder": False, "admission": False, "negotiate": False}
# Phoenix's parameters, and what the jobs and the cluster are like where that is not the experiment's.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "phoenix": ({}, {}),
    **{f"{name}=false": ({name: False}, {}) for name in (*OFF, "sticky", "shortest_first")},
    "all three off": (OFF, {}),
    "order=crv": ({"order": "crv"}, {}),
    "crv_threshold=0": ({"crv_threshold": 0}, {}),
    "crv_threshold=1": ({"crv_threshold": 1}, {}),
    "heartbeat_s=1": ({"heartbeat_s": 1}, {}),
    "heartbeat_s=20": ({"heartbeat_s": 20}, {}),
    "candidates=10": ({"candidates": 10}, {}),
    "nothing soft": ({}, {"constraints_soft": None}),
    "all but isa soft": ({}, {"constraints_soft": ALL_SOFT}),
    "the same, crv_threshold=0": ({"crv_threshold": 0}, {"constraints_soft": ALL_SOFT}),
    "price 1.1": ({}, {"constraints_price": 1.1}),
    "price 3": ({}, {"constraints_price": 3.0}),
    "half as many constrained": ({}, {"half": True}),
    "phoenix-shuffled": ({}, {"cluster": "phoenix-shuffled"}),
}


class Jobs(NamedTuple):
    """Of one run, [J] each."""

    jct_s: np.ndarray
    is_short: np.ndarray
    kind: np.ndarray  # of the job's constraint, "" for none


Runs = dict[tuple[float, str, str, int], Jobs]
"""By load, constraints, scheduler and seed."""


def read_sweep(sweep: Path) -> tuple[str, Runs]:
    """The name of a sweep's workload, and its finished runs."""
    runs: Runs = {}
    name = ""
    for row in pq.read_table(sweep / "results.parquet").to_pylist():
        if row["path"] is None:
            continue
        result = emu.read_result(sweep / row["path"])
        name = result.summary["workload"]
        jobs = result.jobs
        runs[row["load"], row["model"], row["scheduler"], row["seed"]] = Jobs(
            jobs["jct_s"].to_numpy(),
            np.asarray(jobs["job_class"]) == "short",
            np.array([kind or "" for kind in jobs["constraint"].to_pylist()]),
        )
    return name, runs


def interval(values: Sequence[float]) -> str:
    """Mean and 95 % confidence interval as text."""
    return with_error(*confidence_95(values))


def quantile(jobs: Jobs, q: int, which: np.ndarray | None = None) -> float:
    """A percentile of the completion times of short jobs, or of those in a mask."""
    return float(np.percentile(jobs.jct_s[jobs.is_short if which is None else which], q))


def ratios(over: list[Jobs], under: list[Jobs], of: Callable[[Jobs], float]) -> str:
    """A figure of runs over that of others, paired by seed."""
    return interval([of(a) / of(b) for a, b in zip(over, under, strict=True)])


def percentiles(runs: Runs, loads: Sequence[float], model: str) -> list[list[str]]:
    """Short jobs by load and scheduler: percentiles, and the scheduler's over Phoenix's."""
    rows = [["load", "scheduler", *(f"p{q}, s" for q in QUANTILES), *(f"p{q} / phoenix" for q in QUANTILES)]]
    for load in loads:
        own = of_seeds(runs, load, model, "phoenix")
        for name in SCHEDULERS:
            found = of_seeds(runs, load, model, name)
            times = [interval([quantile(one, q) for one in found]) for q in QUANTILES]
            gains = [ratios(found, own, lambda one, q=q: quantile(one, q)) for q in QUANTILES]
            rows.append([f"{load:.0%}", name, *times, *gains])
    return rows


def rise(runs: Runs, loads: Sequence[float]) -> list[list[str]]:
    """Percentiles of short jobs with constraints over those of the same jobs without, by load and scheduler."""
    rows = [["load", *SCHEDULERS]]
    for load in loads:
        row = [f"{load:.0%}"]
        for name in SCHEDULERS:
            pair = [of_seeds(runs, load, model, name) for model in (WITH, WITHOUT)]
            row.append(ratios(*pair, lambda one: quantile(one, 99)))
        rows.append(row)
    return rows


def slowdowns(runs: Runs, loads: Sequence[float], name: str) -> list[list[str]]:
    """Relative slowdown by kind: mean completion time of the jobs that have it over that of the same jobs without."""
    rows = [["constraint", "paper", *(f"load {load:.0%}" for load in loads)]]
    kinds = sorted({kind for jobs in runs.values() for kind in np.unique(jobs.kind)} - {""})
    for kind in sorted(kinds, key=lambda k: -PAPER_SLOWDOWN.get(k, 0.0)):
        row = [kind, f"{PAPER_SLOWDOWN[kind]:.2f}" if kind in PAPER_SLOWDOWN else "-"]
        for load in loads:
            pair = zip(*(of_seeds(runs, load, model, name) for model in (WITH, WITHOUT)), strict=True)
            row.append(interval([slowdown(a, b, a.is_short & (a.kind == kind)) for a, b in pair]))
        rows.append(row)
    return rows


def slowdown(with_them: Jobs, without: Jobs, which: np.ndarray) -> float:
    """Mean completion time of some jobs in one run over that in another."""
    return float(with_them.jct_s[which].mean() / without.jct_s[which].mean())


def harm(runs: Runs, loads: Sequence[float]) -> list[list[str]]:
    """What Phoenix does to the jobs that it is not for, over eagle-c."""
    groups: dict[str, Callable[[Jobs], np.ndarray]] = {
        "short, constrained": lambda one: one.is_short & (one.kind != ""),
        "short, unconstrained": lambda one: one.is_short & (one.kind == ""),
        "long": lambda one: ~one.is_short,
    }
    rows = [["load", "jobs", "mean", *(f"p{q}" for q in QUANTILES)]]
    for load in loads:
        pair = [of_seeds(runs, load, WITH, name) for name in ("phoenix", "eagle-c")]
        for name, group in groups.items():
            figures = [ratios(*pair, lambda one, group=group: float(one.jct_s[group(one)].mean()))]
            figures += [
                ratios(*pair, lambda one, q=q, group=group: quantile(one, q, group(one))) for q in QUANTILES
            ]
            rows.append([f"{load:.0%}", name, *figures])
    return rows


def variants(workload: str, load: float, seeds: int) -> list[list[str]]:
    """Short jobs under Phoenix over those under eagle-c, variant by variant, paired by seed."""
    rows = [["variant", "p50", "p90", "p99", "long, p50", "p99 of eagle-c, s"]]
    rows[0] += ["relaxed", "reorders", "admissions"]
    baselines: dict[str, list[emu.Result]] = {}
    for name, (parameters, others) in VARIANTS.items():
        key = repr(others)
        if key not in baselines:
            baselines[key] = run_seeds("eagle-c", workload, load, seeds, {}, others)
        base, own = baselines[key], run_seeds("phoenix", workload, load, seeds, parameters, others)
        cells = [over(own, base, "short", f"p{q}") for q in QUANTILES] + [over(own, base, "long", "p50")]
        cells.append(interval([r.summary["jobs"]["short"]["p99"] for r in base]))
        for counter in ("jobs_relaxed", "reorders", "admissions"):
            cells.append(f"{np.mean([r.counters.get(counter, 0) for r in own]):,.0f}")
        rows.append([name, *cells])
        print("  ".join(rows[-1]), flush=True)
    return rows


def speed(workload: str, load: float, repeats: int) -> list[list[str]]:
    """Engine time a task with constraints over that without, side by side; medians of the repeats."""
    rows = [["scheduler", "without, us a task", "with, us a task", "ratio"]]
    settings = {"cluster": "phoenix", "load": load, "in_process": True, "workload_seed": 0}

    def us_a_task(scheduler: str, model: str) -> float:
        engine = emu.run(scheduler, workload, 15_000, constraints_model=model, **settings).summary["engine"]
        return 1e6 * engine["wall_s"] / engine["tasks"]

    for scheduler in (*SCHEDULERS, "central-c"):
        found = in_turn(repeats, {model: partial(us_a_task, scheduler, model) for model in (WITHOUT, WITH)})
        without, with_them = (float(np.median(times)) for times in found.values())
        rows.append([scheduler, f"{without:.3f}", f"{with_them:.3f}", f"{with_them / without:.2f}"])
    return rows


def over(own: list[emu.Result], base: list[emu.Result], job_class: str, statistic: str) -> str:
    """A figure of summaries over that of others."""
    pair = zip(
        *([r.summary["jobs"][job_class][statistic] for r in runs] for runs in (own, base)), strict=True
    )
    return interval([a / b for a, b in pair])


def run_seeds(
    scheduler: str, workload: str, load: float, seeds: int, parameters: dict[str, Any], others: dict[str, Any]
) -> list[emu.Result]:
    """Runs of the experiment with some things otherwise."""
    settings: dict[str, Any] = {"cluster": "phoenix", "constraints_model": WITH, "constraints_soft": SOFT}
    if others.get("half"):
        model = MODELS[WITH]
        shares = zip(model.items, expected(model, False), strict=True)
        text = ", ".join(f"{set_text(items)}: {50 * share:.4f}%" for items, share in shares)
        settings |= {"constraints_model": text, "constraints_jobs": "short"}
    settings |= {name: value for name, value in others.items() if name != "half"}
    settings = {name: value for name, value in settings.items() if value is not None}
    if workload == "google":
        settings["workload_options"] = {"jobs": 50_000}
    settings |= {"load": load, "parameters": parameters, "in_process": True}
    return [emu.run(scheduler, workload, 15_000, seed=seed, **settings) for seed in range(1, seeds + 1)]


def of_seeds(runs: Runs, load: float, model: str, scheduler: str) -> list[Jobs]:
    """The runs of a scheduler by seed."""
    seeds = sorted({seed for _, _, _, seed in runs})
    return [runs[load, model, scheduler, seed] for seed in seeds]


def main() -> None:
    """Run the benchmark."""
    options = measuring.options(__doc__, "sweeps", sweeps=(), variants=str, speed=str, load=0.85, seeds=5)
    if options.variants:
        head = f"{options.variants} at a load of {options.load:.0%}: short jobs, phoenix over eagle-c"
        show(head, variants(options.variants, options.load, options.seeds))
    if options.speed:
        show(f"{options.speed}: engine time", speed(options.speed, options.load, options.seeds))
    for sweep in map(Path, options.sweeps):
        name, runs = read_sweep(sweep)
        loads = sorted({load for load, *_ in runs})
        paired = {model for _, model, *_ in runs} == {WITH, WITHOUT}
        show(f"{name}: short jobs, with constraints", percentiles(runs, loads, WITH))
        if paired:
            show(f"{name}: short jobs, without constraints", percentiles(runs, loads, WITHOUT))
            show(f"{name}: p99 of short jobs with constraints over without", rise(runs, loads))
            show(
                f"{name}: relative slowdown by kind of constraint, eagle-c", slowdowns(runs, loads, "eagle-c")
            )
        show(f"{name}: phoenix over eagle-c", harm(runs, loads))


if __name__ == "__main__":
    main()
