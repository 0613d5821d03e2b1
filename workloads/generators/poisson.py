"""Poisson arrivals of jobs with tasks of a plain service distribution: the workloads of queueing theory.

With one task a job, one slot a node and ``central-fifo`` it is M/G/c; with one node M/G/1.
"""

from __future__ import annotations

from dataclasses import replace

from workloads.defaults import DEFAULT_SEED
from workloads.generators.synthetic import Service, synthetic
from workloads.jobs import JobWorkload


def poisson(
    *,
    jobs: int = 100_000,
    seed: int = DEFAULT_SEED,
    load: float = 0.7,
    nodes: int = 100,
    slots: int = 1,
    tasks_per_job: int = 1,
    mean_task_s: float = 1.0,
    service: str = Service.name,
    cv: float = Service.cv,
    alpha: float = Service.alpha,
    long_tasks: float = Service.long_tasks,
    long_ratio: float = Service.long_ratio,
) -> JobWorkload:
    """Return jobs with Poisson arrivals that load ``nodes * slots`` slots by `load`.

    It is `workloads.generators.synthetic.synthetic` with the parameters that queueing theory knows: all jobs
    are of one class and have `tasks_per_job` tasks. The metadata give ``service_scv``, the squared
    coefficient of variation of the service time.

    Parameters
    ----------
    jobs, seed, load, nodes, slots, tasks_per_job, mean_task_s, service, cv, alpha, long_tasks, long_ratio
        As in `workloads.generators.synthetic.synthetic`.

    Raises
    ------
    InputError
        A parameter is out of its range.
    """
    workload = synthetic(
        jobs=jobs,
        seed=seed,
        load=load,
        nodes=nodes,
        slots=slots,
        tasks_per_job=tasks_per_job,
        mean_task_s=mean_task_s,
        service=service,
        cv=cv,
        alpha=alpha,
        long_tasks=long_tasks,
        long_ratio=long_ratio,
    )
    return replace(workload, name="poisson", metadata={**workload.metadata, "origin": "generator poisson"})
