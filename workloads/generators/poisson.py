"""Poisson arrivals of jobs with tasks of a plain service distribution: the workloads of queueing theory.

With one task a job, one slot a node and ``central-fifo`` it is M/G/c; with one node M/G/1.
"""

from __future__ import annotations

import math

import numpy as np

from workloads.errors import InputError
from workloads.generators.draws import (
    arrivals,
    check_load,
    check_positive,
    check_whole,
    generator,
    offered_load,
)
from workloads.hints import did_you_mean
from workloads.jobs import Float64Array, JobWorkload, make_workload

SERVICES = ("exponential", "deterministic", "lognormal", "bimodal")
_DIGITS = 9


def poisson(
    *,
    jobs: int = 100_000,
    seed: int = 0,
    load: float = 0.7,
    nodes: int = 100,
    slots: int = 1,
    tasks_per_job: int = 1,
    mean_task_s: float = 1.0,
    service: str = "exponential",
    cv: float = 1.0,
    long_tasks: float = 0.1,
    long_ratio: float = 10.0,
) -> JobWorkload:
    """Return jobs with Poisson arrivals that load ``nodes * slots`` slots by `load`.

    Parameters
    ----------
    jobs, seed
        Number of jobs and seed.
    load : float
        Offered load: the arrival rate is ``load * nodes * slots / (tasks_per_job * mean_task_s)``, so the
        drawn workload meets it in expectation.
    nodes, slots : int
        The cluster the load is meant for.
    tasks_per_job : int
    mean_task_s : float
        Mean service time.
    service : str
        ``exponential``, ``deterministic``, ``lognormal`` or ``bimodal``.
    cv : float
        Coefficient of variation of ``lognormal``.
    long_tasks, long_ratio : float
        ``bimodal``: the share of tasks that are long, and how many times a short one they last.

    Raises
    ------
    InputError
        A parameter is out of its range.
    """
    check_load(jobs, load, nodes)
    check_whole("slots", slots, 1, 1_000_000)
    check_whole("tasks_per_job", tasks_per_job, 1, 100_000_000)
    check_whole("jobs * tasks_per_job", jobs * tasks_per_job, 1, 1_000_000_000)
    for name, value in (("mean_task_s", mean_task_s), ("cv", cv), ("long_ratio", long_ratio)):
        check_positive(name, value)
    if not 0 <= long_tasks <= 1:
        raise InputError(f"{long_tasks!r} is not a share in 0..1", field="long_tasks")
    if service not in SERVICES:
        raise InputError(f"unknown service {service!r}{did_you_mean(service, SERVICES)}", field="service")
    rng = generator(seed)
    mean_gap_s = tasks_per_job * mean_task_s / (load * nodes * slots)
    submit_s = np.round(arrivals(rng, jobs, mean_gap_s), _DIGITS)
    unit, scv = _service(rng, jobs * tasks_per_job, service, cv, long_tasks, long_ratio)
    duration_s = np.round(unit * mean_task_s, _DIGITS)
    return make_workload(
        "poisson",
        submit_s,
        np.full(jobs, tasks_per_job),
        duration_s,
        metadata={
            "origin": "generator poisson",
            "parameters": f"jobs={jobs} seed={seed} load={load:g} nodes={nodes} slots={slots} "
            f"tasks_per_job={tasks_per_job} mean_task_s={mean_task_s:g} service={service}",
            "service_scv": repr(scv),
            "offered_load": f"{offered_load(float(duration_s.sum()), float(submit_s[-1]), nodes * slots)} "
            f"on {nodes} nodes of {slots} slots",
        },
    )


def _service(
    rng: np.random.Generator, count: int, service: str, cv: float, long_tasks: float, long_ratio: float
) -> tuple[Float64Array, float]:
    """Return service times of mean 1, and the squared coefficient of variation of their distribution."""
    if service == "deterministic":
        return np.ones(count), 0.0
    if service == "lognormal":
        sigma = math.sqrt(math.log1p(cv * cv))
        return rng.lognormal(-sigma * sigma / 2, sigma, count), cv * cv
    if service == "bimodal":
        short = 1 / (1 - long_tasks + long_tasks * long_ratio)
        second_moment = short * short * (1 - long_tasks + long_tasks * long_ratio**2)
        return np.where(rng.random(count) < long_tasks, short * long_ratio, short), second_moment - 1
    return rng.standard_exponential(count), 1.0
