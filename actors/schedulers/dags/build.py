"""The world and the resource manager of DAG jobs at time 0, from the three parts that a policy names."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from actors.conditions import estimated_ns, read_only
from actors.kernel.compiled import entry
from actors.kernel.queue import NEVER, NONE
from actors.machines.dag_world import DagWorld, build_dag_world
from actors.machines.launching import Manager
from actors.machines.matching import BLOCK, IN_ORDER, LEAST_LEFT_FIRST, NO_LEFTOVER, PACKING_FIRST, Matcher
from actors.machines.packing import Packing
from actors.machines.planning import Plan
from actors.machines.progress import make_runnable
from actors.machines.shares import DRF, FAIR, LEAST_LEFT, QUEUES, SHORTEST
from actors.scheduler import Parameter
from actors.schedulers.dags.job_plans import needs_and_capacity, order_in_plans, priorities
from actors.setting import Setting
from workloads.dags import DagWorkload, stage_levels
from workloads.sums import group_sums

INTER = {"drf": DRF, "fair": FAIR, "shortest": SHORTEST, "least-left": LEAST_LEFT, "queues": QUEUES}
LEFTOVERS = {
    "none": NO_LEFTOVER,
    "in-order": IN_ORDER,
    "srtf": LEAST_LEFT_FIRST,
    "packing": PACKING_FIRST,
}

INTRA = Parameter(
    "intra_job",
    "breadth-first",
    "choice",
    "order of the stages of a job: by their level, by the longest path to the end of the job, or as in dagps",
    choices=("breadth-first", "critical-path", "dagps"),
)
LEFTOVER = Parameter(
    "leftover",
    "in-order",
    "choice",
    "what is free when no task fits into its job's share goes to jobs in the same order, or to none",
    choices=tuple(LEFTOVERS),
)
HEARTBEAT = Parameter(
    "heartbeat_s",
    0.0,
    "duration",
    "time between two heartbeats of a machine, which then reports ended tasks and gets others; 0: whenever a task ends",
    0,
    1e6,
)


MANAGERS = Parameter(
    "managers",
    1,
    "integer",
    "resource managers, each over its share of the machines; jobs go to them in turn",
    1,
    10_000,
)


def build(
    setting: Setting,
    inter: str,
    packing: bool = False,
    *,
    intra: str | None = None,
    priority: Callable[[Setting, np.ndarray], np.ndarray] | None = None,
    by_alignment: bool = True,
    queues: Callable[[Setting], tuple[np.ndarray, np.ndarray]] | None = None,
) -> tuple[Any, Manager]:
    """Build machines, resource manager and the first messages.

    Args:
        inter: a name of `INTER`.
        packing: tasks of all jobs go by their values, and not by job.
        intra: order of the stages of a job, where it is not a parameter.
        priority: from setting and order of stages to the [S] factors of the values of their tasks; 1 by default.
        by_alignment: values depend on how well a task suits a machine.
        queues: the queue of each job and the part of the cluster that each queue is guaranteed, for `inter` "queues".
    """
    workload, p = setting.workload, setting.parameters
    assert isinstance(workload, DagWorkload)
    arrays = workload.arrays()
    demand, capacity = needs_and_capacity(setting)
    managers = int(p.get("managers", 1))
    world = build_dag_world(setting, demand, capacity, p["heartbeat_s"], managers)
    length = longest_paths(setting)
    in_order = p.get("packing") == "dagps"  # inside jobs, too
    intra = "dagps" if in_order else intra or p.get("intra_job", "breadth-first")
    key = stage_order(setting, intra, length)
    if in_order:
        priority = priorities
    of_stages = np.ones(demand.shape[0]) if priority is None else priority(setting, key)
    manager = world.work.home - capacity.shape[0]
    total = np.maximum(world.machines.total, 1)[manager]  # [J, R] of the machines of a job's manager
    part = demand / total[world.stages.job]
    pack = make_packing(p, arrays, of_stages, part.max(axis=1), world, by_alignment)
    size = -key if in_order else part.sum(axis=1)
    shares = make_shares(inter, world, manager, length, part, None if queues is None else queues(setting))
    leftover = LEFTOVERS[p.get("leftover", "in-order")]
    matcher = make_matcher(world, manager, read_only(key), read_only(size), shares, pack, leftover, packing)
    plans = make_plans(arrays, matcher, demand, in_order, p.get("completion") == "kept")
    each = np.zeros(managers, np.int64)
    return world, Manager(
        matcher,
        read_only(demand_profile(world, total)),
        plans,
        float(p.get("altruism", 0.0)),
        np.zeros(arrays.submit_ns.size, np.int64),
        each.copy(),
        each,
        np.zeros(managers, np.bool_),
        np.zeros(1, np.int64),
    )


class Shares(NamedTuple):
    """Whose share of the machines is whose; Q queues, each job its own one where a policy has none."""

    inter: int
    queue: np.ndarray  # [J] the queue of a job
    guarantee: np.ndarray  # [Q] part of the machines
    share: np.ndarray  # [Q, R] the same in amounts, 0 where there are no queues
    rank: np.ndarray  # [Q] or [J] what `inter` orders by
    work: np.ndarray  # [S] of a task: estimated duration times mean part of the resources
    left: np.ndarray  # [J] work of all tasks


def make_shares(
    inter: str,
    world: DagWorld,
    manager: np.ndarray,
    length: np.ndarray,
    part: np.ndarray,
    queues: tuple[np.ndarray, np.ndarray] | None,
) -> Shares:
    """Return the order of jobs and queues at time 0.

    Args:
        manager: [J] of jobs.
        length: [S] as from `longest_paths`.
        part: [S, R] of the resources, that a task needs.
        queues: queue of each job and guarantee of each queue, as from `queues` of `build`.
    """
    first, jobs = world.first_stage[:-1], manager.size
    work = world.stages.duration * part.mean(axis=1)
    left = np.add.reduceat(work * world.stages.unfinished, first)
    queue, guarantee = (np.arange(jobs), np.ones(jobs)) if queues is None else queues
    share = np.zeros((guarantee.size, part.shape[1]), np.int64)
    if queues is not None:  # a queue has a part of the machines of each manager
        managers = world.first_node.size - 1
        of_queue, queue = np.unique(queue * managers + manager, return_inverse=True)
        guarantee = guarantee[of_queue // managers]
        share = (guarantee[:, None] * world.machines.total[of_queue % managers]).astype(np.int64)
    ranks = {"shortest": np.maximum.reduceat(length, first), "least-left": left.copy()}
    rank = ranks.get(inter, np.zeros(guarantee.size))
    return Shares(INTER[inter], queue, guarantee, share, rank, work, left)


def make_matcher(
    world: DagWorld,
    manager: np.ndarray,
    key: np.ndarray,
    size: np.ndarray,
    shares: Shares,
    pack: Packing,
    leftover: int,
    packing: bool,
) -> Matcher:
    """Return the state of matching at time 0: nothing can run, and no machine has reported.

    Args:
        manager: [J] of jobs.
        key: [S] as from `stage_order`.
        size: [S] what tasks of a job that fit are compared by, largest first.
    """
    (jobs,), (nodes, resources), stages = manager.shape, world.machines.capacity.shape, key.size
    managers = world.first_node.size - 1
    return Matcher(
        run=make_runnable(key, world.me, *beginnings(manager, world.first_stage, managers)),
        active=np.zeros(jobs, np.int64),
        num_active=np.zeros(managers, np.int64),
        queue=read_only(shares.queue),
        guarantee=read_only(shares.guarantee),
        rank=shares.rank,
        used=np.zeros((shares.guarantee.size, resources), np.int64),
        share=shares.share,
        left=shares.left,
        total_left=np.zeros(managers),
        work=read_only(shares.work),
        size=size,
        cursor=np.zeros(stages, np.int64),
        ceiling=ceilings(world.machines.capacity, world.manager),
        dirty=np.zeros(nodes, np.int64),
        is_dirty=np.zeros(nodes, np.bool_),
        dirty_count=np.zeros(managers, np.int64),
        must=np.zeros(stages, np.int64),
        altruistic=np.zeros(jobs, np.bool_),
        pack=pack,
        inter=shares.inter,
        leftover=leftover,
        packing=packing,
    )


def demand_profile(world: DagWorld, total: np.ndarray) -> np.ndarray:
    """Return [J, R] the mean demand of a job's tasks as parts of `total`, over that of its dominant resource."""
    first, tasks = world.first_stage[:-1], world.stages.unfinished
    mean = group_sums(world.stages.demand, tasks, first) / np.add.reduceat(tasks, first)[:, None] / total
    largest = mean.max(axis=1, keepdims=True)
    return np.divide(mean, largest, out=np.zeros_like(mean), where=largest > 0)


