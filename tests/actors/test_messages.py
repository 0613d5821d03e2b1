"""What is written into a message is what is read from it, and what a recorded event has under the field's name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.fabric import messages as messages_of_coflows
from actors.failures import TASK_STATE
from actors.kernel import message_functions, messages
from actors.kernel.message_functions import reader, report, sender, timer
from actors.kernel.message_kinds import KINDS, NONE, Field, Kind
from actors.kernel.records import records
from actors.nodes import messages as messages_of_jobs
from actors.schedulers.registry import built_in_schedulers
from actors.schedulers.user import messages as messages_of_users

MODULES = (messages, messages_of_jobs, messages_of_jobs, messages_of_coflows, messages_of_users)
COLUMNS = ("a", "b", "c", "d")
ROUNDS = ("great", "greater", "none")
built_in_schedulers()  # whose modules declare all kinds
CARRYING = [kind for kind in KINDS.values() if kind.fields]


def plain(function: Any) -> Any:
    """Return the Python function of a compiled one."""
    return getattr(function, "py_func", function)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What has been sent: the kind and the four columns."""
    found: list[tuple[int, ...]] = []
    stand_ins = {
        "send": lambda w, t, src, dst, kind, *columns: found.append((kind, *columns)),
        "wake": lambda w, time, actor, kind, *columns: found.append((kind, *columns, NONE)),
        "send_to_schedulers": lambda w, t, node, kind, *columns: found.append((kind, *columns)),
    }
    for module in (message_functions, *MODULES):
        for name, value in vars(module).copy().items():
            monkeypatch.setattr(module, name, stand_ins.get(name, plain(value)))
    return found


def at_hand(message: tuple[int, ...]) -> Any:
    """Return a world with a message at hand."""
    values = {name: np.array([value]) for name, value in zip(("kind", *COLUMNS), message, strict=True)}
    return SimpleNamespace(queue=SimpleNamespace(now=SimpleNamespace(**values)))


def recorded(kind: Kind, message: tuple[int, ...]) -> dict[str, Any]:
    """Return what a recorded event has of a message."""
    columns = dict(zip(COLUMNS, message[1:], strict=True))
    return {name: field.of(np.array([columns[field.column]]))[0] for name, field in kind.fields.items()}


def value_of(field: Field, i: int, values: str) -> Any:
    """Return a great value of a field, another one for each `i`; of one that may be none that, if asked for."""
    if field.is_float:
        return 0.1 * i + ROUNDS.index(values)
    if values == "none" and (field.more or field.bits == 64):
        return NONE
    if field.bits == 1:
        return np.int64(values == "great")
    is_last = field.shift + field.bits == 64
    return np.int64((1 << field.bits - is_last) - 1 - field.more - i - (values == "greater"))


@pytest.mark.parametrize("values", ROUNDS)
@pytest.mark.parametrize("kind", CARRYING, ids=[kind.name for kind in CARRYING])
def test_each_field_is_read_as_it_was_written(kind: Kind, values: str, sent: list[tuple[int, ...]]) -> None:
    given = [value_of(field, i, values) for i, field in enumerate(kind.fields.values())]
    number, world = np.int64(kind.number), SimpleNamespace()
    plain(sender(number))(world, 0, 1, 2, *given)
    plain(report(number))(world, 0, *given)
    if all(field.column != "d" for field in kind.fields.values()):
        plain(timer(number))(world, 0, 1, *given)
    for message in sent:
        read = plain(reader(number))(at_hand(message))
        assert (read if isinstance(read, tuple) else (read,)) == tuple(given)
        assert list(recorded(kind, message).values()) == given
        assert message == sent[0]
        if not any(field.is_float for field in kind.fields.values()):
            assert kind.read(message[1:]) == dict(zip(kind.fields, given, strict=True))


