"""Constraints hold under every constraint-aware scheduler of the registry, whatever jobs ask for and whatever fails.

What a run writes is judged by `emu.families.jobs.constraint_check`, which shares no code with what schedulers go by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import ALL_TASKS
from emulations import TWINS, VARIANTS, digest, outages, run_partition, run_setting, run_windows, setting_of
from hard_settings import AWARE, EXAMPLES, NETWORKS, check_constraints_of, every_task_ran_once, slots_suffice
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.scheduler import needs_global_view
from actors.setting import Dynamics, Estimates, Network, Setting
from clusters.cluster import Cluster, build_cluster
from clusters.feasibility import drop_infeasible
from clusters.schema import encode_texts
from emu.families.jobs.constraint_check import levels_of, satisfying
from workloads.constraints import (
    PLACEMENT,
    constraint_sets,
    parse_constraint_set,
    set_of_job,
    with_constraints,
)
from workloads.errors import InputError
from workloads.jobs import make_workload

# Of every kind of attribute: numbers, versions, texts, tags, and a user's own as text, as number and as lacking.
ASKED = (
    "cores >= 4",
    "cores < 8",
    "clock >= 2 GHz",
    "memory > 4 GiB",
    "kernel >= 4.4",
    "isa = arm",
    "isa != arm",
    "rack != 1",
    "tags = ssd",
    "tags != ssd",
    "attr:gen >= 3",
    "attr:gen < 3",
    "attr:licence = gold",
    'attr:licence = ""',
)
LYING = (
    (),
    ("same-rack",),
    ("spread-nodes",),
    ("spread-racks",),
    ("same-rack", "spread-nodes"),
    ("same-rack", "spread-nodes"),
    ("same-rack", "spread-nodes"),
    ("same-rack", "spread-nodes"),
    ("same-rack", "spread-racks"),
    ("spread-racks", "spread-nodes"),
)
# Whole seconds and a few odd ones: many events fall on one instant, and some tasks take no time.
GAPS_S, DURATIONS_S = (0, 0.5, 1, 2), (0, 0.0005, 1, 2, 2.5, 4, 6, 8, 20, 45)
# Each at most once in a set, so that no task takes days.
PRICES = ("", "", "", " soft", " soft 1.25", " soft 2", " soft 2", " soft 3", " soft 20")
OUTAGES = outages(
    ("node 0", 1, 6), ("node 0", 6.5, 30), ("node 1", 2, 9), ("scheduler 0", 2, 7), ("central", 0, 3)
)
DYNAMICS = st.sampled_from(
    [
        None,
        None,
        Dynamics(outages=OUTAGES, detection_s=2.0, failover_s=1.0),
        Dynamics(outages=OUTAGES, mtbf_s=600.0, mttr_s=20.0, straggler_share=0.3, straggler_slowdown=1.5),
        Dynamics(mtbf_s=600.0, mttr_s=5.0, detection_s=1.0),
    ]
)
# Phoenix under contention: every resource asked for is contended at once, and few probes leave it a choice.
SHARP = (
    {"heartbeat_s": 0.75, "crv_threshold": 0, "least_probes": 2, "report_change": 0},
    {"heartbeat_s": 0.75, "crv_threshold": 0, "admission": False},
)


def random_set(rng: np.random.Generator, prices: tuple[str, ...]) -> str:
    """Constraints on nodes, and on how tasks lie, in any order; hard ones and soft ones."""
    on_nodes = rng.choice(ASKED, rng.choice([0, 1, 1, 2]), replace=False).tolist()
    asked = [*on_nodes, *LYING[rng.integers(len(LYING))]]
    order, priced = rng.permutation(len(asked)), rng.permutation(prices)[: len(asked)]
    return " and ".join(asked[i] + price for i, price in zip(order, priced, strict=True))


def random_cluster(rng: np.random.Generator, nodes: int) -> Cluster:
    """Nodes that differ in everything that is asked for."""

    def each(*values: Any) -> Any:
        return rng.choice(values, nodes)

    texts = {
        "isa": each("x86", "arm"),
        "tags": each("", "ssd", "gpu ssd"),
        "attr:gen": each("1", "3", "", "new"),
        "attr:licence": each("gold", ""),
    }
    return build_cluster(
        "random",
        each(1, 1, 2),
        rack=np.sort(each(0, 1, 2)),
        cpu_cores=each(2, 4, 8),
        memory_bytes=each(2**32, 2**33),
        clock_hz=each(1e9, 2e9, 3e9),
        kernel=each(4 * 10**12, 5 * 10**12),
        speed=each(1.0, 0.5, 3.0),
        **{name: encode_texts(values.tolist()) for name, values in texts.items()},
    )


@st.composite
def settings_of(draw: st.DrawFn, scheduler: str) -> Setting:
    """Jobs that ask for much of a small cluster, most of them for the same."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    contended, dynamics = draw(st.booleans()), draw(DYNAMICS)
    jobs = 40 if contended else draw(st.sampled_from([40, 10, 2]))
    cluster = random_cluster(rng, 12 if contended else draw(st.sampled_from([12, 8, 4])))
    tasks = rng.integers(1, 4, jobs)
    workload = make_workload(
        "random", np.cumsum(rng.choice(GAPS_S, jobs)), tasks, rng.choice(DURATIONS_S, tasks.sum())
    )
    # Where nodes fail for ever, no task may take so long that it never ends.
    prices = PRICES if dynamics is None or dynamics.mtbf_s is None else PRICES[:6]
    texts = [random_set(rng, prices) for _ in range(rng.integers(1, 4))]
    sets = [parse_constraint_set(text) if text else () for text in texts]
    of_jobs = rng.choice([-1, *range(len(sets)), *[0] * 4], jobs)
    try:
        workload = drop_infeasible(with_constraints(workload, sets, of_jobs), cluster)[0]
    except InputError:
        assume(False)
    variants = VARIANTS.get(TWINS.get(scheduler, scheduler), ({},))
    if contended and scheduler == "phoenix":
        variants = SHARP
    return setting_of(
        scheduler,
        workload,
        cluster,
        cutoff_s=100.0 if contended else draw(st.sampled_from([0.0, 4.0, 100.0])),
        long_partition=draw(st.sampled_from([1.0, 0.7, 0.5])),
        network=Network(0.0005) if contended else draw(NETWORKS),
        estimates=draw(st.sampled_from([Estimates(), Estimates("random", 1.0)])),
        dynamics=dynamics,
        machine_speed=draw(st.booleans()),
        seed=draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(variants)),
    )


