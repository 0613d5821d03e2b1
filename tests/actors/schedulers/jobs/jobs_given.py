"""What the simulators of jobs are given: for `jobs_simulator`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """When it arrives, how long each task runs, how long the scheduler expects it to hold its room, what each task
    needs, on how many nodes they lie (0: any), its priority, of which a larger one goes first, whether it is a gang,
    and its tenant."""

    submit: int
    runs: Sequence[int]
    expected: int
    needs: Sequence[int]
    nodes: int = 0
    priority: int = 0
    gang: bool = True
    tenant: int = 0


class Tenants(NamedTuple):
    """Whether the tenant that holds least for its weight goes first, and the part of the cluster that each may hold."""

    by_share: bool
    weight: Sequence[float]
    ceiling: Sequence[float]

    def share(self, tenant: int, held: Sequence[int], total: Sequence[int]) -> float:
        """Return the dominant share of a tenant that holds so much, over its weight."""
        return max([h / c for h, c in zip(held, total, strict=True) if c], default=0.0) / self.weight[tenant]

    def room(self, tenant: int, held: Sequence[int], total: Sequence[int], needs: Sequence[int]) -> float:
        """Return how many tasks that need so much its ceiling leaves."""
        ceiling, rows = self.ceiling[tenant] * (1 + 1e-12), zip(held, total, needs, strict=True)
        return min([(ceiling * c - h) // need for h, c, need in rows if need], default=math.inf)


NO_CEILING = 1e9
ONE_TENANT = Tenants(False, [1.0], [NO_CEILING])


class Outage(NamedTuple):
    """When a node is down."""

    node: int
    fail: int
    repair: float


class Preempt(NamedTuple):
    """How those of lower priority make room: the fields of `actors.environment.Preemption`, in ns."""

    keeps: bool
    cost: int
    most: int
    below: float
    oldest: bool
