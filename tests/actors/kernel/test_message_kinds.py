"""The table of message kinds."""

from __future__ import annotations

import numpy as np
import pytest

from actors.hosting.recorded import DECLARED_IN
from actors.kernel import messages
from actors.kernel.message_kinds import FIRST_DECISION, KINDS, MOST_RANK, kind, kinds_of
from actors.kernel.queue import RANK_SHIFT
from actors.schedulers.registry import built_in_schedulers

OF_RANK = {
    0: {
        "TASK_END",
        "SERVE",
        "PUBLISHED",
        "ANNOUNCED",
        "FLOW_END",
        "LINE_END",
        "STAGE_TASK_END",
        "BROKEN",
        "FETCH",
        "FETCH_FAILED",
        "FETCHED",
        "OUTPUT",
    },
    2: {"HEARTBEAT", "MONITOR", "OWN_WAKE", "FAIL", "DETECT", "REPAIR", "CHANGE", "BEAT"},
    3: {"ARRIVAL", "REGISTER", "DAG_ARRIVAL"},
    4: {"RETRY", "DISPATCH", "UPDATE"},
    5: {"DECIDE", "SEND_REST", "MATCH", "FREE_AGAIN", "PUSH"},
    6: {"SHARE"},
}


def test_ranks_order_what_happens_at_one_instant() -> None:
    for rank, names in OF_RANK.items():
        assert {known.name for known in KINDS.values() if known.rank == rank} == names
    assert {known.rank for known in KINDS.values()} == {0, 1, *OF_RANK}
    assert (1 << 63 - RANK_SHIFT) - 1 == MOST_RANK  # the key's sign is free


def test_background_messages_are_those_of_failures() -> None:
    background = {known.name for known in KINDS.values() if known.is_background}
    assert background == {"NODE_DOWN", "NODE_UP", "FAIL", "DETECT", "REPAIR", "BROKEN"}


def test_decisions_are_no_messages() -> None:
    decisions = {known.name for known in KINDS.values() if known.number >= FIRST_DECISION}
    assert decisions == OF_RANK[5] | OF_RANK[6]


def test_constants_have_the_names_and_numbers_of_the_table() -> None:
    constants = {name: value for module in (messages, *DECLARED_IN) for name, value in vars(module).items()}
    for number, known in KINDS.items():
        if known.family != "tickets":
            constant = constants[known.name]
            assert (type(constant), constant, known.number) == (np.int64, number, number)


def test_fields_that_share_a_column_are_separated() -> None:
    probe = next(known for known in KINDS.values() if known.name == "PROBE").fields
    column = np.array([7 | 3 << 32, -1, 5])
    assert probe["tasks_left"].of(column).tolist() == [7, -1, 5]
    assert probe["level"].of(column).tolist() == [2, -1, -1]


def test_a_field_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match="no meaning of 'colour'"):
        kind(0x1C0, "PAINT", "jobs", "a node to itself", b="colour")


def test_families_share_no_number_and_find_their_own() -> None:
    jobs, coflows = kinds_of("jobs"), kinds_of("coflows")
    assert not set(jobs) & set(coflows)
    assert {scheduler.family for scheduler in built_in_schedulers()} == {
        family for known in KINDS.values() for family in known.family.split()
    }


@pytest.mark.parametrize(
    ("number", "name"), [(0x000, "OTHER"), (0x0AB, "TASK_END"), (0x1000, "OTHER"), (-1, "OTHER")]
)
def test_a_number_or_name_that_is_taken_is_refused(number: int, name: str) -> None:
    before = dict(KINDS)
    with pytest.raises(ValueError, match=f"message kind {name}"):
        kind(number, name, "jobs", "a node to itself")
    assert before == KINDS


def test_there_is_room_for_other_families() -> None:
    """Of every rank, messages and background messages."""
    for rank in range(5):
        taken = {number & 0xFF for number in KINDS if number >> 8 == rank}
        assert len(set(range(0x80, 0xD0)) - taken) >= 0x40
        assert len(set(range(0xD0, 0x100)) - taken) >= 40
