"""Which nodes satisfy which constraints: against a look at every node, and the jobs that none can run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.cluster import Cluster, build_cluster, load_cluster
from clusters.feasibility import UNBOUNDED, check_feasible, drop_infeasible, infeasible_jobs, most_tasks
from clusters.figures import constraint_figures, describe_constraints
from clusters.matching import SAME_RACK, SPREAD_NODES, SPREAD_RACKS, Matching, match, nodes_of
from workloads.constraints import (
    OPERATORS,
    PLACEMENTS,
    Constraint,
    constraint_sets,
    parse_constraint_set,
    set_of_job,
    with_constraints,
)
from workloads.errors import InputError
from workloads.generators.constraints import MODELS
from workloads.jobs import JobWorkload, make_workload
from workloads.transform import constrain

MANY = settings(max_examples=20)
ISAS, TAGS, KERNELS = ("x86", "arm", "power"), ("", "a", "b", "a b"), ((2, 6, 32), (3, 2, 0), (3, 10, 0))
LEVELS = {"cores": ("4", "8", "16"), "clock": ("2 GHz", "2400 MHz", "3e9 Hz"), "memory": ("4 GiB", "8 GiB")}
SCALE = {"GHz": 1e9, "MHz": 1e6, "Hz": 1.0, "GiB": 2.0**30}


def tasks_of(constraints: list[tuple[Constraint, ...]], num_tasks: list[int]) -> JobWorkload:
    """A job for each set, with so many tasks of a second."""
    count = len(num_tasks)
    jobs = make_workload("w", np.arange(float(count)), num_tasks, np.ones(sum(num_tasks)))
    return with_constraints(jobs, constraints, np.arange(count))


def parsed(*texts: str) -> list[tuple[Constraint, ...]]:
    return [parse_constraint_set(text) for text in texts]


@st.composite
def nodes(draw: Any) -> tuple[Cluster, list[dict[str, Any]]]:
    """A cluster, and what each of its nodes has."""
    count = draw(st.integers(1, 40))
    pick = {
        "cores": [4.0, 8.0, 16.0],
        "memory": [4 * 2**30, 8 * 2**30],
        "clock": [2e9, 2.4e9, 3e9],
        "isa": ISAS,
        "kernel": KERNELS,
        "tags": TAGS,
        "rack": range(4),
    }
    columns = {
        name: [draw(st.sampled_from(list(values))) for _ in range(count)] for name, values in pick.items()
    }
    kernel = [(major * 10**6 + minor) * 10**6 + patch for major, minor, patch in columns["kernel"]]
    cluster = build_cluster(
        "c",
        np.ones(count),
        rack=columns["rack"],
        cpu_cores=columns["cores"],
        memory_bytes=columns["memory"],
        clock_hz=columns["clock"],
        isa=columns["isa"],
        kernel=kernel,
        tags=columns["tags"],
    )
    return cluster, [{name: columns[name][n] for name in columns} for n in range(count)]


prices = st.none() | st.sampled_from([1.0, 1.5, 2.0, 3.0])
ordered = st.sampled_from(OPERATORS)
equal = st.sampled_from(["=", "!="])
of_nodes = st.one_of(
    *(
        st.builds(Constraint, st.just(name), ordered, st.sampled_from(values), prices)
        for name, values in LEVELS.items()
    ),
    st.builds(
        Constraint, st.just("kernel"), ordered, st.sampled_from(["2.6.32", "3.2", "3.10", "3"]), prices
    ),
    st.builds(Constraint, st.just("isa"), equal, st.sampled_from([*ISAS, "riscv"]), prices),
    st.builds(Constraint, st.just("tags"), equal, st.sampled_from(["a", "b", "c"]), prices),
)
placed = st.builds(Constraint, st.just("placement"), st.just("="), st.sampled_from(list(PLACEMENTS)), prices)
sets = st.lists(of_nodes | placed, min_size=1, max_size=4, unique_by=lambda c: c[:3]).map(tuple)


def holds(node: dict[str, Any], one: Constraint) -> bool:
    """Whether a node satisfies a constraint, worked out by hand."""
    have, number = node[one.attribute], one.value.split()[0]
    if one.attribute == "tags":
        return (one.value in have.split()) == (one.operator == "=")
    if one.attribute == "isa":
        return (one.value == have) == (one.operator == "=")
    if one.attribute == "kernel":
        want: Any = tuple([*map(int, number.split(".")), 0, 0][:3])
    else:
        want = float(number) * SCALE.get(one.value.split()[-1], 1.0)
    return {
        "=": have == want,
        "!=": have != want,
        "<": have < want,
        "<=": have <= want,
        ">": have > want,
        ">=": have >= want,
    }[one.operator]


@MANY
@given(nodes(), st.lists(sets, min_size=1, max_size=5))
def test_matching_equals_a_look_at_every_node(
    cluster_and_nodes: tuple[Cluster, list[dict[str, Any]]], asked: list[tuple[Constraint, ...]]
) -> None:
    cluster, has = cluster_and_nodes
    workload = tasks_of(asked, [1] * len(asked))
    matching = match(workload, cluster)
    assert matching.set_of_job.tolist() == set_of_job(workload).tolist()
    for set_id, constraints in enumerate(constraint_sets(workload)):
        soft = sorted((c for c in constraints if c.price is not None), key=lambda c: c.price)
        first, end = matching.first_level[set_id : set_id + 2]
        assert end - first == len(soft) + 1
        for level in range(len(soft) + 1):
            kept = [c for c in constraints if c not in soft[:level]]
            on_nodes = [c for c in kept if c.attribute != "placement"]
            due = [n for n, node in enumerate(has) if all(holds(node, c) for c in on_nodes)]
            assert nodes_of(matching, set_id, level).tolist() == due
            assert matching.factor[first + level] == pytest.approx(np.prod([c.price for c in soft[:level]]))
            bits = {"same-rack": SAME_RACK, "spread-racks": SPREAD_RACKS, "spread-nodes": SPREAD_NODES}
            placement = sum(bits[c.value] for c in kept if c.attribute == "placement")
            assert matching.placement[first + level] == placement
        assert nodes_of(matching, set_id, -1).tolist() == nodes_of(matching, set_id, len(soft)).tolist()
    assert_lists_are_distinct_and_sorted(matching)


def assert_lists_are_distinct_and_sorted(matching: Matching) -> None:
    lists = {
        (low, *matching.nodes[a:b].tolist()) if low < 0 else (low, size)
        for low, size, (a, b) in zip(
            matching.low.tolist(), matching.num_nodes.tolist(), pairwise(matching.first.tolist()), strict=True
        )
    }
    assert len(lists) == len(matching.low)
    for low, (a, b) in zip(matching.low.tolist(), pairwise(matching.first.tolist()), strict=True):
        assert a == b if low >= 0 else (np.diff(matching.nodes[a:b]) > 0).all()
    assert all(
        array.dtype == np.int64
        for name, array in matching._asdict().items()
        if name not in ("factor", "sets")
    )
    assert not matching.nodes.flags.writeable


def most_by_trying(racks: list[int], placement: list[str]) -> int:
    """The most tasks that can be put on nodes in these racks, by the rules in words."""
    if not racks:
        return 0
    if not set(placement) & {"spread-racks", "spread-nodes"}:
        return UNBOUNDED
    best = 0
    for rack in set(racks) if "same-rack" in placement else [None]:
        usable = [r for r in racks if rack is None or r == rack]
        best = max(best, len(set(usable)) if "spread-racks" in placement else len(usable))
    return best


@MANY
@given(nodes(), st.lists(sets, min_size=1, max_size=5), st.data())
def test_jobs_that_no_node_can_run_are_found_named_and_dropped(
    cluster_and_nodes: tuple[Cluster, list[dict[str, Any]]], asked: list[tuple[Constraint, ...]], data: Any
) -> None:
    cluster, has = cluster_and_nodes
    num_tasks = [data.draw(st.integers(1, 6)) for _ in asked]
    workload = tasks_of(asked, num_tasks)
    due = []
    for job, constraints in enumerate(asked):
        hard = [c for c in constraints if c.price is None]
        placement = [c.value for c in hard if c.attribute == "placement"]
        left = [n for n in has if all(holds(n, c) for c in hard if c.attribute != "placement")]
        if num_tasks[job] > most_by_trying([n["rack"] for n in left], placement):
            due.append(job)
    matching = match(workload, cluster)
    assert infeasible_jobs(workload, cluster, matching).tolist() == due
    if not due:
        check_feasible(workload, cluster, matching)
        assert drop_infeasible(workload, cluster) == (workload, 0)
        return
    with pytest.raises(InputError, match=f"^job {due[0]}: (no node satisfies|its {num_tasks[due[0]]} tasks)"):
        check_feasible(workload, cluster, matching)
    if len(due) < len(asked):
        kept, dropped = drop_infeasible(workload, cluster)
        assert dropped == len(due)
        assert set(kept.jobs["job_id"].to_pylist()) == set(range(len(asked))) - set(due)
        assert f"{len(due)} of {len(asked)} jobs dropped" in kept.notes[-1]
        check_feasible(kept, cluster, match(kept, cluster))
    else:
        with pytest.raises(InputError, match=r"^job 0: "):
            drop_infeasible(workload, cluster)


def test_the_first_job_that_cannot_run_is_named_with_what_rules_it_out() -> None:
    cluster = build_cluster(
        "small", np.ones(10), isa=["arm"] * 3 + ["x86"] * 7, cpu_cores=[8.0] * 5 + [16.0] * 5
    )
    workload = tasks_of(
        parsed("cores >= 16", "cores >= 16 and isa = arm", "cores >= 64 and clock > 1 GHz soft"), [1, 1, 1]
    )
    with pytest.raises(InputError) as caught:
        check_feasible(workload, cluster, match(workload, cluster))
    assert str(caught.value) == (
        "job 1: no node satisfies cores >= 16 and isa = arm; isa = arm alone leaves 3, cores >= 16 alone leaves 5 "
        "on cluster small of 10 nodes; 2 of 3 jobs cannot run"
    )
    only = tasks_of(parsed("cores >= 64"), [1])
    with pytest.raises(
        InputError, match=r"cores >= 64; cores >= 64 none \(cores is 8 to 16\) on cluster small of 10 nodes$"
    ):
        check_feasible(only, cluster, match(only, cluster))
    wide = tasks_of(parsed("spread-nodes and isa = arm"), [4])
    with pytest.raises(
        InputError, match=r"its 4 tasks cannot be placed under spread-nodes and isa = arm: at most 3"
    ):
        check_feasible(wide, cluster, match(wide, cluster))


def test_soft_placements_are_relaxed_too() -> None:
    cluster = build_cluster("c", np.ones(8), rack_size=4)
    matching = match(
        tasks_of(parsed("spread-racks soft 2 and same-rack soft 3 and spread-nodes"), [1]), cluster
    )
    assert matching.placement.tolist() == [
        SAME_RACK | SPREAD_RACKS | SPREAD_NODES,
        SAME_RACK | SPREAD_NODES,
        SPREAD_NODES,
    ]
    assert matching.factor.tolist() == [1, 2, 6]
    assert most_tasks(matching, cluster).tolist() == [1, 4, 8]


def test_runs_of_ids_take_no_memory_and_sets_share_lists() -> None:
    cluster = build_cluster("c", np.ones(1000), cpu_cores=np.where(np.arange(1000) % 300 < 200, 16.0, 8.0))
    asked = parsed(
        "cores >= 16", "cores > 8", "cores >= 1", "same-rack", "cores >= 16 and isa = x86", "cores > 99"
    )
    matching = match(tasks_of(asked, [1] * 6), cluster)
    assert matching.list_of_level.tolist() == [0, 0, 1, 1, 0, 2]
    assert matching.num_nodes.tolist() == [700, 1000, 0]
    assert matching.low.tolist() == [-1, 0, 0]
    assert len(matching.nodes) == 700


def test_memory_is_bounded() -> None:
    cluster = build_cluster("c", np.ones(10), cpu_cores=[8.0, 16.0] * 5)
    workload = tasks_of(parsed("cores = 8", "cores = 16"), [1, 1])
    match(workload, cluster, max_ids=10)
    with pytest.raises(InputError, match="hold more than 9 ids after 2 distinct lists of 10 nodes"):
        match(workload, cluster, max_ids=9)


def test_attributes_of_the_users_own_are_texts_or_sizes() -> None:
    cluster = build_cluster("c", np.ones(4), **{"attr:n": ["", "-1", "10", "ten"]})
    due = {
        "attr:n = 10": [2], "attr:n != 10": [0, 1, 3], 'attr:n = ""': [0], 'attr:n != ""': [1, 2, 3],
        "attr:n < 0": [1], "attr:n >= 0": [0, 2], "attr:n > 9.5": [2], "attr:n <= 0": [0, 1],
        "attr:other = x": [], 'attr:other = ""': [0, 1, 2, 3], "attr:other < 1": [0, 1, 2, 3],
    }  # fmt: skip
    matching = match(tasks_of(parsed(*due), [1] * len(due)), cluster)
    assert [nodes_of(matching, set_id).tolist() for set_id in range(len(due))] == [*due.values()]
    for text, message in (
        ("attr:n > many", "attr:n > many: 'many' is not a number"),
        ("attr:n = 7", r"attr:n = 7 none \(attr:n is -1, 10, none, ten\)"),
    ):
        with pytest.raises(InputError, match=message):
            check_feasible(asks := tasks_of(parsed(text), [1]), cluster, match(asks, cluster))


def test_workloads_without_constraints_match_nothing() -> None:
    workload, cluster = make_workload("w", [0.0, 1.0], [1, 1], [1.0, 1.0]), build_cluster("c", np.ones(3))
    matching = match(workload, cluster)
    assert matching.set_of_job.tolist() == [-1, -1]
    assert [len(array) for array in matching[1:]] == [1, 0, 0, 0, 0, 0, 1, 0, 0]
    assert len(infeasible_jobs(workload, cluster, matching)) == 0


@pytest.mark.parametrize(
    ("name", "supply"),
    [
        ("phoenix", "1 .60 .20 .45 .75 .69 .22 .58"),
        (
            "sharma",
            ".376 .657 .156 .377 .683 .111 .284 .155 .703 .733 .487 .470 .317 .080 .693 .151 .563 .276 .668 .700 1",
        ),
    ],
)
def test_each_model_has_a_cluster_that_satisfies_its_constraints(name: str, supply: str) -> None:
    cluster = load_cluster(name, 1000, seed=4)
    jobs = make_workload("w", np.arange(3000.0), np.ones(3000, int), np.ones(3000))
    workload = constrain(jobs, name, jobs="all", seed=2)
    figures = constraint_figures(workload, cluster, match(workload, cluster))
    rows = figures["constraints"]
    assert [row["constraint"] for row in rows] == [str(item[0]) for item in MODELS[name].items]
    assert [row["node_share"] for row in rows] == pytest.approx([*map(float, supply.split())], abs=0.001)
    assert figures["constrained_jobs"] == sum(row["jobs"] for row in figures["sets"])
    text = describe_constraints(workload, cluster)
    assert text.startswith(f"{figures['constrained_jobs']:,} of 3,000 jobs have constraints")
    assert len(text.splitlines()) == 2 + len(rows)
    assert max(map(len, text.splitlines())) <= 120
