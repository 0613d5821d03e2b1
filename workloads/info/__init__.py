"""Description of a workload in numbers: arrivals, load, and distributions of its jobs, DAGs or coflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload
from workloads.info import coflows, dags, jobs
from workloads.info.common import QUANTILES, Distribution, render_end
from workloads.transform.primitives import Workload

__all__ = ["QUANTILES", "Distribution", "describe", "distributions", "render"]


def describe(workload: Workload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of a workload as plain numbers, lists and dictionaries.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    nodes : sequence of int, optional
        Numbers of one-slot nodes to give the offered load for, for jobs and DAGs; by default a few around
        what is busy on average.

    Returns
    -------
    dict
        ``family`` is ``jobs``, ``dags`` or ``coflows`` and says which keys there are: see `jobs.describe`,
        `dags.describe` and `coflows.describe`. All have ``name``, ``span_s`` (from first to last arrival),
        ``mean_gap_s``, ``gap_cv`` (None when all arrive at once), ``arrivals`` (what arrives in each of up to
        61 spans of time), ``offered_load``, ``quantiles`` (the percentages all lists of quantiles are of),
        ``metadata`` and ``notes``.

    Raises
    ------
    InputError
        Numbers of nodes for coflows, which have their own ports.
    """
    if isinstance(workload, CoflowWorkload):
        described = coflows.describe(workload, nodes)
    elif isinstance(workload, DagWorkload):
        described = dags.describe(workload, nodes)
    else:
        described = jobs.describe(workload, nodes)
    return {**described, "metadata": dict(workload.metadata), "notes": list(workload.notes)}


def distributions(workload: Workload) -> list[Distribution]:
    """Return the values behind the quantiles, by class: what a figure of the workload shows."""
    if isinstance(workload, CoflowWorkload):
        return coflows.distributions(workload)
    if isinstance(workload, DagWorkload):
        return dags.distributions(workload)
    return jobs.distributions(workload)


def render(description: dict[str, Any]) -> str:
    """Return a description as text for a terminal; all signs of its own are ASCII."""
    of_family = {"jobs": jobs.render, "dags": dags.render, "coflows": coflows.render}
    lines = of_family[description["family"]](description)
    return "\n".join([*lines, *render_end(description)]) + "\n"
