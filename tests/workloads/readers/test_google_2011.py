import gzip
import random
import tarfile

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.google_cases import draw_events, expected_jobs, jobs_of
from tests.workloads.google_shaped import write_google_shaped
from workloads.errors import InputError
from workloads.readers.google_2011 import convert_google_2011, read_google_2011, recognises
from workloads.readers.parquet import read_parquet
from workloads.readers.report import Report

BEGIN_US = 600_000_000
KINDS = ["SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING"]


def event(time_s, job, task, kind, *, user="u", missing="", priority=9, cpu=0.125, memory=0.25, disk=""):
    time = int(BEGIN_US + time_s * 1e6) if time_s is not None else 0
    return f"{time},{missing},{job},{task},,{KINDS.index(kind)},{user},2,{priority},{cpu},{memory},{disk},0\n"


def ran(job, task, submit, start, end, kind="FINISH", **more):
    return (
        event(submit, job, task, "SUBMIT", **more)
        + event(start, job, task, "SCHEDULE", **more)
        + event(end, job, task, kind, **more)
    )


def folder_of(path, **tables):
    for name, text in tables.items():
        (path / name).mkdir(parents=True, exist_ok=True)
        (path / name / "part-00000-of-00001.csv").write_text(text)
    return path


def refused(source, to, **options):
    with pytest.raises(InputError) as caught:
        convert_google_2011(source, to, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert not to.exists()
    assert not [p for p in to.parent.iterdir() if p.name.startswith(".")]
    return text


def test_a_job_is_what_its_tasks_events_say(tmp_path):
    text = ran(8, 0, 10, 12, 20) + ran(8, 1, 10.5, 13, 14.25) + ran(7, 0, 3, 4, 4, user="v=")
    workload = read_google_2011(folder_of(tmp_path / "trace", task_events=text))
    assert jobs_of(workload) == [(3.0, 7, [0.0]), (10.0, 8, [8.0, 1.25])]
    assert workload.jobs["mean_task_s"].to_pylist() == [0.0, 4.625]
    assert workload.jobs["tenant"].to_pylist() == ["v=", "u"]
    assert workload.jobs["constraint"].null_count == 2
    assert workload.metadata["origin"] == "Google clusterdata-2011-2, trace"


def test_job_events_say_when_and_who(tmp_path):
    expected = f"{BEGIN_US + 1_000_000},,8,0,w=,2,n,l\n{BEGIN_US + 9_000_000},,8,4,w=,2,n,l\n0,,5,0,x,2,n,l\n"
    text = ran(8, 0, 10, 12, 20) + ran(5, 0, 2, 3, 4)
    report = Report()
    source = folder_of(tmp_path, task_events=text, job_events=expected)
    workload = read_google_2011(source, report=report)
    assert jobs_of(workload) == [(1.0, 8, [8.0])]
    assert workload.jobs["tenant"].to_pylist() == ["w="]
    assert report.lines() == [
        "read 3 rows of job_events",
        "read 6 rows of task_events",
        "read 0 of them inserted by the trace's makers for lost records",
        "read 0 of them that neither start nor end a task (updates, queues)",
        "read 1 jobs kept",
        "read 1 tasks kept",
        "dropped 1: jobs that were submitted before the trace",
        "dropped 1: tasks of jobs that are dropped",
    ]
    assert workload.notes == tuple(report.lines())


def test_requests_of_tasks_become_demands_and_priorities(tmp_path):
    """Those that tasks of a job share are the job's; of an attempt the most counts, with updates while it runs."""
    nothing = {"cpu": "", "memory": "", "priority": ""}
    text = (
        ran(1, 0, 0, 1, 9, cpu=0.5, disk=0.001) + ran(1, 1, 0, 1, 9, cpu=0.5, priority=2)
        + ran(2, 0, 1, 2, 9) + ran(2, 1, 1, 2, 9, cpu=0.0625) + ran(2, 2, 1, 2, 9, **nothing)
        + ran(3, 0, 2, 3, 4, "EVICT", cpu=1, memory=0.75) + ran(3, 0, 4, 5, 9, priority=0)
        + event(6, 3, 0, "UPDATE_RUNNING", cpu=0.375) + event(10, 3, 0, "SUBMIT", memory=1)
        + ran(4, 0, 3, 4, 9, **nothing)
        + ran(5, 0, 4, 5, 9, cpu=1.5, memory=-1) + ran(5, 1, 4, 5, 9, cpu="nan", memory="inf")
    )  # fmt: skip
    source = folder_of(tmp_path, task_events=text)
    report = Report()
    workload = read_google_2011(source, report=report)
    assert workload.jobs["job_id"].to_pylist() == [1, 2, 3, 4, 5]
    assert workload.jobs["cpu_cores"].to_pylist() == [8.0, None, 6.0, None, None]
    assert workload.jobs["memory"].to_pylist() == [0.25, None, 0.25, None, None]
    assert workload.jobs["priority"].to_pylist() == [9, 9, 9, None, 9]
    assert workload.tasks["cpu_cores"].to_pylist() == [None, None, 2.0, 1.0, *[None] * 5]
    assert workload.tasks["memory"].to_pylist() == [None, None, 0.25, 0.25, *[None] * 5]
    lines = report.lines()
    assert "read 4 tasks that state no cpu_cores" in lines
    assert "read 2 tasks that state no priority" in lines
    assert "repaired 1: jobs whose tasks differ in priority: the largest taken" in lines
    assert "repaired 1: tasks whose requests changed: the most of the attempts that count taken" in lines
    assert "dropped 6: requests of events that are outside 0..1 of the largest machine" in lines
    assert "dropped 1: requests of disk space by tasks" in lines
    every = read_google_2011(source, attempts="all")
    assert every.jobs["cpu_cores"].to_pylist()[2] == 16.0
    assert every.jobs["memory"].to_pylist()[2] == 1.0


def test_a_trace_without_requests_has_no_columns_for_them(tmp_path):
    text = ran(1, 0, 0, 1, 9, cpu="", memory="", priority="")
    workload = read_google_2011(folder_of(tmp_path, task_events=text))
    assert workload.jobs.num_columns == 6
    assert workload.tasks.num_columns == 2


@pytest.mark.parametrize(
    ("options", "durations"),
    [
        ({}, [5.0]),
        ({"attempts": "all"}, [10.0]),
        ({"unfinished": "ran"}, [5.0, 2.0, 3.0]),
        ({"attempts": "all", "unfinished": "ran"}, [10.0, 2.0, 7.0]),
    ],
)
def test_attempts_and_tasks_that_did_not_finish(tmp_path, options, durations):
    text = (
        ran(1, 0, 0, 1, 4, "EVICT") + ran(1, 0, 4, 5, 7, "FAIL") + ran(1, 0, 7, 10, 15)
        + ran(1, 1, 0, 1, 3, "KILL") + event(9, 1, 1, "KILL")
        + ran(1, 2, 0, 1, 5, "EVICT") + ran(1, 2, 5, 6, 9, "LOST")
        + event(0, 1, 3, "SUBMIT") + event(5, 1, 3, "KILL")
        + event(0, 1, 4, "SUBMIT") + event(5, 1, 4, "SCHEDULE")
        + event(0, 1, 5, "SUBMIT") + event(None, 1, 5, "SCHEDULE") + event(5, 1, 5, "FINISH")
        + ran(1, 6, 0, 1, 5) + event(6, 1, 6, "SCHEDULE")
    )  # fmt: skip
    report = Report()
    workload = read_google_2011(folder_of(tmp_path, task_events=text), report=report, **options)
    assert jobs_of(workload) == [(0.0, 1, durations)]
    dropped = report.as_metadata()["dropped"].split("; ")
    assert "2 tasks that run when the trace ends" in dropped
    assert "1 tasks that never ran" in dropped
    assert "1 tasks that were started before the trace" in dropped
    assert ("1 tasks that were killed" in dropped) == ("unfinished" not in options)
    assert ("1 tasks that were lost" in dropped) == ("unfinished" not in options)


@settings(max_examples=30)
@given(
    rng=st.randoms(use_true_random=False),
    attempts=st.sampled_from(["last", "all"]),
    unfinished=st.sampled_from(["drop", "ran"]),
)
def test_any_events_become_what_the_rules_say(tmp_path_factory, rng, attempts, unfinished):
    tmp_path = tmp_path_factory.mktemp("events")
    rows, submitted = draw_events(rng)
    options = {"attempts": attempts, "unfinished": unfinished}
    text = "".join(f"{e.time},,{e.job},{e.task},,{KINDS.index(e.kind)},u,2,9,,,,\n" for e in rows)
    actual = "".join(f"{time},,{job},0,u,2,n,l\n" for job, time in submitted.items())
    source = folder_of(tmp_path, task_events=text, **({"job_events": actual} if actual else {}))
    found = jobs_of(read_google_2011(source, **options))
    assert [
        (round(at * 1e6), job, [round(d * 1e6) for d in durations]) for at, job, durations in found
    ] == expected_jobs(rows, submitted, **options)


def test_constraints_and_machines_are_kept_beside(tmp_path):
    constraints = "0,1,0,0,rs,x\n5,1,0,0,rs,x\n9,1,1,3,o/,4\n9,1,1,1,b,\n9,2,0,2,o/,4\n0,1,0,3,o/,4\n"
    machines = f"0,5,0,HofL,0.5,0.25\n{BEGIN_US + 2_500_000},5,1,HofL,,\n0,4,2,GtXa,1,1\n"
    attributes = f"0,5,rs,x,0\n{BEGIN_US},5,rs,,1\n"
    text = ran(1, 0, 0, 1, 2) + ran(1, 1, 0, 1, 2) + ran(2, 0, 0, 1, 2, "KILL")
    source = folder_of(
        tmp_path / "in", task_events=text, task_constraints=constraints, machine_events=machines,
        machine_attributes=attributes, task_usage="not,read\n",
    )  # fmt: skip
    convert_google_2011(source, tmp_path / "out")
    table = {path.stem: pq.read_table(path).to_pylist() for path in (tmp_path / "out").iterdir()}
    assert [tuple(row.values()) for row in table["constraints"]] == [
        (1, "b", "!=", None, 1), (1, "o/", ">", "4", 2), (1, "rs", "=", "x", 1),
    ]  # fmt: skip
    assert [tuple(row.values()) for row in table["machines"]] == [
        ("4", 0.0, "update", 1.0, 1.0, "GtXa", None),
        ("5", 0.0, "add", 0.5, 0.25, "HofL", None),
        ("5", 2.5, "remove", None, None, "HofL", None),
    ]
    assert [tuple(row.values()) for row in table["machine_attributes"]] == [
        ("5", 0.0, "rs", "x", False), ("5", 0.0, "rs", None, True),
    ]  # fmt: skip
    assert read_parquet(tmp_path / "out").num_tasks == 2


def test_shards_and_packings_give_the_same_workload(tmp_path):
    write_google_shaped(tmp_path / "plain", task_rows=3000, shards=1)
    write_google_shaped(tmp_path / "gz", task_rows=3000, shards=6, packed=True)
    with tarfile.open(tmp_path / "trace.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "gz", "clusterdata-2011-2")
    lines = []
    prints = {
        read_google_2011(tmp_path / name, progress=lambda *a: lines.append(a)).fingerprint()
        for name in ("plain", "gz", "trace.tar.gz")
    }
    assert len(prints) == 1
    assert all(0 <= done <= total for _, done, total in lines)
    assert {what for what, done, total in lines if done == total} == {"plain", "gz", "trace.tar.gz"}


def test_it_is_recognised_by_its_names(tmp_path):
    source = folder_of(tmp_path / "in", task_events=ran(1, 0, 0, 1, 2))
    with tarfile.open(tmp_path / "t.tar", "w") as packed:
        packed.add(source, "x")
    assert recognises(source)
    assert recognises(source / "task_events")
    assert recognises(tmp_path / "t.tar")
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,,1,0,,1,u,2,9,,,,", "field time: 'x' is not a whole number"),
        ("1.5,,1,0,,1,u,2,9,,,,", "field time: '1.5' is not a whole number"),
        ("1_000,,1,0,,1,u,2,9,,,,", "field time: '1_000' is not a whole number"),
        ("0,,0x10,0,,1,u,2,9,,,,", "field job ID: '0x10' is not a whole number"),
        (",,1,0,,1,u,2,9,,,,", "field time: is missing"),
        ("-5,,1,0,,1,u,2,9,,,,", "field time: '-5' is out of range; want microseconds, 0 or more"),
        ("10000000000000000,,1,0,,1,u,2,9,,,,", "field time: '10000000000000000' is out of range"),
        ("0,,1,0,,9,u,2,9,,,,", "field type: '9' is not a type of event; they are 0 to 8"),
        ("9223372036854775808,,1,0,,1,u,2,9,,,,", "field time: '9223372036854775808' is not a whole number"),
        ("0,,,0,,1,u,2,9,,,,", "field job ID: is missing"),
        ("0,,1,\x1b,,1,u,2,9,,,,", "field task index: '\\x1b' is not a whole number"),
        (f"0,,1,{2**62},,1,u,2,9,,,,", f"field task index: '{2**62}' is out of range"),
        ("0,,1,0,,,u,2,9,,,,", "field type: is missing"),
        ("0,,1,0,,1,u,2", "field priority: the line ends after 8 of 13 fields; want time,missing info,job"),
        ("0,,1,0,,1,u,2,9,,,,,1", "field 14: the line has 14 fields; want the 13 of time,"),
    ],
)
def test_what_is_broken_is_named_by_file_line_and_field(tmp_path, row, message):
    good = ran(1, 0, 0, 1, 2)
    source = folder_of(tmp_path / "in", task_events=good)
    for shard in range(1, 6):  # beside others that are read at the same time
        data = (good + (row + "\n" + good if shard == 3 else "")).encode()
        (source / "task_events" / f"part-{shard:05}-of-00006.csv.gz").write_bytes(gzip.compress(data))
    text = refused(source, tmp_path / "out")
    assert text.startswith(f"{source}/task_events/part-00003-of-00006.csv.gz: line 4: {message}"), text


