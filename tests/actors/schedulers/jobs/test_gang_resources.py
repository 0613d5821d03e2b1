"""Gangs that hold resources of nodes: examples by hand, and start by start against a program that shares no code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from batch_machine import Job, Machine, Outage, Preempt
from batch_on_nodes import run
from emulations import (
    NS,
    Estimates,
    Network,
    Setting,
    outages,
    run_setting,
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
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests, gang_nodes, priorities
from workloads.transform.primitives import take

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")


def gpu_nodes(*gpus: int) -> Cluster:
    """Nodes of four cores with these GPUs."""
    return build_cluster(
        "gpus", [1] * len(gpus), cpu_cores=4.0, **{"attr:gpus": encode_texts([*map(str, gpus)])}
    )


def starts_of(scheduler: str, workload: JobWorkload, cluster: Cluster) -> list[tuple[str, int, float]]:
    """Task, node and start (s) of each task in an example by hand, in which a message takes 1 s."""
    setting = setting_of(scheduler, workload, cluster, network=1.0)
    tasks = run_setting(replace(setting, resources=workload.resources)).tasks
    assert tasks is not None
    names = [f"{job}.{i}" for job, n in enumerate(np.diff(workload.arrays().first_task)) for i in range(n)]
    return list(zip(names, tasks["node"].tolist(), (tasks["start_ns"] / NS).tolist(), strict=True))


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


def test_first_come_first_served_lets_no_job_pass_whatever_is_free() -> None:
    #  t=0  job 0 holds two cores and both GPUs of node 0. t=1: job 1 needs a GPU; the others wait behind it.
    #  t=12 the end of job 0 (at 11) is known: jobs 1 (three cores) and 2 fill node 0, jobs 3 and 4 go to node 1. Job 5
    #       needs three cores of each node. t=20: job 1 has ended (at 18) and job 4 (at 19): job 5. t=26: job 6.
    assert starts_of("central-fcfs-gang", BY_HAND, gpu_nodes(2, 0)) == [
        ("0.0", 0, 1),
        ("0.1", 0, 1),
        ("1.0", 0, 13),
        ("2.0", 0, 13),
        ("3.0", 1, 13),
        ("4.0", 1, 13),
        ("5.0", 0, 21),
        ("5.1", 1, 21),
        ("6.0", 0, 27),
    ]


def test_easy_delays_no_start_of_the_first_job_on_its_nodes() -> None:
    #  t=1  job 1 needs three cores and a GPU: node 0 at 14, when job 0 is expected to end (12 s and two messages).
    #  t=2  job 2 takes a core of node 0 until 24: at 14 three are left. t=3: job 3 would take another, so that job 1
    #       did not fit at 14; beside job 1 node 0 has no core left then, and node 1 has. t=4: job 4 ends before 14.
    #  t=5  job 5 waits. t=6: job 6 goes to node 1, as it does not delay job 1, the first one.
    #  t=12 job 1. Job 5 waits for the ends of jobs 2 and 6, both at 23, which are known at 24.
    assert starts_of("easy", BY_HAND, gpu_nodes(2, 0)) == [
        ("0.0", 0, 1),
        ("0.1", 0, 1),
        ("1.0", 0, 13),
        ("2.0", 0, 3),
        ("3.0", 1, 4),
        ("4.0", 0, 5),
        ("5.0", 0, 25),
        ("5.1", 1, 25),
        ("6.0", 1, 7),
    ]


def test_conservative_delays_no_reservation_of_nodes() -> None:
    #  t=1  job 1: node 0 from 14 to 21. t=2 to 4: jobs 2, 3 and 4 start, as under EASY.
    #  t=5  job 5: three cores of each node from 21 to 27. t=6: job 6 would hold a core of node 1 until 24, of which job
    #       5 needs it from 21 on; at 24 job 2 ends on node 0, and leaves the core that job 5 does not need: from 24.
    #  t=12 job 0 has ended earlier than expected. Compressed: job 1 from 12 to 19, job 5 from 19, job 6 still from 24.
    assert starts_of("conservative", BY_HAND, gpu_nodes(2, 0)) == [
        ("0.0", 0, 1),
        ("0.1", 0, 1),
        ("1.0", 0, 13),
        ("2.0", 0, 3),
        ("3.0", 1, 4),
        ("4.0", 0, 5),
        ("5.0", 0, 20),
        ("5.1", 1, 20),
        ("6.0", 0, 25),
    ]


@pytest.mark.parametrize(
    ("scheduler", "rest"),
    [
        ("easy", [("1.0", 1, 10), ("1.1", 1, 10), ("2.0", 0, 3)]),
        ("conservative", [("1.0", 0, 21), ("1.1", 0, 21), ("2.0", 1, 3)]),
    ],
)
def test_a_reservation_is_of_nodes_where_a_gang_states_how_many(
    scheduler: str, rest: list[tuple[str, int, float]]
) -> None:
    # Two nodes of two slots. Job 0 holds one of each until 19 and 8, as expected until 14.5. Job 1 needs both slots of
    # one node: two are idle, but not there. Job 2, of 30 s, takes a slot of node 0 under EASY, as job 1 fits on node 1
    # at 14.5; and does, at 9. Under conservative backfilling job 1 has node 0 from 14.5 on, so that job 2 goes to
    # node 1, and job 1 waits until all of node 0 is idle.
    asked = Requests(gang_nodes=[2, 1, 0])
    workload = make_workload("by hand", [0, 1, 2], [2, 2, 1], [18.0, 7, 3, 3, 30], requests=asked)
    found = starts_of(scheduler, workload, build_cluster("slots", [2, 2]))
    assert found == [("0.0", 0, 1), ("0.1", 1, 1), *rest]


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (
            0,
            "start at once, for which cluster gpus of 3 nodes has no room: each needs 1 of attr:gpus, and 3 fit",
        ),
        (
            2,
            "start at once on 2 nodes, for which cluster gpus of 3 nodes has no room: each needs 1 of attr:gpus, and 2"
            " of them fit on 1 of the nodes",
        ),
    ],
)
def test_a_gang_that_never_fits_is_refused_with_what_its_tasks_need_or_left_out(nodes: int, why: str) -> None:
    asked = Requests({"attr:gpus": [1.0, 1.0]}, gang_nodes=[nodes, 0])
    workload, cluster = make_workload("wide", [0, 1], [4, 3], [1.0] * 7, requests=asked), gpu_nodes(2, 0, 1)
    with pytest.raises(InputError) as refused:
        starts_of("easy", workload, cluster)
    assert str(refused.value) == f"job 0: its 4 tasks {why}"
    needs = needs_of(workload, cluster, workload.resources)
    kept = drop_wide(workload, gang_nodes(workload.jobs), cluster, needs)
    assert [start for _, _, start in starts_of("easy", kept, cluster)] == [2, 2, 2]
    assert kept.notes[-1].startswith("1 of 2 jobs dropped")


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
