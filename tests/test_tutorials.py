"""The commands of the tutorials run, and print what stands below them; each shows a picture that they draw.

`python -m tests.pages docs/tutorials/PAGE.md` writes what the blocks print into a page, and draws its pictures.
"""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

from tests.forking import Forks
from tests.pages import PICTURE, ROOT, Block, blocks, check_block, make_folder

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="runs of thousands of tasks need compiled kernels"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> dict[Path, Path]:
    """The folder of each page, in which its blocks run one after another, in forks of one process."""
    place = tmp_path_factory.mktemp("tutorials")
    return {page: make_folder(place / page.stem, forks.client) for page in PAGES}


@pytest.mark.parametrize("block", [block for page in PAGES for block in blocks(page)], ids=lambda b: b.name)
def test_a_block_prints_what_is_below_it(block: Block, folders: dict[Path, Path]) -> None:
    check_block(block, folders[block.page])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_pictures_that_its_commands_draw(page: Path, folders: dict[Path, Path]) -> None:
    shown = [Path(picture["path"]) for picture in PICTURE.finditer(page.read_text(encoding="utf-8"))]
    assert shown
    for path in shown:
        assert (page.parent / path).exists()
        assert (folders[page] / path.name).exists()  # drawn by the blocks, which have run
