"""The world of tickets, and its two schedulers: each job of a workload is a ticket of all its work."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actors.failures import Faults, no_faults
from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import NO_COST, Cost, make_cost, take
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED, Counters
from actors.kernel.message_kinds import kind
from actors.kernel.queue import NEVER, NONE, RUNNING, Network, Queue, make_queue, wake
from actors.kernel.records import Records, first, records
from actors.nodes.world import ACTOR, JOB_INFO, TASK_RECORD, make_entries
from actors.scheduler import Scheduler
from actors.worlds import Worlds

TICKET = kind(0x380, "TICKET", "tickets", "the desk to itself", a="job")
SERVED = kind(0x080, "SERVED", "tickets", "the desk to itself", a="job")
COUNTERS = Counters()
N_WAITED = COUNTERS.add("tickets_that_waited", "tickets that found the desk busy")


class Tickets(NamedTuple):
    """When each began and ended, and whether it is still to be served."""

    start: np.ndarray
    finish: np.ndarray
    unfinished: np.ndarray


class DeskWorld(NamedTuple):
    """What the desk works on; T tickets."""

    queue: Queue
    network: Network
    work: Records  # [T] JOB_INFO
    nodes: Records  # [1] ACTOR, idle
    entries: Records
    counts: np.ndarray
    task_records: Records
    cost: Cost
    faults: Faults
    jobs: Tickets
    length: np.ndarray  # [T] ns
    seed: int

    def records_by_task(self) -> Records:
        """The records of tickets in the order of the workload."""
        return self.task_records


class State(NamedTuple):
    """Tickets that wait."""

    waiting: np.ndarray  # [T]
    size: np.ndarray  # [1] how many there are, the one that is served included
    last_first: bool


@compiled
def serve(w: Any, p: Any, t: int) -> None:
    """Serve the next ticket: the first that waits, or the last."""
    size = p.size[0]
    at = size - 1 if p.last_first else 0
    ticket = p.waiting[at]
    for i in range(at, size - 1):
        p.waiting[i] = p.waiting[i + 1]
    w.jobs.start[ticket] = t
    w.counts[N_STARTED] += 1
    wake(w, t + w.length[ticket], w.nodes.size, SERVED, ticket, NONE, NONE)


@entry
def advance(w: Any, p: Any, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, ticket = message.time[0], message.a[0]
        if message.kind[0] == TICKET:
            w.counts[N_ARRIVED] += 1
            if ticket + 1 < w.work.size:
                wake(w, w.work.submit[ticket + 1], w.nodes.size, TICKET, ticket + 1, NONE, NONE)
            p.waiting[max(p.size[0] - 1, 0)] = ticket
            p.size[0] += 1
            if p.size[0] == 1:
                serve(w, p, t)
            else:
                w.counts[N_WAITED] += 1
        else:
            w.jobs.finish[ticket], w.jobs.unfinished[ticket] = t, 0
            w.counts[N_FINISHED] += 1
            p.size[0] -= 1
            if p.size[0] > 0:
                serve(w, p, t)
    return RUNNING


@entry
def expect_first(w: Any) -> None:
    """The desk waits for the first ticket."""
    wake(w, w.work.submit[0], w.nodes.size, TICKET, 0, NONE, NONE)


def build(setting: Any) -> tuple[DeskWorld, State]:
    """The desk at time 0."""
    arrays = setting.workload.arrays()
    tickets = arrays.submit_ns.size
    work, table = records(JOB_INFO, tickets), records(ACTOR, 3)
    work.submit[:], work.home[:] = arrays.submit_ns, 1
    work.first_task[:], work.end_task[:] = np.arange(tickets), np.arange(1, tickets + 1)
    world = DeskWorld(
        queue=make_queue(table.seq, room=8),
        network=Network(0, 0, 0.0, np.zeros(0, np.int64), setting.seed, 0),
        work=work,
        nodes=first(table, 1),
        entries=make_entries(2),
        counts=np.zeros(len(COUNTERS), np.int64),
        task_records=records(TASK_RECORD, 0),
        cost=make_cost(NO_COST, 2),
        faults=no_faults(0),
        jobs=Tickets(np.full(tickets, NEVER), np.full(tickets, NEVER), np.ones(tickets, np.int64)),
        length=np.add.reduceat(arrays.duration_ns, arrays.first_task[:-1]),
        seed=setting.seed,
    )
    expect_first(world)
    return world, State(np.zeros(tickets, np.int64), np.zeros(1, np.int64), setting.scheduler.name == "lcfs")


class _DeskWorlds(Worlds):
    family = "tickets"
    counters = COUNTERS

    def num_jobs(self, workload: Any) -> int:
        return int(workload.num_jobs)

    def num_tasks(self, workload: Any) -> int:
        return int(workload.num_jobs)

    def span_ns(self, setting: Any) -> tuple[np.ndarray, int]:
        return setting.workload.arrays().submit_ns, 1

    def needed_bytes(self, setting: Any) -> tuple[int, int]:
        return 200 * setting.num_jobs, 0


def _scheduler(name: str, title: str) -> Scheduler:
    return Scheduler(
        name=name,
        title=title,
        paper="none",
        parameters=(),
        worlds=_DeskWorlds(),
        build=build,
        advance=advance,
    )


FCFS = _scheduler("fcfs", "first come, first served")
LCFS = _scheduler("lcfs", "last come, first served")
