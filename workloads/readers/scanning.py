"""Tables of a trace, read into DuckDB: CSV and JSON lines through pipes, Parquet by path, all their shards.

The guards and errors of `workloads.readers.source` hold for pipes. Types are declared, a line that does not fit the
columns is named, and nothing that is read is taken for SQL. `workloads.readers.shards` finds the files of a table,
`workloads.readers.csv_tables` has the rules of CSV.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING

from workloads.errors import InputError
from workloads.readers.csv_tables import (
    EXACT,
    Header,
    Table,
    csv_rows,
    csv_scan,
    explain,
    header_of,
    skip_header,
)
from workloads.readers.known_tables import identify
from workloads.readers.piping import piped
from workloads.readers.report import Progress, Report
from workloads.readers.shards import Member, Wanted, files_of, members_at_once, members_of
from workloads.readers.source import open_members, shown

if TYPE_CHECKING:
    import duckdb

__all__ = ["EXACT", "Table", "csv_lines", "need_rows", "scan", "whole"]


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


def csv_lines(
    source: Path, name: str, table: Table, *, format: str = ""
) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Yield file, line and fields by column of a table that `scan` has read, to find a wrong line."""
    wanted = Wanted(format, [name])
    for path in files_of(source, wanted):
        for member in members_of(path, source, wanted):
            if member.form == "csv":
                header = header_of(table, member.sample, member.place)
                for line, fields in csv_rows(table, header, member.stream):
                    yield member.place, line, fields


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

    text = csv_scan(table, header) if form == "csv" else _json(table)
    skipped = {member.place: skip_header(member.stream) if header else 0 for member in members}
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
                wrong = _explained(said, table, form, header, member)
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
                f'CAST({f"{chr(34)}{name}{chr(34)}" if name in names else "NULL"} AS {kind}) AS "{name}"'
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


def _json(table: Table) -> str:
    types = ", ".join(
        "'{}': '{}'".format(name, kind.replace("'", "''")) for name, kind in table.columns.items()
    )
    return (
        f"read_json($path, columns = {{{types}}}, auto_detect = false, format = 'newline_delimited', "
        "compression = 'uncompressed')"
    )


def _explained(said: str, table: Table, form: str, header: Header, member: Member) -> InputError:
    """Return the error for a shard that DuckDB could not read, with the line if it is found."""
    for name, stream in open_members(member.path):
        if name == member.name:
            if form == "csv":
                return explain(said, table, header, member.place, stream)
            wrong = f"is not a row of {member.table} as a line of JSON ({_first_line(said)})"
            return InputError(wrong, file=member.place, line=_json_line(said, stream))
    raise AssertionError("unreachable: the member was there")


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
