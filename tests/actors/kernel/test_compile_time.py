"""What numba compiles with the quicker forms of its methods is what it compiles with its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from python_process import run_python

from actors.kernel.compile_time import REPLACED
from actors.kernel.compiled import config

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
MODULE = """
from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined

class Rows(NamedTuple):
    key: np.ndarray
    share: np.ndarray

@inlined
def before(rows, i, j):
    return rows.key[i] < rows.key[j] or (rows.key[i] == rows.key[j] and rows.share[i] >= rows.share[j])

@compiled
def ends(rows, deep, least=None):
    if deep and least is not None:
        return max(rows.key[0], least), rows.share[1] / 3
    return min(rows.key[0], 7), abs(-rows.share[0]) ** 2

@compiled
def sift(rows, count):
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        if child + 1 < count and before(rows, child + 1, child):
            child += 1
        if not before(rows, child, i):
            i = child
            continue
        rows.key[i], rows.key[child] = rows.key[child], rows.key[i]
        rows.share[i] -= rows.share[child] * 0.5
        i = child
    return i

@entry
def both(rows, count):
    moved, total = 0, 0.0
    for k in range(count):
        if (rows.key[k] >> 1) & 3 != k % 4:
            moved += sift(rows, count - k)
        least, share = ends(rows, k > 2, k)
        total += share if least else -share
    return moved, total, ends(rows, False)[0]
"""
CODE = """
import hashlib, itertools, sys, types
{before}
sys.path.insert(0, {folder!r})
import numpy as np
import actors.kernel.linking as linking
{after}
linking.FunctionIdentity._unique_ids = itertools.count(1)  # else they begin at random, and names differ
texts = []
optimise = linking.EntryLibrary._optimize_final_module
def kept(library):
    optimise(library)
    texts.append(str(library._final_module))
linking.EntryLibrary._optimize_final_module = kept
import kernels
print(kernels.both(kernels.Rows(np.arange(20) * 7 % 11, np.arange(20) / 3), 20), len(texts[-1]))
print(hashlib.sha256("".join(texts).encode()).hexdigest())
"""
OF_NUMBA = {
    "before": "sys.modules['actors.kernel.compile_time'] = types.ModuleType('compile_time')",
    "after": "del linking._Library._optimize_functions; linking.NOT_NEEDED.clear(); linking.CLOSURES = None",
}


def test_compiled_code_is_that_of_numba_s_own_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels.py").write_text(MODULE)
    printed = []
    for forms in (dict.fromkeys(OF_NUMBA, ""), OF_NUMBA):
        monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / str(len(printed))))
        printed.append(run_python(CODE.format(folder=str(tmp_path), **forms)))
    assert printed[0] == printed[1]


def test_each_form_stands_in_the_place_of_numba_s() -> None:
    assert [vars(owner)[name] for owner, name, _ in REPLACED] == [form for _, _, form in REPLACED]


def test_generators_and_object_mode_are_compiled_as_before() -> None:
    """They need the live variables that others do not, and a process may have compiled functions that are not ours."""

    def squares(count: int) -> Iterator[int]:
        total = 0
        for i in range(count):
            total += i * i
            yield total

    def labels(values: np.ndarray) -> dict[str, list[int]]:
        found = {}
        for i, value in enumerate(values):
            if value > 1:
                found[str(value)] = [i, *found.get(str(value), ())]
        return found

    assert list(numba.njit(squares)(5)) == list(squares(5))
    values = np.array([0, 2, 3, 2])
    assert numba.jit(forceobj=True, looplift=False)(labels)(values) == labels(values)
