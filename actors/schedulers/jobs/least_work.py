"""Placement on the nodes with the least work left (the centralized scheduler of Hawk, ATC'15, section 3.5).

A ledger holds the estimated work of each node. The tasks of a job go one by one to the
node that waits least; ties go to the node that has just been given a task, then to the lowest id.

One pass over the nodes picks the k least for a job of k tasks; O(N + k log k) for most jobs.

With a fit (best or worst) nodes with room come before those that wait.

For a job with constraints only its eligible nodes are searched. A job whose tasks must be spread gets its nodes one by
one. A long job uses its eligible nodes in the long partition, or all of them if none is there.
"""

from typing import NamedTuple

import numpy as np

from actors import constraints
from actors.causes import BEHIND_EQUALS, BEHIND_LONG, BEHIND_UNFIT, Remedy
from actors.failures import is_known_down, receive_node_state
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import NODE_UP, read_lost, read_node_state, send_lost_again
from actors.kernel.queue import NEVER, NONE, note
from actors.kernel.random import JITTER, below, random_bits
from actors.kernel.records import Records, records
from actors.kernel.sums import LARGE, WHOLE, carry, spread
from actors.kernel.trace import CHOSEN
from actors.nodes.messages import read_request, read_room_report, read_started, send_placed
from actors.nodes.reporting import TOGETHER, is_current, is_newest
from actors.nodes.world import N_PLACEMENTS, N_PROBES, N_SENT_AGAIN, World
from actors.resources import needed, work_at
from actors.scheduler import Parameter
from actors.schedulers.jobs import late_binding
from actors.schedulers.jobs.job_info import is_long, tasks_of
from actors.schedulers.jobs.late_binding import note_attempt, note_lost, tasks_left
from actors.schedulers.jobs.probing import FIRST_ROUND, NO_VERSION, ONE, probe
from actors.schedulers.jobs.spreading import hold, may_run, must_spread, release, settle_rack

# What a scheduler that places tasks knows of the nodes: the estimated work that was assigned and has not ended.
#
# A node's waiting time is its work, less what the running task has done, spread over its slots; less than NEVER. With
# resources a task's work is that of the part of the node that it takes, and what running tasks have done counts as
# left. A node that is known to be down waits longer than that, however many slots it has: it is chosen if there is no
# other.

IDLE = np.int64(-1)
DOWN = LARGE  # ns; a bit of a node's work


class Ledger(NamedTuple):
    """What a scheduler knows of the nodes by assignments and reports, [N] each; times in ns.

    One array a field, unlike other state: the search for idle nodes reads the work of all of them.
    """

    work: np.ndarray  # estimated work assigned and not ended, and DOWN of a node that is down
    wholes: np.ndarray  # and this many WHOLE (`actors.kernel.sums`)
    started: np.ndarray  # when the task started that is known to run; NEVER if none is
    running: np.ndarray  # its estimate
    slots: np.ndarray


@inlined
def add_work(ledger: Ledger, node: int, amount: int) -> None:
    """Add to the work of a node, up or down."""
    down = ledger.work[node] & DOWN
    work, ledger.wholes[node] = carry(ledger.work[node] - down + amount, ledger.wholes[node])
    ledger.work[node] = work + down


@inlined
def waiting(ledger: Ledger, node: int, t: int) -> int:
    """Estimated time until the node has done all that was assigned to it, ns.

    A node without work waits IDLE, less than nothing: it comes before one whose work takes no time. A busy one
    waits at least 1 ns, however late its task. With several slots the work is taken to be spread evenly.
    """
    work = ledger.work[node]
    if work <= 0:
        return IDLE
    down, wholes = work & DOWN, np.int64(0)
    work -= down
    if work >= WHOLE:
        wholes = ledger.wholes[node]
    if t > ledger.started[node]:
        work -= min(t - ledger.started[node], ledger.running[node])
    wait = spread(work, wholes, ledger.slots[node])
    return max(wait, 1) if down == 0 else NEVER + min(max(wait, 0), LARGE)


