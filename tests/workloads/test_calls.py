"""Every call of tests/workloads/calls gives what is written there: `calls.py` says how."""

from __future__ import annotations

import pytest

from tests.workloads.calls import FILES, names, outcome, parse

CALLS = [(path, call, want) for path in FILES for call, want in parse(path)]


@pytest.mark.parametrize(
    ("path", "call", "want"), CALLS, ids=[f"{p.stem}: {call[:80]}" for p, call, _ in CALLS]
)
def test_a_call_gives_what_is_written(path, call, want):
    assert want, call
    assert outcome(call, names(path)) == want
