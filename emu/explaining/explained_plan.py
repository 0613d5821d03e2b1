"""The plan of a run that is explained: its workload and cluster, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from emu.directories.names import WORKLOAD
from emu.results.result import Result
from workloads.catalogue import save_workload
from workloads.errors import InputError

if TYPE_CHECKING:
    from emu.configuration.plan import Plan

_made: WeakKeyDictionary[Result, Plan | None] = WeakKeyDictionary()
"""The plans of runs of which several jobs are explained one after another."""


def plan_to_run_again(result: Result, settings: Mapping[str, Any]) -> Plan:
    """Return the plan of a run with other settings.

    Raises
    ------
    InputError
        Its inputs are missing, or this version refuses them.
    """
    from actors.hosting.cleanup import temporary
    from emu.configuration.plan import configure, prepare

    with temporary("explain") as folder:
        config = folder / "config.toml" if result.path is None else result.path / "config.toml"
        if result.path is None:
            config.write_text(result.config, encoding="utf-8")
            if result.workload is not None:
                save_workload(result.workload, config.parent / WORKLOAD)
        return prepare(configure(settings, config))


def plan_of(result: Result) -> Plan | None:
    """Return the plan of a run; None where its inputs have changed."""
    if result not in _made:
        try:
            plan = plan_to_run_again(result, {})
            same = _hashes(plan.inputs) == _hashes(result.manifest["inputs"])
        except (InputError, OSError):
            same = False
        _made[result] = plan if same else None
    return _made[result]


def _hashes(inputs: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the hashes of inputs, without the file of the workload, which may have moved."""
    return [one["sha256"] for one in inputs if one["what"] != "workload file"]


def keep_plan(result: Result, plan: Plan) -> None:
    """Keep the plan of a result for `plan_of`."""
    _made[result] = plan
