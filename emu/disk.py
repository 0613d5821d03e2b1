"""Files of run directories: each is written whole or left as it was, and read with a bound on what that takes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from workloads.errors import InputError, not_written

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TEXT_BYTES = 32 << 20
"""Of a JSON or TOML file of a run directory that is read."""
MOST_UNPACKED, MOST_UNASKED_BYTES = 100, 256 << 20
"""How many times its own size a table may take in memory, and what any may; those of runs take 2 to 10 times."""
MOST_OTHER_BYTES = 1 << 30
"""Of a picture or a CSV file of a run directory; tables in Parquet may be larger."""
_TABLE_END = b"PAR1"
BEGUN = re.compile(r"\.(.+\.(?:json|toml|parquet|csv|svg|png|html))\.\d+")
"""Names of files that are being written; one of a process that was killed stays."""


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and programs."""
    write_text(path, to_json(content) + "\n")


def to_json(content: Any) -> str:
    """Return JSON text; infinity and NaN, which JSON lacks, raise ValueError."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start)
        wrong = f"cannot hold a name that is not UTF-8: {text.splitlines()[line][:80]!a}; rename it"
        raise InputError(wrong, file=path) from None
    write_bytes(path, data)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file; as every function here that writes, raise `InputError` where that fails, or its `NotWritten`."""
    _replace(path, lambda file: file.write(content))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file whose bytes depend on nothing but the table and pyarrow's version."""
    import pyarrow.parquet as pq

    _replace(path, lambda file: pq.write_table(table, file, compression="zstd", row_group_size=1 << 20))


def write_batches(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a Parquet file of record batches as they come; its bytes do not depend on where a batch ends.

    Integers are written as differences, which are smaller and faster than a dictionary of millions of values.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = {field.name: "DELTA_BINARY_PACKED" for field in schema if pa.types.is_integer(field.type)}
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]

    def write(file: BinaryIO) -> None:
        options = {"compression": "zstd", "compression_level": 1}
        with pq.ParquetWriter(file, schema, use_dictionary=texts, column_encoding=whole, **options) as writer:
            for group in _groups(batches, 1 << 19):
                writer.write_table(group)

    _replace(path, write)


def _groups(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield the rows of batches in tables of `rows` rows each, the last one of what is left."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    missing = rows
    for batch in batches:
        while batch.num_rows >= missing:
            yield pa.Table.from_batches([*held, batch.slice(0, missing)]).combine_chunks()
            held, batch, missing = [], batch.slice(missing), rows
        held.append(batch)
        missing -= batch.num_rows
    if missing < rows:
        yield pa.Table.from_batches(held).combine_chunks()


def num_rows(path: Path) -> int:
    """Return how many rows a Parquet file has, by its footer."""
    from workloads.readers.parquet_tables import parquet_file

    with parquet_file(path) as file:
        return int(file.metadata.num_rows)


def flush(path: Path) -> None:
    """Return when a file's content, or a folder's names, are on the disk itself."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that cannot
            raise not_written(error, path) from None


def remove_begun(folder: Path) -> None:
    """Remove files that a process which is gone had begun to write."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if BEGUN.fullmatch(name):
                os.unlink(folder / name)


def read_json(path: Path, absent: str) -> Any:
    """Return the content of a JSON file; `absent` is the error about its folder if the file is missing.

    As every function here that reads, raise `InputError` where the file cannot be read.
    """
    try:
        return json.loads(_read(path))
    except FileNotFoundError:
        raise InputError(absent, file=path.parent) from None
    except NotADirectoryError:
        raise InputError("is a file; want a run directory", file=path.parent) from None
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=path, line=error.lineno) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=path) from None
    except (OSError, ValueError) as error:  # ValueError: a number of too many digits
        raise _not_read(error, path) from None


def read_text(path: Path) -> str:
    """Return the content of a text file."""
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        raise _not_read(error, path) from None


def read_table(path: Path, kinds: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Return a table that a run has written.

    Parameters
    ----------
    path : Path
    kinds : mapping, optional
        Names and types of the columns that are read; by default all are, whatever they are.

    Raises
    ------
    InputError
        It is not Parquet, lacks a column, or would take more memory than any table that a run writes.
    """
    import pyarrow as pa

    from workloads.readers.parquet_tables import check_plain, parquet_file, stated_size, text_bytes

    try:
        with _plain(path):  # pyarrow would wait for ever at a pipe
            pass
    except OSError as error:
        raise _not_read(error, path) from None
    with parquet_file(path) as file:
        schema = file.schema_arrow
        for name, kind in (kinds or {}).items():
            if (times := schema.names.count(name)) != 1:
                wrong = f"is there {times} times" if times else "is not there"
                raise InputError(wrong, file=path, field=name)
            found = schema.field(name).type
            found, kind = (of.value_type if pa.types.is_dictionary(of) else of for of in (found, kind))
            if found != kind:
                raise InputError(f"is of type {found}; want {kind}", file=path, field=name)
        check_plain(file, schema.names if kinds is None else kinds, path)
        most = max(MOST_UNASKED_BYTES, MOST_UNPACKED * os.path.getsize(path))
        rows, encoded = stated_size(file)
        _check_unpacked(max(encoded, 8 * rows * len(schema)), most, path)
        table = file.read(None if kinds is None else [*kinds])
        texts = [i for i, field in enumerate(table.schema) if pa.types.is_dictionary(field.type)]
        _check_unpacked(sum(text_bytes(table.column(i)) for i in texts), most, path)
        for i in texts:
            field = table.schema.field(i)
            field = field.with_type(field.type.value_type)
            table = table.set_column(i, field, table.column(i).cast(field.type))
    return table


def _check_unpacked(size: int, most: int, path: Path) -> None:
    if size > most:
        problem = f"would take {size / (1 << 30):,.1f} GiB of memory; no run writes such a file"
        raise InputError(problem, file=path)


def sha256_of(path: str | Path) -> str:
    """Return the sha256 (hex) of a file; OSError where it cannot be read."""
    with _plain(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_may_be_written(path: Path) -> None:
    """Raise `InputError` for a file that no run has written: a text that is too long, a table without an end.

    The file is not read whole for that.
    """
    with _plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if path.suffix in (".json", ".toml"):
            _check_text_size(size, path)
        elif path.suffix == ".parquet" and size > MOST_TEXT_BYTES:
            file.seek(-len(_TABLE_END), os.SEEK_END)
            if file.read() != _TABLE_END:
                raise InputError("is not a Parquet file", file=path)
        elif size > MOST_OTHER_BYTES:
            raise InputError(f"has {size:,} bytes; Emu writes at most {MOST_OTHER_BYTES:,}", file=path)


def _check_text_size(size: int, path: Path) -> None:
    if size > MOST_TEXT_BYTES:
        raise InputError(f"has {size:,} bytes; Emu reads at most {MOST_TEXT_BYTES:,}", file=path)


def _read(path: Path) -> str:
    with _plain(path) as file:
        _check_text_size(os.fstat(file.fileno()).st_size, path)
        data = file.read(MOST_TEXT_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", file=path) from None


@contextmanager
def _plain(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read, but nothing that may never end or wait for ever, such as a pipe or a device."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError("is not a plain file", file=path)
        yield file


def _not_read(error: OSError | ValueError, path: Path) -> InputError:
    return InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path)


def _replace(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            write(file)
        os.replace(beside, path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        with suppress(OSError, ValueError):
            os.unlink(beside)
        raise not_written(error, path) from None
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
