"""Messages of users' schedulers of jobs that probe.

The functions of a kind, `send_…` and `read_…`, are the only code that knows in which column a message has a field. What
comes to a scheduler is read in Python, by `Kind.read`.
"""

from actors.kernel.compiled import inlined
from actors.kernel.message_kinds import FIELDS, HALF, kind
from actors.kernel.queue import NONE, send, wake
from actors.kernel.world import World
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


@inlined
def send_own_message(w: World, t: int, me: int, to: int, a: int, b: int, c: int) -> None:
    """Send a user's numbers to another scheduler."""
    send(w, t, me, to, OWN_MESSAGE, a, b, c, NONE)


@inlined
def send_own_ask(w: World, t: int, asker: int, node: int, question: int) -> None:
    """Ask a node for its load."""
    send(w, t, asker, node, OWN_ASK, question, asker, NONE, NONE)


@inlined
def send_own_ask_again(w: World, time: int, node: int, question: int, asker: int) -> None:
    """Let a node that is asked for its load answer at `time`."""
    wake(w, time, node, OWN_ASK, question, asker, NONE)


@inlined
def read_own_ask(w: World) -> tuple[int, int]:
    """Return the question of the `OWN_ASK` at hand, and the scheduler that asks."""
    return w.queue.now.a[0], w.queue.now.b[0]


@inlined
def send_own_load(
    w: World, t: int, node: int, asker: int,
    question: int, work_left: int, has_long: int, idle: int, waiting: int,
) -> None:  # fmt: skip
    """Answer a scheduler that asks a node for its load."""
    d = has_long | idle << 1 | waiting << HALF
    send(w, t, node, asker, OWN_LOAD, node, question, work_left, d)


@inlined
def send_own_tasks(
    w: World, t: int, me: int, to: int, job: int, first: int, num_tasks: int, lost_at: int
) -> None:
    """Hand tasks of a job over to another scheduler."""
    send(w, t, me, to, OWN_TASKS, job, first, num_tasks, lost_at)


@inlined
def send_own_freed(w: World, t: int, node: int, placer: int, job: int, start: int) -> None:
    """Report to the scheduler that placed a task of another one's job that it has ended at `t`."""
    send(w, t, node, placer, OWN_FREED, job, node, start, t)


@inlined
def send_own_wake(w: World, time: int, me: int, number: int) -> None:
    """Wake a scheduler at `time`."""
    wake(w, time, me, OWN_WAKE, number, NONE, NONE)
