"""Tables of a workload folder as Parquet files: read by a schema and checked, and written.

Cut-off, long partition and metadata of a workload are in the schema metadata of its first table. Pages have checksums,
so that damage is detected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from workloads.arrow import to_numpy
from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside
from workloads.jobs import SCHEMA_VERSION
from workloads.limits import TASK_BYTES, check_tasks, most_parquet_bytes, unpacks_to_more

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Schema: TypeAlias = pa.Schema | Callable[[Iterable[str]], pa.Schema]
"""The schema of a table, or a function that makes it of the names of the columns."""
_ROWS_PER_GROUP = 1 << 20
_DICTIONARIES = ["constraint", "tenant", "job_id", "name", "stage", "coflow_id", "kind"]


def read_table(
    path: Path, schema: Schema, optional: Collection[str], siblings: Collection[str]
) -> tuple[pa.Table, list[str]]:
    """Return the schema's columns of a Parquet file, and the names of the columns left out.

    `optional` columns are null if the file lacks them; `siblings` are the files of the workload, which the error about
    a missing file names.

    Raises
    ------
    InputError
        Names the file, the row (as line) and the column that is wrong.
    """
    if not os.path.isfile(path):  # it raises no error for any path
        others = set(names_beside(path)) - set(siblings)
        hint = did_you_mean(path.name, (n for n in others if n.endswith(".parquet")))
        *first, last = siblings
        holds = f"{', '.join(first)} and {last}"
        raise InputError(f"no such file; a workload folder holds {holds}{hint}", file=path)
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        schema = schema_for(schema, names)
        missing = [n for n in schema.names if n not in names and n not in optional]
        if missing:
            raise InputError(f"no such column{did_you_mean(missing[0], names)}", file=path, field=missing[0])
        for field in schema:
            if names.count(field.name) > 1:
                raise InputError("the column occurs twice", file=path, field=field.name)
            if field.name in names and not _same_kind(
                have := file.schema_arrow.field(field.name).type, field
            ):
                kind = have.value_type if pa.types.is_dictionary(have) else have
                raise InputError(f"has type {kind}, want {field.type}", file=path, field=field.name)
        table = read_columns(file, [n for n in schema.names if n in names], path)
        arrays = [_read_column(table, f, path) for f in schema]
        extra = [n for n in names if n not in schema.names]
        table = pa.Table.from_arrays(arrays, schema=schema.with_metadata(table.schema.metadata))
    return table, extra


def schema_for(schema: Schema, names: Iterable[str]) -> pa.Schema:
    """Return the schema of a table that has columns of these names."""
    return schema if isinstance(schema, pa.Schema) else schema(names)


@contextmanager
def parquet_file(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; within the block, errors of reading it are an `InputError`.

    Columns of text keep their dictionaries, which hold repeated text once.

    Raises
    ------
    InputError
        It is not a Parquet file, or a damaged one.
    """
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as plain:
            about, kinds = plain.metadata, plain.schema_arrow
        text = [f.name for f in kinds if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
        with pq.ParquetFile(
            path, metadata=about, page_checksum_verification=True, read_dictionary=text
        ) as file:
            yield file
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        raise InputError(
            f"is not a Parquet file that can be read ({_first_line(error)})", file=path
        ) from None


def read_columns(
    file: pq.ParquetFile, names: Collection[str], path: Path, each_bytes: int = TASK_BYTES
) -> pa.Table:
    """Return columns of an open Parquet file, unless its footer states too many rows or bytes.

    Raises
    ------
    InputError
        More rows, or bytes, than a file of this size may hold (`workloads.limits`).
    """
    check_plain(file, names, path)
    rows, unpacked = stated_size(file)
    check_tasks(rows, "rows", file=path, each_bytes=each_bytes)
    size = os.path.getsize(path)
    most, numbers = most_parquet_bytes(size), sum(pa.types.is_primitive(f.type) for f in file.schema_arrow)
    if unpacked > most + 8 * numbers * rows:
        raise InputError(unpacks_to_more(most, size), file=path)
    table = file.read([*names])
    table.validate(full=True)
    for name in table.column_names:
        if pa.types.is_dictionary(table[name].type) and text_bytes(table[name]) > most:
            raise InputError(unpacks_to_more(most, size), file=path, field=name)
    return table


def stated_size(file: pq.ParquetFile) -> tuple[int, int]:
    """Return the rows and the unpacked bytes of an open Parquet file, as its footer states them.

    Statements about columns are not read: with some damage pyarrow would end the process. Reading such a column raises
    an error.
    """
    about = file.metadata
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = sum(max(group.num_rows, 0) for group in groups)
    return max(about.num_rows, rows), sum(max(group.total_byte_size, 0) for group in groups)


def check_plain(file: pq.ParquetFile, names: Collection[str], path: Path) -> None:
    """Refuse columns with several values in a row, whose number no row states.

    Raises
    ------
    InputError
        Names the first.
    """
    for field in file.schema_arrow:
        if field.name in names and pa.types.is_nested(field.type):
            raise InputError(f"has type {field.type}, want text or numbers", file=path, field=field.name)


def text_bytes(column: pa.ChunkedArray) -> int:
    """Return the bytes of a column of text with a dictionary, without its dictionary."""
    import pyarrow.compute as pc

    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(pc.cast(length, pa.int64())).as_py() or 0 for length in lengths)


