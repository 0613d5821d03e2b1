"""The state of a partition as compiled code sees it: the same values as in plain Python, at the same places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_process import run_python

from actors.compiling.rows import Table
from actors.kernel.compiled import compiled, config, direct, entry
from actors.kernel.records import as_records

pytestmark = pytest.mark.compiled

ROW = np.dtype([("at", np.int64), ("share", np.float64), ("is_long", np.bool_), ("small", np.int8)])


class Inner(NamedTuple):
    """Leaves of other types than those around it."""

    rows: np.ndarray
    column: np.ndarray  # of records: with a stride
    speed: float


class Tree(NamedTuple):
    """One leaf of each form that kernels use."""

    count: int
    counts: np.ndarray
    shares: np.ndarray
    grid: np.ndarray
    inner: Inner
    flags: np.ndarray


@compiled
def _add_up(inner, flags):
    found = 0.0
    for i in range(inner.rows.size):
        row = inner.rows[i]
        found += row.at * inner.speed + inner.rows.share[i] + inner.rows[i].small
        found += 1000.0 if inner.rows.is_long[i] else 0.0
    for i in range(inner.column.size):
        found += inner.column[i]
    for i in range(flags.shape[0]):
        found += 0.5 if flags[i] else 0.25
    return found


@entry
def _read_all(tree, times):
    found = tree.count * times + _add_up(tree.inner, tree.flags)
    for i in range(tree.counts.size):
        found += tree.counts[i] * (i + 1)
    for i in range(tree.grid.shape[0]):
        for j in range(tree.grid.shape[1]):
            found += tree.grid[i, j] * (i - 2 * j)
    return found + tree.grid.size + tree.shares.size


@entry
def _write_all(tree, value):
    for i in range(tree.counts.size):
        tree.counts[i] += value
        tree.flags[i] = tree.counts[i] > 3
    for i in range(tree.shares.size):
        tree.shares[i] = tree.shares[i] / 4 + tree.count
    for i in range(tree.grid.shape[0]):
        tree.grid[i, tree.grid.shape[1] - 1 - i] -= value
    rows = tree.inner.rows
    for i in range(rows.size):
        rows.at[i] += value
        rows[i].share = rows.share[i] * 2
        rows.small[i] = -i
    if rows.size > 1:
        rows[0] = rows[rows.size - 1]
    for i in range(tree.inner.column.size):
        tree.inner.column[i] += i
    return value


def _tree(counts: list[int], side: int, rows: list[tuple[int, float, bool, int]]) -> Tree:
    grid = np.arange(side * (side + 1), dtype=np.int64).reshape(side, side + 1)
    of_rows = as_records(np.array(rows, ROW))
    column = np.array([(1, 2.5, True, 3)] * 3, ROW)["share"]
    flags = np.zeros(len(counts), np.bool_)
    inner = Inner(of_rows, column, 0.75)
    return Tree(7, np.array(counts, np.int64), np.linspace(0, 1, 5), grid, inner, flags)


TREES = st.builds(
    _tree,
    st.lists(st.integers(-(2**40), 2**40), max_size=6),
    st.integers(0, 4),
    st.lists(
        st.tuples(st.integers(-99, 99), st.floats(-9, 9), st.booleans(), st.integers(-128, 127)), max_size=5
    ),
)


def _leaves(tree: Any) -> list[Any]:
    return [x for leaf in tree for x in (_leaves(leaf) if isinstance(leaf, tuple) else [np.copy(leaf)])]


def _copied(tree: Any) -> Any:
    return type(tree)(
        *(
            _copied(leaf)
            if isinstance(leaf, tuple)
            else leaf.copy()
            if isinstance(leaf, np.ndarray)
            else leaf
            for leaf in tree
        )
    )


def _in_python(function: Any) -> Any:
    return getattr(function, "py_func", function)


@given(TREES, st.integers(-5, 5))
@settings(max_examples=60)
def test_compiled_code_reads_and_writes_what_plain_python_does(tree: Tree, value: int) -> None:
    other = _copied(tree)
    assert _read_all(tree, value) == pytest.approx(_in_python(_read_all)(other, value), nan_ok=True)
    assert _write_all(tree, value) == value
    _in_python(_write_all)(other, value)
    for one, expected in zip(_leaves(tree), _leaves(other), strict=True):
        np.testing.assert_array_equal(one, expected)


def test_a_tree_that_has_grown_is_read_where_it_is_now() -> None:
    """`direct` keeps the table of a tree as long as it is the same one, and no longer."""
    tree = _tree([1, 2], 2, [(1, 1.0, True, 1)])
    call = direct(_read_all, tree, 1)
    before = call(tree, 1)
    assert call(tree, 1) == before
    grown = tree._replace(counts=np.array([1, 2, 50], np.int64), flags=np.zeros(3, np.bool_))
    assert call(grown, 1) == pytest.approx(before + 150.25)
    assert call(tree._replace(count=8), 1) == pytest.approx(before + 1)
    assert call(tree, 1) == before


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="plain Python takes any array")
def test_forms_of_arrays_that_kernels_do_not_use_are_refused() -> None:
    tree = _tree([1], 3, [])
    with pytest.raises(TypeError, match="grid: an array of 2 axes that is not contiguous"):
        Table(tree._replace(grid=tree.grid.T))
    sliced = tree._replace(inner=tree.inner._replace(column=np.arange(6, dtype=np.float64)[::2]))
    assert _read_all(sliced, 0) == _in_python(_read_all)(sliced, 0)


CHECKED = """
from tests.actors.compiling.test_rows import _read_beyond, _tree
try:
    _read_beyond(_tree([1, 2], 1, []), {})
    raise SystemExit("bounds are not checked")
except IndexError:
    pass
"""


@entry
def _read_beyond(tree, i):
    return tree.counts[i] + tree.grid[0, i]


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="plain Python counts from the end")
@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_out_of_bounds_is_an_error_with_numba_boundscheck(index: int) -> None:
    run_python(CHECKED.format(index), NUMBA_BOUNDSCHECK="1")
