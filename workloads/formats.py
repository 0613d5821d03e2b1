"""The formats that workloads are read from and written to, known by name or by what a path holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.readers import (
    alibaba_2017,
    alibaba_2018,
    coflow_benchmark,
    coflowlib,
    dag_text,
    google_2011,
    google_2019,
    job_table,
    kubernetes,
    parquet,
    sacct,
    swf,
    swim,
    tpch,
    tr,
    wfcommons,
)
from workloads.readers.duckdb_tables import MEMORY, database
from workloads.readers.known_tables import (
    CLUSTER_TABLES,
    MAIN_TABLES,
    KnownTable,
    identify,
    unsupported_format,
)
from workloads.readers.report import Report
from workloads.readers.samples import sample_of
from workloads.readers.shards import Wanted, files_of, files_within, members_of
from workloads.readers.source import shown

if TYPE_CHECKING:
    import duckdb

    from workloads.readers.google_rules import Files

PARQUET = "parquet"


@dataclass(frozen=True)
class Format:
    """A format of workloads.

    Attributes
    ----------
    about : str
        What it is, in a line.
    family : str
        ``jobs``, ``dags`` or ``coflows``, or several.
    read : callable
        Path and options to a workload.
    recognises : callable
        Whether a path holds this format, by names and first bytes.
    convert : callable, optional
        Path and folder: reads it straight into a Parquet folder, in memory that does not grow with the source.
    write : callable, optional
        Workload and path.
    instances : callable, optional
        Path to the names of the workloads in it, one of which the reader's option ``instance`` chooses.
    machines : callable, optional
        Of a trace: open database, source and report to the file of the cluster that its tables of machines list.
    """

    about: str
    family: str
    read: Callable[..., Any]
    recognises: Callable[[Path], bool]
    convert: Callable[..., None] | None = None
    write: Callable[..., None] | None = None
    instances: Callable[[Path], tuple[str, ...]] | None = None
    machines: Callable[[duckdb.DuckDBPyConnection, Path, Report], Files] | None = None


def _holds_tables(path: Path) -> bool:
    return any(is_own_table(path / name) for files in parquet.FAMILIES.values() for name in files)


def is_own_table(path: Path) -> bool:
    """Return whether a file that is called like one of Emu's own tables is one: by its columns, if it can be read."""
    if not os.path.lexists(path):
        return False
    names = sample_of(path).names
    return not names or len({*names} & {*parquet.COLUMNS[path.name]}) > 1


def _is_called_tr(path: Path) -> bool:
    return path.name.endswith((".tr", ".tr.gz"))


def _is_tr(path: Path) -> bool:
    """Return whether a file is called like a trace of this format, or begins like one."""
    return not os.path.isdir(path) and (_is_called_tr(path) or tr.begins_like_tr(sample_of(path)))


