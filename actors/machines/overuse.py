"""Over-use of machines: tasks that together need more of a resource than their machine has slow each other down.

A resource manager places by what it takes tasks to need, which may be an estimate, or leave out resources that it does
not see (`actors.machines.demands`). A node manager runs them by what they do need. Where the tasks that run need n of a
resource of which the machine has c < n, each of them that needs it progresses at c / n of its speed, and a task at the
least of these over its resources: each resource is shared in proportion to demands. A task has as much work as its
duration, in ns at full speed, so that no work is lost: `slow` of it takes `slow` times as long.

When a task starts or ends, those of its machine whose speed changes get another end, which is rounded to a whole ns.
The machine waits for the first end alone: the message about another one, which was to be the first, is stale.
"""

from typing import NamedTuple, Protocol

import numpy as np

from actors.conditions import read_only
from actors.failures import HasFaults
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.kernel.records import Records, records
from actors.machines.messages import STAGE_TASK_END, read_task_end, send_task_end
from actors.resources import amounts
from actors.setting import Setting
from clusters.capacity import capacities, demands

LONGEST = 2.0**61
"""The most that a task is taken to need from now on, ns: 73 years."""
# A task that runs; `left` is work at `since`, in ns at full speed, of which a ns is done in `slow` ns.
RUNNING_TASK = np.dtype(
    [(name, "i8") for name in ("stage", "start", "next", "previous", "since", "end")]
    + [(name, "f8") for name in ("left", "slow")]
)


class Overuse(NamedTuple):
    """Tasks that run, where they may slow each other down; all is empty where they do not.

    N machines, S stages, T tasks, R resources: all of the workload, in billionths.
    """

    need: np.ndarray  # [S, R] of a task
    capacity: np.ndarray  # [N, R]
    needed: np.ndarray  # [N, R] by all tasks that run
    first: np.ndarray  # [N] the first task that runs, in the order in which they began; NONE: none
    last: np.ndarray  # [N]
    next_task: np.ndarray  # [N] the one that ends first
    next_end: np.ndarray  # [N] and when, ns
    tasks: Records  # [T] RUNNING_TASK


class HasOveruse(HasFaults, Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def overuse(self) -> Overuse:
        """Tasks that run, where they may slow each other down."""


def make_overuse(setting: Setting) -> Overuse:
    """Return the state at time 0, where nothing runs."""
    workload, active = setting.workload, setting.slows
    need, capacity = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64)
    if active:
        need, capacity = amounts(demands(workload)), amounts(capacities(setting.cluster, workload.resources))
    nodes = capacity.shape[0]
    return Overuse(
        need=read_only(need),
        capacity=read_only(capacity),
        needed=np.zeros(capacity.shape, np.int64),
        first=np.full(nodes, NONE),
        last=np.full(nodes, NONE),
        next_task=np.full(nodes, NONE),
        next_end=np.full(nodes, NEVER),
        tasks=records(RUNNING_TASK, setting.num_tasks if active else 0),
    )


@inlined
def slows(w: HasOveruse) -> bool:
    """Whether tasks slow each other down."""
    return w.overuse.tasks.size > 0


@inlined
def is_stale(w: HasOveruse, t: int, node: int) -> bool:
    """Whether a `STAGE_TASK_END` is not of the task that ends first on its machine, at this time."""
    task, _, start = read_task_end(w)
    overuse = w.overuse
    is_next: bool = (
        overuse.next_task[node] == task and overuse.next_end[node] == t and overuse.tasks.start[task] == start
    )
    return not is_next


@compiled
def begin_run(w: HasOveruse, t: int, node: int, task: int, stage: int, length: int) -> None:
    """Let a task run on a machine that takes `length` ns at full speed."""
    overuse, rows, before = w.overuse, w.overuse.tasks, w.overuse.last[node]
    rows.stage[task], rows.start[task], rows.since[task], rows.end[task] = stage, t, t, t + length
    rows.left[task], rows.slow[task] = float(length), 1.0
    rows.next[task], rows.previous[task], overuse.last[node] = NONE, before, task
    if before == NONE:
        overuse.first[node] = task
    else:
        rows.next[before] = task
    for r in range(overuse.need.shape[1]):
        overuse.needed[node, r] += overuse.need[stage, r]
    set_speeds(w, t, node)


@compiled
def end_run(w: HasOveruse, t: int, node: int, task: int) -> None:
    """Note that a task does not run any longer."""
    overuse, rows = w.overuse, w.overuse.tasks
    before, after = rows.previous[task], rows.next[task]
    if before == NONE:
        overuse.first[node] = after
    else:
        rows.next[before] = after
    if after == NONE:
        overuse.last[node] = before
    else:
        rows.previous[after] = before
    for r in range(overuse.need.shape[1]):
        overuse.needed[node, r] -= overuse.need[rows.stage[task], r]
    set_speeds(w, t, node)


@inlined
def lose_runs(w: HasOveruse, node: int) -> None:
    """Note that no task of a machine runs any longer, as it has failed."""
    overuse = w.overuse
    overuse.first[node], overuse.last[node], overuse.next_task[node], overuse.next_end[node] = (
        NONE,
        NONE,
        NONE,
        NEVER,
    )
    for r in range(overuse.need.shape[1]):
        overuse.needed[node, r] = 0


@compiled
def set_speeds(w: HasOveruse, t: int, node: int) -> None:
    """Find how fast each task of a machine runs from now on, when it ends, and which one ends first."""
    overuse, rows = w.overuse, w.overuse.tasks
    first_end: int = NEVER
    found: int = NONE
    task = overuse.first[node]
    while task != NONE:
        slow = slowness(overuse, node, rows.stage[task])
        if slow != rows.slow[task]:
            left = max(rows.left[task] - (t - rows.since[task]) / rows.slow[task], 0.0)
            rows.left[task], rows.slow[task], rows.since[task] = left, slow, t
            rows.end[task] = t + np.int64(np.rint(min(left * slow, LONGEST)))
        if rows.end[task] < first_end:
            first_end, found = rows.end[task], task
        task = rows.next[task]
    is_new = found != overuse.next_task[node] or first_end != overuse.next_end[node]
    overuse.next_task[node], overuse.next_end[node] = found, first_end
    if found != NONE and is_new:
        if w.faults.active == 1:
            w.faults.tasks.end[found] = first_end
        send_task_end(w, first_end, STAGE_TASK_END, node, found, rows.stage[found], rows.start[found])


@inlined
def slowness(overuse: Overuse, node: int, stage: int) -> float:
    """Return how many ns a ns of a task's work takes on a machine."""
    most = 1.0
    for r in range(overuse.need.shape[1]):
        if overuse.need[stage, r] > 0 and overuse.needed[node, r] > overuse.capacity[node, r]:
            most = max(most, overuse.needed[node, r] / overuse.capacity[node, r])
    return most
