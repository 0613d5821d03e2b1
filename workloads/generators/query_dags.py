"""DAG jobs like those of Carbyne's evaluation: queries of TPC-DS, TPC-H and BigBench, and Microsoft's analytics [1]_.

The authors' inputs are not published. What is, is in their Table 1, quantiles over jobs:

=========  ============  ============  =====================
mix        stages        barriers      work that reads input
           50 %   95 %   50 %   95 %   50 %   95 %
=========  ============  ============  =====================
microsoft  13     121    4      13     34 %   85 %
tpc-ds     8      23     1      4      11 %   88 %
tpc-h      8      12     2      4      46 %   82 %
bigbench   7      19     2      6      24 %   70 %
=========  ============  ============  =====================

and in the text that the median length of the critical path is 5 stages (Table 2), that many DAGs have several disjoint
paths, that jobs take from a few minutes to tens of minutes on 100 machines of 20 cores, that there are 250 jobs with
Poisson arrivals, 20 s apart on average (section 5.1), and of Microsoft 30,000 jobs with millions of tasks.

Each workload meets these quantiles: values of a quantity are taken at evenly spaced ranks of a curve through them, and
given to jobs in random order. All else is assumed:

- The curves. Between the quantiles they are straight, of stages and of the critical path in the logarithm; their ends
  and the 95th percentile of the critical path are in `MIXES`.
- What goes together: numbers of barriers and of tasks and critical paths with the number of stages, with the weights
  `_WITH_STAGES`; input work with nothing. "Input work" is the share of a job's task-seconds in stages without parents.
- Demands: `workloads.generators.demands`. Graphs, and bytes that are read and sent: below, with their functions.
- Tasks a job: log-normal with sigma 1; 750 on average of the benchmarks, with which 0.8 and more of the memory of 100
  machines is in use at the default arrivals; 100 of Microsoft, 3,000,000 of 30,000 jobs.
  A job's work is divided among its stages by shares that are gamma-distributed with shape 2.
- Durations: log-normal over stages with sigma 0.6 and mean 40 s, alike for all tasks of a stage. A stage takes the
  number of tasks with which its duration is nearest to that, one at least; what the rounding changes, changes the
  duration and not the work.

References
----------
.. [1] R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan. Altruistic Scheduling in Multi-Resource Clusters.
   OSDI 2016, sections 2.2 and 5.1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.dags import DagWorkload, make_dag_workload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals, RatedArrivals
from workloads.generators.demands import draw_demands
from workloads.generators.draws import (
    MAX_JOBS,
    check_positive,
    check_scale,
    check_share,
    check_whole,
    draw_tenants,
    generator,
    log_normal_factors,
)
from workloads.groups import first_rows
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array
from workloads.limits import check_tasks
from workloads.stages import ALL_TO_ALL, ONE_TO_ONE

Curve = tuple[tuple[float, float], ...]


class Mix(NamedTuple):
    """Curves of the jobs of a mix: (rank in 0..1, value) of points on each; and mean tasks a job.

    The curves are flat about the median and the 95th percentile, so that these do not depend on the number of jobs.
    """

    stages: Curve
    barriers: Curve
    depth: Curve
    input_work: Curve
    tasks_per_job: float


def _curve(least: float, median: float, p95: float, most: float) -> Curve:
    return ((0, least), (0.45, median), (0.55, median), (0.94, p95), (0.96, p95), (1, most))


MIXES = {
    "tpc-ds": Mix(_curve(2, 8, 23, 40), _curve(0, 1, 4, 8), _curve(2, 5, 11, 16), _curve(0.02, 0.11, 0.88, 0.95), 750),
    "tpc-h": Mix(_curve(2, 8, 12, 16), _curve(0, 2, 4, 6), _curve(2, 5, 8, 10), _curve(0.1, 0.46, 0.82, 0.95), 750),
    "bigbench": Mix(_curve(2, 7, 19, 30), _curve(0, 2, 6, 10), _curve(2, 5, 10, 14), _curve(0.05, 0.24, 0.7, 0.9), 750),
    "microsoft": Mix(
        _curve(2, 13, 121, 250), _curve(0, 4, 13, 40), _curve(2, 5, 16, 30), _curve(0.05, 0.34, 0.85, 0.95), 100
    ),
}  # fmt: skip
BENCHMARKS = "benchmarks"
"""The mix of the three public benchmarks: each job is of one of them, with equal chance."""

# Each purpose has random numbers of its own: with a seed the same jobs come with other arrivals or tenants.
_STREAMS = ("jobs", "graphs", "stages", "tasks", "demands", "arrivals", "tenants", "bytes")
_WITH_STAGES = {"barriers": 0.9, "depth": 0.8, "tasks": 0.5}
_JOB_SIGMA, _STAGE_SIGMA = 1.0, 0.6
_SHARE_SHAPE = 2.0
_DIGITS = 9
_SHORTEST_S = 1e-3
_MOST_CV = 100.0
_FACTOR_ERROR = 1e-4


def query_dags(
    *,
    mix: str = "tpc-ds",
    jobs: int = 250,
    seed: int = DEFAULT_SEED,
    arrivals: str = "poisson",
    mean_gap_s: float = 20.0,
    tasks_per_job: float | None = None,
    mean_task_s: float = 40.0,
    task_cv: float = 0.0,
    diversity: float = 1.0,
    one_to_one: float = 0.0,
    tenants: int = 1,
    bytes_scale: float = 1.0,
    burst_ratio: float = Arrivals.burst_ratio,
    burst_jobs: float = Arrivals.burst_jobs,
    period_s: float = Arrivals.period_s,
    amplitude: float = Arrivals.amplitude,
) -> DagWorkload:
    """Return DAG jobs with demands of six resources, whose graphs meet the quantiles of Carbyne's evaluation.

    Parameters
    ----------
    mix : str
        ``tpc-ds``, ``tpc-h``, ``bigbench``, ``microsoft``, or ``benchmarks``: each job of one of the first three.
    jobs : int
        250 as in the paper.
    seed : int
    arrivals : str
        ``poisson``, ``at-once`` (the paper's offline case), ``bursty`` or ``diurnal``.
    mean_gap_s : float
        Mean gap between arrivals; 20 s as in the paper.
    tasks_per_job : float, optional
        Mean number of tasks, by default that of the mix (750, or 100 of Microsoft); each stage has one at least.
    mean_task_s : float
        Mean duration of stages (s) before the rounding of their tasks.
    task_cv : float
        Coefficient of variation of the durations of a stage's tasks, which are log-normal; 0: all alike, as in the
        authors' simulator. The mean that the workload states of a stage is that without this variation.
    diversity : float
        How far demands of stages differ, 0..1.
    one_to_one : float
        The share of the stages with one parent that wait for it task by task, and have as many tasks.
    tenants : int
        Jobs belong to so many tenants, ``t0``, ``t1``, drawn uniformly; with 1 they have none.
    bytes_scale : float
        Factor on the bytes that stages read and send, for other loads of the network by the same jobs; 0: no bytes are
        stated.
    burst_ratio, burst_jobs, period_s, amplitude
        As in `workloads.generators.arrivals`.

    Raises
    ------
    InputError
        A parameter is out of its range.
    """
    _check(mix, jobs, mean_gap_s, tasks_per_job, mean_task_s, task_cv, one_to_one)
    check_scale("bytes_scale", bytes_scale)
    process = RatedArrivals(arrivals, 1 / mean_gap_s, 1, 1, burst_ratio, burst_jobs, period_s, amplitude)
    rng = {purpose: generator(seed, stream) for stream, purpose in enumerate(_STREAMS, start=1)}
    names = [*MIXES][:3] if mix == BENCHMARKS else [mix]
    of_job = rng["jobs"].integers(len(names), size=jobs)
    drawn = _draw_jobs(rng["jobs"], [MIXES[name] for name in names], of_job, tasks_per_job)
    check_tasks(float(max(drawn.num_tasks.sum(), drawn.num_stages.sum())), field="jobs")
    shapes = draw_shapes(rng["graphs"], drawn.num_stages, drawn.barriers, drawn.depth)
    tasks, duration_s, one = _draw_stages(rng["stages"], shapes, drawn, mean_task_s, one_to_one)
    check_tasks(int(tasks.sum()), field="one_to_one")
    source, sink = (np.bincount(ends, minlength=len(tasks)) == 0 for ends in (shapes.child, shapes.parent))
    job = np.repeat(np.arange(jobs), drawn.num_stages)
    begins = shapes.first_stage[job]
    of_edge = shapes.child
    kinds = [ONE_TO_ONE if x else ALL_TO_ALL for x in one[of_edge].tolist()] if one.any() else None
    local = (np.arange(len(job)) - begins).tolist()
    demands = draw_demands(rng["demands"], source, sink, diversity)
    read_s = tasks * duration_s * demands["disk_in"]
    moved = draw_bytes(rng["bytes"], shapes, read_s, bytes_scale)._asdict() if bytes_scale else {}
    return make_dag_workload(
        f"query-dags-{mix}",
        process.times_within(rng["arrivals"], jobs, "mean_gap_s"),
        drawn.num_stages,
        tasks,
        _vary(rng["tasks"], np.repeat(duration_s, tasks), task_cv),
        np.stack([job[of_edge], shapes.parent - begins[of_edge], shapes.child - begins[of_edge]], axis=1),
        stage_mean_s=duration_s,
        stage_name=[f"{names[m]}/s{n}" for m, n in zip(of_job[job].tolist(), local, strict=True)],
        demands=demands,
        edge_kind=kinds,
        **moved,
        tenant=draw_tenants(rng["tenants"], jobs, tenants),
        metadata={
            "origin": f"generator query-dags, mix {mix}",
            "parameters": f"mix={mix} jobs={jobs} seed={seed} arrivals={process} mean_gap_s={mean_gap_s:g} "
            f"tasks_per_job={tasks_per_job} mean_task_s={mean_task_s:g} task_cv={task_cv:g} diversity={diversity:g} "
            f"one_to_one={one_to_one:g} tenants={tenants} bytes_scale={bytes_scale:g}",
            "recipe": "quantiles of stages, barriers and input work of Carbyne's Table 1, median critical path of 5 "
            "stages; curves between, graphs, tasks, durations, demands and bytes assumed",
        },
    )


class _Jobs(NamedTuple):
    """What is drawn of J jobs: arrays of shape (J,)."""

    num_stages: Int64Array
    barriers: Int64Array
    depth: Int64Array
    input_work: Float64Array
    num_tasks: Float64Array


def _check(
    mix: str,
    jobs: int,
    mean_gap_s: float,
    tasks_per_job: float | None,
    mean_task_s: float,
    task_cv: float,
    one_to_one: float,
) -> None:
    if mix not in MIXES and mix != BENCHMARKS:
        raise InputError(f"unknown mix {mix!r}{did_you_mean(mix, [*MIXES, BENCHMARKS])}", field="mix")
    check_whole("jobs", jobs, 1, MAX_JOBS)
    check_positive("mean_gap_s", mean_gap_s)
    check_positive("mean_task_s", mean_task_s)
    if tasks_per_job is not None:
        check_positive("tasks_per_job", tasks_per_job)
    if not 0 <= task_cv <= _MOST_CV:
        raise InputError(f"{task_cv!r} is not a number from 0 to {_MOST_CV:g}", field="task_cv")
    check_share("one_to_one", one_to_one)


def _draw_jobs(
    rng: np.random.Generator, mixes: list[Mix], of_job: Int64Array, tasks_per_job: float | None
) -> _Jobs:
    """Return what jobs have, each mix at evenly spaced ranks of its curves."""
    drawn = np.zeros((5, len(of_job)))
    for number, mix in enumerate(mixes):
        here = np.flatnonzero(of_job == number)
        stages = rng.standard_normal(len(here))
        others = rng.standard_normal((len(_WITH_STAGES), len(here)))
        barriers, depth, tasks = (
            weight * stages + np.sqrt(1 - weight**2) * other
            for weight, other in zip(_WITH_STAGES.values(), others, strict=True)
        )
        mean = mix.tasks_per_job if tasks_per_job is None else tasks_per_job
        size = np.exp(_JOB_SIGMA * tasks)
        drawn[:, here] = (
            np.rint(np.exp(_values(mix.stages, stages, logarithm=True))),
            np.rint(_values(mix.barriers, barriers)),
            np.rint(np.exp(_values(mix.depth, depth, logarithm=True))),
            _values(mix.input_work, rng.random(len(here))),
            size * mean / size.mean() if len(size) else size,
        )
    num_stages, barriers, depth = drawn[:3].astype(np.int64)
    return _Jobs(num_stages, barriers, depth, drawn[3], drawn[4])


def _values(curve: Curve, scores: Float64Array, *, logarithm: bool = False) -> Float64Array:
    """Return the values of a curve (or their logarithms) at the ranks of scores: rank i of n is (i + 1/2) / n."""
    at, value = np.array(curve).T
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = (np.arange(len(scores)) + 0.5) / max(len(scores), 1)
    return np.interp(ranks, at, np.log(value) if logarithm else value)


def _draw_stages(
    rng: np.random.Generator, shapes: Shapes, drawn: _Jobs, mean_task_s: float, one_to_one: float
) -> tuple[Int64Array, Float64Array, npt.NDArray[np.bool_]]:
    """Return the tasks of each stage, their duration (s), and whether the stage waits one-to-one for its parent."""
    first = shapes.first_stage[:-1]
    job = np.repeat(np.arange(len(first)), drawn.num_stages)
    source = shapes.level == 0
    part = rng.standard_gamma(_SHARE_SHAPE, len(job))
    of_sources = np.add.reduceat(np.where(source, part, 0.0), first)[job]
    of_others = np.add.reduceat(np.where(source, 0.0, part), first)[job]
    reads = drawn.input_work[job]
    share = part * np.where(source, reads / of_sources, (1 - reads) / np.maximum(of_others, _SHORTEST_S))
    wanted_s = mean_task_s * log_normal_factors(rng, _STAGE_SIGMA, len(job))
    per_task = share / wanted_s
    per_task /= np.add.reduceat(per_task, first)[job]
    size = drawn.num_tasks[job] * _fitted(per_task * drawn.num_tasks[job])
    tasks = _rounded(per_task * size)
    work_s = per_task * size * wanted_s  # = the job's work times the stage's share of it
    one = _one_to_one(rng, shapes, tasks, one_to_one)
    return tasks, np.maximum(work_s / tasks, _SHORTEST_S).round(_DIGITS), one


def _rounded(tasks: Float64Array) -> Int64Array:
    return np.maximum(np.rint(tasks), 1).astype(np.int64)


def _fitted(tasks: Float64Array) -> float:
    """Return the factor on numbers of tasks with which they have, rounded and one at least, the sum that they have.

    1 where there are so few that a task for each stage is more.
    """
    total, low, high = float(tasks.sum()), 0.0, 1.0
    if len(tasks) >= total:
        return 1.0
    while high - low > _FACTOR_ERROR:
        middle = (low + high) / 2
        low, high = (middle, high) if _rounded(tasks * middle).sum() < total else (low, middle)
    return high


def _one_to_one(
    rng: np.random.Generator, shapes: Shapes, tasks: Int64Array, share: float
) -> npt.NDArray[np.bool_]:
    """Return which stages wait one-to-one for their only parent, and give these as many tasks, in place."""
    parents = np.bincount(shapes.child, minlength=len(tasks))
    one = (parents == 1) & (rng.random(len(tasks)) < share)
    parent = np.zeros(len(tasks), np.int64)
    parent[shapes.child] = shapes.parent
    for level in range(1, int(shapes.level.max()) + 1 if one.any() else 0):
        at = np.flatnonzero(one & (shapes.level == level))
        tasks[at] = tasks[parent[at]]
    return one


def _vary(rng: np.random.Generator, duration_s: Float64Array, cv: float) -> Float64Array:
    """Return durations times log-normal factors of mean 1 and a coefficient of variation; as they are with 0."""
    if cv == 0:
        return duration_s
    factor = log_normal_factors(rng, np.sqrt(np.log1p(cv * cv)), len(duration_s))
    return np.clip(duration_s * factor, _SHORTEST_S, MAX_TIME_S).round(_DIGITS)


# Random graphs of stages with given numbers of stages, of barriers, and of stages on the longest path.
#
# A barrier is a stage with several parents (Carbyne, OSDI 2016, section 2.2). For all jobs at once:
#
# 1. One stage of a job is at each level, 0 to depth - 1. Of the others, where there are barriers, half on average are
#    at level 0, at least one, and fewer where barriers would not find a place; the rest are at levels from 1 on,
#    uniformly.
# 2. A stage at a level above 0 has a parent at the level before, drawn uniformly: so its level is the longest path to
#    it.
# 3. The last stage is a barrier, and so many of the others as are wanted, drawn among those that have two stages or
#    more at levels before theirs.
# 4. A stage without children becomes a parent of a barrier at a later level, drawn uniformly, where there is one: that
#    is where paths meet. A barrier that is left with one parent gets a second one of any earlier level.
#
# Stages are numbered by level. All other stages have one parent at most, so that the number of barriers is exact.

_FIRST_LEVEL = 0.5


class Shapes(NamedTuple):
    """The graphs of J jobs with S stages and E edges, stages numbered through.

    Attributes
    ----------
    first_stage : ndarray of int64, shape (J + 1,)
    level : ndarray of int64, shape (S,)
    parent, child : ndarray of int64, shape (E,)
    """

    first_stage: Int64Array
    level: Int64Array
    parent: Int64Array
    child: Int64Array


def draw_shapes(
    rng: np.random.Generator, num_stages: Int64Array, barriers: Int64Array, depth: Int64Array
) -> Shapes:
    """Return a graph for each of J jobs.

    Parameters
    ----------
    num_stages, barriers, depth : ndarray of int64, shape (J,)
        What each job is to have. A depth is brought into ``2..num_stages`` (1 for a single stage), and barriers into
        ``0..num_stages - 2``: more are not possible.
    """
    depth = np.clip(depth, np.minimum(2, num_stages), num_stages)
    barriers = np.clip(barriers, 0, np.maximum(num_stages - 2, 0))
    first = first_rows(num_stages)
    job = np.repeat(np.arange(len(num_stages)), num_stages)
    level = _levels(rng, num_stages, barriers, depth, first, job)
    key = job * (int(depth.max()) + 1) + level  # rises from stage to stage
    before = np.searchsorted(key, key)  # the first stage of the same level

    later = np.flatnonzero(level > 0)
    begin = np.searchsorted(key, key[later] - 1)
    parent = begin + (rng.random(len(later)) * (before[later] - begin)).astype(np.int64)
    main = np.full(len(level), -1)
    main[later] = parent

    chosen = _choose_barriers(rng, barriers, first, job, earlier=before - first[job])
    loose = np.ones(len(level), bool)
    loose[parent] = False
    ends = np.flatnonzero(loose)
    low = np.searchsorted(chosen, np.searchsorted(key, key[ends], side="right"))
    high = np.searchsorted(chosen, first[job[ends] + 1])
    meets = high > low
    met = chosen[low[meets] + (rng.random(int(meets.sum())) * (high - low)[meets]).astype(np.int64)]

    lonely = np.setdiff1d(chosen, met)
    others = before[lonely] - first[job[lonely]] - 1
    second = first[job[lonely]] + (rng.random(len(lonely)) * others).astype(np.int64)
    second += second >= main[lonely]
    return Shapes(
        first, level, np.concatenate([parent, ends[meets], second]), np.concatenate([later, met, lonely])
    )


def _levels(
    rng: np.random.Generator,
    num_stages: Int64Array,
    barriers: Int64Array,
    depth: Int64Array,
    first: Int64Array,
    job: Int64Array,
) -> Int64Array:
    """Return the level of each stage, in order within each job."""
    extra = num_stages - depth
    most = np.minimum(extra, num_stages - 1 - barriers)
    sources = np.where(
        barriers > 0, np.clip(rng.binomial(extra, _FIRST_LEVEL), np.minimum(extra, 1), most), 0
    )
    local = np.arange(len(job)) - first[job]
    at = 1 + (rng.random(len(job)) * (depth[job] - 1)).astype(np.int64)
    at[local - depth[job] < sources[job]] = 0
    level = np.where(local < depth[job], local, at)
    return level[np.lexsort((level, job))]


def _choose_barriers(
    rng: np.random.Generator,
    barriers: Int64Array,
    first: Int64Array,
    job: Int64Array,
    earlier: Int64Array,
) -> npt.NDArray[np.int64]:
    """Return the stages that are barriers, in order: of each job the last, and others at random."""
    place = rng.random(len(job))
    place[earlier < 2] = 2.0
    place[first[1:] - 1] = -1.0
    order = np.lexsort((place, job))
    rank = np.arange(len(job)) - first[job]
    return np.sort(order[rank < barriers[job]])


# Bytes of DAGs of queries: what their first stages read of the input, and what goes over each edge.
#
# Of the queries of its evaluation the paper says that their input sizes are "from GBs to hundreds of GBs" [1]_; it has
# no size of a shuffle. So all of this is assumed:
#
# 1. A stage without parents reads what its tasks read from disk in their time: the share of a machine's disks that a
#    task takes (``disk_in``), times the duration, times the tasks, at `DISK_BYTES_PER_S` for all disks of a machine.
#    With 250 MB/s the jobs of the three mixes of benchmarks read 3, 10 and 6 GB at the 5th percentile and 510, 710 and
#    540 GB at the 95th (means over ten seeds). Other stages read no input.
# 2. A stage has what it reads and what its parents send it. It sends on a share of that, uniform in `PASSED_ON`:
#    filters and aggregations leave less. What a stage without children has left is the job's output, which is left out.
# 3. The children of a stage get equal parts of what it sends. Nothing is sent twice: all bytes on the edges of a stage
#    are no more than what it has.
#
# All edges of a job together have 0.8 times its input (median; 0.3 and 1.6 at the 5th and the 95th percentile). Bytes
# of stages that follow others do not go by their demands of disk and network.
#
# References
# ----------
# .. [1] R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan. Altruistic Scheduling in Multi-Resource Clusters.
#    OSDI 2016, section 5.1.

DISK_BYTES_PER_S = 250e6
"""What the disks of a machine read together."""
PASSED_ON = (0.1, 1.0)
"""The least and the most that a stage sends, as a share of what it has."""


class Bytes(NamedTuple):
    """Bytes of S stages and E edges, whole numbers, as `workloads.dags.make_dag_workload` takes them.

    Attributes
    ----------
    input_bytes : ndarray of float64, shape (S,)
    edge_bytes : ndarray of float64, shape (E,)
        In the order of the edges of the graphs.
    """

    input_bytes: Float64Array
    edge_bytes: Float64Array


def draw_bytes(rng: np.random.Generator, shapes: Shapes, read_s: Float64Array, scale: float = 1.0) -> Bytes:
    """Return the bytes of graphs.

    Parameters
    ----------
    shapes : Shapes
        The graphs, of S stages and E edges.
    read_s : ndarray of float64, shape (S,)
        The time in which the tasks of a stage would read their input with all disks of one machine: their number,
        times their duration, times the share of the disks that each takes.
    scale : float
        Factor on all bytes, above 0.
    """
    children = np.bincount(shapes.parent, minlength=len(read_s))
    has = np.where(shapes.level == 0, np.rint(read_s * DISK_BYTES_PER_S * scale), 0.0)
    read = has.copy()
    part = rng.uniform(*PASSED_ON, len(has)) / np.maximum(children, 1)
    sent = np.zeros(len(shapes.parent))
    by_level = np.argsort(shapes.level[shapes.parent], kind="stable")
    first = np.searchsorted(shapes.level[shapes.parent][by_level], np.arange(int(shapes.level.max()) + 2))
    for begin, end in pairwise(first.tolist()):
        edges = by_level[begin:end]  # their parents have all that they get
        sent[edges] = np.floor((has * part)[shapes.parent[edges]])
        np.add.at(has, shapes.child[edges], sent[edges])
    return Bytes(read, sent)
