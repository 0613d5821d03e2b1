"""Workloads drawn from published k-means clusters of jobs and the measured quantiles of a trace.

The clusters (Chen et al. [1]_, [2]_) say how many jobs of a kind there are and how much work, in
task-seconds, such a job has; the first cluster is the short jobs, all others are long. They do not say how
the work is cut into tasks: the quantiles of an excerpt do. A trace is data, a `ClusteredTrace`; `generate`
is the recipe:

1. Every job gets a cluster; counts are the published ones scaled by largest remainder.
2. Its task-seconds are exponential around the cluster's centroid (as in Hawk [3]_), rescaled so that the
   mean over the drawn jobs of a cluster *is* the centroid: at the published number of jobs, so is the
   published total.
3. For every job of a class a number of tasks and a mean duration are drawn independently from the class's
   quantiles. Pairs are given to jobs by rank: the job with the k-th most task-seconds gets the pair with the
   k-th largest product. The number of tasks is the pair's; the mean duration is task-seconds / tasks.
4. Task durations spread around the job's mean by the class's coefficient of variation, positive always.
5. Arrivals are Poisson, with the mean gap at which the drawn task-seconds load the nodes as asked.

Clusters and excerpt disagree on how much work a job has. Task-seconds and class are kept, and the mean
durations give: before step 3 they are stretched to ``cutoff * (duration / cutoff) ** power``, with the power
that brings the mean product of the pairs to the class's mean task-seconds. It leaves durations on their side
of the cut-off. Where step 3 still puts a mean on the wrong side (the exponential is not the excerpt's
shape), the number of tasks gives: it is moved to the nearest count that is on the right side.

References
----------
.. [1] Y. Chen, A. Ganapathi, R. Griffith, R. Katz. The Case for Evaluating MapReduce Performance Using
   Workload Suites. MASCOTS 2011 (Yahoo).
.. [2] Y. Chen, S. Alspaugh, R. Katz. Interactive Analytical Processing in Big Data Systems. PVLDB 5(12),
2012,
   arXiv:1208.4174 (Facebook and Cloudera's customers).
.. [3] P. Delgado, F. Dinu, A.-M. Kermarrec, W. Zwaenepoel. Hawk: Hybrid Datacenter Scheduling. ATC 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workloads.apportion import apportion
from workloads.generators.draws import arrivals, check_load, generator, offered_load
from workloads.jobs import Float64Array, Int64Array, JobWorkload, make_workload

LEVELS = np.array([0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100]) / 100
"""The levels of all quantile tables."""

_SHORTEST_S = 0.1
_DIGITS = 6


@dataclass(frozen=True)
class JobCluster:
    """A k-means cluster: its jobs, and the task-seconds of its centroid (None: as the quantiles give)."""

    jobs: int
    task_s: float | None


@dataclass(frozen=True)
class ClassShape:
    """Quantiles over the jobs of a class at `LEVELS`: tasks, mean duration (s), variation inside the job."""

    num_tasks: tuple[float, ...]
    mean_task_s: tuple[float, ...]
    cv: tuple[float, ...]


@dataclass(frozen=True)
class ClusteredTrace:
    """A published trace as data; `clusters[0]` are the short jobs, the others the long ones."""

    name: str
    clusters: tuple[JobCluster, ...]
    short: ClassShape
    long: ClassShape
    short_cutoff_s: float
    long_partition: float
    source: str

    @property
    def num_jobs(self) -> int:
        """The published number of jobs."""
        return sum(c.jobs for c in self.clusters)


def generate(trace: ClusteredTrace, *, jobs: int, seed: int, load: float, nodes: int) -> JobWorkload:
    """Draw a workload of `jobs` jobs that loads `nodes` one-slot nodes by `load` until the last arrival.

    Raises
    ------
    InputError
        A parameter is out of its range.
    """
    check_load(jobs, load, nodes)
    rng = generator(seed)
    cluster = np.repeat(np.arange(len(trace.clusters)), apportion(jobs, [c.jobs for c in trace.clusters]))
    rng.shuffle(cluster)
    num_tasks = np.empty(jobs, np.int64)
    task_s = np.empty(jobs)
    cv = np.empty(jobs)
    moved = 0
    powers = []
    for is_long, shape in ((False, trace.short), (True, trace.long)):
        rows = np.flatnonzero((cluster > 0) == is_long)
        if len(rows) == 0:
            continue
        work = _draw_work(rng, trace, cluster[rows])
        power = _stretch(shape, trace, is_long)
        num_tasks[rows], task_s[rows] = _couple(rng, shape, work, power, trace.short_cutoff_s)
        num_tasks[rows], gave = _keep_class(num_tasks[rows], task_s[rows], trace.short_cutoff_s, is_long)
        cv[rows] = np.interp(rng.random(len(rows)), LEVELS, shape.cv)
        moved += gave
        powers.append(power)
    duration_s = _spread(rng, task_s / num_tasks, num_tasks, cv)
    total_s = float(duration_s.sum())
    submit_s = np.round(arrivals(rng, jobs, total_s / (load * nodes * jobs)), _DIGITS)
    return make_workload(
        trace.name,
        submit_s,
        num_tasks,
        duration_s,
        short_cutoff_s=trace.short_cutoff_s,
        long_partition=trace.long_partition,
        metadata={
            "origin": f"generator {trace.name}",
            "source": trace.source,
            "parameters": f"jobs={jobs} seed={seed} load={load:g} nodes={nodes}",
            "recipe": "clusters by published counts; task-seconds exponential around the centroid; "
            "tasks from the class's quantiles; mean duration = task-seconds / tasks; Poisson arrivals",
            "what_gave": "mean durations stretched by power "
            + " and ".join(f"{p:.3f}" for p in powers)
            + f" about the cut-off (short and long); tasks of {moved} jobs moved to keep their class",
            "long_by_cluster": f"{np.count_nonzero(cluster) / jobs:.4f}",
            "task_seconds": f"{total_s:.6g}",
            "long_task_seconds": f"{float(task_s[cluster > 0].sum()) / float(task_s.sum()):.4f}",
            "offered_load": f"{offered_load(total_s, float(submit_s[-1]), nodes)} on {nodes} one-slot nodes",
        },
    )


def quantile(table: tuple[float, ...], u: Float64Array) -> Float64Array:
    """Return the value at levels `u` (0..1) of a table at `LEVELS`, for heavy-tailed positive quantities.

    Interpolates reciprocals: linear interpolation would put the mean of the last percent, between 100 and
    1324 tasks, at 712; the excerpt's mean over all jobs is met to 1 % by this rule and missed by 23 % by
    that.
    """
    return 1 / np.interp(u, LEVELS, 1 / np.maximum(table, _SHORTEST_S))


def _draw_work(rng: np.random.Generator, trace: ClusteredTrace, cluster: Int64Array) -> Float64Array:
    """Return task-seconds by job, NaN where the trace has no centroid: exponential, its mean the centroid."""
    draws = rng.standard_exponential(len(cluster))
    sizes = np.bincount(cluster, minlength=len(trace.clusters))
    sums = np.bincount(cluster, draws, minlength=len(trace.clusters))
    centroid = np.array([math.nan if c.task_s is None else c.task_s for c in trace.clusters])
    with np.errstate(invalid="ignore"):
        return draws * (centroid * sizes / sums)[cluster]


def _stretch(shape: ClassShape, trace: ClusteredTrace, is_long: bool) -> float:
    """Return the power about the cut-off at which tasks times duration have the class's mean task-seconds."""
    clusters = [c for i, c in enumerate(trace.clusters) if (i > 0) == is_long]
    if any(c.task_s is None for c in clusters):
        return 1.0
    mean_work = sum(c.jobs * (c.task_s or 0) for c in clusters) / sum(c.jobs for c in clusters)
    u = (np.arange(4096) + 0.5) / 4096
    tasks = float(quantile(shape.num_tasks, u).mean())
    ratio = quantile(shape.mean_task_s, u) / trace.short_cutoff_s
    # Stretched durations grow with the power for long jobs and shrink for short ones, so bisection finds it.
    low, high = 0.0, 8.0
    for _ in range(60):
        power = (low + high) / 2
        too_much = tasks * trace.short_cutoff_s * float((ratio**power).mean()) > mean_work
        low, high = (low, power) if too_much == is_long else (power, high)
    return round((low + high) / 2, 6)


