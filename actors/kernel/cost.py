"""The cost of handling a message for a scheduler: nothing, given times, or the time that its handler takes.

A scheduler actor is a server: it handles one message at a time, in the order in which they arrive, and what it
sends leaves when it is done with the message. Only its messages read its state, so a message can be handled
as soon as it arrives, and what it sends leaves when the server would be done with it: the same results as a queue in
front of it, without one. A central scheduler is one server, distributed ones are as many as there are probe schedulers.

Given costs are those of Omega's simulator (Schwarzkopf et al., EuroSys 2013, section 4.1): a time for each job and
one for each of its tasks, charged when the job arrives; a time for each message comes on top. The costs of a
coordinator of coflows are in `actors.fabric`. Measured costs are the CPU time of the handler as it is compiled here;
they are recorded, and can be given again.

In the clock `live` time is the machine's: handlers cost what they cost, and are only observed.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.histogram import BUCKETS, note_time
from actors.kernel.message_kinds import FIRST_DECISION, PUBLISHED, is_background, is_of_network
from actors.kernel.messages import ANNOUNCED, ARRIVAL, read_job
from actors.kernel.queue import (
    GROW,
    HANDED,
    IDLE,
    NEVER,
    NONE,
    RUNNING,
    HasQueue,
    Queue,
    is_here,
    is_whole,
    push,
    take_first,
)
from actors.kernel.records import Records, as_records, doubled, records
from actors.kernel.sums import WHOLE, carry
from actors.kernel.system_calls import CPU, WALL, clock_ns, clock_overhead
from workloads.errors import InputError

# The models. From MEASURED on, the clock is read around every handler.
NO_COST, FIXED, RECORDED, MEASURED, LIVE = range(5)

SERVER = np.dtype(
    [
        ("free", "i8"),  # when it is done with all that has arrived, ns
        ("served", "i8"),  # messages handled
        ("busy", "i8"),  # ns spent on them, until NEVER
        ("waited", "i8"),  # ns they waited for it,
        ("waited_wholes", "i8"),  # and this many times `WHOLE` ns
        ("longest", "i8"),  # the longest wait of one
        ("most", "i8"),  # messages that waited for it at once, at the most
        # Of `busy`, ns until the last job, or coflow, arrived; NONE until a message came later.
        ("arriving", "i8"),
        ("next_cost", "i8"),  # place of its next recorded cost
        ("end_cost", "i8"),
        # Its line of messages that wait: rows of WAITING. Not in an array of its own: with one more in the world the
        # compiled loop of philae took 2.7 times as long.
        ("first", "i8"),
        ("last", "i8"),
        ("length", "i8"),
    ]
)
LINE = ("first", "last", "length")  # of SERVER, its messages that wait: rows of WAITING
# `kind`: of the message; `decides`: 1 if its handler decided, in a family that has decisions of its own.
COST = np.dtype([(name, "i8") for name in ("scheduler", "cost", "kind", "decides")])
MOST_COST_NS = int(WHOLE)  # of what one scheduler does at once, and of all that is recorded of it
LOG_CAPACITY = 1 << 16  # recorded costs, to begin with
# Messages that wait for their server: when it begins with them, ns. In row 0 `next` is the first free row, and
# `start` the first that was never used.
WAITING = np.dtype([("start", "i8"), ("next", "i8")])
LINE_CAPACITY = 1 << 10  # rows, to begin with
# The handler that runs: its server while it is timed (otherwise NONE), its cost if that is known, when it began, what
# `settle` needs, and, in the clock `live`, when its message was due.
_OF_HANDLER = ("server", "kind", "decides", "spent", "begin", "staged", "recorded", "due")
HANDLER = np.dtype([(name, "i8") for name in _OF_HANDLER])


class Cost(NamedTuple):
    """The cost model of one partition's schedulers, and what was measured."""

    model: int
    per_message: int  # ns
    per_job: int
    per_task: int
    overhead: int  # of reading the clock, ns
    servers: Records  # SERVER, by actor id less the number of nodes; empty without costs
    log: Records  # COST: recorded, in order; or to be given again, sorted by scheduler
    handler: Records  # [1] HANDLER
    origin: int  # live: the wall time of virtual time 0, ns
    dilation: float  # live: wall time over virtual time
    # [2, BUCKETS] events of nodes (live), or of the coordinator of DAG jobs, and of schedulers, by how late they are
    # handled
    lateness: np.ndarray
    last_arrival: int  # of a job, or coflow, ns
    waiting: Records  # WAITING


