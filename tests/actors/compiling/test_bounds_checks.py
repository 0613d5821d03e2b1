"""The cases differ from each other, and have the same bits as plain Python, where an index past the end is an error.

In a file of its own, and begun early: plain Python is slow, and others test meanwhile.
"""

from __future__ import annotations

import json
from functools import cache

import pytest
from emulations import DIGESTS, MODERATE, TWINS, differing, digests
from python_process import run_python

from actors.kernel.compiled import config

# Nothing may be compiled in that process, and an index past the end must be an error: otherwise the run shows nothing.
CHECKED = """
from actors.kernel.cost import take
from actors.kernel.queue import CURSOR, MESSAGE, copy_message
from actors.kernel.records import records
assert type(take).__name__ == "function"
try:
    copy_message(records(CURSOR, 1), records(MESSAGE, 3), 3)
    raise SystemExit("bounds are not checked")
except IndexError:
    pass
"""
# Arrays that begin as small as they may be, so that they must grow often.
GROW = """
from actors.schedulers.jobs import build
from actors.kernel.queue import make_queue
from actors.kernel.world import make_entries
build.make_queue = lambda seq, room: make_queue(seq, room, 2)
build.make_entries = lambda: make_entries(1)
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compares with compiled code")
def test_as_plain_python_with_bounds_checks_while_arrays_grow() -> None:
    plain = json.loads(run_python(CHECKED + GROW + DIGESTS.format(MODERATE), NUMBA_DISABLE_JIT="1"))
    assert not differing(compiled(), plain)


def test_cases_differ() -> None:
    # A digest that cannot tell cases apart would prove nothing: seeds, networks and policies must show.
    seen: dict[str, set[str]] = {}
    for name, value in compiled().items():
        seen.setdefault(name.split()[0], set()).add(value)
    for scheduler, values in seen.items():
        assert len(values) >= (2 if scheduler in TWINS else 3), (
            scheduler
        )  # a twin's others are its scheduler's
    assert not set.intersection(*seen.values())


@cache
def compiled() -> dict[str, str]:
    return digests(MODERATE)
