"""Machines of public traces as nodes of a cluster.

A trace's machines become nodes by the rules of `workloads.readers.google_constraints` (Google's, of 2011 and 2019) and
`workloads.readers.alibaba_2018` (Alibaba's, and of `workloads.readers.alibaba_2017`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from workloads.errors import InputError
from workloads.readers.duckdb_tables import MEMORY, database
from workloads.readers.known_tables import (
    ALIBABA_2017,
    ALIBABA_2018,
    CLUSTER_TABLES,
    GOOGLE_2011,
    GOOGLE_2019,
    identify,
)
from workloads.readers.report import Report
from workloads.readers.samples import sample_of
from workloads.readers.shards import Wanted, files_of, members_of

if TYPE_CHECKING:
    import duckdb

    from workloads.readers.google_events import Files

_FORMATS = (GOOGLE_2011, GOOGLE_2019, ALIBABA_2018, ALIBABA_2017)


def read_machines(path: Path) -> tuple[pa.Table, tuple[str, ...]] | None:
    """Return the machines that a file, folder or archive of a trace's tables lists; None where it holds none.

    Returns
    -------
    table : pyarrow.Table
        One row a node, as `clusters.cluster.load_cluster` reads it from Parquet.
    notes : tuple of str
        What was read, repaired and dropped.

    Raises
    ------
    InputError
        A table is wrong, or lists no machine that is there when the trace begins.
    """
    format = _format_of(path)
    if format is None:
        return None
    from workloads.readers import alibaba_2017, alibaba_2018, google_2011, google_2019

    readers: dict[str, Callable[[duckdb.DuckDBPyConnection, Path, Report], Files]] = {
        GOOGLE_2011: google_2011.machine_files,
        GOOGLE_2019: google_2019.machine_files,
        ALIBABA_2018: alibaba_2018.machine_files,
        ALIBABA_2017: alibaba_2017.machine_files,
    }
    report = Report()
    with database(MEMORY, path) as con:
        for rows, schema in readers[format](con, path, report).values():
            return pa.Table.from_batches(rows).cast(schema), tuple(report.lines())
    raise InputError("lists no machine that is there when the trace begins", file=path)


def machine_tables(path: Path) -> list[Path]:
    """Return the files below a folder that `read_machines` reads."""
    format = _format_of(path)
    return [] if format is None else files_of(path, Wanted(format, {*CLUSTER_TABLES, "machine_attributes"}))


def is_trace_table(path: Path) -> bool:
    """Return whether a file is a table of a trace, of machines or of anything else."""
    return identify(sample_of(path)) is not None


def _format_of(path: Path) -> str | None:
    """Return the format whose machines a path holds, by content: tables of two traces have the same name."""
    by_name = None
    for format in _FORMATS:
        wanted = Wanted(format, CLUSTER_TABLES)
        for file in files_of(path, wanted):
            for member in members_of(file, path, wanted):
                known = identify(member.sample)
                if known is not None and known.table in CLUSTER_TABLES:
                    return known.format
                by_name = by_name or format
    return by_name
