"""Google's cluster trace of 2011 (clusterdata-2011-2): a cell of 12,500 machines over 29 days.

The tables are CSV without a header [1]_, each in a folder of shards as published
(``task_events/part-00000-of-00500.csv.gz``), plain or gzip, in a folder or an archive. Shards with other names are
known by their columns, and a header may name the columns. ``task_events`` is required. ``job_events`` has the user and
the submission of each job; without it, users are of the first row of task 0. ``task_constraints`` become the jobs'
constraints, ``machine_events`` and ``machine_attributes`` the cluster that these refer to; the content of all three is
also written beside the workload. ``task_usage`` is not read. `workloads.readers.google_rules` has the rules by which
events become jobs and tasks, and those of constraints and machines.

The cut-off between short and long jobs, and the share of the nodes for long ones, are those of Hawk and Eagle.
Hawk's evaluation has 506,460 jobs of this trace, without those that failed or are invalid [2]_. How it identified these
is not published, so there is no option for it.

References
----------
.. [1] C. Reiss, J. Wilkes, J. L. Hellerstein. Google cluster-usage traces: format + schema, version 2.1, 2014;
   schema.csv of the trace.
.. [2] P. Delgado, F. Dinu, A.-M. Kermarrec, W. Zwaenepoel. Hawk: Hybrid Datacenter Scheduling. ATC 2015.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workloads import published_cutoffs
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers import google_rules
from workloads.readers.duckdb_tables import MEMORY, database, read_converted
from workloads.readers.google_rules import TABLES, check_beside, check_events, in_time, kinds, write_trace
from workloads.readers.known_tables import GOOGLE_2011 as FORMAT
from workloads.readers.parquet import read_parquet
from workloads.readers.report import Progress, Report
from workloads.readers.scanning import Table, need_rows, refuse_cell, scan, whole
from workloads.readers.shards import holds_table

if TYPE_CHECKING:
    import duckdb

_TYPES = (
    "SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING",
)  # fmt: skip
_CODES = {str(code): name for code, name in enumerate(_TYPES)}
_WHOLE = ("time", "job ID", "task index", "type")
"""Columns of whole numbers, read as text: DuckDB would accept 1_000 and 0x10, and round 1.5."""
_KIND = kinds(whole("type"), _CODES)
_EVENTS = {
    "time": "VARCHAR", "missing info": "VARCHAR", "job ID": "VARCHAR", "task index": "VARCHAR",
    "machine ID": "VARCHAR", "type": "VARCHAR", "user": "VARCHAR", "scheduling class": "VARCHAR",
    "priority": "DOUBLE", "CPU request": "DOUBLE", "memory request": "DOUBLE",
    "disk space request": "DOUBLE", "different machines restriction": "VARCHAR",
}  # fmt: skip
_OTHER_NAMES = {
    "timestamp": "time", "event_type": "type", "user_name": "user", "platform_id": "platform", "cpu": "CPUs",
    "cpu_capacity": "CPUs", "memory_capacity": "memory", "comparison_operator": "operator",
    "attribute_name": "attribute", "attribute_value": "value", "attribute_deleted": "deleted",
    "different_machine_constraint": "different machines restriction",
}  # fmt: skip
"""Names in headers that people add; some are from the trace's own schema.csv."""
_EVENT_TABLE = Table(
    _EVENTS,
    f"""INSERT INTO event SELECT {whole("job ID")}, {whole("task index")}, {whole("time")}, {_KIND},
        "missing info" IS NOT NULL, "CPU request", "memory request", TRY_CAST(priority AS INTEGER),
        "disk space request" > 0 FROM {{scan}}""",
    _WHOLE,
    _OTHER_NAMES,
)
_FIRST = {
    "job_events": Table(
        {
            "time": "VARCHAR", "missing info": "VARCHAR", "job ID": "VARCHAR", "type": "VARCHAR", "user": "VARCHAR",
            "scheduling class": "VARCHAR", "job name": "VARCHAR", "logical job name": "VARCHAR",
        },
        f"""INSERT INTO job_event SELECT {whole("job ID")}, {whole("time")}, {_KIND}, "user" FROM {{scan}}""",
        ("time", "job ID", "type"), _OTHER_NAMES,
    ),
    "task_constraints": Table(
        {
            "time": "BIGINT", "job ID": "BIGINT", "task index": "INTEGER",
            "operator": "TINYINT", "attribute": "VARCHAR", "value": "VARCHAR",
        },
        """INSERT INTO constraint_of_task SELECT "job ID", "task index", time, coalesce(attribute, ''),
            CASE operator WHEN 0 THEN '=' WHEN 1 THEN '!=' WHEN 2 THEN '<' WHEN 3 THEN '>' END, value FROM {scan}""",
        ("time", "job ID", "task index", "operator", "attribute"), _OTHER_NAMES,
    ),
    "machine_events": Table(
        {
            "time": "BIGINT", "machine ID": "BIGINT", "type": "TINYINT", "platform": "VARCHAR",
            "CPUs": "DOUBLE", "memory": "DOUBLE",
        },
        """INSERT INTO machine SELECT "machine ID", time,
            CASE type WHEN 0 THEN 'add' WHEN 1 THEN 'remove' WHEN 2 THEN 'update' END, "CPUs", memory, platform, NULL
            FROM {scan}""",
        ("time", "machine ID", "type"), _OTHER_NAMES,
    ),
    "machine_attributes": Table(
        {
            "time": "BIGINT", "machine ID": "BIGINT", "attribute": "VARCHAR", "value": "VARCHAR",
            "deleted": "BOOLEAN",
        },
        """INSERT INTO attribute SELECT "machine ID", time, coalesce(attribute, ''), value, deleted FROM {scan}""",
        ("time", "machine ID", "attribute"), _OTHER_NAMES,
    ),
}  # fmt: skip
# Without job_events. A user for each row would be most of the stored data.
_USERS = f"""INSERT INTO job_event SELECT {whole("job ID")}, NULL, NULL, "user" FROM {{scan}}
        WHERE "task index" = '0' AND type = '0'"""


