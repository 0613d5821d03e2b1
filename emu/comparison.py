"""Several schedulers over the same workload and seeds: percentiles by class, ratios against the first."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emu import run_directory as rd
from emu.by_constraint import compare_kinds, compare_waits, render_kinds, render_waits
from emu.coflow_comparison import CoflowRow, as_record, compare_coflows
from emu.coflow_tables import render_comparison
from emu.columns import numbers
from emu.emulation import execute, keep_workload
from emu.families import OwnWorkload
from emu.keys import COFLOWS
from emu.metrics import (
    SPLIT,
    STATISTICS,
    after_warmup,
    confidence_95,
    in_group,
    part_of,
    ratios,
    share_improved,
    summarise_seeds,
)
from emu.plan import Plan, configure, prepare
from emu.results import Result, read_result
from emu.tables import TIMES, align, number, with_error

GROUPS = ("short", "long", "all", *SPLIT)
"""What is compared: classes, and where jobs have constraints, jobs with and without."""
REPORT = "report.html"
Watch = Callable[[str, int], AbstractContextManager[Any]]
"""Makes, from a label and a number of tasks or flows, the context that yields a `progress` (see `emu.progress`)."""


@dataclass(frozen=True)
class Row:
    """One scheduler and group of a comparison; pairs are a mean over the seeds and its 95 % half-width."""

    scheduler: str
    job_class: str
    count: float
    times: dict[str, tuple[float, float]]
    ratios: dict[str, tuple[float, float]]
    improved: float


@dataclass(eq=False)
class Comparison:
    """Results of several schedulers over the same workload and seeds.

    Attributes
    ----------
    results : dict of str to list of Result
        By scheduler, the first being the baseline; one result a seed, in equal order.
    config, manifest
        Of the whole, as a `Result` has them.
    warmup_s : float
    notes : tuple of str
    path : Path | None
        The directory it was written to.
    """

    results: dict[str, list[Result]]
    config: str
    manifest: dict[str, Any]
    warmup_s: float = 0.0
    notes: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """One summary per scheduler: the run's own, or that of its seeds."""
        return [
            runs[0].summary if len(runs) == 1 else summarise_seeds([r.summary for r in runs])
            for runs in self.runs
        ]

    @property
    def runs(self) -> list[list[Result]]:
        """Results, scheduler by scheduler."""
        return list(self.results.values())

    @property
    def family(self) -> str:
        """``jobs`` or ``coflows``."""
        return self.runs[0][0].family

    def rows(self) -> list[Row] | list[CoflowRow]:
        """Return the comparison as numbers, short jobs first; of coflows, all of them first."""
        if self.family == COFLOWS:
            return compare_coflows(self.results, self.warmup_s)
        return compare_jobs(self.results, self.warmup_s)

    def to_text(self) -> str:
        """Return the comparison as a table."""
        first = self.runs[0][0].summary
        seeds = [r.summary["seed"] for r in self.runs[0]]
        nodes = "ports" if self.family == COFLOWS else "nodes"
        head = f"{first['workload']} on {first['nodes']:,} {nodes}, " + (
            f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}, means ± 95 %"
        )
        if self.family == COFLOWS:
            return render_comparison(self.results, self.warmup_s, head)
        return render_rows(compare_jobs(self.results, self.warmup_s), head) + render_constraints(self.results)

    def to_pandas(self) -> Any:
        """Return one frame row per scheduler and group: count, times in seconds, ratios, share improved."""
        import pandas as pd

        if self.family == COFLOWS:
            return pd.DataFrame(map(as_record, compare_coflows(self.results, self.warmup_s)))
        return pd.DataFrame(
            {"scheduler": r.scheduler, "job_class": r.job_class, "count": r.count}
            | {f"{s}_s": r.times[s][0] for s in STATISTICS}
            | {f"{s}_ratio": r.ratios[s][0] for s in STATISTICS}
            | {"improved": r.improved}
            for r in compare_jobs(self.results, self.warmup_s)
        )


