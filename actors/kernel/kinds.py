"""The kinds of messages: one table, a call of `kind` for each.

A kind is a whole number, ``0xRNN``. R is the rank: at equal times completions come before messages, those before
heartbeats, those before arrivals; RETRY comes when all else at its instant is handled, and decisions, which are no
messages, come last. NN tells the kinds of a rank apart; from 0xD0 on they are background messages, and a run is over
when only such messages are left. Numbers are unique over all families, so that actors of two families can share a
partition; jobs have NN from 0x00 on, coflows from 0x40 on, DAG jobs from 0xA0 on (`actors.machines.kinds`), and other
families may take what is free, with a call of `kind` in a module of their own.

The four numbers of a message are its columns a, b, c, d, each declared by its meaning. Column a may be declared as
``meaning: owners``, of which numbers it is one: a recorded event then has the job that this number belongs to
(`actors.worlds.Worlds.owners`). Times are in ns; rates, in bytes per ns, are the bits of a float, and so are times that
may be infinite.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import inlined


class Kind(NamedTuple):
    """A kind of messages.

    Attributes:
        family: whose it is, with spaces between several; empty: of all.
        about: from whom to whom, in words.
        columns: by column, what its number means.
        owners: what column a is a number of, by the names of `Worlds.owners`; empty: of none of them.
    """

    name: str
    number: int
    family: str
    about: str
    columns: Mapping[str, str]
    owners: str

    @property
    def rank(self) -> int:
        """Its place among messages of one instant."""
        return self.number >> 8

    @property
    def is_background(self) -> bool:
        """Whether a run may be over while it waits."""
        return self.number & 0xFF >= 0xD0


KINDS: dict[int, Kind] = {}
"""All kinds that have been declared, by number."""
MOST_RANK = 15  # four bits of a message's key


def kind(number: int, name: str, family: str, about: str, **columns: str) -> Any:
    """Declare a kind; return its number, an int64 since numba compiles a callee again for every plain number.

    Raises:
        ValueError: the number or the name is taken, or the number has no rank.
    """
    if number in KINDS or any(known.name == name for known in KINDS.values()):
        raise ValueError(f"message kind {name}, {number:#05x}: the number or the name is taken")
    if not 0 <= number >> 8 <= MOST_RANK:
        raise ValueError(f"message kind {name}, {number:#05x}: the rank is the third digit, 0 to f")
    columns["a"], _, owners = columns.get("a", "").partition(": ")
    KINDS[number] = Kind(name, number, family, about, columns, owners)
    return np.int64(number)


def kinds_of(family: str) -> dict[int, Kind]:
    """The kinds that a family's actors receive, by number."""
    return {
        number: known for number, known in KINDS.items() if not known.family or family in known.family.split()
    }


@inlined
def rank_of(number: int) -> int:
    """Return the rank of a kind."""
    return number >> 8


@inlined
def is_background(number: int) -> bool:
    """Return whether messages of a kind are background messages, which are not counted as work that is left."""
    return number & 0xFF >= 0xD0


FIRST_DECISION = np.int64(0x500)
"""From this kind on they are decisions: what a scheduler does when it has handled the messages of an instant."""

ALL, JOBS, COFLOWS = "", "jobs", "coflows"
OF_NODES = "jobs dags"

# Completions.
TASK_END = kind(0x000, "TASK_END", JOBS, "a node to itself", a="job: jobs", b="task", c="when it started")
PUBLISHED = kind(
    0x001,
    "PUBLISHED",
    JOBS,
    "shared state that changed in another partition",
    a="node",
    b="bit",
)
ANNOUNCED = kind(0x002, "ANNOUNCED", JOBS, "monitor to all actors", a="resource", b="its new state")
FLOW_END = kind(0x040, "FLOW_END", COFLOWS, "an agent to itself", a="flow: flows", b="its expected end")
LINE_END = kind(0x041, "LINE_END", COFLOWS, "an agent to itself", a="line: lines")

