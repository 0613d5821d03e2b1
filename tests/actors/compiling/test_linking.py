"""The names of compiled functions in the disk cache, to which several processes add at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from python_process import run_python

from actors.kernel.compiled import config

pytestmark = pytest.mark.compiled

MODULE = """
import numpy as np
from actors.kernel.compiled import compiled, entry, inlined

@compiled
def inner(values, i):
    return max(values[i], values[0]) // 3

@inlined
def between(values, i):
    return inner(values, i) + 1

@entry
def by_way_of_another(values):
    return between(values, 1)

@entry
def alone(values):
    return inner(values, 1)
"""
NAME = """
import sys
sys.path.insert(0, {folder!r})
import kernels
import numpy as np
kernels.{first}(np.arange(3))
kernels.{second}(np.arange(3))
(found,) = kernels.inner.overloads.values()
print(found.fndesc.mangled_name)
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_all_processes_name_a_function_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name does not depend on the first caller or on what was compiled before: the cache finds a callee by it."""
    (tmp_path / "kernels.py").write_text(MODULE)
    names = set()
    for first, second in (("by_way_of_another", "alone"), ("alone", "by_way_of_another")):
        monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / first))
        names.add(run_python(NAME.format(folder=str(tmp_path), first=first, second=second)))
    assert len(names) == 1


DEAD_BRANCH = """
import numpy as np
from actors.kernel.compiled import compiled, entry

@compiled
def leaf(values, i):
    for k in range(values.size):
        values[k] = values[k] * values[i] % 1000 + 1
    return values[i]

@compiled
def middle(values, deep):
    if deep:
        return leaf(values, 1)
    return values[0]

@compiled
def shallow(values):
    return middle(values, False)

@entry
def both(values):
    return shallow(values) + middle(values, True)
"""
CALL = """
import sys
sys.path.insert(0, {folder!r})
import kernels
import numpy as np
print(kernels.both(np.arange(1, 4)), kernels.both.py_func(np.arange(1, 4)))
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_what_only_a_later_caller_calls_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch that a constant rules out does not call `leaf`, which must not be left out for the one that does."""
    (tmp_path / "kernels.py").write_text(DEAD_BRANCH)
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    for _ in ("compiled", "from the disk"):
        compiled, plain = run_python(CALL.format(folder=str(tmp_path))).split()
        assert compiled == plain


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_numba_alone_compiles_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels.py").write_text(DEAD_BRANCH)
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("EMU_KERNELS", "plain")
    which = "\nfrom actors.compiling.kernel_cache import CACHE_FOLDER\nprint(CACHE_FOLDER.name, *sys.modules)"
    for _ in ("compiled", "from the disk"):
        compiled, plain, form, *modules = run_python(CALL.format(folder=str(tmp_path)) + which).split()
        assert compiled == plain
        assert form == "plain"
        assert "actors.compiling.linking" not in modules


USED = """
from actors.kernel.compiled import compiled

@compiled
def used(values):
    return values[0] + 1
"""
USES = """
import used
from actors.kernel.compiled import entry

@entry
def loop(values):
    return used.used(values)

@entry
def other(values):
    return values[1]
"""
COMPILED = """
import sys
sys.path.insert(0, {folder!r})
import uses
import numpy as np
print(*(f"{{int(each(np.arange(3)))}}:{{sum(each.stats.cache_misses.values())}}" for each in (uses.loop, uses.other)))
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_only_what_uses_a_changed_function_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "uses.py").write_text(USES)
    for text, printed in (
        (USED, "1:1 1:1"),
        ("# moved\n" + USED, "1:0 1:0"),
        (USED.replace("+ 1", "+ 2"), "2:1 1:0"),
        (USED, "1:0 1:0"),
    ):
        (tmp_path / "used.py").write_text(text)
        assert (
            run_python(COMPILED.format(folder=str(tmp_path)), PYTHONDONTWRITEBYTECODE="1").strip() == printed
        )
