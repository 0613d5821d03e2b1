"""Placement on the nodes with the least work left (the centralized scheduler of Hawk, ATC'15, section 3.5).

A ledger (`actors.schedulers.jobs.ledger`) holds the estimated work of each node. The tasks of a job go one by
one to the node that waits least; ties go to the node that has just been given a task, then to the lowest id.

One pass over the nodes picks the k least for a job of k tasks; O(N + k log k) for most jobs.

With a fit (`actors.schedulers.jobs.node_fit`) nodes with room come before those that wait.

For a job with constraints only its eligible nodes are searched. A job whose tasks must be spread gets its nodes one by
one. A long job uses its eligible nodes in the long partition, or all of them if none is there.
"""

from typing import NamedTuple

import numpy as np

from actors import constraints
from actors.failures import is_known_down, receive_node_state
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import NODE_UP, read_lost, read_node_state, send_lost_again
from actors.kernel.queue import NEVER, NONE, note
from actors.kernel.random import JITTER, below, random_bits
from actors.kernel.records import Records, records
from actors.kernel.sums import LARGE, spread
from actors.kernel.trace import CHOSEN
from actors.nodes.messages import read_request, read_started, send_placed
from actors.nodes.world import N_PLACEMENTS, N_PROBES, N_SENT_AGAIN, World
from actors.resources import work_at
from actors.schedulers.jobs import late_binding
from actors.schedulers.jobs.job_info import is_long, tasks_of
from actors.schedulers.jobs.late_binding import note_attempt, note_lost, tasks_left
from actors.schedulers.jobs.ledger import DOWN, IDLE, Ledger, add_work, waiting
from actors.schedulers.jobs.node_fit import DRAWS, LEAST_WORK, NO_FIT, ROOM, Fit, take_room, wait_for
from actors.schedulers.jobs.probing import FIRST_ROUND, NO_VERSION, ONE, probe
from actors.schedulers.jobs.spreading import hold, may_run, must_spread, release, settle_rack

LONGEST = NEVER + LARGE  # ns; no node waits longer
CHOICE = np.dtype([("wait", "i8"), ("node", "i8")])


class Placer(NamedTuple):
    """A placing scheduler's bookkeeping and scratch space."""

    ledger: Ledger
    choice: Records  # [at most N] CHOICE, scratch: a heap of the nodes considered
    assigned: np.ndarray  # [most tasks of a job] scratch: node by task
    first: int  # the first node that may be used
    late: bool  # a placement is a probe and takes the job's next task; else tasks are bound
    fit: Fit
    jitter: int = 0  # the most steps of random time that are added to a node's wait
    jitter_step: int = 0  # ns


def make_placer(slots: np.ndarray, most_tasks: int, first: int, late: bool, fit: Fit | None = None) -> Placer:
    """Bookkeeping for nodes with these slots, of which the scheduler uses those from `first` on.

    `fit`: what else than the work that is left decides, from `make_fit`.
    """
    nothing = np.zeros(slots.size, np.int64)
    ledger = Ledger(
        nothing.copy(), nothing.copy(), np.full(slots.size, NEVER), nothing.copy(), slots.astype(np.int64)
    )
    choice = records(CHOICE, min(most_tasks, slots.size))
    return Placer(ledger, choice, np.zeros(most_tasks, np.int64), int(first), late, fit or NO_FIT)


@inlined
def precedes(choice: Records, i: int, j: int) -> bool:
    """Whether choice `i` is better than choice `j`: waits less, or as long with a lower id."""
    return choice.wait[i] < choice.wait[j] or (
        choice.wait[i] == choice.wait[j] and choice.node[i] < choice.node[j]
    )


@inlined
def swap(choice: Records, i: int, j: int) -> None:
    """Exchange two choices."""
    choice.wait[i], choice.wait[j] = choice.wait[j], choice.wait[i]
    choice.node[i], choice.node[j] = choice.node[j], choice.node[i]


@inlined
def is_above(choice: Records, i: int, j: int, best: bool) -> bool:
    """Whether choice `i` stands above choice `j` in a heap with the best on top, or with the worst."""
    return precedes(choice, i, j) if best else precedes(choice, j, i)


@inlined
def sink(choice: Records, i: int, size: int, best: bool) -> None:
    """Restore a heap, from `i` down, with the best on top, or with the worst."""
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and is_above(choice, child + 1, child, best):
            child += 1
        if not is_above(choice, child, i, best):
            break
        swap(choice, i, child)
        i = child


