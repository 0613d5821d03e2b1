"""Tables of a trace, read into DuckDB: CSV and JSON lines through pipes, Parquet by path, all their shards.

The guards and errors of `workloads.readers.source` hold for pipes. Types are declared, a line that does not fit the
columns is named, and nothing that is read is taken for SQL. `workloads.readers.shards` finds the files of a table.

CSV has no header, as most traces are published, or one. Without a header the columns are in the published order, and
quotes are part of a field. With a header columns are found by name, in any order: other columns are ignored, absent
ones are null, fields may be in quotes, and whole numbers may be written ``1.0``, as programs write a column with nulls.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
import select
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal, InvalidOperation
from itertools import groupby, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.readers.known_tables import identify
from workloads.readers.report import Progress, Report
from workloads.readers.samples import Sample, plain_name
from workloads.readers.shards import Member, Wanted, files_of, members_at_once, members_of
from workloads.readers.source import open_members, shown

if TYPE_CHECKING:
    import duckdb

EXACT = "DECIMAL(18, 6)"
"""For numbers that must be whole: DuckDB rounds 1.5 to a BIGINT without an error, and takes nan for a DOUBLE.

The table's own column must be of it too: DuckDB reads CSV in the type that a value is inserted as.
"""
PIPED_LINE_BYTES = 256 << 10
"""Of lines of tables; a line of JSON with all of a task's constraints has some kilobytes."""
_PIPE_BYTES = 1 << 20
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_WHOLE_BITS, _WIDE = {"BIGINT": 63, "INTEGER": 31, "TINYINT": 7}, "DECIMAL(38, 6)"


class Table(NamedTuple):
    """A table of a source.

    Attributes
    ----------
    columns : mapping of str to str
        Name to SQL type: for CSV without a header all columns in their order; otherwise the wanted ones, null where a
        row has none.
    insert : str
        SQL that inserts the rows of ``{scan}``.
    required : tuple of str
        Columns that a header must name.
    aliases : mapping of str to str
        Other names in headers, as `workloads.readers.samples.plain_name` writes them, and the columns they stand for.
    nested : mapping of str to str
        Columns of lists or structs, and SQL that makes one from a field of CSV, ``{text}``.
    headed : bool
        Whether CSV must have a header: the table is not published as CSV, and its columns have no order.
    """

    columns: Mapping[str, str]
    insert: str
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = {}
    nested: Mapping[str, str] = {}
    headed: bool = False

    def column(self, name: str) -> str:
        """Return the column that a header means by a name, or ``""``."""
        plain = plain_name(name)
        meant = {plain_name(own): own for own in self.columns}.get(plain) or self.aliases.get(plain, "")
        return meant if meant in self.columns else ""

    def kind_as_text(self, column: str) -> str:
        """Return the type that a column has in a CSV file with a header."""
        kind = self.columns[column]
        return "VARCHAR" if column in self.nested else _WIDE if kind in _WHOLE_BITS else kind


Header = tuple[str, ...]
"""The columns that a header names, ``""`` for an ignored one; empty for a file without a header."""


def scan(
    con: duckdb.DuckDBPyConnection,
    source: Path,
    tables: Mapping[str, Table],
    report: Report,
    progress: Progress | None = None,
    *,
    format: str = "",
) -> dict[str, int]:
    """Read all shards of the tables of a source; return how many rows of each table that it has were inserted.

    Parameters
    ----------
    source : Path
        A folder, an archive or a file.
    report : Report
        Gets the numbers of rows that were read.
    format : str
        The format of the tables. With it, a file that is not named like a table is known by its first rows, and
        similar tables of other formats are refused by name.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong, or a shard that the source has twice.
    """
    wanted = Wanted(format, tables)
    places: dict[str, str] = {}
    rows: Counter[str] = Counter()
    for members in members_at_once(files_of(source, wanted), source, wanted, progress):
        laid_out = []
        for member in members:
            if member.shard in places:
                wrong = f"holds {member.shard}, and so does {places[member.shard]}; keep one"
                raise InputError(wrong, file=member.place)
            places[member.shard] = member.place
            header = _header(tables[member.table], member, format)
            laid_out.append(((member.table, member.form, header), member))
        for (name, form, header), group in groupby(laid_out, lambda pair: pair[0]):
            shards = [member for _, member in group]
            inserted = _insert(con, tables[name], form, header, shards)
            report.read(f"rows of {name}", inserted)
            rows[name] += inserted
    return dict(rows)


