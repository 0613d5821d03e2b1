"""One emulation: workload + cluster + scheduler + clock + seed → result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from emu.configuration.loading import AUTO_ROWS
from emu.configuration.plan import KEPT_WORKLOAD, Plan
from emu.directories.manifest import emu_version
from emu.directories.names import CHECKPOINTS
from emu.results.bottlenecks import bottlenecks_of
from emu.results.result import Result, Summarising
from emu.running.clocks import costs_table, describe_clock, emulate_setting
from emu.running.recording import add_events, recording_of
from emu.terminal import detail, note
from workloads.arrow import optional_column
from workloads.units import format_duration

if TYPE_CHECKING:
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.outcome import Observe, Outcome
    from actors.hosting.recording import Recording

LONG_COMPILE_S = 3.0
Progress = Callable[[int, int, float], None]
"""Called with tasks done, events, and virtual time in seconds."""


def execute(
    plan: Plan,
    index: int,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
    out: Path | None = None,
) -> Result:
    """Emulate one scheduler of a plan of one replica; `tell` gets a line about work that takes long.

    Checkpoints are kept in `out`, the run's directory; the run continues from the newest one there.
    """
    watched = observe(plan, index, out)
    with checkpoints_of(plan, index, out, watched) as checkpoints:
        outcome = emulate_setting(plan.setting(index), watched, plan.config, progress, tell, checkpoints)
    if tell is not None and outcome.compile_s > LONG_COMPILE_S:
        tell(f"compiling {plan.schedulers[index].name} took {outcome.compile_s:.0f} s")
    for text in notes_of(plan, outcome):
        note(text)
    result = result_of(plan, index, outcome, watched.events)
    _tell_engine(result)
    return result


def _tell_engine(result: Result) -> None:
    """Print the times and the memory of a run, with ``--verbose``."""
    from actors.compiling.kernel_cache import CACHE_FOLDER

    engine = result.summary["engine"]
    spans = [f"{what} {format_duration(engine[f'{what}_s'])}" for what in ("load", "compile", "wall")]
    detail(
        f"{result.summary['scheduler']}, seed {result.summary['seed']}: {', '.join(spans)}; "
        f"{engine['events']:,} events, {engine['peak_rss_mb']:,.0f} MB; kernels in {CACHE_FOLDER}"
    )


def notes_of(plan: Plan, outcome: Outcome) -> tuple[str, ...]:
    """Return notes for the user on a finished run."""
    notes = list(outcome.live["notes"]) if outcome.live else []
    if outcome.stall is not None:
        notes.append(outcome.stall)
    step, period_s = outcome.timeline_step, plan.period_s
    if plan.config["timeline.period"] != "auto" and step > 1:
        would_be = f"timeline.period: {period_s:g} s would be {outcome.timeline['time_s'].size * step:,} rows"
        notes.append(f"{would_be}; every {step}th is kept, {step * period_s:g} s apart")
    return tuple(notes)


@contextmanager
def checkpoints_of(
    plan: Plan, index: int, out: Path | None, watched: Observe
) -> Iterator[Checkpoints | None]:
    """Yield the checkpoints of a run: in its directory, or in a temporary one for what may die under Ray."""
    in_process, period_s = plan.config["in_process"], plan.config["checkpoint.period"]
    if plan.config["clock"] == "live" or (in_process and out is None):
        yield None
        return
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.cleanup import temporary

    with temporary("checkpoints") if out is None else nullcontext(out) as folder:
        yield Checkpoints(
            folder / CHECKPOINTS,
            math.inf if period_s in ("never", 0) else period_s,
            plan.config["checkpoint.keep"],
            {"emu": emu_version(), "configuration": plan.identity(index)},
            note,
            watched.events,
        )


def keep_workload(plan: Plan, out: Path) -> None:
    """Write a workload that a Python program gave as an object to the place that ``config.toml`` names."""
    if plan.keeps_workload:
        from workloads.catalogue import save_workload

        save_workload(plan.kept_workload, out / KEPT_WORKLOAD, overwrite=True)


def observe(plan: Plan, index: int, out: Path | None) -> Observe:
    """Return the settings of recording of the run of a scheduler of a plan."""
    from actors.hosting.outcome import MOST_ROWS, Observe

    tasks = plan.family[Summarising].keeps_parts(plan)
    given = plan.config["timeline.period"] != "auto"
    rows = MOST_ROWS if given else AUTO_ROWS
    return Observe(plan.period_s, rows, tasks, recording_of(plan, index, out))


def result_of(plan: Plan, index: int, outcome: Outcome, recording: Recording | None = None) -> Result:
    """Return the outcome of a run of a plan as tables and a summary, with the events that were recorded."""
    family, config = plan.family, plan.config
    tables, figures = family[Summarising].results(plan, outcome)
    tables["costs"] = costs_table(outcome.costs) if outcome.costs.size else None
    kept = {name: tables[name] for name in family.tables if tables.get(name) is not None}
    scheduler = plan.schedulers[index]
    arrivals_ns = scheduler.worlds.span_ns(plan.setting(index))[0]
    has_coordinator = scheduler.coordinator is not None
    figures |= describe_clock(outcome, config["quantum"], arrivals_ns, has_coordinator=has_coordinator)
    block_s = plan.config["resample.block"]
    summary = {
        "scheduler": plan.schedulers[index].name,
        "policy": plan.schedulers[index].policy,
        "workload": plan.workload.name,
        **plan.instance,
        "nodes": plan.cluster.num_nodes,
        "seed": plan.seed,
        "drawn": plan.drawn,
        **({} if block_s is None else {"resample_block_s": block_s}),
        "clock": plan.config["clock"],
        **({} if plan.load is None else {"offered_load": plan.load}),
        **figures,
        "engine": _engine(plan, outcome, kept[family.heads]),
        "counters": dict(outcome.counters),
    }
    result = Result(
        tables=kept,
        summary=summary | bottlenecks_of(summary),
        counters=dict(outcome.counters),
        config=plan.config_toml(index),
        manifest=plan.manifest(index),
        notes=plan.notes + notes_of(plan, outcome),
        workload=plan.workload if plan.keeps_workload else None,
    )
    if recording is not None:
        add_events(plan, index, recording, outcome, result)
    return result


def _engine(plan: Plan, outcome: Outcome, heads: pa.Table) -> dict[str, Any]:
    family = plan.family
    tasks = int(np.sum(optional_column(heads, family.width)[outcome.finish_ns >= 0]))
    return {
        "wall_s": outcome.wall_s,
        "load_s": plan.load_s,
        "compile_s": outcome.compile_s,
        "events": outcome.events,
        family.part: tasks,
        "tasks": tasks,
        "tasks_per_s": tasks / outcome.wall_s if outcome.wall_s > 0 else 0.0,
        "peak_rss_mb": outcome.peak_rss_mb,
        **({"restarts": outcome.restarts} if outcome.restarts else {}),
    }
