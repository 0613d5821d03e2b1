"""Lanes of intervals: an example by hand, and what holds of all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emu.results.slot_numbers import slot_numbers


def test_lanes_by_hand() -> None:
    machine = np.array([4, 4, 4, 4, 2])
    start, finish = np.array([0.0, 1.0, 2.0, 3.0, 0.0]), np.array([2.0, 5.0, 3.0, 4.0, 9.0])
    assert slot_numbers(machine, start, finish).tolist() == [0, 1, 0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 6)), max_size=30))
def test_each_has_the_lowest_lane_that_is_free(intervals: list[tuple[int, int, int]]) -> None:
    machine, start, span = np.array(intervals, np.int64).reshape(-1, 3).T
    slot = slot_numbers(machine, start, start + span)
    free: dict[tuple[int, int], int] = {}
    for row in np.lexsort((start, machine)).tolist():
        on, begin = int(machine[row]), int(start[row])
        lowest = next(k for k in range(len(intervals)) if free.get((on, k), 0) <= begin)
        assert slot[row] == lowest
        free[on, lowest] = begin + int(span[row])
