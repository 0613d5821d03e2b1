"""Alibaba's cluster trace of 2018: DAGs of batch tasks over 8 days on about 4,000 machines.

The tables are CSV without a header [1]_: ``batch_task`` (a row a task, which is a stage here), ``batch_instance``
(a row an attempt of an instance, which is a task here) and ``machine_meta``. They may lie in a folder or in an
archive, plain, gzip or as published (``batch_task.tar.gz``). ``batch_instance`` has 1.35e9 rows: all is done in
DuckDB in bounded memory, and in the order of these rules, each of which is counted in the report.

1. A job is the rows of ``batch_task`` with its ``job_name``, a stage is one of these rows. Rows without a name
   are dropped. Of several rows for one task, one that terminated and then the first to start is taken.
2. A stage that is not ``Terminated`` (``Failed``, ``Running``, ``Waiting``, …), that starts or ends outside the
   trace (time 0, or none) or has no instances is not known wholly. Its job is dropped, or with
   ``unfinished="task"`` the stage alone.
3. A stage that ends before it starts takes 0 s.
4. A job arrives when its first stage starts: the trace has no submission time. Jobs are in this order. ``job_id``
   is the number in ``job_name`` (``j_17``), or the place where a name has none.
5. A name such as ``M5_3_4`` is number 5, after the stages 3 and 4 of the job; names that do not match
   ``[A-Z]+[0-9]+(_[0-9]+)*`` stand alone. Stages are in the order of numbers, those without come last by name.
6. Where several stages have a number, dependencies on it are on all of them.
7. Dependencies on a number that the job does not have, or on the stage's own, are left out; one that is named
   twice is taken once.
8. In a job with a cycle, dependencies on higher numbers are left out.
9. An attempt of an instance is dropped when it is not ``Terminated``, starts or ends outside the trace, was
   followed by another (``seq_no`` below ``total_seq_no``), or is of a stage that was dropped or is not there.
   One that ends before it starts takes 0 s.
10. What is left are the stage's tasks, by start and then by the number in the instance's name: their number
    holds where ``instance_num`` says another. A stage with none, or without ``batch_instance``, has
    ``instance_num`` tasks that all last as long as the stage.
11. ``plan_cpu`` is cores times 100, ``plan_mem`` per cent of the largest machine's memory; what is not positive
    (or above 100 for memory) is null.

References
----------
.. [1] alibaba/clusterdata, cluster-trace-v2018: trace_2018.md and schema.txt.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from workloads.arrow import from_numpy, to_numpy
from workloads.dags import DAG_TASKS_SCHEMA, EDGES_SCHEMA, STAGES_SCHEMA, DagWorkload
from workloads.errors import InputError
from workloads.jobs import JOBS_SCHEMA, SCHEMA_VERSION
from workloads.readers.alibaba_2018_rules import (
    EDGES,
    JOBS,
    KEEP_ATTEMPTS,
    MACROS,
    NO_INSTANCES,
    STAGES,
    TASKS,
    check_values,
    resolve_edges,
    resolve_stages,
    size_stages,
)
from workloads.readers.parquet import EDGES_FILE, JOBS_FILE, STAGES_FILE, TASKS_FILE, read_dags
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_members, piped, shown
from workloads.units import parse_size

if TYPE_CHECKING:
    import duckdb

# Whole numbers in the trace. DuckDB rounds 1.5 to a BIGINT without a word, and takes nan for a DOUBLE.
_EXACT = "DECIMAL(18, 6)"
_COLUMNS = {
    "batch_task": {
        "task_name": "VARCHAR", "instance_num": _EXACT, "job_name": "VARCHAR", "task_type": "VARCHAR",
        "status": "VARCHAR", "start_time": _EXACT, "end_time": _EXACT, "plan_cpu": "DOUBLE", "plan_mem": "DOUBLE",
    },
    "batch_instance": {
        "instance_name": "VARCHAR", "task_name": "VARCHAR", "job_name": "VARCHAR", "task_type": "VARCHAR",
        "status": "VARCHAR", "start_time": _EXACT, "end_time": _EXACT, "machine_id": "VARCHAR",
        "seq_no": _EXACT, "total_seq_no": _EXACT, "cpu_avg": "VARCHAR", "cpu_max": "VARCHAR",
        "mem_avg": "VARCHAR", "mem_max": "VARCHAR",
    },
    "machine_meta": {
        "machine_id": "VARCHAR", "time_stamp": _EXACT, "failure_domain_1": "VARCHAR",
        "failure_domain_2": "VARCHAR", "cpu_num": "DOUBLE", "mem_size": "DOUBLE", "status": "VARCHAR",
    },
}  # fmt: skip
_MACHINES_SCHEMA = pa.schema(
    [
        pa.field("machine_id", pa.string(), nullable=False),
        pa.field("time_s", pa.float64(), nullable=False),
        pa.field("status", pa.string()),
        pa.field("cpu_cores", pa.float64()),
        pa.field("memory", pa.float64()),
        pa.field("failure_domain_1", pa.string()),
        pa.field("failure_domain_2", pa.string()),
    ]
)
_MACHINES = """
SELECT machine_id, CAST(coalesce(time_stamp, 0) AS DOUBLE) AS time_s, status,
    CASE WHEN cpu_num > 0 AND isfinite(cpu_num) THEN cpu_num END AS cpu_cores,
    CASE WHEN mem_size > 0 AND mem_size <= 100 THEN mem_size / 100 END AS memory,
    failure_domain_1, failure_domain_2
