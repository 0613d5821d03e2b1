"""Results of a run: tables, a summary, and the directory they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu import disk
from emu.configuration.seeds import summary_head
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG, EVENTS, SUMMARY, WORKLOAD
from emu.families.registry import families, family_of_summary
from emu.results.events import SCHEMA, read_events
from emu.results.measures import PAGE, Fact, facts_of
from emu.results.metrics import BoolArray, after_warmup, summarise_replicas
from emu.results.notebook import as_html
from emu.results.records import tidy, write_csv
from emu.results.validation import check_table, checked_summary
from workloads.arrow import optional_column
from workloads.errors import InputError, NotWritten
from workloads.hints import did_you_mean

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from emu.configuration.plan import Plan

LONG_S = 60.0
"""Wall time from which a run is worth keeping in a temporary folder."""
ATTEMPTS = "attempts"
"""The table of the attempts that came to nothing by evictions and failures, of a run that records its tasks."""
ENDED_EARLY = frozenset({"evictions", "tasks_lost", "run_again"})
"""Counters of these attempts."""


@dataclass(eq=False, repr=False)
class Result:
    """The results of one run.

    Attributes
    ----------
    tables : dict of str to pyarrow.Table
        By name, with the columns of ``docs/reference/results.md``. Each is an attribute too, None where the run does
        not have it: ``jobs`` and ``timeline``; ``tasks`` with ``output.tasks``, and ``attempts`` at tasks that were
        evicted or lost; ``coflows`` and ``flows`` of a run of coflows, in place of jobs and tasks; ``costs`` with
        ``cost.model='measured'``; ``crv`` of schedulers that monitor constraints, the demand and supply of resources
        over time. ``.to_pandas()`` gives frames.
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

    tables: dict[str, pa.Table]
    summary: dict[str, Any]
    counters: dict[str, int]
    config: str
    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()
    workload: Any = field(default=None, repr=False)
    path: Path | None = None
    recorded: Callable[[], Iterator[pa.RecordBatch]] | None = field(default=None, repr=False)

    @cached_property
    def events(self) -> pa.Table | None:
        """The content of ``events.parquet``, with ``output.events``; None where events were not recorded."""
        if self.path is not None and (self.path / EVENTS).exists():
            return read_events(self.path / EVENTS)
        if self.recorded is None:
            return None
        return pa.Table.from_batches(self.recorded(), SCHEMA)

    @property
    def num_events(self) -> int:
        """How many rows `events` has, without reading them."""
        if "events" not in vars(self) and self.path is not None and (self.path / EVENTS).exists():
            return disk.num_rows(self.path / EVENTS)
        return 0 if self.events is None else self.events.num_rows

    if TYPE_CHECKING:  # any other attribute is an error for type checkers too
        jobs: ClassVar[pa.Table]
        tasks: ClassVar[pa.Table]
        attempts: ClassVar[pa.Table]
        coflows: ClassVar[pa.Table]
        flows: ClassVar[pa.Table]
        timeline: ClassVar[pa.Table]
        costs: ClassVar[pa.Table]
        crv: ClassVar[pa.Table]
        resources: ClassVar[pa.Table]
        fairness: ClassVar[pa.Table]
    else:

        def __getattr__(self, name: str) -> Any:
            known = {table for family in families() for table in family.tables}
            if name in known:
                return self.tables.get(name)
            if name.startswith("__"):
                raise AttributeError(name)
            hint = did_you_mean(name, [*known, *(n for n in dir(type(self)) if not n.startswith("_"))])
            raise AttributeError(f"a Result has no {name!r}{hint}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    def __repr__(self) -> str:
        head = summary_head(self.summary)
        tables = ", ".join(f"{name} {table.num_rows:,}" for name, table in self.tables.items())
        place = "" if self.path is None else f" in {self.path}"
        return f"<Result: {head}{place}; rows: {tables}>"

    @property
    def heads(self) -> pa.Table:
        """The table of jobs, or of coflows."""
        return self.tables[family_of_summary(self.summary).heads]

    @property
    def family(self) -> str:
        """The name of its family, ``jobs``, ``coflows`` or ``dags``."""
        return family_of_summary(self.summary).name

    @property
    def warmup_s(self) -> float:
        """How long after the first arrival jobs are left out (``warmup`` of the configuration)."""
        from workloads.units import parse_duration

        return parse_duration(self.manifest.get("config", {}).get("warmup", 0.0), "warmup")

    def drop_large(self) -> None:
        """Drop the tables of parts, such as tasks, and their attempts, which are large and on the disk."""
        large = (family_of_summary(self.summary).part, ATTEMPTS)
        self.tables = {name: table for name, table in self.tables.items() if name not in large}

    def _repr_html_(self) -> str:
        """Return the tables of the summary as HTML, for notebooks."""
        family = family_of_summary(self.summary)
        own = family[Summarising]
        parts = own.sections({self.summary["scheduler"]: [self]}, self.warmup_s)
        return as_html(summary_head(self.summary), parts, facts_of(own.facts, self.summary, PAGE))

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
        """Write a run directory and return its path; `overwrite` replaces the run that it holds.

        Raises
        ------
        InputError
            The directory is not empty, or cannot be written.
        """
        with rd.claimed(out, self.manifest, self.config, overwrite=overwrite) as folder:
            return self.write(folder)

    def write(self, out: Path) -> Path:
        """Write the results into a claimed directory; the manifest, which calls it finished, comes last.

        Raises
        ------
        NotWritten
            The disk is full. Without checkpoints, the results of a long run are saved in a temporary folder, which the
            message names.
        """
        try:
            return self._write(out)
        except NotWritten as error:
            long = self.summary.get("engine", {}).get("wall_s", 0.0) >= LONG_S
            if not long or rd.has_checkpoint(out) or (kept := self._keep_elsewhere(out)) is None:
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
        written = []
        for name, table in self.tables.items():
            written.append(f"{name}.parquet")
            disk.write_table(out / written[-1], table)
        if self.recorded is not None:
            written.append(EVENTS)
            disk.write_batches(out / EVENTS, SCHEMA, self.recorded())
        if self.workload is not None:
            self._write_workload(out)
        disk.write_text(out / CONFIG, self.config)
        disk.write_json(out / SUMMARY, self.summary)
        begun = {name: value for name, value in rd.read_manifest(out).items() if name == "record"}
        self.manifest = rd.conclude(out, {**self.manifest, **begun}, [CONFIG, SUMMARY, *written])
        self.path = out
        return out

    def _write_workload(self, out: Path) -> None:
        """Keep a workload that was given as an object, so that ``config.toml`` can name it."""
        from workloads.catalogue import save_workload

        assert self.workload is not None
        save_workload(self.workload, out / WORKLOAD, overwrite=True)


Runs = Mapping[str, list[Result]]
"""Results by scheduler, one a seed in equal order; the first scheduler is the one that others are compared with."""


@dataclass(frozen=True, kw_only=True)
class Summarising:
    """What a family does with the outcome of a run.

    Attributes
    ----------
    results : (plan, outcome) -> (tables, figures)
        The tables of a run, and entries for its summary; ``figures[heads]`` is its own part.
    keeps_parts : (plan) -> bool
        Whether what became of each part must be recorded.
    add_waits : (plan, result, outcome, events, chosen)
        Add to the tables of a result what its events show about its parts. ``chosen`` are the numbers of the jobs, or
        coflows, whose events are recorded; None: all.
    metrics : (run) -> mapping of str to ndarray of float64
        The family's metrics of each job, or coflow, by name; NaN for no value.
    sections : (results, warmup_s) -> list of str
        The tables of runs that are compared, as HTML.
    title : str
        Of the table of a run's figures; by default it says what its columns are.
    names : mapping of str to str
        The groups in it, in order, to what each is called there.
    tables : (figures, intervals) -> list of tables of cells
        The other tables of a summary, heads first: from its own part, and that of its 95 % intervals.
    facts : sequence of Fact
        What is said of a run below its tables, and on a page in a table.
    reasons : (summaries) -> sequence of Fact
        What of its own explains completion times, in summaries that are shown side by side.
    """

    results: Callable[[Plan, Outcome], tuple[dict[str, pa.Table | None], dict[str, Any]]]
    keeps_parts: Callable[[Plan], bool] = lambda plan: bool(plan.config["output.tasks"])
    add_waits: Callable[
        [Plan, Result, Outcome, Iterator[pa.RecordBatch], npt.NDArray[np.int64] | None], None
    ] = lambda *_: None
    metrics: Callable[[Result], Mapping[str, npt.NDArray[np.float64]]]
    sections: Callable[[Runs, float], list[str]] = lambda results, warmup_s: []
    title: str = ""
    names: Mapping[str, str] = field(default_factory=lambda: {"all": "all"})
    tables: Callable[[Mapping[str, Any], Mapping[str, Any]], list[list[list[str]]]] = lambda *_: []
    facts: Sequence[Fact] = ()
    reasons: Callable[[Sequence[Mapping[str, Any]]], Sequence[Fact]] = lambda summaries: ()


def counted(run: Result, group: str, warmup_s: float) -> BoolArray:
    """Return which jobs, or coflows, of a group arrive after the warm-up."""
    family = family_of_summary(run.summary)
    return after_warmup(optional_column(run.heads, family.arrival), warmup_s) & family.in_group(
        run.heads, group
    )


def values_of(run: Result, metric: str, group: str, warmup_s: float) -> npt.NDArray[np.float64]:
    """Return a metric of the jobs, or coflows, of a group that arrive after the warm-up; NaN for no value."""
    found = family_of_summary(run.summary)[Summarising].metrics(run)[metric]
    return found[counted(run, group, warmup_s)]


def summary_of(runs: Sequence[Result]) -> Mapping[str, Any]:
    """Return the summary of a run, or that of several seeds or instances."""
    return runs[0].summary if len(runs) == 1 else summarise_replicas([run.summary for run in runs])


def read_result(folder: str | Path) -> Result:
    """Return the result that a finished run directory holds.

    Raises
    ------
    InputError
        It is not a run directory, the run did not finish, or a file is missing or has changed.
    """
    folder = Path(folder)
    manifest = rd.read_manifest(folder)
    if (held := manifest.get("what", "runs" if "runs" in manifest else None)) is not None:
        reads = "each run lies in a folder of its own"
        if held == "runs":
            reads = f"give one of them, as {folder / next(iter(manifest['runs']), '')}; emu.resume(folder) reads all"
        raise InputError(f"holds {'several runs' if held == 'runs' else f'a {held}'}: {reads}", file=folder)
    tables_of_all = [item for family in families() for item in family.tables.items()]
    optional = {EVENTS, *(f"{name}.parquet" for name, table in tables_of_all if table.is_optional)}
    rd.check_results(folder, manifest, optional)
    summary = checked_summary(disk.read_json(folder / SUMMARY, f"has no {SUMMARY}"), folder / SUMMARY)
    family = family_of_summary(summary)
    names = dict.fromkeys(name for name, _ in tables_of_all)
    files = {name: folder / f"{name}.parquet" for name in names if f"{name}.parquet" in manifest["results"]}
    tables = {name: disk.read_table(file) for name, file in files.items() if file.exists()}
    for name in (family.heads, "timeline"):
        if name not in tables:
            raise InputError(f"has no {name}.parquet", file=folder)
    for name, table in tables.items():
        check_table(name, table, family, files[name])
    return Result(
        tables=tables,
        summary=summary,
        counters=summary.get("counters", {}),
        config=disk.read_text(folder / CONFIG),
        manifest=manifest,
        notes=tuple(manifest.get("notes", ())),
        path=folder,
    )
