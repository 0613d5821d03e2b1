"""Alibaba's cluster trace of 2017: batch jobs over 24 hours on about 1,300 machines.

The tables are CSV without a header [1]_: ``batch_task`` (a row a task of a job, which is a stage here),
``batch_instance`` (a row an attempt of an instance, which is a task here) and ``server_event``, in a folder or an
archive, plain or packed. Online services (``container_event``) and what was used of machines are not read. The rules
are those of `workloads.readers.alibaba_2018`, with these differences. The report counts the cases of each.

1. A job is the rows of ``batch_task`` with its ``job_id``, a stage is one of these rows. The trace says that the tasks
   of a job form a DAG, but not which waits for which: the workload is one of jobs, whose tasks may all start when the
   job arrives.
2. A stage starts at its ``create_timestamp`` and ends at its ``modify_timestamp``; 0, or less, is outside the trace. A
   job arrives when its first stage was created.
3. Instances have no names, and some have no job or task: these are dropped. A stage without instances has
   ``instance_num`` tasks that last as long as the stage, with whatever it waited for.
4. ``plan_cpu`` is of an instance. The schema says cores; in the first release 100 is a core [2]_. With
   ``plan_cpu="auto"`` plans are hundredths of a core where their median is 10 or more. ``plan_mem`` and the memory of
   machines are normalised: ``memory`` is the plan over the largest machine's memory in ``server_event``, over 1 without
   that table. Values that are not positive, or above the largest machine, are left out. A demand that all stages of a
   job share is one of the job, others are of tasks. The trace has no priorities.
5. The nodes are the machines that ``server_event`` adds. Errors of machines are left out: a cluster does not change.
   The largest memory is taken as 4 GiB a core.

References
----------
.. [1] alibaba/clusterdata, cluster-trace-v2017: trace_201708.md and schema.csv.
.. [2] alibaba/clusterdata, issue 11, 2017.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from workloads.errors import InputError
from workloads.jobs import JOBS_SCHEMA, TASKS_SCHEMA, JobWorkload
from workloads.readers.alibaba_2018 import (
    KEEP_ATTEMPTS,
    MACROS,
    NO_INSTANCES,
    NODES_SCHEMA,
    check_rows,
    cluster_file,
    create_table,
    resolve_stages,
    size_stages,
)
from workloads.readers.duckdb_tables import (
    MEMORY,
    about_workload,
    batches,
    count_rows,
    database,
    expanded,
    number,
    read_converted,
    write_folder,
)
from workloads.readers.known_tables import ALIBABA_2017 as FORMAT
from workloads.readers.parquet import JOBS_FILE, TASKS_FILE, read_parquet
from workloads.readers.report import Progress, Report
from workloads.readers.scanning import EXACT, Table, need_rows, refuse_cell, scan
from workloads.readers.shards import holds_table
from workloads.requests import with_requests

if TYPE_CHECKING:
    import duckdb

    from workloads.readers.google_rules import Files

_OTHER_NAMES = {
    "machine_id": "machineID", "capacity_cpu": "capacity:CPU", "capacity_memory": "capacity:memory",
    "capacity_disk": "capacity:disk",
}  # fmt: skip
_ID = "nullif(regexp_extract({0}, '^([0-9]{{1,18}})([.]0+)?$', 1), '')"
"""SQL for an id as text, null where it is none: tables that other programs wrote have 12.0 for 12."""
_JOB, _TASK = (_ID.format(column) for column in ("job_id", "task_id"))
_TABLES = {
    "batch_task": Table(
        {
            "create_timestamp": EXACT, "modify_timestamp": EXACT, "job_id": "VARCHAR", "task_id": "VARCHAR",
            "instance_num": EXACT, "status": "VARCHAR", "plan_cpu": "DOUBLE", "plan_mem": "DOUBLE",
        },
        f"""INSERT INTO batch_task SELECT coalesce(lpad({_TASK}, 18, '0'), '?' || task_id), instance_num,
            coalesce('j_' || {_JOB}, '?' || job_id), NULL, status, create_timestamp, modify_timestamp, plan_cpu,
            plan_mem FROM {{scan}}""",
        ("create_timestamp", "modify_timestamp", "job_id", "task_id", "instance_num", "status"), _OTHER_NAMES,
    ),
    "server_event": Table(
        {
            "timestamp": EXACT, "machineID": "VARCHAR", "event type": "VARCHAR", "event detail": "VARCHAR",
            "capacity:CPU": "DOUBLE", "capacity:memory": "DOUBLE", "capacity:disk": "VARCHAR",
        },
        """INSERT INTO machine_meta SELECT "machineID", timestamp, NULL, NULL, "capacity:CPU", "capacity:memory",
            "event type" FROM {scan}""",
        ("machineID", "event type"), _OTHER_NAMES,
    ),
}  # fmt: skip
_INSTANCES = Table(
    {
        "start_timestamp": EXACT, "end_timestamp": EXACT, "job_id": "VARCHAR", "task_id": "VARCHAR",
        "machineID": "VARCHAR", "status": "VARCHAR", "seq_no": EXACT, "total_seq_no": EXACT,
        "real_cpu_max": "VARCHAR", "real_cpu_avg": "VARCHAR", "real_mem_max": "VARCHAR", "real_mem_avg": "VARCHAR",
    },
    KEEP_ATTEMPTS.replace(
        "{scan}",
        f"""(SELECT NULL AS instance_name, 'j_' || {_JOB} AS job_name, lpad({_TASK}, 18, '0') AS task_name, status,
            start_timestamp AS start_time, end_timestamp AS end_time, seq_no, total_seq_no FROM {{scan}})""",
    ),
    ("start_timestamp", "end_timestamp", "job_id", "task_id", "status"), _OTHER_NAMES,
)  # fmt: skip
_TIMES = {"start_time": "create_timestamp", "end_time": "modify_timestamp"}
_HUNDREDTHS_FROM = 10
"""The median plan of CPU from which on plans are hundredths of a core: a machine has 64 cores."""
_NO_EDGES = "CREATE TABLE edge (place BIGINT, job_id BIGINT, parent BIGINT, child BIGINT)"
_DEMANDS = ("cpu_cores", "memory")
_ALIKE = "CASE WHEN count({0}) = count(*) AND min({0}) = max({0}) THEN min({0}) END AS {0}"
_OF_JOBS = f"""
CREATE TABLE demand AS SELECT place, {", ".join(map(_ALIKE.format, _DEMANDS))} FROM stage GROUP BY place
"""
_JOBS = """
SELECT job_id, CAST(min(start_s) AS DOUBLE) AS submit_s, CAST(sum(num_tasks) AS BIGINT) AS num_tasks,
    CAST(sum(mean_task_s * num_tasks) / sum(num_tasks) AS DOUBLE) AS mean_task_s,
    CAST(NULL AS VARCHAR) AS "constraint", CAST(NULL AS VARCHAR) AS tenant, {requests}
