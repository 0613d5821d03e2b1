"""The longest fetch of a DAG job: its port and who used it, by hand and against a count in plain Python."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import Cluster
from emu.explaining.explained_run import plan_of
from emu.explaining.explanation import Explanation
from emu.families.dags.fetches import Fetches
from emu.results.result import Result
from tests.actors.dag_settings import mixed_dags, unlike_machines, with_bytes
from tests.actors.transfers.network_simulator import inputs_of
from workloads.arrow import column, optional_column
from workloads.dags import DagWorkload

NS = 1e9
HERE: dict[str, Any] = {
    "in_process": True,
    "network_delay": 0.0,
    "fabric_port_speed": "8 Gbps",
    "output_events": "all",
    "output_tasks": True,
}


def on(machines: Cluster, place: Path, work: DagWorkload, network: str) -> Result:
    pq.write_table(machines.table, place / "machines.parquet")
    return emu.run("drf", work, cluster=place / "machines.parquet", network_scheduler=network, **HERE)


class Moved(NamedTuple):
    """What a fetch moves over the ports, counted task by task."""

    begin: int
    end: int
    ports: dict[tuple[bool, int], float]


def counted(run: Result) -> dict[tuple[int, int, int], Moved]:
    """Return what each fetch moves over each port, by stage, machine and time of launch."""
    plan, table = plan_of(run), run.tasks
    assert plan is not None
    assert table is not None
    arrays, node = plan.workload.arrays(), column(table, "node")
    start, fetched = (np.rint(optional_column(table, name) * NS) for name in ("start_s", "fetched_s"))
    found: dict[tuple[int, int, int], Moved] = {}
    for stage in range(arrays.stage_first_task.size - 1):
        for task, _, needed in inputs_of(arrays, stage, node):
            key = stage, int(node[task]), int(start[task])
            moved = found.setdefault(key, Moved(key[2], int(fetched[task]), defaultdict(float)))
            for source, size in needed.items():
                if source != node[task]:
                    moved.ports[True, source] += size
                    moved.ports[False, key[1]] += size
    return found


def a_run(place: Path, network: str, seed: int = 1) -> Result:
    return on(unlike_machines(), place, with_bytes(mixed_dags(jobs=12, seed=seed), seed), network)


@pytest.mark.parametrize("network", ["fair", "sebf"])
def test_stories_against_a_count_in_plain_python(tmp_path: Path, network: str) -> None:
    run, explained = a_run(tmp_path, network), 0
    fetches, jobs = counted(run), column(run.jobs, "job_id").tolist()
    plan = plan_of(run)
    assert plan is not None
    first = plan.workload.arrays().first_stage.tolist()
    for row, job in enumerate(jobs):
        story = emu.explain(run, job)
        links = [link for link in story.chain if link.cause == "fetching" and link.s > 0]
        if not links:
            assert not any("fetch" in text for text in story.story())
            continue
        link = max(links, key=lambda one: one.s)
        begin, end = story.arrival_ns + link.begin_ns, story.arrival_ns + link.end_ns
        node = int(link.what.rpartition(" ")[2])
        stage = first[row] + int(link.what.partition("of stage ")[2].split()[0])
        own = fetches[stage, node, begin]
        assert own.end == end
        explained += 1
        check_story(story, fetches, (stage, node, begin), np.searchsorted(first, stage, "right") - 1)
    assert explained > 5


def check_story(story: Explanation, fetches: dict[tuple[int, int, int], Moved], key: Any, job: int) -> None:
    """Compare sentences, and the rows of the port's users, with a count of all fetches of the time."""
    own = fetches[key]

    def within(moved: Moved) -> float:
        return max(min(moved.end, own.end) - max(moved.begin, own.begin), 0) / max(moved.end - moved.begin, 1)

    loads = {port: sum(m.ports.get(port, 0.0) * within(m) for m in fetches.values()) for port in own.ports}
    text = next(text for text in story.story() if text.startswith("Of the ports on the way"))
    name = text.partition("the port by which node ")[2].split()
    port = name[1] == "sends", int(name[0])
    assert loads[port] == pytest.approx(max(loads.values()))
    users = {k: m for k, m in fetches.items() if within(m) > 0 and port in m.ports and k != key}
    if users:
        assert f"; {len(users)} other fetch" in text
        assert f"of {len({k[0] for k in users})} stage" in text
    else:
        assert text.endswith("no other fetch used it meanwhile.")
    assert story.longest is not None
    is_longest = story.longest.link.cause == "fetching"
    rows = story.longest.holders if is_longest else story.tables["job whose tasks used that port"]
    others = [row for row in rows if row["whose"] != "this fetch"]
    named = [text for text in story.sentences if text.startswith("Meanwhile the port was used most for ")]
    assert len(named) == (not is_longest and len(others) > 0)
    for text in named:
        first = others[0]
        whose = "this job" if first["whose"] == "this job" else f"job {first['job']}"
        assert f"used most for stage {first['stage']} of {whose} (" in text
        assert text.count("stage ") == min(len(others), 3)
        assert (", and " in text) == (len(others) > 3)
    assert sum(row["bytes"] for row in rows) == pytest.approx(loads[port])
    assert sum(row["bytes in all"] for row in rows) == pytest.approx(
        own.ports[port] + sum(m.ports[port] for m in users.values())
    )
    assert sum(row["fetches"] for row in rows) == 1 + len(users)
    (mine,) = (row for row in rows if row["whose"] == "this fetch")
    assert (mine["job"], mine["bytes"]) == (job, pytest.approx(own.ports[port]))


@pytest.mark.parametrize("network", ["fair", "philae"])
def test_the_flows_of_all_fetches_are_those_that_the_run_counted(tmp_path: Path, network: str) -> None:
    for seed in (1, 2):
        run = a_run(tmp_path, network, seed)
        check_what_crossed(run)


@pytest.mark.slow("several whole runs")
@pytest.mark.parametrize("given", [{"network_input": "replicas"}, {"network_input": "share"}])
def test_flows_of_a_run_with_skew_and_input_from_outside(given: dict[str, Any]) -> None:
    work = {"workload_options": {"jobs": 2}, "nodes": 7, "seed": 4}
    run = emu.run("drf", "query-dags", **work, network_scheduler="sebf", network_skew=0.8, **given, **HERE)
    check_what_crossed(run)


def check_what_crossed(run: Result) -> None:
    """Compare the flows that are computed from the tables with what the run has counted."""
    plan, table = plan_of(run), run.tasks
    assert plan is not None
    assert table is not None
    fetches = Fetches(plan, table)
    flows = fetches.flows(np.arange(fetches.stage.size))
    assert flows.fetch.size == run.summary["dags"]["flows"]
    assert flows.size_bytes.sum() == pytest.approx(run.summary["dags"]["moved_bytes"])
