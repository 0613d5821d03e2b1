"""Runs of DAG jobs: tables and figures by hand, and against what can be computed without the code under test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from clusters.capacity import capacities, check_demands, offered_load, work_s
from clusters.cluster import build_cluster, load_cluster
from emu.families.dags.utilisation import count_between, fair_shares, runnable_ns, wide_enough, windows
from emu.families.jobs.resource_use import mean_use
from emu.results.result import Result, read_result
from emu.results.summary_text import render_summary
from tests.actors.dag_settings import mixed_dags, unlike_machines
from workloads.arrow import optional_column
from workloads.catalogue import load_workload
from workloads.critical_path import critical_paths_ns, earliest_ends_ns
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.jobs import make_workload
from workloads.requests import Requests

TWO_NODES = {"nodes": 2, "cluster": "homogeneous", "slots": 4, "network_delay": 0.0, "in_process": True}


def diamond() -> Any:
    """One job: two tasks, then one beside two, then one; and another job of one task."""
    return make_dag_workload(
        "diamond",
        [0.0, 1.0],
        [4, 1],
        [2, 1, 2, 1, 1],
        [1.0, 2.0, 4.0, 1.0, 3.0, 0.5, 10.0],
        [(0, 0, 1), (0, 0, 2), (0, 1, 3), (0, 2, 3)],
        cpu_cores=[1.0, 2.0, 1.0, 4.0, 1.0],
        tenant=["a", "b"],
    )


@pytest.mark.slow("several whole runs")
@pytest.mark.parametrize("scheduler", ["drf", "tetris"])
def test_fairness_up_to_the_share_is_what_steps_of_time_give(scheduler: str) -> None:
    """Twenty times a second it is seen who is there, and what runs."""
    jobs = load_workload("query-dags", options={"jobs": 4, "mean_gap_s": 7.0, "seed": 3})
    assert isinstance(jobs, DagWorkload)
    window_s, step = 20.0, 0.05
    given = {"in_process": True, "output_tasks": True, "fairness_window": window_s}
    found = emu.run(scheduler, jobs, 4, **given)
    a, tasks = jobs.arrays(), found.tasks
    total = capacities(load_cluster("carbyne", 4), jobs.resources).sum(axis=0)
    first = a.first_stage[:-1]
    count, job = np.diff(a.stage_first_task), np.repeat(np.arange(jobs.num_jobs), np.diff(a.first_stage))
    share = a.demand / total
    mean = np.add.reduceat(share * count[:, None], first) / np.add.reduceat(count, first)[:, None]
    profile = mean / mean.max(axis=1, keepdims=True)
    stage = np.repeat(np.arange(jobs.num_stages), count)
    start, finish = (optional_column(tasks, name) for name in ("start_s", "finish_s"))
    submit, end = (optional_column(found.jobs, name) for name in ("submit_s", "finish_s"))
    for k, row in enumerate(found.tables["fairness"].to_pylist()):
        held, due, there = np.zeros((*share.shape[1:], 4)), np.zeros(4), np.zeros(4)
        for t in submit[0] + k * window_s + step * (np.arange(round(window_s / step)) + 0.5):
            present = (submit <= t) & (t < end)
            runs = (start <= t) & (t < finish)
            there += present
            if present.any():
                due += present / profile[present].sum(axis=0).max()
            np.add.at(held.T, job[stage[runs]], share[stage[runs]])
        most, due, there = (of[there > 0] for of in (held.max(axis=0), due, there))
        counts = np.minimum(most, due) / there
        index = counts.sum() ** 2 / (counts.size * (counts**2).sum())
        assert row["jobs"] == counts.size
        assert row["jain_up_to_share"] == pytest.approx(index, abs=0.01)


def test_a_run_directory_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = emu.run("drf", diamond(), **TWO_NODES)
    again = read_result(result.save(tmp_path / "run"))
    assert again.family == "dags"
    assert again.tables["fairness"].equals(result.tables["fairness"])
    assert again.summary == result.summary


def test_critical_paths_by_hand() -> None:
    assert critical_paths_ns(diamond()).tolist() == [6_500_000_000, 10_000_000_000]
    chain = make_dag_workload(
        "chain",
        [0.0],
        [3],
        [2, 2, 1],
        [1.0, 5.0, 7.0, 1.0, 1.0],
        [(0, 0, 1), (0, 1, 2)],
        edge_kind=["one-to-one", "all-to-all"],
    )
    # Task by task: 1 + 7 and 5 + 1, and then 1; stage by stage it would be 5 + 7 + 1.
    assert (earliest_ends_ns(chain) / 1e9).tolist() == [1, 5, 8, 6, 9]
    assert critical_paths_ns(chain).tolist() == [9_000_000_000]


def test_use_is_what_a_sum_over_small_steps_gives() -> None:
    rng = np.random.default_rng(3)
    start = rng.integers(0, 60, 80) / 4
    finish = start + rng.integers(1, 40, 80) / 4
    share = rng.random((80, 2))
    edges = np.arange(0.0, 30.0, 2.5)
    steps = np.arange(0.0, 27.5, 0.25) + 0.125
    held = np.array([share[(start < t) & (t < finish)].sum(axis=0) for t in steps])
    found = mean_use(edges, start, finish, share)
    assert found == pytest.approx(held.reshape(-1, 10, 2).mean(axis=1))
    times = np.array([0, 1, 5, 20])
    assert count_between(times, np.array([1, 1, -1]), np.array([5, -1, -1])).tolist() == [0, 2, 1, 1]


def test_windows_are_what_a_sum_over_small_steps_gives() -> None:
    rng = np.random.default_rng(4)
    job = np.repeat(np.arange(6), 5)
    submit = np.sort(rng.integers(0, 30, 6) / 2)
    start = submit[job] + rng.integers(0, 8, 30) / 2
    finish = start + rng.integers(1, 20, 30) / 2
    end = np.array([finish[job == j].max() for j in range(6)])
    share = rng.random(30)
    fair = fair_shares(submit, end, np.ones((6, 1)))
    numbers_of, (index, _, up_to_share) = windows(submit, end, job, start, finish, share[:, None], fair, 5.0)
    steps = np.arange(submit[0], end.max(), 0.5) + 0.25
    for k in range(numbers_of.size):
        within = steps[(steps >= submit[0] + 5 * k) & (steps < submit[0] + 5 * (k + 1))]
        means, due = [], []
        for j in range(6):
            there = within[(within > submit[j]) & (within < end[j])]
            if there.size:
                own = job == j
                means.append(np.mean([share[own & (start < t) & (t < finish)].sum() for t in there]))
                due.append(np.mean([1 / ((submit < t) & (t < end)).sum() for t in there]))
        assert numbers_of[k] == len(means)
        for found, of in ((index, means), (up_to_share, np.minimum(means, due))):
            squares = float(np.square(of).sum())
            assert found[k] == pytest.approx(sum(of) ** 2 / (len(means) * squares), nan_ok=True)
    assert wide_enough(1.0, 5e6, 10.0) == 8.0


def test_when_tasks_could_start_by_hand() -> None:
    a = diamond().arrays()
    ends = np.array([1, 2, 6, 3, 5, 7, 11]) * 10**9
    at = runnable_ns(
        a.submit_ns, a.first_stage, a.stage_first_task, a.first_parent, a.parent, a.parent_one_to_one, ends
    )
    assert (at / 1e9).tolist() == [0, 0, 2, 2, 2, 6, 1]


def test_capacities_and_loads_by_hand() -> None:
    cluster = build_cluster(
        "two", [2, 2], cpu_cores=[4.0, 12.0], memory_bytes=[50, 100], **{"attr:gpus": ["", "3"]}
    )
    assert capacities(cluster, ("cpu_cores", "memory", "attr:gpus")).tolist() == [[4, 0.5, 0], [12, 1, 3]]
    assert (
        capacities(cluster, ("memory_gib",)).tolist()
        == (cluster.attribute("memory")[:, None] / 2**30).tolist()
    )
    assert capacities(cluster, ()).tolist() == [[2], [2]]
    assert work_s(diamond(), cluster).tolist() == pytest.approx([27 / 16])
    assert offered_load(diamond(), cluster) == pytest.approx(27 / 16)
    with pytest.raises(InputError, match="tasks need amounts of attr:kind, and a node has 'big' there"):
        capacities(build_cluster("words", [1], **{"attr:kind": ["big"]}), ("attr:kind",))


def test_a_task_that_fits_on_no_machine_is_refused_or_its_job_dropped() -> None:
    small = build_cluster("small", [4, 4], cpu_cores=[3.0, 3.0])
    with pytest.raises(
        InputError, match=r"^job 0, stage 3: a task needs 4 of cpu_cores \(the most of a node is 3\)"
    ):
        check_demands(diamond(), small)
    with pytest.raises(InputError, match="--infeasible drop leaves such jobs out"):
        emu.run("drf", diamond(), **{**TWO_NODES, "slots": 3})
    left = emu.run("drf", diamond(), **{**TWO_NODES, "slots": 3}, infeasible="drop")
    assert left.jobs["job_id"].to_pylist() == [1]
    assert any("1 of 2 jobs dropped" in note for note in left.notes)
    unlike = build_cluster("unlike", [4, 4], cpu_cores=[1.0, 8.0], memory_bytes=[100, 10])
    both = make_dag_workload(
        "both", [0.0], [1], [1], [1.0], np.zeros((0, 3), int), cpu_cores=[4], memory=[0.5]
    )
    with pytest.raises(InputError, match="on one node together, which no node of unlike has"):
        check_demands(both, unlike)


def test_jobs_without_stages_run_as_one_stage_each() -> None:
    jobs = make_workload("plain", [0.0, 1.0], [3, 1], [2.0, 2.0, 2.0, 4.0])
    result = emu.run("drf", jobs, **{**TWO_NODES, "slots": 1}, output_tasks=True)
    assert result.jobs["num_stages"].to_pylist() == [1, 1]
    assert any("each job is one stage" in note for note in result.notes)
    assert result.tables["resources"]["resource"][0].as_py() == "slots"
    assert max(result.tables["timeline"]["running_tasks"].to_pylist()) == 2


def test_a_load_is_brought_about_by_arrivals_and_by_nodes() -> None:
    workload = mixed_dags(30)
    slow = emu.run("drf", workload, 3, in_process=True, load=0.2)
    assert slow.summary["offered_load"] == pytest.approx(0.2)
    fast = emu.run("drf", workload, 3, in_process=True, load=0.9)
    assert fast.summary["jobs"]["all"]["mean"] > slow.summary["jobs"]["all"]["mean"]
    by_nodes = emu.run("drf", workload, in_process=True, load=0.5, load_by="nodes")
    assert by_nodes.summary["offered_load"] == pytest.approx(0.5, rel=0.3)


def test_several_seeds_have_intervals_of_both_parts() -> None:
    several = emu.run("drf", "query-dags", 20, in_process=True, seeds=2, workload_options={"jobs": 2})
    (summary,) = several.summaries
    assert {"jobs", "dags"} <= set(summary["confidence_95"])
    assert len(summary["confidence_95"]["dags"]["bound_s"]) == 2


def test_each_parameter_of_the_setting_moves_the_result() -> None:
    base = {"nodes": 1, "in_process": True, "seed": 1}
    found = [
        emu.run("carbyne", mixed_dags(8), **base, **more).jobs["jct_s"].to_pylist()
        for more in (
            {},
            {"dynamics_straggler_share": 0.3},
            {"cost_model": "fixed", "cost_per_task": 0.2},
            {"cost_model": "fixed", "cost_per_job": 2.0},
            {"network_delay": 0.3},
            {"estimates_error": "constant", "estimates_size": 0.5, "estimates_demands": True},
        )
    ]
    assert len({tuple(one) for one in found}) == len(found)


def test_unlike_machines_from_a_file(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(unlike_machines().table, tmp_path / "machines.parquet")
    result = emu.run("tetris", mixed_dags(), cluster=tmp_path / "machines.parquet", in_process=True)
    assert result.summary["nodes"] == 5
    assert np.isfinite(optional_column(result.jobs, "jct_s")).all()


def test_waits_by_priority() -> None:
    """Two cores. J0 has four tasks of 4 s; J1, of priority 5, two of 3 s that come at 1 s; J2, of 3, one of 2 s."""
    requests = Requests(priority=[None, 5, 3])
    jobs = make_dag_workload(
        "by hand",
        [0, 1, 2],
        [1, 1, 1],
        [4, 2, 1],
        [4, 4, 4, 4, 3, 3, 2],
        [],
        cpu_cores=[1] * 3,
        requests=requests,
    )
    machine = {"nodes": 1, "cluster": "homogeneous", "slots": 2, "network_delay": 0.0, "in_process": True}
    result = emu.run("sjf", jobs, **machine)
    assert isinstance(result, Result)
    assert result.jobs["priority"].to_pylist() == [None, 5, 3]
    bands = result.summary["jobs"]["by_priority"]
    assert [(name, of["wait"]["mean"], of["mean"]) for name, of in bands.items()] == [
        ("5", 3, 6),
        ("3", 5, 7),
        ("0", 0, 13),
    ]
    assert "queueing delay by priority (s)" in render_summary(result.summary)
    equal = emu.run("sjf", jobs, **machine, priorities=False)
    assert isinstance(equal, Result)
    assert [of["wait"]["mean"] for of in equal.summary["jobs"]["by_priority"].values()] == [3, 2, 0]
    text = emu.compare(["sjf", "drf"], jobs, **machine).to_text()
    assert "queueing delay in seconds by priority" in text
