"""What a path is taken for: by names, by what is in it, and what is said of what is no known format."""

import gzip
import zipfile
from pathlib import Path

import pytest

from tests.workloads.alibaba_files import INSTANCES_A, JOB_A, MACHINES
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import recognise
from workloads.readers.google_2011 import read_google_2011

TASK_EVENTS = """\
600000000,,3418309,0,4155527081,0,70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,9,0.125,0.07446,0.0004244,0
601000000,,3418309,0,329150663,1,70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,9,,,,
605500000,2,3418309,0,329150663,4,70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,9,0.125,0.07446,0.0004244,0
"""
JOB_EVENTS = "600000000,,3418309,0,w=,3,IHgt,mG7g\n605500000,,3418309,4,w=,3,IHgt,mG7g\n"
MACHINE_EVENTS = "0,5,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493\n0,6,0,HofL=,,\n0,7,0,,1,1\n"
CONSTRAINTS = "600000000,3418309,0,1,rs,x=\n600000000,3418309,0,3,o/HM,4\n"
ATTRIBUTES = "0,5,rs,x=,0\n0,5,o/HM,2,0\n700000000,6,rs,,1\n"
USAGE = f"600000000,900000000,3418309,0,4155527081,0.0016,0.069,{','.join(['0.01'] * 13)}\n"
SHARDS = {
    "task_events": TASK_EVENTS, "job_events": JOB_EVENTS, "machine_events": MACHINE_EVENTS,
    "task_constraints": CONSTRAINTS, "machine_attributes": ATTRIBUTES,
}  # fmt: skip


