import gzip
import random
import tempfile

import pytest

from tests.workloads.alibaba_files import INSTANCES_A, JOB_A, archive, folder_of, refused, stage, tables
from workloads import limits
from workloads.readers import alibaba_2018, alibaba_2018_rules
from workloads.readers.alibaba_2018 import convert_alibaba_2018


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("M1,x,j_1,1,Terminated,1,2,1,1", "field instance_num: 'x' is not a number below 1e12"),
        ("M1,1,j_1,1,Terminated,1525000000000,2,1,1", "field start_time: '1525000000000' is not a number below"),
        ("M1,1,j_1,1,Terminated,1,2,1,\x1b", "field plan_mem: '\\x1b' is not a number"),
        ("M1,1,j_1,1,Terminated", "field start_time: the line ends after 5 of 9 fields; want task_name,"),
        ("M1,1,j_1,1,Terminated,1,2,1,1,1", "field 10: the line has 10 fields; want the 9 of task_name,"),
        ("task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem",
         "field instance_num: 'instance_num' is not a number"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named_by_file_line_and_field(tmp_path, row, message):
    source = folder_of(tmp_path / "in", JOB_A + row + "\n" + JOB_A)
    assert refused(source, tmp_path / "out").startswith(f"{source / 'batch_task.csv'}: line 6: {message}")
    path = archive(tmp_path / "t.tar.gz", {"a/batch_task.csv": JOB_A + row + "\n"})
    assert refused(path, tmp_path / "out").startswith(f"{path} (a/batch_task.csv): line 6: {message}")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"M1,1,j_1,1,Term\xff,1,2,1,1", "line 2: field status: cannot be read (invalid encoding)"),
        (b"M1,1,j_1,1,\xff,\xff,2,1,1", "line 2: field "),
        (b"M1,1,j_1,1," + b"x" * 3_000_000 + b",1,2,1,1", "line 2: is longer than 256 KiB; is this a table?"),
        (b"#", "line 2: field instance_num: the line ends after 1 of 9 fields"),
        (b"M1,1,j_1,1,Terminated,1,2,1,1\r", "cannot be read as CSV; do all lines end alike?"),
    ],
)
def test_what_is_no_text_is_named(tmp_path, row, message):
    path = tmp_path / "batch_task.csv"
    path.write_bytes(JOB_A.encode().partition(b"\n")[0] + b"\n" + row + b"\n")
    assert refused(path, tmp_path / "out").startswith(f"{path}: {message}")


def test_quotes_are_part_of_names_and_blank_lines_are_ignored(tmp_path):
    path = tmp_path / "batch_task.csv"
    path.write_bytes(b"\n" + stage("j_1", '"M1').encode() + b"\n" + stage("j_1", "M2").encode())
    assert tables(path, tmp_path / "out")["stages"]["name"] == ["M2", '"M1']


def test_too_little_memory_is_said(tmp_path):
    source = folder_of(tmp_path / "in", JOB_A)
    assert refused(source, tmp_path / "out", memory="x").startswith("memory: 'x' is not a size")
    assert refused(source, tmp_path / "out", memory="1 kB").startswith("field memory: 0MiB do not suffice")


def test_what_is_missing_or_twice_is_named(tmp_path):
    source = folder_of(tmp_path / "in", JOB_A)
    assert "in: holds no batch_instance.csv" in refused(source, tmp_path / "out", instances=True)
    assert "field shortest_s: -1 is not a duration" in refused(source, tmp_path / "out", shortest_s=-1)
    (source / "batch_task.csv.gz").write_bytes(gzip.compress(JOB_A.encode()))
    assert "holds batch_task, and so does" in refused(source, tmp_path / "out")
    empty = folder_of(tmp_path / "empty", "")
    assert "empty: batch_task is empty: it has no rows" in refused(empty, tmp_path / "out")
    (empty / "batch_task.csv").unlink()
    assert "empty: holds no batch_task, such as batch_task.csv" in refused(empty, tmp_path / "out")
    assert "cannot be read: No such file" in refused(tmp_path / "nowhere", tmp_path / "out")


def test_times_and_counts_that_cannot_be_are_refused(tmp_path, monkeypatch):
    source = folder_of(tmp_path / "in", JOB_A + stage("j_8", "M\x1b", end=5_000_000_000))
    assert refused(source, tmp_path / "out").startswith(
        f"{source / 'batch_task.csv'}: line 6: field end_time: '5000000000'; are the times in seconds?"
    )
    folder_of(source, stage("j_8", "M1", number=10**11))
    assert refused(source, tmp_path / "out").startswith(
        f"{source}: field instance_num: makes 100,000,000,000 tasks"
    )
    folder_of(source, stage("j_8", "M1", number=1.5))
    assert refused(source, tmp_path / "out").startswith(
        f"{source / 'batch_task.csv'}: line 1: field instance_num: '1.5'; want a whole number"
    )
    monkeypatch.setattr(limits, "free_bytes", lambda: 7 * limits.TASK_BYTES)
    monkeypatch.setattr(alibaba_2018_rules, "size_of", lambda source: 0)
    assert "makes 8 tasks" in refused(folder_of(source, JOB_A), tmp_path / "out")


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_):
        raise RuntimeError("Query interrupted")  # as DuckDB says it

    monkeypatch.setattr(alibaba_2018, "resolve_edges", interrupted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with pytest.raises(KeyboardInterrupt):
        convert_alibaba_2018(folder_of(tmp_path / "in", JOB_A), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["batch_task.csv", "in", "temporary"]


def test_a_truncated_archive_is_named(tmp_path):
    rows = "".join(stage(f"j_{i}", f"task_{random.Random(i).random()}") for i in range(5000))
    path = archive(tmp_path / "batch_task.tar.gz", {"batch_task.csv": rows})
    path.write_bytes(path.read_bytes()[:-5000])
    assert refused(path, tmp_path / "out") == (
        f"{path}: the gzip stream ends too early; the file is truncated"
    )


def test_a_hundred_mutated_files_are_refused_in_one_line_that_names_the_place(tmp_path):
    rng = random.Random(3)
    wrong = ["abc", "1.5.5", "0x10", "--1", "1e400", "9" * 20, "1 2", "é", "\x1b[31m", "nan"]
    for i in range(100):
        table = "batch_instance" if i % 10 == 0 else "batch_task"
        lines = [line.split(",") for line in (JOB_A, INSTANCES_A)[table == "batch_instance"].splitlines()]
        at = rng.randrange(len(lines))
        whole = (1, 5, 6) if table == "batch_task" else (5, 6, 8, 9)
        match i % 3:
            case 0:
                lines[at][rng.choice(whole)] = rng.choice(wrong)
            case 1:
                lines[at] = lines[at][: rng.randrange(1, len(lines[at]))]
            case 2:
                lines[at].append(rng.choice(wrong))
        source = folder_of(tmp_path / str(i), JOB_A)
        data = "\n".join(map(",".join, lines)).encode()
        (source / f"{table}.csv").write_bytes(gzip.compress(data) if i % 2 else data)
        text = refused(source, tmp_path / "out")
        assert text.startswith(f"{source / f'{table}.csv'}: line {at + 1}: field "), (lines[at], text)
        assert len(text) < 300 + len(str(source))
