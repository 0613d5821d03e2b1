"""Every case of the readers: `tests/workloads/reading_cases.py` says how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workloads.reading_cases import Row, files_of_cases, found, parse

ROWS = {
    f"{file.stem}: {row.title}": row
    for file in files_of_cases()
    for block in parse(file.read_text(encoding="utf-8"))
    for row in block.rows
}


@pytest.mark.parametrize("name", ROWS)
def test_files_give_the_workload_or_the_error(tmp_path: Path, name: str) -> None:
    row: Row = ROWS[name]
    assert found(row, tmp_path) == row.want


def test_titles_differ_and_none_is_lost() -> None:
    blocks = [block for file in files_of_cases() for block in parse(file.read_text(encoding="utf-8"))]
    assert all(block.rows for block in blocks)
    assert len(ROWS) == sum(len(block.rows) for block in blocks)
