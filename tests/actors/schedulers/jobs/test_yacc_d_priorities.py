"""Full queues of yacc-d and priorities: one node and one scheduler against a program of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import NS, OBSERVED, digest, run_setting, run_windows, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from yacc_d_program import Program

from actors.environment import Costs, Dynamics, Preemption
from actors.setting import Setting
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

Row = tuple[float, list[float], int]
"""When a job arrives (s), how long its tasks take (s), and its priority."""
ONE_NODE = {"order": "fifo", "rebalance": False, "schedulers": 1, "heartbeat_s": 10.0}


def workload_of(*rows: Row, tenant: list[str] | None = None) -> JobWorkload:
    submit_s, tasks, priority = zip(*rows, strict=True)
    flat = [d for durations in tasks for d in durations]
    asked = Requests(priority=list(priority))
    return make_workload("jobs", submit_s, [len(d) for d in tasks], flat, tenant=tenant, requests=asked)


@st.composite
def overloaded(draw: st.DrawFn, nodes: int = 1, **more: Any) -> Setting:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, levels = draw(st.integers(1, 25)), draw(st.sampled_from([1, 2, 5]))
    rows = [
        (float(t), (rng.exponential(3, rng.integers(1, 4)) + 0.01).tolist(), int(rng.integers(0, levels)))
        for t in np.sort(rng.uniform(0, draw(st.sampled_from([2.0, 6.0])) * n, n))
    ]
    preemption = draw(
        st.sampled_from([None, Preemption(), Preemption(most=2), Preemption(below=3, oldest_first=True)])
    )
    setting = setting_of(
        "yacc-d",
        workload_of(*rows),
        nodes,
        cutoff_s=math.inf,
        network=draw(st.sampled_from([0.0, 0.1, 0.7])),
        **{
            **ONE_NODE,
            "queue_limit": draw(st.sampled_from([0, 1, 3])),
            "tries": draw(st.sampled_from([0, 2])),
            "heartbeat_s": draw(st.sampled_from([1.0, 4.0])),
            **more,
        },
    )
    return replace(setting, priorities=True, preemption=preemption)


@settings(max_examples=150)
@given(overloaded())
def test_tasks_start_as_in_a_program_of_its_own(setting: Setting) -> None:
    outcome = run_setting(setting)
    assert outcome.tasks is not None
    start, evicted = Program(setting).run()
    assert outcome.tasks["start_ns"].tolist() == start
    assert outcome.counters.get("evictions", 0) == evicted


@pytest.mark.slow("the conformance suite tries it in small cases")
@settings(max_examples=25)
@given(
    overloaded(nodes=4, schedulers=3, order="srjf", rebalance=True, rebalance_s=1.0),
    st.booleans(),
    st.booleans(),
)
def test_it_is_the_same_in_partitions_with_failures_and_costs(
    setting: Setting, fails: bool, costs: bool
) -> None:
    if costs:
        setting = replace(setting, costs=Costs("fixed", per_message_s=0.05, per_task_s=0.1))
    if fails:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=20.0, mttr_s=2.0, detection_s=1.0))
    whole = run_setting(setting, OBSERVED)
    if setting.network.delay_s > 0:
        assert digest(run_windows(setting, OBSERVED, 3)) == digest(whole)


@pytest.mark.slow("long runs, for a mean")
@pytest.mark.parametrize("bound", [{"bound": "length"}, {"bound": "wait", "queue_wait_s": 2.0}])
def test_those_of_high_priority_wait_less_in_an_overload(bound: dict[str, Any]) -> None:
    """Four nodes, ten schedulers, twice as much work as they can do, a tenth of it of high priority."""
    rng = np.random.default_rng(0)
    rows = [(i / 2, [float(x) for x in rng.exponential(4, 4)], int(i % 10 == 0) * 9) for i in range(200)]
    given = {"schedulers": 10, "queue_limit": 5, **bound}
    setting = setting_of("yacc-d", workload_of(*rows), 4, cutoff_s=math.inf, network=0.01, **given)
    outcome = run_setting(replace(setting, priorities=True))
    arrays, high = setting.workload.arrays(), np.array([p > 0 for _, _, p in rows])
    wait_s = (outcome.start_ns - arrays.submit_ns) / NS
    assert wait_s[high].mean() < 0.1 * wait_s[~high].mean()
