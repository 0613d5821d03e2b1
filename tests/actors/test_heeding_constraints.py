"""Schedulers that heed constraints: what always holds, for every one of them that the registry has.

What nodes and levels a job has is worked out here from the words of its constraints, not by what the kernel goes by.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

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
    run_partition,
    run_setting,
    setting_of,
    with_dynamics,
)
from hard_settings import EXAMPLES, JOBS, NETWORKS, columns, slots_suffice
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.hosting.windows import emulate_here
from actors.kernel import eligible
from actors.kernel.faults import EPOCH_SHIFT
from actors.schedulers.jobs.build import long_jobs
from actors.schedulers.policy import needs_global_view
from actors.schedulers.registry import BUILT_IN
from actors.setting import Dynamics, Setting
from clusters.cluster import build_cluster
from clusters.matching import drop_infeasible, satisfies
from clusters.schema import encode_texts
from workloads.constraints import (
    PLACEMENT,
    Constraint,
    constraint_sets,
    parse_constraint_set,
    set_of_job,
    with_constraints,
)
from workloads.errors import InputError
from workloads.jobs import make_workload

HEEDING = [s.name for s in BUILT_IN if s.constrained]
SOFT_SETS = (
    *SETS[1:],
    "spread-nodes",
    "spread-racks",
    "same-rack and spread-nodes",
    "cores >= 4 and spread-nodes soft 1.5 and clock >= 3 GHz soft 1.25",
    "isa = arm soft 1.1 and same-rack soft 2 and spread-nodes",
)
# A task of 45 s takes up to nine minutes on a slow node, or at a relaxed level: nodes must not fail sooner for ever.
OUTAGES = outages(
    ("node 0", 1, 6), ("node 0", 6.5, 30), ("node 1", 2, 9), ("scheduler 0", 2, 7), ("central", 0, 3)
)
DYNAMICS = st.sampled_from(
    [
        None,
        Dynamics(outages=OUTAGES, detection_s=2.0, failover_s=1.0),
        Dynamics(outages=OUTAGES, mtbf_s=600.0, mttr_s=20.0, straggler_share=0.3, straggler_slowdown=1.5),
        Dynamics(mtbf_s=300.0, mttr_s=5.0, detection_s=1.0),
    ]
)


def variants(scheduler: str) -> tuple[dict[str, Any], ...]:
    return VARIANTS.get(TWINS.get(scheduler, scheduler), ({},))


@st.composite
def settings_of(draw: st.DrawFn, scheduler: str) -> Setting:
    rows = draw(JOBS)
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    size = draw(st.integers(1, 8))

    def each(*values: Any) -> Any:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    cluster = build_cluster(
        "random",
        each(1, 1, 2),
        rack=sorted(each(0, 1, 2)),
        cpu_cores=each(2, 4, 8),
        clock_hz=each(1e9, 2e9, 3e9),
        isa=encode_texts(each("x86", "arm")),
        speed=each(1.0, 0.5, 3.0),
    )
    sets = [parse_constraint_set(text) for text in SOFT_SETS]
    of_job = st.integers(-1, len(sets) - 1)
    of_jobs = draw(st.lists(of_job, min_size=len(rows), max_size=len(rows)))
    try:
        workload = drop_infeasible(with_constraints(workload, sets, of_jobs), cluster)[0]
    except InputError:
        assume(False)
    return setting_of(
        scheduler,
        workload,
        cluster,
        cutoff_s=draw(st.sampled_from([0.0, 4.0, 10.0, 100.0])),
        long_partition=draw(st.sampled_from([1.0, 0.7, 0.5])),
        network=draw(NETWORKS),
        dynamics=draw(DYNAMICS),
        machine_speed=draw(st.booleans()),
        seed=draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(variants(scheduler))),
    )


class Level(NamedTuple):
    """A job's constraints without the cheapest soft ones: who satisfies them, and how much longer tasks take."""

    nodes: np.ndarray  # [N] bool
    placements: set[str]
    factor: float


