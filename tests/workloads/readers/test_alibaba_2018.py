import gzip
import re
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.alibaba_files import (
    CUT,
    INSTANCES_A,
    JOB_A,
    MACHINES,
    archive,
    attempt,
    folder_of,
    refused,
    stage,
    tables,
)
from workloads.conversion import as_jobs
from workloads.readers import alibaba_2018
from workloads.readers.alibaba_2018 import read_alibaba_2018, recognises
from workloads.readers.report import Report


def test_the_example_of_the_trace(tmp_path):
    report = Report()
    got = tables(folder_of(tmp_path / "in", JOB_A, INSTANCES_A, MACHINES), tmp_path / "out", report=report)
    assert got["jobs"] == {
        "job_id": [7], "submit_s": [100.0], "num_tasks": [8], "mean_task_s": [12.375],
        "constraint": [None], "tenant": [None],
    }  # fmt: skip
    assert got["stages"] == {
        "job_id": [7] * 5,
        "stage": [0, 1, 2, 3, 4],
        "name": ["M1", "M2_1", "M3_1", "R4_2", "M5_3_4"],
        "num_tasks": [2, 1, 1, 1, 3],
        "mean_task_s": [6.5, 20.0, 5.0, 1.0, 20.0],
        "cpu_cores": [1.0, 0.5, 0.5, 2.0, None],
        "memory": [0.005, 0.0025, 0.0025, 0.01, None],
    }
    assert got["edges"] == {"job_id": [7] * 5, "parent": [0, 0, 1, 2, 3], "child": [1, 2, 3, 4, 4]}
    assert got["tasks"] == {
        "job_id": [7] * 8,
        "duration_s": [4.0, 9.0, 20.0, 5.0, 1.0, 20.0, 10.0, 30.0],  # by start, then ins_8, ins_9, ins_19
        "stage": [0, 0, 1, 2, 3, 4, 4, 4],
    }
    assert [line for line in report.notes() if not line.startswith("read")] == [
        "dropped 1: rows of machine_meta without a machine"
    ]


def test_plans_are_demands_of_stages_and_of_tasks(tmp_path):
    text = stage("j_1", "M1", cpu="150", memory="50", number=2) + stage("j_1", "R2_1", cpu="50", memory="101")
    text += stage("j_2", "M1", start=101, cpu="-1", memory="") + stage(
        "j_3", "M1", start=102, memory="25", number=3
    )
    report = Report()
    jobs = as_jobs(read_alibaba_2018(folder_of(tmp_path, text), report=report))
    assert jobs.resources == ("cpu_cores", "memory")
    assert jobs.jobs["cpu_cores"].to_pylist() == [None, None, 1.0]
    assert jobs.jobs["memory"].to_pylist() == [None, None, 0.25]
    assert jobs.tasks["cpu_cores"].to_pylist() == [1.5, 1.5, 0.5, *[None] * 4]
    assert jobs.tasks["memory"].to_pylist() == [0.5, 0.5, *[None] * 5]
    lines = report.lines()
    assert "read 1 tasks that state no cpu_cores" in lines
    assert "read 2 tasks that state no memory" in lines
    assert "dropped 1: values of plan_cpu of stages that are out of range" in lines
    assert "dropped 1: values of plan_mem of stages that are out of range" in lines


def test_the_trace_as_a_workload(tmp_path):
    source = folder_of(tmp_path / "in", JOB_A + stage("j_8", "M1", "Failed"), INSTANCES_A)
    workload = read_alibaba_2018(source)
    assert (workload.name, workload.num_jobs, workload.num_stages, workload.num_tasks) == (
        "in",
        1,
        5,
        8,
    )
    assert workload.arrays().duration_ns.tolist()[:3] == [4_000_000_000, 9_000_000_000, 20_000_000_000]
    assert "dropped 1: stages that are failed" in workload.notes
    assert workload.metadata["dropped"] == "1 jobs without a whole set of stages; 1 stages that are failed"
    assert "the trace has no submission times" in workload.metadata["arrivals"]
    assert workload.short_cutoff_s is None


def test_many_alike_tasks_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(alibaba_2018, "_ROWS_PER_BATCH", 4)
    rows = (
        stage("j_1", "M1", number=9)
        + stage("j_1", "R2_1", number=3, start=110, end=130)
        + stage("j_2", "M1", number=1)
    )
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out")["tasks"]
    assert got["duration_s"] == [10.0] * 9 + [20.0] * 3 + [10.0]
    assert got["stage"] == [0] * 9 + [1] * 3 + [0]


