"""The checker of constraints: what it reads off a run, what it refuses, and that schedulers go by the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import Cluster, build_cluster
from clusters.matching import match, nodes_of, satisfies
from clusters.schema import encode_texts
from emu.families.jobs.constraint_check import levels_of, satisfying
from emu.results.result import Result
from emu.testing import check_constraints, check_scheduler
from workloads.constraints import parse_constraint, parse_constraint_set, set_text, with_constraints
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload

SETTINGS: dict[str, Any] = {"in_process": True, "output_tasks": True, "short_cutoff": "10 s"}
# One job each, of two tasks, of 1 and 2 s.
TEXTS = (
    "cores >= 4",
    "cores >= 4 soft 2 and isa = arm soft 3",
    "same-rack and spread-nodes",
    "spread-racks soft 1.5",
    "cores >= 64 soft 5 and cores >= 4",
    "",
)


def cluster() -> Cluster:
    return build_cluster(
        "six",
        [1] * 6,
        rack=[0, 0, 0, 1, 1, 1],
        cpu_cores=[2, 4, 8, 2, 4, 8],
        isa=encode_texts(["x86", "x86", "arm"] * 2),
        tags=encode_texts(["", "ssd", "gpu ssd"] * 2),
        kernel=[4 * 10**12, 4 * 10**12 + 10**7, 5 * 10**12] * 2,
        **{
            "attr:gen": encode_texts(["1", "3", "", "new", "2.5", "inf"]),
            "attr:licence": encode_texts(["gold", "", ""] * 2),
        },
    )


def workload() -> JobWorkload:
    jobs = make_workload("six jobs", np.arange(6) * 30.0, [2] * 6, [1.0, 2.0] * 6)
    sets = [parse_constraint_set(text) if text else () for text in TEXTS]
    return with_constraints(jobs, sets, range(6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cluster")
    pq.write_table(cluster().table, made / "six.parquet")
    return made


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return emu.run("sparrow-c", workload(), cluster=folder / "six.parquet", **SETTINGS)


def test_it_tells_at_which_level_each_job_ran(result: Result) -> None:
    found = check_constraints(result)
    assert found.job_id.tolist() == [0, 1, 2, 3, 4]
    assert found.constraints[1] == "cores >= 4 soft 2.0 and isa = arm soft 3.0"
    assert found.least_dropped.tolist() == found.most_dropped.tolist() == [0, 0, 0, 0, 1]
    assert result.counters["jobs_relaxed"] == 1


def changed(result: Result, what: str, job: int, values: list[float]) -> Result:
    """The result with other nodes, or other times taken, of the two tasks of a job."""
    assert result.tasks is not None
    name = "finish_s" if what == "took_s" else what
    column = result.tasks[name].to_numpy().copy()
    of_job = slice(2 * job, 2 * job + 2)
    column[of_job] = values if what == "node" else result.tasks["start_s"].to_numpy()[of_job] + values
    at = result.tasks.column_names.index(name)
    return dataclasses.replace(
        result, tables=result.tables | {"tasks": result.tasks.set_column(at, name, pa.array(column))}
    )


@pytest.mark.parametrize(
    ("what", "job", "values", "expected"),
    [
        ("node", 0, [3, 3], r"job 0 \(cores >= 4\): a task ran on node 3, which does not have cores >= 4"),
        ("node", 2, [1, 4], r"job 2 \(same-rack and spread-nodes\): tasks ran in 2 racks"),
        ("node", 2, [1, 1], r"job 2 .*: 2 tasks ran on 1 nodes"),
        (
            "node",
            3,
            [4, 5],
            r"2 tasks ran in 1 racks; without spread-racks soft 1.5: a task took 1 s, and not 1.5 s",
        ),
        ("node", 4, [0, 1], r"which does not have cores >= 4"),
        ("took_s", 0, [2, 2], r"job 0 .*: a task took 2 s, and not 1 s"),
        ("took_s", 4, [6, 10], r"without cores >= 64 soft 5.0: a task took 6 s, and not 5 s"),
        # As long as without the cheapest constraint, which jobs_relaxed does not count.
        ("took_s", 1, [2, 4], r"jobs_relaxed is 1, and by nodes and durations 2 jobs dropped"),
        ("took_s", 3, [1.5, 3], r"jobs_relaxed is 1, and by nodes and durations 2 jobs dropped"),
        # The dearer one alone is never dropped, and tasks of a job are all at one level.
        (
            "took_s",
            1,
            [3, 6],
            r"job 1 .*: a task took 3 s, and not 1 s; without cores >= 4 soft 2.0: a task took 3 s",
        ),
        (
            "took_s",
            1,
            [2, 2],
            r"job 1 .*: a task took 2 s, and not 1 s; without cores >= 4 soft 2.0: a task took 2 s",
        ),
    ],
)
def test_a_broken_constraint_is_an_error(
    result: Result, what: str, job: int, values: list[float], expected: str
) -> None:
    with pytest.raises(AssertionError, match=expected):
        check_constraints(changed(result, what, job, values), workload(), cluster())


def test_a_wrong_counter_is_an_error(result: Result) -> None:
    for counted in (0, 2):
        wrong = dataclasses.replace(result, counters={"jobs_relaxed": counted})
        with pytest.raises(
            AssertionError, match=f"jobs_relaxed is {counted}, and by nodes and durations 1 jobs"
        ):
            check_constraints(wrong)


def test_what_cannot_be_seen_is_within_bounds(folder: Path) -> None:
    # Dropped at no price, but it held; or dropped by tasks that take no time.
    jobs = make_workload("two", [0, 30], [1, 1], [1.0, 0.0])
    sets = [parse_constraint_set(text) for text in ("cores >= 8 soft", "isa = x86 soft 9")]
    asking = with_constraints(jobs, sets, [0, 1])
    found = check_constraints(emu.run("sparrow-c", asking, cluster=folder / "six.parquet", **SETTINGS))
    assert found[["least_dropped", "most_dropped"]].to_numpy().tolist() == [[0, 1], [0, 1]]


def test_a_scheduler_that_ignores_constraints_fails_the_check(folder: Path) -> None:
    with pytest.raises(AssertionError, match="which does not have"):
        check_constraints(emu.run("random", workload(), cluster=folder / "six.parquet", **SETTINGS))


def test_what_was_run_is_found_again(result: Result, folder: Path, tmp_path: Path) -> None:
    """A workload from Python, kept in a run directory or not, and a generated one with drawn constraints at a load."""
    assert result.save(tmp_path / "own")
    read = emu.read_result(tmp_path / "own")
    assert check_constraints(read).equals(check_constraints(result))
    drawn = emu.run(
        "sparrow-c",
        "poisson",
        100,
        cluster="phoenix",
        load=0.5,
        workload_options={"jobs": 100},
        constraints_model="phoenix",
        constraints_jobs="all",
        constraints_soft="clock, port",
        machine_speed=True,
        **SETTINGS,
    )
    assert len(check_constraints(drawn)) > 60


def test_durations_of_fast_nodes_and_of_stragglers(folder: Path) -> None:
    fast = build_cluster("fast", [1] * 6, cpu_cores=[8] * 6, speed=[1, 2, 3, 4, 5, 6])
    pq.write_table(fast.table, folder / "fast.parquet")
    asking = with_constraints(workload(), [parse_constraint_set("cores >= 8")], [0] * 6)
    given = {"cluster": folder / "fast.parquet", **SETTINGS}
    check_constraints(emu.run("sparrow-c", asking, machine_speed=True, **given))
    check_constraints(emu.run("sparrow-c", asking, dynamics_straggler_share=0.5, **given))
    wrong = emu.run("sparrow-c", asking, machine_speed=True, **given)
    wrong.manifest["config"]["machine_speed"] = False
    with pytest.raises(AssertionError, match=r"job 0 .*: a task took"):
        check_constraints(wrong, asking, fast)


def test_a_result_without_tasks_or_jobs_is_refused(result: Result) -> None:
    with pytest.raises(InputError, match="has no tasks; run with output_tasks=True"):
        check_constraints(dataclasses.replace(result, tables=result.tables | {"tasks": None}))


def test_the_cheapest_soft_constraint_is_dropped_first_among_equals_the_first() -> None:
    levels = levels_of(
        parse_constraint_set("rack < 9 soft 2 and isa = arm and cores >= 4 soft 1.5 and same-rack soft 1.5")
    )
    assert [(set_text(level.kept), level.factor) for level in levels] == [
        ("rack < 9 soft 2.0 and isa = arm and cores >= 4 soft 1.5 and same-rack soft 1.5", 1.0),
        ("rack < 9 soft 2.0 and isa = arm and same-rack soft 1.5", 1.5),
        ("rack < 9 soft 2.0 and isa = arm", 2.25),
        ("isa = arm", 4.5),
    ]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("cores >= 4", [1, 2, 4, 5]),
        ("cores != 4", [0, 2, 3, 5]),
        ("memory > 4 GiB", []),
        ("kernel > 4.0", [1, 2, 4, 5]),
        ("kernel = 4.10", [1, 4]),
        ("isa = arm", [2, 5]),
        ("isa != arm", [0, 1, 3, 4]),
        ("tags = ssd", [1, 2, 4, 5]),
        ("tags != gpu", [0, 1, 3, 4]),
        ("tags = spu", []),
        ("attr:licence = gold", [0, 3]),
        ('attr:licence = ""', [1, 2, 4, 5]),
        ("attr:gen >= 2", [1, 4]),
        ("attr:gen < 3", [0, 2, 4]),  # node 2 lacks it: 0
        ("attr:other < 1", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_both_matchings_give_the_nodes_that_satisfy_a_constraint(text: str, nodes: list[int]) -> None:
    one = parse_constraint(text)
    assert np.flatnonzero(satisfying(cluster(), one)).tolist() == nodes
    assert np.flatnonzero(satisfies(cluster(), one)).tolist() == nodes  # what schedulers go by


def test_schedulers_go_by_the_same_levels() -> None:
    matching = match(workload(), cluster())
    for of_set, text in enumerate(TEXTS[:-1]):
        levels = levels_of(parse_constraint_set(text))
        first, end = matching.first_level[of_set : of_set + 2]
        assert matching.factor[first:end].tolist() == [level.factor for level in levels]
        for i, level in enumerate(levels):
            nodes = np.ones(6, bool)
            for one in level.kept:
                if one.attribute != "placement":
                    nodes &= satisfying(cluster(), one)
            assert nodes_of(matching, of_set, i).tolist() == np.flatnonzero(nodes).tolist()


def test_a_scheduler_that_breaks_constraints_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that calls itself constraint-aware and is not: its jobs reach it without their constraints."""
    from actors.constraints import _nothing
    from actors.schedulers.jobs import build

    monkeypatch.setattr(build, "make_eligible", lambda setting: _nothing())
    with pytest.raises(AssertionError, match=r"constraints.*: job .* which does not have"):
        check_scheduler("sparrow-c")
