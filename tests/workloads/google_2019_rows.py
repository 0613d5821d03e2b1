"""Rows of Google's traces of 2019 with all published columns, and files of them in every form that people have."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workloads.readers.google_rules import BEGIN_US

Row = dict[str, Any]
SUBMIT, QUEUE, ENABLE, SCHEDULE, EVICT, FAIL, FINISH, KILL = range(8)

_RESOURCES = pa.struct([("cpus", pa.float64()), ("memory", pa.float64())])
_EVENT = [
    ("time", pa.int64()), ("type", pa.int64()), ("collection_id", pa.int64()), ("scheduling_class", pa.int64()),
    ("missing_type", pa.int64()), ("collection_type", pa.int64()), ("priority", pa.int64()),
    ("alloc_collection_id", pa.int64()),
]  # fmt: skip
SCHEMAS = {
    "instance_events": pa.schema([
        *_EVENT, ("instance_index", pa.int64()), ("machine_id", pa.int64()), ("alloc_instance_index", pa.int64()),
        ("resource_request", _RESOURCES),
        ("constraint", pa.list_(pa.struct([("name", pa.string()), ("value", pa.string()), ("relation", pa.int64())]))),
    ]),
    "collection_events": pa.schema([
        *_EVENT, ("user", pa.string()), ("collection_name", pa.string()), ("collection_logical_name", pa.string()),
        ("parent_collection_id", pa.int64()), ("start_after_collection_ids", pa.list_(pa.int64())),
        ("max_per_machine", pa.int64()), ("max_per_switch", pa.int64()), ("vertical_scaling", pa.int64()),
        ("scheduler", pa.int64()),
    ]),
    "machine_events": pa.schema([
        ("time", pa.int64()), ("machine_id", pa.int64()), ("type", pa.int64()), ("switch_id", pa.string()),
        ("capacity", _RESOURCES), ("platform_id", pa.string()), ("missing_data_reason", pa.int64()),
    ]),
    "machine_attributes": pa.schema([
        ("time", pa.int64()), ("machine_id", pa.int64()), ("name", pa.string()), ("value", pa.string()),
        ("deleted", pa.bool_()),
    ]),
}  # fmt: skip
"""The published tables, as BigQuery has them."""


def cell_rows() -> dict[str, list[Row]]:
    """Return a small cell: three jobs of which one waits, one with constraints, one in an alloc set; machines."""
    wants = [{"name": "k,1", "value": "a=", "relation": 0}, {"name": "n", "value": None, "relation": 6}]
    tasks = [
        *_ran(380, 0, 10, 12, 20, wants), *_ran(380, 1, 10.5, 13, 14.25, wants),
        *_ran(381, 0, 3, 4, 9, []), *_ran(382, 0, 5, 6, 7, [], collection_type=1),
        *_ran(383, 0, 6, 7.5, 8, [], KILL), _event(7, 380, 0, QUEUE),
    ]  # fmt: skip
    jobs = [
        _event(8, 380, None, SUBMIT, user="u=", start_after_collection_ids=[381, 5]),
        _event(2, 381, None, SUBMIT, user='v"', start_after_collection_ids=[]),
        _event(5, 382, None, SUBMIT, user="u=", collection_type=1, start_after_collection_ids=[]),
    ]
    machines = [
        _machine(0, 7, 1, 0.5, 0.25), _machine(0, 8, 1, 1.0, 1.0), _machine(0, 9, 1, None, None),
        _machine(BEGIN_US + 10**6, 7, 2, None, None),
    ]  # fmt: skip
    attributes = [
        {"time": 0, "machine_id": 7, "name": "k,1", "value": "a=", "deleted": False},
        {"time": 0, "machine_id": 8, "name": "n", "value": "3", "deleted": None},
    ]
    return {
        "instance_events": tasks, "collection_events": jobs, "machine_events": machines,
        "machine_attributes": attributes,
    }  # fmt: skip


def _event(at_s: float, job: int, task: int | None, kind: int, **more: Any) -> Row:
    shared = {
        "time": BEGIN_US + int(at_s * 1e6), "type": kind, "collection_id": job, "scheduling_class": 2,
        "missing_type": None, "collection_type": 0, "priority": 200, "alloc_collection_id": 0,
    }  # fmt: skip
    if task is not None:
        shared |= {
            "instance_index": task, "machine_id": 5 if kind == SCHEDULE else None, "alloc_instance_index": None,
            "resource_request": {"cpus": 0.0125, "memory": 0.0045}, "constraint": [],
        }  # fmt: skip
    return shared | more


def _ran(
    job: int,
    task: int,
    submit: float,
    start: float,
    end: float,
    wants: list[Row],
    how: int = FINISH,
    **more: Any,
) -> list[Row]:
    steps = ((submit, SUBMIT), (submit, ENABLE), (start, SCHEDULE), (end, how))
    return [_event(at, job, task, kind, constraint=wants, **more) for at, kind in steps]


def _machine(time: int, machine: int, kind: int, cpus: float | None, memory: float | None) -> Row:
    capacity = None if cpus is None else {"cpus": cpus, "memory": memory}
    return {
        "time": time, "machine_id": machine, "type": kind, "switch_id": "s=", "capacity": capacity,
        "platform_id": "p=", "missing_data_reason": None,
    }  # fmt: skip


# A file of rows in each form. All give the same workload.


def as_json(table: str, rows: list[Row]) -> bytes:
    """Return lines of JSON as BigQuery exports them: whole numbers are strings, and nulls are not there."""
    return "".join(json.dumps(_exported(row)) + "\n" for row in rows).encode()


def _exported(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _exported(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_exported(inner) for inner in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_parquet(table: str, rows: list[Row]) -> bytes:
    """Return a Parquet file with the published columns."""
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMAS[table]), file)
    return file.getvalue()


def as_pandas_csv(table: str, rows: list[Row]) -> bytes:
    """Return CSV as pandas writes what BigQuery's client gives: 1.0 beside nulls, nested values as text."""
    frame = pa.Table.from_pylist(rows, SCHEMAS[table]).to_pandas()
    return frame.to_csv().encode()