def test_functions_of_their_own_write_and_read_what_is_declared(sent: list[tuple[int, ...]]) -> None:
    tasks = records(TASK_STATE, 9)
    tasks.history[7] = 3 << 20 | 5
    world: Any = SimpleNamespace(
        work=SimpleNamespace(home=[0, 0, 0, 40], first_task=[0, 0, 0, 5]),
        faults=SimpleNamespace(active=1, tasks=tasks),
        rules=SimpleNamespace(names_tasks=1),
    )
    of_jobs = messages_of_jobs

    of_jobs.send_done(world, 90, 11, 3, 7, 80)
    assert of_jobs.read_done(at_hand(sent[-1])) == (3, 11, 80, 90)
    assert of_jobs.read_evictions(at_hand(sent[-1])) == 3
    assert of_jobs.read_place(at_hand(sent[-1])) == 2
    expected = {"job": 3, "node": 11, "evictions": 3, "place": 2, "start": 80, "finish": 90}
    assert recorded(KINDS[int(of_jobs.DONE)], sent[-1]) == expected

    of_jobs.send_placed(world, 90, 40, 11, 3, 7, NONE, 4, 6)
    assert reader_of(of_jobs.PLACED)(at_hand(sent[-1])) == (3, 7, NONE, 4, 3 << 20 | 5, 6)
    assert of_jobs.read_task_sent(at_hand(sent[-1])) == (3, 7, NONE)
    assert of_jobs.read_history(at_hand(sent[-1])) == 3 << 20 | 5

    plain(sender(of_jobs.TASK))(world, 90, 40, 11, 3, 7, 1, 4, 5, 8, 9)
    assert of_jobs.read_task_sent(at_hand(sent[-1])) == (3, 7, 1)
    assert of_jobs.read_generation(at_hand(sent[-1])) == 8
    assert of_jobs.read_history(at_hand(sent[-1])) == 9
    plain(sender(of_jobs.NO_TASK))(world, 90, 40, 11, 3, 4, 5, 8)
    assert of_jobs.read_generation(at_hand(sent[-1])) == 8

    messages.send_lost(world, 90, 11, 40, 3, 7, 80, 9)
    assert messages.read_lost(at_hand(sent[-1])) == (3, 7, 11, 9, 80)
    messages.send_lost_again(world, 90, 40, 3, 7)
    assert messages.read_lost(at_hand(sent[-1])) == (3, 7, NONE, NONE, NONE)
    messages.send_node_state(world, 90, messages.NODE_UP, 11, 2)
    assert plain(messages.read_node_state)(at_hand(sent[-1])) == (11, 2, 90)


def reader_of(kind: int) -> Any:
    return plain(reader(kind))


def test_a_report_without_a_resource_has_none_of_its_fields(sent: list[tuple[int, ...]]) -> None:
    none = np.int64(NONE)
    messages_of_jobs.send_wait_report(SimpleNamespace(), 90, 11, 3, 2, 70, 5, 6, 7, none, none, none)
    read = messages_of_jobs.read_wait_report(at_hand(sent[-1]))
    assert read == (11, 3, 2, 70, 5, 6, 7, NONE, NONE, NONE)
    assert tuple(recorded(KINDS[int(messages_of_jobs.WAIT_REPORT)], sent[-1]).values()) == read


def test_a_flow_without_updates_has_neither_generation_nor_bytes(sent: list[tuple[int, ...]]) -> None:
    world: Any = SimpleNamespace(nodes=np.zeros(40))
    of = messages_of_coflows
    of.send_set_rate(world, 90, 11, 3, 0.5, 2, 1e6)
    assert of.read_set_rate(at_hand(sent[-1])) == (3, 0.5, 2, 1e6)
    of.send_flow_done(world, 90, 11, 3, 80, 2, 1e6)
    assert of.read_flow_done(at_hand(sent[-1])) == (3, 80, 2, 1e6)
    of.send_set_rate(world, 90, 11, 3, 0.5, NONE, 0.0)
    assert sent[-1][3:] == (NONE, NONE)
    for kind in (of.SET_LINE, of.SET_EXTRA, of.SHRINK, of.PACE):
        of.send_value(world, 90, 11, kind, 3, 0.25)
        assert sent[-1][0] == kind
        assert plain(of.read_value)(at_hand(sent[-1])) == (3, 0.25)
    for kind in (of.DECIDE, of.SEND_REST):
        of.send_due(world, kind, 120)
        assert sent[-1] == (kind, 120, NONE, NONE, NONE)
        assert plain(of.read_due)(at_hand(sent[-1])) == 120
