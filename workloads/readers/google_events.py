"""The rules by which events of Google's cluster traces of 2011 and 2019 become jobs and tasks, as SQL.

A task is submitted, waits, runs, may be evicted or fail, waits and runs again, until it finishes or is killed. The
traces' readers fill the tables ``event`` (job, task, time, kind, missing, and what the task requests: cpu, memory,
priority, disk) and ``job_event`` (job, time, kind, user), `kind` one of `KINDS`, or null for events that neither start
nor end anything. The rules, in order, with counts in the report:

1. Times are microseconds from the trace's begin, its timestamp 600 s. Earlier events have smaller timestamps, mostly 0;
   events after its end (2**63 - 1) are left out. Repeated rows count once, and rows that the trace's makers inserted
   for lost records ("missing info") count as others do.
2. A job arrives when it was submitted by ``job_event``, or else with its first task. Jobs that were submitted before
   the trace are dropped, as it is not known how long their tasks had run.
3. A task takes as long as its last attempt, from its last SCHEDULE to its last FINISH: the work of earlier attempts was
   lost. With ``attempts="all"`` it takes as long as all attempts together: each from a SCHEDULE to the first EVICT,
   FAIL, FINISH, KILL or LOST after it (at equal times, EVICT and FAIL come before SCHEDULE, others after). Attempts
   followed by another SCHEDULE have no known end and count as 0 s.
4. Tasks that never ran, that were first started before the trace, or that run when it ends (as most services do)
   are dropped. So is a task whose last end, after its last SCHEDULE, was not FINISH but KILL, FAIL, EVICT or LOST; with
   ``unfinished="ran"`` it is kept with the time it ran.
5. Jobs without kept tasks are dropped. Jobs are in the order of arrival and then of the trace's ids, tasks in that of
   their index. The tenant is the user, as a hash.
6. The distinct constraints of a job's kept tasks are written beside the workload, each with the number of those tasks.
   `workloads.readers.google_constraints` has the rules for those of the job, and goes on with rules 7 to 10;
   rule 11, on what tasks request, stands below.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from workloads.arrow import described_field
from workloads.errors import InputError
from workloads.jobs import JOBS_SCHEMA, MAX_TIME_S, TASKS_SCHEMA
from workloads.readers.duckdb_tables import (
    about_workload,
    batches,
    count_dropped,
    count_rows,
    number,
    write_folder,
)
from workloads.readers.parquet import JOBS_FILE, TASKS_FILE
from workloads.readers.report import Report
from workloads.requests import with_requests

# The rule by which requests of Google's traces become demands and priorities, as SQL.
#
# 11. A task needs the most CPU and memory that its events requested from its last SCHEDULE to its last end, updates
#    included; with ``attempts="all"``, or where these events state none, the most that any of its events requested.
#    Requests are shares of the largest machine, which has 16 cores in the cluster of the trace (rule 10): ``cpu_cores``
#    is 16 times the request of CPU, ``memory`` the share. Requests outside 0..1 are left out, and so is disk space. A
#    demand that all kept tasks of a job share is one of the job, other demands are of tasks. The priority of a job is
#    the largest of its kept tasks.

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


if TYPE_CHECKING:
    import duckdb

Files = dict[str, tuple[Iterable[pa.RecordBatch], pa.Schema]]
"""Files of a folder by name: rows and schema."""

KINDS = {"SUBMIT": 0, "EVICT": 1, "FAIL": 2, "SCHEDULE": 3, "FINISH": 4, "KILL": 5, "LOST": 6}
"""In the order of rule 3: 8 times a time plus the kind gives one number to sort by."""
BEGIN_US = 600_000_000
_AFTER_END = 2**63 - 1
_LIMIT_US = int(MAX_TIME_S * 1e6)

CONSTRAINTS_FILE = "constraints.parquet"
MACHINES_FILE = "machines.parquet"
ATTRIBUTES_FILE = "machine_attributes.parquet"
CONSTRAINTS_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "job whose tasks have the constraint"),
        described_field("attribute", pa.string(), "", "of machines, as a hash"),
        described_field("operator", pa.string(), "", "=, !=, <, >, <=, >=, present or absent"),
        described_field("value", pa.string(), "", "what it is compared with", nullable=True),
        described_field("num_tasks", pa.int64(), "1", "tasks of the job that have it"),
    ]
)
MACHINES_SCHEMA = pa.schema(
    [
        described_field("machine_id", pa.string(), "", "identifies the machine"),
        described_field("time_s", pa.float64(), "s", "when it changed"),
        described_field("event", pa.string(), "", "add, remove or update"),
        described_field("cpu", pa.float64(), "1", "share of the largest machine's", nullable=True),
        described_field("memory", pa.float64(), "1", "share of the largest machine's", nullable=True),
        described_field("platform", pa.string(), "", "kind of machine, as a hash", nullable=True),
        described_field("switch", pa.string(), "", "of its rack, as a hash", nullable=True),
    ]
)
ATTRIBUTES_SCHEMA = pa.schema(
    [
        described_field("machine_id", pa.string(), "", "machine that has the attribute"),
        described_field("time_s", pa.float64(), "s", "when it got it"),
        described_field("attribute", pa.string(), "", "name, as a hash"),
        described_field("value", pa.string(), "", "number or hash, or null", nullable=True),
        described_field("deleted", pa.bool_(), "", "whether it lost it"),
    ]
)
BESIDE = {
    "constraint_of_task": (CONSTRAINTS_FILE, CONSTRAINTS_SCHEMA),
    "machine": (MACHINES_FILE, MACHINES_SCHEMA),
    "attribute": (ATTRIBUTES_FILE, ATTRIBUTES_SCHEMA),
}
"""Tables that are written beside the workload: files and schemas."""

TABLES = """
CREATE TABLE event (job BIGINT, task INTEGER, time BIGINT, kind TINYINT, missing BOOLEAN, cpu DOUBLE, memory DOUBLE,
    priority INTEGER, disk BOOLEAN);