def packed(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_workload(path)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 700 + len(str(path)), text
    return text


# Google 2011: bare shards, known by the width of their rows.


def test_a_bare_shard_is_read_alone_and_in_a_folder_of_any_name(tmp_path):
    want = read_google_2011(packed(tmp_path / "task_events" / "part-00000-of-00500.csv.gz", TASK_EVENTS))
    folder = tmp_path / "my downloads"
    alone = packed(folder / "part-00000-of-00500.csv.gz", TASK_EVENTS)
    assert recognise(alone) == recognise(folder) == "google-2011"
    assert load_workload(alone).fingerprint() == load_workload(folder).fingerprint() == want.fingerprint()
    assert want.num_tasks == 1
    packed(folder / "part-00001-of-00500.csv.gz", TASK_EVENTS.replace("3418309", "99"))
    assert load_workload(folder).num_jobs == 2


def test_bare_shards_are_recognised_as_their_tables(tmp_path):
    named, bare = tmp_path / "named", tmp_path / "bare"
    for i, (table, text) in enumerate(SHARDS.items()):
        packed(named / table / "part-00000-of-00001.csv.gz", text)
        packed(bare / f"{i}" / "part-00000-of-00001.csv.gz", text)
    packed(bare / "usage" / "part-00000-of-00500.csv.gz", USAGE)
    from_named, from_bare = load_workload(named), load_workload(bare)
    assert from_named.fingerprint() == from_bare.fingerprint()
    assert {*from_bare.metadata["read"].split("; ")} == {*from_named.metadata["read"].split("; ")}
    assert "3 rows of machine_events" in from_bare.metadata["read"]
    assert from_bare.job_constraints.num_rows == 1


def test_names_win_over_what_is_in_other_files(tmp_path):
    packed(tmp_path / "in" / "task_events" / "part-00000-of-00001.csv.gz", TASK_EVENTS)
    packed(tmp_path / "in" / "copy.csv.gz", TASK_EVENTS.replace("3418309", "99"))
    assert load_workload(tmp_path / "in").num_jobs == 1


HEADERS = {
    "as the schema has it": (
        "time,missing info,job ID,task index,machine ID,event type,user,scheduling class,priority,CPU request,"
        "memory request,disk space request,different machines restriction"
    ),
    "as programs have it": (
        "timestamp,missing_info,job_id,task_index,machine_id,event_type,user_name,scheduling_class,priority,"
        "cpu_request,memory_request,disk_space_request,different_machines_restriction"
    ),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_of_2011_is_read(tmp_path, header):
    want = load_workload(packed(tmp_path / "a" / "part-00000-of-00500.csv.gz", TASK_EVENTS))
    shuffled = "\n".join(",".join(row.split(",")[::-1]) for row in f"{header}\n{TASK_EVENTS}".split("\n"))
    for name, text in (("task_events.csv.gz", f"{header}\n{TASK_EVENTS}"), ("any name.csv.gz", shuffled)):
        assert load_workload(packed(tmp_path / "b" / name, text)).fingerprint() == want.fingerprint()


# Alibaba 2018 by what is in it.


@pytest.mark.parametrize("name", ["selected_DAGs.csv.gz", "x/first million.csv.gz"])
def test_alibaba_is_known_by_its_columns(tmp_path, name):
    want = load_workload(packed(tmp_path / "a" / "batch_task.csv.gz", JOB_A))
    header = "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n"
    counts = JOB_A.replace(",2,j_7", ",2.0,j_7").replace(",1,j_7", ",1.0,j_7")
    for i, text in enumerate((JOB_A, header + JOB_A, header + counts)):
        path = packed(tmp_path / str(i) / name, text)
        packed(tmp_path / str(i) / "machines.csv.gz", MACHINES)
        assert recognise(path) == "alibaba-2018"
        assert load_workload(path).fingerprint() == want.fingerprint()
        assert load_workload(tmp_path / str(i)).fingerprint() == want.fingerprint()


def test_a_header_may_be_in_another_order_and_have_more(tmp_path):
    want = load_workload(packed(tmp_path / "a" / "batch_task.csv.gz", JOB_A))
    names = [
        "task_name",
        "inst_num",
        "job_name",
        "task_type",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
    ]
    rows = [names, *(line.split(",") for line in JOB_A.splitlines())]
    text = "".join(f'{i},"{row[2]}",{",".join(row[:2] + row[3:][::-1])}\r\n' for i, row in enumerate(rows))
    path = packed(tmp_path / "b" / "excerpt.csv.gz", text)
    assert load_workload(path).fingerprint() == want.fingerprint()
    broken = text.replace("115", "x")
    packed(path, broken)
    assert ": line 4: field end_time: 'x' is not a number" in refusal(path)
    packed(path, text.replace("status", "state", 1))
    assert ": line 1: field status: the header does not name it" in refusal(path)


def test_instances_may_have_a_header_too(tmp_path):
    header = (
        "instance_name,task_name,job_name,task_type,status,start_time,end_time,machine_id,seq_no,total_seq_no,"
        "cpu_avg,cpu_max,mem_avg,mem_max\n"
    )
    for folder, text in (("a", INSTANCES_A), ("b", header + INSTANCES_A)):
        packed(tmp_path / folder / "batch_task.csv.gz", JOB_A)
        packed(tmp_path / folder / "batch_instance.csv.gz", text)
    assert load_workload(tmp_path / "a").fingerprint() == load_workload(tmp_path / "b").fingerprint()


# Look-alikes.


# Files of other formats.


def test_a_link_to_what_is_not_there_says_so(tmp_path):
    (tmp_path / "log.csv").symlink_to(tmp_path / "gone.csv")
    assert refusal(tmp_path / "log.csv").endswith(f"is a link to {tmp_path / 'gone.csv'}, which is not there")


LINES_OF_LOGS = {
    "swim": [f"job{i}\t{i}\t1\t{i * 977 % 4096}\t{i * 7919 % 65536}\t0" for i in range(400)],
    "swf": [f"{i} {i * 60} 0 {i * 977 % 4096} 2 -1 -1 2 -1 -1 1 {i % 9} 1 -1 1 -1 -1 -1" for i in range(400)],
    "sacct": ["JobID|Submit|Elapsed|State|User"]
    + [f"{i}|2026-01-01T00:{i % 60:02d}:00|00:00:{i * 7 % 60:02d}|COMPLETED|ada" for i in range(400)],
    "coflow-benchmark": ["150 400"]
    + [f"{i} {i * 50} 1 {i % 150} 1 {i * 7 % 150}:{i * 977 % 4096 + 1}.0" for i in range(400)],
}


@pytest.mark.parametrize("format", LINES_OF_LOGS)
def test_a_packed_log_that_ends_too_early_is_known_by_its_beginning(tmp_path, format):
    data = gzip.compress("\n".join(LINES_OF_LOGS[format]).encode())
    (tmp_path / "log.gz").write_bytes(data[: len(data) * 4 // 5])
    assert recognise(tmp_path / "log.gz") == format
    assert "the gzip stream ends too early" in refusal(tmp_path / "log.gz")


def test_a_folder_says_what_it_holds(tmp_path):
    (tmp_path / "in").mkdir()
    assert refusal(tmp_path / "in").startswith(
        f"{tmp_path / 'in'}: is an empty folder; formats: parquet, tr, "
    )
    for i in range(5):
        (tmp_path / "in" / f"{i}.log").write_text("x y\n")
    assert (
        "is a folder of no known format: it holds '0.log', '1.log', '2.log' and 2 more; formats:"
        in refusal(tmp_path / "in")
    )
    (tmp_path / "in" / "2010.tsv").write_text("job0\t49\t49\t740773\t2339561\t627471\n")
    assert "'2010.tsv' is of the format swim: give that file; formats:" in refusal(tmp_path / "in")


def test_an_archive_is_looked_into(tmp_path):
    path = tmp_path / "download.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/part-00000-of-00001.csv", TASK_EVENTS)
    assert recognise(path) == "google-2011"
    assert load_workload(path).num_jobs == 1


# What people have beside the tables, and in their place.


def test_hidden_files_are_passed_over_in_folders_and_archives(tmp_path):
    source, junk = tmp_path / "in", "\0\5\26\7Mac OS X"
    packed(source / "task_events" / "part-00000-of-00500.csv.gz", TASK_EVENTS)
    packed(source / "task_events" / "._part-00000-of-00500.csv.gz", junk)
    (source / ".DS_Store").write_text(junk)
    assert load_workload(source).num_jobs == 1
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("__MACOSX/._batch_task.csv", junk)
        archive.writestr("batch_task.csv", JOB_A)
    assert load_workload(tmp_path / "t.zip").num_jobs == 1


def test_a_link_that_leads_nowhere_is_no_reason_to_read_the_rest(tmp_path):
    shard = packed(tmp_path / "task_events" / "part-00000-of-00500.csv.gz", TASK_EVENTS)
    shard.with_name("part-00001-of-00500.csv.gz").symlink_to(tmp_path / "annex")
    assert "part-00001-of-00500.csv.gz: cannot be read: No such file" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TASK_EVENTS.encode("utf-16"), "this is text in UTF-16; save it as UTF-8"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:a\n",
            "this is Git LFS's pointer to a file",
        ),
        (b"<!DOCTYPE html>\n<html>404</html>\n", "this is a web page; was the download refused?"),
        (TASK_EVENTS.replace(",", ";").encode(), "with commas between them, not semicolons"),
        (TASK_EVENTS.replace(",", "\t").encode(), "with commas between them, not tabs"),
    ],
)
def test_what_is_no_table_of_commas_is_named_whatever_it_is_called(tmp_path, data, message):
    shard = packed(tmp_path / "task_events" / "part-00000-of-00500.csv.gz", "")
    for content in (data, gzip.compress(data)):
        shard.write_bytes(content)
        assert f"{shard}: line 1: " in (text := refusal(tmp_path))
        assert message in text
    if "commas" not in message:
        (tmp_path / "YH1.tr").write_bytes(data)
        assert f"YH1.tr: line 1: {message}" in refusal(tmp_path / "YH1.tr")
        (tmp_path / "any.thing").write_bytes(data)
        assert f"any.thing: is of no known format: {message}" in refusal(tmp_path / "any.thing")
