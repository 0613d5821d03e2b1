"""Constraint-aware schedulers: their twins, mistakes of others that they do not make, and details.

That constraints hold, whatever is asked for, is in tests/actors/test_conformance.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from emulations import (
    OBSERVED,
    SETS,
    TWINS,
    VARIANTS,
    cluster_of,
    constrained,
    digest,
    emulate_small,
    mixed_cluster,
    mixed_workload,
    outages,
    run_setting,
    run_windows,
    setting_of,
    with_dynamics,
)
from hard_settings import AWARE, check_constraints_of, columns, every_task_ran_once

from actors.schedulers.jobs.build import long_jobs
from actors.setting import Dynamics
from clusters.cluster import build_cluster
from clusters.schema import ATTRIBUTES, encode_texts
from workloads.constraints import constraint_sets, parse_constraint_set, with_constraints
from workloads.errors import InputError
from workloads.jobs import make_workload


@pytest.mark.parametrize(
    ("scheduler", "repaired_s", "detection_s", "events"), [("sparrow-c", 30, 4, 8), ("yacc-d", 3.7, 0.1, 8)]
)
def test_a_node_that_is_down_at_the_end(
    scheduler: str, repaired_s: float, detection_s: float, events: int
) -> None:
    # The task runs on node 0. The last message is that it is done, at 4, or a report, at 3.5. In the window of 0.5 s
    # that begins then, node 1 is found to be down, and has a lost probe to tell of; or it comes back.
    setting = setting_of(
        scheduler,
        make_workload("one", [1], [1], [1.0]),
        2,
        network=0.5,
        dynamics=Dynamics(outages=outages(("node 1", 0.2, repaired_s)), detection_s=detection_s),
        schedulers=1,
    )
    whole = run_setting(setting, OBSERVED)
    assert whole.events == events
    for partitions in (2, 3):
        assert digest(run_windows(setting, OBSERVED, partitions)) == digest(whole)


@pytest.mark.parametrize(("scheduler", "twin"), TWINS.items())
def test_without_constraints_it_is_its_twin(scheduler: str, twin: str) -> None:
    for parameters in VARIANTS[twin]:
        one, other = (
            setting_of(name, mixed_workload(20, seed=2), mixed_cluster(), long_partition=0.7, **parameters)
            for name in (scheduler, twin)
        )
        assert digest(run_setting(one, OBSERVED)) == digest(run_setting(other, OBSERVED))
        assert digest(run_setting(with_dynamics(one))) == digest(run_setting(with_dynamics(other)))


@pytest.mark.parametrize(("scheduler", "twin"), TWINS.items())
def test_the_twin_ignores_them(scheduler: str, twin: str) -> None:
    workload = mixed_workload(40, seed=2)
    plain, asking = (
        setting_of(twin, made, mixed_cluster(), long_partition=0.7)
        for made in (workload, constrained(workload, *SETS))
    )
    aware = dataclasses.replace(asking, scheduler=setting_of(scheduler, workload, 1).scheduler)
    assert digest(run_setting(asking, OBSERVED)) == digest(run_setting(plain, OBSERVED))
    assert digest(run_setting(aware, OBSERVED)) != digest(run_setting(plain, OBSERVED))


# Mistakes of a simulator with constraints that is public: none of them is made here.


@pytest.mark.parametrize("scheduler", AWARE)
@pytest.mark.parametrize(
    "attribute", ["isa = arm", "cores >= 4", "max_disks >= 2", "min_disks >= 1", "cpus >= 1"]
)
def test_no_job_is_left_without_probes(scheduler: str, attribute: str) -> None:
    cluster = build_cluster(
        "one of each", [1] * 4, cpu_cores=[1, 1, 4, 1], isa=encode_texts(["x86", "arm", "x86", "x86"]),
        max_disks=[1, 1, 1, 2],
    )  # fmt: skip
    workload = constrained(
        make_workload("three", [0, 1, 2], [3, 3, 3], [1.0] * 9), attribute, "", "kernel >= 3.2"
    )
    setting = setting_of(scheduler, workload, cluster)
    outcome = run_setting(setting)
    every_task_ran_once(setting, outcome)
    check_constraints_of(setting, outcome)


def test_probes_sent_again_respect_constraints() -> None:
    # Long jobs are everywhere but on the short partition, none of whose nodes has the cores: the last round goes to
    # any node that has.
    workload = make_workload("long and short", [0, *range(1, 21)], [10, *[2] * 20], [100.0] * 10 + [1.0] * 40)
    cluster = build_cluster("ten", [1] * 10, cpu_cores=[1] * 5 + [4] * 5)
    asking = with_constraints(workload, [parse_constraint_set("cores >= 4")], [-1, *[0] * 20])
    setting = setting_of("eagle-c", asking, cluster, long_partition=0.8, least_probes=2)
    outcome = run_setting(setting)
    assert outcome.counters["probes_again"] > 20
    check_constraints_of(setting, outcome)


@pytest.mark.parametrize("scheduler", ["sparrow-c", "hawk-c", "eagle-c"])
def test_jobs_without_constraints_are_probed_for_as_ever(scheduler: str) -> None:
    # The first job has none, and arrives at an empty cluster: it runs as if the other had none.
    workload = make_workload("two", [0, 50], [3, 3], [1.0] * 6)
    asking = with_constraints(workload, [parse_constraint_set("cores >= 8")], [-1, 0])
    plain, aware = (columns(emulate_small(scheduler, w, mixed_cluster())) for w in (workload, asking))
    for one, other in zip(plain, aware, strict=True):
        assert np.array_equal(one[:3], other[:3])


# Details.


def test_more_probes_than_nodes_go_to_each_in_turn() -> None:
    # Six probes for two nodes: three each. Of tasks that no two may run on a node, one each.
    for text, probes in (("cores >= 8", 6), ("cores >= 8 and spread-nodes", 2)):
        tasks = 3 if probes == 6 else 2
        workload = constrained(make_workload("one", [0], [tasks], [1.0] * tasks), text)
        setting = setting_of("sparrow-c", workload, mixed_cluster(), probe_ratio=2.0)
        outcome = run_setting(setting)
        assert outcome.counters["probes"] == probes
        assert sorted(set(columns(outcome)[0].tolist())) == [2, 6]


def test_jobs_without_constraints_have_no_level() -> None:
    setting = setting_of("sparrow-c", constrained(mixed_workload(8, seed=1), *SETS), mixed_cluster())
    world = setting.scheduler.build(setting)[0]
    assert (world.eligible.jobs.level[world.eligible.set_of_job < 0] == -1).all()
    assert (world.eligible.jobs.level >= 0).sum() == len(SETS) - 1


def test_kinds_are_bits_of_attributes() -> None:
    setting = setting_of(
        "sparrow-c", constrained(mixed_workload(8, seed=1), "rack < 5", "", "same-rack"), mixed_cluster()
    )
    kinds = setting.scheduler.build(setting)[0].eligible.kinds
    assert kinds.tolist() == [1 << list(ATTRIBUTES).index("rack"), 1 << len(ATTRIBUTES)]


def test_a_job_that_no_node_can_run_is_refused() -> None:
    workload = constrained(make_workload("one", [0], [1], [1.0]), "cores >= 100")
    with pytest.raises(InputError, match=r"^job 0: no node satisfies cores >= 100"):
        emulate_small("sparrow-c", workload, mixed_cluster())
    emulate_small("sparrow", workload, mixed_cluster())


def test_racks_must_lie_together_where_a_job_runs_in_one() -> None:
    workload = make_workload("one", [0], [2], [1.0, 1.0])
    torn = cluster_of(4, racks=[0, 1, 0, 1])
    emulate_small("sparrow-c", constrained(workload, "spread-racks"), torn)
    with pytest.raises(InputError, match=r"^test: the nodes of rack 0 do not lie together"):
        emulate_small("sparrow-c", constrained(workload, "same-rack"), torn)


@pytest.mark.parametrize(
    ("text", "gone", "racks"),
    [
        ("cores >= 8", (2, 6), None),
        ("cores >= 8 and spread-nodes", (2,), None),
        ("same-rack and spread-nodes", (7,), None),
    ],
)
def test_nodes_that_fail_for_good_must_leave_a_job_some(text: str, gone: tuple[int, ...], racks: Any) -> None:
    workload = constrained(make_workload("one", [0], [2], [1.0, 1.0]), text)
    down = Dynamics(outages=outages(*((f"node {n}", 0.5, np.inf) for n in gone)))
    with pytest.raises(InputError, match=r"^dynamics.failures: job 0 \(.*may wait for ever"):
        emulate_small("sparrow-c", workload, mixed_cluster(), dynamics=down)
    back = Dynamics(outages=outages(*((f"node {n}", 0.5, 9) for n in gone)))
    setting = setting_of("sparrow-c", workload, mixed_cluster(), dynamics=back)
    check_constraints_of(setting, run_setting(setting))


@pytest.mark.parametrize("scheduler", ["hawk-c", "eagle-c", "central-c"])
def test_long_jobs_keep_to_their_part_where_they_can(scheduler: str) -> None:
    # Nodes 0 to 4 are the short partition. Job 0 finds nodes of its own behind it, job 1 has none there, and job 2
    # must use both.
    cluster = build_cluster(
        "ten", [1] * 10, cpu_cores=[4] * 3 + [1] * 2 + [2] * 5, min_disks=[3] * 6 + [1] * 4
    )
    workload = make_workload("long", [0, 1, 2], [4, 2, 3], [20.0] * 9)
    texts = "cores >= 2", "cores >= 4", "min_disks >= 3 and spread-nodes"
    asking = constrained(workload, *texts)
    node = columns(emulate_small(scheduler, asking, cluster, long_partition=0.5))[0]
    assert (node[:4] >= 5).all()
    assert (node[4:6] <= 2).all()
    assert 5 in node[6:]
    assert (node[6:] <= 5).all()
    assert long_jobs(setting_of(scheduler, asking, cluster)).all()


@pytest.mark.parametrize("scheduler", AWARE)
@pytest.mark.parametrize("speed", [False, True])
def test_durations_scale_exactly(scheduler: str, speed: bool) -> None:
    # Too few nodes for all tasks: the spreading, price 3, is given up; the fast nodes are three times as fast.
    cluster = build_cluster("two", [1, 1], speed=[3.0, 3.0])
    workload = constrained(make_workload("one", [0], [3], [1.0, 2.0, 0.7]), "spread-nodes soft 3")
    outcome = emulate_small(scheduler, workload, cluster, machine_speed=speed)
    _, start, finish = columns(outcome)
    lasted = sorted((finish - start).tolist())
    assert lasted == sorted(round(d * 1e9) * (1 if speed else 3) for d in (1.0, 2.0, 0.7))
    assert outcome.counters["jobs_relaxed"] == 1


@pytest.mark.parametrize("scheduler", ["random", "central-fifo", "dist-lwl", "sparrow"])
def test_fast_nodes_are_fast_for_every_scheduler(scheduler: str) -> None:
    cluster = build_cluster("pair", [1, 1], speed=[0.5, 2.0])
    workload = make_workload("even", range(10), [1] * 10, [2.0] * 10)
    node, start, finish = columns(emulate_small(scheduler, workload, cluster, machine_speed=True))
    assert np.array_equal(finish - start, np.where(node == 0, 4_000_000_000, 1_000_000_000))
    assert set(node.tolist()) == {0, 1}


def test_every_set_is_drawn_on_the_mixed_cluster() -> None:
    """The cases that are compared bit for bit have jobs with each kind of constraint."""
    setting = setting_of("sparrow-c", constrained(mixed_workload(10, seed=3), *SETS), mixed_cluster())
    world = setting.scheduler.build(setting)[0]
    kinds = {tuple(c.attribute for c in one) for one in constraint_sets(setting.workload)}
    assert len(kinds) >= 5
    assert world.eligible.held.size > 0
    assert world.eligible.rack_end.size == 3
