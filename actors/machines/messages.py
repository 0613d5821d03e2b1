"""Messages between the resource manager and the node managers of machines with several resources.

The functions of a kind, `send_…` and `read_…`, are the only code that knows in which column a message has a field.
What is read has the order of the fields in the declaration.
"""

from actors.kernel.compiled import inlined
from actors.kernel.message_kinds import FIELDS, high_half, kind, low_half, share
from actors.kernel.messages import DAGS
from actors.kernel.queue import NONE, HasQueue, send, wake

FIELDS.update(
    count="how many tasks of a stage, those that follow each other among the tasks of a machine",
    finish="when the task ended",
)
STAGE_TASK_END = kind(0x0A0, "STAGE_TASK_END", DAGS, "a node to itself", a="task", b="stage", c="start")
LAUNCH = kind(0x1A0, "LAUNCH", DAGS, "resource manager to node: run a task", a="task", b="stage", c="history")
TASK_DONE = kind(
    0x1A1, "TASK_DONE", DAGS, "node to resource manager: a task has ended",
    a="task", b="stage, node", c="start", d="finish",
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
MATCH = kind(0x5A0, "MATCH", DAGS, "the resource manager to itself: match tasks to what is free")
FREE_AGAIN = kind(
    0x5A1, "FREE_AGAIN", DAGS,
    "the resource manager to itself: go on with a heartbeat, as its machine takes more tasks than one event may launch",
    c="node",
)  # fmt: skip
STOP_TASK = kind(
    0x1A5, "STOP_TASK", DAGS, "resource manager to node: end a task before its time, for one of higher priority",
    a="task", b="stage", c="for_job",
)  # fmt: skip
RECEIVE = kind(
    0x1A6, "RECEIVE", DAGS,
    "resource manager to node: what a task needs, and those after it, is to be sent to it",
    a="task", b="stage", c="count",
)  # fmt: skip
RECEIVED = kind(
    0x1A7, "RECEIVED", DAGS, "node to resource manager: a task's input is there",
    a="task", b="stage", c="node", d="start",
)  # fmt: skip
PUSH = kind(
    0x5A2,
    "PUSH",
    DAGS,
    "the resource manager to itself: have nodes receive the input of tasks that wait for no other",
)


@inlined
def send_task_end(w: HasQueue, time: int, kind: int, node: int, task: int, stage: int, start: int) -> None:
    """Let a task end at `time`, or its end be reported then; `kind` is STAGE_TASK_END or ENDED."""
    wake(w, time, node, kind, task, stage, start)


@inlined
def read_task_end(w: HasQueue) -> tuple[int, int, int]:
    """Return the task of the `STAGE_TASK_END`, or `ENDED`, at hand, its stage, and when it started."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_launch(w: HasQueue, t: int, manager: int, node: int, task: int, stage: int, history: int) -> None:
    """Send a task to the machine that it is to run on; `history`: NONE without preemption."""
    send(w, t, manager, node, LAUNCH, task, stage, history, NONE)


@inlined
def read_launch(w: HasQueue) -> tuple[int, int, int]:
    """Return the task of the `LAUNCH` at hand, its stage and its history."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_stop_task(w: HasQueue, t: int, manager: int, node: int, task: int, stage: int, for_job: int) -> None:
    """Have a machine end a task, to make room for one of another job."""
    send(w, t, manager, node, STOP_TASK, task, stage, for_job, NONE)


@inlined
def read_stop_task(w: HasQueue) -> tuple[int, int, int]:
    """Return the task of the `STOP_TASK` at hand, its stage, and the job for which it makes room."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_task_done(
    w: HasQueue, t: int, node: int, manager: int, task: int, stage: int, start: int, finish: int
) -> None:
    """Report to the resource manager that a task has ended, perhaps some time after its end."""
    send(w, t, node, manager, TASK_DONE, task, share(stage, node), start, finish)


@inlined
def read_task_done(w: HasQueue) -> tuple[int, int, int, int, int]:
    """Return the task of the `TASK_DONE` at hand, its stage, the node, and when the task started and ended."""
    now = w.queue.now
    return now.a[0], low_half(now.b[0]), high_half(now.b[0]), now.c[0], now.d[0]


@inlined
def send_free(w: HasQueue, t: int, node: int, manager: int) -> None:
    """Send a heartbeat to the resource manager."""
    send(w, t, node, manager, FREE, NONE, NONE, node, NONE)


@inlined
def send_free_again(w: HasQueue, t: int, manager: int, node: int) -> None:
    """Continue a machine's heartbeat in another event."""
    wake(w, t, manager, FREE_AGAIN, NONE, NONE, node)


@inlined
def read_free(w: HasQueue) -> int:
    """Return the node of the `FREE`, or `FREE_AGAIN`, at hand."""
    return w.queue.now.c[0]


@inlined
def send_dag_arrival(w: HasQueue, time: int, manager: int, job: int) -> None:
    """Let a job arrive at its resource manager at `time`."""
    wake(w, time, manager, DAG_ARRIVAL, job, NONE, NONE)


@inlined
def send_push(w: HasQueue, t: int, manager: int) -> None:
    """Have the resource manager ask nodes to receive input, when all messages of this instant are handled."""
    wake(w, t, manager, PUSH, NONE, NONE, NONE)


@inlined
def send_receive(w: HasQueue, t: int, manager: int, node: int, task: int, stage: int, count: int) -> None:
    """Have a node receive the input of so many of its tasks (`actors.kernel.inputs.JobInput`), from `task` on."""
    send(w, t, manager, node, RECEIVE, task, stage, count, NONE)


@inlined
def read_receive(w: HasQueue) -> tuple[int, int, int]:
    """Return the first task of the `RECEIVE` at hand, its stage, and how many tasks they are."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_received(w: HasQueue, t: int, node: int, manager: int, task: int, stage: int) -> None:
    """Tell the resource manager that the input of a task is there, which computes now if it has been launched."""
    send(w, t, node, manager, RECEIVED, task, stage, node, t)


@inlined
def read_received(w: HasQueue) -> tuple[int, int, int, int]:
    """Return the task of the `RECEIVED` at hand, its stage, the node, and since when its input is there."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0], w.queue.now.d[0]
