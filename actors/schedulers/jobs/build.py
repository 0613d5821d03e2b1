"""The world of a job scheduler at time 0, made from a setting."""

from collections.abc import Callable

import numpy as np

from actors.conditions import NS, cost_of, estimated_ns, most_tasks, network_of, read_only
from actors.constraints import make_eligible
from actors.dynamics import durations_ns, expect_failures, make_faults
from actors.kernel.compiled import entry
from actors.kernel.messages import send_arrival
from actors.kernel.queue import MOST_ACTORS, grow_queue, make_queue
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
from actors.setting import Setting
from workloads.errors import InputError


def fifo_rules(report_start: bool = False) -> Rules:
    """Return the rules of nodes that serve their queue in order of arrival."""
    return Rules(shortest_first=0, sticky=0, slack=0.0, live=0, bound_all=0, report_start=report_start)


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
    it stands for all schedulers where they receive the same reports at the same time.
    """
    nodes, probing = setting.cluster.num_nodes, schedulers
    schedulers += coordinators
    table = records(ACTOR, nodes + schedulers + 2)
    if table.size > MOST_ACTORS:
        raise InputError(f"{table.size} actors; at most {MOST_ACTORS} have an id")
    table.head[:], table.tail[:], table.version[:], table.running[:] = NONE, NONE, NONE, NONE
    table.idle[:nodes] = setting.cluster.slots()

    work = _describe(setting, probing, nodes + schedulers, central_jobs)
    jobs = records(JOB, work.size)
    jobs.next_task[:] = work.first_task
    jobs.unfinished[:] = work.end_task - work.first_task
    jobs.start[:], jobs.finish[:], jobs.version[:] = NEVER, NONE, NONE

    room = most_sends(most_tasks(setting)) + 8
    faults = make_faults(setting, schedulers, central_jobs is not None)
    world = World(
        queue=make_queue(table.seq, room=room),
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
        faults=faults,
        eligible=make_eligible(setting),
        speed=read_only(setting.cluster.attribute("speed") if setting.machine_speed else np.zeros(0)),
        seed=setting.seed,
    )
    homes, first_jobs = np.unique(work.home, return_index=True)
    expect_arrivals(world, homes, first_jobs)
    if faults.active:
        while world.queue.heap.size - world.queue.now.heap_size[0] < room + nodes:
            world = world._replace(queue=grow_queue(world.queue, nodes))
        world.queue.now.unfinished[0] = world.duration.size
        with np.errstate(over="ignore"):
            expect_failures(world)
    return world


@entry
def expect_arrivals(w: World, homes: np.ndarray, first_jobs: np.ndarray) -> None:
    """Schedule the first arrival at every scheduler."""
    for i in range(homes.size):
        job = first_jobs[i]
        send_arrival(w, w.work.submit[job], homes[i], job)


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