def _couple(
    rng: np.random.Generator, shape: ClassShape, work: Float64Array, power: float, cutoff_s: float
) -> tuple[Int64Array, Float64Array]:
    """Return (number of tasks, task-seconds) of the jobs of a class; see step 3 of the module."""
    tasks = np.rint(quantile(shape.num_tasks, rng.random(len(work)))).astype(np.int64)
    mean_s = cutoff_s * (quantile(shape.mean_task_s, rng.random(len(work))) / cutoff_s) ** power
    product = tasks * mean_s
    work = np.where(np.isnan(work), product, work)
    given = np.empty_like(tasks)
    given[np.argsort(work, kind="stable")] = tasks[np.argsort(product, kind="stable")]
    return given, work


def _keep_class(
    num_tasks: Int64Array, task_s: Float64Array, cutoff_s: float, is_long: bool
) -> tuple[Int64Array, int]:
    """Move task counts so that means are on the class's side of the cut-off; return how many moved."""
    most_or_least = task_s / cutoff_s
    if is_long:
        # Strictly above the cut-off; less work than that leaves one task, and the job counts as short.
        kept = np.minimum(num_tasks, np.maximum(np.ceil(most_or_least) - 1, 1))
    else:
        kept = np.maximum(num_tasks, np.floor(most_or_least) + 1)
    kept = kept.astype(np.int64)
    return kept, int(np.count_nonzero(kept != num_tasks))


def _spread(
    rng: np.random.Generator, mean_s: Float64Array, num_tasks: Int64Array, cv: Float64Array
) -> Float64Array:
    """Return task durations, job after job, with the given means and, on average, coefficients of variation.

    A duration is a squared normal variable: positive, skewed to the right, and only arithmetic of which every
    machine gives the same bits. Its coefficient of variation is sqrt(2) at most.
    """
    first = np.cumsum(num_tasks) - num_tasks
    # Dividing by the job's own mean takes a degree of freedom, which small jobs would notice.
    variance = np.minimum(cv * cv * num_tasks / np.maximum(num_tasks - 1, 1), 2.0)
    share = 1 - np.sqrt(1 - variance / 2)
    x = rng.standard_normal(int(num_tasks.sum()))
    x *= np.repeat(np.sqrt(share), num_tasks)
    x += np.repeat(np.sqrt(1 - share), num_tasks)
    x *= x
    x *= np.repeat(mean_s * num_tasks / np.add.reduceat(x, first), num_tasks)
    return np.round(x, _DIGITS)