def test_without_instances_all_last_as_long_as_the_stage(tmp_path):
    source = folder_of(tmp_path / "in", JOB_A, INSTANCES_A)
    without = tables(source, tmp_path / "a", instances=False)
    assert without["tasks"]["duration_s"] == [10.0, 10.0, 20.0, 5.0, 1.0, 30.0, 30.0, 30.0]
    assert tables(source / "batch_task.csv", tmp_path / "b")["tasks"] == without["tasks"]
    metadata = pq.read_schema(tmp_path / "b" / "jobs.parquet").metadata[b"metadata"].decode()
    assert "every instance lasts as long as its stage" in metadata


def test_all_forms_of_the_files_are_read_alike(tmp_path):
    files = {"batch_instance.csv": INSTANCES_A, "batch_task.csv": JOB_A, "machine_meta.csv": MACHINES}
    want = tables(folder_of(tmp_path / "plain", JOB_A, INSTANCES_A, MACHINES), tmp_path / "out")
    published, packed, shards = (tmp_path / name for name in ("published", "packed", "shards"))
    for folder in (published, packed, shards):
        folder.mkdir()
    for name, text in files.items():
        archive(published / name.replace(".csv", ".tar.gz"), {name: text})
        (packed / f"{name}.gz").write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
        lines = text.splitlines(keepends=True)
        for i in range(2):
            (shards / name.replace(".csv", f"_{i}.csv")).write_text("".join(lines[i::2]))
    (published / "machine_usage.tar.gz").write_bytes(b"not read")
    sources = [published, packed, shards, archive(tmp_path / "all.zip", files)]
    sources.append(archive(tmp_path / "all.tar.gz", {f"trace/{name}": text for name, text in files.items()}))
    for i, source in enumerate(sources):
        assert recognises(source)
        assert tables(source, tmp_path / f"out{i}") == want, source


def test_what_is_not_this_trace_is_not_recognised(tmp_path):
    (tmp_path / "w.tr").write_text("0 1 1 1\n")
    for path in (tmp_path, tmp_path / "w.tr", tmp_path / "nothing"):
        assert not recognises(path)
    assert recognises(Path("batch_task.csv"))


@pytest.mark.parametrize(
    ("rows", "line", "stages"),
    [
        ([stage("j_1", "M1", "Failed")], "dropped 1: stages that are failed", 0),
        ([stage("j_1", "M1", "Evil\x1b")], "dropped 1: stages that are of another status or none", 0),
        ([stage("j_1", "M1", "")], "dropped 1: stages that are of another status or none", 0),
        ([stage("j_1", "M1", start=0)], "dropped 1: stages that start or end outside the trace", 0),
        ([stage("j_1", "M1", end="")], "dropped 1: stages that start or end outside the trace", 0),
        ([stage("j_1", "M1", number=0)], "dropped 1: stages without instances", 0),
        ([stage("j_1", "", number=1)], "dropped 1: rows of batch_task without a name", 0),
        (
            [stage("j_1", "M1"), stage("j_1", "M2", "Running")],
            "dropped 1: stages of a job that is dropped for another stage",
            0,
        ),
        (
            [stage("j_1", "M1", "Failed"), stage("j_1", "M1", end=115), stage("j_1", "M1", start=105)],
            "dropped 2: rows of batch_task for a stage that has another row",
            1,
        ),
        ([stage("j_1", "M1", end=90)], "repaired 1: stages that end before they start: taken as 0 s long", 1),
        (
            [stage("j_1", "M1"), stage("j_1", "J1")],
            "repaired 2: stages that share a number with another of the job: dependencies are on all of them",
            2,
        ),
        ([stage("j_1", "M1_1")], "repaired 1: dependencies of a stage on itself: left out", 1),
        ([stage("j_1", "M2_1")], "repaired 1: dependencies on stages that are not there: left out", 1),
        (
            [stage("j_1", "M1"), stage("j_1", "M2_1_1_1")],
            "repaired 2: dependencies named twice: taken once",
            2,
        ),
        (
            [stage("j_1", "M1_2"), stage("j_1", "M2_1")],
            "repaired 1: dependencies in cycles of 1 jobs: those on higher numbers left out",
            2,
        ),
        ([stage("j_1", "task_Nzg3=="), stage("j_1", "Merge")], "read 2 of them not in a DAG by name", 2),
        (
            [stage("j_1", "M1"), stage("j_1", "J2_1_Stg4"), stage("j_1", "M3_Stg1")],
            "read 2 of them with a suffix in their name, which is not a dependency",
            3,
        ),
        (
            [stage("j_1", "M1"), stage("j_1", CUT), stage("j_1", CUT.replace("R5", "R6"))],
            "repaired 2: stages of 1 jobs with a name of 50 characters, at which names are cut off (2 in the table): "
            "what follows the last _ is left out, and dependencies may be lost; a whole name of that length cannot be "
            "distinguished from one that was cut",
            3,
        ),
        (
            [stage("j_1", "M1", end=115), stage("j_1", "M2_1", end=120)],
            "repaired 1: stages that were registered before those that they depend on had ended: taken to begin then",
            2,
        ),
        (
            [stage("j_1", "M1", end=115), stage("j_1", "M2_1", end=114)],
            "repaired 1: stages that end before those that they depend on: taken as 0 s long, or "
            "shortest_s",
            2,
        ),
    ],
)  # fmt: skip
def test_every_rule_of_stages_is_counted(tmp_path, rows, line, stages):
    report = Report()
    source = folder_of(tmp_path / "in", "".join([*rows, stage("j_2", "R1")]))
    got = tables(source, tmp_path / "out", report=report)
    assert line in report.lines()
    assert got["stages"]["job_id"] == [1] * stages + [2]


