"""The longest wait of a coflow, by hand: the ports of its last flow, and who used them meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

import emu
from workloads.coflows import make_coflow_workload

MB = 1e6
HERE: dict[str, Any] = {
    "in_process": True, "fabric_port_speed": "8 Mbps", "output_events": "all", "output_tasks": True,
}  # fmt: skip


def test_other_flows_of_the_coflow_are_its_own_transmission() -> None:
    """Three flows of one coflow from port 0, one after the other: nothing contends."""
    workload = make_coflow_workload("own", [0.0], [3], [0, 0, 0], [0, 1, 2], [1 * MB, 2 * MB, 3 * MB], 3)
    story = emu.explain(emu.run("philae", workload, **HERE), 0)
    took = sum(link.s for link in story.chain if link.cause == "transmission")
    assert took == pytest.approx(6.0, rel=0.01)
    assert story.longest is None or story.longest.link.s < 0.05


def test_a_run_in_which_coflows_did_not_end_is_run_again() -> None:
    """Of two coflows that are due after 15 s the second, which needs 10 s at the same port, is dropped."""
    workload = make_coflow_workload(
        "due", [0.0, 0.0], [1, 1], [0, 0], [1, 1], [10 * MB] * 2, 2, deadline_s=[15.0] * 2
    )
    run = emu.run("varys-deadline", workload, in_process=True, fabric_port_speed="8 Mbps")
    assert [emu.explain(run, i).time_ns >= 0 for i in range(2)] == [True, False]