CREATE TABLE job_event (job BIGINT, time BIGINT, kind TINYINT, "user" VARCHAR);
CREATE TABLE constraint_of_task (job BIGINT, task INTEGER, time BIGINT, attribute VARCHAR, operator VARCHAR,
    value VARCHAR);
CREATE TABLE machine (machine_id VARCHAR, time BIGINT, event VARCHAR, cpu DOUBLE, memory DOUBLE, platform VARCHAR,
    switch VARCHAR);
CREATE TABLE attribute (machine_id VARCHAR, time BIGINT, attribute VARCHAR, value VARCHAR, deleted BOOLEAN);
"""
# Sums and extremes only, in one pass without sorting.
_TASK = """
CREATE TABLE task AS
SELECT job, task, min(time) FILTER (WHERE kind IS NOT NULL) AS first,
    min(time) FILTER (WHERE kind = {SUBMIT}) AS submit,
    count(*) FILTER (WHERE kind = {SCHEDULE}) AS starts,
    count(*) FILTER (WHERE kind > {SUBMIT} AND kind <> {SCHEDULE}) AS ends,
    min(time) FILTER (WHERE kind = {SCHEDULE}) AS first_start,
    max(time) FILTER (WHERE kind = {SCHEDULE}) AS start,
    max(time) FILTER (WHERE kind = {FINISH}) AS finish,
    max(time * 8 + kind) FILTER (WHERE kind > {SUBMIT} AND kind <> {SCHEDULE}) AS stop,
    max(cpu) AS cpu, max(memory) AS memory, max(priority) AS priority, bool_or(disk) AS disk,
    max(cpu) <> min(cpu) OR max(memory) <> min(memory) OR max(priority) <> min(priority) AS changes
