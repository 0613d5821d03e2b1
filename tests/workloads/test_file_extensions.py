"""Names of what is written: none says that it is another kind of file."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.errors import InputError
from workloads.file_extensions import FOLDER, TEXT, check_extension


@pytest.mark.parametrize("name", ["out", "trace-0.5", "clusterdata-2011.2", ".csv", "a.b.team"])
def test_any_other_name_is_a_folders(name: str) -> None:
    check_extension(name, "a folder", FOLDER)


@pytest.mark.parametrize(
    ("name", "want"),
    [("out.csv", "out"), ("a/Out.JSON", "a/Out"), ("v1.5.parquet", "v1.5"), ("o.csv.gz", "o")],
)
def test_the_name_of_a_file_is_none_of_a_new_folder(name: str, want: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"a folder; its name cannot end in .*: want {tmp_path / want}$"):
        check_extension(tmp_path / name, "a folder", FOLDER)
    (tmp_path / name).mkdir(parents=True)
    check_extension(tmp_path / name, "a folder", FOLDER)


def test_files_have_the_endings_of_what_is_in_them() -> None:
    for name in ("o", "o.txt", "o.dat.gz", "o.tr", "o.tr.gz", "o.0", "o.coflows"):
        check_extension(name, "text", (".tr", ".tr.gz", *TEXT))
    for name in ("o.csv", "o.txt.zip", "o.json.gz", "o.parquet", "o.zip", "o.xlsx"):
        with pytest.raises(InputError, match=r"its name cannot end in .*: want o\.tr$"):
            check_extension(name, "text", (".tr", ".tr.gz", *TEXT))
