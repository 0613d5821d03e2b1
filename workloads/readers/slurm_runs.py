"""The runs of jobs in Slurm's accounting, and the jobs that they belong to.

A job is its cluster, its id and its submission: ids begin again at 1, and each cluster has its own. Elements of an
array and components of a heterogeneous job share the id, and are parallel tasks of one job. An element or component may
have run several times, after it was requeued or preempted, or its node failed. Slurm mostly gives such a run a
submission of its own, the end of the run before. Lines that repeat a run, as in two dumps that overlap, count once.
"""

from __future__ import annotations

from array import array
from typing import Any, Literal, NamedTuple

import numpy as np

from workloads.jobs import Int64Array
from workloads.limits import add_tasks
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Report

_ENDED, _INTERRUPTED, _RESIZED = 0, 1, 2
_STATES = {
    **dict.fromkeys(
        ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REQUEUE_HOLD", "REQUEUE_FED"), _INTERRUPTED
    ),
    "RESIZING": _RESIZED,
}
"""After an interruption Slurm runs a job again; a resized job continues with other processors, in another line."""
_SOON_S = 60.0
"""A job is submitted again when its run ends; clocks of machines differ by less than this."""

Which = Literal["each", "last"]


class Run(NamedTuple):
    """A line about a job, an element or a component that ran.

    Attributes
    ----------
    cluster, job, part : str
        The job's cluster and id, and the whole id with element or component.
    submit_s, start_s, end_s, elapsed_s, estimate_s : float
        NaN where not known.
    cpu_cores, memory_gib, gpus : float
        What a task needs; NaN where not stated.
    priority, gang_nodes, requested_s : float
        As in `workloads.requests.Requests`.
    """

    cluster: str
    job: str
    part: str
    submit_s: float
    start_s: float
    end_s: float
    elapsed_s: float
    estimate_s: float
    cpu_cores: float
    memory_gib: float
    gpus: float
    priority: float
    gang_nodes: float
    requested_s: float
    tasks: int
    line: int
    state: str
    tenant: str | None


_ASKED = {
    "cpu_cores": "cpu_cores", "memory_gib": "memory_gib", "gpus": "attr:gpus", "priority": "priority",
    "gang_nodes": "gang_nodes", "requested_s": "requested_s",
}  # fmt: skip
"""What a run asks for, by its field: names of requests."""
_NUMBERS = ("submit_s", "start_s", "end_s", "elapsed_s", "estimate_s", *_ASKED)
_COUNTS = ("tasks", "line")


class Runs:
    """Runs in the order of the file."""

    def __init__(self, path: object) -> None:
        self._path = path
        self._total_tasks = 0
        self._columns: dict[str, array[Any]] = {
            **{name: array("d") for name in _NUMBERS},
            **{name: array("q") for name in _COUNTS},
        }
        self._ids: tuple[dict[tuple[str, str], int], ...] = ({}, {})
        self._id_of = array("q"), array("q")
        self._states = array("b")
        self._tenants: list[str | None] = []

    def add(self, run: Run) -> None:
        """Add a run.

        Raises
        ------
        InputError
            Runs so far have more tasks than any machine holds.
        """
        self._total_tasks = add_tasks(self._total_tasks, run.tasks, file=self._path, line=run.line)
        for name, column in self._columns.items():
            column.append(getattr(run, name))
        for ids, id_of, name in zip(self._ids, self._id_of, (run.job, run.part), strict=True):
            id_of.append(ids.setdefault((run.cluster, name), len(ids)))
        self._states.append(_STATES.get(run.state, _ENDED))
        self._tenants.append(run.tenant)

    def jobs(self, which: Which, report: Report) -> JobRows:
        """Return the jobs of the runs, and report runs of jobs that had run before.

        With "each" such a run is a job, which arrives when it was submitted or the run before had ended. With "last"
        the last run counts, and the job arrives when it was first submitted.
        """
        got = {name: np.frombuffer(column, column.typecode) for name, column in self._columns.items()}
        job, part = (np.frombuffer(ids, np.int64) for ids in self._id_of)
        states = np.frombuffer(self._states, np.int8)
        order = _without_repeats(part, states, got)
        report.dropped("lines about a run that another line is about: it counts once", len(job) - len(order))
        again = _again(order, part, states, got)
        first_s, arrival_s = got["submit_s"].copy(), got["submit_s"].copy()
        turn, left_out = np.zeros(len(job), np.int64), np.zeros(len(job), bool)
        for before, run in zip(order[again], order[again + 1], strict=True):
            if which == "last" and states[before] != _RESIZED:
                left_out[before] = True
                turn[run], first_s[run], arrival_s[run] = turn[before], first_s[before], arrival_s[before]
            elif got["submit_s"][run] == got["submit_s"][before]:
                turn[run], first_s[run] = turn[before] + 1, first_s[before]
                arrival_s[run] = np.fmax(arrival_s[before], got["end_s"][before])
        _count(report, which, int(left_out.sum()), len(again))
        rows = JobRows(self._path)
        for run in np.sort(order[~left_out[order]]).tolist():
            estimate_s = got["estimate_s"][run]
            rows.add(
                (int(job[run]), float(first_s[run]), int(turn[run]), float(arrival_s[run])),
                arrival_s[run],
                got["elapsed_s"][run],
                int(got["line"][run]),
                tasks=int(got["tasks"][run]),
                estimate_s=None if np.isnan(estimate_s) else estimate_s,
                tenant=self._tenants[run],
                asked={name: got[field][run] for field, name in _ASKED.items()},
            )
        return rows


def _without_repeats(part: Int64Array, states: np.ndarray, got: dict[str, np.ndarray]) -> Int64Array:
    """Return the runs by element and time; of lines with the same start, or equal ones without, the last."""
    keys = [part, *(got[name] for name in ("submit_s", "start_s", "end_s", "elapsed_s", "tasks")), states]
    order = np.lexsort((got["line"], *reversed(keys)))
    one, other = order[:-1], order[1:]
    same = [_same(key[one], key[other]) for key in keys]
    repeated = np.all(same[:3], axis=0) & (~np.isnan(got["start_s"][one]) | np.all(same[3:], axis=0))
    kept = order[np.append(~repeated, True)[: len(order)]]
    return kept[np.lexsort((got["line"][kept], *(key[kept] for key in reversed(keys[:4]))))]


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one == other) | ((one != one) & (other != other))  # NaN: not known


def _again(order: Int64Array, part: Int64Array, states: np.ndarray, got: dict[str, np.ndarray]) -> Int64Array:
    """Return the places in `order` that are followed by another run of the same job, element or component."""
    one, other = order[:-1], order[1:]
    submit_s, end_s = got["submit_s"], got["end_s"]
    soon = ~(submit_s[other] > end_s[one] + _SOON_S)  # also if the end is not known
    follows = (submit_s[one] == submit_s[other]) | ((states[one] == _INTERRUPTED) & soon)
    return np.flatnonzero(follows & (part[one] == part[other]))


def _count(report: Report, which: Which, left_out: int, again: int) -> None:
    why = "requeued, preempted, resized, or after a failure of the node"
    report.dropped(f"runs that another run of the job followed ({why})", left_out)
    if which == "each":
        report.repaired(f"runs of jobs that had run before ({why}): each a job (runs=last: the last)", again)
    elif again > left_out:
        report.repaired("parts of jobs that were resized: each a job", again - left_out)
