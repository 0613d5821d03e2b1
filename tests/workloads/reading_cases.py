r"""Cases of readers as text: small files, and the workload or the error that they give. `test_reading.py` runs them.

A file of cases has blocks. A block begins with ``== `` and its title; then, in any number, rows: files, and what comes
of them. Lines that begin with ``# `` before the first file of a block are comments.

    == what is wrong in a line
    format: swf                     the format that is named, else it is recognised
    options: unfinished=drop        of the reader
    like: by hand                   the files of the first row of that block, changed by what follows
    -- in/batch_task.csv            a file (packed with gzip if it ends in .gz), and its text
    1,2,3
    -- in/batch_task.csv at 2       line 2 of the file is replaced by these; ``after 2``: they come after it
    1,2,x
    -- in/batch_task.csv none       it is not there
    !! {it}/batch_task.csv: line 2: field plan: 'x' is not a number
    >>                              or what is read: the columns of its tables, and the reader's report
    jobs.job_id: 4 7

The first part of the files' names, here ``in``, is what is read; ``{it}`` is its path. A row begins with the block's
files again. In texts ``\x1b`` is a byte, ``\\`` a backslash, and a ``\`` that ends the text of a file that it ends
without a line feed. Of values ``-`` is null, ``3*x`` is x three times; columns of nulls are
left out, and those that say only to which job a task belongs.

    python -m tests.workloads.reading_cases FILE.txt …      # writes what is read now into the cases
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workloads.catalogue import convert_workload, load_workload
from workloads.errors import InputError
from workloads.formats import FORMATS, recognise
from workloads.readers.report import Report
from workloads.transform.primitives import family

CASES = Path(__file__).parent / "readers" / "cases"
_FILE = re.compile(r"-- (?P<name>.+?)(?: (?P<how>at|after) (?P<line>\d+)| (?P<none>none))?")
_NOT_PLAIN = re.compile(r"[^\t\n\x21-\x7e\u00a1-\ud7ff\ue000-\U0010ffff ]| (?=\n)|\r")
_BOILERPLATE = ("read", "repaired", "dropped")


@dataclass
class Row:
    """Files and what comes of them: an error, or a workload in lines."""

    block: Block
    number: int
    files: dict[str, bytes]
    lines: list[str]
    """Those of the row before its outcome."""
    want: list[str]

    @property
    def title(self) -> str:
        """The block's title, with the row's number where there are several."""
        return f"{self.block.title} {self.number}" if len(self.block.rows) > 1 else self.block.title


@dataclass
class Block:
    """Rows under a title."""

    title: str
    head: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


def parse(text: str) -> list[Block]:
    """Return the blocks of a file of cases."""
    blocks: list[Block] = []
    for title, *lines in _sections(text.splitlines(), "== "):
        block = Block(title[3:])
        at = next((n for n, line in enumerate(lines) if line.startswith(("-- ", "!! ", ">>"))), len(lines))
        block.head = lines[:at]
        for line in block.head:
            name, colon, value = line.partition(": ")
            if colon and not line.startswith("# "):
                block.given[name] = value
        base = next((b.rows[0].files for b in blocks if b.title == block.given.get("like")), {})
        row: list[str] = []
        for line in lines[at:]:
            row.append(line)
        for before, want in _outcomes(row):
            block.rows.append(Row(block, len(block.rows) + 1, _files(before, base), before, want))
        blocks.append(block)
    return blocks


def _sections(lines: list[str], mark: str) -> Iterator[list[str]]:
    section: list[str] = []
    for line in lines:
        if line.startswith(mark):
            if section:
                yield section
            section = []
        if section or line.startswith(mark):
            section.append(line)
    if section:
        yield section


def _outcomes(lines: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    before: list[str] = []
    want: list[str] = []
    for line in [*lines, "-- "]:
        if want and line.startswith(("-- ", "!! ", ">>")):
            yield before, [w for w in want if w]
            before, want = [], []
        if want or line.startswith(("!! ", ">>")):
            want.append(line)
        else:
            before.append(line)
    if lost := [line for line in before[:-1] if line.strip()]:
        raise ValueError(f"no outcome follows: {lost[0]!r}; want a line '>>', or '!! ', behind it")


def _files(lines: list[str], base: dict[str, bytes]) -> dict[str, bytes]:
    texts = dict(base)
    for head, *body in _sections(lines, "-- "):
        match = _FILE.fullmatch(head)
        assert match, head
        name, data = match["name"], _bytes(body)
        if match["none"]:
            del texts[name]
        elif match["how"]:
            rows = texts[name].splitlines(keepends=True)
            at = int(match["line"])
            rows[at - 1 if match["how"] == "at" else at : at] = [data]
            texts[name] = b"".join(rows)
        else:
            texts[name] = data
    return texts


def _bytes(lines: list[str]) -> bytes:
    text = "".join(f"{line.removeprefix('|') if line.startswith('|--') else line}\n" for line in lines)
    text = text.removesuffix("\\\n") if text.endswith("\\\n") and not text.endswith("\\\\\n") else text
    plain = re.sub(
        r"\\(\\|x[0-9a-f]{2})", lambda m: "\\" if m[1] == "\\" else chr(0xDC00 + int(m[1][1:], 16)), text
    )
    # Bytes below 0x80 are themselves, others are as they stand.
    return re.sub("[\udc00-\udc7f]", lambda m: chr(ord(m[0]) - 0xDC00), plain).encode(
        "utf-8", "surrogateescape"
    )


def as_text(data: bytes) -> list[str]:
    """Return bytes as lines of a case, the reverse of what is read from them."""
    text = data.decode("utf-8", "surrogateescape").replace("\\", "\\\\")
    if not text:
        return ["\\"]
    end = [] if text.endswith("\n") else ["\\"]
    shown = _NOT_PLAIN.sub(
        lambda m: "".join(f"\\x{b:02x}" for b in m[0].encode("utf-8", "surrogateescape")), text
    )
    lines = shown.removesuffix("\n").split("\n")
    lines = [f"|{line}" if line.startswith(("-- ", "!! ", ">>", "== ")) else line for line in lines]
    return [*lines[:-1], lines[-1] + end[0]] if end else lines


def found(row: Row, folder: Path) -> list[str]:
    """Return what a row's files give now, in the lines of a case."""
    for name, data in row.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    it = folder / next(iter(row.files)).partition("/")[0]
    given = row.block.given
    options = dict(pair.split("=", 1) for pair in shlex.split(given.get("options", "")))
    try:
        lines = _read(it, given.get("format"), options, folder / "out", "metadata" in given.get("show", ""))
    except InputError as error:
        text = str(error)
        assert text.isprintable(), text  # so it is one line
        return [f"!! {_short(text, it)}"]
    return [">>", *(_short(line, it) for line in lines)]


