"""Alibaba's cluster trace of 2018: DAGs of batch tasks over 8 days on about 4,000 machines.

The tables are CSV without a header [1]_: ``batch_task`` (a row a task, which is a stage here), ``batch_instance`` (a
row an attempt of an instance, which is a task here) and ``machine_meta``, in a folder or an archive, plain, gzip or as
published (``batch_task.tar.gz``). ``batch_instance`` has 1.35e9 rows, so that DuckDB applies these rules, in order and
in bounded memory. The report counts the cases of each.

1. A job is the rows of ``batch_task`` with its ``job_name``, a stage is one of these rows. Rows without a name
   are dropped. Of several rows for one task the first to start that terminated is taken, else the first to start.
2. A stage that is not ``Terminated`` (``Failed``, ``Running``, ``Waiting``, …), that starts or ends outside the
   trace (time 0, or none) or has no instances is incomplete. Its job is dropped, or with ``unfinished="task"`` only the
   stage.
3. A stage that ends before it starts takes 0 s.
4. A job arrives when its first stage starts: the trace has no submission time. Jobs are in this order. ``job_id``
   is the number in ``job_name`` (``j_17``), or the place where a name has none.
5. The name ``M5_3_4`` is stage 5, which depends on the stages 3 and 4 of the job. A suffix with a letter is not a
   dependency (``J10_7_9_Stg4``). Stages with names of another form have no dependencies. The trace cuts names off at 50
   characters, in the middle of a number (``…_99_100_1``): of a name of this length the part after the last ``_`` is
   left out, unless the table has longer names. Stages are in the order of numbers, then those without a number by name.
6. If several stages have the same number, a dependency on it is on all of them.
7. Dependencies on a number that the job does not have, or on the stage's own, are left out; repeated ones count once.
8. In a job with a cycle, dependencies on higher numbers are left out.
9. An attempt of an instance is dropped when it is not ``Terminated``, starts or ends outside the trace, was
   followed by another (``seq_no`` below ``total_seq_no``), or its stage was dropped or does not exist. One that ends
   before it starts takes 0 s.
10. The other attempts are the stage's tasks, by start and then by the number in the instance's name, even where
    ``instance_num`` differs from their number. A stage without instances has ``instance_num`` tasks that last as long
    as the stage.
11. The published start of a stage is its registration [2]_, mostly with its job. So a stage begins (``starts="ready"``)
    when it is registered and all stages that it depends on have ended, and lasts from then to its end; a stage that
    ends earlier takes 0 s, or `shortest_s` if it lasted so long since its registration. Then the critical path of a job
    is as long as the job was. With ``starts="registered"`` a stage lasts from its registration, with the wait for other
    stages: in an excerpt of 2,078 jobs the critical path is 2.3 times the time of the job (median; 5.3 times at the
    90th percentile). Instances have their own durations.
12. A cluster does not change: its nodes are all machines of ``machine_meta``, each as first listed, in the order of the
    numbers in their names. A node has one slot a core: plans of tasks are in cores. Memory is published as a share of
    the largest machine's, which is assumed to have 4 GiB a core. Machines of one ``failure_domain_1`` are a rack,
    ``failure_domain_2`` is the attribute ``attr:failure_domain_2``.
13. ``plan_cpu`` is cores times 100, ``plan_mem`` per cent of the largest machine's memory, both of an instance. Values
    that are not positive (or above 100 for memory) are left out. The trace has no priorities, and no bytes: how much
    stages read and send is not known.

References
----------
.. [1] alibaba/clusterdata, cluster-trace-v2018: trace_2018.md and schema.txt.
.. [2] The trace's maintainers in alibaba/clusterdata, issue 56, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from workloads.arrow import described_field
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.jobs import JOBS_SCHEMA, MAX_TIME_S
from workloads.limits import check_tasks, size_of
from workloads.readers.duckdb_tables import (
    CLUSTER_FILE,
    MEMORY,
    about_workload,
    batches,
    count_dropped,
    count_rows,
    database,
    expanded,
    number,
    read_converted,
    write_folder,
)
from workloads.readers.known_tables import ALIBABA_2018 as FORMAT
from workloads.readers.parquet import EDGES_FILE, JOBS_FILE, STAGES_FILE, TASKS_FILE, read_dags
from workloads.readers.report import Progress, Report
from workloads.readers.scanning import EXACT, Table, need_rows, refuse_cell, scan
from workloads.readers.shards import holds_table
from workloads.stages import DAG_TASKS_SCHEMA, EDGES_SCHEMA, STAGES_SCHEMA

if TYPE_CHECKING:
    import duckdb

    from workloads.readers.google_rules import Files

_COLUMNS = {
    "batch_task": {
        "task_name": "VARCHAR", "instance_num": EXACT, "job_name": "VARCHAR", "task_type": "VARCHAR",
        "status": "VARCHAR", "start_time": EXACT, "end_time": EXACT, "plan_cpu": "DOUBLE", "plan_mem": "DOUBLE",
    },
    "batch_instance": {
        "instance_name": "VARCHAR", "task_name": "VARCHAR", "job_name": "VARCHAR", "task_type": "VARCHAR",
        "status": "VARCHAR", "start_time": EXACT, "end_time": EXACT, "machine_id": "VARCHAR",
        "seq_no": EXACT, "total_seq_no": EXACT, "cpu_avg": "VARCHAR", "cpu_max": "VARCHAR",
        "mem_avg": "VARCHAR", "mem_max": "VARCHAR",
    },
    "machine_meta": {
        "machine_id": "VARCHAR", "time_stamp": EXACT, "failure_domain_1": "VARCHAR",
        "failure_domain_2": "VARCHAR", "cpu_num": "DOUBLE", "mem_size": "DOUBLE", "status": "VARCHAR",
    },
}  # fmt: skip
_REQUIRED = {
    "batch_task": ("task_name", "instance_num", "job_name", "status", "start_time", "end_time"),
    "batch_instance": ("task_name", "job_name", "status", "start_time", "end_time"),
    "machine_meta": ("machine_id",),
}
_OTHER_NAMES = {
    "inst_num": "instance_num", "inst_name": "instance_name", "disaster_level_1": "failure_domain_1",
    "disaster_level_2": "failure_domain_2",
}  # fmt: skip
"""Names in headers that differ from the schema, from the trace's description."""
_BEGINS = {
    "ready": "it was registered and the last stage that it depends on had ended",
    "registered": "it was registered, with the wait for the stages that it depends on",
}
NODES_SCHEMA = pa.schema(
    [
        described_field("node_id", pa.int64(), "1", "0, 1, 2, ... in the order of the machines' numbers"),
        described_field("slots", pa.int64(), "1", "tasks the node can run at once: its cores"),
        described_field("rack", pa.int64(), "1", "its failure_domain_1"),
        described_field("cpu_cores", pa.float64(), "1", "CPU cores"),
        described_field(
            "memory_bytes", pa.int64(), "bytes", "its share of the largest machine's, at 4 GiB a core"
        ),
        described_field(
            "machine_type", pa.string(), "", "cores and per cent of the largest machine's memory"
        ),
        described_field(
            "attr:failure_domain_2", pa.string(), "", "another level of failure domain", nullable=True
        ),
    ]
)
_NODES = """
CREATE TABLE node AS
SELECT row_number() OVER (ORDER BY length(machine_id), machine_id) - 1 AS node_id, machine_id,
    min(time) AS first_listed, arg_min(failure_domain_1, time) AS domain_1, arg_min(failure_domain_2, time) AS domain_2,
    arg_min(cpu_num, time) AS cpu, arg_min(mem_size, time) AS memory,
    count(DISTINCT cpu_num) > 1 OR count(DISTINCT mem_size) > 1 AS changes
FROM (
    SELECT machine_id, coalesce(time_stamp, 0) AS time, failure_domain_1, failure_domain_2,
        CASE WHEN cpu_num BETWEEN 1 AND 1000000 THEN cpu_num END AS cpu_num,
        CASE WHEN mem_size > 0 AND mem_size <= 100 THEN mem_size END AS mem_size
    FROM machine_meta WHERE machine_id IS NOT NULL)
GROUP BY machine_id;
"""
_NODE_COLUMNS = """
SELECT node_id, CAST(floor(coalesce(cpu, 1)) AS BIGINT) AS slots,
    dense_rank() OVER (ORDER BY coalesce(domain_1, '')) - 1 AS rack, coalesce(cpu, 1) AS cpu_cores,
    CAST(coalesce(memory, 100) / 100 * coalesce((SELECT max(cpu) FROM node), 1) * 4294967296 AS BIGINT)
        AS memory_bytes,
    format('{} cores {}%', coalesce(CAST(cpu AS BIGINT), 1), coalesce(CAST(memory AS BIGINT), 100)) AS machine_type,
    domain_2 AS "attr:failure_domain_2"
FROM node ORDER BY node_id
"""
_ROWS_PER_BATCH = 1 << 20


