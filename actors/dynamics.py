"""Dynamics of a setting, as the kernel uses them: outages by actor, and the durations of stragglers."""

import math
from typing import Any, TypeVar

import numpy as np

from actors.conditions import NS
from actors.kernel.compiled import entry
from actors.kernel.faults import (
    ATTEMPT,
    FAULT,
    JOB_STATE,
    NEVER_AGAIN,
    NO_EPOCH,
    OUTAGE,
    TASK_STATE,
    Faults,
    HasFaults,
    note_outages,
)
from actors.kernel.queue import NEVER, NONE, grow_queue
from actors.kernel.records import Records, records
from actors.nodes.failing import expect_failure
from actors.nodes.worlds import idle_at_start
from actors.setting import Dynamics, Setting
from clusters.failures import CENTRAL, NODE, SCHEDULER
from workloads.errors import InputError

W = TypeVar("W", bound=Any)
COUNTED = {
    "node_failures": "failures of nodes up to the end of the last task",
    "node_downtime_ns": "time that nodes were down until then, summed over nodes",
    "scheduler_failures": "failures of schedulers up to the end of the last task",
    "outages_left_out": "listed outages of schedulers that this policy does not have",
    "stragglers": "tasks that were slowed down",
}
"""What `count_dynamics` counts, with its meaning."""


def make_faults(setting: Setting, schedulers: int, central: bool) -> Faults:
    """Return what can fail: the nodes, the probe schedulers and, if there is one, the central scheduler.

    Raises:
        InputError: a scheduler, or all nodes that some jobs may use, would be down for good.
    """
    dynamics = setting.dynamics
    outages, schedule = _schedule(setting, schedulers, central)
    failing = dynamics.mtbf_s is not None
    active = failing or schedule.size > 0 or setting.preemption is not None
    nodes = setting.cluster.num_nodes
    # Besides these there may be a central scheduler, the coordinator of a network, and the listener.
    actors = records(FAULT, nodes + schedulers + 3 if active else 0)
    tasks = records(TASK_STATE, setting.workload.num_tasks if active else 0)
    jobs = records(JOB_STATE, setting.workload.num_jobs if active else 0)
    if active:
        actors.running[:], actors.heard[:] = NONE, 1
        actors.slots[:nodes] = idle_at_start(setting)
        actors.next_outage[:] = np.searchsorted(outages, np.arange(actors.size))
        actors.end_outage[:] = np.searchsorted(outages, np.arange(actors.size), side="right")
        _some_nodes_come_back(setting, outages, schedule)
    tasks.node[:], tasks.again[:], jobs.again[:] = NONE, NONE, NONE
    return Faults(
        active=int(active),
        failing=int(failing),
        between=float(dynamics.mtbf_s or 0) * NS,  # of a whole number the kernel would be compiled once more
        outage=float(dynamics.mttr_s or 0) * NS,
        origin=int(setting.workload.arrays().submit_ns[0]),
        detection=round(dynamics.detection_s * NS),
        actors=actors,
        tasks=tasks,
        jobs=jobs,
        schedule=schedule,
        attempts=records(ATTEMPT, 0),
        ended=np.zeros(1, np.int64),
    )


def no_faults(origin_ns: int) -> Faults:
    """Return the state where nothing can fail."""
    dtypes = (FAULT, TASK_STATE, JOB_STATE, OUTAGE, ATTEMPT)
    actors, tasks, jobs, schedule, attempts = (records(dtype, 0) for dtype in dtypes)
    ended = np.zeros(1, np.int64)
    return Faults(0, 0, 0.0, 0.0, origin_ns, 0, actors, tasks, jobs, schedule, attempts, ended)


def start_failures(world: W, tasks: int) -> W:
    """Schedule the first failures in a world with `tasks` tasks; return it with room for them in its queue."""
    if not world.faults.active:
        return world
    nodes = world.nodes.size
    while world.queue.heap.size - world.queue.now.heap_size[0] < world.queue.room + nodes:
        world = world._replace(queue=grow_queue(world.queue, nodes))
    world.queue.now.unfinished[0] = tasks
    with np.errstate(over="ignore"):
        expect_failures(world)
    return world


@entry
def expect_failures(w: HasFaults) -> None:
    """Schedule the first failure of every node."""
    for node in range(w.nodes.size):
        expect_failure(w, node, NO_EPOCH, w.faults.origin)


def _schedule(setting: Setting, schedulers: int, central: bool) -> tuple[np.ndarray, Records]:
    """Return [F] actors, ascending, and [F] OUTAGE; outages of actors that the policy does not have are left out."""
    dynamics, nodes = setting.dynamics, setting.cluster.num_nodes
    outages = dynamics.outages
    if outages is None:
        return np.zeros(0, np.int64), records(OUTAGE, 0)
    actor = outages.number.copy()
    actor[outages.kind == SCHEDULER] += nodes
    the_central = nodes + schedulers if central else nodes
    actor[outages.kind == CENTRAL] = the_central
    there = (outages.kind == NODE) | ((outages.kind == SCHEDULER) & (outages.number < schedulers))
    if central or schedulers == 1:
        there |= outages.kind == CENTRAL
    end_s = outages.repair_s.copy()
    of_scheduler = outages.kind != NODE
    if dynamics.failover_s is not None:
        end_s[of_scheduler] = np.minimum(
            end_s[of_scheduler], outages.fail_s[of_scheduler] + dynamics.failover_s
        )
    if np.isinf(end_s[there & of_scheduler]).any():
        raise InputError(
            "dynamics.failures: a scheduler fails for good, so its jobs would wait for ever; give it a repair_s, or set"
            " dynamics.failover"
        )
    order = np.lexsort((outages.fail_s, actor))
    order = order[there[order]]
    schedule = records(OUTAGE, order.size)
    schedule.start[:] = np.rint(outages.fail_s[order] * NS)
    schedule.end[:] = [NEVER_AGAIN if math.isinf(s) else round(s * NS) for s in end_s[order].tolist()]
    return actor[order], schedule


