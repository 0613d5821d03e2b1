"""What jobs waited for, in shares by reason: by hand, by a count at many moments, and at an answer of a size."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.explaining.event_record import Record
from emu.explaining.explain import with_events_of
from emu.families.jobs.chain import Chain
from emu.families.jobs.holders import runs_of, tasks_of
from emu.families.jobs.run_causes import HIGHER, TURN, waits_by_reason
from emu.results.result import Result
from emu.results.text_tables import percent
from emu.sweeps.sizing import size
from tests.emu.families.jobs.test_use_of_lost_attempts import EVICTING, FAILING, busy, machines
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

GIB = 2**30
EXACT = {"network_delay": 0.0, "short_cutoff": 100.0, "in_process": True}


def one_machine(folder: Path) -> Path:
    """A node of 2 cores and 8 GiB."""
    pq.write_table(
        build_cluster("one", [4], cpu_cores=2.0, memory_bytes=8 * GIB).table, folder / "one.parquet"
    )
    return folder / "one.parquet"


def run(
    workload: JobWorkload, cluster: Path | None = None, scheduler: str = "central-lwl", **more: Any
) -> Result:
    result = emu.run(scheduler, workload, cluster=cluster, **{**EXACT, **more})
    assert isinstance(result, Result)
    return result


def three(priority: list[int] | None = None) -> JobWorkload:
    """From 0 to 10 s 2 cores are held, to 15 s also 7 GiB; the third comes at 1 s and needs 1 core and 2 GiB."""
    asked = Requests({"cpu_cores": [2.0, 0.0, 1.0], "memory_gib": [0.0, 7.0, 2.0]}, priority=priority)
    return make_workload("three", [0.0, 0.0, 1.0], [1] * 3, [10.0, 15.0, 5.0], requests=asked)


@pytest.mark.parametrize("scheduler", ["central-lwl", "central-fifo"])
def test_by_hand(scheduler: str, tmp_path: Path) -> None:
    """For 9 s cores and memory lack, then for 5 s memory alone."""
    found = waits_by_reason(run(three(), one_machine(tmp_path), scheduler), "all", with_events_of)
    assert found is not None
    assert (found.jobs, found.of, found.total_s) == (3, 3, pytest.approx(10 + 15 + 19))
    within = 1e-6 if scheduler == "central-lwl" else 14 / 16  # at a scheduler 16 moments are looked at
    assert found.reasons == {
        "memory_gib": pytest.approx(9.5, abs=within),
        "cpu_cores": pytest.approx(4.5, abs=within),
    }


def test_what_higher_priorities_hold_is_a_reason_of_its_own(tmp_path: Path) -> None:
    """For 9 s lower tasks hold the cores, and higher ones the memory; for 5 s there lacks memory alone."""
    found = waits_by_reason(run(three([0, 9, 5]), one_machine(tmp_path)), "priority:5", with_events_of)
    assert found is not None
    assert found.reasons == {"cpu_cores": pytest.approx(4.5), HIGHER: pytest.approx(9.5)}


def test_slots_and_turns(tmp_path: Path) -> None:
    """A job waits for a slot; of another, which fits, the turn comes after that of one that does not."""
    slots = make_workload("two", [0.0, 1.0], [1, 1], [10.0, 5.0])
    found = waits_by_reason(run(slots, nodes=1, scheduler="random"), "all", with_events_of)
    assert found is not None
    assert found.reasons == {"slots": pytest.approx(9.0)}
    asked = Requests({"cpu_cores": [1.0, 2.0, 1.0]}, priority=[0, 0, 7])
    blocked = make_workload("b", [0.0, 1.0, 2.0], [1] * 3, [10.0, 5.0, 5.0], requests=asked)
    found = waits_by_reason(
        run(blocked, one_machine(tmp_path), priorities=False), "priority:7", with_events_of
    )
    assert found is not None  # until 10 s there is room, and until 15 s not
    assert found.reasons == {TURN: pytest.approx(8.0), "cpu_cores": pytest.approx(5.0)}


@pytest.mark.slow("many drawn cases")
@pytest.mark.parametrize("scheduler", ["central-lwl", "sparrow"])
@pytest.mark.parametrize("more", [{}, FAILING | EVICTING], ids=["plain", "both"])
def test_reasons_add_up_and_are_those_of_a_grid_of_moments(
    scheduler: str, more: dict[str, Any], tmp_path: Path
) -> None:
    workload, out = busy(4), tmp_path / "run"
    pq.write_table(machines().table, tmp_path / "six.parquet")
    given = {"output_events": "all", "output_tasks": True, "short_cutoff": "15 s", "network_delay": 0.0005}
    result = run(workload, tmp_path / "six.parquet", scheduler, out=out, **given, **more)
    found = waits_by_reason(result, "all", with_events_of)
    assert found is not None
    causes = emu.causes(result)
    delays = [name for name in causes.column_names[1:] if name != "work_ns"]
    assert sum(found.reasons.values()) == pytest.approx(sum(causes[n].to_numpy().sum() for n in delays) / 1e9)
    for cause in ("network", "failure", "preemption"):
        if f"{cause}_ns" in causes.column_names:
            total = causes[f"{cause}_ns"].to_numpy().sum() / 1e9
            assert found.reasons.get(cause, 0.0) == pytest.approx(total)
    # What ran when, on which node: the table of tasks, and from the events what was lost.
    record = Record.of(result.events)
    tasks = tasks_of(result, record)
    of = workload.jobs.to_pydict()
    spans = [tuple(map(int, row)) for row in zip(*tasks, strict=True)]
    assert sorted(spans) == sorted(tuple(map(int, row)) for row in zip(*runs_of(record), strict=True))
    grid = Counter[str]()
    for job, events in record.by_job():
        chain = Chain(events, 6, round(of["submit_s"][job] * 1e9))
        for link in chain.links:
            if link.cause == "queueing" and link.actor < 6:
                for reason in reasons_on_grid(of, spans, job, link, chain.submit_ns, 60):
                    grid[reason] += (link.end_ns - link.begin_ns) / 60 / 1e9
    for reason in ("cpu_cores", "memory_gib", HIGHER, TURN):
        assert found.reasons.get(reason, 0.0) == pytest.approx(grid[reason], rel=0.05, abs=5.0)
    assert grid[HIGHER] > 5


def reasons_on_grid(
    of: dict[str, Any], spans: list[Any], job: int, link: Any, submit_ns: int, parts: int
) -> list[str]:
    """The reason at the middle of each part of a wait at a node of the six; of two that lack, in turns."""
    found = []
    for part in range(parts):
        now = submit_ns + link.begin_ns + (link.end_ns - link.begin_ns) * (2 * part + 1) // (2 * parts)
        there = [row[0] for row in spans if row[2] == link.actor and row[3] <= now < row[4]]
        lower = [other for other in there if of["priority"][other] <= of["priority"][job]]
        short = []
        for which in (there, lower):
            lacks = []
            for name, sizes in (("cpu_cores", (4.0, 8.0)), ("memory_gib", (8.0, 24.0))):
                used = sum(of[name][other] for other in which)
                if sizes[link.actor % 2] - used < of[name][job] - 1e-9:
                    lacks.append(name)
            short.append(lacks)
        reason = short[0][part % len(short[0])] if short[0] else TURN
        found.append(HIGHER if short[0] and reason not in short[1] else reason)
    return found


def test_an_answer_of_a_size_states_what_jobs_wait_for(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(build_cluster("c", [4], cpu_cores=2.0, memory_bytes=8 * GIB).table, "c.parquet")
    asked = Requests({"cpu_cores": [0.1] * 20, "memory_gib": [4.0] * 20})
    jobs = make_workload("m", np.arange(20.0), [1] * 20, [8.0] * 20, requests=asked, tenant=["a", "b"] * 10)
    given = {
        "cluster": "c.parquet",
        "waits": True,
        "short_cutoff": 100.0,
        "in_process": True,
        "progress": False,
    }
    found = size("tenant:a.wait.p99 < 20s", "central-lwl", jobs, **given)
    assert found.nodes is not None
    of_a = found.summary["waits_by_reason"]["tenant:a"]
    assert (of_a["jobs"], of_a["of"]) == (10, 10)
    assert set(of_a["reasons"]) == {"memory_gib", "network"}
    (text,) = found.summary["waits"]
    share = percent(of_a["reasons"]["memory_gib"] / sum(of_a["reasons"].values()))
    assert text.endswith(f" of that {share} for memory_gib, <0.1% for network")
    assert text.startswith("jobs of tenant a wait for ")
    assert text in found.to_text()