def convert_alibaba_2018(
    source: str | Path,
    to: str | Path,
    *,
    instances: bool | None = None,
    unfinished: Literal["job", "task"] = "job",
    starts: Literal["ready", "registered"] = "ready",
    shortest_s: float = 0.0,
    memory: str = MEMORY,
    report: Report | None = None,
    progress: Progress | None = None,
) -> None:
    """Convert the trace into a folder of Parquet files, which `read_dags` reads; in bounded memory.

    Where the source has ``machine_meta``, the folder also gets ``cluster.parquet``, a cluster as
    `clusters.cluster.load_cluster` reads it.

    Parameters
    ----------
    source : str or Path
        A folder or an archive with the tables, or ``batch_task`` alone.
    to : str or Path
        The folder to write; it appears when it is complete.
    instances : bool, optional
        Whether durations come from ``batch_instance``, which takes long to read; by default if the source has it.
    unfinished : "job" or "task"
        What is dropped for an incomplete stage (rule 2).
    starts : "ready" or "registered"
        The begin of a stage whose instances are not known (rule 11).
    shortest_s : float
        The least duration of a stage that was registered so long before its end.
    memory : str
        The memory that DuckDB may use; more data go to the disk of the temporary folder.
    report, progress : optional
        See `workloads.readers.report`.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong, a table that is missing or given twice, or an
        option that is out of its range.
    """
    if not 0 <= shortest_s <= MAX_TIME_S:
        raise InputError(f"{shortest_s!r} is not a duration in seconds", field="shortest_s")
    source, report = Path(source), Report() if report is None else report
    with database(memory, source) as con:
        con.execute(MACROS)
        for table in ("batch_task", "machine_meta"):
            create_table(con, table)
        plain = {t: _table(t, f"INSERT INTO {t} FROM {{scan}}") for t in ("batch_task", "machine_meta")}
        found = scan(con, source, plain, report, progress, format=FORMAT)
        need_rows(found, "batch_task", source, "batch_task.csv, plain, gzip or tar.gz")
        check_rows(con, source, _table("batch_task", ""), FORMAT)
        resolve_stages(con, unfinished, report, source)
        count_names(con, report)
        resolve_edges(con, report)
        if starts == "ready":
            start_stages(con, shortest_s)
        con.execute(NO_INSTANCES)
        if instances is not False:
            instance_table = {"batch_instance": _table("batch_instance", KEEP_ATTEMPTS)}
            found |= scan(con, source, instance_table, report, progress, format=FORMAT)
        has_instances = "batch_instance" in found
        if instances and not has_instances:
            raise InputError("holds no batch_instance.csv, plain, gzip or tar.gz", file=source)
        size_stages(con, has_instances, starts, report, source)
        nodes = cluster_file(con, report)
        about = {
            "origin": f"Alibaba cluster-trace-v2018, {source.name}",
            "parameters": f"instances={has_instances} unfinished={unfinished} starts={starts} "
            f"shortest_s={shortest_s:g}",
            "arrivals": "the earliest start of a job's stages; the trace has no submission times",
            "durations": "of instances"
            if has_instances
            else f"every instance lasts as long as its stage, since {_BEGINS[starts]}; when it began is not known",
            **report.as_metadata(),
        }
        files: Files = {
            TASKS_FILE: (expanded(batches(con, TASKS), _ROWS_PER_BATCH), DAG_TASKS_SCHEMA),
            STAGES_FILE: (batches(con, STAGES), STAGES_SCHEMA),
            EDGES_FILE: (batches(con, EDGES), EDGES_SCHEMA),
            JOBS_FILE: (batches(con, JOBS), about_workload(JOBS_SCHEMA, about)),
        }
        if "machine_meta" in found:
            files |= nodes
        write_folder(Path(to), files)


