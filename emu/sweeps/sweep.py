"""Sweeps: a grid of runs in parallel, a directory that can be resumed, and the comparison of the runs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from emu import disk
from emu.configuration.config import flatten
from emu.configuration.ineffective_values import ineffective, without_effect
from emu.configuration.plan import Plan, prepare
from emu.configuration.schedulers import find_schedulers
from emu.configuration.workload_cache import WorkloadCache
from emu.directories import run_directory as rd
from emu.directories.names import COMPARISON, CONFIG, SUMMARY
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.notebook import as_html
from emu.results.records import write_csv
from emu.running.progress import bar_of
from emu.running.resuming import opened
from emu.sweeps.grid import SWEEP, Grid, Point, read_grid
from emu.sweeps.parallel_runs import Bar, Hosting, Run, run_all
from emu.sweeps.sweep_report import (
    Compared,
    compare_groups,
    figures_of,
    group_points,
    records_of,
    render_group,
    summary_rows,
)
from emu.terminal import few_alike
from workloads.errors import InputError

RESULTS = "results"
TABLE_GROWTH = 1.05
"""While a sweep runs, its table is written again when its rows have grown by this factor: to write it after each of
3,000 short runs took most of the time."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A sweep that is ready: every point is checked, and the finished runs in its directory are known."""

    grid: Grid
    runs: tuple[Run, ...]  # in the order of the grid's points
    missing: tuple[Run, ...]  # the runs that are still to be computed
    out: Path

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, each once, and few of those that are alike."""
        return tuple(few_alike(note for run in self.runs for note in run.notes))

    def described(self) -> dict[str, Any]:
        """Return what would be run, as plain data."""
        missing = {id(run) for run in self.missing}
        return {
            "out": str(self.out),
            "runs": [
                {"path": run.folder.relative_to(self.out).as_posix(), "done": id(run) not in missing}
                for run in self.runs
            ],
        }

    def to_text(self) -> str:
        """Return what would be run: one line a run."""
        lines = [f"{'done' if run['done'] else 'to do':7s}{run['path']}" for run in self.described()["runs"]]
        workloads = len({run.source for run in self.runs})
        most = max(run.memory_bytes for run in self.runs) / (1 << 30)
        head = f"{len(self.runs)} runs, {len(self.missing)} to do, of {workloads} workload{'s'[: workloads != 1]}"
        return "\n".join([*lines, f"{head}; up to {most:.1f} GiB each; results in {self.out}"]) + "\n"


@dataclass(eq=False)
class SweepResult:
    """The results of a sweep.

    Attributes
    ----------
    rows : list of dict
        One per finished run: its axes, offered load, all figures of its summary, its path.
    summary : dict
        The content of the sweep's ``summary.json``.
    failures : dict of str to str
        Path of each run that failed, below `path`, to its error.
    text : str
        The comparisons as tables.
    path : Path
    """

    rows: list[dict[str, Any]]
    summary: dict[str, Any]
    failures: dict[str, str]
    path: Path
    text: str = field(repr=False)

    def to_text(self) -> str:
        """Return the comparisons, point by point, and the failures."""
        failed = "".join(f"failed: {path}: {error}\n" for path, error in self.failures.items())
        return self.text + ("\n" + failed if failed else "")

    def to_pandas(self) -> Any:
        """Return one frame row per finished run, as ``results.parquet``."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<SweepResult: {len(self.rows):,} runs in {self.path}{failed}>"

    def _repr_html_(self) -> str:
        """Return the frame of the runs as HTML, for notebooks; columns and rows in the middle may be left out."""
        failed = [f"<p>{escape(f'failed: {path}: {error}')}</p>" for path, error in self.failures.items()]
        table = self.to_pandas().to_html(index=False, max_rows=20, max_cols=14)
        return as_html(repr(self)[1:-1], [table, *failed])


