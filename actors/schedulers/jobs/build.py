"""The world of a job scheduler at time 0, made from a setting."""

from collections.abc import Callable

import numpy as np

from actors.conditions import (
    NS,
    cost_of,
    counted_priorities,
    estimated_ns,
    make_preemption,
    most_tasks,
    network_of,
    read_only,
)
from actors.constraints import make_eligible
from actors.dynamics import durations_ns, make_faults, start_failures
from actors.kernel.compiled import entry
from actors.kernel.messages import send_arrival
from actors.kernel.queue import MOST_ACTORS, make_queue
from actors.kernel.records import Records, first, frozen, records
from actors.kernel.world import (
    ACTOR,
    COUNTERS,
    JOB,
    JOB_INFO,
    NEVER,
    NONE,
    TASK_RECORD,
    Rules,
    World,
    make_entries,
)
from actors.resources import make_room
from actors.setting import Setting
from workloads.errors import InputError


def build_world(
    setting: Setting,
    rules: Rules,
    *,
    most_sends: Callable[[int], int],
    schedulers: int,
    coordinators: int = 0,
    central_jobs: np.ndarray | None = None,
) -> World:
    """Make the world at time 0: actors, jobs and the first arrivals.

    Args:
        most_sends: tasks of a job -> messages that handling one event of such a job may send.
        schedulers: probe schedulers, which take jobs in turn.
        coordinators: schedulers to which no job comes.
        central_jobs: [J] bool, the jobs that go to the central scheduler instead.

    Actor ids: nodes 0 to N - 1, probe schedulers from N, coordinators, the central scheduler, the listener:
    it stands for all schedulers where they receive the same reports at the same time. The rows of nodes are zero, until
    the partition that has them starts them (`actors.worlds.Worlds.start_nodes`).
    """
    nodes, probing = setting.cluster.num_nodes, schedulers
    schedulers += coordinators
    table = records(ACTOR, nodes + schedulers + 2)
    if table.size > MOST_ACTORS:
        raise InputError(f"{table.size} actors; at most {MOST_ACTORS} have an id")

    work = _describe(setting, probing, nodes + schedulers, central_jobs)
    jobs = records(JOB, work.size)
    jobs.next_task[:] = work.first_task
    jobs.unfinished[:] = work.end_task - work.first_task
    jobs.start[:], jobs.finish[:], jobs.version[:] = NEVER, NONE, NONE

    world = World(
        queue=make_queue(table.seq, room=most_sends(most_tasks(setting)) + 8),
        network=network_of(setting),
        work=work,
        duration=read_only(durations_ns(setting)),
        nodes=first(table, nodes),
        entries=make_entries(),
        rules=rules,
        jobs=jobs,
        counts=np.zeros(len(COUNTERS), np.int64),
        task_records=records(TASK_RECORD, 0),
        cost=cost_of(setting, schedulers + 2, int(work.submit[-1])),
        faults=make_faults(setting, schedulers, central_jobs is not None),
        eligible=make_eligible(setting),
        room=make_room(setting),
        priority=read_only(counted_priorities(setting)),
        preemption=make_preemption(setting, len(setting.resources)),
        speed=read_only(setting.cluster.attribute("speed") if setting.machine_speed else np.zeros(0)),
        seed=setting.seed,
    )
    homes, first_jobs = np.unique(work.home, return_index=True)
    expect_arrivals(world, homes, first_jobs)
    return start_failures(world, world.duration.size)


@entry
def expect_arrivals(w: World, homes: np.ndarray, first_jobs: np.ndarray) -> None:
    """Schedule the first arrival at every scheduler."""
    for i in range(homes.size):
        job = first_jobs[i]
        send_arrival(w, w.work.submit[job], homes[i], job)


def heartbeat_ns(setting: Setting) -> int:
    """Return the parameter `heartbeat_s`, ns.

    Raises:
        InputError: it is not longer than the network delay.
    """
    heartbeat_s, network = setting.parameters["heartbeat_s"], setting.network
    delay_s = max(network.delay_s, network.cross_rack_delay_s or 0.0)
    if heartbeat_s <= delay_s:
        raise InputError(
            f"parameter heartbeat_s of {setting.scheduler.name}: {heartbeat_s} s is not longer than the network delay"
            f" ({delay_s} s); reports would pile up"
        )
    return round(heartbeat_s * NS)


def long_jobs(setting: Setting) -> np.ndarray:
    """Return [J] bool: the jobs that are long by their estimate."""
    mean_ns = setting.workload.arrays().mean_ns
    return estimated_ns(mean_ns, setting.estimates, setting.seed) > setting.short_cutoff_s * NS


def _describe(setting: Setting, schedulers: int, central: int, central_jobs: np.ndarray | None) -> Records:
    """Return [J] JOB_INFO: the descriptions of the jobs, and the scheduler of each."""
    arrays = setting.workload.arrays()
    nodes, count = setting.cluster.num_nodes, arrays.submit_ns.size
    work = records(JOB_INFO, count)
    work.submit[:] = arrays.submit_ns
    work.first_task[:], work.end_task[:] = arrays.first_task[:-1], arrays.first_task[1:]
    work.estimate[:] = estimated_ns(arrays.mean_ns, setting.estimates, setting.seed)
    work.is_long[:] = long_jobs(setting)
    work.report_class[:] = arrays.mean_ns > setting.short_cutoff_s * NS
    work.home[:] = nodes + np.arange(count) % schedulers
    if central_jobs is not None:
        work.home[central_jobs] = central
    by_home = np.argsort(work.home, kind="stable")
    same = work.home[by_home[1:]] == work.home[by_home[:-1]]
    work.next_job[:] = NONE
    work.next_job[by_home[:-1][same]] = by_home[1:][same]
    return frozen(work)
