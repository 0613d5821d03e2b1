"""Pushed shuffles: who asks that the input of tasks is sent to their homes, before they are launched.

1. A task with a home waits for no other. When all messages of that instant are handled, the resource manager asks the
   homes to receive (`RECEIVE`): one message for tasks of a stage whose numbers follow each other among those of a home.
2. A home asks the network for the input of these tasks at once: they fetch together, as tasks do that are launched on
   one machine at one instant, though none is launched and nothing is held.
3. When all of it is there, the home tells the manager of each task (`RECEIVED`), which may then launch it there.

Push-based shuffles as in Shen et al., "Magnet", VLDB 2020, and Condie et al., "MapReduce Online", NSDI 2010. These send
what each task of a parent has as it ends; here all is sent when the parents have ended.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import read_only
from actors.inputs import place_of, sort_by_machine
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import SPARE
from actors.machines import messages
from actors.machines.dag_world import DagWorld


class Pushes(NamedTuple):
    """Of K managers: tasks with homes, P in all, that wait for no other, of which the homes have not been asked."""

    first: np.ndarray  # [K + 1] where those of each begin; read-only
    task: np.ndarray  # [P]
    key: np.ndarray  # [P] its stage and its place in `JobInput.task`, which has tasks by home, as one number
    sent: np.ndarray  # [K] for how many of those in the list the homes have been asked
    num: np.ndarray  # [K] how many are in it; 0: no `PUSH` is pending


def make_pushes(w: DagWorld) -> Pushes:
    """Return empty lists."""
    managers = w.first_node.size - 1
    home = w.inputs.homes.of_task
    tasks = np.bincount(w.manager[home[home >= 0]], minlength=managers)
    first = np.append(0, np.cumsum(tasks))
    rows = [np.zeros(size, np.int64) for size in (int(first[-1]), int(first[-1]), managers, managers)]
    return Pushes(read_only(first), *rows)


@inlined
def note_awaiting(w: DagWorld, p: Pushes, stage: int, task: int) -> None:
    """Step 1: note a task that waits for its input alone."""
    home, tasks = w.inputs.homes.of_task[task], w.inputs.job_input
    me = w.manager[home]
    if p.num[me] == 0:
        messages.send_push(w, w.queue.now.time[0], w.nodes.size + me)
    i = p.first[me] + p.num[me]
    p.task[i], p.key[i] = task, stage * tasks.task.size + place_of(tasks, home, task)
    p.num[me] += 1


@compiled
def on_push(w: DagWorld, p: Pushes, me: int, t: int) -> None:
    """Step 1: ask homes to receive, as many as the event may send messages to; it goes on with another one."""
    i, end, most = p.first[me] + p.sent[me], p.first[me] + p.num[me], w.queue.room - SPARE
    room, homes, places = most, w.inputs.homes.of_task, w.inputs.job_input.task.size
    sort_by_machine(p.key, p.task, i, end)
    while i < end and room > 0:
        key, task, count = p.key[i], p.task[i], np.int64(0)
        # A home, too, sends one message for each task at most, and no event more than there is room for.
        while i < end and count < most and p.key[i] == key + count and homes[p.task[i]] == homes[task]:
            i += 1
            count += 1
        messages.send_receive(w, t, w.nodes.size + me, homes[task], task, key // places, count)
        room -= 1
    p.sent[me] = i - p.first[me]
    if i < end:
        messages.send_push(w, t, w.nodes.size + me)
    else:
        p.sent[me] = p.num[me] = 0