# In the order in which a path is looked at: what takes a closer look comes last.
FORMATS = {
    PARQUET: Format(
        "Emu's own: a folder of Parquet files", "jobs, dags, coflows", parquet.read_folder, _holds_tables,
        write=parquet.write_parquet,
    ),
    "tr": Format(
        "Hawk's and Eagle's: a line a job, plain or gzip", "jobs", tr.read_tr, _is_tr, write=tr.write_tr
    ),
    "google-2011": Format(
        "Google's cluster trace of 2011: task_events and other tables as CSV", "jobs",
        google_2011.read_google_2011, google_2011.recognises, google_2011.convert_google_2011,
        machines=google_2011.machine_files,
    ),
    "google-2019": Format(
        "Google's cluster traces of 2019: exported tables as Parquet, JSON lines or CSV", "jobs",
        google_2019.read_google_2019, google_2019.recognises, google_2019.convert_google_2019,
        machines=google_2019.machine_files,
    ),
    "alibaba-2018": Format(
        "Alibaba's cluster trace of 2018: batch_task, batch_instance as CSV", "dags",
        alibaba_2018.read_alibaba_2018, alibaba_2018.recognises, alibaba_2018.convert_alibaba_2018,
        machines=alibaba_2018.machine_files,
    ),
    "alibaba-2017": Format(
        "Alibaba's cluster trace of 2017: batch_task, batch_instance, server_event as CSV", "jobs",
        alibaba_2017.read_alibaba_2017, alibaba_2017.recognises, alibaba_2017.convert_alibaba_2017,
        machines=alibaba_2017.machine_files,
    ),
    "tpch": Format(
        "TPC-H queries on Spark: tables made of the profiles of Decima's simulator", "dags", tpch.read_tpch,
        tpch.recognises,
    ),
    "coflowlib": Format(
        "CoflowLib's instances: text, or one of an archive", "coflows", coflowlib.read_coflowlib,
        coflowlib.recognises, write=coflowlib.write_coflowlib, instances=coflowlib.instance_names,
    ),
    "coflow-benchmark": Format(
        "Facebook's coflows: mappers and reducers, a line a coflow", "coflows",
        coflow_benchmark.read_coflow_benchmark, coflow_benchmark.recognises,
        write=coflow_benchmark.write_coflow_benchmark,
    ),
    "swim": Format(
        "SWIM's samples of Facebook: bytes of a job's input, shuffle, output", "jobs, dags", swim.read_swim,
        swim.recognises,
    ),
    "wfcommons": Format(
        "WfCommons' instances of scientific workflows: WfFormat (JSON) 1.4 to 1.6, a job a file", "dags",
        wfcommons.read_wfcommons, wfcommons.recognises,
    ),
    "dag-text": Format(
        "DAGs as text: stages with duration and demands, and edges, as of Graphene's and Carbyne's simulators", "dags",
        dag_text.read_dag_text, dag_text.recognises, write=dag_text.write_dag_text,
    ),
    "swf": Format(
        "The Standard Workload Format of the Parallel Workloads Archive: a line a job, plain, gzip or zip",
        "jobs, dags", swf.read_swf, swf.recognises,
    ),
    "sacct": Format(
        "Slurm's accounting: what sacct --parsable2 prints", "jobs", sacct.read_sacct, sacct.recognises
    ),
    "kubernetes": Format(
        "Kubernetes: what kubectl get pods, or jobs, -o json prints", "jobs", kubernetes.read_kubernetes,
        kubernetes.recognises,
    ),
    "job-table": Format(
        "A table of one's own, CSV or Parquet, whose columns options name: --from job-table", "jobs",
        job_table.read_job_table, job_table.recognises,
    ),
}  # fmt: skip
"""The formats by name."""


def find_format(name: str) -> Format:
    """Return the format of a name.

    Raises
    ------
    InputError
        There is none.
    """
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}{did_you_mean(name, FORMATS)}", field="format")
    return FORMATS[name]


def recognise(path: Path) -> str:
    """Return the name of the format that a path which exists holds.

    Raises
    ------
    InputError
        None of them: what the path was found to hold, and which formats there are. Or tables of two.
    """
    name = next((name for name, known in FORMATS.items() if known.recognises(path)), None)
    if name is None:
        raise InputError(f"{_found(path)}; {_WAYS_ON}", file=path)
    if name in MAIN_TABLES and os.path.isdir(path):
        for other in MAIN_TABLES:
            if other != name and FORMATS[other].recognises(path):
                both = " and ".join(f"{MAIN_TABLES[format]} of {format}" for format in (name, other))
                raise InputError(f"holds {both}; put one elsewhere, or say --from", file=path)
    return name


_WAYS_ON = f"formats: {', '.join(FORMATS)}; --from says which: emu workload convert FILE FOLDER --from FORMAT"


def _found(path: Path) -> str:
    """Return what is in a path of no known format, in words."""
    if not os.path.isdir(path):
        return _what(path)
    if deeper := _format_below(path):
        return deeper
    files = files_within(path)
    if not files:
        return "is an empty folder"
    known_files: dict[object, str] = {}  # the first file of each kind
    for file in files[:_LOOKED_AT]:
        name = shown(str(file.relative_to(path)))
        known = identify(sample_of(file))
        if known is not None:
            known_files.setdefault(known, f"{name}: {_of_table(known)}")
        elif format := next((format for format, f in FORMATS.items() if f.recognises(file)), ""):
            known_files.setdefault(format, f"{name} is of the format {format}: give that file")
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    names = ", ".join(shown(str(file.relative_to(path))) for file in files[:3])
    return "; ".join(known_files.values()) or f"is a folder of no known format: it holds {names}{more}"


