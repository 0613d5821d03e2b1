"""Attributes of nodes: how they are written, carried from descriptions to nodes, placed, and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters import ATTRIBUTES, CLUSTER_SCHEMA, cluster_figures, describe_cluster, load_cluster
from clusters.cluster import build_cluster
from clusters.schema import find_attribute
from tests.clusters.cluster_files import EVERYTHING, load_text, named
from tests.python_process import run_python
from workloads.errors import InputError


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
