"""What central schedulers of gangs know of room: what nodes have free at some time, when what runs ends, idle slots.

An outlook is what nodes have free, by resource, and whether one job fits there: all of its tasks, or some.

A node holds as many tasks of a job as fit into each resource. A gang on any nodes fits when the sum over the nodes is
as many tasks as it has; one on `n` nodes when so many have room for an even share, of which `tasks % n` for one more.
Nodes are filled in the order of their ids. A task counts as the most that one of its job needs.

An outlook is of the present, or a copy that is moved to a later time by what ends and starts until then. It keeps, for
the job that is looked at, how many tasks each node holds, so that a change of one node costs that of one node.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.records import Records, records

# The job that is looked at: its demand, a row of `Outlook.demand`; how many tasks, of which `least` are to fit, on how
# many nodes, 0 for any; of these nodes all have `share` tasks, and `larger` one more. What was found: tasks that fit,
# and nodes with such room.
LOOK = np.dtype(
    [
        (name, "i8")
        for name in (
            "demand",
            "tasks",
            "least",
            "nodes",
            "share",
            "larger",
            "found",
            "with_share",
            "with_more",
        )
    ]
)
# Tasks of one job that were placed on one node together, or are to be.
PLACED_ROW = np.dtype([("node", "i8"), ("tasks", "i8")])


class Outlook(NamedTuple):
    """What N nodes have free of R resources, in the unit of demands, and what of a job fits there."""

    demand: np.ndarray  # [D, R] read-only
    free: np.ndarray  # [N, R]
    total: np.ndarray  # [R] free on all nodes, also on those that are down; kept for the present alone
    up: np.ndarray  # [N] 1, or 0: the node is known to be down, and nothing fits there
    there: np.ndarray  # [N] tasks of the job that fit on each node, at most all of them
    look: Records  # [1] LOOK


def make_outlook(demand: np.ndarray, free: np.ndarray, up: np.ndarray) -> Outlook:
    """Return an outlook on nodes with so much free, [N, R]; demands are [D, R]; `up` is shared by all outlooks."""
    return Outlook(demand, free, free.sum(axis=0), up, np.zeros(len(free), np.int64), records(LOOK, 1))


@inlined
def room_at(outlook: Outlook, node: int) -> int:
    """Return how many tasks of the job fit on a node, at most all of them."""
    most, demand = outlook.look.tasks[0] * outlook.up[node], outlook.look.demand[0]
    for r in range(outlook.demand.shape[1]):
        needed = outlook.demand[demand, r]
        if needed > 0:
            most = min(most, outlook.free[node, r] // needed)
    return most


@inlined
def count_in(outlook: Outlook, there: int, sign: int) -> None:
    """Count a node on which so many tasks fit, or take it out of the counts."""
    look = outlook.look
    look.found[0] += sign * there
    look.with_share[0] += sign * np.int64(there >= look.share[0])
    look.with_more[0] += sign * np.int64(there > look.share[0])


@compiled
def look_at(outlook: Outlook, demand: int, tasks: int, nodes: int) -> None:
    """Find how many tasks of a job fit on each node: of `tasks` tasks of a demand, on `nodes` nodes or, if 0, any."""
    look = outlook.look
    look.demand[0], look.tasks[0], look.least[0], look.nodes[0] = demand, tasks, tasks, nodes
    look.share[0], look.larger[0] = tasks // max(nodes, 1), tasks % max(nodes, 1)
    look.found[0], look.with_share[0], look.with_more[0] = 0, 0, 0
    for node in range(outlook.there.size):
        outlook.there[node] = room_at(outlook, node)
        count_in(outlook, outlook.there[node], np.int64(1))


@compiled
def copy_free(outlook: Outlook, free: np.ndarray) -> None:
    """Let as much be free as in another outlook, [N, R]."""
    for node in range(outlook.there.size):
        for r in range(outlook.demand.shape[1]):
            outlook.free[node, r] = free[node, r]


@compiled
def keep_less(outlook: Outlook, free: np.ndarray) -> None:
    """Let no more be free than in another outlook, [N, R]."""
    for node in range(outlook.there.size):
        for r in range(outlook.demand.shape[1]):
            outlook.free[node, r] = min(outlook.free[node, r], free[node, r])


@inlined
def all_fit(outlook: Outlook) -> bool:
    """Return whether as many tasks of the job as must fit at once, on as many nodes as it states."""
    look = outlook.look
    if look.nodes[0] == 0:
        return look.found[0] >= look.least[0]
    return look.with_share[0] >= look.nodes[0] and look.with_more[0] >= look.larger[0]


@inlined
def take_amount(outlook: Outlook, node: int, demand: int, count: int) -> None:
    """Take so many times a demand of what a node has free; give it back if below 0."""
    for r in range(outlook.demand.shape[1]):
        amount = count * outlook.demand[demand, r]
        outlook.free[node, r] -= amount
        outlook.total[r] -= amount


@inlined
def may_fit(outlook: Outlook, demand: int, tasks: int) -> bool:
    """Return whether all nodes together have enough free for so many tasks; if not, they fit nowhere."""
    found = True
    for r in range(outlook.demand.shape[1]):
        needed = outlook.demand[demand, r]
        if needed > 0:
            found &= outlook.total[r] // needed >= tasks
    return found


@compiled
def take_rows(
    outlook: Outlook, rows: Records, first: int, tasks: int, demand: int, sign: int, keeps_least: bool
) -> None:
    """Take (sign 1) or give back (-1) what so many tasks hold, which lie as the rows from `first` on say.

    `keeps_least`: of what fits on a node, the least so far is kept.
    """
    i, left = first, tasks
    while left > 0:
        here, node = rows.tasks[i], rows.node[i]
        if here > 0:
            take_amount(outlook, node, demand, sign * here)
            before, there = outlook.there[node], room_at(outlook, node)
            if keeps_least:
                there = min(there, before)
            if there != before:
                count_in(outlook, before, np.int64(-1))
                count_in(outlook, there, np.int64(1))
                outlook.there[node] = there
        left -= here
        i += 1


@compiled
def choose_nodes(outlook: Outlook, rows: Records, first: int, count: int) -> None:
    """Write into the rows from `first` on where `count` tasks of the job go, which fit: nodes in order of id.

    There are `count` rows; those that are not needed have no tasks.
    """
    look, i, left = outlook.look, first, count
    nodes, larger = look.nodes[0], look.larger[0]
    for node in range(outlook.there.size):
        if left == 0:
            break
        here = min(outlook.there[node], left)
        if nodes > 0:
            here = np.int64(0)
            if larger > 0 and outlook.there[node] > look.share[0]:
                here = look.share[0] + 1
                larger -= 1
                nodes -= 1
            elif nodes > larger and outlook.there[node] >= look.share[0]:
                here = look.share[0]
                nodes -= 1
        if here > 0:
            rows.node[i], rows.tasks[i] = node, here
            i += 1
            left -= here
    while i < first + count:
        rows.tasks[i] = 0
        i += 1


@inlined
def row_of(rows: Records, first: int, tasks: int, node: int) -> int:
    """Return which of the rows from `first` on, which have so many tasks, is of a node; NONE if none is."""
    i, left = first, tasks
    while left > 0:
        if rows.tasks[i] > 0 and rows.node[i] == node:
            return np.int64(i)
        left -= rows.tasks[i]
        i += 1
    return NONE


# When running gangs are expected to end: rows in the order of their ends, in a ring.
#
# A row stands for tasks of one job that started together. Most jobs begin with late ends and leave with early ones, so
# a row moves only those on the shorter side of its place.

# Tasks that started together: when they are expected to end, ns; their job; how many still run; where the rows begin
# that say on which nodes, if reservations are of nodes (`PLACED_ROW`); when they were placed, ns; and
# scratch space: as which of those that are to make room it was chosen.
END = np.dtype([(name, "i8") for name in ("end", "job", "tasks", "first", "start", "choice")])


class Ends(NamedTuple):
    """The expected ends of what runs."""

    rows: Records  # [power of two] END, a ring
    span: np.ndarray  # [2] the first row, and the number of rows


def make_ends(most: int) -> Ends:
    """Return the ends of nothing, with room for `most` rows."""
    size = 1
    while size < most + 1:
        size *= 2
    return Ends(records(END, size), np.zeros(2, np.int64))


@inlined
def row_at(ends: Ends, i: int) -> int:
    """Return where the row is that ends as the i-th."""
    return (ends.span[0] + i) & (ends.rows.size - 1)


@inlined
def copy_row(ends: Ends, i: int, j: int) -> None:
    """Copy the i-th row over the j-th."""
    rows, source, target = ends.rows, row_at(ends, i), row_at(ends, j)
    rows.end[target], rows.job[target] = rows.end[source], rows.job[source]
    rows.tasks[target], rows.first[target] = rows.tasks[source], rows.first[source]
    rows.start[target], rows.choice[target] = rows.start[source], rows.choice[source]


@compiled
def place_of(ends: Ends, end: int, job: int) -> int:
    """Return how many rows come before this one, by end and then by job."""
    low, high = np.int64(0), ends.span[1]
    while low < high:
        middle = (low + high) // 2
        row = row_at(ends, middle)
        if ends.rows.end[row] < end or (ends.rows.end[row] == end and ends.rows.job[row] < job):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def add_end(ends: Ends, end: int, job: int, tasks: int, first: int, start: int) -> None:
    """Note that so many tasks of a job start, and are expected to end at `end`; `first`: of their rows."""
    at = place_of(ends, end, job)
    row = row_at(ends, at)
    if at < ends.span[1] and ends.rows.end[row] == end and ends.rows.job[row] == job:
        ends.rows.tasks[row] += tasks
    else:
        insert_end(ends, at, end, job, tasks, first, start)


@compiled
def insert_end(ends: Ends, at: int, end: int, job: int, tasks: int, first: int, start: int) -> None:
    """Insert a row at a place; arguments as of `add_end`."""
    number = ends.span[1]
    ends.span[1] = number + 1
    if at < number // 2:
        ends.span[0] = (ends.span[0] - 1) & (ends.rows.size - 1)
        for i in range(at):
            copy_row(ends, i + 1, i)
    else:
        for i in range(number, at, -1):
            copy_row(ends, i - 1, i)
    row = row_at(ends, at)
    ends.rows.end[row], ends.rows.job[row] = end, job
    ends.rows.tasks[row], ends.rows.first[row] = tasks, first
    ends.rows.start[row], ends.rows.choice[row] = start, 0


@compiled
def end_sooner(ends: Ends, at: int, end: int) -> None:
    """Let the row at a place be expected to end at `end`."""
    row = row_at(ends, at)
    job, tasks, first = ends.rows.job[row], ends.rows.tasks[row], ends.rows.first[row]
    start, choice = ends.rows.start[row], ends.rows.choice[row]
    drop_end(ends, at)
    at = place_of(ends, end, job)
    insert_end(ends, at, end, job, tasks, first, start)
    ends.rows.choice[row_at(ends, at)] = choice


@compiled
def first_of(ends: Ends, job: int) -> int:
    """Return the place of the job's row that is expected to end first."""
    for i in range(ends.span[1]):
        if ends.rows.job[row_at(ends, i)] == job:
            return np.int64(i)
    return np.int64(-1)


