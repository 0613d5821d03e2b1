import gzip
import tarfile
import tempfile
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.python_process import run_python
from workloads.errors import InputError
from workloads.readers.duckdb_tables import batches, database, expanded, number, write_folder
from workloads.readers.report import Report
from workloads.readers.scanning import EXACT, Table, csv_lines, scan
from workloads.readers.shards import form_of, holds_table, table_of

PAIRS = Table({"a": "BIGINT", "b": "VARCHAR"}, "INSERT INTO pairs SELECT a, b FROM {scan}")


def scanned(source, table=PAIRS, progress=None):
    report = Report()
    with database("256MiB", source) as con:
        con.execute(f"CREATE TABLE pairs (a {table.columns['a']}, b VARCHAR)")
        found = scan(con, source, {"pairs": table}, report, progress)
        return con.execute("FROM pairs ORDER BY ALL").fetchall(), found, report.lines()


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("pairs.csv", "pairs"), ("x/pairs_3.csv.gz", "pairs"), ("pairs-000000000012.json.gz", "pairs"),
        ("x/pairs/part-00001-of-00500.csv.gz", "pairs"), ("pairs/000.parquet", "pairs"), ("pairs", "pairs"),
        ("pairs-part-00001-of-00002.csv", "pairs"), ("pairs/other.csv", ""), ("pairs_of.csv", ""),
        ("my_pairs.csv", ""), ("", ""), ("pairs/readme", ""),
    ],
)  # fmt: skip
def test_a_table_is_known_by_its_name(name, table):
    assert table_of(name, {"pairs"}) == table


def test_a_form_is_known_by_its_ending():
    names = ("a.csv.gz", "a", "x.json/a.csv", "a-00.json.gz", "a.json", "a.snappy.parquet")
    assert [form_of(name) for name in names] == ["csv", "", "csv", "json", "json", "parquet"]


def test_shards_of_all_forms_add_up(tmp_path):
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "part-00000-of-00002.csv").write_text("1,x\n2,\n")
    (tmp_path / "pairs" / "part-00001-of-00002.csv.gz").write_bytes(gzip.compress(b"3,y\n"))
    (tmp_path / "pairs_1.json").write_text('{"a": "4", "b": "z", "c": [1]}\n\n{"a": 5}\n')
    pq.write_table(pa.table({"a": pa.array([6], pa.int32())}), tmp_path / "pairs-2.parquet")
    (tmp_path / "others.csv").write_text("not read")
    notes = []
    rows, found, lines = scanned(tmp_path, progress=lambda *a: notes.append((*a, threading.get_ident())))
    assert rows == [(1, "x"), (2, None), (3, "y"), (4, "z"), (5, None), (6, None)]
    assert found == {"pairs": 6}
    assert lines == ["read 6 rows of pairs"]
    assert {what for what, *_ in notes} == {tmp_path.name}
    assert max(done for _, done, *_ in notes) == {total for _, _, total, _ in notes}.pop()
    assert [done for _, done, *_ in notes] == sorted(done for _, done, *_ in notes)
    assert [fields for _, _, fields in csv_lines(tmp_path / "pairs", "pairs", PAIRS)] == [
        {"a": "1", "b": "x"},
        {"a": "2", "b": ""},
        {"a": "3", "b": "y"},
    ]


