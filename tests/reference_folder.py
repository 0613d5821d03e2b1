"""Where the traces and reference results lie: the folder named by EMU_SHARED, or `shared` beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).resolve().parents[2] / "shared")


def reference_file(name: str) -> Path:
    """The path of a file in that folder; the test is skipped where there is none."""
    import pytest

    path = SHARED / name
    if not path.exists():
        pytest.skip(f"no {name} in {SHARED}; name the folder with EMU_SHARED")
    return path
