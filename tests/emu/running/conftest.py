"""What tests of runs that end early share."""

from __future__ import annotations

import itertools

import pytest

from actors.hosting import partition, runs
from actors.hosting.checkpoint import Checkpoints


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint after every 15 decisions of a user's scheduler in this process, however long they take."""
    looks = itertools.count(1)
    monkeypatch.setattr(partition, "ASKING_S", 0.0)
    monkeypatch.setattr(runs, "SLICE_S", 0.0)
    monkeypatch.setattr(Checkpoints, "due", lambda _: next(looks) % 15 == 0)
