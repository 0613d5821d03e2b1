"""The rules by which events of Google's cluster traces of 2011 and 2019 become jobs, tasks and a cluster, as SQL.

A task is submitted, waits, runs, may be evicted or fail, waits and runs again, until it finishes or is killed. The
traces' readers fill the tables ``event`` (job, task, time, kind, missing, and what the task requests: cpu, memory,
priority, disk) and ``job_event`` (job, time, kind, user), `kind` one of `KINDS`, or null for events that neither start
nor end anything; ``constraint_of_task`` (job, task, time, attribute, operator, value), ``machine`` and ``attribute``.
The rules, in order, with counts in the report:

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
7. Names of attributes are hashes: N becomes the attribute ``attr:N`` of nodes, without the ``=`` that may pad a hash. A
   missing value is the empty one: ``=`` asks for machines that lack the attribute, ``!=`` for those that have it.
   Comparisons by size are of whole numbers, and a machine that lacks the attribute has 0; constraints by size with
   other values, or with an unknown operator, are dropped. All others are hard.
8. A task has the constraints that were stated last. A job has those of most of its kept tasks, which may be none; in a
   tie those of the task of lowest index. The report counts the jobs whose tasks differ, and the tasks that differ from
   their job. (All constraints together may fit no machine, as where each task asks for a machine of its own.)
9. A cluster does not change. Its nodes are the machines that are present when the trace begins, in the order of
   their ids, with the capacities and attributes of that time.
10. A node has one slot. Capacities are shares of the largest machine's (null if not within 0..1), which is assumed
    to have 16 cores and 64 GiB, as in the preset ``google-2011``. Nodes of one switch are a rack (2019; in 2011 there
    are no switches).
11. A task needs the most CPU and memory that its events requested from its last SCHEDULE to its last end, updates
   included; with ``attempts="all"``, or where these events state none, the most that any of its events requested.
   Requests are shares of the largest machine, which has 16 cores in the cluster of the trace (rule 10): ``cpu_cores``
   is 16 times the request of CPU, ``memory`` the share. Requests outside 0..1 are left out, and so is disk space. A
   demand that all kept tasks of a job share is one of the job, other demands are of tasks. The priority of a job is
   the largest of its kept tasks.

The "different machines restriction" is left out: it concerns tasks that run at the same time, while ``spread-nodes``
concerns all tasks of a job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workloads.arrow import column, described_field, from_numpy, to_numpy
from workloads.constraints import CONSTRAINT_SETS_SCHEMA, JOB_CONSTRAINTS_SCHEMA, OWN
from workloads.errors import InputError
from workloads.jobs import JOBS_SCHEMA, MAX_TIME_S, TASKS_SCHEMA
from workloads.readers.duckdb_tables import (
    CLUSTER_FILE,
    about_workload,
    batches,
    count_dropped,
    count_rows,
    number,
    write_folder,
)
from workloads.readers.parquet import CONSTRAINT_SETS_FILE, JOB_CONSTRAINTS_FILE, JOBS_FILE, TASKS_FILE
from workloads.readers.report import Report
from workloads.readers.scanning import Table, scan
from workloads.requests import with_requests

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
    "task_constraints": (CONSTRAINTS_FILE, CONSTRAINTS_SCHEMA),
    "machine_events": (MACHINES_FILE, MACHINES_SCHEMA),
    "machine_attributes": (ATTRIBUTES_FILE, ATTRIBUTES_SCHEMA),
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


def write_trace(
    con: duckdb.DuckDBPyConnection,
    to: Path,
    source: Path,
    trace: str,
    found: Collection[str],
    attempts: str,
    unfinished: str,
    constraints: bool,
    report: Report,
    classes: tuple[float, float] | None = None,
) -> None:
    """Apply the rules and write the workload's folder, with its constraints, its cluster and what lies beside.

    Parameters
    ----------
    trace : str
        Its name.
    found : collection of str
        Tables of `BESIDE` that the source has, among others.
    attempts, unfinished, constraints
        As in `workloads.readers.google_2011.convert_google_2011`.
    classes : tuple of float, optional
        As in `workloads.readers.duckdb_tables.about_workload`.
    """
    resolve(con, attempts, unfinished, report, source)
    more = (constraint_files(con, report) if constraints else {}) | cluster_file(con, report)
    about = {
        "origin": f"{trace}, {source.resolve().name}",
        "parameters": f"attempts={attempts} unfinished={unfinished} constraints={'yes' if constraints else 'no'}",
        "arrivals": "when a job was submitted, from the trace's begin",
        "durations": "the last attempt of a task"
        if attempts == "last"
        else "all attempts of a task together",
        **report.as_metadata(),
    }
    schemas = {TASKS_FILE: TASKS_SCHEMA, JOBS_FILE: JOBS_SCHEMA}
    jobs, tasks = request_columns(con)
    queries = dict(_QUERIES)
    for file, columns in ((JOBS_FILE, jobs), (TASKS_FILE, tasks)):
        schemas[file] = with_requests(schemas[file], columns)
        queries[file] = _QUERIES[file].format(requests=", ".join(columns.values()))
    schemas |= {file: schema for table, (file, schema) in BESIDE.items() if table in found}
    schemas[JOBS_FILE] = about_workload(schemas.pop(JOBS_FILE), about, classes)
    files: Files = {file: (batches(con, queries[file]), schema) for file, schema in schemas.items()}
    write_folder(to, more | files)


_NODES_SCHEMA = pa.schema(
    [
        described_field("node_id", pa.int64(), "1", "0, 1, 2, ... in the order of the machines' ids"),
        described_field("slots", pa.int64(), "1", "tasks the node can run at once"),
        described_field("rack", pa.int64(), "1", "its switch"),
        described_field("cpu_cores", pa.float64(), "1", "of 16 of the largest machine"),
        described_field("memory_bytes", pa.int64(), "bytes", "of 64 GiB of the largest machine"),
        described_field(
            "machine_type", pa.string(), "", "platform and shares of the largest machine's CPU/memory"
        ),
        described_field("platform", pa.string(), "", "kind of machine, as a hash"),
    ]
)
_NAME = f"'{OWN}' || rtrim(attribute, '=')"
_NAMED = "NOT regexp_matches(name, '[\\s=!<>≠≤≥]')"
_SIZED = "operator IN ('<', '<=', '>', '>=') AND regexp_full_match(value, '-?[0-9]{1,18}')"
_WANTED = f"""
CREATE TABLE last_stated AS
SELECT DISTINCT job, task, {_NAME} AS name,
    CASE operator WHEN 'present' THEN '!=' WHEN 'absent' THEN '=' ELSE operator END AS operator,
    CASE WHEN operator IN ('present', 'absent') THEN '' ELSE coalesce(value, '') END AS value