FROM machine_meta WHERE machine_id IS NOT NULL ORDER BY ALL
"""
MACHINES_FILE = "machines.parquet"
_ROWS_PER_BATCH = 1 << 20
_TABLE = re.compile(r"(.*/)?(batch_(task|instance)|(machine|container)_(meta|usage))[^/]*\.csv")


def convert_alibaba_2018(
    source: str | Path,
    to: str | Path,
    *,
    instances: bool | None = None,
    unfinished: Literal["job", "task"] = "job",
    memory: str = "1GiB",
    report: Report | None = None,
    progress: Progress | None = None,
) -> None:
    """Convert the trace into a folder of Parquet files, which `read_dags` reads; in bounded memory.

    The folder also gets ``machines.parquet`` where the source has ``machine_meta``.

    Parameters
    ----------
    source : str or Path
        A folder or an archive with the tables, or ``batch_task`` alone.
    to : str or Path
        The folder to write; nothing is there until all is.
    instances : bool, optional
        Whether durations come from ``batch_instance``; by default if it is there. It is read for long.
    unfinished : "job" or "task"
        What is dropped with a stage that is not known wholly (rule 2).
    memory : str
        What DuckDB may use; above it, it uses the disk of the temporary folder.
    report, progress : optional
        See `workloads.readers.report`.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong, a table that is missing or there twice, or an
        option that is out of its range.
    """
    if unfinished not in ("job", "task"):
        raise InputError(f"{unfinished!r} is neither 'job' nor 'task'", field="unfinished")
    source, report = Path(source), Report() if report is None else report
    with _database(memory) as con:
        con.execute(MACROS)
        for table in ("batch_task", "machine_meta"):
            fields = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS[table].items())
            con.execute(f"CREATE TABLE {table} ({fields})")
        plain = {table: f"INSERT INTO {table} FROM {{scan}}" for table in ("batch_task", "machine_meta")}
        found = _scan(con, source, plain, report, progress)
        if "batch_task" not in found:
            raise InputError("holds no batch_task.csv, plain, gzip or tar.gz", file=source)
        check_values(con, source)
        resolve_stages(con, unfinished, report, source)
        resolve_edges(con, report)
        con.execute(NO_INSTANCES)
        if instances is not False:
            found |= _scan(con, source, {"batch_instance": KEEP_ATTEMPTS}, report, progress)
        has_instances = "batch_instance" in found
        if instances and not has_instances:
            raise InputError("holds no batch_instance.csv, plain, gzip or tar.gz", file=source)
        size_stages(con, has_instances, report, source)
        if "machine_meta" in found:
            nameless = "SELECT count(*) FROM machine_meta WHERE machine_id IS NULL"
            report.dropped("rows of machine_meta without a machine", con.execute(nameless).fetchall()[0][0])
        about = {
            "origin": f"Alibaba cluster-trace-v2018, {source.name}",
            "parameters": f"instances={has_instances} unfinished={unfinished}",
            "arrivals": "the earliest start of a job's stages; the trace has no submission times",
            "durations": "of instances" if has_instances else "every instance lasts as long as its stage",
            **report.as_metadata(),
        }
        _write(con, Path(to), about, "machine_meta" in found)


def read_alibaba_2018(source: str | Path, *, report: Report | None = None, **options: Any) -> DagWorkload:
    """Read the trace as a workload; `options` are those of `convert_alibaba_2018`."""
    report = Report() if report is None else report
    with tempfile.TemporaryDirectory(prefix="emu-") as folder:
        convert_alibaba_2018(source, Path(folder) / "alibaba-2018", report=report, **options)
        workload = read_dags(Path(folder) / "alibaba-2018")
    return replace(workload, notes=(*workload.notes, *report.notes()))


def recognises(path: Path) -> bool:
    """Return whether a folder, an archive or a file has ``batch_task`` of this trace, by names alone."""
    if os.path.isdir(path):
        return any(_table_of(name) == "batch_task" for name in os.listdir(path))
    if _table_of(path.name) == "batch_task":
        return True
    try:
        return any(_TABLE.match(name) for name, _ in islice(open_members(path), 1))
    except InputError:
        return False


def _table_of(name: str) -> str:
    """Return the table a file or member holds by its name: ``x/batch_task_3.csv.gz`` is batch_task."""
    return re.sub(r"[-_]?[0-9]*$", "", PurePosixPath(name).name.partition(".")[0])


@contextmanager
def _database(memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database of its own in a temporary folder that is removed at the end."""
    import duckdb

    limit = f"{parse_size(memory, 'memory') >> 20}MiB"
    with tempfile.TemporaryDirectory(prefix="emu-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": limit,
            "temp_directory": f"{folder}/spill",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
        try:
            with duckdb.connect(f"{folder}/tables.duckdb", config=settings) as con:
                con.execute("PRAGMA disable_checkpoint_on_shutdown")  # nobody opens it again
                con.execute("SET lock_configuration = true")
                yield con
        except duckdb.OutOfMemoryException as error:
            wrong = f"{limit} do not suffice, or the disk of {folder} is full ({shown(str(error))})"
            raise InputError(wrong, field="memory") from None
        except RuntimeError as error:
            if "Query interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from None  # which DuckDB reports in this way
        except duckdb.IOException as error:
            raise InputError(
                f"the temporary folder cannot be used: {shown(str(error))}", file=folder
            ) from None


def _scan(
    con: duckdb.DuckDBPyConnection,
    source: Path,
    inserts: dict[str, str],
    report: Report,
    progress: Progress | None,
) -> set[str]:
    """Read tables of the source by SQL that inserts ``{scan}``, all their shards; return which are there."""
    found: dict[str, str] = {}
    for path in _files(source, inserts.keys()):
        for name, stream in open_members(path, progress=progress):
            if (table := _table_of(name)) not in inserts:
                continue
            shard = PurePosixPath(name).name.partition(".")[0]
            place = str(path) if name == path.name.removesuffix(".gz") else f"{path} ({name})"
            if shard in found:
                raise InputError(f"holds {shard}, and so does {found[shard]}; keep one", file=place)
            found[shard] = place
            insert = inserts[table].replace("{scan}", _csv(_COLUMNS[table]))
            with piped(stream) as pipe:
                rows = _insert(con, insert, pipe, place)
            _refuse_rejects(con, _COLUMNS[table], place)
            report.read(f"rows of {table}", rows)
    return {_table_of(shard) for shard in found}


def _insert(con: duckdb.DuckDBPyConnection, insert: str, pipe: str, place: str) -> int:
    """Return how many rows were inserted."""
    import duckdb

    try:
        return int(con.execute(insert, {"path": pipe}).fetchall()[0][0])
    except duckdb.InvalidInputException as error:  # what the parser does not put among the rejects
        wrong = f"cannot be read as CSV; do all lines end alike? ({shown(str(error))})"
        raise InputError(wrong, file=place) from None


def _files(source: Path, tables: Collection[str]) -> list[Path]:
    """Return the files that may hold a table: those of a folder that are named like one, or the source."""
    if os.path.isdir(source):
        return sorted(p for p in source.iterdir() if _table_of(p.name) in tables and p.is_file())
    return [] if _table_of(source.name) in _COLUMNS.keys() - tables else [source]


def _csv(columns: dict[str, str]) -> str:
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return (
        f"read_csv($path, columns = {{{types}}}, auto_detect = false, header = false, delim = ',', quote = '', "
        "escape = '', compression = 'none', store_rejects = true, rejects_limit = 100)"
    )


def _refuse_rejects(con: duckdb.DuckDBPyConnection, columns: dict[str, str], place: str) -> None:
    """Raise the error for the first line that did not fit the columns."""
    rejected = con.execute(
        "SELECT line, column_idx, column_name, error_type, csv_line FROM reject_errors ORDER BY line, column_idx"
    ).fetchone()
    if rejected is None:
        return
    line, at, name, error, text = rejected
    fields = text.split(",")
    if error == "CAST":
        wrong = f"{shown(fields[at - 1])} is not a number{' below 1e12' if columns[name] == _EXACT else ''}"
    elif error == "MISSING COLUMNS":
        wrong = f"the line ends after {len(fields)} of {len(columns)} fields; want {','.join(columns)}"
        name = list(columns)[len(fields)]
    elif error == "TOO MANY COLUMNS":
        wrong = f"the line has {len(fields)} fields; want the {len(columns)} of {','.join(columns)}"
        name = str(len(columns) + 1)
    else:
        wrong = f"cannot be read ({error.lower()})"
    raise InputError(wrong, file=place, line=line, field=name)


def _write(con: duckdb.DuckDBPyConnection, to: Path, about: dict[str, str], has_machines: bool) -> None:
    """Write the folder beside its place, and put it there when it is whole."""
    header = {
        "schema_version": str(SCHEMA_VERSION),
        "short_cutoff_s": "null",
        "long_partition": "null",
        "metadata": json.dumps(about, sort_keys=True),
    }
    tables = {
        TASKS_FILE: (TASKS, DAG_TASKS_SCHEMA),
        STAGES_FILE: (STAGES, STAGES_SCHEMA),
        EDGES_FILE: (EDGES, EDGES_SCHEMA),
        **({MACHINES_FILE: (_MACHINES, _MACHINES_SCHEMA)} if has_machines else {}),
        JOBS_FILE: (JOBS, JOBS_SCHEMA.with_metadata(header)),
    }
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as beside:
            for name, (query, schema) in tables.items():
                batches = con.sql(query).to_arrow_reader(_ROWS_PER_BATCH)
                if name == TASKS_FILE:
                    batches = _expanded(batches)
                _write_batches(batches, schema, Path(beside) / name)
            to.mkdir(exist_ok=True)
            for name in tables:  # jobs.parquet, without which there is no workload, comes last
                os.replace(Path(beside) / name, to / name)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=to) from None


def _expanded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows as often as their last column says, at most `_ROWS_PER_BATCH` at a time."""
    for batch in batches:
        ends = np.cumsum(to_numpy(batch["num_tasks"]))
        rest = batch.select(range(batch.num_columns - 1))
        for first in range(0, int(ends[-1]) if len(ends) else 0, _ROWS_PER_BATCH):
            rows = np.arange(first, min(first + _ROWS_PER_BATCH, int(ends[-1])))
            yield rest.take(from_numpy(np.searchsorted(ends, rows, side="right")))


def _write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    import pyarrow.parquet as pq

    labels = [f.name for f in schema if f.name in ("job_id", "stage") or pa.types.is_string(f.type)]
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=labels, write_page_checksum=True
    ) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