def need_rows(found: Mapping[str, int], table: str, source: Path, such_as: str) -> None:
    """Refuse a source without a table, or with an empty one; `such_as` is a name of its files."""
    if table not in found:
        raise InputError(f"holds no {table}, such as {such_as}", file=source)
    if not found[table]:
        raise InputError(f"{table} is empty: it has no rows", file=source)


def whole(column: str) -> str:
    """Return SQL for the whole number in a column of text, null for any other text."""
    number = f'TRY_CAST("{column}" AS BIGINT)'
    return f'CASE WHEN CAST({number} AS VARCHAR) = "{column}" THEN {number} END'


def refuse_cell(
    source: Path, name: str, table: Table, checks: Mapping[str, Callable[[str], str]], *, format: str = ""
) -> None:
    """Raise the error for the first wrong cell in the CSV of a table that `scan` has read, if there is one.

    Parameters
    ----------
    checks : mapping of str to callable
        By column a function from a text to what is wrong with it, the end of the error, or ``""``.
    """
    for place, line, fields in csv_lines(source, name, table, format=format):
        for field, check in checks.items():
            if wrong := check(text := fields.get(field, "")):
                raise InputError(
                    f"{shown(text)}{wrong}" if text else wrong, file=place, line=line, field=field
                )


def csv_lines(
    source: Path, name: str, table: Table, *, format: str = ""
) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Yield file, line and fields by column of the CSV of a table that `scan` has read."""
    wanted = Wanted(format, [name])
    for path in files_of(source, wanted):
        for member in members_of(path, source, wanted):
            if member.form == "csv":
                header = header_of(table, member.sample, member.place)
                for line, fields in _rows(header, member.stream, member.place):
                    if any(fields):
                        named = zip(header or table.columns, fields, strict=False)
                        yield member.place, line, {column: field for column, field in named if column}


def header_of(table: Table, sample: Sample, place: str) -> Header:
    """Return the columns that the first row of a file names.

    Raises
    ------
    InputError
        A header names a column twice, or lacks a required one; or the file needs a header and has none.
    """
    names = sample.rows[0] if sample.rows else ()
    header = tuple(map(table.column, names))
    there = [column for column in header if column]
    if len(there) < 2:
        if table.headed and names:
            wrong = f"want a header that names {','.join(table.required)}{_separated(sample.text)}"
            raise InputError(wrong, file=place, line=1)
        return ()
    if twice := next((column for column in there if there.count(column) > 1), None):
        raise InputError("is named twice in the header", file=place, line=1, field=twice)
    if missing := [column for column in table.required if column not in there]:
        wrong = f"the header does not name it{did_you_mean(missing[0], names)}"
        raise InputError(wrong, file=place, line=1, field=missing[0])
    return header


def _header(table: Table, member: Member, format: str) -> Header:
    """Return the header of a file; refuse a file that has the name of the table and the content of another one."""
    known = identify(member.sample) if format else None
    wrong = f"this is {known}; want {member.table} of the format {format}"
    if known is not None and known.format != format:
        raise InputError(wrong.replace(";", ", which is not read;", not known.format), file=member.place)
    begins = member.stream.peek(64)[:64]
    if member.form != "parquet" and b"\0" in begins:
        raise InputError(
            f"is not text in UTF-8: it begins with {shown(begins[:16])}", file=member.place, line=1
        )
    header = header_of(table, member.sample, member.place) if member.form == "csv" else ()
    if member.form == "json" and member.sample.text.lstrip().startswith("["):
        raise InputError("begins an array of JSON; want an object a line", file=member.place, line=1)
    if known is not None and known.table != member.table:
        raise InputError(wrong, file=member.place)
    return header


def _insert(
    con: duckdb.DuckDBPyConnection, table: Table, form: str, header: Header, members: list[Member]
) -> int:
    """Insert shards of one form and header into a table; return the number of rows."""
    if form == "parquet":
        return sum(_insert_parquet(con, table, member) for member in members)
    import duckdb

    text = _csv_scan(table, header) if form == "csv" else _json_scan(table)
    skipped = {member.place: _skip_header(member.stream) if header else 0 for member in members}
    with ExitStack() as stack:
        pipes = {
            stack.enter_context(piped(member.stream, member.place, skipped[member.place])): member
            for member in members
        }
        try:
            done = con.execute(table.insert.replace("{scan}", text), {"path": [*pipes]}).fetchall()
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        except duckdb.Error as error:
            said = str(error)
            stack.close()  # an error of the stream is the cause
            named = [
                member for pipe, member in pipes.items() if f'"{pipe}"' in said or f"file = {pipe}\n" in said
            ]
            for member in named or members:
                wrong = _explained(con, said, table, header, member)
                if wrong.line is not None or len(named or members) == 1:
                    raise wrong from None
            raise
    return int(done[0][0])


def _insert_parquet(con: duckdb.DuckDBPyConnection, table: Table, member: Member) -> int:
    import duckdb

    with _seekable(con, member) as path:
        try:
            there = con.execute("SELECT column_name FROM (DESCRIBE FROM read_parquet($path))", {"path": path})
            names = {name for (name,) in there.fetchall()}
            columns = ", ".join(
                f"CAST({_quoted(name) if name in names else 'NULL'} AS {kind}) AS {_quoted(name)}"
                for name, kind in table.columns.items()
            )
            text = f"(SELECT {columns} FROM read_parquet($path))"
            done = con.execute(table.insert.replace("{scan}", text), {"path": path}).fetchall()
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        # Damaged files also raise RuntimeError, and what Python raises for text and numbers of a footer.
        except (duckdb.Error, RuntimeError, ValueError, OverflowError, MemoryError) as error:
            if "Query interrupted" in str(error):
                raise
            wrong = f"is not a Parquet file of this table ({_first_line(error)})"
            raise InputError(wrong, file=member.place) from None
    return int(done[0][0])


def unpacked_folder(spill: str) -> str:
    """Return the folder for unpacked Parquet files, beside the one to which DuckDB spills."""
    return os.path.join(os.path.dirname(os.path.realpath(spill)), "unpacked")


@contextmanager
def _seekable(con: duckdb.DuckDBPyConnection, member: Member) -> Iterator[str]:
    """Give a Parquet file a path: its own, or of a packed file that of a temporary file without a name on disk."""
    with open(member.path, "rb") as file:
        plain = file.read(4) == b"PAR1"
    if plain:
        yield os.path.realpath(member.path)
        return
    if member.stream.peek(4)[:4] != b"PAR1":
        raise InputError("is not a Parquet file: it does not begin with PAR1", file=member.place)
    ((spill,),) = con.execute("SELECT current_setting('temp_directory')").fetchall()
    folder = unpacked_folder(spill)
    with tempfile.TemporaryFile(dir=folder) as unpacked:
        try:
            shutil.copyfileobj(member.stream, unpacked, 1 << 20)
            unpacked.flush()
        except OSError as error:
            wrong = f"cannot be unpacked into {folder}: {error.strerror or error}"
            raise InputError(wrong, file=member.place) from None
        yield f"/dev/fd/{unpacked.fileno()}"


def _json_scan(table: Table) -> str:
    types = ", ".join(
        "'{}': '{}'".format(name, kind.replace("'", "''")) for name, kind in table.columns.items()
    )
    return (
        f"read_json($path, columns = {{{types}}}, auto_detect = false, format = 'newline_delimited', "
        "compression = 'uncompressed')"
    )


def _csv_scan(table: Table, header: Header) -> str:
    """Return SQL for the rows of the shards ``$path``, with the columns of the table.

    Columns of a file with a header are ``c0``, ``c1``, ... there.
    """
    if not header:
        return _read_csv(table.columns, "")
    kinds = {
        f"c{place}": table.kind_as_text(column) if column else "VARCHAR"
        for place, column in enumerate(header)
    }
    fields = ", ".join(
        f"CAST({_value(table, column, header)} AS {kind}) AS {_quoted(column)}"
        for column, kind in table.columns.items()
    )
    return f"(SELECT {fields} FROM {_read_csv(kinds, chr(34))})"


def _value(table: Table, column: str, header: Header) -> str:
    """Return SQL for a column of the table, from the columns of a file with a header."""
    if column not in header:
        return "NULL"
    text = f"c{header.index(column)}"
    if column in table.nested:
        return table.nested[column].replace("{text}", text)
    if table.columns[column] in _WHOLE_BITS:
        return f"CASE WHEN {text} <> floor({text}) THEN error('no whole number') ELSE {text} END"
    return text


def _read_csv(kinds: Mapping[str, str], quote: str) -> str:
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in kinds.items())
    return (
        f"read_csv($path, columns = {{{types}}}, auto_detect = false, header = false, delim = ',', "
        f"quote = '{quote}', escape = '{quote}', compression = 'none')"
    )


def _quoted(name: str) -> str:
    return f'"{name}"'


# The row that DuckDB could not read. DuckDB's messages say which row that is, and not always its line; they have the
# row's text in them, which can be any text. So they are asked for the number alone, and the row is looked at here.
# DuckDB could list all wrong rows, but would read to the end of a file that may not be a table, and its time for a
# line grows with the square of the number of fields.


def _explained(
    con: duckdb.DuckDBPyConnection, said: str, table: Table, header: Header, member: Member
) -> InputError:
    """Return the error for a shard that DuckDB could not read, with the line if it is found."""
    for name, stream in open_members(member.path):
        if name == member.name:
            if member.form == "csv":
                return _explained_csv(con, said, table, header, member.place, stream)
            wrong = f"is not a row of {member.table} as a line of JSON ({_first_line(said)})"
            return InputError(wrong, file=member.place, line=_json_line(said, stream))
    raise AssertionError("unreachable: the member was there")


def _explained_csv(
    con: duckdb.DuckDBPyConnection,
    said: str,
    table: Table,
    header: Header,
    place: str,
    stream: io.BufferedReader,
) -> InputError:
    """Return the error for a shard of CSV; `stream` is the whole shard."""
    named = re.search(r"CSV Error on Line: ([0-9]+)", said)
    open_quote = "Value with unterminated quote" in said
    too_large = re.search(r"with value (-?\d+) can't be cast because the value is out of range", said)
    for line, fields in islice(_rows(header, stream, place), int(named[1]) - 1 if named else 0, None):
        if named is None:
            field, wrong = _not_whole(table, header, fields, too_large[1] if too_large else "")
        elif open_quote:
            field, wrong = "", "a quote is not closed"
        else:
            field, wrong = _wrong_field(con, table, header, fields)
        if wrong:
            return InputError(wrong, file=place, line=line, field=field or None)
        if named:
            break
    return InputError(f"cannot be read as CSV; do all lines end alike? ({shown(said)})", file=place)


def _rows(header: Header, stream: io.BufferedReader, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of the rows of CSV, with blank ones; bytes that are not UTF-8 become surrogates.

    Raises
    ------
    InputError
        A field is longer than a line may be.
    """
    first = _skip_header(stream) + 1 if header else 1
    lines = (line.decode("utf-8", "surrogateescape") for line in stream)
    if not header:
        for number, text in enumerate(lines, start=first):
            yield number, text.rstrip("\r\n").split(",")
        return
    reader, line = csv.reader(lines), first
    try:
        for fields in reader:
            yield line, fields or [""]
            line = first + reader.line_num
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=place, line=line) from None


