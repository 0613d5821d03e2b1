"""What the pages say of the code holds: paths, parameters, public names, and the commands that are named.

`python -m tests.test_docs` writes the sections of docs/schedulers.md that are made from the policies' docstrings,
sources and parameters.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import emu
from actors.scheduler import Scheduler
from actors.schedulers.registry import built_in_schedulers
from emu.cli.parser import build_parser

ROOT = Path(__file__).parents[1]
SCHEDULERS = ROOT / "docs" / "schedulers.md"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)

page = pytest.mark.parametrize("path", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


@page
def test_files_that_are_named_exist(path: Path) -> None:
    named = re.findall(
        r"(?<![\w./-])((?:actors|benchmarks|claims|clusters|docs|emu|examples|tests|workloads)/[\w./-]*\w)",
        path.read_text(encoding="utf-8"),
    )
    missing = sorted(
        {name for name in named if not (ROOT / name).exists()} - {"actors/schedulers/jobs/my_policy.py"}
    )
    assert not missing


@page
def test_modules_and_commands_that_are_named_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", text):
        if module != "venv":
            assert importlib.util.find_spec(module) is not None, module
    commands = next(a.choices for a in build_parser()._actions if a.dest == "command")
    for command in re.findall(r"(?:^|`)emu ([a-z]+)", text, re.MULTILINE):
        assert command in commands, command


def shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def parameter_table(scheduler: Scheduler) -> str:
    """The parameters of a scheduler as a Markdown table."""
    if not scheduler.parameters:
        return "No parameters."
    lines = ["| parameter | default | value | meaning |", "|---|---|---|---|"]
    for p in scheduler.parameters:
        if p.choices:
            value = ", ".join(f"`{choice}`" for choice in p.choices)
        elif p.kind == "flag":
            value = "`true`, `false`"
        else:
            unit = " s" if p.kind == "duration" else ""
            value = f"{p.low:,g} to {p.high:,g}{unit}" if p.low is not None and p.high is not None else p.kind
        lines.append(f"| `{p.name}` | `{shown(p.default)}` | {value} | {p.about} |")
    return "\n".join(lines)


def description(scheduler: Scheduler) -> str:
    """The paragraphs of the policy's docstring that describe this scheduler.

    Several schedulers may share a docstring. A paragraph that begins with the name of one of them, as in
    "`eagle-c` is", belongs to that one; all other paragraphs belong to those without such a paragraph.
    """
    about: dict[str, list[str]] = {}
    for paragraph in inspect.cleandoc(scheduler.doc).split("\n\n"):
        begin = re.match(r"`([\w-]+)` ", paragraph)
        about.setdefault(begin[1] if begin else "", []).append(paragraph)
    return "\n\n".join(about.get(scheduler.name) or about[""])


def section(name: str) -> str:
    """The generated part of a scheduler's section: description, source and parameters."""
    scheduler = next(s for s in built_in_schedulers() if s.name == name)
    source = "none" if scheduler.paper == "-" else scheduler.paper
    first = next(s for s in built_in_schedulers() if s.doc == scheduler.doc)
    same = first is not scheduler and first.parameters == scheduler.parameters
    table = f"Parameters: those of [`{first.name}`](#{first.name})." if same else parameter_table(scheduler)
    parts = [description(scheduler), f"Source: {source}.", table]
    return "\n\n".join(parts) + "\n"


SECTION = re.compile(r"<!-- policy: (?P<name>[\w-]+) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)


def test_every_scheduler_has_the_section_that_its_code_states() -> None:
    text = SCHEDULERS.read_text(encoding="utf-8")
    sections = {m["name"]: m["text"] for m in SECTION.finditer(text)}
    assert list(sections) == [s.name for s in built_in_schedulers()]
    for scheduler in built_in_schedulers():
        assert sections[scheduler.name] == section(scheduler.name), "run: python -m tests.test_docs"
        assert f"\n## {scheduler.name}\n\n<!-- policy: {scheduler.name} -->\n" in text
        assert scheduler.paper == "-" or "Deviations" in sections[scheduler.name], scheduler.name


def test_global_views_are_named_on_the_page() -> None:
    text = SCHEDULERS.read_text(encoding="utf-8")
    for scheduler in built_in_schedulers():
        section = text.split(f"\n## {scheduler.name}\n")[1].split("\n## ")[0]
        assert bool(scheduler.global_view) == ("global" in section), scheduler.name


def test_the_picture_is_small_and_has_a_ground_of_its_own() -> None:
    picture = ROOT / "docs" / "img" / "short-jobs.svg"
    assert f"({picture.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert picture.stat().st_size < 200_000
    assert "fill: #ffffff" in picture.read_text(encoding="utf-8")


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto\w+:: (?:emu\.)?(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted([*emu.__all__, "testing"])


def test_ci_runs_the_test_command_of_the_readme_and_builds_the_site() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^pytest\b", script, re.MULTILINE)
    assert re.search(r"^sphinx-build .*-W ", script, re.MULTILINE)  # which checks the links
    assert "pip install -e '.[dev]' && pytest" in (ROOT / "README.md").read_text(encoding="utf-8")


def write_sections() -> None:
    """Write the generated parts of docs/schedulers.md."""
    text = SCHEDULERS.read_text(encoding="utf-8")
    made = SECTION.sub(lambda m: f"<!-- policy: {m['name']} -->\n{section(m['name'])}<!-- end -->", text)
    SCHEDULERS.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    write_sections()
