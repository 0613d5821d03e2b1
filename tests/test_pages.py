"""What README and the pages of docs print runs as printed (`tests.printed_commands`).

The blocks of README, the tour and the tutorials run, and print what stands below them (`tests.pages`).
`python -m tests.pages PAGE…` writes what the blocks print into the pages, and draws their pictures.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emu.configuration.keys import BY_NAME
from tests.pages import BLOCK, PICTURE, ROOT, Block, blocks, check_block, make_folder
from tests.printed_commands import (
    BLOCKS_RUN,
    FENCED,
    NOT_RUN,
    PAGES,
    SLOW,
    Printed,
    check,
    printed_on,
    run,
    shown_inputs,
)
from workloads.errors import InputError

README, TOUR = ROOT / "README.md", ROOT / "docs" / "tour.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
COMMANDS = "commands of pages, as processes"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """The folder of each page, in which its blocks run one after another."""
    place = tmp_path_factory.mktemp("pages")
    return {page: make_folder(place / page.stem) for page in (README, TOUR, *TUTORIALS)}


def as_cases(page: Path) -> list[Any]:
    """The blocks of a page, each in processes of its own; those of the tour start Ray."""
    marks = [pytest.mark.slow(COMMANDS), pytest.mark.compiled, *([pytest.mark.ray] if page == TOUR else [])]
    return [pytest.param(block, marks=marks, id=block.name) for block in blocks(page)]


@pytest.mark.parametrize("block", [case for page in (README, TOUR, *TUTORIALS) for case in as_cases(page)])
def test_a_block_prints_what_is_below_it(block: Block, folders: dict[Path, Path]) -> None:
    check_block(block, folders[block.page])


@pytest.mark.slow(COMMANDS)
@pytest.mark.compiled
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_pictures_that_its_commands_draw(page: Path, folders: dict[Path, Path]) -> None:
    shown = [Path(picture["path"]) for picture in PICTURE.finditer(page.read_text(encoding="utf-8"))]
    assert shown
    for path in shown:
        assert (page.parent / path).exists()
        assert (folders[page] / path.name).exists()  # drawn by the blocks, which have run


def test_the_set_up_blocks_of_readme_are_its_two_commands() -> None:
    marked = [m["code"].strip() for m in BLOCK.finditer(README.read_text(encoding="utf-8")) if m["mark"]]
    assert [code.rpartition("&& ")[2] for code in marked] == ["python run.py", "pytest"]


def test_readme_is_short_and_begins_with_the_picture_and_the_commands() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert text.index(".svg)") < text.index("<!-- set-up -->") < text.index("\n## ")


PRINTED = {page: printed_on(page) for page in PAGES}


def to_run(page: Path) -> list[Printed]:
    """The commands and calls of a page that run here, each once."""
    own = [one for one in PRINTED[page] if one.is_whole and not one.not_run]
    done = {one.text for one in own if one.is_run_with_its_block}
    return list({one.text: one for one in own if one.text not in done}.values())


def pages_that_run() -> list[Any]:
    return [
        pytest.param(
            page, marks=[pytest.mark.slow(SLOW[name]), pytest.mark.compiled] if name in SLOW else [], id=name
        )
        for page in PAGES
        if to_run(page)
        for name in [page.relative_to(ROOT).as_posix()]
    ]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new folder, the current one, with the inputs that pages show."""
    monkeypatch.chdir(tmp_path)
    for name, text in shown_inputs().items():
        Path(name).write_text(text, encoding="utf-8")
    Path("examples").symlink_to(ROOT / "examples")


@pytest.mark.parametrize("page", pages_that_run())
def test_what_a_page_prints_runs_as_printed(
    page: Path, inputs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are hosted in this process, which changes no result and starts no Ray."""
    monkeypatch.setitem(BY_NAME, "in_process", replace(BY_NAME["in_process"], default=True))
    for one in to_run(page):
        run(one)


@pytest.mark.slow(COMMANDS)
@pytest.mark.ray
def test_what_is_printed_on_own_logs_runs_on_ray(inputs: None) -> None:
    from actors.hosting.ray_session import close

    try:
        for one in to_run(ROOT / "docs" / "own-logs.md"):
            run(one)
    finally:
        close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_options_keys_and_schedulers_of_what_a_page_prints_are_known(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for one in PRINTED[page]:
        try:
            check(one)
        except InputError as error:
            raise AssertionError(f"{one.name}: {error}") from None


def test_all_that_is_not_run_is_named_and_all_that_is_named_is_printed() -> None:
    everything = [one for own in PRINTED.values() for one in own]
    for one in everything:
        assert one.is_whole or one.not_run or one.kind in ("text", "call"), f"{one.name}: name it in NOT_RUN"
    for place, begin in NOT_RUN:
        assert any(place in ("", one.place) and one.text.lstrip().startswith(begin) for one in everything), (
            begin
        )
    assert {one.place for one in everything if not one.not_run} >= SLOW.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_line_of_a_block_of_commands_is_taken(page: Path) -> None:
    """A block of a language, or a program, that no test knows, would be neither run nor named."""
    own = PRINTED[page]
    for fence in FENCED.finditer(page.read_text(encoding="utf-8")):
        assert fence["kind"] in ("bash", "python", "toml", "text", "{eval-rst}", ""), fence["kind"]
        if fence["kind"] != "bash" or page.relative_to(ROOT).as_posix() in BLOCKS_RUN:
            continue
        for line in fence["code"].replace("\\\n", "").splitlines():
            assert not line.strip() or any(line == one.text for one in own), line