FROM constraint_of_task SEMI JOIN kept USING (job, task) SEMI JOIN (FROM job WHERE reason IS NULL) USING (job)
JOIN (SELECT job, task, max(time) AS time FROM constraint_of_task GROUP BY job, task) USING (job, task, time);
CREATE VIEW wanted AS
FROM last_stated WHERE {_NAMED} AND (operator IN ('=', '!=') OR {_SIZED});
"""
# A set is identified by one number, independent of the order of its constraints, which takes less memory than a list.
_SETS = """
CREATE TABLE set_of_task AS
SELECT job, task, bit_xor(md5_number(concat_ws(' ', name, operator, value))) AS code
FROM wanted GROUP BY job, task;
CREATE TABLE set_of_job AS
SELECT job, arg_max(code, tasks * 4294967296 - first) AS code, sum(tasks) - max(tasks) AS others
FROM (
    SELECT job, coalesce(code, 0) AS code, count(*) AS tasks, min(task) AS first
    FROM kept SEMI JOIN set_of_task USING (job) LEFT JOIN set_of_task USING (job, task) GROUP BY ALL)
GROUP BY job;
CREATE TABLE numbered AS
SELECT code, row_number() OVER (ORDER BY min(place)) - 1 AS set_id
FROM (SELECT code, row_number() OVER (ORDER BY submit, job) AS place FROM set_of_job JOIN job USING (job))
WHERE code <> 0 GROUP BY code;
"""
_SET_QUERIES = {
    CONSTRAINT_SETS_FILE: """
        SELECT DISTINCT set_id, name AS attribute, operator, value, CAST(NULL AS DOUBLE) AS price
        FROM wanted JOIN set_of_task USING (job, task) JOIN numbered USING (code) ORDER BY ALL
        """,
    JOB_CONSTRAINTS_FILE: """
        SELECT job AS job_id, set_id FROM set_of_job JOIN numbered USING (code) JOIN job USING (job)
        ORDER BY submit, job
        """,
}
# At one time a machine is removed, added and updated in this order, and loses an attribute before it gets it.
_NODES = f"""
CREATE TABLE node AS
SELECT row_number() OVER (ORDER BY length(machine_id), machine_id) - 1 AS node_id, *
FROM (
    SELECT machine_id, arg_max(event, turn) AS event, arg_max(cpu, (turn, cpu)) AS cpu,
        arg_max(memory, (turn, memory)) AS memory, arg_max(platform, (turn, platform)) AS platform,
        arg_max(switch, (turn, switch)) AS switch
    FROM (
        SELECT * REPLACE (CASE WHEN cpu > 0 AND cpu <= 1 THEN cpu END AS cpu,
            CASE WHEN memory > 0 AND memory <= 1 THEN memory END AS memory),
            time * 3 + CASE event WHEN 'remove' THEN 0 WHEN 'add' THEN 1 ELSE 2 END AS turn
        FROM machine WHERE time <= {BEGIN_US})
    GROUP BY machine_id)
