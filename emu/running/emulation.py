"""One emulation: workload + cluster + scheduler + clock + seed → result, with the events that are recorded."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.environment import Pace
from emu.columns import COSTS, from_flags, make_table
from emu.configuration.costs import NS, most_partitions
from emu.configuration.event_selection import jobs_after, jobs_before, parse_events
from emu.configuration.loading import AUTO_ROWS
from emu.configuration.plan import KEPT_WORKLOAD, Plan
from emu.directories.manifest import emu_version
from emu.directories.names import CHECKPOINTS
from emu.results.bottlenecks import bottlenecks_of
from emu.results.events import batches
from emu.results.result import Result, Summarising
from emu.results.server_figures import server_figures
from emu.terminal import detail, note, print_line
from workloads.arrow import optional_column
from workloads.errors import InputError, not_written
from workloads.units import format_duration

if TYPE_CHECKING:
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.outcome import Observe, Outcome
    from actors.hosting.recording import Recording
    from actors.setting import Setting
    from emu.configuration.config import Config

LONG_COMPILE_S = 3.0
TRACES = "traces"
"""Folder beside the checkpoints, where partitions write events until the run has ended."""
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
    from actors.compiling.kernel_cache import CACHE_FOLDER

    summary, engine = result.summary, result.summary["engine"]
    spans = [f"{what} {format_duration(engine[f'{what}_s'])}" for what in ("load", "compile", "wall")]
    detail(
        f"{summary['scheduler']}, seed {summary['seed']}: {', '.join(spans)}; "
        f"{engine['events']:,} events, {engine['peak_rss_mb']:,.0f} MB; kernels in {CACHE_FOLDER}"
    )
    return result


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

        # In the directory of the whole plan as given; each seed derives its own.
        own = plan.config["workload"] if len(plan.replicas) > 1 else plan.workload
        save_workload(own, out / KEPT_WORKLOAD, overwrite=True)


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


announce = partial(print_line, keep="\n")
"""Print a plan where a person or a log sees it, but not among the results."""


def emulate_setting(
    setting: Setting,
    observe: Observe,
    values: Mapping[str, Any] | Config,
    progress: Callable[[int, int, float], None] | None = None,
    tell: Callable[[str], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Emulate with the clock, and on the host, that the keys in `values` name."""
    hosted = {"in_process": values["in_process"], "address": values["address"]}
    shown: dict[str, Any] = {"progress": progress, "tell": tell}
    if values["clock"] == "live":
        from actors.hosting.live import emulate_live

        pace = Pace(values["dilation"], values["live.tick"], values["live.lateness_bound"])
        partitions = None if values["partitions"] == "auto" else values["partitions"]
        return emulate_live(setting, observe, pace, partitions=partitions, **hosted, **shown)
    if values["clock"] == "virtual":
        from actors.hosting.runs import emulate

        return emulate(setting, observe, checkpoints=checkpoints, **hosted, **shown)
    from actors.hosting.windows import emulate_windows

    return emulate_windows(
        setting,
        observe,
        partitions=_partitions_of(setting, values, tell),
        quantum_s=values["quantum"],
        transport=values["windows.transport"],
        announce=None if tell is None else announce,
        checkpoints=checkpoints,
        **hosted,
        **shown,
    )


def _partitions_of(
    setting: Setting, values: Mapping[str, Any] | Config, tell: Callable[[str], None] | None
) -> int:
    """Return the number of partitions of a run with the clock `windows`; with `auto` also tell why."""
    if values["partitions"] != "auto":
        return most_partitions(values)
    from actors.hosting.choosing import choose_partitions
    from actors.hosting.windows import window_ns

    window = window_ns(setting, values["quantum"])
    partitions, reason = choose_partitions(setting, window, 1 if values["in_process"] else None)
    if tell is not None:
        announce(reason)
    return partitions


