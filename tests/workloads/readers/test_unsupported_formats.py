"""Files of formats that are not read: errors say what they are, and what of it is read."""

import io
import json
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import FORMATS
from workloads.jobs import make_workload


def refusal(path: Path | str, **given: object) -> str:
    with pytest.raises(InputError) as caught:
        load_workload(str(path), **given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("member", "what"), [("xl/workbook.xml", "a workbook of Excel"), ("content.xml", "an OpenDocument")]
)
@pytest.mark.parametrize("format", [None, "job-table", "tr"])
def test_a_workbook_is_named_as_one(tmp_path: Path, member: str, what: str, format: str | None) -> None:
    path = tmp_path / "book"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(member, "<x/>")
    assert f"this is {what}; export its sheet as CSV" in refusal(path, format=format)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_two_members_of_one_name_are_refused(tmp_path: Path, kind: str) -> None:
    text, path = b"0\n1\n\n1 1 0 9 1\n11 1 2 1 2\n\n2\n1 1\n2 1\n", tmp_path / f"a.{kind}"
    with tarfile.open(path, "w") if kind == "tar" else zipfile.ZipFile(path, "w") as archive:
        for _ in range(2):
            if isinstance(archive, tarfile.TarFile):
                header = tarfile.TarInfo("a/a.txt")
                header.size = len(text)
                archive.addfile(header, io.BytesIO(text))
            else:
                archive.writestr("a/a.txt", text)
    for instance in (None, "1", "a"):
        options = {} if instance is None else {"instance": instance}
        assert "holds two members called 'a/a.txt'" in refusal(path, format="coflowlib", options=options)


OPENDC = {"id": [1, 2], "submission_time": [1000, 3500], "duration": [2000, 70], "cpu_count": [3, 1]}
AS_TABLE = {"arrival": "submission_time", "duration": "duration", "unit": "ms", "tasks": "cpu_count"}


def test_the_format_that_is_named_wins_over_a_file_s_name(tmp_path: Path) -> None:
    """Another program's tables that are called like Emu's: read as what one says, and else named as what they are."""
    path = tmp_path / "tasks.parquet"
    pq.write_table(pa.table(OPENDC), path)
    read = load_workload(path, format="job-table", options=AS_TABLE)
    assert read.jobs["submit_s"].to_pylist() == [0.0, 2.5]
    assert read.tasks["duration_s"].to_pylist() == [2.0, 2.0, 2.0, 0.07]
    for given in (path, tmp_path):
        said = refusal(given)
        assert (
            "this is tasks of an OpenDC workload, which is not read; as a table it is: --from job-table"
            in said
        )
        assert "no such file" not in said
    pq.write_table(pa.table({"a": [1]}), path)
    assert "is of no known format: Parquet with the columns a" in refusal(path)
    assert "is a folder of no known format: it holds 'tasks.parquet'" in refusal(tmp_path)


def test_a_workload_called_like_a_generator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emu.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    (tmp_path / "google").mkdir()
    assert (
        main(["workload", "info", "google", "--set", "jobs=5"]) == 0
    )  # a folder of that name does not matter
    assert main(["workload", "synth", "poisson", "google", "--set", "jobs=5"]) == 0
    assert "'google' is a generator, and the name of a workload that is here" in refusal(Path("google").name)
    assert load_workload("./google").num_jobs == 5
    assert main(["workload", "synth", "google", "other", "--set", "jobs=7"]) == 0
    assert load_workload("other").num_jobs == 7


NOT_UTF8 = os.fsdecode(b"n\xff.tr")


def test_names_that_are_not_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A file called so is read; a run's manifest, which is UTF-8, cannot hold its name."""
    from emu.cli import main

    monkeypatch.chdir(tmp_path)
    Path(NOT_UTF8).write_text("0 2 1.0 1.0 1.0\n5 1 2.0 2.0\n")
    assert load_workload(NOT_UTF8).num_tasks == 3
    argv = [
        "run",
        "--scheduler",
        "sparrow",
        "--workload",
        NOT_UTF8,
        "--nodes",
        "3",
        "--in-process",
        "--out",
        "out",
    ]
    assert main(argv) == 2
    assert "cannot hold a name that is not UTF-8" in capsys.readouterr().err


def test_half_a_character_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"field tenant: '\\ud800' is not text"):
        make_workload("w", [0.0], [1], [1.0], tenant=["\ud800"])
    task = {
        "name": "a",
        "id": "a",
        "parents": [],
        "children": [],
        "runtimeInSeconds": 1,
        "command": {"program": "a"},
    }
    instance = {"name": "\ud800", "schemaVersion": "1.4", "workflow": {"tasks": [task]}}
    (tmp_path / "a.json").write_text(json.dumps(instance))
    assert "field name: '\\ud800' is not text: it holds half a character" in refusal(tmp_path / "a.json")


@pytest.mark.parametrize("format", [None, *FORMATS])
def test_links_in_a_circle_end_in_one_line(tmp_path: Path, format: str | None) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("circle", "folder/tasks.parquet", "folder/a.csv"):
        (tmp_path / name).symlink_to(Path(name).name)
    (tmp_path / "folder" / "up").symlink_to(tmp_path / "folder")
    for name in ("circle", "circle/x", "folder", "folder/a.csv", "folder/tasks.parquet"):
        assert str(tmp_path / "folder") in refusal(tmp_path / name, format=format) or name.startswith(
            "circle"
        )
