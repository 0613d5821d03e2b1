"""Tables of traces larger than memory, in DuckDB: resolved by SQL, and written as a workload folder.

A reader opens a `database`, makes its tables, fills them with `workloads.readers.scanning`, states its rules as
SQL, and gives `write_folder` rows and a schema for each file. Memory is bounded; DuckDB writes more data to a temporary
folder that is removed at the end. The database opens no files except the source's.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workloads.arrow import from_numpy, to_numpy
from workloads.dags import JobsOrDags
from workloads.errors import InputError
from workloads.jobs import SCHEMA_VERSION
from workloads.limits import size_of
from workloads.readers.parquet import ALL_FILES, JOBS_FILE
from workloads.readers.report import Report
from workloads.readers.scanning import unpacked_folder
from workloads.readers.shards import form_of
from workloads.readers.source import shown
from workloads.units import parse_size

if TYPE_CHECKING:
    import duckdb

CLUSTER_FILE = "cluster.parquet"
"""Beside a workload: the machines of its trace, as nodes."""
MEMORY = "1GiB"
"""The memory that DuckDB may use by default."""
_ROWS_PER_BATCH = 1 << 20
_SPILL_BYTES, _SPILL_TIMES = 1 << 30, 30
"""The limit on spilled bytes: the first, or so many times the source; packed shards unpack to 3 to 10 times that."""


@contextmanager
def database(memory: str, source: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a new database in a temporary folder that is removed at the end.

    Parameters
    ----------
    memory : str
        The memory that DuckDB may use, such as ``"1GiB"``.
    source : Path
        The only files that can be read; their size bounds the disk that is used.

    Raises
    ------
    InputError
        The memory or the disk does not suffice.
    KeyboardInterrupt
        A query was interrupted.
    """
    import duckdb

    limit = f"{parse_size(memory, 'memory') >> 20}MiB"
    # DuckDB opens these by name, and follows links; other files come through pipes.
    files = (path for path in (*source.glob("*"), *source.glob("*/*")) if form_of(path.name) == "parquet")
    paths = [os.path.realpath(path) for path in (*files, source)]
    with tempfile.TemporaryDirectory(prefix="emu-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": limit,
            "temp_directory": f"{folder}/spill",
            "max_temp_directory_size": f"{max(_SPILL_BYTES, _SPILL_TIMES * size_of(source)) >> 20}MiB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
        try:
            with duckdb.connect(f"{folder}/tables.duckdb", config=settings) as con:
                con.execute("PRAGMA disable_checkpoint_on_shutdown")  # it is opened once
                con.execute("SET enable_progress_bar = false")  # it would print to standard output
                # DuckDB checks the name of an unpacked file, /dev/fd/N, and from 2.0.1 on the file it leads to.
                os.mkdir(unpacked := unpacked_folder(f"{folder}/spill"))
                con.execute("SET allowed_directories = $folders", {"folders": ["/dev/fd/", f"{unpacked}/"]})
                con.execute("SET allowed_paths = $paths", {"paths": paths})
                con.execute("SET enable_external_access = false")
                con.execute("SET lock_configuration = true")
                yield con
        except duckdb.OutOfMemoryException as error:
            wrong = f"{limit} do not suffice, or the disk of {folder} is full ({shown(str(error))})"
            raise InputError(wrong, field="memory") from None
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except RuntimeError as error:
            if "Query interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from None
        except duckdb.DataError as error:  # from the SQL of rules, on values that no check has refused
            wrong = f"holds a value that is out of range ({shown(str(error))})"
            raise InputError(wrong, file=source) from None
        except duckdb.IOException as error:
            raise InputError(
                f"the temporary folder cannot be used: {shown(str(error))}", file=folder
            ) from None


def number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    """Return the single number of a query's result, 0 for null."""
    return int(con.execute(query).fetchall()[0][0] or 0)


def count_rows(con: duckdb.DuckDBPyConnection, rows: str) -> int:
    """Return the number of rows of a table, perhaps with a WHERE clause and joins."""
    return number(con, f"SELECT count(*) FROM {rows}")


def count_dropped(con: duckdb.DuckDBPyConnection, table: str, report: Report) -> None:
    """Report the dropped rows of a table by its column ``reason``, which is null for rows that are kept."""
    query = f"SELECT reason, count(*) FROM {table} WHERE reason IS NOT NULL GROUP BY reason ORDER BY reason"
    for reason, count in con.execute(query).fetchall():
        report.dropped(reason, count)


def about_workload(
    schema: pa.Schema, metadata: Mapping[str, str], classes: tuple[float, float] | None = None
) -> pa.Schema:
    """Return the schema of ``jobs.parquet`` with the metadata of the whole workload.

    `classes` are the published cut-off between short and long jobs (s), and the share of nodes for long ones.
    """
    short_cutoff_s, long_partition = (None, None) if classes is None else classes
    return schema.with_metadata(
        {
            "schema_version": str(SCHEMA_VERSION),
            "short_cutoff_s": json.dumps(short_cutoff_s),
            "long_partition": json.dumps(long_partition),
            "metadata": json.dumps(dict(metadata), sort_keys=True),
        }
    )


def batches(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query."""
    yield from con.sql(query).to_arrow_reader(_ROWS_PER_BATCH)


def expanded(rows: Iterable[pa.RecordBatch], at_once: int) -> Iterator[pa.RecordBatch]:
    """Yield each row as often as its last column states, without that column; at most `at_once` rows in a batch."""
    for batch in rows:
        ends = np.cumsum(to_numpy(batch[batch.num_columns - 1]))
        rest = batch.select(range(batch.num_columns - 1))
        for first in range(0, int(ends[-1]) if len(ends) else 0, at_once):
            places = np.arange(first, min(first + at_once, int(ends[-1])))
            yield rest.take(from_numpy(np.searchsorted(ends, places, side="right")))


def write_folder(to: Path, files: Mapping[str, tuple[Iterable[pa.RecordBatch], pa.Schema]]) -> None:
    """Write Parquet files beside the folder, and move them into it when all are whole.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as beside:
            for name, (rows, schema) in files.items():
                _write_batches(rows, schema, Path(beside) / name)
            to.mkdir(exist_ok=True)
            for name in ALL_FILES - files.keys():  # of a workload that this one replaces
                (to / name).unlink(missing_ok=True)
            for name in sorted(files, key=JOBS_FILE.__eq__):  # last: without it there is no workload
                os.replace(Path(beside) / name, to / name)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=to) from None


def read_converted(
    convert: Callable[..., None],
    read: Callable[[Path], JobsOrDags],
    source: str | Path,
    report: Report | None,
    options: Mapping[str, Any],
) -> JobsOrDags:
    """Return a trace as a workload: converted into a temporary folder, and read from there."""
    report = Report() if report is None else report
    with tempfile.TemporaryDirectory(prefix="emu-") as folder:
        to = Path(folder) / (Path(source).name.partition(".")[0] or "trace")
        convert(source, to, report=report, **options)
        workload = read(to)
    return replace(workload, notes=(*workload.notes, *report.notes()))


def _write_batches(rows: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    import pyarrow.parquet as pq

    labels = [f.name for f in schema if f.name in ("job_id", "stage") or pa.types.is_string(f.type)]
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=labels, write_page_checksum=True
    ) as writer:
        for batch in rows:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
