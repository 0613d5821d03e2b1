"""Messages of actors of several families: failures of nodes, state that all share, arrivals, and fetches of input."""

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.message_functions import reader, sender, timer
from actors.kernel.message_kinds import FIELDS, PUBLISHED, high_half, kind, low_half, share
from actors.kernel.queue import (
    NONE,
    HasQueue,
    announce,
    publish,
    send,
    send_to_schedulers,
    wake,
    wake_in_background,
)

JOBS, DAGS, OF_NODES = "jobs", "dags", "jobs dags"
LOOK_AGAIN = np.int64(1_000_000_000)  # ns until a scheduler handles a loss again
FIELDS.update(
    generation="failures of the node so far",
    since="when the node went down, or came up",
    history="how often the task was evicted so far, times 2^20, and the millionths of it that are done",
    resource="a resource that jobs have constraints on, none: it is about the CRV of all",
    counts="1: nodes go by the CRV, 0: they do not; none: it is about a resource",
    stage="its stage, by its number over all jobs",
    change="when rates change",
)

ANNOUNCED = kind(0x002, "ANNOUNCED", JOBS, "monitor to all actors", a="resource", b="crv", c="counts")
LOST = kind(
    0x10C, "LOST", OF_NODES, "node to scheduler, or scheduler to itself",
    a="job", b="task", c="node, history", d="start",
)  # fmt: skip
NODE_DOWN = kind(0x1D0, "NODE_DOWN", OF_NODES, "node to all schedulers", a="node", b="generation", c="since")
NODE_UP = kind(0x1D1, "NODE_UP", OF_NODES, "node to all schedulers", a="node", b="generation", c="since")
FAIL = kind(0x2D0, "FAIL", OF_NODES, "a node to itself")
DETECT = kind(0x2D1, "DETECT", OF_NODES, "a node to itself")
REPAIR = kind(0x2D2, "REPAIR", OF_NODES, "a node to itself")
ARRIVAL = kind(0x300, "ARRIVAL", JOBS, "a scheduler to itself", a="job")
FETCH = kind(0x090, "FETCH", DAGS, "a machine, by the network: a task needs its input", a="task", b="stage")
OUTPUT = kind(
    0x091, "OUTPUT", DAGS, "a machine, by the network: a task has ended, and its output may be fetched",
    a="task", b="stage",
)  # fmt: skip
BROKEN = kind(0x0F0, "BROKEN", DAGS, "a machine, by the network: it has failed, and its flows with it")
FETCHED = kind(
    0x0A1, "FETCHED", DAGS, "the network to a machine: a task, and those that fetch with it, have input", a="task"
)  # fmt: skip
FETCH_FAILED = kind(
    0x0A2, "FETCH_FAILED", DAGS, "the network to a machine: input of a task, and those that fetch with it, was lost",
    a="task",
)  # fmt: skip
RECEIVED = kind(
    0x1A7, "RECEIVED", DAGS, "node to scheduler: a task's input is there",
    a="task", b="stage", c="node", d="start",
)  # fmt: skip
SHARE = kind(0x690, "SHARE", DAGS, "the network to itself: flows end, others begin, rates change", a="change")

read_published = reader(PUBLISHED)
read_announced = reader(ANNOUNCED)
read_node_state = reader(NODE_DOWN)  # or NODE_UP
send_arrival = timer(ARRIVAL)
read_job = reader(ARRIVAL)  # or of another kind that has its job in column a
send_fetch = timer(FETCH)
read_fetch = reader(FETCH)
send_output = timer(OUTPUT)
read_output = reader(OUTPUT)
send_fetched = timer(FETCHED)
read_fetched = reader(FETCHED)
send_fetch_failed = timer(FETCH_FAILED)
read_fetch_failed = reader(FETCH_FAILED)
send_received = sender(RECEIVED)
read_received = reader(RECEIVED)
read_share = reader(SHARE)


@inlined
def send_published(w: HasQueue, t: int, node: int, has_long: int) -> None:
    """Publish to the schedulers of other partitions whether a node has long work."""
    publish(w, t, PUBLISHED, node, has_long, NONE)


@inlined
def send_announced(w: HasQueue, t: int, monitor: int, resource: int, crv: int, counts: int) -> None:
    """Announce the CRV of a resource to all actors, or whether that of any counts."""
    announce(w, t, monitor, ANNOUNCED, resource, crv, counts)


@inlined
def send_lost(
    w: HasQueue, t: int, node: int, scheduler: int, job: int, task: int, start: int, history: int
) -> None:
    """Report to a scheduler that a node has lost a task, which ran since `start`, or did not; or a probe.

    `history`: how often it was evicted and what of it is done (`actors.failures.history_of`).
    """
    send(w, t, node, scheduler, LOST, job, task, share(node, history), start)


@inlined
def send_lost_again(w: HasQueue, t: int, scheduler: int, job: int, task: int) -> None:
    """Let a scheduler handle a loss again later: no node that it may use is up."""
    wake(w, t + LOOK_AGAIN, scheduler, LOST, job, task, NONE)


@inlined
def read_lost(w: HasQueue) -> tuple[int, int, int, int, int]:
    """Return the job of the `LOST` at hand, its task, the node, the task's history and when it started."""
    now = w.queue.now
    node, history = low_half(now.c[0]), high_half(now.c[0])
    if now.c[0] == NONE:
        node, history = np.int64(NONE), np.int64(NONE)
    return now.a[0], now.b[0], node, history, now.d[0]


@inlined
def send_node_state(w: HasQueue, t: int, kind: int, node: int, generation: int) -> None:
    """Send all schedulers that a node is down, or up, since `t`; `kind` is NODE_DOWN or NODE_UP."""
    send_to_schedulers(w, t, node, kind, node, generation, t, NONE)


@inlined
def send_broken(w: HasQueue, t: int, node: int) -> None:
    """Break the flows of a machine that has failed; the network knows it at once."""
    wake_in_background(w, t, node, BROKEN)


@inlined
def read_broken(w: HasQueue) -> int:
    """Return the machine of the `BROKEN` at hand."""
    return w.queue.now.dst[0]


@inlined
def send_share(w: HasQueue, time: int) -> None:
    """Set the timer for the next change of rates. The network is no actor: the message has the number of machine 0."""
    wake(w, time, np.int64(0), SHARE, time, NONE, NONE)
