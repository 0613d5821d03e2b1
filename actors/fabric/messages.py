"""Messages between the agents at the ports of a switch and the coordinator of coflows.

The coordinator is the actor after all agents. Times are in ns, rates in bytes per ns. Messages about flows
carry a generation and bytes only if there are updates of coflows.
"""

from typing import NamedTuple

from actors.kernel.compiled import inlined
from actors.kernel.cost import HasCost
from actors.kernel.message_functions import reader, sender, timer
from actors.kernel.message_kinds import FIELDS, bits_of, float_of, kind
from actors.kernel.queue import NONE, send, wake

COFLOWS = "coflows"
FIELDS.update(
    line="a line of flows",
    coflow="a coflow",
    update="an update of a coflow",
    stop="the flows of one agent that an update stops",
    expected_end="when the flow ends at its rate",
    end="when it ended",
    rate="bytes per ns; 0: the flow, or each flow of the line, stops",
    extra_rate="bytes per ns that a flow has beyond the rate of its line",
    flow_generation="how often updates have stopped the flow",
    size_bytes="bytes of the flow in this generation, sent or to be sent",
    duration="ns in which the flow ends, or the waiting flows of the line; infinity: it joins these; they stop",
    ended="how many flows have ended",
    verdict="0 rejected, 1 admitted, 2 rejected for good, 3 dropped as late",
    due="when the decision, or what is sent, is due",
)

FLOW_END = kind(0x040, "FLOW_END", COFLOWS, "an agent to itself", a="flow", b="expected_end")
LINE_END = kind(0x041, "LINE_END", COFLOWS, "an agent to itself", a="line")
SET_RATE = kind(
    0x140, "SET_RATE", COFLOWS, "coordinator to agent",
    a="flow", b="rate:float", c="flow_generation", d="size_bytes:float",
)  # fmt: skip
SHRINK = kind(
    0x141,
    "SHRINK",
    COFLOWS,
    "coordinator to agent: the waiting flows of a line",
    a="line",
    b="duration:float",
)
FLOW_DONE = kind(
    0x142, "FLOW_DONE", COFLOWS, "agent to coordinator",
    a="flow", b="end", c="flow_generation", d="size_bytes:float",
)  # fmt: skip
PACE = kind(0x143, "PACE", COFLOWS, "coordinator to agent: a backfilled flow", a="flow", b="duration:float")
LINE_DONE = kind(
    0x144, "LINE_DONE", COFLOWS, "agent to coordinator: the waiting flows of a line have ended",
    a="line", b="end", c="ended",
)  # fmt: skip
SET_LINE = kind(
    0x145,
    "SET_LINE",
    COFLOWS,
    "coordinator to agent: the rate of each flow of a line",
    a="line",
    b="rate:float",
)
VERDICT = kind(0x146, "VERDICT", COFLOWS, "coordinator to agent, of a line's coflow", a="line", b="verdict")
SET_EXTRA = kind(
    0x147, "SET_EXTRA", COFLOWS, "coordinator to agent: a backfilled flow", a="flow", b="extra_rate:float"
)
FLOW_CUT = kind(
    0x148, "FLOW_CUT", COFLOWS, "agent to coordinator: a flow has ended before its last byte", a="flow"
)
CHANGE = kind(0x240, "CHANGE", COFLOWS, "an agent to itself: an update of a coflow stops flows", a="stop")
REGISTER = kind(0x340, "REGISTER", COFLOWS, "framework to coordinator: a coflow has arrived", a="coflow")
UPDATE = kind(0x440, "UPDATE", COFLOWS, "framework to coordinator: a coflow has changed", a="update")
DECIDE = kind(0x540, "DECIDE", COFLOWS, "the coordinator to itself", a="due")
SEND_REST = kind(
    0x541, "SEND_REST", COFLOWS, "the coordinator to itself: send the rest of the schedules", a="due"
)

send_flow_end = timer(FLOW_END)
read_flow_end = reader(FLOW_END)
send_line_end = timer(LINE_END)
read_line_end = reader(LINE_END)
send_flow_cut = sender(FLOW_CUT)
read_flow_cut = reader(FLOW_CUT)
send_verdict = sender(VERDICT)
read_verdict = reader(VERDICT)
send_line_done = sender(LINE_DONE)
read_line_done = reader(LINE_DONE)
send_change = timer(CHANGE)
read_change = reader(CHANGE)
send_register = timer(REGISTER)
read_register = reader(REGISTER)
send_update = timer(UPDATE)
read_update = reader(UPDATE)
read_due = reader(DECIDE)  # or SEND_REST
read_value = reader(SET_LINE)  # or SET_EXTRA, SHRINK, PACE


class SetRate(NamedTuple):
    """What `SET_RATE` carries."""

    flow: int
    rate: float
    flow_generation: int
    size_bytes: float


class FlowDone(NamedTuple):
    """What `FLOW_DONE` carries."""

    flow: int
    end: int
    flow_generation: int
    size_bytes: float


@inlined
def send_set_rate(
    w: HasCost, t: int, agent: int, flow: int, rate: float, flow_generation: int, size_bytes: float
) -> None:
    """Send an agent the rate of a flow."""
    send(
        w, t, w.nodes.size, agent, SET_RATE, flow, bits_of(rate), *of_generation(flow_generation, size_bytes)
    )


@inlined
def read_set_rate(w: HasCost) -> SetRate:
    """Return what the `SET_RATE` at hand carries."""
    now = w.queue.now
    return SetRate(now.a[0], float_of(now.b[0]), now.c[0], float_of(now.d[0]))


@inlined
def of_generation(flow_generation: int, size_bytes: float) -> tuple[int, int]:
    """Return the columns of a flow's generation and bytes; both are NONE without updates."""
    return flow_generation, bits_of(size_bytes) if flow_generation != NONE else NONE


@inlined
def send_value(w: HasCost, t: int, agent: int, kind: int, which: int, value: float) -> None:
    """Send an agent the rate of a line (`kind` is SET_LINE) or flow (SET_EXTRA), or its duration (SHRINK, PACE)."""
    send(w, t, w.nodes.size, agent, kind, which, bits_of(value), NONE, NONE)


@inlined
def send_flow_done(
    w: HasCost, t: int, me: int, flow: int, end: int, flow_generation: int, size_bytes: float
) -> None:
    """Send the coordinator that a flow has ended."""
    send(w, t, me, w.nodes.size, FLOW_DONE, flow, end, *of_generation(flow_generation, size_bytes))


@inlined
def read_flow_done(w: HasCost) -> FlowDone:
    """Return what the `FLOW_DONE` at hand carries."""
    now = w.queue.now
    return FlowDone(now.a[0], now.b[0], now.c[0], float_of(now.d[0]))


@inlined
def send_due(w: HasCost, kind: int, due: int) -> None:
    """Set the timer of the coordinator for a decision (`kind` is DECIDE), or for what is left to send (SEND_REST)."""
    wake(w, due, w.nodes.size, kind, due, NONE, NONE)
