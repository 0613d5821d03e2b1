"""Real files of public traces, with counts made by programs that share nothing with the readers."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from clusters.cluster import load_cluster
from emu import compare
from tests.workloads.google_cases import Event, expected_jobs, jobs_of
from workloads.arrow import column
from workloads.catalogue import load_workload
from workloads.conversion import as_jobs
from workloads.dags import DagWorkload
from workloads.formats import recognise
from workloads.readers.report import Report
from workloads.transform import sample

REAL = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared") / "traces" / "real"
GOOGLE, ALIBABA = REAL / "google-2011", REAL / "alibaba-2018"
SWIM = REAL / "swim" / "FB-2009_samples_24_times_1hr_0.tsv"
KINDS = ("SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING")

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not here"),
]


def rows_of(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt") as file:
        return [*csv.reader(file)]


# Google 2011.


@pytest.fixture(scope="module")
def events() -> list[Event]:
    rows = rows_of(GOOGLE / "task_events" / "part-00000-of-00500.csv.gz")
    return [Event(int(row[0]), int(row[2]), int(row[3]), KINDS[int(row[5])]) for row in rows]


@pytest.mark.parametrize(
    ("unfinished", "jobs", "tasks", "task_s"),
    [("drop", 699, 38_046, 21_243_848.193), ("ran", 826, 42_455, 23_802_954.857)],
)
def test_google_2011_is_what_its_events_say(events, unfinished, jobs, tasks, task_s):
    report = Report()
    workload = load_workload(GOOGLE, options={"unfinished": unfinished}, report=report)
    assert "read 450,146 rows of task_events" in report.lines()
    assert "read 37,780 rows of machine_events" in report.lines()
    want = expected_jobs(events, {}, "last", unfinished)
    assert (len(want), sum(len(durations) for *_, durations in want)) == (jobs, tasks)
    found = [(round(at * 1e6), job, [round(d * 1e6) for d in took]) for at, job, took in jobs_of(workload)]
    assert found == want
    assert sum(sum(durations) for *_, durations in want) / 1e6 == pytest.approx(task_s, abs=5e-4)
    assert float(column(workload.tasks, "duration_s").sum()) == pytest.approx(task_s, abs=5e-4)
    assert (workload.short_cutoff_s, workload.long_partition) == (1129.532, 0.83)


def test_google_2011_states_what_its_last_attempts_requested():
    """In this shard the tasks of a job request the same, so that no task has a demand of its own."""
    rows = rows_of(GOOGLE / "task_events" / "part-00000-of-00500.csv.gz")
    last: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        if row[5] == "1":
            last[row[2], row[3]] = max(last[row[2], row[3]], int(row[0]))
    asked = defaultdict(set)
    for row in rows:
        if (key := (row[2], row[3])) in last and int(row[0]) >= last[key] and row[9]:
            asked[int(row[2])].add((16 * float(row[9]), float(row[10]), int(row[8])))
    workload = load_workload(GOOGLE)
    assert workload.resources == ("cpu_cores", "memory")
    assert workload.tasks.num_columns == 2
    for job in workload.jobs.to_pylist():
        assert asked[job["job_id"]] == {(job["cpu_cores"], job["memory"], job["priority"])}
    assert any("requests of disk space" in note for note in workload.notes)


def test_google_2011_under_any_name(tmp_path):
    (tmp_path / "part-00000-of-00500.csv.gz").symlink_to(
        GOOGLE / "task_events" / "part-00000-of-00500.csv.gz"
    )
    assert recognise(tmp_path) == recognise(tmp_path / "part-00000-of-00500.csv.gz") == "google-2011"
    workload = load_workload(tmp_path)
    assert (workload.num_jobs, workload.num_tasks) == (699, 38_046)


def test_the_machines_of_google_2011():
    there: dict[str, tuple[str, ...]] = {}
    machines = set()
    order = {"1": 0, "0": 1, "2": 2}  # at one time: removed, added, updated
    rows = rows_of(GOOGLE / "machine_events" / "part-00000-of-00001.csv.gz")
    for time, machine, kind, _, cpu, memory in sorted(rows, key=lambda row: (int(row[0]), order[row[2]])):
        machines.add(machine)
        if int(time) <= 600_000_000:
            there.pop(machine, None)
            if kind != "1":
                there[machine] = (cpu, memory)
    assert (len(rows), len(machines), len(there)) == (37_780, 12_583, 12_477)
    cluster = load_cluster(GOOGLE / "machine_events")
    assert cluster.num_nodes == 12_477
    assert "dropped 106: machines that are not there when the trace begins" in cluster.notes
    in_order = [there[machine] for machine in sorted(there, key=int)]
    want = [float(cpu) * 16 if cpu else 1.0 for cpu, _ in in_order]
    assert cluster.attribute("cores").tolist() == want
    want = [round(float(memory) * 2**36) if memory else 2**32 for _, memory in in_order]
    assert np.abs(cluster.attribute("memory") - np.array(want)).max() <= 1


# Alibaba 2018.


@pytest.fixture(scope="module")
def stages() -> dict[str, dict[str, tuple[float, float, int]]]:
    """Start, end and instances of the stages of jobs that are known wholly."""
    jobs: dict[str, dict[str, tuple[float, float, int]]] = defaultdict(dict)
    broken = set()
    for name, instances, job, _, status, start, end, *_ in rows_of(ALIBABA / "selected_DAGs.csv.gz")[1:]:
        jobs[job][name] = (float(start or 0), float(end or 0), int(float(instances or 0)))
        if status != "Terminated" or min(jobs[job][name]) <= 0:
            broken.add(job)
    assert len(jobs) == 2120
    return {job: named for job, named in jobs.items() if job not in broken}


def parents_of(names) -> dict[str, set[str]]:
    """Return what each stage of a job depends on, by the rules that the real files call for."""
    found = {name: name.rpartition("_")[0] if len(name) == 50 else name for name in names}
    by_number = {re.match(r"[A-Z]+(\d+)", text)[1]: name for name, text in found.items()}
    return {
        name: {by_number[n] for n in text.split("_")[1:] if n in by_number} - {name}
        for name, text in found.items()
    }


def critical_path(parents: dict[str, set[str]], lasts: dict[str, float]) -> float:
    ends: dict[str, float] = {}
    while len(ends) < len(parents):
        for name, of in parents.items():
            if name not in ends and of <= ends.keys():
                ends[name] = max((ends[p] for p in of), default=0.0) + lasts[name]
    return max(ends.values())


@pytest.mark.parametrize(
    ("starts", "median", "p90", "task_s"),
    [("ready", 1.0, 1.0, 606_352_199), ("registered", 2.33, 5.33, 814_816_037)],
)
def test_alibaba_2018_is_what_its_names_and_times_say(stages, starts, median, p90, task_s):
    report = Report()
    workload = load_workload(ALIBABA, options={"starts": starts}, report=report)
    assert "read 55,874 rows of batch_task" in report.lines()
    assert (workload.num_jobs, len(stages)) == (2078, 2078)
    assert workload.num_stages == sum(map(len, stages.values())) == 53_809
    assert workload.num_tasks == sum(n for named in stages.values() for *_, n in named.values())
    assert float(column(workload.tasks, "duration_s").sum()) == task_s
    cut = Counter(job for job, named in stages.items() for name in named if len(name) == 50)
    assert (cut.total(), len(cut)) == (300, 197)  # of 330 in the file
    assert any(
        line.startswith("repaired 300: stages of 197 jobs with a name of 50") for line in report.lines()
    )
    assert any("(330 in the table)" in line for line in report.lines())

    lasts: dict[int, dict[str, float]] = defaultdict(dict)
    for row in workload.stages.select(["job_id", "name", "mean_task_s"]).to_pylist():
        lasts[row["job_id"]][row["name"]] = row["mean_task_s"]
    ratios, edges = [], 0
    for job, named in stages.items():
        parents = parents_of(named)
        edges += sum(map(len, parents.values()))
        took = max(end for _, end, _ in named.values()) - min(start for start, _, _ in named.values())
        if took > 0:
            ratios.append(critical_path(parents, lasts[int(job[2:])]) / took)
    assert workload.edges.num_rows == edges == 60_580
    assert (np.median(ratios), np.quantile(ratios, 0.9)) == pytest.approx((median, p90), rel=0.01)


def test_alibaba_2018_states_the_plans_of_its_stages(stages):
    plans: dict[str, list[list[float]]] = defaultdict(list)
    for _, instances, job, _, _, _, _, cpu, memory in rows_of(ALIBABA / "selected_DAGs.csv.gz")[1:]:
        if job in stages:
            count = int(float(instances))
            plans[job] += [[float(cpu) / 100, float(memory) / 100]] * count
    report = Report()
    jobs = as_jobs(load_workload(ALIBABA, report=report))
    demands, first = jobs.demands(), jobs.arrays().first_task
    assert demands.resources == ("cpu_cores", "memory")
    for at, job in enumerate(column(jobs.jobs, "job_id").tolist()):
        found = demands.vector[demands.of_task[first[at] : first[at + 1]]].tolist()
        assert sorted(found) == sorted(plans[f"j_{job}"])
    assert not any("state no" in line or "plan_" in line for line in report.lines())


def test_the_machines_of_alibaba_2018():
    rows = rows_of(ALIBABA / "machine_meta.csv.gz")
    assert (len(rows), len({row[0] for row in rows})) == (17_592, 4034)
    cluster = load_cluster(ALIBABA)
    assert (cluster.num_nodes, cluster.total_slots) == (4034, 4034 * 96)
    assert set(cluster.attribute("cores").tolist()) == {96.0}
    assert len(set(cluster.racks().tolist())) == len({row[2] for row in rows})


# SWIM, and a comparison of hybrid schedulers on each.


def test_swim_has_the_jobs_of_its_lines():
    lines = SWIM.read_text().splitlines()
    workload = load_workload(SWIM)
    assert workload.num_jobs == len(lines) == 5894
    assert column(workload.jobs, "submit_s").tolist() == [float(line.split("\t")[1]) for line in lines]
    dags = load_workload(SWIM, options={"family": "dags", "map_only": True})
    assert isinstance(dags, DagWorkload)
    read, shuffled = (sum(int(line.split("\t")[at]) for line in lines) for at in (3, 4))
    assert (read, shuffled) == (26_886_497_357_605, 22_216_712_306_762)
    assert float(dags.arrays().input_bytes.sum()) == read
    assert float(dags.arrays().edge_bytes.sum()) == shuffled
    assert as_jobs(dags).fingerprint() == load_workload(SWIM, options={"map_only": True}).fingerprint()


@pytest.mark.slow("whole traces under three schedulers")
@pytest.mark.parametrize(
    ("path", "options"),
    [
        (GOOGLE, {"nodes": 2000}),
        (GOOGLE, {"cluster": str(GOOGLE / "machine_events")}),
        (ALIBABA, {"nodes": 100, "short_cutoff": "90%"}),
        (SWIM, {"nodes": 15, "short_cutoff": "80%", "long_partition": "90%"}),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_hybrid_schedulers_are_compared_on_each(path, options):
    workload = load_workload(path)
    workload = sample(workload, share=0.4 if path == GOOGLE else 0.02, seed=1)
    workload = as_jobs(workload) if isinstance(workload, DagWorkload) else workload
    found = compare(["sparrow", "hawk", "eagle", "central-lwl"], workload, in_process=True, **options)
    for (result,) in found.results.values():
        assert result.jobs.num_rows == workload.num_jobs
        assert result.jobs["finish_s"].null_count == 0
        assert {"short", "long"} <= set(result.jobs["job_class"].to_pylist())


@pytest.mark.parametrize(
    ("name", "jobs", "tasks"), [("YH1_sub", 2910, 122_878), ("GOOG_subtrace", 10_000, 312_558)]
)
def test_the_excerpts_of_hawk_and_eagle_have_the_tasks_of_their_lines(name, jobs, tasks):
    lines = [line.split() for line in (REAL.parent / f"{name}.tr").read_text().splitlines()]
    assert (len(lines), sum(len(line) - 3 for line in lines)) == (jobs, tasks)
    workload = load_workload(REAL.parent / f"{name}.tr")
    assert (workload.num_jobs, workload.num_tasks) == (jobs, tasks)
    assert column(workload.tasks, "duration_s").tolist() == [float(d) for line in lines for d in line[3:]]


def test_logs_in_the_standard_workload_format_have_the_tasks_of_their_lines():
    """Every job of both ran on processors that are known; fields 4 and 5 are its run time and its processors."""
    folder = REAL / "swf"
    with zipfile.ZipFile(folder / "NASA-iPSC-1993-3.1-cln.swf.zip") as archive:
        nasa = archive.read(archive.namelist()[0])
    for name, text, jobs in (
        ("NASA-iPSC-1993-3.1-cln.swf.zip", nasa, 18_239),
        ("LCG.swf.gz", gzip.decompress((folder / "LCG.swf.gz").read_bytes()), 188_041),
    ):
        lines = [
            line.split() for line in text.decode().splitlines() if line.strip() and not line.startswith(";")
        ]
        workload = load_workload(folder / name)
        assert workload.num_jobs == len(lines) == jobs
        assert workload.num_tasks == sum(int(line[4]) for line in lines)
        work_s = sum(float(line[3]) * int(line[4]) for line in lines)
        assert column(workload.tasks, "duration_s").sum() == work_s
        assert workload.notes == ()
        assert workload.resources == ("cpu_cores",)
        assert set(workload.jobs["gang_nodes"].to_pylist()) == {0}
        asked = [float(line[8]) if float(line[8]) > 0 else None for line in lines]
        assert workload.jobs.column_names.count("requested_s") == any(asked)
