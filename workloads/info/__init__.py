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
        For jobs and DAGs, numbers of one-slot nodes whose offered load is returned; by default a few around the number
        that is busy on average.

    Returns
    -------
    dict
        ``family`` is ``jobs``, ``dags`` or ``coflows`` and determines the other keys: see `jobs.describe`,
        `dags.describe` and `coflows.describe`. All have ``name``, ``span_s`` (from first to last arrival),
        ``mean_gap_s``, ``gap_cv`` (None when all arrive at once), ``arrivals`` (the arrivals in each of up to 61 spans
        of time), ``offered_load``, ``quantiles`` (the percentages of all lists of quantiles), ``metadata`` and
        ``notes``.

    Raises
    ------
    InputError
        Numbers of nodes are given for coflows, which have their own ports.
    """
    if isinstance(workload, CoflowWorkload):
        described = coflows.describe(workload, nodes)
    elif isinstance(workload, DagWorkload):
        described = dags.describe(workload, nodes)
    else:
        described = jobs.describe(workload, nodes)
    return {**described, "metadata": dict(workload.metadata), "notes": list(workload.notes)}


def distributions(workload: Workload) -> list[Distribution]:
    """Return the values of the quantiles, by class, for figures of the workload."""
    if isinstance(workload, CoflowWorkload):
        return coflows.distributions(workload)
    if isinstance(workload, DagWorkload):
        return dags.distributions(workload)
    return jobs.distributions(workload)


def render(description: dict[str, Any]) -> str:
    """Return a description as text for a terminal, in ASCII except for names."""
    of_family = {"jobs": jobs.render, "dags": dags.render, "coflows": coflows.render}
    lines = of_family[description["family"]](description)
    return "\n".join([*lines, *render_end(description)]) + "\n"
