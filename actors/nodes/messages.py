"""Messages about tasks and probes, between worker nodes and schedulers of jobs."""

from actors.kernel.compiled import inlined
from actors.kernel.faults import PROGRESS_BITS, history_of
from actors.kernel.message_functions import reader, sender, timer
from actors.kernel.message_kinds import FIELDS, high_half, kind, low_half, share
from actors.kernel.queue import send
from actors.kernel.world import World

JOBS = "jobs"
FIELDS.update(
    tasks_left="tasks that the job has left to hand out",
    round="how often the probe has been sent again",
    epoch="tasks that the job has lost so far",
    version="of the shared state of nodes with long work, none: of none",
    finish="when the task ended",
    thief="the node that looks for work",
    attempts="how often the request may still be forwarded",
    draws="random bits",
    evictions="how often the task was evicted",
    place="which task of its job it is, in 20 bits, where a scheduler of gangs must know it",
)
EVICTION_BITS, PLACE_BITS = 11, 20  # which share half a column

SERVE = kind(0x004, "SERVE", JOBS, "a node to itself: it goes on with its queue")
TASK_END = kind(0x000, "TASK_END", JOBS, "a node to itself", a="job", b="task", c="start")
PROBE = kind(
    0x100, "PROBE", JOBS, "scheduler to node, or node to node that steals",
    a="job", b="tasks_left, level:or_none", c="round, epoch", d="version",
)  # fmt: skip
REQUEST = kind(0x101, "REQUEST", JOBS, "node to scheduler, late binding", a="job", b="node", c="generation")
TASK = kind(
    0x102, "TASK", JOBS, "scheduler to node, the answer to a request",
    a="job", b="task, level:or_none", c="tasks_left, epoch", d="generation, history",
)  # fmt: skip
NO_TASK = kind(
    0x103, "NO_TASK", JOBS, "scheduler to node, the answer to a request",
    a="job", c="tasks_left, epoch", d="generation",
)  # fmt: skip
DONE = kind(
    0x104, "DONE", JOBS, "node to scheduler, a task has ended",
    a="job", b="node, evictions:11, place", c="start", d="finish",
)  # fmt: skip
PLACED = kind(
    0x105, "PLACED", JOBS, "scheduler to node, a task that is bound to it",
    a="job", b="task, level:or_none", c="tasks_left, history", d="version",
)  # fmt: skip
STARTED = kind(0x106, "STARTED", JOBS, "node to central scheduler", a="job", b="node", c="start")
REJECTED = kind(
    0x107, "REJECTED", JOBS, "node to scheduler, a probe that it does not take",
    a="job", b="version", c="round",
)  # fmt: skip
STEAL = kind(0x108, "STEAL", JOBS, "node to node", a="thief", b="attempts", c="draws")
CANCEL = kind(
    0x11F, "CANCEL", JOBS, "scheduler of gangs to node: a task ends at once",
    a="job", b="task", c="for_job",
)  # fmt: skip
RETRY = kind(
    0x400, "RETRY", JOBS, "a scheduler to itself: rejected probes are sent again", a="job", b="round"
)
DISPATCH = kind(0x401, "DISPATCH", JOBS, "a scheduler to itself: tasks wait for room at nodes")

send_task_end = timer(TASK_END)
read_task_end = reader(TASK_END)
send_serve = timer(SERVE)
send_probe = sender(PROBE)
read_probe = reader(PROBE)
send_request = sender(REQUEST)
read_request = reader(REQUEST)
send_task = sender(TASK)
read_task = reader(TASK)
send_no_task = sender(NO_TASK)
read_no_task = reader(NO_TASK)
read_placed = reader(PLACED)
send_started = sender(STARTED)
read_started = reader(STARTED)
send_rejected = sender(REJECTED)
read_rejected = reader(REJECTED)
send_steal = sender(STEAL)
read_steal = reader(STEAL)
send_cancel = sender(CANCEL)
read_cancel = reader(CANCEL)
send_retry = timer(RETRY)
read_retry = reader(RETRY)


@inlined
def read_task_sent(w: World) -> tuple[int, int, int]:
    """Return the job of the `TASK`, `PLACED` or `OFFERED` at hand, the task and its level."""
    now = w.queue.now
    return now.a[0], low_half(now.b[0]), high_half(now.b[0]) - 1


@inlined
def read_generation(w: World) -> int:
    """Return the generation of the `TASK` or `NO_TASK` at hand."""
    now = w.queue.now
    return low_half(now.d[0]) if now.kind[0] == TASK else now.d[0]


@inlined
def read_history(w: World) -> int:
    """Return the history of the task of the `TASK`, `PLACED` or `OFFERED` at hand."""
    now = w.queue.now
    return high_half(now.d[0] if now.kind[0] == TASK else now.c[0])


@inlined
def send_done(w: World, t: int, node: int, job: int, task: int, start: int) -> None:
    """Report to a job's scheduler that a task of it has ended at `t`."""
    more = history_of(w, task) >> PROGRESS_BITS
    if w.rules.names_tasks == 1 and w.faults.active == 1:
        more |= ((task - w.work.first_task[job]) & ((1 << PLACE_BITS) - 1)) << EVICTION_BITS
    send(w, t, node, w.work.home[job], DONE, job, share(node, more), start, t)


@inlined
def read_done(w: World) -> tuple[int, int, int, int]:
    """Return the job of the `DONE` at hand, the node, and when the task started and ended."""
    now = w.queue.now
    return now.a[0], low_half(now.b[0]), now.c[0], now.d[0]


@inlined
def read_evictions(w: World) -> int:
    """Return how often the task of the `DONE` at hand was evicted."""
    return high_half(w.queue.now.b[0]) & ((1 << EVICTION_BITS) - 1)


@inlined
def read_place(w: World) -> int:
    """Return which task of its job the `DONE` at hand is about, modulo 2^20."""
    return high_half(w.queue.now.b[0]) >> EVICTION_BITS


@inlined
def send_placed(
    w: World, t: int, me: int, node: int, job: int, task: int, level: int, tasks_left: int, version: int
) -> None:
    """Bind a task to a node."""
    c = share(tasks_left, history_of(w, task))
    send(w, t, me, node, PLACED, job, share(task, level + 1), c, version)
