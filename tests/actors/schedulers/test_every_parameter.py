"""Every parameter of every scheduler changes what comes out: none is accepted and ignored.

The emulations of a case differ in one parameter. What differs must be of the run: which tasks ran where and when, what
the mechanisms counted, the timeline. Cases are in `parameter_cases`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from emulations import OBSERVED, digest, run_setting
from parameter_cases import VALUES, WHERE, case_of, setting_for

from actors.scheduler import Parameter, Scheduler
from actors.schedulers.registry import built_in_schedulers

AWARE = {s.build: s for s in built_in_schedulers() if s.constrained}
# Of two schedulers with the same code the constraint-aware one: it has jobs with constraints, and jobs without.
DISTINCT = [s for s in built_in_schedulers() if s.parameters and (s.constrained or s.build not in AWARE)]

# What it ends depends on the machine: tests/actors/schedulers/coflows/test_integer_programs.py
BY_THE_CLOCK = {"time_limit_s"}


@pytest.mark.parametrize("scheduler", DISTINCT, ids=lambda s: s.name)
def test_every_parameter_changes_the_result(scheduler: Scheduler) -> None:
    ignored = []
    for parameter in scheduler.parameters:
        if parameter.name in BY_THE_CLOCK:
            continue
        case = case_of(scheduler, parameter)
        found = [digest(run_setting(setting, OBSERVED)) for setting in case.settings()]
        pairs = combinations(zip(case.values, found, strict=True), 2)
        ignored += [f"{parameter.name}: {one} or {other}" for (one, a), (other, b) in pairs if a == b]
    assert not ignored, f"{scheduler.name} gives the same with {', '.join(ignored)}"


def test_schedulers_that_are_left_out_have_the_parameters_of_their_twin() -> None:
    left_out = [s for s in built_in_schedulers() if s.parameters and s not in DISTINCT]
    assert [s.name for s in left_out] == ["sparrow", "hawk", "eagle", "central-lwl"]
    for scheduler in left_out:
        assert AWARE[scheduler.build].parameters is scheduler.parameters


def test_there_are_no_cases_of_parameters_that_are_not_there() -> None:
    names = {p.name for s in built_in_schedulers() for p in s.parameters}
    own = {f"{s.name}.{p.name}" for s in built_in_schedulers() for p in s.parameters}
    assert set(VALUES) <= names
    assert set(WHERE) <= names | own


def test_what_parameters_go_with_is_there() -> None:
    """Every need names a parameter of some of its schedulers, and values that it can have."""
    for scheduler in built_in_schedulers():
        own = {p.name: p for p in scheduler.parameters}
        for parameter in scheduler.parameters:
            needs = [need.partition("=") for need in parameter.needs]
            assert not needs or any(name in own for name, _, _ in needs), parameter.name
            for name, _, values in needs:
                if name in own and values:
                    assert set(values.split("|")) <= set(own[name].choices or ("false",)), parameter.name


UNMET = [(s, p) for s in DISTINCT for p in s.parameters if p.needs]


@pytest.mark.parametrize(("scheduler", "parameter"), UNMET, ids=lambda x: x.name)
def test_a_parameter_changes_nothing_without_what_it_goes_with(
    scheduler: Scheduler, parameter: Parameter
) -> None:
    """Nothing is refused that has an effect."""
    case = case_of(scheduler, parameter)
    without = unmet(scheduler, parameter)
    if without is None:  # the scheduler always has one of what it goes with
        return
    settings = [
        setting_for(scheduler, case.where, {**without, parameter.name: value}) for value in case.values
    ]
    found = {digest(run_setting(setting, OBSERVED)) for setting in settings}
    assert len(found) == 1, f"{parameter.name} of {scheduler.name} has an effect with {without}"


def unmet(scheduler: Scheduler, parameter: Parameter) -> dict[str, Any] | None:
    """Values of the parameters that one goes with under which it means nothing; None if there are none."""
    own = {p.name: p for p in scheduler.parameters}
    wanted: dict[str, set[str]] = {}
    for name, _, values in (need.partition("=") for need in parameter.needs):
        if name in own:
            wanted.setdefault(name, set()).update(values.split("|") if values else ())
    without: dict[str, Any] = {}
    for name, values in wanted.items():
        if own[name].kind == "choice":
            without[name] = next(choice for choice in own[name].choices if choice not in values)
        else:
            without[name] = "false" in values if own[name].kind == "flag" else 0
    if without.get("pilots") == "none":
        without["policy"] = "C"
    return without or None
