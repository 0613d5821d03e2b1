"""Nodes of several slots: examples of Hawk and Eagle worked out by hand, and what holds of all such nodes.

A message takes 1 s, as in the other examples. A node of several slots has one queue, and what it says of itself, such
as the long work that it holds, is of all its slots.
"""

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
    jobs,
    log_of,
    mixed_cluster,
    run_partition,
    run_setting,
    setting_of,
    with_failures,
)
from hard_settings import AWARE, EXAMPLES, JOBS, NETWORKS, columns, slots_suffice
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Partition
from actors.kernel.world import ASKED, LONG_RUNS, NONE
from actors.nodes.messages import TASK_END
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.jobs import JobWorkload, make_workload

ONE_PROBE: dict[str, Any] = {"probe_ratio": 1, "schedulers": 1}
"""One probe a task."""


def test_hawk_steals_from_behind_a_long_task_whatever_the_other_slot_runs() -> None:
    # Node 0 has a slot for short jobs; node 1 has two, of which 0.0 has one from 1 to 41.
    #  t=3  job 1's probes reach both nodes, which ask: 1.0 runs on node 0 from 5 to 6, 1.1 on node 1 from 5 to 14.
    #  t=4  job 2's probes reach both nodes, and wait. Node 0 asks at 6: 2.0 from 8 to 9.
    #  t=9  node 0 has nothing left, and asks node 1, which at 10 still runs 0.0 beside 1.1, the last to start: its
    #       probe is behind long work and goes to node 0, there at 11: 2.1 from 13 to 22.
    log = log_of("hawk", jobs((0, [40]), (2, [1, 9]), (3, [1, 9])), [1, 2], long_partition=0.5, **ONE_PROBE)
    assert log.tasks == [
        ("0.0", 1, 1, 41),
        ("1.0", 0, 5, 6),
        ("1.1", 1, 5, 14),
        ("2.0", 0, 8, 9),
        ("2.1", 0, 13, 22),
    ]
    assert (log.counters["steals"], log.counters["stolen_probes"]) == (1, 1)


def test_hawk_counts_the_long_tasks_that_run() -> None:
    # As above, and another long job: node 1 runs 0.0 from 1 to 41 and 1.0 from 2 to 14. Of the short jobs 2 and 3 node
    # 0 runs 2.0 from 6 to 7 and 3.0 from 9 to 15; node 1 has a probe of each. At 14 1.0 ends: job 2's probe asks, 2.1
    # from 16 to 25, beside long work. At 15 node 0 asks for work, and job 3's probe is there at 17.
    work = jobs((0, [40]), (1, [12]), (3, [1, 9]), (4, [6, 9]))
    log = log_of("hawk", work, [1, 2], long_partition=0.5, **ONE_PROBE)
    assert log.tasks[2:] == [("2.0", 0, 6, 7), ("3.0", 0, 9, 15), ("2.1", 1, 16, 25), ("3.1", 0, 19, 28)]
    # With long tasks of 11 s both have ended by 13, and job 3's probe asks at 13 too: nothing is behind long work.
    work = jobs((0, [11]), (1, [11]), (3, [1, 9]), (4, [6, 9]))
    log = log_of("hawk", work, [1, 2], long_partition=0.5, **ONE_PROBE)
    assert log.tasks[2:] == [("2.0", 0, 6, 7), ("3.0", 0, 9, 15), ("2.1", 1, 14, 23), ("3.1", 1, 15, 24)]
    assert "steals" not in log.counters


def seed_that_probes(workload: JobWorkload, nodes: list[int], wanted: list[int], **given: Any) -> int:
    """The first seed with which probes go to these nodes, one after the other."""
    for seed in range(1000):
        log = log_of("hawk", workload, nodes, seed=seed, **given)
        if [m.dst for m in log.messages if m.kind == "PROBE"][: len(wanted)] == wanted:
            return seed
    raise AssertionError("no such seed")


