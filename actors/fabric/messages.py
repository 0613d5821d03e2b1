"""Messages between the agents at the ports of a switch and the coordinator of coflows.

Each kind is declared beside the function that sends it and the one that reads it. Of a coflow that was updated, those
about a flow have its generation and bytes.
"""

from actors.kernel.message_kinds import FIELDS, kind

COFLOWS = "coflows"
FIELDS.update(
    line="a line of flows",
    coflow="a coflow",
    update="an update of a coflow",
    stop="flows that an update stops",
    expected_end="when the flow ends at its rate",
    end="when it ended",
    rate="bytes per ns; of SET_RATE beyond that of the flow's line, 0: the flow stops",
    flow_generation="updates of the flow so far",
    size_bytes="bytes of the flow, sent or to be sent",
    duration="ns in which its flows end; infinity: they stop, or wait again",
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
PACE = kind(
    0x143, "PACE", COFLOWS, "coordinator to agent: a flow that ends on its own", a="flow", b="duration:float"
)
LINE_DONE = kind(
    0x144, "LINE_DONE", COFLOWS, "agent to coordinator: the waiting flows of a line have ended",
    a="line", b="end", c="ended",
)  # fmt: skip
SET_LINE = kind(
    0x145, "SET_LINE", COFLOWS, "coordinator to agent: the rate of each flow of a line; 0 stops them",
    a="line", b="rate:float",
)  # fmt: skip
VERDICT = kind(
    0x146, "VERDICT", COFLOWS, "coordinator to agent, of the coflow of this line", a="line", b="verdict"
)
CHANGE = kind(0x240, "CHANGE", COFLOWS, "an agent to itself: an update of a coflow stops flows", a="stop")
REGISTER = kind(0x340, "REGISTER", COFLOWS, "framework to coordinator: a coflow has arrived", a="coflow")
UPDATE = kind(0x440, "UPDATE", COFLOWS, "framework to coordinator: a coflow has changed", a="update")
DECIDE = kind(0x540, "DECIDE", COFLOWS, "the coordinator to itself", a="due")
TELL = kind(
    0x541, "TELL", COFLOWS, "the coordinator to itself: send the rest of this instant's schedules", a="due"
)
