"""What tasks read over the network: the bytes on edges, where the tasks of a stage ran, and who waits for what.

A task that is launched on a machine fetches its input before it computes, and holds its demand meanwhile (as in
MapReduce and Spark). Over an all-to-all edge each task of the parent sends to each task of the child (a shuffle): to
all the same, or by a skew; over a one-to-one edge task i sends all it has to task i (a copy). What lies on the same
machine needs no network. What a task reads of its job's input is a copy too: it comes over an edge without parent, the
last one to its stage.

Tasks of a stage that are launched on one machine at one instant fetch together: what they need of one machine over one
edge is one flow. The first of them, the *leader*, stands for all.

Over a *pipelined* edge tasks may be launched before their parents have ended (`network.registration`): they fetch what
a task of a parent sends when that has ended, and compute when all have.

Where shuffles are *pushed* (`network.shuffle`), a task of a stage that has input from others has a home: what it needs
is sent there before it is launched, and it runs there alone.

A world whose tasks may fetch is a `HasInputs`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from actors.kernel.arrays import first_from
from actors.kernel.compiled import compiled, inlined, template
from actors.kernel.cost import HasCost
from actors.kernel.counters import N_LOCAL_READS, N_REMOTE_READS
from actors.kernel.messages import read_fetched, send_fetch, send_fetched
from actors.kernel.queue import NEVER, NONE, SPARE
from actors.kernel.random import READS, below, random_bits, unit

WAITING, READY, LAUNCHED, ENDED = (np.int64(i) for i in range(4))
"""A task waits for others, may be launched, has been launched, has ended."""
MESSAGES_A_FETCH = np.int64(2)  # at most, when a task has its input


class JobInput(NamedTuple):
    """Of T tasks; `lies` is empty where parts do not lie on certain machines.

    A task is *of* a machine if that is its home, or if it has none and its part lies there.
    """

    local_share: float  # of the tasks, of which the part is on the machine where they are launched
    lies: np.ndarray  # [T, replicas] the machines that have a task's part, NONE: it reads none; read-only
    origin: np.ndarray  # [T] from where a task reads its part, NONE: not known yet
    begin: np.ndarray  # [N + 1] where the tasks of a machine begin in `task`; read-only
    task: np.ndarray  # [T * replicas] those tasks, by machine and number; read-only
    # [T * replicas] of the first task of a stage on a machine: those before this place are launched
    later: np.ndarray


class Outputs(NamedTuple):
    """What is left of tasks' outputs where machines fail, which lose them; else all are empty."""

    ended: np.ndarray  # [T] when a task ended, whose output is on its machine since, ns; NONE: it has none
    broken: np.ndarray  # [N] when a machine failed last, ns, as the network knows; NONE: never
    broken_before: np.ndarray  # [N] the same of the failure before that one
    # [S] as of `Inputs.sources`: when it is known that outputs of a stage are not there, ns; NEVER: all are
    lost: np.ndarray


class Homes(NamedTuple):
    """Of tasks whose input is sent to a machine before they are launched; all are empty where none is."""

    stage: np.ndarray  # [S] 1: its tasks have homes; read-only
    of_task: np.ndarray  # [T] NONE: it has none; read-only
    ready: np.ndarray  # [T] when the manager got to know that a task's input is there, ns; NONE before


class Inputs(NamedTuple):
    """T tasks, S stages, E edges in the order of `parent`; all arrays are empty where input is not moved."""

    active: int  # 1: input is moved over a network
    first_parent: np.ndarray  # [S + 1] read-only
    parent: np.ndarray  # [E] NONE: the job's input; read-only
    one_to_one: np.ndarray  # [E] read-only
    size: np.ndarray  # [E] bytes that the parent sends to the child, float64, read-only
    node: np.ndarray  # [T] where a task was launched, or its input is sent, NONE before
    launched: np.ndarray  # [T] when, ns; of a task with a home when that was asked to receive its input
    next: np.ndarray  # [T] the next task of those that fetch together
    together: np.ndarray  # [T] of a leader: how many fetch together
    # [T] of a leader: what they need of a shuffle, in means of a task of their stage, float64
    parts: np.ndarray
    part: np.ndarray  # [T] of a task: the same, read-only
    waiting: np.ndarray  # [T] of a leader: flows that have not ended
    stage: np.ndarray  # [T] of a task that has asked for its input
    fetching: np.ndarray  # [S] tasks that have asked for their input and do not have all of it
    fetched: np.ndarray  # [T] when a task had all its input, ns; NONE: it needs none, or that did not happen
    # Empty where no edge is pipelined:
    first_child: np.ndarray  # [S + 1] as in `Stages`; read-only
    child: np.ndarray  # [E]
    at_launch: np.ndarray  # [E] 1: the edge is pipelined; read-only
    ended: np.ndarray  # [T] 1: a task has ended, as the network knows
    # [S] when the last task of a stage was launched, ns, as the manager knows; NONE before
    all_launched: np.ndarray
    # [T] by stage, from its first task on: the machines where its tasks ran; with pipelined edges [2 T], of which the
    # second half is of tasks whose end the network has got to know at this instant
    source: np.ndarray
    tasks: np.ndarray  # [T] or [2 T] how many ran there
    sources: np.ndarray  # [S] how many machines these are, NONE: not counted yet
    place: np.ndarray  # [N] scratch: where a machine is in `source`
    moved: np.ndarray  # [2] bytes that went over the network, and that did not need to; float64
    # [T] of a task, as the manager knows it; empty unless parts of jobs' input lie somewhere, or machines fail
    phase: np.ndarray
    outputs: Outputs
    job_input: JobInput
    homes: Homes


