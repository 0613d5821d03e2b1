"""Tasks of yacc-d that wait at a scheduler: by priority and by tenant, against a program of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import NS, OBSERVED, constrained, digest, run_setting, run_windows, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from yacc_d_program import Program

from actors.environment import Dynamics
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

NO_QUEUES = {"queue_limit": 0, "rebalance": False, "choices": 100, "schedulers": 1}


def jobs(*rows: tuple[float, list[float], str | None, int]) -> JobWorkload:
    """Jobs that arrive at a time (s), with the durations of their tasks, a tenant and a priority."""
    counts, durations = [len(d) for _, d, *_ in rows], [x for _, d, *_ in rows for x in d]
    tenant, priority = [who for *_, who, _ in rows], [p for *_, p in rows]
    return make_workload(
        "jobs", [t for t, *_ in rows], counts, durations, tenant=tenant, requests=Requests(priority=priority)
    )


def starts(workload: JobWorkload, nodes: Any, **more: Any) -> list[float]:
    """Return the start of each task (s); heartbeats are 10 s apart, and messages take 1 s."""
    given = {**NO_QUEUES, "heartbeat_s": 10.0, **more}
    setting = setting_of("yacc-d", workload, nodes, cutoff_s=math.inf, network=1.0, **given)
    tasks = run_setting(replace(setting, priorities=True)).tasks
    assert tasks is not None
    return (tasks["start_ns"] / NS).tolist()


@pytest.mark.parametrize("high", [0, 9])
def test_many_of_high_priority_that_find_no_node_do_not_block_others(high: int) -> None:
    """100 jobs want node 1, which is busy for long; node 0 is free again at 11 s for a job behind them."""
    first = [(0.0, [90.0], None, 0), (0.0, [1.0], None, 0)]
    many = [(1.0 + i / 1000, [0.5], None, high) for i in range(100)]
    workload = jobs(*first, *many, (2.0, [3.0], None, 0))
    cluster = build_cluster("two", [1, 1], cpu_cores=[1, 4])
    sets = ["cores >= 4", "cores <= 1", *["cores >= 4"] * 100, ""]
    found = starts(with_sets(workload, sets), cluster)
    assert found[0] == 1.0
    assert found[-1] == (12.0 if high else 22.0)  # of one priority 64 are looked at in each search


@pytest.mark.parametrize(("last", "starts_s"), [(False, 12.0), (True, 22.0)])
def test_a_search_passes_all_of_a_priority_of_which_many_have_found_no_node(
    last: bool, starts_s: float
) -> None:
    """One of 140 of high priority could run where one of low priority starts, if it is not passed with the others."""
    place = 139 if last else 100  # a search looks at 64; those of the one before it are behind the others
    first = [(0.0, [90.0], None, 0), (0.0, [1.0], None, 0)]
    many = [(1.0 + i / 1000, [3.0 if i == place else 0.5], None, 9) for i in range(140)]
    workload = jobs(*first, *many, (2.1, [4.0], None, 0))
    sets = ["" if i == place else "cores >= 4" for i in range(140)]
    cluster = build_cluster("two", [1, 1], cpu_cores=[1, 4])
    found = starts(with_sets(workload, ["cores >= 4", "cores <= 1", *sets, ""]), cluster)
    assert found[2 + place] == starts_s
    assert found[-1] == (12.0 if last else 22.0)


def with_sets(workload: JobWorkload, texts: list[str]) -> JobWorkload:
    """Return the workload with a set of constraints for each job."""
    return constrained(workload, *texts)


@st.composite
def waiting(draw: st.DrawFn, **more: Any) -> Setting:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, nodes = draw(st.integers(1, 25)), draw(st.integers(2, 6))
    counts = rng.integers(1, 6, n)
    tenants = [["ads", "web", None][i] for i in (*range(3), *rng.integers(0, 3, n))][:n]
    levels = draw(st.sampled_from([1, 2, 9]))
    workload = make_workload(
        "waiting",
        np.sort(rng.uniform(0, draw(st.sampled_from([0.5, 2.0])) * n, n)),
        counts,
        rng.exponential(3, int(counts.sum())) + 0.01,
        tenant=tenants,
        requests=Requests(priority=rng.integers(0, levels, n).tolist()),
    )
    order = draw(st.sampled_from(["arrival", "fair", "fair", "capacity"]))
    given = {"backlog_order": order}
    if order == "fair" and n >= 2:
        given |= {"weights": "ads=3,web=0.5"}
    if order != "arrival" and draw(st.booleans()):
        given |= {"ceilings": "ads=0.5"}
    setting = setting_of(
        "yacc-d",
        workload,
        nodes,
        cutoff_s=math.inf,
        network=draw(st.sampled_from([0.0, 0.1, 0.7])),
        seed=draw(st.integers(0, 99)),
        **{**NO_QUEUES, "heartbeat_s": draw(st.sampled_from([1.0, 4.0])), **given, **more},
    )
    return replace(setting, priorities=True)


@settings(max_examples=100)
@given(waiting())
def test_tasks_start_as_in_a_program_of_its_own(setting: Setting) -> None:
    tasks = run_setting(setting).tasks
    assert tasks is not None
    assert tasks["start_ns"].tolist() == Program(setting).run()[0]


@pytest.mark.slow("the conformance suite tries it in small cases")
@settings(max_examples=30)
@given(waiting(schedulers=3, queue_limit=1), st.booleans())
def test_it_is_the_same_in_partitions_with_failures(setting: Setting, fails: bool) -> None:
    if setting.parameters["ceilings"]:
        setting = replace(setting, parameters={**setting.parameters, "schedulers": 1})
    if fails:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=20.0, mttr_s=2.0, detection_s=1.0))
    whole = run_setting(setting, OBSERVED)
    if setting.network.delay_s > 0 and setting.cluster.num_nodes >= 3:
        assert digest(run_windows(setting, OBSERVED, 3)) == digest(whole)
    if setting.parameters["ceilings"] and not fails:
        never_above(setting, whole)


def never_above(setting: Setting, outcome: Any) -> None:
    """Check that the tenant with a ceiling of a half never ran on more nodes."""
    of_job = np.array([who == "ads" for who in setting.workload.jobs["tenant"].to_pylist()])
    mine = np.repeat(of_job, np.diff(setting.workload.arrays().first_task))
    start, finish = outcome.tasks["start_ns"][mine], outcome.tasks["finish_ns"][mine]
    for time in start:
        assert np.count_nonzero((start <= time) & (finish > time)) <= setting.cluster.num_nodes / 2
