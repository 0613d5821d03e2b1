"""The blocks of README, the tour and the tutorials run, and print what stands below them (`tests.pages`).

`python -m tests.pages PAGE…` writes what the blocks print into the pages, and draws their pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import pytest

from tests.pages import BLOCK, PICTURE, ROOT, Block, blocks, check_block, make_folder

README, TOUR = ROOT / "README.md", ROOT / "docs" / "tour.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="runs of thousands of tasks need compiled kernels"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """The folder of each page, in which its blocks run one after another."""
    place = tmp_path_factory.mktemp("pages")
    return {page: make_folder(place / page.stem) for page in (README, TOUR, *TUTORIALS)}


def as_cases(page: Path) -> list[Any]:
    """The blocks of a page; those of the tour start Ray."""
    marks = [pytest.mark.ray] if page == TOUR else []
    return [pytest.param(block, marks=marks, id=block.name) for block in blocks(page)]


@pytest.mark.parametrize("block", [case for page in (README, TOUR, *TUTORIALS) for case in as_cases(page)])
def test_a_block_prints_what_is_below_it(block: Block, folders: dict[Path, Path]) -> None:
    check_block(block, folders[block.page])


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
