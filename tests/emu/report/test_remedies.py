"""What would change the answer of a page: by hand, and against the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import emu
from actors.causes import BEHIND_LONG, BEHIND_SHORT, BEHIND_TASKS, BEHIND_UNFIT, FOR_LOWER, OTHER_QUEUEING
from actors.schedulers.registry import built_in_schedulers
from clusters.cluster import build_cluster
from emu.configuration.keys import BY_NAME
from emu.explaining.causes import Causes
from emu.explaining.event_record import Record
from emu.families.jobs.run_causes import finer_causes_of_all
from emu.families.registry import families, find_family
from emu.report.causes_sections import time_by_cause
from emu.report.remedies import NOT_RECORDED, changes_of
from emu.report.report import render_report
from tests.emu.families.jobs.test_use_of_lost_attempts import busy, machines
from workloads.jobs import make_workload
from workloads.requests import Requests

JOBS = find_family("jobs")
KEPT: dict[str, Any] = {"output_events": "all", "in_process": True}


def test_a_wait_is_shared_out_by_what_ran_meanwhile() -> None:
    # One slot: the long task runs from 0 to 100, the short ones from 100 to 110 and to 115. There is no delay.
    workload = make_workload("three", [0.0, 20.0, 30.0], [1, 1, 1], [100.0, 10.0, 5.0])
    run = emu.run("sparrow", workload, 1, short_cutoff=50, network_delay=0, **KEPT)
    found = dict(finer_causes_of_all(run, Record.of(run.events), None))
    assert [found[2][name] / 1e9 for name in (BEHIND_LONG, BEHIND_SHORT, OTHER_QUEUEING)] == [70.0, 10.0, 0.0]
    assert [found[1][name] / 1e9 for name in (BEHIND_LONG, BEHIND_SHORT, OTHER_QUEUEING)] == [80.0, 0.0, 0.0]
    text = changes_of({"sparrow": [run]}, time_by_cause({"sparrow": [run]}), JOBS)
    assert text[0] == (
        "Short jobs: of the mean completion time delay is 91.4% under sparrow (93.8% of that behind long tasks)."
    )
    assert (
        "long_partition (not used by sparrow; random, hawk, eagle and others use it): keeps long tasks off"
        in text[1]
    )
    assert "nodes (here 1)" in text[1]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """One node of 2 cores."""
    pq.write_table(build_cluster("one", [4], cpu_cores=2.0).table, tmp_path / "one.parquet")
    return tmp_path / "one.parquet"


def test_what_would_fit_and_room_of_lower_priorities_are_parts_with_remedies(machine: Path) -> None:
    """One core is free until 10 s, while the job of two waits; the last comes at 2 s, and starts at 15 s.

    Priorities do not count at first.
    """
    asked = Requests({"cpu_cores": [1.0, 2.0, 1.0]}, priority=[0, 0, 7])
    workload = make_workload("three", [0.0, 1.0, 2.0], [1] * 3, [10.0, 5.0, 1.0], requests=asked)
    given = {"cluster": machine, "network_delay": 0, "short_cutoff": 50, "priorities": True, **KEPT}
    run = emu.run("central-lwl", workload, **(given | {"priorities": False}))
    found = dict(finer_causes_of_all(run, Record.of(run.events), None))
    assert [found[2][name] / 1e9 for name in (BEHIND_UNFIT, FOR_LOWER, BEHIND_TASKS, OTHER_QUEUEING)] == [
        8,
        0,
        5,
        0,
    ]
    text = " ".join(changes_of({"central-lwl": [run]}, time_by_cause({"central-lwl": [run]}), JOBS))
    assert "Delay behind other tasks is addressed by" in text
    assert "Delay behind what did not fit" not in text  # it is not the greatest cause
    assert "fit (here least-work): best or worst fit chooses among nodes with room now" in text
    asked = Requests({"cpu_cores": [1.0, 2.0, 1.0, 1.0]})
    long = make_workload("four", [0.0, 1.0, 2.0, 2.0], [1] * 4, [40.0, 1.0, 1.0, 1.0], requests=asked)
    run = emu.run("central-lwl", long, **(given | {"priorities": False}))
    text = " ".join(changes_of({"central-lwl": [run]}, time_by_cause({"central-lwl": [run]}), JOBS))
    assert (
        "Delay behind what did not fit is addressed by fit (here least-work): best or worst fit chooses among "
        "nodes with room now; resources.passing (here 0): what fits goes before" in text
    )
    # With its priority the last goes first, and waits where lower ones hold both cores.
    high = make_workload(
        "two", [0.0, 2.0], [1] * 2, [10.0, 1.0], requests=Requests({"cpu_cores": [2.0, 1.0]}, priority=[0, 7])
    )
    run = emu.run("central-lwl", high, **given)
    assert dict(finer_causes_of_all(run, Record.of(run.events), None))[1][FOR_LOWER] == 8_000_000_000
    text = " ".join(changes_of({"central-lwl": [run]}, time_by_cause({"central-lwl": [run]}), JOBS))
    assert (
        "Delay for room of lower priorities is addressed by preemption.mode (here none): with restart" in text
    )


def test_finer_causes_add_up_where_tasks_hold_resources(tmp_path: Path) -> None:
    pq.write_table(machines().table, tmp_path / "six.parquet")
    run = emu.run("sparrow", busy(5), cluster=tmp_path / "six.parquet", short_cutoff="15 s", **KEPT)
    causes, seen = (
        emu.causes(run).to_pandas().set_index("job_id"),
        dict.fromkeys((BEHIND_UNFIT, FOR_LOWER, BEHIND_LONG, BEHIND_SHORT), 0),
    )
    for row, found in finer_causes_of_all(run, Record.of(run.events), None):
        own = causes.loc[run.jobs["job_id"][row].as_py()]
        assert sum(found.values()) == own.sum()
        assert sum(found[name] for name in (*seen, OTHER_QUEUEING)) == own["queueing_ns"]
        assert min(found.values()) >= 0
        seen = {name: ns + found[name] for name, ns in seen.items()}
    assert all(seen.values())


@pytest.mark.parametrize("scheduler", ["hawk", "eagle"])
def test_finer_causes_add_up_to_the_causes(scheduler: str) -> None:
    run = emu.run(scheduler, "yahoo", 60, workload_options={"jobs": 30}, slots=2, **KEPT)
    causes = emu.causes(run).to_pandas().set_index("job_id")
    for row, found in finer_causes_of_all(run, Record.of(run.events), None):
        own = causes.loc[run.jobs["job_id"][row].as_py()]
        assert sum(found.values()) == own.sum()
        assert found[BEHIND_LONG] + found[BEHIND_SHORT] + found[OTHER_QUEUEING] == own["queueing_ns"]
        assert min(found.values()) >= 0


@pytest.mark.slow("whole runs with their figures")
def test_what_the_runs_show_is_stated_and_nothing_is_without_events() -> None:
    options: dict[str, Any] = {"workload_options": {"jobs": 40, "nodes": 60, "load": 0.9}}
    runs = {name: [emu.run(name, "yahoo", 60, **options, **KEPT)] for name in ("sparrow", "eagle")}
    means = {name: causes for name, _, causes in time_by_cause(runs)["short"]}
    page = render_report([own for (own,) in runs.values()])
    assert "What would change it" in page
    assert means["eagle"][BEHIND_LONG] < means["sparrow"][BEHIND_LONG]
    assert "Of these runs it is least under eagle" in page
    assert "not used by sparrow" in page
    bare = {"sparrow": [emu.run("sparrow", "yahoo", 60, **options, in_process=True)]}
    text = changes_of(bare, time_by_cause(bare), JOBS)
    assert text[-1] == NOT_RECORDED.format(parts="")
    assert "the wait until the first of a job's tasks starts is" in text[0]


def test_remedies_of_a_family_are_keys_and_those_of_schedulers_name_causes_that_there_are() -> None:
    for family in families():
        remedies = family[Causes].remedies
        assert remedies.keys() <= BY_NAME.keys()
        causes = {one.cause for of in remedies.values() for one in of}
        for scheduler in built_in_schedulers(family.name):
            for parameter in scheduler.parameters:
                assert {one.cause for one in parameter.addresses} <= causes
