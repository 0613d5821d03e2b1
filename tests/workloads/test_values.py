"""The one parser of values: what every kind takes, wherever it is given."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.scheduler import Parameter
from emu.configuration.config import layer_from_set, resolve
from workloads.errors import InputError
from workloads.options import read_options
from workloads.transform.registry import Option
from workloads.values import KINDS, read_value


def _option(
    at: int = 3, share: float = 0.5, fast: bool = False, wait_s: float = 1.0, size_bytes: int = 1
) -> None:
    """Options of a generator, by the kinds of their defaults and names."""


READERS = {
    "flag": ("in_process", "fast"),
    "integer": ("nodes", "at"),
    "number": ("dilation", "share"),
    "duration": ("network.delay", "wait_s"),
}
"""By kind: a key and an option of a generator."""


def _everywhere(kind: str, text: str) -> list[Any]:
    """What a text is as a key, a parameter, and an option of a generator and of a transformation."""
    key, option = READERS[kind]
    return [
        resolve([layer_from_set([f"{key}={text}"])])[key],
        Parameter("p", None, kind, "").parse(text, "eagle"),
        read_options("it", _option, {option: text})[option],
        Option("p", kind, "").parse(text),
    ]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *[("flag", text, True) for text in ("true", "yes", "on", "1", "True", " YES ")],
        *[("flag", text, False) for text in ("false", "no", "off", "0", "Off")],
        ("integer", "15,000", 15000),
        ("integer", "1e3", 1000),
        ("integer", "7.0", 7),
        ("number", "150%", 1.5),
        ("number", " 2.5 ", 2.5),
        ("duration", "10 ms", 0.01),
    ],
)
def test_a_text_means_the_same_wherever_it_is_given(kind: str, text: str, value: Any) -> None:
    assert _everywhere(kind, text) == [value] * 4


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("flag", "2"), ("flag", "maybe"), ("flag", ""), ("integer", "1.5"), ("integer", "many"), ("integer", "9" * 400),
        ("integer", "nan"), ("integer", "inf"), ("number", "inf"), ("number", "nan"), ("number", "1e400"),
        ("number", "much"), ("duration", "-1 s"), ("duration", "soon"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_wrong_wherever_it_is_given(kind: str, text: str) -> None:
    key, option = READERS[kind]
    for read in (
        lambda: resolve([layer_from_set([f"{key}={text}"])]),
        lambda: Parameter("p", None, kind, "").parse(text, "eagle"),
        lambda: read_options("it", _option, {option: text}),
        lambda: Option("p", kind, "").parse(text),
    ):
        with pytest.raises(InputError, match=r"is not a|has more than 64 bits|is neither true nor false"):
            read()


@given(st.sampled_from(sorted(KINDS)), st.text() | st.floats() | st.integers() | st.none() | st.booleans())
def test_whatever_is_given_is_a_value_or_an_error(kind: str, value: Any) -> None:
    found: Any = 0
    with suppress(InputError):
        found = read_value(kind, value, "--x")
    assert kind == "any" or isinstance(found, str | int | float)


def test_nothing_else_reads_text() -> None:
    """No other module has a table of words for true and false, or a parser of numbers of its own."""
    root = Path(__file__).resolve().parents[2]
    for folder in ("actors", "emu", "workloads"):
        for path in (root / folder).rglob("*.py"):
            if path.name != "values.py":
                assert '"off"' not in path.read_text(encoding="utf-8"), path
