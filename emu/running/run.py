"""`emu.run`: one scheduler, of one seed or several, on a workload or all instances of an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Unpack, overload

from emu.configuration.plan import configure, prepare
from emu.configuration.settings import Settings
from emu.directories import run_directory as rd
from emu.results.comparison import Comparison
from emu.results.result import Result
from emu.running.comparing import run_together
from emu.running.emulation import Progress, execute, keep_workload
from emu.running.progress import watch_of


@overload
def run(
    scheduler: Any,
    workload: Any,
    nodes: int | None = None,
    *,
    seeds: None = None,
    parameters: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: bool | Progress | None = None,
    **settings: Unpack[Settings],
) -> Result: ...


@overload
def run(
    scheduler: Any,
    workload: Any,
    nodes: int | None = None,
    *,
    seeds: int | Sequence[int],
    parameters: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: bool | Progress | None = None,
    **settings: Unpack[Settings],
) -> Comparison: ...


def run(
    scheduler: Any,
    workload: Any,
    nodes: int | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    parameters: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: bool | Progress | None = None,
    **settings: Unpack[Settings],
) -> Result | Comparison:
    """Emulate one scheduler and return its result; with `seeds`, or of an archive of instances, all their results.

    Parameters
    ----------
    scheduler : str, class or object
        A name (see ``emu schedulers``), ``"package.module:Class"``, an object of your own class, or an `emu.variant`.
    workload : str, Path, JobWorkload, CoflowWorkload or frame
        A generator's name, a path, a workload, or a pandas frame with the columns ``submit_s`` and ``durations_s`` (see
        `workloads.frames`).
    nodes : int, optional
        Number of nodes; only a cluster file has one of its own, and coflows their ports.
    seeds : int or sequence of int, optional
        Number of seeds to run, from ``seed`` on, or the seeds; each has its own workload if that is drawn.
    parameters : mapping, optional
        The scheduler's parameters.
    config : path, optional
        A TOML file; the arguments beat it.
    out : path, optional
        Run directory to write; by default nothing is written (see `Result.save`).
    overwrite : bool
        Replace the run that is there. Files that Emu did not write are never removed, nor a run that is being run.
    progress : bool or callable, optional
        Whether to show a bar; by default where a terminal or a notebook shows it. A callable is called from time to
        time with tasks done, events and virtual time in seconds.
    **settings
        Any key of ``docs/reference/configuration.md``, ``_`` for the dot: ``seed=3``,
        ``short_cutoff="90 s"``, ``network_delay="1 ms"``, ``in_process=True``.

    Returns
    -------
    Result
        Of one seed.
    Comparison
        With `seeds`, even with 1: of one scheduler, as `emu.compare` returns it for several. Its ``results`` are by
        scheduler and seed, ``summaries[0]`` has means and intervals. Also of an archive of several instances, unless
        ``workload_options={"instance": …}`` chooses one: all are run, in place of seeds (give ``seeds=1`` for type
        checkers).

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
    given = configure({**arguments, "seeds": seeds}, config)
    if given["scheduler"] is not None and len(given["scheduler"]) > 1:
        raise given.error("scheduler", "emu.run takes one scheduler; emu.compare takes several")
    if seeds is not None:
        return run_together(prepare(given), out, progress, overwrite)
    if given["seeds"] != 1:
        raise given.error("seeds", f"give seeds={given['seeds']} to emu.run, which then returns a Comparison")
    plan = prepare(given)
    if plan.is_batch:
        return run_together(plan, out, progress, overwrite)
    total, unit = plan.work
    watch = watch_of(progress, unit)
    with watch(plan.schedulers[0].name, total) if watch else nullcontext() as shown:
        if out is None:
            return execute(plan, 0, shown)
        with rd.claimed(out, plan.manifest(0), plan.config_toml(0), overwrite=overwrite) as folder:
            keep_workload(plan, folder)
            result = execute(plan, 0, shown, out=folder)
            result.write(folder)
    return result