def test_hawk_fills_all_idle_slots_with_what_it_sees_and_takes() -> None:
    # Node 1 runs 0.0 from 1 to 41; the probes of jobs 1 and 2 are there at 3 and 4. Node 0 runs 3.0 on one of its two
    # slots from 7 to 8. Then it takes both probes at once, and asks for both: tasks from 10 to 14.
    work = jobs((0, [40]), (2, [4]), (3, [4]), (4, [1]))
    given: dict[str, Any] = {"long_partition": 0.5, "instant_stealing": True, **ONE_PROBE}
    seed = seed_that_probes(work, [2, 1], [1, 1, 0], **given)
    log = log_of("hawk", work, [2, 1], seed=seed, **given)
    assert log.tasks == [("0.0", 1, 1, 41), ("3.0", 0, 7, 8), ("1.0", 0, 10, 14), ("2.0", 0, 10, 14)]


def test_eagle_asks_for_a_task_for_each_idle_slot_and_for_no_more_than_there_are() -> None:
    # Four slots and one; each job has a probe at each node.
    #  t=1  node 0 asks for both tasks of job 0, node 1 for one of them. At 2 they are given to node 0, which asked
    #       first: 3 to 9. Node 1 learns at 3 that there is none.
    #  t=2  job 1's probes come. Job 0's probe at node 0 has asked for all there is: job 1's asks for two tasks with
    #       the two slots that are left: 4 to 7. Node 1 asks for job 1 at 3, when job 0's probe goes, and gets none.
    log = log_of("eagle", jobs((0, [6, 6]), (1, [3, 3])), [4, 1], cutoff_s=100, least_probes=1, **ONE_PROBE)
    assert log.tasks == [("0.0", 0, 3, 9), ("0.1", 0, 3, 9), ("1.0", 0, 4, 7), ("1.1", 0, 4, 7)]
    assert [(m.time_s, m.src) for m in log.messages if m.kind == "REQUEST"] == [
        (2, 0),
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 0),
        (4, 1),
    ]
    assert log.counters == {"probes": 4, "empty_answers": 2}


@pytest.mark.parametrize("shortest_first", [True, False])
def test_eagle_gives_a_slot_that_falls_free_another_task_of_the_job(shortest_first: bool) -> None:
    # Of job 0 node 0 runs 0.0 and 0.1 (its two slots), node 1 0.2 and then nothing: 3 to 13, 3 to 5, 3 to 6. Of the
    # six tasks three are left, and both nodes have two probes or more, which stay: 0.3 on node 0 from 7 to 8, 0.4 on
    # node 1 from 8 to 10, 0.5 on node 0 from 10.
    work = jobs((0, [10, 2, 3, 1, 2, 4]))
    log = log_of(
        "eagle", work, [2, 1], cutoff_s=100, least_probes=1, shortest_first=shortest_first, **ONE_PROBE
    )
    assert log.tasks == [
        ("0.0", 0, 3, 13),
        ("0.1", 0, 3, 5),
        ("0.2", 1, 3, 6),
        ("0.3", 0, 7, 8),
        ("0.4", 1, 8, 10),
        ("0.5", 0, 10, 14),
    ]


def test_eagle_asks_once_for_a_job_that_a_node_may_run_one_task_of() -> None:
    # Two tasks on different nodes, of two slots each: each node asks for one, and not for two of which one is refused.
    work = constrained(jobs((0, [5, 5])), "spread-nodes")
    log = log_of("eagle-c", work, [2, 2], cutoff_s=100, least_probes=1, **ONE_PROBE)
    assert log.tasks == [("0.0", 0, 3, 8), ("0.1", 1, 3, 8)]
    assert log.kinds["REQUEST"] == 3  # informed that a task is left, node 0 asks for it at 3, and gets none
    assert log.counters["probes"] == 2


def test_of_two_sticky_probes_of_a_job_the_one_that_got_no_task_goes() -> None:
    # One node of two slots, two probes of a job of one task. Both ask at 1; at 3 the first has the task, and learns
    # that the job has no other; the second learns that there is none, and goes. For its slot the first asks too, and
    # gets none.
    given: dict[str, Any] = {"least_probes": 2, "shortest_first": False, "schedulers": 1}
    log = log_of("eagle", jobs((0, [4])), [2], **given)
    assert [m.time_s for m in log.messages if m.kind == "REQUEST"] == [2, 2, 4]
    assert log.tasks == [("0.0", 0, 3, 7)]
    nodes = run_partition(setting_of("eagle", jobs((0, [4])), [2], network=1.0, **given)).world.nodes
    assert (nodes.head.tolist(), nodes.idle.tolist()) == ([NONE], [2])


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
