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
4. Task durations spread around the job's mean by the class's coefficient of variation, positive except
   for those that round to 0 at a microsecond (one task in a million).
5. Arrivals have the mean gap at which the drawn task-seconds load the nodes as asked; the process is one of
   `workloads.generators.arrivals`.

Clusters and excerpt disagree on how much work a job has. Task-seconds and class are kept, and mean durations
or numbers of tasks are adapted to them; the trace states which (`keeps`).

- ``"tasks"`` (Yahoo): before step 3 mean durations are stretched to
  ``cutoff * (duration / cutoff) ** power``, with the power that brings the mean product of the pairs to the
  class's mean task-seconds. It leaves durations on their side of the cut-off.
- ``"durations"`` (Facebook, Cloudera-c): in step 3 the mean duration is the pair's and the number of tasks is
  task-seconds / duration, a whole number of at least one.

Where a mean is still on the wrong side of the cut-off (the exponential is not the excerpt's shape), the
number of tasks is adapted: it is moved to the nearest count that is on the right side.

Where durations are measured, `as_measured` gives a trace whose numbers of tasks and mean durations both follow
the quantiles, and whose task-seconds result from them: as in the next paragraph, without the stretching.

A trace without centroids (Google) takes another way through steps 2 and 3: pairs follow the quantiles level
by level, tasks and durations correlated as measured; a job's task-seconds are its pair's product. Where the
share of task-seconds in long jobs is published, mean durations of long jobs are stretched as above until the
drawn jobs have it.

References
----------
.. [1] Y. Chen, A. Ganapathi, R. Griffith, R. Katz. The Case for Evaluating MapReduce Performance Using
   Workload Suites. MASCOTS 2011 (Yahoo). doi:10.1109/MASCOTS.2011.12
.. [2] Y. Chen, S. Alspaugh, R. Katz. Interactive Analytical Processing in Big Data Systems. PVLDB 5(12),
   2012, arXiv:1208.4174 (Facebook and Cloudera's customers).
.. [3] P. Delgado, F. Dinu, A.-M. Kermarrec, W. Zwaenepoel. Hawk: Hybrid Datacenter Scheduling. ATC 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from workloads.defaults import DEFAULT_SEED
from workloads.generators.arrivals import Arrivals
from workloads.generators.draws import check_load, generator, offered_load
from workloads.groups import apportion
from workloads.jobs import Float64Array, Int64Array, JobWorkload, make_workload
from workloads.limits import check_tasks, most_tasks

LEVELS = np.array([0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100]) / 100
"""The levels of all quantile tables."""

_SHORTEST_S = 0.1
_SAMPLE = 10_000  # jobs that are drawn to estimate how many tasks they would have
_DIGITS = 6


@dataclass(frozen=True)
class JobCluster:
    """A k-means cluster: its jobs, and the task-seconds of its centroid (None: as the quantiles give)."""

    jobs: int
    task_s: float | None


@dataclass(frozen=True)
class ClassShape:
    """Quantiles over the jobs of a class at `LEVELS`: tasks, mean duration (s), variation inside the job.

    `correlation` is that of the normal variables whose ranks tasks and mean durations follow, where the
    clusters have no centroids. Half the jobs may have one task, so that it is a little above the measured
    correlation of the logarithms.
    """

    num_tasks: tuple[float, ...]
    mean_task_s: tuple[float, ...]
    cv: tuple[float, ...]
    correlation: float = 0.0

    def at_cutoff(self, old_s: float, new_s: float, power: float = 1.0) -> ClassShape:
        """Return the shape for another cut-off (s): durations scaled with it, then stretched by a power."""
        return replace(self, mean_task_s=tuple(new_s * (d / old_s) ** power for d in self.mean_task_s))


@dataclass(frozen=True)
class ClusteredTrace:
    """A published trace as data; `clusters[0]` are the short jobs, the others the long ones.

    Attributes
    ----------
    name : str
    clusters : tuple of JobCluster
        Either all have a centroid or none has.
    short, long : ClassShape
    short_cutoff_s, long_partition : float
        As in `workloads.jobs.JobWorkload`.
    source : str
        Where clusters and quantiles are from.
    stand_in : str
        What is not published and what stands in for it; empty if nothing is missing.
    keeps : str
        What keeps its quantiles where they and the centroids disagree, ``tasks`` or ``durations``.
    quantiles : str
        What the tables of `short` and `long` are: ``measured`` on the trace, ``synthetic`` (measured on jobs
        that another generator made) or a ``stand-in`` (another trace's).
    tasks : int | None
        Published number of tasks.
    long_jobs, long_task_seconds : float | None
        Published shares (0..1) of long jobs: of all jobs, and of all task-seconds.
    published : ClusteredTrace | None
        The trace with its task-seconds, where this one has durations as measured in their place (`as_measured`).
    """

    name: str
    clusters: tuple[JobCluster, ...]
    short: ClassShape
    long: ClassShape
    short_cutoff_s: float
    long_partition: float
    source: str
    stand_in: str = ""
    keeps: Literal["tasks", "durations"] = "tasks"
    quantiles: Literal["measured", "synthetic", "stand-in"] = "measured"
    tasks: int | None = None
    long_jobs: float | None = None
    long_task_seconds: float | None = None
    published: ClusteredTrace | None = None

    @property
    def num_jobs(self) -> int:
        """The published number of jobs."""
        return sum(c.jobs for c in self.clusters)

    @property
    def has_centroids(self) -> bool:
        """Whether the task-seconds of the clusters are known."""
        return all(c.task_s is not None for c in self.clusters)

    def mean_work(self, is_long: bool | None = None) -> float:
        """Return the mean task-seconds of a job by the centroids: of the long ones, the short ones or all."""
        of_class = [c for i, c in enumerate(self.clusters) if is_long is None or (i > 0) == is_long]
        return sum(c.jobs * (c.task_s or 0) for c in of_class) / sum(c.jobs for c in of_class)


class _Drawn(NamedTuple):
    """The jobs of a class: tasks, task-seconds, and what gave (in words)."""

    num_tasks: Int64Array
    task_s: Float64Array
    gave: str


class _Jobs(NamedTuple):
    """All jobs: cluster, tasks, task-seconds, variation inside the job; and what gave."""

    cluster: Int64Array
    num_tasks: Int64Array
    task_s: Float64Array
    cv: Float64Array
    gave: list[str]


def generate(
    trace: ClusteredTrace,
    *,
    jobs: int,
    seed: int = DEFAULT_SEED,
    load: float = 0.9,
    nodes: int = 15000,
    arrivals: str = Arrivals.process,
    burst_ratio: float = Arrivals.burst_ratio,
    burst_jobs: float = Arrivals.burst_jobs,
    period_s: float = Arrivals.period_s,
    amplitude: float = Arrivals.amplitude,
) -> JobWorkload:
    """Draw a workload of a trace's jobs that loads nodes until the last arrival.

    Parameters
    ----------
    jobs, seed : int
        Jobs are in the proportions of the trace's clusters.
    load : float
        Offered load: task-seconds over the span of the arrivals times `nodes`.
    nodes : int
        One-slot nodes the load is meant for. A higher load packs the same jobs into less time.
    arrivals : str
        ``poisson``, ``bursty`` or ``diurnal``, with `burst_ratio` and `burst_jobs`, or `period_s` and
        `amplitude`, as in `workloads.generators.arrivals`.

    Raises
    ------
    InputError
        A parameter is out of its range.
    """
    check_load(jobs, load, nodes)
    process = Arrivals(arrivals, burst_ratio, burst_jobs, period_s, amplitude)
    if jobs > 20 * _SAMPLE:  # to draw the tasks of ten million jobs takes seconds and a gigabyte
        expected = jobs * float(_draw(generator(seed), trace, _SAMPLE).num_tasks.mean())
        if expected > 2 * most_tasks()[0]:
            check_tasks(expected, "tasks in expectation", field="jobs")
    rng = generator(seed)
    cluster, num_tasks, task_s, cv, gave = _draw(rng, trace, jobs)
    check_tasks(int(num_tasks.sum()), field="jobs")
    duration_s = _spread(rng, task_s / num_tasks, num_tasks, cv)
    total_s = float(duration_s.sum())
    submit_s = np.round(process.times(rng, jobs, total_s / (load * nodes * jobs)), _DIGITS)
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
            "parameters": f"jobs={jobs} seed={seed} load={load:g} nodes={nodes} arrivals={process}"
            + (" durations=trace" if trace.published else ""),
            "recipe": _RECIPES[trace.has_centroids],
            **({"stand_in": trace.stand_in} if trace.stand_in else {}),
            "what_gave": "; ".join(gave),
            "long_by_cluster": f"{np.count_nonzero(cluster) / jobs:.4f}",
            "task_seconds": f"{total_s:.6g}",
            "long_task_seconds": f"{float(task_s[cluster > 0].sum()) / float(task_s.sum()):.4f}",
            "offered_load": f"{offered_load(total_s, float(submit_s[-1]), nodes)} on {nodes} one-slot nodes",
        },
    )


