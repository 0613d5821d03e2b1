"""What the resource manager knows of tasks that it may evict: where they run, and what machines have without them.

The tasks that may be evicted stand in a list of their machine, in the order in which they go: the lowest priority
first, and among equals the one that was launched last (or first, if the order says so). `reach` is what a machine has
free with all of them from some priority down, so that a machine without enough is passed at once. Priorities form at
most `GROUPS` groups for it.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import counted_priorities, read_only
from actors.failures import evictions_of, history_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.records import Records, records
from actors.machines.dag_world import DagWorld
from actors.machines.messages import send_launch
from actors.nodes.preemption import preempts
from actors.setting import Setting

BLOCK = np.int64(64)
GROUPS = 32
# A task that the manager has placed on a machine.
PLACED = np.dtype(
    [
        ("node", "i8"),
        ("since", "i8"),  # when it was sent there, ns
        ("is_listed", "i8"),  # 1: it may be evicted, and stands in the list of its machine
        ("next", "i8"),
        ("previous", "i8"),
        ("for_task", "i8"),  # it has been stopped to make room for this task; NONE: it has not
        ("owed", "i8"),  # replies about stopped tasks that it waits for before it is sent
    ]
)


class Evictable(NamedTuple):
    """Tasks that may be evicted; all is empty where none is. J jobs, T tasks, N machines, L priorities, G groups."""

    level: np.ndarray  # [J] place of the job's priority among all, the highest first
    spared: np.ndarray  # [J] bool: its tasks are not evicted
    group: np.ndarray  # [L] of each priority
    tasks: Records  # [T] PLACED
    first: np.ndarray  # [N] the first task of the list of a machine
    reach: np.ndarray  # [G * N, R] what is free without the tasks of a group, and of those below it
    ceiling: np.ndarray  # [G * blocks, R] at least the most of that on a machine of a block
    making: np.ndarray  # [K, 2] a stage, and the machine on which tasks are being evicted for it; NONE
    won: np.ndarray  # [K, R] what the tasks held that have been stopped for that stage
    asked: np.ndarray  # [N] stopped tasks for which the machine has not answered
    withheld: np.ndarray  # [N, R] what these held more than those that take their places
    found: np.ndarray  # [2] scratch: the highest priority of what would be evicted, and its run time, ns
    within_queues: bool  # a task evicts tasks of its own queue alone


def make_evictable(w: DagWorld, setting: Setting, ceiling: np.ndarray, within_queues: bool) -> Evictable:
    """Return the state at time 0, where nothing runs; `ceiling` [blocks, R]: what the machines have."""
    found = counted_priorities(setting)
    active = w.preemption.most > 0
    values, level = np.unique(-found, return_inverse=True)
    groups = min(values.size, GROUPS) if active else 0
    tasks = records(PLACED, w.tasks.duration.size if active else 0)
    tasks.node[:], tasks.for_task[:] = NONE, NONE
    return Evictable(
        level=read_only(level if active else level[:0]),
        spared=read_only((found >= w.preemption.below)[: level.size if active else 0]),
        group=read_only(np.arange(values.size) * groups // max(values.size, 1)),
        tasks=tasks,
        first=np.full(w.nodes.size if active else 0, NONE),
        reach=np.tile(w.machines.capacity, (groups, 1)),
        ceiling=np.tile(ceiling, (groups, 1)),
        making=np.full((w.first_node.size - 1, 2), NONE),
        won=np.zeros((w.first_node.size - 1, ceiling.shape[1]), np.int64),
        asked=np.zeros(w.nodes.size if active else 0, np.int64),
        withheld=np.zeros_like(w.machines.capacity[: w.nodes.size if active else 0]),
        found=np.zeros(2, np.int64),
        within_queues=within_queues,
    )


@inlined
def row_of(w: DagWorld, group: int, node: int) -> int:
    """Return the row of a machine where each group has a row for each."""
    return group * w.nodes.size + node


@inlined
def block_of(w: DagWorld, group: int, node: int) -> int:
    """Return the row of a machine's block where each group has all blocks; a block is of machines of one manager."""
    blocks = (w.nodes.size - 1) // BLOCK + w.first_node.size - 1
    return group * blocks + node // BLOCK + w.manager[node]


