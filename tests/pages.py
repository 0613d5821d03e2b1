"""Pages whose blocks run: fenced blocks of commands or Python, each with what it prints below it.

A block after the comment `<!-- set-up -->` is skipped: it makes an environment. All others run, from the top down,
in one new folder. What a block prints on standard output is compared with the `text` block below it, all but
how long the engine took. `emu run`, `emu compare` and `python run.py` are hosted in this process rather than by Ray,
which gives the same results and saves the start of Ray; Python blocks run as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# A mark, a fenced block, and the block of output below it.
BLOCK = re.compile(
    r"(?P<mark><!-- set-up -->\n)?```(?P<kind>bash|python)\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?",
    re.DOTALL,
)
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)]+\.svg)\)")
ENGINE_TIME = re.compile(r"events in \S+ \S+ \(\S+ tasks/s\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    code: str
    output: str | None
    place: tuple[int, int]  # of the output in the text

    @property
    def name(self) -> str:
        return f"{self.page.stem}, line {self.line}, {self.kind}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, m.start("code")) + 1,
            m["kind"],
            m["code"],
            m["output"],
            m.span("output"),
        )
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
        f'#!/bin/sh\ncase "$1" in run.py) shift; exec emu "$@";; esac\nexec "{sys.executable}" "$@"\n'
    )
    for file in folder.iterdir():
        file.chmod(0o755)


def run_block(block: Block, folder: Path) -> str:
    """Run a block in a folder; returns what it printed."""
    argv = ["bash", "-euo", "pipefail", "-c", block.code]
    if block.kind == "python":
        argv = [str(folder.parent / "bin" / "python"), "-c", block.code]
    environment = {
        **os.environ,
        "PATH": f"{folder.parent / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, f"{block.name}:\n{done.stderr}"
    return done.stdout


def comparable(printed: str) -> str:
    """What must be equal: all but how long the engine took."""
    return ENGINE_TIME.sub("events in …", "\n".join(line.rstrip() for line in printed.splitlines()))


def make_folder(place: Path) -> Path:
    """Return a new folder for the blocks of a page, beside the commands that they call."""
    place.mkdir(exist_ok=True)
    make_commands(place / "bin")
    (place / "work").mkdir()
    return place / "work"


def check_block(block: Block, folder: Path) -> None:
    """Run a block, and compare what it prints with what the page has below it."""
    printed = run_block(block, folder)
    if block.output is None:
        assert printed == ""
    else:
        assert comparable(printed) == comparable(block.output), f"run: python -m tests.pages {block.page}"


def write_outputs(page: Path) -> None:
    """Put what the blocks of a page print into it, and the pictures that they draw into its folder of pictures."""
    with tempfile.TemporaryDirectory() as place:
        work = make_folder(Path(place))
        printed = [(block, run_block(block, work)) for block in blocks(page)]
        text = page.read_text(encoding="utf-8")
        for picture in PICTURE.finditer(text):
            drawn = work / Path(picture["path"]).name
            if drawn.exists():
                shutil.copy(drawn, page.parent / picture["path"])
    for block, output in reversed(printed):
        if block.output is not None and comparable(output) != comparable(block.output):
            lines = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
            text = text[: block.place[0]] + lines + text[block.place[1] :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        write_outputs(Path(given).resolve())
