"""The world of a job scheduler at time 0, made from a setting."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from actors.constraints import make_eligible
from actors.dynamics import durations_ns, expect_failures, make_faults
from actors.kernel.compiled import entry
from actors.kernel.cost import FIXED, MEASURED, NO_COST, RECORDED, Cost, check_prices, make_cost
from actors.kernel.kinds import ARRIVAL
from actors.kernel.queue import MOST_ACTORS, WHOLE, Network, grow_queue, make_queue, records, wake
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
from actors.setting import Estimates, Setting
from workloads.errors import InputError

NS = 1_000_000_000
A = TypeVar("A", bound=np.ndarray)


def fifo_rules(report_start: bool = False) -> Rules:
    """Return the rules of nodes that serve their queue in order of arrival."""
    return Rules(shortest_first=0, sticky=0, slack=0.0, live=0, bound_all=0, report_start=report_start)


def build_world(
    setting: Setting,
    rules: Rules,
    *,
    most_sends: Callable[[int], int],
    schedulers: int,
    central_jobs: np.ndarray | None = None,
) -> World:
    """Make the world at time 0: actors, jobs and the first arrivals.

    Args:
        most_sends: tasks of a job -> messages that handling one event of such a job may send.
        schedulers: probe schedulers, which take jobs in turn.
        central_jobs: [J] bool, the jobs that go to the central scheduler instead.

    Actor ids: nodes 0 to N - 1, probe schedulers from N, then the central scheduler, then the listener:
    it stands for all schedulers where they receive the same reports at the same time.
    """
    nodes = setting.cluster.num_nodes
    table = records(ACTOR, nodes + schedulers + 2)
    if table.size > MOST_ACTORS:
        raise InputError(f"{table.size} actors; at most {MOST_ACTORS} have an id")
    table.head[:], table.tail[:], table.version[:], table.running[:] = NONE, NONE, NONE, NONE
    table.idle[:nodes] = setting.cluster.slots()

    work = _describe(setting, schedulers, central_jobs)
    jobs = records(JOB, work.size)
    jobs.next_task[:] = work.first_task
    jobs.unfinished[:] = work.end_task - work.first_task
    jobs.start[:], jobs.finish[:], jobs.version[:] = NEVER, NONE, NONE

    room = most_sends(most_tasks(setting)) + 8
    faults = make_faults(setting, schedulers, central_jobs is not None)
    world = World(
        queue=make_queue(table.seq, room=room),
        network=_network(setting),
        work=work,
        duration=read_only(durations_ns(setting)),
        nodes=table[:nodes].view(np.recarray),
        entries=make_entries(),
        rules=rules,
        jobs=jobs,
        counts=np.zeros(len(COUNTERS), np.int64),
        task_records=records(TASK_RECORD, 0),
        cost=_cost(setting, schedulers + 2, int(work.submit[-1])),
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
        wake(w, w.work.submit[job], homes[i], ARRIVAL, job, NONE, NONE)


def estimated_ns(mean_ns: np.ndarray, estimates: Estimates, seed: int) -> np.ndarray:
    """[J] estimated task durations, ns, of 36 years at the most (Hawk, ATC'15, section 4.8, for the random error)."""
    factor: float | np.ndarray = 1.0
    if estimates.error == "constant":
        factor = 1.0 + estimates.size
    elif estimates.error == "random":
        draws = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 0xE57]))).random(
            mean_ns.size
        )
        factor = 1.0 + estimates.size * (2.0 * draws - 1.0)
    return np.clip(np.rint(mean_ns * factor), 0, float(WHOLE)).astype(np.int64)


def long_jobs(setting: Setting) -> np.ndarray:
    """Return [J] bool: the jobs that are long by their estimate."""
    mean_ns = setting.workload.arrays().mean_ns
    return estimated_ns(mean_ns, setting.estimates, setting.seed) > setting.short_cutoff_s * NS


def _describe(setting: Setting, schedulers: int, central_jobs: np.ndarray | None) -> np.recarray:
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
        work.home[central_jobs] = nodes + schedulers
    by_home = np.argsort(work.home, kind="stable")
    same = work.home[by_home[1:]] == work.home[by_home[:-1]]
    work.next_job[:] = NONE
    work.next_job[by_home[:-1][same]] = by_home[1:][same]
    return read_only(work)


def read_only(column: A) -> A:
    """Return the array as read-only, as arrays from the object store are: the compiler sees one type."""
    column.flags.writeable = False
    return column


def _network(setting: Setting) -> Network:
    """The network in ns."""
    network = setting.network
    delay = round(network.delay_s * NS)
    cross = delay if network.cross_rack_delay_s is None else round(network.cross_rack_delay_s * NS)
    if cross < delay:
        raise InputError(
            f"network.cross_rack_delay ({network.cross_rack_delay_s} s) is less than network.delay"
            f" ({network.delay_s} s), the delay within a rack; make it at least that"
        )
    varies = int(cross != delay or network.spread_s > 0)
    return Network(
        delay, cross, network.spread_s * NS, read_only(setting.cluster.racks()), setting.seed, varies
    )


def _cost(setting: Setting, schedulers: int, last_arrival: int) -> Cost:
    """The cost model in ns."""
    costs = setting.costs
    per_message, per_job, per_task = (
        round(each * NS) for each in (costs.per_message_s, costs.per_job_s, costs.per_task_s)
    )
    check_prices(
        ("cost.per_message", per_message, 1),
        ("cost.per_job", per_job, 1),
        ("cost.per_task", per_task, most_tasks(setting)),
    )
    models = {"none": NO_COST, "fixed": FIXED, "recorded": RECORDED, "measured": MEASURED}
    return make_cost(
        models[costs.model],
        schedulers,
        per_message=per_message,
        per_job=per_job,
        per_task=per_task,
        recorded=costs.recorded,
        last_arrival=last_arrival,
    )


def most_tasks(setting: Setting) -> int:
    """Tasks of the largest job."""
    return int(np.diff(setting.workload.arrays().first_task).max())
