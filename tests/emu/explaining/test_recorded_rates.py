"""The rates of flows as agents have them, recorded: by a program of its own over the rows of events.parquet."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu.configuration.event_selection import events_text, parse_events

DEADLINES = {"coflows": 12, "ports": 5}
SHUFFLES = {"coflows": 15, "ports": 8}
COSTS = {"network_delay": "5ms", "cost_model": "fixed", "cost_per_flow": "10us", "cost_per_coflow": "1ms"}


def run_of(scheduler: str, **given: Any) -> Any:
    deadlines = scheduler in ("cds-lp", "varys-deadline", "dcoflow")
    workload = {
        "workload": "deadline-coflows" if deadlines else "synthetic-coflows",
        "workload_options": DEADLINES if deadlines else SHUFFLES,
    }
    return emu.run(scheduler, in_process=True, seed=2, output_tasks=True, **workload, **given)


def rates_of(result: Any) -> list[tuple[int, int, float]]:
    """Time in ns, flow, and bytes per second, of each change."""
    rows = result.events.to_pandas()
    rows = rows[rows.kind == "RATE"]
    assert (rows.node == result.flows.to_pandas().ingress.to_numpy()[rows.task.to_numpy(int)]).all()
    return list(
        zip(rows.time_ns.tolist(), rows.task.astype(int).tolist(), (rows.b / 1e6).tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("scheduler", "given"),
    [
        ("cds-lp", COSTS),
        ("varys-deadline", COSTS),
        ("dcoflow", {"parameters": {"update_period_s": 0.5}}),
        ("philae", {}),
        ("sebf", {"parameters": {"rates": "madd"}}),
        ("aalo-shares", {}),
    ],
)
def test_ports_carry_no_more_than_they_can_and_flows_what_they_have(
    scheduler: str, given: dict[str, Any]
) -> None:
    result = run_of(scheduler, output_events="all; rates", **given)
    flows = result.flows.to_pandas()
    speed = 1.25e8
    rate, sent, since = np.zeros(len(flows)), np.zeros(len(flows)), 0
    ends: dict[int, int] = defaultdict(int)
    changes = rates_of(result)
    assert changes
    for i, (time, flow, now) in enumerate(changes):
        sent += rate * (time - since) / 1e9
        since, rate[flow], ends[flow] = time, now, time
        if i + 1 == len(changes) or changes[i + 1][0] > time:  # all of an instant are in force together
            for port in ("ingress", "egress"):
                assert np.bincount(flows[port], rate).max() <= speed * (1 + 1e-9)
    assert not rate.any()
    finished = flows.finish_s.notna().to_numpy()
    assert sent[finished] == pytest.approx(flows.size_bytes[finished], abs=speed * 1e-9 * 4 * len(changes))
    assert [ends[flow] / 1e9 for flow in np.flatnonzero(finished)] == pytest.approx(flows.finish_s[finished])


@pytest.mark.parametrize(("scheduler", "asked"), [("sebf", "all; rates"), ("philae", "job=3,7; rates")])
def test_partitions_record_the_same_rates(scheduler: str, asked: str, tmp_path: Path) -> None:
    files = []
    for partitions in (1, 2, 3):
        clock = {"clock": "windows", "partitions": partitions} if partitions > 1 else {}
        out = tmp_path / str(partitions)
        run_of(scheduler, output_events=asked, network_delay="5ms", out=out, **clock)
        files.append((out / "events.parquet").read_bytes())
    assert files[0] == files[1] == files[2]
    assert rates_of(run_of(scheduler, output_events=asked, network_delay="5ms"))


def test_rates_are_recorded_where_they_are_asked_for_and_there_are_flows() -> None:
    assert not rates_of(run_of("philae", output_events="all"))
    assert events_text(parse_events("rates; job=3")) == "job=3; rates"
