"""Resuming a run that ended early, from its directory: ``emu run --resume DIR``."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from emu import disk
from emu.configuration.config import Given, Layer, Place, flatten, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.plan import KEPT_WORKLOAD, Plan, prepare
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG
from emu.results.result import Result, read_result
from emu.running.many_runs import computed
from emu.terminal import note
from workloads.errors import InputError

if TYPE_CHECKING:
    from emu.results.comparison import Comparison


def resume(
    folder: str | Path,
    *,
    scheduler: Any = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> Result | Comparison:
    """Go on with an interrupted run or comparison, and return its result; of a finished run, read it.

    Parameters
    ----------
    folder : path
        The run directory.
    scheduler : object, optional
        What the run was given as its scheduler, if that was an object (or a list with objects) of a Python program.
    progress : callable, optional
        As `emu.run` takes it, for a single run.

    Returns
    -------
    Result or Comparison
        What `emu.run` or `emu.compare` would have returned; its tables have the same bytes.

    Raises
    ------
    InputError
        It is not a run directory; its configuration or an input has changed; a file of a finished run is damaged; a
        process that is alive runs it.
    """
    out = Path(folder)
    if (found := read_finished(out)) is not None:
        return found
    with reopened(out, scheduler=scheduler) as plan:
        if plan is None:
            pass
        elif holds_several(out):
            from emu.running.comparing import run_plan, save_comparison

            comparison = run_plan(plan, out)
            save_comparison(comparison, out)
            return comparison
        else:
            from emu.running.emulation import execute

            result = execute(plan, 0, progress, out=out)
            result.write(out)
            return result
    return resume(out)


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
    ours, theirs = (dict(flatten(computed(of))) for of in (now, was))  # where it is hosted may be changed
    for name in [*theirs, *ours]:
        if ours.get(name) != theirs.get(name):
            shown = ["not given" if of.get(name) is None else repr(of[name]) for of in (ours, theirs)]
            raise InputError(
                f"--resume: {file} is not as the run began: {name} is {shown[0]} there, and was {shown[1]}; {remedy}"
            )


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
