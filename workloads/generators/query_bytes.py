"""Bytes of DAGs of queries: what their first stages read of the input, and what goes over each edge.

Of the queries of its evaluation the paper says that their input sizes are "from GBs to hundreds of GBs" [1]_; it has no
size of a shuffle. So all of this is assumed:

1. A stage without parents reads what its tasks read from disk in their time: the share of a machine's disks that a task
   takes (``disk_in``), times the duration, times the tasks, at `DISK_BYTES_PER_S` for all disks of a machine. With
   250 MB/s the jobs of the three mixes of benchmarks read 3, 10 and 6 GB at the 5th percentile and 510, 710 and 540 GB
   at the 95th (means over ten seeds). Other stages read no input.
2. A stage has what it reads and what its parents send it. It sends on a share of that, uniform in `PASSED_ON`: filters
   and aggregations leave less. What a stage without children has left is the job's output, which is left out.
3. The children of a stage get equal parts of what it sends. Nothing is sent twice: all bytes on the edges of a stage
   are no more than what it has.

All edges of a job together have 0.8 times its input (median; 0.3 and 1.6 at the 5th and the 95th percentile). Bytes of
stages that follow others do not go by their demands of disk and network.

References
----------
.. [1] R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan. Altruistic Scheduling in Multi-Resource Clusters.
   OSDI 2016, section 5.1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from workloads.generators.dag_shapes import Shapes
from workloads.jobs import Float64Array

DISK_BYTES_PER_S = 250e6
"""What the disks of a machine read together."""
PASSED_ON = (0.1, 1.0)
"""The least and the most that a stage sends, as a share of what it has."""


class Bytes(NamedTuple):
    """Bytes of S stages and E edges, whole numbers, as `workloads.dags.make_dag_workload` takes them.

    Attributes
    ----------
    input_bytes : ndarray of float64, shape (S,)
    edge_bytes : ndarray of float64, shape (E,)
        In the order of the edges of the graphs.
    """

    input_bytes: Float64Array
    edge_bytes: Float64Array


def draw_bytes(rng: np.random.Generator, shapes: Shapes, read_s: Float64Array, scale: float = 1.0) -> Bytes:
    """Return the bytes of graphs.

    Parameters
    ----------
    shapes : Shapes
        The graphs, of S stages and E edges.
    read_s : ndarray of float64, shape (S,)
        The time in which the tasks of a stage would read their input with all disks of one machine: their number,
        times their duration, times the share of the disks that each takes.
    scale : float
        Factor on all bytes, above 0.
    """
    children = np.bincount(shapes.parent, minlength=len(read_s))
    has = np.where(shapes.level == 0, np.rint(read_s * DISK_BYTES_PER_S * scale), 0.0)
    read = has.copy()
    part = rng.uniform(*PASSED_ON, len(has)) / np.maximum(children, 1)
    sent = np.zeros(len(shapes.parent))
    by_level = np.argsort(shapes.level[shapes.parent], kind="stable")
    first = np.searchsorted(shapes.level[shapes.parent][by_level], np.arange(int(shapes.level.max()) + 2))
    for begin, end in pairwise(first.tolist()):
        edges = by_level[begin:end]  # their parents have all that they get
        sent[edges] = np.floor((has * part)[shapes.parent[edges]])
        np.add.at(has, shapes.child[edges], sent[edges])
    return Bytes(read, sent)
