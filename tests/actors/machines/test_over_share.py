"""What is left over goes first to the job that is furthest over its share: against a count of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from actors.hosting.outcome import Outcome
from actors.schedulers.dags.drf import DRF
from clusters.cluster import build_cluster
from tests.actors.dag_emulations import run
from workloads.dags import DagWorkload, make_dag_workload

CORES = 9


def starts_s(outcome: Outcome) -> list[float]:
    assert outcome.tasks is not None
    return (outcome.tasks["start_ns"] / 1e9).tolist()


def machine(cpu_cores: int) -> Any:
    return build_cluster("one machine", [cpu_cores], cpu_cores=[cpu_cores])


@pytest.mark.parametrize("seed", range(4))
def test_as_a_count_of_its_own_says(seed: int) -> None:
    """Jobs of one stage on one machine with heartbeats."""
    rng, jobs = np.random.default_rng(seed), 12
    tasks = rng.integers(2, 40, jobs)
    workload = make_dag_workload(
        "w",
        np.append(
            0, np.sort(rng.uniform(0, 30, jobs - 1)).round(3)
        ),  # heartbeats are a second apart from then on
        [1] * jobs,
        tasks,
        rng.uniform(1, 9, tasks.sum()).round(3),
        [],
        cpu_cores=rng.uniform(0.05, 1.5, jobs).round(4),
        memory=rng.uniform(0.01, 0.1, jobs).round(4),
    )
    counts = [count(workload, leftover) for leftover in ("in-order", "over-share")]
    assert counts[0] != counts[1]
    for leftover, counted in zip(("in-order", "over-share"), counts, strict=True):
        found = run(DRF, workload, machine(cpu_cores=CORES), leftover=leftover, heartbeat_s=1.0)
        assert starts_s(found) == counted


def count(workload: DagWorkload, leftover: str) -> list[float]:
    """Return when the tasks of jobs of one stage start, each second: in exact fractions, and in lists of Python."""
    a = workload.arrays()
    total = [Fraction(CORES) if name == "cpu_cores" else Fraction(1) for name in workload.resources]
    demand = [[Fraction(str(part)) / all_of for part, all_of in zip(d, total, strict=True)] for d in a.demand]
    jobs, resources = range(len(demand)), range(len(total))
    waiting = {j: list(range(a.first_task[j], a.first_task[j + 1])) for j in jobs}
    running: list[tuple[int, int, int]] = []  # end, job, task
    start = [0] * int(a.first_task[-1])
    now = 0
    while any(waiting.values()):
        now += 10**9
        running = [one for one in running if one[0] > now]
        held = {j: sum(1 for one in running if one[1] == j) for j in jobs}
        there = [j for j in jobs if a.submit_ns[j] <= now and (waiting[j] or held[j])]
        profile = {j: [part / max(demand[j]) for part in demand[j]] for j in there}
        level = min(1 / sum(profile[j][r] for j in there) for r in resources) if there else 0

        def used(j: int, r: int, held: dict[int, int] = held) -> Fraction:
            return held[j] * demand[j][r]

        def share(j: int, r: int, level: Any = level, profile: Any = profile) -> Fraction:
            return Fraction(level * profile[j][r])

        while True:
            fit = [
                j for j in there
                if waiting[j] and all(sum(used(i, r) for i in jobs) + demand[j][r] <= 1 for r in resources)
            ]  # fmt: skip
            own = [
                j for j in fit
                if held[j] == 0 or all(used(j, r) + demand[j][r] <= share(j, r) for r in resources)
            ]  # fmt: skip
            if not fit:
                break
            if own or leftover == "in-order":
                job = min(own or fit, key=lambda j: (max(used(j, r) for r in resources), j))
            else:
                job = min(fit, key=lambda j: (-max(used(j, r) - share(j, r) for r in resources), j))
            task = waiting[job].pop(0)
            start[task] = now
            held[job] += 1
            running.append((now + int(a.duration_ns[task]), job, task))
    return [t / 1e9 for t in start]