def test_only_the_stage_is_dropped_where_that_is_asked(tmp_path):
    rows = stage("j_1", "M1") + stage("j_1", "M2_1", "Failed") + stage("j_1", "R3_2_1")
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out", unfinished="task")
    assert got["stages"]["name"] == ["M1", "R3_2_1"]
    assert got["edges"] == {"job_id": [1], "parent": [0], "child": [1]}


def test_dependencies_on_higher_numbers_are_kept_where_there_is_no_cycle(tmp_path):
    report = Report()
    rows = stage("j_1", "M1_2", start=110) + stage("j_1", "M2_3", start=110) + stage("j_1", "M3")
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out", report=report)
    assert got["edges"] == {"job_id": [1, 1], "parent": [1, 2], "child": [0, 1]}
    assert report.notes() == ()


def test_fractions_of_seconds_are_kept(tmp_path):
    rows = stage("j_1", "M1", start=0.5, end=2.75)
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out")
    assert (got["jobs"]["submit_s"], got["tasks"]["duration_s"]) == ([0.5], [2.25])


def test_jobs_without_a_number_in_their_name_are_numbered_by_place(tmp_path):
    rows = stage("j_9", "M1", start=50) + stage("x", "M1", start=20) + stage("j_3", "M1", start=50)
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out")
    assert got["jobs"]["job_id"] == [0, 1, 2]
    assert got["jobs"]["submit_s"] == [20.0, 50.0, 50.0]
    assert got["tasks"]["duration_s"] == [90.0, 60.0, 60.0]


@pytest.mark.parametrize(
    ("rows", "line", "durations"),
    [
        ([attempt("j_1", "M1", "Failed")], "dropped 1: attempts of instances that are failed", [10.0] * 2),
        ([attempt("j_1", "M1", end=0)], "dropped 1: attempts of instances outside the trace", [10.0] * 2),
        (
            [attempt("j_1", "M1", end=105, of=2), attempt("j_1", "M1", start=105, end=112, seq=2, of=2)],
            "dropped 1: attempts of instances that were followed by another",
            [7.0],
        ),
        (
            [attempt("j_1", "M2"), attempt("j_3", "M1"), attempt("j_2", "M1")],
            "dropped 3: attempts of instances of stages that were dropped or are not there",
            [10.0] * 2,
        ),
        ([attempt("", "")], "dropped 1: attempts of instances without a job or a stage", [10.0] * 2),
        (
            [attempt("j_1", "M1", end=1), attempt("j_1", "M1")],
            "repaired 1: attempts of instances that end before they start: taken as 0 s long",
            [0.0, 10.0],
        ),
        (
            [attempt("j_1", "M1", end=103, instance="odd")],
            "repaired 1: stages whose instances are not instance_num: the instances taken",
            [3.0],
        ),
        (
            [],
            "repaired 1: stages without instances in batch_instance: instance_num of them, as long as the stage",
            [10.0, 10.0],
        ),
    ],
)
def test_every_rule_of_instances_is_counted(tmp_path, rows, line, durations):
    report = Report()
    tasks = stage("j_1", "M1", number=2) + stage("j_2", "M1", "Waiting")
    got = tables(folder_of(tmp_path / "in", tasks, "".join(rows)), tmp_path / "out", report=report)
    assert line in report.lines()
    assert got["tasks"]["duration_s"] == durations
    assert got["jobs"]["num_tasks"] == got["stages"]["num_tasks"] == [len(durations)]


# The rules once more, a job at a time in plain Python.

NAMES = ["M1", "R2_1", "J3_1_2", "M3_4", "R4_3", "J2_2_9", "R1_1_3", "task_x", "Merge", "J4_2_Stg1", CUT]
ROWS = st.tuples(
    st.sampled_from(["j_1", "j_2", "j_30"]),
    st.sampled_from(NAMES),
    st.sampled_from(["Terminated"] * 9 + ["Failed"]),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 3),
)