def _draw(rng: np.random.Generator, trace: ClusteredTrace, jobs: int) -> _Jobs:
    """Draw clusters, tasks and task-seconds of jobs."""
    cluster = np.repeat(np.arange(len(trace.clusters)), apportion(jobs, [c.jobs for c in trace.clusters]))
    rng.shuffle(cluster)
    num_tasks = np.empty(jobs, np.int64)
    task_s = np.zeros(jobs)
    cv = np.empty(jobs)
    gave = []
    for is_long, shape in ((False, trace.short), (True, trace.long)):
        rows = np.flatnonzero((cluster > 0) == is_long)
        if len(rows) == 0:
            continue
        if trace.has_centroids:
            drawn = _around_centroids(rng, trace, cluster[rows], is_long)
        else:
            drawn = _by_quantiles(rng, trace, len(rows), is_long, short_task_s=float(task_s.sum()))
        num_tasks[rows], task_s[rows] = drawn.num_tasks, drawn.task_s
        if trace.published is not None:
            of_published = float(drawn.task_s.mean()) / trace.published.mean_work(is_long)
            drawn = drawn._replace(gave=f"task-seconds are {of_published:.3g} times those of the clusters")
        gave.append(f"{'long' if is_long else 'short'} jobs: {drawn.gave}")
        cv[rows] = np.interp(rng.random(len(rows)), LEVELS, shape.cv)
    return _Jobs(cluster, num_tasks, task_s, cv, gave)


