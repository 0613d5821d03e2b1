"""Where completion times went: sums, and examples that are computed by hand."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import emu
from actors.schedulers.registry import find_scheduler, scheduler_names
from emu.explaining.causes import render_causes
from emu.explaining.event_record import Record
from emu.families.jobs.chain import MEANINGS, Chain
from emu.families.jobs.task_waits import sticky_jobs
from tests.actors.dag_settings import mixed_dags
from tests.emu.recorded_runs import NODES, recorded, settings_of_jobs
from workloads.jobs import make_workload

OF_DAGS = [name for name in scheduler_names() if find_scheduler(name).family == "dags"]
OF_COFLOWS = [name for name in scheduler_names() if find_scheduler(name).family == "coflows"]
NS = 10**9
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "costs": {"cost_model": "fixed", "cost_per_message": "2 ms"},
    "failures": {"dynamics_mtbf": "5 h", "dynamics_mttr": "100 s", "dynamics_detection": "3 s"},
    "delays": {"network_spread": "1 ms", "network_cross_rack_delay": "3 ms"},
}


@pytest.mark.parametrize(("name", "setting"), [*settings_of_jobs(SETTINGS)])
def test_causes_add_up_to_the_completion_time_of_every_job(name: str, setting: str) -> None:
    result = recorded(name, **SETTINGS[setting])
    record = Record.of(result.events)
    handled = record.handled_ns if setting == "costs" else None
    jobs = result.jobs.to_pydict()
    seen, is_sticky = 0, sticky_jobs(result)
    for job, events in record.by_job():
        submit_ns = round(jobs["submit_s"][job] * NS)
        links = Chain(events, NODES, submit_ns, handled, bool(is_sticky[job])).links
        assert links[0].begin_ns == 0
        assert all(a.end_ns == b.begin_ns for a, b in pairwise(links))
        assert submit_ns + links[-1].end_ns == round(jobs["finish_s"][job] * NS)
        assert {link.cause for link in links} <= set(MEANINGS)
        assert all(link.actor >= 0 for link in links), "what led to the end was not found"
        assert links[-1].cause == "work"
        seen += 1
    assert seen == len(jobs["job_id"])


@pytest.mark.parametrize("name", OF_COFLOWS)
def test_causes_add_up_to_the_completion_time_of_every_coflow(name: str) -> None:
    small = {"coflows": 8, "ports": 6}
    result = emu.run(name, "synthetic-coflows", workload_options=small, in_process=True, output_events="all")
    table = emu.causes(result).to_pydict()
    took = dict(
        zip(result.coflows["coflow_id"].to_pylist(), result.coflows["cct_s"].to_pylist(), strict=True)
    )
    assert table["coflow_id"] == [coflow for coflow, cct in took.items() if cct is not None]
    causes = [name for name in table if name.endswith("_ns")]
    for i, coflow in enumerate(table["coflow_id"]):
        assert all(table[cause][i] >= 0 for cause in causes)
        assert sum(table[cause][i] for cause in causes) == round(took[coflow] * NS)
    story = emu.explain(result, table["coflow_id"][-1])
    assert [link.begin_ns for link in story.chain] == [0, *(link.end_ns for link in story.chain[:-1])]
    assert story.chain[-1].end_ns == story.time_ns


DAG_SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heartbeats": {"parameters": {"heartbeat_s": 0.5}, "cost_model": "fixed", "cost_per_message": "2 ms"},
    "failures": {"dynamics_mtbf": "20 s", "dynamics_mttr": "10 s", "dynamics_detection": "1 s"},
}


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        pytest.param(
            name,
            setting,
            marks=[pytest.mark.slow("every scheduler in every setting")]
            if setting != "plain" and name not in ("drf", "carbyne")
            else [],
        )
        for name in OF_DAGS
        for setting in DAG_SETTINGS
    ],
)
def test_causes_add_up_to_the_completion_time_of_every_dag(name: str, setting: str) -> None:
    """They do, and what tasks ran is what the tasks of a chain ran of which each begins after the one before it."""
    kept = {"output_events": "all", "output_tasks": True}
    result = emu.run(name, mixed_dags(8), 2, in_process=True, seed=2, **kept, **DAG_SETTINGS[setting])
    table = emu.causes(result).to_pydict()
    assert table["job_id"] == result.jobs["job_id"].to_pylist()
    causes = [name for name in table if name.endswith("_ns")]
    jct_s, ideal_s = result.jobs["jct_s"].to_pylist(), result.jobs["ideal_s"].to_pylist()
    for i, job in enumerate(table["job_id"]):
        assert all(table[cause][i] >= 0 for cause in causes)
        assert sum(table[cause][i] for cause in causes) == round(jct_s[i] * NS)
        explained = emu.explain(result, job)
        (chain,) = explained.tables.values()
        assert all(after["runnable_s"] == before["finish_s"] for before, after in pairwise(chain))
        ran = sum(row["finish_s"] - row["start_s"] for row in chain)
        assert explained.causes["work"] == pytest.approx(ran * NS, abs=1e3)
        assert ran <= ideal_s[i] + 1e-6  # no chain is longer than the critical path


@pytest.mark.parametrize("name", ["sparrow", "hawk", "eagle", "phoenix"])
def test_sentences_agree_with_a_count_of_the_events(name: str) -> None:
    result = recorded(name, jobs=30, cluster_seed=1)
    for job in (5, 11, 23):
        explained = emu.explain(result, job)
        frame = result.events.to_pandas()
        mine = frame[frame.job == job]
        finish_s = result.jobs["finish_s"][job].as_py()
        before = mine[mine.time_ns <= round(finish_s * NS)]
        kinds = Counter(before.kind)
        probes = before[(before.kind == "PROBE") & (before.sender >= NODES)]
        text = " ".join(explained.sentences)
        if len(probes):
            assert f"sent {len(probes):,} probe" in text
            assert f"to {probes.receiver.nunique():,} node" in text
        if kinds["REJECTED"]:
            assert f"{kinds['REJECTED']:,} probe" in text
        if kinds["NO_TASK"]:
            assert f"for {kinds['NO_TASK']:,} no task was left to start" in text
        turns = before[before.kind.isin(["BYPASS", "REORDER"])]
        moments = turns[["time_ns", "receiver"]].drop_duplicates()
        assert (f"{len(moments):,} time" in text) == bool(len(moments))
        assert (
            len(explained.tables["task"])
            == (mine.kind == "START").sum()
            == result.jobs["num_tasks"][job].as_py()
        )
        ends = mine[mine.kind == "DONE"]
        last = ends.loc[ends.d.idxmax()]
        assert explained.causes["work"] >= last.d - last.c
        assert explained.chain[-1].what.endswith(f"ran on node {int(last.b)}")
        submit_ns = round(result.jobs["submit_s"][job].as_py() * NS)
        assert explained.arrival_ns == submit_ns
        for row in explained.tables["task"]:
            begin_s, end_s = ((row[name] * NS + submit_ns) / NS for name in ("enqueued_s", "start_s"))
            others = result.tasks.to_pandas().query("node == @row['node']")
            ahead = others[(others.start_s < end_s - 1e-9) & (others.finish_s > begin_s + 1e-9)]
            assert row["ahead"] == len(ahead)
            came = mine[mine.receiver == row["node"]].time_ns - submit_ns
            assert row["enqueued_s"] in set((came / NS).tolist())


@pytest.mark.parametrize("name", ["philae", "aalo"])
def test_coflows_are_explained_by_their_flows(name: str) -> None:
    small = {"coflows": 12, "ports": 6}
    result = emu.run(name, "synthetic-coflows", workload_options=small, in_process=True, output_tasks=True)
    flows = result.flows.to_pandas()
    for coflow in result.coflows["coflow_id"].to_pylist():
        explained = emu.explain(result, coflow)
        mine = flows[flows.coflow_id == coflow]
        by_port = max(mine.groupby(side).size_bytes.sum().max() for side in ("ingress", "egress"))
        assert any(f"sends {by_port:,.0f} bytes" in text for text in explained.sentences)
        assert any(
            text.startswith(f"Flow {mine.loc[mine.finish_s.idxmax()].flow:.0f} ended")
            for text in explained.sentences
        )
        assert explained.time_ns == round(
            (mine.finish_s.max() - result.coflows["arrival_s"][coflow].as_py()) * NS
        )


def test_a_run_without_events_is_run_again(tmp_path: Any) -> None:
    plain = emu.run(
        "hawk", "yahoo", NODES, workload_options={"jobs": 20}, in_process=True, out=tmp_path / "r"
    )
    whole = emu.run(
        "hawk",
        "yahoo",
        NODES,
        workload_options={"jobs": 20},
        in_process=True,
        output_events="all",
        output_tasks=True,
    )
    assert plain.events is None
    assert emu.explain(tmp_path / "r", 7).as_dict() == emu.explain(whole, 7).as_dict()
    assert emu.causes(plain).equals(emu.causes(whole))
    with pytest.raises(emu.InputError, match="has no job_id 20 in its table of jobs; they are 0 to 19"):
        emu.explain(plain, 20)


def test_means_by_cause_are_said_of_jobs_that_ended() -> None:
    result = emu.run("sparrow", make_workload("one", [0.0], [1], [1.0]), 2, in_process=True)
    table = emu.causes(result)
    title, _, head, row, *rest = render_causes([(result, table), (result, table.slice(0, 0))]).split("\n")
    assert title == "sparrow on one, 2 nodes"
    assert head.split()[-6:] == ["mean", "work", "queueing", "network", "decision", "failure"]
    assert row.split() == [
        "all",
        "1",
        "1.002",
        "1",
        "(99.9%)",
        "0",
        "(0.0%)",
        "0.0015",
        "(0.1%)",
        *["0", "(0.0%)"] * 2,
    ]
    assert rest == ["", title, "", "No job has ended.", ""]


def test_what_does_not_come_again_is_refused() -> None:
    workload = make_workload("one", [0.0], [1], [1.0])
    result = emu.run("sparrow", workload, 2, in_process=True, cost_model="measured")
    with pytest.raises(emu.InputError, match="cannot be repeated"):
        emu.explain(result, 0)
    kept = {"output_events": "all", "output_tasks": True}
    again = emu.run("sparrow", workload, 2, in_process=True, cost_model="measured", **kept)
    explained = emu.explain(again, 0)
    assert sum(explained.causes.values()) == explained.time_ns
    assert explained.causes["decision"] > 0


def test_handled_is_when_the_sender_handled_the_event() -> None:
    """Without costs a message leaves when the event is handled during which it was sent."""
    record = Record.of(recorded("eagle").events)
    between = np.flatnonzero((record.left_ns >= 0) & (record.number >= 0))
    for at in between[::7].tolist():
        assert record.handled_ns(int(record.sender[at]), int(record.number[at])) == record.left_ns[at]
