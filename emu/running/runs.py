"""`emu.run` and `emu.compare`: schedulers over the replicas of a workload, and the comparison of their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Unpack, overload

from emu import disk
from emu.configuration.plan import Plan, configure, prepare
from emu.configuration.replicas import Replica, folders_of, left_out_text
from emu.configuration.settings import Settings
from emu.directories import locks
from emu.directories import run_directory as rd
from emu.directories.names import COMPARISON, CONFIG, REPORT, SUMMARY
from emu.results.comparison import Comparison
from emu.results.result import Result, read_result
from emu.running.emulation import Progress, execute, keep_workload
from emu.running.progress import watch_of
from emu.running.resuming import holds_several, read_finished, reason_to_compute, reopened, report_rerun
from emu.terminal import few_alike, note
from workloads.doing import doing
from workloads.errors import InputError, UnavailableError

Watch = Callable[[str, int], AbstractContextManager[Any]]
"""Makes, from a label and a number of tasks or flows, the context that yields a `progress`."""
Show = Callable[[int, int, str], None]
"""Called with the number of runs done, of those that failed, and the run that is begun."""


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
    if seeds is None and given["seeds"] != 1:
        raise given.error("seeds", f"give seeds={given['seeds']} to emu.run, which then returns a Comparison")
    plan = prepare(given)
    return _run_plan_in(plan, seeds is not None or plan.is_batch, out, progress, overwrite)


def compare(
    schedulers: Iterable[Any],
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
) -> Comparison:
    """Emulate several schedulers on the same workload, cluster and seeds.

    Parameters
    ----------
    schedulers : iterable
        As `emu.run` takes them; the first is the one the others are compared with. Several of one policy are given
        as variants: ``emu.variant("eagle", slack=2)``, or objects of your own class with other parameters.
    parameters : mapping, optional
        ``{"probe_ratio": 3}`` for every scheduler that has it, ``{"eagle": {"slack": 4}}`` for one.
    workload, nodes, seeds, config, out, overwrite, progress, **settings
        As in `emu.run`; ``seeds=5`` runs five seeds each, ``seeds=[3, 7, 11]`` these, and an archive of instances
        all of them.

    Returns
    -------
    Comparison
        Of the runs that did not fail; those that did are in its `failures`. If all do, the first error is raised.
    """
    arguments = {
        "scheduler": list(schedulers),
        "workload": workload,
        "nodes": nodes,
        "seeds": seeds,
        "parameters": parameters,
    }
    plan = prepare(configure({**arguments, **settings}, config))
    found = _run_plan_in(plan, True, out, progress, overwrite)
    assert isinstance(found, Comparison)
    return found


def resume(
    folder: str | Path,
    *,
    scheduler: Any = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> Result | Comparison:
    """Go on with an interrupted run or comparison, and return its result; of a finished run, read it.

    Parameters
    ----------
    folder : path
        The run directory.
    scheduler : object, optional
        What the run was given as its scheduler, if that was an object (or a list with objects) of a Python program.
    progress : callable, optional
        As `emu.run` takes it, for a single run.

    Returns
    -------
    Result or Comparison
        What `emu.run` or `emu.compare` would have returned; its tables have the same bytes.

    Raises
    ------
    InputError
        It is not a run directory; its configuration or an input has changed; a file of a finished run is damaged; a
        process that is alive runs it.
    """
    out = Path(folder)
    if (found := read_finished(out)) is not None:
        return found
    with reopened(out, scheduler=scheduler) as plan:
        if plan is not None:
            together = holds_several(out)
            watch = None if together or progress is None else watch_of(progress, plan.work[1])
            return run_in(plan, together, out, watch)
    return resume(out)


def _run_plan_in(
    plan: Plan, together: bool, out: str | Path | None, progress: bool | Progress | None, overwrite: bool
) -> Result | Comparison:
    """Run a plan, in a new directory if `out` names one."""
    watch = watch_of(progress, plan.work[1])
    if out is None:
        return run_in(plan, together, None, watch)
    with rd.claimed(out, *begun_with(plan, together), overwrite=overwrite) as folder:
        keep_workload(plan, folder)
        return run_in(plan, together, folder, watch)


def begun_with(plan: Plan, together: bool) -> tuple[dict[str, Any], str]:
    """Return manifest and configuration with which the directory of all runs of a plan, or of its only one, begins."""
    if not together:
        return plan.manifest(0), plan.config_toml(0)
    return {**plan.manifest(), "runs": [f.as_posix() for f in run_folders(plan).values()]}, plan.config_toml()


def run_in(
    plan: Plan,
    together: bool,
    out: Path | None,
    watch: Watch | None = None,
    tell: Callable[[str], None] | None = None,
    show: Show | None = None,
) -> Result | Comparison:
    """Run the only run of a plan, or all `together`, and write to its claimed directory, if it has one."""
    if together:
        comparison = run_plan(plan, out, watch, tell, show)
        if out is not None:
            if tell is not None:
                tell("writing the report")
            with doing("writing the report"):
                save_comparison(comparison, out)
        return comparison
    with watch(plan.schedulers[0].name, plan.work[0]) if watch else nullcontext() as progress:
        result = execute(plan, 0, progress, tell, out)
    if out is not None:
        with doing("writing the results"):
            result.write(out)
    return result


def run_plan(
    plan: Plan,
    out: Path | None = None,
    watch: Watch | None = None,
    tell: Callable[[str], None] | None = None,
    show: Show | None = None,
) -> Comparison:
    """Run every scheduler and replica of a plan; each is written below `out` as soon as it is done.

    Replica by replica, as each may have its own workload. Runs that an earlier attempt has finished there are read, and
    those that it has begun are resumed. A run that fails does not stop the others; if none is left to be compared, the
    error of the first is raised.
    """
    results: dict[str, dict[Replica, Result]] = {s.name: {} for s in plan.schedulers}
    failures: dict[str, Exception] = {}
    notes: dict[Replica, tuple[str, ...]] = {}
    folders = run_folders(plan)
    with ExitStack() as ahead:
        for replica in plan.replicas:
            own = plan.of_replica(replica)
            notes[replica] = tuple(text for text in own.notes if text not in plan.notes)
            if replica == plan.replicas[0]:
                ahead.enter_context(
                    _compiling_ahead(own, out, [folders[s.name, replica] for s in plan.schedulers])
                )
            for index, scheduler in enumerate(plan.schedulers):
                place = folders[scheduler.name, replica]
                label = scheduler.name if len(plan.replicas) == 1 else f"{scheduler.name} {replica}"
                if show is not None:
                    show(sum(map(len, results.values())) + len(failures), len(failures), label)
                try:
                    result = _result(own, index, label, watch, tell, None if out is None else out / place)
                except UnavailableError:  # a full disk, no Ray: other runs would fail too
                    raise
                except Exception as error:
                    if len(folders) == 1:
                        raise
                    failures[place.as_posix()] = error
                    note(f"{label} failed: {rd.one_line(error)}")
                    continue
                if out is not None:  # large tables are on disk, and a comparison does not need them
                    result.drop_large()
                results[scheduler.name][replica] = result
    compared, left_out = _in_pairs(results)
    if not compared:
        raise next(iter(failures.values()))
    errors = {place: rd.one_line(error) for place, error in failures.items()}
    comparison = Comparison(compared, plan.config_toml(), plan.manifest(), plan.config["warmup"])
    own_notes = few_alike(f"{replica}: {text}" for replica, own in notes.items() for text in own)
    comparison.notes = (*plan.notes, *own_notes, *left_out)
    comparison.failures = errors
    return comparison


def _compiling_ahead(plan: Plan, out: Path | None, places: Sequence[Path]) -> AbstractContextManager[None]:
    """Within, kernels of the runs of a plan that are not finished are compiled on the cores that are idle."""
    if plan.config["clock"] != "virtual" or plan.config["address"] is not None or len(places) == 1:
        return nullcontext()
    from actors.hosting.ahead import compiling_ahead

    left = [i for i, place in enumerate(places) if out is None or not rd.is_finished(out / place)]
    return compiling_ahead([plan.setting(i) for i in left])


def _in_pairs(
    results: Mapping[str, Mapping[Replica, Result]],
) -> tuple[dict[str, list[Result]], list[str]]:
    """Return results of the replicas that all schedulers have, and notes on what is left out of the comparison.

    A scheduler without a result is left out, and while the others have no replica in common, the one with the fewest.
    """
    there = {name: runs for name, runs in results.items() if runs}
    while there and not set.intersection(*(set(runs) for runs in there.values())):
        fewest = min(there, key=lambda name: len(there[name]))
        there = {name: runs for name, runs in there.items() if name != fewest}
    every = dict.fromkeys(replica for runs in results.values() for replica in runs)
    pairs = sorted(replica for replica in every if there and all(replica in runs for runs in there.values()))
    notes = [f"{name} is not compared, as it failed" for name in results if name not in there]
    if lost := sorted(set(every) - set(pairs)):
        notes.append(left_out_text(lost))
    return {name: [runs[replica] for replica in pairs] for name, runs in there.items()}, notes


def _result(
    plan: Plan,
    index: int,
    label: str,
    watch: Watch | None,
    tell: Callable[[str], None] | None,
    folder: Path | None,
) -> Result:
    """Return the result of one scheduler of a plan of one replica: read from its folder, resumed there, or run."""
    if folder is None:
        with watch(label, plan.work[0]) if watch else nullcontext() as progress:
            return execute(plan, index, progress, tell)
    begins = plan.manifest(index)
    why = reason_to_compute(folder, begins)
    if not why:
        return read_result(folder)
    report_rerun(folder, why)
    with (
        _held(folder, begins, plan.config_toml(index)),
        watch(label, plan.work[0]) if watch else nullcontext() as progress,
    ):
        if rd.is_finished(folder):
            return read_result(folder)
        result = execute(plan, index, progress, tell, folder)
        result.write(folder)
    return result


@contextmanager
def _held(folder: Path, begins: Mapping[str, Any], config: str) -> Iterator[None]:
    """Within, the folder of one run is locked by this process: resumed if that run was begun there, else created."""
    try:
        found = rd.read_manifest(folder)
        same = found.get("status") != rd.FINISHED and found.get("config") == begins["config"]
    except InputError:
        same = False
    if not same:
        rd.claim(folder, begins, config, locks.empty)
        try:
            with rd.running(folder):
                yield
        finally:
            locks.release(folder)
        return
    with rd.claimed_again(folder, "--out") as found:
        if rd.settle(folder, found)["status"] != rd.FINISHED:
            rd.begin(folder, found)
        with rd.running(folder):
            yield


def run_folders(plan: Plan) -> dict[tuple[str, Replica], Path]:
    """Return where each run of a plan lies in its directory, as Hive partitions: by scheduler and replica."""
    inner = folders_of(plan.replicas)
    alone = len(plan.schedulers) == 1
    return {
        (s.name, replica): Path(folder) if alone else Path(f"scheduler={rd.safe_name(s.name)}") / folder
        for s in plan.schedulers
        for replica, folder in inner.items()
    }


def _within(summary: dict[str, Any], out: Path) -> dict[str, Any]:
    """Return a summary whose paths are below the directory that it is written to."""
    result = dict(summary)
    if "path" in result:
        result["path"] = Path(result["path"]).relative_to(out).as_posix()
    if "paths" in result:
        result["paths"] = [Path(path).relative_to(out).as_posix() for path in result["paths"]]
    return result


def save_comparison(comparison: Comparison, out: Path) -> None:
    """Write the comparison of the runs of a claimed directory; the manifest comes last."""
    summaries = comparison.summaries
    many = len(summaries) > 1
    written_out = [_within(summary, out) for summary in summaries]
    disk.write_json(out / SUMMARY, written_out if many else written_out[0])
    comparison.to_csv(out / COMPARISON)
    written = [CONFIG, SUMMARY, COMPARISON]
    if many:
        from emu.report.drawing import save_figure
        from emu.report.page import paragraph
        from emu.report.plots import figures_of
        from emu.report.report import render_report, write_report

        failed = [paragraph(line, "note") for line in comparison.failed_text().splitlines()]

        figures = figures_of(comparison.results, comparison.warmup_s)
        for figure in figures:
            written += save_figure(figure.drawn, out / figure.stem)
        runs_of_all = [r for runs in comparison.runs for r in runs]
        write_report(out / REPORT, render_report(runs_of_all, sections=failed, figures=figures))
        written.append(REPORT)
    runs = [
        r.path.relative_to(out).as_posix() for runs in comparison.runs for r in runs if r.path is not None
    ]
    manifest = {
        **comparison.manifest,
        "record": rd.read_manifest(out).get("record", comparison.manifest.get("record")),
        "runs": runs,
        **({"failures": comparison.failures} if comparison.failures else {}),
    }
    status = rd.FAILED if comparison.failures else rd.FINISHED
    comparison.manifest = rd.conclude(out, manifest, written, status)
    comparison.path = out
