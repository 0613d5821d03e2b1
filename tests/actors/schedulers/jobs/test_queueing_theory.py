"""Emulations with plain queues and no network delay against queueing theory: M/M/1, M/G/1 and M/M/c.

The mean wait over seeds must be within 3 standard errors of theory, and within 2 %. The first fifth of the arrivals of
each run, while the queues fill, is left out. Formulas: Kleinrock, Queueing Systems, volume 1 (1975), sections 3.2,
3.5 and 5.6; waits in multiples of the mean service time, which is 1 s.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from emulations import NS, run_setting, setting_of

from actors.environment import Preemption
from actors.hosting.partition import Observe
from actors.kernel.compiled import config
from clusters.cluster import build_cluster
from workloads.arrow import from_numpy
from workloads.generators.synthetic import poisson
from workloads.jobs import make_workload
from workloads.requests import Requests

pytestmark = [
    pytest.mark.slow("many thousands of tasks"),
    pytest.mark.compiled,
    pytest.mark.skipif(bool(config.DISABLE_JIT), reason="millions of tasks"),
]

SEEDS = 12
TASKS = 200_000
WARM_UP = 0.2


def pollaczek_khinchin(load: float, scv: float) -> float:
    """Mean wait in M/G/1 with a service time of mean 1 and squared coefficient of variation `scv`."""
    return load / (1 - load) * (1 + scv) / 2


def erlang_c(load: float, servers: int) -> float:
    """Mean wait in M/M/c with a service time of mean 1."""
    offered = load * servers
    blocked = 1.0
    for k in range(1, servers + 1):  # Erlang B by its recursion
        blocked = offered * blocked / (k + offered * blocked)
    waits = blocked / (1 - load * (1 - blocked))
    return waits / (servers - offered)


def mean_waits(scheduler: str, slots: Sequence[int], load: float, **service: object) -> np.ndarray:
    """The mean wait of each seed's run, s."""
    waits = []
    for seed in range(SEEDS):
        workload = poisson(jobs=TASKS, seed=seed, load=load, nodes=1, slots=sum(slots), **service)
        setting = setting_of(scheduler, workload, slots, cutoff_s=math.inf, network=0.0, seed=seed)
        outcome = run_setting(setting, Observe())
        wait_ns = outcome.start_ns - workload.arrays().submit_ns
        waits.append(wait_ns[int(WARM_UP * TASKS) :].mean() / NS)
    return np.array(waits)


def waits_by_priority(
    scheduler: str,
    slots: int,
    load: float,
    resources: tuple[str, ...],
    preemption: Preemption | None = None,
    **service: object,
) -> Any:
    """The mean waits of jobs of priorities 0, 1 and 2 in each seed's run, (seeds, 3), s; nodes serve the 2 first.

    With preemption a wait is all of the time in which the task does not run.
    """
    found = []
    for seed in range(SEEDS):
        workload = poisson(jobs=TASKS, seed=seed, load=load, nodes=1, slots=slots, **service)
        band = np.random.default_rng(seed).choice(3, TASKS, p=SHARES)
        asked = {"cpu_cores": from_numpy(np.ones(TASKS)), "priority": from_numpy(band.astype(np.int64))}
        table = workload.jobs
        for name, values in asked.items():
            table = table.append_column(name, values)
        setting = setting_of(
            scheduler,
            dataclasses.replace(workload, jobs=table),
            build_cluster("one", [slots], cpu_cores=float(slots)),
            cutoff_s=math.inf,
            network=0.0,
            seed=seed,
        )
        setting = dataclasses.replace(setting, priorities=True, resources=resources, preemption=preemption)
        outcome = run_setting(setting, Observe())
        arrays = workload.arrays()
        wait_s = (outcome.start_ns - arrays.submit_ns) / NS
        if preemption is not None:
            wait_s = (outcome.finish_ns - arrays.submit_ns - arrays.duration_ns) / NS
        kept = np.arange(TASKS) >= WARM_UP * TASKS
        found.append([wait_s[kept & (band == k)].mean() for k in range(3)])
    return np.array(found)


SHARES = (0.5, 0.3, 0.2)


def by_priority(mean_s: float, load: float) -> list[float]:
    """Mean waits by priority without preemption, from the mean over all first come first served (Cobham, 1954)."""
    delay_s = mean_s * (1 - load)  # until a server is free, of all that arrive
    above = [load * sum(SHARES[k + 1 :]) for k in range(3)]
    return [delay_s / ((1 - above[k]) * (1 - above[k] - load * SHARES[k])) for k in range(3)]


@pytest.mark.parametrize(("slots", "resources"), [(1, ()), (4, ()), (4, ("cpu_cores",))])
def test_priorities_without_preemption_are_those_of_m_m_c(slots: int, resources: tuple[str, ...]) -> None:
    waits = waits_by_priority("random", slots, 0.8, resources)
    for k, theory_s in enumerate(by_priority(erlang_c(0.8, slots), 0.8)):
        agrees(waits[:, k], theory_s)


def test_priorities_without_preemption_are_those_of_m_g_1() -> None:
    waits = waits_by_priority("random", 1, 0.7, (), service="deterministic")
    for k, theory_s in enumerate(by_priority(pollaczek_khinchin(0.7, 0.0), 0.7)):
        agrees(waits[:, k], theory_s)


