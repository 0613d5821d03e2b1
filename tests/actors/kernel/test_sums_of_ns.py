"""Sums that an int64 need not hold, against integers of Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.kernel.queue import NEVER
from actors.kernel.sums import (
    LARGE,
    MOST_WHOLES,
    STEP,
    WHOLE,
    carry,
    multiple,
    pack,
    spread,
    total_ns,
    unpack,
)

SUMS = st.integers(0, int(MOST_WHOLES) * int(WHOLE)) | st.integers(0, 4 * int(LARGE))
SLOTS = st.integers(1, 1_000_000) | st.integers(1, 1 << 32)


def of(total: int) -> tuple[np.int64, np.int64]:
    """A sum as its rest and wholes."""
    wholes = max(total // int(WHOLE) - 1, 0)
    return np.int64(total - wholes * int(WHOLE)), np.int64(wholes)


def value(rest: int, wholes: int) -> int:
    return int(rest) + int(wholes) * int(WHOLE)


@given(st.lists(st.integers(-int(WHOLE), int(LARGE)), max_size=40))
def test_what_is_added_and_subtracted_is_kept_exactly(amounts: list[int]) -> None:
    rest, wholes, total = np.int64(0), np.int64(0), 0
    for amount in amounts:
        amount = max(amount, -total)
        total += amount
        rest, wholes = carry(rest + np.int64(amount), wholes)
        assert (rest, wholes) == of(total)


@given(st.integers(0, int(WHOLE)), st.integers(0, (1 << 31) - 1))
def test_a_multiple_is_exact(amount: int, times: int) -> None:
    assert multiple(np.int64(amount), np.int64(times)) == of(amount * times)


@given(SUMS, SLOTS)
def test_a_sum_is_divided_exactly_while_the_quotient_is_a_time(total: int, slots: int) -> None:
    rest, wholes = of(total)
    assert spread(rest, wholes, np.int64(slots)) == min(total // slots, int(NEVER) - 1)


@given(SUMS, SUMS)
def test_a_message_states_a_sum_to_a_second_at_least(total: int, other: int) -> None:
    packed, more = pack(*of(total)), pack(*of(other))
    assert 0 <= packed < NEVER
    assert value(*unpack(packed)) == total_ns(int(packed))
    assert 0 <= total - total_ns(int(packed)) < (STEP if total >= LARGE else 1)
    assert (packed <= more) or total > other
