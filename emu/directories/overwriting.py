"""Replacing a run directory: files that Emu wrote are removed; if there are others, nothing is removed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from emu.directories import locks
from emu.directories.manifest import INTERRUPTED, MANIFEST, read_manifest, write_manifest
from emu.directories.names import (
    CHECKPOINTS,
    COMPARISON,
    CONFIG,
    EVENTS,
    FIGURES,
    REPORT,
    SUMMARY,
    WORKLOAD,
    is_report,
)
from emu.disk import BEGUN
from emu.families.registry import families
from workloads.errors import InputError
from workloads.readers.parquet import ALL_FILES

_FILES = frozenset(
    (MANIFEST, CONFIG, SUMMARY, locks.LOCK, COMPARISON, EVENTS, "results.parquet", "results.csv")
)
"""Besides the tables of runs."""
_PARTITION = re.compile(r"[A-Za-z0-9._()@-]+=.+")
_CHECKPOINT = re.compile(r"\.?\d{6,}(/(\d+\.npz|meta\.json))?|traces(/\d+\.trace)?")


def clear(out: Path) -> None:
    """Remove what a run directory holds, except for its lock and its manifest, whose status becomes `interrupted`.

    Raises
    ------
    InputError
        It holds what Emu did not write, or a run in it is being run; names ``--overwrite``.
    """
    if os.listdir(out) in ([], [locks.LOCK]):
        return
    if not _is_ours(out):
        raise InputError(f"--overwrite: {out} holds no run of Emu; choose another directory")
    if (alien := next(_foreign_files(out), None)) is not None:
        raise InputError(
            f"--overwrite: Emu did not write {alien}; choose another directory, or move that away"
        )
    for inner in sorted(file.parent for file in out.rglob(MANIFEST)):
        if inner != out and locks.is_held(inner):
            raise InputError(f"--overwrite: {inner} is being run by another process")
    with suppress(InputError):  # a damaged one is replaced
        write_manifest(out, {**read_manifest(out), "status": INTERRUPTED})
    locks.empty(out, keep=(MANIFEST, locks.LOCK))


def _is_ours(out: Path) -> bool:
    """Return whether a directory has a manifest of ours: a manifest.json alone may be of something else."""
    try:
        return bool(read_manifest(out))
    except InputError:
        return (out / MANIFEST).exists() and (out / CONFIG).exists()


def _foreign_files(folder: Path) -> Iterator[Path]:
    """Yield what Emu does not write into run directories."""
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if path.is_symlink() or not path.is_dir():
            if not _is_file_of_ours(path):
                yield path
        elif name == CHECKPOINTS:
            yield from _others(path, lambda inner: _CHECKPOINT.fullmatch(inner) is not None)
        elif name == WORKLOAD:
            yield from _others(path, lambda inner: inner in ALL_FILES)
        elif _PARTITION.fullmatch(name):
            yield from _foreign_files(path)
        else:
            yield path


def figure_names() -> tuple[str, ...]:
    """Return the prefixes of the names of all figures in run directories."""
    return (*FIGURES, *(name for family in families() for name in family.figures))


def _is_file_of_ours(path: Path) -> bool:
    """Return whether Emu wrote a file of a run directory: by its name, or a page by its beginning."""
    if path.name == REPORT:
        return is_report(path)
    is_table = path.suffix == ".parquet" and any(path.stem in family.tables for family in families())
    is_figure = path.suffix in (".svg", ".png") and path.name.startswith(figure_names())
    return path.name in _FILES or is_table or is_figure or bool(BEGUN.fullmatch(path.name))


def _others(folder: Path, is_ours: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the files in a folder, at any depth, whose path there is not one of ours."""
    for path in sorted(folder.rglob("*")):
        if not is_ours(path.relative_to(folder).as_posix()):
            yield path