def beginnings(manager: np.ndarray, first_stage: np.ndarray, managers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the jobs of each manager begin, if they lie together, and where their stages do, [K + 1] each."""
    jobs = np.bincount(manager, minlength=managers)
    stages = np.bincount(manager, np.diff(first_stage), minlength=managers)
    first_job, first = (np.append(0, np.cumsum(of)).astype(np.int64) for of in (jobs, stages))
    return read_only(first_job), read_only(first)


def ceilings(capacity: np.ndarray, manager: np.ndarray) -> np.ndarray:
    """Return the most that a machine of a block has, by resource: a block is of machines of one manager."""
    block = np.arange(manager.size) // BLOCK + manager
    found = np.zeros((int(block[-1]) + 1, capacity.shape[1]), np.int64)
    np.maximum.at(found, block, capacity)
    return found


def stage_order(setting: Setting, intra: str, length: np.ndarray) -> np.ndarray:
    """Return the place of each stage in the order of its job, [S]; the least goes first."""
    if intra == "critical-path":
        return -length
    if intra == "dagps":
        return order_in_plans(setting)
    return stage_levels(setting.workload).astype(np.float64)


def make_packing(
    p: dict[str, Any],
    arrays: Any,
    priority: np.ndarray,
    part: np.ndarray,
    world: DagWorld,
    by_alignment: bool,
) -> Packing:
    """Return what values of tasks are made of, from the parameters of a policy."""
    jobs, penalty = arrays.submit_ns.size, float(p.get("remote_penalty", 0.0))
    nodes, managers = world.nodes.size, world.first_node.size - 1
    return Packing(
        priority=read_only(priority),
        score=np.zeros((managers, 2)),
        part=read_only(part),
        given=np.zeros(managers),
        got=np.zeros(jobs),
        denied=np.zeros(jobs, np.bool_),
        most_used=np.full(managers, np.inf),
        ranks=np.zeros(jobs),
        ran=np.zeros((part.size, nodes if penalty > 0 else 0), np.bool_),
        first_parent=arrays.first_parent,
        parent=arrays.parent,
        me=world.me,
        by_alignment=by_alignment,
        remaining_weight=float(p.get("remaining_weight", 0.0)),
        fairness=float(p.get("fairness", 0.0)),
        unfairness=float(p.get("unfairness", 1e300)),
        remote_penalty=penalty,
    )


def make_plans(arrays: Any, m: Matcher, demand: np.ndarray, in_order: bool, keeps: bool) -> Plan:
    """Return plans of nothing, and their scratch space."""
    stages, jobs = m.must.size, arrays.submit_ns.size
    most = int(np.diff(arrays.first_stage).max())
    # Each batch ends a stage or fills a resource: there are at most as many as tasks and stages of a job.
    heap = int(np.diff(arrays.first_task).max()) + most + 1
    empty = [np.zeros(heap, np.int64) for _ in range(3)]
    return Plan(
        must=m.must,
        due=np.zeros(jobs, np.int64),
        planned=np.zeros(jobs, np.bool_),
        promise=np.full(jobs, NEVER),
        running=np.zeros(stages, np.int64),
        last=np.zeros(stages, np.int64),
        largest=read_only(np.maximum.reduceat(demand, arrays.first_stage[:-1])),
        first_parent=arrays.first_parent,
        parent=arrays.parent,
        key=m.run.key,
        in_order=in_order,
        keeps=keeps,
        held=np.full(1, NEVER),
        hold=np.full(most, NONE),
        begun=np.zeros(most, np.int64),
        left=np.zeros(most, np.int64),
        open=np.zeros(most, np.int64),
        placed=np.zeros(most, np.int64),
        room=np.zeros(demand.shape[1], np.int64),
        end=empty[0],
        batch_stage=empty[1],
        batch_count=empty[2],
    )


def longest_paths(setting: Setting) -> np.ndarray:
    """Return [S] the longest path from the start of each stage to the end of its job, ns, by estimated durations."""
    arrays = setting.workload.arrays()
    order = np.argsort(-stage_levels(setting.workload), kind="stable")
    length = estimated_ns(arrays.stage_mean_ns, setting.estimates, setting.seed).astype(np.float64)
    _add_children(order, arrays.first_child, arrays.child, length)
    return length


@entry
def _add_children(order: np.ndarray, first_child: np.ndarray, child: np.ndarray, length: np.ndarray) -> None:
    """Add to each stage the longest of its children; children come first in `order`."""
    for stage in order:
        most = 0.0
        for edge in range(first_child[stage], first_child[stage + 1]):
            most = max(most, length[child[edge]])
        length[stage] += most