FROM stage JOIN size USING (key) JOIN demand USING (place) GROUP BY place, job_id ORDER BY place
"""
# One row an instance, and one for all the equal tasks of a stage without instances.
_TASKS = """
SELECT job_id, CAST(duration_s AS DOUBLE) AS duration_s, {requests} num_tasks FROM (
    SELECT key, start_s AS began_s, duration_s, CAST(1 AS BIGINT) AS num_tasks FROM instance WHERE reason IS NULL
    UNION ALL
    SELECT key, NULL, stage.duration_s, num_tasks FROM size JOIN stage USING (key) WHERE alike)
JOIN (SELECT key, place, job_id, cpu_cores, memory FROM stage) AS stage USING (key) JOIN demand USING (place)
ORDER BY key, began_s, duration_s
"""
_ROWS_PER_BATCH = 1 << 20
_NODES = pa.schema([field for field in NODES_SCHEMA if field.name not in ("rack", "attr:failure_domain_2")])


def convert_alibaba_2017(
    source: str | Path,
    to: str | Path,
    *,
    instances: bool | None = None,
    unfinished: Literal["job", "task"] = "job",
    plan_cpu: Literal["auto", "cores", "hundredths"] = "auto",
    memory: str = MEMORY,
    report: Report | None = None,
    progress: Progress | None = None,
) -> None:
    """Convert the trace into a folder of Parquet files, which `read_parquet` reads; in bounded memory.

    Where the source has ``server_event``, the folder also gets ``cluster.parquet``, a cluster as
    `clusters.cluster.load_cluster` reads it.

    Parameters
    ----------
    source, to, instances, unfinished, memory, report, progress
        As in `workloads.readers.alibaba_2018.convert_alibaba_2018`.
    plan_cpu : "auto", "cores" or "hundredths"
        The unit of plans of CPU (rule 4).

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong, or a table that is missing or given twice.
    """
    source, report = Path(source), Report() if report is None else report
    with database(memory, source) as con:
        con.execute(MACROS)
        for table in ("batch_task", "machine_meta"):
            create_table(con, table)
        found = scan(con, source, _TABLES, report, progress, format=FORMAT)
        need_rows(found, "batch_task", source, "batch_task.csv, plain, gzip or tar.gz")
        check_rows(con, source, _TABLES["batch_task"], FORMAT, _TIMES)
        _check_ids(con, source)
        _take_units(con, plan_cpu, report)
        nodes = _machines(con, report)
        resolve_stages(con, unfinished, report, source)
        con.execute(_NO_EDGES)
        con.execute(NO_INSTANCES)
        if instances is not False:
            found |= scan(con, source, {"batch_instance": _INSTANCES}, report, progress, format=FORMAT)
        has_instances = "batch_instance" in found
        if instances and not has_instances:
            raise InputError("holds no batch_instance.csv, plain, gzip or tar.gz", file=source)
        size_stages(con, has_instances, "registered", report, source)
        about = {
            "origin": f"Alibaba cluster-trace-v2017, {source.name}",
            "parameters": f"instances={has_instances} unfinished={unfinished} plan_cpu={plan_cpu}",
            "arrivals": "when the first task of a job was created",
            "durations": "of instances"
            if has_instances
            else "every instance lasts as long as its task, from when this was created",
            "precedence": "not published: all tasks of a job may start when it arrives",
            **report.as_metadata(),
        }
        write_folder(Path(to), _files(con, about) | (nodes if "server_event" in found else {}))


def _files(con: duckdb.DuckDBPyConnection, about: dict[str, str]) -> Files:
    """Return the files of jobs and tasks, with the columns of demands that some of them have."""
    con.execute(_OF_JOBS)
    of_jobs = [name for name in _DEMANDS if count_rows(con, f"demand WHERE {name} IS NOT NULL")]
    varies = "stage JOIN demand USING (place) WHERE stage.{0} IS NOT NULL AND demand.{0} IS NULL"
    of_tasks = [name for name in _DEMANDS if count_rows(con, varies.format(name))]
    jobs = _JOBS.format(requests=", ".join(f"min(demand.{name}) AS {name}" for name in of_jobs))
    own = "CASE WHEN demand.{0} IS NULL THEN stage.{0} END AS {0},"
    tasks = batches(con, _TASKS.format(requests=" ".join(map(own.format, of_tasks))))
    return {
        TASKS_FILE: (expanded(tasks, _ROWS_PER_BATCH), with_requests(TASKS_SCHEMA, of_tasks)),
        JOBS_FILE: (batches(con, jobs), about_workload(with_requests(JOBS_SCHEMA, of_jobs), about)),
    }


def read_alibaba_2017(source: str | Path, *, report: Report | None = None, **options: Any) -> JobWorkload:
    """Read the trace as a workload; `options` are those of `convert_alibaba_2017`."""
    return read_converted(convert_alibaba_2017, read_parquet, source, report, options)


def machine_files(con: duckdb.DuckDBPyConnection, source: Path, report: Report) -> Files:
    """Return the file of the cluster that ``server_event`` lists, in an open database."""
    create_table(con, "machine_meta")
    scan(con, source, {"server_event": _TABLES["server_event"]}, report, format=FORMAT)
    return _machines(con, report)


def _machines(con: duckdb.DuckDBPyConnection, report: Report) -> Files:
    """Return the file of the cluster (rule 5); memory becomes per cent of the largest machine's."""
    errors = "machine_meta WHERE status IS DISTINCT FROM 'add'"
    report.dropped("events of errors of machines: a cluster does not change", count_rows(con, errors))
    con.execute(f"DELETE FROM {errors}")
    largest = "(SELECT max(mem_size) FROM machine_meta WHERE isfinite(mem_size))"
    con.execute(f"UPDATE machine_meta SET mem_size = 100 * (mem_size / {largest})")
    return cluster_file(con, report, "server_event", _NODES)


