"""One emulation: workload + cluster + scheduler + clock + seed → result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from emu.configuration.costs import partitions_of
from emu.configuration.keys import COFLOWS, JOBS
from emu.configuration.loading import AUTO_ROWS
from emu.configuration.plan import KEPT_WORKLOAD, Plan
from emu.directories.manifest import emu_version
from emu.directories.names import CHECKPOINTS
from emu.results.bottlenecks import bottlenecks_of
from emu.results.metrics import describe_jobs, describe_utilisation
from emu.results.result import Result, crv_table, jobs_table, tasks_table, timeline_table
from emu.running.clocks import costs_table, describe_clock, emulate_setting
from emu.terminal import note
from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.outcome import Observe, Outcome

LONG_COMPILE_S = 3.0
Progress = Callable[[int, int, float], None]
"""Is told tasks done, events, and virtual time in seconds."""


def execute(
    plan: Plan,
    index: int,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
    out: Path | None = None,
) -> Result:
    """Emulate one scheduler of a plan of one seed; `tell` is told what takes time, such as compilation.

    Checkpoints are kept in `out`, the run's directory; the run goes on from those that are there already.
    """
    with checkpoints_of(plan, index, out) as checkpoints:
        outcome = emulate_setting(
            plan.setting(index), observe(plan), plan.config, progress, tell, checkpoints
        )
    if tell is not None and outcome.compile_s > LONG_COMPILE_S:
        tell(f"compiling {plan.schedulers[index].name} took {outcome.compile_s:.0f} s")
    for text in notes_of(plan, outcome):
        note(text)
    return result_of(plan, index, outcome)


def notes_of(plan: Plan, outcome: Outcome) -> tuple[str, ...]:
    """Return what the user must be told of a run when it is done."""
    notes = tuple(outcome.live["notes"]) if outcome.live else ()
    if plan.config["timeline.period"] == "auto" or outcome.timeline_step == 1:
        return notes
    step, period_s = outcome.timeline_step, plan.period_s
    rows = outcome.timeline["time_s"].size * step
    return (
        *notes,
        f"timeline.period: {period_s:g} s would be {rows:,} rows; every {step}th is kept, {step * period_s:g} s apart",
    )


@contextmanager
def checkpoints_of(plan: Plan, index: int, out: Path | None) -> Iterator[Checkpoints | None]:
    """Yield the checkpoints of a run: in its directory, or in a temporary one for what may die under Ray."""
    in_process, period_s = plan.config["in_process"], plan.config["checkpoint.period"]
    if plan.config["clock"] == "live" or (in_process and out is None):
        yield None
        return
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.leftovers import temporary
    from actors.hosting.structures import check_snapshots

    with temporary("checkpoints") if out is None else nullcontext(out) as folder:
        yield Checkpoints(
            folder / CHECKPOINTS,
            math.inf if period_s in ("never", 0) else period_s,
            plan.config["checkpoint.keep"],
            {"emu": emu_version(), "configuration": plan.identity(index)},
            note,
            lambda snapshots: check_snapshots(
                plan.setting(index), observe(plan), snapshots, partitions_of(plan.config)
            ),
        )


def keep_workload(plan: Plan, out: Path) -> None:
    """Write a workload that came from neither a name nor a path where ``config.toml`` says it is."""
    if plan.keeps_workload:
        from workloads.catalogue import save_workload

        save_workload(plan.kept_workload, out / KEPT_WORKLOAD, overwrite=True)


def observe(plan: Plan) -> Observe:
    """Return what a plan wants recorded."""
    from actors.hosting.outcome import MOST_ROWS, Observe

    # Decision latency of jobs is read off the tasks.
    measured = plan.config["clock"] == "live" or plan.config["cost.model"] != "none"
    tasks = plan.config["output.tasks"] or (measured and plan.family == JOBS)
    given = plan.config["timeline.period"] != "auto"
    return Observe(plan.period_s, MOST_ROWS if given else AUTO_ROWS, tasks)


def result_of(plan: Plan, index: int, outcome: Outcome) -> Result:
    """Return the outcome of a run of a plan as tables and a summary."""
    describe = _coflow_result if isinstance(plan.workload, CoflowWorkload) else _job_result
    tables, figures = describe(plan, outcome)
    block_s = plan.config["resample.block"]
    summary = {
        "scheduler": plan.schedulers[index].name,
        "policy": plan.schedulers[index].policy,
        "workload": plan.workload.name,
        "nodes": plan.cluster.num_nodes,
        "seed": plan.seed,
        "drawn": plan.drawn,
        **({} if block_s is None else {"resample_block_s": block_s}),
        "clock": plan.config["clock"],
        **({} if plan.load is None else {"offered_load": plan.load}),
        **figures,
        "engine": _engine(plan, outcome),
        "counters": dict(outcome.counters),
    }
    return Result(
        **tables,
        costs=costs_table(outcome.costs) if outcome.costs.size else None,
        summary=summary | bottlenecks_of(summary),
        counters=dict(outcome.counters),
        config=plan.config_toml(index),
        manifest=plan.manifest(index),
        notes=plan.notes + notes_of(plan, outcome),
        workload=plan.workload if plan.keeps_workload else None,
    )


def _job_result(plan: Plan, outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables, and the figures of the summary, of a run of jobs."""
    workload, config = plan.workload, plan.config
    assert isinstance(workload, JobWorkload)
    jobs = jobs_table(workload, outcome)
    kept = outcome.tasks if config["output.tasks"] else None
    tables = {
        "jobs": jobs,
        "timeline": timeline_table(outcome.timeline),
        "tasks": tasks_table(workload, kept) if kept else None,
        "crv": crv_table(outcome.series),
    }
    figures = {
        "jobs": describe_jobs(jobs, config["warmup"], config["slowdown_threshold"]),
        **_latency(plan, workload, outcome, jobs),
        **_utilisation(outcome, float(column(workload.jobs, "submit_s")[-1])),
        **describe_clock(outcome, config["quantum"], workload.arrays().submit_ns),
    }
    return tables, figures


