"""Packing: the task of all jobs that suits best what a machine has free, and how fair that is to jobs.

The value of a task on a machine is its stage's priority, times the alignment of its demand and what is free (Grandl et
al., SIGCOMM 2014, section 3.2), less the work that its job has left. Alignment is the dot product of both, each
relative to the machine's capacity. Without alignment tasks go by priority alone.

Two rules keep it fair. With `fairness` only jobs that hold the least of the cluster may launch (SIGCOMM 2014, section
3.4). With `unfairness` jobs whose deficit is that large go first, the largest deficit first (Grandl et al., Graphene,
OSDI 2016, section 5): each launch adds to the deficit of every job an equal part of what the task takes, and takes from
that of its own job all of it.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.inputs import is_pushed, local_task, reads_part
from actors.kernel.queue import NONE
from actors.machines.dag_world import DagWorld


class Values(NamedTuple):
    """What the value of a task on a machine depends on, and which jobs may launch."""

    by_alignment: bool = True  # how well the task suits the machine
    remaining_weight: float = 0.0  # of the work that the task's job has left
    renewed: bool = True  # its unit is that of each launch, and not of the begin of a pass over all machines
    remote_penalty: float = 0.0  # share lost on machines that have no input of the stage
    fairness: float = 0.0  # only the ceil((1 - fairness) jobs) with tasks that hold the least may launch
    unfairness: float = np.inf  # a job whose deficit is this part of the machines goes first


class Packing(NamedTuple):
    """What values of tasks are made of; J jobs, S stages, N machines, B bands."""

    priority: np.ndarray  # [S] float64
    score: np.ndarray  # [B, 2] the sum of the values of launched tasks so far, and how many, by band
    part: np.ndarray  # [S] of the cluster that a task takes: of the resource of which it is the largest
    given: np.ndarray  # [B] what a job would have got by now had it always got an equal part
    got: np.ndarray  # [J] the same when the job arrived, and what it has launched since
    denied: np.ndarray  # [J] bool: it could not launch at the last match, as it held too much
    most_used: np.ndarray  # [B] jobs of a larger rank may not launch
    ranks: np.ndarray  # [J] scratch
    ran: np.ndarray  # [S, N] bool: the machine has run a task of the stage; [S, 0] without remote penalty
    first_parent: np.ndarray  # [S + 1]
    parent: np.ndarray
    values: Values


@inlined
def alignment(w: DagWorld, stage: int, node: int) -> float:
    """Return the dot product of a task's demand and what a machine has free, relative to the machine's capacity."""
    demand, free, capacity = w.stages.demand, w.machines.free, w.machines.capacity
    total = 0.0
    for r in range(demand.shape[1]):
        if capacity[node, r] > 0:
            total += (demand[stage, r] / capacity[node, r]) * (free[node, r] / capacity[node, r])
    return total


@compiled
def is_remote(w: DagWorld, k: Packing, stage: int, node: int) -> bool:
    """Whether a stage has input with known places, and none on a machine.

    A machine has some if it has run a task of the stage's parents, or has the part of the job's input of a task that
    may be launched. A task with a home has all of it there, and runs nowhere else.
    """
    if is_pushed(w.inputs, stage):
        return False
    for edge in range(k.first_parent[stage], k.first_parent[stage + 1]):
        if k.ran[k.parent[edge], node]:
            return False
    has_places = reads_part(w.inputs, stage) and w.inputs.job_input.lies.shape[0] > 0
    if has_places and local_task(w, stage, node) != NONE:
        return False
    return has_places or k.first_parent[stage + 1] > k.first_parent[stage]


@inlined
def value_of(w: DagWorld, k: Packing, stage: int, node: int) -> float:
    """Return the value of a task on a machine, before the work that its job has left."""
    value = k.priority[stage]
    if k.values.by_alignment:
        value *= alignment(w, stage, node)
    if k.values.remote_penalty > 0.0 and is_remote(w, k, stage, node):
        value *= 1.0 - k.values.remote_penalty
    return value


@inlined
def deficit(k: Packing, band: int, job: int) -> float:
    """Return the deficit of a job if it is so large that the job goes first, else 0."""
    less = k.given[band] - k.got[job]
    return less if less >= k.values.unfairness else 0.0


@inlined
def note_launch(
    k: Packing, band: int, job: int, stage: int, node: int, value: float, num_active: int
) -> None:
    """Note a launch: the value of the task, and what its job has got."""
    k.score[band, 0] += value
    k.score[band, 1] += 1.0
    k.given[band] += k.part[stage] / num_active
    k.got[job] += k.part[stage]
    if k.values.remote_penalty > 0.0:
        k.ran[stage, node] = True


@compiled
def kth_least(values: np.ndarray, size: int, k: int) -> float:
    """Return the value of rank `k`, from 0, of the first `size`, which are reordered (Hoare's selection)."""
    low, high = np.int64(0), size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]
