"""Logs of one's own: the Standard Workload Format, sacct, Kubernetes, tables with a mapping of columns."""

import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

import emu
from tests.workloads.log_files import arrivals, assert_named, durations, written
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import recognise

SWF = """\
; Version: 2.2
; Computer: a cluster of 128 nodes
; MaxJobs: 6
    1      10    5   100   4   -1   -1   4   300  -1   1   7   1 -1 1 -1 -1 -1
    2      20   -1    -1  -1   -1   -1   8   300  -1   5   7   1 -1 1 -1 -1 -1
    3      25    0    50  -1   -1   -1   2    -1  -1   1  -1   1 -1 1 -1 -1 -1
    4      30    0    10   1   -1   -1   1    60  -1   2   3   1 -1 1 -1 -1 -1
    4      30    0    12   1   -1   -1   1    60  -1   1   3   1 -1 1 -1 -1 -1 ; whole
"""
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


@pytest.mark.parametrize("form", ["plain", "gzip", "zip"])
def test_the_standard_workload_format_by_hand(tmp_path: Path, form: str) -> None:
    path = tmp_path / "log.swf"
    if form == "plain":
        written(path, SWF)
    elif form == "gzip":
        path = tmp_path / "log.swf.gz"
        path.write_bytes(gzip.compress(SWF.encode()))
    else:
        path = tmp_path / "log.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("log.swf", SWF)
    options = {} if form != "zip" else {"format": "swf"}
    read = load_workload(str(path), **options)
    assert arrivals(read) == [0.0, 15.0, 20.0]
    assert durations(read) == [[100.0] * 4, [50.0] * 2, [12.0]]
    assert read.jobs["tenant"].to_pylist() == ["user-7", None, "user-3"]
    assert read.jobs["mean_task_s"].to_pylist() == [100.0, 50.0, 12.0]
    notes = " ".join(read.notes)
    assert "dropped 1: jobs that did not run" in notes
    assert "dropped 1: lines about parts of jobs" in notes
    assert "repaired 1: allocated processors unknown" in notes


def test_a_log_is_recognised_by_its_lines(tmp_path: Path) -> None:
    """As of the archive's oldest log: a blank line after the comments, and few fields known."""
    text = "; Version: 2.2\n; Computer: iPSC/860\n\n1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n"
    path = written(tmp_path / "nasa.txt", text)
    assert recognise(path) == "swf"
    assert load_workload(str(path)).num_tasks == 128


def test_what_users_asked_for_is_what_schedulers_know(tmp_path: Path) -> None:
    path = written(tmp_path / "log.swf", SWF)
    asked = load_workload(str(path), options={"estimates": "requested-time", "processors_per_task": "3"})
    assert asked.jobs["mean_task_s"].to_pylist() == [300.0, 50.0, 60.0]
    assert asked.jobs["num_tasks"].to_pylist() == [2, 1, 1]
    assert durations(asked)[0] == [100.0] * 2
    assert "repaired 1: requested times not known: run times taken" in asked.notes


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1 2 3", "line 4.*the line has 3 fields; want the 18"),
        ("x 10 5 100 4 -1 -1 4 300 -1 1 7 1 -1 1 -1 -1 -1", "line 4, job_number.*'x' is not a number"),
        ("1 -5 5 100 4 -1 -1 4 300 -1 1 7 1 -1 1 -1 -1 -1", "line 4, submit_time.*-5 is not a time"),
        ("1 10 5 nan 4 -1 -1 4 300 -1 1 7 1 -1 1 -1 -1 -1", "line 4, run_time.*'nan' is not a number"),
    ],
)
def test_wrong_lines_of_the_standard_workload_format(tmp_path: Path, line: str, why: str) -> None:
    path = written(tmp_path / "log.swf", "".join(SWF.splitlines(True)[:3]) + line + "\n")
    with pytest.raises(InputError) as caught:
        load_workload(str(path))
    assert_named(caught.value, why)


def test_sacct_by_hand(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", SACCT)
    assert recognise(path) == "sacct"
    read = load_workload(str(path))
    assert arrivals(read) == [0.0, 20.0, 130.0]
    assert durations(read) == [[3600.0] * 4, [30.0, 86401.0], [5.5] * 3]
    assert read.jobs["tenant"].to_pylist() == ["ada", "bob", "eve"]
    notes = " ".join(read.notes)
    for text in ("2: steps of jobs", "1: jobs that had not ended", "1: jobs that never ran"):
        assert f"dropped {text}" in notes
    apart = load_workload(str(path), options={"arrays": "jobs", "tasks": "one", "estimates": "timelimit"})
    assert durations(apart) == [[3600.0], [30.0], [86401.0], [5.5, 5.5]]
    assert apart.jobs["mean_task_s"].to_pylist() == [7200.0, 30.0, 86401.0, 60.0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Submit", "Submitted", "line 1, Submit.*is not among the fields"),
        ("|Elapsed|", "|Elapse|", ""),  # Start and End are there
        (
            "2026-01-31T23:59:50|2026-02-01T00:00:00",
            "yesterday|2026-02-01T00:00:00",
            "line 2, Submit.*'yesterday'",
        ),
        ("|01:00:00|4|02:00:00", "|an hour|4|02:00:00", "line 2, Elapsed.*'an hour' is not a time"),
        ("|4|02:00:00", "|four|02:00:00", "line 2, AllocCPUS.*'four' is not a whole number"),
        ("\n101_1|", "\n101_[]|", "line 5, JobID.*'101_[]' is not a job of Slurm"),
        ("|01:00:00|4|02:00:00", f"|{'1' * 400}:00|4|02:00:00", "line 2, Elapsed.*is not a time"),
    ],
)
def test_wrong_lines_of_sacct(tmp_path: Path, old: str, new: str, why: str) -> None:
    path = written(tmp_path / "jobs.txt", SACCT.replace(old, new, 1))
    if not why:
        assert durations(load_workload(str(path), format="sacct"))[0] == [3600.0] * 4
        return
    with pytest.raises(InputError) as caught:
        load_workload(str(path), format="sacct")
    assert_named(caught.value, why)


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