FROM event WHERE time <> {after} GROUP BY job, task HAVING count(kind) > 0
""".format(after=_AFTER_END, **KINDS)
_JUDGE = """
CREATE TABLE judged AS
SELECT job, task, first, submit, starts, ends, start, finish, cpu, memory, priority, disk, changes, CASE
    WHEN starts = 0 THEN 'tasks that never ran'
    WHEN first_start < {begin} THEN 'tasks that were started before the trace'
    WHEN stop IS NULL OR stop < start * 8 + {SCHEDULE} THEN 'tasks that run when the trace ends'
    WHEN stop % 8 = {KILL} THEN 'tasks that were killed'
    WHEN stop % 8 = {LOST} THEN 'tasks that were lost'
    WHEN stop % 8 <> {FINISH} THEN 'tasks that were evicted or failed and did not run again'
    END AS reason,
    coalesce(reason IS NOT NULL AND first_start >= {begin} AND stop > start * 8 + {SCHEDULE}, false) AS ended
FROM task
""".format(begin=BEGIN_US, **KINDS)
# The next event of a task after each SCHEDULE; another SCHEDULE means that the end was not recorded.
_SPENT = """
CREATE TABLE spent AS
SELECT job, task, CAST(sum(took) AS BIGINT) AS total, max_by(took, key) AS last, count(*) - count(took) AS unknown
FROM (
    SELECT job, task, key, CASE WHEN next % 8 <> {SCHEDULE} THEN next // 8 - key // 8 END AS took FROM (
        SELECT job, task, key, lead(key) OVER (PARTITION BY job, task ORDER BY key) AS next FROM (
            SELECT DISTINCT job, task, time * 8 + kind AS key FROM event
            WHERE kind > {SUBMIT} AND time <> {after}
                AND (job, task) IN (SELECT (job, task) FROM judged WHERE {{which}})))
    WHERE key % 8 = {SCHEDULE})
GROUP BY job, task
""".format(after=_AFTER_END, **KINDS)
_KEEP = f"""
CREATE TABLE kept AS
SELECT job, task, {{took}} AS took, coalesce(unknown, 0) AS unknown, coalesce(changes, false) AS changes, disk,
    {CORES} * coalesce(asked.cpu, judged.cpu) AS cpu_cores, coalesce(asked.memory, judged.memory) AS memory,
    coalesce(asked.priority, judged.priority) AS priority
FROM judged LEFT JOIN spent USING (job, task) LEFT JOIN asked USING (job, task)
WHERE reason IS NULL OR ({{keep_ended}} AND ended)
"""
_JOB = f"""
CREATE TABLE job AS
SELECT job, submit, tenant, num_tasks, took, {", ".join(OF_JOB)}, CASE
    WHEN seen IS NULL THEN 'jobs without tasks'
    WHEN submit < {BEGIN_US} THEN 'jobs that were submitted before the trace'
    WHEN num_tasks IS NULL THEN 'jobs without a task that is kept' END AS reason
FROM (
    SELECT job, coalesce(job_event.submit, seen.submit, first) AS submit, tenant, num_tasks, took,
        {", ".join(OF_JOB)}, first AS seen
    FROM (SELECT job, min(submit) AS submit, min(first) AS first FROM judged GROUP BY job) AS seen
    LEFT JOIN (
        SELECT job, count(*) AS num_tasks, sum(took) AS took,
            {", ".join(f"{sql} AS {name}" for name, sql in OF_JOB.items())}
        FROM kept GROUP BY job) USING (job)
    FULL JOIN (
        SELECT job, min(time) FILTER (WHERE kind = {KINDS["SUBMIT"]}) AS submit, min("user") AS tenant
        FROM job_event GROUP BY job) AS job_event
    USING (job))
