"""What tasks read over the network: the bytes on edges, where the tasks of a stage ran, and who waits for what.

A task that is launched on a machine fetches its input before it computes, and holds its demand meanwhile (as in
MapReduce and Spark). Over an all-to-all edge each task of the parent sends to each task of the child (a shuffle): to
all the same, or by a skew; over a one-to-one edge task i sends all it has to task i (a copy). What lies on the same
machine needs no network. What a task reads of its job's input (`actors.machines.job_input`) is a copy too: it comes
over an edge without parent, the last one to its stage.

Tasks of a stage that are launched on one machine at one instant fetch together: what they need of one machine over one
edge is one flow. The first of them, the *leader*, stands for all.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.conditions import read_only
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.machines.job_input import JobInput, make_job_input, reading_stages
from actors.setting import Setting

SKEW = 0x71  # a stream of random numbers


class Inputs(NamedTuple):
    """T tasks, S stages, E edges in the order of `parent`; all arrays are empty where input is not moved."""

    active: int  # 1: input is moved over a network
    first_parent: np.ndarray  # [S + 1] read-only
    parent: np.ndarray  # [E] NONE: the job's input; read-only
    one_to_one: np.ndarray  # [E] read-only
    size: np.ndarray  # [E] bytes that the parent sends to the child, float64, read-only
    node: np.ndarray  # [T] where a task was launched, NONE before
    next: np.ndarray  # [T] the next task of those that fetch together
    together: np.ndarray  # [T] of a leader: how many fetch together
    # [T] of a leader: what they need of a shuffle, in means of a task of their stage, float64
    parts: np.ndarray
    part: np.ndarray  # [T] of a task: the same, read-only
    waiting: np.ndarray  # [T] of a leader: flows that have not ended
    stage: np.ndarray  # [T] of a task that has asked for its input
    fetching: np.ndarray  # [S] tasks that have asked for their input and do not have all of it
    fetched: np.ndarray  # [T] when a task had all its input, ns; NONE: it needs none, or that did not happen
    source: np.ndarray  # [T] by stage, from its first task on: the machines where its tasks ran
    tasks: np.ndarray  # [T] how many ran there
    sources: np.ndarray  # [S] how many machines these are, NONE: not counted yet
    place: np.ndarray  # [N] scratch: where a machine is in `source`
    moved: np.ndarray  # [2] bytes that went over the network, and that did not need to; float64
    job_input: JobInput


def make_inputs(setting: Setting, nodes: int) -> Inputs:
    """Return the input of tasks that have not run, on so many nodes."""
    arrays, active = setting.workload.arrays(), setting.switch.scheduler != "none"
    tasks, of_stage = arrays.duration_ns.size if active else 0, np.diff(arrays.stage_first_task)
    stages = of_stage.size if active else 0
    reading = reading_stages(setting)
    last = arrays.first_parent[reading + 1]  # where the edges without parent stand among the others
    more = np.cumsum(np.bincount(reading + 1, minlength=arrays.first_parent.size))
    return Inputs(
        active=np.int64(active),
        first_parent=read_only(arrays.first_parent + more),
        parent=read_only(np.insert(arrays.parent, last, NONE)),
        one_to_one=read_only(np.insert(arrays.parent_one_to_one.astype(np.int64), last, 1)),
        size=read_only(np.insert(np.nan_to_num(arrays.parent_bytes), last, arrays.input_bytes[reading])),
        node=np.full(tasks, NONE),
        next=np.full(tasks, NONE),
        together=np.zeros(tasks, np.int64),
        parts=np.zeros(tasks),
        part=read_only(parts_of(of_stage, setting.switch.skew, setting.seed)[:tasks]),
        waiting=np.zeros(tasks, np.int64),
        stage=np.full(tasks, NONE),
        fetching=np.zeros(stages, np.int64),
        fetched=np.full(tasks, NONE),
        source=np.zeros(tasks, np.int64),
        tasks=np.zeros(tasks, np.int64),
        sources=np.full(stages, NONE),
        place=np.zeros(nodes if active else 0, np.int64),
        moved=np.zeros(2),
        job_input=make_job_input(setting, reading),
    )


def parts_of(num_tasks: np.ndarray, skew: float, seed: int) -> np.ndarray:
    """Return what each task of stages of `num_tasks` tasks needs of a shuffle, in means of the tasks of its stage.

    `skew` and `seed` as in `actors.environment.Switch`.
    """
    tasks, first = num_tasks.sum(), np.cumsum(num_tasks) - num_tasks
    if skew == 0:
        return np.ones(tasks)
    begin = np.random.default_rng([SKEW, seed]).integers(0, num_tasks)
    place = np.arange(tasks) - np.repeat(first + begin, num_tasks)
    share = (place % np.repeat(num_tasks, num_tasks) + 1.0) ** -skew
    return share * np.repeat(num_tasks / np.add.reduceat(share, first), num_tasks)


@inlined
def reads_part(inputs: Inputs, stage: int) -> bool:
    """Whether tasks of a stage read a part of the job's input that takes time."""
    end = inputs.first_parent[stage + 1]
    return end > inputs.first_parent[stage] and inputs.parent[end - 1] == NONE


@inlined
def needs_input(inputs: Inputs, stage: int) -> bool:
    """Return whether tasks of a stage have input from others that is moved."""
    found: bool = False
    if inputs.active == 1:
        for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
            found = found or (inputs.size[e] > 0.0 and inputs.parent[e] != NONE)
    return found


@compiled
def count_sources(w: Any, stage: int) -> None:
    """List the machines where the tasks of a stage ran, in order, and how many ran on each."""
    inputs, first, end = w.inputs, w.stages.first_task[stage], w.stages.first_task[stage + 1]
    found = first
    for task in range(first, end):
        node = inputs.node[task]
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
