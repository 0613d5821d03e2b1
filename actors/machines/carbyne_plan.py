"""The plan of one job in its share: how long it takes, and which of its tasks must start now (Carbyne).

`plan` follows Pseudocode 1 of Grandl et al., OSDI 2016, lines 17 to 22:

1. T is how long the job takes if its tasks are packed into its share from now on.
2. Precedence is reversed, and tasks are packed from T backward: each starts as late as it can.
3. Those whose latest start is now must start. The rest of the share is left to others.

Packing is a heuristic: the plan backward may take less than T, and a plan made later may end later. So that no job
ends later than its first plan says while its share does not fall (Theorem 3.1), with `keeps`:

- T is at most what an earlier plan said, and is the length of the plan backward where that is less.
- Where the plan backward takes more than T, the job follows the plan forward if that ends in time, and else the plan
  that it has.

Otherwise T is computed again with each plan, as the pseudocode has it: a job whose plan backward takes less than T may
then start nothing, again and again, unless it gets what is left over.

A plan depends on the job's share, but is the same in shares that differ little: it is made again when the room that the
job has is below `low` or above `high`.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER
from actors.machines.dag_world import DagWorld
from actors.machines.share_packing import (
    BACKWARD,
    FORWARD,
    LONGEST,
    Batches,
    SharePacking,
    begin,
    end_first,
    pack,
    place_running,
    unplaced,
    until_end,
)

ROUNDED = 1.0 - 2.0**-40
"""What is left of a bound where its computation may have been rounded."""


class Plan(NamedTuple):
    """What the plans of jobs say; J jobs, S stages, T tasks, R resources.

    The plan of a job is the first `batches` of its rows of `of_job`, which are as many as its tasks.
    """

    of_job: Batches  # [T]
    first: np.ndarray  # [J + 1] where the rows of a job begin
    batches: np.ndarray  # [J]
    must: np.ndarray  # [S] tasks that must be launched now
    due: np.ndarray  # [J] when the next task must, ns
    planned: np.ndarray  # [J] bool: the plan is of what the job has now
    promise: np.ndarray  # [J] when the job ends by its plans since its share fell last, ns
    largest: np.ndarray  # [J, R] the largest demand of a task of the job: it has at least room for that
    low: np.ndarray  # [J, R] the least room in which the plan is the same
    high: np.ndarray  # [J, R] and the most
    keeps: bool  # what plans promised
    with_events: bool  # jobs are planned again with every event, and not where their plans may be others
    packing: SharePacking


@compiled
def forward(w: DagWorld, p: SharePacking, me: int, job: int, t: int) -> int:
    """Step 1: return how long the job takes in its share, ns; NEVER if a task does not fit there."""
    begin(w, p, job, FORWARD)
    place_running(w, p, job, t, FORWARD, np.int64(0))
    now: int = 0
    pack(w, p, me, job, FORWARD, now)
    while p.ends.size[0] > 0:
        now = end_first(w, p, job, FORWARD)
        pack(w, p, me, job, FORWARD, now)
    return now if p.num_able[0] == 0 else NEVER


@compiled
def backward(w: DagWorld, p: SharePacking, me: int, job: int, t: int, length: int) -> None:
    """Step 2: pack tasks from the end backward, while running tasks hold their room, which end `length` before that."""
    begin(w, p, job, BACKWARD)
    place_running(w, p, job, t, BACKWARD, length)
    pack(w, p, me, job, BACKWARD, np.int64(0))
    while p.ends.size[0] > 0:
        pack(w, p, me, job, BACKWARD, end_first(w, p, job, BACKWARD))


@compiled
def takes(w: DagWorld, p: SharePacking, job: int, t: int) -> int:
    """Return how long the job takes if its plan backward starts now, ns; NEVER if some tasks have no room."""
    if p.num_able[0] > 0:
        return NEVER
    longest: int = 0
    for i in range(p.num_made[0]):
        stage = p.made.stage[i]
        ends = p.made.begin[i] + w.stages.duration[stage]
        longest = max(longest, ends + until_parents_end(w, p, stage, t))
    return longest


@compiled
def until_parents_end(w: DagWorld, p: SharePacking, stage: int, t: int) -> int:
    """Return how long a stage must wait for running tasks of its parents, ns."""
    longest: int = 0
    for edge in range(p.first_parent[stage], p.first_parent[stage + 1]):
        longest = max(longest, until_end(w, p, p.parent[edge], t))
    return longest


@compiled
def longest_running(w: DagWorld, p: SharePacking, job: int, t: int) -> int:
    """Return when the last of a job's running tasks ends, ns from now."""
    longest: int = 0
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        longest = max(longest, until_end(w, p, stage, t))
    return longest


