"""The longest wait of a coflow, by hand: the ports of its last flow, and who used them meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

import emu
from workloads.coflows import make_coflow_workload

NS = 1e9
MB = 1e6
HERE: dict[str, Any] = {
    "in_process": True, "fabric_port_speed": "8 Mbps", "output_events": "all", "output_tasks": True,
}  # fmt: skip


def behind_another() -> Any:
    """From 0 s 20 MB at port 1; from 1 s a coflow of 10 MB at port 0, its bottleneck, and of 1 MB behind them."""
    return make_coflow_workload(
        "behind", [0.0, 1.0], [1, 2], [1, 0, 1], [1, 0, 1], [20 * MB, 10 * MB, 1 * MB], 2
    )


def test_the_ports_of_the_last_flow_are_not_the_bottleneck() -> None:
    """First come, first served in Aalo's first queue: flow 1 waits for 19 s at ports that are not the bottleneck."""
    result = emu.run("aalo", behind_another(), parameters={"first_limit_bytes": 100 * MB}, **HERE)
    story = emu.explain(result, 1)
    assert any("to egress port 1 (not by the bottleneck)" in text for text in story.sentences)
    assert story.longest is not None
    link = story.longest.link
    assert (link.cause, link.what) == ("contention", "flow 1 waited for ingress port 1 and egress port 1")
    assert link.s == pytest.approx(19.0, abs=0.1)
    assert story.longest.facts["any_used"] == pytest.approx(1.0, abs=0.01)
    ports = {(one["side"], one["port"]): one for one in story.longest.holders}
    assert set(ports) == {("ingress", 1), ("egress", 1)}
    for one in ports.values():
        assert one["coflow"] == 0
        assert one["bytes"] == pytest.approx(link.s * MB)  # not the 20 MB of its life
        assert one["arrived_s"] == pytest.approx(-1.0)
    assert story.chain[-1].end_ns == story.time_ns


def test_other_flows_of_the_coflow_are_its_own_transmission() -> None:
    """Three flows of one coflow from port 0, one after the other: nothing contends."""
    workload = make_coflow_workload("own", [0.0], [3], [0, 0, 0], [0, 1, 2], [1 * MB, 2 * MB, 3 * MB], 3)
    story = emu.explain(emu.run("philae", workload, **HERE), 0)
    took = sum(link.s for link in story.chain if link.cause == "transmission")
    assert took == pytest.approx(6.0, rel=0.01)
    assert story.longest is None or story.longest.link.s < 0.05


@pytest.mark.parametrize("scheduler", ["sebf", "saath", "dcoflow"])
def test_chains_have_no_gaps(scheduler: str) -> None:
    small = {"coflows": 12, "ports": 4}
    settings = {"in_process": True, "output_events": "all", "output_tasks": True}
    result = emu.run(scheduler, "synthetic-coflows", workload_options=small, **settings)
    for coflow in result.coflows.to_pylist():
        if coflow["cct_s"] is None:
            continue
        story = emu.explain(result, coflow["coflow_id"])
        ends = [0, *(link.end_ns for link in story.chain)]
        assert [link.begin_ns for link in story.chain] == ends[:-1]
        assert ends[-1] == story.time_ns


@pytest.mark.parametrize(
    ("starvation", "turns"), [("slots", True), ("strict", False)], ids=["queues share time", "queues do not"]
)
def test_the_rule_says_whether_queues_take_turns(starvation: str, turns: bool) -> None:
    result = emu.run("aalo", behind_another(), parameters={"starvation": starvation}, **HERE)
    story = emu.explain(result, 1)
    assert story.longest is not None
    rule = next(text for text in story.longest.reasons if text.startswith("The rule: "))
    assert ("queues take turns" in rule) == turns


def test_a_coflow_that_keeps_its_queue_is_said_to() -> None:
    result = emu.run("aalo", behind_another(), parameters={"first_limit_bytes": 15 * MB}, **HERE)
    assert any("to its last priority queue" in text for text in emu.explain(result, 0).sentences)
    assert "It was in one priority queue from its arrival to its end." in emu.explain(result, 1).sentences


def test_holders_of_a_slow_sending_are_of_all_of_it() -> None:
    """Two equal coflows share one port: half of the time of the sending is the wait, and the text tells both."""
    workload = make_coflow_workload("two", [0.0, 0.0], [1, 1], [0, 0], [0, 0], [4 * MB, 4 * MB], 1)
    story = emu.explain(emu.run("fair", workload, **HERE), 1)
    assert story.longest is not None
    assert story.longest.link.s == pytest.approx(4.0)
    assert story.longest.within_s == pytest.approx(8.0)
    assert [one["s"] for one in story.longest.holders] == pytest.approx([8.0, 8.0])
    assert "Who held what it waited for in the 8 s of that" in " ".join(story.render().split())


def test_a_story_tells_of_the_deadline_and_of_admission() -> None:
    """Three coflows of 4, 2 and 3 s at one port, due after 5, 10 and 6 s: the last one does not fit."""
    workload = make_coflow_workload(
        "due", [0.0] * 3, [1] * 3, [0] * 3, [0] * 3, [4 * MB, 2 * MB, 3 * MB], 1, deadline_s=[5.0, 10.0, 6.0]
    )
    admits = emu.run("varys-deadline", workload, **HERE)
    assert admits.coflows["met_deadline"].to_pylist() == [True, True, False]
    texts = [" ".join(emu.explain(admits, i).sentences) for i in range(3)]
    assert "Its deadline was 5 s after its arrival, and it takes 4 s alone; it ended " in texts[0]
    assert "Its scheduler admitted it 0 s after its arrival." in texts[1]
    assert "Its deadline was 6 s after its arrival, and it takes 3 s alone; it did not end." in texts[2]
    assert "Its scheduler rejected it 0 s after its arrival." in texts[2]
    assert "where its time went" not in emu.explain(admits, 2).render()
    late = emu.explain(emu.run("fifo", workload, **HERE), 2)
    assert "it takes 3 s alone; it ended 3 s too late." in " ".join(late.sentences)


def test_a_run_in_which_coflows_did_not_end_is_run_again() -> None:
    """Of two coflows that are due after 15 s the second, which needs 10 s at the same port, is dropped."""
    workload = make_coflow_workload(
        "due", [0.0, 0.0], [1, 1], [0, 0], [1, 1], [10 * MB] * 2, 2, deadline_s=[15.0] * 2
    )
    run = emu.run("varys-deadline", workload, in_process=True, fabric_port_speed="8 Mbps")
    assert [emu.explain(run, i).time_ns >= 0 for i in range(2)] == [True, False]
