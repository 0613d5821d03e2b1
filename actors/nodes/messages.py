"""Messages about tasks and probes, between worker nodes and schedulers of jobs."""

import numpy as np

from actors.failures import PROGRESS_BITS, history_of
from actors.kernel.compiled import inlined
from actors.kernel.message_functions import reader, report, sender, timer
from actors.kernel.message_kinds import FIELDS, high_half, kind, low_half, share
from actors.kernel.queue import MOST_ACTORS, NONE, send, send_to_schedulers
from actors.nodes.world import World

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


# Messages about the load of nodes: reports of heartbeats, lengths of queues, and tasks for bounded queues.

FIELDS.update(
    probe="which of the job's probes",
    length="entries that wait less idle slots",
    movable="1: the task may be given back while it waits",
    mean_rest="mean estimated work left of all nodes for a slot, as the scheduler knows it",
    work="estimated work that waits or runs (`actors.kernel.sums.pack`)",
    started="when the task started that runs; 2^62: none does",
    estimate="estimated duration of the task that runs",
    rest="estimated work of the node, less that of the task that started last (`actors.kernel.sums.pack`)",
    busy_until="when the task that started last is estimated to end",
    room="tasks, or estimated work, that the queue has room for",
    part="which three of the resources; of slots 0",
    free="what is free of the first of these, or how many slots, less what waits; -1: more waits than is free",
    second_free="of the second",
    third_free="of the third",
    lowest="the lowest priority of a task that waits, or that runs and may be evicted; 2^62: there is none",
    busy="busy slots, where schedulers want to know them",
    expected_wait="how long a task that comes to the node is expected to wait",
    entries="queued entries that ask for the resource",
    scarcity="of what these ask for, the sum of 2^10 · nodes over those that have it",
    second_resource="another resource, none: there is none",
    second_entries="queued entries that ask for it",
    second_scarcity="the scarcity of what these ask for",
)

NODE_BITS, BUSY_BITS = MOST_ACTORS.bit_length() - 1, 20
RESOURCE_BITS, ENTRIES_BITS, SCARCITY_BITS = 6, 16, 41
MOST_RESOURCES = (1 << RESOURCE_BITS) - 2  # as many as an int64 has bits for
MOST_ENTRIES = np.int64((1 << ENTRIES_BITS) - 1)  # what a report states of a resource at the most
MOST_SCARCITY = np.int64((1 << SCARCITY_BITS) - 1)

ASK_LENGTH = kind(0x10A, "ASK_LENGTH", JOBS, "scheduler to node", a="job", b="probe")
LENGTH = kind(0x10B, "LENGTH", JOBS, "node to scheduler", a="job", b="probe", c="node", d="length")
LOAD_REPORT = kind(
    0x109, "LOAD_REPORT", JOBS, "node to all schedulers: its work",
    a="node:24, generation", b="work", c="started", d="estimate",
)  # fmt: skip
OFFERED = kind(
    0x112, "OFFERED", JOBS, "scheduler to node, a task for its bounded queue",
    a="job", b="task, level:or_none", c="tasks_left, history", d="movable:1, mean_rest",
)  # fmt: skip
RETURNED = kind(
    0x113, "RETURNED", JOBS, "node to scheduler, a task for which its bounded queue has no room",
    a="job", b="task", c="node", d="rest",
)  # fmt: skip
QUEUE_REPORT = kind(
    0x114, "QUEUE_REPORT", JOBS, "node to all schedulers: its work, and the room in its bounded queue",
    a="node:24, generation", b="rest", c="busy_until", d="room",
)  # fmt: skip
WAIT_REPORT = kind(
    0x115, "WAIT_REPORT", JOBS, "node to all schedulers: how long a task waits, and what its queue asks for",
    a="node:24, busy:20, generation", b="expected_wait",
    c="resource:6, entries:16, scarcity", d="second_resource:6, second_entries:16, second_scarcity",
)  # fmt: skip
WAIT_REPORTS = kind(
    0x116, "WAIT_REPORTS", JOBS, "nodes to all schedulers: all WAIT_REPORT of a heartbeat as one"
)
ROOM_REPORT = kind(
    0x117, "ROOM_REPORT", JOBS, "node to all schedulers: what is free there, where schedulers want to know it",
    a="node:24, part:6, generation", b="free", c="second_free", d="third_free",
)  # fmt: skip
LOWEST_REPORT = kind(
    0x118, "LOWEST_REPORT", JOBS, "node to all schedulers: which tasks would make room in a bounded queue, or for it",
    a="node:24, generation", b="lowest",
)  # fmt: skip
HEARTBEAT = kind(0x200, "HEARTBEAT", JOBS, "a node to itself")
MONITOR = kind(0x201, "MONITOR", JOBS, "the monitor to itself")

send_ask_length = sender(ASK_LENGTH)
send_ask_length_again = timer(ASK_LENGTH)
read_ask_length = reader(ASK_LENGTH)
send_length = sender(LENGTH)
read_length = reader(LENGTH)
send_offered = sender(OFFERED)
read_offered = reader(OFFERED)
send_returned = sender(RETURNED)
read_returned = reader(RETURNED)
send_load_report = report(LOAD_REPORT)
read_load_report = reader(LOAD_REPORT)
send_queue_report = report(QUEUE_REPORT)
read_queue_report = reader(QUEUE_REPORT)
send_lowest_report = report(LOWEST_REPORT)
read_lowest_report = reader(LOWEST_REPORT)
send_room_report = report(ROOM_REPORT)
read_room_report = reader(ROOM_REPORT)


@inlined
def reporter(column: int) -> tuple[int, int]:
    """Return the node that reports, and what the column has above it."""
    return column & np.int64(MOST_ACTORS - 1), column >> NODE_BITS


@inlined
def send_wait_report(
    w: World, t: int, node: int, busy: int, generation: int, expected_wait: int,
    resource: int, entries: int, scarcity: int,
    second_resource: int, second_entries: int, second_scarcity: int,
) -> None:  # fmt: skip
    """Report to all schedulers how long a task waits at a node, and up to two resources, NONE for none."""
    a = node | busy << NODE_BITS | generation << NODE_BITS + BUSY_BITS
    c, d = demand(resource, entries, scarcity), demand(second_resource, second_entries, second_scarcity)
    send_to_schedulers(w, t, node, WAIT_REPORT, a, expected_wait, c, d)


@inlined
def demand(resource: int, entries: int, scarcity: int) -> int:
    """Return the column of a resource."""
    if resource == NONE:
        return NONE
    return resource | entries << RESOURCE_BITS | scarcity << RESOURCE_BITS + ENTRIES_BITS


@inlined
def demanded(column: int) -> tuple[int, int, int]:
    """Return the resource of a column, its entries and their scarcity."""
    if column < 0:
        return NONE, NONE, NONE
    resource = column & np.int64((1 << RESOURCE_BITS) - 1)
    return resource, column >> RESOURCE_BITS & MOST_ENTRIES, column >> RESOURCE_BITS + ENTRIES_BITS


@inlined
def read_wait_report(w: World) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    """Return the fields of the `WAIT_REPORT` at hand, in the order of its declaration."""
    now = w.queue.now
    node, above = reporter(now.a[0])
    busy, generation = above & np.int64((1 << BUSY_BITS) - 1), above >> BUSY_BITS
    return node, busy, generation, now.b[0], *demanded(now.c[0]), *demanded(now.d[0])