class HasInputs(HasCost, Protocol):
    """The part of a world that the functions here, and a network, need."""

    @property
    def inputs(self) -> Inputs:
        """What tasks read."""

    @property
    def stages(self) -> Any:
        """With `first_task`, [S + 1]."""

    @property
    def seed(self) -> int:
        """Where the random numbers of the run start."""


@inlined
def fetches(w: HasInputs, t: int, node: int, task: int, stage: int) -> bool:
    """Note that a task is launched, or is to be; return whether it has to fetch input, which is asked for."""
    inputs, must_fetch = w.inputs, False
    if inputs.active == 1:
        inputs.node[task], inputs.launched[task] = node, t
        if can_lose_outputs(inputs):
            inputs.fetched[task] = NONE
        must_fetch = needs_input(inputs, stage)
        if reads_part(inputs, stage):
            must_fetch = must_read(w, t, node, task, stage, must_fetch)
        if must_fetch:
            send_fetch(w, t, node, task, stage)
    return must_fetch


@compiled
def must_read(w: HasInputs, t: int, node: int, task: int, stage: int, must_fetch: bool) -> bool:
    """Note from where a task reads its part of the job's input; return whether it has to fetch that, or other input.

    What is here is read at once, and not by way of the network, if it is all that the task needs.
    """
    inputs = w.inputs
    source = inputs.job_input.origin[task] = source_of_part(
        inputs.job_input, w.network.rack, w.seed, task, node
    )
    w.counts[N_LOCAL_READS if source == node else N_REMOTE_READS] += 1
    if source == node and not must_fetch:
        inputs.fetched[task] = t
        tasks = w.stages.first_task[stage + 1] - w.stages.first_task[stage]
        inputs.moved[1] += inputs.size[inputs.first_parent[stage + 1] - 1] / tasks
    return must_fetch or source != node


@template
def end_fetch(w: HasInputs, t: int, node: int, compute: Callable) -> None:
    """Let tasks compute that have fetched their input together; it goes on with another event if they are very many.

    Args:
        compute: (world, now, machine, task, its stage), lets a task compute; it sends at most `MESSAGES_A_FETCH`.
    """
    task, room = read_fetched(w), w.queue.room - SPARE
    while task != NONE and room >= MESSAGES_A_FETCH:
        stage = w.inputs.stage[task]
        w.inputs.fetched[task] = t
        w.inputs.fetching[stage] -= 1
        compute(w, t, node, task, stage)
        task = w.inputs.next[task]
        room -= MESSAGES_A_FETCH
    if task != NONE:
        send_fetched(w, t, node, task)


@inlined
def reads_part(inputs: Inputs, stage: int) -> bool:
    """Whether tasks of a stage read a part of the job's input that takes time."""
    end = inputs.first_parent[stage + 1]
    return end > inputs.first_parent[stage] and inputs.parent[end - 1] == NONE


@inlined
def needs_input(inputs: Inputs, stage: int) -> bool:
    """Return whether tasks of a stage have input from others that is moved."""
    found: bool = False
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        found = found or (inputs.size[e] > 0.0 and inputs.parent[e] != NONE)
    return found


@inlined
def is_pipelined(inputs: Inputs) -> bool:
    """Return whether tasks may be launched before their parents have ended."""
    return inputs.ended.size > 0


@inlined
def can_lose_outputs(inputs: Inputs) -> bool:
    """Return whether machines may fail, with the outputs of tasks that ran there."""
    return inputs.outputs.ended.size > 0


@inlined
def is_fetching(inputs: Inputs, task: int) -> bool:
    """Return whether a task that has been launched, and has not ended, fetches its input."""
    return inputs.active == 1 and inputs.stage[task] != NONE and inputs.fetched[task] == NONE


@inlined
def has_output(inputs: Inputs, task: int) -> bool:
    """Return whether the output of a task is on its machine, as the network knows."""
    ended = inputs.outputs.ended
    return ended.size == 0 or (ended[task] != NONE and ended[task] > inputs.outputs.broken[inputs.node[task]])