def write_tables(folder: Path, tables: Mapping[str, pa.Table], about: Mapping[str, Any]) -> None:
    """Write tables under their file names, `about` into the first; the same tables give the same bytes.

    Raises
    ------
    InputError
        When the folder cannot be written.
    """
    import pyarrow.parquet as pq

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            schema = table.schema
            if name == next(iter(tables)):
                stated = {key: json.dumps(value, sort_keys=True) for key, value in about.items()}
                schema = schema.with_metadata({"schema_version": str(SCHEMA_VERSION), **stated})
            pq.write_table(
                table.combine_chunks().replace_schema_metadata(schema.metadata),
                folder / name,
                compression="zstd",
                use_dictionary=_DICTIONARIES,
                write_page_checksum=True,
                row_group_size=_ROWS_PER_GROUP,
            )
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=folder) from None


def read_about(table: pa.Table, path: Path, numbers: Iterable[str] = ()) -> dict[str, Any]:
    """Return ``metadata``, and `numbers` or None, from the schema metadata, which other programs do not write."""
    metadata = table.schema.metadata or {}
    about: dict[str, Any] = {**dict.fromkeys(numbers), "metadata": {}}
    version = metadata.get(b"schema_version", str(SCHEMA_VERSION).encode())
    if version != str(SCHEMA_VERSION).encode():
        wrong = f"has version {version.decode(errors='replace')!a}, this Emu reads {SCHEMA_VERSION}"
        raise InputError(wrong, file=path, field="schema_version")
    for key in about:
        if (text := metadata.get(key.encode())) is None:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError("is not JSON", file=path, field=key) from None
        if key == "metadata":
            right = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        else:
            right = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        if not right:
            want = "an object of strings" if key == "metadata" else "a number or null"
            raise InputError(f"want {want} in the schema metadata", file=path, field=key)
        about[key] = value
    return about


def _read_column(table: pa.Table, field: pa.Field, path: Path) -> pa.Array:
    """Return a column in the schema's type, from another width of the same kind if its values fit."""
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    values = table[field.name]
    if values.null_count and not field.nullable:
        row = int(np.argmax(np.asarray(values.is_null())))
        raise InputError("is null; every row needs a value", file=path, line=row + 1, field=field.name)
    try:
        made = values.cast(field.type).combine_chunks()
    except pa.ArrowInvalid as error:
        raise InputError(
            f"does not fit {field.type} ({_first_line(error)})", file=path, field=field.name
        ) from None
    if field.nullable and pa.types.is_floating(field.type):
        wrong = np.isnan(to_numpy(made.fill_null(0.0)))
        if wrong.any():
            row = int(np.argmax(wrong)) + 1
            raise InputError("is NaN; want a number or null", file=path, line=row, field=field.name)
    return made


def _same_kind(have: pa.DataType, field: pa.Field) -> bool:
    types, want = pa.types, field.type
    if types.is_null(have):
        return bool(field.nullable)
    if types.is_string(want):
        return (
            types.is_string(have)
            or types.is_large_string(have)
            or (types.is_dictionary(have) and types.is_string(have.value_type))
        )
    if types.is_integer(want):
        return types.is_integer(have)
    return types.is_integer(have) or types.is_floating(have)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return ascii(text[0][:160])[1:-1] if text else type(error).__name__
