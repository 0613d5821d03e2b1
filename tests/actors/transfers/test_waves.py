"""Waves of a shuffle, which a coordinator takes for one coflow or each for one, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from test_coordinated import COORDINATORS, GB, under

from actors.fabric.ports import build_fabric
from actors.fabric.priority_queues import INACTIVE, make_queues
from actors.fabric.waves import Waves, enqueue_together, make_waves
from actors.hosting.outcome import Outcome
from actors.schedulers.registry import find_scheduler
from actors.schedulers.variants import make_variant
from actors.transfers.joined import with_network
from clusters.cluster import build_cluster
from examples.smallest_coflow import LeastSent
from tests.emulations import digest, run_setting
from workloads.coflows import no_coflows
from workloads.dags import DagWorkload, make_dag_workload

MACHINES = build_cluster("machines", [2, 4, 3, 4], cpu_cores=[2.0, 4.0, 3.0, 4.0])


def three_fetches(of_a_gb: float, of_b_gb: float, ask_s: tuple[float, float]) -> DagWorkload:
    """A shuffle in two waves, and another that asks in between, all from machine 0.

    A's map ends at 1 s. Its reducers need 4 cores, which only machines 1 and 3 have; job C holds those of one until the
    second of `ask_s`. B's map ends at the first of them; its reducer fits only on machine 2.
    """
    return make_dag_workload(
        "by hand",
        [0, 0, 0],
        [1, 2, 2],
        [1, 1, 2, 1, 1],
        [ask_s[1], 1, 9, 9, ask_s[0], 9],
        [(1, 0, 1), (2, 0, 1)],
        cpu_cores=[4, 1, 4, 1, 3],
        edge_bytes=[2 * of_a_gb * GB, of_b_gb * GB],
    )


def fetched_ms(found: Outcome) -> dict[str, float]:
    """Return when the two waves of A and the reducer of B had their input, ms after 1 s."""
    assert found.tasks is not None
    first, second, of_b = (found.series.fetched_ns[i] for i in (2, 3, 5))
    assert found.tasks["node"][[0, 1, 2, 3, 4, 5]].tolist() in ([1, 0, 3, 1, 0, 2], [3, 0, 1, 3, 0, 2])
    return {name: round(t / 1e6 - 1000, 6) for name, t in (("A1", first), ("A2", second), ("B", of_b))}


ONE_BY_ONE = {"A1": 40, "A2": 80, "B": 130}
A1_B_A2 = {"A1": 40, "A2": 130, "B": 90}
B_INTERRUPTS_A = {"A1": 90, "A2": 130, "B": 60}


@pytest.mark.parametrize(
    ("coordinator", "together", "apart"),
    [
        ("fifo", ONE_BY_ONE, A1_B_A2),
        ("lcf", B_INTERRUPTS_A, ONE_BY_ONE),
        ("ncf", B_INTERRUPTS_A, A1_B_A2),
        ("scf", ONE_BY_ONE, ONE_BY_ONE),
        ("sebf", B_INTERRUPTS_A, ONE_BY_ONE),
        ("sincronia", B_INTERRUPTS_A, ONE_BY_ONE),
    ],
)
def test_an_order_has_a_shuffle_once(
    coordinator: str, together: dict[str, float], apart: dict[str, float]
) -> None:
    # A asks for 40 MB at 1 s, B for 50 MB 5 ms later, and A for 40 MB more 10 ms after the first, when 30 MB of those
    # are left. The port of machine 0 sends 1 MB in a ms. So A is first to come; it has 80 MB, 70 MB of them left, and
    # two receivers; its longest flow has 40 MB. A wave of its own would have 40 MB and one receiver.
    work = three_fetches(0.04, 0.05, (1.005, 1.01))
    for waves, expected in (("together", together), ("apart", apart)):
        assert fetched_ms(run_setting(under(coordinator, work, MACHINES, waves=waves))) == expected


@pytest.mark.parametrize("coordinator", ["aalo", "aalo-shares", "saath"])
def test_a_later_wave_has_the_place_of_its_shuffle_in_the_queue(coordinator: str) -> None:
    # Intervals of 8 ms begin at 1 s. A's first 3 MB are sent until 1.003 s; B asks at 1.005 s, A again at 1.006 s. All
    # are in the first queue, first in, first out, and a port whose flow has ended is idle until the next interval.
    work = three_fetches(0.003, 0.003, (1.005, 1.006))
    together, apart = (
        fetched_ms(run_setting(under(coordinator, work, MACHINES, waves=waves)))
        for waves in ("together", "apart")
    )
    assert together == {"A1": 3, "A2": 11, "B": 19}
    assert apart == {"A1": 3, "A2": 19, "B": 11}


def test_saath_moves_all_waves_of_a_shuffle_down() -> None:
    # Intervals of 8 ms begin at 1 s. A has two flows, of which each may be sent half of the first queue's 10 MiB: at
    # 1.008 s both are in the second queue, and B, which asks at 1.009 s, is sent from 1.016 to 1.021 s. Apart, A's
    # first wave may be sent 10 MiB, until 1.016 s, and its second, which came before B, is sent until 1.032 s.
    work = three_fetches(0.04, 0.005, (1.009, 1.004))
    ends = [
        fetched_ms(run_setting(under("saath", work, MACHINES, waves=waves)))["B"]
        for waves in ("together", "apart")
    ]
    assert ends == [21, 37]


def test_a_coordinator_of_ones_own_sees_what_all_waves_have_sent() -> None:
    # It is asked every 8 ms, from 1 s on, and serves the coflow first that has sent least: at 1.008 s A has sent 3 MB,
    # and B nothing. Apart, A's second wave has sent nothing either, and came first.
    work = three_fetches(0.003, 0.003, (1.006, 1.005))
    together, apart = (
        fetched_ms(run_setting(under(LeastSent, work, MACHINES, waves=waves)))
        for waves in ("together", "apart")
    )
    assert together == {"A1": 3, "A2": 19, "B": 11}
    assert apart == {"A1": 3, "A2": 11, "B": 19}


class Standing(NamedTuple):
    waves: Waves


def test_a_shuffle_stays_in_the_last_queue_that_a_wave_has_entered() -> None:
    fabric = build_fabric(no_coflows(2).arrays(), GB)
    queues = make_queues(
        fabric, {"first_limit_bytes": 1, "factor": 10.0, "queues": 4, "interval_s": 1, "starvation": "strict"}
    )
    queues = queues._replace(queue=np.full(2, INACTIVE), entered=np.zeros(2, np.int64))
    standing = Standing(make_waves(2, 1)._replace(shuffle=np.zeros(2, np.int64)))
    for wave, queue in ((0, 2), (1, 1), (1, 2)):
        enqueue_together(standing, queues, wave, queue)
        assert standing.waves.queue.tolist() == [2]
    assert queues.queue.tolist() == [2, 2]
    assert queues.entered[0] == queues.entered[1]


@pytest.mark.parametrize("thin_limit", [0, 1])
def test_philae_samples_a_shuffle_once_and_takes_it_for_thin_by_all_of_its_waves(thin_limit: int) -> None:
    # A's first wave has ended when its second is sent, from 1.005 s on; B asks at 1.006 s. Together, with a limit of 0
    # A's size is known, and B, which is sampled, goes first; with a limit of 1 A has too many flows to be thin, and B,
    # which is thin, goes first. Apart, both are sampled, or thin: the first to come is sent first.
    philae = make_variant(find_scheduler("philae"), {"thin_limit": thin_limit}, "other-limit")
    joined = with_network(find_scheduler("drf"), philae)
    work = three_fetches(0.003, 0.003, (1.006, 1.005))
    together, apart = (
        fetched_ms(run_setting(replace(under("philae", work, MACHINES, waves=waves), scheduler=joined)))
        for waves in ("together", "apart")
    )
    assert together == {"A1": 3, "A2": 11, "B": 9}
    assert apart == {"A1": 3, "A2": 8, "B": 11}


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_shuffles_of_one_wave_are_the_same_together_and_apart(coordinator: str) -> None:
    # Machines have room for all tasks, so that all reducers of a job are launched at one time.
    draw = np.random.default_rng(3)
    tasks = draw.integers(1, 30, 40)
    work = make_dag_workload(
        "map and reduce",
        draw.uniform(0, 3, 20),
        [2] * 20,
        tasks,
        draw.uniform(0.5, 1, tasks.sum()),
        [(job, 0, 1) for job in range(20)],
        cpu_cores=[1.0] * 40,
        edge_bytes=draw.choice([1e7, 3e8, 2e9], 20),
    )
    nodes = build_cluster("machines", [10] * 120, cpu_cores=[10.0] * 120)
    together, apart = (
        run_setting(under(coordinator, work, nodes, waves=waves)) for waves in ("together", "apart")
    )
    assert 10 < together.series.coflows <= 20
    assert digest(together) == digest(apart)
