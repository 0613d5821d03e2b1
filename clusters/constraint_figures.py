"""The constraints of a workload and the nodes of a cluster that satisfy them, in numbers and as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from clusters.cluster import Cluster
from clusters.feasibility import infeasible_jobs
from clusters.matching import Matching, match, satisfies
from workloads.constraints import PLACEMENT, constraint_sets, set_text
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload


def constraint_figures(
    workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching
) -> dict[str, Any]:
    """Return the constraints of a workload and the nodes that satisfy them.

    ``constraints`` has a row for each constraint (those drawn together count as one): the jobs that have it, their
    share ``drawn`` beside the ``asked`` one (see `workloads.transform.frequencies`), and the nodes that satisfy it.
    ``sets`` has a row for each distinct set: its jobs, the nodes that satisfy all of it, and those that satisfy its
    hard constraints.
    """
    from workloads.transform import frequencies

    sets = constraint_sets(workload)
    jobs = np.bincount(matching.set_of_job[matching.set_of_job >= 0], minlength=len(sets))
    constraints = []
    for one in frequencies(workload):
        of_nodes = [satisfies(cluster, c) for c in one.constraints if c.attribute != PLACEMENT]
        nodes = int(np.logical_and.reduce([np.ones(cluster.num_nodes, bool), *of_nodes]).sum())
        shares = {"drawn": one.drawn, "asked": one.asked}
        left = {"nodes": nodes, "node_share": nodes / cluster.num_nodes}
        constraints.append({"constraint": set_text(one.constraints), "jobs": one.jobs, **shares, **left})
    first, count = matching.first_level, matching.num_nodes[matching.list_of_level]
    return {
        "cluster": cluster.name,
        "nodes": cluster.num_nodes,
        "jobs": workload.num_jobs,
        "constrained_jobs": int(jobs.sum()),
        "infeasible_jobs": len(infeasible_jobs(workload, cluster, matching)),
        "constraints": constraints,
        "sets": [
            {
                "set": set_text(constraints_of),
                "jobs": int(jobs[s]),
                "nodes": int(count[first[s]]),
                "hard_nodes": int(count[first[s + 1] - 1]),
            }
            for s, constraints_of in enumerate(sets)
        ],
    }


def describe_constraints(workload: JobWorkload | DagWorkload, cluster: Cluster) -> str:
    """Return the constraints of a workload and the nodes that satisfy them as text for a terminal."""
    from workloads.transform import describe_frequencies, frequencies

    figures = constraint_figures(workload, cluster, match(workload, cluster))
    head, *rows = describe_frequencies(frequencies(workload))
    lines = [
        f"{figures['constrained_jobs']:,} of {figures['jobs']:,} jobs have constraints, "
        f"{len(figures['sets']):,} distinct sets; {figures['infeasible_jobs']:,} jobs cannot run on "
        f"{cluster.name} of {cluster.num_nodes:,} nodes",
        f"  {head}{'nodes':>12}{'share':>9}",
    ]
    for row, left in zip(rows, figures["constraints"], strict=True):
        lines.append(f"  {row}{left['nodes']:>12,}{left['node_share']:>9.2%}")
    return "\n".join(lines) + "\n"
