"""Commands one after another in a new folder, and what each prints and writes; the files in `transcripts`.

A transcript begins with ``== what it shows``. In it ``file NAME`` and lines after ``|`` make a file. ``$ words`` is a
command, which must end with 0, or with the number of ``code N``; indented lines are parts of its output, in order,
lines after ``!`` parts of what it says on standard error; ``not`` and ``not!`` are parts that these have not, and
``json PATH = VALUE`` is a value of the JSON that it prints. ``has PATH: TEXT`` is a part of a file; ``there``, ``gone``
and ``same`` name files that must be there, or not, or have the same bytes.
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emu.conftest import small_workload
from workloads.catalogue import save_workload
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.dags import make_dag_workload
from workloads.jobs import make_workload

FILES = Path(__file__).parent / "transcripts"


def transcripts() -> Iterator[Any]:
    """Yield the lines of each transcript."""
    for path in sorted(FILES.glob("*.txt")):
        name, lines = "", []
        for line in [*path.read_text(encoding="utf-8").splitlines(), "== "]:
            if line.startswith("== "):
                if name:
                    yield pytest.param(lines, id=f"{path.stem}: {name}")
                name, lines = line[3:], []
            elif line and not line.startswith("#"):
                lines.append(line)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workloads that transcripts name."""
    place = tmp_path_factory.mktemp("inputs")
    save_workload(small_workload(), place / "small")
    jobs = make_workload("jobs", [0, 1, 2, 3], [1, 2, 1, 1], [4, 1, 3, 2, 9])
    sets = [parse_constraint_set("cores >= 16"), parse_constraint_set("cores >= 32")]
    save_workload(with_constraints(jobs, sets, np.array([-1, 0, 1, 0])), place / "jobs")
    save_workload(make_workload("even", [0, 100], [1, 1], [4, 8]), place / "even")
    save_workload(make_workload("wide", [0, 1, 2], [1, 3, 2], [4.0] * 6), place / "wide")
    save_workload(make_dag_workload("dag", [0.0], [2], [1, 1], [3.0, 4.0], [[0, 0, 1]]), place / "dag")
    two = make_workload("two", [0, 5, 10, 20], [1, 2, 1, 1], [4, 1, 3, 2, 9], tenant=["a", "b", "a", "b"])
    save_workload(two, place / "two")
    (place / "shuffles.txt").write_text("3 2\n1 0 2 0 1 1 2:4.0\n2 1500 1 2 2 0:1.0 1:3.0\n")
    return place


@pytest.mark.parametrize("lines", [*transcripts()])
def test_commands_print_and_write_what_the_transcript_has(
    lines: list[str], inputs: Path, emu: Callable[..., Any], tmp_path: Path
) -> None:
    for path in inputs.iterdir():
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, tmp_path / path.name)
    at = 0
    while at < len(lines):
        what, _, rest = lines[at].partition(" ")
        own = at + 1
        while own < len(lines) and lines[own].split(" ")[0] in ("", "|", "!", "code", "not", "not!", "json"):
            own += 1
        if what == "$":
            check(emu(*shlex.split(rest)), lines[at:own])
        elif what == "file":
            Path(rest).parent.mkdir(parents=True, exist_ok=True)
            Path(rest).write_text("".join(f"{line[2:]}\n" for line in lines[at + 1 : own]))
        elif what == "has":
            path, _, text = rest.partition(": ")
            assert text in Path(path).read_text(), lines[at]
        elif what in ("there", "gone"):
            assert all(Path(name).exists() == (what == "there") for name in rest.split()), lines[at]
        else:
            assert what == "same", lines[at]
            assert len({Path(name).read_bytes() for name in rest.split()}) == 1, lines[at]
        at = own


def check(ended: Any, lines: list[str]) -> None:
    """Compare how a command ended with what must be said of it."""
    code = next((line for line in lines if line.startswith("code ")), "code 0")
    assert f"code {ended.code}" == code, (lines[0], ended.err)
    assert "Traceback" not in ended.err
    if ended.code:
        assert len([line for line in ended.err.splitlines() if "emu: note: " not in line]) <= 1, ended.err
    out, err = (" ".join(text.split()) for text in (ended.out, ended.err))
    for line in lines[1:]:
        what, _, rest = line.partition(" ")
        words = " ".join(rest.split())
        if what == "json":
            path, _, value = rest.partition(" = ")
            found = json.loads(ended.out)
            for part in path.split("/"):
                found = found[int(part) if isinstance(found, list) else part]
            other = json.loads(value)
            alike = found == other or (isinstance(other, float) and math.isclose(found, other, rel_tol=1e-6))
            assert alike, (lines[0], line, found)
        elif what == "!":
            assert words in err, (lines[0], words, err)
        elif what == "not!":
            assert words not in err, (lines[0], words)
        elif what == "not":
            assert words not in out, (lines[0], words)
        elif what != "code":
            _, found, out = out.partition(words)
            assert found or not words, (lines[0], words, ended.out)
