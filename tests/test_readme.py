"""The commands and programs in README.md run, and print what stands below them.

A block after the comment `<!-- set-up -->` is skipped: it makes an environment. All others run, from the top down,
in one new folder. What a block prints on standard output is compared with the `text` block below it, all but
how long the engine took. `emu run`, `emu compare` and `python run.py` are hosted in this process rather than by Ray,
which gives the same results and saves the start of Ray; the first Python block is hosted by Ray.

`python tests/test_readme.py` writes what the blocks print into README.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numba
import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# A mark, a fenced block, and the block of output below it.
BLOCK = re.compile(
    r"(?P<mark><!-- set-up -->\n)?```(?P<kind>bash|python)\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?",
    re.DOTALL,
)
ENGINE_TIME = re.compile(r"events in \S+ \S+ \(\S+ tasks/s\)")

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="full-size runs need compiled kernels"),
]


class Block(NamedTuple):
    """A fenced block of README.md."""

    line: int
    kind: str
    code: str
    output: str | None
    place: tuple[int, int]  # of the output in the text

    @property
    def name(self) -> str:
        return f"line {self.line}, {self.kind}"


def blocks() -> list[Block]:
    text = README.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, m.start("code")) + 1, m["kind"], m["code"], m["output"], m.span("output"))
        for m in BLOCK.finditer(text)
        if not m["mark"]
    ]


def make_commands(folder: Path) -> None:
    """Write the commands `emu` and `python`, as an environment with Emu installed has them."""
    folder.mkdir()
    start = f'"{sys.executable}" "{ROOT / "run.py"}"'
    (folder / "emu").write_text(
        f'#!/bin/sh\ncase "$1" in run|compare|"") exec {start} "$@" --in-process;; esac\nexec {start} "$@"\n'
    )
    (folder / "python").write_text(
        f'#!/bin/sh\nif [ "$1" = run.py ]; then shift; exec emu "$@"; fi\nexec "{sys.executable}" "$@"\n'
    )
    for file in folder.iterdir():
        file.chmod(0o755)


def run_block(block: Block, folder: Path) -> str:
    """Run a block in a folder; returns what it printed."""
    argv = ["bash", "-euo", "pipefail", "-c", block.code]
    if block.kind == "python":
        argv = [sys.executable, "-c", block.code]
    environment = {
        **os.environ,
        "PATH": f"{folder.parent / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, f"README.md, {block.name}:\n{done.stderr}"
    return done.stdout


def comparable(printed: str) -> str:
    """What must be equal: all but how long the engine took."""
    return ENGINE_TIME.sub("events in …", "\n".join(line.rstrip() for line in printed.splitlines()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one folder in which the blocks run, one after another."""
    place = tmp_path_factory.mktemp("readme")
    make_commands(place / "bin")
    (place / "work").mkdir()
    return place / "work"


@pytest.mark.parametrize("block", blocks(), ids=lambda b: b.name)
def test_a_block_prints_what_is_below_it(block: Block, folder: Path) -> None:
    printed = run_block(block, folder)
    if block.output is None:
        assert printed == ""
    else:
        assert comparable(printed) == comparable(block.output), "run: python tests/test_readme.py"


def test_the_set_up_blocks_are_the_two_commands() -> None:
    marked = [m["code"].strip() for m in BLOCK.finditer(README.read_text(encoding="utf-8")) if m["mark"]]
    assert [code.rpartition("&& ")[2] for code in marked] == ["python run.py", "pytest"]


def write_outputs() -> None:
    """Put what the blocks print into README.md."""
    with tempfile.TemporaryDirectory() as place:
        make_commands(Path(place) / "bin")
        work = Path(place) / "work"
        work.mkdir()
        printed = [(block, run_block(block, work)) for block in blocks()]
    text = README.read_text(encoding="utf-8")
    for block, output in reversed(printed):
        if block.output is not None and comparable(output) != comparable(block.output):
            lines = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
            text = text[: block.place[0]] + lines + text[block.place[1] :]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_outputs()