# Best fit and worst fit: to which of the nodes with room for a task a scheduler that places sends it.
#
# A node has room for a task that fits beside all that the scheduler has placed there and does not know to have ended.
# Best fit takes the node that then has least room left, worst fit the one with most: the largest share of a resource,
# or of its slots, that is free. Where a task fits on no node now, it goes to the node that waits least. The tasks of
# a job are taken to be alike, each as the most that one of them needs.
#
# One scheduler that places all tasks knows what each node has left by what it placed and what has ended. Where there
# are several, each knows it by the node's last report (`ROOM_REPORT`), and by what it has placed there itself since
# it received that. What others have placed, what was on its way when the node reported, and what has ended since are
# not known: a task may have to wait at a node that was taken to have room, and a node with room may be passed over.
# Of more than three resources a report is several messages: with the first of them the scheduler forgets what it has
# placed.

LEAST_WORK, BEST, WORST = np.int64(0), np.int64(1), np.int64(2)
KINDS = {"least-work": LEAST_WORK, "best": BEST, "worst": WORST}
# A node with room has this in place of its wait, more or less the share that is left in billionths, and room below that
# for a draw among equals: less than any wait.
ROOM, DRAWS = np.int64(-1) << 42, np.int64(1024)
SHARES = 1e9

FIT = Parameter(
    "fit",
    "least-work",
    "choice",
    "to which of the nodes that have room for a task now, as far as their scheduler knows, it goes: to that with the "
    "least work left, or to that with the least (best fit) or most (worst fit) room left then",
    choices=tuple(KINDS),
    addresses=tuple(
        Remedy(cause, "best or worst fit chooses among nodes with room now", needs="used")
        for cause in (BEHIND_LONG, *BEHIND_EQUALS, BEHIND_UNFIT)
    ),
)


class Fit(NamedTuple):
    """What is known to be free, a row for each node; by reports, each of S schedulers has a row for each node."""

    kind: int  # LEAST_WORK, BEST or WORST
    # [N or S · N, R], below 0 where tasks wait; R is 1 where they take slots; empty of LEAST_WORK
    free: np.ndarray
    # By reports; empty for one scheduler that places all tasks. Work is estimated, and placed since the report, ns.
    work: np.ndarray  # [S · N]
    seen: np.ndarray  # [S · N] the number of that report
    reports: np.ndarray  # [N] reports so far
    reported: np.ndarray  # [N, R] by the last one
    newest: np.ndarray  # [parts · N] number of the newest message of each part


NOTHING = np.zeros(0, np.int64)
NO_FIT = Fit(0, np.zeros((0, 0), np.int64), NOTHING, NOTHING, NOTHING, np.zeros((0, 0), np.int64), NOTHING)


def make_fit(kind: str, w: World, slots: np.ndarray) -> Fit:
    """Return the fit of one of `KINDS` for empty nodes with these slots, and one scheduler."""
    if kind == "least-work":
        return NO_FIT
    free = w.room.capacity.copy() if w.room.active else slots.astype(np.int64)[:, None].copy()
    return NO_FIT._replace(kind=int(KINDS[kind]), free=free)


def make_reported_fit(kind: str, w: World, slots: np.ndarray, schedulers: int) -> Fit:
    """Return the fit of one of `KINDS` for empty nodes with these slots, and schedulers that go by reports."""
    empty = make_fit(kind, w, slots)
    if kind == "least-work":
        return empty
    reported, (nodes, resources) = empty.free, empty.free.shape
    nothing = np.zeros(schedulers * nodes, np.int64)
    newest = np.full(parts_of(resources) * nodes, NONE)
    free, reports = np.tile(reported, (schedulers, 1)), np.zeros(nodes, np.int64)
    return Fit(empty.kind, free, nothing, nothing.copy(), reports, reported, newest)


