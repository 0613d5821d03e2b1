"""Description of the bytes of DAGs: on edges and of input, and how long the former take at a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.critical_path import network_paths_s
from workloads.dags import DagWorkload
from workloads.info.common import number, quantiles, row
from workloads.jobs import Float64Array
from workloads.stages import ALL_TO_ALL, ONE_TO_ONE
from workloads.units import format_quantity

PORT_BPS = 10e9
"""The speed of each port, in each direction, of the network for which times of edges are given."""


def describe_bytes(workload: DagWorkload) -> dict[str, Any] | None:
    """Return the figures of bytes; None where none are known.

    ``edges`` has the bytes on edges by their kind, ``edges_known`` the share of edges whose bytes are known (None
    without edges), ``input`` the bytes of input, ``stages_known`` the share of stages whose input is known. ``job`` has
    quantiles: ``edge_bytes`` and ``input_bytes`` over the jobs of which some are known, and ``network_share`` over the
    jobs with bytes on some edge known whose longest path takes time: the share that edges take of that path
    (`workloads.critical_path.network_paths_s`), for ports of ``port_bps`` bit/s.
    """
    if not workload.bytes_known:
        return None
    arrays = workload.arrays()
    sent, read = arrays.edge_bytes, arrays.input_bytes
    one = arrays.edge_one_to_one == 1
    stage_job = np.repeat(np.arange(workload.num_jobs), np.diff(arrays.first_stage))
    edge_job = np.repeat(stage_job, np.diff(arrays.first_child))
    path_s, network_s = network_paths_s(workload, PORT_BPS / 8)
    some = (path_s > 0) & (np.bincount(edge_job[~np.isnan(sent)], minlength=workload.num_jobs) > 0)
    return {
        "edges": {ALL_TO_ALL: float(np.nansum(sent[~one])), ONE_TO_ONE: float(np.nansum(sent[one]))},
        "edges_known": float((~np.isnan(sent)).mean()) if len(sent) else None,
        "input": float(np.nansum(read)),
        "stages_known": float((~np.isnan(read)).mean()),
        "port_bps": PORT_BPS,
        "job": {
            "edge_bytes": quantiles(_by_job(sent, edge_job)),
            "input_bytes": quantiles(_by_job(read, stage_job)),
            "network_share": quantiles(network_s[some] / path_s[some]),
        },
    }


def render_bytes(d: dict[str, Any]) -> list[str]:
    """Return the lines of a description of DAGs on their bytes, if any are known."""
    if (found := d["bytes"]) is None:
        return []
    edges, speed = found["edges"], f"{found['port_bps'] / 1e9:g} Gbps"
    parts = [
        f"{format_quantity(size, 'B')} {kind}" for kind, size in edges.items() if size or kind == ALL_TO_ALL
    ]
    on_edges = f"{', '.join(parts)} (known of {_percent(found['edges_known'] or 0.0)} of edges)"
    of_input = (
        f"{format_quantity(found['input'], 'B')} (known of {_percent(found['stages_known'])} of stages)"
    )
    lines = [
        "",
        f"bytes on edges: {on_edges if found['edges_known'] else 'not known'}",
        f"bytes of input: {of_input if found['stages_known'] else 'not known'}",
        row("quantile", [f"{q} %" for q in d["quantiles"]]),
    ]
    for label, name, scale in (
        ("edges (MB)", "edge_bytes", 1e6),
        ("input (MB)", "input_bytes", 1e6),
        ("network (%)", "network_share", 0.01),
    ):
        if values := found["job"][name]:
            lines.append(row(label, [number(x / scale) for x in values]))
    if found["job"]["network_share"]:
        lines += [
            "  network: the share of a job's longest path that edges take, for a job alone with a machine a task and",
            f"  ports of {speed}. A stage takes its mean task duration, an edge of b bytes between p and c tasks takes",
            f"  b / ({speed} x min(p, c)), which is the least that it can, and nothing where b is not known",
        ]
    return lines


def _by_job(values: Float64Array, job: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sum of the known values of each job that has any."""
    known = ~np.isnan(values)
    sums: npt.NDArray[Any] = np.bincount(job[known], values[known])
    return sums[np.bincount(job[known]) > 0]


def _percent(part: float) -> str:
    """Return a share as a percentage; one that is not all does not look so.

    Examples
    --------
    >>> _percent(1.0), _percent(0.99999), _percent(0.324)
    ('100 %', '99.99 %', '32.4 %')
    """
    return f"{100 * part if part == 1 else min(100 * part, 99.99):.4g} %"