def describe_clock(
    outcome: Outcome,
    quantum_s: float | None,
    arrivals_ns: npt.NDArray[np.int64],
    *,
    has_coordinator: bool = False,
) -> dict[str, Any]:
    """Return a summary's entries on a live run, barriers and schedulers' costs; `arrivals_ns` are in order.

    `has_coordinator`: it is a run of DAG jobs over a network that has one.
    """
    described: dict[str, Any] = {} if outcome.live is None else {"live": outcome.live}
    if outcome.windows:
        late, late_ns, most_ns = outcome.delayed
        described["windows"] = {
            "partitions": outcome.partitions,
            "windows": outcome.windows,
            "exact": quantum_s is None,
            "delayed_messages": late,
            "delayed_mean_s": late_ns / late / NS if late else 0.0,
            "delayed_max_s": most_ns / NS,
        }
        if quantum_s is not None:
            described["windows"]["quantum_s"] = quantum_s
    span = int(arrivals_ns[0]), int(arrivals_ns[-1])
    return described | _describe_schedulers(outcome, *span, has_coordinator)


def _describe_schedulers(
    outcome: Outcome, first_ns: int, last_ns: int, has_coordinator: bool
) -> dict[str, Any]:
    """Return the ``schedulers`` part of a summary, of those that handled any message.

    The last of the servers is the listener, which is not a scheduler; before it comes the coordinator of the network of
    DAG jobs, of which the family tells.
    """
    schedulers = outcome.servers[: -2 if has_coordinator else -1]
    served = schedulers[schedulers["served"] > 0] if schedulers.size else schedulers
    if not served.size:
        return {}
    figures = server_figures(served, outcome.waits, first_ns, last_ns, int(outcome.finish_ns.max()))
    return {"schedulers": {"count": int(served.size), **figures}}


def costs_table(costs: np.ndarray) -> pa.Table:
    """Return the table of measured costs."""
    from actors.hosting.recorded import RECORDED

    kinds, which = np.unique(costs["kind"], return_inverse=True)
    names = pa.array(
        [RECORDED[number].name if number in RECORDED else f"{number:#05x}" for number in kinds.tolist()],
        pa.string(),
    )
    return make_table(
        COSTS,
        {
            "scheduler": costs["scheduler"].copy(),
            "cost_ns": costs["cost"].copy(),
            "message": names.take(pa.array(which)),
            "decides": from_flags(costs["decides"] == 1),
        },
    )


def recording_of(plan: Plan, index: int, out: Path | None) -> Recording | None:
    """Return which events the run of a scheduler records, and in which folder, which is made; None for no events.

    Raise `InputError` for a job that does not exist, for rates of other families than coflows, and if the folder cannot
    be made.
    """
    chosen = parse_events(plan.config["output.events"])
    if chosen is None:
        return None
    if chosen.rates and plan.family.name != "coflows":
        raise InputError(
            f"output.events: rates are those of flows of coflows; this is a run of {plan.family.name}"
        )
    from actors.hosting.cleanup import temporary_folder
    from actors.hosting.recording import Recording
    from actors.kernel.queue import NEVER

    setting = plan.setting(index)
    is_long = setting.scheduler.worlds.is_long(setting)
    jobs = jobs_before(chosen, setting.num_jobs, is_long, plan.seed)
    folder = temporary_folder("events") if out is None else Path(os.path.abspath(out)) / CHECKPOINTS
    try:
        (folder / TRACES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(error, folder / TRACES) from None
    first, last = (int(min(seconds * NS, float(NEVER))) for seconds in chosen.span_s)
    kept = None if jobs is None else tuple(jobs.tolist())
    return Recording(folder / TRACES, kept, (first, last), chosen.rates)


def add_events(plan: Plan, index: int, recording: Recording, outcome: Outcome, result: Result) -> None:
    """Give a result the events that were recorded; a temporary folder with them is removed with the result.

    Raise `InputError` if some are missing, because partitions ran on machines that do not see the folder.
    """
    from actors.hosting.cleanup import remove_folder
    from actors.hosting.recorded import check_recorded

    chosen = parse_events(plan.config["output.events"])
    assert chosen is not None
    check_recorded(recording, outcome.recorded)
    setting = plan.setting(index)
    arrival_ns, _ = setting.scheduler.worlds.span_ns(setting)
    took_ns = np.where(outcome.finish_ns < 0, -1, outcome.finish_ns - arrival_ns)
    recorded = None if recording.jobs is None else np.array(recording.jobs)
    kept = jobs_after(chosen, recorded, took_ns)
    result.recorded = lambda: batches(recording, setting, kept)
    if chosen.is_whole:
        plan.family[Summarising].add_waits(plan, result, outcome, result.recorded(), kept)
    if recording.folder.parent.name != CHECKPOINTS:
        weakref.finalize(result, remove_folder, recording.folder.parent)
