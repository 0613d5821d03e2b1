"""DAG jobs over a network where schedulers in Python decide: the resource manager, the coordinator, or both."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.schedulers.registry import find_scheduler
from actors.schedulers.variants import make_variant
from clusters.cluster import build_cluster
from examples.shortest_job import ShortestFirst
from examples.smallest_coflow import EqualShares, LeastSent
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.transfers.own_coordinators import FirstComes, LeastLeft
from tests.actors.transfers.runs import GB, over
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import make_dag_workload

NETWORKS = ("fair", "sebf", "aalo", "philae", FirstComes, EqualShares)


class AsSjf:
    """What `sjf` does at heartbeats: of the jobs by their critical paths, the first with a task that fits."""

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        free, left, pairs = machines.free[0].copy(), stages.ready.copy(), []
        for stage in np.argsort(stages.job_path_s, kind="stable"):
            while left[stage] > 0 and (free >= stages.demand[stage]).all():
                free -= stages.demand[stage]
                left[stage] -= 1
                pairs.append((stage, 0))
        return pairs


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("delay_s", [0.0, 0.01])
def test_a_manager_that_does_what_sjf_does_has_the_same_run(network: Any, delay_s: float) -> None:
    work = with_bytes(mixed_dags(jobs=20), 5)
    one, other = (
        run_setting(over(network, work, scheduler=name, delay_s=delay_s, heartbeat_s=0.7))
        for name in (AsSjf, "sjf")
    )
    assert one.tasks is not None
    assert other.tasks is not None
    assert all((one.tasks[name] == other.tasks[name]).all() for name in one.tasks)
    assert (one.finish_ns == other.finish_ns).all()
    assert (one.series.fetched_ns == other.series.fetched_ns).all()
    assert one.series.moved_bytes == other.series.moved_bytes > 0


def test_a_manager_sees_which_tasks_fetch() -> None:
    seen = []

    class Watching(ShortestFirst):
        def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
            shown = ("stage", "ready", "running", "fetching")
            seen.append((now_s, *(getattr(stages, name).tolist() for name in shown)))
            return super().launch(stages, machines, now_s)

    # The map ends at 1 s, and two of its three reducers start on machine 1, the only one with room for them. Each
    # fetches 1 GB until 3 s and computes until 4 s. A job that comes at 2 s waits, as does one that comes at 3.5 s.
    work = make_dag_workload(
        "by hand",
        [0, 2, 3.5],
        [2, 1, 1],
        [1, 3, 1, 1],
        [1, 1, 1, 1, 1, 1],
        [(0, 0, 1)],
        cpu_cores=[1, 4, 8, 8],
        edge_bytes=[3 * GB],
    )
    nodes = build_cluster("machines", [1, 8], cpu_cores=[1.0, 8.0])
    run_setting(over("fair", work, nodes, Watching))
    assert seen[:4] == [
        (0.0, [0], [1], [0], [0]),
        (1.0, [1], [3], [0], [0]),
        (2.0, [1, 2], [1, 1], [2, 0], [2, 0]),
        (3.5, [1, 2, 3], [1, 1, 1], [2, 0, 0], [0, 0, 0]),
    ]


class Remembering(ShortestFirst):
    """Launches a part of what it could, and remembers how often it was asked."""

    def start(self, num_nodes: int, seed: int) -> None:
        self.rng, self.asked = np.random.default_rng(seed), 0

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        self.asked += 1
        return super().launch(stages, machines, now_s)[: 1 + self.rng.integers(3) + self.asked % 2]


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize("network", ["fair", "sebf", FirstComes, LeastLeft])
def test_a_run_with_a_manager_of_one_s_own_goes_on_from_any_checkpoint(network: Any) -> None:
    setting = over(network, with_bytes(mixed_dags(), 2), scheduler=Remembering, delay_s=0.0005, rows=1)
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))
    again = replace(setting, scheduler=pickle.loads(pickle.dumps(setting.scheduler)))
    assert found == digest(run_setting(again, OBSERVED))


@pytest.mark.slow("more tasks than an event has messages")
@pytest.mark.compiled  # thousands of tasks
@pytest.mark.parametrize("network", ["fair", "sebf", LeastSent])
def test_a_manager_may_launch_more_than_an_event_may_send_messages(network: Any) -> None:
    # 2 GB leave each machine: 4,500 tasks on the two read 1 GB there, and 1 GB of the other.
    tasks = 4500
    work = make_dag_workload(
        "w", [0], [2], [2, tasks], [1.0] * (2 + tasks), [(0, 0, 1)], cpu_cores=[tasks, 1], edge_bytes=[4 * GB]
    )
    nodes = build_cluster("m", [tasks] * 2, cpu_cores=[tasks, tasks])
    split = over(network, work, nodes, Halving)
    found = run_setting(split, OBSERVED)
    assert found.tasks is not None
    assert (found.tasks["start_ns"][2:] == 1_000_000_000).all()
    assert (found.series.fetched_ns[2:] == 2_000_000_000).all()
    assert found.counters["flows"] == 2
    assert digest_with_restores(split, 2)[0] == digest(found)


class Halving:
    """Tasks on the two machines in turn."""

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        return [(0, task % 2) for task in range(stages.ready[0])]


@pytest.mark.parametrize("scheduler", ["carbyne", ShortestFirst])
@pytest.mark.parametrize("delay_s", [0.0, 0.01])
def test_a_coordinator_that_does_what_fifo_does_has_the_same_run(scheduler: Any, delay_s: float) -> None:
    # With greedy rates: each flow of the first coflow has both of its ports, as under a coordinator with `order`. It
    # goes by the numbers of waves.
    fifo = make_variant(find_scheduler("fifo"), {"rates": "greedy"})
    for seed in range(3):
        work = with_bytes(mixed_dags(jobs=20, seed=seed), seed)
        one, other = (
            run_setting(over(of, work, scheduler=scheduler, delay_s=delay_s, waves="apart"))
            for of in (FirstComes, fifo)
        )
        assert (one.finish_ns == other.finish_ns).all()
        assert (one.series.fetched_ns == other.series.fetched_ns).all()
        assert one.series.mean_cct_s == other.series.mean_cct_s > 0


@pytest.mark.parametrize(("waves", "sent"), [("together", [0.0, 1e9]), ("apart", [0.0, 0.0])])
def test_a_coordinator_sees_coflows_come_and_go(waves: str, sent: list[float]) -> None:
    seen = []

    class Watching(FirstComes):
        def order(self, coflows: Any, now_s: float) -> Any:
            shown = (coflows.coflow, coflows.arrival_s, coflows.width, coflows.flows_left, coflows.bytes_sent)
            seen.append((now_s, *(column.tolist() for column in shown)))
            return super().order(coflows, now_s)

    # Two reducers run one after the other on machine 1, each of which fetches 1 GB there: from 1 to 2 s, and when the
    # first has computed, from 3 to 4 s. With rows for one flow the second coflow gets those of the first.
    work = make_dag_workload(
        "by hand", [0], [2], [1, 2], [1, 1, 1], [(0, 0, 1)], cpu_cores=[1, 4], edge_bytes=[2 * GB]
    )
    nodes = build_cluster("machines", [1, 4], cpu_cores=[1.0, 4.0])
    setting = over(Watching, work, nodes, rows=1)
    run_setting(replace(setting, switch=replace(setting.switch, waves=waves)))
    at = [(now_s, *columns) for now_s, *columns in seen if columns[0]]
    assert at == [
        (1.0, [0], [1.0], [1], [1], [sent[0]]),
        (3.0, [1], [3.0], [1], [1], [sent[1]]),
    ]


class Largest:
    """A central scheduler of a user's own: tasks go to the two largest nodes in turn."""

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        return np.resize(np.argsort(-nodes.capacity["cpu_cores"], kind="stable")[:2], job.num_tasks)


