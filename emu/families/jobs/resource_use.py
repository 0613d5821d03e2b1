"""What running tasks hold of the resources of all nodes, over time, together and by tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import Column, columns_of, make_table
from emu.families.jobs.divisions import BY_TENANT, SHARE, tenant_groups
from emu.results.metrics import BoolArray
from workloads.arrow import column, from_numpy, from_strings

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome

Float64Array = npt.NDArray[np.float64]

RESOURCES = columns_of("""
    time_s   float s End of the span of time that the row is of, one `timeline.period`.
    resource text  - A resource of machines; `slots` where the workload states no demands.
    used     float - Share of the capacity of all machines that tasks held, in the mean over the span. Above 1 where
          demands were underestimated.
""")

TENANTS = columns_of("""
    time_s float s End of the span of time that the row is of, one `timeline.period`.
    tenant text  - A tenant; `(none)`: jobs without one; `(others)`: all beyond the first 12.
    share  float - Share of the capacity of all machines that the tenant's tasks held, of the resource of which they
          held most, or of slots, in the mean over the span.
""")


def held_by(
    times_s: Float64Array, start_s: Float64Array, finish_s: Float64Array, amount: Float64Array
) -> Float64Array:
    """Return the integral up to some times of the amounts that intervals hold, shape (K, R): amounts times seconds.

    Parameters
    ----------
    times_s : ndarray, shape (K,)
    start_s, finish_s : ndarray, shape (T,)
    amount : ndarray, shape (T, R)
        Held from start to finish.
    """
    total = np.zeros((times_s.size, amount.shape[1]))
    for at_s, sign in ((start_s, 1.0), (finish_s, -1.0)):
        order = np.argsort(at_s, kind="stable")
        before = np.searchsorted(at_s[order], times_s, side="right")
        for r in range(amount.shape[1]):
            of = amount[order, r]
            sums = np.append(0.0, np.cumsum(of)), np.append(0.0, np.cumsum(of * at_s[order]))
            total[:, r] += sign * (times_s * sums[0][before] - sums[1][before])
    return total


def mean_use(
    edges_s: Float64Array, start_s: Float64Array, finish_s: Float64Array, share: Float64Array
) -> Float64Array:
    """Return the mean of what is held between each two edges, shape (K - 1, R)."""
    span = np.diff(edges_s)[:, None]
    held: Float64Array = np.diff(held_by(edges_s, start_s, finish_s, share), axis=0) / span
    return np.maximum(held, 0.0)  # not -1e-17 where nothing runs


def use_over_time(
    outcome: Outcome, share: Float64Array, step_s: float, of: BoolArray | None = None
) -> Float64Array:
    """Return the mean share of each resource that tasks held up to each row of the timeline, shape (K, R).

    What attempts held that failures or evictions ended counts, too.

    Parameters
    ----------
    outcome : Outcome
        Of a run whose tasks were recorded.
    share : ndarray, shape (T, R)
        What each task holds, as a share of the capacity of all nodes.
    step_s : float
        Between two rows of the timeline.
    of : ndarray, shape (T,), optional
        Which tasks count; all if absent.
    """
    time_s = np.asarray(outcome.timeline["time_s"], np.float64)
    task, start_ns, end_ns = outcome.spans()
    own = slice(None) if of is None else of[task]
    edges_s = np.append(time_s[0] - step_s, time_s) if time_s.size else np.zeros(1)
    start_s, end_s = start_ns[own] / 1e9, end_ns[own] / 1e9
    last_s = max(float(edges_s[-1]), float(start_s.max(initial=0.0)))
    return mean_use(edges_s, start_s, np.minimum(end_s, last_s), share[task[own]])


def mean_held(outcome: Outcome, submit_ns: int, share: Float64Array) -> Float64Array:
    """Return the mean share of each resource from the first arrival to the last end, shape (R,)."""
    task, start_ns, end_ns = outcome.spans()
    ran_ns = np.bincount(task, (end_ns - start_ns).astype(np.float64), minlength=len(share))
    held: Float64Array = ran_ns @ share / max(int(outcome.finish_ns.max()) - submit_ns, 1)
    return held


def resources_table(time_s: Float64Array, names: Sequence[str], used: Float64Array) -> pa.Table:
    """Return the table of the use of resources: `used` has a row for each time and a column for each name."""
    return _by_row(RESOURCES, "resource", time_s, names, "used", used)


def _by_row(
    columns: tuple[Column, ...],
    key: str,
    time_s: Float64Array,
    names: Sequence[str],
    value: str,
    values: Float64Array,
) -> pa.Table:
    """Return a table with a row for each time and name, of values of shape (K, names)."""
    rows = from_numpy(np.tile(np.arange(len(names)), time_s.size))
    named = from_strings(names).take(rows)
    return make_table(columns, {"time_s": np.repeat(time_s, len(names)), key: named, value: values.ravel()})


def tenants_held(
    jobs: pa.Table, job_of_task: npt.NDArray[np.int64], outcome: Outcome, share: Float64Array, step_s: float
) -> tuple[pa.Table | None, dict[str, float]]:
    """Return the table of what tenants hold over time, and their mean shares; none where jobs have not two tenants.

    Parameters
    ----------
    jobs : pyarrow.Table
        ``jobs.parquet``.
    job_of_task : ndarray, shape (T,)
    outcome, share, step_s
        Of `use_over_time`.
    """
    groups = tenant_groups(jobs)
    if not groups:
        return None, {}
    time_s, submit_ns = (
        np.asarray(outcome.timeline["time_s"], np.float64),
        round(column(jobs, "submit_s")[0] * 1e9),
    )
    held, means = np.empty((time_s.size, len(groups))), {}
    for i, (tenant, mask) in enumerate(groups.items()):
        own = mask[job_of_task]
        held[:, i] = use_over_time(outcome, share, step_s, own).max(axis=1, initial=0.0)
        means[tenant] = float(mean_held(outcome, submit_ns, np.where(own[:, None], share, 0.0)).max())
    return _by_row(TENANTS, "tenant", time_s, [*groups], "share", held), means


def with_shares(figures: dict[str, Any], means: Mapping[str, float]) -> dict[str, Any]:
    """Return the ``jobs`` part of a summary with the mean share of the cluster that each of its tenants held."""
    for tenant, of_tenant in figures.get(BY_TENANT.key, {}).items():
        of_tenant[SHARE.statistic] = means[tenant]
    return figures
