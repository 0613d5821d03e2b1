"""Logs of one's own: the Standard Workload Format, sacct, Kubernetes, tables with a mapping of columns."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import emu
from tests.workloads.log_files import arrivals, durations, written
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import recognise

SACCT = """\
JobID|JobName|User|Submit|Start|End|Elapsed|AllocCPUS|Timelimit|State
100|train|ada|2026-01-31T23:59:50|2026-02-01T00:00:00|2026-02-01T01:00:00|01:00:00|4|02:00:00|COMPLETED
100.batch|batch||2026-01-31T23:59:50|2026-02-01T00:00:00|2026-02-01T01:00:00|01:00:00|4||COMPLETED
100.extern|extern||2026-01-31T23:59:50|2026-02-01T00:00:00|2026-02-01T01:00:00|01:00:00|4||COMPLETED
101_1|array|bob|2026-02-01T00:00:10|2026-02-01T00:00:20|2026-02-01T00:00:50|00:00:30|1|UNLIMITED|COMPLETED
101_2|array|bob|2026-02-01T00:00:10|2026-02-01T00:00:20|2026-02-02T00:00:21|1-00:00:01|1|UNLIMITED|TIMEOUT
102|wait|bob|2026-02-01T00:01:00|Unknown|Unknown|00:00:00|0|01:00|PENDING
103|gone|ada|2026-02-01T00:01:00|None|2026-02-01T00:02:00|00:00:00|0|01:00|CANCELLED by 1000
104+0|het|eve|2026-02-01T00:02:00|2026-02-01T00:02:00|2026-02-01T00:02:05|00:05.500|2|01:00|FAILED
104+1|het|eve|2026-02-01T00:02:00|2026-02-01T00:02:00|2026-02-01T00:02:05|00:05.500|1|01:00|FAILED
"""


def pod(
    name: str, created: str, begin: str, end: str, owner: str | None = None, phase: str = "Succeeded"
) -> Any:
    owners = [{"kind": "Job", "name": owner, "uid": owner}] if owner else []
    state = {"terminated": {"startedAt": begin, "finishedAt": end, "exitCode": 0}} if end else {"running": {}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "lab", "uid": name, "creationTimestamp": created, "ownerReferences": owners,
        },
        "spec": {"nodeSelector": {"gpu": "a100"}} if name == "c" else {},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    }  # fmt: skip


def test_pods_by_hand(tmp_path: Path) -> None:
    day = "2026-03-01T00:00:"
    items = [
        pod("a", f"{day}00Z", f"{day}05Z", f"{day}25Z", "sum"),
        pod("b", f"{day}01Z", f"{day}05Z", f"{day}35Z", "sum"),
        pod("c", f"{day}02Z", f"{day}10Z", f"{day}20Z"),
        pod("d", f"{day}03Z", f"{day}10Z", "", phase="Running"),
        {"kind": "Service", "metadata": {}},
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4)
    path = written(tmp_path / "pods.json", text)
    assert recognise(path) == "kubernetes"
    read = load_workload(str(path))
    assert arrivals(read) == [0.0, 2.0]
    assert durations(read) == [[20.0, 30.0], [10.0]]
    assert read.jobs["tenant"].to_pylist() == ["lab", "lab"]
    notes = " ".join(read.notes)
    assert "dropped 1: pods that had not ended" in notes
    assert "dropped 1: items of kind 'Service'" in notes
    assert "repaired 1: node selectors" in notes


def test_jobs_of_kubernetes_by_hand(tmp_path: Path) -> None:
    """Five pods, two at a time, are three waves of 90 s in all: 30 s each."""
    day = "2026-03-01T00:0"
    done = {
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "lab", "uid": "1", "creationTimestamp": f"{day}0:00Z"},
        "spec": {"parallelism": 2, "completions": 5},
        "status": {"startTime": f"{day}0:01Z", "completionTime": f"{day}1:31Z", "succeeded": 5},
    }
    path = written(
        tmp_path / "jobs.json",
        json.dumps({"apiVersion": "v1", "items": [done, {**done, "metadata": {}, "status": {}}]}),
    )
    read = load_workload(str(path))
    assert durations(read) == [[30.0] * 5]
    assert "dropped 1: jobs that had not completed" in " ".join(read.notes)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"apiVersion": "v1", "items": [', "is not JSON"),
        ('{"apiVersion": "v1", "items": []}', "holds no job that ran"),
        ('{"apiVersion": "v1", "items": [3]}', "items[0].*is not an object"),
        ('{"apiVersion": "v1", "items": [{"kind": "Pod"}]}', "items[0].*has no metadata"),
    ],
)
def test_wrong_lists_of_kubernetes(tmp_path: Path, text: str, why: str) -> None:
    path = written(tmp_path / "pods.json", text)
    with pytest.raises(InputError) as caught:
        load_workload(str(path), format="kubernetes")
    assert why.rpartition(".*")[2] in caught.value.message


def test_a_run_on_ones_own_log(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", SACCT)
    result = emu.run("hawk", str(path), 10, in_process=True, short_cutoff="60 s")
    assert result.jobs["num_tasks"].to_pylist() == [4, 2, 3]


PAGE = (Path(__file__).parents[3] / "docs" / "own-logs.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"<!-- (\S+): (\d+) jobs, (\d+) tasks(?:; (.*?))? -->\n```text\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize(("name", "jobs", "tasks", "given", "text"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_the_page_shows_what_is_read(
    tmp_path: Path, name: str, jobs: str, tasks: str, given: str, text: str
) -> None:
    options = dict(pair.split("=") for pair in given.split())
    format = "job-table" if options else recognise(written(tmp_path / name, text))
    read = load_workload(str(written(tmp_path / name, text)), format=format, options=options)
    assert (read.num_jobs, read.num_tasks) == (int(jobs), int(tasks))
    assert all(f"{option}=" in PAGE or f"`{option}`" in PAGE for option in options)


def test_the_page_has_an_example_of_each_format() -> None:
    assert [name.partition(".")[2] for name, *_ in EXAMPLES] == ["swf", "txt", "json", "csv"]
