"""The rules of `workloads.readers.alibaba_2018` as SQL on its tables in DuckDB, in their order.

Tables: ``batch_task`` as read; ``judged`` (with the reason why a row is dropped), ``job``, ``stage`` (rules 1 to 5),
``edge`` (6 to 8), ``instance`` (9), ``size`` (10). `JOBS`, `STAGES`, `EDGES` and `TASKS` select the output.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.errors import InputError
from workloads.jobs import MAX_TIME_S
from workloads.limits import check_tasks, size_of
from workloads.readers.duckdb_tables import count_dropped, count_rows, number
from workloads.readers.report import Report

if TYPE_CHECKING:
    import duckdb

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
