"""The state of schedulers of gangs at time 0, and the parameters that they share."""

import numpy as np

from actors.conditions import NS, read_only
from actors.kernel.records import records
from actors.kernel.world import NEVER, NONE, Rules, World
from actors.scheduler import Parameter
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.central_queue import make_queues
from actors.schedulers.jobs.gang_ends import make_ends
from actors.schedulers.jobs.gang_outlook import PLACED_ROW, make_outlook
from actors.schedulers.jobs.gang_room import make_room
from actors.schedulers.jobs.gangs import GANG, QUEUE, SENT, Gangs
from actors.setting import Setting
from clusters.capacity import needs_of
from clusters.failures import NODE
from clusters.feasibility import check_widths, gangs_of, wide_gangs
from clusters.matching import Needs, billionths
from workloads.errors import InputError
from workloads.requests import requested_s

GANGS = Parameter(
    "gangs",
    "stated",
    "choice",
    "which jobs are gangs: those of which the workload states it, or each; tasks of other jobs start one by one",
    choices=("stated", "all"),
)
PLAN_BY = Parameter(
    "plan_by",
    "requested",
    "choice",
    "how long the scheduler expects a job to run: as its user has requested where that is stated, or as estimated",
    choices=("requested", "estimate"),
)


def build_gangs(setting: Setting, reserves: bool = False) -> tuple[World, Gangs]:
    """Make the world and the state that all schedulers of gangs have, at time 0.

    `reserves`: the scheduler makes reservations, which are of nodes where some gang states on how many it runs.

    Raises:
        InputError: a gang is wider than the cluster.
    """
    nodes, slots = gang_nodes(setting), setting.cluster.slots().astype(np.int64)
    tasks, by_node = np.diff(setting.workload.arrays().first_task), bool(setting.resources)
    most = min(most_at_once(setting), setting.workload.num_tasks)
    sends = most if setting.preemption is None else 2 * most  # what starts, and what makes room
    world = build_world(setting, Rules(names_tasks=1), most_sends=lambda _: sends, schedulers=1)
    demand, of_job, free = world.room.demand, world.room.of_job, world.room.capacity.copy()
    if not setting.resources:
        by_node = world.preemption.most > 0 or (reserves and bool((nodes > 0).any()))
        demand, of_job = np.ones((1, 1), np.int64), np.zeros(len(tasks) if by_node else 0, np.int64)
        free = slots[:, None].copy() if by_node else np.zeros((0, 1), np.int64)
    demand = read_only(demand)
    jobs = records(GANG, world.work.size)
    jobs.nodes[:] = nodes
    # To the scheduler a task holds its slot from its placement until its end is reported: two messages longer.
    jobs.holds[:] = np.maximum(expected_ns(setting, world.work.estimate) + 2 * world.network.cross_ns, 1)
    queue, room = records(QUEUE, 1), make_room(slots)
    queue.first[0], queue.last[0], queue.promised[0] = NONE, NONE, NONE
    sent = records(SENT, world.duration.size if world.faults.active else 0)
    sent.node[:] = NONE
    rows = setting.workload.num_tasks
    if world.faults.active:  # scratch space: see `Gangs.placed`
        rows += int(tasks[nodes == NONE].max(initial=0)) + 1
    order = setting.parameters.get("order", "arrival")
    at_once = np.where(nodes != NONE, tasks, 1)
    tenants = make_queues(setting, world.priority, order, at_once=at_once)
    starts = int(np.where(nodes != NONE, 1, tasks).sum())
    return world, Gangs(
        jobs,
        queue,
        room,
        make_ends(min(most, starts)),
        int(by_node),
        read_only(of_job),
        make_outlook(demand, free, room.up),
        records(PLACED_ROW, rows if by_node else 0),
        sent,
        make_outlook(demand, free.copy() if world.preemption.most else free[:0], room.up),
        tenants,
        order != "arrival",
        np.zeros(tenants.rows.size, np.bool_),
    )


def most_at_once(setting: Setting) -> int:
    """Return the most tasks that can run at once: slots, or by the resource of which the smallest tasks fit fewest."""
    if not setting.resources:
        return setting.cluster.total_slots
    needs = needs_of(setting.workload, setting.cluster, setting.resources)
    least = billionths(needs.demand[np.unique(needs.of_job)]).min(axis=0)
    held = least > 0
    if not held.any():
        return setting.workload.num_tasks
    return int((billionths(needs.capacity)[:, held] // least[held]).sum(axis=0).min())


def gang_nodes(setting: Setting) -> np.ndarray:
    """Return [J] the nodes of each gang, 0 for any, and `NO_GANG` for a job that is no gang.

    Raises:
        InputError: a gang does not fit on the whole cluster, or does not without the nodes that fail for good.
    """
    workload, cluster = setting.workload, setting.cluster
    nodes = gangs_of(workload, setting.parameters["gangs"])
    needs = needs_of(workload, cluster, setting.resources) if setting.resources else None
    check_widths(workload, nodes, cluster, needs)
    _fit_on_lasting(setting, nodes, needs)
    return np.minimum(nodes, np.diff(workload.arrays().first_task))


def _fit_on_lasting(setting: Setting, nodes: np.ndarray, needs: Needs | None) -> None:
    """Refuse outages after which a gang may wait for ever; `nodes` as of `gangs_of`."""
    outages, workload = setting.dynamics.outages, setting.workload
    if outages is None:
        return
    gone = outages.number[(outages.kind == NODE) & np.isinf(outages.repair_s)]
    if needs is None:
        slots = setting.cluster.slots()[:, None].astype(float)
        needs = Needs(("slots",), np.ones((1, 1)), np.zeros(workload.num_jobs, np.int64), slots, True)
    lasting = needs._replace(capacity=np.delete(needs.capacity, gone, axis=0))
    wide = wide_gangs(workload, nodes, setting.cluster, lasting)
    if gone.size and wide.size:
        job_id, tasks = (workload.jobs[name][int(wide[0])].as_py() for name in ("job_id", "num_tasks"))
        raise InputError(
            f"dynamics.failures: {np.unique(gone).size} nodes fail for good, and the {tasks:,} tasks of job {job_id},"
            " which start at once, do not fit on the others; give some of them a repair_s"
        )


def expected_ns(setting: Setting, estimate_ns: np.ndarray) -> np.ndarray:
    """Return [J] how long the tasks of each job are expected to run, ns."""
    if setting.parameters.get("plan_by") != "requested":
        return estimate_ns
    asked = requested_s(setting.workload.jobs)
    return np.where(np.isnan(asked), estimate_ns, np.nan_to_num(np.minimum(asked * NS, NEVER))).astype(
        np.int64
    )