@compiled
def plan_kept(w: DagWorld, p: Plan, me: int, job: int, t: int, length: int) -> None:
    """Plan backward from what plans have promised, or from earlier; where that is too early, keep the plan there is."""
    within = min(length, p.promise[job] - t)
    backward(w, p.packing, me, job, t, within)
    shortest = takes(w, p.packing, job, t)
    if shortest <= within:
        adopt(w, p, job, t, BACKWARD, within)
        sooner = max(shortest, longest_running(w, p.packing, job, t))
        if sooner < within:
            backward(w, p.packing, me, job, t, sooner)
            if takes(w, p.packing, job, t) <= sooner:
                adopt(w, p, job, t, BACKWARD, sooner)
    elif length == within:
        forward(w, p.packing, me, job, t)
        adopt(w, p, job, t, FORWARD, within)


@inlined
def begin_of(w: DagWorld, p: SharePacking, i: int, t: int, direction: int, length: int) -> int:
    """Return when a batch that was packed begins, ns."""
    if direction == FORWARD:
        return t + p.made.begin[i]
    return t + length - p.made.begin[i] - w.stages.duration[p.made.stage[i]]


@compiled
def adopt(w: DagWorld, p: Plan, job: int, t: int, direction: int, length: int) -> None:
    """Let what was packed be the plan of the job, which ends so long from now; what had no room does not begin."""
    x, of_job, first = p.packing, p.of_job, p.first[job]
    rows = x.num_made[0]
    for i in range(rows):
        stage = x.made.stage[i]
        of_job.stage[first + i], of_job.tasks[first + i] = stage, x.made.tasks[i]
        begins = (
            x.made.begin[i] if direction == FORWARD else length - x.made.begin[i] - w.stages.duration[stage]
        )
        of_job.begin[first + i] = t + begins
    if x.num_able[0] > 0:
        for stage in range(w.first_stage[job], w.first_stage[job + 1]):
            left = x.left[stage - w.first_stage[job]]
            if left > 0:
                of_job.stage[first + rows], of_job.tasks[first + rows] = stage, left
                of_job.begin[first + rows] = NEVER
                rows += 1
    p.promise[job], p.batches[job] = t + length, rows


@compiled
def follow(w: DagWorld, p: Plan, job: int, t: int) -> None:
    """Step 3: note which tasks must start now by the job's plan, and when the next ones must."""
    of_job = p.of_job
    p.due[job] = NEVER
    for stage in range(w.first_stage[job], w.first_stage[job + 1]):
        p.must[stage] = unplaced(w, p.packing, stage)
    for i in range(p.first[job], p.first[job] + p.batches[job]):
        if of_job.begin[i] > t:
            p.must[of_job.stage[i]] -= of_job.tasks[i]
            p.due[job] = min(p.due[job], of_job.begin[i])


@inlined
def room_of(p: Plan, share: np.ndarray, job: int, r: int) -> int:
    """Return the room that a job has for its plans: its share, and at least what its largest task needs."""
    return max(share[job, r], p.largest[job, r])


@compiled
def is_other_room(p: Plan, share: np.ndarray, job: int) -> bool:
    """Whether a job's share may give it another plan than the share that it had."""
    for r in range(p.low.shape[1]):
        room = room_of(p, share, job, r)
        if room < p.low[job, r] or room > p.high[job, r]:
            return True
    return False


@compiled
def plan(w: DagWorld, p: Plan, me: int, share: np.ndarray, job: int, t: int) -> None:
    """Plan a job of manager `me` from now on. If a task does not fit into its share, all that may be launched must."""
    x = p.packing
    x.change[0] = np.inf
    for r in range(x.whole.size):
        x.whole[r], x.less[r], x.more[r] = room_of(p, share, job, r), NEVER, NEVER
    length = forward(w, x, me, job, t)
    if length == NEVER:
        p.due[job] = NEVER
        for stage in range(w.first_stage[job], w.first_stage[job + 1]):
            p.must[stage] = w.stages.ready[stage]
    else:
        if length < LONGEST and p.keeps:
            plan_kept(w, p, me, job, t, length)
        elif length < LONGEST:
            backward(w, x, me, job, t, length)
            adopt(w, p, job, t, BACKWARD, length)
        else:
            adopt(w, p, job, t, FORWARD, length)
        follow(w, p, job, t)
    note_range(p, job)
    p.planned[job] = True


@compiled
def note_range(p: Plan, job: int) -> None:
    """Note in which rooms of a job all packings of its plan are the same."""
    x = p.packing
    for r in range(x.whole.size):
        room = x.whole[r]
        change = NEVER
        if x.change[0] < np.inf:  # of no room, the product with infinity is no number
            change = np.int64(min(x.change[0] * ROUNDED * room, float(NEVER)))
        p.low[job, r] = room - min(x.less[r], change)
        p.high[job, r] = room + min(x.more[r], change)
