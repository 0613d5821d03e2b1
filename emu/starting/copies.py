"""``emu new scheduler NAME --from eagle``: the module of a built-in scheduler as a file of one's own, and its test."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

from emu import disk
from emu.starting.new_scheduler import KINDS, checks_of, free_paths, object_of
from workloads.errors import InputError

COMPILED = "compiled"
_KIND_OF_FAMILY = {"jobs": COMPILED, "coflows": "coflows", "dags": "dags"}


def write_copy(name: str, source: str, folder: str | Path = ".") -> list[Path]:
    """Write a copy of the module of a built-in scheduler into ``NAME.py``, and ``test_NAME.py``; return their paths.

    The copy gives the same results as the original until one of its rules is changed. Raise `InputError` if there is no
    scheduler `source`, the name is malformed or taken, or a file exists.
    """
    from actors.schedulers.registry import place_of, scheduler_names

    try:
        place, _, original = place_of(source).rpartition(".")
    except InputError as error:
        raise InputError(f"--from: {error.message}") from None
    module, paths, thing = import_module(place), free_paths(name, folder), object_of(name, COMPILED)
    if name in scheduler_names() or hasattr(module, thing):
        raise InputError(f"NAME: {name!r} is there already; give another, as my-{name}")
    text = inspect.getsource(module)
    lines = text.splitlines(keepends=True)
    at = _first_import(text)
    own = f'{thing} = dataclasses.replace({original}, name="{name}")  # another name than the original in comparisons\n'
    copy = "".join([*lines[:at], "import dataclasses\n", *lines[at:]]).rstrip() + f"\n\n{own}"
    test = checks_of(name, paths[0].stem, thing)
    for path, content in zip(paths, (copy, test), strict=True):
        disk.write_text(path, content)
    return paths


def _first_import(text: str) -> int:
    """Return how many lines stand before the first import of a module that is not of the future."""
    return next(
        node.lineno - 1
        for node in ast.parse(text).body
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    )


def run_of(source: str) -> str:
    """Return arguments of a command that try a built-in scheduler."""
    from actors.schedulers.registry import find_scheduler

    return KINDS[_KIND_OF_FAMILY.get(find_scheduler(source).family, COMPILED)].run