@inlined
def keep_least(choice: Records, size: int, k: int, wait: int, node: int) -> int:
    """Offer a node to the `k` that wait least, a heap of `size` nodes so far; return its size then."""
    if size < k:
        choice.wait[size], choice.node[size] = wait, node
        if size == k - 1:
            for i in range(k // 2 - 1, -1, -1):
                sink(choice, i, k, False)
        return size + 1
    if wait < choice.wait[0]:
        choice.wait[0], choice.node[0] = wait, node
        sink(choice, 0, k, False)
    return size


@inlined
def jitter_of(w: World, placer: Placer, job: int, node: int, wait: int) -> int:
    """Return the random time that is added to a node's wait for the job, ns; of one with room, a draw among equals."""
    if placer.jitter == 0:
        return np.int64(0)
    bits = random_bits(w.seed, JITTER, job, node)
    return below(bits, DRAWS) if wait < ROOM // 2 else below(bits, placer.jitter + 1) * placer.jitter_step


@inlined
def choose_idle(w: World, ledger: Ledger, choice: Records, job: int, begin: int, k: int) -> bool:
    """Put the job's first `k` nodes without work into `choice[:k]`, in order of id; False if there are fewer."""
    low, first = constraints.listing_of(w, job)
    found = 0
    for i in range(begin, constraints.eligible_count(w, job)):
        node = constraints.listed(w, low, first, i)
        if ledger.work[node] <= 0:
            choice.wait[found], choice.node[found] = IDLE, node
            found += 1
            if found == k:
                return True
    return False


@compiled
def choose_least(w: World, placer: Placer, t: int, job: int, begin: int, k: int) -> None:
    """Put the job's `k` nodes that wait least into `choice[:k]`, best on top.

    Its nodes from place `begin` on are considered.
    """
    ledger, choice = placer.ledger, placer.choice
    is_plain = placer.fit.kind == LEAST_WORK
    if is_plain and placer.jitter == 0 and choose_idle(w, ledger, choice, job, begin, k):
        return
    low, first = constraints.listing_of(w, job)
    size: int = 0
    for place in range(begin, constraints.eligible_count(w, job)):
        node = constraints.listed(w, low, first, place)
        wait = wait_for(w, placer.fit, ledger, t, node, job)
        if size == k and wait >= choice.wait[0]:
            if is_plain and choice.wait[0] == IDLE:  # none waits less than the worst of those that are chosen
                break
            continue
        wait += jitter_of(w, placer, job, node, wait)
        size = keep_least(choice, size, k, wait, node)
    for i in range(k // 2 - 1, -1, -1):
        sink(choice, i, k, True)


@inlined
def note_choice(w: World, placer: Placer, t: int, job: int, task: int, node: int, wait: int) -> None:
    """Note in the trace which node was chosen for a task, and the wait that is expected there."""
    note(w, t, w.work.home[job], CHOSEN, job, NONE if placer.late else task, node, max(wait, 0))


@compiled
def assign(w: World, placer: Placer, t: int, job: int, k: int, count: int) -> None:
    """Give `count` tasks of a job, one by one, to the node of `k` that waits least, into `placer.assigned`."""
    ledger, choice = placer.ledger, placer.choice
    for i in range(count):
        node = choice.node[0]
        placer.assigned[i] = node
        note_choice(w, placer, t, job, w.work.first_task[job] + i, node, choice.wait[0])
        if placer.fit.kind == LEAST_WORK:
            more = spread(work_at(w, node, job), np.int64(0), ledger.slots[node])
            choice.wait[0] = min(max(choice.wait[0], 0) + more, LONGEST)
        else:
            take_place(w, placer, node, job)
            wait = wait_for(w, placer.fit, ledger, t, node, job)
            choice.wait[0] = wait + jitter_of(w, placer, job, node, wait)
        second = 1
        if k > 2 and choice.wait[2] < choice.wait[1]:
            second = 2
        if k > 1 and choice.wait[second] < choice.wait[0]:
            sink(choice, 0, k, True)


@inlined
def place_tasks(w: World, placer: Placer, t: int, job: int) -> int:
    """Choose a node for each task of a job, into `placer.assigned`; returns how many tasks there are."""
    count = tasks_of(w, job)
    settle_rack(w, job, placer.first)
    if must_spread(w, job):
        spread_tasks(w, placer, t, job, count)
    else:
        begin = constraints.first_place(w, job, placer.first)
        k = min(count, constraints.eligible_count(w, job) - begin)
        choose_least(w, placer, t, job, begin, k)
        assign(w, placer, t, job, k, count)
    return count


@compiled
def spread_tasks(w: World, placer: Placer, t: int, job: int, count: int) -> None:
    """Choose a node for each task of a job whose tasks must be spread, into `placer.assigned`."""
    w.eligible.jobs.placed[job] = 1
    for i in range(count):
        node = place_one(w, placer, t, job)
        placer.assigned[i] = node
        note_choice(w, placer, t, job, w.work.first_task[job] + i, node, waiting(placer.ledger, node, t))
        hold(w, job, node)
        if placer.fit.kind != LEAST_WORK:
            take_place(w, placer, node, job)


@inlined
def take_place(w: World, placer: Placer, node: int, job: int) -> None:
    """Of a fit: take the room of a task, and add its work to what its scheduler knows."""
    take_room(w, placer.fit, node, job, ONE)
    if placer.fit.work.size == 0:
        add_work(placer.ledger, node, work_at(w, node, job))


@compiled
def place_one(w: World, placer: Placer, t: int, job: int) -> int:
    """Find the node that waits least and may run a task of the job; a long job tries the long partition first."""
    begin = constraints.first_place(w, job, placer.first)
    node = least_of(w, placer, t, job, begin)
    if constraints.is_constrained(w, job) and begin > 0 and (node == NONE or is_known_down(w, node)):
        node = least_of(w, placer, t, job, np.int64(0))
    return node


@compiled
def least_of(w: World, placer: Placer, t: int, job: int, begin: int) -> int:
    """Find the job's node from place `begin` on that waits least and may run a task of it; NONE if there is none."""
    low, first = constraints.listing_of(w, job)
    best: int = NONE
    least: int = NONE
    for i in range(begin, constraints.eligible_count(w, job)):
        node = constraints.listed(w, low, first, i)
        wait = wait_for(w, placer.fit, placer.ledger, t, node, job)
        wait += jitter_of(w, placer, job, node, wait)
        if (best == NONE or wait < least) and may_run(w, job, node):
            best, least = node, wait
            if wait == IDLE and placer.fit.kind == LEAST_WORK:
                break
    return best


@inlined
def add_assigned(w: World, placer: Placer, job: int, count: int) -> None:
    """Add the assigned tasks to the ledger, unless they are there, as with a fit."""
    if placer.fit.kind != LEAST_WORK:
        return
    for i in range(count):
        node = placer.assigned[i]
        add_work(placer.ledger, node, work_at(w, node, job))


@inlined
def send_assigned(w: World, placer: Placer, t: int, me: int, job: int, count: int, version: int) -> None:
    """Send the assigned tasks to their nodes: bound to them, or as probes with late binding."""
    first = w.work.first_task[job]
    w.counts[N_PROBES if placer.late else N_PLACEMENTS] += count
    for i in range(count):
        if placer.late:
            probe(w, t, me, placer.assigned[i], job, count, FIRST_ROUND, version)
        else:
            send_placed(
                w, t, me, placer.assigned[i], job, first + i, constraints.level_of(w, job), count, version
            )


@inlined
def on_started(w: World, placer: Placer) -> None:
    """Note a report that a bound task has started."""
    job, node, start = read_started(w)
    note_start(w, placer, job, node, start)


@inlined
def on_request(w: World, placer: Placer, t: int, me: int, job: int) -> None:
    """Hand out the job's next task; of a long one the scheduler knows that it starts now."""
    _, node, _ = read_request(w)
    if is_long(w, job):
        note_start(w, placer, job, node, t)
    late_binding.on_request(w, t, me)


@inlined
def note_start(w: World, placer: Placer, job: int, node: int, t: int) -> None:
    """Note a report that a task of `job` runs on `node` since `t`; with resources, one of many that run there."""
    if w.room.active == 0:
        placer.ledger.started[node] = t
        placer.ledger.running[node] = w.work.estimate[job]


@inlined
def note_end(w: World, placer: Placer, job: int, node: int) -> int:
    """Note a report that a task of `job` has ended on `node`; return the work that is left there."""
    placer.ledger.started[node] = NEVER
    add_work(placer.ledger, node, -work_at(w, node, job))
    take_room(w, placer.fit, node, job, -ONE)
    return placer.ledger.work[node] & (DOWN - 1)


@inlined
def note_node_state(w: World, ledger: Ledger) -> bool:
    """Note a message that a node is down or up; return whether it is new."""
    node, _, _ = read_node_state(w)
    news = receive_node_state(w)
    if news:
        ledger.started[node] = NEVER
        ledger.work[node] &= DOWN - 1
        if w.queue.now.kind[0] != NODE_UP:
            ledger.work[node] += DOWN
    return news


@compiled
def place_again(w: World, placer: Placer, t: int, me: int) -> int:
    """Choose the node that waits least for a lost task or probe; return it, or NONE if nothing is sent now."""
    job, task, lost_at, _, _ = read_lost(w)
    release(w, job, lost_at)
    if placer.late:
        if not note_lost(w):
            return NONE
        task = NONE
    else:
        note_attempt(w)
    node = place_one(w, placer, t, job)
    if is_known_down(w, node):
        send_lost_again(w, t, me, job, task)
        return NONE
    note_choice(w, placer, t, job, task, node, waiting(placer.ledger, node, t))
    hold(w, job, node)
    take_room(w, placer.fit, node, job, ONE)
    w.counts[N_SENT_AGAIN] += 1
    return node


@inlined
def send_one(w: World, placer: Placer, t: int, me: int, node: int, version: int) -> None:
    """Send what `place_again` has chosen a node for."""
    job, task, _, _, _ = read_lost(w)
    if placer.late:
        probe(w, t, me, node, job, tasks_left(w, job), FIRST_ROUND, version)
    else:
        send_placed(w, t, me, node, job, task, constraints.level_of(w, job), ONE, version)


@inlined
def assign_again(w: World, placer: Placer, t: int, me: int) -> None:
    """Take a lost task or probe out of the ledger, and assign it again."""
    job, _, node, _, _ = read_lost(w)
    if node != NONE:
        note_end(w, placer, job, node)
    chosen = place_again(w, placer, t, me)
    if chosen != NONE:
        add_work(placer.ledger, chosen, work_at(w, chosen, job))
        send_one(w, placer, t, me, chosen, NO_VERSION)