def _wrong_field(
    con: duckdb.DuckDBPyConnection, table: Table, header: Header, fields: list[str]
) -> tuple[str, str]:
    """Return the wrong field of a row that DuckDB has refused, and what is wrong with it."""
    names = header or tuple(table.columns)
    want = ",".join(table.columns)
    for name, field in zip(names, fields, strict=False):
        if any("\ud800" <= letter <= "\udfff" for letter in field):
            return name, "cannot be read (invalid encoding)"
    if len(fields) < len(names):
        name = names[len(fields)] or str(len(fields) + 1)
        commas = _separated(fields[0]) if len(fields) == 1 else ""
        return name, f"the line ends after {len(fields)} of {len(names)} fields; want {want}{commas}"
    if len(fields) > len(names):
        return str(len(names) + 1), f"the line has {len(fields)} fields; want the {len(names)} of {want}"
    for name, field in zip(names, fields, strict=True):
        kind = "VARCHAR" if not name else table.kind_as_text(name) if header else table.columns[name]
        ((is_read,),) = con.execute(
            f"SELECT TRY_CAST(nullif($1, '') AS {kind}) IS NOT NULL", [field]
        ).fetchall()
        if field and not is_read:
            return name, f"{shown(field)} is not a number{' below 1e12' if kind == EXACT else ''}"
    return "", "cannot be read"