@compiled
def row_of_task(ends: Ends, end: int, job: int, task: int) -> int:
    """Return the place of the row of a task that has one of its own, and is expected to end at `end`."""
    at = place_of(ends, end, job)
    while ends.rows.first[row_at(ends, at)] != task:
        at += 1
    return at


@compiled
def first_on(ends: Ends, placed: Records, job: int, node: int) -> int:
    """Return the place of the job's row that is expected to end first of those with a task on a node."""
    for i in range(ends.span[1]):
        row = row_at(ends, i)
        if (
            ends.rows.job[row] == job
            and row_of(placed, ends.rows.first[row], ends.rows.tasks[row], node) >= 0
        ):
            return np.int64(i)
    return np.int64(-1)


@compiled
def end_one(ends: Ends, at: int) -> int:
    """Note that one task of the row at this place has ended; return when it was expected to."""
    row = row_at(ends, at)
    expected: int = ends.rows.end[row]
    ends.rows.tasks[row] -= 1
    if ends.rows.tasks[row] == 0:
        drop_end(ends, at)
    return expected


@compiled
def drop_end(ends: Ends, at: int) -> None:
    """Remove the row at a place."""
    number = ends.span[1]
    if at < number // 2:
        for i in range(at, 0, -1):
            copy_row(ends, i - 1, i)
        ends.span[0] = (ends.span[0] + 1) & (ends.rows.size - 1)
    else:
        for i in range(at, number - 1):
            copy_row(ends, i + 1, i)
    ends.span[1] = number - 1


