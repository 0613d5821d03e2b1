"""The rules by which constraints of Google's traces become those of jobs, and machines a cluster, as SQL.

The traces' readers fill the tables ``constraint_of_task`` (job, task, time, attribute, operator, value),
``machine`` and ``attribute`` with the content of the trace. `workloads.readers.google_events` selects jobs and tasks
before, and its rules continue here:

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

The "different machines restriction" is left out: it concerns tasks that run at the same time, while ``spread-nodes``
concerns all tasks of a job.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workloads.arrow import column, described_field, from_numpy, to_numpy
from workloads.constraints import CONSTRAINT_SETS_SCHEMA, JOB_CONSTRAINTS_SCHEMA, OWN
from workloads.readers.duckdb_tables import CLUSTER_FILE, batches, count_rows, number
from workloads.readers.google_events import BEGIN_US, Files
from workloads.readers.parquet import CONSTRAINT_SETS_FILE, JOB_CONSTRAINTS_FILE
from workloads.readers.report import Report

if TYPE_CHECKING:
    import duckdb

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
_QUERIES = {
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
    return {file: (batches(con, _QUERIES[file]), schema) for file, schema in schemas.items()}


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
