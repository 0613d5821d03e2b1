"""One emulation: workload + cluster + scheduler + clock + seed → result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emu import run_directory as rd
from emu.metrics import describe_jobs
from emu.plan import Plan, configure, prepare
from emu.results import Result, jobs_table, tasks_table, timeline_table
from workloads.arrow import column
from workloads.errors import InputError
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    from actors.hosting.virtual import Outcome

LONG_COMPILE_S = 3.0
Progress = Callable[[int, int, float], None]
"""Is told tasks done, events, and virtual time in seconds."""


def run(
    scheduler: Any,
    workload: str | Path | JobWorkload,
    nodes: int | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Result:
    """Emulate one scheduler and return its result.

    Parameters
    ----------
    scheduler : str, class or object
        A name (see ``emu schedulers``), ``"package.module:Class"``, or a central scheduler of one's own.
    workload : str, Path or JobWorkload
        A generator's name, a path, or a workload.
    nodes : int, optional
        Number of nodes; only a cluster file has one of its own.
    parameters : mapping, optional
        The scheduler's parameters.
    config : path, optional
        A TOML file; the arguments beat it.
    out : path, optional
        Run directory to write; by default nothing is written (see `Result.save`).
    progress : callable, optional
        Is told tasks done, events and virtual time in seconds, now and then.
    **settings
        Any key of ``docs/reference/configuration.md``, ``_`` for the dot: ``seed=3``,
        ``short_cutoff="90 s"``, ``network_delay="1 ms"``, ``in_process=True``.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        A name, a value or a file is wrong.

    Notes
    -----
    Without ``in_process`` Ray is started on first use and stays for the next run.
    """
    arguments = {
        "scheduler": scheduler,
        "workload": workload,
        "nodes": nodes,
        "parameters": parameters,
        **settings,
    }
    plan = prepare(configure(arguments, config))
    if len(plan.schedulers) > 1 or len(plan.seeds) > 1:
        raise InputError("emu.run takes one scheduler and one seed; use emu.compare")
    if out is None:
        return execute(plan, 0, plan.seeds[0], progress)
    seed = plan.seeds[0]
    with rd.running(rd.claim(out, plan.manifest(0, seed), plan.config_toml(0, seed))) as folder:
        result = execute(plan, 0, seed, progress)
        result.write(folder)
    return result


def execute(
    plan: Plan,
    index: int,
    seed: int,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Result:
    """Emulate one scheduler of a plan with one seed; `tell` is told what takes time, such as compilation."""
    from actors.hosting.virtual import Observe, emulate

    outcome = emulate(
        plan.setting(index, seed),
        Observe(timeline_period_s=plan.period_s, tasks=plan.config["output.tasks"]),
        in_process=plan.config["in_process"],
        address=plan.config["address"],
        progress=progress,
        tell=tell,
    )
    if tell is not None and outcome.compile_s > LONG_COMPILE_S:
        tell(f"compiling {plan.schedulers[index].name} took {outcome.compile_s:.0f} s")
    jobs = jobs_table(plan.workload, outcome)
    return Result(
        jobs=jobs,
        timeline=timeline_table(outcome.timeline),
        tasks=None if outcome.tasks is None else tasks_table(plan.workload, outcome.tasks),
        summary={
            "scheduler": plan.schedulers[index].name,
            "workload": plan.workload.name,
            "nodes": plan.cluster.num_nodes,
            "seed": seed,
            "clock": plan.config["clock"],
            "jobs": describe_jobs(jobs, plan.config["warmup"]),
            "engine": _engine(plan, outcome),
            "counters": dict(outcome.counters),
        },
        counters=dict(outcome.counters),
        config=plan.config_toml(index, seed),
        manifest=plan.manifest(index, seed),
        notes=plan.notes,
        workload=plan.workload if plan.keeps_workload else None,
    )


def _engine(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    tasks = int(np.sum(column(plan.workload.jobs, "num_tasks")[outcome.finish_ns >= 0]))
    return {
        "wall_s": outcome.wall_s,
        "load_s": plan.load_s,
        "compile_s": outcome.compile_s,
        "events": outcome.events,
        "tasks": tasks,
        "tasks_per_s": tasks / outcome.wall_s if outcome.wall_s > 0 else 0.0,
        "peak_rss_mb": outcome.peak_rss_mb,
    }
