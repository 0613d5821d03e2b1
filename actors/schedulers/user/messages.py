"""Messages of users' schedulers of jobs that probe.

What comes to a scheduler is read in Python, by `Kind.read`.
"""

from actors.kernel.message_functions import reader, sender, timer
from actors.kernel.message_kinds import FIELDS, kind
from actors.nodes.messages import JOBS

FIELDS.update(
    a="a number of the user's",
    b="a number of the user's",
    c="a number of the user's",
    question="the number of the question",
    asker="the scheduler that asks",
    work_left="estimated work left (`actors.kernel.sums.pack`); 2^62: the node is down",
    idle="idle slots",
    waiting="entries that wait",
    first="the first of the tasks",
    num_tasks="how many",
    lost_at="the node with which the task was lost; none: it was not lost",
    number="as the scheduler gave it with the time",
)

OWN_MESSAGE = kind(0x10D, "OWN_MESSAGE", JOBS, "a user's scheduler to another", a="a", b="b", c="c")
OWN_ASK = kind(
    0x10E, "OWN_ASK", JOBS, "a user's scheduler to node: how much work is there?", a="question", b="asker"
)
OWN_LOAD = kind(
    0x10F, "OWN_LOAD", JOBS, "node to a user's scheduler, the answer",
    a="node", b="question", c="work_left", d="has_long:1, idle:31, waiting",
)  # fmt: skip
OWN_TASKS = kind(
    0x110, "OWN_TASKS", JOBS, "a job's scheduler to another of the user's, which is to place these tasks",
    a="job", b="first", c="num_tasks", d="lost_at",
)  # fmt: skip
OWN_FREED = kind(
    0x111, "OWN_FREED", JOBS, "node to the scheduler that placed a task of another: it has ended",
    a="job", b="node", c="start", d="finish",
)  # fmt: skip
OWN_WAKE = kind(0x202, "OWN_WAKE", JOBS, "a user's scheduler to itself, at a time it asked for", a="number")

send_own_message = sender(OWN_MESSAGE)
send_own_ask = sender(OWN_ASK)
send_own_ask_again = timer(OWN_ASK)
read_own_ask = reader(OWN_ASK)
send_own_load = sender(OWN_LOAD)
send_own_tasks = sender(OWN_TASKS)
send_own_freed = sender(OWN_FREED)
send_own_wake = timer(OWN_WAKE)
