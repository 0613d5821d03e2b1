"""Schedulers of one's own that probe, where tasks hold cores and memory of nodes that are not alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.testing import check_resources, check_result
from examples.probing_schedulers import Sparrow, TwoChoices
from tests.resource_check import check_run
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

CORES = [1.0, 4.0, 2.0, 4.0, 1.0, 8.0]
CLUSTER = build_cluster("unlike", [8] * 6, cpu_cores=CORES, memory_bytes=[2**33] * 6)
PLAIN: dict[str, Any] = {"short_cutoff": 5.0, "in_process": True, "output_tasks": True}


def workload(jobs: int = 60) -> JobWorkload:
    """Jobs of one to four tasks, which need 0.5 to 4 cores and 1 GiB: on some nodes those of most jobs do not fit."""
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 5, jobs)
    asked = Requests({"cpu_cores": rng.choice([0.5, 2.0, 4.0], jobs), "memory_gib": np.ones(jobs)})
    durations = rng.exponential(4.0, counts.sum())
    return make_workload("asking", np.cumsum(rng.exponential(2.0, jobs)), counts, durations, requests=asked)


def run(tmp_path: Path, scheduler: type, **more: Any) -> emu.Result:
    file = tmp_path / "cluster.parquet"
    pq.write_table(CLUSTER.table, file)
    result = emu.run(scheduler, workload(), cluster=file, **{**PLAIN, **more})
    assert isinstance(result, emu.Result)
    return result


class Drawing(Sparrow):
    """A probe to each of some nodes, another one to one more, and the last task bound to a node."""

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        need = job.demand["cpu_cores"]
        assert job.demand["memory_gib"] == 1.0
        assert cluster.capacity["cpu_cores"].tolist() == CORES
        large = np.flatnonzero(cluster.capacity["cpu_cores"] >= need)
        for _ in range(2):
            drawn = cluster.draw(job, 3)
            assert np.isin(drawn, large).all()
            assert len({*drawn.tolist()}) == min(3, large.size)
            cluster.probe(job, drawn)
        again = {cluster.draw_again(job) for _ in range(60)}
        assert again == {*large.tolist()}
        assert {cluster.draw_again(job, 4) for _ in range(20)} <= {5, *(n for n in large if n >= 4)}
        cluster.place(job, [cluster.draw_again(job)])


def test_what_is_drawn_is_large_enough_and_what_nodes_have_is_known(tmp_path: Path) -> None:
    for more in ({}, {"clock": "windows", "partitions": 2}):
        result = run(tmp_path, Drawing, **more)
        check_result(result, workload(), 6, workload().num_tasks)
        check_resources(result, workload(), CLUSTER)
        check_run(result.tasks, workload(), CLUSTER)


@pytest.mark.parametrize("scheduler", [Sparrow, TwoChoices])
def test_the_examples_place_tasks_where_they_fit(tmp_path: Path, scheduler: type) -> None:
    check_run(run(tmp_path, scheduler).tasks, workload(), CLUSTER)


class Probing:
    """All probes to node 4, of one core."""

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        cluster.probe(job, [4] * job.num_tasks)


class Placing:
    """All tasks to the nodes in turn."""

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        cluster.place(job, np.resize([5, 4], job.num_tasks))


class HandingOver:
    """The tasks are handed over to a scheduler that does not look at what they need."""

    coordinators = 1

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        cluster.hand_over(job, cluster.coordinators[0], job.num_tasks)

    def on_tasks(self, job: emu.Job, count: int, cluster: emu.Cluster) -> None:
        cluster.place(job, [4] * count)


@pytest.mark.parametrize(
    ("scheduler", "method"), [(Probing, "probe"), (Placing, "place"), (HandingOver, "place")]
)
def test_a_node_that_is_too_small_is_refused_at_once(tmp_path: Path, scheduler: type, method: str) -> None:
    with pytest.raises(InputError) as caught:
        run(tmp_path, scheduler)
    needs = [float(need) for need in workload().jobs["cpu_cores"].to_pylist()]
    job = next(
        i for i, (need, count) in enumerate(zip(needs, workload().jobs["num_tasks"].to_pylist(), strict=True))
        if need > 1 and (scheduler is not Placing or count > 1)
    )  # fmt: skip
    wrong = (
        f"{method}() got node 4 for job {job}, whose tasks need {needs[job]:g} of cpu_cores; the node has 1"
    )
    assert f"{wrong} (cluster.capacity)" in str(caught.value)


def test_in_slots_nothing_is_too_small(tmp_path: Path) -> None:
    result = run(tmp_path, Probing, resources_use="slots")
    assert set(result.tasks["node"].to_pylist()) == {4}