def sweep(
    source: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    parallel: int | None = None,
    retries: int = Hosting.retries,
    in_process: bool = False,
    address: str | None = None,
    sets: Sequence[str] = (),
    overwrite: bool = False,
    progress: bool | None = None,
) -> SweepResult:
    """Run a grid of emulations, those that are missing in its directory.

    Parameters
    ----------
    source : path or mapping
        A sweep file (``docs/sweeps.md``), or a mapping of the same form.
    out : path, optional
        The sweep's directory; by default ``runs/sweep-<name of the file>``. An existing one is resumed.
    parallel : int, optional
        Runs at once; by default as many as Ray has CPUs.
    retries : int
        Times a run is tried again when its worker process dies.
    in_process : bool
        One run after another in this process, without Ray.
    address : str, optional
        Of a running Ray cluster.
    sets : sequence of str
        ``NAME=VALUE``, as ``--set``.
    overwrite : bool
        Remove what the directory holds, of any sweep, and run all.
    progress : bool, optional
        Whether to show a bar; by default where a terminal or a notebook shows it.

    Returns
    -------
    SweepResult
        Of all runs that are finished; those that failed are in its `failures`.

    Raises
    ------
    InputError
        The file is wrong, at any of its points, or the directory holds something else.
    """
    ready = prepare_sweep(source, out, sets)
    base = ready.grid.base
    hosting = Hosting(parallel, retries, in_process or base["in_process"], address or base["address"])
    return run_sweep(ready, hosting, bar_of(progress), overwrite=overwrite)


def prepare_sweep(
    source: str | Path | Mapping[str, Any], out: str | Path | None = None, sets: Sequence[str] = ()
) -> Sweep:
    """Check every point of a sweep and find the missing runs; nothing is run or written."""
    cache = WorkloadCache()
    grid = read_grid(source, sets, cache)
    stem = rd.safe_name(f"sweep-{Path(source).stem}") if isinstance(source, str | Path) else SWEEP
    place = Path(out) if out is not None else Path("runs") / stem
    runs, found = dict[Path, Run](), []
    points = dict[Path, Point]()
    configs = {repr(p.config["scheduler"]): p.config for p in grid.points if p.config["scheduler"]}
    apart = any(one.hybrid for config in configs.values() for one in find_schedulers(config))
    for whole in grid.points:
        plan = _plan(whole, cache, source)
        if apart and plan.keys.get("short_cutoff", math.inf) is None:  # as in the runs it is compared with
            plan = prepare(plan.config.but(short_cutoff="auto"), cache, one_of_many=True)
        of_plan = plan.config, plan.schedulers, plan.parameters
        point = whole.only(whole.at.keys() - without_effect(*of_plan, whole.at))
        folder = place / grid.folder(point)
        if folder not in runs:  # others differ from it in what has no effect
            points[folder], runs[folder] = point, Run.of(plan, folder)
        found.append(ineffective(*of_plan))
    for name, error in found[0].items():
        if all(name in other for other in found):
            raise error
    of_points = replace(grid, points=tuple(points.values()))
    return Sweep(of_points, tuple(runs.values()), tuple(r for r in runs.values() if not r.is_done()), place)


def run_sweep(
    ready: Sweep,
    hosting: Hosting,
    bar: Bar | None = None,
    tell: Callable[[str], None] | None = None,
    columns: Sequence[str] | None = None,
    reasons: bool = False,
    overwrite: bool = False,
) -> SweepResult:
    """Run what is missing of a sweep, or with `overwrite` all of it, and write the comparison of all runs.

    `columns` and `reasons` select what its tables show, as in `Comparison.to_text`.
    """
    out, grid = ready.out, ready.grid
    point_of = {id(run): point for run, point in zip(ready.runs, grid.points, strict=True)}
    with opened(out, SWEEP, grid.described(), overwrite):
        todo = [run for run in (ready.runs if overwrite else ready.missing) if not run.is_done()]
        missing = {id(run) for run in todo}
        rows = {
            id(run): _row(grid, point_of[id(run)], run, out) for run in ready.runs if id(run) not in missing
        }
        failures: dict[int, str] = {}
        written = len(rows)  # rows of the table on disk

        def ended(run: Run, error: str | None) -> None:
            nonlocal written
            if error is not None:
                failures[id(run)] = error
                return
            rows[id(run)] = _row(grid, point_of[id(run)], run, out)
            if len(rows) >= TABLE_GROWTH * written:
                _write_rows(out, [rows[id(r)] for r in ready.runs if id(r) in rows])
                written = len(rows)

        total = len(ready.runs)
        with bar(out.name, total, len(rows)) if bar else nullcontext() as show:
            try:
                run_all(todo, total, out, hosting, ended, tell, show)
            finally:
                if len(rows) > written:  # also of a sweep that is interrupted
                    _write_rows(out, [rows[id(r)] for r in ready.runs if id(r) in rows])
        if tell is not None:
            tell("comparing")
        done = [run for run in ready.runs if id(run) in rows]
        failed = {
            r.folder.relative_to(out).as_posix(): failures[id(r)] for r in ready.runs if id(r) in failures
        }
        found = [(point_of[id(run)], run.folder) for run in done]
        render = partial(render_group, columns=columns, reasons=reasons)
        return _conclude(ready, [rows[id(run)] for run in done], failed, found, render)


