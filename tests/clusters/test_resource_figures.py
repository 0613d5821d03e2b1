"""What tasks of a workload hold of a cluster, by hand and second by second."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.capacity import capacities, fits
from clusters.cluster import Cluster, build_cluster
from clusters.feasibility import gangs_of, wide_gangs
from clusters.matching import Needs, fitting_nodes
from clusters.resource_figures import describe_resources, resource_figures
from workloads.conversion import as_dags
from workloads.dags import make_dag_workload
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

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


def test_memory_in_gib_is_that_of_the_nodes() -> None:
    found = capacities(three(), ("memory", "memory_gib", "attr:gpus"))
    assert found.tolist() == [[1 / 8, 8, 0], [1 / 4, 16, 2], [1, 64, 0]]


def test_what_tasks_hold_by_hand() -> None:
    """In the first hour 2 tasks of 2 cores for 1,800 s; in the third one of 4 cores and 60 GiB, that fits nowhere."""
    workload = jobs_of(
        (100.0, [1800.0, 1800.0], {"cpu_cores": 2}),
        (7300.0, [7200.0], {"cpu_cores": 4, "memory_gib": 60}),
        (14500.0, [36.0], {"attr:gpus": 3, "cpu_cores": 9}),
    )
    d = resource_figures(workload, three())
    cores = d["resources"]["cpu_cores"]
    held = 2 * 2 * 1800 + 4 * 7200 + 9 * 36
    assert cores == {
        "unit": "cores",
        "total": 14.0,
        "largest": 8.0,
        "tasks_over": 1,
        "in_use": pytest.approx(held / 14400),
        "share": pytest.approx(held / 14400 / 14),
        "busiest": pytest.approx(4.0),
        "busiest_share": pytest.approx(4 / 14),
        "busiest_start_s": 7300.0,
    }
    assert d["resources"]["slots"]["total"] == 4
    assert d["bottleneck"] == "memory_gib"
    assert (d["tasks_without_node"], d["jobs_without_node"], d["window_s"]) == (2, 2, 3600.0)
    text = describe_resources(workload, json.loads(json.dumps(d)))
    assert "  the bottleneck is memory_gib: 34.1% of it is held; its busiest hour begins at 2.028 h\n" in text
    assert "  2 of 4 tasks, in 2 jobs, fit on no node\n" in text


def test_more_than_there_is_cannot_be_held() -> None:
    """A task of 2 of 14 cores for 1,000 s and another one 10 s later: 29 times the cores in the time of arrivals."""
    workload = jobs_of((0.0, [1000.0], {"cpu_cores": 2}), (10.0, [1000.0], {"cpu_cores": 2}))
    text = describe_resources(workload, resource_figures(workload, three()))
    assert (
        "cpu_cores: 2857.1% of it is asked for while jobs arrive, more than there is, so that tasks must wait"
        in text
    )
    assert "is held" not in text


def test_arrivals_of_less_than_an_hour_and_at_once() -> None:
    short = resource_figures(jobs_of((0.0, [9.0], {"memory": 1}), (10.0, [1.0], {"memory": 1})), three())
    assert short["window_s"] == 10.0
    assert short["resources"]["memory"]["busiest"] == pytest.approx(0.9)
    at_once = resource_figures(jobs_of((5.0, [7200.0, 60.0], {"cpu_cores": 1})), three())
    cores = at_once["resources"]["cpu_cores"]
    assert (cores["in_use"], cores["share"]) == (None, None)
    assert cores["busiest"] == pytest.approx(1 + 60 / 3600)
    assert at_once["bottleneck"] == "cpu_cores"


def test_without_demands_there_are_slots_and_what_no_node_has_has_no_share() -> None:
    workload = jobs_of((0.0, [4.0], {}), (2.0, [2.0], {}))
    d = resource_figures(workload, three())
    assert ([*d["resources"]], d["bottleneck"], d["tasks_without_node"]) == (["slots"], "slots", 0)
    none = resource_figures(jobs_of((0.0, [4.0], {"attr:fpgas": 1}), (2.0, [2.0], {})), three())
    assert none["resources"]["attr:fpgas"]["share"] is None
    assert (none["tasks_without_node"], none["bottleneck"]) == (1, None)
    describe_resources(workload, none)
    named, asking = (
        build_cluster("named", [1], **{"attr:gpus": ["many"]}),
        jobs_of((0.0, [4.0], {"attr:gpus": 1})),
    )
    with pytest.raises(InputError, match="amounts of attr:gpus"):
        resource_figures(asking, named)


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


def test_gangs_without_demands_take_slots() -> None:
    workload = gangs((4, 0, NONE), (5, 0, NONE), (2, 1, NONE), (3, 1, NONE))
    assert resource_figures(workload, three())["gangs_without_room"] == 2


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


def test_tasks_of_dags_run_after_those_that_they_wait_for() -> None:
    dag = make_dag_workload(
        "d", [0.0, 9000.0], [2, 1], [1, 1, 1], [3600.0, 1800.0, 1.0], [(0, 0, 1)], cpu_cores=[1.0, 6.0, 1.0]
    )
    cores = resource_figures(dag, three())["resources"]["cpu_cores"]
    assert (cores["busiest"], cores["busiest_start_s"]) == (pytest.approx(3.0), 3600.0)


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


def test_a_busiest_hour_below_the_average_is_not_shown() -> None:
    """Two tasks of 2 h each arrive within a minute: 240 cores would be in use if all were done in that time."""
    workload = jobs_of((0.0, [7200.0], {"cpu_cores": 1}), (60.0, [7200.0], {"cpu_cores": 1}))
    text = describe_resources(workload, resource_figures(workload, three()))
    (row,) = (line.split() for line in text.splitlines() if line.startswith("  cpu_cores"))
    assert row == ["cpu_cores", "14", "240", "1714.3%", "-", "-", "8", "0"]
    assert "  the bottleneck is cpu_cores: 1714.3% of it is asked for" in text
    assert "begins at" not in text