def test_values_that_no_rule_repairs_are_refused(tmp_path):
    good, path = ran(1, 0, 0, 1, 2), tmp_path / "in"
    source = folder_of(path, task_events=ran(1, 0, 0, 1, 2, "KILL"))
    said = refused(source, tmp_path / "o")
    assert "in: no job of it has a task that finished" in said
    assert "dropped 1: tasks that were killed" in said
    folder_of(path, task_events=good, task_constraints="0,1,0,4,a,b\n")
    assert "field job, task, time, attribute, operator: is missing or unknown in 1 rows of" in refused(
        source, tmp_path / "o"
    )


def test_what_is_missing_twice_or_truncated_is_named(tmp_path):
    source = folder_of(tmp_path / "in", task_events=ran(1, 0, 0, 1, 2))
    shard = source / "task_events" / "part-00000-of-00001.csv"
    packed = gzip.compress(shard.read_bytes())
    (shard.parent / f"{shard.name}.gz").write_bytes(packed)
    assert "holds task_events/part-00000-of-00001, and so does" in refused(source, tmp_path / "o")
    shard.unlink()
    (shard.parent / f"{shard.name}.gz").write_bytes(packed[:-12])
    assert "csv.gz: the gzip stream ends too early" in refused(source, tmp_path / "o")
    (shard.parent / f"{shard.name}.gz").unlink()
    assert "in: holds no task_events, such as" in refused(source, tmp_path / "o")
    assert "cannot be read: No such file" in refused(tmp_path / "nowhere", tmp_path / "o")


def test_a_hundred_mutated_files_are_refused_in_one_line_that_names_the_place(tmp_path):
    rng = random.Random(3)
    wrong = ["abc", "1.5.5", "--1", "1e400", "9" * 20, "1 2", "é", "\x1b[31m", "nan", "", "0x", "None"]
    good = ran(1, 0, 0, 1, 2) + ran(2, 0, 0, 1, 2)
    source = folder_of(tmp_path / "in", task_events=good)
    shard = source / "task_events" / "part-00000-of-00001.csv"
    for i in range(100):
        lines = [line.split(",") for line in good.splitlines()]
        at = rng.randrange(len(lines))
        match i % 3:
            case 0:
                lines[at][rng.choice((0, 2, 3, 5))] = rng.choice(wrong)
            case 1:
                lines[at] = lines[at][: rng.randrange(1, len(lines[at]))]
            case 2:
                lines[at].append(rng.choice(wrong) or "0")  # one comma at the end is nothing
        data = "\n".join(map(",".join, lines)).encode()
        shard.write_bytes(gzip.compress(data) if i % 2 else data)
        text = refused(source, tmp_path / "out")
        assert text.startswith(f"{shard}: line {at + 1}: field "), (lines[at], text)
        assert len(text) < 300 + len(str(source))
