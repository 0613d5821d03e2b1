"""Tables of a trace, read into DuckDB: CSV and JSON lines through pipes, Parquet by path, all their shards.

The guards and errors of `workloads.readers.source` hold for what is piped. A line that does not fit the columns
is named; values are scanned with declared types, and nothing that is read is taken for SQL.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import groupby, islice
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

from workloads.errors import InputError
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_members, piped, shown

if TYPE_CHECKING:
    import duckdb

EXACT = "DECIMAL(18, 6)"
"""For numbers that must be whole: DuckDB rounds 1.5 to a BIGINT without a word, and takes nan for a DOUBLE.

The table's own column must be of it too: DuckDB reads CSV in the type that a value is inserted as.
"""
FORMS = ("csv", "json", "parquet")
_FILES_AT_ONCE = 4  # of a folder: each is unpacked by its thread and parsed by one of DuckDB's
_SHARD = re.compile(r"[-_.]?part[-_]?[0-9]+([-_]of[-_][0-9]+)?$|[-_]?[0-9]+$")


class Table(NamedTuple):
    """A table of a source.

    Attributes
    ----------
    columns : mapping of str to str
        Name to SQL type, as declared to the reader of the file: all of a CSV in their order; of JSON and Parquet
        those that are wanted, null where a row has none.
    insert : str
        SQL that inserts the rows of ``{scan}``.
    """

    columns: Mapping[str, str]
    insert: str


class _Member(NamedTuple):
    table: str
    shard: str
    place: str
    stream: IO[bytes]
    path: Path
    name: str


def scan(
    con: duckdb.DuckDBPyConnection,
    source: Path,
    tables: Mapping[str, Table],
    report: Report,
    progress: Progress | None = None,
) -> set[str]:
    """Read the tables of a source, all their shards; return those that are there.

    A shard is known by its name: ``x/task_events/part-00001-of-00500.csv.gz``, ``batch_task_3.csv`` or
    ``instance_events-000000000001.json.gz``, in a folder, in an archive, or an archive itself. The file's ending
    says whether it is ``.parquet``, ``.json``, or else CSV without a header.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong, or a shard that is there twice.
    """
    found: dict[str, str] = {}
    files = sorted(_files(source, tables))

    def once(shard: str, place: str) -> None:
        if shard in found:
            raise InputError(f"holds {shard}, and so does {found[shard]}; keep one", file=place)
        found[shard] = place

    for table, name, path in files:
        if form_of(name) == "parquet":
            once(_shard(table, name), str(path))
            report.read(f"rows of {table}", _insert_parquet(con, tables[table], path))
    streamed = [path for _, name, path in files if form_of(name) != "parquet"]
    told = None if progress is None else _joint(progress, source.resolve().name, streamed)
    for members in _members_at_once(streamed, source, tables, told):
        for member in members:
            once(member.shard, member.place)
        for (table, form), group in groupby(members, lambda m: (m.table, form_of(m.shard))):
            report.read(f"rows of {table}", _insert(con, tables[table], form, [*group]))
    return {table_of(shard, tables) for shard in found}


def whole(column: str) -> str:
    """Return SQL for the whole number that a column of text holds, null where it holds none or anything beside it."""
    number = f'TRY_CAST("{column}" AS BIGINT)'
    return f'CASE WHEN CAST({number} AS VARCHAR) = "{column}" THEN {number} END'


def csv_lines(source: Path, table: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield file, line and fields of a table that `scan` has read, to find the line of what is wrong."""
    for _, _, path in sorted(_files(source, [table])):
        for member in _members(path, source, [table], None):
            for line, text in enumerate(member.stream, start=1):
                if text.strip():
                    yield member.place, line, text.decode().rstrip("\r\n").split(",")


def table_of(name: str, tables: Collection[str]) -> str:
    """Return the table that a file or member holds by its name, or ``""``."""
    *folders, last = PurePosixPath(name).parts or ("",)
    stem = _SHARD.sub("", last.partition(".")[0])
    if not stem and folders:  # nothing but a shard's number: the folder is the table's
        stem = folders[-1]
    return stem if stem in tables else ""