def levels_of(setting: Setting, constraints: tuple[Constraint, ...]) -> list[Level]:
    soft = sorted((c for c in constraints if c.price is not None), key=lambda c: c.price)
    found = []
    for relaxed in range(len(soft) + 1):
        left = [c for c in constraints if c not in soft[:relaxed]]
        nodes = np.ones(setting.cluster.num_nodes, bool)
        for one in left:
            if one.attribute != PLACEMENT:
                nodes &= satisfies(setting.cluster, one)
        prices = [c.price for c in soft[:relaxed]]
        placements = {c.value for c in left if c.attribute == PLACEMENT}
        found.append(Level(nodes, placements, float(np.prod(prices))))
    return found


def room_at(level: Level, racks: np.ndarray) -> float:
    """How many tasks of a job fit at a level."""
    nodes = np.flatnonzero(level.nodes)
    groups = [nodes[racks[nodes] == r] for r in set(racks[nodes])]
    if "same-rack" not in level.placements:
        groups = [nodes] if len(nodes) else []
    room: list[float] = [0]
    for group in groups:
        if "spread-racks" in level.placements:
            room.append(len(set(racks[group])))
        elif "spread-nodes" in level.placements:
            room.append(len(group))
        else:
            room.append(np.inf)
    return max(room)


def ran_as_asked(setting: Setting, outcome: Outcome, level: Level, tasks: slice) -> bool:
    """Whether the tasks of a job ran where a level lets them, and as long as it has them take."""
    node, start, finish = (column[tasks] for column in columns(outcome))
    racks = setting.cluster.racks()[node]
    duration = setting.scheduler.build(setting)[0].duration[tasks]
    speed = setting.cluster.attribute("speed")[node] if setting.machine_speed else np.ones(len(node))
    lasts = np.rint(duration * level.factor / speed).astype(np.int64)
    return (
        bool(level.nodes[node].all())
        and np.array_equal(finish - start, lasts)
        and ("spread-nodes" not in level.placements or len(set(node)) == len(node))
        and ("spread-racks" not in level.placements or len(set(racks)) == len(racks))
        and ("same-rack" not in level.placements or len(set(racks)) == 1)
    )


def constraints_hold(setting: Setting, outcome: Outcome) -> None:
    """Every job ran at the first level at which it fits; where jobs may be relaxed later, at a further one."""
    sets = constraint_sets(setting.workload)
    first_task = setting.workload.arrays().first_task
    racks, relaxed = setting.cluster.racks(), 0
    for job, of_set in enumerate(set_of_job(setting.workload).tolist()):
        levels = levels_of(setting, sets[of_set] if of_set >= 0 else ())
        tasks = slice(int(first_task[job]), int(first_task[job + 1]))
        count = tasks.stop - tasks.start
        start = next(i for i, level in enumerate(levels) if room_at(level, racks) >= count)
        last = start + 1 if setting.scheduler.name in TWINS else len(levels)
        ran_at = [i for i in range(start, last) if ran_as_asked(setting, outcome, levels[i], tasks)]
        assert ran_at, f"job {job}"
        relaxed += ran_at[0] > 0
    if setting.scheduler.name in TWINS:
        assert outcome.counters.get("jobs_relaxed", 0) == relaxed
    else:
        assert outcome.counters.get("jobs_relaxed", 0) >= relaxed


def every_task_ran_once(setting: Setting, outcome: Outcome) -> None:
    node, start, finish = columns(outcome)
    first_task = setting.workload.arrays().first_task[:-1]
    assert node.min() >= 0
    assert np.array_equal(outcome.finish_ns, np.maximum.reduceat(finish, first_task))
    submit = np.repeat(setting.workload.arrays().submit_ns, np.diff(setting.workload.arrays().first_task))
    assert (start >= submit).all()


