"""Runs of jobs whose events are all recorded, under every scheduler of jobs and where things go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import emu
from actors.schedulers.registry import find_scheduler, scheduler_names

NODES = 40
IN_DETAIL = ("eagle", "yacc-d")
"""Of these all settings are tried each time, of others the plain one."""


def recorded(name: str, events: str = "all", jobs: int = 12, **settings: Any) -> emu.Result:
    """Run a part of the workload of Yahoo, all its tasks and the events that are asked for recorded."""
    kept = {"in_process": True, "output_events": events, "output_tasks": True}
    result = emu.run(name, "yahoo", NODES, workload_options={"jobs": jobs}, seed=3, **kept, **settings)
    assert isinstance(result, emu.Result)
    return result


def settings_of_jobs(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Yield each scheduler of jobs with each setting that it takes; -c differs only where jobs have constraints."""
    for name in scheduler_names("jobs"):
        for setting in settings:
            if (name.endswith("-c") and setting != "plain") or (
                setting == "failures" and find_scheduler(name).gangs
            ):
                continue
            slow = setting != "plain" and name not in IN_DETAIL
            yield pytest.param(
                name,
                setting,
                marks=[pytest.mark.slow("every scheduler in every setting")] if slow else [],
                id=f"{name}-{setting}",
            )
