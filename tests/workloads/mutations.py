"""Malformed workloads made from valid ones by mutation, each wrong by construction.

`mutants` is used by the reader's test, and by the command line's, which takes a few. A mutation that could
by luck leave a valid file (a flipped bit in a number, a swapped digit) is not among them.
"""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.workloads.table_mutations import TABLE_FILES

NOT_A_TIME = [
    b"abc", b"1_000", b"nan", b"inf", b"-inf", b"-1", b"-0.001", b"0x10", b"1e400", b"1e10", b"1,5", b"--3",
    b"1.2.3", b"1\x002", b"\xff\xfe", b"\xef\xbc\x91", b"None", b"1e", b"12s", b"\x1b[31m",
]  # fmt: skip
NOT_A_COUNT = [*NOT_A_TIME, b"0", b"-3", b"2.5", b"1e18", b"9" * 40, b"1e-3"]


@dataclass(frozen=True)
class Mutant:
    """A malformed workload: its files, the one to open, and what the error must name."""

    label: str
    files: dict[str, bytes]
    target: str
    """What the user gives: a file's name, or "." for the folder."""
    culprit: str
    """The file the error must name."""
    line: int | None = None
    """The line the error must name, where there is one."""

    def write(self, folder: Path) -> Path:
        """Write the files into a new folder and return the path to open."""
        folder.mkdir(parents=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder if self.target == "." else folder / self.target


def mutants(seed: int = 0, per_mutation: int = 8) -> Iterator[Mutant]:
    """Yield malformed workloads of every kind, `per_mutation` of each, the same ones for a seed."""
    rng = random.Random(seed)
    for round_ in range(per_mutation):
        for mutate in (*TEXT_MUTATIONS, *BYTES_MUTATIONS):
            yield mutate(rng, round_)
        for change in TABLE_MUTATIONS:
            yield _changed_tables(change, rng, round_)
        for damage in FILE_MUTATIONS:
            yield _damaged_file(damage, rng, round_)
        for breaks in TABLE_FILES if round_ % 2 else ():  # they take longer
            label, data, name, line = breaks(rng)
            yield Mutant(label, {name: data}, name, name, line)


# Text of .tr files. A valid file is a list of lines, a line a list of fields.


def valid_lines(rng: random.Random) -> list[list[bytes]]:
    """Return the fields of a few valid lines."""
    lines = []
    submit = 0.0
    for _ in range(rng.randint(2, 6)):
        submit += rng.random() * 10
        durations = [rng.random() * 100 for _ in range(rng.randint(1, 6))]
        numbers = [submit, len(durations), sum(durations) / len(durations), *durations]
        lines.append([repr(x).encode() for x in numbers])
    return lines


def to_bytes(lines: list[list[bytes]]) -> bytes:
    """Return the lines as a file."""
    return b"".join(b" ".join(fields) + b"\n" for fields in lines)


def _text(label: str, lines: list[list[bytes]], round_: int, line: int | None) -> Mutant:
    data = to_bytes(lines)
    # Every other one is compressed: the same errors must come out.
    name, data = ("w.tr.gz", gzip.compress(data)) if round_ % 2 else ("w.tr", data)
    return Mutant(label, {name: data}, name, name, line)


def _wrong_submit(rng: random.Random, round_: int) -> Mutant:
    return _wrong_field(rng, round_, 0, NOT_A_TIME)


def _wrong_count(rng: random.Random, round_: int) -> Mutant:
    return _wrong_field(rng, round_, 1, NOT_A_COUNT)


def _wrong_mean(rng: random.Random, round_: int) -> Mutant:
    return _wrong_field(rng, round_, 2, NOT_A_TIME)


def _wrong_duration(rng: random.Random, round_: int) -> Mutant:
    return _wrong_field(rng, round_, None, NOT_A_TIME)


def _wrong_field(rng: random.Random, round_: int, at: int | None, wrong: list[bytes]) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines))
    column = rng.randrange(3, len(lines[row])) if at is None else at
    lines[row][column] = rng.choice(wrong)
    return _text(f"field {column} is {lines[row][column]!r}", lines, round_, row + 1)


def _too_few(rng: random.Random, round_: int) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines))
    keep = rng.randrange(1, len(lines[row]))
    lines[row] = lines[row][:keep]
    return _text(f"line ends after {keep} fields", lines, round_, row + 1)


def _too_many(rng: random.Random, round_: int) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines))
    lines[row] += [b"1.0"] * rng.randint(1, 3)
    return _text("too many durations", lines, round_, row + 1)


def _joined(rng: random.Random, round_: int) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines) - 1)
    lines[row : row + 2] = [lines[row] + lines[row + 1]]
    return _text("two lines on one", lines, round_, row + 1)


def _split(rng: random.Random, round_: int) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines))
    at = rng.randrange(1, len(lines[row]))
    lines[row : row + 1] = [lines[row][:at], lines[row][at:]]
    return _text("one line on two", lines, round_, row + 1)


