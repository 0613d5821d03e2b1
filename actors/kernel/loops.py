"""The loop of a policy, made from a table of its steps: kind of message to the handler of such messages.

    advance = make_loop(__name__, State, {ARRIVAL: on_arrival, DONE: on_done}, {STEAL: on_steal})

A handler takes what it names: `w` is the world, `t` the time, `kind` the kind of the message at hand, `me` the actor
that it is for (at nodes also `node`), `job` the job in its first column. What else it takes is the state, or the part
of the state that has the type of the argument. The loop is compiled as if it had been written by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

from actors.kernel.compiled import entry
from actors.kernel.cost import take
from actors.kernel.messages import read_job
from actors.kernel.queue import GROW, RUNNING

Handler = Callable[..., Any]
Handlers = dict[Any, Handler]  # by kind of message
OF_MESSAGE = {name: name for name in ("w", "t", "kind", "me")} | {"job": "read_job(w)"}
AT_NODES = OF_MESSAGE | {"node": "me"}

LOOP = """
def advance(w, p, until, most):
    message = w.queue.now
    for _ in range(most):
{grow}
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
{nodes}
        else:
{schedulers}
    return RUNNING
"""


def make_loop(
    module: str,
    state: Any,
    handlers: Handlers,
    at_nodes: Handlers,
    *,
    others: Handler | None = None,
    others_at_nodes: Handler | None = None,
    grows_if: Sequence[Handler] = (),
) -> Any:
    """Return a compiled function (w, p, until, most): handle events before `until`, at most `most` of them.

    It returns the stop reason.

    Args:
        module: `__name__` where the loop is made, as `advance`; other processes look for it there.
        state: the type of `p`.
        handlers: of messages to schedulers, by kind; those of other kinds go to `others`, or have no effect.
        at_nodes: of messages to nodes, likewise.
        grows_if: tests before each event; where one is true, the loop stops, so that the host makes an array larger.

    Raises:
        TypeError: a handler takes what is neither of a message nor one part of the state.
    """
    names: dict[str, Any] = {"take": take, "read_job": read_job, "GROW": GROW, "RUNNING": RUNNING}
    grow = [
        f"        if {code_of_call(each, OF_MESSAGE, state, names)}:\n            return GROW"
        for each in grows_if
    ]
    nodes = _cases(at_nodes, others_at_nodes, AT_NODES, state, names)
    schedulers = _cases(handlers, others, OF_MESSAGE, state, names)
    code = LOOP.format(grow="\n".join(grow), nodes=nodes, schedulers=schedulers)
    return compile_loop(module, code, names)


def compile_loop(module: str, code: str, names: dict[str, Any]) -> Any:
    """Return the compiled loop of which the code is given, with the values of the names that it uses."""
    values = names | {"__name__": module}
    exec(compile(code, __file__, "exec"), values)
    loop: Any = values[code.split("def ", 1)[1].split("(", 1)[0]]
    loop.__doc__ = "Handle events before `until`, at most `most` of them; return the stop reason."
    return entry(loop)


def _cases(
    handlers: Handlers, others: Handler | None, known: Mapping[str, str], state: Any, names: dict[str, Any]
) -> str:
    """Return the code that calls the handler of the message at hand; the names that it uses are added to `names`."""
    lines = ["            if False:", "                pass"]  # numba leaves it out
    for kind, handler in handlers.items():
        name = f"KIND_{int(kind):X}"
        names[name] = kind
        lines += [
            f"            elif kind == {name}:",
            f"                {code_of_call(handler, known, state, names)}",
        ]
    if others is not None:
        lines += ["            else:", f"                {code_of_call(others, known, state, names)}"]
    return "\n".join(lines)


def code_of_call(handler: Handler, known: Mapping[str, str], state: Any, names: dict[str, Any]) -> str:
    """Return the code that calls a handler; its name is added to `names`."""
    function = getattr(handler, "py_func", handler)  # what a compiled function was made of
    name = f"{function.__module__}.{function.__qualname__}"
    names[name.replace(".", "_")] = handler
    hints, code = get_type_hints(function), function.__code__
    given = []
    for argument in code.co_varnames[: code.co_argcount]:
        value = known.get(argument) or _part_of_type(hints.get(argument), state)
        if value is None:
            raise TypeError(
                f"{name}: {state.__qualname__} has not exactly one part of the type of `{argument}`; want"
                f" {', '.join(known)}, or one part of the state"
            )
        given.append(value)
    return f"{name.replace('.', '_')}({', '.join(given)})"


def _part_of_type(wanted: Any, state: Any) -> str | None:
    """Return the code of the state, or of its only part of a type, the outermost; None if there is none, or several."""
    level = [("p", state)]
    while level:
        found = [code for code, type_ in level if type_ is wanted]
        if found:
            return found[0] if len(found) == 1 else None
        level = [
            (f"{code}.{name}", inner)
            for code, type_ in level
            if hasattr(type_, "_fields")
            for name, inner in get_type_hints(type_).items()
        ]
    return None
