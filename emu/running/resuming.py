"""What is there of a run, or of many, and how one that ended early goes on: ``--resume``, or the same command."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from emu import disk
from emu.configuration.config import Given, Layer, Place, flatten, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.plan import HOSTING, KEPT_WORKLOAD, Plan, prepare
from emu.configuration.seeds import SEEDS_VERSION
from emu.directories import run_directory as rd
from emu.directories.manifest import versions
from emu.directories.names import CONFIG
from emu.directories.provenance import provenance
from emu.results.result import Result, read_result
from emu.terminal import note
from workloads.errors import InputError

if TYPE_CHECKING:
    from emu.results.comparison import Comparison


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
    for name, ours, theirs in differing(manifest["config"], found.get("config", {})):
        wrong = f"{name} is {ours} here and {theirs} there"
        raise InputError(f"--out: {out} holds another {what}: {wrong}; {otherwise}")


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


def differing(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the keys whose values differ, with both values in words."""
    for name in [*first, *other]:
        if first.get(name) != other.get(name):
            ours, theirs = ("not given" if of.get(name) is None else repr(of[name]) for of in (first, other))
            yield name, ours, theirs


def read_finished(out: Path) -> Result | Comparison | None:
    """Return the results of a finished directory; None if it must be resumed.

    If a file of one of several runs is damaged, that run is repeated, with a note; that of a single run is an
    `InputError`.
    """
    manifest = rd.read_manifest(out)
    if manifest.get("status") != rd.FINISHED or "what" in manifest:
        return None
    rd.remove_leftovers(out)
    if not holds_several(out):
        return read_result(out)
    from emu.results.comparison import read_comparison

    try:
        return read_comparison(out)
    except InputError as error:
        if not _has_damaged(out, ["", *manifest["runs"]]):
            raise  # no file is damaged, so that no run would be repeated
        note(f"{error}; it is made again")
        return None


def _has_damaged(out: Path, runs: Iterable[str]) -> bool:
    """Return whether a file of one of these runs, or of the folder itself, is not as it was written."""
    for run in runs:
        try:
            if rd.damaged(out / run, rd.read_manifest(out / run)):
                return True
        except InputError:
            return True
    return False


def holds_several(out: Path) -> bool:
    """Return whether a directory has runs of several schedulers or seeds below it."""
    return "runs" in rd.read_manifest(out)


@contextmanager
def reopened(out: Path, given: Layer | None = None, scheduler: Any = None) -> Iterator[Plan | None]:
    """Within, the directory of a run that ended early is locked by this process; yield the plan that it was begun with.

    Yield None if the run is done: its process was killed when all its results were written. `given` are keys about its
    hosting, such as the address of a Ray cluster; `scheduler` is that of `resume`. Raise `InputError` if the directory
    holds something else or is being run, or if its configuration or an input has changed.
    """
    with rd.claimed_again(out) as found:
        manifest = rd.settle(out, found)
        if manifest["status"] == rd.FINISHED and "runs" not in manifest:
            yield None
            return
        plan = _plan(out, manifest, given, scheduler)
        if "runs" not in manifest and not rd.has_checkpoint(out):
            note(f"{out} has no checkpoint: the run starts again from the beginning")
        rd.remove_leftovers(out)
        rd.begin(out, manifest)
        with rd.running(out):
            yield plan


def _plan(out: Path, manifest: Mapping[str, Any], given: Layer | None, scheduler: Any) -> Plan:
    """Return the plan that a run was begun with."""
    if "what" in manifest:
        raise InputError(f"--resume: {out} holds a {manifest['what']}; `emu {manifest['what']}` resumes it")
    if manifest.get("from_python") and scheduler is None:
        raise InputError(
            f"--resume: the scheduler of {out} was an object of a Python program; go on with it there, by"
            " emu.resume(folder, scheduler=…)"
        )
    _check_config(out, manifest)
    layer = layer_from_file(out / CONFIG)
    if manifest["config"].get("workload") == KEPT_WORKLOAD:
        layer["workload"] = Given(_kept_workload(out, manifest), Place("workload"))
    if scheduler is not None:
        layer["scheduler"] = Given(scheduler, Place("scheduler"))
    plan = prepare(resolve([layer, given or {}]))
    _check_inputs(out, manifest, plan)
    return plan


def _check_config(out: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a configuration that differs from the one that the run was begun with; write one that is missing again."""
    file, was = out / CONFIG, manifest.get("config", {})
    remedy = f"put it back as it was, or remove {file}, which is then written again from {rd.MANIFEST}"
    if not os.path.lexists(file):
        disk.write_text(file, tomli_w.dumps(was))
        return
    try:
        now = tomllib.loads(disk.read_text(file))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one
        raise InputError(
            f"--resume: {file} is not as it was written: {error or 'not TOML'}; {remedy}"
        ) from None
    before, after = (dict(flatten(computed(of))) for of in (was, now))  # where it is hosted may be changed
    for name, theirs, ours in differing(before, after):
        wrong = f"{name} is {ours} there, and was {theirs}"
        raise InputError(f"--resume: {file} is not as the run began: {wrong}; {remedy}")


def _kept_workload(out: Path, manifest: Mapping[str, Any]) -> Any:
    """Return the workload that a Python program gave, under the name it had there."""
    from dataclasses import replace

    from workloads.catalogue import load_workload

    names = [i["name"] for i in manifest.get("inputs", []) if i.get("what") == "workload"]
    workload = load_workload(out / "workload")
    return replace(workload, name=names[0]) if names else workload


def _check_inputs(out: Path, manifest: Mapping[str, Any], plan: Plan) -> None:
    """Refuse to mix results of different inputs."""
    # Paths may have been given from another folder.
    now = {(found["what"], Path(found["name"]).name): found["sha256"] for found in plan.inputs}
    for was in manifest.get("inputs", []):
        if now.get((was["what"], Path(was["name"]).name)) != was["sha256"]:
            raise InputError(
                f"--resume: the {was['what']} {was['name']} has changed since {out} was begun; start again "
                f"from the beginning with --config {out / CONFIG} and another --out"
            )