def _comment(rng: random.Random, round_: int) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines) + 1)
    lines.insert(row, rng.choice([b"# a comment", b"submit num_tasks mean durations", b"//", b"{}"]).split())
    return _text("a line of text", lines, round_, row + 1)


def _commas(rng: random.Random, round_: int) -> Mutant:
    lines = valid_lines(rng)
    row = rng.randrange(len(lines))
    lines[row] = [rng.choice([b",", b";", b", "]).join(lines[row])]
    return _text("separated by commas", lines, round_, row + 1)


TEXT_MUTATIONS: list[Callable[[random.Random, int], Mutant]] = [
    _wrong_submit, _wrong_count, _wrong_mean, _wrong_duration, _wrong_duration, _too_few, _too_many, _joined,
    _split, _comment, _commas,
]  # fmt: skip


def _nothing(rng: random.Random, round_: int) -> Mutant:
    data = rng.choice([b"", b"\n", b" \t\n\r\n", b"\n" * 50])
    return Mutant("no job", {"w.tr": data}, "w.tr", "w.tr")


def _foreign(rng: random.Random, round_: int) -> Mutant:
    heads = [
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"PK\x03\x04",
        b"\x89PNG",
        b"PAR1",
        b"\x00" * 8,
        b"<html>",
        b"BZh9",
    ]
    data = rng.choice(heads) + to_bytes(valid_lines(rng))
    return Mutant(f"starts with {data[:8]!r}", {"w.tr": data}, "w.tr", "w.tr", 1)


def _gzip_truncated(rng: random.Random, round_: int) -> Mutant:
    data = gzip.compress(to_bytes(valid_lines(rng)))
    keep = rng.choice([2, 3, 10, rng.randrange(2, len(data)), len(data) - 1])
    return Mutant(f"gzip of {len(data)} bytes cut to {keep}", {"w.tr.gz": data[:keep]}, "w.tr.gz", "w.tr.gz")


def _gzip_checksum(rng: random.Random, round_: int) -> Mutant:
    data = bytearray(gzip.compress(to_bytes(valid_lines(rng))))
    data[-rng.randint(1, 8)] ^= 1 << rng.randrange(8)  # the last 8 bytes are checksum and length
    return Mutant("gzip with a wrong checksum", {"w.tr.gz": bytes(data)}, "w.tr.gz", "w.tr.gz")


def _gzip_trailer(rng: random.Random, round_: int) -> Mutant:
    data = gzip.compress(to_bytes(valid_lines(rng))) + rng.choice([b"garbage", b"1 1 1 1\n", b"\x1f\x8c"])
    return Mutant("gzip with more behind it", {"w.tr.gz": data}, "w.tr.gz", "w.tr.gz")


BYTES_MUTATIONS: list[Callable[[random.Random, int], Mutant]] = [
    _nothing, _foreign, _gzip_truncated, _gzip_checksum, _gzip_trailer,
]  # fmt: skip


# Parquet folders: changed tables, and damaged files.

Columns = dict[str, list | pa.Array]


def valid_tables(rng: random.Random) -> tuple[Columns, Columns]:
    """Return the columns of a valid jobs and tasks table."""
    counts = [rng.randint(1, 5) for _ in range(rng.randint(2, 6))]
    ids = list(range(len(counts)))
    jobs: Columns = {
        "job_id": ids,
        "submit_s": [i + rng.random() for i in ids],
        "num_tasks": counts,
        "mean_task_s": [rng.random() * 100 for _ in ids],
        "constraint": pa.nulls(len(ids), pa.string()),
        "tenant": pa.array(["a"] * len(ids)),
    }
    tasks: Columns = {
        "job_id": [i for i, count in enumerate(counts) for _ in range(count)],
        "duration_s": [rng.random() * 100 for _ in range(sum(counts))],
    }
    return jobs, tasks


REQUIRED = [("jobs", n) for n in ("job_id", "submit_s", "num_tasks", "mean_task_s")] + [
    ("tasks", n) for n in ("job_id", "duration_s")
]
TIMES = [("jobs", "submit_s"), ("jobs", "mean_task_s"), ("tasks", "duration_s")]

Change = Callable[[random.Random, dict[str, Columns]], tuple[str, str, int | None]]
"""Changes the tables and returns (label, file to blame, its row)."""


