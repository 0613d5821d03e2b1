"""Tasks that together need more than their machine has slow each other down, and managers that do not see resources.

Beside examples (`golden/dags/machines.txt`): one machine against a simulation in fractions that shares no code; and in
whole runs, that each task has done its work by the speeds that follow from which tasks ran beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emulations import OBSERVED, digest, run_setting, run_windows
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.setting import Costs, Dynamics, Network, Setting
from clusters.capacity import capacities, demands
from clusters.cluster import Cluster, build_cluster
from clusters.failures import NODE, Outages
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_emulations import ALL
from tests.actors.dag_settings import mixed_dags, setting_of
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.stages import stages_schema
from workloads.transform.primitives import with_tables

AT_ONCE = Network(0.0)
ONE_MACHINE = build_cluster("one", [99], cpu_cores=[99.0])


def jobs_of_one_task(rows: Sequence[tuple[float, float, float, float]], **more: Any) -> DagWorkload:
    """Each row: when a task arrives, its duration, and its shares of a machine's memory and disk bandwidth."""
    arrival_s, duration_s, memory, disk = zip(*rows, strict=True)
    ones = [1] * len(rows)
    shares = {"memory": memory, "disk_in": disk, **more}
    return make_dag_workload("by hand", arrival_s, ones, ones, duration_s, [], cpu_cores=ones, demands=shares)


def slowing(setting: Setting, **changes: Any) -> Setting:
    return dataclasses.replace(setting, slows=True, **changes)


def blind(workload: DagWorkload, cluster: Cluster = ONE_MACHINE, **more: Any) -> Setting:
    """A run under a manager that sees cores alone, where tasks slow each other down."""
    return slowing(setting_of("drf", workload, cluster, **{"network": AT_ONCE, "sees": "cores", **more}))


class OneMachine:
    """One machine with 1 of each resource, in fractions of a ns: tasks run from when they come."""

    def __init__(self, tasks: Sequence[tuple[int, int, tuple[Fraction, ...]]]):
        self.tasks = tasks  # (arrival, work, needs)

    def ends(self) -> list[Fraction]:
        left = {i: Fraction(work) for i, (_, work, _) in enumerate(self.tasks)}
        coming = sorted(range(len(self.tasks)), key=lambda i: self.tasks[i][0])
        now, there, end = Fraction(0), set[int](), dict[int, Fraction]()
        while coming or there:
            speed = {i: self.speed(i, there) for i in there}
            nearest = min((now + left[i] / speed[i] for i in there), default=None)
            if coming and (nearest is None or self.tasks[coming[0]][0] < nearest):
                then = Fraction(max(self.tasks[coming[0]][0], now))
            else:
                assert nearest is not None
                then = nearest
            for i in there:
                left[i] -= speed[i] * (then - now)
            now = then
            for i in [i for i in there if left[i] == 0]:
                there.remove(i)
                end[i] = now
            while coming and self.tasks[coming[0]][0] <= now:
                there.add(coming.pop(0))
        return [end[i] for i in range(len(self.tasks))]

    def speed(self, task: int, there: set[int]) -> Fraction:
        mine = self.tasks[task][2]
        together = [sum(self.tasks[i][2][r] for i in there) for r in range(len(mine))]
        return min([Fraction(1), *(1 / n for n, own in zip(together, mine, strict=True) if own and n > 1)])


TASK = st.tuples(
    st.integers(0, 20_000), st.integers(0, 20_000), st.sampled_from([0, 1, 3, 6]), st.integers(0, 10)
)


