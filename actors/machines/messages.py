"""Messages between the resource manager and the node managers of machines with several resources."""

from actors.kernel.compiled import inlined
from actors.kernel.message_functions import reader, sender, timer
from actors.kernel.message_kinds import FIELDS, kind
from actors.kernel.messages import DAGS
from actors.kernel.queue import HasQueue, wake

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
PUSH = kind(
    0x5A2,
    "PUSH",
    DAGS,
    "the resource manager to itself: have nodes receive the input of tasks that wait for no other",
)

read_task_end = reader(STAGE_TASK_END)  # or ENDED
send_launch = sender(LAUNCH)
read_launch = reader(LAUNCH)
send_stop_task = sender(STOP_TASK)
read_stop_task = reader(STOP_TASK)
send_task_done = sender(TASK_DONE)
read_task_done = reader(TASK_DONE)
send_free = sender(FREE)
send_free_again = timer(FREE_AGAIN)
read_free = reader(FREE)  # or FREE_AGAIN
send_dag_arrival = timer(DAG_ARRIVAL)
send_push = timer(PUSH)
send_receive = sender(RECEIVE)
read_receive = reader(RECEIVE)


@inlined
def send_task_end(w: HasQueue, time: int, kind: int, node: int, task: int, stage: int, start: int) -> None:
    """Let a task end at `time`, or its end be reported then; `kind` is STAGE_TASK_END or ENDED."""
    wake(w, time, node, kind, task, stage, start)