def has_cycle(edges) -> bool:
    """Return whether stages remain that wait for others, when those that wait for none are taken away."""
    while edges and (ready := {p for p, _ in edges} - {c for _, c in edges}):
        edges = {(p, c) for p, c in edges if p not in ready}
    return bool(edges)


def parts_of(name):
    """Return the numbers in a name: the stage's own, and those it depends on; none of one that stands alone."""
    found = name.rpartition("_")[0] if len(name) == 50 else name
    return (
        re.findall("[0-9]+", found.split("_Stg")[0])
        if re.fullmatch(r"[A-Z]+\d+(_\d+)*(_Stg\d)?", found)
        else []
    )


def expected(rows, unfinished, starts):
    """Return {job: [(name, instances, seconds)]}, {job: {(parent, child)}} by the rules of the module."""
    known = defaultdict(dict)
    bad = set()
    for job, name, status, start, end, number in sorted(
        rows, key=lambda r: (r[2] != "Terminated", r[3], r[4], r[5])
    ):
        known[job].setdefault(name, (status, start, end, number))
    stages, edges = {}, {}
    for job, by_name in known.items():
        good = {
            name: (start, end, number)
            for name, (status, start, end, number) in by_name.items()
            if status == "Terminated" and start > 0 and end > 0 and number > 0
        }
        if len(good) < len(by_name):
            bad.add(job)
        if not good or (unfinished == "job" and job in bad):
            continue
        parts = {n: parts_of(n) for n in good}
        order = sorted(good, key=lambda n: (not parts[n], int((parts[n] or [0])[0]), n))
        graph = {
            (order.index(p), order.index(n))
            for n in order
            for d in parts[n][1:]
            for p in order
            if parts[p] and parts[p][0] == d != parts[n][0]
        }
        if has_cycle(graph):
            first = [int((parts[n] or [0])[0]) for n in order]
            graph = {(p, c) for p, c in graph if first[p] < first[c]}
        edges[job] = sorted(graph)
        took = []
        for at, name in enumerate(order):
            start, end, number = good[name]
            ready = max([start, *(good[order[p]][1] for p, c in graph if c == at and starts == "ready")])
            took.append((name, number, max(min(end - start, end - ready), 0)))
        stages[job] = (min(start for start, _, _ in good.values()), took)
    return stages, edges


@settings(max_examples=25, deadline=None)
@given(
    st.lists(ROWS, min_size=1, max_size=14),
    st.sampled_from(["job", "task"]),
    st.sampled_from(["ready", "registered"]),
)
def test_any_table_is_resolved_by_the_rules(tmp_path_factory, rows, unfinished, starts):
    stages, edges = expected(rows, unfinished, starts)
    folder = tmp_path_factory.mktemp("alibaba")
    text = "".join(stage(job, n, status, start, end, number) for job, n, status, start, end, number in rows)
    source = folder_of(folder / "in", text)
    if not stages:
        said = refused(source, folder / "out", unfinished=unfinished)
        assert "no job of batch_task is complete" in said
        assert "dropped" in said
        return
    report = Report()
    got = tables(source, folder / "out", unfinished=unfinished, starts=starts, report=report)
    jobs = sorted(stages, key=lambda j: (stages[j][0], int(j[2:])))
    assert got["jobs"]["job_id"] == [int(j[2:]) for j in jobs]
    assert got["jobs"]["submit_s"] == [stages[j][0] for j in jobs]
    assert got["stages"]["name"] == [n for j in jobs for n, _, _ in stages[j][1]]
    assert got["stages"]["stage"] == [i for j in jobs for i in range(len(stages[j][1]))]
    assert got["tasks"]["duration_s"] == [s for j in jobs for _, n, s in stages[j][1] for _ in range(n)]
    assert got["tasks"]["job_id"] == [int(j[2:]) for j in jobs for _, n, _ in stages[j][1] for _ in range(n)]
    assert list(zip(*got["edges"].values(), strict=True)) == [
        (int(j[2:]), p, c) for j in jobs for p, c in edges[j]
    ]
    kept = Counter(got["stages"]["job_id"]).total()
    dropped = sum(
        int(line.split()[1][:-1])
        for line in report.lines()
        if line.startswith("dropped") and "jobs without" not in line
    )
    assert kept + dropped == len(rows)  # nothing is lost without a word


def test_a_machine_of_more_cores_than_there_are_is_one_of_unknown_cores(tmp_path):
    machines = "m_1,0,1,7,1e30,100,USING\nm_2,0,1,7,96,100,USING\n"
    got = tables(folder_of(tmp_path / "in", JOB_A, INSTANCES_A, machines), tmp_path / "out")
    assert (got["cluster"]["slots"], got["cluster"]["cpu_cores"]) == ([1, 96], [1.0, 96.0])
