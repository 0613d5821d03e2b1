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

from actors.conditions import read_only
from actors.failures import HasFaults
from actors.kernel.arrays import first_from
from actors.kernel.compiled import compiled, entry, inlined, template
from actors.kernel.counters import N_LOCAL_READS, N_REMOTE_READS
from actors.kernel.messages import read_fetched, send_fetch, send_fetched
from actors.kernel.queue import NEVER, NONE, SPARE
from actors.kernel.random import HOMES, PLACES, READS, below, random_bits, unit
from actors.setting import Setting
from workloads.dags import DagArrays

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


class HasInputs(HasFaults, Protocol):
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


# The input of a stage at time 0 has a part for each task. Either it is not known where parts lie, and a share of the
# tasks have theirs on the machine on which they are launched (`share`), or each part lies on some machines
# (`replicas`), as the blocks of a distributed file system do. Their places are drawn by the seed, with draws of its own
# for each task, so that they do not depend on what is launched when.

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


# The homes of tasks whose shuffles are pushed: for each task a machine, drawn by the seed.
#
# A home is any machine of its job's manager that is large enough for the task. A draw is a task's own, so that it does
# not depend on what is launched when: two schedulers send the same bytes between the same homes.


def make_homes(
    setting: Setting, arrays: DagArrays, demand: np.ndarray, capacity: np.ndarray, first_node: np.ndarray
) -> Homes:
    """Return the homes of tasks of stages that have input from others; none where shuffles are pulled.

    Args:
        demand: [S, R] of a task of each stage; it fits on some machine of its manager.
        capacity: [N, R]
        first_node: [K + 1] where the machines of each manager begin; jobs go to the managers in turn.
    """
    if setting.switch.scheduler == "none" or setting.switch.shuffle != "push":
        return NO_HOMES
    stages, managers = demand.shape[0], first_node.size - 1
    child = np.repeat(np.arange(stages), np.diff(arrays.first_parent))
    pushed = np.zeros(stages, np.int64)
    pushed[child[np.nan_to_num(arrays.parent_bytes) > 0]] = 1
    job = np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_stage))
    # Machines of a manager that are alike are a run of `machine`.
    manager = np.repeat(np.arange(managers), np.diff(first_node))
    kinds, of_machine, sizes = np.unique(
        np.column_stack([manager, capacity]), axis=0, return_inverse=True, return_counts=True
    )
    home = np.full(arrays.stage_first_task[-1], NONE)
    draw_homes(
        home,
        np.flatnonzero(pushed),
        arrays.stage_first_task,
        demand,
        job % managers,
        np.searchsorted(kinds[:, 0], np.arange(managers + 1)),
        np.ascontiguousarray(kinds[:, 1:]),
        np.append(0, np.cumsum(sizes)),
        np.argsort(of_machine.ravel(), kind="stable"),
        np.zeros(sizes.size, np.int64),
        np.int64(setting.seed),
    )
    return Homes(read_only(pushed), read_only(home), np.full(home.size, NONE))


@entry
def draw_homes(
    home: np.ndarray, stages: np.ndarray, first_task: np.ndarray, demand: np.ndarray, manager: np.ndarray,
    first_kind: np.ndarray, capacity: np.ndarray, begin: np.ndarray, machine: np.ndarray, room: np.ndarray, seed: int,
) -> None:  # fmt: skip
    """Draw the homes of the tasks of some stages.

    Args:
        home: [T] written.
        stages: [n] these stages.
        manager: [S] of each stage's job.
        first_kind: [K + 1] where the kinds of machines of each manager begin.
        capacity: [kinds, R]
        begin: [kinds + 1] where the machines of each begin in `machine`.
        machine: [N] by kind.
        room: [kinds] scratch: of a kind on which a task fits, how many there are; of others 0.
    """
    for stage in stages:
        low, end, count = first_kind[manager[stage]], first_kind[manager[stage] + 1], np.int64(0)
        for kind in range(low, end):
            room[kind] = begin[kind + 1] - begin[kind]
            for r in range(capacity.shape[1]):
                if demand[stage, r] > capacity[kind, r]:
                    room[kind] = 0
            count += room[kind]
        for task in range(first_task[stage], first_task[stage + 1]):
            place, kind = below(random_bits(seed, HOMES, task, np.int64(0)), count), low
            while place >= room[kind]:
                place -= room[kind]
                kind += 1
            home[task] = machine[begin[kind] + place]
