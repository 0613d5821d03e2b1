"""MapReduce jobs like those of Facebook's trace in Carbyne's evaluation [1]_: a stage of maps, and mostly no reducers.

Of that trace the paper says that it has 7,000 jobs and 650,000 tasks in six hours, that all jobs are MapReduce jobs
and many are map-only (sections 5.1 and 5.3). The trace is not published. Measured on SWIM's sample of Facebook's
cluster of 2009 [2]_, a day of 5,894 jobs and 463,057 tasks read as `workloads.readers.swim` makes tasks of bytes, are:

- the share of map-only jobs: 75 % (they shuffle nothing);
- the curve of tasks a job: 1 up to the 75th percentile, 10 at the 90th, 113 at the 95th, 1,200 at the 99th. Above that
  it is straight in the logarithm up to 20,000 (ours: the sample has a job of 112,523), and what is more than one task
  is scaled by the factor with which the sum is the number of tasks that is wanted;
- bytes that maps read and reducers get, by the number of maps: below, with their functions. Over ten seeds
  jobs that shuffle move 1.02 times what they read (standard deviation 0.18; the sample 1.04), and all jobs together
  0.30 GB/s (the sample 0.26). Which job has reducers does not go by its size, as it does in the sample (240 of 307 jobs
  with more than 100 maps, of the others 22 %): jobs that shuffle read 16 % of all bytes, there 79 %.

Assumed: of a job with reducers, which has two tasks at least, a share of the tasks that is uniform in 10 % to 50 %
reduces; durations of stages are log-normal with sigma 0.6, of maps with the given mean and of reducers with twice
that; demands are those of `workloads.generators.demands`.

References
----------
.. [1] R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan. Altruistic Scheduling in Multi-Resource Clusters.
   OSDI 2016.
.. [2] github.com/SWIMProjectUCB/SWIM, workloadSuite/FB-2009_samples_24_times_1hr_0.tsv.
"""

from __future__ import annotations

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
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array
from workloads.limits import check_tasks

_STREAMS = ("jobs", "stages", "demands", "arrivals", "tenants", "bytes")  # random numbers of their own
_CURVE = ((0.75, 1), (0.90, 10), (0.95, 113), (0.99, 1200), (1.0, 20_000))
_REDUCING = (0.1, 0.5)
_SIGMA, _REDUCE_RATIO = 0.6, 2.0
_DIGITS, _SHORTEST_S = 9, 1e-3
_STEPS = 60


