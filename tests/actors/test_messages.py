"""What is written into a message is what is read from it, and what a recorded event has under the field's name."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.kernel import messages
from actors.kernel.message_kinds import KINDS, NONE, Field, Kind
from actors.machines import messages as messages_of_dags
from actors.nodes import load_messages
from actors.nodes import messages as messages_of_jobs
from actors.schedulers.user import jobs_messages

MODULES = (messages, messages_of_jobs, load_messages, jobs_messages, messages_of_dags)
COLUMNS = ("a", "b", "c", "d")
ROUNDS = ("great", "greater", "none")


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


def writers() -> Iterator[tuple[ModuleType, Any, Any, Kind]]:
    """Yield each function that writes, the one that reads if there is one, and each kind that it writes."""
    for module in MODULES:
        kinds, readers = kinds_in(module).values(), functions(module, "read_")
        for name, writer in functions(module, "send_").items():
            reader = readers.get(
                max((known for known in readers if name.startswith(known)), key=len, default="")
            )
            said = set(writer.__code__.co_names) | set(re.findall(r"[A-Z_]{2,}", writer.__doc__))
            for kind in kinds:
                if kind.name in said:
                    yield module, writer, reader, kind


WRITERS = list(writers())


@pytest.mark.parametrize("values", ROUNDS)
@pytest.mark.parametrize(
    ("module", "writer", "reader", "kind"),
    WRITERS,
    ids=[f"{one[1].__name__}-{one[3].name}" for one in WRITERS],
)
def test_each_field_is_read_as_it_was_written(
    module: ModuleType, writer: Any, reader: Any, kind: Kind, values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple] = []
    stand_ins = {
        "send": lambda w, t, src, dst, kind, *columns: sent.append((kind, *columns)),
        "wake": lambda w, time, actor, kind, *columns: sent.append((kind, *columns, NONE)),
        "send_to_schedulers": lambda w, t, node, kind, *columns: sent.append((kind, *columns)),
        "announce": lambda w, t, src, kind, *columns: sent.append((kind, *columns, NONE)),
        "publish": lambda w, t, kind, *columns: sent.append((kind, *columns, NONE)),
    }
    for name, value in vars(module).copy().items():
        monkeypatch.setattr(module, name, stand_ins.get(name, plain(value)))
    now, home = SimpleNamespace(), defaultdict(int)
    queue = SimpleNamespace(now=now, seq=np.zeros(9, np.int64))
    world = SimpleNamespace(
        queue=queue,
        work=SimpleNamespace(home=home),
        faults=SimpleNamespace(active=0),
        rules=SimpleNamespace(names_tasks=0),
    )
    given: dict[str, Any] = {}
    for i, name in enumerate(inspect.signature(writer).parameters):
        given[name] = value_of(kind.fields[name], i, values) if name in kind.fields else np.int64(1000 + i)
    given |= {"w": world} | ({"kind": np.int64(kind.number)} if "kind" in given else {})
    writer(**given)
    [(number, *columns)] = sent
    assert number == kind.number
    now.kind = np.array([number])
    for name, column in zip(COLUMNS, columns, strict=True):
        setattr(now, name, np.array([column]))
    recorded = {name: field.of(getattr(now, field.column))[0] for name, field in kind.fields.items()}
    assert {name: value for name, value in given.items() if name in recorded}.items() <= recorded.items()
    if reader is not None:
        read = reader(world)
        own = ("evictions", "place") if kind.name == "DONE" else ()  # which have readers of their own
        assert (read if isinstance(read, tuple) else (read,)) == tuple(
            value for name, value in recorded.items() if name not in own
        )
    if kind.name == "DONE":
        assert plain(messages_of_jobs.read_evictions)(world) == recorded["evictions"]
        assert plain(messages_of_jobs.read_place)(world) == recorded["place"]
    if "job" in recorded and kind.fields["job"].column == "a":
        assert plain(messages.read_job)(world) == recorded["job"]
    if kind.name in ("TASK", "NO_TASK"):
        assert plain(messages_of_jobs.read_generation)(world) == recorded["generation"]
    if not any(field.is_float for field in kind.fields.values()):
        assert kind.read(columns) == recorded


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


@pytest.mark.parametrize("module", MODULES)
def test_each_kind_that_carries_something_is_written(module: ModuleType) -> None:
    assert {kind.name for of, _, _, kind in WRITERS if of is module} == kinds_in(module).keys()


def test_a_report_without_a_resource_has_none_of_its_fields() -> None:
    none = np.int64(NONE)
    assert load_messages.demand(none, none, none) == NONE
    assert plain(load_messages.demanded)(none) == (NONE, NONE, NONE)
