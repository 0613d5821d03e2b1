"""The story of a job: its chain in words, and why its longest wait was so long."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from clusters.schema import encode_texts
from emu.cli import main
from emu.explaining.event_record import Record
from emu.explaining.explanation import Explanation, Link, Wait
from emu.families.jobs.causes import Step
from emu.families.jobs.chain_text import longest_span
from emu.families.jobs.slot_holders import NEVER, Free, Tasks, free_slots, lost_runs, tasks_of, with_outages
from workloads.jobs import make_workload
from workloads.requests import Requests

NS = 10**9
KEPT: dict[str, Any] = {"in_process": True, "output_events": "all", "output_tasks": True}


def test_a_probe_waits_behind_the_task_that_holds_the_slot() -> None:
    """The first job's probe comes at 1 s, its task at 3 s, it ends at 13 s; the second's probe waits from 2 to 13 s."""
    workload = make_workload("two", [0.0, 1.0], [1, 1], [10.0, 5.0])
    run = emu.run("sparrow", workload, 1, parameters={"probe_ratio": 1}, network_delay="1 s", **KEPT)
    story = emu.explain(run, 1)
    assert [(link.begin_ns / NS, link.s, link.what) for link in story.chain] == [
        (0, 1, "its probe went to node 0"),
        (1, 11, "its probe waited in the queue of node 0"),
        (12, 1, "node 0 asked for a task"),
        (13, 1, "task 0 went to node 0"),
        (14, 5, "task 0 ran on node 0"),
    ]
    wait = story.longest
    assert wait is not None
    assert wait.link == story.chain[1]
    assert wait.holders == [{"job": 0, "task": 0, "s": 10.0, "start_s": 2.0, "turn": "came before"}]
    assert wait.facts["free_nodes"] == 0, "the slot waited for a task that was on its way"
    assert wait.facts["first_free_s"] == 19, "when its own task had ended"
    assert "nor did one of them have one before the wait ended" in wait.reasons[-1]


def test_a_wait_that_is_shorter_than_expected_says_that_others_were_passed() -> None:
    """At 1 s a task of 90 s joins the only queue, at 2 s one of 5 s, which is served first when the node is free."""
    workload = make_workload("three", [0.0, 1.0, 2.0], [1, 1, 1], [10.0, 90.0, 5.0], short_cutoff_s=100.0)
    story = emu.explain(emu.run("dist-lwl", workload, 1, network_delay="1 ms", **KEPT), 2)
    assert story.longest is not None
    text = " ".join(story.longest.reasons)
    assert "as the node served it before others that had come earlier." in text


def test_a_scheduler_believes_what_the_means_of_jobs_say() -> None:
    """Two long tasks run on two nodes, for 10 and 90 s; both count as 50 s, and the next goes to the first node."""
    workload = make_workload("three", [0.0, 1.0], [2, 1], [90.0, 10.0, 20.0], short_cutoff_s=1.0)
    run = emu.run("central-lwl", workload, 2, long_partition=1.0, **KEPT)
    story = emu.explain(run, 1)
    assert story.longest is not None
    assert story.longest.facts["node"] == 0
    assert story.longest.facts["expected_s"] == pytest.approx(49, abs=0.01)
    assert story.longest.link.s == pytest.approx(89, abs=0.01)
    text = " ".join(story.longest.reasons)
    assert "as the mean that the workload states of its job: those that ran there took 40 s more" in text
    assert "node 1 had one first, 9" in text


def test_a_gang_waits_for_its_turn_and_for_slots() -> None:
    """Job 0 has two of three slots until 10 s; job 1 needs all, job 2 two, and job 3 fits beside job 0."""
    workload = make_workload("gangs", [0.0, 1, 2, 3], [2, 3, 2, 1], [10.0, 10, 5, 5, 5, 9, 9, 2])
    run = emu.run("easy", workload, 3, parameters={"gangs": "all"}, network_delay="0 s", **KEPT)
    wait = emu.explain(run, 2).longest
    assert wait is not None
    assert wait.link.s == pytest.approx(13)
    assert wait.reasons[:3] == [
        "Its 2 tasks start at once; 1 slot was idle when it began to wait.",
        "1 job that had come earlier waited then; the first of them, job 1, has 3 tasks.",
        "1 job that came later started before it.",
    ]


def test_a_gang_waits_for_nodes_with_what_its_tasks_need(tmp_path: Path) -> None:
    """Three nodes of four GPUs: job 0 takes three of each of two nodes until 10 s; job 1 needs two for each task."""
    file = tmp_path / "gpus.parquet"
    pq.write_table(build_cluster("gpus", [1] * 3, **{"attr:gpus": encode_texts(["4"] * 3)}).table, file)
    for nodes, where in ((0, "there was room for 2 of them, on 1 node"), (3, "1 node had room for 1")):
        asked = Requests({"attr:gpus": [3.0, 2.0]}, gang_nodes=[2, nodes])
        workload = make_workload("gangs", [0.0, 1], [2, 3], [10.0, 10, 5, 5, 5], requests=asked)
        wait = emu.explain(emu.run("easy", workload, cluster=file, network_delay="0 s", **KEPT), 1).longest
        assert wait is not None
        on = " on 3 nodes, 1 on each" if nodes else ""
        at_once = f"Its 3 tasks start at once{on}; when it began to wait, {where}."
        assert wait.reasons[:2] == ["It needs attr:gpus 2.", at_once]


def test_central_schedulers_get_no_message_about_short_tasks() -> None:
    """A short task of 50 s runs on the only node when a long one is placed there."""
    workload = make_workload("two", [0.0, 1.0], [1, 1], [50.0, 100.0], short_cutoff_s=60.0)
    run = emu.run("hawk", workload, 1, long_partition=1.0, **KEPT)
    story = emu.explain(run, 1)
    assert story.longest is not None
    assert story.longest.facts["expected_s"] == 0
    assert any("about which it gets no message" in text for text in story.longest.reasons)


def test_a_wait_at_the_scheduler_names_the_jobs_that_held_the_slots() -> None:
    workload = make_workload("three", [0.0, 0.0, 1.0], [1, 1, 1], [10.0, 20.0, 5.0])
    story = emu.explain(emu.run("central-fifo", workload, 2, **KEPT), 2)
    assert story.longest is not None
    assert story.longest.link.what == "task 0 waited at scheduler 0"
    assert [(row["job"], row["tasks"]) for row in story.longest.holders] == [(1, 1), (0, 1)]
    assert story.longest.facts["free_nodes"] == 0
    assert story.longest.facts["usable_slots"] == 2


@pytest.mark.parametrize("name", ["hawk", "eagle", "phoenix", "yacc-d"])
def test_a_story_is_the_same_where_little_was_recorded(name: str) -> None:
    settings: dict[str, Any] = {"workload_options": {"jobs": 40}, "in_process": True, "seed": 3}
    plain = emu.run(name, "yahoo", 60, **settings)
    whole = emu.run(name, "yahoo", 60, **settings, output_events="all", output_tasks=True)
    jct_s = np.array(whole.jobs["jct_s"])
    for job in np.argsort(-jct_s)[:3].tolist():
        story = emu.explain(whole, job)
        assert emu.explain(plain, job).as_dict() == story.as_dict()
        assert sum(link.end_ns - link.begin_ns for link in story.chain) == story.time_ns
        assert all(a.end_ns == b.begin_ns for a, b in pairwise(story.chain))
        assert len(story.render().splitlines()) <= 44


def test_give_backs_are_no_refusals() -> None:
    """Tasks that a node gives back are counted apart from those that it has no room for, and each is counted once."""
    run = emu.run("yacc-d", "yahoo", 40, workload_options={"jobs": 60}, seed=2, **KEPT)
    record, jobs = Record.of(run.events), run.jobs.to_pydict()
    returned = 0
    for job in np.unique(record.job[record.is_kind("RETURNED")])[:8].tolist():
        text = " ".join(emu.explain(run, jobs["job_id"][job]).sentences)
        assert f"placed {jobs['num_tasks'][job]:,} task" in text
        assert "long work" not in text
        returned += "gave a task back at a heartbeat" in text
    assert returned


def test_trips_to_full_nodes_do_not_end_a_wait_at_a_scheduler() -> None:
    steps = [
        Step("queueing", 0, 5, 9, "PLACED", 1),
        Step("network", 5, 6, 2, "PLACED", 1),
        Step("network", 6, 7, 9, "REJECTED", 1),
        Step("queueing", 7, 12, 9, "PLACED", 1),
        Step("network", 12, 13, 3, "PLACED", 1),
        Step("queueing", 13, 21, 3, "START", 1),
        Step("work", 21, 99, 3, "TASK_END", 1),
    ]
    assert longest_span(steps, 9) == (0, 4)
    assert longest_span(steps[5:], 9) == (0, 1)
    assert longest_span(steps[6:], 9) is None


@pytest.mark.parametrize(
    ("slots", "at", "expected"),
    [
        (1, 0, Free(1, 0, 1)),  # node 1 has no task until 4
        (1, 3, Free(0, 4, 0)),  # node 1 is free for 1 more, which is no longer than the gap
        (1, 5, Free(1, 5, 0)),
        (2, 0, Free(2, 0, 0)),
    ],
)
def test_free_slots(slots: int, at: int, expected: Free) -> None:
    """Node 0 runs from 0 to 4 and from 9 on; node 1 from 4 to 8 and, after a gap of 1, from 9 to 12."""
    tasks = Tasks(*np.array([[0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 1, 1], [0, 9, 4, 9], [4, NEVER, 8, 12]]))
    assert free_slots(tasks, np.full(2, slots), np.ones(2, bool), at, 1) == expected


def test_there_may_be_no_free_slot_ever() -> None:
    tasks = Tasks(*(np.array([value]) for value in (0, 0, 0, 0, NEVER)))
    assert free_slots(tasks, np.ones(1, np.int64), np.ones(1, bool), 5, 1) == Free(0, NEVER, -1)


def made(links: Sequence[Link], holders: int) -> Explanation:
    rows = [{"job": i, "s": 1.0} for i in range(holders)]
    end = links[-1].end_ns
    return Explanation("job 1", end, {"work": end}, {"work": "it ran"}, ["It ran."], {"task": rows}, links,
                       Wait(links[0], rows, ["Because."]))  # fmt: skip


def test_the_longest_wait_is_among_the_links_that_are_shown() -> None:
    """It is shorter than all of twenty links of work."""
    links, at = [], 0
    for i in range(20):
        wait = 5 if i == 7 else 1
        links += [
            Link(at, at + 100 * NS, "work", "ran"),
            Link(at + 100 * NS, at + (100 + wait) * NS, "queueing", f"w{i}"),
        ]
        at += (100 + wait) * NS
    text = Explanation(
        "a job", at, {"work": at}, {"work": ""}, [], chain=links, longest=Wait(links[15])
    ).render()
    assert "w7  <- the longest wait" in text


def test_counts_are_grouped_and_identifiers_are_not() -> None:
    wait = Wait(Link(0, NS, "queueing", "waited"), [{"job": 12345, "tasks": 12345, "s": 1.0}])
    text = Explanation("a job", NS, {"queueing": NS}, {"queueing": ""}, [], longest=wait).render()
    assert "12345  12,345  " in text


def test_a_long_story_fits_a_screen_and_its_details_do_not() -> None:
    links = [Link(i * NS, (i + 1) * NS, "work", f"step {i}") for i in range(500)]
    story = made(links, 300)
    text = story.render()
    assert len(text.splitlines()) <= 40
    assert "496 steps: work 496 s" in text
    assert "295 more  295" in text
    assert (str(story), repr(story)) == (text, "<Explanation: job 1; 500 s>")
    assert len(story.render(details=True).splitlines()) > 1100
    plain = story.as_dict()
    assert len(plain["chain"]) == 500
    assert all(isinstance(link["s"], float) for link in plain["chain"])
    assert plain["longest_wait"]["holders"][0] == {"job": 0, "s": 1.0}


def test_of_a_story_with_much_to_tell_fewer_holders_and_then_fewer_steps_are_shown() -> None:
    links = [Link(i * NS, (i + 1) * NS, "work", f"step {i}") for i in range(500)]
    story = made(links, 300)
    lines = {}
    for more in range(24):
        text = replace(story, sentences=["It ran."] * (1 + more)).render()
        lines[more] = len(text.splitlines())
        assert "step 0  <- the longest wait" in text
        assert "Because." in text
        assert " more  29" in text
    assert lines[17] == lines[22] == 40
    assert max(lines.values()) == lines[23] == 41
    assert "298 more  298" in text
    assert "498 steps: work 498 s" in text


def test_a_node_that_fails_with_a_probe_in_its_queue_is_explained_by_who_held_it() -> None:
    failing = {"dynamics_mtbf": "5 h", "dynamics_mttr": "100 s", "dynamics_detection": "3 s"}
    run = emu.run("sparrow", "yahoo", 50, workload_options={"jobs": 40}, seed=3, **failing, **KEPT)
    jobs, waited = run.jobs.to_pydict(), 0
    for job in np.argsort(-np.array(jobs["jct_s"]))[:8].tolist():
        wait = emu.explain(run, job).longest
        if wait is not None and wait.link.cause == "failure" and "in the queue of node" in wait.link.what:
            waited += 1
            assert wait.link.what.endswith("until the node failed and its scheduler knew")
            assert wait.facts["node"] >= 0
            assert wait.holders
            assert sum(row["s"] for row in wait.holders) <= wait.link.s + 1e-6
    assert waited


def test_a_node_that_is_down_has_no_free_slot(tmp_path: Path) -> None:
    """Node 1 of two is down, from 1 to 30 s; the first job holds node 0 when the second arrives at 5 s."""
    failures = tmp_path / "failures.csv"
    failures.write_text("target,fail_s,repair_s\nnode 1,1,30\n")
    workload = make_workload("two", [0.0, 5.0], [1, 1], [20.0, 5.0])
    settings: dict[str, Any] = {"dynamics_failures": failures, "in_process": True}
    for more in (KEPT, {}):  # with and without its events
        story = emu.explain(emu.run("central-fifo", workload, 2, **settings | more), 1)
        assert story.longest is not None
        facts = story.longest.facts
        assert (facts["free_nodes"], facts["down_nodes"]) == (0, 1)
        assert (
            "none of the 2 nodes that it may use (1 of them down) had a free slot"
            in story.longest.reasons[-1]
        )
        assert facts["first_free_s"] == pytest.approx(20, abs=0.01), "when its own task has ended"
        assert facts["free_slots_mean"] == pytest.approx(0, abs=0.01)


def test_a_scheduler_is_busy_with_the_decision_itself() -> None:
    workload = make_workload("one", [0.0], [1], [5.0])
    run = emu.run("sparrow", workload, 1, cost_model="fixed", cost_per_job="1 s", **KEPT)
    text = " ".join(emu.explain(run, 0).story())
    assert "scheduler 0 was busy. Messages that had come before, and this decision, took that time" in text


def test_the_mean_of_tasks_is_not_called_what_users_asked_for() -> None:
    frame = pd.DataFrame({"at": [0.0, 0.0], "job": [1, 1], "took": [2.0, 4.0], "asked": [3600.0, 3600.0]})
    workload = emu.workload_from(frame, arrival="at", duration="took", job="job", estimate="asked")
    story = emu.explain(emu.run("sparrow", workload, 2, **KEPT), int(workload.jobs["job_id"][0].as_py()))
    assert (
        "2 tasks of 3,600 s on average as the workload states them, the longest of 4 s" in story.sentences[0]
    )


@pytest.mark.parametrize(
    ("order", "why", "least"),
    [
        ("sjf", "their tasks took less (in the median 5 s; the first in the queue 9 s)", "the shortest task"),
        ("srjf", "their jobs had less work left (in the median 5 s", "the least work left"),
        ("lrtf", "their jobs had fewer tasks left (in the median 1; the first", "the fewest tasks left"),
    ],
)  # fmt: skip
def test_queues_say_what_they_compare(order: str, why: str, least: str) -> None:
    """At 2 s a task of 5 s passes a job of two tasks of 9 s in the only queue."""
    workload = make_workload("three", [0.0, 1.0, 2.0], [1, 2, 1], [10.0, 9.0, 9.0, 5.0], short_cutoff_s=100.0)
    run = emu.run("yacc-d", workload, 1, parameters={"order": order, "queue_limit": 10}, **KEPT)
    assert why in " ".join(emu.explain(run, 1).story())
    assert f"served it before its turn, as it had {least}." in " ".join(emu.explain(run, 2).story())


def test_a_cluster_that_has_changed_since_is_not_what_the_job_could_use(tmp_path: Path) -> None:
    cluster = tmp_path / "own.toml"
    cluster.write_text("[[machines]]\ntype = 'a'\ncount = 2\n")
    workload = make_workload("three", [0.0, 0.0, 1.0], [1, 1, 1], [10.0, 20.0, 5.0])
    run = emu.run("central-fifo", workload, cluster=cluster, out=tmp_path / "run", **KEPT)
    assert emu.explain(run, 2).as_dict()["longest_wait"]["facts"]["usable_nodes"] == 2
    cluster.write_text("[[machines]]\ntype = 'a'\ncount = 4\n")
    again = emu.read_result(tmp_path / "run")
    assert "usable_nodes" not in emu.explain(again, 2).as_dict()["longest_wait"]["facts"]


def test_another_workload_is_refused_and_json_has_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {seed: str(tmp_path / str(seed)) for seed in (1, 2)}
    for seed, path in runs.items():
        emu.run("sparrow", "yahoo", 20, workload_options={"jobs": 9}, seed=seed, out=path, **KEPT)
    for job in ([], ["3"]):
        assert main(["explain", runs[1], *job, "--beside", runs[2]]) == 2
        assert "of another workload than" in capsys.readouterr().err
    assert main(["explain", runs[1], "3", "--beside", runs[1]]) == 0
    assert "1: job 3" in capsys.readouterr().out
    assert main(["explain", runs[1], "3", "--json"]) == 0
    (story,) = json.loads(capsys.readouterr().out)
    assert all(type(link[name]) is float for link in story["chain"] for name in ("from_s", "to_s", "s"))
    assert main(["explain", runs[1], "3"]) == 0
    short = capsys.readouterr().out
    assert main(["explain", runs[1], "3", "--details"]) == 0
    assert "ahead_s" in capsys.readouterr().out
    assert "ahead_s" not in short


def test_a_folder_of_several_runs_names_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emu.run(
        "sparrow", make_workload("one", [0.0], [1], [1.0]), 1, seeds=[3, 7], out=tmp_path, in_process=True
    )
    assert main(["explain", str(tmp_path), "0"]) == 2
    assert f"holds several runs: give one of them, as {tmp_path / 'seed=3'}" in capsys.readouterr().err


def test_tasks_that_are_lost_wait_at_their_schedulers_until_a_node_is_up(tmp_path: Path) -> None:
    """Node 0 runs the first task, and the second waits there, when it fails at 10 s; it is detected at 15 s."""
    failures = tmp_path / "failures.csv"
    failures.write_text("target,fail_s,repair_s\nnode 0,10,40\n")
    workload = make_workload("two", [0.0, 1.0], [1, 1], [30.0, 5.0])
    failing: dict[str, Any] = {"dynamics_failures": failures, "dynamics_detection": "5 s"}
    run = emu.run("random", workload, 1, **failing, **KEPT)
    first, second = (emu.explain(run, job) for job in (0, 1))
    assert [(link.cause, round(link.s), link.what) for link in first.chain if link.s > 1] == [
        ("failure", 15, "task 0 ran on node 0 until the node failed and its scheduler knew"),
        ("queueing", 25, "task 0 waited at scheduler 0"),
        ("work", 30, "task 0 ran on node 0"),
    ]
    assert "1 time a task or a probe of it was lost with a node." in first.sentences
    assert [link.what for link in second.chain if link.cause == "failure"] == [
        "task 0 waited in the queue of node 0 until the node failed and its scheduler knew"
    ]
    (lost,) = zip(*lost_runs(Record.of(run.events)), strict=True)
    assert (lost[2], lost[4]) == (0, 10 * NS), (
        "it held its slot until the node failed, not until that was known"
    )


def test_no_slot_is_held_twice_or_while_its_node_is_down() -> None:
    """What ran, was lost, and was down, as stories count it, by the events of a run in which nodes fail often."""
    failing = {"dynamics_mtbf": "5 min", "dynamics_mttr": "5 min", "dynamics_detection": "2 s"}
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 6, 40)
    workload = make_workload(
        "many", np.cumsum(rng.exponential(200, 40)), sizes, rng.lognormal(4, 1, sizes.sum())
    )
    run = emu.run("sparrow", workload, 5, seed=3, **failing, **KEPT)
    record = Record.of(run.events)
    held = with_outages(tasks_of(run, record), record, np.ones(5, np.int64))
    assert lost_runs(record).node.size > 20
    for node in range(5):
        begins, ends = (np.sort(times[held.node == node]) for times in (held.start_ns, held.finish_ns))
        assert np.all(begins[1:] >= ends[:-1])