def facebook_mapreduce(
    *,
    jobs: int = 7_000,
    tasks: int = 650_000,
    seed: int = DEFAULT_SEED,
    arrivals: str = "poisson",
    span_s: float = 21_600.0,
    map_only: float = 0.75,
    mean_task_s: float = 40.0,
    diversity: float = 1.0,
    tenants: int = 1,
    bytes_scale: float = 1.0,
    burst_ratio: float = Arrivals.burst_ratio,
    burst_jobs: float = Arrivals.burst_jobs,
    period_s: float = Arrivals.period_s,
    amplitude: float = Arrivals.amplitude,
) -> DagWorkload:
    """Return DAG jobs of one or two stages with demands of six resources, like Facebook's MapReduce jobs.

    Parameters
    ----------
    jobs, tasks : int
        Numbers of jobs and of all their tasks; 7,000 and 650,000 as in the paper.
    seed : int
    arrivals : str
        ``poisson``, ``at-once``, ``bursty`` or ``diurnal``. The paper has the trace's own.
    span_s : float
        Time over which the jobs arrive on average; six hours as in the paper.
    map_only : float
        The share of jobs without reducers.
    mean_task_s : float
        Mean duration of stages of maps (s); that of reducers is twice that. All tasks of a stage are alike.
    diversity : float
        How far demands of stages differ, 0..1.
    tenants : int
        Jobs belong to so many tenants, ``t0``, ``t1``, drawn uniformly; with 1 they have none.
    bytes_scale : float
        Factor on the bytes that maps read and send, for other loads of the network by the same jobs; 0: no bytes are
        stated.
    burst_ratio, burst_jobs, period_s, amplitude
        As in `workloads.generators.arrivals`.

    Raises
    ------
    InputError
        A parameter is out of its range, or there are fewer tasks than the jobs need.
    """
    _check(jobs, tasks, span_s, map_only, mean_task_s)
    check_scale("bytes_scale", bytes_scale)
    process = RatedArrivals(arrivals, jobs / span_s, 1, 1, burst_ratio, burst_jobs, period_s, amplitude)
    rng = {purpose: generator(seed, stream) for stream, purpose in enumerate(_STREAMS, start=1)}
    reduces = rng["jobs"].permutation(jobs) >= round(map_only * jobs)
    num_tasks = _draw_tasks(rng["jobs"], tasks, np.where(reduces, 2, 1))
    share = rng["jobs"].uniform(*_REDUCING, jobs)
    reducers = np.where(reduces, np.clip(np.rint(share * num_tasks), 1, num_tasks - 1), 0).astype(np.int64)
    there = np.stack([np.ones(jobs, bool), reduces], axis=1)
    stage_tasks = np.stack([num_tasks - reducers, reducers], axis=1)[there]
    is_map = np.tile([True, False], (jobs, 1))[there]
    factor = log_normal_factors(rng["stages"], _SIGMA, len(is_map))
    duration_s = np.where(is_map, 1.0, _REDUCE_RATIO) * mean_task_s * factor
    duration_s = np.clip(duration_s, _SHORTEST_S, MAX_TIME_S).round(_DIGITS)
    last = np.append(is_map[1:], True)  # of its job
    shuffling = np.flatnonzero(reduces)
    moved = {}
    if bytes_scale:
        read, shuffled = draw_bytes(rng["bytes"], num_tasks - reducers, reduces, bytes_scale)
        of_stages = np.stack([read, np.zeros(jobs)], axis=1)[there]
        moved = {"input_bytes": of_stages, "edge_bytes": shuffled[reduces]}
    return make_dag_workload(
        "facebook-mapreduce",
        process.times_within(rng["arrivals"], jobs, "span_s"),
        there.sum(axis=1),
        stage_tasks,
        np.repeat(duration_s, stage_tasks),
        np.stack([shuffling, np.zeros_like(shuffling), np.ones_like(shuffling)], axis=1),
        stage_mean_s=duration_s,
        stage_name=np.where(is_map, "map", "reduce").tolist(),
        demands=draw_demands(rng["demands"], is_map, last, diversity),
        **moved,
        tenant=draw_tenants(rng["tenants"], jobs, tenants),
        metadata={
            "origin": "generator facebook-mapreduce",
            "parameters": f"jobs={jobs} tasks={tasks} seed={seed} arrivals={process} span_s={span_s:g} "
            f"map_only={map_only:g} mean_task_s={mean_task_s:g} diversity={diversity:g} tenants={tenants} "
            f"bytes_scale={bytes_scale:g}",
            "recipe": "numbers of jobs and tasks and the span of Carbyne's trace of Facebook; tasks a job, the "
            "share of map-only jobs and bytes of SWIM's FB-2009 sample; durations and demands assumed",
        },
    )


def _check(jobs: int, tasks: int, span_s: float, map_only: float, mean_task_s: float) -> None:
    check_whole("jobs", jobs, 1, MAX_JOBS)
    check_share("map_only", map_only)
    check_whole("tasks", tasks, 1, 2**40)
    check_tasks(tasks, field="tasks")
    if tasks < (least := 2 * jobs - round(map_only * jobs)):
        wrong = f"{jobs} jobs, of which {least - jobs} have reducers, need {least} tasks or more; got {tasks}"
        raise InputError(wrong, field="tasks")
    check_positive("span_s", span_s)
    check_positive("mean_task_s", mean_task_s)


def _draw_tasks(rng: np.random.Generator, total: int, least: Int64Array) -> Int64Array:
    """Return the number of tasks of each job, `least` or more, with the sum `total`.

    Ranks are evenly spaced on the curve. What rounding leaves goes to the largest job.
    """
    at, value = np.array(_CURVE).T
    ranks = (rng.permutation(len(least)) + 0.5) / len(least)
    above = np.exp(np.interp(ranks, at, np.log(value))) - 1
    if not above.any():
        above[:] = 1.0  # so few jobs that all are at the curve's beginning
    low, high = 0.0, total / above.max() + 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _scaled(above, middle, least).sum() <= total else (low, middle)
    tasks = _scaled(above, low, least)
    tasks[np.argmax(above)] += total - tasks.sum()
    return tasks


def _scaled(above: Float64Array, factor: float, least: Int64Array) -> Int64Array:
    return np.maximum(1 + np.rint(above * factor), least).astype(np.int64)


