"""Workloads made from workloads: another load, a part, copies, resampled, several as one, constraints, skew, deadlines.

Each function takes a workload of jobs, DAGs or coflows and returns one of the same kind (`shuffle_jobs` makes DAG jobs
of coflows), with a line in its metadata that states what was done (see `workloads.transform.history`).
`TRANSFORMATIONS` holds them by name.
"""

from workloads.transform.coflows import deadlines, draw, keep_coflows, retime, skew, weights
from workloads.transform.constrain import constrain, describe_frequencies, frequencies
from workloads.transform.history import history
from workloads.transform.load import at_load, busy_slots, scale
from workloads.transform.merging import merge, replicate, split
from workloads.transform.registry import TRANSFORMATIONS, Option, Transformation, redo
from workloads.transform.requests import demands, priorities
from workloads.transform.resample import resample
from workloads.transform.selection import sample, time_slice, truncate
from workloads.transform.shuffle_jobs import shuffle_jobs

__all__ = [
    "TRANSFORMATIONS",
    "Option",
    "Transformation",
    "at_load",
    "busy_slots",
    "constrain",
    "deadlines",
    "demands",
    "describe_frequencies",
    "draw",
    "frequencies",
    "history",
    "keep_coflows",
    "merge",
    "priorities",
    "redo",
    "replicate",
    "resample",
    "retime",
    "sample",
    "scale",
    "shuffle_jobs",
    "skew",
    "split",
    "time_slice",
    "truncate",
    "weights",
]
