import os
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.mutations import Mutant
from tests.workloads.strategies import coflows
from tests.workloads.text_mutations import Lines, check_refused, count_refused_flips, text_mutants, to_text
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
SMALL = """0
2

5 2 0.046 2.27387 1
51 1.12067 2 2 3

6 1 0.049 2.72733 2
61 1.12242 2 1 4
62 0.93087 2 1 4

4
1 1
2 2
3 1
4 0.5
"""


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


@settings(max_examples=60)
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


def test_a_folder_without_instances_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "LICENSE").write_text("x")
    with pytest.raises(InputError, match=r"holds no \.txt file"):
        read_coflowlib(tmp_path)
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "none")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0\n2\n", "", "line 2: field 2: the line has 5 fields; want 'type'"),
        ("0\n2\n", "0\n0\n", "line 2: field coflows: '0' is not a whole number from 1"),
        ("6 1 0.049", "5 1 0.049", "line 7: field id: coflow 5 occurs already in line 4"),
        ("6 1 0.049", "6 0 0.049", "line 7: field weight: is 0; want a number above 0"),
        ("6 1 0.049", "6 1 9.049", "line 7: field deadline: is before the arrival"),
        ("2.72733", "nan", "line 7: field deadline: 'nan' is not a number"),
        ("2.72733", "inf", "line 7: field deadline: 'inf' is not a number"),
        ("2.72733", "-1", "line 7: field deadline: '-1' is negative"),
        ("2.72733", "5e9", "line 7: field deadline: '5e9' is more than 4e+09"),
        ("6 1 0.049", "6 -1 0.049", "line 7: field weight: '-1' is negative"),
        ("6 1 0.049", "6 nan 0.049", "line 7: field weight: 'nan' is not a number"),
        ("6 1 0.049", "6 1 -0.1", "line 7: field arrival: '-0.1' is negative"),
        ("2.72733 2", "2.72733 3", "line 11: field volume: the line ends after 1 fields"),
        ("2.72733 2", "2.72733 1", "line 9: field 2: the line has 5 fields; want 'ports'"),
        ("2.72733 2", "2.72733 0", "line 7: field flows: '0' is not a whole number from 1"),
        ("0.93087 2 1 4", "0.93087 3 1 4", "line 9: field path: '3' is not a whole number from 2 to 2"),
        ("0.93087 2 1 4", "0.93087 2 1 5", "line 9: field egress: 5 is not an egress port, 3..4"),
        ("0.93087 2 1 4", "0.93087 2 1 2", "line 9: field egress: 2 is not an egress port, 3..4"),
        ("0.93087 2 1 4", "0.93087 2 3 4", "line 9: field ingress: 3 is not an ingress port, 1..2"),
        ("0.93087 2 1 4", "0 2 1 4", "line 9: field volume: is 0; want a number above 0"),
        ("0.93087 2 1 4", "0.93087 2 1 4 4", "line 9: field 6: the line has 6 fields; want"),
        ("4\n1 1", "3\n1 1", "line 11: field ports: 3 ports; there are as many egress as ingress"),
        ("2 2\n3 1", "3 1", "line 13: field port: port 2 is due"),
        ("4 0.5\n", "", "line 15: the file ends where 'port capacity' is due"),
        ("4 0.5\n", "4 0.5\n5 1\n", "line 16: more lines than there are ports"),
        ("4 0.5\n", "4 0\n", "line 15: field capacity: is 0; want a number above 0"),
    ],
)
def test_what_is_broken_is_named_by_file_line_and_field(tmp_path, old, new, message):
    path = tmp_path / "w.txt"
    assert old in SMALL
    path.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read_coflowlib(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def valid(rng: random.Random) -> Lines:
    machines = rng.randint(1, 4)
    coflows_ = rng.randint(1, 4)
    lines: list[list[object]] = [[rng.randint(0, 1)], [coflows_]]
    for coflow in range(1, coflows_ + 1):
        width = rng.randint(1, 4)
        arrival = round(rng.random(), 3)
        lines.append([coflow, 1, arrival, round(arrival + 0.5 + rng.random(), 5), width])
        for flow in range(1, width + 1):
            ports = rng.randint(1, machines), rng.randint(machines + 1, 2 * machines)
            lines.append([f"{coflow}{flow}", round(0.1 + rng.random(), 5), 2, *ports])
    lines += [[2 * machines], *([port, 1] for port in range(1, 2 * machines + 1))]
    return [[str(field).encode() for field in line] for line in lines]


def numbers(lines: Lines, row: int) -> list[int]:
    return list(range(len(lines[row])))


def test_100_mutants_are_refused_in_one_line_that_names_file_and_line(tmp_path):
    mutants = [*text_mutants("w.txt", valid, numbers=numbers)]
    rng = random.Random(1)
    for _ in range(20):  # wherever the file ends too early, the line that is due is named
        lines = valid(rng)
        keep = rng.randrange(1, len(lines))
        cut = to_text(lines[:keep])
        mutants.append(Mutant(f"cut after {keep} lines", {"w.txt": cut}, "w.txt", "w.txt", keep + 1))
    assert check_refused(mutants, read_coflowlib, tmp_path) >= 100
    for seed in range(5):
        (tmp_path / "w.txt").write_bytes(to_text(valid(random.Random(seed))))
        assert read_coflowlib(tmp_path / "w.txt").num_coflows >= 1


def test_flipped_bits_anywhere_give_coflows_or_an_input_error(tmp_path):
    data = to_text(valid(random.Random(0)))
    assert count_refused_flips(data, read_coflowlib, tmp_path / "w.txt") > 50


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


COUNTED = "0\n{}\n\n1 1 0.000 2.5 {}\n11 1.0 2 1 3\n12 1.0 2 2 3\n\n2 2 0.500 4.0 {}\n21 0.9 2 2 3\n\n{}"
PORTS = "4\n1 1\n2 1\n3 1\n4 1\n"


@pytest.mark.parametrize(
    ("coflows", "flows", "of_last", "line", "why"),
    [
        (2, 1, 1, 8, "coflow 1 states 1 as its flows, and the file 2 as its coflows: are there as many?"),
        (2, 3, 1, 8, "coflow 1 states 3 as its flows, and the file 2 as its coflows: are there as many?"),
        (1, 2, 1, 8, "coflow 1 states 2 as its flows, and the file 1 as its coflows: are there as many?"),
        (3, 2, 1, 11, "coflow 2 states 1 as its flows, and the file 3 as its coflows: are there as many?"),
        (2, 2, 2, 11, "coflow 2 states 2 as its flows, and the file 2 as its coflows: are there as many?"),
    ],
)
def test_a_count_that_is_wrong_is_named_as_that(tmp_path, coflows, flows, of_last, line, why):
    path = tmp_path / "a.txt"
    path.write_text(COUNTED.format(coflows, flows, of_last, PORTS))
    with pytest.raises(InputError) as caught:
        read_coflowlib(path)
    assert (caught.value.line, caught.value.message.endswith(why)) == (line, True)
    path.write_text(COUNTED.format(2, 2, 1, PORTS))
    assert read_coflowlib(path).num_flows == 3