def as_measured(trace: ClusteredTrace) -> ClusteredTrace:
    """Return the trace with the durations of its quantiles: without centroids, and without a share to be met."""
    clusters = tuple(replace(cluster, task_s=None) for cluster in trace.clusters)
    return replace(trace, clusters=clusters, long_task_seconds=None, published=trace)


_RECIPES = {
    True: "clusters by published counts; task-seconds exponential around the centroid; tasks from the "
    "class's quantiles; mean duration = task-seconds / tasks",
    False: "classes by published counts; tasks and mean durations from the class's quantiles, correlated as "
    "measured; task-seconds = tasks * mean duration",
}


def quantile(table: tuple[float, ...], u: Float64Array) -> Float64Array:
    """Return the value at levels `u` (0..1) of a table at `LEVELS`, for heavy-tailed positive quantities.

    Interpolates reciprocals: linear interpolation would put the mean of the last percent, between 100 and
    1324 tasks, at 712; the excerpt's mean over all jobs is met to 1 % by this rule and missed by 23 % by
    that.
    """
    return 1 / np.interp(u, LEVELS, 1 / np.maximum(table, _SHORTEST_S))


def _around_centroids(
    rng: np.random.Generator, trace: ClusteredTrace, cluster: Int64Array, is_long: bool
) -> _Drawn:
    """Draw the jobs of a class whose clusters have centroids; `cluster` is that of each job."""
    shape = trace.long if is_long else trace.short
    work = _draw_work(rng, trace, cluster)
    tasks = np.rint(quantile(shape.num_tasks, rng.random(len(work)))).astype(np.int64)
    mean_s = quantile(shape.mean_task_s, rng.random(len(work)))
    if trace.keeps == "tasks":
        power = _stretch(shape, trace, is_long)
        mean_s = trace.short_cutoff_s * (mean_s / trace.short_cutoff_s) ** power
        gave = f"mean durations stretched by power {power:.3f} about the cut-off"
    by_product = np.argsort(tasks * mean_s, kind="stable")
    num_tasks = np.empty_like(tasks)
    num_tasks[np.argsort(work, kind="stable")] = tasks[by_product]
    if trace.keeps == "durations":
        mean_s[np.argsort(work, kind="stable")] = mean_s[by_product]
        num_tasks = np.maximum(np.rint(work / mean_s), 1).astype(np.int64)
        gave = f"{num_tasks.mean() / tasks.mean():.3g} times as many tasks as by the quantiles"
    kept, moved = _keep_class(num_tasks, work, trace.short_cutoff_s, is_long)
    return _Drawn(kept, work, f"{gave}, tasks of {moved} jobs moved to keep their class")


