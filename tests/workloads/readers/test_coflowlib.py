import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.valid_files import COFLOWLIB as SMALL
from tests.workloads.strategies import coflows
from workloads.catalogue import instances_of, load_workload
from workloads.coflows import make_coflow_workload
from workloads.errors import InputError
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.readers.coflow_benchmark import recognises as recognises_benchmark
from workloads.readers.coflowlib import (
    instance_names,
    list_coflowlib,
    read_coflowlib,
    recognises,
    write_coflowlib,
    write_instances,
)

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")


def test_a_small_instance_is_read(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text(SMALL)
    workload = read_coflowlib(path)
    assert workload.coflows.to_pydict() == {
        "coflow_id": [5, 6],
        "arrival_s": [0.046, 0.049],
        "width": [1, 2],
        "senders": [1, 1],
        "receivers": [1, 1],
        "size_bytes": [1.12067, 1.12242 + 0.93087],
        "weight": [2.0, 1.0],
        "deadline_s": [2.27387, 2.72733],
    }
    assert workload.flows["ingress"].to_pylist() == [1, 0, 0]
    assert workload.flows["egress"].to_pylist() == [0, 1, 1]
    assert workload.ports.to_pydict() == {
        "port": [0, 1],
        "ingress_bytes_per_s": [1.0, 2.0],
        "egress_bytes_per_s": [1.0, 0.5],
    }
    assert workload.name == "small"
    assert "taken as a byte" in workload.metadata["units"]
    assert workload.metadata["trace_type"] == "0"
    write_coflowlib(workload, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == SMALL
    assert recognises(path)
    assert not recognises_benchmark(path)


ARCHIVES = {
    "off_facebook_m10_c10": (100, 10),
    "off_facebook_m10_c40": (100, 40),
    "off_synthetic_m10_c10": (100, 10),
    "off_synthetic_m10_c40": (100, 40),
    "w_off_synthetic_m10_c40": (100, 40),
    "on_synthetic_nobatch_m10_c2000_l10": (40, 2000),
}
"""Instances of an archive, and coflows of each."""
EVERY = 9  # of 540 instances, which take 20 s


@pytest.mark.reference
@pytest.mark.parametrize("name", ARCHIVES)
def test_published_instances_are_written_back_byte_for_byte(tmp_path, name):
    path = SHARED / "traces" / "coflowlib" / f"{name}.zip"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    instances, coflows_each = ARCHIVES[name]
    members, names = list_coflowlib(path), instances_of(path)
    assert names == tuple(f"{name}_in{number:03}" for number in range(1, instances + 1))
    assert recognises(path)
    with zipfile.ZipFile(path) as archive:
        for instance, member in [*zip(names, members, strict=True)][::EVERY]:
            workload = load_workload(path, options={"instance": instance})
            assert workload.name == instance
            assert (workload.num_coflows, workload.num_ports) == (coflows_each, 10)
            assert workload.coflows["deadline_s"].null_count == 0
            assert set(workload.coflows["weight"].to_pylist()) <= ({1.0, 2.0} if name[0] == "w" else {1.0})
            write_coflowlib(workload, tmp_path / "again.txt")
            assert (tmp_path / "again.txt").read_bytes() == archive.read(member), instance


@settings(max_examples=20)
@given(st.lists(coflows(complete=True), min_size=1, max_size=4))
def test_an_archive_of_instances_reads_back(tmp_path_factory, workloads):
    path = tmp_path_factory.mktemp("lib") / "made.zip"
    write_instances(workloads, path)
    names = instance_names(path)
    assert names == tuple(f"made_in{n:03}" for n in range(1, len(workloads) + 1))
    assert recognises(path)
    assert instances_of(path) == (names if len(names) > 1 else ())
    for name, workload in zip(names, workloads, strict=True):
        again = load_workload(path, options={"instance": name})
        assert again.fingerprint() == workload.fingerprint()
        assert again.name == name
    bytes_before = path.read_bytes()
    write_instances(workloads, path)
    assert path.read_bytes() == bytes_before


@pytest.mark.slow("a thousand instances")
def test_a_thousand_instances_stay_in_order(tmp_path):
    each = [deadline_coflows(coflows=2, ports=2, seed=seed) for seed in range(1001)]
    write_instances(each, tmp_path / "many.zip")
    names = instances_of(tmp_path / "many.zip")
    assert (len(names), names[0], names[-1]) == (1001, "many_in0001", "many_in1001")
    last = read_coflowlib(tmp_path / "many.zip", instance=names[-1])
    assert last.fingerprint() == each[-1].fingerprint()


def test_an_instance_is_read_though_another_is_damaged(tmp_path):
    each = [deadline_coflows(coflows=3, ports=2, seed=seed) for seed in (1, 2)]
    path = tmp_path / "two.zip"
    write_instances(each, path)
    with zipfile.ZipFile(path) as archive:
        first = archive.infolist()[0]
    content = bytearray(path.read_bytes())
    begin = first.header_offset + 30 + len(first.filename)  # behind the header of the member
    content[begin : begin + first.compress_size] = b"\xff" * first.compress_size
    path.write_bytes(content)
    assert len(list_coflowlib(path)) == 2
    assert read_coflowlib(path, instance=2).fingerprint() == each[1].fingerprint()
    with pytest.raises(InputError, match="two_in001"):
        read_coflowlib(path, instance=1)


def test_what_holds_one_workload_has_no_instances(tmp_path):
    (tmp_path / "one.txt").write_text(SMALL)
    write_instances([read_coflowlib(tmp_path / "one.txt")], tmp_path / "one.zip")
    assert instances_of(tmp_path / "one.txt") == instances_of(tmp_path / "one.zip") == ()
    assert read_coflowlib(tmp_path / "one.zip").num_coflows == 2
    assert instances_of("deadline-coflows") == ()
    with pytest.raises(InputError, match="no such file or folder"):
        instances_of(tmp_path / "none.zip")


def test_instances_of_the_same_name_in_two_folders_have_different_names(tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(SMALL.replace("5 2 0.046", f"{ord(folder)} 2 0.046"))
    assert instances_of(tmp_path) == ("a/x.txt", "b/x.txt")
    assert instances_of(tmp_path, {"instance": "1"}) == ()
    ids = [
        load_workload(tmp_path, options={"instance": n}).coflows["coflow_id"][0]
        for n in ("a/x.txt", "b/x.txt")
    ]
    assert [i.as_py() for i in ids] == [97, 98]


def test_archives_that_cannot_be_are_refused(tmp_path):
    whole = deadline_coflows(coflows=3)
    with pytest.raises(InputError, match=r"n\.zip: an archive of no instances"):
        write_instances([], tmp_path / "n.zip")
    with pytest.raises(InputError, match=r"n\.zip: field deadline_s: \d+ rows lack it"):
        write_instances([whole, deadline_coflows(deadline_share=0.5)], tmp_path / "n.zip")
    assert not (tmp_path / "n.zip").exists()
    with pytest.raises(InputError, match=r"none/n\.zip: cannot be written: No such file"):
        write_instances([whole], tmp_path / "none" / "n.zip")


@settings(max_examples=20)
@given(coflows(complete=True))
def test_a_round_trip_is_exact(tmp_path_factory, workload):
    folder = tmp_path_factory.mktemp("lib")
    for name in ("w.txt", "w.txt.gz"):
        write_coflowlib(workload, folder / name)
        assert read_coflowlib(folder / name).fingerprint() == workload.fingerprint()
        assert recognises(folder / name)


def packed(folder: Path) -> tuple[Path, Path]:
    """Return a folder and a zip archive of three instances, and of files that are none."""
    inside = folder / "set"
    inside.mkdir()
    for number in (2, 10, 1):
        text = SMALL.replace("5 2 0.046", f"{number + 10} 2 0.046")
        (inside / f"set_in{number:03}.txt").write_text(text)
    (inside / "README.md").write_text("instances")
    with zipfile.ZipFile(folder / "set.zip", "w") as archive:
        archive.mkdir("set")
        for file in sorted(inside.iterdir(), reverse=True):
            archive.write(file, f"set/{file.name}")
        archive.writestr("__MACOSX/set/._set_in001.txt", "x")
    return inside, folder / "set.zip"


def test_an_instance_is_chosen_by_number_or_name(tmp_path):
    for path in packed(tmp_path):
        names = list_coflowlib(path)
        assert [name.rpartition("/")[2] for name in names] == [f"set_in{n:03}.txt" for n in (1, 2, 10)]
        for instance in (3, "3", names[2], "set_in010", "set_in010.txt"):
            workload = read_coflowlib(path, instance=instance)
            assert (workload.name, workload.coflows["coflow_id"][0].as_py()) == ("set_in010", 20)
        assert recognises(path)
        for instance, message in (
            (None, "field instance: holds 3 instances; choose one by its number, 1..3, or name, set_in001 "),
            (0, "field instance: 0 is not in 1..3"),
            (4, "field instance: 4 is not in 1..3"),
            ("9" * 5000, "field instance: 999"),
            ("set_in011", "field instance: no instance 'set_in011'; did you mean 'set_in01"),
        ):
            with pytest.raises(InputError) as caught:
                read_coflowlib(path, instance=instance)
            assert str(caught.value).startswith(f"{path}: {message}")


def test_errors_name_the_instance_in_a_folder_or_archive(tmp_path):
    for path in packed(tmp_path):
        broken = SMALL.replace("0.93087", "x")
        if path.is_dir():
            (path / "set_in002.txt").write_text(broken)
            name = "set_in002.txt"
        else:
            name = "set/set_in002.txt"
            path.unlink()
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(name, broken)
        with pytest.raises(InputError) as caught:
            read_coflowlib(path, instance="set_in002")
        assert str(caught.value) == f"{path}/{name}: line 9: field volume: 'x' is not a number"


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    one = {"deadline_s": [2.0], "ingress_bytes_per_s": [1.0], "egress_bytes_per_s": [1.0]}
    for changes, message in (
        ({"deadline_s": None}, "field deadline_s: 1 rows lack it"),
        ({"ingress_bytes_per_s": None}, "field ingress_bytes_per_s: 1 rows lack it"),
        ({"egress_bytes_per_s": None}, "field egress_bytes_per_s: 1 rows lack it"),
        ({"coflow_id": [-1]}, "field coflow_id: CoflowLib's format has no negative ids"),
    ):
        workload = make_coflow_workload("w", [0.0], [1], [0], [0], [1.0], 1, **(one | changes))
        with pytest.raises(InputError, match=message):
            write_coflowlib(workload, tmp_path / "w.txt")
        assert not (tmp_path / "w.txt").exists()
