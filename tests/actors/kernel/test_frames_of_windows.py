"""Frames: from their headers follows when the next event of all other partitions is due."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.kernel.queue import NEVER
from actors.kernel.window import (
    OWN,
    SENT,
    SENT_OTHERS,
    begin_of_part,
    end_of_frame,
    header_size,
    make_frame,
    messages_for,
    next_by_frame,
    note_sent,
)

PARTITIONS = 4


@given(
    st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.integers(0, 20)), max_size=12),
    st.integers(0, 20),
    st.integers(0, PARTITIONS - 1),
)
def test_the_next_event_of_others_is_their_own_or_a_message_to_one_of_them(
    sent: list[tuple[int, int]], own: int, k: int
) -> None:
    frame = make_frame(PARTITIONS, 0)
    frame[OWN], frame[SENT], frame[SENT_OTHERS] = own, NEVER, NEVER
    for to, time in sent:
        note_sent(frame, 0, to, time)
    for me in range(PARTITIONS):
        times = [time for to, time in sent if to != me] + [own] * (k != me)
        assert next_by_frame(frame, 0, k, me) == min(times, default=NEVER)


def test_messages_lie_in_order_of_the_partition_they_are_for() -> None:
    frame, counts = make_frame(PARTITIONS, 6), [2, 0, 1, 3]
    for k in range(PARTITIONS):
        frame[header_size(k)] = sum(counts[: k + 1])
    assert [messages_for(frame, 0, k) for k in range(PARTITIONS)] == counts
    assert [begin_of_part(frame, 0, k) for k in range(PARTITIONS)] == [0, 2, 2, 3]
    assert end_of_frame(frame, 0, PARTITIONS) == frame.size
