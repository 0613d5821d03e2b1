"""Shares of jobs and the work they have left are whole: what rounding takes away decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dag_emulations import run
from hypothesis import assume, given
from hypothesis import strategies as st

from actors.scheduler import Scheduler
from actors.schedulers.dags.build import on_grid
from actors.schedulers.dags.drf import DRF, FAIR
from actors.schedulers.dags.shortest import SRTF
from clusters.cluster import build_cluster
from workloads.dags import DagWorkload, make_dag_workload


def jobs_of(tasks: list[list[float]], submit_s: list[float] | None = None, **given: Any) -> DagWorkload:
    """Jobs of one stage of tasks of a core."""
    count = len(tasks)
    durations = [duration for job in tasks for duration in job]
    return make_dag_workload(
        "jobs",
        submit_s or [0] * count,
        [1] * count,
        [*map(len, tasks)],
        durations,
        [],
        cpu_cores=[1] * count,
        **given,
    )


def one_machine(cores: int) -> Any:
    return build_cluster("machine", [cores], cpu_cores=[float(cores)])


@pytest.mark.parametrize("scheduler", [DRF, FAIR])
@pytest.mark.parametrize(
    "counts",
    [
        (2, 3, 7, 11, 49),
        pytest.param(range(2, 501), marks=[pytest.mark.compiled, pytest.mark.slow("499 runs")]),
    ],
    ids=["few", "all"],
)
def test_equal_jobs_that_are_to_have_two_tasks_have_them(scheduler: Scheduler, counts: Iterable[int]) -> None:
    for count in counts:
        found = run(scheduler, jobs_of([[1] * 4] * count), one_machine(2 * count), leftover="none")
        assert found.finish_ns.max() == 2_000_000_000, count


@pytest.mark.slow("many drawn cases")
@given(
    cores=st.lists(st.integers(1, 12), min_size=2, max_size=6),
    memory=st.lists(st.integers(1, 12), min_size=6, max_size=6),
    times=st.integers(1, 40),
)
def test_shares_under_drf_are_those_of_fractions(cores: list[int], memory: list[int], times: int) -> None:
    # A task of each job needs so many cores, and hundredths of the memory. So many tasks run at once as dominant
    # resource fairness says, computed in fractions.
    count = len(cores)
    needs = [(Fraction(c), Fraction(m, 100)) for c, m in zip(cores, memory, strict=False)]
    total = [Fraction(sum(cores) * times), Fraction(1)]
    profiles = []
    for need in needs:
        part = [need[r] / total[r] for r in range(2)]
        profiles.append([of / max(part) for of in part])
    x = 1 / max(sum(profile[r] for profile in profiles) for r in range(2))
    wanted = [
        min(int(x * profile[r] * total[r] / need[r]) for r in range(2))
        for profile, need in zip(profiles, needs, strict=True)
    ]
    work = make_dag_workload(
        "jobs",
        [0] * count,
        [1] * count,
        [200] * count,
        [1] * 200 * count,
        [],
        cpu_cores=cores,
        memory=[float(need[1]) for need in needs],
    )
    assume(min(wanted) > 0)  # else a job has one task all the same
    found = run(DRF, work, one_machine(sum(cores) * times), leftover="none").tasks
    assert found is not None
    first = [int((found["start_ns"][200 * job : 200 * (job + 1)] == 0).sum()) for job in range(count)]
    assert first == wanted


@given(st.lists(st.floats(0.01, 100).map(lambda s: round(s, 3)), min_size=1, max_size=8), st.integers(1, 5))
def test_jobs_with_as_much_left_go_by_arrival(rest: list[float], more: int) -> None:
    # J0 has the tasks of J1, and some before them; J1 comes when these have ended. The machine has memory for one task,
    # so that J0 has then as much left as J1, and goes first.
    before = [0.1 * (i + 1) for i in range(more)]
    at_s = sum(before)
    work = make_dag_workload(
        "jobs",
        [0, at_s],
        [2, 1],
        [more, len(rest), len(rest)],
        [*before, *rest, *rest],
        [(0, 0, 1)],
        cpu_cores=[1, 1, 1],
        memory=[0.7, 0.7, 0.7],
    )
    found = run(SRTF, work, one_machine(3))
    assert found.finish_ns[0] < found.finish_ns[1]


@given(st.lists(st.floats(1, 1e15), min_size=1, max_size=20), st.integers(0, 10**6))
def test_sums_of_work_are_exact(work: list[float], seed: int) -> None:
    draws = np.random.default_rng(seed)
    tasks = draws.integers(1, 1000, len(work))
    found = on_grid(np.array(work), tasks)
    exact, left = sum(Fraction(w) * int(n) for w, n in zip(found.tolist(), tasks, strict=True)), 0.0
    for stage in draws.permutation(np.repeat(np.arange(len(work)), np.minimum(tasks, 50))):
        left += found[stage]
    for stage in draws.permutation(np.repeat(np.arange(len(work)), np.minimum(tasks, 50))):
        left -= found[stage]
    assert left == 0.0
    assert Fraction(float(found @ tasks)) == exact
    assert np.allclose(found, work, rtol=0, atol=float(exact) * 2.0**-51)
