"""Functions that write and read messages, made from the declarations of their kinds (`actors.kernel.message_kinds`).

`send_steal = sender(STEAL)` and `read_steal = reader(STEAL)` take and return the fields in the order in which they are
declared: what a message carries, and where, is said there alone. What a message needs more than its fields, such as a
column that is empty as a whole, has functions of its own in the `messages.py` of its folder.
"""

from collections.abc import Iterator
from typing import Any

from actors.kernel.compiled import inlined
from actors.kernel.message_kinds import KINDS, Field, bits_of, float_of
from actors.kernel.queue import NONE, send, send_to_schedulers, wake


def sender(kind: int) -> Any:
    """Return a function (w, t, source, target, *fields) that sends a message of a kind from one actor to another."""
    return _write("send", kind, "w, t, source, target", "send(w, t, source, target, kind, {})", "abcd")


def timer(kind: int) -> Any:
    """Return a function (w, time, actor, *fields) that lets an actor receive a message of its own at `time`."""
    return _write("set", kind, "w, time, actor", "wake(w, time, actor, kind, {})", "abc")


def report(kind: int) -> Any:
    """Return a function (w, t, *fields) that sends a message of the node in the first field to all schedulers."""
    node = next(iter(KINDS[int(kind)].fields))
    return _write("report", kind, "w, t", f"send_to_schedulers(w, t, {node}, kind, {{}})", "abcd")


def reader(kind: int) -> Any:
    """Return a function (w) that returns the fields of the message at hand; of one field its value alone."""
    known = KINDS[int(kind)]
    values = ", ".join(map(_value_of, known.fields.values()))
    body = f"now = w.queue.now\n    return {values}"
    return _made(f"read_{known.name.lower()}", "w", body, kind, f"Return {', '.join(known.fields)}.")


def _write(verb: str, kind: int, first: str, call: str, columns: str) -> Any:
    known = KINDS[int(kind)]
    body = call.format(", ".join(" | ".join(_parts_of(known.fields, column)) or "NONE" for column in columns))
    takes, about = ", ".join((first, *known.fields)), f"Send a {known.name}: {known.about}."
    return _made(f"{verb}_{known.name.lower()}", takes, body, kind, about)


def _parts_of(fields: Any, column: str) -> Iterator[str]:
    """Yield what stands in a column, as code: a field each."""
    for name, field in fields.items():
        if field.column == column:
            value = f"bits_of({name})" if field.is_float else f"({name} + 1)" if field.more else name
            yield f"{value} << {field.shift}" if field.shift else value


def _value_of(field: Field) -> str:
    """Return a field of the message at hand, as code."""
    value = f"now.{field.column}[0]"
    if field.is_float:
        return f"float_of({value})"
    if field.shift:
        value = f"{value} >> {field.shift}"
    if field.shift + field.bits < 64:
        value = f"{value} & {(1 << field.bits) - 1}"
    return f"({value}) - {field.more}" if field.more else value


def _made(name: str, takes: str, body: str, kind: int, about: str) -> Any:
    """Return a compiled function of this code. It stands in this file as far as the cache of kernels is concerned."""
    named = {"bits_of": bits_of, "float_of": float_of, "send": send, "wake": wake, "NONE": NONE, "kind": kind}
    named |= {"send_to_schedulers": send_to_schedulers, "__name__": __name__}
    exec(compile(f"def {name}({takes}):\n    {body}\n", __file__, "exec"), named)
    made: Any = named[name]
    made.__doc__ = about
    return inlined(made)
