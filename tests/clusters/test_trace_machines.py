"""Machines of public traces as clusters, from the tables that tell of them."""

import gzip
import json
import tarfile

import pytest

from clusters.cluster import load_cluster
from emu.cli import main
from tests.workloads.alibaba_files import JOB_A, MACHINES, folder_of
from tests.workloads.google_2019_rows import FORMS, cell_rows, write_cell
from tests.workloads.test_recognition import ATTRIBUTES, MACHINE_EVENTS, TASK_EVENTS, packed
from workloads.catalogue import convert_workload
from workloads.errors import InputError

EVENTS = f"0,20,0,HofL,0.5,0.25\n0,3,0,GtXa,1,1\n0,100,0,HofL,,\n600000001,8,0,HofL,1,1\n{MACHINE_EVENTS}"


def figures(cluster):
    return [cluster.attribute(name).tolist() for name in ("slots", "cores", "memory", "rack")]


def test_machines_of_google_2011(tmp_path):
    packed(tmp_path / "trace" / "machine_events" / "part-00000-of-00001.csv.gz", EVENTS)
    alone = packed(tmp_path / "bare" / "part-00000-of-00001.csv.gz", EVENTS)
    gib = 1 << 30
    for path in (tmp_path / "trace", tmp_path / "trace" / "machine_events", alone, tmp_path / "bare"):
        cluster = load_cluster(path)
        assert cluster.num_nodes == 6  # 3, 5, 6, 7, 20, 100
        assert figures(cluster)[:3] == [
            [1] * 6,
            [16.0, 8.0, 1.0, 16.0, 8.0, 1.0],
            [64 * gib, round(0.2493 * 64 * gib), 4 * gib, 64 * gib, 16 * gib, 4 * gib],
        ]
        assert cluster.notes == (
            "read 7 rows of machine_events",
            "read 6 machines that are there when the trace begins, the nodes of cluster.parquet",
            "repaired 2: machines without a capacity: taken as one core or 4 GiB",
            "dropped 1: machines that are not there when the trace begins",
        )
    assert cluster.name == "bare"
    packed(tmp_path / "trace" / "machine_attributes" / "part-00000-of-00001.csv.gz", ATTRIBUTES)
    with_attributes = load_cluster(tmp_path / "trace")
    assert [with_attributes.attribute_names("attr:rs")[i] for i in with_attributes.attribute("attr:rs")] == [
        "", "x=", "", "", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", FORMS)
def test_machines_of_google_2019_in_every_form(tmp_path, ending):
    cluster = load_cluster(write_cell(tmp_path / "cell", ending))
    assert figures(cluster)[:2] == [[1, 1, 1], [8.0, 16.0, 1.0]]
    alone = tmp_path / f"machine_events.{ending}"
    alone.write_bytes(FORMS[ending]("machine_events", cell_rows()["machine_events"]))
    assert figures(load_cluster(alone)) == figures(cluster)


def test_machines_of_alibaba(tmp_path):
    more = "m_10,500,2,,4,50,USING\nm_9,0,2,8,,,USING\n"
    source = folder_of(tmp_path / "in", JOB_A, machines=MACHINES + more)
    packed_alone = tmp_path / "some machines.csv.gz"
    packed_alone.write_bytes(gzip.compress((MACHINES + more).encode()))
    with tarfile.open(tmp_path / "machine_meta.tar.gz", "w:gz") as archive:
        archive.add(source / "machine_meta.csv", "machine_meta.csv")
    gib = 1 << 30
    for path in (source, source / "machine_meta.csv", packed_alone, tmp_path / "machine_meta.tar.gz"):
        cluster = load_cluster(path)  # m_1, m_2, m_9, m_10
        assert figures(cluster) == [
            [96, 96, 1, 4], [96.0, 96.0, 1.0, 4.0], [192 * gib, 384 * gib, 384 * gib, 192 * gib], [0, 0, 1, 1],
        ]  # fmt: skip
        assert cluster.notes == (
            "read 6 rows of machine_meta",
            "read 4 machines, the nodes of cluster.parquet",
            "repaired 1: machines that are first listed after the trace begins: taken as present from the beginning",
            "repaired 1: machines that have no cores or memory: taken as one core or the largest memory",
            "dropped 1: rows of machine_meta without a machine",
        )
    assert figures(load_cluster(source, slots=2))[0] == [2] * 4
    convert_workload(source, tmp_path / "out")
    for path in (tmp_path / "out" / "cluster.parquet", tmp_path / "out"):
        assert figures(load_cluster(path)) == figures(cluster)


def test_what_tells_of_no_machines_is_named(tmp_path):
    path = packed(tmp_path / "in" / "machine_events.csv.gz", EVENTS)
    made = load_cluster(path, 5)
    assert made.num_nodes == 5
    assert made.notes[-1] == "6 machines scaled to 5 nodes, machine types in proportion"
    for name, text in (("a.csv", "x,y\n"), ("b", ""), ("task_events.csv", TASK_EVENTS)):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match="holds no machines; want a"):
            load_cluster(tmp_path / name)
    packed(path, "900000000,1,0,,1,1\n")
    with pytest.raises(InputError, match="lists no machine that is there when the trace begins"):
        load_cluster(path)
    packed(path, EVENTS + "0,x,0,,1,1\n")
    with pytest.raises(InputError, match="line 8: field machine ID: 'x' is not a number"):
        load_cluster(path)


def test_a_run_takes_a_trace_s_machines_for_its_cluster(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packed(tmp_path / "trace" / "machine_events" / "part-00000-of-00001.csv.gz", EVENTS)
    packed(tmp_path / "trace" / "task_events" / "part-00000-of-00001.csv.gz", TASK_EVENTS)
    command = ["run", "--scheduler", "sparrow", "--workload", "trace", "--cluster", "trace", "--in-process"]
    assert main([*command, "--out", "run"]) == 0
    assert "sparrow on trace, 6 nodes" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    files = [found["name"] for found in manifest["inputs"] if found["what"] == "cluster file"]
    assert files == ["trace/machine_events/part-00000-of-00001.csv.gz"]
    assert main(["run", "--config", "run/config.toml", "--in-process", "--out", "again"]) == 0
    jobs = [tmp_path / name / "jobs.parquet" for name in ("run", "again")]
    assert jobs[0].read_bytes() == jobs[1].read_bytes()
    capsys.readouterr()
    assert main(["cluster", "info", "trace"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("trace: 6 nodes, 6 slots")
    assert "dropped 1: machines that are not there" in output.err