def first_level(setting: Setting, job: int) -> int:
    """How many soft constraints a job must do without for its tasks to fit on the cluster."""
    workload, racks = setting.workload, setting.cluster.racks()
    tasks = int(np.diff(workload.arrays().first_task)[job])
    for dropped, level in enumerate(levels_of(constraint_sets(workload)[set_of_job(workload)[job]])):
        nodes = np.ones(setting.cluster.num_nodes, bool)
        for one in level.kept:
            if one.attribute != PLACEMENT:
                nodes &= satisfying(setting.cluster, one)
        placements = {one.value for one in level.kept if one.attribute == PLACEMENT}
        groups = (
            [racks[nodes]] if "same-rack" not in placements else [racks[nodes & (racks == r)] for r in racks]
        )
        for group in groups:
            room = float(np.inf if len(group) else 0)
            if "spread-nodes" in placements:
                room = len(group)
            if "spread-racks" in placements:
                room = len(set(group))
            if room >= tasks:
                return dropped
    raise AssertionError(f"job {job} fits at no level")


@pytest.mark.parametrize("scheduler", AWARE)
def test_constraints_hold(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES * (3 if scheduler == "phoenix" else 1))
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        partition = run_partition(setting, ALL_TASKS)  # fails if there is no end: no job waits for ever
        outcome = partition.outcome()
        every_task_ran_once(setting, outcome)
        slots_suffice(setting, outcome)
        for job, least, most in check_constraints_of(setting, outcome):
            # A job starts at the first level at which it fits; Phoenix alone may relax it further.
            first = first_level(setting, job)
            assert first <= most
            assert least <= first or scheduler == "phoenix"
        idle = partition.world.nodes.idle
        assert np.array_equal(idle, setting.cluster.slots()) or partition.world.faults.active

    hold()


@pytest.mark.parametrize("scheduler", AWARE)
def test_the_same_for_any_number_of_partitions(scheduler: str) -> None:
    @settings(max_examples=max(EXAMPLES // 10, 4))
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        assume(setting.network.delay_s > 0 and setting.cluster.num_nodes >= 3)
        assume(not needs_global_view(setting.scheduler, setting.parameters))
        whole = digest(run_setting(setting, ALL_TASKS))
        # Racks are not divided where messages between them take longer; there is one scheduler at least.
        parts = 3 if setting.network.cross_rack_delay_s is None else len(set(setting.cluster.racks()))
        for partitions in (2, 3)[:parts]:
            assert digest(run_windows(setting, ALL_TASKS, partitions)) == whole

    hold()
