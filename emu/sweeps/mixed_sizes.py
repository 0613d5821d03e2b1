"""Prices of sizes, and the search for the cheapest mix of machine types of a cluster."""

from __future__ import annotations

from typing import NamedTuple

from clusters.machine_types import type_counts, type_prices
from emu.sweeps.mixes import Counts, find_cheapest
from emu.sweeps.sizes import EVERY_TYPE, Size, Trials
from workloads.errors import InputError
from workloads.hints import did_you_mean, in_words


class Mixed(NamedTuple):
    """The result of a search for the cheapest mix.

    Attributes
    ----------
    size : Size | None
        The cheapest that was found to meet the targets; None without one.
    tried : int
        How many mixes were measured, and further sizes in the proportions of the cluster.
    is_cut : bool
        Whether the search ended for the number of mixes that it may measure.
    own : Size | None
        The fewest nodes in the proportions of the cluster.
    """

    size: Size | None
    tried: int
    is_cut: bool
    own: Size | None


def check_prices(trials: Trials, must_have: bool) -> None:
    """Refuse prices of machine types that the cluster does not have, and a type without a price beside others.

    Where all types must have one, as for mixes, also a cluster of which no mix can be made.
    """
    cluster = trials.cluster(Size(EVERY_TYPE)) if trials.prices or must_have else None
    if cluster is None:
        return
    found = type_prices(cluster, trials.prices)
    for name in trials.prices:
        if name not in found:
            raise InputError(f"--price: there is no machine type {name!r}{did_you_mean(name, found)}")
    lacking = [name for name, price in found.items() if not price]
    if lacking:
        where = f"price_per_hour in the description of {cluster.name}, or --price '{lacking[0]}=0.35'"
        option = "--mix" if must_have else "--price"
        raise InputError(f"{option}: no price is known of {in_words(lacking)}; give {where}")
    if must_have:
        try:
            trials.cluster(Size.of(list(found), [1] * len(found)))
        except InputError as error:
            raise InputError(f"--mix: {error.message.removeprefix('machines: ')}") from None


def search_mixes(trials: Trials, nodes: int | None, most_nodes: int, tolerance: float, most: int) -> Mixed:
    """Search the cheapest mix that meets the targets, from the fewest nodes in the proportions of the cluster on.

    `most_nodes` are those of all types beyond which nothing is tried, and `most` bounds the mixes that are measured.
    """
    prices = type_prices(trials.cluster(Size(EVERY_TYPE)), trials.prices)
    types = list(prices)

    def counts_of(size: Size) -> Counts:
        counts = type_counts(trials.cluster(size))
        return tuple(counts.get(name, 0) for name in types)

    own = None if nodes is None else Size(nodes)
    start = None if own is None else counts_of(own)
    less = [size for size, probe in trials.probes.items() if not probe.holds and (own is None or size < own)]
    found = find_cheapest(
        lambda counts: trials.holds(Size.of(types, counts)),
        list(prices.values()),
        start,
        most_nodes,
        tolerance,
        most,
        failed=[counts_of(size) for size in less],
    )
    size = own if found.counts is None or found.counts == start else Size.of(types, found.counts)
    return Mixed(size, len(trials.probes), found.is_cut, own)
