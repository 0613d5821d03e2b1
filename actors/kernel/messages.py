"""Messages that actors of all families send: failures of nodes, state that all share, and arrivals.

Each kind is declared beside the function that sends it and the one that reads it.
"""

from actors.kernel.message_kinds import FIELDS, kind

JOBS, OF_NODES = "jobs", "jobs dags"
FIELDS.update(
    start="when the task started, none if it did not",
    generation="failures of the node so far",
    time="when it happened",
    bit="the node is known to have long work, or no longer",
    resource="a resource that jobs have constraints on",
    state="its new state",
)

PUBLISHED = kind(
    0x001, "PUBLISHED", JOBS, "shared state that changed in another partition", a="node", b="bit"
)
ANNOUNCED = kind(0x002, "ANNOUNCED", JOBS, "monitor to all actors", a="resource", b="state")
LOST = kind(
    0x10C,
    "LOST",
    OF_NODES,
    "node to scheduler, or scheduler to itself",
    a="job",
    b="task",
    c="node",
    d="start",
)
NODE_DOWN = kind(0x1D0, "NODE_DOWN", OF_NODES, "node to all schedulers", a="node", b="generation", c="time")
NODE_UP = kind(0x1D1, "NODE_UP", OF_NODES, "node to all schedulers", a="node", b="generation", c="time")
FAIL = kind(0x2D0, "FAIL", OF_NODES, "a node to itself")
DETECT = kind(0x2D1, "DETECT", OF_NODES, "a node to itself")
REPAIR = kind(0x2D2, "REPAIR", OF_NODES, "a node to itself")
ARRIVAL = kind(0x300, "ARRIVAL", JOBS, "a scheduler to itself", a="job")