@inlined
def when_known_lost(w: HasInputs, task: int) -> int:
    """Return when it is known that the output of a task is lost, ns; 0: it is, as its machine has been back since then.

    So it is, too, if the task runs again.
    """
    outputs, node = w.inputs.outputs, w.inputs.node[task]
    if outputs.ended[task] == NONE or outputs.ended[task] <= outputs.broken_before[node]:
        return np.int64(0)
    return w.faults.actors.detect[node]


@inlined
def note_output_here(inputs: Inputs, t: int, task: int, stage: int) -> None:
    """Note that a task has ended, whose output is on its machine."""
    if can_lose_outputs(inputs):
        inputs.outputs.ended[task], inputs.sources[stage] = t, NONE


@inlined
def is_pushed(inputs: Inputs, stage: int) -> bool:
    """Return whether tasks of a stage have homes."""
    return inputs.homes.stage.size > 0 and inputs.homes.stage[stage] == 1


@inlined
def is_elsewhere(w: HasInputs, stage: int, node: int) -> bool:
    """Return whether tasks of a stage run at home alone, and none that may be launched is at home on a machine."""
    return is_pushed(w.inputs, stage) and local_task(w, stage, node) == NONE


@inlined
def sources_of(w: HasInputs, stage: int) -> int:
    """Return on how many machines tasks of a stage ran, which are listed."""
    if w.inputs.sources[stage] == NONE:
        count_sources(w, stage)
    return w.inputs.sources[stage]


@compiled
def count_sources(w: HasInputs, stage: int) -> None:
    """List the machines that have outputs of a stage's tasks that have ended, in order, and how many each has."""
    inputs, first, end = w.inputs, w.stages.first_task[stage], w.stages.first_task[stage + 1]
    found = first
    if can_lose_outputs(inputs):
        inputs.outputs.lost[stage] = NEVER
    for task in range(first, end):
        if is_pipelined(inputs) and inputs.ended[task] == 0:
            continue
        node = inputs.node[task]
        if not has_output(inputs, task):
            inputs.outputs.lost[stage] = min(inputs.outputs.lost[stage], when_known_lost(w, task))
            continue
        place = inputs.place[node]
        if place < first or place >= found or inputs.source[place] != node:
            place = inputs.place[node] = found
            inputs.source[found], inputs.tasks[found] = node, 0
            found += 1
        inputs.tasks[place] += 1
    sort_by_machine(inputs.source, inputs.tasks, first, found)
    inputs.sources[stage] = found - first


@compiled
def sort_by_machine(machine: np.ndarray, value: np.ndarray, first: int, end: int) -> None:
    """Sort the elements of two arrays from `first` to before `end` by the machine (Shell's sort)."""
    gap: int = 1
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            key, of, j = machine[i], value[i], i
            while j >= first + gap and machine[j - gap] > key:
                machine[j], value[j] = machine[j - gap], value[j - gap]
                j -= gap
            machine[j], value[j] = key, of
        gap //= 3


@compiled
def source_of_part(job_input: JobInput, racks: np.ndarray, seed: int, task: int, node: int) -> int:
    """Return from which machine a task that is launched on `node` reads its part of the job's input.

    If it lies on none that is in the same rack, any of those that have it is drawn.

    Args:
        racks: [N] the rack of each machine.
    """
    lies, nodes = job_input.lies, racks.size
    bits = random_bits(seed, READS, task, np.int64(0))
    if lies.shape[0] == 0:
        if nodes == 1 or unit(bits) <= job_input.local_share:
            return node
        other = below(random_bits(seed, READS, task, np.int64(1)), nodes - 1)
        return other + 1 if other >= node else other
    near: int = 0
    for i in range(lies.shape[1]):
        if lies[task, i] == node:
            return node
        if racks[lies[task, i]] == racks[node]:
            near += 1
    before = below(bits, near if near > 0 else lies.shape[1])
    for i in range(lies.shape[1]):
        if near == 0 or racks[lies[task, i]] == racks[node]:
            if before == 0:
                return lies[task, i]
            before -= 1
    return NONE


@inlined
def place_of(job_input: JobInput, node: int, task: int) -> int:
    """Return where a task is among all, by machine and number; if it is not of the machine, the next one of it."""
    return first_from(job_input.task, job_input.begin[node], job_input.begin[node + 1], task)


@compiled
def local_task(w: HasInputs, stage: int, node: int) -> int:
    """Return the first task of a stage that may be launched and is of a machine (`JobInput`); NONE if none is."""
    job_input, first, after = w.inputs.job_input, w.stages.first_task[stage], w.stages.first_task[stage + 1]
    if job_input.task.size == 0:
        return NONE
    end, low = job_input.begin[node + 1], place_of(job_input, node, first)
    if low == end:
        return NONE
    i = max(low, job_input.later[low])
    while i < end and job_input.task[i] < after and w.inputs.phase[job_input.task[i]] >= LAUNCHED:
        i += 1
    job_input.later[low] = i
    while i < end and job_input.task[i] < after:
        if w.inputs.phase[job_input.task[i]] == READY:
            return job_input.task[i]
        i += 1
    return NONE