def as_flat_csv(table: str, rows: list[Row]) -> bytes:
    """Return CSV with columns in another order; requests and capacities flat, lists as JSON."""
    file = io.StringIO()
    names = [name for name in SCHEMAS[table].names if name not in ("resource_request", "capacity")][::-1]
    names += ["resource_request.cpus", "resource_request.memory", "capacity.cpus", "capacity.memory"]
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(names)
    for row in rows:
        flat = row | {f"{part}.{key}": value for part in ("resource_request", "capacity")
                      for key, value in (row.get(part) or {}).items()}  # fmt: skip
        writer.writerow([json.dumps(v) if isinstance(v := flat.get(n), list) else v for n in names])
    return file.getvalue().encode()


FORMS = {
    "json.gz": lambda *a: gzip.compress(as_json(*a)), "json": as_json, "ndjson": as_json,
    "parquet": as_parquet, "parquet.gz": as_parquet, "csv": as_pandas_csv,
    "csv.gz": lambda *a: gzip.compress(as_flat_csv(*a)),
}  # fmt: skip
"""By ending. That of Parquet files in the trace's buckets is .parquet.gz, though they are not packed."""


def write_cell(
    folder: Path, ending: str, shards: int = 1, name: str = "{table}-{shard:012}.{ending}"
) -> Path:
    """Write the small cell into a folder in one of the forms."""
    folder.mkdir(parents=True, exist_ok=True)
    for table, rows in cell_rows().items():
        for shard in range(shards):
            path = folder / name.format(table=table, shard=shard, ending=ending)
            path.write_bytes(FORMS[ending](table, rows[shard::shards]))
    return folder
