"""Google's cluster traces of 2019 (clusterdata-2019): eight Borg cells over May 2019; one of them at a time.

The tables are exports of BigQuery or files of the trace's buckets [1]_: JSON lines, plain or gzip
(``instance_events-000000000000.json.gz``), Parquet (``instance_events-000000000000.parquet.gz``, packed or a Parquet
file despite its name), or CSV with a header; as files, in folders or in an archive. ``instance_events`` is required.
``collection_events`` has the user and the submission of each job; without it there are no users. The instances'
constraints become the jobs', ``machine_events`` and ``machine_attributes`` a cluster
(`workloads.readers.google_rules`); their content is also written beside the workload. ``instance_usage`` is not
read. Numbers may be strings, as BigQuery writes them; event types may be numbers or names; machines' capacities may be
nested or flat (``capacity.cpus``). Columns that are not used may be absent; without ``collection_type`` alloc sets
cannot be distinguished from jobs.

A job is a collection and its instances are its tasks, by the rules of `workloads.readers.google_rules`, where QUEUE
and ENABLE change nothing. In addition:

7. Alloc sets, which reserve room for jobs, and their instances are dropped. Jobs that run in one are kept.
8. A job arrives when it was submitted, even if it waits for others (``start_after_collection_ids``) or has a parent.

References
----------
.. [1] J. Wilkes et al. Google cluster-usage traces v3, 2020; clusterdata_trace_format_v3.proto.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workloads.jobs import JobWorkload
from workloads.readers import google_rules
from workloads.readers.duckdb_tables import MEMORY, database, number, read_converted
from workloads.readers.google_rules import TABLES, check_beside, check_events, kinds, write_trace
from workloads.readers.known_tables import GOOGLE_2019 as FORMAT
from workloads.readers.parquet import read_parquet
from workloads.readers.report import Progress, Report
from workloads.readers.scanning import Table, need_rows, scan
from workloads.readers.shards import holds_table

if TYPE_CHECKING:
    import duckdb

_TYPES = (
    "SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING",
    "UPDATE_RUNNING",
)  # fmt: skip
_KIND = kinds("type", {f"'{text}'": name for code, name in enumerate(_TYPES) for text in (code, name)})
_ALLOC = "coalesce(collection_type IN ('1', 'ALLOC_SET'), false)"
_CONSTRAINTS = "STRUCT(name VARCHAR, value VARCHAR, relation VARCHAR)[]"
_RESOURCES = "STRUCT(cpus DOUBLE, memory DOUBLE)"


def _part(name: str, text: str) -> str:
    """Return SQL for a field of an object as JSON, Python or NumPy print it; null if absent."""
    begins = rf"[''\"]{name}[''\"]\s*:\s*"
    in_quotes, bare = (
        f"regexp_extract({text}, '{begins}{value}', 1)"
        for value in (r"[''\"]([^''\"]*)[''\"]", "([0-9.eE+-]+)")
    )
    return f"coalesce(nullif({in_quotes}, ''), nullif({bare}, ''))"


_IN_TEXT = {
    "constraint": r"list_transform(regexp_extract_all({text}, '\{[^{}]*\}'), lambda t: struct_pack("
    + ", ".join(f"{name} := {_part(name, 't')}" for name in ("name", "value", "relation")) + "))",
    **dict.fromkeys(("capacity", "resource_request"), "struct_pack("
    + ", ".join(f"{name} := CAST({_part(name, '{text}')} AS DOUBLE)" for name in ("cpus", "memory")) + ")"),
    "start_after_collection_ids": "regexp_extract_all({text}, '[0-9]+')",
}  # fmt: skip
"""SQL for nested fields, which are text in CSV."""
_OTHER_NAMES = {
    "constraints": "constraint", "capacity_cpus": "capacity.cpus", "capacity_memory": "capacity.memory",
    "cpus": "capacity.cpus", "memory": "capacity.memory", "resource_request_cpus": "resource_request.cpus",
    "resource_request_memory": "resource_request.memory",
}  # fmt: skip
_OPERATORS = {
    "EQUAL": "=", "NOT_EQUAL": "!=", "LESS_THAN": "<", "GREATER_THAN": ">", "LESS_THAN_EQUAL": "<=",
    "GREATER_THAN_EQUAL": ">=", "PRESENT": "present", "NOT_PRESENT": "absent",
}  # fmt: skip
_MORE_COLUMNS = f"""
ALTER TABLE event ADD COLUMN alloc BOOLEAN;
ALTER TABLE event ADD COLUMN wants {_CONSTRAINTS};
ALTER TABLE job_event ADD COLUMN alloc BOOLEAN;
ALTER TABLE job_event ADD COLUMN waits BOOLEAN;
ALTER TABLE job_event ADD COLUMN child BOOLEAN;
"""
_EVENT = {"time": "BIGINT", "type": "VARCHAR", "collection_id": "BIGINT", "collection_type": "VARCHAR"}
_TABLES = {
    "instance_events": Table(
        {
            **_EVENT, "instance_index": "INTEGER", "missing_type": "VARCHAR", "constraint": _CONSTRAINTS,
            "priority": "DOUBLE", "resource_request": _RESOURCES, "resource_request.cpus": "DOUBLE",
            "resource_request.memory": "DOUBLE",
        },
        f"""INSERT INTO event SELECT collection_id, instance_index, time, {_KIND},
            coalesce(missing_type NOT IN ('0', 'MISSING_TYPE_NONE'), false),
            coalesce(resource_request['cpus'], "resource_request.cpus"),
            coalesce(resource_request['memory'], "resource_request.memory"),
            TRY_CAST(priority AS INTEGER), NULL, {_ALLOC}, "constraint"
            FROM {{scan}}""",
        ("time", "type", "collection_id", "instance_index"), _OTHER_NAMES, _IN_TEXT, True,
    ),
    "collection_events": Table(
        {
            **_EVENT, "user": "VARCHAR", "start_after_collection_ids": "BIGINT[]",
            "parent_collection_id": "BIGINT",
        },
        f"""INSERT INTO job_event SELECT collection_id, time, {_KIND}, "user", {_ALLOC},
            coalesce(len(start_after_collection_ids), 0) > 0, coalesce(parent_collection_id, 0) <> 0
            FROM {{scan}}""",
        ("time", "type", "collection_id"), _OTHER_NAMES, _IN_TEXT, True,
    ),
    "machine_events": Table(
        {
            "time": "BIGINT", "machine_id": "BIGINT", "type": "VARCHAR", "switch_id": "VARCHAR",
            "capacity": _RESOURCES, "capacity.cpus": "DOUBLE",
            "capacity.memory": "DOUBLE", "platform_id": "VARCHAR",
        },
        """INSERT INTO machine SELECT machine_id, time, CASE WHEN type IN ('1', 'ADD') THEN 'add'
            WHEN type IN ('2', 'REMOVE') THEN 'remove' WHEN type IN ('3', 'UPDATE') THEN 'update' END,
            coalesce(capacity['cpus'], "capacity.cpus"), coalesce(capacity['memory'], "capacity.memory"),
            platform_id, switch_id FROM {scan}""",
        ("time", "machine_id", "type"), _OTHER_NAMES, _IN_TEXT, True,
    ),
    "machine_attributes": Table(
        {
            "time": "BIGINT", "machine_id": "BIGINT", "name": "VARCHAR", "value": "VARCHAR",
            "deleted": "BOOLEAN",
        },
        "INSERT INTO attribute SELECT machine_id, time, name, value, deleted FROM {scan}",
        ("time", "machine_id", "name"), headed=True,
    ),
}  # fmt: skip


def convert_google_2019(
    source: str | Path,
    to: str | Path,
    *,
    attempts: Literal["last", "all"] = "last",
    unfinished: Literal["drop", "ran"] = "drop",
    constraints: bool = True,
    memory: str = MEMORY,
    report: Report | None = None,
    progress: Progress | None = None,
) -> None:
    """Convert a cell's trace into a folder of Parquet files, which `read_parquet` reads; in bounded memory.

    The folder also gets the files of constraints and machines of `workloads.readers.google_2011.convert_google_2011`.

    Parameters
    ----------
    source : str or Path
        A folder with the tables of one cell, or an archive of JSON lines.
    to, attempts, unfinished, constraints, memory, report, progress
        As in `workloads.readers.google_2011.convert_google_2011`.

    Raises
    ------
    InputError
        Names the file, and of JSON the line, that is wrong, or a table that is missing or given twice.
    """
    source, report = Path(source), Report() if report is None else report
    with database(memory, source) as con:
        con.execute(TABLES + _MORE_COLUMNS)
        found = scan(con, source, _TABLES, report, progress, format=FORMAT)
        need_rows(found, "instance_events", source, "instance_events-000000000000.json.gz, or .parquet")
        _leave_out(con, report)
        con.execute(_constraints())
        check_beside(con, source)
        check_events(con, source)
        kept = {*found, "task_constraints"}
        trace = "Google clusterdata-2019"
        write_trace(con, Path(to), source, trace, kept, attempts, unfinished, constraints, report)


def read_google_2019(source: str | Path, *, report: Report | None = None, **options: Any) -> JobWorkload:
    """Read the trace as a workload; `options` are those of `convert_google_2019`."""
    return read_converted(convert_google_2019, read_parquet, source, report, options)


machine_files = partial(google_rules.machine_files, _TABLES, FORMAT)
"""The file of the cluster that the tables of machines of a source list, in an open database: of both and a report."""


def recognises(path: Path) -> bool:
    """Return whether a path holds ``instance_events`` of this trace."""
    return holds_table(path, FORMAT, "instance_events")


def _constraints() -> str:
    """Return SQL for the distinct constraints of tasks."""
    whens = " ".join(
        f"WHEN '{code}' THEN '{sign}' WHEN '{name}' THEN '{sign}'"
        for code, (name, sign) in enumerate(_OPERATORS.items())
    )
    return f"""
        INSERT INTO constraint_of_task
        SELECT DISTINCT job, task, time, want.name, CASE coalesce(want.relation, '0') {whens} ELSE want.relation END,
            want.value
        FROM (SELECT job, task, time, unnest(wants) AS want FROM event WHERE len(wants) > 0)
        WHERE want.name IS NOT NULL
        """


def _leave_out(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Drop alloc sets, and report jobs that wait for others or have a parent (rules 7 and 8)."""
    for table, what in (("event", "alloc instances"), ("job_event", "alloc sets")):
        dropped = number(con, f"DELETE FROM {table} WHERE alloc")
        report.dropped(f"events of {what}", dropped)
    for column, what in (("waits", "that wait for others to finish"), ("child", "with a parent")):
        count = number(con, f"SELECT count(DISTINCT job) FROM job_event WHERE {column}")
        report.repaired(f"jobs {what}: arrive when submitted", count)
