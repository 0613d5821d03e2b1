"""Snapshots of a partition's world: its state as plain arrays, to be put back into a newly built world.

A snapshot names every leaf of nested named tuples by its path, such as "world.queue.lane". Read-only arrays are made
from the setting and left out. Contents are put back into the existing arrays: some are views of one table, some have
two names, and compiled code must see the same types as before.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

Snapshot = dict[str, np.ndarray]


class Refused(Exception):
    """A checkpoint cannot be used; the message has the reason."""


# Scalars that are this machine's, not the run's: of the world, and of that of the coflows of DAG jobs.
MEASURED_HERE = ("world.cost.overhead", "state.network.world.cost.overhead")


def leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of everything in nested named tuples that can change or must be equal."""
    if isinstance(tree, tuple):
        names = getattr(tree, "_fields", range(len(tree)))
        for name, value in zip(names, tree, strict=True):
            yield from leaves(value, f"{path}.{name}")
    elif not isinstance(tree, np.ndarray) or tree.flags.writeable:
        yield path, tree


def take_out(tree: Any, path: str) -> Snapshot:
    """Return copies of all leaves, by path."""
    return {name: np.array(value) for name, value in leaves(tree, path)}


def put_back(tree: Any, path: str, saved: Snapshot) -> Any:
    """Return the same tree with the contents that `take_out` saved.

    An array of equal shape keeps its place in memory; one that has grown is replaced by a larger one. Raise `Refused`
    if a leaf is missing or of another type, or a scalar differs.
    """
    expected = {name for name, _ in leaves(tree, path)}
    found = {name for name in saved if name.partition(".")[0] == path}
    if expected != found:
        raise Refused(f"it has other arrays: {', '.join(sorted(expected ^ found))}")
    return _put_back(tree, path, saved, {})


def _put_back(tree: Any, path: str, saved: Snapshot, grown: dict[int, np.ndarray]) -> Any:
    if isinstance(tree, tuple):
        names = getattr(tree, "_fields", range(len(tree)))
        parts = [
            _put_back(value, f"{path}.{name}", saved, grown) for name, value in zip(names, tree, strict=True)
        ]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if not isinstance(tree, np.ndarray):
        if path not in MEASURED_HERE and saved[path] != tree:
            raise Refused(f"{path} is {tree} here and {saved[path]} there")
        return tree
    return _fill(tree, path, saved[path], grown) if tree.flags.writeable else tree


def _fill(array: np.ndarray, path: str, kept: np.ndarray, grown: dict[int, np.ndarray]) -> np.ndarray:
    if array.dtype != kept.dtype:
        raise Refused(f"{path} is {array.dtype} here and {kept.dtype} there")
    if array.shape != kept.shape:
        if array.shape[1:] != kept.shape[1:]:
            raise Refused(f"{path} has shape {array.shape} here and {kept.shape} there")
        # One array under two names stays one.
        array = grown.setdefault(id(array), np.zeros(kept.shape, array.dtype).view(type(array)))
    array[...] = kept
    return array