def _not_whole(table: Table, header: Header, fields: list[str], too_large: str) -> tuple[str, str]:
    """Return the field of a row that is not a whole number, or too large a one for its column, and what is wrong.

    `too_large` is the number that DuckDB has refused, if it says so: a column of text may be inserted as a number.
    """
    for name, field in zip(header or table.columns, fields, strict=False):
        if not name or not field:
            continue
        if field == too_large:
            return name, f"{shown(field)} is out of range"
        if header and (bits := _WHOLE_BITS.get(table.columns[name])):
            try:
                number = Decimal(field)
                if number != int(number):
                    return name, f"{shown(field)} is not a whole number"
                if not -(2**bits) <= number < 2**bits:
                    return name, f"{shown(field)} is out of range"
            except (InvalidOperation, ValueError, OverflowError):
                return name, f"{shown(field)} is not a whole number"
    return "", ""


def _skip_header(stream: io.BufferedReader) -> int:
    """Read the header, and blank lines before it; return how many lines these are."""
    lines = 1
    while not stream.readline().strip():
        lines += 1
    return lines


def _separated(line: str) -> str:
    """Return the hint about a line whose fields have another sign than commas between them, or ``""``."""
    line = line.lstrip().partition("\n")[0]
    most = max(_SEPARATORS, key=line.count)
    other = "," not in line and line.count(most) > 1
    return f", with commas between them, not {_SEPARATORS[most]}" if other else ""