def compare(
    schedulers: Iterable[Any],
    workload: str | Path | OwnWorkload,
    nodes: int | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Comparison:
    """Emulate several schedulers on the same workload, cluster and seeds.

    Parameters
    ----------
    schedulers : iterable
        As `emu.run` takes them; the first is the one the others are compared with.
    parameters : mapping, optional
        ``{"probe_ratio": 3}`` for every scheduler that has it, ``{"eagle": {"slack": 4}}`` for one.
    workload, nodes, config, out, **settings
        As in `emu.run`; ``seeds=5`` runs five seeds each.

    Returns
    -------
    Comparison
    """
    arguments = {
        "scheduler": list(schedulers),
        "workload": workload,
        "nodes": nodes,
        "parameters": parameters,
    }
    plan = prepare(configure({**arguments, **settings}, config))
    if out is None:
        return run_plan(plan)
    with rd.running(claim_together(plan, out)) as folder:
        comparison = run_plan(plan, folder)
        save_comparison(comparison, folder)
    return comparison


def run_plan(
    plan: Plan,
    out: Path | None = None,
    watch: Watch | None = None,
    tell: Callable[[str], None] | None = None,
) -> Comparison:
    """Run every scheduler and seed of a plan; each is written below `out` as soon as it is done.

    What an earlier attempt has finished there is read, and what it has begun goes on.
    """
    results: dict[str, list[Result]] = {s.name: [] for s in plan.schedulers}
    for index, scheduler in enumerate(plan.schedulers):
        for seed in plan.seeds:
            label = scheduler.name if len(plan.seeds) == 1 else f"{scheduler.name} seed {seed}"
            folder = None if out is None else out / run_folder(plan, scheduler.name, seed)
            if folder is not None and rd.is_finished(folder):
                result = read_result(folder)
            else:
                with watch(label, plan.work[0]) if watch else nullcontext() as progress:
                    result = _run_one(plan, index, seed, progress, tell, folder)
            if folder is not None:
                result.tasks = result.flows = (
                    None  # on disk; a comparison has no use for them; they are large
                )
            results[scheduler.name].append(result)
    return Comparison(results, plan.config_toml(), plan.manifest(), plan.config["warmup"], plan.notes)


def _run_one(
    plan: Plan,
    index: int,
    seed: int,
    progress: Any,
    tell: Callable[[str], None] | None,
    folder: Path | None,
) -> Result:
    """Run one scheduler and seed, or go on with it, in its directory if it has one."""
    if folder is None:
        return execute(plan, index, seed, progress, tell)
    if (folder / rd.MANIFEST).exists():
        rd.take_up(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # claimed by a process that was killed while it did
        rd.claim(folder, plan.manifest(index, seed), plan.config_toml(index, seed))
    with rd.running(folder):
        result = execute(plan, index, seed, progress, tell, folder)
        result.write(folder)
    return result


def claim_together(plan: Plan, out: str | Path) -> Path:
    """Claim the directory of all runs of a plan."""
    folder = rd.claim(out, manifest_together(plan), plan.config_toml())
    keep_workload(plan, folder)
    return folder


def manifest_together(plan: Plan) -> dict[str, Any]:
    """Return what the manifest of all runs of a plan says before them."""
    folders = [run_folder(plan, s.name, seed).as_posix() for s in plan.schedulers for seed in plan.seeds]
    return {**plan.manifest(), "runs": folders}


def run_folder(plan: Plan, scheduler: str, seed: int) -> Path:
    """Return where a run of a plan lies in its directory, as Hive partitions."""
    inner = Path(f"seed={seed}")
    return inner if len(plan.schedulers) == 1 else Path(f"scheduler={rd.safe_name(scheduler)}") / inner


def save_comparison(comparison: Comparison, out: Path) -> None:
    """Write what the runs of a claimed directory come to together; the manifest comes last."""
    summaries = comparison.summaries
    many = len(summaries) > 1
    rd.write_json(out / rd.SUMMARY, summaries if many else summaries[0])
    written = [rd.CONFIG, rd.SUMMARY]
    if many:
        from emu.drawing import save_figure
        from emu.plots import group_figures
        from emu.report import render_report, write_report

        for figure in group_figures(comparison.results, comparison.warmup_s):
            written += save_figure(figure.drawn, out / figure.stem)
        write_report(out / REPORT, render_report([r for runs in comparison.runs for r in runs]))
        written.append(REPORT)
    runs = [
        r.path.relative_to(out).as_posix() for runs in comparison.runs for r in runs if r.path is not None
    ]
    manifest = {
        **comparison.manifest,
        "runs": runs,
        "results": {name: rd.sha256_of(out / name) for name in written},
    }
    comparison.manifest = {**manifest, "status": rd.FINISHED}
    rd.write_manifest(out, comparison.manifest)
    comparison.path = out


def compare_jobs(results: Mapping[str, list[Result]], warmup_s: float) -> list[Row]:
    """Return the rows of all `GROUPS` of jobs."""
    return [row for name in GROUPS for row in compare_class(results, name, warmup_s)]


def compare_class(results: Mapping[str, list[Result]], job_class: str, warmup_s: float) -> list[Row]:
    """Return one row per scheduler for the jobs of a class, or another of `GROUPS`; none when it has no jobs."""
    runs = list(results.values())
    figures = {name: [part_of(r.summary["jobs"], job_class) for r in own] for name, own in results.items()}
    if not all(part for parts in figures.values() for part in parts):
        return []
    bases = figures[next(iter(figures))]
    rows = []
    for name, own in results.items():
        parts = figures[name]
        values = {s: [p.get(s, math.nan) for p in parts] for s in STATISTICS}
        base_values = {s: [b.get(s, math.nan) for b in bases] for s in STATISTICS}
        improved = [_improved(a, b, job_class, warmup_s) for a, b in zip(runs[0], own, strict=True)]
        rows.append(
            Row(
                scheduler=name,
                job_class=job_class,
                count=float(np.mean([p["count"] for p in parts])),
                times={s: confidence_95(values[s]) for s in STATISTICS},
                ratios={s: ratios(base_values[s], values[s]) for s in STATISTICS},
                improved=math.nan if own is runs[0] else float(np.mean(improved)),
            )
        )
    return rows


def render_rows(rows: list[Row], head: str) -> str:
    """Return rows of a comparison as a table, class by class."""
    base = f", and {TIMES} that of {rows[0].scheduler}" if len({r.scheduler for r in rows}) > 1 else ""
    lines = [f"{head}: job completion time in seconds{base}"]
    for name in GROUPS:
        own = [row for row in rows if row.job_class == name]
        if not own:
            continue
        table = [["", *(cell for s in STATISTICS for cell in (s, "")), "improved"]]
        for row in own:
            cells = [row.scheduler]
            for s in STATISTICS:
                ratio, half = row.ratios[s]
                first = row is own[0] or not math.isfinite(ratio)
                cells += [
                    with_error(*row.times[s]),
                    "" if first else with_error(ratio, half, f"{ratio:.2f}") + TIMES,
                ]
            table.append([*cells, "" if math.isnan(row.improved) else f"{row.improved:.1%}"])
        lines += ["", f"{name} jobs ({number(own[0].count)})", *(f"  {line}" for line in align(table))]
    return "\n".join(lines) + "\n"


def render_constraints(results: Mapping[str, list[Result]]) -> str:
    """Return the tables of queueing delay and of kinds of constraints; nothing where no job has any."""
    return render_waits(compare_waits(results)) + render_kinds(compare_kinds(results))


def _improved(first: Result, other: Result, job_class: str, warmup_s: float) -> float:
    mask = after_warmup(numbers(first.jobs, "submit_s"), warmup_s) & in_group(first.jobs, job_class)
    return share_improved(numbers(first.jobs, "jct_s"), numbers(other.jobs, "jct_s"), mask)
