"""Random graphs of stages with given numbers of stages, of barriers, and of stages on the longest path.

A barrier is a stage with several parents (Carbyne, OSDI 2016, section 2.2). For all jobs at once:

1. One stage of a job is at each level, 0 to depth - 1. Of the others, where there are barriers, half on average are at
   level 0, at least one, and fewer where barriers would not find a place; the rest are at levels from 1 on, uniformly.
2. A stage at a level above 0 has a parent at the level before, drawn uniformly: so its level is the longest path to
   it.
3. The last stage is a barrier, and so many of the others as are wanted, drawn among those that have two stages or more
   at levels before theirs.
4. A stage without children becomes a parent of a barrier at a later level, drawn uniformly, where there is one: that
   is where paths meet. A barrier that is left with one parent gets a second one of any earlier level.

Stages are numbered by level. All other stages have one parent at most, so that the number of barriers is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.groups import Int64Array, first_rows

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
