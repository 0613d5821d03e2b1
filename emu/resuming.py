"""Going on with a run that ended early, from what its directory holds: ``emu run --resume DIR``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import run_directory as rd
from emu.config import Given, Layer, Place, resolve
from emu.config_file import layer_from_file
from emu.plan import KEPT_WORKLOAD, Plan, prepare
from emu.results import Result, read_result
from emu.terminal import note
from workloads.errors import InputError

if TYPE_CHECKING:
    from emu.comparison import Comparison


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
        It is not a run directory, an input has changed since, or a process that is alive runs it.
    """
    out = Path(folder)
    if rd.is_finished(out) and not holds_several(out):
        return read_result(out)
    plan = reopen(out, scheduler=scheduler)
    if holds_several(out):
        from emu.comparison import run_plan, save_comparison

        with rd.running(out):
            comparison = run_plan(plan, out)
            save_comparison(comparison, out)
        return comparison
    from emu.emulation import execute

    with rd.running(out):
        result = execute(plan, 0, progress, out=out)
        result.write(out)
    return result


def holds_several(out: Path) -> bool:
    """Return whether a directory has runs of several schedulers or seeds below it."""
    return "runs" in rd.read_manifest(out)


def reopen(out: Path, given: Layer | None = None, scheduler: Any = None) -> Plan:
    """Claim the directory of a run that ended early, and return the plan that it was begun with.

    Parameters
    ----------
    out : Path
    given : Layer, optional
        Keys that say where to go on with it, such as the address of a Ray cluster.
    scheduler : object, optional
        As in `resume`.

    Raises
    ------
    InputError
        It is not a run's, it is being run, or an input has changed.
    """
    manifest = rd.read_manifest(out)
    if "what" in manifest:
        raise InputError(
            f"--resume: {out} holds a {manifest['what']}; `emu {manifest['what']}` goes on with it"
        )
    if manifest.get("from_python") and scheduler is None:
        raise InputError(
            f"--resume: the scheduler of {out} was an object of a Python program; go on with it there, by"
            " emu.resume(folder, scheduler=…)"
        )
    rd.check_not_running(out, manifest, "--resume")
    layer = layer_from_file(out / rd.CONFIG)
    if manifest.get("config", {}).get("workload") == KEPT_WORKLOAD:
        layer["workload"] = Given(_kept_workload(out, manifest), Place("workload"))
    if scheduler is not None:
        layer["scheduler"] = Given(scheduler, Place("scheduler"))
    plan = prepare(resolve([layer, given or {}]))
    _check_inputs(out, manifest, plan)
    rd.take_up(out)
    if "runs" not in manifest and not (out / rd.CHECKPOINTS).is_dir():
        note(f"{out} has no checkpoint: the run starts anew")
    return plan


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
                f"--resume: the {was['what']} {was['name']} has changed since {out} was begun; start it anew with"
                f" --config {out / rd.CONFIG} and another --out"
            )
