"""A kernel on the disk is found by what its function uses: a change of anything else compiles nothing again."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from python_process import run_python

from actors.compiling import fingerprint as module
from actors.compiling.fingerprint import fingerprint
from actors.schedulers.registry import built_in_schedulers

pytestmark = pytest.mark.compiled

CALLED = """
import numpy as np
from actors.kernel.compiled import compiled, inlined

LIMIT = 3
TABLE = np.array([1, 2, 3])
PAIR = (np.int64(4), (5, 6.5))

@compiled
def leaf(x, least=2):
    return max(x, least) + LIMIT

@compiled
def even(n):
    return n == 0 or odd(n - 1)

@compiled
def odd(n):
    return n != 0 and even(n - 1)

@compiled
def unused(x):
    return x
"""
CALLER = """
import called
from actors.kernel.compiled import entry
from called import even

@entry
def loop(x):
    return called.leaf(x) + called.TABLE[0] + called.PAIR[1][0] + even(x)

def make(held):
    @entry
    def closure(x):
        return x + held
    return closure

of_two = make(2)
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that imports the two modules again, with replaced text, and returns the second."""

    def fresh(name: str, text: str, *replaced: tuple[str, str]) -> Any:
        for old, new in replaced:
            assert old in text or name == "caller"
            text = text.replace(old, new)
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
        assert spec is not None
        made = importlib.util.module_from_spec(spec)
        made.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(text, path, "exec"), vars(made))
        return made

    def both(*replaced: tuple[str, str]) -> Any:
        module._module_hash.cache_clear()
        fresh("called", CALLED, *replaced)
        return fresh("caller", CALLER)

    return both


def of(function: Any) -> str:
    return fingerprint(getattr(function, "py_func", function))


def test_the_place_in_a_file_and_what_is_not_called_do_not_count(load: Callable[..., Any]) -> None:
    before = of(load().loop)
    assert (
        of(load(("LIMIT = 3", "# a comment\n\nLIMIT = 3"), ("return x\n", "return x + 1\n")).loop) == before
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("max(x, least)", "min(x, least)"),
        ("least=2", "least=3"),
        ("[1, 2, 3]", "[1, 2, 4]"),
        ("(5, 6.5)", "(5, 6.25)"),
        ("np.int64(4)", "np.uint64(4)"),
        ("even(n - 1)", "even(n - 2)"),
        ("@compiled\ndef leaf", "@inlined\ndef leaf"),
    ],
)
def test_whatever_a_function_uses_counts(load: Callable[..., Any], old: str, new: str) -> None:
    before = of(load().loop)
    assert of(load((old, new)).loop) != before


def test_the_values_of_a_closure_count(load: Callable[..., Any]) -> None:
    made = load()
    assert of(made.of_two) == of(made.make(2))
    assert of(made.of_two) != of(made.make(3))


def test_functions_that_call_each_other_have_different_ones(load: Callable[..., Any]) -> None:
    load()
    called = sys.modules["called"]
    assert of(called.even) != of(called.odd)


def test_all_processes_agree_on_those_of_all_loops() -> None:
    code = """
from actors.compiling.fingerprint import fingerprint
from actors.schedulers.registry import built_in_schedulers
for scheduler in built_in_schedulers():
    for loop in scheduler.loops:
        print(fingerprint(getattr(loop, "py_func", loop)))
"""
    here = [of(loop) for scheduler in built_in_schedulers() for loop in scheduler.loops]
    assert run_python(code, PYTHONHASHSEED="7").split() == here