@pytest.mark.parametrize("network", ["none", "fair", "fifo"])
def test_a_scheduler_of_ones_own_places_stages(network: str) -> None:
    work = with_bytes(mixed_dags(jobs=10), 2)
    found = run_setting(over(network, work, scheduler=Largest, delay_s=0.0005, short_cutoff_s=3.0))
    assert found.tasks is not None
    assert {*found.tasks["node"].tolist()} == {1, 4}
    assert (found.finish_ns > 0).all()


def test_rates_may_be_more_messages_than_one_event_may_send() -> None:
    # 30 maps on 30 machines, and 30 reducers: 870 flows of 1 / 29 GB begin at once, at a 29th of their ports.
    count = 30
    work = make_dag_workload(
        "w",
        [0],
        [2],
        [count, count],
        [1.0] * 2 * count,
        [(0, 0, 1)],
        cpu_cores=[1, 1],
        edge_bytes=[count * count * GB / 29],
    )
    nodes = build_cluster("m", [1] * count, cpu_cores=[1.0] * count)
    setting = over(EqualShares, work, nodes)
    found = run_setting(setting, OBSERVED)
    assert found.counters["flows"] == 870
    assert np.allclose(found.series.fetched_ns[count:], 2e9, rtol=1e-6)
    assert digest_with_restores(setting, 2)[0] == digest(found)