def _some_nodes_come_back(setting: Setting, outages: np.ndarray, schedule: Records) -> None:
    """Refuse a schedule that leaves jobs without a node for good."""
    gone = np.unique(outages[schedule.end >= NEVER_AGAIN])
    first = setting.cluster.partition(setting.long_partition)
    count = setting.cluster.num_nodes
    if (gone < count).sum() == count or (gone >= first).sum() == count - first:
        whose = "jobs" if gone.size == count else "long jobs"
        raise InputError(
            f"dynamics.failures: all nodes that {whose} may use fail for good; one of them must have a repair_s"
        )


def gone_for_good(dynamics: Dynamics) -> np.ndarray:
    """Return the nodes that fail for good by the schedule of outages."""
    outages = dynamics.outages
    if outages is None:
        return np.zeros(0, np.int64)
    return np.unique(outages.number[(outages.kind == NODE) & np.isinf(outages.repair_s)])


def durations_ns(setting: Setting) -> np.ndarray:
    """Return [T] durations of the tasks, ns, with those of stragglers made longer.

    A task that straggles does so wherever and whenever it runs, and under every scheduler: they are compared on the
    same tasks. One that would take longer than a run can (`NEVER`) takes that long, and the run is refused for it.
    """
    own = setting.workload.arrays().duration_ns
    factors = straggler_factors(setting.dynamics, own.size, setting.seed)
    if factors is None:
        return own
    longer = np.rint(np.minimum(own * factors, float(NEVER))).astype(np.int64)
    return np.where(factors > 1.0, np.maximum(longer, own), own)


def straggler_factors(dynamics: Dynamics, tasks: int, seed: int) -> np.ndarray | None:
    """Return [T] the slowdown of each task, 1 for those that do not straggle; None if there are no stragglers.

    What is above 1 has mean slowdown - 1: constant, Pareto of the second kind (Lomax), or lognormal.
    """
    if dynamics.straggler_share <= 0:
        return None
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 0x57A66])))
    straggles = random.random(tasks) < dynamics.straggler_share
    mean = dynamics.straggler_slowdown - 1.0
    if dynamics.straggler_distribution == "pareto":
        excess = random.pareto(dynamics.straggler_shape, tasks) * (mean * (dynamics.straggler_shape - 1.0))
    elif dynamics.straggler_distribution == "lognormal":
        sigma = dynamics.straggler_sigma
        excess = mean * np.exp(random.normal(-sigma * sigma / 2.0, sigma, tasks))
    else:
        excess = np.full(tasks, mean)
    return np.where(straggles, 1.0 + excess, 1.0)


def outages_of(faults: Faults) -> Faults | None:
    """Return the outages alone, without the state of tasks and jobs; None where nothing fails."""
    if not faults.failing and not faults.schedule.size:
        return None
    return faults._replace(
        tasks=records(TASK_STATE, 0), jobs=records(JOB_STATE, 0), attempts=records(ATTEMPT, 0)
    )


def _outages(setting: Setting, faults: Faults, times_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many nodes are down at each of some times, and [2, N] the failures and downtimes up to the last, ns.

    Outages do not depend on what runs, so that they are counted afterwards; no partition has to stop at those times.
    """
    nodes = np.int64(setting.cluster.num_nodes)
    change, found = np.zeros(times_ns.size + 1, np.int64), np.zeros((2, nodes), np.int64)
    if times_ns.size:
        with np.errstate(over="ignore"):
            note_outages(faults, setting.seed, nodes, times_ns.astype(np.int64), change, found)
    return np.cumsum(change[:-1]), found


def nodes_up(setting: Setting, faults: Faults, times_ns: np.ndarray) -> np.ndarray:
    """Return how many nodes are up at each of some times, in order; a node is down from its failure to its repair."""
    return setting.cluster.num_nodes - _outages(setting, faults, times_ns)[0]


def count_dynamics(setting: Setting, faults: Faults | None, last_ns: int) -> dict[str, int]:
    """Count what failed up to the end of the last task, and how many tasks straggled."""
    counters: dict[str, int] = {}
    if faults is not None:
        _, found = _outages(setting, faults, np.array([last_ns]))
        first = int(faults.actors.end_outage[: found.shape[1]].max())  # schedulers come after the nodes
        counters["node_failures"], counters["node_downtime_ns"] = (sum(row) for row in found.tolist())
        counters["scheduler_failures"] = int((faults.schedule.start[first:] <= last_ns).sum())
        if setting.dynamics.outages is not None:
            counters["outages_left_out"] = setting.dynamics.outages.kind.size - faults.schedule.size
    factors = straggler_factors(setting.dynamics, setting.workload.num_tasks, setting.seed)
    if factors is not None:
        counters["stragglers"] = int((factors > 1).sum())
    return {name: count for name, count in counters.items() if count}
