"""The directory of many runs: created or resumed, and which of its runs are there and complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emu import disk
from emu.configuration.plan import HOSTING
from emu.configuration.seeds import SEEDS_VERSION
from emu.directories import run_directory as rd
from emu.directories.manifest import versions
from emu.directories.names import CONFIG
from emu.directories.provenance import provenance
from emu.terminal import note
from workloads.errors import InputError

NOT_THERE = "it is not finished"
"""The reason to compute a run that is not reported: it was never computed."""


def computed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's configuration that its result depends on."""
    return {name: value for name, value in config.items() if name not in HOSTING}


def reason_to_compute(folder: Path, begins: Mapping[str, Any]) -> str:
    """Return why the run that begins with a manifest must be computed; empty if `folder` holds it undamaged."""
    try:
        found = rd.read_manifest(folder)
    except InputError as error:
        return error.message if (folder / rd.MANIFEST).exists() else NOT_THERE
    if found.get("status") != rd.FINISHED:
        return NOT_THERE
    inputs = [[i["sha256"] for i in of.get("inputs", ())] for of in (found, begins)]
    if computed(found.get("config", {})) != computed(begins["config"]) or inputs[0] != inputs[1]:
        return "it is a run of another configuration or input"
    return rd.damaged(folder, found) or ""


def report_rerun(folder: Path, why: str) -> None:
    """Report that a finished run is computed again."""
    if why not in ("", NOT_THERE):
        note(f"{folder} is computed again: {why}")


@contextmanager
def opened(out: Path, what: str, config: Mapping[str, Any], overwrite: bool = False) -> Iterator[None]:
    """Within, the directory of many runs is locked by this process: a new one, or an existing one that is resumed.

    `what` is ``sweep`` or ``size``; `config`, dotted key to value, must be equal for a directory to be resumed, and is
    written as its ``config.toml``. Raise `InputError` if the directory holds something else, or is in use.
    """
    config = {name: value for name, value in config.items() if name.partition(".")[0] not in HOSTING}
    manifest = {"what": what, "seeds_version": SEEDS_VERSION, "config": config}
    manifest |= {"versions": versions(), "record": provenance()}
    if overwrite or not (out / rd.MANIFEST).exists():
        with rd.claimed(out, manifest, _to_toml(config), overwrite=overwrite):
            yield
        return
    with rd.claimed_again(out, "--out") as found:
        _check_same(out, found, manifest)
        rd.remove_leftovers(out)
        rd.begin(out, {**found, **manifest, "record": found.get("record", manifest["record"])})
        disk.write_text(out / CONFIG, _to_toml(config))
        with rd.running(out):
            yield


def _check_same(out: Path, found: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Refuse a directory whose manifest differs from this one; the error names the key that differs."""
    what, otherwise = manifest["what"], "choose another directory, or give --overwrite"
    if found.get("what") != what:
        raise InputError(
            f"--out: {out} holds a {found.get('what', 'run')}, not a {what}; choose another directory"
        )
    if found.get("seeds_version", 1) != SEEDS_VERSION:
        raise InputError(
            f"--out: {out} holds a {what} of another version of Emu, whose seeds did not vary the workload; "
            f"{otherwise}"
        )
    config, theirs = manifest["config"], found.get("config", {})
    for name in [*config, *theirs]:
        if config.get(name) != theirs.get(name):
            ours, was = (_shown(part.get(name)) for part in (config, theirs))
            raise InputError(
                f"--out: {out} holds another {what}: {name} is {ours} here and {was} there; {otherwise}"
            )


def _to_toml(config: Mapping[str, Any]) -> str:
    import tomli_w

    document: dict[str, Any] = {}
    for name, value in config.items():
        *tables, last = name.split(".")
        table = document
        for inner in tables:
            table = table.setdefault(inner, {})
        table[last] = value
    return tomli_w.dumps(document)


def _shown(value: Any) -> str:
    return "not given" if value is None else repr(value)
