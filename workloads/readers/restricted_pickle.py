"""NumPy's ``.npy`` files with pickled objects, read without running anything that is in them.

A pickle is a program: Python's unpickler imports and calls the names in the file. This one knows the names with which
NumPy pickles arrays and numbers, and has a function of its own for each, so that nothing that a file names is imported
or called. The result has dictionaries, lists, tuples, numbers, texts, bytes and NumPy's arrays and numbers; anything
else is refused by its name. All instructions are checked first: those that NumPy does not write are refused, and so are
files that would become far larger than they are.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
import tokenize
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError
from workloads.readers.report import Progress
from workloads.readers.source import open_text, shown

FILE_LIMIT_BYTES = 64 << 20
"""The most of a file, and of the texts that it uses again; the largest TPC-H profile has 74 kB."""
MOST_TUPLES = 1000
"""The most nested tuples: hashing a key of 100,000 would end the process."""
_ADMITTED = """
    PROTO FRAME MARK STOP NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINSTRING BINSTRING
    SHORT_BINUNICODE BINUNICODE SHORT_BINBYTES BINBYTES EMPTY_LIST EMPTY_DICT EMPTY_TUPLE APPEND APPENDS SETITEM
    SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3 BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD
"""
_NDARRAY = object()
"""In place of the class `numpy.ndarray`, an argument when arrays are made."""
_HEADER_ERRORS = (
    ValueError, TypeError, SyntaxError, EOFError, MemoryError, RecursionError, tokenize.TokenError,
)  # fmt: skip
"""Exceptions of NumPy and `ast.literal_eval` for invalid headers."""


def read_npy(path: str | Path, progress: Progress | None = None) -> Any:
    """Return the content of a ``.npy`` file: an array, or the object in an array without dimensions.

    Parameters
    ----------
    path : str or Path
        Plain or gzip.

    Raises
    ------
    InputError
        Names the file: it cannot be read, is not ``.npy``, is truncated, too large, or its pickle holds a type that is
        not admitted.
    """
    with open_text(path, progress=progress) as stream:
        data = stream.read(FILE_LIMIT_BYTES + 1)
    if len(data) > FILE_LIMIT_BYTES:
        raise InputError(f"is larger than {FILE_LIMIT_BYTES >> 20} MiB", file=path)
    try:
        array = _parse_npy(data)
    except InputError as error:
        raise InputError(error.message, file=path) from None
    return array[()] if array.ndim == 0 else array


def _parse_npy(data: bytes) -> npt.NDArray[Any]:
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise InputError(f"has version {version[0]}.{version[1]} of the .npy format; want 1.0 or 2.0")
        read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, by_columns, dtype = read_header(stream, max_header_size=4096)
    except _HEADER_ERRORS as error:
        raise InputError(f"is not a .npy file ({_short(error)})") from None
    body, size = data[stream.tell() :], _size(shape)
    if dtype.kind == "O":
        array = loads(body)
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise InputError(f"its pickle is not the array of shape {shape} that the header says")
        return array
    if dtype.kind not in "biuf":
        raise InputError(f"holds {dtype}; only numbers and objects are read")
    if size * dtype.itemsize != len(body):
        follow = f"{len(body)} bytes follow"
        raise InputError(f"its header says {size} numbers of {dtype.itemsize} bytes, but {follow}")
    if size == 0:
        raise InputError("holds an array without numbers")
    return np.frombuffer(body, dtype).reshape(shape, order="F" if by_columns else "C")


def loads(data: bytes) -> Any:
    """Return the value of a pickle.

    Raises
    ------
    InputError
        It holds a type that is not admitted, which is named, or is truncated or corrupt.
    """
    try:
        _look_through(data)
        value = _Unpickler(io.BytesIO(data), encoding="latin-1").load()
        _check_values(value)
    except (IndexError, KeyError, EOFError):
        raise InputError("its pickle is truncated or corrupt") from None
    except (TypeError, ValueError, OverflowError, AttributeError, pickle.UnpicklingError) as error:
        raise InputError(f"its pickle is corrupt ({_short(error)})") from None
    return value


def _look_through(data: bytes) -> None:
    """Refuse a pickle with other instructions than NumPy's, or one that would become far larger than it is."""
    stack: list[tuple[int, int]] = []  # of each value: nested tuples, and the length of its texts
    kept: dict[int, tuple[int, int]] = {}  # the same of values that may be used again
    marks: list[int] = []
    again = 0
    stream, admitted = io.BytesIO(data), _ADMITTED.split()
    for op, given, _ in pickletools.genops(stream):
        if op.name not in admitted:
            raise InputError(f"its pickle has the instruction {op.name}, which is not admitted")
        if op.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            number = len(kept) if given is None else given
            if number > len(kept) + 1:  # the unpickler makes a table up to this number
                raise ValueError(f"value {number} after {len(kept)}")
            kept[number] = stack[-1]
            continue
        takes = [one.name for one in op.stack_before]
        begin = marks.pop() if "mark" in takes else len(stack) - len(takes)
        taken = stack[max(begin, 0) :]
        begin -= takes.index("mark") if "mark" in takes else 0
        if begin < 0:
            raise IndexError
        del stack[begin:]
        if op.name == "MARK":
            marks.append(len(stack))
            continue
        depth = 1 + max((value[0] for value in taken), default=0) if "TUPLE" in op.name else 0
        length = len(given) if isinstance(given, str | bytes) else sum(value[1] for value in taken)
        if op.name in ("BINGET", "LONG_BINGET"):
            depth, length = kept[given or 0]
            again += length
        if depth > MOST_TUPLES or again > FILE_LIMIT_BYTES:
            raise InputError(f"its pickle has over {MOST_TUPLES:,} tuples in one another, or texts too often")
        stack += [(depth, length)] * len(op.stack_after)
    if stack or marks or stream.read(1):
        raise InputError("has bytes or values after the end of its pickle")


