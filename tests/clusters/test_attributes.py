"""Attributes of nodes: how they are written, carried from descriptions to nodes, placed, and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_files import EVERYTHING, load_text, named
from hypothesis import given
from hypothesis import strategies as st
from python_process import run_python

from clusters import ATTRIBUTES, CLUSTER_SCHEMA, cluster_figures, describe_cluster, load_cluster
from clusters.cluster import build_cluster
from clusters.schema import find_attribute
from workloads.errors import InputError


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cores", "16", 16.0),
        ("cores", 0.5, 0.5),
        ("memory", "16 GiB", 2**34),
        ("port", "10 Gbps", 1e10),
        ("clock", "2.4 GHz", 2.4e9),
        ("clock", "800MHz", 8e8),
        ("clock", 3e9, 3e9),
        ("kernel", "3.10", 3_000010_000000),
        ("kernel", "3.10.2", 3_000010_000002),
        ("kernel", "6", 6_000000_000000),
        ("isa", " x86 ", "x86"),
        ("tags", "public-ip", "public-ip"),
        ("rack", "7", 7.0),
    ],
)
def test_values_are_written_with_their_units(name: str, text: object, value: object) -> None:
    parsed = ATTRIBUTES[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)
    assert find_attribute(ATTRIBUTES[name].column) is ATTRIBUTES[name]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("cores", "many", "cores: 'many' is not a number"),
        ("cores", "1_6", "cores: '1_6' is not a number"),
        ("cores", True, "cores: True is not a number"),
        ("cores", "inf", "cores: 'inf' is not a number"),
        ("memory", "16 Gb", "memory: '16 Gb' is not a size"),
        ("clock", "2.4 Gbps", "clock: '2.4 Gbps' is not a clock speed such as '2.4 GHz'"),
        ("clock", True, "clock: True is not a clock speed"),
        ("kernel", 3.10, "kernel: 3.1 is not a version in quotes, of up to three numbers such as '3.10'"),
        ("kernel", "3.10-rc1", "kernel: '3.10-rc1' is not a version"),
        ("isa", "", "isa: '' is not a name"),
        ("isa", 86, "isa: 86 is not a name"),
        ("tags", "a b", "tags: 'a b' is more than one name"),
    ],
)
def test_values_that_are_none_are_named(name: str, text: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        ATTRIBUTES[name].parse(text)
    assert str(error.value).startswith(message)


def test_an_unknown_attribute_is_named() -> None:
    cluster = load_cluster("homogeneous", 3)
    for call in (find_attribute, cluster.attribute, cluster.attribute_names):
        with pytest.raises(InputError, match="'core' is not an attribute of nodes; did you mean 'cores'"):
            call("core")


VERSIONS = st.lists(st.integers(0, 999), min_size=1, max_size=3)


@given(VERSIONS, VERSIONS)
def test_versions_compare_part_by_part(one: list[int], other: list[int]) -> None:
    kernel = ATTRIBUTES["kernel"]
    coded = [kernel.parse(".".join(map(str, v))) for v in (one, other)]
    padded = [v + [0] * (3 - len(v)) for v in (one, other)]
    assert (coded[0] < coded[1], coded[0] == coded[1]) == (padded[0] < padded[1], padded[0] == padded[1])
    assert [kernel.parse(kernel.show(c)) for c in coded] == coded
    assert [int(float(c)) for c in coded] == coded  # exact in a float64 too


def test_a_homogeneous_cluster_has_the_default_of_everything() -> None:
    cluster = load_cluster("homogeneous", 5, slots=2)
    for name, attribute in ATTRIBUTES.items():
        values = cluster.attribute(name)
        assert values.shape == (5,)
        assert not values.flags.writeable
        assert len(np.unique(values)) == 1
        if attribute.default is not None and name != "slots":
            texts = cluster.attribute_names(name)
            assert (texts[values[0]] if texts else values[0]) == attribute.default
    assert (cluster.attribute("cores")[0], cluster.attribute("memory_bytes")[0]) == (2, 2**33)
    assert CLUSTER_SCHEMA.names[1:] == [a.column for a in ATTRIBUTES.values()]
    assert len(cluster_figures(cluster)["attributes"]) == len(ATTRIBUTES) - 1


def test_a_machine_type_gives_every_attribute(tmp_path: Path) -> None:
    cluster = load_text(tmp_path, EVERYTHING)
    big = cluster.table.slice(0, 1).to_pylist()[0]
    assert big == {
        "node_id": 0, "slots": 4, "rack": 0, "cpu_cores": 16.0, "memory_bytes": 2**36, "port_bps": 1e10,
        "machine_type": "big", "isa": "arm", "cpus": 2, "min_disks": 2, "max_disks": 12,
        "kernel": 3_000010_000002, "platform": "C", "clock_hz": 2.6e9, "accelerator": "gpu", "speed": 1.5,
        "price_per_hour": 0.35,
        "tags": "public-ip ssd",
    }  # fmt: skip
    other = cluster.table.slice(4, 1).to_pylist()[0]
    assert (other["clock_hz"], other["max_disks"], other["tags"], other["isa"]) == (3e9, 5, "ssd", "x86")
    path = tmp_path / "nodes.parquet"
    pq.write_table(cluster.table, path)
    assert load_cluster(path).table.equals(cluster.table)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('kernel = "new"', "field machines[0].kernel: 'new' is not a version"),
        ("kernel = 3.10", "field machines[0].kernel: 3.1 is not a version in quotes"),
        ('clock = "fast"', "field machines[0].clock: 'fast' is not a clock speed"),
        ("clock = 0", "field machines[0].clock: 0 is not a clock speed above 0"),
        ("speed = 0", "field machines[0].speed: 0 is not a number above 0"),
        ("speed = inf", "field machines[0].speed: inf is not a number"),
        ("cpus = 0", "field machines[0].cpus: 0 is not a whole number from 1"),
        ("cores = -1", "field machines[0].cores: -1 is not a number, 0 or more"),
        ("cores = 4\ncpu_cores = 4", "field machines[0].cpu_cores: is given as 'cores' too"),
        ("min_disks = 4\nmax_disks = 2", "field machines[0].max_disks: 2 is below min_disks, 4"),
        ("isa = 86", "field machines[0].isa: 86 is not a name"),
        ("tags = 3", "field machines[0].tags: 3 is not a list of names"),
        ('tags = ["a b"]', "field machines[0].tags: 'a b' is more than one name"),
        ("rack = 3", "field machines[0].rack: no such key"),
        ('memory = "9 EiB"', "field machines[0].memory: '9 EiB' is not a size"),
        ("memory = 9223372036854775808", "field machines[0].memory: 9223372036854775808 is not a size below"),
        ('kernal = "3.10"', "field machines[0].kernal: no such key; did you mean 'kernel'"),
    ],
)
def test_what_is_wrong_in_a_machine_type_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_text(tmp_path, f"[[machines]]\ncount = 1\n{line}\n")
    assert str(error.value).startswith(f"{tmp_path / 'c.toml'}: {message}")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"kernel": ["3.10", "new"]}, "line 2: field kernel: 'new' is not a version"),
        ({"kernel": [1, -1]}, "line 2: field kernel: -1 is not a coded version"),
        ({"isa": ["x86", ""]}, "line 2: field isa: '' is not a name"),
        ({"isa": [1, 2]}, "field isa: has type int64, want dictionary"),
        ({"speed": [1.0, 0.0]}, "line 2: field speed: 0.0 is not a number above 0"),
        ({"cpus": ["1", "2"]}, "field cpus: has type string, want int64"),
        ({"max_disks": [1, 0]}, "line 2: field max_disks: 0 is not as many as min_disks"),
        ({"tags": ["a", None]}, "line 2: field tags: is null"),
    ],
)
def test_what_is_wrong_in_a_table_of_attributes_is_named(
    tmp_path: Path, columns: dict[str, object], message: str
) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"slots": [1, 1], **columns}), path)
    with pytest.raises(InputError) as error:
        load_cluster(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_a_table_gives_versions_and_tags_as_text(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    columns = {"slots": [1, 1, 1], "kernel": ["3.10", "5.4", "3.10"], "tags": ["b a", "", "a  b"]}
    pq.write_table(pa.table(columns), path)
    cluster = load_cluster(path)
    assert [ATTRIBUTES["kernel"].show(k) for k in cluster.attribute("kernel")] == ["3.10", "5.4", "3.10"]
    assert named(cluster, "tags") == ["a b", "", "a b"]


def test_attributes_of_the_users_own(tmp_path: Path) -> None:
    text = (
        '[[machines]]\ncount = 2\n"attr:os" = "a b"\n"attr:n" = 8\n[[machines]]\ncount = 1\n"attr:n" = 2.5\n'
    )
    cluster = load_text(tmp_path, text)
    assert named(cluster, "attr:os") == ["a b", "a b", ""]
    assert named(cluster, "attr:n") == ["8", "8", "2.5"]
    assert named(cluster, "attr:unknown") == ["", "", ""]
    assert cluster.table.schema.names == [*CLUSTER_SCHEMA.names, "attr:os", "attr:n"]
    path = tmp_path / "nodes.parquet"
    pq.write_table(cluster.table, path)
    assert load_cluster(path).table.equals(cluster.table)
    columns = {
        "slots": [1, 1, 1],
        "attr:os": ["a b", "a b", None],
        "attr:n": pa.array([8, None, 3], pa.int32()),
    }
    pq.write_table(pa.table(columns), path)
    assert named(load_cluster(path), "attr:os") == ["a b", "a b", ""]
    assert named(load_cluster(path), "attr:n") == ["8", "", "3"]
    own = cluster_figures(cluster)["attributes"]["attr:os"]
    assert [(v["text"], v["nodes"]) for v in own["values"]] == [("a b", 2), ("none", 1)]
    assert ["attr:n", "8", "2", "66.67", "%"] in [
        line.split() for line in describe_cluster(cluster).splitlines()
    ]


def test_what_is_wrong_in_an_attribute_of_the_users_own_is_named(tmp_path: Path) -> None:
    for line, message in (
        ('"attr:n" = true', "machines[0].attr:n: True is neither a text nor a number"),
        ('"attr:n n" = 1', "machines[0].attr:n n: no such key"),
    ):
        with pytest.raises(InputError) as error:
            load_text(tmp_path, f"[[machines]]\ncount = 1\n{line}\n")
        assert f"field {message}" in str(error.value)
    path = tmp_path / "nodes.parquet"
    for columns, message in (
        ({"attr:n": [[1]]}, "field attr:n: has type list<element: int64>, want text or numbers"),
        ({"attr:n=": ["1"]}, "field attr:n=: no such key"),
    ):
        pq.write_table(pa.table({"slots": [1], **columns}), path)
        with pytest.raises(InputError) as error:
            load_cluster(path)
        assert message in str(error.value)


def test_a_cluster_is_built_from_columns() -> None:
    cluster = build_cluster("c", [1, 2], isa=["arm", "x86"], speed=[1, 2], accelerator="gpu", cpus=2)
    assert named(cluster, "isa") == ["arm", "x86"]
    assert named(cluster, "accelerator") == ["gpu", "gpu"]
    assert cluster.attribute("cpus").tolist() == [2, 2]
    with pytest.raises(TypeError, match="colour"):
        build_cluster("c", [1, 2], colour="red")


READ = """
from clusters import load_cluster
from workloads.errors import InputError
try:
    load_cluster({path!r})
