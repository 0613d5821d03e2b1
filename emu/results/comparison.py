"""Results of several schedulers over the same workload and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from emu import disk
from emu.configuration.seeds import alike_note, head_of
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG
from emu.families.registry import find_family
from emu.results.comparison_tables import render_more, render_rows
from emu.results.measures import Row, read_measures
from emu.results.notebook import as_html
from emu.results.paired_comparison import compare, tolerance_of
from emu.results.reasons import render_bottlenecks, render_reasons
from emu.results.records import compared, tidy, wide, write_csv
from emu.results.result import Result, Summarising, read_result, summary_of
from workloads.units import parse_duration


@dataclass(eq=False, repr=False)
class Comparison:
    """Results of several schedulers over the same workload and seeds.

    Attributes
    ----------
    results : dict of str to list of Result
        By scheduler, the first being the baseline; one result a seed, in equal order.
    config : str
    manifest : dict
        Of the whole, as a `Result` has them.
    warmup_s : float
    notes : tuple of str
    path : Path | None
        The directory it was written to.
    failures : dict of str to str
        The folder of each run that failed, to its error. Its scheduler, or its seed, is not compared.
    """

    results: dict[str, list[Result]]
    config: str
    manifest: dict[str, Any]
    warmup_s: float = 0.0
    notes: tuple[str, ...] = ()
    path: Path | None = None
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """One summary per scheduler, of the run or of its seeds, with the comparison with the first scheduler."""
        first = next(iter(self.results))
        found = []
        for name, runs in self.results.items():
            summary = summary_of(runs)
            against = compared([row for row in self._rows if row.scheduler == name], first)
            found.append({**summary, **(against if len(self.results) > 1 else {}), **paths_of(runs)})
        return found

    @cached_property
    def _rows(self) -> list[Row]:
        return compare(self.results, self.warmup_s)

    @property
    def runs(self) -> list[list[Result]]:
        """Results, scheduler by scheduler."""
        return list(self.results.values())

    @property
    def family(self) -> str:
        """The name of the family of all runs, ``jobs``, ``coflows`` or ``dags``."""
        return self.runs[0][0].family

    def rows(self) -> list[Row]:
        """Return the comparison as numbers: of jobs short ones first, of coflows all of them first."""
        return list(self._rows)

    def to_text(self, columns: Sequence[str] | None = None, reasons: bool = False) -> str:
        """Return the comparison as a table.

        Parameters
        ----------
        columns : sequence of str, optional
            Figures to show, such as ``mean``, ``p99.9``, ``wait.p99``; by default mean, p50, p90 and p99.
        reasons : bool
            Whether to show what jobs and messages waited for, and how busy schedulers and nodes were.
        """
        shown = read_measures(columns, self.family)
        of_runs = {name: [r.summary for r in runs] for name, runs in self.results.items()}
        head = head_of(next(iter(of_runs.values())))
        tables = render_rows(self._rows, self.family, head, tolerance_of(self.results), shown)
        tables += render_more(self.results, self._rows, self.warmup_s)
        summaries = self.summaries
        found = render_reasons(summaries) if reasons else ""
        return tables + found + render_bottlenecks(summaries) + alike_note(of_runs) + self.failed_text()

    def _repr_html_(self) -> str:
        """Return the tables of the comparison as HTML, for notebooks."""
        failed = [f"<p>{escape(line)}</p>" for line in self.failed_text().splitlines()]
        sections = find_family(self.family)[Summarising].sections(self.results, self.warmup_s)
        return as_html(self._head, [*sections, *failed])

    def __repr__(self) -> str:
        place = "" if self.path is None else f" in {self.path}"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Comparison: {', '.join(self.results)} on {self._head}{place}{failed}>"

    @property
    def _head(self) -> str:
        """The workload, size and seeds of the runs."""
        return head_of([run.summary for run in self.runs[0]])

    def failed_text(self) -> str:
        """Return the runs that failed, a line each."""
        return "".join(f"failed: {path}: {error}\n" for path, error in self.failures.items())

    def records(self) -> list[dict[str, Any]]:
        """Return all figures, a record each, as ``comparison.csv`` has them."""
        first = next(iter(self.results))
        return [
            record
            for summary in self.summaries
            for record in tidy(summary, [r for r in self._rows if r.scheduler == summary["scheduler"]], first)
        ]

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return `records` as CSV text, and write it to a file if one is given."""
        return write_csv(self.records(), path)

    def to_pandas(self) -> Any:
        """Return one frame row per scheduler and group: count, figures, ratios, shares; means over the seeds.

        `records` has the intervals too, and all else that is in the summaries.
        """
        import pandas as pd

        return pd.DataFrame(wide(self._rows, self.family))


def read_comparison(folder: str | Path) -> Comparison:
    """Return the comparison that a finished directory holds.

    Raises
    ------
    InputError
        It did not finish, or a file has changed since it was written.
    """
    folder = Path(folder)
    manifest = rd.read_manifest(folder)
    rd.check_results(folder, manifest)
    results: dict[str, list[Result]] = {}
    for run in manifest["runs"]:
        result = read_result(folder / run)
        results.setdefault(result.summary["scheduler"], []).append(result)
    warmup_s = parse_duration(manifest["config"].get("warmup", 0.0), "warmup")
    notes = tuple(manifest.get("notes", ()))
    return Comparison(results, disk.read_text(folder / CONFIG), manifest, warmup_s, notes, folder)


def paths_of(runs: Sequence[Result]) -> dict[str, Any]:
    """Return where runs of a scheduler are: ``path``, of several runs their folder, and ``paths`` by seed."""
    found = [r.path for r in runs if r.path is not None]
    if len(found) < len(runs):
        return {}
    paths = [path.as_posix() for path in found]
    return {"path": paths[0]} if len(paths) == 1 else {"path": found[0].parent.as_posix(), "paths": paths}