def _short(line: str, it: Path) -> str:
    line = line.replace(str(it), "{it}").replace(str(it.parent), "{here}")
    # What differs from machine to machine, and the list of all formats.
    line = re.sub(r"makes ([\d,]+) tasks, more than .*", r"makes \1 tasks, more than …", line)
    return line.replace(", ".join(FORMATS), "{formats}")


def _read(it: Path, format: str | None, options: dict[str, str], out: Path, metadata: bool) -> list[str]:
    report = Report()
    format = format or recognise(it)
    lines = [f"format: {format}"]
    if format in FORMATS and FORMATS[format].convert is not None:
        convert_workload(it, out, options=options, format=format, report=report)
        tables = {path.stem: pq.read_table(path) for path in sorted(out.iterdir())}
        about = json.loads((pq.read_schema(out / "jobs.parquet").metadata or {}).get(b"metadata", b"{}"))
        if metadata:  # of all cases it takes too long
            again = load_workload(it, options=options, format=format)
            assert again.fingerprint() == load_workload(out).fingerprint()
        notes: tuple[str, ...] = ()
    else:
        workload = load_workload(it, options=options, format=format, report=report)
        own = family(workload)
        tables = {name: getattr(workload, name) for name in (own.name, *own.parts)}
        if own.name == "coflows":
            tables["ports"] = workload.ports
        if getattr(workload, "constraint_sets", None) is not None and workload.constraint_sets.num_rows:
            tables |= {name: getattr(workload, name) for name in ("job_constraints", "constraint_sets")}
        about, notes = workload.metadata, workload.notes
    for name, table in tables.items():
        lines += [
            f"{name}.{column}: {column_text(table[column])}"
            for column in table.column_names
            if table[column].null_count < len(table) and not _follows(tables, name, column)
        ]
    said = report.lines()
    lines += [*said, *(f"note: {note}" for note in notes if note not in said)]
    if metadata:
        lines += [f"{key}: {value}" for key, value in about.items() if key not in _BOILERPLATE]
    return lines


_OWNERS = {
    ("tasks", "job_id"): ("jobs", "num_tasks"),
    ("tasks", "stage"): ("stages", "num_tasks"),
    ("flows", "coflow_id"): ("coflows", "width"),
}


def _follows(tables: dict[str, pa.Table], name: str, column: str) -> bool:
    """Return whether a column says only which rows belong to which of another table, as the counts there do."""
    owner, count = _OWNERS.get((name, column), ("", ""))
    if owner not in tables:
        return False
    pairs = zip(tables[owner][column].to_pylist(), tables[owner][count].to_pylist(), strict=True)
    return bool(tables[name][column].to_pylist() == [key for key, rows in pairs for _ in range(rows)])


def column_text(values: pa.ChunkedArray) -> str:
    """Return the values of a column in a line."""
    runs = [(text, len(list(group))) for text, group in groupby(map(_value, values.to_pylist()))]
    return " ".join(text if count == 1 else f"{count}*{text}" for text, count in runs)


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, str) and (not value or value == "-" or not value.isprintable() or " " in value):
        return json.dumps(value)
    return str(value)


def files_of_cases() -> list[Path]:
    """Return the files of cases."""
    return sorted(CASES.glob("*.txt"))


def rewrite(path: Path) -> None:
    """Write what the files of a file of cases give now into it."""
    text = path.read_text(encoding="utf-8")
    intro = text.partition("\n== ")[0] if not text.startswith("== ") else ""
    lines = [intro.rstrip("\n")] if intro else []
    for block in parse(text):
        head = "\n".join(block.head).rstrip("\n")
        lines += ["", f"== {block.title}", *(head.split("\n") if head else [])]
        for row in block.rows:
            folder = Path(tempfile.mkdtemp())
            lines += [*row.lines, *found(row, folder)]
            shutil.rmtree(folder)
    path.write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        rewrite(Path(argument))