except InputError as error:
    print(error)
"""


def test_a_footer_that_ends_pyarrow_is_refused_in_a_line(tmp_path: Path) -> None:
    """Statistics of texts that a damaged footer gives a column of numbers: looking at them ends the process."""
    path = tmp_path / "nodes.parquet"
    table = pa.table({"slots": pa.array([b"12345678"] * 4, pa.binary())})
    pq.write_table(table, path, store_schema=False, use_dictionary=False, compression="none")
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[begin:].replace(b"\x15\x0c", b"\x15\x04")  # type: BYTE_ARRAY to INT64
    path.write_bytes(data[:begin] + footer)
    found = run_python(READ.format(path=str(path)))
    assert "nodes.parquet: is not a Parquet file that can be read (Unencoded byte array" in found


def test_a_column_of_lists_is_not_read(tmp_path: Path) -> None:
    """However few rows there are, it may have any number of values."""
    path = tmp_path / "nodes.parquet"
    many = pa.ListArray.from_arrays(pa.array([0, 3_000_000]), pa.array(np.zeros(3_000_000, np.int64)))
    pq.write_table(pa.table({"slots": [1], "attr:n": many}), path)
    with pytest.raises(InputError, match=r"field attr:n: has type list<.*>, want text or numbers"):
        load_cluster(path)
