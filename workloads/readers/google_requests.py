"""The rule by which requests of Google's traces become demands and priorities, as SQL.

The tables are those of `workloads.readers.google_events`, whose rules continue here:

11. A task needs the most CPU and memory that its events requested from its last SCHEDULE to its last end, updates
    included; with ``attempts="all"``, or where these events state none, the most that any of its events requested.
    Requests are shares of the largest machine, which has 16 cores in the cluster of the trace (rule 10): ``cpu_cores``
    is 16 times the request of CPU, ``memory`` the share. Requests outside 0..1 are left out, and so is disk space. A
    demand that all kept tasks of a job share is one of the job, other demands are of tasks. The priority of a job is
    the largest of its kept tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workloads.readers.duckdb_tables import count_rows, number
from workloads.readers.report import Report

if TYPE_CHECKING:
    import duckdb

CORES = 16
"""Of the largest machine, by assumption."""
DEMANDS = ("cpu_cores", "memory")
_OUTSIDE = "NOT coalesce(cpu BETWEEN 0 AND 1, true) OR NOT coalesce(memory BETWEEN 0 AND 1, true)"
_LEAVE_OUT = f"""
UPDATE event SET cpu = CASE WHEN cpu BETWEEN 0 AND 1 THEN cpu END,
    memory = CASE WHEN memory BETWEEN 0 AND 1 THEN memory END
WHERE {_OUTSIDE}
"""
# Only tasks whose requests change need a second look at the events.
ASKED = """
CREATE TABLE asked AS
SELECT job, task, max(cpu) AS cpu, max(memory) AS memory, max(priority) AS priority
FROM event JOIN (SELECT job, task, start, stop FROM task WHERE changes AND {last}) AS own USING (job, task)
WHERE time BETWEEN own.start AND own.stop // 8 GROUP BY job, task
"""
OF_JOB = {
    **{
        name: f"CASE WHEN count({name}) = count(*) AND min({name}) = max({name}) THEN min({name}) END"
        for name in DEMANDS
    },
    "priority": "max(priority)",
    **{f"{name}_known": f"count({name})" for name in (*DEMANDS, "priority")},
    "changed": "count(*) FILTER (WHERE changes)",
    "on_disk": "count(*) FILTER (WHERE disk)",
    "unequal": "CAST(min(priority) <> max(priority) AS INTEGER)",
}
"""Columns of jobs, of their kept tasks: demands that all share, else null; the priority; counts of tasks."""
_KEPT_JOBS = "FROM job WHERE reason IS NULL"


def leave_out_absurd(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Leave out the requests of events that are not shares of a machine."""
    if outside := count_rows(con, f"event WHERE {_OUTSIDE}"):
        report.dropped("requests of events that are outside 0..1 of the largest machine", outside)
        con.execute(_LEAVE_OUT)


def count_requests(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Report what the kept tasks do not state, and what of their requests is left out."""

    def total(column: str) -> int:
        return number(con, f"SELECT sum({column}) {_KEPT_JOBS}")

    tasks = total("num_tasks")
    for name in (*DEMANDS, "priority"):
        if 0 < (known := total(f"{name}_known")) < tasks:
            report.read(f"tasks that state no {name}", tasks - known)
    what = "tasks whose requests changed: the most of the attempts that count taken"
    report.repaired(what, total("changed"))
    report.repaired("jobs whose tasks differ in priority: the largest taken", total("unequal"))
    report.dropped("requests of disk space by tasks", total("on_disk"))


def request_columns(con: duckdb.DuckDBPyConnection) -> tuple[dict[str, str], dict[str, str]]:
    """Return SQL for the columns of requests that jobs have, and those that tasks have, by name."""
    of_jobs = {
        name: f"job.{name}"
        for name in (*DEMANDS, "priority")
        if number(con, f"SELECT count({name}) {_KEPT_JOBS}")
    }
    of_tasks = {
        name: f"CASE WHEN job.{name} IS NULL THEN kept.{name} END AS {name}"
        for name in DEMANDS
        if count_rows(con, f"(SELECT 1 {_KEPT_JOBS} AND {name} IS NULL AND {name}_known > 0)")
    }
    return of_jobs, of_tasks
