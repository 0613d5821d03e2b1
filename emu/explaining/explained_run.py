"""The run that is explained: its scheduler and its settings, what it has recorded, and the plan to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from emu.configuration.event_selection import parse_events
from emu.configuration.keys import PARAMETERS
from emu.directories.manifest import MANIFEST
from emu.directories.names import WORKLOAD
from emu.families.registry import family_of_summary
from emu.results.result import Result
from workloads.catalogue import save_workload
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from emu.configuration.plan import Plan

_made: WeakKeyDictionary[Result, Plan | None] = WeakKeyDictionary()
"""The plans of runs of which several jobs are explained one after another."""


def of_config(result: Result, table: str, key: str, default: Any) -> Any:
    """Return a text of the resolved configuration of a run, or the parameters of a scheduler.

    Raises
    ------
    InputError
        The manifest has something else there.
    """
    values = result.manifest.get("config", {}).get(table, {})
    if isinstance(values, dict) and key not in values:
        return default
    value = values[key] if isinstance(values, dict) else None
    if not isinstance(value, dict if table == PARAMETERS else str):
        wanted = "names and values" if table == PARAMETERS else "a text"
        file = (result.path or Path()) / MANIFEST
        raise InputError(f"is damaged: want {wanted}", file=file, field=f"config.{table}.{key}")
    return value


def parameters_of(result: Result) -> Any:
    """Return the parameters of the scheduler of a run, by name, of its variant if it has one."""
    own = of_config(result, PARAMETERS, result.summary["scheduler"], None)
    return own if own is not None else of_config(result, PARAMETERS, result.summary["policy"], {})


def scheduler_of(result: Result) -> Scheduler | None:
    """Return the scheduler of a run; None where it is not found, such as one of a user's file that was removed."""
    from actors.schedulers.registry import find_scheduler

    # One that is no registered name stands in the configuration as the place of its class or object.
    policy = result.summary["policy"]
    for given in (policy, result.manifest.get("config", {}).get("scheduler")):
        try:
            found = find_scheduler(given) if isinstance(given, str) else None
        except InputError:
            continue
        if found is not None and found.policy == policy:
            return found
    return None


def rule_of(result: Result) -> str:
    """Return the rule of the scheduler of a run; empty where it is not known."""
    scheduler = scheduler_of(result)
    return "" if scheduler is None else scheduler.rule_with(parameters_of(result))


def title_of(result: Result, which: int | None = None) -> str:
    """Return what a run is, and before that the job, or coflow, of an id."""
    summary = result.summary
    family = family_of_summary(summary)
    network = of_config(result, "network", "scheduler", "none")
    over = "" if network == "none" else f", network {network}"
    run = f"{summary['scheduler']} on {summary['workload']}, {summary['nodes']:,} {family.node}s{over}"
    return run if which is None else f"{family.one} {which}, {run}"


def records_all(result: Result) -> bool:
    """Return whether a run has recorded the events of all jobs, from beginning to end."""
    chosen = parse_events(of_config(result, "output", "events", "none"))
    return chosen is not None and chosen.is_all and chosen.is_whole


def has_costs(result: Result) -> bool:
    """Return whether messages cost the schedulers of a run something."""
    return bool(of_config(result, "cost", "model", "none") != "none" or result.summary.get("clock") == "live")


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
