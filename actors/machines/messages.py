"""Messages between the resource manager and the node managers of machines with several resources.

Each kind is declared beside the function that sends it and the one that reads it.
"""

from actors.kernel.message_kinds import FIELDS, kind

DAGS = "dags"
FIELDS.update(stage="its stage, by its number over all jobs")

STAGE_TASK_END = kind(0x0A0, "STAGE_TASK_END", DAGS, "a node to itself", a="task", b="stage", c="start")
LAUNCH = kind(0x1A0, "LAUNCH", DAGS, "resource manager to node: run a task", a="task", b="stage")
TASK_DONE = kind(
    0x1A1, "TASK_DONE", DAGS, "node to resource manager: a task has ended",
    a="task", b="stage", c="node", d="start",
)  # fmt: skip
FREE = kind(
    0x1A2, "FREE", DAGS, "node to resource manager: its heartbeat, after all that has ended", c="node"
)
STOP = kind(0x1A3, "STOP", DAGS, "resource manager to node: no job is left, heartbeats end")
ENDED = kind(
    0x1A4, "ENDED", DAGS, "a node to itself: the heartbeat with which it tells of an end is due",
    a="task", b="stage", c="start",
)  # fmt: skip
BEAT = kind(0x2A0, "BEAT", DAGS, "a node to itself: its heartbeat is due")
DAG_ARRIVAL = kind(0x3A0, "DAG_ARRIVAL", DAGS, "a client to the resource manager: a job has arrived", a="job")
MATCH = kind(
    0x5A0, "MATCH", DAGS,
    "the resource manager to itself: match tasks to what is free, or go on with one machine's heartbeat",
    c="node",
)  # fmt: skip