# Bytes of MapReduce jobs: what their maps read, and what reducers get of them.
#
# Measured on SWIM's sample of Facebook's cluster of 2009 [1]_, a day of 5,894 jobs of which 1,446 shuffle, with a map
# for each block of 64 MiB (`workloads.readers.swim`):
#
# - Input of jobs of one map: the quantiles `_ONE_MAP`. Half of those without a shuffle (4,280 jobs) read less than 5
#   kB, half of those with one (782) less than 1 MB.
# - Input of jobs of more maps: full blocks, and a last one of which the used part is uniform (832 jobs; its quartiles
#   are at 22, 48 and 75 %, and 5 and 95 % at 3 and 95 %).
# - Shuffle over input: the quantiles `_RATIOS` by number of maps. It falls with the size of the job: the rank
#   correlation with the number of maps is -0.19, and all bytes of jobs of 10 maps and fewer are 3.2 times their input,
#   of those of more than 1,000 maps 0.94 times.
#
# Quantiles are of 5, 10, 25, 50, 75, 90, 95 and 99 %. The values of a workload are at evenly spaced ranks of the curves
# through them, which are straight in the logarithm, and are given to jobs in random order, so that each workload meets
# them.
#
# Assumed: the curves end where the quantiles do (the largest ratio of the sample is 82); the ratio depends on nothing
# but the number of maps, and not on the number of reducers. Output is left out: no workload of Emu has it.
#
# References
# ----------
# .. [1] github.com/SWIMProjectUCB/SWIM, workloadSuite/FB-2009_samples_24_times_1hr_0.tsv.

BLOCK_BYTES = 64 << 20
"""What a map reads, except for the last of a job: a block of the file system of that time."""

_RANKS = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)
# By whether the job shuffles: input (B) of jobs of one map.
_ONE_MAP: dict[bool, tuple[float, ...]] = {
    False: (62, 62, 154, 5_030, 36_200, 52_000, 58_500, 13_800_000),
    True: (918, 3_010, 35_700, 961_000, 12_200_000, 27_500_000, 45_000_000, 55_900_000),
}
# By the most maps that jobs have: shuffle over input, of 981, 225, 181 and 59 jobs.
_RATIOS: dict[int, tuple[float, ...]] = {
    10: (0.000211, 0.000456, 0.5, 2.0, 3.31, 5.76, 8.14, 12.8),
    100: (4.67e-6, 0.00096, 0.0423, 1.1, 2.83, 5.97, 6.94, 9.37),
    1_000: (1.8e-6, 3.19e-5, 0.00932, 1.03, 1.23, 3.03, 4.11, 7.47),
    2**62: (3.78e-8, 2.72e-7, 0.00292, 0.24, 1.2, 2.97, 4.61, 8.19),
}


class Bytes(NamedTuple):
    """Bytes of J jobs: arrays of shape (J,), whole numbers.

    Attributes
    ----------
    read : ndarray of float64
        By all maps; at least 1.
    shuffled : ndarray of float64
        From all maps to all reducers: 0 of jobs that do not shuffle, else at least 1.
    """

    read: Float64Array
    shuffled: Float64Array


def draw_bytes(
    rng: np.random.Generator, maps: Int64Array, shuffles: npt.NDArray[np.bool_], scale: float = 1.0
) -> Bytes:
    """Return the bytes of jobs with so many maps.

    Parameters
    ----------
    maps : ndarray of int64, shape (J,)
    shuffles : ndarray of bool, shape (J,)
        Whether the job has reducers.
    scale : float
        Factor on all bytes, above 0.
    """
    read = (maps - rng.random(len(maps))) * BLOCK_BYTES
    for with_shuffle, curve in _ONE_MAP.items():
        here = np.flatnonzero((maps == 1) & (shuffles == with_shuffle))
        read[here] = _on_curve(rng, curve, len(here))
    shuffled, fewest = np.zeros(len(maps)), 0
    for most, curve in _RATIOS.items():
        here = np.flatnonzero(shuffles & (maps > fewest) & (maps <= most))
        shuffled[here] = read[here] * _on_curve(rng, curve, len(here))
        fewest = most
    return Bytes(_whole(read * scale), np.where(shuffles, _whole(shuffled * scale), 0.0))


def _whole(size: Float64Array) -> Float64Array:
    return np.maximum(np.rint(size), 1.0)


def _on_curve(rng: np.random.Generator, curve: tuple[float, ...], count: int) -> Float64Array:
    """Return values at evenly spaced ranks of a curve, in random order."""
    ranks = (rng.permutation(count) + 0.5) / max(count, 1)
    return np.exp(np.interp(ranks, _RANKS, np.log(curve)))