def parts_of(resources: int) -> int:
    """Return in how many messages a node reports what is free of so many resources."""
    return -(-resources // TOGETHER)


@inlined
def note_room(w: World, fit: Fit) -> None:
    """Note what a node reports to be free."""
    node, part, generation, free, second_free, third_free = read_room_report(w)
    if is_current(w, node, generation) and is_newest(w, fit.newest, part * w.nodes.size + node):
        fit.reports[node] += 1
        r = part * TOGETHER
        note_free(fit, node, r, free)
        note_free(fit, node, r + 1, second_free)
        note_free(fit, node, r + 2, third_free)


@inlined
def note_free(fit: Fit, node: int, r: int, free: int) -> None:
    """Note what is reported of one resource, if there are so many."""
    if r < fit.reported.shape[1]:
        fit.reported[node, r] = free


@inlined
def note_empty(w: World, fit: Fit, node: int) -> None:
    """Note that a node is up again, and all of it free."""
    if fit.kind != LEAST_WORK:
        fit.reports[node] += 1
        for r in range(fit.reported.shape[1]):
            fit.reported[node, r] = (
                w.room.capacity[node, r] if w.room.active == 1 else w.faults.actors.slots[node]
            )


@inlined
def row_of(w: World, fit: Fit, node: int, job: int) -> int:
    """Return the row of what the job's scheduler knows of a node, by the last report of that."""
    if fit.reports.size == 0:
        return node
    row = (w.work.home[job] - w.nodes.size) * w.nodes.size + node
    if fit.seen[row] != fit.reports[node]:
        fit.seen[row], fit.work[row] = fit.reports[node], 0
        for r in range(fit.reported.shape[1]):
            fit.free[row, r] = fit.reported[node, r]
    return row


@inlined
def share_left(w: World, fit: Fit, slots: int, row: int, node: int, job: int) -> float:
    """Return the largest share of a resource, or of slots, that a task of the job leaves free; -1 without room."""
    if w.room.active == 0:
        return (fit.free[row, 0] - 1) / slots if fit.free[row, 0] > 0 else -1.0
    left, demand, has_room = 0.0, w.room.of_job[job], True
    for r in range(w.room.demand.shape[1]):
        free = fit.free[row, r] - w.room.demand[demand, r]
        has_room &= free >= 0
        left = max(left, free / max(w.room.capacity[node, r], 1))
    return left if has_room else -1.0


@inlined
def wait_for(w: World, fit: Fit, ledger: Ledger, t: int, node: int, job: int) -> int:
    """Return how long a node waits, ns; of a fit, below all waits the place of a node with room among those."""
    wait = waiting(ledger, node, t)
    if fit.kind != LEAST_WORK and ledger.work[node] < DOWN:
        row = row_of(w, fit, node, job)
        if fit.work.size > 0 and fit.work[row] > 0:
            wait = min(max(wait, 0) + spread(fit.work[row], np.int64(0), ledger.slots[node]), NEVER)
        return among_fitting(w, fit, ledger.slots[node], row, node, job, wait)
    return wait


@inlined
def among_fitting(w: World, fit: Fit, slots: int, row: int, node: int, job: int, wait: int) -> int:
    """Return the place of a node with room among those, below all waits; of one without its wait."""
    left = share_left(w, fit, slots, row, node, job)
    if left < 0.0:
        return wait
    share = np.int64(left * SHARES) * DRAWS
    return ROOM + share if fit.kind == BEST else ROOM - share


@inlined
def take_room(w: World, fit: Fit, node: int, job: int, sign: int) -> None:
    """Of a fit: take the room of a task of the job, or give it back if `sign` is -1; by reports, add its work."""
    if fit.kind != LEAST_WORK:
        row = row_of(w, fit, node, job)
        for r in range(fit.free.shape[1]):
            fit.free[row, r] -= sign * needed(w.room, job, r)
        if fit.work.size > 0:
            fit.work[row] = min(fit.work[row] + work_at(w, node, job), NEVER)


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
