import gzip
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.google_cases import draw_events, expected_jobs, jobs_of
from tests.workloads.google_shaped import write_google_shaped
from workloads.errors import InputError
from workloads.readers.google_2011 import convert_google_2011, read_google_2011, recognises

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


@settings(max_examples=10)
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
