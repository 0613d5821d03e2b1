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
