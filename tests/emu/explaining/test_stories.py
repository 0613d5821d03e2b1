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
from emu.cli import main
from emu.explaining.event_record import Record
from emu.explaining.explanation import SCREEN, Explanation, Link, Wait
from emu.explaining.spans import outages
from emu.families.jobs.chain import longest_span
from emu.families.jobs.holders import lost_runs, tasks_of
from workloads.jobs import make_workload
from workloads.requests import Requests

NS = 10**9
KEPT: dict[str, Any] = {"in_process": True, "output_events": "all", "output_tasks": True}


@pytest.mark.slow("several whole runs")
@pytest.mark.parametrize("name", ["hawk", "eagle", "phoenix", "yacc-d"])
def test_a_story_is_the_same_where_little_was_recorded(name: str) -> None:
    settings: dict[str, Any] = {"workload_options": {"jobs": 12}, "in_process": True, "seed": 3}
    plain = emu.run(name, "yahoo", 20, **settings)
    whole = emu.run(name, "yahoo", 20, **settings, output_events="all", output_tasks=True)
    jct_s = np.array(whole.jobs["jct_s"])
    for job in np.argsort(-jct_s)[:3].tolist():
        story = emu.explain(whole, job)
        assert emu.explain(plain, job).as_dict() == story.as_dict()
        assert sum(link.end_ns - link.begin_ns for link in story.chain) == story.time_ns
        assert all(a.end_ns == b.begin_ns for a, b in pairwise(story.chain))
        assert len(story.render().splitlines()) <= 44


def test_give_backs_are_no_refusals() -> None:
    """Tasks that a node gives back are counted apart from those that it has no room for, and each is counted once."""
    run = emu.run("yacc-d", "yahoo", 20, workload_options={"jobs": 15}, seed=2, **KEPT)
    record, jobs = Record.of(run.events), run.jobs.to_pydict()
    returned = 0
    for job in np.unique(record.job[record.is_kind("RETURNED")])[:8].tolist():
        text = " ".join(emu.explain(run, jobs["job_id"][job]).sentences)
        assert f"placed {jobs['num_tasks'][job]:,} task" in text
        assert "long work" not in text
        returned += "gave a task back at a heartbeat" in text
    assert returned


def test_trips_to_full_nodes_do_not_end_a_wait_at_a_scheduler() -> None:
    links = [
        Link(0, 5, "queueing", "", 9, "PLACED", 1),
        Link(5, 6, "network", "", 2, "PLACED", 1),
        Link(6, 7, "network", "", 9, "REJECTED", 1),
        Link(7, 12, "queueing", "", 9, "PLACED", 1),
        Link(12, 13, "network", "", 3, "PLACED", 1),
        Link(13, 21, "queueing", "", 3, "START", 1),
        Link(21, 99, "work", "", 3, "TASK_END", 1),
    ]
    assert longest_span(links, 9) == (0, 4)
    assert longest_span(links[5:], 9) == (0, 1)
    assert longest_span(links[6:], 9) is None


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


def test_the_mean_of_tasks_is_not_called_what_users_asked_for() -> None:
    frame = pd.DataFrame({"at": [0.0, 0.0], "job": [1, 1], "took": [2.0, 4.0], "asked": [3600.0, 3600.0]})
    workload = emu.workload_from(frame, arrival="at", duration="took", job="job", estimate="asked")
    story = emu.explain(emu.run("sparrow", workload, 2, **KEPT), int(workload.jobs["job_id"][0].as_py()))
    assert (
        "2 tasks of 3,600 s on average as the workload states them, the longest of 4 s" in story.sentences[0]
    )


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
    held = tasks_of(run, record).beside(outages(record, "FAIL", "REPAIR", record.receiver, 5))
    assert lost_runs(record).node.size > 20
    for node in range(5):
        begins, ends = (np.sort(times[held.node == node]) for times in (held.begin_ns, held.end_ns))
        assert np.all(begins[1:] >= ends[:-1])


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
    run = emu.run(scheduler, workload, cluster=file, long_partition=0.8, short_cutoff=10.0, **KEPT)
    for job in np.argsort(-np.array(run.jobs["wait_s"].to_pylist()))[:5].tolist():
        story = emu.explain(run, job)
        assert story.longest is not None
        assert "It needs cpu_cores" in " ".join(story.longest.reasons)
        assert "slot" not in str(story)
        assert len(str(story).splitlines()) <= SCREEN
        assert 0.0 <= story.longest.facts.get("lacking", 0.0) <= 1.0
        assert 0.0 <= story.longest.facts["free_share"] <= 1.0