@pytest.mark.parametrize("scheduler", HEEDING)
def test_constraints_hold(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        partition = run_partition(setting, OBSERVED)  # fails if there is no end: no job waits for ever
        outcome = partition.outcome()
        every_task_ran_once(setting, outcome)
        constraints_hold(setting, outcome)
        slots_suffice(setting, outcome)
        assert (
            np.array_equal(partition.world.nodes.idle, setting.cluster.slots())
            or partition.world.faults.active
        )

    hold()


@pytest.mark.parametrize("scheduler", HEEDING)
def test_the_same_for_any_number_of_partitions(scheduler: str) -> None:
    @settings(max_examples=max(EXAMPLES // 10, 4))
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        assume(setting.network.delay_s > 0 and setting.cluster.num_nodes >= 3)
        assume(not needs_global_view(setting.scheduler, setting.parameters))
        whole = digest(run_setting(setting, OBSERVED))
        # Racks are not divided where messages between them take longer; there is one scheduler at least.
        parts = 3 if setting.network.cross_rack_delay_s is None else len(set(setting.cluster.racks()))
        for partitions in (2, 3)[:parts]:
            assert digest(emulate_here(setting, OBSERVED, partitions)) == whole

    hold()


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
        assert digest(emulate_here(setting, OBSERVED, partitions)) == digest(whole)


@pytest.mark.parametrize(("scheduler", "twin"), TWINS.items())
def test_without_constraints_it_is_its_twin(scheduler: str, twin: str) -> None:
    for parameters in VARIANTS[twin]:
        one, other = (
            setting_of(name, mixed_workload(40, seed=2), mixed_cluster(), long_partition=0.7, **parameters)
            for name in (scheduler, twin)
        )
        assert digest(run_setting(one, OBSERVED)) == digest(run_setting(other, OBSERVED))
        assert digest(run_setting(with_dynamics(one))) == digest(run_setting(with_dynamics(other)))


@pytest.mark.parametrize(("scheduler", "twin"), TWINS.items())
def test_the_twin_does_not_heed_them(scheduler: str, twin: str) -> None:
    workload = mixed_workload(40, seed=2)
    plain, asking = (
        setting_of(twin, made, mixed_cluster(), long_partition=0.7)
        for made in (workload, constrained(workload, *SETS))
    )
    heeding = dataclasses.replace(asking, scheduler=setting_of(scheduler, workload, 1).scheduler)
    assert digest(run_setting(asking, OBSERVED)) == digest(run_setting(plain, OBSERVED))
    assert digest(run_setting(heeding, OBSERVED)) != digest(run_setting(plain, OBSERVED))


# Mistakes of a simulator with constraints that is public: none of them is made here.


@pytest.mark.parametrize("scheduler", HEEDING)
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
    constraints_hold(setting, outcome)


def test_probes_sent_again_respect_constraints() -> None:
    # Long jobs are everywhere but on the short partition, none of whose nodes has the cores: the last round goes to
    # any node that has.
    workload = make_workload("long and short", [0, *range(1, 21)], [10, *[2] * 20], [100.0] * 10 + [1.0] * 40)
    cluster = build_cluster("ten", [1] * 10, cpu_cores=[1] * 5 + [4] * 5)
    asking = with_constraints(workload, [parse_constraint_set("cores >= 4")], [-1, *[0] * 20])
    setting = setting_of("eagle-c", asking, cluster, long_partition=0.8, least_probes=2)
    outcome = run_setting(setting)
    assert outcome.counters["probes_again"] > 20
    constraints_hold(setting, outcome)


@pytest.mark.parametrize("scheduler", ["sparrow-c", "hawk-c", "eagle-c"])
def test_jobs_without_constraints_are_probed_for_as_ever(scheduler: str) -> None:
    # The first job has none, and arrives at an empty cluster: it runs as if the other had none.
    workload = make_workload("two", [0, 50], [3, 3], [1.0] * 6)
    asking = with_constraints(workload, [parse_constraint_set("cores >= 8")], [-1, 0])
    plain, heeding = (columns(emulate_small(scheduler, w, mixed_cluster())) for w in (workload, asking))
    for one, other in zip(plain, heeding, strict=True):
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


def test_a_level_fits_beside_a_task() -> None:
    assert eligible.LEVEL_SHIFT == EPOCH_SHIFT
    setting = setting_of("sparrow-c", constrained(mixed_workload(8, seed=1), *SETS), mixed_cluster())
    world = setting.scheduler.build(setting)[0]
    assert (world.eligible.jobs.level[world.eligible.set_of_job < 0] == -1).all()
    assert (world.eligible.jobs.level >= 0).sum() == len(SETS) - 1


def test_kinds_are_bits_of_attributes() -> None:
    setting = setting_of(
        "sparrow-c", constrained(mixed_workload(8, seed=1), "rack < 5", "", "same-rack"), mixed_cluster()
    )
    kinds = setting.scheduler.build(setting)[0].eligible.kinds
    from clusters.schema import ATTRIBUTES

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
    constraints_hold(setting, run_setting(setting))


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


@pytest.mark.parametrize("scheduler", HEEDING)
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