def read_alibaba_2018(source: str | Path, *, report: Report | None = None, **options: Any) -> DagWorkload:
    """Read the trace as a workload; `options` are those of `convert_alibaba_2018`."""
    return read_converted(convert_alibaba_2018, read_dags, source, report, options)


def machine_files(con: duckdb.DuckDBPyConnection, source: Path, report: Report) -> Files:
    """Return the file of the cluster that ``machine_meta`` lists, in an open database."""
    create_table(con, "machine_meta")
    machines = _table("machine_meta", "INSERT INTO machine_meta FROM {scan}")
    scan(con, source, {"machine_meta": machines}, report, format=FORMAT)
    return cluster_file(con, report)


def cluster_file(
    con: duckdb.DuckDBPyConnection,
    report: Report,
    table: str = "machine_meta",
    schema: pa.Schema = NODES_SCHEMA,
) -> Files:
    """Return the file of the cluster (rule 12), none for a table without machines.

    `table` is what the trace calls it; it is read into ``machine_meta``. `schema` has the columns that it states.
    """
    nameless = count_rows(con, "machine_meta WHERE machine_id IS NULL")
    report.dropped(f"rows of {table} without a machine", nameless)
    con.execute(_NODES)
    nodes = count_rows(con, "node")
    if not nodes:
        return {}
    report.read(f"machines, the nodes of {CLUSTER_FILE}", nodes)
    for what, where in (
        ("are first listed after the trace begins: taken as present from the beginning", "first_listed > 0"),
        ("change in cores or memory: taken as they are first listed", "changes"),
        ("have no cores or memory: taken as one core or the largest memory", "cpu IS NULL OR memory IS NULL"),
    ):
        report.repaired(f"machines that {what}", count_rows(con, f"node WHERE {where}"))
    columns = ", ".join(f'"{name}"' for name in schema.names)
    return {CLUSTER_FILE: (batches(con, f"SELECT {columns} FROM ({_NODE_COLUMNS})"), schema)}