def _coflow_result(plan: Plan, outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables, and the figures of the summary, of a run of coflows."""
    from emu.families.coflows.metrics import describe_coflows
    from emu.families.coflows.results import coflow_tables, coordinator_figures

    workload, config = plan.workload, plan.config
    assert isinstance(workload, CoflowWorkload)
    tables = coflow_tables(workload, outcome, plan.switch, config["output.tasks"])
    busy_ns = int(outcome.servers["busy"].sum()) if outcome.servers.size else 0
    figures = {
        "coflows": describe_coflows(tables["coflows"], config["warmup"]),
        **coordinator_figures(outcome.counters, busy_ns),
        **describe_clock(outcome, config["quantum"], workload.arrays().arrival_ns),
    }
    return tables, figures


def _utilisation(outcome: Outcome, last_arrival_s: float) -> dict[str, Any]:
    """Return the ``utilisation`` of a run that has a timeline."""
    timeline = outcome.timeline
    described = describe_utilisation(timeline["time_s"], timeline["utilisation"], last_arrival_s)
    return {"utilisation": described} if described else {}


def _latency(plan: Plan, workload: JobWorkload, outcome: Outcome, jobs: pa.Table) -> dict[str, Any]:
    """Return the ``decision_latency`` of a run whose tasks were recorded."""
    if outcome.tasks is None:
        return {}
    from emu.results.latency import describe_latency, sustained_rate

    slots, warmup_s = plan.cluster.slots(), plan.config["warmup"]
    return {
        "sustained_tasks_per_s": sustained_rate(outcome.tasks["start_ns"]),
        "decision_latency": describe_latency(workload, outcome.tasks, slots, jobs, warmup_s),
    }


def _engine(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    workload = plan.workload
    if isinstance(workload, CoflowWorkload):
        sizes = column(workload.coflows, "width")
    else:
        sizes = column(workload.jobs, "num_tasks")
    tasks = int(np.sum(sizes[outcome.finish_ns >= 0]))
    return {
        "wall_s": outcome.wall_s,
        "load_s": plan.load_s,
        "compile_s": outcome.compile_s,
        "events": outcome.events,
        **({"flows": tasks} if plan.family == COFLOWS else {}),
        "tasks": tasks,
        "tasks_per_s": tasks / outcome.wall_s if outcome.wall_s > 0 else 0.0,
        "peak_rss_mb": outcome.peak_rss_mb,
        **({"restarts": outcome.restarts} if outcome.restarts else {}),
    }