@settings(max_examples=80)
@given(st.lists(TASK, min_size=1, max_size=9))
def test_one_machine_is_as_a_simulation_in_fractions_says(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    """Times are in ms. Each end is rounded to a ns, which others then see."""
    drawn = sorted(drawn)
    workload = jobs_of_one_task([(a / 1000, d / 1000, m / 10, k / 10) for a, d, m, k in drawn])
    arrays = workload.arrays()
    rows = [
        (int(arrays.submit_ns[i]), int(arrays.duration_ns[i]), (Fraction(m, 10), Fraction(k, 10)))
        for i, (_, _, m, k) in enumerate(drawn)
    ]
    outcome = run_setting(blind(workload))
    assert outcome.tasks is not None
    expected, found = OneMachine(rows).ends(), outcome.tasks["finish_ns"].tolist()
    assert max(abs(a - b) for a, b in zip(expected, found, strict=True)) <= len(drawn)


def with_disk(workload: DagWorkload, seed: int = 1) -> DagWorkload:
    """The same jobs, whose tasks also need a share of a machine's disk bandwidth."""
    disk = np.random.default_rng(seed).choice([0.0, 0.2, 0.5, 0.9], workload.num_stages)
    schema = stages_schema([*workload.stages.column_names, "disk_in"])
    table = workload.stages.append_column(schema.field("disk_in"), pa.array(disk))
    return with_tables(workload, stages=table.cast(schema))


def work_done(setting: Setting, outcome: Outcome) -> np.ndarray:
    """The work that each task has done, ns, [T]: by the tasks that ran beside it, those included that were lost."""
    work, tasks = setting.workload, outcome.tasks
    assert tasks is not None
    task, begin, end = outcome.spans()
    node = np.append(tasks["node"], outcome.attempts["node"])[: task.size]
    need = demands(work)[np.repeat(np.arange(work.num_stages), np.diff(work.arrays().stage_first_task))]
    capacity = capacities(setting.cluster, work.resources)
    if outcome.series is not None:
        begin = np.maximum(begin, outcome.series.fetched_ns)
    done = np.zeros(task.size)
    for machine in range(capacity.shape[0]):
        on = np.flatnonzero(node == machine)
        times = np.unique(np.append(begin[on], end[on]))
        for since, until in pairwise(times.tolist()):
            there = on[(begin[on] <= since) & (end[on] >= until)]
            share = np.maximum(need[task[there]].sum(axis=0) / capacity[machine], 1.0)
            slow = np.where(need[task[there]] > 0, share, 1.0).max(axis=1, initial=1.0)
            done[there] += (until - since) / slow
    return done[: work.num_tasks]


def overloaded(scheduler: str, **more: Any) -> Setting:
    """Over-used machines, that also have heartbeats, stragglers and costs if these are given."""
    setting = setting_of(scheduler, with_disk(mixed_dags(20)), sees="cores+memory", seed=3, **more)
    return slowing(setting, dynamics=Dynamics(straggler_share=0.2))


@pytest.mark.parametrize("scheduler", [one.name for one in ALL])
@pytest.mark.parametrize("heartbeat_s", [0.0, 1.5])
def test_each_task_does_its_work(scheduler: str, heartbeat_s: float) -> None:
    costs = Costs("fixed", 0.01, 0.05, 0.02)
    setting = overloaded(scheduler, heartbeat_s=heartbeat_s, costs=costs if heartbeat_s else None)
    outcome = run_setting(setting)
    assert outcome.tasks is not None
    plain = run_setting(dataclasses.replace(setting, slows=False))
    assert plain.tasks is not None
    work = plain.tasks["finish_ns"] - plain.tasks["start_ns"]  # with stragglers, as the seed draws them
    last = np.maximum.reduceat(outcome.tasks["finish_ns"], setting.workload.arrays().first_task[:-1])
    assert (outcome.finish_ns == last).all()
    took = outcome.tasks["finish_ns"] - outcome.tasks["start_ns"]
    assert np.abs(work_done(setting, outcome) - work).max() < 50
    assert (took >= work).all()
    assert (took > work).mean() > 0.3


@pytest.mark.slow("several whole runs")
def test_slowing_changes_nothing_where_nothing_is_over_used() -> None:
    for heartbeat_s in (0.0, 1.5):
        setting = setting_of("carbyne", with_disk(mixed_dags(20)), heartbeat_s=heartbeat_s)
        plain, slow = run_setting(setting), run_setting(slowing(setting))
        assert plain.tasks is not None
        assert slow.tasks is not None
        assert all((plain.tasks[name] == slow.tasks[name]).all() for name in plain.tasks)
        assert (plain.finish_ns == slow.finish_ns).all()


def test_tasks_that_a_machine_loses_slow_no_others() -> None:
    down = Outages(
        np.full(3, NODE), np.array([0, 1, 3]), np.array([4.0, 5.0, 9.0]), np.array([12.0, 6.0, 30.0])
    )
    for heartbeat_s in (0.0, 1.5):
        setting = overloaded("drf", heartbeat_s=heartbeat_s)
        failing = dataclasses.replace(setting, dynamics=Dynamics(outages=down, detection_s=1.0))
        outcome = run_setting(failing)
        assert outcome.counters["tasks_lost"] > 0
        work = setting.workload.arrays().duration_ns
        assert np.abs(work_done(failing, outcome) - work).max() < 50


@pytest.mark.slow("many partitions and checkpoints")
@pytest.mark.parametrize("heartbeat_s", [0.0, 1.5])
def test_partitions_and_checkpoints_change_nothing(heartbeat_s: float, tmp_path: Path) -> None:
    more = {"managers": 2, "heartbeat_s": heartbeat_s, "network": Network(0.01, spread_s=0.02)}
    setting = overloaded("carbyne", **more)
    dynamics = Dynamics(mtbf_s=20.0, mttr_s=3.0, detection_s=0.5, straggler_share=0.2)
    setting = dataclasses.replace(setting, dynamics=dynamics)
    whole = digest(run_setting(setting, OBSERVED))
    assert {digest(run_windows(setting, OBSERVED, partitions)) for partitions in (1, 3, 6)} == {whole}
    found, moves = digest_with_restores(setting, seed=2, folder=tmp_path)
    assert moves > 10
    assert found == whole


@pytest.mark.parametrize("scheduler", [one.name for one in ALL])
def test_what_is_not_seen_is_as_if_it_were_not_stated(scheduler: str) -> None:
    """Without slowing: the same as of a workload of which no task states the resource."""
    plain, more = mixed_dags(20), with_disk(mixed_dags(20))
    unseen = run_setting(setting_of(scheduler, more, sees="cpu_cores + memory"))
    unstated = run_setting(setting_of(scheduler, plain))
    assert unseen.tasks is not None
    assert unstated.tasks is not None
    assert all((unseen.tasks[name] == unstated.tasks[name]).all() for name in unseen.tasks)
    assert unseen.counters == unstated.counters


def test_slots_are_not_named() -> None:
    workload = make_dag_workload("slots", [0], [1], [1], [1], [])
    with pytest.raises(
        InputError, match=r"^parameter sees of drf: no task of slots states what it needs; want all$"
    ):
        run_setting(setting_of("drf", workload, sees="cores"))