# The room that a central scheduler of gangs knows of: idle slots of nodes, by what it has placed and what has ended.
#
# A node that is up and has an idle slot is *open*. Open nodes stand in a list from which any one leaves in constant
# time, so that to place a gang costs the tasks that it has and the nodes that are looked at, however many nodes there
# are.


class Room(NamedTuple):
    """Idle slots, as the scheduler knows them."""

    free: np.ndarray  # [N] slots that no task holds
    open: np.ndarray  # [N] the open nodes, the first `number[0]`
    place: np.ndarray  # [N] of an open node, its place among them
    number: np.ndarray  # [1] open nodes
    total: np.ndarray  # [1] idle slots of all open nodes
    up: np.ndarray  # [N] 1, or 0: the node is known to be down


def make_room(slots: np.ndarray) -> Room:
    """Return the room of nodes with these slots, [N], all idle; those of low id are used first."""
    order = np.arange(slots.size - 1, -1, -1, dtype=np.int64)
    free = slots.astype(np.int64)
    up = np.ones(slots.size, np.int64)
    return Room(free, order, order.copy(), np.array([slots.size]), np.array([free.sum()]), up)


@inlined
def room_for(room: Room, node: int) -> int:
    """Return how many tasks could start on a node at once."""
    return room.free[node]