def _json_line(said: str, stream: IO[bytes]) -> int | None:
    """Return the line that DuckDB could not read: DuckDB counts rows, and locates malformed text only roughly."""
    row = re.search("transform error.* in line ([0-9]+)", said)
    rows = 0
    for number, line in enumerate(stream, start=1):
        rows += bool(line.strip())
        if (row and rows == int(row[1])) or (line.strip() and not _is_object(line)):
            return number
    return None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _first_line(error: object) -> str:
    return ascii(str(error).strip().partition("\n")[0][:160])[1:-1]


@contextmanager
def piped(stream: IO[bytes], place: object = None, lines_before: int = 0) -> Iterator[str]:
    """Give a stream a path, ``/dev/fd/N``, for a library that opens files by name; it can be read once.

    A line that is longer than `PIPED_LINE_BYTES` is an error about `place`; `lines_before` is the number of lines that
    were read before. A thread feeds the pipe. On an error of the stream the library sees the end of the file, and the
    error is raised at the end of the block. The thread ends when the library stops reading.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # otherwise the thread would wait for ever for a reader that has stopped
    with suppress(AttributeError, OSError):  # fewer changes between the threads than with 64 KiB
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    done = threading.Event()
    failed: list[InputError] = []

    def feed() -> None:
        room = select.poll()
        room.register(writer, select.POLLOUT)
        try:
            with open(writer, "wb", buffering=0) as sink:
                for read in _with_short_lines(stream, place, lines_before):
                    if done.is_set():
                        break
                    block = memoryview(read)
                    while block and not done.is_set():
                        if room.poll(100):
                            block = block[sink.write(block) or 0 :]
        except BrokenPipeError:
            pass  # the reader has closed its end
        except InputError as error:
            failed.append(error)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        done.set()
        os.close(reader)
        thread.join()
        if failed:  # the cause of any error of the library
            raise failed[0]


def _with_short_lines(stream: IO[bytes], place: object, lines: int) -> Iterator[bytes]:
    """Yield the blocks of a stream, and refuse a long line, for which DuckDB would take minutes."""
    open_bytes = 0  # of the line that has not ended
    while block := stream.read(PIPED_LINE_BYTES):
        first = block.find(b"\n")
        if open_bytes + (len(block) if first < 0 else first) > PIPED_LINE_BYTES:
            wrong = f"is longer than {PIPED_LINE_BYTES >> 10} KiB; is this a table?"
            raise InputError(wrong, file=place, line=lines + 1)
        lines += block.count(b"\n")
        open_bytes = open_bytes + len(block) if first < 0 else len(block) - 1 - block.rfind(b"\n")
        yield block
