"""Rows of logs that become jobs: the rows of a job are its tasks, and a row may stand for several equal tasks."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from workloads.constraints import parse_constraint_set, with_constraints
from workloads.errors import InputError
from workloads.jobs import Float64Array, Int64Array, JobWorkload, check_times, make_workload
from workloads.limits import add_tasks, check_tasks
from workloads.readers.report import Report
from workloads.requests import Requests, check_request, shared_demand
from workloads.resources import in_order, is_resource


class JobRows:
    """Rows in the order in which they are read.

    Parameters
    ----------
    path : object
        The file, for errors.
    per_s : int
        The unit of arrivals, as their number in a second. Above 1, arrivals are integers and subtracted exactly.
    """

    def __init__(self, path: object, per_s: int = 1):
        self._path, self._per_s = path, per_s
        self._job_of: dict[Hashable, int] = {}
        self._total_tasks = 0
        self._job, self._tasks, self._line = array("q"), array("q"), array("q")
        self._submit: array[Any] = array("d" if per_s == 1 else "q")
        self._duration_s, self._estimate_s = array("d"), array("d")
        self._tenant: list[str | None] = []
        self._constraints: list[str] = []
        self._asked: dict[str, array[float]] = {}
        self._others = dict.fromkeys(("user", "constraints"), 0)

    def __len__(self) -> int:
        return len(self._job)

    def add(
        self,
        job: Hashable | None,
        submit: float,
        duration_s: float,
        line: int,
        *,
        tasks: int = 1,
        estimate_s: float | None = None,
        tenant: str | None = None,
        constraints: str = "",
        asked: Mapping[str, float | None] = {},
    ) -> None:
        """Add a row: `tasks` tasks of one duration, of a job, or with None of a job of their own.

        The first row of a job gives its tenant and constraints; rows with others are counted. `asked`: what a task of
        the row needs, by resource, and the priority, ``gang_nodes`` and ``requested_s`` of its job, of which the
        largest of its rows counts; None or NaN is not stated.

        Raises
        ------
        InputError
            Rows so far have more tasks than any machine holds.
        """
        self._total_tasks = add_tasks(self._total_tasks, tasks, file=self._path, line=line)
        at = len(self._tenant) if job is None else self._job_of.setdefault(job, len(self._tenant))
        if at == len(self._tenant):
            self._tenant.append(tenant)
            self._constraints.append(constraints)
        else:
            self._others["user"] += tenant is not None and tenant != self._tenant[at]
            self._others["constraints"] += constraints != self._constraints[at]
        for name, value in asked.items():
            if name not in self._asked and value is not None and value == value:
                self._asked[name] = array("d", [np.nan]) * len(self)
        for name, values in self._asked.items():
            value = asked.get(name)
            values.append(np.nan if value is None else value)
        self._job.append(at)
        self._submit.append(submit)
        self._duration_s.append(duration_s)
        self._estimate_s.append(np.nan if estimate_s is None else estimate_s)
        self._tasks.append(tasks)
        self._line.append(line)

    def workload(self, name: str, origin: str, report: Report) -> JobWorkload:
        """Return the jobs; a job arrives with the first of its rows, and times count from the first arrival.

        Raises
        ------
        InputError
            There are no rows, a time is wrong, or there are more tasks than fit in memory.
        """
        if not len(self):
            raise InputError(f"holds no job that ran{report.left_out()}", file=self._path)
        job, tasks, line = (
            np.frombuffer(column, np.int64) for column in (self._job, self._tasks, self._line)
        )
        check_tasks(self._total_tasks, file=self._path, line=int(line[np.argmax(tasks)]))
        submit = np.frombuffer(self._submit, self._submit.typecode)
        since_s = (submit - submit.min()) / self._per_s
        submit_s = check_times(since_s, "submit time", file=self._path, lines=line)
        duration_s = check_times(np.frombuffer(self._duration_s), "duration", file=self._path, lines=line)
        arrival_s = np.full(len(self._tenant), np.inf)
        np.minimum.at(arrival_s, job, submit_s)
        order = np.argsort(job, kind="stable")
        counts = np.bincount(job, tasks).astype(np.int64)
        estimate_s = np.frombuffer(self._estimate_s)
        stated = np.isfinite(estimate_s)
        mean_s = None
        if stated.any():
            known_s = np.where(stated, estimate_s, duration_s)
            mean_s = np.bincount(job, known_s * tasks) / counts
            report.read("estimates of durations", int(stated.sum()))
        requests = self._requests(job, tasks, line, order, report)
        for what, count in self._others.items():
            report.repaired(
                f"rows with another {what} than the first of their job: that of the first taken", count
            )
        made = make_workload(
            name,
            arrival_s,
            counts,
            np.repeat(duration_s[order], tasks[order]),
            mean_s,
            tenant=self._tenant if any(self._tenant) else None,
            requests=requests,
            metadata={"origin": origin, **report.as_metadata()},
            notes=report.notes(),
            origin=self._path,
        )
        if not any(self._constraints):
            return made
        texts = sorted({text for text in self._constraints if text})
        sets = [parse_constraint_set(text, "constraints") for text in texts]
        place = {text: i for i, text in enumerate(texts)}
        by_arrival = np.argsort(arrival_s, kind="stable")  # the order of a workload's jobs
        chosen = np.array([place.get(text, -1) for text in self._constraints])[by_arrival]
        return with_constraints(made, sets, chosen)

    def _requests(
        self, job: Int64Array, tasks: Int64Array, line: Int64Array, order: Int64Array, report: Report
    ) -> Requests:
        """Return what the jobs and tasks ask for; `order`: the rows in that of jobs."""
        jobs = len(self._tenant)
        of_jobs: dict[str, Float64Array] = {}
        of_tasks: dict[str, Float64Array] = {}
        largest: dict[str, Float64Array] = {}
        for name, column in self._asked.items():
            values = np.frombuffer(column)
            check_request(values, name, file=self._path, lines=line)
            if not is_resource(name):
                largest[name] = np.full(jobs, np.nan)
                np.fmax.at(largest[name], job, values)
        for name in in_order(filter(is_resource, self._asked)):
            values = np.frombuffer(self._asked[name])
            of_jobs[name], of_rows = shared_demand(values, job, jobs)
            if not np.isnan(of_rows).all():
                of_tasks[name] = np.repeat(of_rows[order], tasks[order])
            if unknown := int(tasks[np.isnan(values)].sum()):
                report.read(f"tasks that state no {name}", unknown)
        if "priority" in largest:
            lower = np.frombuffer(self._asked["priority"]) < largest["priority"][job]
            report.repaired(
                "jobs whose tasks differ in priority: the largest taken", len(np.unique(job[lower]))
            )
        return Requests(of_jobs, of_tasks, **largest)
