"""The arrays of a named tuple: each field declares how long its array is, and what the array holds at time 0.

``level: np.ndarray = per("port", NONE)`` declares an array with an element for each port, and `at_start` makes it.
Where coflows come into being during a run, `longer` makes room for more of them, and `clear` makes rows of those that
have ended as they were at time 0.
"""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any, NamedTuple, TypeVar

import numpy as np

from actors.kernel.heap import Heap, make_heap

T = TypeVar("T")
Sizes = dict[str, int]  # how many there are of what arrays are declared for


class Declared(NamedTuple):
    """An array that `at_start` makes."""

    what: str
    value: Any
    times: int
    lasts: bool

    def make(self, sizes: Sizes) -> Any:
        """Return the array at time 0."""
        return np.full(sizes[self.what] * self.times, self.value)

    def longer(self, array: Any, was: Sizes, now: Sizes) -> Any:
        """Return the array with as many elements as there are `now`; arrays that do not grow are not among these."""
        if self.what not in now:
            return array
        added = (now[self.what] - was[self.what]) * self.times
        if self.what != "group":
            return np.concatenate([array, self._more(array, added)])
        more = self._more(array, added // 2)  # those of pilots come after those of all coflows
        return np.concatenate([array[: was["coflow"]], more, array[was["coflow"] :], more])

    def _more(self, array: Any, count: int) -> np.ndarray:
        return np.full((count, *array.shape[1:]), self.value, array.dtype)

    def clear(self, array: Any, rows: dict[str, np.ndarray]) -> None:
        """Set the elements of some rows to what they were at time 0."""
        if self.what in rows and self.times == 1 and not self.lasts:
            array[rows[self.what]] = self.value


class DeclaredTable(NamedTuple):
    """An array of two dimensions that `at_start` makes, and that does not grow."""

    rows: str
    columns: str
    value: Any

    def make(self, sizes: Sizes) -> Any:
        """Return the array at time 0."""
        return np.full((sizes[self.rows], sizes[self.columns]), self.value)

    def longer(self, array: Any, was: Sizes, now: Sizes) -> Any:
        """Return the array."""
        return array

    def clear(self, array: Any, rows: dict[str, np.ndarray]) -> None:
        """Leave the array."""


class DeclaredHeap(NamedTuple):
    """A heap that `at_start` makes, with room for as many pairs as there are of `what`."""

    what: str

    def make(self, sizes: Sizes) -> Heap:
        """Return the empty heap."""
        return make_heap(sizes[self.what])

    def longer(self, heap: Heap, was: Sizes, now: Sizes) -> Heap:
        """Return the heap with room for as many pairs as there are `now`."""
        wider = make_heap(now[self.what])
        wider.keys[: heap.keys.size], wider.values[: heap.values.size] = heap.keys, heap.values
        return wider._replace(size=heap.size)

    def clear(self, heap: Heap, rows: dict[str, np.ndarray]) -> None:
        """Leave all pairs in the heap: those of what has ended have left it, or are stale."""


class DeclaredCount(NamedTuple):
    """How many there are of `what`, as an array of one element, for numbers that grow."""

    what: str

    def make(self, sizes: Sizes) -> np.ndarray:
        """Return the number at time 0."""
        return np.array([sizes[self.what]])

    def longer(self, count: np.ndarray, was: Sizes, now: Sizes) -> np.ndarray:
        """Return the number `now`."""
        return self.make(now)

    def clear(self, count: np.ndarray, rows: dict[str, np.ndarray]) -> None:
        """Leave the number."""


class DeclaredRings(NamedTuple):
    """Neighbours in rings of lines through ports, which follow the lines; at time 0 each is alone in its ring."""

    def make(self, sizes: Sizes) -> np.ndarray:
        """Return the rings of elements that are alone."""
        return np.arange(sizes["line"] + sizes["port"])

    def longer(self, ring: np.ndarray, was: Sizes, now: Sizes) -> np.ndarray:
        """Return the rings with as many lines as there are `now`."""
        moved = ring + np.where(ring >= was["line"], now["line"] - was["line"], 0)
        alone = np.arange(was["line"], now["line"])
        return np.concatenate([moved[: was["line"]], alone, moved[was["line"] :]])

    def clear(self, ring: np.ndarray, rows: dict[str, np.ndarray]) -> None:
        """Leave the rings: lines without unfinished flows are alone."""


def per(what: str, value: Any = 0, times: int = 1, lasts: bool = False) -> Any:
    """Declare an array with `times` elements for each of `what`.

    Args:
        what: a key of `sizes_of`; "run": the array has `times` elements in all.
        value: of each element at time 0; an element has its type: int64, float64, bool, or uint64.
        lasts: `clear` leaves the array: what it says of a coflow does not end with the coflow.
    """
    return Declared(what, value, times, lasts)


def per_pair(rows: str, columns: str, value: Any = 0) -> Any:
    """Declare an array with an element for each of `rows` and each of `columns`."""
    return DeclaredTable(rows, columns, value)


def list_per(what: str) -> Any:
    """Declare room for a list of as many as there are of `what`, which `clear` leaves."""
    return Declared(what, 0, 1, lasts=True)


def heap_per(what: str) -> Any:
    """Declare a heap with room for a pair for each of `what`."""
    return DeclaredHeap(what)


def count_of(what: str) -> Any:
    """Declare an array of one element: how many there are of `what`."""
    return DeclaredCount(what)


def rings_of_lines() -> Any:
    """Declare the neighbours of lines, and of ports behind them, in rings."""
    return DeclaredRings()


def is_declared(default: Any) -> bool:
    """Return whether the default of a field declares what `at_start` makes."""
    return hasattr(default, "longer")


def sizes_of(fabric: Any) -> Sizes:
    """Return how many there are of what arrays are declared for, in a `ports.Fabric`."""
    lines = fabric.lines
    num_flows, num_lines = fabric.flows.size.size, lines.port.size
    return {
        "run": 1,
        "port": fabric.speed.size,
        "word of ports": fabric.speed.size // 64,
        "coflow": fabric.coflows.arrival.size,
        "group": lines.first_line.shape[0],
        "line": num_lines,
        "word": lines.word.size,
        "place": lines.flow.size,
        "flow": num_flows,
        "flow or line": num_flows + num_lines,
        "flow twice or line": 2 * num_flows + num_lines,
    }


def at_start(kind: Callable[..., T], of: Any, **given: Any) -> T:
    """Return a named tuple of this kind at time 0: the arrays that its fields declare, and the fields in `given`.

    Args:
        of: the sizes, or the `ports.Fabric` that has them.
    """
    sizes = {"run": 1, **of} if isinstance(of, dict) else sizes_of(of)
    fields = {name: parameter.default for name, parameter in signature(kind).parameters.items()}
    arrays = {
        name: declared.make(sizes)
        for name, declared in fields.items()
        if is_declared(declared) and name not in given
    }
    return kind(**given, **arrays)


def longer(part: Any, was: Sizes, now: Sizes) -> Any:
    """Return a named tuple, with those in it, whose declared arrays have as many elements as there are `now`."""
    fields = {}
    for name, value in part._asdict().items():
        declared = part._field_defaults.get(name)
        if is_declared(declared):
            fields[name] = declared.longer(value, was, now)
        elif hasattr(value, "_fields"):
            fields[name] = longer(value, was, now)
    return part._replace(**fields)


def clear(part: Any, rows: dict[str, np.ndarray]) -> None:
    """Set rows of the declared arrays of a named tuple, and of those in it, to what they were at time 0."""
    for name, value in part._asdict().items():
        declared = part._field_defaults.get(name)
        if is_declared(declared):
            declared.clear(value, rows)
        elif hasattr(value, "_fields"):
            clear(value, rows)


def parts_of(state: Any, kind: type[T]) -> Iterator[T]:
    """Yield the parts of a named tuple that are of this kind, in whatever depth."""
    for value in state:
        if isinstance(value, kind):
            yield value
        elif hasattr(value, "_fields"):
            yield from parts_of(value, kind)