def _format_below(path: Path) -> str:
    """Return which folder below is of a format, in words; "" where none is."""
    folders = (Path(at, name) for at, names, _ in os.walk(path) for name in sorted(names))
    for folder in islice(folders, _LOOKED_AT):
        if format := next((format for format, known in FORMATS.items() if known.recognises(folder)), ""):
            name = shown(str(folder.relative_to(path)))
            return f"its folder {name} is of the format {format}: give that folder"
    return ""


_LOOKED_AT = 50  # files, or folders, of a folder


def _what(path: Path) -> str:
    """Return what a file of no known format is, in words."""
    found = sample_of(path)
    known = identify(found)
    if known is not None:
        return _of_table(known)
    if what := unsupported_format(found):
        return f"is of no known format: {what}"
    match found.form:
        case "empty":
            return "is empty"
        case "bytes":
            return f"is of no known format{f': {found.text}' if found.text else ', and is not text'}"
        case "parquet":
            columns = f"with the columns {', '.join(found.names[:8])}"
            unread = "without columns that can be read: it may be cut short"
            return f"is of no known format: Parquet {f'{columns}; {_AS_TABLE}' if found.names else unread}"
    fields = len(found.rows[0])
    between = f"{fields} fields with {'commas' if found.form == 'csv' else 'blanks'} between them, "
    begins = shown(found.text.lstrip().partition("\n")[0])
    named = fields > 1 and not any(name[:1].isdigit() for name in found.names)
    table = f"; {_AS_TABLE}" if named and found.form == "csv" else ""
    return f"is of no known format: text, {between if fields > 1 else ''}{begins}{table}"


_AS_TABLE = "a table of jobs is read with --from job-table, whose options name its columns"


def _of_table(known: KnownTable) -> str:
    """Return what a known table is good for, in words."""
    if not known.format:
        as_table = f"; as a table it is: --from job-table {known.as_table}" if known.as_table else ""
        return f"this is {known}, which is not read{as_table}"
    if known.table in CLUSTER_TABLES:
        return f"this is {known}: a cluster (--cluster); a workload needs {MAIN_TABLES[known.format]}"
    return f"this is {known}, without {MAIN_TABLES[known.format]}"


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
    format, report = _format_of_machines(path), Report()
    if format is None or (machines := FORMATS[format].machines) is None:
        return None
    with database(MEMORY, path) as con:
        for rows, schema in machines(con, path, report).values():
            return pa.Table.from_batches(rows).cast(schema), tuple(report.lines())
    raise InputError("lists no machine that is there when the trace begins", file=path)


def machine_tables(path: Path) -> list[Path]:
    """Return the files below a folder that `read_machines` reads."""
    format = _format_of_machines(path)
    return [] if format is None else files_of(path, Wanted(format, {*CLUSTER_TABLES, "machine_attributes"}))


def is_trace_table(path: Path) -> bool:
    """Return whether a file is a table of a trace, of machines or of anything else."""
    return identify(sample_of(path)) is not None


def _format_of_machines(path: Path) -> str | None:
    """Return the format whose machines a path holds, by content: tables of two traces have the same name."""
    by_name = None
    for format in MAIN_TABLES:
        wanted = Wanted(format, CLUSTER_TABLES)
        for file in files_of(path, wanted):
            for member in members_of(file, path, wanted):
                known = identify(member.sample)
                if known is not None and known.table in CLUSTER_TABLES:
                    return known.format
                by_name = by_name or format
    return by_name


def format_by_ending(path: Path) -> str:
    """Return the name of the format to write a path in, where none was given."""
    return "tr" if _is_called_tr(path) else PARQUET