def test_links_and_relative_paths_are_followed(tmp_path, monkeypatch):
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "there" / "data.parquet")
    (tmp_path / "there" / "data.csv").write_text("2,y\n")
    (tmp_path / "here" / "pairs_1.parquet").symlink_to(tmp_path / "there" / "data.parquet")
    (tmp_path / "here" / "pairs_2.csv").symlink_to(tmp_path / "there" / "data.csv")
    (tmp_path / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    for source in (tmp_path / "here", tmp_path / "link", Path("here"), Path("link")):
        assert scanned(source)[0] == [(1, "x"), (2, "y")]
    assert scanned(Path("here/pairs_1.parquet"))[0] == [(1, "x")]


def test_archives_are_read_shard_by_shard(tmp_path):
    for name, text in (("pairs_1.csv", "1,x\n"), ("usage.csv", "a"), ("pairs_2.csv", "2,y\n")):
        (tmp_path / name).write_text(text)
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as packed:
        for name in ("pairs_1.csv", "usage.csv", "pairs_2.csv"):
            packed.add(tmp_path / name, f"x/{name}")
    assert scanned(tmp_path / "t.tar.gz")[0] == [(1, "x"), (2, "y")]
    assert holds_table(tmp_path / "t.tar.gz", "", "pairs")
    assert not holds_table(tmp_path / "t.tar.gz", "", "jobs")
    assert [(line, fields) for _, line, fields in csv_lines(tmp_path / "t.tar.gz", "pairs", PAIRS)] == [
        (1, {"a": "1", "b": "x"}), (1, {"a": "2", "b": "y"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,x\ny,x\n", "line 2: field a: 'y' is not a number"),
        ("1\n", "line 1: field b: the line ends after 1 of 2 fields; want a,b"),
        ("1,x,y\n", "line 1: field 3: the line has 3 fields; want the 2 of a,b"),
        ("1,\xff\n", "line 1: field b: cannot be read (invalid encoding)"),
        ("1,x\n" * 100_000 + "2," + "y" * 2_100_000, "line 100001: is longer than 256 KiB; is this a table?"),
        ("," * 50_000 + "x", "line 1: field 3: the line has 50001 fields; want the 2"),
    ],
)
def test_the_shard_and_line_that_is_wrong_is_named(tmp_path, text, message):
    for shard in range(6):
        (tmp_path / f"pairs_{shard}.csv").write_text("1,x\n" * 10)
    (tmp_path / "pairs_3.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        scanned(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'pairs_3.csv'}: {message}")


def test_with_a_header_lines_are_counted_from_its_own(tmp_path):
    for text, message in (
        ('b,a\nx,1\n"y\nz",2\nx,q\n', "line 5: field a: 'q' is not a number"),
        ('b,a\nx,1\n"x,1\n', "line 3: a quote is not closed"),
        ("b,a\n\nx\n", "line 3: field a: the line ends after 1 of 2 fields; want a,b"),
    ):
        (tmp_path / "pairs.csv").write_text(text)
        with pytest.raises(InputError) as caught:
            scanned(tmp_path)
        assert str(caught.value) == f"{tmp_path / 'pairs.csv'}: {message}"


def test_lines_that_speak_like_duckdb_are_refused_as_any_other(tmp_path):
    """Its message has the line in it, and so any text that the file has there."""
    says = "\nError when converting column "
    for last in (
        f'"{says}""zz"" ",q', f'"{says}""c9""",1,1,1', f'"{says}""",q', f'x,"{says}""c1"" "', '"\n\n\n",q',
        '"y\nExpected Number of Columns",q', '"y\nInvalid unicode",q', '"y\nValue with unterminated quote",q',
    ):  # fmt: skip
        (tmp_path / "pairs.csv").write_text(f"b,a\nx,1\n{last}\n")
        with pytest.raises(InputError, match=r"pairs.csv: line [2-7]: "):
            scanned(tmp_path)


@pytest.mark.slow("more rows than a part in memory holds")
def test_reading_stops_at_the_first_line_that_is_wrong(tmp_path):
    (tmp_path / "pairs.csv").write_bytes(b"1\n" + b"1,x\n" * (40 << 20))
    done = []
    with pytest.raises(InputError, match="line 1: field b: the line ends after 1 of 2 fields"):
        scanned(tmp_path, progress=lambda *expected: done.append(expected[1:3]))
    assert done
    assert all(read < total / 2 for read, total in done)


def test_exact_numbers_say_their_range(tmp_path):
    (tmp_path / "pairs.csv").write_text("1000000000000,x\n")
    with pytest.raises(InputError, match="field a: '1000000000000' is not a number below 1e12"):
        scanned(tmp_path, PAIRS._replace(columns={"a": EXACT, "b": "VARCHAR"}))


def test_what_is_no_parquet_is_refused_by_its_beginning(tmp_path):
    """And not copied first, as packed Parquet is; this one has 8 GiB, and no disk need hold them."""
    with open(tmp_path / "pairs.parquet", "wb") as file:
        file.truncate(8 << 30)
    with pytest.raises(
        InputError, match=r"pairs.parquet: is not a Parquet file: it does not begin with PAR1$"
    ):
        scanned(tmp_path)
    (tmp_path / "pairs.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"pairs.parquet: is not a Parquet file"):
        scanned(tmp_path)


def test_a_shard_that_is_there_twice_is_refused(tmp_path):
    (tmp_path / "pairs.csv").write_text("1,x\n")
    (tmp_path / "pairs.csv.gz").write_bytes(gzip.compress(b"1,x\n"))
    with pytest.raises(InputError, match=r"pairs.csv.gz: holds pairs, and so does .*pairs.csv; keep one"):
        scanned(tmp_path)


def test_the_database_reads_and_writes_nothing_else(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "secret.csv").write_text("1,x\n")
    with database("256MiB", tmp_path / "source") as con:
        for query in (
            f"FROM read_csv('{tmp_path / 'secret.csv'}')",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            f"ATTACH '{tmp_path / 'other.duckdb'}'",
            "INSTALL httpfs",
            "SET memory_limit = '9GiB'",
        ):
            with pytest.raises((duckdb.PermissionException, duckdb.InvalidInputException)):
                con.execute(query)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret.csv", "source"]


@pytest.mark.slow("more rows than a part in memory holds")
def test_what_does_not_fit_in_memory_is_spilled_and_then_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with database("64MiB", tmp_path) as con:
        con.execute(
            "CREATE TABLE wide AS SELECT i, hash(i) AS a, hash(i + 1) AS b FROM range(2_000_000) r(i)"
        )
        con.execute("CREATE TABLE placed AS SELECT *, row_number() OVER (ORDER BY a) AS place FROM wide")
        assert number(con, "SELECT max(place) FROM placed") == 2_000_000
    assert not list(tmp_path.iterdir())


def fill(memory, source, rows, timer=None):
    with database(memory, source) as con:
        if timer:
            threading.Timer(timer, con.interrupt).start()
        con.execute(
            f"CREATE TABLE filled AS SELECT hash(a.i + b.i) FROM range({rows}) a(i), range({rows}) b(i)"
        )


def test_too_little_memory_and_interrupts_are_said(tmp_path):
    with pytest.raises(InputError, match="field memory: 0MiB do not suffice"):
        fill("1 kB", tmp_path, 1000)
    with pytest.raises(KeyboardInterrupt):
        fill("64MiB", tmp_path, 100_000, timer=0.2)


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    good = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3]})]

    def breaks():
        yield good[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "out", {"jobs.parquet": (good, schema), "tasks.parquet": (breaks(), schema)})
    assert not list(tmp_path.iterdir())
    for stale in ("stages.parquet", "job_constraints.parquet", "mine.txt"):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / stale).touch()
    write_folder(tmp_path / "out", {"jobs.parquet": (good, schema)})
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["jobs.parquet", "mine.txt"]
    assert pq.read_table(tmp_path / "out" / "jobs.parquet")["a"].to_pylist() == [1, 2, 3]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: cannot be written: "):
        write_folder(tmp_path / "file", {"jobs.parquet": (good, schema)})


def test_rows_are_expanded_in_pieces(tmp_path):
    with database("64MiB", tmp_path) as con:
        rows = batches(con, "SELECT i AS a, i AS n FROM range(5) r(i) ORDER BY i")
        pieces = [batch["a"].to_pylist() for batch in expanded(rows, 4)]
    assert pieces == [[1, 2, 2, 3], [3, 3, 4, 4], [4, 4]]


SETTING = """
import os
from pathlib import Path
from workloads.readers.duckdb_tables import database
with database("64MB", Path(os.environ["FOLDER"])) as con:
    print(con.execute("SELECT current_setting('enable_progress_bar')").fetchone())
"""


def test_the_database_prints_no_progress(tmp_path):
    """It would go to standard output, where `--json` is alone; under pytest it is off by itself."""
    assert run_python(SETTING, FOLDER=str(tmp_path)) == "(False,)\n"
