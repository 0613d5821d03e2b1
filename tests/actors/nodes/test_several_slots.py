"""Nodes of several slots: what holds of all such nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import (
    SETS,
    VARIANTS,
    constrained,
    mixed_cluster,
    run_setting,
    setting_of,
    with_failures,
)
from hard_settings import AWARE, EXAMPLES, JOBS, NETWORKS, columns, slots_suffice
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Partition
from actors.kernel.queue import NONE
from actors.nodes.messages import TASK_END
from actors.nodes.world import ASKED, LONG_RUNS
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.jobs import make_workload

"""One probe a task."""


POLICIES = (
    *("hawk", "eagle", "ideal-eagle", "hawk-c", "eagle-c", "sparrow", "dist-lwl"),
    *("phoenix", "phoenix-released"),
)


@st.composite
def settings_of(draw: st.DrawFn, scheduler: str) -> Setting:
    rows = draw(JOBS)
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    cluster = build_cluster("random", draw(st.lists(st.integers(1, 4), min_size=2, max_size=5)))
    if scheduler in AWARE:
        workload, cluster = constrained(workload, *SETS), mixed_cluster()
    setting = setting_of(
        scheduler,
        workload,
        cluster,
        cutoff_s=draw(st.sampled_from([4.0, 10.0])),
        long_partition=draw(st.sampled_from([1.0, 0.7])),
        network=draw(NETWORKS),
        seed=draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(VARIANTS[scheduler.removesuffix("-c")])),
    )
    return with_failures(setting) if draw(st.booleans()) else setting


@pytest.mark.parametrize("scheduler", POLICIES)
def test_no_slot_is_idle_while_an_entry_waits_and_long_work_is_counted(scheduler: str) -> None:
    @settings(max_examples=8)
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        partition = started(setting)
        for _ in steps(partition):
            nodes_are_in_order(partition)

    hold()


def nodes_are_in_order(partition: Partition) -> None:
    """What nodes say of themselves, against their queues and the ends of tasks that they wait for."""
    world = partition.world
    faults, is_long, slots = world.faults, world.work.is_long, partition.setting.cluster.slots()
    waiting = world.queue.pool[world.queue.heap.slot[: world.queue.now.heap_size[0]]]
    ends = [m for m in waiting[waiting.kind == TASK_END].tolist() if is_awaited(faults, *m[3:7])]
    running = Counter(dst for _, _, _, dst, *_ in ends)
    long_running = Counter(dst for _, _, _, dst, job, *_ in ends if is_long[job])
    # As whole rows of numbers: fields of single records would take most of the time.
    fields, names = world.nodes.dtype.names or (), world.entries.dtype.names or ()
    entries = world.entries.view(np.ndarray)
    for node, values in enumerate(world.nodes.tolist()):
        if faults.active and faults.actors.down[node]:
            continue
        state, queued, wait = dict(zip(fields, values, strict=True)), 0, 0
        entry = state["head"]
        while entry != NONE:
            row = dict(zip(names, entries[entry].item(), strict=True))
            length = 1 if row["more"] == NONE else 1 + int(entries["left"][row["more"]])
            queued += int(world.work.is_long[row["job"]]) * length
            asked, left = divmod(row["left"], int(ASKED))
            wait += asked == 0 or (left > asked and row["level"] == NONE)
            entry = row["next"]
        idle, longs = state["idle"], state["longs"]
        assert idle == 0 or wait == 0
        assert longs // LONG_RUNS == long_running[node]
        held = slots[node] - idle - running[node]  # slots that wait for a task
        assert 0 <= longs % LONG_RUNS - queued - long_running[node] <= held


def is_awaited(faults: Any, node: int, job: int, task: int, start: int) -> bool:
    """Whether a task runs whose end is foreseen: no failure has ended it."""
    return not faults.active or (faults.tasks.node[task] == node and faults.tasks.start[task] == start)


@settings(max_examples=EXAMPLES)
@given(rows=JOBS, slots=st.lists(st.integers(1, 4), min_size=1, max_size=4), shortest=st.booleans())
def test_no_slot_of_eagles_is_idle_at_zero_delay_while_there_is_a_task(
    rows: Any, slots: list[int], shortest: bool
) -> None:
    # Sticky probes of every job at every node: while a job has a task that no node runs all slots run one.
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    setting = setting_of(
        "eagle", workload, slots, network=0.0, cutoff_s=1e6, least_probes=len(slots), shortest_first=shortest
    )
    outcome = run_setting(setting)
    slots_suffice(setting, outcome)
    _, start, finish = columns(outcome)
    arrays = workload.arrays()
    submit = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    for t in np.unique(np.concatenate([submit, start, finish])):
        running = ((start <= t) & (finish > t)).sum()
        waiting = ((submit <= t) & (start > t)).sum()
        assert waiting == 0 or running == sum(slots)
