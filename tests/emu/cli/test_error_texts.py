"""What commands say of wrong input: exit code 2, one line, and nothing left; the cases are files in `error_texts`.

A line that begins with ``$`` is a command, after what the last line that begins with ``with`` gives; lines that begin
with ``|`` are the file `given.…` that it names; indented lines are parts of the line that it must print, in order.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from python_process import ROOT

from emu.cli import main
from emu.directories.manifest import read_manifest
from tests.emu.conftest import small_workload
from tests.emu.families.dags.test_network_runs import shuffle
from tests.emu.run_commands import MACHINES
from workloads.catalogue import save_workload
from workloads.jobs import make_workload

CASES_OF = Path(__file__).parent / "error_texts"
FILES = {
    # Ports and coflows; id, arrival (ms), mappers, their ports, reducers, port:MB of each.
    "shuffles.txt": "4 2\n1 0 2 0 1 2 2:40.0 3:20.0\n2 30000 1 2 2 0:10.0 1:300.0\n",
    "machines.toml": MACHINES,
    "half.toml": MACHINES.replace("price_per_hour = 6.5\n", "").replace("small", "big"),
    "burst.tr": "0 1 3 3\n0 1 3 3\n",
    "never.py": "class Never:\n    def launch(self, stages, machines, now_s):\n        raise AssertionError\n",
    "shortest.py": (ROOT / "examples" / "shortest_job.py").read_text(),
    "plain.toml": '[[machines]]\ntype = "old"\ncount = 1\n[[machines]]\ntype = "new"\ncount = 1\n',
}


class Case(NamedTuple):
    """A command, the file that it is given, and parts of what it prints."""

    place: str
    argv: list[str]
    file: str
    parts: list[str]


def cases() -> Iterator[Case]:
    """Read all cases."""
    for path in sorted(CASES_OF.glob("*.txt")):
        common, case = "", None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("$"):
                if case is not None:
                    yield case
                case = Case(f"{path.stem}:{number}", shlex.split(f"{common} {line[1:]}"), "", [])
            elif line.startswith("|") and case is not None:
                case = case._replace(file=f"{case.file}{line[2:]}\n")
            elif line.startswith("  ") and case is not None:
                case.parts.append(line.strip())
            elif line.startswith("with"):
                common = line[4:]
            else:
                assert not line or line.startswith("#"), f"{path}: line {number}: {line}"
        assert case is not None
        yield case


CASES = list(cases())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands name."""
    place = tmp_path_factory.mktemp("inputs")
    save_workload(small_workload(), place / "small")
    two = make_workload("two", [0, 5, 10, 20], [1, 2, 1, 1], [4, 1, 3, 2, 9], tenant=["a", "b", "a", "b"])
    save_workload(two, place / "two")
    save_workload(shuffle(), place / "shuffle")
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


@pytest.mark.parametrize("case", CASES, ids=[case.place for case in CASES])
def test_wrong_input_ends_with_2_and_one_line_and_leaves_nothing(
    case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # of the file, which another case writes within a second
    before = sorted(path.name for path in folder.iterdir())
    given = folder / next(
        (f"given.{word[6:].partition(':')[0]}" for word in case.argv if word.startswith("given.")), ""
    )
    if case.file:
        given.write_text(case.file)
    code = main(case.argv)
    if case.file:
        given.unlink()
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if not line.startswith("emu: note: ")]
    assert (code, len(lines), said.out) == (2, 1, ""), said.err
    assert lines[0].startswith("emu: ")
    rest = lines[0].removeprefix("emu: ")
    for part in case.parts:
        _, found, rest = rest.partition(part)
        assert found, f"{case.place}: {part!r} is not in {lines[0]!r}"
    if case.place.startswith("begun:"):
        assert read_manifest(folder / "r")["status"] == "failed"
        shutil.rmtree(folder / "r")
    assert sorted(path.name for path in folder.iterdir()) == before