def create_table(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Create an empty table of the trace."""
    con.execute(
        f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in _COLUMNS[name].items())})"
    )


def check_rows(
    con: duckdb.DuckDBPyConnection,
    source: Path,
    table: Table,
    format: str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse values of ``batch_task`` that no rule repairs, with the first line that has one.

    `names` are those of columns that a format calls otherwise.
    """
    try:
        check_values(con)
    except InputError as error:
        field, wanted = names.get(error.field or "", error.field or ""), error.message

        def check(text: str) -> str:
            value = float(text or 0)
            wrong = value > MAX_TIME_S or (field == "instance_num" and value != int(value))
            return f"; {wanted}" if wrong else ""

        refuse_cell(source, "batch_task", table, {field: check}, format=format)
        raise InputError(wanted, file=source, field=field) from None


def _table(name: str, insert: str) -> Table:
    return Table(_COLUMNS[name], insert, _REQUIRED[name], _OTHER_NAMES)


def recognises(path: Path) -> bool:
    """Return whether a path holds ``batch_task`` of this trace."""
    return holds_table(path, FORMAT, "batch_task")


# The rules as SQL on the tables in DuckDB, in their order.
#
# Tables: ``batch_task`` as read; ``judged`` (with the reason why a row is dropped), ``job``, ``stage`` (rules 1 to 5),
# ``edge`` (6 to 8), ``instance`` (9), ``size`` (10). `JOBS`, `STAGES`, `EDGES` and `TASKS` select the output.

NAME_LIMIT = 50
"""The trace cuts names of tasks off at so many characters."""

MACROS = """
CREATE MACRO in_trace(start_time, end_time) AS coalesce(start_time > 0 AND end_time > 0, false);
CREATE MACRO dag_name(name) AS
    regexp_full_match(name, '[A-Z]+[0-9]{1,18}(_[0-9]{1,18})*(_[A-Za-z][A-Za-z0-9]*)?');
CREATE MACRO stage_number(name) AS
    CASE WHEN dag_name(name) THEN CAST(regexp_extract(name, '[0-9]+') AS BIGINT) END;
CREATE MACRO stage_parents(name) AS
    CASE WHEN dag_name(name) THEN list_transform(
        list_filter(string_split(name, '_')[2:], lambda p: regexp_full_match(p, '[0-9]+')),
        lambda p: CAST(p AS BIGINT)) END;
CREATE MACRO unfinished(status) AS CASE
    WHEN status IN ('Failed', 'Cancelled', 'Interrupted', 'Running', 'Waiting', 'Ready') THEN lower(status)
    ELSE 'of another status or none' END;
"""
_JUDGE_STAGES = """
CREATE TABLE judged AS SELECT *, CASE
    WHEN job_name IS NULL OR task_name IS NULL THEN 'rows of batch_task without a name'
    WHEN copy > 1 THEN 'rows of batch_task for a stage that has another row'
    WHEN status IS DISTINCT FROM 'Terminated' THEN 'stages that are ' || unfinished(status)
    WHEN NOT in_trace(start_time, end_time) THEN 'stages that start or end outside the trace'
    WHEN coalesce(instance_num, 0) < 1 THEN 'stages without instances'
    END AS reason
FROM (SELECT *, row_number() OVER (
        PARTITION BY job_name, task_name
        ORDER BY status IS DISTINCT FROM 'Terminated', start_time, end_time, instance_num, plan_cpu, plan_mem
    ) AS copy FROM batch_task);
"""
_DROP_JOBS = """
UPDATE judged SET reason = 'stages of a job that is dropped for another stage'
WHERE reason IS NULL AND job_name IN (
    SELECT job_name FROM judged WHERE reason IS NOT NULL AND copy = 1 AND job_name IS NOT NULL);
"""
_NUMBER_JOBS = """
CREATE TABLE job AS
WITH named AS (
    SELECT job_name, min(start_time) AS submit_s,
        TRY_CAST(regexp_extract(job_name, '^j_([0-9]{1,18})$', 1) AS BIGINT) AS number
    FROM judged WHERE reason IS NULL GROUP BY job_name),
placed AS (SELECT *, row_number() OVER (ORDER BY submit_s, number, job_name) - 1 AS place FROM named)
SELECT job_name, submit_s, place,
    CASE WHEN (SELECT count(DISTINCT number) = count(*) FROM named) THEN number ELSE place END AS job_id
FROM placed;
"""
_NUMBER_STAGES = f"""
CREATE TABLE stage AS
SELECT row_number() OVER (ORDER BY place, number NULLS LAST, task_name) - 1 AS key,
    row_number() OVER (PARTITION BY place ORDER BY number NULLS LAST, task_name) - 1 AS stage,
    place, job_id, job_name, task_name, number, cut AND number IS NOT NULL AS cut, stage_parents(name) AS parents,
    CAST(instance_num AS BIGINT) AS instance_num, start_time AS start_s, end_time AS end_s,
    greatest(end_time - start_time, 0) AS duration_s, false AS waited, false AS overtook,
    CASE WHEN plan_cpu > 0 AND isfinite(plan_cpu) THEN plan_cpu / 100 END AS cpu_cores,
    CASE WHEN plan_mem > 0 AND plan_mem <= 100 THEN plan_mem / 100 END AS memory
FROM (SELECT *, stage_number(name) AS number
    FROM (SELECT *, CASE WHEN cut THEN regexp_replace(task_name, '_[^_]*$', '') ELSE task_name END AS name
        FROM (SELECT *, length(task_name) = {NAME_LIMIT} AND (SELECT max(length(task_name)) FROM judged) = {NAME_LIMIT}
            AS cut FROM judged WHERE reason IS NULL)))
JOIN job USING (job_name);
"""
_FIND_EDGES = """
CREATE TABLE wanted AS
SELECT place, job_id, stage, number, unnest(parents) AS parent FROM stage;
CREATE TABLE edge AS
SELECT DISTINCT wanted.place, wanted.job_id, parents.stage AS parent, wanted.stage AS child,
    wanted.parent > wanted.number AS upward
FROM wanted JOIN stage AS parents ON parents.place = wanted.place AND parents.number = wanted.parent
WHERE wanted.parent <> wanted.number;
"""
# A stage is ready when it is registered and the last stage that it depends on has ended.
_START_READY = """
UPDATE stage SET duration_s = least(duration_s, greatest(end_s - ready_s, {shortest_s})), waited = true,
    overtook = end_s < ready_s
FROM (
    SELECT edge.place, edge.child AS stage, max(parents.end_s) AS ready_s
    FROM edge JOIN stage AS parents ON parents.place = edge.place AND parents.stage = edge.parent GROUP BY ALL
) AS ready
WHERE ready.place = stage.place AND ready.stage = stage.stage AND ready_s > start_s;
"""
NO_INSTANCES = """
CREATE TABLE instance (
    key BIGINT, start_s DECIMAL(18, 6), number BIGINT, duration_s DECIMAL(18, 6), backward BOOLEAN, reason VARCHAR);
"""
KEEP_ATTEMPTS = """
INSERT INTO instance
SELECT key, scan.start_time, TRY_CAST(regexp_extract(instance_name, '[0-9]{1,18}$') AS BIGINT),
    greatest(scan.end_time - scan.start_time, 0), scan.end_time < scan.start_time,
    CASE WHEN status IS DISTINCT FROM 'Terminated' THEN 'attempts of instances that are ' || unfinished(status)
        WHEN NOT in_trace(scan.start_time, scan.end_time) THEN 'attempts of instances outside the trace'
        WHEN seq_no < total_seq_no THEN 'attempts of instances that were followed by another'
        WHEN job_name IS NULL OR task_name IS NULL THEN 'attempts of instances without a job or a stage'
        WHEN key IS NULL THEN 'attempts of instances of stages that were dropped or are not there'
    END
FROM {scan} AS scan LEFT JOIN (SELECT key, job_name, task_name FROM stage) AS stage USING (job_name, task_name);
"""
_SIZE_STAGES = """
CREATE TABLE size AS
SELECT key, coalesce(num_tasks, instance_num) AS num_tasks, coalesce(mean_task_s, duration_s) AS mean_task_s,
    num_tasks IS NULL AS alike, num_tasks <> instance_num AS otherwise
FROM stage LEFT JOIN (
    SELECT key, count(*) AS num_tasks, avg(duration_s) AS mean_task_s FROM instance WHERE reason IS NULL GROUP BY key
) USING (key);
"""
JOBS = """
SELECT job_id, CAST(min(submit_s) AS DOUBLE) AS submit_s, CAST(sum(num_tasks) AS BIGINT) AS num_tasks,
    sum(mean_task_s * num_tasks) / sum(num_tasks) AS mean_task_s,
    CAST(NULL AS VARCHAR) AS "constraint", CAST(NULL AS VARCHAR) AS tenant
FROM stage JOIN size USING (key) JOIN (SELECT place, submit_s FROM job) USING (place)
GROUP BY place, job_id ORDER BY place
"""
STAGES = """
SELECT job_id, stage, task_name AS name, num_tasks, CAST(mean_task_s AS DOUBLE) AS mean_task_s, cpu_cores, memory
FROM stage JOIN size USING (key) ORDER BY key
"""
EDGES = """
SELECT job_id, parent, child FROM edge ORDER BY place, parent, child
"""
# One row an instance, and one for all the equal tasks of a stage without instances.
TASKS = """
SELECT job_id, CAST(duration_s AS DOUBLE) AS duration_s, stage, num_tasks FROM (
    SELECT key, start_s, number, duration_s, CAST(1 AS BIGINT) AS num_tasks FROM instance WHERE reason IS NULL
    UNION ALL
    SELECT key, NULL, NULL, duration_s, num_tasks FROM size JOIN (SELECT key, duration_s FROM stage) USING (key)
    WHERE alike)
JOIN (SELECT key, job_id, stage FROM stage) USING (key)
ORDER BY key, start_s, number NULLS LAST, duration_s
"""


def check_values(con: duckdb.DuckDBPyConnection) -> None:
    """Refuse values that no rule repairs, such as times in another unit."""
    for field, wrong, want in (
        ("instance_num", "instance_num <> floor(instance_num)", "want a whole number"),
        ("start_time", f"start_time > {MAX_TIME_S:.0f}", "are the times in seconds?"),
        ("end_time", f"end_time > {MAX_TIME_S:.0f}", "are the times in seconds?"),
    ):
        if count_rows(con, f"batch_task WHERE {wrong}"):
            raise InputError(want, field=field)


def resolve_stages(con: duckdb.DuckDBPyConnection, unfinished: str, report: Report, source: Path) -> None:
    """Make the tables of jobs and stages (rules 1 to 5)."""
    con.execute(_JUDGE_STAGES)
    named = number(con, "SELECT count(DISTINCT job_name) FROM judged WHERE task_name IS NOT NULL")
    if unfinished == "job":
        con.execute(_DROP_JOBS)
    con.execute(_NUMBER_JOBS)
    jobs, known = count_rows(con, "job"), "whole" if unfinished == "job" else "known"
    report.dropped(f"jobs without a {known} set of stages", named - jobs)
    count_dropped(con, "judged", report)
    if jobs == 0:
        wrong = f"no job of batch_task is complete; try unfinished='task'{report.left_out()}"
        raise InputError(wrong, file=source)
    con.execute(_NUMBER_STAGES)
    report.read("stages kept", count_rows(con, "stage"))
    backward = count_rows(con, "judged WHERE reason IS NULL AND end_time < start_time")
    report.repaired("stages that end before they start: taken as 0 s long", backward)


def count_names(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Report what the names of stages say (rule 5)."""
    report.read("of them not in a DAG by name", count_rows(con, "stage WHERE number IS NULL"))
    suffixed = count_rows(con, "stage WHERE NOT cut AND regexp_matches(task_name, '_[A-Za-z]')")
    if suffixed:
        report.read("of them with a suffix in their name, which is not a dependency", suffixed)
    report.repaired(_cut_off(con), count_rows(con, "stage WHERE cut"))
    sharing = "stage WHERE number IS NOT NULL QUALIFY count(*) OVER (PARTITION BY place, number) > 1"
    report.repaired(
        "stages that share a number with another of the job: dependencies are on all of them",
        count_rows(con, f"(FROM {sharing})"),
    )


def _cut_off(con: duckdb.DuckDBPyConnection) -> str:
    """Return the words of the report about names that are cut off."""
    jobs = number(con, "SELECT count(DISTINCT place) FROM stage WHERE cut")
    names = count_rows(con, f"judged WHERE length(task_name) = {NAME_LIMIT} AND copy = 1")
    return (
        f"stages of {jobs:,} jobs with a name of {NAME_LIMIT} characters, at which names are cut off ({names:,} in the "
        "table): what follows the last _ is left out, and dependencies may be lost; a whole name of that length "
        "cannot be distinguished from one that was cut"
    )


def resolve_edges(con: duckdb.DuckDBPyConnection, report: Report) -> None:
    """Make the table of edges (rules 6 to 8)."""
    con.execute(_FIND_EDGES)
    report.repaired(
        "dependencies of a stage on itself: left out", count_rows(con, "wanted WHERE parent = number")
    )
    absent = "wanted ANTI JOIN stage ON stage.place = wanted.place AND stage.number = wanted.parent"
    report.repaired("dependencies on stages that are not there: left out", count_rows(con, absent))
    repeated = number(
        con, "SELECT sum(len(parents) - len(list_distinct(parents))) FROM stage WHERE len(parents) > 1"
    )
    report.repaired("dependencies named twice: taken once", repeated)
    # Without a dependency on a higher number there is no cycle: only few jobs are checked.
    edges = con.execute(
        "SELECT place, parent, child FROM edge WHERE place IN (SELECT place FROM edge WHERE upward) ORDER BY place"
    ).fetchall()
    cyclic = [place for place, rows in groupby(edges, itemgetter(0)) if _has_cycle(rows)]
    con.execute("CREATE TABLE cyclic AS SELECT unnest($places::BIGINT[]) AS place", {"places": cyclic})
    in_cycles = "edge WHERE upward AND place IN (SELECT place FROM cyclic)"
    report.repaired(
        f"dependencies in cycles of {len(cyclic):,} jobs: those on higher numbers left out",
        count_rows(con, in_cycles),
    )
    con.execute(f"DELETE FROM {in_cycles}")


def start_stages(con: duckdb.DuckDBPyConnection, shortest_s: float) -> None:
    """Let stages begin when they are ready, not when they were registered (rule 11)."""
    con.execute(_START_READY.format(shortest_s=f"CAST({shortest_s!r} AS DECIMAL(18, 6))"))


def _has_cycle(edges: Iterable[tuple[int, int, int]]) -> bool:
    graph: TopologicalSorter[int] = TopologicalSorter()
    for _, parent, child in edges:
        graph.add(child, parent)
    try:
        graph.prepare()
    except CycleError:
        return True
    return False


def size_stages(
    con: duckdb.DuckDBPyConnection, has_instances: bool, starts: str, report: Report, source: Path
) -> None:
    """Make the numbers and durations of the stages' tasks (rules 9 to 11)."""
    con.execute(_SIZE_STAGES)
    count_dropped(con, "instance", report)
    if has_instances:
        report.repaired(
            "attempts of instances that end before they start: taken as 0 s long",
            count_rows(con, "instance WHERE reason IS NULL AND backward"),
        )
        report.repaired(
            "stages whose instances are not instance_num: the instances taken",
            count_rows(con, "size WHERE otherwise"),
        )
        report.repaired(
            "stages without instances in batch_instance: instance_num of them, as long as the stage",
            count_rows(con, "size WHERE alike"),
        )
    _count_starts(con, starts, report)
    tasks = number(con, "SELECT sum(num_tasks) FROM size")
    if tasks > size_of(source):  # otherwise each has bytes of its own, and goes to the disk as it is read
        check_tasks(tasks, file=source, field="instance_num")
    report.read("tasks kept", tasks)
    for name, plan, most in (("cpu_cores", "plan_cpu", "'inf'"), ("memory", "plan_mem", "100")):
        unknown = f"SELECT sum(num_tasks) FROM size JOIN stage USING (key) WHERE {name} IS NULL"
        if 0 < (count := number(con, unknown)) < tasks:
            report.read(f"tasks that state no {name}", count)
        outside = (
            f"judged WHERE reason IS NULL AND NOT ({plan} > 0 AND {plan} <= {most} AND isfinite({plan}))"
        )
        report.dropped(f"values of {plan} of stages that are out of range", count_rows(con, outside))


def _count_starts(con: duckdb.DuckDBPyConnection, starts: str, report: Report) -> None:
    """Report the stages without instances that were registered before they could begin."""
    alike = "stage SEMI JOIN (FROM size WHERE alike) USING (key)"
    what = "stages that were registered before those that they depend on had ended"
    if starts == "ready":
        report.repaired(f"{what}: taken to begin then", count_rows(con, f"{alike} WHERE waited"))
        report.repaired(
            "stages that end before those that they depend on: taken as 0 s long, or shortest_s",
            count_rows(con, f"{alike} WHERE overtook"),
        )
        return
    early = count_rows(
        con,
        f"""(FROM {alike}) AS child WHERE EXISTS (
            FROM edge JOIN stage AS parents ON parents.place = edge.place AND parents.stage = edge.parent
            WHERE edge.place = child.place AND edge.child = child.stage AND parents.end_s > child.start_s)""",
    )
    if early:
        report.read(f"{what}: their durations hold that wait", early)
