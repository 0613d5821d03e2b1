"""Before the jobs of a band are served: their shares and plans, in what the bands above leave."""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.kernel.random import random_bits, unit
from actors.machines import runnable
from actors.machines.carbyne_plan import is_other_room, plan
from actors.machines.dag_world import N_MATCHES, DagWorld
from actors.machines.matching import NO_LEFTOVER, Manager, bound_rank, divide, end_of_active, end_waits

SAME, RISEN, FALLEN = (np.int64(i) for i in range(3))
"""How shares may differ from those that the jobs of a band have got last."""
ALTRUISM = np.int64(0x70)  # a stream of random numbers


@inlined
def forget_plans(p: Manager, me: int) -> None:
    """Have all jobs planned again, if they are with every arrival and every end of a job or a task."""
    matcher = p.matcher
    if p.plan.with_events:
        for band in range(me * matcher.bands, (me + 1) * matcher.bands):
            for i in range(matcher.run.first_job[band], end_of_active(matcher, band)):
                p.plan.planned[matcher.active[i]] = False


@inlined
def begin_match(w: DagWorld, p: Manager) -> None:
    """Begin with the highest band: nothing is held above it."""
    w.counts[N_MATCHES] += 1
    p.launched[0] = 0
    if p.matcher.bands > 1:
        for r in range(p.above.size):
            p.above[r] = 0


@inlined
def begin_band(w: DagWorld, p: Manager, me: int, band: int, t: int) -> int:
    """Plan the jobs of a band in what the bands above leave, and find which of them may launch.

    Returns when the next planned task must start, or the next wait for local tasks ends, ns; `NEVER` without these.
    """
    nearest: int = NEVER
    if p.matcher.bands > 1:
        follow_room(w, p, me, band)
    divide_again(w, p, me, band)
    if p.matcher.locality_wait > 0:
        nearest = end_waits(w, p.matcher, band, t)
    if p.altruism > 0.0:
        nearest = min(nearest, plan_jobs(w, p, me, band, t))
    if p.matcher.pack.values.fairness > 0.0:
        bound_rank(p, band)
    return nearest


@inlined
def follow_room(w: DagWorld, p: Manager, me: int, band: int) -> None:
    """Note whether the bands above hold more or less than at the last match."""
    for r in range(p.above.size):
        room, before = w.machines.total[me, r] - p.above[r], p.matcher.room[band, r]
        if room != before:
            p.shares_differ[band] = max(p.shares_differ[band], FALLEN if room < before else RISEN)
            p.matcher.room[band, r] = room


@inlined
def end_band(p: Manager, band: int) -> None:
    """Note what a band holds, which those below cannot have."""
    if p.matcher.bands > 1:
        for r in range(p.above.size):
            p.above[r] += p.matcher.held[band, r]


@compiled
def divide_again(w: DagWorld, p: Manager, me: int, band: int) -> None:
    """Divide the shares of a band again if jobs have arrived or ended, or the bands above hold more or less."""
    matcher, have_fallen = p.matcher, p.shares_differ[band] == FALLEN
    if p.shares_differ[band] == SAME:
        return
    p.shares_differ[band] = SAME
    divide(w, matcher, me, band, p.profile)
    for i in range(matcher.run.first_job[band], end_of_active(matcher, band)):
        job = matcher.active[i]
        if have_fallen:
            p.plan.promise[job] = NEVER
        if p.altruism < 1.0 or is_other_room(p.plan, matcher.share, job):
            p.plan.planned[job] = False
        if matcher.leftover == NO_LEFTOVER and w.heartbeat == 0:
            runnable.make_job_fresh(matcher.run, band, job)


@compiled
def plan_jobs(w: DagWorld, p: Manager, me: int, band: int, t: int) -> int:
    """Plan jobs of a band that have another share or other tasks than when they were planned, or a task that is due.

    Returns when the next planned task of the band must start, ns.
    """
    matcher = p.matcher
    for i in range(matcher.run.first_job[band], runnable.end_of_jobs(matcher.run, band)):
        job = matcher.run.jobs[i]
        if not p.plan.planned[job] or p.plan.due[job] <= t:
            p.turns[job] += 1
            matcher.altruistic[job] = unit(random_bits(w.seed, ALTRUISM, job, p.turns[job])) <= p.altruism
            if matcher.altruistic[job]:
                plan(w, p.plan, me, matcher.share, job, t)
                stage = matcher.run.first[job]
                while stage != NONE:
                    if matcher.must[stage] > 0:
                        runnable.make_fresh(matcher.run, band, stage)
                    stage = matcher.run.next[stage]
            else:
                p.plan.planned[job], p.plan.due[job] = True, NEVER
    nearest: int = NEVER
    for i in range(matcher.run.first_job[band], runnable.end_of_jobs(matcher.run, band)):
        nearest = min(nearest, p.plan.due[matcher.run.jobs[i]])
    return nearest
