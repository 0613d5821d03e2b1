"""DAG jobs whose shuffles are coflows: as the coordinator serves the same coflows of a workload, and by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice, permutations, product
from typing import Any

import numpy as np
import pytest
from coflow_emulations import setting_of as coflow_setting
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.schedulers.registry import find_scheduler
from actors.setting import Network, Setting, Switch
from actors.transfers.joined import FIRST_ROWS, with_network
from clusters.cluster import Cluster, build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, setting_of, with_bytes
from tests.actors.transfers.network_simulator import inputs_of
from tests.emulations import OBSERVED, digest, run_setting
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.dags import DagWorkload

GB = 1e9
COORDINATORS = ("fifo", "scf", "ncf", "lcf", "sebf", "sincronia", "aalo", "aalo-shares", "saath", "philae")
MACHINES = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0])


def under(
    coordinator: str,
    workload: DagWorkload,
    nodes: Cluster = MACHINES,
    scheduler: str = "drf",
    delay_s: float = 0.0,
    rows: int = FIRST_ROWS,
    waves: str = "apart",
    **given: Any,
) -> Setting:
    setting = setting_of(scheduler, workload, nodes, network=Network(delay_s), **given)
    joined = with_network(setting.scheduler, find_scheduler(coordinator), rows)
    return replace(
        setting, scheduler=joined, switch=Switch(port_bytes_per_s=GB, scheduler=coordinator, waves=waves)
    )


Edge = tuple[int, int, int]  # when tasks fetched over it, ns; the stage, and its parent


def bytes_over(arrays: Any, tasks: dict[str, np.ndarray]) -> dict[Edge, dict[tuple[int, int], float]]:
    """What crossed the network between two machines for the tasks of a stage that were launched together."""
    sizes: dict[Edge, dict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for stage in range(arrays.stage_first_task.size - 1):
        for task, parent, needed in inputs_of(arrays, stage, tasks["node"]):
            for source, size in needed.items():
                if source != tasks["node"][task]:
                    sizes[int(tasks["start_ns"][task]), stage, parent][source, int(tasks["node"][task])] += (
                        size
                    )
    return sizes


def orders(arrays: Any, edges: Iterable[Edge]) -> Iterator[list[Edge]]:
    """Yield the orders in which coflows may have been registered: which stage was launched first is not known."""
    place = {
        (stage, int(arrays.parent[e])): e
        for stage in range(arrays.stage_first_task.size - 1)
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1])
    }
    known = sorted(edges, key=lambda edge: (edge[0], edge[1], place[edge[1:]]))
    together = [list(group) for _, group in groupby(known, key=lambda edge: edge[0])]
    stages = [[list(of) for _, of in groupby(group, key=lambda edge: edge[1])] for group in together]
    for order in islice(product(*(permutations(group) for group in stages)), 200):
        yield [edge for group in order for of_stage in group for edge in of_stage]


def workload_of(
    order: list[Edge], sizes: dict[Edge, dict[tuple[int, int], float]], ports: int
) -> CoflowWorkload:
    flows = [flow for edge in order for flow in sorted(sizes[edge].items())]
    columns = ([flow[0][0] for flow in flows], [flow[0][1] for flow in flows], [flow[1] for flow in flows])
    return make_coflow_workload(
        "of dags", [edge[0] / 1e9 for edge in order], [len(sizes[edge]) for edge in order], *columns, ports
    )


def last_ends(
    arrays: Any, tasks: dict[str, np.ndarray], served: Outcome, order: list[Edge], work: Any
) -> Any:
    """When each task has its input, by when the flows of the coflow workload ended; -1: it needs none."""
    found = np.full(tasks["node"].size, -1)
    assert served.tasks is not None
    flows, ends, numbers = work.arrays(), served.tasks["finish_ns"], {edge: i for i, edge in enumerate(order)}
    for stage in range(arrays.stage_first_task.size - 1):
        for task, parent, _ in inputs_of(arrays, stage, tasks["node"]):
            found[task] = max(found[task], tasks["start_ns"][task])
            edge = int(tasks["start_ns"][task]), stage, parent
            if edge in numbers:
                own = slice(*flows.first_flow[numbers[edge] : numbers[edge] + 2])
                here = flows.egress[own] == tasks["node"][task]
                found[task] = max(found[task], ends[own][here].max(initial=0))
    return found


@pytest.mark.parametrize("coordinator", COORDINATORS)
@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(("drf", "carbyne", "srtf")),
    delay_s=st.sampled_from([0.0, 0.0005]),
)
@settings(max_examples=8)
def test_coflows_are_served_as_those_of_a_workload(
    coordinator: str, seed: int, scheduler: str, delay_s: float
) -> None:
    dags = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    found = run_setting(under(coordinator, dags, scheduler=scheduler, delay_s=delay_s))
    arrays, tasks = dags.arrays(), found.tasks
    assert tasks is not None
    sizes = bytes_over(arrays, tasks)
    for order in orders(arrays, sizes):
        work = workload_of(order, sizes, MACHINES.num_nodes)
        served = run_setting(coflow_setting(coordinator, work, speed=GB, delay_s=delay_s))
        if (found.series.fetched_ns == last_ends(arrays, tasks, served, order, work)).all():
            break
    else:
        raise AssertionError("no order of registration gives the same times")
    assert found.series.coflows == work.num_coflows
    assert np.isclose(found.series.mean_cct_s, (served.finish_ns - work.arrays().arrival_ns).mean() / 1e9)
    begin = np.where(found.series.fetched_ns >= 0, found.series.fetched_ns, tasks["start_ns"])
    assert (tasks["finish_ns"] - begin == arrays.duration_ns).all()


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_rows_are_given_back_and_grow(coordinator: str) -> None:
    # With few rows the host makes room again and again: the numbers of events differ, and no time does.
    work = with_bytes(mixed_dags(jobs=40), 2)
    whole, grown = (run_setting(under(coordinator, work, rows=rows)) for rows in (1 << 16, 1))
    assert grown.tasks is not None
    assert whole.tasks is not None
    assert (grown.finish_ns == whole.finish_ns).all()
    for name in ("node", "start_ns", "finish_ns"):
        assert (grown.tasks[name] == whole.tasks[name]).all()
    for one, other in zip(grown.series, whole.series, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_a_run_goes_on_from_any_checkpoint(coordinator: str) -> None:
    setting = under(coordinator, with_bytes(mixed_dags(), 2), scheduler="carbyne", delay_s=0.0005, rows=1)
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))