def _conclude(
    ready: Sweep,
    table: list[dict[str, Any]],
    failures: dict[str, str],
    done: list[tuple[Point, Path]],
    render: Callable[[Compared], str],
) -> SweepResult:
    """Compare the runs point by point and write table, summary and plots; the manifest comes last."""
    out, grid = ready.out, ready.grid
    parts = list(compare_groups(group_points(grid, done), grid))
    points = [row for part in parts for row in summary_rows(part, out)]
    counts = {"all": len(ready.runs), "finished": len(table), "failed": len(failures)}
    summary = {"runs": counts, "points": points, "failures": failures}
    written = [*_write_rows(out, table), COMPARISON]
    write_csv([record for part in parts for record in records_of(part)], out / COMPARISON)
    disk.write_json(out / SUMMARY, summary)
    figures = figures_of(grid, parts)
    if figures:
        from emu.report.drawing import save_figure

        for figure in figures:
            written += save_figure(figure.drawn, out / figure.stem)
    written.append(SUMMARY)
    manifest = {**rd.read_manifest(out), "runs": [row["path"] for row in table], "failures": failures}
    rd.conclude(out, manifest, [CONFIG, *written], rd.FAILED if failures else rd.FINISHED)
    return SweepResult(table, summary, failures, out, "\n".join(map(render, parts)))


def _plan(point: Point, cache: WorkloadCache, source: str | Path | Mapping[str, Any]) -> Plan:
    try:
        return prepare(point.config, cache, one_of_many=True)
    except InputError as error:
        if error.file is None and ": required" in error.message and isinstance(source, str | Path):
            raise InputError(error.message, file=source) from None  # a missing key has no line
        raise


def _row(grid: Grid, point: Point, run: Run, out: Path) -> dict[str, Any]:
    """Return a finished run as a row of the results table."""
    summary = disk.read_json(run.folder / SUMMARY, "has no summary.json")
    own = grid.columns(point)
    columns = {axis.label: own.get(axis.label) for axis in grid.axes}
    # A column for each figure of each kind, priority or tenant would be too many for a table.
    jobs = summary.get("jobs", {})
    for part in [name for name in jobs if name.startswith("by_")]:
        del jobs[part]
    if BOTTLENECKS in summary:
        summary[BOTTLENECKS] = "; ".join(summary[BOTTLENECKS])
    figures = {name: value for name, value in flatten(summary) if name not in columns}
    path = run.folder.relative_to(out).as_posix()
    return {**columns, "offered_load": run.load, **figures, "path": path}


def _write_rows(out: Path, rows: list[dict[str, Any]]) -> list[str]:
    """Write the results table as Parquet and CSV; returns the names."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():  # of one type: a text among numbers makes all of them texts
        kinds = {float if isinstance(v, int | float) and not isinstance(v, bool) else type(v) for v in values}
        if len(kinds - {type(None)}) > 1:
            columns[name] = [None if v is None else str(v) for v in values]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    disk.write_table(out / f"{RESULTS}.parquet", pa.table(columns))
    disk.write_text(out / f"{RESULTS}.csv", text.getvalue())
    return [f"{RESULTS}.parquet", f"{RESULTS}.csv"]