"""
_QUERIES = {
    JOBS_FILE: f"""
        SELECT job AS job_id, (submit - {BEGIN_US}) / 1e6 AS submit_s, num_tasks,
            CAST(took AS DOUBLE) / num_tasks / 1e6 AS mean_task_s, CAST(NULL AS VARCHAR) AS "constraint", tenant,
            {{requests}}
        FROM job WHERE reason IS NULL ORDER BY submit, job
        """,
    TASKS_FILE: """
        SELECT job AS job_id, kept.took / 1e6 AS duration_s, {requests}
        FROM kept JOIN (FROM job WHERE reason IS NULL) AS job USING (job)
        ORDER BY submit, job, task
        """,
    CONSTRAINTS_FILE: """
        SELECT job AS job_id, attribute, operator, value, count(DISTINCT task) AS num_tasks
        FROM constraint_of_task SEMI JOIN kept USING (job, task) SEMI JOIN
            (SELECT job FROM job WHERE reason IS NULL) USING (job)
        GROUP BY ALL ORDER BY ALL
        """,
    MACHINES_FILE: f"""
        SELECT machine_id, greatest(time - {BEGIN_US}, 0) / 1e6 AS time_s, event, cpu, memory, platform, switch
        FROM machine ORDER BY time_s, machine_id, event, cpu, memory, platform, switch
        """,
    ATTRIBUTES_FILE: f"""
        SELECT machine_id, greatest(time - {BEGIN_US}, 0) / 1e6 AS time_s, attribute, value,
            coalesce(deleted, false) AS deleted
        FROM attribute ORDER BY time_s, machine_id, attribute, value, deleted
        """,
}


def kinds(column: str, known: Mapping[str, str]) -> str:
    """Return SQL for the kind of an event type: null for a known type without one, -1 for an unknown type."""
    whens = " ".join(f"WHEN {literal} THEN {KINDS.get(name, 'NULL')}" for literal, name in known.items())
    return f"CASE {column} {whens} ELSE -1 END"


def resolve(
    con: duckdb.DuckDBPyConnection, attempts: str, unfinished: str, report: Report, source: Path
) -> None:
    """Make the tables of kept jobs and tasks, with durations."""
    missing, late, idle = con.execute(
        f"SELECT count(*) FILTER (WHERE missing), count(*) FILTER (WHERE time = {_AFTER_END}), "
        "count(*) FILTER (WHERE kind IS NULL) FROM event"
    ).fetchall()[0]
    report.read("of them inserted by the trace's makers for lost records", missing)
    report.read("of them that neither start nor end a task (updates, queues)", idle)
    report.dropped("events after the end of the trace", late)
    leave_out_absurd(con, report)
    con.execute(_TASK)
    con.execute(_JUDGE)
    ran, total = unfinished == "ran", attempts == "all"
    several = "starts > 1 OR ends > 1"  # other tasks have one attempt
    which = " OR ".join(([several] if total else []) + (["ended"] if ran else [])) or "false"
    con.execute(_SPENT.format(which=which))
    took = (
        f"CASE WHEN {several} THEN coalesce(total, 0) WHEN reason IS NULL THEN finish - start ELSE last END"
    )
    if not total:
        took = "CASE WHEN reason IS NULL THEN finish - start ELSE coalesce(last, 0) END"
    con.execute(ASKED.format(last=not total))
    con.execute(_KEEP.format(took=f"coalesce({took}, 0)", keep_ended=ran))
    con.execute(_JOB)
    _count(con, total, ran, report)
    if not count_rows(con, "job WHERE reason IS NULL"):
        wrong = f"no job of it has a task that finished in the trace's time{report.left_out()}"
        raise InputError(wrong, file=source)


def about_trace(
    trace: str, source: Path, attempts: str, unfinished: str, constraints: bool, report: Report
) -> dict[str, str]:
    """Return the workload's metadata."""
    return {
        "origin": f"{trace}, {source.resolve().name}",
        "parameters": f"attempts={attempts} unfinished={unfinished} constraints={'yes' if constraints else 'no'}",
        "arrivals": "when a job was submitted, from the trace's begin",
        "durations": "the last attempt of a task"
        if attempts == "last"
        else "all attempts of a task together",
        **report.as_metadata(),
    }


