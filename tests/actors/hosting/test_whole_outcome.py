"""Whatever a run tells, but how long it took, is the same for any number of partitions: counters and statistics too."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from emulations import run_windows, with_dynamics
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.compiling.rows import is_tree
from actors.hosting.outcome import Observe, Outcome
from actors.kernel.compiled import config
from actors.scheduler import Scheduler, needs_global_view
from actors.schedulers.registry import built_in_schedulers
from actors.setting import Costs, Dynamics, Estimates, Network, Setting
from emu.running.clocks import describe_clock
from tests.actors.parameter_cases import Where, setting_for

OWN = {"wall_s", "compile_s", "peak_rss_mb", "partitions", "windows", "restarts", "live", "recorded"}
"""Of an outcome, what may depend on how it was computed."""
COSTS = {
    "jobs": st.sampled_from([Costs(), Costs("fixed", per_message_s=0.05), Costs("fixed", 0.3, 0.2, 0.1)]),
    "coflows": st.sampled_from([Costs(), Costs("fixed", per_message_s=1e-4, per_flow_s=1e-4)]),
    "dags": st.sampled_from([Costs(), Costs("fixed", 0.02, 0.1, 0.1)]),
}
EXAMPLES = 3 if config.DISABLE_JIT else 4


def divisible() -> list[Scheduler]:
    return [s for s in built_in_schedulers() if "always" not in s.global_view]


def reported(setting: Setting, outcome: Outcome) -> dict[str, Any]:
    """All that is reported of a run, in a form that can be compared."""
    arrays = setting.workload.arrays()
    arrivals = arrays.arrival_ns if setting.scheduler.family == "coflows" else arrays.submit_ns
    fields = {f.name: getattr(outcome, f.name) for f in dataclasses.fields(outcome) if f.name not in OWN}
    return {**fields, "schedulers": describe_clock(dataclasses.replace(outcome, windows=0), None, arrivals)}


def differing(one: Any, other: Any) -> list[str]:
    """Where two values differ."""
    if is_tree(one) and is_tree(other):
        one, other = one._asdict(), other._asdict()
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        return [f"{k}.{d}" for k in names for d in differing(one.get(k), other.get(k))]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        equal = one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    else:
        equal = type(one) is type(other) and one == other
    return [] if equal else [""]


@pytest.mark.parametrize("scheduler", divisible(), ids=lambda s: s.name)
def test_everything_is_the_same_for_any_number_of_partitions(scheduler: Scheduler) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(
        partitions=st.integers(2, 8),
        costs=COSTS[scheduler.family],
        rough=st.booleans(),
        seed=st.integers(0, 99),
    )
    def check(partitions: int, costs: Costs, rough: bool, seed: int) -> None:
        setting = dataclasses.replace(setting_for(scheduler, Where(costs=costs), {}), seed=seed)
        period_s = 1.0
        if scheduler.family == "coflows":
            setting, period_s = dataclasses.replace(setting, network=Network(delay_s=0.001)), 0.01
            partitions = min(partitions, 6)  # of five ports and a coordinator
        elif scheduler.family == "dags":
            partitions = min(partitions, 6)  # of five machines and a resource manager
            if rough:
                setting = dataclasses.replace(
                    setting,
                    network=Network(0.01, spread_s=0.02),
                    estimates=Estimates("random", 0.5, demands=True),
                    dynamics=Dynamics(mtbf_s=20.0, mttr_s=3.0, detection_s=0.5, straggler_share=0.2),
                )
        elif rough:
            setting = with_dynamics(setting)
        if needs_global_view(scheduler, setting.parameters):
            return
        observe = Observe(timeline_period_s=period_s, tasks=True)
        whole = reported(setting, run_windows(setting, observe, 1))
        assert differing(whole, reported(setting, run_windows(setting, observe, partitions))) == []

    check()
