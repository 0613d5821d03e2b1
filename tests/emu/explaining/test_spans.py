"""What is free of nodes beside what tasks hold, over time."""

import numpy as np
import pytest

from emu.explaining.spans import NEVER, Free, Held, free_during

NODES = np.arange(2)


def held() -> Held:
    """Node 0 is held from 0 to 4 and from 9 on; node 1 from 4 to 8 and, after a gap of 1, from 9 to 12."""
    return Held(*np.array([[0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 1, 1], [0, 9, 4, 9], [4, NEVER, 8, 12]]))


def rows_of(free: Free) -> list[tuple[int, ...]]:
    return [(*row, *amount) for *row, amount in zip(*(of.tolist() for of in free), strict=True)]


@pytest.mark.parametrize(
    ("slots", "at", "expected"),
    [
        (1, 0, [(0, 4, 9, 1), (1, 0, 4, 1), (1, 12, NEVER, 1)]),
        (
            1,
            3,
            [(0, 4, 9, 1), (1, 12, NEVER, 1)],
        ),  # node 1 is free for 1 more, which is no longer than the gap
        (1, 5, [(0, 5, 9, 1), (1, 12, NEVER, 1)]),
        (2, 0, [(0, 0, NEVER, 1), (1, 0, NEVER, 2)]),
    ],
)
def test_times_in_which_a_slot_is_free(slots: int, at: int, expected: list[tuple[int, ...]]) -> None:
    """As much is free as when such a time begins."""
    free = free_during(np.full((2, 1), slots), held(), np.ones((4, 1), np.int64), NODES, at, NEVER)
    assert rows_of(free.that_fits(np.array([1]), 1)) == expected


def test_there_may_be_no_free_slot_ever() -> None:
    always = Held(*(np.array([value]) for value in (0, 0, 0, 0, NEVER)))
    free = free_during(np.ones((1, 1), np.int64), always, np.ones((1, 1), np.int64), NODES[:1], 5, NEVER)
    assert rows_of(free) == [(0, 5, NEVER, 0)]
    assert rows_of(free.that_fits(np.array([1]), 1)) == []


def test_spans_between_changes_of_the_nodes_that_are_asked_for() -> None:
    """What ends when something else begins leaves no span without it; what is held is seen in each resource."""
    capacity = np.array([[4, 10], [8, 20]])
    tasks = Held(*np.array([[0, 0, 1], [0, 1, 2], [1, 1, 0], [2, 6, 0], [6, 9, 9]]))
    demand = np.array([[3, 5], [8, 1], [1, 1]])
    assert rows_of(free_during(capacity, tasks, demand, np.array([1]), 1, 8)) == [
        (1, 1, 2, 8, 20),
        (1, 2, 6, 5, 15),
        (1, 6, 8, 0, 19),
    ]
    both = free_during(capacity, tasks, demand, NODES, 1, 8)
    assert rows_of(both)[0] == (0, 1, 8, 3, 9)
    assert both.lasted.tolist() == [7, 1, 4, 2]
    assert rows_of(free_during(capacity, tasks, demand, np.zeros(0, np.int64), 1, 8)) == []


def test_spans_within_a_time_and_who_holds_at_one() -> None:
    assert held().within(3, 10).tolist() == [1, 1, 4, 1]
    assert held().at(4).tolist() == [2]
    assert held().at(9).tolist() == [1, 3]
    more = held().rows(np.array([0]))
    assert [of.tolist() for of in more.beside(more)] == [[0, 0], [0, 0], [0, 0], [0, 0], [4, 4]]
