"""Messages about tasks and probes, between worker nodes and schedulers of jobs.

The functions of a kind, `send_…` and `read_…`, are the only code that knows in which column a message has a field.
What is read has the order of the fields in the declaration.
"""

from actors.kernel.compiled import inlined
from actors.kernel.faults import PROGRESS_BITS, history_of
from actors.kernel.message_kinds import FIELDS, high_half, kind, low_half, share
from actors.kernel.queue import NONE, send, wake
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


@inlined
def send_task_end(w: World, time: int, node: int, job: int, task: int, start: int) -> None:
    """Let a task end on its node at `time`."""
    wake(w, time, node, TASK_END, job, task, start)


@inlined
def read_task_end(w: World) -> tuple[int, int, int]:
    """Return the job of the `TASK_END` at hand, its task, and when the task started."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_serve(w: World, t: int, node: int) -> None:
    """Let a node go on with its queue: an event sends no more messages than there is room for."""
    wake(w, t, node, SERVE, NONE, NONE, NONE)


@inlined
def send_probe(
    w: World, t: int, sender: int, node: int,
    job: int, tasks_left: int, level: int, round: int, epoch: int, version: int,
) -> None:  # fmt: skip
    """Send a probe to a node."""
    b, c = share(tasks_left, level + 1), share(round, epoch)
    send(w, t, sender, node, PROBE, job, b, c, version)


@inlined
def read_probe(w: World) -> tuple[int, int, int, int, int, int]:
    """Return the job of the `PROBE` at hand, the tasks left, its level, the round, the epoch and the version."""
    now = w.queue.now
    left, level = low_half(now.b[0]), high_half(now.b[0]) - 1
    return now.a[0], left, level, low_half(now.c[0]), high_half(now.c[0]), now.d[0]


@inlined
def send_request(w: World, t: int, node: int, job: int, generation: int) -> None:
    """Ask a job's scheduler for a task."""
    send(w, t, node, w.work.home[job], REQUEST, job, node, generation, NONE)


@inlined
def read_request(w: World) -> tuple[int, int, int]:
    """Return the job of the `REQUEST` at hand, the node and its generation."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_task(
    w: World, t: int, me: int, node: int,
    job: int, task: int, level: int, tasks_left: int, epoch: int, generation: int,
) -> None:  # fmt: skip
    """Send a task to the node that has asked for one."""
    d = share(generation, history_of(w, task))
    send(w, t, me, node, TASK, job, share(task, level + 1), share(tasks_left, epoch), d)


@inlined
def read_task_sent(w: World) -> tuple[int, int, int]:
    """Return the job of the `TASK`, `PLACED` or `OFFERED` at hand, the task and its level."""
    now = w.queue.now
    return now.a[0], low_half(now.b[0]), high_half(now.b[0]) - 1


@inlined
def read_task(w: World) -> tuple[int, int, int, int, int, int, int]:
    """Return job, task, level, tasks left, epoch, generation and history of the `TASK` at hand."""
    job, task, level = read_task_sent(w)
    c, d = w.queue.now.c[0], w.queue.now.d[0]
    return job, task, level, low_half(c), high_half(c), low_half(d), high_half(d)


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
def send_no_task(
    w: World, t: int, me: int, node: int, job: int, tasks_left: int, epoch: int, generation: int
) -> None:
    """Answer the node that has asked for a task that there is none for it."""
    send(w, t, me, node, NO_TASK, job, NONE, share(tasks_left, epoch), generation)


@inlined
def read_no_task(w: World) -> tuple[int, int, int, int]:
    """Return the job of the `NO_TASK` at hand, the tasks left, the epoch and the generation."""
    now = w.queue.now
    return now.a[0], low_half(now.c[0]), high_half(now.c[0]), now.d[0]


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


@inlined
def read_placed(w: World) -> tuple[int, int, int, int, int, int]:
    """Return the job of the `PLACED` at hand, the task, its level, the tasks left, the history and the version."""
    (job, task, level), c = read_task_sent(w), w.queue.now.c[0]
    return job, task, level, low_half(c), high_half(c), w.queue.now.d[0]


@inlined
def send_started(w: World, t: int, node: int, job: int) -> None:
    """Report to a job's scheduler that a bound task of it has started at `t`."""
    send(w, t, node, w.work.home[job], STARTED, job, node, t, NONE)


@inlined
def read_started(w: World) -> tuple[int, int, int]:
    """Return the job of the `STARTED` at hand, the node, and when the task started."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_rejected(w: World, t: int, node: int, job: int, version: int, round: int) -> None:
    """Send a probe back to its scheduler; `round`: that of the probe sent in its place."""
    send(w, t, node, w.work.home[job], REJECTED, job, version, round, NONE)


@inlined
def read_rejected(w: World) -> tuple[int, int, int]:
    """Return the job of the `REJECTED` at hand, the version and the round."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_steal(w: World, t: int, node: int, victim: int, thief: int, attempts: int, draws: int) -> None:
    """Ask a victim for probes on behalf of the thief."""
    send(w, t, node, victim, STEAL, thief, attempts, draws, NONE)


@inlined
def read_steal(w: World) -> tuple[int, int, int]:
    """Return the thief of the `STEAL` at hand, the attempts left and the random bits."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_cancel(w: World, t: int, me: int, node: int, job: int, task: int, for_job: int) -> None:
    """Let a task end before its time on the node to which it was sent."""
    send(w, t, me, node, CANCEL, job, task, for_job, NONE)


@inlined
def read_cancel(w: World) -> tuple[int, int, int]:
    """Return the job of the `CANCEL` at hand, the task, and the job for which there is room then, or NONE."""
    return w.queue.now.a[0], w.queue.now.b[0], w.queue.now.c[0]


@inlined
def send_retry(w: World, time: int, scheduler: int, job: int, round: int) -> None:
    """Let a scheduler send rejected probes again at `time`."""
    wake(w, time, scheduler, RETRY, job, round, NONE)


@inlined
def read_retry(w: World) -> tuple[int, int]:
    """Return the job of the `RETRY` at hand, and the round."""
    return w.queue.now.a[0], w.queue.now.b[0]
