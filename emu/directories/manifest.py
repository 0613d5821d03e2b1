"""The manifest of a run directory: what was run, its status, and size and hash of every file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from emu.disk import check_may_be_written, flush, read_json, sha256_of, write_json
from workloads.errors import InputError

MANIFEST = "manifest.json"
RUNNING, FINISHED, INTERRUPTED, FAILED = "running", "finished", "interrupted", "failed"
NODES_FOR_LOAD = "nodes_for_load"
"""The manifest's name for the load that determined the number of nodes."""
SEAL = "sha256"
"""The manifest's name for the sha256 of the rest of it; manifests of earlier versions have none."""
_PROJECTS = ("emu-scheduler", "numpy", "numba", "pyarrow", "ray")
_SHAPES: dict[str, type] = {
    "schema_version": int,
    "status": str,
    "what": str,
    "seeds_version": int,
    "config": dict,
    "inputs": list,
    "versions": dict,
    "record": dict,
    "notes": list,
    "runs": list,
    "results": dict,
    "bytes": dict,
    "failures": dict,
    "process": dict,
    "error": str,
    "from_python": bool,
    NODES_FOR_LOAD: float,
}
"""All keys of a manifest."""


def write_manifest(out: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json`` with its seal; it is on the disk when this returns."""
    content = json.loads(json.dumps({name: value for name, value in manifest.items() if name != SEAL}))
    write_json(out / MANIFEST, {**content, SEAL: _seal(content)})
    flush(out / MANIFEST)
    flush(out)


def read_manifest(out: Path) -> dict[str, Any]:
    """Return the manifest of a run directory, without its seal; raise `InputError` if it is missing or damaged."""
    file = out / MANIFEST
    manifest = read_json(file, f"is not a run directory: it has no {MANIFEST}")
    if not isinstance(manifest, dict):
        raise InputError("is not a JSON object", file=file)
    seal = manifest.pop(SEAL, None)
    if seal is not None and seal != _seal(manifest):
        raise InputError(f"is damaged: {SEAL} is not that of its content", file=file)
    for name, value in manifest.items():
        wanted = _SHAPES.get(name)
        if wanted is None or not isinstance(value, (int, float) if wanted is float else wanted):
            raise InputError("is damaged, or of another version of Emu", file=file, field=name)
    _check_lists(manifest, file)
    manifest.setdefault("config", {})
    return manifest


def _check_lists(manifest: Mapping[str, Any], file: Path) -> None:
    """Refuse values of wrong types in lists and tables, and paths that lead out of the directory."""
    texts = {
        "results": [*manifest.get("results", {}), *manifest.get("results", {}).values()],
        "runs": manifest.get("runs", []),
        "notes": manifest.get("notes", []),
        "failures": [*manifest.get("failures", {}).values()],
    }
    for name, values in texts.items():
        if not all(isinstance(value, str) for value in values):
            raise InputError("is damaged: not all are texts", file=file, field=name)
    for name in ("results", "runs"):
        if any(
            Path(path).is_absolute() or ".." in Path(path).parts or "\0" in path
            for path in manifest.get(name, ())
        ):
            raise InputError("is damaged: a path leads out of the directory", file=file, field=name)
    wanted = ("what", "name", "sha256")
    for found in manifest.get("inputs", []):
        if not isinstance(found, dict) or not all(isinstance(found.get(part), str) for part in wanted):
            raise InputError("is damaged", file=file, field="inputs")


def _seal(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def results_of(out: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the part of a manifest that identifies the files of a directory: their sha256 and their size."""
    names = list(names)
    return {
        "results": {name: sha256_of(out / name) for name in names},
        "bytes": {name: os.stat(out / name).st_size for name in names},
    }


def damaged(out: Path, manifest: Mapping[str, Any], optional: Iterable[str] = ()) -> str | None:
    """Return the first file that differs from what the run wrote, and how; None if none does.

    Files in `optional` may be missing.
    """
    if "results" not in manifest:
        return f"{MANIFEST} names no results"
    sizes = manifest.get("bytes", {})
    for name, expected in manifest["results"].items():
        try:
            size = os.stat(out / name).st_size
            # For a file that has grown to terabytes the size is quicker to compare.
            if size != sizes.get(name, size):
                return f"{name} is not as it was written"
            check_may_be_written(out / name)
            if sha256_of(out / name) != expected:
                return f"{name} is not as it was written"
        except (FileNotFoundError, NotADirectoryError):
            if name not in optional:
                return f"{name} is missing"
        except InputError as error:
            return f"{name} {error.message}"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror or error}"
    return None


def emu_version() -> str:
    """Return the version of Emu that is installed."""
    return _version_of("emu-scheduler") or "0+unknown"  # run from a source tree that is not installed


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result can depend on."""
    import platform

    found = {project: _version_of(project) for project in _PROJECTS}
    return {"python": platform.python_version()} | {p: v for p, v in found.items() if v is not None}


@cache
def _version_of(project: str) -> str | None:
    """Return the installed version of a project, or None; it takes 2 ms to read."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(project)
    except PackageNotFoundError:
        return None
