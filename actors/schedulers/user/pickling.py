"""Pickles of a user's object whose module may not be importable: it was loaded from a file, or came from a process.

Classes and functions of the object's own module are pickled as names, and found again in the module itself or in what
the methods of the object's class refer to.

cloudpickle 3.1 cannot take its place. By value it saves the module's globals that methods refer to (8 MB for a table of
8 MB, here 20 bytes; a lock is refused), and a load replaces the methods of a class that has a living object, so that
they refer to copies of the globals. By name it needs a module that can be imported.
"""

import io
import pickle
import sys
from functools import reduce
from types import FunctionType
from typing import Any


def pickled(own: Any) -> bytes:
    """The object as bytes.

    Raises:
        Exception: it holds what cannot be pickled.
    """
    file = io.BytesIO()
    _Pickler(file, type(own)).dump(own)
    return file.getvalue()


def unpickled(saved: bytes, kind: type) -> Any:
    """The object of that class from its bytes."""
    return _Unpickler(io.BytesIO(saved), kind).load()


def _find(kind: type, name: str) -> Any:
    """Return what a qualified name means in the module of a class; None if it is not known there."""
    if name == kind.__qualname__:
        return kind
    known = dict(vars(sys.modules[kind.__module__])) if kind.__module__ in sys.modules else {}
    for method in vars(kind).values():
        known |= getattr(method, "__globals__", {})
    first, *inner = name.split(".")
    return reduce(lambda place, part: getattr(place, part, None), inner, known.get(first))


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, kind: type):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.kind = kind

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of a class or function of the object's own module; None for anything else."""
        mine = isinstance(value, type | FunctionType) and value.__module__ == self.kind.__module__
        return value.__qualname__ if mine and _find(self.kind, value.__qualname__) is value else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, kind: type):
        super().__init__(file)
        self.kind = kind

    def persistent_load(self, name: str) -> Any:
        """Return what the name means here."""
        return _find(self.kind, name)
