import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters import CLUSTER_SCHEMA, describe_cluster, load_cluster, presets
from workloads.errors import InputError

TWO_TYPES = """
description = "two generations"
rack_size = 10
[[machines]]
type = "old"
count = 30
slots = 2
[[machines]]
type = "new"
count = 60
slots = 8
cpu_cores = 16
memory = "64 GiB"
port = "10 Gbps"
"""


@pytest.fixture
def two_types(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TWO_TYPES)
    return path


def test_the_preset_is_equal_nodes_in_racks():
    cluster = load_cluster("homogeneous", 100)
    assert (cluster.name, cluster.num_nodes, cluster.total_slots, cluster.max_slots) == (
        "homogeneous",
        100,
        100,
        1,
    )
    assert cluster.racks().tolist() == [0] * 40 + [1] * 40 + [2] * 20
    assert cluster.table.schema.equals(CLUSTER_SCHEMA, check_metadata=True)
    assert cluster.table["node_id"].to_pylist() == list(range(100))
    assert cluster.table["cpu_cores"][0].as_py() == 1.0
    assert load_cluster("homogeneous", 3, slots=4).slots().tolist() == [4, 4, 4]
    assert CLUSTER_SCHEMA.field("port_bps").metadata[b"unit"] == b"bit/s"


def test_arrays_are_read_only_int64_and_clusters_pickle():
    cluster = load_cluster("homogeneous", 10)
    for array in (cluster.slots(), cluster.racks()):
        assert array.dtype == np.int64
        assert not array.flags.writeable
    assert pickle.loads(pickle.dumps(cluster)).table.equals(cluster.table)


@pytest.mark.parametrize(
    ("nodes", "long_partition", "short_only"),
    [
        (4610, 0.98, 92),
        (15000, 0.98, 300),
        (15000, 0.83, 2550),
        (100, 0.83, 17),
        (1000, 0.9, 100),
        (9408, 0.83, 1599),
        (10, 1.0, 0),
        (10, 0.0, 10),
        (1, 0.98, 0),
    ],
)
def test_the_short_partition_is_rounded_down(nodes, long_partition, short_only):
    assert load_cluster("homogeneous", nodes).partition(long_partition) == short_only


@given(st.integers(1, 20000), st.integers(0, 100))
def test_whole_percentages_are_exact(nodes, percent):
    cluster = load_cluster("homogeneous", nodes)
    assert cluster.partition(percent / 100) == (100 - percent) * nodes // 100


def test_a_partition_is_a_share():
    for wrong in (98, -0.1, float("nan")):
        with pytest.raises(InputError, match="is not a share"):
            load_cluster("homogeneous", 10).partition(wrong)


