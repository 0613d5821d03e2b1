"""The machine types of a cluster: how many nodes it has of each, under names that tell them apart."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from clusters.cluster import Cluster
from clusters.schema import ATTRIBUTES
from workloads.errors import InputError
from workloads.hints import in_words
from workloads.requests import distinct_rows

_MAIN = ("slots", "cores", "memory")
"""The attributes that tell machines of one type apart."""
_SHOWN = 6
MOST_PRICE = 1e9
_PAIR = re.compile(r"\s*([^\s,].*?)\s*=\s*([^=,\s]+)\s*(?:,|$)")


def read_counts(text: str, what: str = "machines") -> dict[str, int]:
    """Return the number of nodes by machine type of a text; errors name `what`.

    Examples
    --------
    >>> read_counts("fast = 3, plain = 5")
    {'fast': 3, 'plain': 5}
    """
    wrong = f"{what}: {text!r} is not a number of nodes for each machine type, such as 'fast=3, plain=5'"
    pairs = _read_pairs(text, wrong)
    if not all(re.fullmatch("[0-9]{1,8}", value) for value in pairs.values()):
        raise InputError(wrong)
    found = {name: int(value) for name, value in pairs.items()}
    if not sum(found.values()):
        raise InputError(f"{what}: {text!r} has no node")
    return found


def _read_pairs(text: str, wrong: str) -> dict[str, str]:
    """Return the values by machine type, whose name may have commas, of ``NAME=VALUE, …``; errors are `wrong`."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None or match[1] in found:
            raise InputError(wrong if match is None else f"{wrong}: {match[1]!r} is given twice")
        found[match[1]], at = match[2], match.end()
    return found


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the number of nodes by machine type as `read_counts` reads it."""
    return ", ".join(f"{name}={count}" for name, count in counts.items())


def machine_counts(cluster: Cluster) -> dict[str, int]:
    """Return the number of nodes by machine type, in order of first appearance.

    Machines of one type that differ in slots, cores or memory are named with what they have: ``standard (1 slot, 4
    cores, 16 GiB)``.
    """
    codes, names = cluster.attribute("type"), cluster.attribute_names("type")
    columns = [np.asarray(codes, np.float64), *(np.asarray(cluster.attribute(n), np.float64) for n in _MAIN)]
    kinds, of_node = distinct_rows(np.stack(columns, axis=1))
    several = np.bincount(kinds[:, 0].astype(np.int64), minlength=len(names)) > 1
    _, first = np.unique(of_node, return_index=True)
    counts, found = np.bincount(of_node), {}
    for kind in np.argsort(first).tolist():
        code, slots, cores, memory = kinds[kind].tolist()
        name, of_memory = names[int(code)], ATTRIBUTES["memory"].show(memory)
        own = f" ({slots:g} slot{'s' * (slots != 1)}, {cores:g} core{'s' * (cores != 1)}, {of_memory})"
        found[name + own * bool(several[int(code)])] = int(counts[kind])
    return found


def machines_text(counts: Mapping[str, int], of_one: bool = False) -> str:
    """Return the number of nodes by machine type as text, the most frequent first; of one type if `of_one`, else empty.

    Examples
    --------
    >>> machines_text({"plain": 5, "fast": 12}), machines_text({"plain": 5})
    ('12 fast and 5 plain', '')
    """
    if len(counts) < 2 and not of_one:
        return ""
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    parts = [f"{count:,} {name}" for name, count in ordered[:_SHOWN]]
    if rest := ordered[_SHOWN:]:
        parts.append(f"{sum(count for _, count in rest):,} of {len(rest)} other types")
    return in_words(parts)


def type_counts(cluster: Cluster) -> dict[str, int]:
    """Return the number of nodes by the name of their machine type."""
    counts = np.bincount(cluster.attribute("type"))
    names = cluster.attribute_names("type")
    return {name: int(count) for name, count in zip(names, counts, strict=False) if count}


def type_prices(cluster: Cluster, given: Mapping[str, float]) -> dict[str, float]:
    """Return what a node of each machine type costs an hour: as given, else the mean of the cluster's.

    0 where the price of some node of the type is not known.
    """
    prices, codes = cluster.attribute("price_per_hour"), cluster.attribute("type")
    names = cluster.attribute_names("type")
    of_type = {name: prices[codes == i] for i, name in enumerate(names)}
    own = {name: float(of.mean()) if of.all() else 0.0 for name, of in of_type.items() if of.size}
    return own | {name: price for name, price in given.items() if name in own}


def price_of(cluster: Cluster, given: Mapping[str, float]) -> float | None:
    """Return what a cluster costs an hour; None where the price of some node is not known."""
    prices = type_prices(cluster, given)
    if not all(prices.values()):
        return None
    return sum(count * prices[name] for name, count in type_counts(cluster).items())


def read_prices(text: str, what: str) -> dict[str, float]:
    """Return prices by machine type of a text; errors name `what`.

    Examples
    --------
    >>> read_prices("fast = 0.35, plain=0.1", "--price")
    {'fast': 0.35, 'plain': 0.1}
    """
    wrong = f"{what}: {text!r} is not a price above 0 for each machine type, such as 'fast=0.35, plain=0.1'"
    try:
        found = {name: float(value) for name, value in _read_pairs(text, wrong).items()}
    except ValueError:
        raise InputError(wrong) from None
    if not found or not all(0 < price < MOST_PRICE for price in found.values()):
        raise InputError(wrong)
    return found