def _take_units(con: duckdb.DuckDBPyConnection, unit: str, report: Report) -> None:
    """Give plans the units of 2018: hundredths of a core, and per cent of the largest machine's memory (rule 4)."""
    positive = "batch_task WHERE plan_cpu > 0 AND isfinite(plan_cpu)"
    median = con.execute(f"SELECT median(plan_cpu) FROM {positive}").fetchall()[0][0] or 0.0
    if unit == "auto":
        unit = "hundredths" if median >= _HUNDREDTHS_FROM else "cores"
        report.repaired(f"plans of CPU, of median {median:g}: taken as {unit}", count_rows(con, positive))
    if unit == "cores":
        con.execute("UPDATE batch_task SET plan_cpu = 100 * plan_cpu")
    largest = "machine_meta WHERE status = 'add' AND mem_size > 0 AND isfinite(mem_size)"
    if not count_rows(con, largest):
        plans = count_rows(con, "batch_task WHERE plan_mem > 0")
        report.repaired("plans of memory without machines: taken as shares of the largest", plans)
    most = f"coalesce((SELECT max(mem_size) FROM {largest}), 1)"
    con.execute(f"UPDATE batch_task SET plan_mem = 100 * (plan_mem / {most})")


def _check_ids(con: duckdb.DuckDBPyConnection, source: Path) -> None:
    """Refuse an id of a job or a task that is not a whole number, with its line."""
    if not number(con, "SELECT count(*) FROM batch_task WHERE job_name LIKE '?%' OR task_name LIKE '?%'"):
        return

    def check(text: str) -> str:
        return " is not a whole number" if text and not text.removesuffix(".0").isdecimal() else ""

    checks = dict.fromkeys(("job_id", "task_id"), check)
    refuse_cell(source, "batch_task", _TABLES["batch_task"], checks, format=FORMAT)
    raise InputError("has ids that are not whole numbers", file=source, field="job_id, task_id")


def recognises(path: Path) -> bool:
    """Return whether a path holds ``batch_task`` of this trace: by its content, as that of 2018 has the same name."""
    return holds_table(path, FORMAT, "batch_task", by_name=False)
