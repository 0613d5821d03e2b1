"""What machines have, and what the resource manager takes tasks to need: an estimate, which may differ from the use."""

import numpy as np

from actors.conditions import error_factor
from actors.resources import amounts
from actors.setting import Estimates, Setting
from clusters.capacity import capacities, demands


def needs_and_capacity(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return what a task of each stage is taken to need, [S, R], and what nodes have, [N, R], in billionths."""
    workload = setting.workload
    capacity = amounts(capacities(setting.cluster, workload.resources))
    return estimated_demand(amounts(demands(workload)), capacity, setting.estimates, setting.seed), capacity


def estimated_demand(demand: np.ndarray, capacity: np.ndarray, estimates: Estimates, seed: int) -> np.ndarray:
    """Return what a task of each stage is taken to need, [S, R] whole billionths.

    The error is that of durations, drawn again for each stage and resource. A task is taken to need no more than some
    machine has that it fits on: else it would never be launched.

    Args:
        demand: [S, R] what tasks need.
        capacity: [N, R] what machines have.
    """
    if not estimates.demands or estimates.error == "none":
        return demand
    factor = error_factor(estimates, [seed, 0xDE3A], demand.shape)
    found = np.minimum(np.rint(demand * factor), float(capacity.max())).astype(np.int64)
    limit = np.full(demand.shape, -1, np.int64)
    for machine in np.unique(capacity, axis=0):
        first = (limit[:, 0] < 0) & (demand <= machine).all(axis=1)
        limit[first] = machine
    return np.where(limit >= 0, np.minimum(found, limit), found)
