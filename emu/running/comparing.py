"""Running several schedulers over the same replicas of a workload, seeds or instances, and writing their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Unpack

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
from emu.running.many_runs import reason_to_compute, report_rerun
from emu.running.progress import watch_of
from emu.terminal import few_alike, note
from workloads.errors import InputError, UnavailableError

Watch = Callable[[str, int], AbstractContextManager[Any]]
"""Makes, from a label and a number of tasks or flows, the context that yields a `progress`."""
Show = Callable[[int, int, str], None]
"""Called with the number of runs done, of those that failed, and the run that is begun."""


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
    return run_together(prepare(configure({**arguments, **settings}, config)), out, progress, overwrite)


def run_together(
    plan: Plan, out: str | Path | None, progress: bool | Progress | None = None, overwrite: bool = False
) -> Comparison:
    """Run every scheduler and replica of a plan, and write the comparison to `out`, if given."""
    watch = watch_of(progress, plan.work[1])
    if out is None:
        return run_plan(plan, watch=watch)
    with rd.claimed(out, manifest_together(plan), plan.config_toml(), overwrite=overwrite) as folder:
        keep_workload(plan, folder)
        comparison = run_plan(plan, folder, watch)
        save_comparison(comparison, folder)
    return comparison


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
    comparison.notes = (*plan.notes, *_own_notes(notes), *left_out)
    comparison.failures = errors
    return comparison


def _compiling_ahead(plan: Plan, out: Path | None, places: Sequence[Path]) -> AbstractContextManager[None]:
    """Within, kernels of the runs of a plan that are not finished are compiled on the cores that are idle."""
    if plan.config["clock"] != "virtual" or plan.config["address"] is not None or len(places) == 1:
        return nullcontext()
    from actors.hosting.ahead import compiling_ahead

    left = [i for i, place in enumerate(places) if out is None or not rd.is_finished(out / place)]
    return compiling_ahead([plan.setting(i) for i in left])


def _own_notes(notes: Mapping[Replica, Sequence[str]]) -> list[str]:
    """Return the notes of single replicas, each with its replica; only a few of notes that differ in numbers."""
    return few_alike(f"{replica}: {text}" for replica, own in notes.items() for text in own)


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


def manifest_together(plan: Plan) -> dict[str, Any]:
    """Return the content of the manifest of all runs of a plan before they start."""
    return {**plan.manifest(), "runs": [folder.as_posix() for folder in run_folders(plan).values()]}


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
