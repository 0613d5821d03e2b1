"""Precedence between the stages of jobs: what edges may be, and how far each stage is from the start."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError
from workloads.groups import Int64Array, first_rows, refuse_first, rows_of_groups, whole_numbers


def levels(first_child: Int64Array, child: Int64Array) -> Int64Array:
    """Return the level of each stage; -1 for one in a circle or behind one. All jobs advance at once."""
    children = np.diff(first_child)
    waiting = np.bincount(child, minlength=len(children))
    levels = np.full(len(children), -1)
    ready = np.flatnonzero(waiting == 0)
    level = 0
    while len(ready):
        levels[ready] = level
        freed, times = np.unique(child[rows_of_groups(children, ready)], return_counts=True)
        waiting[freed] -= times
        ready = freed[waiting[freed] == 0]
        level += 1
    return levels


def check_edges(
    edges: npt.ArrayLike, num_stages: Int64Array, job_id: npt.ArrayLike | None, file: object
) -> Int64Array:
    """Return edges as rows (job, parent, child) of an array of shape (3, E), or name the first wrong one."""
    given = np.asarray(edges)
    if given.size and given.shape[1:] != (3,):
        raise InputError(f"edges have the shape {given.shape}, want (E, 3)", file=file)
    columns = given.reshape(-1, 3).T
    job = whole_numbers(columns[0], "job_id", 0, len(num_stages) - 1, file=file)
    parent, child = (
        whole_numbers(values, name, 0, 2**40, file=file)
        for values, name in zip(columns[1:], ("parent", "child"), strict=True)
    )
    for values, name in ((parent, "parent"), (child, "child")):
        refuse_first(values >= num_stages[job], values, "is a stage the job does not have", name, file=file)
    refuse_first(parent == child, child, "is its own parent", "child", file=file)
    between = np.stack([job, parent, child])
    order = np.lexsort(between[::-1])
    twice = np.zeros(len(job), bool)
    twice[order[1:]] = (between[:, order[1:]] == between[:, order[:-1]]).all(axis=0)
    refuse_first(twice, child, "has this parent already: the edge is given twice", "child", file=file)

    first_stage = first_rows(num_stages)
    parents, children = first_stage[job][order] + parent[order], first_stage[job][order] + child[order]
    first_child = first_rows(np.bincount(parents, minlength=int(first_stage[-1])))
    stuck = levels(first_child, children) < 0
    if stuck.any():
        at = int(np.searchsorted(first_stage, np.argmax(stuck), side="right")) - 1
        circle = _circle(parents, children, stuck, int(first_stage[at]))
        number = at if job_id is None else np.asarray(job_id)[at]
        wrong = f"stages of job {number} wait for each other: {circle}"
        inside = stuck[first_stage[job] + parent] & stuck[first_stage[job] + child]
        line = int(np.argmax((job == at) & inside)) + 1
        raise InputError(wrong, file=file, line=line, field="child")
    return between


def _circle(parents: Int64Array, children: Int64Array, stuck: npt.NDArray[np.bool_], first_stage: int) -> str:
    """Return a circle of stages of a job as ``1 -> 2 -> 1``, found by going from child to parent."""
    inside = stuck[parents] & stuck[children]
    parent_of = dict(zip(children[inside].tolist(), parents[inside].tolist(), strict=True))
    at, path = int(np.argmax(stuck)), []
    while at not in path:
        path.append(at)
        at = parent_of[at]
    found = [at, *reversed(path[path.index(at) :])]
    shown = " -> ".join(str(s - first_stage) for s in found[:8])
    return shown if len(found) <= 8 else f"{shown} -> ..."
