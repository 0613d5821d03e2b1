"""The intra-job part: orders of the stages of a job. Each is [S] float64, the least goes first."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from actors.conditions import estimated_ns
from actors.kernel.compiled import entry
from actors.machines import dagps_plan
from actors.machines.demands import needs_and_capacity
from actors.scheduler import Parameter
from actors.setting import Setting
from workloads.dags import stage_levels
from workloads.sums import group_sums

LONGEST_BITS = 61  # of the length of a plan; its times lie on both sides of 0


def by_level(setting: Setting) -> np.ndarray:
    """Return the level of each stage: breadth first, as in Tez."""
    return stage_levels(setting.workload).astype(np.float64)


def by_critical_path(setting: Setting) -> np.ndarray:
    """Return an order in which the stage from which the longest path leads to the end of its job goes first."""
    return -longest_paths(setting)


def by_dagps_plan(setting: Setting) -> np.ndarray:
    """Return the place of each stage in the plan that DAGPS makes of its job, [S], from 0; float64."""
    return dagps_orders(setting)[0]


def dagps_orders(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each stage in the plan that DAGPS makes of its job, [S] each, from 0: forward and backward.

    Forward a stage has the place where its last tasks begin. A plan may have a few tasks of a wide stage early, beside
    others: by those all of the stage would go first, and stages that the plan places before its other tasks would wait.
    Backward, where the last stage goes first, it is the same seen from the end: where its first tasks end.
    """
    plans = make_job_plans(setting)
    return _places(setting, plans.last_start), _places(setting, plans.first_end)


def _places(setting: Setting, time: np.ndarray) -> np.ndarray:
    """Return the place of each stage among those of its job, [S], from 0; the least time goes first; float64."""
    first = setting.workload.arrays().first_stage
    job = np.repeat(np.arange(first.size - 1), np.diff(first))
    place = np.zeros(time.size)
    place[np.lexsort((time, job))] = np.arange(time.size) - first[job]
    return place


ORDERS: dict[str, Callable[[Setting], np.ndarray]] = {
    "breadth-first": by_level,
    "critical-path": by_critical_path,
    "dagps": by_dagps_plan,
}
INTRA = Parameter(
    "intra_job",
    "breadth-first",
    "choice",
    "order of the stages of a job: by their level, by the longest path to the end of the job, or as in dagps",
    choices=tuple(ORDERS),
)
PLAN_SHARE = Parameter(
    "plan_share",
    0.05,
    "share",
    "part of the cluster in which DAGPS plans each job",
    0,
    1,
    needs=("intra_job=dagps", "packing=dagps"),
)


def critical_paths(setting: Setting) -> np.ndarray:
    """Return [J] the length of the critical path of each job, ns, by estimated durations."""
    lengths: np.ndarray = np.maximum.reduceat(
        longest_paths(setting), setting.workload.arrays().first_stage[:-1]
    )
    return lengths


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


def priorities(setting: Setting, place: np.ndarray) -> np.ndarray:
    """Return the priority of each stage, [S]: 1 for the first of its job, 1 / stages for the last."""
    stages = np.diff(setting.workload.arrays().first_stage)
    return 1.0 - place / np.repeat(stages, stages)


def _of_manager(setting: Setting, capacity: np.ndarray) -> np.ndarray:
    """Return what the machines of each job's manager have together, [J, R]."""
    managers = setting.parameters["managers"]
    first = capacity.shape[0] * np.arange(managers) // managers
    of_manager: np.ndarray = np.add.reduceat(capacity, first)
    return of_manager[np.arange(setting.workload.num_jobs) % managers]


class JobPlans(NamedTuple):
    """Plans of single jobs, [S] each: of a stage, when its first and last tasks start and end."""

    start: np.ndarray
    last_start: np.ndarray
    first_end: np.ndarray
    end: np.ndarray


def make_job_plans(setting: Setting) -> JobPlans:
    """Return when the tasks of each stage start and end in the plan that DAGPS makes of its job.

    In ns, or in 2**k ns for all jobs where one takes more than 73 years if its tasks run one after the other.
    """
    arrays = setting.workload.arrays()
    demand, capacity = needs_and_capacity(setting)
    share = setting.parameters["plan_share"] * _of_manager(setting, capacity)
    tasks = np.diff(arrays.stage_first_task)
    duration = estimated_ns(arrays.stage_mean_ns, setting.estimates, setting.seed)
    longest_ns = float(group_sums(duration[:, None], tasks, arrays.first_stage[:-1]).max())
    shift = max(math.ceil(math.log2(max(longest_ns, 1.0))) - LONGEST_BITS, 0)
    graphs = dagps_plan.Graphs(
        first_stage=arrays.first_stage,
        first_child=arrays.first_child,
        child=arrays.child,
        first_parent=arrays.first_parent,
        parent=arrays.parent,
        level=stage_levels(setting.workload),
        tasks=tasks,
        duration=np.maximum(duration >> shift, np.minimum(duration, 1)),
        demand=demand,
        # A job is planned for as much as its largest task needs at least.
        room=np.maximum(share.astype(np.int64), np.maximum.reduceat(demand, arrays.first_stage[:-1])),
        orders=dagps_plan.ORDERS,
    )
    start, end = np.zeros(tasks.size, np.int64), np.zeros(tasks.size, np.int64)
    most_stages, most_tasks = np.diff(arrays.first_stage).max(), np.diff(arrays.first_task).max()
    work = dagps_plan.make_work(int(most_stages), int(most_tasks), demand.shape[1])
    dagps_plan.plan_jobs(graphs, work, start, end)
    return JobPlans(start, end - graphs.duration, start + graphs.duration, end)