def test_machine_types_lie_in_the_order_of_the_file(two_types):
    cluster = load_cluster(two_types)
    assert cluster.num_nodes == 90
    assert cluster.slots().tolist() == [2] * 30 + [8] * 60
    assert cluster.racks().tolist() == [i // 10 for i in range(90)]
    old, new = cluster.table.slice(0, 1).to_pylist()[0], cluster.table.slice(89, 1).to_pylist()[0]
    assert (old["machine_type"], old["cpu_cores"], old["memory_bytes"], old["port_bps"]) == (
        "old",
        2,
        2 * 4 * 2**30,
        1e9,
    )
    assert (new["machine_type"], new["cpu_cores"], new["memory_bytes"], new["port_bps"]) == (
        "new",
        16,
        2**36,
        1e10,
    )


def test_machine_types_scale_by_largest_remainder(two_types, tmp_path):
    assert np.bincount(load_cluster(two_types, 100).slots())[[2, 8]].tolist() == [33, 67]
    assert load_cluster(two_types, 90).slots().tolist() == load_cluster(two_types).slots().tolist()
    assert set(load_cluster(two_types, 9, slots=3).slots().tolist()) == {3}
    shares = tmp_path / "shares.toml"
    shares.write_text('[[machines]]\nshare = "40%"\ntype = "a"\n[[machines]]\nshare = 0.6\ntype = "b"\n')
    kinds = load_cluster(shares, 7).table["machine_type"].to_pylist()
    assert kinds == ["a"] * 3 + ["b"] * 4
    with pytest.raises(InputError, match="by share need a number of nodes"):
        load_cluster(shares)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("machines = [", "is not TOML"),
        ("", "field machines: want one or more"),
        ("[[machine]]\ncount = 1", r"field machine: no such key; did you mean 'machines'"),
        ("[[machines]]\ncount = 1\nslot = 2", r"field machines\[0\].slot: no such key; did you mean 'slots'"),
        ("[[machines]]\ncount = 0", "field machines: 0 is not a whole number"),
        ("[[machines]]\ncount = 1.5", r"field machines\[0\].count: 1.5 is not a whole number"),
        ("[[machines]]\nslots = 1", "every entry needs a count, or every entry a share"),
        ("[[machines]]\ncount = 1\nslots = 0", r"field machines\[0\].slots: 0 is not"),
        ("[[machines]]\ncount = 1\nslots = true", r"field machines\[0\].slots: True is not"),
        ('[[machines]]\ncount = 1\nmemory = "4 Gb"', r"machines\[0\].memory: '4 Gb' is not a size"),
        ('[[machines]]\ncount = 1\nport = "fast"', r"machines\[0\].port: 'fast' is not a speed"),
        ("[[machines]]\ncount = 1\nport = 0", "speed above 0"),
        ("[[machines]]\ncount = 1\ncpu_cores = nan", "field machines.0..cpu_cores: nan"),
        ("[[machines]]\ncount = 1\ntype = 3", "field machines.0..type: 3 is not a name"),
        ("rack_size = 0\n[[machines]]\ncount = 1", "field rack_size: 0"),
        ("[[machines]]\nshare = 0.5", "shares add up to 0.5, want 1"),
        ("[[machines]]\nshare = 50", r"machines\[0\].share: 50 is more than the whole"),
    ],
)
def test_what_is_wrong_in_a_description_is_named(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_cluster(path, 10 if "share" in text else None)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "nodes", "message"),
    [
        ("homogenous", 10, "unknown cluster 'homogenous'; did you mean 'homogeneous'"),
        ("none.toml", 10, "none.toml: no such file"),
        ("homogeneous", None, "needs a number of nodes"),
        ("homogeneous", 0, "field nodes: 0 is not a whole number from 1 to 10,000,000"),
        ("homogeneous", 10_000_001, "field nodes"),
        ("homogeneous", 1.5, "field nodes"),
        ("homogeneous", True, "field nodes"),
        ("x" * 300, 1, "cannot be read|unknown cluster"),
        (".", 1, "holds no machines; want a .toml or .parquet file"),
    ],
)
def test_what_is_no_cluster_is_named(name, nodes, message):
    with pytest.raises(InputError, match=message):
        load_cluster(name, nodes)


def test_a_table_of_nodes_is_read_and_defaults_fill_it(tmp_path):
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"slots": pa.array([1, 4], pa.int32()), "machine_type": ["a", "b"]}), path)
    cluster = load_cluster(path)
    assert cluster.slots().tolist() == [1, 4]
    assert cluster.table["cpu_cores"].to_pylist() == [1.0, 4.0]
    assert cluster.table["machine_type"].to_pylist() == ["a", "b"]
    whole = tmp_path / "whole.parquet"
    pq.write_table(cluster.table, whole)
    assert load_cluster(whole, 2).table.equals(cluster.table)


@pytest.mark.parametrize(
    ("columns", "nodes", "message"),
    [
        ({"rack": [1, 2]}, None, "field slots: no such column"),
        ({"slots": [1, 0]}, None, "line 2: field slots: 0 is not a number from 1"),
        ({"slots": [1, None]}, None, "line 2: field slots: is null"),
        ({"slots": ["1", "2"]}, None, "field slots: has type string, want int64"),
        ({"slots": [1, 1], "rack": [0, -1]}, None, "line 2: field rack: -1"),
        ({"slots": [1, 1], "node_id": [1, 0]}, None, "line 1: field node_id: 1 is not 0, 1, 2"),
        ({"slots": [1, 1], "port_bps": [1.0, float("nan")]}, None, "line 2: field port_bps: nan"),
        ({"slots": [1, 1], "colour": [1, 1]}, None, "field colour: no such key"),
        ({"slots": pa.array([], pa.int64())}, None, "field nodes: 0 is not"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(tmp_path, columns, nodes, message):
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=message) as caught:
        load_cluster(path, nodes)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_damaged_table_is_named(tmp_path):
    path = tmp_path / "nodes.parquet"
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match="is not a Parquet file"):
        load_cluster(path)


def test_clusters_are_listed_and_described(two_types):
    assert list(presets()) == [
        "homogeneous",
        "carbyne",
        "google-2011",
        "phoenix",
        "phoenix-shuffled",
        "sharma",
    ]  # the default first
    assert presets()["homogeneous"] == "equal nodes of one slot each, racks of 40"
    lines = describe_cluster(load_cluster(two_types)).splitlines()
    assert lines[0] == "two: 90 nodes, 540 slots, 9 racks"
    assert lines[1] == "  all nodes together: 1,020 cores, 4,080 GiB of memory"
    assert lines[3].split() == ["old", "30", "2", "2", "8", "1"]
    assert lines[4].split() == ["new", "60", "8", "16", "64", "10"]
