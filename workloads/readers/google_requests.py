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
SHARED = ", ".join(
    f"CASE WHEN count({name}) = count(*) AND min({name}) = max({name}) THEN min({name}) END AS {name}"
    for name in DEMANDS
)
"""The demands that all tasks of a job share, null for others."""
_KEPT_JOBS = "FROM job WHERE reason IS NULL"
_KEPT = f"kept SEMI JOIN ({_KEPT_JOBS}) USING (job)"


def leave_out_absurd(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Leave out the requests of events that are not shares of a machine."""
    if outside := count_rows(con, f"event WHERE {_OUTSIDE}"):
        report.dropped("requests of events that are outside 0..1 of the largest machine", outside)
        con.execute(_LEAVE_OUT)


def count_requests(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Report what the kept tasks do not state, and what of their requests is left out."""
    total = count_rows(con, _KEPT)
    for name in (*DEMANDS, "priority"):
        if 0 < (unknown := count_rows(con, f"{_KEPT} WHERE {name} IS NULL")) < total:
            report.read(f"tasks that state no {name}", unknown)
    report.repaired(
        "tasks whose requests changed: the most of the attempts that count taken",
        count_rows(con, f"{_KEPT} WHERE changes"),
    )
    report.repaired(
        "jobs whose tasks differ in priority: the largest taken",
        count_rows(con, f"(SELECT job FROM {_KEPT} GROUP BY job HAVING min(priority) <> max(priority))"),
    )
    report.dropped("requests of disk space by tasks", count_rows(con, f"{_KEPT} WHERE disk"))


def request_columns(con: duckdb.DuckDBPyConnection) -> tuple[dict[str, str], dict[str, str]]:
    """Return SQL for the columns of requests that jobs have, and those that tasks have, by name."""
    of_jobs = {
        name: f"job.{name}"
        for name in (*DEMANDS, "priority")
        if number(con, f"SELECT count({name}) {_KEPT_JOBS}")
    }
    of_tasks = {}
    for name in DEMANDS:
        differing = f"kept SEMI JOIN ({_KEPT_JOBS} AND {name} IS NULL) USING (job) WHERE {name} IS NOT NULL"
        if count_rows(con, differing):
            of_tasks[name] = f"CASE WHEN job.{name} IS NULL THEN kept.{name} END AS {name}"
    return of_jobs, of_tasks
