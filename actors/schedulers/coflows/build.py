"""Schedulers of coflows from their parts: the loop of a coordinator, and what all of them state.

A policy's file has the state of its coordinator, which is made of parts, and a handler for each kind of message:

    advance, advance_transfers = coordinator_loops(
        __name__, State, {REGISTER: on_arrival, FLOW_DONE: on_flow_done, DECIDE: on_decide}, BY_FLOW, cut_flow
    )

The parts are an order (`actors.fabric.order`, `priority_queues`, `deadline_order`), a way to rates
(`actors.fabric.greedy`, `madd`, `equal_rates`, `flow_rates`), with the handlers of the agents that such rates are sent
to (`actors.fabric.agent`), and, for coflows with deadlines, an admission (`actors.fabric.admission`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from actors.fabric.coordinator import is_due, keep_end
from actors.fabric.messages import (
    DECIDE,
    FLOW_CUT,
    FLOW_DONE,
    REGISTER,
    UPDATE,
    read_flow_cut,
    read_flow_done,
    read_register,
    read_update,
)
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.cost import take
from actors.kernel.loops import OF_MESSAGE, Handler, Handlers, code_of_call, compile_loop
from actors.kernel.queue import GROW, PYTHON, RUNNING, lacks_room
from actors.kernel.turns import take_of_network
from actors.scheduler import Scheduler
from actors.transfers.shuffles import (
    end_cuts,
    go_on,
    handle_shuffles,
    has_cuts,
    has_room_to_cut,
    is_unfinished,
    next_cut,
    note_ended,
)

coflow_scheduler = partial(Scheduler, worlds=COFLOW_WORLDS)
"""Make a scheduler of coflows: what is left to say is its names, its parameters, `build` and its loops."""

# What a handler of a kind of message takes besides what those of all kinds do.
CARRIED = {
    REGISTER: {"coflow": "read_register(w)"},
    UPDATE: {"update": "read_update(w)"},
    FLOW_DONE: {"flow": "read_flow_done(w).flow", "ended": "read_flow_done(w).end"},
    FLOW_CUT: {"flow": "read_flow_cut(w)"},
}
LOOP = """
def advance(w, p, until, most):
    message = w.queue.now
    for _ in range(most):
{grow}
        why = take(w, until)
        if why != RUNNING:
            return why
{event}
    return RUNNING
"""
# The same over the network of DAG jobs: `machines` is their world, whose queue the coordinator's world has.
LOOP_OF_TRANSFERS = """
def advance_transfers(machines, transfers, until, most):
    w, p, shuffles, message = transfers.world, transfers.coordinator, transfers.shuffles, machines.queue.now
    for _ in range(most):
{grow}
        if is_unfinished(shuffles):
            if shuffles.lacks[0] > 0 or lacks_room(w.queue):
                return GROW
            t = message.time[0]
            if not has_cuts(shuffles.cuts):
                go_on(machines, w, shuffles, t)
                continue
            sent = 0
            while has_room_to_cut(w, shuffles.cuts, sent):
                flow = next_cut(w, shuffles.cuts, t)
                if flow >= 0:
                    machines.inputs.moved[0] -= {cut}
                    sent += 1
            end_cuts(machines, w, shuffles, t)
            continue
        why = take_of_network(machines, until)
        if why != RUNNING:
            return why
        if handle_shuffles(machines, w, shuffles):
            continue
{event}
        note_ended(machines, w, shuffles)
    return RUNNING
"""
EVENT = """
        keep_end(w)
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
{at_agents}
        else:
{at_coordinator}
"""
USED = (
    *(take, keep_end, lacks_room, take_of_network, read_flow_cut, read_flow_done, read_register, read_update),
    *(end_cuts, has_cuts, has_room_to_cut, next_cut, go_on, handle_shuffles, is_unfinished, note_ended),
)


def coordinator_loops(
    module: str,
    state: Any,
    handlers: Handlers,
    at_agents: Handlers,
    cut: Handler | None = None,
    grows_if: Sequence[Handler] = (),
) -> tuple[Any, Any]:
    """Return the compiled loops of a coordinator and its agents: of coflows, and of the network of DAG jobs.

    Each is a function (w, p, until, most), which handles at most `most` events before `until`, and returns the stop
    reason. Handlers take what they name: `w`, `t`, `kind`, `me`, what is `CARRIED`, and parts of the state, by their
    types (`actors.kernel.loops`).

    Args:
        module: `__name__` where the loops are made, as `advance` and `advance_transfers`.
        state: the type of the state of the coordinator, with an `Agenda`.
        handlers: of messages to the coordinator, by kind. That of DECIDE is called where the decision is due; if it
            returns true, the host must decide.
        at_agents: of messages to agents.
        cut: (…, flow), ends a flow before its last byte, and returns what it had left; None: the coordinator schedules
            no coflows of DAG jobs.
        grows_if: tests before each event; where one is true, the loop stops, so that the host makes an array larger.
    """
    names: dict[str, Any] = {function.__name__: function for function in USED}
    names |= {"GROW": GROW, "PYTHON": PYTHON, "RUNNING": RUNNING}

    def call(handler: Handler, of_kind: dict[str, str] | None = None) -> str:
        return code_of_call(handler, OF_MESSAGE | (of_kind or {}), state, names)

    def cases(table: Handlers) -> str:
        lines = ["            if False:", "                pass"]  # numba leaves it out
        for kind, handler in table.items():
            name = f"KIND_{int(kind):X}"
            names[name] = kind
            code = call(handler, CARRIED.get(kind))
            if kind == DECIDE:
                lines.append(f"            elif kind == {name} and {call(is_due)}:")
                lines += [f"                if {code}:", "                    return PYTHON"]
            else:
                lines += [f"            elif kind == {name}:", f"                {code}"]
        return "\n".join(lines)

    parts = {
        "event": EVENT.format(at_agents=cases(at_agents), at_coordinator=cases(handlers)),
        "grow": "\n".join(f"        if {call(test)}:\n            return GROW" for test in grows_if),
    }
    advance: Callable = compile_loop(module, LOOP.format(**parts), names)
    if cut is None:
        return advance, None
    code = LOOP_OF_TRANSFERS.format(cut=call(cut, {"flow": "flow"}), **parts)
    return advance, compile_loop(module, code, names)
