"""Whether the numbers of messages of a snapshot are what schedulers of jobs mean by them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.kernel.queue import MOST_ACTORS, NONE


def fits(
    what: str, values: np.ndarray, rows: np.ndarray, setting: Any, world: Any, sizes: Mapping[str, int]
) -> np.ndarray:
    """[rows] whether the numbers of a column are tasks, or whatever `what` is (`actors.kernel.kinds`)."""
    if what == "task":
        return _are_tasks(values, rows["a"], world)
    if what == "handed":
        last = rows["b"] + values - 1
        return (values > 0) & (values < 1 << 31) & _are_tasks(last, rows["a"], world)
    if what == "left":
        low, level = values & ((1 << 32) - 1), values >> 32
        return (
            (level >= 0) & (level <= sizes["levels"]) & (low <= max(sizes["tasks"], 1 << 31)) & (values >= 0)
        )
    return _fits_policy(what, values, rows, setting, world, sizes)


def _fits_policy(
    what: str, values: np.ndarray, rows: np.ndarray, setting: Any, world: Any, sizes: Mapping[str, int]
) -> np.ndarray:
    """The same of columns that one scheduler or another uses in its own way.

    A compiled scheduler of a user's may use them like any, as a copy of Yacc-D does under another name.
    """
    if setting.scheduler.remade is not None and setting.scheduler.own is None and what != "asked":
        return values >= -1
    bounded = setting.scheduler.policy.startswith("yacc-d")
    contended = setting.scheduler.policy.startswith("phoenix")
    if what == "placed":
        return np.ones(values.size, bool) if bounded else (values >= -1) & (values < sizes["versions"])
    if what == "rejected":
        return (
            _are_tasks(values, rows["a"], world) if bounded else (values >= -1) & (values < sizes["versions"])
        )
    if what == "rejecting":
        return (values >= 0) & (values < (sizes["nodes"] if bounded else 1 << 31))
    if what == "reporter":
        node = values & (MOST_ACTORS - 1)
        return ((values >= 0) & (node < sizes["nodes"])) | ((values == NONE) & contended)
    if what == "report":
        return (
            ~np.full(values.size, contended)
            | (values == NONE)
            | ((values >= 0) & (values & 63 < sizes["resources"]))
        )
    assert what == "asked", what
    probes = rows["a"]
    known = (probes >= 0) & (probes < world.work.size)
    return known & (values >= 0) & (values < 1 << 31)


def _are_tasks(column: np.ndarray, job: np.ndarray, world: Any) -> np.ndarray:
    """[rows] whether numbers are tasks of their jobs, with levels in the upper bits where there are any."""
    level = column >> 32 if world.eligible.active else np.zeros_like(column)
    task = column & ((1 << 32) - 1) if world.eligible.active else column
    known = (job >= 0) & (job < world.work.size)
    own = np.where(known, job, 0)
    inside = (task >= world.work.first_task[own]) & (task < world.work.end_task[own])
    return known & inside & (level >= 0) & (level <= world.eligible.factor.size)
