"""What tasks need and nodes have, and the plans that DAGPS makes of jobs before the run."""

import math

import numpy as np

from actors.conditions import estimated_ns
from actors.machines.dag_world import amounts
from actors.machines.dagps_plan import ORDERS, Graphs, make_work, plan_jobs
from actors.machines.estimates import estimated_demand
from actors.scheduler import Parameter
from actors.setting import Setting
from clusters.capacity import capacities, demands
from workloads.dags import stage_levels
from workloads.sums import group_sums

LONGEST_BITS = 61  # of the length of a plan; its times lie on both sides of 0

PLAN_SHARE = Parameter(
    "plan_share",
    0.05,
    "share",
    "part of the cluster in which DAGPS plans each job",
    0,
    1,
    needs=("intra_job=dagps", "packing=dagps"),
)


def needs_and_capacity(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return what a task of each stage is taken to need, [S, R], and what nodes have, [N, R], in billionths."""
    workload = setting.workload
    capacity = amounts(capacities(setting.cluster, workload.resources))
    return estimated_demand(amounts(demands(workload)), capacity, setting.estimates, setting.seed), capacity


def order_in_plans(setting: Setting) -> np.ndarray:
    """Return the place of each stage in the plan that DAGPS makes of its job, [S], from 0; float64."""
    start, _ = make_job_plans(setting)
    first = setting.workload.arrays().first_stage
    job = np.repeat(np.arange(first.size - 1), np.diff(first))
    place = np.zeros(start.size)
    place[np.lexsort((start, job))] = np.arange(start.size) - first[job]
    return place


def priorities(setting: Setting, place: np.ndarray) -> np.ndarray:
    """Return the priority of each stage, [S]: 1 for the first of its job, 1 / stages for the last."""
    stages = np.diff(setting.workload.arrays().first_stage)
    return 1.0 - place / np.repeat(stages, stages)


def _of_manager(setting: Setting, capacity: np.ndarray) -> np.ndarray:
    """Return what the machines of each job's manager have together, [J, R]."""
    managers = int(setting.parameters.get("managers", 1))
    first = capacity.shape[0] * np.arange(managers) // managers
    of_manager: np.ndarray = np.add.reduceat(capacity, first)
    return of_manager[np.arange(setting.workload.num_jobs) % managers]


def make_job_plans(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return when each stage starts and ends in the plan that DAGPS makes of its job, [S].

    In ns, or in 2**k ns for all jobs where one takes more than 73 years if its tasks run one after the other.
    """
    arrays = setting.workload.arrays()
    demand, capacity = needs_and_capacity(setting)
    share = setting.parameters.get("plan_share", PLAN_SHARE.default) * _of_manager(setting, capacity)
    tasks = np.diff(arrays.stage_first_task)
    duration = estimated_ns(arrays.stage_mean_ns, setting.estimates, setting.seed)
    longest_ns = float(group_sums(duration[:, None], tasks, arrays.first_stage[:-1]).max())
    shift = max(math.ceil(math.log2(max(longest_ns, 1.0))) - LONGEST_BITS, 0)
    graphs = Graphs(
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
        orders=ORDERS,
    )
    start, end = np.zeros(tasks.size, np.int64), np.zeros(tasks.size, np.int64)
    most_stages, most_tasks = np.diff(arrays.first_stage).max(), np.diff(arrays.first_task).max()
    plan_jobs(graphs, make_work(int(most_stages), int(most_tasks), demand.shape[1]), start, end)
    return start, end
