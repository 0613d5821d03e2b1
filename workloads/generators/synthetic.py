"""A plain parametric generator: arrivals, tasks a job and durations of named distributions, in two classes.

Durations are of the named distribution with mean 1, times the class's mean; ``bimodal`` makes long tasks
inside jobs, the class of long jobs makes jobs that are long as a whole and have more tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals
from workloads.generators.draws import (
    check_load,
    check_positive,
    check_share,
    check_whole,
    generator,
    offered_load,
)
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array, JobWorkload, make_workload
from workloads.limits import check_tasks

SERVICES = ("exponential", "deterministic", "lognormal", "bimodal", "pareto")
TASK_COUNTS = ("fixed", "geometric", "uniform")
_DIGITS = 9
_SHORTEST_S = 1e-9


@dataclass(frozen=True)
class Service:
    """A distribution of task durations with mean 1; parameters as in `synthetic`.

    Raises
    ------
    InputError
        There is no such distribution, or a parameter is out of its range.
    """

    name: str = "exponential"
    cv: float = 1.0
    alpha: float = 1.5
    long_tasks: float = 0.1
    long_ratio: float = 10.0

    def __post_init__(self) -> None:
        if self.name not in SERVICES:
            raise InputError(
                f"unknown service {self.name!r}{did_you_mean(self.name, SERVICES)}", field="service"
            )
        for field in ("cv", "alpha", "long_ratio"):
            check_positive(field, getattr(self, field))
        check_share("long_tasks", self.long_tasks)
        if self.alpha <= 1:
            raise InputError(f"{self.alpha!r} is not above 1; the mean would be infinite", field="alpha")

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        if self.name == "bimodal":
            return self._short**2 * (1 - self.long_tasks + self.long_tasks * self.long_ratio**2) - 1
        if self.name == "pareto":
            return 1 / (self.alpha * (self.alpha - 2)) if self.alpha > 2 else math.inf
        return {"deterministic": 0.0, "exponential": 1.0, "lognormal": self.cv**2}[self.name]

    @property
    def _short(self) -> float:
        return 1 / (1 - self.long_tasks + self.long_tasks * self.long_ratio)

    def times(self, rng: np.random.Generator, count: int) -> Float64Array:
        """Draw `count` durations."""
        if self.name == "deterministic":
            return np.ones(count)
        if self.name == "lognormal":
            sigma = math.sqrt(math.log1p(self.cv * self.cv))
            return rng.lognormal(-sigma * sigma / 2, sigma, count)
        if self.name == "pareto":
            return (1 + rng.pareto(self.alpha, count)) * ((self.alpha - 1) / self.alpha)
        if self.name == "bimodal":
            return np.where(rng.random(count) < self.long_tasks, self._short * self.long_ratio, self._short)
        return rng.standard_exponential(count)

    def __str__(self) -> str:
        """Return the distribution and the parameters it has, as metadata state them."""
        own = {"lognormal": ("cv",), "pareto": ("alpha",), "bimodal": ("long_tasks", "long_ratio")}
        return " ".join([self.name, *(f"{key}={getattr(self, key):g}" for key in own.get(self.name, ()))])


def synthetic(
    *,
    jobs: int = 100_000,
    seed: int = DEFAULT_SEED,
    load: float = 0.7,
    nodes: int = 100,
    slots: int = 1,
    arrivals: str = Arrivals.process,
    burst_ratio: float = Arrivals.burst_ratio,
    burst_jobs: float = Arrivals.burst_jobs,
    period_s: float = Arrivals.period_s,
    amplitude: float = Arrivals.amplitude,
    task_counts: str = "fixed",
    tasks_per_job: int = 1,
    service: str = Service.name,
    mean_task_s: float = 1.0,
    cv: float = Service.cv,
    alpha: float = Service.alpha,
    long_tasks: float = Service.long_tasks,
    long_ratio: float = Service.long_ratio,
    long_jobs: float = 0.0,
    long_tasks_per_job: int = 10,
    long_mean_task_s: float = 10.0,
) -> JobWorkload:
    """Return jobs of plain distributions: arrivals, tasks per job, durations, short and long classes.

    Parameters
    ----------
    jobs, seed
        Number of jobs and seed.
    load : float
        Offered load: the mean gap is mean task-seconds of a job / ``load * nodes * slots``, so the drawn
        workload meets it in expectation.
    nodes, slots : int
        The cluster the load is meant for.
    arrivals : str
        ``poisson``, ``bursty`` or ``diurnal``, with `burst_ratio` and `burst_jobs`, or `period_s` and
        `amplitude`, as in `workloads.generators.arrivals`.
    task_counts : str
        Tasks per job: ``fixed``, ``geometric`` (1, 2, …) or ``uniform`` (1 to twice the mean less one).
    tasks_per_job : int
        Mean number of tasks of a job.
    service : str
        Task durations: ``exponential``, ``deterministic``, ``lognormal``, ``bimodal`` or ``pareto``.
    mean_task_s : float
        Mean task duration.
    cv : float
        Coefficient of variation of ``lognormal``.
    alpha : float
        Tail index of ``pareto``, above 1; at 2 and below the variance is infinite.
    long_tasks, long_ratio : float
        ``bimodal``: the share of tasks that are long, and how many times a short one they last.
    long_jobs : float
        Share of jobs in a second class, rounded to whole jobs; it has `long_tasks_per_job` and
        `long_mean_task_s` instead of `tasks_per_job` and `mean_task_s`, and the same distributions. The
        workload then has a cut-off, the geometric mean of the two durations, and a long partition, the
        share of task-seconds that long jobs have in expectation (as Hawk divides its nodes).

    Raises
    ------
    InputError
        A parameter is out of its range.

    Examples
    --------
    >>> mixed = synthetic(jobs=4, service="deterministic", long_jobs=0.25)
    >>> mixed.num_tasks, sorted(mixed.jobs["mean_task_s"].to_pylist())
    (13, [1.0, 1.0, 1.0, 10.0])
    """
    check_load(jobs, load, nodes)
    check_whole("slots", slots, 1, 1_000_000)
    process = Arrivals(arrivals, burst_ratio, burst_jobs, period_s, amplitude)
    durations = Service(service, cv, alpha, long_tasks, long_ratio)
    num_long = _check_classes(
        jobs, long_jobs, (tasks_per_job, mean_task_s), (long_tasks_per_job, long_mean_task_s)
    )
    if task_counts not in TASK_COUNTS:
        raise InputError(
            f"unknown distribution {task_counts!r}{did_you_mean(task_counts, TASK_COUNTS)}",
            field="task_counts",
        )
    short_s = (jobs - num_long) * tasks_per_job * mean_task_s
    long_s = num_long * long_tasks_per_job * long_mean_task_s

    rng = generator(seed)
    mean_gap_s = (short_s + long_s) / jobs / (load * nodes * slots)
    submit_s = np.round(process.times(rng, jobs, mean_gap_s), _DIGITS)
    is_long = np.arange(jobs) < num_long
    if num_long:
        rng.shuffle(is_long)
    num_tasks = _count(rng, np.where(is_long, long_tasks_per_job, tasks_per_job), task_counts)
    check_tasks(int(num_tasks.sum()), field="tasks_per_job")
    unit = durations.times(rng, int(num_tasks.sum()))
    unit *= np.repeat(np.where(is_long, long_mean_task_s, mean_task_s), num_tasks)
    duration_s = np.maximum(np.round(unit, _DIGITS), _SHORTEST_S)

    total_s = float(duration_s.sum())
    classes = f" tasks_per_job={tasks_per_job} mean_task_s={mean_task_s:g}"
    if num_long:
        classes += f" long_jobs={long_jobs:g} long_tasks_per_job={long_tasks_per_job}"
        classes += f" long_mean_task_s={long_mean_task_s:g}"
    return make_workload(
        "synthetic",
        submit_s,
        num_tasks,
        duration_s,
        short_cutoff_s=math.sqrt(mean_task_s * long_mean_task_s) if num_long else None,
        long_partition=long_s / (short_s + long_s) if num_long else None,
        metadata={
            "origin": "generator synthetic",
            "parameters": f"jobs={jobs} seed={seed} load={load:g} nodes={nodes} slots={slots} "
            f"arrivals={process} task_counts={task_counts}{classes} service={durations}",
            "service_scv": repr(durations.scv),
            "task_seconds": f"{total_s:.6g}, expected {short_s + long_s:.6g}",
            "offered_load": f"{offered_load(total_s, float(submit_s[-1]), nodes * slots)} "
            f"on {nodes} nodes of {slots} slots",
        },
    )


def _check_classes(jobs: int, long_jobs: float, short: tuple[int, float], long: tuple[int, float]) -> int:
    """Return the number of long jobs; refuse (tasks per job, mean duration) of the classes out of range."""
    check_share("long_jobs", long_jobs)
    for prefix, (tasks, mean_s) in (("", short), ("long_", long)):
        check_whole(f"{prefix}tasks_per_job", tasks, 1, 100_000_000)
        check_positive(f"{prefix}mean_task_s", mean_s)
        if mean_s > MAX_TIME_S:
            raise InputError(
                f"{mean_s!r} is more than {MAX_TIME_S:.0e} seconds", field=f"{prefix}mean_task_s"
            )
    num_long = round(long_jobs * jobs)
    if num_long and long[1] <= short[1]:
        raise InputError(
            f"{long[1]!r} s is not longer than mean_task_s, {short[1]!r} s", field="long_mean_task_s"
        )
    expected = (jobs - num_long) * short[0] + num_long * long[0]
    check_tasks(expected, "tasks in expectation", field="tasks_per_job")
    return num_long


def _count(rng: np.random.Generator, mean: Int64Array, distribution: str) -> Int64Array:
    """Return numbers of tasks with the given means."""
    if distribution == "geometric":
        return rng.geometric(1 / mean)
    if distribution == "uniform":
        return rng.integers(1, 2 * mean)
    return mean


# Poisson arrivals of jobs with tasks of a plain service distribution: the workloads of queueing theory.
#
# With one task a job, one slot a node and ``central-fifo`` it is M/G/c; with one node M/G/1.


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

    It is `synthetic` with the parameters that queueing theory knows: all jobs
    are of one class and have `tasks_per_job` tasks. The metadata give ``service_scv``, the squared
    coefficient of variation of the service time.

    Parameters
    ----------
    jobs, seed, load, nodes, slots, tasks_per_job, mean_task_s, service, cv, alpha, long_tasks, long_ratio
        As in `synthetic`.

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
