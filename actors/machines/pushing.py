"""Pushed shuffles: who asks that the input of tasks is sent to their homes, before they are launched.

1. A task with a home waits for no other. When all messages of that instant are handled, the resource manager asks the
   homes to receive (`RECEIVE`): one message to each, for all tasks of a stage.
2. A home asks the network for the input of these tasks at once: they fetch together, as tasks do that are launched on
   one machine at one instant, though none is launched and nothing is held.
3. When all of it is there, the home tells the manager (`RECEIVED`), which may then launch them there.

Push-based shuffles as in Shen et al., "Magnet", VLDB 2020, and Condie et al., "MapReduce Online", NSDI 2010. These send
what each task of a parent has as it ends; here all is sent when the parents have ended.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import read_only
from actors.kernel.compiled import compiled, inlined
from actors.kernel.inputs import sort_by_machine
from actors.kernel.queue import NONE, SPARE
from actors.machines import messages
from actors.machines.dag_world import DagWorld


class Pushes(NamedTuple):
    """Of K managers: tasks with homes, P in all, that wait for no other, of which the homes have not been asked."""

    first: np.ndarray  # [K + 1] where those of each begin; read-only
    task: np.ndarray  # [P]
    key: np.ndarray  # [P] its stage and home, as one number
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
    home = w.inputs.homes.of_task[task]
    me = w.manager[home]
    if p.num[me] == 0:
        messages.send_push(w, w.queue.now.time[0], w.nodes.size + me)
    place = p.first[me] + p.num[me]
    p.task[place], p.key[place] = task, stage * w.nodes.size + home
    p.num[me] += 1


@compiled
def on_push(w: DagWorld, p: Pushes, me: int, t: int) -> None:
    """Step 1: ask homes to receive, as many as the event may send messages to; it goes on with another one."""
    place, end, room = p.first[me] + p.sent[me], p.first[me] + p.num[me], w.queue.room - SPARE
    sort_by_machine(p.key, p.task, place, end)
    while place < end and room > 0:
        task, last, key = p.task[place], p.task[place], p.key[place]
        place += 1
        while place < end and p.key[place] == key:
            w.tasks.next[last] = p.task[place]
            last = p.task[place]
            place += 1
        w.tasks.next[last] = NONE
        home = w.inputs.homes.of_task[task]
        messages.send_receive(w, t, w.nodes.size + me, home, task, key // w.nodes.size)
        room -= 1
    p.sent[me] = place - p.first[me]
    if place < end:
        messages.send_push(w, t, w.nodes.size + me)
    else:
        p.sent[me] = p.num[me] = 0