def check_beside(con: duckdb.DuckDBPyConnection, source: Path) -> None:
    """Refuse rows of machines and constraints without required values."""
    for table, name, columns in (
        ("machine", "machine_events", ("machine_id", "time", "event")),
        ("attribute", "machine_attributes", ("machine_id", "time", "attribute")),
        ("constraint_of_task", "constraints of tasks", ("job", "task", "time", "attribute", "operator")),
    ):
        wrong = " OR ".join(f"{column} IS NULL" for column in columns)
        if count := count_rows(con, f"{table} WHERE {wrong}"):
            said = f"is missing or unknown in {count:,} rows of {name}; each needs all of them"
            raise InputError(said, file=source, field=", ".join(columns))


def in_time(time_us: float) -> bool:
    """Return whether a timestamp is within `MAX_TIME_S`, or the one of events after the trace."""
    return 0 <= time_us <= _LIMIT_US or time_us == float(_AFTER_END)


def check_events(con: duckdb.DuckDBPyConnection, source: Path) -> None:
    """Refuse values that no rule repairs."""
    for field, wrong, want in (
        (
            "time",
            f"(time < 0 OR time > {_LIMIT_US}) AND time <> {_AFTER_END}",
            "want microseconds, 0 or more",
        ),
        ("type", "kind = -1", "of an unknown type"),
        ("time, id or index", "job IS NULL OR task IS NULL OR time IS NULL", "none of them may be missing"),
    ):
        row = con.execute(f"SELECT job, task, time FROM event WHERE {wrong} ORDER BY ALL LIMIT 1").fetchone()
        if row is not None:
            job, task, time = row
            said = f"task {task} of job {job} has an event at {time}; {want}"
            raise InputError(said, file=source, field=field)


def _count(con: duckdb.DuckDBPyConnection, total: bool, ran: bool, report: Report) -> None:
    count_dropped(con, "job", report)
    if not ran:
        count_dropped(con, "judged", report)
    else:
        report.repaired(
            "tasks that did not finish: taken with the time they ran",
            count_rows(con, "kept SEMI JOIN (FROM judged WHERE ended) USING (job, task)"),
        )
        con.execute("CREATE VIEW left_out AS SELECT reason FROM judged WHERE NOT ended")
        count_dropped(con, "left_out", report)
    of_dropped = "kept SEMI JOIN (FROM job WHERE reason IS NOT NULL) USING (job)"
    report.dropped("tasks of jobs that are dropped", count_rows(con, of_dropped))
    report.repaired(
        f"tasks that ran more than once: {'all attempts' if total else 'the last attempt'} counted",
        count_rows(con, "kept SEMI JOIN (FROM judged WHERE starts > 1) USING (job, task)"),
    )
    if total:
        report.repaired(
            "attempts without an end: taken as 0 s long", number(con, "SELECT sum(unknown) FROM kept")
        )
    report.read("jobs kept", count_rows(con, "job WHERE reason IS NULL"))
    report.read("tasks kept", number(con, "SELECT sum(num_tasks) FROM job WHERE reason IS NULL"))
    count_requests(con, report)


def write_jobs(
    con: duckdb.DuckDBPyConnection,
    to: Path,
    about: Mapping[str, str],
    beside: Collection[str],
    more: Files,
    classes: tuple[float, float] | None = None,
) -> None:
    """Write the workload's folder, with the tables of `BESIDE` that the source has, and more files."""
    schemas = {TASKS_FILE: TASKS_SCHEMA, JOBS_FILE: JOBS_SCHEMA}
    jobs, tasks = request_columns(con)
    queries = dict(_QUERIES)
    for file, columns in ((JOBS_FILE, jobs), (TASKS_FILE, tasks)):
        schemas[file] = with_requests(schemas[file], columns)
        queries[file] = _QUERIES[file].format(requests=", ".join(columns.values()))
    schemas |= {file: schema for table, (file, schema) in BESIDE.items() if table in beside}
    schemas[JOBS_FILE] = about_workload(schemas.pop(JOBS_FILE), about, classes)
    files: Files = {file: (batches(con, queries[file]), schema) for file, schema in schemas.items()}
    write_folder(to, more | files)
