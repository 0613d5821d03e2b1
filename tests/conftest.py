"""What all tests share: one Ray session, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# No test judges by the clock: the first example of a property may compile a kernel.
settings.register_profile("emu", deadline=None)
settings.load_profile("emu")


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Ray on this machine, for all tests that want it."""
    from actors.hosting.ray_session import close, connect

    connect()
    yield
    close()
