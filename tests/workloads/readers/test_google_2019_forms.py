"""All forms in which people have Google's traces of 2019: each gives the same workload."""

import csv
import gzip
import io
import tarfile

import pyarrow.parquet as pq
import pytest

from tests.workloads.google_2019_rows import (
    FORMS,
    as_flat_csv,
    as_pandas_csv,
    as_parquet,
    cell_rows,
    write_cell,
)
from tests.workloads.google_cases import jobs_of
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.readers.google_2019 import convert_google_2019


@pytest.fixture(scope="module")
def want(tmp_path_factory):
    """The tables of the workload that the cell gives, read from lines of JSON."""
    return tables(write_cell(tmp_path_factory.mktemp("cell") / "in", "json.gz"))


def tables(source):
    to = source.parent / f"{source.name}.out"
    convert_google_2019(source, to)
    return {path.name: pq.read_table(path).to_pylist() for path in sorted(to.iterdir())}


def test_the_cell_is_what_it_is_meant_to_be(want, tmp_path):
    assert [(job["job_id"], job["submit_s"], job["tenant"]) for job in want["jobs.parquet"]] == [
        (381, 2.0, 'v"'), (380, 8.0, "u="),
    ]  # fmt: skip
    assert [task["duration_s"] for task in want["tasks.parquet"]] == [5.0, 8.0, 1.25]
    assert {(job["cpu_cores"], job["memory"], job["priority"]) for job in want["jobs.parquet"]} == {
        (16 * 0.0125, 0.0045, 200)
    }
    assert {*want["tasks.parquet"][0]} == {"job_id", "duration_s"}  # all tasks of a job ask for the same
    assert [(row["attribute"], row["operator"], row["value"]) for row in want["constraint_sets.parquet"]] == [
        ("attr:k,1", "=", "a="), ("attr:n", "!=", ""),
    ]  # fmt: skip
    assert [node["cpu_cores"] for node in want["cluster.parquet"]] == [8.0, 16.0, 1.0]


@pytest.mark.parametrize("ending", FORMS)
def test_every_form_gives_the_same_tables(want, tmp_path, ending):
    source = write_cell(tmp_path / "in", ending, shards=3)
    assert tables(source) == want
    workload = load_workload(source)  # recognised, too
    assert jobs_of(workload) == [(2.0, 381, [5.0]), (8.0, 380, [8.0, 1.25])]


def test_whole_numbers_beside_nulls_are_floats_in_csv(want, tmp_path):
    """As pandas writes them."""
    source = write_cell(tmp_path / "in", "csv")
    path = source / "instance_events-000000000000.csv"
    path.write_text(path.read_text().replace(",200,", ",200.0,"))
    assert ",200.0," in path.read_text()
    assert tables(source) == want


def test_a_parquet_file_may_be_packed_after_all(want, tmp_path):
    source = write_cell(tmp_path / "in", "parquet.gz")
    for path in source.iterdir():
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert tables(source) == want


def test_an_archive_may_hold_any_form(want, tmp_path):
    for ending in ("parquet.gz", "csv"):
        source = write_cell(tmp_path / ending, ending, 2)
        packed = tmp_path / f"{ending}.tar"
        with tarfile.open(packed, "w") as archive:
            archive.add(source, "cell")
        assert tables(packed) == want


@pytest.mark.parametrize("ending", ["csv", "parquet.gz", "json.gz"])
def test_files_are_known_by_their_columns_whatever_they_are_called(want, tmp_path, ending):
    source = write_cell(tmp_path / "in", ending, name="cell-a {table} (1).{ending}")
    assert tables(source) == want
    assert load_workload(source / f"cell-a instance_events (1).{ending}").num_jobs == 2


def test_a_header_that_lacks_a_column_or_names_one_twice_is_refused(tmp_path):
    source = write_cell(tmp_path / "in", "csv")
    path = source / "instance_events-000000000000.csv"
    text = path.read_text()
    for old, new, wrong in (
        (
            "instance_index",
            "instance_idx",
            "line 1: field instance_index: the header does not name it; did you mean",
        ),
        ("priority", "time", "line 1: field time: is named twice in the header"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(InputError) as caught:
            convert_google_2019(source, tmp_path / "out")
        assert str(caught.value).startswith(f"{path}: {wrong}")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("time", "x", "field time: 'x' is not a number"),
        ("time", "1.5", "field time: '1.5' is not a whole number"),
        ("instance_index", "1e30", "field instance_index: '1e30' is out of range"),
    ],
)
def test_a_wrong_value_is_named_by_file_line_and_field(tmp_path, column, value, message):
    source = write_cell(tmp_path / "in", "csv.gz", shards=3)
    path = source / "instance_events-000000000001.csv.gz"
    text = as_flat_csv("instance_events", cell_rows()["instance_events"][1::3]).decode()
    rows = [*csv.reader(text.splitlines())]
    rows[3][rows[0].index(column)] = value
    broken = io.StringIO()
    csv.writer(broken).writerows(rows)
    path.write_bytes(gzip.compress(broken.getvalue().encode()))
    with pytest.raises(InputError) as caught:
        convert_google_2019(source, tmp_path / "out")
    assert str(caught.value).startswith(f"{path}: line 4: {message}"), caught.value


def test_a_folder_of_another_table_alone_says_what_is_missing(tmp_path):
    (tmp_path / "in").mkdir()
    rows = cell_rows()
    (tmp_path / "in" / "a.csv").write_bytes(as_pandas_csv("collection_events", rows["collection_events"]))
    (tmp_path / "in" / "b.parquet.gz").write_bytes(as_parquet("machine_events", rows["machine_events"]))
    with pytest.raises(InputError) as caught:
        load_workload(tmp_path / "in")
    text = str(caught.value)
    assert (
        "'a.csv': this is collection_events of Google's cluster trace of 2019, without instance_events"
        in text
    )
    assert "'b.parquet.gz': this is machine_events of Google's cluster trace of 2019: a cluster" in text
    assert "formats: parquet, tr, google-2011," in text


def test_two_forms_of_a_shard_are_not_read_both(tmp_path):
    source = write_cell(write_cell(tmp_path / "in", "json.gz"), "parquet.gz")
    with pytest.raises(InputError, match=r"holds collection_events-000000000000, and so does .*; keep one"):
        load_workload(source)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.partition("\n")[2], "line 1: want a header that names time,type,collection_id"),
        (
            lambda text: text.replace(",", ";"),
            "time,type,collection_id, with commas between them, not semicolons",
        ),
        (lambda text: f"[{text}]", "line 1: begins an array of JSON; want an object a line"),
    ],
)
def test_a_file_without_a_header_or_of_another_layout_is_named(tmp_path, change, message):
    ending = "json" if "JSON" in message else "csv"
    source = write_cell(tmp_path / "in", ending)
    path = source / f"collection_events-000000000000.{ending}"
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError) as caught:
        load_workload(source)
    assert str(caught.value).startswith(f"{path}: line 1: ")
    assert message in str(caught.value)
    assert "blanks" not in str(caught.value)
