"""The input of a report: the runs in directories of any kind, and notes on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from emu.directories import run_directory as rd
from emu.report.page import paragraph
from emu.results.result import Result, read_result
from emu.sweeps.size_report import runs_of, size_sections
from workloads.errors import InputError


def read_runs(folders: Iterable[str | Path]) -> list[Result]:
    """Return the results in run directories; a comparison, or a run of several seeds, stands for its runs.

    Raise `InputError` for a folder that is not a run directory, is given twice, or whose run did not finish.
    """
    found: list[Result] = []
    for folder in map(Path, folders):
        manifest = rd.read_manifest(folder)
        rd.check_results(folder, manifest)
        if _is_size(manifest):
            found += map(read_result, runs_of(folder))
        elif "runs" in manifest:
            found += [read_result(folder / name) for name in manifest["runs"]]
        else:
            found.append(read_result(folder))
    paths = [r.path.resolve() for r in found if r.path is not None]
    twice = next((p for i, p in enumerate(paths) if p in paths[:i]), None)
    if twice is not None:
        raise InputError("is given twice", file=twice)
    return found


def sections_of(folders: Iterable[str | Path]) -> list[str]:
    """Return sections of a page besides those on runs: the answer of a search, and which runs failed."""
    parts: list[str] = []
    for folder in map(Path, folders):
        manifest = rd.read_manifest(folder)
        parts += [
            paragraph(f"failed: {folder / run}: {error}", "note")
            for run, error in manifest.get("failures", {}).items()
        ]
        if _is_size(manifest):
            parts += size_sections(folder)
    return parts


def _is_size(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest is of a search for a size."""
    return manifest.get("what") == "size"
