"""A row of a comparison: the figures of one scheduler and group, and those against the first scheduler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

Pair = tuple[float, float]
"""A mean over the seeds and its 95 % half-width."""
NOTHING: Pair = (math.nan, math.nan)
SHARES = ("better", "equal", "worse")


@dataclass(frozen=True)
class Row:
    """One scheduler and group of jobs, or coflows, of a comparison.

    Attributes
    ----------
    scheduler, group : str
        The group is a class of jobs, or another of its family.
    count : float
        Jobs, or coflows, that finished.
    figures : dict of str to Pair
        By the name of a `Measure`: ``mean``, ``p99``, ``wait.p99``; times are in seconds.
    ratios : dict of str to Pair
        The same over that of the first scheduler.
    best : frozenset of str
        Names of the measures in which no other scheduler is better (`emu.results.paired_comparison.best_of`).
    shares : dict of str to Pair
        By `SHARES`: the share of the jobs, or coflows, that are so against the first. NaN for the first itself.
    improved : float
        The share that finished earlier than under the first, by however little; NaN for the first itself.
    speedup : dict of str to Pair
        Of DAG jobs and coflows: factors of the first over this one (`emu.results.paired_comparison.Factors`).
    gains : mapping
        Of coflows with deadlines: `emu.families.coflows.deadlines.Gains`.
    left_out : int
        Replicas that are left out, as none of the group finished under some scheduler.
    """

    scheduler: str
    group: str
    count: float
    figures: dict[str, Pair]
    ratios: dict[str, Pair]
    best: frozenset[str]
    shares: dict[str, Pair]
    improved: float
    speedup: dict[str, Pair] = field(default_factory=dict)
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: int = 0
