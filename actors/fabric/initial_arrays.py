"""The arrays of a named tuple: each field declares how long its array is, and what the array holds at time 0.

``level: np.ndarray = per("port", NONE)`` declares an array with an element for each port, and `at_start` makes it.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple, TypeVar

import numpy as np

from actors.fabric.ports import Fabric, ingress_lines

T = TypeVar("T")


class Declared(NamedTuple):
    """An array that `at_start` makes."""

    what: str
    value: Any
    times: int


def per(what: str, value: Any = 0, times: int = 1) -> Any:
    """Declare an array with `times` elements for each of `what`.

    Args:
        what: a key of `sizes` in `at_start`; "run": the array has `times` elements in all.
        value: of each element at time 0; an element has its type: int64, float64, bool, or uint64.
    """
    return Declared(what, value, times)


def at_start(kind: Callable[..., T], fabric: Fabric, **given: Any) -> T:
    """Return a named tuple of this kind at time 0: the arrays that its fields declare, and the fields in `given`."""
    sizes = {
        "run": 1,
        "port": fabric.speed.size,
        "word of ports": fabric.speed.size // 64,
        "coflow": fabric.coflows.arrival.size,
        "group": fabric.lines.first_line.shape[0],
        "line": fabric.lines.port.size,
        "ingress line": ingress_lines(fabric.lines),
        "flow": fabric.flows.size.size,
    }
    fields = {name: parameter.default for name, parameter in signature(kind).parameters.items()}
    arrays = {
        name: np.full(sizes[array.what] * array.times, array.value)
        for name, array in fields.items()
        if isinstance(array, Declared) and name not in given
    }
    return kind(**given, **arrays)