class _Unpickler(pickle.Unpickler):
    """Python's unpickler, with functions of this module in place of NumPy's names."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement for a name of the pickle, or refuse it."""
        known = {
            "numpy.multiarray._reconstruct": self._array,
            "numpy.multiarray.scalar": self._number,
            "numpy.ndarray": _NDARRAY,
            "numpy.dtype": _Dtype,
            "_codecs.encode": self._encoded,
            "__builtin__.bytes": self._encoded,
        }
        place = f"{re.sub('^numpy[.]_?core[.]', 'numpy.', module)}.{name}"
        if place not in known:
            raise InputError(f"its pickle names {shown(f'{module}.{name}')}, which is not admitted")
        return known[place]

    def _array(self, *_: Any) -> _Array:
        return np.empty(0).view(_Array)  # its state follows

    def _number(self, dtype: Any, body: Any) -> Any:
        return np.frombuffer(_bytes(body), _numpy(dtype), 1)[0]

    def _encoded(self, text: Any = b"", *_: Any) -> bytes:
        return _bytes(text)


class _Dtype:
    """The type of an array; complete when its byte order is set."""

    def __init__(self, code: Any, *_: Any) -> None:
        self._code = _text(code)
        self.dtype: np.dtype[Any] | None = None
        if not re.fullmatch("[biuf][0-9]{1,2}|O[48]", self._code):
            raise InputError(f"its pickle has an array of type {shown(self._code)}; only numbers and objects")

    def __setstate__(self, state: Any) -> None:
        if (order := _text(state[1])) not in {"<", ">", "|"}:
            raise ValueError("no order of bytes")
        self.dtype = np.dtype(object if self._code.startswith("O") else order + self._code)


class _Array(np.ndarray):
    """An array whose state is checked; NumPy would accept addresses in memory as objects."""

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, by_columns, body = state
        kind = _numpy(dtype)
        if kind.kind != "O":
            body = _bytes(body)
        elif not isinstance(body, list):
            raise TypeError("an array without its items")
        if len(body) != _size(shape) * (1 if kind.kind == "O" else kind.itemsize):
            raise ValueError("an array without its numbers or items")
        checked: Any = (1, shape, kind, bool(by_columns), body[:])
        super().__setstate__(checked)
        if kind.kind == "O":
            body.clear()  # a second array of the same list would make a small file large
        own: Any = self
        if own.dtype != kind:  # NumPy has made the order of bytes this machine's
            own.byteswap(inplace=True)
            own.dtype = kind


def _check_values(value: Any) -> None:
    """Check that a value consists of data only, without replacements for names."""
    seen, waiting = set(), [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list | tuple | dict | np.ndarray):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, dict):
                waiting += [*item, *item.values()]
            elif not isinstance(item, np.ndarray):
                waiting += item
            elif item.dtype.kind == "O":
                waiting += item.flat
        elif item is not None and not isinstance(
            item, bool | int | float | str | bytes | np.number | np.bool
        ):
            raise TypeError("a class where a value is due")


def _numpy(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, _Dtype) or dtype.dtype is None:
        raise TypeError("a number without its type")
    return dtype.dtype


def _size(shape: Any) -> int:
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise InputError("the shape of an array is not a tuple of numbers")
    return math.prod(shape)


def _bytes(body: Any) -> bytes:
    """Return bytes; Python 2 pickled them as text in latin-1."""
    return body if isinstance(body, bytes) else _text(body).encode("latin-1")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError("a text is due")
    return value


def _short(error: Exception) -> str:
    return ascii(" ".join(str(error).split())[:100])[1:-1] or type(error).__name__
