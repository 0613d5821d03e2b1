"""Another workload like this one: blocks of its time, drawn with replacement and put one after the other.

The circular block bootstrap, for arrivals in time (Politis and Romano: A circular block-resampling procedure for
stationary data; in LePage and Billard, eds., Exploring the Limits of Bootstrap, Wiley 1992, pages 263-270):

1. The time of the trace is closed to a circle: from the first arrival to the last, and a mean gap more, so that the
   first follows on the last.
2. Blocks of the given length begin at times that are uniform on the circle, each drawn by itself. There are as many as
   fill the circle; the last is as long as what is left.
3. What arrives in a block arrives at the same distance from the block's beginning, and the blocks follow each other.

Each arrival is so expected once: the expected number of jobs and of task-seconds, or bytes, are those of the trace.
(Without the circle those near its ends would be drawn less often.) What lies within a block stays together: bursts,
gaps, the order of jobs. What goes beyond it is lost: a block should be long beside bursts, and short beside the trace.
The trace is taken to be stationary, so that a time of day is another one after resampling.
"""

from __future__ import annotations

import math

import numpy as np

from workloads.arrow import column
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.draws import generator
from workloads.groups import first_rows
from workloads.jobs import Float64Array, Int64Array
from workloads.transform.history import recorded
from workloads.transform.primitives import W, Workload, arrivals_s, arriving_at, family, heads, take

MAX_BLOCKS = 10_000_000
_STREAM = 0xB10C
_MAX_ID = 2**62


def resample(workload: W, block_s: float, seed: int = DEFAULT_SEED) -> W:
    """Return a workload of blocks of this one's time, drawn with replacement until its span is filled.

    A job keeps its tasks, constraints and tenant, a DAG its stages, a coflow its flows and the time to its deadline. An
    arrival that is drawn n times is there n times, with the ids ``c * m + id``: ``id`` is that in this workload, ``c``
    is 0 for the first copy, and ``m`` is the least power of ten above all ids, as the history says. (Where an id is
    negative, or too large for that, ``id`` is the place in this workload, from 0 on.)

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    block_s : float
        Length of a block (s). As long as the span or longer, the result is the workload begun at another time.
    seed : int

    Raises
    ------
    InputError
        All arrive at once, an option is out of range, or nothing arrives in the blocks that were drawn.
    """
    rng = generator(seed, _STREAM)
    times_s, name = arrivals_s(workload), family(workload).name
    span_s = float(times_s[-1] - times_s[0])
    if span_s <= 0:
        raise InputError(
            f"all {name} of {workload.name} arrive at once, so that no blocks of time can be drawn"
        )
    if not 0 < block_s < math.inf:
        raise InputError(f"{block_s!r} is not a duration above 0", field="block_s")
    if span_s / block_s > MAX_BLOCKS:
        problem = (
            f"{block_s:g} s makes more than {MAX_BLOCKS:,} blocks of the {span_s:g} s of {workload.name}"
        )
        raise InputError(problem, field="block_s")
    circle_s = span_s * len(times_s) / (len(times_s) - 1)
    length_s = block_s if block_s < span_s else circle_s
    places, drawn_s = _blocks(times_s - times_s[0], circle_s, length_s, rng)
    if len(places) == 0:
        problem = (
            f"none of the {name} of {workload.name} arrives in the blocks of {block_s:g} s that were drawn"
        )
        raise InputError(f"{problem}; want longer blocks", field="block_s")
    own = _ids(workload, int(np.bincount(places).max()))
    by = 10 ** len(str(int(own.max())))
    made = arriving_at(take(workload, places, _copy_of(places) * by + own[places]), times_s[0] + drawn_s)
    outcome = (
        f"{len(places):,} {name}, {len(np.unique(places)):,} of {len(times_s):,}; ids are copy * {by} + id"
    )
    return recorded(made, "resample", {"block_s": block_s, "seed": seed}, outcome)


def _blocks(
    at_s: Float64Array, circle_s: float, length_s: float, rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Return the arrivals in the blocks that are drawn, and when they arrive (s); `at_s` begins at 0."""
    count = math.ceil(circle_s / length_s)
    block = np.arange(count)
    begin_s = rng.random(count) * circle_s
    end_s = begin_s + np.minimum(length_s, circle_s - block * length_s)
    twice_s = np.concatenate([at_s, at_s + circle_s])
    first, end = np.searchsorted(twice_s, begin_s), np.searchsorted(twice_s, end_s)
    block = np.repeat(block, end - first)
    rows = np.arange(len(block)) + (first - first_rows(end - first)[:-1])[block]
    return rows % len(at_s), block * length_s + (twice_s[rows] - begin_s[block])


def _ids(workload: Workload, copies: int) -> Int64Array:
    """Return the ids of a workload; its places where so many copies of them would not be int64."""
    ids = column(heads(workload), family(workload).key)
    fit = ids.min() >= 0 and copies * 10 ** len(str(int(ids.max()))) < _MAX_ID
    return ids if fit else np.arange(len(ids), dtype=np.int64)


def _copy_of(places: Int64Array) -> Int64Array:
    """Return how often each place was there before."""
    order = np.argsort(places, kind="stable")
    counts = np.unique(places, return_counts=True)[1]
    copy = np.empty(len(places), np.int64)
    copy[order] = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return copy