def _drop_column(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    table, name = rng.choice(REQUIRED)
    tables[table].pop(name)
    return f"no {table}.{name}", table, None


def _wrong_type(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    table, name = rng.choice([*REQUIRED, ("jobs", "tenant"), ("jobs", "constraint")])
    size = len(tables[table][name])
    wrong = [
        pa.array([True] * size),
        pa.array([b"x"] * size),
        pa.array([[1]] * size),
        pa.array([1] * size, pa.date32()),
    ]
    if name not in ("tenant", "constraint"):
        wrong.append(pa.array(["1"] * size))
    tables[table][name] = rng.choice(wrong)
    return f"wrong type of {table}.{name}", table, None


def _null(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    table, name = rng.choice(REQUIRED)
    row = rng.randrange(len(tables[table][name]))
    tables[table][name][row] = None
    return f"null in {table}.{name}", table, row + 1


def _wrong_time(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    table, name = rng.choice(TIMES)
    row = rng.randrange(len(tables[table][name]))
    tables[table][name][row] = rng.choice([-1.0, float("nan"), float("inf"), float("-inf"), 1e10, -1e-9])
    return f"{tables[table][name][row]} in {table}.{name}", table, row + 1


def _wrong_tasks(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    row = rng.randrange(len(tables["jobs"]["num_tasks"]))
    tables["jobs"]["num_tasks"][row] = wrong = rng.choice([0, -1, -(2**63)])
    return f"num_tasks is {wrong}", "jobs", row + 1


def _absurd_tasks(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    row = rng.randrange(len(tables["jobs"]["num_tasks"]))
    tables["jobs"]["num_tasks"][row] = wrong = rng.choice([100, 10**18, 2**63 - 1])
    return f"num_tasks is {wrong}", "jobs", None


def _wrong_sum(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    tables["jobs"]["num_tasks"][0] += 1
    return "one task too many", "jobs", None


def _lost_tasks(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    keep = rng.randrange(len(tables["tasks"]["job_id"]))
    tables["tasks"] = {name: values[:keep] for name, values in tables["tasks"].items()}
    return "tasks are missing", "jobs", None


def _lost_jobs(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    tables["jobs"] = {name: pa.array(values)[:0] for name, values in tables["jobs"].items()}
    return "no jobs", "jobs", None


def _stray_task(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    row = rng.randrange(len(tables["tasks"]["job_id"]))
    tables["tasks"]["job_id"][row] = 77
    return "task of a job that is not there", "tasks", row + 1


def _same_id(rng: random.Random, tables: dict[str, Columns]) -> tuple[str, str, int | None]:
    first, count = tables["jobs"]["job_id"][0], tables["jobs"]["num_tasks"][0]
    tables["jobs"]["job_id"][1] = first
    tables["tasks"]["job_id"][count : count + tables["jobs"]["num_tasks"][1]] = [first] * tables["jobs"][
        "num_tasks"
    ][1]
    return "a job id twice", "jobs", 2


TABLE_MUTATIONS: list[Change] = [
    _drop_column, _wrong_type, _null, _wrong_time, _wrong_tasks, _absurd_tasks, _wrong_sum, _lost_tasks,
    _lost_jobs, _stray_task, _same_id,
]  # fmt: skip


def _changed_tables(change: Change, rng: random.Random, round_: int) -> Mutant:
    jobs, tasks = valid_tables(rng)
    tables = {"jobs": jobs, "tasks": tasks}
    label, table, row = change(rng, tables)
    files = {f"{name}.parquet": parquet_bytes(columns) for name, columns in tables.items()}
    return Mutant(label, files, ".", f"{table}.parquet", row)


def parquet_bytes(columns: Columns) -> bytes:
    """Return the columns as a Parquet file with page checksums."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd", write_page_checksum=True)
    return out.getvalue()


Damage = Callable[[random.Random, bytes], tuple[str, bytes | None]]


def _file_missing(rng: random.Random, data: bytes) -> tuple[str, bytes | None]:
    return "missing", None


def _file_truncated(rng: random.Random, data: bytes) -> tuple[str, bytes | None]:
    keep = rng.choice([0, 1, 4, 8, 12, rng.randrange(len(data)), len(data) - 1])
    return f"cut from {len(data)} bytes to {keep}", data[:keep]


def _file_behead(rng: random.Random, data: bytes) -> tuple[str, bytes | None]:
    return "another end", data[:-4] + rng.choice([b"PAR2", b"\x00" * 4, b"1RAP"])


def _file_foreign(rng: random.Random, data: bytes) -> tuple[str, bytes | None]:
    return "not Parquet", rng.choice(
        [b"job_id,submit_s\n1,2\n", b"{}", b"ARROW1\x00\x00" * 10, gzip.compress(data)]
    )


def _file_footer_length(rng: random.Random, data: bytes) -> tuple[str, bytes | None]:
    length = rng.choice([0, 1, len(data), 2**31 - 1, 2**32 - 1])
    return f"footer of {length} bytes", data[:-8] + length.to_bytes(4, "little") + data[-4:]


def _file_page(rng: random.Random, data: bytes) -> tuple[str, bytes | None]:
    """Flip a bit of the last byte of a column: page content, which the checksum covers."""
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    chunk = group.column(rng.randrange(2))
    start = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
    at = start + chunk.total_compressed_size - 1
    return "a flipped bit", data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


FILE_MUTATIONS: list[Damage] = [
    _file_missing, _file_truncated, _file_truncated, _file_behead, _file_foreign, _file_footer_length,
    _file_page,
]  # fmt: skip


def _damaged_file(damage: Damage, rng: random.Random, round_: int) -> Mutant:
    jobs, tasks = valid_tables(rng)
    files = {"jobs.parquet": parquet_bytes(jobs), "tasks.parquet": parquet_bytes(tasks)}
    name = rng.choice(sorted(files))
    label, data = damage(rng, files.pop(name))
    if data is not None:
        files[name] = data
    return Mutant(f"{name}: {label}", files, ".", name)