def convert_google_2011(
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
    """Convert the trace into a folder of Parquet files, which `read_parquet` reads; in bounded memory.

    Where the source has their tables, the folder also gets the jobs' constraints, ``cluster.parquet``, a cluster as
    `clusters.cluster.load_cluster` reads it, and the content of the tables: ``constraints.parquet``,
    ``machines.parquet`` and ``machine_attributes.parquet``.

    Parameters
    ----------
    source : str or Path
        A folder or an archive with the tables.
    to : str or Path
        The folder to write; it appears when it is complete.
    attempts : "last" or "all"
        The duration of a task: its last attempt, or all of them together (rule 3).
    unfinished : "drop" or "ran"
        Whether tasks that were killed, failed, evicted or lost are dropped, or kept with the time they ran (rule 4).
    constraints : bool
        Whether jobs have their constraints, with which few can run on another cluster.
    memory : str
        The memory that DuckDB may use; more data go to the disk of the temporary folder.
    report, progress : optional
        See `workloads.readers.report`.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong, or a table that is missing or given twice.
    """
    source, report = Path(source), Report() if report is None else report
    with database(memory, source) as con:
        con.execute(TABLES)
        found = scan(con, source, _FIRST, report, progress, format=FORMAT)
        found |= scan(con, source, {"task_events": _EVENT_TABLE}, report, progress, format=FORMAT)
        need_rows(found, "task_events", source, "task_events/part-00000-of-00500.csv.gz")
        if "job_events" not in found:
            users = {"task_events": _EVENT_TABLE._replace(insert=_USERS)}
            scan(con, source, users, Report(), progress, format=FORMAT)
        _check(con, source)
        trace, classes = "Google clusterdata-2011-2", published_cutoffs.GOOGLE_2011
        write_trace(con, Path(to), source, trace, found, attempts, unfinished, constraints, report, classes)


def _check(con: duckdb.DuckDBPyConnection, source: Path) -> None:
    """Refuse values that no rule repairs, with the first line that has one."""
    check_beside(con, source)
    try:
        check_events(con, source)
    except InputError:
        refuse_cell(source, "task_events", _EVENT_TABLE, _CHECKS, format=FORMAT)
        raise


def _not_whole(text: str) -> str:
    is_whole = re.fullmatch("-?(0|[1-9][0-9]{0,18})", text) and -(2**63) <= int(text) < 2**63
    return "" if is_whole else " is not a whole number" if text else "is missing"


def _not_in_time(text: str) -> str:
    wrong = " is out of range; want microseconds, 0 or more"
    return _not_whole(text) or ("" if in_time(float(text)) else wrong)


def _no_type(text: str) -> str:
    wrong = f" is not a type of event; they are 0 to {len(_TYPES) - 1}"
    return _not_whole(text) or ("" if text in _CODES else wrong)


_CHECKS = {"time": _not_in_time, "job ID": _not_whole, "task index": _not_whole, "type": _no_type}


def read_google_2011(source: str | Path, *, report: Report | None = None, **options: Any) -> JobWorkload:
    """Read the trace as a workload; `options` are those of `convert_google_2011`."""
    return read_converted(convert_google_2011, read_parquet, source, report, options)


machine_files = partial(google_rules.machine_files, _FIRST, FORMAT)
"""The file of the cluster that the tables of machines of a source list, in an open database: of both and a report."""


def recognises(path: Path) -> bool:
    """Return whether a path holds ``task_events`` of this trace."""
    return holds_table(path, FORMAT, "task_events")
