"""Orders of machine types: the same nodes, in blocks, by racks, or shuffled by the seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters import load_cluster
from tests.clusters.cluster_files import load_text, named
from workloads.errors import InputError


def described(counts: list[int], order: str, rack_size: int) -> str:
    entries = (
        f'[[machines]]\ntype = "t{i}"\ncount = {c}\ncores = {i + 1}\nisa = "isa{i % 2}"\n'
        for i, c in enumerate(counts)
    )
    return f'order = "{order}"\nrack_size = {rack_size}\n' + "".join(entries)


@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any),
    order=st.sampled_from(["blocks", "racks", "shuffled"]),
    rack_size=st.integers(1, 12),
    seed=st.integers(0, 2**64 - 1),
    nodes=st.none() | st.integers(1, 200),
)
@settings(deadline=None)
def test_any_order_has_the_same_nodes(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[int],
    order: str,
    rack_size: int,
    seed: int,
    nodes: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    blocks = load_text(folder, described(counts, "blocks", rack_size), nodes)
    cluster = load_text(folder, described(counts, order, rack_size), nodes, seed)
    types, cores = named(cluster, "type"), cluster.attribute("cores").tolist()
    total = nodes or sum(counts)
    exact = [c * total / sum(counts) for c in counts]
    have = Counter(types)
    assert cluster.num_nodes == total
    assert all(abs(have[f"t{i}"] - e) < 1 for i, e in enumerate(exact))
    assert have == Counter(named(blocks, "type"))
    for name, core, isa in zip(types, cores, named(cluster, "isa"), strict=True):  # attributes go together
        assert (core, isa) == (int(name[1:]) + 1, f"isa{int(name[1:]) % 2}")
    racks = cluster.racks()
    assert np.all(np.diff(racks) >= 0)
    assert Counter(np.bincount(racks)) == Counter(np.bincount(blocks.racks()))
    if order == "racks":  # every rack is one of those of the blocks
        content = [
            sorted(tuple(np.array(named(c, "type"))[c.racks() == r].tolist()) for r in np.unique(c.racks()))
            for c in (cluster, blocks)
        ]
        assert content[0] == content[1]
    assert load_text(folder, described(counts, order, rack_size), nodes, seed).table.equals(cluster.table)


def test_seeds_order_nodes_differently(tmp_path: Path) -> None:
    for order, differ in (("blocks", 1), ("racks", 8), ("shuffled", 8)):
        text = described([100, 100], order, 10)
        found = {tuple(load_text(tmp_path, text, seed=s).attribute("cores").tolist()) for s in range(8)}
        assert len(found) == differ
    with pytest.raises(InputError, match=r"field order: 'random' is not an order of machine types; known"):
        load_text(tmp_path, 'order = "random"\n[[machines]]\ncount = 1\n')
    for seed in (-1, 2**64, 1.5):
        with pytest.raises(InputError, match="field seed"):
            load_cluster("homogeneous", 3, seed=seed)
