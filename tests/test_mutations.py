"""Valid files of every kind that Emu reads, changed: what is read of them is refused by its place, or is a result.

`pytest tests/test_mutations.py --hypothesis-profile=search` tries four times as many.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

from emu.cli import main
from tests.mutations import broken_promise, change_folder, wrong_files
from tests.valid_files import FORMS, JOB_TABLE_OPTIONS, target, write_valid
from workloads import limits
from workloads.catalogue import load_workload
from workloads.errors import InputError

FREE_BYTES = 20_000_000
"""What readers take for the free memory: then a file can state no more than 200,000 tasks, which take little time."""
TIMES = settings().max_examples // 50
TEXTS = ("wfcommons", "kubernetes", "job-table")
"""Formats whose files are not lines of so many fields: of a table of one's own a row without a number is left out."""
WORKLOADS = [kind for kind, form in FORMS.items() if form.separator or kind in TEXTS]
TABLES = ["jobs jobs", "jobs tasks", "dags jobs", "dags stages", "dags edges", "dags tasks", "coflows coflows",
          "coflows flows", "coflows ports"]  # fmt: skip


def command(kind: str, folder: Path) -> list[str]:
    """The command that reads files of a kind."""
    if (folder / "c.toml").exists():
        return [*(("sweep", "--dry-run") if kind == "sweep" else ("validate",)), str(folder / "c.toml")]
    what = "cluster" if kind.startswith("cluster") else "workload"
    options = [f"--set={name}={value}" for name, value in JOB_TABLE_OPTIONS.items()]
    return [
        what,
        "info",
        str(target(folder)),
        *(["--from", "job-table", *options] if kind == "job-table" else []),
    ]


@pytest.mark.parametrize("kind", FORMS)
def test_valid_files_are_read(kind: str, tmp_path: Path) -> None:
    """Or what is made of them would test one error alone."""
    assert main(command(kind, write_valid(kind, tmp_path / "valid"))) == 0


def refusal(path: Path, kind: str, label: str) -> str:
    """Return the one line with which a workload is refused; what is read is an error."""
    options = JOB_TABLE_OPTIONS if kind == "job-table" else {}
    try:
        load_workload(path, format=None if kind in ("jobs", "dags", "coflows") else kind, options=options)
    except InputError as error:
        text = str(error)
    else:
        raise AssertionError(f"was read: {label}")
    assert text.isprintable()  # so it is one line
    assert len(text) < 500 + len(str(path))
    return text


@pytest.mark.parametrize("kind", WORKLOADS)
def test_what_is_wrong_is_refused_with_one_line_that_names_file_and_line(kind: str, tmp_path: Path) -> None:
    form = FORMS[kind]
    folder = write_valid(kind, tmp_path / "w")
    file = folder / next(iter(form.files))
    path = target(folder)
    for wrong in wrong_files(file, form, TIMES * (1 if form.slow else 6)):
        file.write_bytes(wrong.data)
        text = refusal(path, kind, wrong.label)
        if wrong.line is not None:
            assert text.startswith(f"{file}: line {wrong.line}: "), (wrong.label, text)
        else:  # of an empty table its folder says what it lacks
            assert text.startswith(f"{path}"), (wrong.label, text)


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_table_is_refused_with_one_line_that_names_the_file(table: str, tmp_path: Path) -> None:
    kind, name = table.split()
    folder = write_valid(kind, tmp_path / "w")
    file = folder / f"{name}.parquet"
    for wrong in wrong_files(file, FORMS[kind], TIMES * 5):
        file.write_bytes(wrong.data)
        assert refusal(folder, kind, wrong.label).startswith(f"{file}: "), wrong.label


@pytest.mark.parametrize("kind", FORMS)
def test_whatever_is_changed_a_command_ends_or_refuses_it_with_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "free_bytes", lambda: FREE_BYTES)
    valid, folder = write_valid(kind, tmp_path / "valid"), tmp_path / "changed"
    for seed in range(TIMES * (8 if FORMS[kind].slow else 16)):
        shutil.copytree(valid, folder)
        change = change_folder(folder, random.Random(f"{kind} {seed}"))
        capsys.readouterr()
        code = main([*command(kind, folder if any(folder.iterdir()) else valid), "--debug"])
        printed = capsys.readouterr()
        assert (fault := broken_promise(code, printed.out, printed.err)) is None, (change, fault)
        shutil.rmtree(folder)
