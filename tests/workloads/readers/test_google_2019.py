import gzip
import json
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.google_cases import draw_events, expected_jobs, jobs_of
from workloads.errors import InputError
from workloads.readers.google_2019 import convert_google_2019, read_google_2019
from workloads.readers.parquet import read_parquet

BEGIN_US = 600_000_000
KINDS = [
    "SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING",
    "UPDATE_RUNNING",
]  # fmt: skip


def event(time_s, job, task, kind, **more):
    """Return a row as BigQuery writes it: numbers as strings, nothing for null."""
    time = BEGIN_US + int(time_s * 1e6)
    return {
        "time": str(time), "type": str(KINDS.index(kind)), "collection_id": str(job), "priority": "200",
        "instance_index": str(task), "collection_type": "0", "resource_request": {"cpus": 0.1, "memory": 0.01},
    } | more  # fmt: skip


def ran(job, task, submit, start, end, kind="FINISH", **more):
    steps = ((submit, "SUBMIT"), (submit, "ENABLE"), (start, "SCHEDULE"), (end, kind))
    return [event(time, job, task, what, **more) for time, what in steps]


def collection(time_s, job, kind="SUBMIT", **more):
    row = event(time_s, job, 0, kind, user="u=") | more
    return {key: value for key, value in row.items() if key not in ("instance_index", "resource_request")}


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def folder_of(path, **tables):
    path.mkdir(exist_ok=True)
    for name, rows in tables.items():
        (path / f"{name}-000000000000.json.gz").write_bytes(gzip.compress(json_lines(rows)))
    return path


def refused(source, to, **options):
    with pytest.raises(InputError) as caught:
        convert_google_2019(source, to, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert not to.exists()
    return text


@settings(max_examples=8)
@given(
    rng=st.randoms(use_true_random=False),
    attempts=st.sampled_from(["last", "all"]),
    unfinished=st.sampled_from(["drop", "ran"]),
)
def test_any_events_become_what_the_rules_say(tmp_path_factory, rng, attempts, unfinished):
    tmp_path = tmp_path_factory.mktemp("events")
    rows, submitted = draw_events(rng)
    options = {"attempts": attempts, "unfinished": unfinished}
    source = folder_of(
        tmp_path / "a",
        instance_events=[
            {"time": e.time, "type": e.kind, "collection_id": e.job, "instance_index": e.task} for e in rows
        ],
        collection_events=[
            {"time": time, "type": 0, "collection_id": job} for job, time in submitted.items()
        ],
    )
    found = jobs_of(read_google_2019(source, **options))
    assert [
        (round(at * 1e6), job, [round(d * 1e6) for d in durations]) for at, job, durations in found
    ] == expected_jobs(rows, submitted, **options)


def machine_rows():
    return [
        {"time": "0", "machine_id": "5", "type": "1", "switch_id": "s=", "platform_id": "p=",
         "capacity": {"cpus": 0.5, "memory": 0.25}},
        {"time": 601_500_000, "machine_id": 5, "type": "REMOVE"},
        {"time": "0", "machine_id": "4", "type": 3, "capacity.cpus": 1, "capacity.memory": 0.75},
    ]  # fmt: skip


def test_constraints_and_machines_are_kept_beside(tmp_path):
    wants = [{"name": "a", "value": "x", "relation": "0"}, {"name": "b", "relation": "PRESENT"}]
    rows = ran(1, 0, 0, 1, 2, constraint=wants) + ran(1, 1, 0, 1, 2, constraint=[{"name": "a", "value": "x"}])
    source = folder_of(
        tmp_path / "in", instance_events=rows, machine_events=machine_rows(),
        machine_attributes=[{"time": "0", "machine_id": "5", "name": "n", "value": "v"},
                            {"time": "0", "machine_id": "5", "name": "o", "deleted": True}],
    )  # fmt: skip
    convert_google_2019(source, tmp_path / "out")
    table = {path.stem: pq.read_table(path).to_pylist() for path in (tmp_path / "out").iterdir()}
    assert [tuple(row.values()) for row in table["constraints"]] == [
        (1, "a", "=", "x", 2), (1, "b", "present", None, 1),
    ]  # fmt: skip
    assert [tuple(row.values()) for row in table["machines"]] == [
        ("4", 0.0, "update", 1.0, 0.75, None, None),
        ("5", 0.0, "add", 0.5, 0.25, "p=", "s="),
        ("5", 1.5, "remove", None, None, None, None),
    ]
    assert [tuple(row.values()) for row in table["machine_attributes"]] == [
        ("5", 0.0, "n", "v", False), ("5", 0.0, "o", None, True),
    ]  # fmt: skip
    assert read_parquet(tmp_path / "out").jobs["tenant"].null_count == 1


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (b'{"time": "0", "type": "0"', "line 6: is not a row of instance_events as a line of JSON"),
        (b'{"time": "x", "type": "0"}', "line 6: is not a row of instance_events as a line of JSON"),
        (b'{"time": {}, "type": "0"}', "line 6: is not a row of instance_events as a line of JSON"),
        (b"\x1b\xff", "line 6: is not a row of instance_events as a line of JSON"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, where):
    good = json_lines(ran(1, 0, 0, 1, 2))
    source = folder_of(tmp_path / "in")
    for shard in range(3):
        data = good + (b"\n" + line + b"\n" if shard == 1 else b"") + good
        (source / f"instance_events-{shard:012}.json.gz").write_bytes(gzip.compress(data))
    text = refused(source, tmp_path / "out")
    assert text.startswith(f"{source}/instance_events-000000000001.json.gz: {where}"), text


def test_what_is_no_table_is_named(tmp_path):
    source = folder_of(tmp_path / "in", collection_events=[collection(0, 1)])
    assert "in: holds no instance_events, such as" in refused(source, tmp_path / "out")
    path = source / "instance_events.parquet"
    path.write_bytes(b"PAR1 no")
    assert refused(source, tmp_path / "out").startswith(f"{path}: is not a Parquet file of this table (")
    pq.write_table(pa.table({"time": ["x"]}), path)
    assert refused(source, tmp_path / "out").startswith(f"{path}: is not a Parquet file of this table (")
    with tarfile.open(tmp_path / "t.tar", "w") as packed:
        packed.add(path, "instance_events.parquet")
    text = refused(tmp_path / "t.tar", tmp_path / "out")
    assert "t.tar (instance_events.parquet): is not a Parquet file of this table (" in text
