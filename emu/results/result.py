"""Results of a run: tables of jobs, timeline and tasks, a summary, and the directory they are kept in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu import disk
from emu.columns import make_table, null_unless
from emu.configuration.families import OwnWorkload
from emu.configuration.keys import COFLOWS, JOBS
from emu.directories import run_directory as rd
from emu.directories.names import CHECKPOINTS, CONFIG, SUMMARY, WORKLOAD
from emu.families.jobs.columns import CRV, LIVE_TIMELINE, TASKS, TIMELINE
from emu.families.jobs.columns import JOBS as JOB_COLUMNS
from emu.results.records import tidy, write_csv
from emu.results.shapes import check_table, checked_summary
from workloads.arrow import column, from_numpy, from_strings
from workloads.errors import InputError
from workloads.jobs import JobWorkload

TABLES = ("jobs", "coflows", "timeline", "crv", "tasks", "flows", "costs")
"""Of a result, and with ``.parquet`` the files of a run directory; each run has some of them."""
OPTIONAL = tuple(f"{name}.parquet" for name in ("crv", "tasks", "flows", "costs"))
"""Files that may be removed from a run directory, to save room."""

LONG_S = 60.0
"""From what wall time on a run is worth keeping in a temporary folder."""

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome


@dataclass(eq=False)
class Result:
    """What one run gave.

    Attributes
    ----------
    jobs, timeline : pyarrow.Table
        As ``docs/reference/results.md`` has their columns; ``.to_pandas()`` gives frames. A run of coflows has no
        jobs: None.
    tasks : pyarrow.Table | None
        With ``output.tasks``.
    coflows, flows : pyarrow.Table | None
        Of a run of coflows, in place of jobs and tasks.
    costs : pyarrow.Table | None
        With ``cost.model='measured'``.
    crv : pyarrow.Table | None
        Demand and supply of what constraints ask for over time, of schedulers that keep them.
    summary : dict
        The content of ``summary.json``.
    counters : dict of str to int
        What the scheduler's mechanisms did.
    config : str
        TOML that runs this again.
    manifest : dict
        Resolved configuration, versions, seed, inputs.
    notes : tuple of str
        What the user should know about the workload.
    path : Path | None
        The run directory, once there is one.
    """

    jobs: pa.Table
    timeline: pa.Table
    tasks: pa.Table | None
    summary: dict[str, Any]
    counters: dict[str, int]
    config: str
    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()
    workload: OwnWorkload | None = field(default=None, repr=False)
    path: Path | None = None
    costs: pa.Table | None = None
    crv: pa.Table | None = None
    coflows: pa.Table | None = None
    flows: pa.Table | None = None

    @property
    def heads(self) -> pa.Table:
        """What arrives, a row each: jobs, or coflows."""
        return self.jobs if self.coflows is None else self.coflows

    @property
    def family(self) -> str:
        """``jobs`` or ``coflows``: the name of the table of what arrives, and of its part of the summary."""
        return JOBS if self.coflows is None else COFLOWS

    def records(self) -> list[dict[str, Any]]:
        """Return all figures of the summary, a record each: group, metric, statistic, value."""
        return list(tidy(self.summary))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return `records` as CSV text, and write it to a file if one is given."""
        return write_csv(self.records(), path)

    def to_pandas(self) -> Any:
        """Return `records` as a frame; ``jobs.to_pandas()`` has the jobs."""
        import pandas as pd

        return pd.DataFrame(self.records())

    def save(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write a run directory and return its path.

        Parameters
        ----------
        out : path
        overwrite : bool
            Replace the run that is there.

        Raises
        ------
        InputError
            The directory holds something, or cannot be written.
        """
        with rd.claimed(out, self.manifest, self.config, overwrite=overwrite) as folder:
            return self.write(folder)

    def write(self, out: Path) -> Path:
        """Write the results into a claimed directory; the manifest, which calls it finished, comes last.

        Raises
        ------
        NotWritten
            The disk is full. Checkpoints are there still; without any, hours of work are saved in a temporary folder,
            which is named.
        """
        try:
            return self._write(out)
        except disk.NotWritten as error:
            long = self.summary.get("engine", {}).get("wall_s", 0.0) >= LONG_S
            if not long or (out / CHECKPOINTS).exists() or (kept := self._keep_elsewhere(out)) is None:
                raise
            raise error.with_advice(f"what was computed is in {kept}", stays=True) from None

    def _keep_elsewhere(self, out: Path) -> Path | None:
        import tempfile

        try:
            place = Path(tempfile.mkdtemp(prefix="emu-results-")) / out.name
            place.mkdir()
            rd.begin(place, self.manifest)
            return self._write(place)
        except (OSError, InputError):
            return None

    def _write(self, out: Path) -> Path:
        tables = {name: getattr(self, name) for name in TABLES}
        written = [f"{name}.parquet" for name, table in tables.items() if table is not None]
        for name in written:
            disk.write_table(out / name, tables[name.removesuffix(".parquet")])
        if self.workload is not None:
            self._write_workload(out)
        disk.write_text(out / CONFIG, self.config)
        disk.write_json(out / SUMMARY, self.summary)
        begun = {name: value for name, value in rd.read_manifest(out).items() if name == "record"}
        self.manifest = rd.conclude(out, {**self.manifest, **begun}, [CONFIG, SUMMARY, *written])
        self.path = out
        return out

    def _write_workload(self, out: Path) -> None:
        """Keep a workload that came from neither a name nor a path, so that ``config.toml`` can name it."""
        from workloads.catalogue import save_workload

        assert self.workload is not None
        save_workload(self.workload, out / WORKLOAD, overwrite=True)


def read_result(folder: str | Path) -> Result:
    """Return the result that a finished run directory holds.

    Raises
    ------
    InputError
        It is not a run directory, the run did not finish, or a file is missing or not as the run wrote it.
    """
    folder = Path(folder)
    manifest = rd.read_manifest(folder)
    if (held := manifest.get("what", "runs" if "runs" in manifest else None)) is not None:
        reads = "emu.resume(folder) reads them" if held == "runs" else "each run lies in a folder of its own"
        raise InputError(f"holds {'several runs' if held == 'runs' else f'a {held}'}: {reads}", file=folder)
    rd.check_results(folder, manifest, OPTIONAL)
    summary = checked_summary(disk.read_json(folder / SUMMARY, f"has no {SUMMARY}"), folder / SUMMARY)
    family = COFLOWS if COFLOWS in summary else JOBS
    there = [name for name in TABLES if _is_there(folder, f"{name}.parquet", manifest)]
    for name in (family, "timeline"):
        if name not in there:
            raise InputError(f"has no {name}.parquet", file=folder)
    tables = {name: _read_table(name, folder, family) if name in there else None for name in TABLES}
    config = disk.read_text(folder / CONFIG)
    return Result(
        **tables,
        summary=summary,
        counters=summary.get("counters", {}),
        config=config,
        manifest=manifest,
        notes=tuple(manifest.get("notes", ())),
        path=folder,
    )


def jobs_table(workload: JobWorkload, outcome: Outcome) -> pa.Table:
    """Return the table of jobs; times are exact to the nanosecond before they are turned into seconds."""
    arrays = workload.arrays()
    ideal_ns = np.maximum.reduceat(arrays.duration_ns, arrays.first_task[:-1])
    started, finished = outcome.start_ns >= 0, outcome.finish_ns >= 0
    jct_s = (outcome.finish_ns - arrays.submit_ns) / 1e9
    ideal_s = ideal_ns / 1e9
    sized = finished & (ideal_ns > 0)
    jobs = workload.jobs
    return make_table(
        JOB_COLUMNS,
        {
            "job_id": column(jobs, "job_id"),
            "submit_s": column(jobs, "submit_s"),
            "start_s": null_unless(started, outcome.start_ns / 1e9),
            "finish_s": null_unless(finished, outcome.finish_ns / 1e9),
            "jct_s": null_unless(finished, jct_s),
            "wait_s": null_unless(started, (outcome.start_ns - arrays.submit_ns) / 1e9),
            "ideal_s": ideal_s,
            "slowdown": null_unless(sized, jct_s / np.where(sized, ideal_s, 1.0)),
            "num_tasks": column(jobs, "num_tasks"),
            "mean_task_s": column(jobs, "mean_task_s"),
            "job_class": from_strings(np.where(outcome.is_long, "long", "short").tolist()),
            "constraint": jobs["constraint"].combine_chunks(),
            "tenant": jobs["tenant"].combine_chunks(),
        },
    )


def timeline_table(timeline: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return the table of a timeline."""
    columns = TIMELINE + tuple(c for c in LIVE_TIMELINE if c.name in timeline)
    return make_table(
        columns, {c.name: np.asarray(timeline[c.name], c.type.to_pandas_dtype()) for c in columns}
    )


def crv_table(series: Mapping[str, Any] | None) -> pa.Table | None:
    """Return the table of a monitor's series; None without.

    Parameters
    ----------
    series : mapping
        ``time_ns`` (K,), ``names`` of R resources, and ``demand``, ``supply`` and ``crv`` (K, R).
    """
    if series is None:
        return None
    times, names = np.asarray(series["time_ns"]), [str(name) for name in series["names"]]
    resource = from_numpy(np.tile(np.arange(len(names)), len(times)))
    return make_table(
        CRV,
        {
            "time_s": np.repeat(times / 1e9, len(names)),
            "resource": from_strings(names).take(resource),
            **{name: np.asarray(series[name], np.float64).ravel() for name in ("demand", "supply", "crv")},
        },
    )


def tasks_table(workload: JobWorkload, tasks: Mapping[str, npt.NDArray[np.int64]]) -> pa.Table:
    """Return the table of tasks."""
    first_task = workload.arrays().first_task
    counts = np.diff(first_task)
    started, finished = tasks["start_ns"] >= 0, tasks["finish_ns"] >= 0
    return make_table(
        TASKS,
        {
            "job_id": column(workload.tasks, "job_id"),
            "task": np.arange(workload.num_tasks) - np.repeat(first_task[:-1], counts),
            "node": null_unless(started, tasks["node"]),
            "start_s": null_unless(started, tasks["start_ns"] / 1e9),
            "finish_s": null_unless(finished, tasks["finish_ns"] / 1e9),
            "duration_s": column(workload.tasks, "duration_s"),
        },
    )


def _is_there(folder: Path, name: str, manifest: Mapping[str, Any]) -> bool:
    return name in manifest["results"] and (folder / name).exists()


def _read_table(name: str, folder: Path, family: str) -> pa.Table:
    path = folder / f"{name}.parquet"
    table = disk.read_table(path)
    check_table(name, table, family, path)
    return table
