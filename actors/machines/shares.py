"""Shares of jobs, and the order in which jobs are served: the inter-job part of a scheduler of DAGs."""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.machines.dag_world import DagWorld
from actors.machines.manager_state import Matcher, end_of_active

DRF, FAIR, FIXED, LEAST_LEFT, QUEUES = (np.int64(i) for i in range(5))
"""How jobs are served: by what they hold, with a DRF share or an equal one; in an order that does not change; the job
with the least work left first; by queues."""

ROUNDING = 2.0**-40
"""What a sum over thousands of jobs may lose, as a part of it: else 49 equal jobs would have one task each, not two."""


@compiled
def divide(w: DagWorld, m: Matcher, me: int, band: int, profile: np.ndarray) -> None:
    """Give every active job of a band its share, of what the bands above leave.

    Dominant resource fairness in closed form (Parkes, Dolev and Shah, EC 2012): with v_j the demand of a job's mean
    task over the cluster's capacity, divided by its largest element, each job gets x v_j of the capacity, where x = 1 /
    max over resources of the sum of v_j; where bands above hold a part of a resource, the largest x with which the
    sum fits into the rest. Fair: each gets the same part of every resource. Queues keep their guarantees. Others: all
    of the cluster.
    """
    total, room, first, end = w.machines.total, m.room, m.run.first_job[band], end_of_active(m, band)
    if m.inter == QUEUES:
        return
    if m.inter != DRF:
        parts = np.int64(max(end - first, 1)) if m.inter == FAIR else np.int64(1)
        for i in range(first, end):
            for r in range(total.shape[1]):
                whole = room[band, r] if m.inter == FAIR else total[me, r]
                m.share[m.active[i], r] = whole // parts
        return
    most = 0.0
    for r in range(total.shape[1]):
        together = 0.0
        for i in range(first, end):
            together += profile[m.active[i], r]
        if room[band, r] < total[me, r]:
            together = together * total[me, r] / max(room[band, r], np.int64(1))
        most = max(most, together)
    for i in range(first, end):
        job = m.active[i]
        for r in range(total.shape[1]):
            m.share[job, r] = (
                nearest_whole(profile[job, r] / most * total[me, r]) if most > 0.0 else total[me, r]
            )


@inlined
def nearest_whole(amount: float) -> int:
    """Return the whole number that is nearest to an amount, which rounding may have made smaller than it is."""
    return np.int64(amount * (1.0 + ROUNDING) + 0.5)


@compiled
def dominant_share(w: DagWorld, m: Matcher, me: int, queue: int) -> float:
    """Return the largest share of a resource of the manager that a queue holds (Ghodsi et al., NSDI 2011)."""
    most = 0.0
    for r in range(m.used.shape[1]):
        if w.machines.total[me, r] > 0:
            most = max(most, m.used[queue, r] / w.machines.total[me, r])
    return most


@compiled
def over_share(w: DagWorld, m: Matcher, job: int) -> float:
    """Return how far the queue of a job is over its share: the most by a resource, as a part of the manager's.

    Less than 0 where it holds less than its share of each.
    """
    me, queue, most = m.band[job] // m.bands, m.queue[job], -np.inf
    for r in range(m.used.shape[1]):
        if w.machines.total[me, r] > 0:
            most = max(most, (m.used[queue, r] - m.share[queue, r]) / w.machines.total[me, r])
    return most


@inlined
def update_rank(w: DagWorld, m: Matcher, me: int, job: int) -> None:
    """Update the rank of a job that has got or given back resources."""
    if m.inter == LEAST_LEFT:
        m.rank[job] = m.left[job]
    elif m.inter != FIXED:
        queue = m.queue[job]
        m.rank[queue] = dominant_share(w, m, me, queue) / m.guarantee[queue]
