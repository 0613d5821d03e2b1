"""What the schedulers of Yacc-D know of the nodes: their last reports, and what each scheduler has sent there since.

All schedulers receive the same reports. A report says how much estimated work a node has, until when its task is
estimated to run, and what there is room for in its queue. What a scheduler sends to a node counts for itself alone, and
until the node's next report; what is on its way at that time is in neither. With priorities a node also reports which
priority would make room for a higher one.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import eligible_before, eligible_count, eligible_node, is_eligible
from actors.kernel.random import PLACEMENT, below, random_bits
from actors.kernel.records import Records, records
from actors.kernel.room import work_at
from actors.kernel.sums import carry, spread, unpack
from actors.kernel.world import NEVER, NONE, World
from actors.nodes.load_messages import read_lowest_report
from actors.nodes.reporting import is_current, is_newest
from actors.schedulers.jobs.node_fit import LEAST_WORK, Fit, among_fitting, row_of, take_room
from actors.schedulers.jobs.probing import ONE
from actors.schedulers.jobs.spreading import may_run

LOOKS = 64  # nodes considered for one task that is sent again

REPORTED = np.dtype(
    [
        ("rest", "i8"),  # estimated work, less that of the task that started last, ns,
        ("wholes", "i8"),  # and this many WHOLE (`actors.kernel.sums`)
        ("busy_until", "i8"),  # when that task is estimated to end, ns
        ("room", "i8"),  # in units of the queues' bound; none on a node that is down
        ("report", "i8"),  # reports so far
        ("place", "i8"),  # in the list of nodes with room; NONE: it has none
        ("lowest", "i8"),  # priority that would make room; NEVER: none
    ]
)
# What a scheduler takes a node to have: the work of that report and what was sent there since; the room of the latter;
# whether it has sent a task that is to take the place of one of lower priority.
SENT = np.dtype([("report", "i8"), ("work", "i8"), ("wholes", "i8"), ("room", "i8"), ("replaces", "i8")])
# Nodes with room; work of all nodes.
TOTALS = np.dtype([("open", "i8"), ("rest", "i8"), ("rest_wholes", "i8")])


class View(NamedTuple):
    """Nodes as the schedulers see them."""

    nodes: Records  # [N] REPORTED
    newest: np.ndarray  # [2 N] numbers of the newest report of load, and of the newest of priorities
    open: np.ndarray  # [N] the nodes with room: the first `totals.open`
    totals: Records  # [1] TOTALS
    sent: Records  # [schedulers · N] SENT
    slots: np.ndarray  # [N]
    all_slots: int
    empty_room: np.ndarray  # [N] room of a node without work
    by_work: bool  # room is estimated work; else it is tasks
    fit: Fit


def make_view(slots: np.ndarray, empty_room: np.ndarray, by_work: bool, schedulers: int, fit: Fit) -> View:
    """The view of idle nodes."""
    nodes = records(REPORTED, slots.size)
    nodes.room[:], nodes.lowest[:] = empty_room, NEVER
    nodes.place[:] = np.where(empty_room > 0, np.cumsum(empty_room > 0) - 1, NONE)
    with_room = np.flatnonzero(empty_room > 0)
    totals, listed = records(TOTALS, 1), np.zeros(slots.size, np.int64)
    totals.open[0], listed[: with_room.size] = with_room.size, with_room
    sent = records(SENT, schedulers * slots.size)
    newest = np.full(2 * slots.size, NONE)
    return View(nodes, newest, listed, totals, sent, slots, int(slots.sum()), empty_room, by_work, fit)


@compiled
def note_node(view: View, node: int, rest: int, busy_until: int, room: int) -> None:
    """Note a report of a node, its work as messages state it, or a change of its state, for all schedulers."""
    rows, totals = view.nodes, view.totals
    before, wholes = rows.rest[node], totals.rest_wholes[0] - rows.wholes[node]
    rows.rest[node], rows.wholes[node] = unpack(rest)
    more, wholes = rows.rest[node] - before, wholes + rows.wholes[node]
    totals.rest[0], totals.rest_wholes[0] = carry(totals.rest[0] + more, wholes)
    rows.busy_until[node], rows.room[node] = busy_until, room
    rows.report[node] += 1
    place = rows.place[node]
    if room > 0 and place == NONE:
        rows.place[node] = totals.open[0]
        view.open[totals.open[0]] = node
        totals.open[0] += 1
    elif room <= 0 and place != NONE:
        totals.open[0] -= 1
        last = view.open[totals.open[0]]
        view.open[place], rows.place[last], rows.place[node] = last, place, NONE


@inlined
def mean_rest(view: View) -> int:
    """The estimated work for a slot over all nodes, ns."""
    return spread(view.totals.rest[0], view.totals.rest_wholes[0], view.all_slots)


@inlined
def sent_to(w: World, view: View, me: int, node: int) -> int:
    """Return the row of what a scheduler takes a node to have, by its last report and what it has sent there since."""
    row = (me - w.nodes.size) * w.nodes.size + node
    if view.sent.report[row] != view.nodes.report[node]:
        view.sent.report[row] = view.nodes.report[node]
        view.sent.work[row], view.sent.wholes[row] = view.nodes.rest[node], view.nodes.wholes[node]
        view.sent.room[row], view.sent.replaces[row] = 0, 0
    return row


@inlined
def note_sent(w: World, view: View, me: int, node: int, job: int) -> None:
    """Note that a scheduler sends a task to a node."""
    row, estimate = sent_to(w, view, me, node), work_at(w, node, job)
    view.sent.work[row], view.sent.wholes[row] = carry(view.sent.work[row] + estimate, view.sent.wholes[row])
    view.sent.replaces[row] |= np.int64(view.nodes.room[node] <= view.sent.room[row])
    view.sent.room[row] += max(estimate, 1) if view.by_work else 1
    take_room(w, view.fit, node, job, ONE)


@inlined
def note_returned(w: World, view: View, me: int, node: int, rest: int) -> None:
    """Note that a node has sent a task back, with its work: it gets no task until its next report."""
    row = sent_to(w, view, me, node)
    view.sent.work[row], view.sent.wholes[row] = unpack(rest)
    view.sent.room[row] = max(view.nodes.room[node], 0)


@inlined
def wait_at(w: World, view: View, t: int, me: int, node: int) -> int:
    """Return the estimated time until a slot of the node is free for one more task, ns; NONE if it has no room."""
    row = sent_to(w, view, me, node)
    if view.nodes.room[node] <= view.sent.room[row]:
        return NONE
    running = max(view.nodes.busy_until[node] - t, 0)
    return spread(max(view.sent.work[row] + running, 0), view.sent.wholes[row], view.slots[node])


@inlined
def place_of(w: World, view: View, t: int, me: int, job: int, node: int) -> int:
    """Return the place of a node among others, the least first: its wait, or that of a fit; NONE if it has no room."""
    wait = wait_at(w, view, t, me, node)
    if wait == NONE or view.fit.kind == LEAST_WORK:
        return wait
    return among_fitting(w, view.fit, view.slots[node], row_of(w, view.fit, node, job), node, job, wait)


@compiled
def find_node(w: World, view: View, t: int, me: int, job: int, first: int) -> int:
    """Find the node that waits least, or fits, of some that have room for a task of the job; NONE if there is none.

    At most LOOKS nodes in a row are considered, from a random one on: of the job's eligible nodes, or of those with
    room, whichever are fewer.
    """
    begin = eligible_before(w, job, first)
    count = eligible_count(w, job) - begin
    by_room = view.totals.open[0] < count
    if by_room:
        count = view.totals.open[0]
    if count == 0:
        return NONE
    w.jobs.draws[job] += 1
    place = below(random_bits(w.seed, PLACEMENT, job, w.jobs.draws[job]), count)
    chosen: int = NONE
    least: int = NONE
    for _ in range(min(count, LOOKS)):
        node = view.open[place] if by_room else eligible_node(w, job, begin + place)
        place = place + 1 if place + 1 < count else 0
        if by_room and (node < first or not is_eligible(w, job, node)):
            continue
        wait = place_of(w, view, t, me, job, node)
        if wait == NONE or not may_run(w, job, node):
            continue
        if chosen == NONE or wait < least:
            chosen, least = node, wait
    return chosen


@inlined
def note_lowest(w: World, view: View) -> None:
    """Note which priority would make room at a node, as it reports."""
    node, generation, lowest = read_lowest_report(w)
    if is_current(w, node, generation) and is_newest(w, view.newest, w.nodes.size + node):
        view.nodes.lowest[node] = lowest


@inlined
def find_place(w: World, view: View, t: int, me: int, job: int, first: int) -> int:
    """Find a node with room for a task of the job, or one where it may replace another; NONE if there is none."""
    node = find_node(w, view, t, me, job, first)
    if node == NONE and w.priority.size > 0:
        node = find_lower(w, view, me, job, first)
    return node


@compiled
def find_lower(w: World, view: View, me: int, job: int, first: int) -> int:
    """Find the node with the lowest priority below that of the job, of LOOKS eligible ones; NONE if there is none.

    A scheduler sends one such task to a node, until that reports again.
    """
    begin = eligible_before(w, job, first)
    count = eligible_count(w, job) - begin
    if count == 0:
        return NONE
    w.jobs.draws[job] += 1
    place = below(random_bits(w.seed, PLACEMENT, job, w.jobs.draws[job]), count)
    chosen: int = NONE
    least: int = w.priority[job]
    for _ in range(min(count, LOOKS)):
        node = eligible_node(w, job, begin + place)
        place = place + 1 if place + 1 < count else 0
        lowest = view.nodes.lowest[node]
        if lowest < least and view.sent.replaces[sent_to(w, view, me, node)] == 0 and may_run(w, job, node):
            chosen, least = node, lowest
    return chosen
