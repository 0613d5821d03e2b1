"""What is written into a message is what is read from it, and what a recorded event has under the field's name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.kernel import messages
from actors.kernel.message_kinds import KINDS, NONE, Field, Kind
from actors.machines import messages as messages_of_dags

MODULES = (messages, messages_of_dags)
COLUMNS = ("a", "b", "c", "d")


def plain(function: Any) -> Any:
    """Return the Python function of a compiled one."""
    return getattr(function, "py_func", function)


def functions(module: ModuleType, prefix: str) -> dict[str, Any]:
    """Return the functions of a module whose name begins so, by the rest of the name."""
    return {
        name.removeprefix(prefix): plain(value)
        for name, value in vars(module).items()
        if name.startswith(prefix) and plain(value).__module__ == module.__name__
    }


def kinds_in(module: ModuleType) -> dict[str, Kind]:
    """Return the kinds that a module declares, or writes and reads, and that carry something."""
    known = {kind.name: kind for kind in KINDS.values() if kind.fields}
    return {name: known[name] for name in vars(module) if name in known}


def writers() -> Iterator[Any]:
    """Yield each function that writes, with the one that reads, for each kind that it writes."""
    for module in MODULES:
        readers = functions(module, "read_")
        for name, writer in functions(module, "send_").items():
            reader = readers[max((known for known in readers if name.startswith(known)), key=len)]
            names = inspect.signature(reader, eval_str=True).return_annotation._fields
            named = [kind for kind in kinds_in(module).values() if kind.name in writer.__code__.co_names]
            for kind in named or [one for one in kinds_in(module).values() if tuple(one.fields) == names]:
                yield pytest.param(module, writer, reader, kind, id=f"{writer.__name__}-{kind.name}")


@pytest.mark.parametrize(("module", "writer", "reader", "kind"), list(writers()))
@pytest.mark.parametrize("flag", [0, 1])
def test_each_field_is_read_as_it_was_written(
    module: ModuleType, writer: Any, reader: Any, kind: Kind, flag: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple] = []
    stand_ins = {
        "send": lambda w, t, src, dst, kind, *columns: sent.append((kind, *columns)),
        "wake": lambda w, time, actor, kind, *columns: sent.append((kind, *columns, NONE)),
        "announce": lambda w, t, src, kind, *columns: sent.append((kind, *columns, NONE)),
        "publish": lambda w, t, kind, *columns: sent.append((kind, *columns, NONE)),
    }
    for name in stand_ins.keys() & vars(module).keys():
        monkeypatch.setattr(module, name, stand_ins[name])
    now = SimpleNamespace()
    world = SimpleNamespace(queue=SimpleNamespace(now=now, seq=np.zeros(9, np.int64)))
    given: dict[str, Any] = {}
    for i, name in enumerate(inspect.signature(writer).parameters):
        given[name] = largest(kind.fields[name], i, flag) if name in kind.fields else np.int64(1000 + i)
    given |= {"w": world} | ({"kind": np.int64(kind.number)} if "kind" in given else {})
    writer(**given)
    [(number, *columns)] = sent
    assert number == kind.number
    for name, column in zip(COLUMNS, columns, strict=True):
        setattr(now, name, np.array([column]))
    read = reader(world)._asdict()
    recorded = {name: field.of(getattr(now, field.column))[0] for name, field in kind.fields.items()}
    assert read == recorded
    assert {name: value for name, value in given.items() if name in read}.items() <= read.items()


def largest(field: Field, i: int, flag: int) -> Any:
    """Return a great value of a field, another one for each `i`; for a field of one bit, `flag`."""
    if field.is_float:
        return 0.1 * i + flag
    if field.bits == 1:
        return np.int64(flag)
    is_last = field.shift + field.bits == 64
    return np.int64((1 << field.bits - is_last) - 1 - i)


@pytest.mark.parametrize("module", MODULES)
def test_each_kind_that_carries_something_is_written_and_read(module: ModuleType) -> None:
    written = {one.values[3].name for one in writers() if one.values[0] is module}
    assert written == kinds_in(module).keys()
