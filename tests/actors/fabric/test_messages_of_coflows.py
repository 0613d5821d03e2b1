"""Messages of coflows: what is written is read, by the reader and in recorded events."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.fabric import messages
from actors.kernel.message_kinds import KINDS, Kind
from actors.kernel.queue import MESSAGE
from actors.kernel.records import records

PLACES = {"time": 5_000, "t": 5_000, "agent": 2, "me": 2}  # arguments of writers that are not fields
COORDINATOR = 9
OF_VALUES = (
    messages.SET_LINE,
    messages.SET_EXTRA,
    messages.SHRINK,
    messages.PACE,
)  # with one writer and reader
OWN = [kind for kind in KINDS.values() if kind.family == "coflows"]


def python_of(name: str) -> Callable[..., Any]:
    """A function of the module as plain Python, which calls others of it as such."""
    function = getattr(messages, name)
    plain: Callable[..., Any] = getattr(function, "py_func", function)
    return plain


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is sent: time, receiver, kind and columns."""
    found: list[tuple[Any, ...]] = []
    for name in ("bits_of", "float_of", "of_generation"):
        monkeypatch.setattr(messages, name, python_of(name))
    monkeypatch.setattr(
        messages, "send", lambda w, t, src, dst, kind, *columns: found.append((t, dst, kind, *columns))
    )
    monkeypatch.setattr(
        messages, "wake", lambda w, t, dst, kind, *abc: found.append((t, dst, kind, *abc, -1))
    )
    return found


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.name)
def test_what_is_written_is_read(kind: Kind, sent: list[tuple[Any, ...]]) -> None:
    name = "due" if "due" in kind.fields else "value" if kind.number in OF_VALUES else kind.name.lower()
    send, read = python_of(f"send_{name}"), python_of(f"read_{name}")
    given = {
        field: 40.25 + at if kind.fields[field].is_float else np.int64(40 + at)
        for at, field in enumerate(kind.fields)
    }
    if kind.number in OF_VALUES:
        given = dict(zip(("which", "value"), given.values(), strict=True))
    names = list(inspect.signature(send).parameters)[1:]
    places = PLACES | {"kind": kind.number}
    assert set(names) - places.keys() == given.keys()
    world = SimpleNamespace(nodes=np.zeros(COORDINATOR), queue=SimpleNamespace(now=records(MESSAGE, 1)))
    send(world, **{each: given[each] if each in given else places[each] for each in names})

    ((time, receiver, number, *columns),) = sent
    assert (time, number) == (given.get("due", 5_000), kind.number)
    whom = kind.about.split(":")[0]  # as it is declared
    assert receiver == (COORDINATOR if whom.endswith((" to coordinator", "coordinator to itself")) else 2)
    for column, value in zip("abcd", columns, strict=True):
        getattr(world.queue.now, column)[0] = value
    found = read(world)
    assert (list(found) if isinstance(found, tuple) else [found]) == list(given.values())
    for field, value in zip(kind.fields.values(), given.values(), strict=True):
        assert field.of(getattr(world.queue.now, field.column)).tolist() == [value]


def test_without_updates_flows_have_no_generation_and_no_bytes(sent: list[tuple[Any, ...]]) -> None:
    world = SimpleNamespace(nodes=np.zeros(COORDINATOR))
    python_of("send_flow_done")(world, 5_000, 2, 7, 5_000, np.int64(-1), 0.0)
    assert sent == [(5_000, COORDINATOR, messages.FLOW_DONE, 7, 5_000, -1, -1)]
