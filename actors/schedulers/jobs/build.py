"""The world of a job scheduler at time 0, made from a setting."""

from collections.abc import Callable

import numpy as np

from actors.conditions import NS, cost_of, counted_priorities, estimated_ns, most_tasks, network_of, read_only
from actors.constraints import make_eligible
from actors.failures import durations_ns, make_faults, start_failures
from actors.inputs import MESSAGES_A_FETCH, can_lose_outputs, make_inputs
from actors.kernel.compiled import entry
from actors.kernel.messages import send_arrival
from actors.kernel.queue import MOST_ACTORS, NEVER, NONE, SPARE, make_queue
from actors.kernel.records import Records, first, frozen, records
from actors.nodes.messages import PLACE_BITS
from actors.nodes.preemption import make_preemption
from actors.nodes.world import ACTOR, COUNTERS, JOB, JOB_INFO, TASK_RECORD, Rules, World, make_entries
from actors.resources import make_room
from actors.setting import Setting
from actors.stages import make_stages
from workloads.dags import DagArrays, no_stages
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
    # With a network its coordinator is the actor before the listener.
    others = 2 if setting.switch.scheduler == "none" else 3
    table = records(ACTOR, nodes + schedulers + others)
    if table.size > MOST_ACTORS:
        raise InputError(f"{table.size} actors; at most {MOST_ACTORS} have an id")

    work = _describe(setting, probing, nodes + schedulers, central_jobs)
    jobs = records(JOB, work.size)
    jobs.next_task[:] = work.first_task
    jobs.unfinished[:] = work.end_task - work.first_task
    jobs.start[:], jobs.finish[:], jobs.version[:] = NEVER, NONE, NONE
    dag = no_stages() if setting.dag is None else setting.dag.arrays()
    inputs = make_inputs(setting, dag)
    stages = make_stages(
        dag, inputs, by_task=False, can_fail=can_lose_outputs(inputs), schedulers=table.size - nodes
    )
    most_children = int(np.diff(stages.first_child).max(initial=0))

    sends = max(most_sends(most_tasks(setting)), most_children, int(MESSAGES_A_FETCH))
    if can_lose_outputs(inputs):  # one event may have all schedulers hand tasks out again
        sends = max(sends, stages.lineage.due.size)
        rules = rules._replace(names_tasks=1)
        if most_tasks(setting) > 1 << PLACE_BITS:
            raise InputError(
                f"a stage of {most_tasks(setting):,} tasks; over a network whose machines fail want at most"
                f" {1 << PLACE_BITS:,}"
            )
    world = World(
        queue=make_queue(table.seq, room=sends + int(SPARE)),
        network=network_of(setting),
        work=work,
        duration=read_only(durations_ns(setting)),
        nodes=first(table, nodes),
        entries=make_entries(),
        rules=rules,
        jobs=jobs,
        counts=np.zeros(len(COUNTERS), np.int64),
        task_records=records(TASK_RECORD, 0),
        cost=cost_of(setting, schedulers + others, int(work.submit[-1])),
        faults=make_faults(setting, schedulers, central_jobs is not None),
        eligible=make_eligible(setting),
        room=make_room(setting),
        priority=read_only(counted_priorities(setting)),
        preemption=make_preemption(setting, len(setting.resources)),
        speed=read_only(setting.cluster.attribute("speed") if setting.machine_speed else np.zeros(0)),
        stages=stages,
        inputs=inputs,
        seed=setting.seed,
    )
    arriving = _arriving(dag, work.size)
    homes, of_home = np.unique(work.home[arriving], return_index=True)
    expect_arrivals(world, homes, arriving[of_home])
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
    """Return [J] bool: the jobs that are long by their estimate; the stages of a DAG job are all what that is."""
    dag = setting.dag
    mean_ns = (setting.workload if dag is None else dag).arrays().mean_ns
    is_long = estimated_ns(mean_ns, setting.estimates, setting.seed) > setting.short_cutoff_s * NS
    return is_long if dag is None else is_long[job_of_stage(dag.arrays())]


def _describe(setting: Setting, schedulers: int, central: int, central_jobs: np.ndarray | None) -> Records:
    """Return [J] JOB_INFO: the descriptions of the jobs, and the scheduler of each."""
    arrays = setting.workload.arrays()
    nodes, count = setting.cluster.num_nodes, arrays.submit_ns.size
    work = records(JOB_INFO, count)
    work.submit[:] = arrays.submit_ns
    work.first_task[:], work.end_task[:] = arrays.first_task[:-1], arrays.first_task[1:]
    work.estimate[:] = estimated_ns(arrays.mean_ns, setting.estimates, setting.seed)
    work.is_long[:] = long_jobs(setting)
    mean_ns, arriving = arrays.mean_ns, np.arange(count)
    if setting.dag is not None:  # all stages of a DAG job are in its class
        dag = setting.dag.arrays()
        mean_ns, arriving = dag.mean_ns[job_of_stage(dag)], _arriving(dag, count)
    work.report_class[:] = mean_ns > setting.short_cutoff_s * NS
    work.home[:] = nodes + turns(setting) % schedulers
    if central_jobs is not None:
        work.home[central_jobs] = central
    by_home = arriving[np.argsort(work.home[arriving], kind="stable")]
    same = work.home[by_home[1:]] == work.home[by_home[:-1]]
    work.next_job[:] = NONE
    work.next_job[by_home[:-1][same]] = by_home[1:][same]
    return frozen(work)


def turns(setting: Setting) -> np.ndarray:
    """Return [J] by which number jobs go to schedulers in turn: their own, or of stages that of their DAG job."""
    return np.arange(setting.num_jobs) if setting.dag is None else job_of_stage(setting.dag.arrays())


def name_of(setting: Setting, job: int) -> str:
    """Return what a job is called in messages, by its row."""
    if setting.dag is None:
        return f"job {setting.workload.jobs['job_id'][job].as_py()}"
    stages = setting.dag.stages
    return f"stage {stages['stage'][job].as_py()} of job {stages['job_id'][job].as_py()}"


def job_of_stage(dag: DagArrays) -> np.ndarray:
    """Return [S] the DAG job of each stage."""
    return np.repeat(np.arange(dag.submit_ns.size), np.diff(dag.first_stage))


def _arriving(dag: DagArrays, jobs: int) -> np.ndarray:
    """Return the jobs that arrive when they are submitted: all, or of stages those that wait for none."""
    has_none = np.diff(dag.first_parent) == 0
    return np.flatnonzero(has_none) if has_none.size > 0 else np.arange(jobs)
