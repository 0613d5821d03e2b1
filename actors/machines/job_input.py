"""What tasks read of their job's input: on which machines its parts lie, and from which one a task reads.

The input of a stage has a part for each task. Either it is not known where parts lie, and a share of the tasks have
theirs on the machine on which they are launched (`share`), or each part lies on some machines (`replicas`), as the
blocks of a distributed file system do. Their places are drawn by the seed, with draws of its own for each task, so that
they do not depend on what is launched when.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.conditions import read_only
from actors.kernel.arrays import first_from
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NONE
from actors.kernel.random import PLACES, READS, below, random_bits, unit
from actors.setting import Setting

WAITING, READY, LAUNCHED = (np.int64(i) for i in range(3))
"""A task waits for others, may be launched, has been launched."""


class JobInput(NamedTuple):
    """Of T tasks; `lies` is empty where parts do not lie on certain machines."""

    local_share: float  # of the tasks, of which the part is on the machine where they are launched
    lies: np.ndarray  # [T, replicas] the machines that have a task's part, NONE: it reads none; read-only
    origin: np.ndarray  # [T] from where a task reads its part, NONE: not known yet
    begin: np.ndarray  # [N + 1] where the tasks of which a machine has the part begin in `task`; read-only
    task: np.ndarray  # [T * replicas] those tasks, by machine and number; read-only
    # [T * replicas] of the first task of a stage on a machine: those before this place are launched
    later: np.ndarray
    phase: np.ndarray  # [T] of a task, as the manager knows it; like all of these, empty if `lies` is


def reading_stages(setting: Setting) -> np.ndarray:
    """Return the stages of which the tasks read a part of the job's input that takes time, in order."""
    switch = setting.switch
    is_read = switch.scheduler != "none" and switch.input != "outside"
    return np.flatnonzero(np.nan_to_num(setting.workload.arrays().input_bytes) * is_read > 0)


def make_job_input(setting: Setting, reading: np.ndarray) -> JobInput:
    """Return where parts lie at time 0; `reading`: the stages that read some."""
    first, switch = setting.workload.arrays().stage_first_task, setting.switch
    is_placed = reading.size > 0 and switch.input == "replicas"
    lies = np.full((first[-1], switch.replicas) if is_placed else (0, 1), NONE)
    if is_placed:
        tasks = np.concatenate([np.arange(first[stage], first[stage + 1]) for stage in reading])
        # Machines by rack: a place is one in this order, so that a rack is a run of places.
        _, rack, sizes = np.unique(setting.cluster.racks(), return_inverse=True, return_counts=True)
        machines = np.argsort(rack, kind="stable")
        places = np.zeros((tasks.size, switch.replicas), np.int64)
        draw_places(
            places,
            tasks,
            rack[machines],
            np.append(0, np.cumsum(sizes)),
            np.int64(switch.replica_placement == "racks"),
            np.int64(setting.seed),
        )
        lies[tasks] = machines[places]
    row, copy = np.nonzero(lies >= 0)
    has, nodes = lies[row, copy], setting.cluster.num_nodes
    return JobInput(
        switch.local_share,
        read_only(lies),
        origin=np.full(first[-1] if reading.size > 0 else 0, NONE),
        begin=read_only(np.append(0, np.cumsum(np.bincount(has, minlength=nodes)))),
        task=read_only(row[np.lexsort((row, has))]),
        later=np.zeros(row.size, np.int64),
        phase=np.full(lies.shape[0], WAITING),
    )


def origins_of(setting: Setting, node: np.ndarray) -> np.ndarray:
    """Return [T] from which machine each task of a run has read its part of the job's input, NONE: from none.

    Args:
        node: [T] where the task was launched last, NONE: it was not.
    """
    reading, origin = reading_stages(setting), np.full(node.size, NONE)
    if reading.size > 0:
        first = setting.workload.arrays().stage_first_task
        tasks = np.concatenate([np.arange(first[stage], first[stage + 1]) for stage in reading])
        tasks = tasks[node[tasks] >= 0]
        fill_origins(
            make_job_input(setting, reading),
            setting.cluster.racks(),
            np.int64(setting.seed),
            tasks,
            node,
            origin,
        )
    return origin


@entry
def fill_origins(
    job_input: JobInput, racks: np.ndarray, seed: int, tasks: np.ndarray, node: np.ndarray, origin: np.ndarray
) -> None:
    """Set from where each of `tasks` reads."""
    for task in tasks:
        origin[task] = source_of_part(job_input, racks, seed, task, node[task])


@entry
def draw_places(
    places: np.ndarray, tasks: np.ndarray, rack: np.ndarray, begin: np.ndarray, by_racks: int, seed: int
) -> None:
    """Draw the places of tasks' parts, each row in ascending order.

    By racks the second is in another rack than the first, and the third in that of the second, as in HDFS
    (Shvachko et al., MSST 2010, section III.E); what is not possible, and the others, are any places.

    Args:
        places: [n, replicas] written.
        tasks: [n]
        rack: [N] of each place, ascending.
        begin: [racks + 1] where the places of each begin.
    """
    for i in range(tasks.size):
        first = below(random_bits(seed, PLACES, tasks[i], np.int64(0)), rack.size)
        places[i, 0] = first
        second: int = NONE
        for k in range(1, places.shape[1]):
            bits = random_bits(seed, PLACES, tasks[i], np.int64(k))
            place: int = NONE
            if by_racks == 1 and k == 1:
                low, end = begin[rack[first]], begin[rack[first] + 1]
                if end - low < rack.size:
                    place = below(bits, rack.size - (end - low))
                    if place >= low:
                        place += end - low
                    second = place
            elif by_racks == 1 and k == 2 and second != NONE:
                place = draw_place(places, i, k, begin[rack[second]], begin[rack[second] + 1], bits)
            if place == NONE:
                place = draw_place(places, i, k, np.int64(0), np.int64(rack.size), bits)
            insert_place(places, i, k, place)


@compiled
def draw_place(places: np.ndarray, row: int, count: int, low: int, end: int, bits: np.uint64) -> int:
    """Return one of the places from `low` to before `end` that are not among the first of a row; NONE if all are."""
    left = end - low
    for i in range(count):
        if places[row, i] >= low and places[row, i] < end:
            left -= 1
    if left == 0:
        return NONE
    place = low + below(bits, left)
    for i in range(count):
        if places[row, i] >= low and places[row, i] <= place:
            place += 1
    return place


@inlined
def insert_place(places: np.ndarray, row: int, count: int, place: int) -> None:
    """Add a place to the first of a row, which are in ascending order."""
    i = count
    while i > 0 and places[row, i - 1] > place:
        places[row, i] = places[row, i - 1]
        i -= 1
    places[row, i] = place


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


@compiled
def local_task(w: Any, stage: int, node: int) -> int:
    """Return the first task of a stage that may be launched and has its part on a machine; NONE if there is none."""
    job_input, first, after = w.inputs.job_input, w.stages.first_task[stage], w.stages.first_task[stage + 1]
    if job_input.phase.size == 0:
        return NONE
    end = job_input.begin[node + 1]
    low = first_from(job_input.task, job_input.begin[node], end, first)
    if low == end:
        return NONE
    i = max(low, job_input.later[low])
    while i < end and job_input.task[i] < after and job_input.phase[job_input.task[i]] == LAUNCHED:
        i += 1
    job_input.later[low] = i
    while i < end and job_input.task[i] < after:
        if job_input.phase[job_input.task[i]] == READY:
            return job_input.task[i]
        i += 1
    return NONE
