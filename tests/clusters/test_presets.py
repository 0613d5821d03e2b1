"""Presets of clusters beside what is published of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters import ATTRIBUTES, describe_cluster, load_cluster, presets
from clusters.drawn import PHOENIX_SUPPLY, SHARMA_SHARES
from clusters.matching import satisfies
from workloads.errors import InputError
from workloads.generators.constraints import MODELS

# Reiss et al., SoCC 2012, Table 1: machines, platform, CPU, memory.
GOOGLE = [
    (6732, "B", 0.50, 0.50),
    (3863, "B", 0.50, 0.25),
    (1001, "B", 0.50, 0.75),
    (795, "C", 1.00, 1.00),
    (126, "A", 0.25, 0.25),
    (52, "B", 0.50, 0.12),
    (5, "B", 0.50, 0.03),
    (5, "B", 0.50, 0.97),
    (3, "C", 1.00, 0.50),
    (1, "B", 0.50, 0.06),
]
# Phoenix's simulator: share of the nodes that satisfy each kind of constraint.
PHOENIX = {
    "cores": 0.60,
    "max_disks": 0.20,
    "min_disks": 0.45,
    "cpus": 0.75,
    "kernel": 0.69,
    "clock": 0.22,
    "port": 0.58,
}


def test_google_2011_has_the_published_machines() -> None:
    cluster = load_cluster("google-2011", 12_583)
    platforms = cluster.attribute_names("platform")
    have = Counter(
        (platforms[p], round(c / 16, 2), int(100 * m / 2**36) / 100)
        for p, c, m in zip(
            cluster.attribute("platform"),
            cluster.attribute("cores"),
            cluster.attribute("memory"),
            strict=True,
        )
    )
    as_rounded = {0.96: 0.97}  # 31/32, which the table rounds up
    assert {(p, c, as_rounded.get(m, m)): n for (p, c, m), n in have.items()} == {
        (p, c, m): n for n, p, c, m in GOOGLE
    }
    assert set(cluster.slots().tolist()) == {1}


def test_google_2011_has_every_machine_type_among_the_first_nodes() -> None:
    cluster = load_cluster("google-2011", 15_000, seed=3)
    short = cluster.attribute("memory")[: cluster.partition(0.83)]
    counts = dict(zip(*(a.tolist() for a in np.unique(short, return_counts=True)), strict=True))
    assert abs(counts[2**35] / len(short) - 6735 / 12583) < 0.05
    assert load_cluster("google-2011", 15_000, seed=3).table.equals(cluster.table)
    assert not load_cluster("google-2011", 15_000, seed=4).table.equals(cluster.table)


@given(nodes=st.integers(1, 3000), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_phoenix_has_the_published_supply(nodes: int, seed: int) -> None:
    cluster = load_cluster("phoenix", nodes, seed=seed)
    assert {s.attribute for s in PHOENIX_SUPPLY} == set(PHOENIX)
    for supply in PHOENIX_SUPPLY:
        high = ATTRIBUTES[supply.attribute].parse(supply.high)
        satisfying = cluster.attribute(supply.attribute) >= high
        assert satisfying.sum() == max(round(PHOENIX[supply.attribute] * nodes), 1)
        starts = np.flatnonzero(satisfying & ~np.roll(satisfying, 1))
        assert len(starts) == (0 if satisfying.all() else 1)  # one range, around the end at most
        assert all(starts <= supply.offset_share * nodes)
    assert cluster.attribute_names("isa") == ("x86",)
    assert np.all(cluster.attribute("max_disks") >= cluster.attribute("min_disks"))
    assert load_cluster("phoenix", nodes, seed=seed).table.equals(cluster.table)


def test_phoenix_and_sharma_supply_what_their_models_of_jobs_ask_for() -> None:
    supply = {
        "phoenix": [1.0, *(PHOENIX[n] for n in ("cores", "max_disks", "min_disks", "cpus"))],
        "sharma": [],
    }
    supply["phoenix"] += [PHOENIX[n] for n in ("kernel", "clock", "port")]
    supply["sharma"] += SHARMA_SHARES
    for name, shares in supply.items():
        cluster = load_cluster(name, 1000)
        constraints = [one for asked in MODELS[name].items for one in asked]
        assert [satisfies(cluster, c).sum() for c in constraints] == [round(1000 * s) for s in shares]


def test_shuffled_every_part_of_the_cluster_has_its_share_of_the_supply() -> None:
    runs, shuffled = (load_cluster(name, 8000, seed=2) for name in ("phoenix", "phoenix-shuffled"))
    for supply in PHOENIX_SUPPLY:
        values = shuffled.attribute(supply.attribute)
        assert np.array_equal(np.sort(values), np.sort(runs.attribute(supply.attribute)))
        parts = (values == values.max()).reshape(8, 1000).mean(axis=1)
        assert np.all(np.abs(parts - supply.share) < 0.08)  # five standard errors


def test_offsets_of_phoenix_are_drawn_apart() -> None:
    starts = []
    for seed in range(60):
        cluster = load_cluster("phoenix", 1000, seed=seed)
        starts.append([int(np.argmax(cluster.attribute(n) == cluster.attribute(n).max())) for n in PHOENIX])
    offsets = np.array(starts) / ([1000 * s.offset_share for s in PHOENIX_SUPPLY])
    assert np.all(np.abs(offsets.mean(axis=0) - 0.5) < 0.2)  # the standard error is 0.04
    assert np.all(np.abs(np.corrcoef(offsets.T) - np.eye(len(PHOENIX))) < 0.6)


@given(nodes=st.integers(1, 2000), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_sharma_has_the_published_shares(nodes: int, seed: int) -> None:
    cluster = load_cluster("sharma", nodes, seed=seed)
    sets = [set(names.split()) for names in cluster.attribute_names("tags")]
    codes = cluster.attribute("tags")
    for tag, share in enumerate(SHARMA_SHARES, 1):
        has = np.array([f"a{tag}" in s for s in sets])[codes]
        assert has.sum() == max(round(share * nodes), 1)


def test_sharma_is_as_varied_as_published() -> None:
    """Of 10,000 machines the public simulator has 8,642 distinct sets, 9.64 tags each."""
    cluster = load_cluster("sharma", 10_000)
    sizes = np.array([len(names.split()) for names in cluster.attribute_names("tags")])
    assert abs(sizes[cluster.attribute("tags")].mean() - 9.64) < 0.005
    assert abs(len(sizes) - 8642) < 100
    assert not load_cluster("sharma", 10_000, seed=1).table.equals(cluster.table)


def test_presets_need_a_number_of_nodes_and_take_slots() -> None:
    for name, about in presets().items():
        assert 0 < len(about) <= 100
        with pytest.raises(InputError, match=f"the preset '{name}' needs a number of nodes"):
            load_cluster(name)
        cluster = load_cluster(name, 50, slots=3)
        assert (cluster.name, cluster.total_slots) == (name, 150)
        assert max(map(len, describe_cluster(cluster).splitlines())) <= 120
    with pytest.raises(InputError, match="unknown cluster 'phenix'; did you mean 'phoenix'"):
        load_cluster("phenix", 5)
