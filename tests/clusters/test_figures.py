"""Figures of clusters, and their text for a terminal."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusters import cluster_figures, describe_cluster
from clusters.capacity import capacities, fits
from clusters.cluster import Cluster, build_cluster
from clusters.feasibility import gangs_of, wide_gangs
from clusters.figures import resource_figures
from clusters.matching import Needs, fitting_nodes
from workloads.conversion import as_dags
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests


def test_a_description_stays_narrow_and_short() -> None:
    count = 5000
    cluster = build_cluster(
        "wide", [1] * count, cpu_cores=np.arange(count), machine_type="m" * 300, isa="i" * 300
    )
    text = describe_cluster(cluster)
    assert max(map(len, text.splitlines())) <= 120
    assert len(text.splitlines()) < 50
    assert "and 4,976 other values" in text
    values = cluster_figures(cluster)["attributes"]["cores"]
    assert (values["distinct"], len(values["values"])) == (count, 24)


# What tasks of a workload hold of a cluster, by hand and second by second.

NONE = float("nan")
GIB = 2**30


def three() -> Cluster:
    """Nodes of 4 cores and 8 GiB, 8 and 16, 2 and 64; the second has 2 GPUs."""
    return build_cluster(
        "three",
        [1, 2, 1],
        cpu_cores=[4.0, 8.0, 2.0],
        memory_bytes=np.array([8, 16, 64]) * GIB,
        **{"attr:gpus": ["", "2", ""]},
    )


def jobs_of(*rows: tuple[float, list[float], dict[str, float]]) -> JobWorkload:
    """Jobs of an arrival, durations, and demands of each task."""
    names = {name for _, _, needs in rows for name in needs}
    return make_workload(
        "jobs",
        [at for at, _, _ in rows],
        [len(durations) for _, durations, _ in rows],
        [d for _, durations, _ in rows for d in durations],
        requests=Requests({name: [needs.get(name, NONE) for _, _, needs in rows] for name in names}),
    )


def gangs(*rows: tuple[int, float, float]) -> JobWorkload:
    """Gangs of so many tasks on so many nodes, of so many cores each; NaN is no demand."""
    width, on, cores = zip(*rows, strict=True)
    return make_workload(
        "gangs",
        [0.0] * len(rows),
        width,
        [1.0] * sum(width),
        requests=Requests({"cpu_cores": cores}, gang_nodes=on),
    )


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=6),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_gangs_of_slots_are_those_that_runs_refuse(rows: list[tuple[int, int]], slots: list[int]) -> None:
    cluster, workload = build_cluster("any", slots), gangs(*((width, on, NONE) for width, on in rows))
    wide = wide_gangs(workload, gangs_of(workload, "stated"), cluster)
    assert resource_figures(workload, cluster)["gangs_without_room"] == len(wide)
    one_each = gangs(*((width, on, 1.0) for width, on in rows))
    assert resource_figures(one_each, cluster)["gangs_without_room"] == len(wide)


def test_jobs_hold_as_much_as_the_same_dags() -> None:
    workload = jobs_of((0.0, [50.0, 70.0], {"cpu_cores": 2}), (9e3, [5.0], {"memory_gib": 9, "cpu_cores": 8}))
    assert resource_figures(workload, three()) == resource_figures(as_dags(workload), three())


@given(
    st.lists(
        st.tuples(
            st.integers(0, 20_000), st.lists(st.integers(0, 9000), min_size=1, max_size=3), st.integers(0, 9)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_the_busiest_hour_is_that_of_every_second(rows: list[tuple[int, list[int], int]]) -> None:
    workload = jobs_of(*((float(at), [*map(float, d)], {"cpu_cores": c}) for at, d, c in sorted(rows)))
    d = resource_figures(workload, three())
    first, last = min(at for at, _, _ in rows), max(at for at, _, _ in rows)
    window = int(d["window_s"])
    second = np.zeros(last + 20_000)
    for at, durations, cores in rows:
        for duration in durations:
            second[at : at + duration] += cores
    hours = [second[t : t + window].mean() for t in range(first, last + 1, window)]
    found = d["resources"]["cpu_cores"]
    assert math.isclose(found["busiest"], max(hours), rel_tol=1e-9, abs_tol=1e-9)


def test_a_billionth_too_much_does_not_fit() -> None:
    """As in runs, which count whole billionths: such a task would wait for ever."""
    node = build_cluster("one", [1], cpu_cores=[0.3])
    demand = np.array([[0.1 + 0.2], [0.3 + 4e-10], [0.3 + 1e-9], [1e18]])
    wanted = [True, True, False, False]
    assert fits(demand, capacities(node, ("cpu_cores",))).tolist() == wanted
    needs = Needs(("cpu_cores",), demand, np.arange(4), capacities(node, ("cpu_cores",)))
    masks, of_job = fitting_nodes(needs)
    assert [of < 0 or bool(masks[of].all()) for of in of_job.tolist()] == wanted
    workload = jobs_of(*((float(t), [1.0], {"cpu_cores": float(c)}) for t, c in enumerate(demand[:3, 0])))
    d = resource_figures(workload, node)
    assert (d["tasks_without_node"], d["resources"]["cpu_cores"]["tasks_over"]) == (1, 1)


@given(st.data())
def test_fits_is_to_fit_on_one_node(data: st.DataObject) -> None:
    amounts = st.lists(st.integers(0, 4), min_size=2, max_size=2)
    demand, capacity = (
        np.array(data.draw(st.lists(amounts, min_size=1, max_size=6)), float) for _ in range(2)
    )
    want = [any((need <= node).all() for node in capacity) for need in demand]
    assert fits(demand, capacity).tolist() == want