@inlined
def fits(room: Room, tasks: int, nodes: int) -> bool:
    """Return whether so many tasks can start at once: on any nodes if `nodes` is 0, else evenly on exactly so many."""
    return tasks <= room.total[0] and (nodes == 0 or fits_nodes(room, tasks, nodes))


@compiled
def fits_nodes(room: Room, tasks: int, nodes: int) -> bool:
    """Return whether so many open nodes have room for an even share of the tasks each.

    Of `nodes` nodes, `tasks % nodes` have one task more than the others.
    """
    share, larger = tasks // nodes, tasks % nodes
    with_share, with_more = np.int64(0), np.int64(0)
    for i in range(room.number[0]):
        there = room_for(room, room.open[i])
        with_share += np.int64(there >= share)
        with_more += np.int64(there > share)
        if with_share >= nodes and with_more >= larger:
            return True
    return False


@inlined
def take_slots(room: Room, node: int, count: int) -> None:
    """Take idle slots of an open node."""
    room.free[node] -= count
    room.total[0] -= count
    if room.free[node] == 0:
        close_node(room, node)


@inlined
def free_slot(room: Room, node: int) -> None:
    """Return a slot of a node, which is idle from now on if the node is up."""
    room.free[node] += 1
    if room.up[node] == 1:
        room.total[0] += 1
        if room.free[node] == 1:
            open_node(room, node)


@inlined
def open_node(room: Room, node: int) -> None:
    """Add a node to the open ones."""
    room.open[room.number[0]], room.place[node] = node, room.number[0]
    room.number[0] += 1


@inlined
def close_node(room: Room, node: int) -> None:
    """Remove a node from the open ones."""
    last = room.number[0] - 1
    other, place = room.open[last], room.place[node]
    room.open[place], room.place[other] = other, place
    room.number[0] = last


@compiled
def note_state(room: Room, node: int, up: int) -> None:
    """Note that a node is up (1) or down (0): what tasks hold of it is free when they are known to have ended."""
    if up == room.up[node]:
        return
    room.up[node] = up
    room.total[0] += (2 * up - 1) * room.free[node]
    if room.free[node] > 0 and up == 1:
        open_node(room, node)
    elif room.free[node] > 0:
        close_node(room, node)