def form_of(name: str) -> str:
    """Return the form of a file by its ending: one of `FORMS`."""
    endings = name.removesuffix(".gz").rpartition("/")[2].split(".")[1:]
    return next((form for form in FORMS if form in endings), "csv")


def holds_table(path: Path, table: str) -> bool:
    """Return whether a folder, an archive or a file holds a shard of a table, by names alone."""
    try:
        if os.path.isdir(path):
            return any(True for _ in _files(path, [table]))
        if table_of(_named(path, path), [table]):
            return True
        first = islice(open_members(path), 3)  # an archive must be unpacked to find more
        return any(table_of(name, [table]) for name, _ in first)
    except InputError:
        return False


def _named(path: Path, source: Path) -> str:
    """Return the name by which a file's table is known: with the folder that holds it, even the source itself."""
    path, source = Path(os.path.abspath(path)), Path(os.path.abspath(source))
    return path.relative_to(source.parent if os.path.isdir(source) else source.parent.parent).as_posix()


def _files(source: Path, tables: Collection[str]) -> Iterator[tuple[str, str, Path]]:
    """Yield table, name and path of what to read: in a folder and its folders by name; a file may be an archive."""
    if not os.path.isdir(source):
        yield table_of(name := _named(source, source), tables), name, source
        return
    for path in (*source.glob("*"), *source.glob("*/*")):
        name = _named(path, source)
        if (table := table_of(name, tables)) and path.is_file():
            yield table, name, path


def _shard(table: str, name: str) -> str:
    """Return what a shard is called without its folders and endings but that of its form."""
    stem = PurePosixPath(name).name.partition(".")[0]
    form = form_of(name)
    full = stem if _SHARD.sub("", stem) else f"{table}/{stem}"
    return full if form == "csv" else f"{full}.{form}"


def _joint(progress: Progress, what: str, paths: list[Path]) -> Callable[[Path], Progress]:
    """Return a progress for each of the files: they are read at once, by several threads; their bytes add up."""
    total = sum(path.stat().st_size for path in paths if os.path.isfile(path))
    lock, done_of = threading.Lock(), dict.fromkeys(paths, 0)

    def of_file(path: Path) -> Progress:
        def tell(_: str, done: int, size: int) -> None:
            with lock:
                done_of[path] = done
                progress(what, sum(done_of.values()), total)

        return tell

    return of_file


_Told = Callable[[Path], Progress] | None


def _members_at_once(
    paths: list[Path], source: Path, tables: Collection[str], told: _Told
) -> Iterator[list[_Member]]:
    """Yield members that can be read at the same time: one of each of a few files."""
    for first in range(0, len(paths), _FILES_AT_ONCE):
        with ExitStack() as stack:
            readers = [
                stack.enter_context(closing(_members(path, source, tables, told)))
                for path in paths[first : first + _FILES_AT_ONCE]
            ]
            while members := [member for r in readers if (member := next(r, None)) is not None]:
                yield members


def _members(path: Path, source: Path, tables: Collection[str], told: _Told) -> Generator[_Member]:
    """Yield the members of a file, or the file itself, that hold one of the tables."""
    for name, stream in open_members(path, progress=told and told(path)):
        itself = name == path.name.removesuffix(".gz")
        label = _named(path, source) if itself else name
        if table := table_of(label, tables):
            place = str(path) if itself else f"{path} ({name})"
            if form_of(label) == "parquet":
                raise InputError("Parquet in an archive cannot be read; unpack it", file=place)
            yield _Member(table, _shard(table, label), place, stream, path, name)


