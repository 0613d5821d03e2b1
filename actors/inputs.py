"""The input of tasks at time 0: what each stage fetches, and where parts of jobs' input lie.

The input of a stage has a part for each task. Either it is not known where parts lie, and a share of the tasks have
theirs on the machine on which they are launched (`share`), or each part lies on some machines (`replicas`), as the
blocks of a distributed file system do. Their places are drawn by the seed, with draws of its own for each task, so that
they do not depend on what is launched when.
"""

import numpy as np

from actors.conditions import read_only
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.inputs import WAITING, Homes, Inputs, JobInput, Outputs, source_of_part
from actors.kernel.queue import NEVER, NONE
from actors.kernel.random import PLACES, below, random_bits
from actors.setting import Setting
from workloads.dag_arrays import DagArrays

SKEW = 0x71  # a stream of random numbers
_NONE = read_only(np.zeros(0, np.int64))
NO_HOMES = Homes(_NONE, _NONE, ready=np.zeros(0, np.int64))


def make_inputs(setting: Setting, arrays: DagArrays, homes: Homes = NO_HOMES) -> Inputs:
    """Return the input of tasks of a workload of DAG jobs that have not run."""
    nodes, active = setting.cluster.num_nodes, setting.switch.scheduler != "none"
    tasks, of_stage = arrays.duration_ns.size if active else 0, np.diff(arrays.stage_first_task)
    at_launch = pipelined_edges(setting, arrays)
    pipelined = tasks if at_launch.size else 0
    stages = of_stage.size if active else 0
    can_fail = active and fails(setting)
    reading = reading_stages(setting, arrays)
    job_input = make_job_input(setting, arrays, reading, homes)
    last = arrays.first_parent[reading + 1]  # where the edges without parent stand among the others
    more = np.cumsum(np.bincount(reading + 1, minlength=arrays.first_parent.size))
    return Inputs(
        active=np.int64(active),
        first_parent=read_only(arrays.first_parent + more),
        parent=read_only(np.insert(arrays.parent, last, NONE)),
        one_to_one=read_only(np.insert(arrays.parent_one_to_one.astype(np.int64), last, 1)),
        size=read_only(np.insert(np.nan_to_num(arrays.parent_bytes), last, arrays.input_bytes[reading])),
        node=np.full(tasks, NONE),
        launched=np.zeros(tasks, np.int64),
        next=np.full(tasks, NONE),
        together=np.zeros(tasks, np.int64),
        parts=np.zeros(tasks),
        part=read_only(parts_of(of_stage, setting.switch.skew, setting.seed)[:tasks]),
        waiting=np.zeros(tasks, np.int64),
        stage=np.full(tasks, NONE),
        fetching=np.zeros(stages, np.int64),
        fetched=np.full(tasks, NONE),
        first_child=arrays.first_child if at_launch.size else read_only(np.zeros(1, np.int64)),
        child=arrays.child[: at_launch.size],
        at_launch=at_launch,
        ended=np.zeros(pipelined, np.int64),
        all_launched=np.full(stages if pipelined else 0, NONE),
        source=np.zeros(tasks + pipelined, np.int64),
        tasks=np.zeros(tasks + pipelined, np.int64),
        sources=np.full(stages, NONE),
        place=np.zeros(nodes if active else 0, np.int64),
        moved=np.zeros(2),
        phase=np.full(tasks if can_fail or job_input.task.size else 0, WAITING),
        outputs=Outputs(
            ended=np.full(tasks if can_fail else 0, NONE),
            broken=np.full(nodes if can_fail else 0, NONE),
            broken_before=np.full(nodes if can_fail else 0, NONE),
            lost=np.full(stages if can_fail else 0, NEVER),
        ),
        job_input=job_input,
        homes=homes,
    )


def fails(setting: Setting) -> bool:
    """Return whether machines may fail."""
    return setting.dynamics.mtbf_s is not None or setting.dynamics.outages is not None


def pipelined_edges(setting: Setting, arrays: DagArrays) -> np.ndarray:
    """Return 1 for edges, in the order of children, over which flows are registered as tasks end; empty: over none."""
    if setting.switch.registration != "pipelined":
        return read_only(np.zeros(0, np.int64))
    return read_only(((arrays.edge_one_to_one == 0) & (arrays.edge_bytes > 0)).astype(np.int64))


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


def reading_stages(setting: Setting, arrays: DagArrays) -> np.ndarray:
    """Return the stages of which the tasks read a part of the job's input that takes time, in order."""
    switch = setting.switch
    is_read = switch.scheduler != "none" and switch.input != "outside"
    return np.flatnonzero(np.nan_to_num(arrays.input_bytes) * is_read > 0)


def make_job_input(
    setting: Setting, arrays: DagArrays, reading: np.ndarray, homes: Homes = NO_HOMES
) -> JobInput:
    """Return where parts lie at time 0; `reading`: the stages that read some."""
    first, switch = arrays.stage_first_task, setting.switch
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
    of, nodes = lies, setting.cluster.num_nodes
    if homes.of_task.size:
        of = np.full((first[-1], lies.shape[1]), NONE)
        of[: lies.shape[0]] = lies
        of[homes.of_task >= 0] = NONE
        of[:, 0] = np.where(homes.of_task >= 0, homes.of_task, of[:, 0])
    row, copy = np.nonzero(of >= 0)
    has = of[row, copy]
    return JobInput(
        switch.local_share,
        read_only(lies),
        origin=np.full(first[-1] if reading.size > 0 else 0, NONE),
        begin=read_only(np.append(0, np.cumsum(np.bincount(has, minlength=nodes)))),
        task=read_only(row[np.lexsort((row, has))]),
        later=np.zeros(row.size, np.int64),
    )


def origins_of(setting: Setting, node: np.ndarray) -> np.ndarray:
    """Return [T] from which machine each task of a run has read its part of the job's input, NONE: from none.

    Args:
        node: [T] where the task was launched last, NONE: it was not.
    """
    arrays, origin = setting.workload.arrays(), np.full(node.size, NONE)
    reading = reading_stages(setting, arrays)
    if reading.size > 0:
        first = arrays.stage_first_task
        tasks = np.concatenate([np.arange(first[stage], first[stage + 1]) for stage in reading])
        tasks = tasks[node[tasks] >= 0]
        fill_origins(
            make_job_input(setting, arrays, reading),
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