@pytest.mark.parametrize(("slots", "resources"), [(1, ()), (4, ("cpu_cores",))])
def test_preemptive_resume_priorities_are_those_of_m_m_c(slots: int, resources: tuple[str, ...]) -> None:
    """With exponential times of one mean the upper classes see none of those below, and all together are an M/M/c."""
    waits = waits_by_priority("random", slots, 0.8, resources, Preemption(keeps=True))
    # Those of priority k and above wait as in an M/M/c of their own load; what is below them changes nothing.
    loads = [0.8 * sum(SHARES[k:]) for k in range(3)]
    upward = [erlang_c(load, slots) for load in loads] + [0.0]
    for k in range(3 if slots == 1 else 2):  # the highest hardly waits for one of four
        share = SHARES[k]
        above = sum(SHARES[k + 1 :])
        agrees(waits[:, k], (upward[k] * (share + above) - upward[k + 1] * above) / share)


def test_preemptive_resume_priorities_are_those_of_m_g_1() -> None:
    """Miller (1960): the work in front, less what is above, over the rest of the time; then its own interruptions."""
    waits = waits_by_priority("random", 1, 0.7, (), Preemption(keeps=True), service="deterministic")
    for k in range(3):
        at_least, above = 0.7 * sum(SHARES[k:]), 0.7 * sum(SHARES[k + 1 :])
        wait_s = at_least / 2 / ((1 - at_least) * (1 - above)) + above / (1 - above)
        agrees(waits[:, k], wait_s)


def agrees(waits: np.ndarray, theory_s: float) -> None:
    error = waits.std(ddof=1) / math.sqrt(waits.size)
    assert abs(waits.mean() - theory_s) < 3 * error, (
        f"{waits.mean():.4f} ± {error:.4f} s, theory {theory_s:.4f} s"
    )
    assert abs(waits.mean() / theory_s - 1) < 0.02, f"{waits.mean():.4f} s, theory {theory_s:.4f} s"


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_random_placement_is_m_m_1_at_every_node(load: float) -> None:
    agrees(mean_waits("random", [1] * 10, load), pollaczek_khinchin(load, 1.0))


@pytest.mark.parametrize(
    ("service", "scv"),
    [
        ({"service": "deterministic"}, 0.0),
        ({"service": "lognormal", "cv": 1.5}, 2.25),
        # One task in ten takes ten times as long: mean 1.9 shorts, second moment 10.9.
        ({"service": "bimodal"}, 10.9 / 1.9**2 - 1),
    ],
    ids=["deterministic", "lognormal", "bimodal"],
)
def test_random_placement_is_m_g_1_at_every_node(service: dict[str, object], scv: float) -> None:
    agrees(mean_waits("random", [1] * 10, 0.7, **service), pollaczek_khinchin(0.7, scv))


@pytest.mark.parametrize("slots", [[4], [1] * 4, [3, 1]], ids=["one node", "four nodes", "two nodes"])
def test_central_fifo_is_m_m_c(slots: list[int]) -> None:
    agrees(mean_waits("central-fifo", slots, 0.7), erlang_c(0.7, 4))


def test_central_fifo_with_one_slot_is_m_d_1() -> None:
    agrees(mean_waits("central-fifo", [1], 0.7, service="deterministic"), pollaczek_khinchin(0.7, 0.0))


def test_sparrow_that_probes_every_node_is_m_m_c() -> None:
    # Late binding with a probe in every queue: a task waits only while all slots are busy, and jobs are served in
    # order. Any node's wasted requests take no time without network delay.
    waits = []
    for seed in range(SEEDS):
        workload = poisson(jobs=TASKS, seed=seed, load=0.7, nodes=4)
        setting = setting_of("sparrow", workload, 4, cutoff_s=math.inf, network=0.0, probe_ratio=4)
        outcome = run_setting(setting, Observe())
        wait_ns = outcome.start_ns - workload.arrays().submit_ns
        waits.append(wait_ns[int(WARM_UP * TASKS) :].mean() / NS)
    agrees(np.array(waits), erlang_c(0.7, 4))


@pytest.mark.parametrize("both", [0.1, 0.5])
def test_tasks_that_need_one_or_both_of_two_servers_pass_at_the_rate_of_theory(both: float) -> None:
    """All are there at the start, and none passes another (multiserver jobs: Brill and Green, 1984).

    A task that needs both runs alone. Of those that need one, two run, or one while the next needs both. The visits to
    these states by ends of tasks are as 1 : q^2 / p : q, where p need both and q = 1 - p need one.
    """
    q, mean_s = 1 - both, []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        demand = np.where(rng.random(TASKS) < both, 2.0, 1.0)
        workload = make_workload(
            "saturated", np.zeros(TASKS), np.ones(TASKS, np.int64), rng.exponential(1.0, TASKS),
            requests=Requests({"cpu_cores": demand}),
        )  # fmt: skip
        cluster = build_cluster("one", [1], cpu_cores=2.0)
        setting = setting_of("central-fifo", workload, cluster, cutoff_s=math.inf, network=0.0)
        outcome = run_setting(dataclasses.replace(setting, resources=("cpu_cores",)), Observe())
        mean_s.append(outcome.finish_ns.max() / NS / TASKS)
    visits, stay_s = np.array([1, q**2 / both, q]), np.array([1, 0.5, 1])
    agrees(np.array(mean_s), float(visits @ stay_s / visits.sum()))


def test_the_formulas_agree_where_they_meet() -> None:
    assert erlang_c(0.7, 1) == pytest.approx(pollaczek_khinchin(0.7, 1.0))
    # Two servers, in closed form: rho^2 / (1 - rho^2).
    assert erlang_c(0.6, 2) == pytest.approx(0.36 / 0.64)