def _insert(con: duckdb.DuckDBPyConnection, table: Table, form: str, members: list[_Member]) -> int:
    """Insert shards of a table; return how many rows were."""
    import duckdb

    text = (_csv if form == "csv" else _json)(table)
    with ExitStack() as stack:
        places = {stack.enter_context(piped(member.stream)): member for member in members}
        try:
            done = con.execute(table.insert.replace("{scan}", text), {"path": [*places]}).fetchall()
        except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
            said = str(error)
            for pipe, member in places.items():
                if len(places) == 1 or f'"{pipe}"' in said:
                    stack.close()  # an error of the stream is the cause
                    raise _explained(said, form, member) from None
            raise
    if form == "csv":
        _refuse_rejects(con, table, {pipe: member.place for pipe, member in places.items()})
    return int(done[0][0])


def _insert_parquet(con: duckdb.DuckDBPyConnection, table: Table, path: Path) -> int:
    import duckdb

    try:
        there = con.execute(
            "SELECT column_name FROM (DESCRIBE FROM read_parquet($path))", {"path": os.path.realpath(path)}
        ).fetchall()
        names = {name for (name,) in there}
        columns = ", ".join(
            f"CAST({_quoted(name) if name in names else 'NULL'} AS {kind}) AS {_quoted(name)}"
            for name, kind in table.columns.items()
        )
        text = f"(SELECT {columns} FROM read_parquet($path))"
        done = con.execute(table.insert.replace("{scan}", text), {"path": os.path.realpath(path)}).fetchall()
    except (duckdb.DataError, duckdb.ProgrammingError, duckdb.IOException) as error:
        wrong = f"is not a Parquet file of this table ({_first_line(error)})"
        raise InputError(wrong, file=path) from None
    return int(done[0][0])


def _quoted(name: str) -> str:
    return f'"{name}"'


def _csv(table: Table) -> str:
    return (
        f"read_csv($path, columns = {_types(table)}, auto_detect = false, header = false, delim = ',', "
        "quote = '', escape = '', compression = 'none', store_rejects = true, rejects_limit = 100)"
    )


def _json(table: Table) -> str:
    return (
        f"read_json($path, columns = {_types(table)}, auto_detect = false, format = 'newline_delimited', "
        "compression = 'uncompressed')"
    )


def _types(table: Table) -> str:
    kinds = {name: kind.replace("'", "''") for name, kind in table.columns.items()}
    return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in kinds.items()) + "}"


def _refuse_rejects(con: duckdb.DuckDBPyConnection, table: Table, places: Mapping[str, str]) -> None:
    """Raise the error for the first line that did not fit the columns."""
    rejected = con.execute(
        "SELECT file_path, line, column_idx, column_name, error_type, csv_line FROM reject_errors "
        "JOIN reject_scans USING (scan_id, file_id) ORDER BY file_path, line, column_idx"
    ).fetchone()
    if rejected is None:
        return
    pipe, line, at, name, error, text = rejected
    columns, fields = table.columns, text.split(",")
    if error == "CAST":
        wrong = f"{shown(fields[at - 1])} is not a number{' below 1e12' if columns[name] == EXACT else ''}"
    elif error == "MISSING COLUMNS":
        wrong = f"the line ends after {len(fields)} of {len(columns)} fields; want {','.join(columns)}"
        name = list(columns)[len(fields)]
    elif error == "TOO MANY COLUMNS":
        wrong = f"the line has {len(fields)} fields; want the {len(columns)} of {','.join(columns)}"
        name = str(len(columns) + 1)
    else:
        wrong = f"cannot be read ({error.lower()})"
    raise InputError(wrong, file=places[pipe], line=line, field=name)


def _explained(said: str, form: str, member: _Member) -> InputError:
    """Return the error for a shard that DuckDB does not put among the rejects."""
    if form == "csv":
        wrong = f"cannot be read as CSV; do all lines end alike? ({shown(said)})"
        return InputError(wrong, file=member.place)
    wrong = f"is not a row of {member.table} as a line of JSON ({_first_line(said)})"
    return InputError(wrong, file=member.place, line=_json_line(said, member))


def _json_line(said: str, member: _Member) -> int | None:
    """Return the line that DuckDB could not read: it counts rows, and says where text is malformed only about."""
    row = re.search("transform error.* in line ([0-9]+)", said)
    for name, stream in open_members(member.path):
        if name == member.name:
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
