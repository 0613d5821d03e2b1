"""The story of a job whose tasks hold resources: what it waited for, which entry did not fit, which went first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.explaining.explanation import SCREEN, Explanation
from emu.results.result import Result
from workloads.jobs import make_workload
from workloads.requests import Requests

KEPT: dict[str, Any] = {
    "in_process": True,
    "output_events": "all",
    "output_tasks": True,
    "short_cutoff": 100.0,
}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """One node of two cores."""
    file = tmp_path / "cluster.parquet"
    pq.write_table(build_cluster("two cores", [1], cpu_cores=[2]).table, file)
    return file


def run_of(cluster: Path, priority: Sequence[int] | None = None, **more: Any) -> Result:
    """Three jobs at 0, 1 and 2 s: of 1 core for 10 s, of 2 cores for 5 s, of 1 core for 3 s."""
    requests = Requests(demands={"cpu_cores": [1.0, 2.0, 1.0]}, priority=priority)
    workload = make_workload("three", [0.0, 1.0, 2.0], [1] * 3, [10.0, 5.0, 3.0], requests=requests)
    result = emu.run("central-lwl", workload, cluster=cluster, network_delay=0.0, **{**KEPT, **more})
    assert isinstance(result, Result)
    return result


def reasons(story: Explanation) -> str:
    assert story.longest is not None
    text = " ".join(story.longest.reasons)
    assert "slot" not in str(story)
    assert len(str(story).splitlines()) <= SCREEN
    return text


def test_an_entry_that_does_not_fit_holds_up_what_fits(cluster: Path) -> None:
    """The third waits from 2 to 15 s: behind the second until 10 s, while a core is free; then both cores are held."""
    run = run_of(cluster)
    assert run.jobs["start_s"].to_pylist() == pytest.approx([0.0, 10.0, 15.0])
    story = emu.explain(run, 2)
    text = reasons(story)
    assert "It needs cpu_cores 1. Node 0 had less free than that for 38.5% of the wait" in text
    assert "For 8 s the node had room for it" in text
    assert "needed more than was free (a task of job 1, cpu_cores 2): nothing passes such an entry" in text
    assert (
        "In the last 5 s of the wait no other task started there: it waited for cpu_cores: 1 asked, 0 free"
        in text
    )
    assert story.longest is not None
    assert story.longest.facts["resource"] == "cpu_cores"
    assert story.longest.facts["lacking"] == pytest.approx(5 / 13)
    assert story.longest.facts["free_share"] == pytest.approx(8 / 26)
    assert story.longest.facts["had_room"] == 1
    held = {row["job"]: row["cpu_cores held"] for row in story.longest.holders}
    assert held == {0: 1.0, 1: 2.0}


def test_a_job_at_the_head_of_the_queue_waits_for_what_it_lacks(cluster: Path) -> None:
    text = reasons(emu.explain(run_of(cluster), 1))
    assert (
        "Node 0 had less free than that for 100.0% of the wait: too little was free of cpu_cores for 100.0%"
        in text
    )
    assert "it waited for cpu_cores: 2 asked, 1 free on node 0" in text
    assert "had room for it, and of what waited" not in text


def test_an_entry_of_higher_priority_goes_first(cluster: Path) -> None:
    run = run_of(cluster, priority=[0, 0, 7])
    assert run.jobs["start_s"].to_pylist() == pytest.approx([0.0, 10.0, 2.0])
    text = reasons(emu.explain(run, 1))
    assert "1 of them (3 s) came after it and were served before it" in text
    assert "they have a higher priority (7; its own 0)" in text


def test_priorities_are_no_reason_where_they_do_not_count(cluster: Path) -> None:
    run = run_of(cluster, priority=[0, 0, 7], priorities=False)
    assert "priority" not in reasons(emu.explain(run, 2))


def test_what_fits_passes_what_does_not(cluster: Path) -> None:
    run = run_of(cluster, resources_passing=10.0)
    assert run.jobs["start_s"].to_pylist() == pytest.approx([0.0, 10.0, 2.0])
    assert "as it fitted where the entries in front of it did not" in " ".join(emu.explain(run, 2).sentences)
    text = reasons(emu.explain(run, 1))
    assert "they fitted where the entries in front of them did not" in text


@pytest.mark.parametrize("scheduler", ["easy", "central-fcfs-gang", "central-fifo"])
def test_a_wait_at_a_scheduler_counts_the_room_that_the_scheduler_counts(
    cluster: Path, scheduler: str
) -> None:
    """Job 0 has tasks of 1.0 and 0.1 cores: the scheduler takes 1.0 for each, and job 1, of a core, waits."""
    requests = Requests(
        demands={"cpu_cores": [np.nan, 1.0]},
        task_demands={"cpu_cores": [1.0, 0.1, np.nan]},
        gang_nodes=[np.nan, 0],
    )
    workload = make_workload("unlike", [0.0, 1.0], [2, 1], [10.0, 10.0, 1.0], requests=requests)
    run = emu.run(scheduler, workload, cluster=cluster, network_delay=0.0, **KEPT)
    assert isinstance(run, Result)
    assert run.jobs["start_s"].to_pylist() == pytest.approx([0.0, 10.0])
    story = emu.explain(run, 1)
    text = reasons(story)
    assert "the one node that it may use had no room for it" in text
    assert "0.0% of their cpu_cores was free on the mean; its scheduler counts for each task the most" in text
    assert "there was no room" in text or scheduler == "central-fifo"
    assert story.longest is not None
    assert story.longest.facts["had_room"] == 0


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "yacc-d", "dist-lwl"])
def test_stories_say_nothing_of_slots(scheduler: str, tmp_path: Path) -> None:
    """Of the five jobs that wait longest; what nodes lacked is a share, and short of screens."""
    rng = np.random.default_rng(4)
    file, count = tmp_path / "cluster.parquet", 120
    pq.write_table(build_cluster("some", [1] * 6, cpu_cores=[2, 4] * 3).table, file)
    requests = Requests(
        demands={"cpu_cores": rng.choice([0.5, 1.0, 2.0], count)}, priority=rng.integers(0, 3, count)
    )
    durations = rng.choice([2.0, 30.0], 2 * count, p=[0.8, 0.2])
    workload = make_workload(
        "mix", np.cumsum(rng.exponential(0.8, count)), [2] * count, durations, requests=requests
    )
    run = emu.run(scheduler, workload, cluster=file, long_partition=0.8, **{**KEPT, "short_cutoff": 10.0})
    assert isinstance(run, Result)
    for job in np.argsort(-np.array(run.jobs["wait_s"].to_pylist()))[:5].tolist():
        story = emu.explain(run, job)
        assert "It needs cpu_cores" in reasons(story)
        assert story.longest is not None
        assert 0.0 <= story.longest.facts.get("lacking", 0.0) <= 1.0
        assert 0.0 <= story.longest.facts["free_share"] <= 1.0


def test_a_wait_at_a_scheduler_of_yacc_d_says_who_went_first() -> None:
    """One node without a queue: the first task runs until 20 s; those of jobs 1 and 2 wait at their scheduler."""
    requests = Requests(priority=[9, 5, 0])
    workload = make_workload(
        "turns", [0.0, 1.0, 2.0], [1] * 3, [20.0, 5.0, 5.0], tenant=["ads", "web", "ads"], requests=requests
    )
    given: dict[str, Any] = {"queue_limit": 0, "schedulers": 1}
    run = emu.run("yacc-d", workload, 1, parameters=given, **KEPT)
    assert isinstance(run, Result)
    text = said_of(run, 2)
    assert "room in its queue. 1 job of higher priority waited there too (the first: job 1)." in text
    assert "of higher priority" not in said_of(run, 1)
    given |= {"backlog_order": "fair", "ceilings": "ads=1"}
    run = emu.run("yacc-d", workload, 1, parameters=given, **KEPT)
    assert isinstance(run, Result)
    text = said_of(run, 2)
    assert "in its queue, or tasks of other tenants or of earlier jobs had their turn before it." in text
    assert "Its tenant may hold 1 of the cluster at most." in text


def said_of(run: Result, job: int) -> str:
    """Return all that is said of the longest wait of a job."""
    story = emu.explain(run, job)
    assert story.longest is not None
    return " ".join(story.longest.reasons)


@pytest.mark.parametrize("scheduler", ["central-lwl", "dist-lwl", "yacc-d"])
def test_a_wait_at_a_node_names_the_fit_by_which_it_was_chosen(cluster: Path, scheduler: str) -> None:
    workload = make_workload(
        "two", [0.0, 1.0], [1] * 2, [10.0, 5.0], requests=Requests(demands={"cpu_cores": [2.0, 1.0]})
    )
    run = emu.run(scheduler, workload, cluster=cluster, parameters={"fit": "best"}, **KEPT)
    assert isinstance(run, Result)
    text = reasons(emu.explain(run, 1))
    assert "chose node 0 by best fit of the nodes that it considered" in text
    assert "because it expected the least wait there;" in text


def mixed_run(scheduler: str, tmp_path: Path, **more: Any) -> Result:
    """On one node of 16 GiB a job of 12 GiB for 30 s; at 4 s one of 9 GiB for 20 s comes, with a higher priority."""
    file = tmp_path / "one.parquet"
    pq.write_table(build_cluster("one", [4], cpu_cores=8.0, memory_bytes=16 << 30).table, file)
    asked = Requests({"cpu_cores": [1.0, 1.0], "memory_gib": [12.0, 9.0]}, priority=[0, 9])
    workload = make_workload("two", [0.0, 4.0], [1, 1], [30.0, 20.0], requests=asked)
    result = emu.run(scheduler, workload, cluster=file, **{**KEPT, **more})
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize("scheduler", ["central-fifo", "easy"])
def test_a_wait_at_a_scheduler_names_what_lacks_on_all_nodes(scheduler: str, tmp_path: Path) -> None:
    text = reasons(emu.explain(mixed_run(scheduler, tmp_path), 1))
    assert "it waited for memory_gib: 9 asked, 4 free at the most on one node." in text
    assert "cpu_cores:" not in text
    assert "the one node that it may use had no room for it" in text


def test_room_that_lower_priorities_hold_and_nodes_with_room_are_named_with_their_keys(
    tmp_path: Path,
) -> None:
    text = reasons(emu.explain(mixed_run("central-lwl", tmp_path), 1))
    assert "For 26 s it would have had room without tasks of lower priority: preemption.mode=restart" in text
    (tmp_path / "two").mkdir()
    # Node 0 has the least work left, and no room; node 1 has room.
    file = tmp_path / "two" / "two.parquet"
    pq.write_table(build_cluster("two", [1, 1], cpu_cores=[2.0, 8.0]).table, file)
    asked = Requests({"cpu_cores": [2.0, 4.0, 2.0]})
    workload = make_workload("three", [0.0, 0.0, 1.0], [1] * 3, [10.0, 90.0, 5.0], requests=asked)
    given = {"cluster": file, "network_delay": 0.0, **KEPT}
    text = reasons(emu.explain(emu.run("central-lwl", workload, **given), 2))
    assert (
        "It was placed by least work left: fit=best or fit=worst chooses among nodes that have room." in text
    )
    best = emu.run("central-lwl", workload, parameters={"fit": "best"}, **given)
    assert best.jobs["start_s"].to_pylist()[2] == 1.0


@pytest.mark.parametrize("scheduler", ["sparrow", "eagle"])
def test_a_probe_waits_for_an_evicted_task_from_when_it_came_back(scheduler: str, tmp_path: Path) -> None:
    """A second probe was in the queue while the task ran from 0 to 4 s: that time is preemption, not queueing."""
    story = emu.explain(mixed_run(scheduler, tmp_path, preemption_mode="restart"), 0)
    assert story.causes["preemption"] / 1e9 == pytest.approx(4.0, abs=0.01)
    assert story.causes["queueing"] / 1e9 == pytest.approx(20.0, abs=0.01)
    assert "the wait began when the task came back to its scheduler" in reasons(story)
    assert story.longest is not None
    assert [row["job"] for row in story.longest.holders] == [1]
    assert sum(story.causes.values()) == story.time_ns


def test_a_run_without_events_is_explained_with_what_evicted_attempts_held(tmp_path: Path) -> None:
    """A job that comes at 1 s waits for what the first held until it was evicted, which no table has."""
    file = tmp_path / "one.parquet"
    pq.write_table(build_cluster("one", [4], cpu_cores=8.0, memory_bytes=16 << 30).table, file)
    asked = Requests({"cpu_cores": [1.0] * 3, "memory_gib": [12.0, 9.0, 9.0]}, priority=[0, 9, 0])
    workload = make_workload("three", [0.0, 4.0, 1.0], [1] * 3, [30.0, 20.0, 5.0], requests=asked)
    result = emu.run(
        "central-lwl", workload, cluster=file, in_process=True, short_cutoff=100.0, preemption_mode="restart"
    )
    row = result.jobs["submit_s"].to_pylist().index(1.0)
    story = emu.explain(result, int(result.jobs["job_id"][row].as_py()))
    assert story.longest is not None
    held = {row["job"]: row["s"] for row in story.longest.holders}
    first = int(result.jobs["job_id"][result.jobs["submit_s"].to_pylist().index(0.0)].as_py())
    assert held[first] == pytest.approx(3.0, abs=0.01)
