"""Presets with random nodes: the share of nodes with an attribute is published, the nodes are drawn.

An attribute has two levels, of which the published share of nodes has the higher one: ``cores >= 16`` is satisfied by
60 % of the nodes of `phoenix`.

References
----------
.. [1] P. Thinakaran, J. R. Gunasekaran, B. Sharma, M. T. Kandemir, C. R. Das, "Phoenix: A Constraint-Aware
   Scheduler for Heterogeneous Datacenters", ICDCS 2017. The table of supply is from the authors' released
   simulator.
.. [2] B. Sharma, V. Chudnovsky, J. L. Hellerstein, R. Rifaat, C. R. Das, "Modeling and Synthesizing Task
   Placement Constraints in Google Compute Clusters", SoCC 2011. The table of machines is that of a public
   simulator after it (meghanat/megha-constraint-aware, 10,000 nodes).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from clusters.schema import ATTRIBUTES, join_tags
from workloads.arrow import from_numpy, from_strings


class Supply(NamedTuple):
    """The number of nodes of `phoenix` that satisfy a kind of constraint, and the attribute's value.

    Attributes
    ----------
    attribute : str
        Of `ATTRIBUTES`.
    high, low : str
        Its values on the nodes that satisfy the constraint and on the others, as in descriptions. They are our choice:
        the table has shares only.
    share : float
        Of the nodes that satisfy it.
    offset_share : float
        Their ids are a range that begins at a random node below this share of all nodes.
    """

    attribute: str
    high: str
    low: str
    share: float
    offset_share: float


PHOENIX_SUPPLY = (
    Supply("cores", "16", "8", 0.60, 0.30),
    Supply("max_disks", "12", "4", 0.20, 0.70),
    Supply("min_disks", "4", "1", 0.45, 0.45),
    Supply("cpus", "2", "1", 0.75, 0.15),
    Supply("kernel", "3.10", "2.6.32", 0.69, 0.22),
    Supply("clock", "3.0 GHz", "2.4 GHz", 0.22, 0.70),
    Supply("port", "10 Gbps", "1 Gbps", 0.58, 0.35),
)
"""The supply of each kind of constraint except the instruction set, which all nodes satisfy (``isa = x86``)."""

SHARMA_SHARES = (
    0.376, 0.657, 0.156, 0.377, 0.683, 0.111, 0.284, 0.155, 0.703, 0.733, 0.487,
    0.470, 0.317, 0.080, 0.693, 0.151, 0.563, 0.276, 0.668, 0.700, 1.0,
)  # fmt: skip
"""Share of the nodes of `sharma` that have each of the tags ``a1`` .. ``a21``."""


def random_numbers(seed: int) -> np.random.Generator:
    """Return the random numbers of a cluster, a stream that no workload uses."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 0xC1])))


def phoenix(nodes: int, seed: int, in_runs: bool = True) -> dict[str, Any]:
    """Return the columns of nodes with the supply of constraints that Phoenix's simulator has [1]_.

    One range of ids satisfies each kind of constraint, from an offset that is drawn uniformly; after the last node a
    range continues at the first, where the released code runs over the end. As there, the last nodes, about 7 % of all,
    satisfy only ``isa = x86``. The first nodes satisfy few kinds, too: the part of the cluster that is reserved for
    short jobs may have no node for some. Without `in_runs` the nodes of each kind are drawn one by one.
    """
    random = random_numbers(seed)
    columns: dict[str, Any] = {}
    for supply in PHOENIX_SUPPLY:
        attribute = ATTRIBUTES[supply.attribute]
        count = _count(supply.share, nodes)
        if in_runs:
            first = int(random.integers(int(supply.offset_share * nodes) + 1))
            ids = (first + np.arange(count)) % nodes
        else:
            ids = random.permutation(nodes)[:count]
        values = np.full(nodes, attribute.parse(supply.low))
        values[ids] = attribute.parse(supply.high)
        columns[attribute.column] = values
    return columns


def sharma(nodes: int, seed: int) -> dict[str, Any]:
    """Return the columns of nodes with tags ``a1`` .. ``a21``, each on its share of them [2]_.

    The nodes of each tag are drawn independently.
    """
    random = random_numbers(seed)
    bits = np.zeros(nodes, np.int64)
    for tag, share in enumerate(SHARMA_SHARES):
        bits[random.permutation(nodes)[: _count(share, nodes)]] |= 1 << tag
    distinct, codes = np.unique(bits, return_inverse=True)
    sets = [
        join_tags(f"a{t + 1}" for t in range(len(SHARMA_SHARES)) if d >> t & 1) for d in distinct.tolist()
    ]
    return {"tags": pa.DictionaryArray.from_arrays(from_numpy(codes.astype(np.int32)), from_strings(sets))}


def _count(share: float, nodes: int) -> int:
    """Return the number of nodes of a share, rounded, at least one, so that some node satisfies the constraint."""
    return max(round(share * nodes), 1)


DRAWN: dict[str, tuple[str, Callable[[int, int], dict[str, Any]]]] = {
    "phoenix": ("the supply of 8 kinds of constraints in Phoenix's simulator (ICDCS 2017)", phoenix),
    "phoenix-shuffled": (
        "the same supply, each kind on nodes drawn one by one instead of a run of ids",
        partial(phoenix, in_runs=False),
    ),
    "sharma": (
        "tags a1..a21 with the shares of nodes that have them, after Sharma et al. (SoCC 2011)",
        sharma,
    ),
}
"""Presets with random nodes: name to a line of description and ``draw(nodes, seed)``, which returns columns."""
