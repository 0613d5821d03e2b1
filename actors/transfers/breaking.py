"""Fetches that lack what was on a machine that has failed: the network's own books of them.

1. A machine has failed (`BROKEN`): its flows end at once, and fetches to it are forgotten, as their tasks are lost.
2. A fetch from it is *broken*, as is one that begins later and needs an output that was there. Its other flows go on.
3. When the failure is detected the fetch is given up: its flows end, and its machine gets a message (`FETCH_FAILED`).
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.inputs import HasInputs, has_output, sources_of, when_known_lost
from actors.kernel.queue import NEVER, NONE


class Breaks(NamedTuple):
    """Of T tasks; all are empty where no machine fails."""

    leaders: np.ndarray  # [T] the first `num_leaders`: those of broken fetches
    num_leaders: np.ndarray  # [1]
    due: np.ndarray  # [T] of a leader: when its fetch is given up, ns; NONE: it is not broken


def make_breaks(w: HasInputs) -> Breaks:
    """Return the books before any machine has failed."""
    tasks = w.inputs.outputs.ended.size
    return Breaks(np.zeros(tasks, np.int64), np.zeros(1, np.int64), np.full(tasks, NONE))


@inlined
def is_broken(b: Breaks, leader: int) -> bool:
    """Return whether a fetch lacks what is lost."""
    return b.due.size > 0 and b.due[leader] != NONE


@compiled
def break_fetch(w: HasInputs, b: Breaks, leader: int, when: int) -> None:
    """Step 2: note that a fetch is to be given up at a time, or before."""
    if b.due[leader] == NONE:
        b.leaders[b.num_leaders[0]] = leader
        b.num_leaders[0] += 1
        b.due[leader] = when
        w.inputs.waiting[leader] += 1  # it does not end with its last flow
    b.due[leader] = min(b.due[leader], when)


@compiled
def break_if_lost(w: HasInputs, b: Breaks, leader: int, t: int) -> None:
    """Break a fetch that begins if some of its input is lost, until that is known."""
    when = when_lost(w, leader)
    if when < NEVER:
        break_fetch(w, b, leader, max(when, t))


@compiled
def when_lost(w: HasInputs, leader: int) -> int:
    """Return when it is known that some input of a fetch is lost, ns; NEVER: all is there."""
    inputs, stage, when = w.inputs, w.inputs.stage[leader], NEVER
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        parent = inputs.parent[e]
        if parent == NONE or inputs.size[e] == 0.0:
            continue
        if inputs.one_to_one[e] == 0:
            sources_of(w, parent)
            when = min(when, inputs.outputs.lost[parent])
            continue
        task, offset = leader, w.stages.first_task[parent] - w.stages.first_task[stage]
        while task != NONE:
            if not has_output(inputs, task + offset):
                when = min(when, when_known_lost(w, task + offset))
            task = inputs.next[task]
    return when


@compiled
def take_given_up(b: Breaks, t: int) -> int:
    """Take the leader of a fetch that is to be given up now out of those of broken ones; NONE: there is none."""
    for i in range(b.num_leaders[0]):
        leader = b.leaders[i]
        if b.due[leader] <= t:
            b.num_leaders[0] -= 1
            b.leaders[i] = b.leaders[b.num_leaders[0]]
            return leader
    return NONE


@compiled
def next_break(b: Breaks) -> int:
    """Return when the next broken fetch is to be given up, ns."""
    when = NEVER
    for i in range(b.num_leaders[0]):
        when = min(when, b.due[b.leaders[i]])
    return when