def _draw_work(rng: np.random.Generator, trace: ClusteredTrace, cluster: Int64Array) -> Float64Array:
    """Return task-seconds by job: exponential, and the mean over a cluster is its centroid."""
    draws = rng.standard_exponential(len(cluster))
    sizes = np.bincount(cluster, minlength=len(trace.clusters))
    sums = np.bincount(cluster, draws, minlength=len(trace.clusters))
    centroid = np.array([c.task_s for c in trace.clusters], np.float64)
    with np.errstate(invalid="ignore"):  # clusters of the other class have no jobs here
        return draws * (centroid * sizes / sums)[cluster]


def _by_quantiles(
    rng: np.random.Generator, trace: ClusteredTrace, count: int, is_long: bool, short_task_s: float
) -> _Drawn:
    """Draw `count` jobs of a class without centroids; `short_task_s` is what short jobs have in all."""
    shape = trace.long if is_long else trace.short
    first, second = rng.standard_normal(count), rng.standard_normal(count)
    second = shape.correlation * first + np.sqrt(1 - shape.correlation**2) * second
    tasks = np.rint(quantile(shape.num_tasks, stratified_levels(rng, first))).astype(np.int64)
    ratio = quantile(shape.mean_task_s, stratified_levels(rng, second)) / trace.short_cutoff_s
    power = 1.0
    if is_long and trace.long_task_seconds is not None:
        wanted = short_task_s * trace.long_task_seconds / (1 - trace.long_task_seconds)
        power = _power(tasks, ratio, wanted / trace.short_cutoff_s / count, is_long)
        power = min(max(power, 0.5), 2.0)  # a few jobs cannot meet any share: durations stay near the table
    gave = "nothing" if power == 1 else f"mean durations stretched by power {power:.3f} about the cut-off"
    return _Drawn(tasks, tasks * (trace.short_cutoff_s * ratio**power), gave)


def stratified_levels(rng: np.random.Generator, values: Float64Array) -> Float64Array:
    """Return a level (0..1) for each value, in the order of the values and one in each of equal parts."""
    levels = np.empty(len(values))
    drawn = (np.arange(len(values)) + rng.random(len(values))) / len(values)
    levels[np.argsort(values, kind="stable")] = drawn
    return levels


def _stretch(shape: ClassShape, trace: ClusteredTrace, is_long: bool) -> float:
    """Return the power about the cut-off at which tasks times duration have the class's mean task-seconds."""
    u = (np.arange(4096) + 0.5) / 4096
    tasks = float(quantile(shape.num_tasks, u).mean())
    ratio = quantile(shape.mean_task_s, u) / trace.short_cutoff_s
    return _power(tasks, ratio, trace.mean_work(is_long) / trace.short_cutoff_s, is_long)


def _power(num_tasks: Int64Array | float, ratio: Float64Array, mean_work: float, is_long: bool) -> float:
    """Return the power of duration ratios at which jobs have the mean work, in units of the cut-off."""
    # Stretched durations grow with the power for long jobs and shrink for short ones, so bisection finds it.
    low, high = 0.0, 8.0
    for _ in range(60):
        power = (low + high) / 2
        too_much = float((num_tasks * ratio**power).mean()) > mean_work
        low, high = (low, power) if too_much == is_long else (power, high)
    return round((low + high) / 2, 6)


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
    return kept.astype(np.int64), int(np.count_nonzero(kept != num_tasks))


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