@inlined
def groups_of(w: DagWorld, evictable: Evictable) -> int:
    """Return how many groups there are."""
    return evictable.reach.shape[0] // w.nodes.size


@inlined
def level_of(w: DagWorld, evictable: Evictable, task: int) -> int:
    """Return the place of a task's priority, the highest first."""
    return evictable.level[w.stages.job[w.stages.of_task[task]]]


@inlined
def is_to_wait(w: DagWorld, evictable: Evictable, task: int) -> bool:
    """Whether a task has to wait until others have made room for it."""
    return preempts(w) and evictable.tasks.owed[task] > 0


@compiled
def change_reach(
    w: DagWorld, evictable: Evictable, node: int, stage: int, first: int, end: int, times: int
) -> None:
    """Add a task's demand, or with -1 take it away, in the groups `first` to `end` - 1 of a machine."""
    for r in range(w.tasks.demand.shape[1]):
        shift_reach(w, evictable, node, r, first, end, times * w.tasks.demand[stage, r])


@compiled
def shift_reach(
    w: DagWorld, evictable: Evictable, node: int, r: int, first: int, end: int, amount: int
) -> None:
    """Add to what a machine has of a resource in the groups `first` to `end` - 1."""
    for group in range(first, end):
        row, block = row_of(w, group, node), block_of(w, group, node)
        evictable.reach[row, r] += amount
        evictable.ceiling[block, r] = max(evictable.ceiling[block, r], evictable.reach[row, r])


@inlined
def place_task(w: DagWorld, evictable: Evictable, node: int, task: int, stage: int) -> None:
    """Note that a task is to run on a machine; it may not be evicted before it is sent."""
    evictable.tasks.node[task] = node
    change_reach(w, evictable, node, stage, np.int64(0), groups_of(w, evictable), np.int64(-1))


@inlined
def send_task(w: DagWorld, evictable: Evictable, me: int, t: int, node: int, task: int, stage: int) -> None:
    """Send a task to its machine, on which it may be evicted from now on."""
    history: int = NONE
    if preempts(w):
        history = history_of(w, task)
        enlist(w, evictable, t, node, task, stage)
    send_launch(w, t, w.nodes.size + me, node, task, stage, history)


@compiled
def enlist(w: DagWorld, evictable: Evictable, t: int, node: int, task: int, stage: int) -> None:
    """Add a task to the list of its machine, if it may be evicted: if it is not spared, and was not too often."""
    rows, level = evictable.tasks, level_of(w, evictable, task)
    rows.since[task] = t
    is_spared = evictable.spared[w.stages.job[stage]] or evictions_of(w, task) >= w.preemption.most
    if level == 0 or is_spared:
        return
    before, here = NONE, evictable.first[node]
    # It was launched last: of its equals the first to go, or the last.
    lowest = level + 1 - w.preemption.oldest_first
    while here != NONE and level_of(w, evictable, here) >= lowest:
        before, here = here, rows.next[here]
    rows.next[task], rows.previous[task], rows.is_listed[task] = here, before, 1
    if here != NONE:
        rows.previous[here] = task
    if before == NONE:
        evictable.first[node] = task
    else:
        rows.next[before] = task
    change_reach(w, evictable, node, stage, np.int64(0), evictable.group[level] + 1, np.int64(1))


@compiled
def remove_task(w: DagWorld, evictable: Evictable, node: int, task: int, stage: int) -> None:
    """Note that a task does not hold its machine any longer."""
    rows, first = evictable.tasks, np.int64(0)
    if rows.is_listed[task] == 1:
        before, after = rows.previous[task], rows.next[task]
        if before == NONE:
            evictable.first[node] = after
        else:
            rows.next[before] = after
        if after != NONE:
            rows.previous[after] = before
        rows.is_listed[task] = 0
        first = evictable.group[level_of(w, evictable, task)] + 1
    change_reach(w, evictable, node, stage, first, groups_of(w, evictable), np.int64(1))
