"""Gangs that hold resources of nodes: examples by hand, and start by start against a program that shares no code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from batch_machine import Job, Machine, Outage, Preempt
from batch_on_nodes import run
from emulations import (
    NS,
    OBSERVED,
    Estimates,
    Network,
    Setting,
    digest,
    outages,
    run_setting,
    run_windows,
    setting_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import check_run

from actors.conditions import estimated_ns
from actors.environment import Preemption
from actors.hosting.outcome import Outcome
from actors.kernel.compiled import config
from actors.setting import Dynamics
from clusters.capacity import needs_of
from clusters.cluster import Cluster, build_cluster
from clusters.feasibility import drop_wide, wide_gangs
from clusters.schema import encode_texts
from emu.families.jobs.results import tasks_table
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests, gang_nodes, priorities
from workloads.transform.primitives import joined, take

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")


def gpu_nodes(*gpus: int) -> Cluster:
    """Nodes of four cores with these GPUs."""
    return build_cluster(
        "gpus", [1] * len(gpus), cpu_cores=4.0, **{"attr:gpus": encode_texts([*map(str, gpus)])}
    )


# Two nodes of four cores, the first of which has two GPUs. A message takes 1 s: a job that is placed at t starts at
# t + 1, and its end is known two messages after it has run. Nodes are filled in order.
TASKS, RUN_S = [2, 1, 1, 1, 1, 2, 1], [10.0, 5, 20, 20, 6, 4, 16]
BY_HAND = make_workload(
    "by hand",
    np.arange(7),
    TASKS,
    np.repeat(RUN_S, TASKS),
    requests=Requests(
        {"cpu_cores": [1.0, 3, 1, 1, 1, 3, 1], "attr:gpus": [1.0, 1, 0, 0, 0, 0, 0]},
        gang_nodes=[0, 0, 0, 0, 0, 2, 0],
        requested_s=[12.0, *RUN_S[1:]],
    ),
)


@pytest.mark.parametrize("nodes", [0, 2])
def test_gangs_that_never_fit_can_be_left_out(nodes: int) -> None:
    asked = Requests({"attr:gpus": [1.0, 1.0]}, gang_nodes=[nodes, 0])
    workload, cluster = make_workload("wide", [0, 1], [4, 3], [1.0] * 7, requests=asked), gpu_nodes(2, 0, 1)
    needs = needs_of(workload, cluster, workload.resources)
    kept = drop_wide(workload, gang_nodes(workload.jobs), cluster, needs)
    assert kept.arrays().submit_ns.tolist() == [NS]
    assert kept.notes[-1].startswith("1 of 2 jobs dropped")


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_partitions_do_not_change_what_gangs_get(scheduler: str) -> None:
    setting = setting_of(scheduler, joined([BY_HAND] * 3), gpu_nodes(2, 0), network=0.5)
    setting = replace(setting, resources=("cpu_cores", "attr:gpus"))
    assert digest(run_windows(setting, OBSERVED, 3)) == digest(run_setting(setting, OBSERVED))


def independent(
    setting: Setting, amounts: np.ndarray, capacity: np.ndarray, stacked: bool = False
) -> Machine:
    """What the independent program makes of a setting; what tasks need is [J, R], what nodes have [N, R].

    To the scheduler a task takes two delays longer.
    """
    workload, dynamics = setting.workload, setting.dynamics
    arrays, delay = workload.arrays(), round(setting.network.delay_s * NS)
    expected = estimated_ns(arrays.mean_ns, setting.estimates, setting.seed) + 2 * delay
    runs = np.split(arrays.duration_ns, arrays.first_task[1:-1])
    nodes = gang_nodes(workload.jobs)
    on = np.minimum(np.maximum(nodes, 0), [len(of) for of in runs])
    columns = (arrays.submit_ns, runs, expected, amounts, on, priorities(workload.jobs), nodes >= 0)
    found = [Job(*(np.asarray(value).tolist() for value in row)) for row in zip(*columns, strict=True)]
    down = []
    if (of := dynamics.outages) is not None:
        times = np.rint(np.stack([of.fail_s, of.repair_s]) * NS).tolist()
        down = [Outage(*row) for row in zip(of.number.tolist(), map(int, times[0]), times[1], strict=True)]
    detection = round(dynamics.detection_s * NS)
    preempt = None
    if (rule := setting.preemption) is not None and np.ptp(priorities(workload.jobs)) > 0:
        below = np.inf if rule.below is None else rule.below
        preempt = Preempt(rule.keeps, round(rule.cost_s * NS), rule.most, below, rule.oldest_first)
    machine = Machine(found, capacity.tolist(), delay, down, detection, stacked, preempt)
    return run(setting.scheduler.name, machine)


def assert_same(setting: Setting, outcome: Outcome, machine: Machine) -> None:
    """Compare the first starts of jobs, when and where tasks ran last, and what was lost."""
    first = setting.workload.arrays().first_task[1:-1]
    assert outcome.start_ns.tolist() == machine.first
    assert outcome.tasks is not None
    for name, wanted in (("start_ns", machine.starts), ("node", machine.nodes)):
        ran = [sorted(of.tolist()) for of in np.split(outcome.tasks[name], first)]
        assert ran == [sorted(of) for of in wanted], name
    if outcome.evicted is not None:
        assert outcome.evicted.tolist() == [[sum(times) for times in machine.times], machine.lost_us]
    counted = [outcome.counters.get(name, 0) for name in machine.counts._fields]
    assert counted == [*machine.counts]


PREEMPTION = st.none() | st.builds(
    Preemption,
    keeps=st.booleans(),
    cost_s=st.sampled_from([0.0, 0.5, 3.0]),
    most=st.sampled_from([1, 3, 1000]),
    below=st.sampled_from([None, 2]),
    oldest_first=st.booleans(),
)


@st.composite
def failures(draw: st.DrawFn, nodes: int, delay_s: float, horizon_s: int) -> Dynamics:
    """Outages of nodes, none of them for good; at times at which much happens only if messages take time."""
    if draw(st.booleans()):
        return Dynamics()
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    rows = []
    for node in range(nodes):
        times = rng.integers(0, 2 * horizon_s, 2 * rng.integers(0, 4)) / 2
        if delay_s == 0:
            times = times + rng.integers(1, NS, times.size) / NS
        times = np.unique(times)
        rows += [(f"node {node}", *of) for of in times[: times.size // 2 * 2].reshape(-1, 2).tolist()]
    if not rows:
        return Dynamics()
    return Dynamics(outages=outages(*rows), detection_s=draw(st.sampled_from([0.0, 0.5, 3.0])))


@st.composite
def gangs_on_nodes(draw: st.DrawFn) -> tuple[JobWorkload, Cluster, np.ndarray, np.ndarray]:
    """Gangs that need cores and GPUs of nodes that differ, in whole seconds: much happens at one instant."""
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    nodes, count = draw(st.integers(1, 6)), draw(st.integers(1, 40))
    capacity = np.stack([rng.integers(2, 9, nodes), rng.integers(0, 4, nodes)], axis=1)
    amounts = np.stack([rng.integers(0, 5, count), rng.choice([0, 0, 1, 2], count)], axis=1)
    widths, on, stated = np.ones(count, np.int64), np.zeros(count), draw(st.sampled_from([0.0, 0.5]))
    for job in range(count):
        held = amounts[job] > 0
        fit = (capacity[:, held] // amounts[job][held]).min(axis=1) if held.any() else np.full(nodes, 4)
        if not fit.any():
            amounts[job], fit = 0, np.full(nodes, 4)
        widths[job] = rng.integers(1, fit.sum() + 1)
        if rng.random() < stated:
            nodes_of_job = rng.integers(1, np.count_nonzero(fit) + 1)
            least = np.sort(fit)[-nodes_of_job]
            on[job], widths[job] = nodes_of_job, rng.integers(nodes_of_job, nodes_of_job * least + 1)
    # Some are no gangs, whose tasks need not fit at once; which of these is which is not compared.
    single = (rng.random(count) < 0.4) & draw(st.booleans())
    widths[single] *= rng.integers(1, 4, single.sum())
    on = np.where(single, np.nan, on)
    durations = np.repeat(rng.integers(0, 20, count), widths)
    if draw(st.booleans()):
        durations = rng.integers(0, 20, widths.sum())
    same = np.repeat(rng.integers(1, 20, count), widths)
    durations = np.where(np.repeat(single, widths), same, durations)
    asked = Requests(
        {"cpu_cores": amounts[:, 0], "attr:gpus": amounts[:, 1]},
        gang_nodes=on,
        priority=rng.integers(0, draw(st.sampled_from([1, 3])), count),
    )
    submit_s = np.cumsum(rng.integers(0, draw(st.sampled_from([2, 6, 20])), count))
    workload = make_workload("gangs", submit_s, widths, durations, requests=asked)
    gpus = encode_texts([str(n) for n in capacity[:, 1]])
    cluster = build_cluster("nodes", [1] * nodes, cpu_cores=capacity[:, 0], **{"attr:gpus": gpus})
    return workload, cluster, amounts, capacity


@settings(max_examples=60 if not config.DISABLE_JIT else 10, deadline=None)
@given(
    scheduler=st.sampled_from(GANG_SCHEDULERS),
    case=gangs_on_nodes(),
    delay_s=st.sampled_from([0.0, 0.5, 1.0]),
    estimates=st.sampled_from(
        [Estimates(), Estimates("constant", 0.5), Estimates("constant", -0.4), Estimates("random", 0.8)]
    ),
    data=st.data(),
)
def test_starts_are_those_of_an_independent_program(
    scheduler: str,
    case: tuple[JobWorkload, Cluster, np.ndarray, np.ndarray],
    delay_s: float,
    estimates: Estimates,
    data: st.DataObject,
) -> None:
    workload, cluster, amounts, capacity = case
    dynamics = data.draw(failures(cluster.num_nodes, delay_s, int(workload.arrays().submit_ns[-1] / NS) + 40))
    network = Network(delay_s)
    setting = setting_of(
        scheduler, workload, cluster, network=network, estimates=estimates, dynamics=dynamics, seed=5
    )
    setting = replace(
        setting, resources=workload.resources, priorities=True, preemption=data.draw(PREEMPTION)
    )
    outcome = run_setting(setting)
    assert_same(setting, outcome, independent(setting, amounts, capacity))
    lasting = setting.preemption is None
    check_run(tasks_table(workload, outcome.tasks), workload, cluster, gangs_within_s=0.0, lasting=lasting)


@settings(max_examples=60 if not config.DISABLE_JIT else 10, deadline=None)
@given(
    scheduler=st.sampled_from(GANG_SCHEDULERS),
    case=gangs_on_nodes(),
    by_node=st.booleans(),
    delay_s=st.sampled_from([0.0, 0.5]),
    estimates=st.sampled_from([Estimates(), Estimates("random", 0.8)]),
    data=st.data(),
)
def test_starts_on_slots_are_those_of_an_independent_program(
    scheduler: str,
    case: tuple[JobWorkload, Cluster, np.ndarray, np.ndarray],
    by_node: bool,
    delay_s: float,
    estimates: Estimates,
    data: st.DataObject,
) -> None:
    """Each task takes one slot of nodes with as many slots as cores, of which a gang may state how many it runs on."""
    workload, _, _, capacity = case
    slots = np.maximum(capacity[:, :1], 4)
    cluster = build_cluster("slots", slots[:, 0])
    kept = take(workload, np.flatnonzero(~np.isin(np.arange(workload.num_jobs), wide(workload, cluster))))
    if not by_node:
        nodes = np.where(gang_nodes(kept.jobs) >= 0, 0, np.nan)
        arrays = kept.arrays()
        asked = Requests(priority=priorities(kept.jobs), gang_nodes=nodes)
        kept = make_workload(
            "slots",
            arrays.submit_ns / NS,
            np.diff(arrays.first_task),
            arrays.duration_ns / NS,
            requests=asked,
        )
    dynamics = data.draw(failures(cluster.num_nodes, delay_s, int(kept.arrays().submit_ns[-1] / NS) + 40))
    setting = setting_of(
        scheduler, kept, cluster, network=delay_s, estimates=estimates, dynamics=dynamics, seed=5
    )
    setting = replace(setting, priorities=True, preemption=data.draw(PREEMPTION))
    outcome = run_setting(setting)
    ones = np.ones((kept.num_jobs, 1), np.int64)
    stacked = scheduler == "central-fcfs-gang" or not (gang_nodes(kept.jobs) > 0).any()
    stacked &= setting.preemption is None or np.ptp(priorities(kept.jobs)) == 0
    assert_same(setting, outcome, independent(setting, ones, slots, stacked))


def wide(workload: JobWorkload, cluster: Cluster) -> np.ndarray:
    """The gangs that do not fit on the slots of a cluster."""
    return wide_gangs(workload, gang_nodes(workload.jobs), cluster)
