"""The commands and programs in README.md run, and print what stands below them (`tests.pages`).

`python -m tests.pages README.md` writes what the blocks print into README.md.
"""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

from tests.forking import Forks
from tests.pages import BLOCK, ROOT, Block, blocks, check_block, make_folder

README = ROOT / "README.md"
pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="full-size runs need compiled kernels"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """The one folder in which the blocks run, one after another, in forks of one process."""
    return make_folder(tmp_path_factory.mktemp("readme"), forks.client)


@pytest.mark.parametrize("block", blocks(README), ids=lambda b: b.name)
def test_a_block_prints_what_is_below_it(block: Block, folder: Path) -> None:
    check_block(block, folder)


def test_the_set_up_blocks_are_the_two_commands() -> None:
    marked = [m["code"].strip() for m in BLOCK.finditer(README.read_text(encoding="utf-8")) if m["mark"]]
    assert [code.rpartition("&& ")[2] for code in marked] == ["python run.py", "pytest"]