class HasCost(HasQueue, Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def faults(self) -> Any:
        """The failures of the run (`actors.failures.Faults`)."""

    @property
    def nodes(self) -> Records:
        """[N] a row for each node."""

    @property
    def cost(self) -> Cost:
        """The cost model."""

    @property
    def entries(self) -> Records:
        """The pool of entries of the nodes' queues."""

    @property
    def work(self) -> Records:
        """[J] what is known of each job."""

    @property
    def counts(self) -> np.ndarray:
        """The counts of the run, by counter."""


@inlined
def take(w: HasCost, until: int) -> int:
    """Take the first event before `until` into `w.queue.now`, when it is handled; return RUNNING or a stop reason.

    An event of the network is handed to the loop that handles those, if there is one (`actors.kernel.turns`).
    """
    now = w.queue.now
    if now.handed[0] == 1:
        take_handed(w)
        return RUNNING
    if w.cost.model != NO_COST:
        if w.cost.model >= MEASURED:
            settle(w)
            if w.cost.handler.recorded[0] == w.cost.log.size:
                return GROW
        if w.cost.waiting.next[0] == NONE and w.cost.waiting.start[0] == w.cost.waiting.size:
            return GROW
    if w.faults.active == 1:
        if is_over(w):
            return IDLE
        if lacks_attempts(w.faults):
            return GROW
    reason = take_first(w.queue, w.entries, until)
    if reason == RUNNING:
        if w.faults.active == 1:
            apply_failures(w)
        if w.cost.model != NO_COST:
            begin(w)
        if now.two_loops[0] == 1 and is_of_network(now.kind[0]):
            hand_over(w, np.int64(1))
            return HANDED
    return reason


@inlined
def hand_over(w: HasCost, turn: int) -> None:
    """Hand the event at hand to the other of two loops, whose turn is `turn`; until then no handler is charged."""
    w.queue.now.handed[0], w.queue.now.turn[0] = 1, turn
    if w.cost.model == MEASURED:
        w.cost.handler.server[0] = NONE


@inlined
def take_handed(w: HasCost) -> None:
    """Take the event that the other loop has handed over."""
    now = w.queue.now
    now.handed[0] = 0
    if w.cost.model == MEASURED and now.dst[0] >= w.nodes.size:
        start_timing(w, now.dst[0] - w.nodes.size)


@inlined
def apply_failures(w: HasCost) -> None:
    """Leave a background message out of the counts; delay one for a scheduler that is down until its standby is up."""
    now = w.queue.now
    if is_background(now.kind[0]):
        now.background[0] -= 1
        now.events[0] -= 1
    if now.dst[0] >= w.nodes.size:
        now.time[0] = take_over(w, now.dst[0], now.time[0])


@compiled
def take_over(w: HasCost, actor: int, t: int) -> int:
    """Return when a scheduler can handle a message that is due at `t`: then, or when its standby has taken over."""
    row, schedule = w.faults.actors, w.faults.schedule
    place = row.next_outage[actor]
    while place < row.end_outage[actor] and schedule.end[place] <= t:
        place += 1
    row.next_outage[actor] = place
    if place < row.end_outage[actor] and schedule.start[place] <= t:
        return schedule.end[place]
    return t


@inlined
def is_over(w: HasCost) -> bool:
    """Return whether only background messages are left, in a partition that has all actors."""
    now = w.queue.now
    return (
        now.unfinished[0] == 0
        and now.heap_size[0] + now.lane_tail[0] - now.lane_head[0] == now.background[0]
        and is_whole(w.queue)
    )


@inlined
def lacks_attempts(faults: Any) -> bool:
    """Return whether there is less room for attempts than one event may need: one of each task."""
    return faults.attempts.size > 0 and faults.attempts.size - faults.ended[0] < faults.tasks.size


@compiled
def begin(w: HasCost) -> None:
    """Set the time at which a handler starts, and charge its cost if that is known; what it sends leaves at its end."""
    cost, now = w.cost, w.queue.now
    cost.handler.spent[0] = 0
    due, server_id = now.time[0], now.dst[0] - w.nodes.size
    if cost.model == LIVE:
        start = np.int64((clock_ns(WALL) - cost.origin) / cost.dilation)
        note_time(cost.lateness, np.int64(server_id >= 0), start - due)
        now.time[0], cost.handler.due[0] = max(start, due), due
    if (
        server_id < 0 or now.kind[0] == PUBLISHED
    ):  # other partitions read what is published; it is not a message
        return
    server = cost.servers
    # Nothing happens from NEVER on. The time of a server that has work beyond it must not wrap.
    start = min(max(now.time[0], server.free[server_id]), NEVER)
    if w.faults.active == 1:
        start = take_over(w, now.dst[0], start)
    if due > cost.last_arrival and server.arriving[server_id] == NONE:
        # It works without a pause on what it has: what is left of that, it does after the last arrival.
        server.arriving[server_id] = server.busy[server_id] - max(
            server.free[server_id] - cost.last_arrival, np.int64(0)
        )
    if now.kind[0] < FIRST_DECISION and start < NEVER:
        server.served[server_id] += 1
        waited, wholes = server.waited[server_id] + start - due, server.waited_wholes[server_id]
        server.waited[server_id], server.waited_wholes[server_id] = carry(waited, wholes)
        server.longest[server_id] = max(server.longest[server_id], start - due)
        server.most[server_id] = max(server.most[server_id], queue_at_server(cost, server_id, due, start))
        if (
            cost.model != LIVE and server_id < server.size - 1
        ):  # the listener's are copies, one in each partition
            of_network = now.two_loops[0] == 1 and is_of_network(now.kind[0])
            note_time(cost.lateness, np.int64(not of_network), start - due)
    spent = np.int64(0)
    if cost.model == FIXED and not is_of_network(now.kind[0]):  # a coordinator charges what it does
        spent = cost.per_message
        if now.kind[0] == ARRIVAL:
            job = read_job(w)
            tasks = w.work.end_task[job] - w.work.first_task[job]
            spent += cost.per_job + cost.per_task * tasks
    elif cost.model == RECORDED and server.next_cost[server_id] < server.end_cost[server_id]:
        spent = cost.log.cost[server.next_cost[server_id]]
        server.next_cost[server_id] += 1
    elif cost.model >= MEASURED:
        start_timing(w, server_id)
    server.busy[server_id] = min(server.busy[server_id] + spent, NEVER)
    if cost.model != LIVE:
        cost.handler.spent[0] = spent
        server.free[server_id] = start + spent
        now.time[0] = start


@inlined
def known_cost(w: HasCost) -> int:
    """Return the cost of the handler at hand, ns, as far as it is known while it runs: 0 if costs are measured."""
    return w.cost.handler.spent[0] if w.cost.model == FIXED else np.int64(0)


@inlined
def previous_cost(w: HasCost, server_id: int) -> int:
    """Return the cost of the handler before the one at hand, ns, if it was not known while that ran; else 0.

    The same scheduler ran it: the partition has no other one.
    """
    if w.cost.model == MEASURED and w.cost.handler.recorded[0] > 0:
        return w.cost.log.cost[w.cost.handler.recorded[0] - 1]
    if w.cost.model == RECORDED and w.cost.servers.next_cost[server_id] > 1:
        return w.cost.log.cost[w.cost.servers.next_cost[server_id] - 2]
    return np.int64(0)


@inlined
def charge_server(cost: Cost, server_id: int, price: int) -> None:
    """Add `price`, ns, to the cost of the handler at hand, which is a server's, if costs are fixed."""
    if cost.model == FIXED:
        cost.handler.spent[0] += price
        cost.servers.busy[server_id] = min(cost.servers.busy[server_id] + price, NEVER)
        cost.servers.free[server_id] += price


@compiled
def queue_at_server(cost: Cost, server_id: int, due: int, start: int) -> int:
    """Queue a message at its server until `start`; return how many messages wait there just after `due`."""
    lines, rows = cost.servers, cost.waiting
    while lines.length[server_id] > 0 and rows.start[lines.first[server_id]] <= due:
        row = lines.first[server_id]
        lines.first[server_id], rows.next[row], rows.next[0] = rows.next[row], rows.next[0], row
        lines.length[server_id] -= 1
    if start > due:
        row = rows.next[0]
        if row != NONE:
            rows.next[0] = rows.next[row]
        else:
            row = rows.start[0]
            rows.start[0] = row + 1
        rows.start[row] = start
        if lines.length[server_id] == 0:
            lines.first[server_id] = row
        else:
            rows.next[lines.last[server_id]] = row
        lines.last[server_id] = row
        lines.length[server_id] += 1
    return lines.length[server_id]


@compiled
def start_timing(w: HasCost, server_id: int) -> None:
    """Start to time a handler. What it sends is held back until its cost is known."""
    handler, now = w.cost.handler, w.queue.now
    handler.server[0], handler.staged[0] = server_id, now.outbox_size[0]
    handler.kind[0], handler.decides[0] = now.kind[0], 0
    now.held_back[0] = np.int64(w.cost.model == MEASURED)
    handler.begin[0] = clock_ns(CPU)


@entry
def settle(w: HasCost) -> None:
    """Charge the cost of the handler that was timed, and release what it sent."""
    cost, handler = w.cost, w.cost.handler
    server_id = handler.server[0]
    if server_id == NONE:
        return
    spent = max(clock_ns(CPU) - handler.begin[0] - cost.overhead, np.int64(0))
    handler.server[0] = NONE
    if cost.model == LIVE:
        spent = np.int64(spent / cost.dilation)  # emulated time, as all else
    cost.servers.busy[server_id] = min(cost.servers.busy[server_id] + spent, NEVER)
    if cost.model == MEASURED:
        cost.servers.free[server_id] += spent
        i = handler.recorded[0]
        cost.log.scheduler[i], cost.log.cost[i] = server_id, spent
        cost.log.kind[i], cost.log.decides[i] = handler.kind[0], handler.decides[0]
        handler.recorded[0] = i + 1
        w.queue.now.held_back[0] = 0
        release(w.queue, handler.staged[0], spent)


@compiled
def release(queue: Queue, staged: int, spent: int) -> None:
    """Send what was held back, `spent` ns later; what is for other partitions stays in the outbox."""
    now, rows = queue.now, queue.outbox
    kept = staged
    for i in range(staged, now.outbox_size[0]):
        time, key, kind, dst = rows.time[i] + spent, rows.key[i], rows.kind[i], rows.dst[i]
        a, b, c, d = rows.a[i], rows.b[i], rows.c[i], rows.d[i]
        if is_here(queue, dst) and kind != ANNOUNCED:
            push(now, queue.heap, queue.pool, time, key, kind, dst, a, b, c, d)
        else:
            rows.time[kept], rows.key[kept], rows.kind[kept], rows.dst[kept] = time, key, kind, dst
            rows.a[kept], rows.b[kept], rows.c[kept], rows.d[kept] = a, b, c, d
            kept += 1
    now.outbox_size[0] = kept


def make_cost(
    model: int = NO_COST,
    schedulers: int = 0,
    *,
    per_message: int = 0,
    per_job: int = 0,
    per_task: int = 0,
    recorded: np.ndarray | None = None,
    origin: int = 0,
    dilation: float = 1.0,
    last_arrival: int = 0,
) -> Cost:
    """Return a cost model for `schedulers` scheduler actors; times in ns.

    Args:
        last_arrival: of a job, or coflow: until then `arriving` counts.
        recorded: [messages] COST in the order in which they were handled, for RECORDED.
        origin, dilation: of LIVE.
    """
    servers = records(SERVER, schedulers if model != NO_COST else 0)
    servers.arriving[:] = NONE
    waiting = records(WAITING, LINE_CAPACITY if model != NO_COST else 1)
    waiting.start[0], waiting.next[0] = 1, NONE
    log = records(COST, LOG_CAPACITY if model == MEASURED else 1)
    if model == RECORDED:
        assert recorded is not None
        _check_recorded(recorded, schedulers)
        order = np.argsort(recorded["scheduler"], kind="stable")
        log = as_records(recorded[order])
        places = np.searchsorted(log.scheduler, np.arange(schedulers + 1))
        servers.next_cost[:], servers.end_cost[:] = places[:-1], places[1:]
    handler = records(HANDLER, 1)
    handler.server[0] = NONE
    return Cost(
        int(model),
        int(per_message),
        int(per_job),
        int(per_task),
        clock_overhead() if model >= MEASURED else 0,
        servers,
        log,
        handler,
        int(origin),
        float(dilation),
        np.zeros((2, BUCKETS), np.int64),
        int(last_arrival),
        waiting,
    )


def _check_recorded(recorded: np.ndarray, schedulers: int) -> None:
    """Refuse recorded costs of schedulers that do not exist."""
    wrong = (recorded["scheduler"] < 0) | (recorded["scheduler"] >= schedulers)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"there is no scheduler {recorded['scheduler'][row]}; this run has 0 to {schedulers - 1}: probe schedulers,"
            " the central one, and the listener. Want costs that were measured with the same scheduler",
            line=row + 1,
            field="scheduler",
        )


def grow_cost(cost: Cost) -> Cost:
    """Return the same model, with twice the space for recorded costs and for messages that wait, where that is full."""
    if cost.model >= MEASURED and cost.handler.recorded[0] == cost.log.size:
        cost = cost._replace(log=doubled(cost.log))
    if cost.model != NO_COST and cost.waiting.next[0] == NONE and cost.waiting.start[0] == cost.waiting.size:
        cost = cost._replace(waiting=doubled(cost.waiting))
    return cost
