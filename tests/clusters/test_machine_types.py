"""Machine types of clusters: a number of each, tables scaled to any number of nodes, nodes that are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters import load_cluster
from clusters.capacity import capacity
from clusters.cluster import without
from clusters.description import scaled
from clusters.machine_types import (
    counts_text,
    machine_counts,
    machines_text,
    price_of,
    read_counts,
    read_prices,
)
from workloads.errors import InputError

TYPES = """
order = "shuffled"
[[machines]]
type = "small"
share = "90%"
slots = 2
memory = "8 GiB"
[[machines]]
type = "big, fast"
share = "10%"
slots = 8
memory = "64 GiB"
"""


@pytest.fixture
def types(tmp_path: Path) -> Path:
    path = tmp_path / "types.toml"
    path.write_text(TYPES)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six nodes: types a, b, a, a, b, a, each with a licence of its own."""
    path = tmp_path / "nodes.parquet"
    columns = {
        "slots": [1, 4, 1, 1, 4, 1],
        "rack": [0, 0, 0, 1, 1, 1],
        "machine_type": list("abaaba"),
        "attr:licence": list("uvwxyz"),
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_a_number_of_nodes_of_each_type(types: Path) -> None:
    cluster = load_cluster(types, machines={"big, fast": 3, "small": 1}, seed=4)
    assert machine_counts(cluster) | {"small": 1, "big, fast": 3} == machine_counts(cluster)
    assert sorted(cluster.slots().tolist()) == [2, 8, 8, 8]
    assert machine_counts(load_cluster(types, machines={"small": 2})) == {"small": 2}
    types.write_text(TYPES.replace("type =", "machine_type ="))  # the same key by its column's name
    assert machine_counts(load_cluster(types, machines={"small": 2})) == {"small": 2}
    with pytest.raises(InputError, match="there is no machine type 'bog'; known: big, fast, small"):
        load_cluster(types, machines={"bog": 2})
    with pytest.raises(InputError, match="the nodes of phoenix are drawn; it has no machine types"):
        load_cluster("phoenix", machines={"standard": 2})
    types.write_text(TYPES.replace("big, fast", "small"))
    with pytest.raises(InputError, match="2 entries are of type 'small'; give each a type of its own"):
        load_cluster(types, machines={"small": 2})


def test_counts_are_read_as_they_are_written() -> None:
    assert read_counts(" big, fast = 3,small=1") == {"big, fast": 3, "small": 1}
    assert read_counts(counts_text({"B 0.50/0.25": 2, "x=y": 0})) == {"B 0.50/0.25": 2, "x=y": 0}
    for wrong in ("small", "small=x", "small=1, small=2", "small=0", "=3", "small=1.5", ""):
        with pytest.raises(InputError, match=r"^machines: "):
            read_counts(wrong)


def test_shares_of_memory_are_of_the_largest_machine_that_is_described(types: Path) -> None:
    assert capacity(load_cluster(types, 4), "memory").tolist() == [8 / 64] * 4  # too few for one that is big
    assert capacity(load_cluster(types, machines={"small": 2}), "memory").tolist() == [8 / 64] * 2
    assert capacity(load_cluster("homogeneous", 2, slots=3), "memory").tolist() == [1.0, 1.0]


def test_machines_of_one_type_that_differ_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text("[[machines]]\ncount = 2\ncores = 4\n[[machines]]\ncount = 1\ncores = 8\nslots = 2\n")
    counts = machine_counts(load_cluster(path))
    assert counts == {"standard (1 slot, 4 cores, 4 GiB)": 2, "standard (2 slots, 8 cores, 8 GiB)": 1}
    assert machines_text(counts).startswith("2 standard (1 slot, 4 cores, 4 GiB) and 1 standard (2 slots")


def test_a_table_is_scaled_in_proportion(table: Path) -> None:
    whole = load_cluster(table, 6)
    assert whole.attribute_names("attr:licence") == tuple("uvwxyz")
    assert whole.notes == ()
    assert machine_counts(load_cluster(table, 3)) == {"a": 2, "b": 1}
    made = load_cluster(table, 12)
    assert machine_counts(made) == {"a": 8, "b": 4}
    assert made.racks().tolist() == [0, 2, 0, 2, 0, 2, 1, 3, 1, 3, 1, 3]  # a copy is in a rack of its own
    asked = load_cluster(table, machines={"b": 3, "a": 2})
    assert machine_counts(asked) | {"a": 2, "b": 3} == machine_counts(asked)
    with pytest.raises(InputError, match="there is no machine type 'c'; known: a, b"):
        load_cluster(table, machines={"c": 3})


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 90))
def test_each_kind_is_within_one_of_its_share(kinds: list[int], nodes: int) -> None:
    made = scaled({"slots": np.array(kinds) + 1}, nodes)["slots"]
    assert made.size == nodes
    for kind in set(kinds):
        share = kinds.count(kind) * nodes / len(kinds)
        assert abs(int((made == kind + 1).sum()) - share) < 1


def test_missing_nodes_are_drawn_and_the_others_stay(table: Path) -> None:
    whole = load_cluster(table, 60)
    less = without(whole, 0.05, seed=3)
    assert (less.num_nodes, less.missing, less.largest) == (57, 3, whole.largest)
    assert less.table["node_id"].to_pylist() == list(range(57))
    assert less.notes[-1] == "3 of 60 nodes are missing, drawn with seed 3"
    left = less.table.drop_columns("node_id").to_pylist()
    rows = iter(whole.table.drop_columns("node_id").to_pylist())
    assert all(row in rows for row in left)  # in their order
    drawn = {str(without(whole, 0.05, seed).table) for seed in range(5)}
    assert len(drawn) > 1
    assert without(whole, 0.001, seed=3).missing == 1
    with pytest.raises(InputError, match=r"0\.5 of 1 nodes leaves none"):
        without(load_cluster("homogeneous", 1), 0.5, seed=1)


def test_prices_and_counts_are_read_alike() -> None:
    assert read_prices("big, fast=3, small = 1", "--price") == {"big, fast": 3.0, "small": 1.0}
    assert read_counts("big, fast=3, small = 1") == {"big, fast": 3, "small": 1}
    with pytest.raises(InputError, match=r"^--price: .*: 'small' is given twice"):
        read_prices("small=1, small=2", "--price")


def test_a_price_is_known_where_that_of_each_node_is(tmp_path: Path) -> None:
    path = tmp_path / "half.toml"
    entries = ["slots = 4\ncount = 2\nprice_per_hour = 1.0", "slots = 8\ncount = 2"]
    path.write_text("".join(f'[[machines]]\ntype = "plain"\n{entry}\n' for entry in entries))
    cluster = load_cluster(path)
    assert price_of(cluster, {}) is None
    assert price_of(cluster, {"plain": 2.0}) == 8.0
