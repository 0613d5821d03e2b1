"""The loop that is made from a table of handlers: which handler a message goes to, and what it is given."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from actors.kernel.compiled import inlined, is_plain
from actors.kernel.loops import make_loop
from actors.kernel.queue import GROW, IDLE

pytestmark = pytest.mark.skipif(
    not is_plain(), reason="the world is a stand-in; policies test the compiled form"
)
ASKED, DONE, OTHER = 1, 2, 3


class Room(NamedTuple):
    seats: int


class Inner(NamedTuple):
    room: Room


class State(NamedTuple):
    inner: Inner
    most: float


class TwoRooms(NamedTuple):
    one: Room
    other: Room


seen: list[Any] = []


@inlined
def on_asked(w: Any, room: Room, t: int, node: int) -> None:
    seen.append(("asked", room.seats, t, node))


@inlined
def on_done(p: State, job: int, me: int) -> None:
    seen.append(("done", p.most, job, me))


@inlined
def on_other(kind: int) -> None:
    seen.append(("other", kind))


@inlined
def is_full(room: Room) -> bool:
    return room.seats == len(seen)


def run(monkeypatch: pytest.MonkeyPatch, loop: Any, seats: int, *messages: tuple[int, int, int, int]) -> int:
    """Let the loop handle messages (time, kind, destination, job) in a world of two nodes; return the stop reason."""
    columns = ("time", "kind", "dst", "a")
    now = SimpleNamespace(**{name: np.zeros(1, np.int64) for name in columns})
    world = SimpleNamespace(queue=SimpleNamespace(now=now), nodes=SimpleNamespace(size=2))
    left = list(messages)

    def take(w: Any, until: int) -> int:
        if not left:
            return IDLE
        for name, value in zip(columns, left.pop(0), strict=True):
            getattr(now, name)[0] = value
        return 0

    monkeypatch.setitem(loop.__globals__, "take", take)
    seen.clear()
    return int(loop(world, State(Inner(Room(seats)), 0.5), 100, 10))


def test_each_message_goes_to_its_handler_which_gets_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = make_loop(__name__, State, {DONE: on_done}, {ASKED: on_asked}, others=on_other)
    assert (
        run(monkeypatch, loop, 4, (5, ASKED, 1, 0), (6, DONE, 2, 9), (7, ASKED, 3, 0), (8, DONE, 0, 0))
        == IDLE
    )
    # ASKED at a scheduler and DONE at a node are of no table: the one goes to `others`, the other has no effect.
    assert seen == [("asked", 4, 5, 1), ("done", 0.5, 9, 2), ("other", ASKED)]


def test_the_loop_stops_where_an_array_is_to_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = make_loop(__name__, State, {OTHER: on_other}, {}, grows_if=(is_full,))
    assert run(monkeypatch, loop, 2, *[(i, OTHER, 2, 0) for i in range(5)]) == GROW
    assert len(seen) == 2


def test_a_handler_that_takes_what_is_not_exactly_one_part_is_refused() -> None:
    with pytest.raises(TypeError, match="on_asked: TwoRooms has not exactly one part of the type of `room`"):
        make_loop(__name__, TwoRooms, {}, {ASKED: on_asked})
    with pytest.raises(TypeError, match="on_done: Room has not exactly one part of the type of `p`"):
        make_loop(__name__, Room, {DONE: on_done}, {})
