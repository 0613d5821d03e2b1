"""The search for the cheapest mix of machine types, on known functions, against all mixes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.sweeps.mixes import Counts, cost, find_cheapest


def cheapest_of_all(holds: Callable[[Counts], bool], prices: list[float], reach: int) -> float:
    """What the cheapest of all mixes costs, one after the other."""
    every = product(range(reach + 1), repeat=len(prices))
    return min(cost(counts, prices) for counts in every if sum(counts) and holds(counts))


@pytest.mark.slow("many drawn cases")
@given(
    capacity=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    prices=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    work=st.integers(1, 40),
    big=st.integers(0, 3),
)
def test_the_mix_that_has_enough_of_all(
    capacity: list[int], prices: list[float], work: int, big: int
) -> None:
    """Work that any machine does, and some that the first type alone can: a job that needs a large machine."""
    prices = prices[: len(capacity)]
    tried: list[Counts] = []

    def holds(counts: Counts) -> bool:
        tried.append(counts)
        return sum(c * k for c, k in zip(counts, capacity, strict=True)) >= work and counts[0] >= big

    found = find_cheapest(holds, prices, None, 60, 0.0, most=10_000)
    assert len(tried) == len(set(tried))
    assert found.counts is not None
    assert holds(found.counts)
    least = cheapest_of_all(holds, prices, 45)
    assert cost(found.counts, prices) <= 1.34 * least + max(prices)


@pytest.mark.parametrize("start", [None, (4, 8), (9, 90)])
def test_a_few_large_machines_beside_many_cheap_ones(start: Counts | None) -> None:
    def holds(counts: Counts) -> bool:
        return counts[0] >= 2 and 8 * counts[0] + counts[1] >= 40

    prices = [10.0, 1.0]
    found = find_cheapest(holds, prices, start, 100, 0.0)
    assert found == ((2, 24), False)
    assert cost((2, 24), prices) == cheapest_of_all(holds, prices, 45)


def test_nothing_holds() -> None:
    assert find_cheapest(lambda counts: False, [1.0, 2.0], None, 50, 0.0) == (None, False)


def test_the_search_ends_at_its_bound_with_the_best_so_far() -> None:
    tried: list[Counts] = []

    def holds(counts: Counts) -> bool:
        tried.append(counts)
        return sum(counts) >= 30

    found = find_cheapest(holds, [1.0, 0.5], (60, 0), 100, 0.0, most=6)
    assert found.is_cut
    assert len(tried) == 5  # one is known
    assert found.counts is not None
    assert cost(found.counts, [1.0, 0.5]) <= min(
        cost(counts, [1.0, 0.5]) for counts in tried if sum(counts) >= 30
    )


def test_within_the_tolerance_few_are_tried() -> None:
    tried: list[Counts] = []

    def holds(counts: Counts) -> bool:
        tried.append(counts)
        return 3 * counts[0] + counts[1] >= 3000

    found = find_cheapest(holds, [2.0, 1.0], None, 5000, 0.01)
    assert found.counts is not None
    assert cost(found.counts, [2.0, 1.0]) <= 2000 * 1.03
    assert len(tried) < 40


def test_nothing_beyond_the_reach_and_nothing_that_failed_is_tried() -> None:
    tried: list[Counts] = []

    def holds(counts: Counts) -> bool:
        tried.append(counts)
        return counts[0] >= 3

    found = find_cheapest(holds, [1000.0, 0.0001], (6, 6), 50, 0.0, failed=[(2, 2), (2, 50)])
    assert found == ((3, 0), False)
    assert max(map(sum, tried)) <= 50
    assert not any(few <= 2 for few, _ in tried)
