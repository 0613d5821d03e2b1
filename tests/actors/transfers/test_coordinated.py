"""DAG jobs whose shuffles are coflows: as the coordinator serves the same coflows of a workload, and by hand."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
from actors.schedulers.variants import make_variant
from actors.setting import Network, Setting, Switch
from actors.transfers.joined import FIRST_ROWS, with_network
from clusters.cluster import Cluster, build_cluster
from examples.smallest_coflow import EqualShares, LeastSent
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, setting_of, two_shuffles, with_bytes
from tests.actors.transfers.network_simulator import NOWHERE, inputs_of
from tests.actors.transfers.own_coordinators import FirstComes, LeastLeft, Smallest
from tests.emulations import OBSERVED, digest, run_setting
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.dags import DagWorkload, make_dag_workload

GB = 1e9
COORDINATORS = ("fifo", "scf", "ncf", "lcf", "sebf", "sincronia", "aalo", "aalo-shares", "saath", "philae")
OWN = (FirstComes, LeastSent, Smallest, EqualShares, LeastLeft)
MACHINES = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0])


def under(
    coordinator: Any,
    workload: DagWorkload,
    nodes: Cluster = MACHINES,
    scheduler: str = "drf",
    delay_s: float = 0.0,
    rows: int = FIRST_ROWS,
    waves: str = "together",
    **given: Any,
) -> Setting:
    setting = setting_of(scheduler, workload, nodes, network=Network(delay_s), **given)
    network = None if coordinator == "fair" else find_scheduler(coordinator)
    joined = with_network(setting.scheduler, network, rows)
    return replace(
        setting, scheduler=joined, switch=Switch(port_bytes_per_s=GB, scheduler=str(coordinator), waves=waves)
    )


Edge = tuple[int, int, int]  # when tasks fetched over it, ns; the stage, and its parent


def bytes_over(
    arrays: Any, tasks: dict[str, np.ndarray], origin: Mapping[int, int] = NOWHERE
) -> dict[Edge, dict[tuple[int, int], float]]:
    """What crossed the network between two machines for the tasks of a stage that were launched together."""
    sizes: dict[Edge, dict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for stage in range(arrays.stage_first_task.size - 1):
        for task, parent, needed in inputs_of(arrays, stage, tasks["node"], origin):
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
    known = sorted(edges, key=lambda edge: (edge[0], edge[1], place.get(edge[1:], len(place))))
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
    arrays: Any,
    tasks: dict[str, np.ndarray],
    served: Outcome,
    order: list[Edge],
    work: Any,
    origin: Mapping[int, int] = NOWHERE,
) -> Any:
    """When each task has its input, by when the flows of the coflow workload ended; -1: it needs none."""
    found = np.full(tasks["node"].size, -1)
    assert served.tasks is not None
    flows, ends, numbers = work.arrays(), served.tasks["finish_ns"], {edge: i for i, edge in enumerate(order)}
    for stage in range(arrays.stage_first_task.size - 1):
        for task, parent, _ in inputs_of(arrays, stage, tasks["node"], origin):
            found[task] = max(found[task], tasks["start_ns"][task])
            edge = int(tasks["start_ns"][task]), stage, parent
            if edge in numbers:
                own = slice(*flows.first_flow[numbers[edge] : numbers[edge] + 2])
                here = flows.egress[own] == tasks["node"][task]
                found[task] = max(found[task], ends[own][here].max(initial=0))
    return found


@pytest.mark.parametrize("coordinator", [*COORDINATORS, *OWN])
@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(("drf", "carbyne", "srtf")),
    delay_s=st.sampled_from([0.0, 0.0005]),
)
@settings(max_examples=8)
def test_coflows_are_served_as_those_of_a_workload(
    coordinator: Any, seed: int, scheduler: str, delay_s: float
) -> None:
    dags = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    found = run_setting(under(coordinator, dags, scheduler=scheduler, delay_s=delay_s, waves="apart"))
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


@pytest.mark.parametrize("coordinator", [*COORDINATORS, *OWN])
def test_rows_are_given_back_and_grow(coordinator: Any) -> None:
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


@pytest.mark.parametrize("coordinator", [*COORDINATORS, *OWN])
def test_a_run_goes_on_from_any_checkpoint(coordinator: Any) -> None:
    setting = under(coordinator, with_bytes(mixed_dags(), 2), scheduler="carbyne", delay_s=0.0005, rows=1)
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))


@pytest.mark.parametrize("coordinator", [*COORDINATORS, *OWN])
def test_coflows_of_an_instant_are_registered_before_anything_else_happens(coordinator: Any) -> None:
    # At 1 s the stages of three jobs fetch. With 2 rows the host makes room in between. The input of the first job's
    # task is on its machine, and it takes no time: its end lets a task of the last job start on that machine at 1 s,
    # where another of its stage fetches already.
    work = make_dag_workload(
        "by hand",
        [0] * 4,
        [1, 2, 2, 2],
        [1, 1, 1, 2, 2, 1, 2],
        [1, 1, 0, 1, 1, 1, 1, 1, 1, 1],
        [(1, 0, 1), (2, 0, 1), (3, 0, 1)],
        cpu_cores=[4, 2, 2, 0.5, 1, 0.5, 2],
        edge_bytes=[1e6, 1e9, 1e9],
    )
    nodes = build_cluster("machines", [8] * 4, cpu_cores=[6.0, 0.5, 0.5, 0.5])
    whole, in_parts = (run_setting(under(coordinator, work, nodes, rows=rows)) for rows in (FIRST_ROWS, 2))
    assert (in_parts.finish_ns == whole.finish_ns).all()
    assert (in_parts.series.fetched_ns == whole.series.fetched_ns).all()
    assert in_parts.series.coflows == whole.series.coflows == 3


@pytest.mark.parametrize("coordinator", ["fifo", "scf", "lcf", "sebf", "sincronia", "philae"])
@pytest.mark.parametrize("sizes_gb", [(1, 2), (2, 1)])
def test_shuffles_that_share_a_port_are_sent_one_after_the_other(
    coordinator: str, sizes_gb: tuple[int, int]
) -> None:
    # Both begin at 1 s, and the port sends 1 GB a second. A coordinator that knows sizes sends the smaller one first;
    # fifo the first to come, as does philae, to which both are thin.
    nodes = build_cluster("machines", [2, 4, 4], cpu_cores=[2.0, 4.0, 4.0])
    found = run_setting(under(coordinator, two_shuffles(*sizes_gb), nodes))
    first_is_first = coordinator in ("fifo", "philae") or sizes_gb[0] < sizes_gb[1]
    ends_s = [1 + sizes_gb[0], 4] if first_is_first else [4, 1 + sizes_gb[1]]
    assert (found.series.fetched_ns / 1e9).tolist() == [-1e-9, ends_s[0], -1e-9, ends_s[1]]
    assert found.finish_ns.tolist() == [(end + 1) * 1_000_000_000 for end in ends_s]
    assert (found.series.coflows, found.series.mean_cct_s) == (2, sum(ends_s) / 2 - 1)


@pytest.mark.parametrize("waves", ["together", "apart"])
def test_what_an_earlier_wave_has_sent_counts(waves: str) -> None:
    # A's reducers, on machine 1, run one after the other: the first fetches 20 MB from 1 to 1.02 s and ends at 2.02 s,
    # when the other asks for its 20 MB. B's reducer, on machine 2, asks for 10 MB at 2.021 s. Both leave by the port of
    # machine 0, and the next interval of 8 ms begins at 2.024 s; a port is idle until the next one. Taken for one
    # shuffle, A has sent more than the first queue's limit of 10 MiB: B is sent until 2.034 s, and A from 2.04 s on.
    # Else A, which came first, is sent until 2.04 s, 16 MB of it; then B, and at 2.056 s what A has left.
    work = make_dag_workload(
        "by hand",
        [0, 0],
        [2, 2],
        [1, 2, 1, 1],
        [1, 1, 1, 2.021, 1],
        [(0, 0, 1), (1, 0, 1)],
        cpu_cores=[1, 4, 1, 3],
        edge_bytes=[0.04 * GB, 0.01 * GB],
    )
    nodes = build_cluster("machines", [2, 4, 3], cpu_cores=[2.0, 4.0, 3.0])
    found = run_setting(under("aalo", work, nodes, waves=waves))
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == [0, 1, 1, 0, 2]
    of_b = 2_034_000_000 if waves == "together" else 2_050_000_000
    assert found.series.fetched_ns.tolist() == [-1, 1_020_000_000, 2_060_000_000, -1, of_b]


def test_a_variant_of_a_coordinator_is_made_again_elsewhere() -> None:
    # As a run through Ray, or a resumed one, gets it.
    variant = make_variant(find_scheduler("philae"), {"policy": "A", "thin_limit": 0}, "philae-a")
    joined = with_network(find_scheduler("drf"), variant)
    setting = replace(under("philae", with_bytes(mixed_dags(jobs=8), 3)), scheduler=joined)
    again = replace(setting, scheduler=pickle.loads(pickle.dumps(joined)))
    assert digest(run_setting(again)) == digest(run_setting(setting))
    assert digest(run_setting(again)) != digest(
        run_setting(under("philae", with_bytes(mixed_dags(jobs=8), 3)))
    )