# Messages of jobs.
PROBE = kind(
    0x100, "PROBE", JOBS, "scheduler to node",
    a="job: jobs", b="tasks left, and level", c="round, and generation of the job",
    d="version of the shared state",
)  # fmt: skip
REQUEST = kind(
    0x101, "REQUEST", JOBS, "node to scheduler, late binding",
    a="job: jobs", b="node", c="generation of the node",
)  # fmt: skip
TASK = kind(
    0x102, "TASK", JOBS, "scheduler to node, the answer to a request",
    a="job: jobs", b="task", c="tasks left, and generation of the job", d="generation of the node",
)  # fmt: skip
NO_TASK = kind(
    0x103, "NO_TASK", JOBS, "scheduler to node, the answer to a request",
    a="job: jobs", c="generation of the job", d="generation of the node",
)  # fmt: skip
OWN_MESSAGE = kind(
    0x10D,
    "OWN_MESSAGE",
    JOBS,
    "a user's scheduler to another",
    a="a number",
    b="a number",
    c="a number",
)
OWN_ASK = kind(
    0x10E, "OWN_ASK", JOBS, "a user's scheduler to node: how much work is there?",
    a="the number of the question", b="who asks",
)  # fmt: skip
OWN_LOAD = kind(
    0x10F, "OWN_LOAD", JOBS, "node to a user's scheduler, the answer",
    a="node", b="the number of the question", c="its work",
    d="entries that wait less idle slots, and whether some work is long",
)  # fmt: skip
OWN_TASKS = kind(
    0x110, "OWN_TASKS", JOBS, "a job's scheduler to another of the user's, which is to place these tasks",
    a="job: jobs", b="the first", c="how many", d="the node that has lost it",
)  # fmt: skip
OWN_FREED = kind(
    0x111, "OWN_FREED", JOBS, "node to the scheduler that placed a task of another: it has ended",
    a="job: jobs", b="node", c="start", d="finish",
)  # fmt: skip
DONE = kind(
    0x104, "DONE", JOBS, "node to scheduler, a task has ended",
    a="job: jobs", b="node", c="start", d="finish",
)  # fmt: skip
PLACED = kind(
    0x105, "PLACED", JOBS, "scheduler to node, a task that is bound to it",
    a="job: jobs", b="task", c="tasks left", d="version of the shared state",
)  # fmt: skip
STARTED = kind(0x106, "STARTED", JOBS, "node to central scheduler", a="job: jobs", b="node", c="start")
REJECTED = kind(
    0x107, "REJECTED", JOBS, "node to scheduler; the second meaning is that of a task that was bound to it",
    a="job: jobs", b="version of the shared state, or task", c="round, or node",
    d="the node's work",
)  # fmt: skip
STEAL = kind(0x108, "STEAL", JOBS, "node to node", a="thief", b="attempts left", c="random bits")
LOAD_REPORT = kind(
    0x109, "LOAD_REPORT", JOBS, "node to all schedulers",
    a="node, and room in its queue", b="its work", c="start, or end, of its task",
    d="estimate of its task",
)  # fmt: skip
ASK_LENGTH = kind(0x10A, "ASK_LENGTH", JOBS, "scheduler to node", a="job: jobs", b="which of its probes")
LENGTH = kind(
    0x10B, "LENGTH", JOBS, "node to scheduler",
    a="job: jobs", b="which of its probes", c="node", d="queue length",
)  # fmt: skip
LOST = kind(
    0x10C, "LOST", OF_NODES, "node to scheduler, or scheduler to itself",
    a="job: jobs", b="task, or NONE for a probe", c="node", d="start",
)  # fmt: skip
NODE_DOWN = kind(
    0x1D0,
    "NODE_DOWN",
    OF_NODES,
    "node to all schedulers",
    a="node",
    b="generation",
    c="when",
)
NODE_UP = kind(
    0x1D1,
    "NODE_UP",
    OF_NODES,
    "node to all schedulers",
    a="node",
    b="generation",
    c="when",
)

# Messages of coflows; of a coflow that was updated, those about a flow have its generation and bytes in c and d.
SET_RATE = kind(
    0x140, "SET_RATE", COFLOWS, "coordinator to agent; rate 0 stops the flow",
    a="flow: flows", b="rate, beyond that of its line", c="generation", d="bytes",
)  # fmt: skip
SHRINK = kind(
    0x141, "SHRINK", COFLOWS, "coordinator to agent; infinity stops the flows",
    a="line: lines", b="ns in which its waiting flows end together",
)  # fmt: skip
FLOW_DONE = kind(
    0x142, "FLOW_DONE", COFLOWS, "agent to coordinator",
    a="flow: flows", b="its end", c="generation", d="bytes",
)  # fmt: skip
PACE = kind(
    0x143, "PACE", COFLOWS, "coordinator to agent; infinity puts the flow back among those that wait",
    a="flow: flows", b="ns in which it ends on its own",
)  # fmt: skip
LINE_DONE = kind(
    0x144, "LINE_DONE", COFLOWS, "agent to coordinator: the waiting flows of a line have ended",
    a="line: lines", b="their end", c="how many",
)  # fmt: skip
SET_LINE = kind(
    0x145, "SET_LINE", COFLOWS, "coordinator to agent; rate 0 stops the flows",
    a="line: lines", b="rate of each of its flows",
)  # fmt: skip
VERDICT = kind(
    0x146, "VERDICT", COFLOWS, "coordinator to agent: a coflow is admitted, rejected or dropped",
    a="line, the coflow's at the agent: lines",
    b="0 rejected, 1 admitted, 2 rejected for good, 3 dropped as late",
)  # fmt: skip

# What comes after messages.
HEARTBEAT = kind(0x200, "HEARTBEAT", JOBS, "a node to itself")
MONITOR = kind(0x201, "MONITOR", JOBS, "the monitor to itself")
OWN_WAKE = kind(
    0x202, "OWN_WAKE", JOBS, "a user's scheduler to itself, at a time it asked for", a="its number"
)
FAIL = kind(0x2D0, "FAIL", OF_NODES, "a node to itself")
DETECT = kind(0x2D1, "DETECT", OF_NODES, "a node to itself")
REPAIR = kind(0x2D2, "REPAIR", OF_NODES, "a node to itself")
CHANGE = kind(
    0x240, "CHANGE", COFLOWS, "an agent to itself: an update of a coflow stops flows", a="stop: stops"
)
ARRIVAL = kind(0x300, "ARRIVAL", JOBS, "a scheduler to itself", a="job: jobs")
REGISTER = kind(
    0x340,
    "REGISTER",
    COFLOWS,
    "framework to coordinator: a coflow has arrived",
    a="coflow: coflows",
)
RETRY = kind(0x400, "RETRY", JOBS, "a scheduler to itself", a="job: jobs", b="round")
UPDATE = kind(0x440, "UPDATE", COFLOWS, "framework to coordinator: a coflow has changed", a="update: updates")
DECIDE = kind(0x540, "DECIDE", COFLOWS, "the coordinator to itself", a="when")
TELL = kind(0x541, "TELL", COFLOWS, "the coordinator to itself: send the rest of this instant's schedules")
