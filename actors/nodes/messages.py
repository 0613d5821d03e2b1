"""Messages between worker nodes and schedulers of jobs.

Each kind is declared beside the function that sends it and the one that reads it.
"""

from actors.kernel.message_kinds import FIELDS, kind

JOBS = "jobs"
FIELDS.update(
    tasks_left="tasks that the job has left to hand out",
    round="how often the probe has been sent again",
    epoch="tasks that the job has lost so far",
    version="of the shared state of nodes with long work",
    movable="1: the task may be given back while it waits",
    mean_rest="mean estimated work left of all nodes, as the scheduler knows it",
    work="estimated work",
    finish="when the task ended",
    thief="the node that looks for work",
    attempts="how often the request may still be forwarded",
    draws="random bits",
    probe="which of the job's probes",
    length="entries that wait, and slots that are not idle",
    a="a number of the user's",
    b="a number of the user's",
    c="a number of the user's",
    question="the number of the question",
    asker="the scheduler that asks",
    surplus="entries that wait less idle slots",
    first="the first of the tasks",
    count="how many",
    number="as the user's scheduler gave it",
)

TASK_END = kind(0x000, "TASK_END", JOBS, "a node to itself", a="job", b="task", c="start")
PROBE = kind(
    0x100, "PROBE", JOBS, "scheduler to node",
    a="job", b="tasks_left, level", c="round, epoch", d="version",
)  # fmt: skip
REQUEST = kind(0x101, "REQUEST", JOBS, "node to scheduler, late binding", a="job", b="node", c="generation")
TASK = kind(
    0x102, "TASK", JOBS, "scheduler to node, the answer to a request",
    a="job", b="task, level", c="tasks_left, epoch", d="generation",
)  # fmt: skip
NO_TASK = kind(
    0x103, "NO_TASK", JOBS, "scheduler to node, the answer to a request",
    a="job", c="tasks_left, epoch", d="generation",
)  # fmt: skip
DONE = kind(
    0x104, "DONE", JOBS, "node to scheduler, a task has ended", a="job", b="node", c="start", d="finish"
)
PLACED = kind(
    0x105, "PLACED", JOBS, "scheduler to node, a task that is bound to it",
    a="job", b="task, level", c="tasks_left", d="version",
)  # fmt: skip
STARTED = kind(0x106, "STARTED", JOBS, "node to central scheduler", a="job", b="node", c="start")
REJECTED = kind(
    0x107, "REJECTED", JOBS, "node to scheduler: a probe, as the node has long work",
    a="job", b="version", c="round",
)  # fmt: skip
STEAL = kind(0x108, "STEAL", JOBS, "node to node", a="thief", b="attempts", c="draws")
LOAD_REPORT = kind(0x109, "LOAD_REPORT", JOBS, "node to all schedulers", a="node", b="work", c="start")
ASK_LENGTH = kind(0x10A, "ASK_LENGTH", JOBS, "scheduler to node", a="job", b="probe")
LENGTH = kind(0x10B, "LENGTH", JOBS, "node to scheduler", a="job", b="probe", c="node", d="length")
OWN_MESSAGE = kind(0x10D, "OWN_MESSAGE", JOBS, "a user's scheduler to another", a="a", b="b", c="c")
OWN_ASK = kind(
    0x10E, "OWN_ASK", JOBS, "a user's scheduler to node: how much work is there?", a="question", b="asker"
)
OWN_LOAD = kind(
    0x10F, "OWN_LOAD", JOBS, "node to a user's scheduler, the answer",
    a="node", b="question", c="work", d="has_long:1, surplus",
)  # fmt: skip
OWN_TASKS = kind(
    0x110, "OWN_TASKS", JOBS, "a job's scheduler to another of the user's, which is to place these tasks",
    a="job", b="first", c="count", d="node",
)  # fmt: skip
OWN_FREED = kind(
    0x111, "OWN_FREED", JOBS, "node to the scheduler that placed a task of another: it has ended",
    a="job", b="node", c="start", d="finish",
)  # fmt: skip
HEARTBEAT = kind(0x200, "HEARTBEAT", JOBS, "a node to itself")
MONITOR = kind(0x201, "MONITOR", JOBS, "the monitor to itself")
OWN_WAKE = kind(0x202, "OWN_WAKE", JOBS, "a user's scheduler to itself, at a time it asked for", a="number")
RETRY = kind(0x400, "RETRY", JOBS, "a scheduler to itself", a="job", b="round")
