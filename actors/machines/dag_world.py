"""The state of one partition of DAG jobs: node managers of machines with several resources, and a resource manager.

A task is placed on one machine and holds its demand of every resource there until it ends. A stage is a set of tasks
with one demand; its tasks may start when all tasks of all its parents have ended. The resource manager knows of
machines what it has launched there and what messages have reported as ended (YARN; Grandl et al., OSDI 2016,
section 4).

Amounts of resources are whole numbers of billionths of their units, so that what is taken and given back is exact.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import NS, cost_of, estimated_ns, network_of, read_only
from actors.failures import Faults, durations_ns, gone_for_good, make_faults, start_failures
from actors.inputs import Inputs, make_homes, make_inputs, pipelined_edges
from actors.kernel.compiled import entry, inlined
from actors.kernel.cost import Cost
from actors.kernel.counters import Counters
from actors.kernel.queue import NEVER, NONE, Network, Queue, make_queue, wake
from actors.kernel.records import Records, first, frozen, records
from actors.machines.messages import BEAT, send_dag_arrival
from actors.machines.overuse import Overuse, make_overuse
from actors.nodes.preemption import make_preemption
from actors.nodes.world import ACTOR, JOB_INFO, TASK_RECORD, Preemption, make_entries
from actors.setting import Setting
from actors.stages import Stages, make_stages
from workloads.errors import InputError

COUNTERS = Counters(network=True)
N_LAUNCHES = COUNTERS.add("launches", "tasks sent to a machine")
N_MATCHES = COUNTERS.add("matches", "times the resource manager matched tasks to what is free")
N_LEFTOVER = COUNTERS.add("leftover_launches", "tasks launched by the leftover part, above a job's share")
N_BEATS = COUNTERS.add("heartbeats", "heartbeats of machines")
N_TASKS_LOST = COUNTERS.add("tasks_lost", "running tasks that a machine's failure ended")
N_LOST_NS = COUNTERS.add(
    "lost_work_ns", "time that the tasks of `tasks_lost`, and of `run_again`, had run or fetched"
)
# Behind `lost_work_ns`, as in the world of jobs: nodes of both add to these three (actors/nodes/failing.py).
COUNTERS.add("lost_work_wholes", "a part of `lost_work_ns`, which results have with it")
N_LAUNCHES_LOST = COUNTERS.add(
    "placements_lost", "tasks lost before they ran: sent to a machine that is down"
)
N_SENT_AGAIN = COUNTERS.add("sent_again", "launches in place of what was lost")
N_FETCHES_FAILED = COUNTERS.add(
    "fetches_failed", "a part of `tasks_lost`: tasks that fetched input which was lost with another machine"
)
N_RUN_AGAIN = COUNTERS.add(
    "run_again", "tasks that ran again after they had ended, as their output was lost with their machine"
)
N_EVICTIONS = COUNTERS.add("evictions", "running tasks that made room for others of higher priority")


class Progress(NamedTuple):
    """First start, last end and unfinished tasks of jobs; J jobs."""

    start: np.ndarray
    finish: np.ndarray
    unfinished: np.ndarray


class Tasks(NamedTuple):
    """T tasks of S stages: what managers know of them besides `Stages`."""

    duration: np.ndarray  # [T] ns, read-only
    demand: np.ndarray  # [S, R] of a task
    estimate: np.ndarray  # [S] of a task's duration, ns
    ready: np.ndarray  # [S] tasks that may be launched
    head: np.ndarray  # [S] the first of them, NONE: none
    tail: np.ndarray  # [S]
    next: np.ndarray  # [T] the next task of its stage that may be launched
    # [S] tasks; empty where no edge is pipelined
    unlaunched: np.ndarray


class Machines(NamedTuple):
    """N machines."""

    capacity: np.ndarray  # [N, R]
    free: np.ndarray  # [N, R] as the resource manager knows it
    total: np.ndarray  # [K, R] of all machines of a manager


class DagWorld(NamedTuple):
    """The state of node managers and K resource managers; N machines, J jobs, S stages, T tasks, R resources."""

    queue: Queue
    network: Network
    work: Records  # [J] JOB_INFO
    nodes: Records  # [N] ACTOR, of which node managers use `seq` alone
    entries: Records  # an empty pool: machines have no queues of tasks
    counts: np.ndarray  # [len(COUNTERS)]
    task_records: Records  # [T] TASK_RECORD, empty where tasks are not recorded
    cost: Cost
    faults: Faults
    jobs: Progress
    stages: Stages
    machines: Machines
    tasks: Tasks
    first_stage: np.ndarray  # [J + 1]
    manager: np.ndarray  # [N] whose machine it is, 0 to K - 1; actor N + k is manager k
    first_node: np.ndarray  # [K + 1] where the machines of each begin
    preemption: Preemption
    inputs: Inputs
    overuse: Overuse
    heartbeat: int  # ns between two heartbeats of a machine; 0: machines tell each end at once
    seed: int

    def records_by_task(self) -> Records:
        """Return the records of tasks in the order of the workload."""
        return self.task_records


def build_dag_world(
    setting: Setting, demand: np.ndarray, capacity: np.ndarray, heartbeat_s: float, managers: int
) -> DagWorld:
    """Build machines and K resource managers, and the messages that the first jobs arrive.

    Actor ids: machines 0 to N - 1, the managers, the network's coordinator (not used without one; not there without
    network under a single manager), the listener. Each manager has a share of the machines, in order and as equal as
    can be; jobs go to the managers in turn.

    Raises:
        InputError: there are more managers than machines, or a task fits on no machine of its manager.
    """
    arrays = setting.workload.arrays()
    nodes, jobs = capacity.shape[0], arrays.submit_ns.size
    first_node = nodes * np.arange(managers + 1) // managers
    _check_managers(setting, demand, capacity, first_node)
    manager = np.repeat(np.arange(managers), np.diff(first_node))
    has_network = setting.switch.scheduler != "none"
    schedulers = 2 if managers == 1 and not has_network else managers + 2
    table = records(ACTOR, nodes + schedulers)
    table.head[:] = NONE
    work = records(JOB_INFO, jobs)
    work.submit[:], work.home[:] = arrays.submit_ns, nodes + np.arange(jobs) % managers
    work.first_task[:], work.end_task[:] = arrays.first_task[:-1], arrays.first_task[1:]
    work = frozen(work)
    one = managers == 1
    faults = make_faults(setting, schedulers=0 if one else managers, central=one)
    inputs = make_inputs(setting, arrays, make_homes(setting, arrays, demand, capacity, first_node))
    world = DagWorld(
        queue=make_queue(table.seq, room=nodes + 64),
        network=network_of(setting),
        work=work,
        nodes=first(table, nodes),
        entries=make_entries(2),
        counts=np.zeros(len(COUNTERS), np.int64),
        task_records=records(TASK_RECORD, 0),
        cost=cost_of(setting, schedulers, int(work.submit[-1])),
        faults=faults,
        jobs=Progress(np.full(jobs, NEVER), np.full(jobs, NONE), np.diff(arrays.first_task)),
        stages=make_stages(arrays, inputs, by_task=True, can_fail=bool(faults.active)),
        tasks=_make_tasks(setting, demand),
        machines=Machines(
            read_only(capacity), capacity.copy(), read_only(np.add.reduceat(capacity, first_node[:-1]))
        ),
        first_stage=arrays.first_stage,
        manager=read_only(manager),
        first_node=read_only(first_node),
        preemption=make_preemption(setting, demand.shape[1]),
        inputs=inputs,
        overuse=make_overuse(setting),
        heartbeat=round(heartbeat_s * NS),
        seed=setting.seed,
    )
    expect_first(world)
    return start_failures(world, arrays.duration_ns.size)


def _make_tasks(setting: Setting, demand: np.ndarray) -> Tasks:
    """Return all tasks, of which none has run."""
    arrays = setting.workload.arrays()
    of_stage = np.diff(arrays.stage_first_task)
    return Tasks(
        duration=read_only(durations_ns(setting)),
        demand=read_only(demand),
        estimate=read_only(estimated_ns(arrays.stage_mean_ns, setting.estimates, setting.seed)),
        ready=np.zeros(of_stage.size, np.int64),
        head=np.full(of_stage.size, NONE),
        tail=np.full(of_stage.size, NONE),
        next=np.full(arrays.duration_ns.size, NONE),
        unlaunched=of_stage.copy() if pipelined_edges(setting, arrays).size else np.zeros(0, np.int64),
    )


def _check_managers(
    setting: Setting, demand: np.ndarray, capacity: np.ndarray, first_node: np.ndarray
) -> None:
    """Refuse managers without machines, or whose machines all fail for good, and tasks that fit on none of them."""
    managers, arrays = first_node.size - 1, setting.workload.arrays()
    name = f"parameter managers of {setting.scheduler.name}"
    if managers > capacity.shape[0]:
        raise InputError(f"{name}: {managers} for {capacity.shape[0]} machines; want at most one for each")
    job = np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_stage))
    for manager in range(managers if managers > 1 else 0):
        own = np.flatnonzero(job % managers == manager)
        machines = np.arange(first_node[manager], first_node[manager + 1])
        if own.size and np.isin(machines, gone_for_good(setting.dynamics)).all():
            raise InputError(
                f"dynamics.failures: all machines of manager {manager}, {machines[0]} to {machines[-1]}, fail for good;"
                " one of them must have a repair_s"
            )
        fits = np.zeros(own.size, bool)
        for kind in np.unique(capacity[first_node[manager] : first_node[manager + 1]], axis=0):
            fits |= (demand[own] <= kind).all(axis=1)
        if not fits.all():
            stage = own[~fits][0]
            raise InputError(
                f"{name}: tasks of job {job[stage]}, stage {stage - arrays.first_stage[job[stage]]}, fit on no machine"
                f" of manager {manager}, {first_node[manager]} to {first_node[manager + 1] - 1}; want fewer managers"
            )


@entry
def expect_first(w: DagWorld) -> None:
    """Schedule the first job of each manager, and the machines' first heartbeats, spread over a period.

    Machines of a manager without jobs send none: no last job would end them.
    """
    for job in range(min(w.first_node.size - 1, w.work.size)):
        send_dag_arrival(w, w.work.submit[job], w.work.home[job], job)
    if w.heartbeat > 0:
        for node in range(w.nodes.size):
            if w.manager[node] < w.work.size:
                wake(w, first_beat(w, node), node, BEAT, NONE, NONE, NONE)


@inlined
def first_beat(w: DagWorld, node: int) -> int:
    """Return when the first heartbeat of a machine is, ns: they are spread over a period."""
    return w.work.submit[0] + (node * w.heartbeat) // w.nodes.size
