"""Sums that an int64 does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from workloads.sums import exact_sum, group_sums


@pytest.mark.parametrize(
    "values", [[], [3, -5], [2**63 - 1] * 3, [-(2**63)] * 5, [2**62, 1, -(2**40) + 7] * 9]
)
def test_a_sum_is_that_of_integers_without_bounds(values: list[int]) -> None:
    assert exact_sum(np.array(values, np.int64)) == sum(values)


def test_groups_are_summed_exactly_while_int64_holds_them() -> None:
    values, times, first = np.array([[2**53 + 1, 0], [1, 2], [5, 7]]), np.array([3, 1, 10]), np.array([0, 2])
    found = group_sums(values, times, first)
    assert found.dtype == np.int64
    assert found.tolist() == [[3 * (2**53 + 1) + 1, 2], [50, 70]]


def test_groups_beyond_int64_are_summed_as_floats() -> None:
    values, times = np.array([[2**50], [2**50], [1]]), np.array([2**20, 2**20, 1])
    assert group_sums(values, times, np.array([0, 2])).tolist() == [[2.0**71], [1.0]]
