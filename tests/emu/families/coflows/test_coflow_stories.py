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
    assert any("to egress port 1: not by the bottleneck" in text for text in story.sentences)
    assert story.longest is not None
    link = story.longest.link
    assert (link.cause, link.what) == ("contention", "flow 1 waited for ingress port 1 and egress port 1")
    assert link.s == pytest.approx(19.0, abs=0.1)
    assert story.longest.facts["any_used"] == pytest.approx(1.0, abs=0.01)
    ports = {one["port"]: one for one in story.longest.holders}
    assert set(ports) == {"ingress 1", "egress 1"}
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