WHERE event <> 'remove'
"""
_NODE_COLUMNS = f"""
SELECT node_id, 1 AS slots, dense_rank() OVER (ORDER BY coalesce(switch, '')) - 1 AS rack,
    coalesce(cpu, 1 / 16) * 16 AS cpu_cores, CAST(coalesce(memory, 4 / 64) * {64 << 30} AS BIGINT) AS memory_bytes,
    coalesce(platform, 'unknown') || ' ' || coalesce(format('{{:.2f}}/{{:.2f}}', cpu, memory), '?') AS machine_type,
    coalesce(platform, 'unknown') AS platform
FROM node ORDER BY node_id
"""
_NODE_ATTRIBUTES = f"""
SELECT name, node_id, value
FROM (
    SELECT {_NAME} AS name, node_id, arg_max(stated, (time, stated)) AS value
    FROM (SELECT *, CASE WHEN deleted THEN '' ELSE coalesce(value, '') END AS stated FROM attribute)
    JOIN node USING (machine_id) WHERE time <= {BEGIN_US} GROUP BY ALL)
WHERE value <> '' AND {_NAMED} ORDER BY name, node_id
"""


def constraint_files(con: duckdb.DuckDBPyConnection, report: Report) -> Files:
    """Return the files of the workload's constraints, none if no job has any (rules 7 and 8)."""
    if not count_rows(con, "constraint_of_task"):
        return {}
    con.execute(_WANTED)
    con.execute(_SETS)
    total, wanted = (count_rows(con, table) for table in ("last_stated", "wanted"))
    report.dropped(
        "constraints of tasks that compare text by size, or have an unknown operator", total - wanted
    )
    report.read("jobs kept with constraints", count_rows(con, "set_of_job WHERE code <> 0"))
    jobs, tasks = con.execute("SELECT count(*), sum(others) FROM set_of_job WHERE others > 0").fetchall()[0]
    report.repaired(
        f"jobs whose tasks differ in constraints: taken with those of most; {tasks or 0:,} tasks have others",
        jobs,
    )
    if not count_rows(con, "numbered"):
        return {}
    schemas = {CONSTRAINT_SETS_FILE: CONSTRAINT_SETS_SCHEMA, JOB_CONSTRAINTS_FILE: JOB_CONSTRAINTS_SCHEMA}
    return {file: (batches(con, _SET_QUERIES[file]), schema) for file, schema in schemas.items()}


def machine_files(
    tables: Mapping[str, Table], format: str, con: duckdb.DuckDBPyConnection, source: Path, report: Report
) -> Files:
    """Return the file of the cluster that the tables of machines, which are read here, list in an open database."""
    con.execute(TABLES)
    of_machines = {name: tables[name] for name in ("machine_events", "machine_attributes")}
    scan(con, source, of_machines, report, format=format)
    check_beside(con, source)
    return cluster_file(con, report)


def cluster_file(con: duckdb.DuckDBPyConnection, report: Report) -> Files:
    """Return the file of the cluster, none if no machine is present when the trace begins (rules 9 and 10)."""
    total = number(con, "SELECT count(DISTINCT machine_id) FROM machine")
    if not total:
        return {}
    con.execute(_NODES)
    nodes = count_rows(con, "node")
    report.read(f"machines that are there when the trace begins, the nodes of {CLUSTER_FILE}", nodes)
    report.dropped("machines that are not there when the trace begins", total - nodes)
    unknown = count_rows(con, "node WHERE cpu IS NULL OR memory IS NULL")
    report.repaired("machines without a capacity: taken as one core or 4 GiB", unknown)
    if not nodes:
        return {}
    schema, columns = _NODES_SCHEMA, con.sql(_NODE_COLUMNS).to_arrow_table().combine_chunks()
    if not number(con, "SELECT count(switch) FROM node"):
        schema, columns = schema.remove(2), columns.drop_columns("rack")
    for name, values in _own_attributes(con, nodes):
        field = described_field(name, pa.string(), "", "of the trace's machines", nullable=True)
        schema, columns = schema.append(field), columns.append_column(name, values)
    return {CLUSTER_FILE: (columns.combine_chunks().to_batches(), schema)}


def _own_attributes(con: duckdb.DuckDBPyConnection, nodes: int) -> Iterator[tuple[str, pa.Array]]:
    """Yield the attributes of machines by name, null on nodes that lack them."""
    rows = con.sql(_NODE_ATTRIBUTES).to_arrow_table().combine_chunks()
    if not rows.num_rows:
        return
    names = rows["name"].combine_chunks().dictionary_encode()
    node_ids, values = column(rows, "node_id"), rows["value"].combine_chunks()
    nothing = len(values)
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    firsts = np.flatnonzero(np.diff(to_numpy(names.indices), prepend=-1, append=-1))
    for name, (begin, end) in zip(names.dictionary.to_pylist(), pairwise(firsts.tolist()), strict=True):
        places = np.full(nodes, nothing)
        places[node_ids[begin:end]] = np.arange(begin, end)
        yield name, values.take(from_numpy(places))
