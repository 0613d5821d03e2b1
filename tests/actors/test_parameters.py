"""Every parameter of every scheduler changes what comes out in some case, or says what it goes with."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from conformance import (
    SCHEDULERS,
    planned,
)
from emulations import OBSERVED, digest, run_setting

from actors.hosting.outcome import Outcome
from actors.scheduler import Parameter, Scheduler, resolve_parameters
from emu.families.drawn_cases import values_of

SEARCHED = 30


AWARE = {s.build: s for s in SCHEDULERS.values() if s.constrained}
# Of two schedulers with the same code the constraint-aware one: it has jobs with constraints, and jobs without.
DISTINCT = [s.name for s in SCHEDULERS.values() if s.parameters and (s.constrained or s.build not in AWARE)]
_SLOTS = {
    "first_limit_bytes": 2**19,
    "factor": 2.0,
    "starvation": "slots",
    "interval_s": 0.001,
    "thin_limit": 0,
}
_CONTENDED = {"crv_threshold": 0.0, "heartbeat_s": 1.0, "least_probes": 3, "admission": True}
COUNTS_WITH = {
    "slot_intervals": _SLOTS,
    "share": {**_SLOTS, "slot_intervals": 4},
    "least_intervals": {**_SLOTS, "slot_intervals": 4},
    "queues": {"first_limit_bytes": 2**19, "factor": 2.0},
    "window": _CONTENDED,
    "candidates": _CONTENDED,
    "load_gate": {"heartbeat_s": 1.0, "least_probes": 3},
}
"""Values of other parameters with which a parameter counts in cases as small as these."""
TRIED = {
    "queues": (10, 1),
    "steal_limit": (10_000, 1),
    "slot_intervals": (2, 16),
    "share": (1, 4),
    "window": (50, 1),
    "candidates": (1, 5),
}
"""Values of parameters, where those that are near the default are too much for such cases."""
BY_THE_CLOCK = {"time_limit_s"}  # what it ends depends on the machine: test_integer_programs.py
# With so few coflows only weights let them matter: `wdcoflow`, which has the same code, shows them.
BY_WEIGHTS = {("dcoflow", "reject"), ("dcoflow", "congested")}


def shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def wanted_for(scheduler: Scheduler, parameter: Parameter, met: bool) -> dict[str, Any] | None:
    """Return values of the parameters that one goes with, under which it counts, or under which none of them does.

    None: there are none.
    """
    own = {p.name: p for p in scheduler.parameters}
    values: dict[str, Any] = {}
    for name, _, texts in (need.partition("=") for need in parameter.needs):
        if name not in own:
            continue
        of_need = own[name]
        tried = [value for value in (of_need.default, *values_of(of_need)) if value is not None]
        means = [shown(value) in texts.split("|") if texts else bool(value) for value in tried]
        if met in means:
            values[name] = tried[means.index(met)]
            if met:  # one of them is enough
                break
        elif not met:
            return None
    return values or (None if not met else {})


@pytest.mark.slow("each value of each parameter")
@pytest.mark.parametrize("name", DISTINCT)
def test_every_parameter_changes_the_result(name: str) -> None:
    scheduler, ignored = SCHEDULERS[name], []
    for parameter in scheduler.parameters:
        if parameter.name in BY_THE_CLOCK or (name, parameter.name) in BY_WEIGHTS:
            continue
        if equal := alike(scheduler, parameter):
            ignored.append(f"{parameter.name}: {equal}")
    assert not ignored, f"{name} gives the same with {'; '.join(ignored)}"


def alike(scheduler: Scheduler, parameter: Parameter) -> set[tuple[Any, Any]]:
    """Return pairs of values with which a scheduler gave the same in all cases that were searched."""
    testing = __import__(f"emu.families.{scheduler.family}.testing", fromlist=["TEXTS"])
    scale_s = 2.0 if scheduler.family == "jobs" else 1.5 if scheduler.family == "dags" else 0.006
    scale = {"duration": scale_s, "size": 2.0**20}.get(parameter.kind, 1.0)
    values = list(
        dict.fromkeys((parameter.default, *values_of(parameter, scale, getattr(testing, "TEXTS", {}))))
    )
    values = [*TRIED.get(parameter.name, values)]
    exact = parameter.kind in ("flag", "choice")
    pairs = {*combinations(values if exact else [*values[:1], *values[-2:]], 2)}
    own = {p.name for p in scheduler.parameters}
    more = {name: value for name, value in COUNTS_WITH.get(parameter.name, {}).items() if name in own}
    given = (wanted_for(scheduler, parameter, met=True) or {}) | more
    for seed in range(SEARCHED):
        found = {
            value: digest(
                run_setting(planned(scheduler, seed, {**given, parameter.name: value}).setting, OBSERVED)
            )
            for value in dict.fromkeys(value for pair in pairs for value in pair)
        }
        pairs = {(one, other) for one, other in pairs if found[one] == found[other]}
        if not pairs or (not exact and len(set(found.values())) > 1):
            return set()
    return pairs


def reported_of_tasks(outcome: Outcome) -> tuple[bytes, ...]:
    """Return nodes, starts and ends of all tasks."""
    assert outcome.tasks is not None
    return tuple(column.tobytes() for column in outcome.tasks.values())


UNMET = [(name, p.name) for name in DISTINCT for p in SCHEDULERS[name].parameters if p.needs]


@pytest.mark.parametrize(("name", "parameter"), UNMET)
def test_a_parameter_changes_nothing_without_what_it_goes_with(name: str, parameter: str) -> None:
    """Nothing is refused that has an effect."""
    scheduler = SCHEDULERS[name]
    (own,) = (p for p in scheduler.parameters if p.name == parameter)
    without = wanted_for(scheduler, own, met=False)
    if without is None:  # the scheduler always has one of what it goes with
        return
    setting = planned(scheduler, 0, without).setting
    found = set()
    # For it nodes report their load, though no scheduler reads that then.
    tell = reported_of_tasks if parameter == "load_gate" else digest
    for value in [own.default, *values_of(own)][:3]:
        parameters = resolve_parameters(scheduler, {**setting.parameters, **without, parameter: value})
        found.add(tell(run_setting(replace(setting, parameters=parameters), OBSERVED)))
    assert len(found) == 1, f"{parameter} of {name} has an effect with {without}"
