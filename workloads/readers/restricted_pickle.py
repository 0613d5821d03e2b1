"""NumPy's ``.npy`` files with pickled objects, read without running anything that is in them.

A pickle is a program: Python's unpickler imports and calls what the file names. Here that unpickler has a short list of
names, and each stands for a function of this module: nothing that the file names is imported or called. What is taken
are dictionaries, lists, tuples, numbers, strings, bytes and NumPy arrays and numbers of these; anything else is
refused by its name. Instructions that no NumPy of today writes (protocols 0 and 1, extensions, sets, out-of-band
buffers) are refused as well. What small files could become is bounded: arrays and bytes are counted, keys are numbers
or texts. (The unpickler in C is not used: a number in a file would make it ask for 64 GB.)
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import struct
import tokenize
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError
from workloads.readers.report import Progress
from workloads.readers.source import open_text, shown

FILE_LIMIT_BYTES = 64 << 20
"""No file may be larger; the largest of the TPC-H profiles has 74 kB."""
ITEMS_LIMIT = 4 << 20
"""No file may make arrays of more objects than this, however often it names the same ones."""

_GLOBALS = {
    f"{module} {name}": kind
    for kind, places in {
        "array": [(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")],
        "number": [(f"numpy.{core}.multiarray", "scalar") for core in ("core", "_core")],
        "ndarray": [("numpy", "ndarray")],
        "dtype": [("numpy", "dtype")],
        "bytes": [("_codecs", "encode"), ("__builtin__", "bytes")],
    }.items()
    for module, name in places
}
_NUMERIC = "biuf"
_HEADER_ERRORS = (
    ValueError, TypeError, SyntaxError, EOFError, MemoryError, RecursionError, tokenize.TokenError,
)  # fmt: skip
"""Exceptions of NumPy and `ast.literal_eval` for invalid headers."""


def read_npy(path: str | Path, progress: Progress | None = None) -> Any:
    """Return what a ``.npy`` file holds: an array, or for an array of no dimensions the object in it.

    Parameters
    ----------
    path : str or Path
        Plain or gzip.

    Raises
    ------
    InputError
        Names the file: it cannot be read, is not ``.npy``, is truncated, too large, or its pickle holds what is not
        admitted, which is named.
    """
    with open_text(path, progress=progress) as stream:
        data = stream.read(FILE_LIMIT_BYTES + 1)
    if len(data) > FILE_LIMIT_BYTES:
        raise InputError(f"is larger than {FILE_LIMIT_BYTES >> 20} MiB", file=path)
    try:
        array = _parse_npy(data)
    except _Refused as error:
        raise InputError(str(error), file=path) from None
    return array[()] if array.ndim == 0 else array


def loads(data: bytes) -> Any:
    """Return what a pickle holds, of the types that are admitted.

    Raises
    ------
    InputError
        It holds something else, which is named, or is truncated or corrupt.
    """
    try:
        return _Parser(data).run()
    except _Refused as error:
        raise InputError(str(error)) from None


class _Refused(Exception):
    """A file that is refused; the text gives the reason."""


class _Dtype:
    """The type of an array; `dtype` is there when its order of bytes was read."""

    def __init__(self, code: Any, *_: Any) -> None:
        self._code = _text(code)
        self.dtype: np.dtype[Any] | None = None
        if not re.fullmatch("[biuf][0-9]{1,2}|O[48]", self._code):
            raise _Refused(f"its pickle has an array of type {shown(self._code)}; only numbers and objects")

    def set_order(self, order: str) -> None:
        """Complete the type."""
        if order not in {"<", ">", "|"}:
            raise ValueError("no order of bytes")
        self.dtype = np.dtype(object if self._code.startswith("O") else order + self._code)


_NDARRAY = object()  # stands for the class `numpy.ndarray`, an argument of NumPy's constructor


def _parse_npy(data: bytes) -> npt.NDArray[Any]:
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise _Refused(f"has version {version[0]}.{version[1]} of the .npy format; want 1.0 or 2.0")
        read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, by_columns, dtype = read_header(stream, max_header_size=4096)
    except _HEADER_ERRORS as error:
        raise _Refused(f"is not a .npy file ({_short(error)})") from None
    body = data[stream.tell() :]
    size = _size(shape)
    if dtype.kind == "O":
        array = _Parser(body).run()
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise _Refused(f"its pickle is not the array of shape {shape} that the header says")
        return array
    if dtype.kind not in _NUMERIC:
        raise _Refused(f"holds {dtype}; only numbers and objects are read")
    if size * dtype.itemsize != len(body):
        raise _Refused(
            f"its header says {size} numbers of {dtype.itemsize} bytes, but {len(body)} bytes follow"
        )
    if size == 0:
        raise _Refused("holds an array without numbers")
    return np.frombuffer(body, dtype).reshape(shape, order="F" if by_columns else "C")


class _Parser(pickle._Unpickler):
    """Python's unpickler with fewer steps, with a short list of names, and with bounds on what is made."""

    # What Python's has, and its type hints lack.
    dispatch: ClassVar[Any]
    stack: list[Any]
    metastack: list[Any]
    pop_mark: Any
    _unframer: Any

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        super().__init__(self._file, encoding="latin-1")
        self._items = self._bytes = 0
        self._unfilled: dict[int, npt.NDArray[Any]] = {}

    def run(self) -> Any:
        """Return the value that the pickle leaves."""
        try:
            value = self.load()
            if self.stack or self.metastack or self._unframer.read(1) or self._file.read(1):
                raise _Refused("has bytes or values after the end of its pickle")
            if self._unfilled:
                raise TypeError("an array without its items")
            _check_values(value)
        except (IndexError, KeyError, EOFError, struct.error):
            raise _Refused("its pickle is truncated or corrupt") from None
        except (TypeError, ValueError, OverflowError, AttributeError, pickle.UnpicklingError) as error:
            raise _Refused(f"its pickle is corrupt ({_short(error)})") from None
        return value

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for what the pickle names, or refuse it."""
        if (kind := _GLOBALS.get(f"{module} {name}")) is None:
            raise _Refused(f"its pickle names {shown(f'{module}.{name}')}, which is not admitted")
        makers = {"array": self._array, "number": self._number, "dtype": _Dtype, "bytes": self._encoded}
        return makers.get(kind, _NDARRAY)

    def load_reduce(self) -> None:
        """Call the stand-in below its arguments, which are on top."""
        arguments, make = self.stack.pop(), self.stack.pop()
        if not isinstance(arguments, tuple):
            raise TypeError("arguments that are no tuple")
        self.stack.append(make(*arguments))

    def load_build(self) -> None:
        """Give the type or array below its state, which is on top."""
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, _Dtype):
            target.set_order(_text(state[1]))
            return
        if self._unfilled.pop(id(target), None) is None:
            raise TypeError("a state without an array")
        _, shape, dtype, by_columns, body = state
        size = _size(shape)
        if _numpy(dtype).kind == "O":
            self._items += size
            if self._items > ITEMS_LIMIT:
                raise _Refused(f"its pickle makes arrays of more than {ITEMS_LIMIT:,} objects")
            if not isinstance(body, list) or len(body) != size:
                raise ValueError("an array without its items")
        else:
            body = self._encoded(body)
            self._count_bytes(len(body))
            if len(body) != size * _numpy(dtype).itemsize:
                raise ValueError("an array without its numbers")
        target.__setstate__((1, shape, _numpy(dtype), bool(by_columns), body))
        if target.dtype != _numpy(dtype):  # NumPy has made the order of bytes this machine's
            target.byteswap(inplace=True)
            target.dtype = _numpy(dtype)

    def load_setitem(self) -> None:
        """Put a key and a value into the dictionary below them."""
        self._set_items([self.stack.pop(-2), self.stack.pop()])

    def load_setitems(self) -> None:
        """Put all keys and values above the last mark into the dictionary below."""
        self._set_items(self.pop_mark())

    def _set_items(self, items: list[Any]) -> None:
        keys = items[::2]
        if not isinstance(self.stack[-1], dict):
            raise TypeError("keys without a dictionary")
        if not all(isinstance(key, str | bytes | int | float | np.number) for key in keys):
            raise TypeError("a key that is neither a text nor a number")  # hashing a deep tuple would crash
        self.stack[-1].update(zip(keys, items[1::2], strict=True))

    def _array(self, *_: Any) -> npt.NDArray[Any]:
        array = np.empty(0)
        self._unfilled[id(array)] = array
        return array

    def _number(self, dtype: Any, body: Any) -> Any:
        if _numpy(dtype).kind == "O":
            raise TypeError("a number without its type")
        return np.frombuffer(self._encoded(body), _numpy(dtype), 1)[0]

    def _encoded(self, body: Any = b"", *_: Any) -> bytes:
        """Return bytes, which Python 2 pickled as text in latin-1."""
        if isinstance(body, bytes):
            return body
        self._count_bytes(len(_text(body)))
        return _text(body).encode("latin-1")

    def _count_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > FILE_LIMIT_BYTES:
            raise _Refused(f"its pickle makes arrays and bytes of more than {FILE_LIMIT_BYTES >> 20} MiB")


def _check_values(value: Any) -> None:
    """Check that all of a value is data: neither a stand-in for what was named, nor anything unknown."""
    seen, waiting = set(), [value]
    while waiting:
        item = waiting.pop()
        if item is None or isinstance(item, bool | int | float | str | bytes | np.number | np.bool):
            continue
        if isinstance(item, list | tuple | dict | np.ndarray):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, dict):
                waiting += item.values()
            elif not isinstance(item, np.ndarray):
                waiting += item
            elif item.dtype.kind == "O":
                waiting += item.flat
        else:
            raise TypeError("a class where a value is due")


def _numpy(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, _Dtype) or dtype.dtype is None:
        raise TypeError("a number without its type")
    return dtype.dtype


def _size(shape: Any) -> int:
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise _Refused("the shape of an array is not one")
    size = 1
    for n in shape:
        size *= n
    return size


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError("a text is due")
    return value


def _short(error: Exception) -> str:
    return ascii(" ".join(str(error).split())[:100])[1:-1] or type(error).__name__


class _Steps(dict[int, Any]):
    """What is done for an instruction; those that are not there are refused."""

    def __missing__(self, op: int) -> Any:
        names = [known.name for known in pickletools.opcodes if known.code == chr(op)]
        what = f"instruction {names[0]}" if names else f"byte {op:#04x}"
        raise _Refused(f"its pickle has the {what}, which is not admitted")


_ADMITTED = """
    PROTO FRAME MARK STOP NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINSTRING BINSTRING
    SHORT_BINUNICODE BINUNICODE SHORT_BINBYTES BINBYTES EMPTY_LIST EMPTY_DICT EMPTY_TUPLE APPEND APPENDS SETITEM
    SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3 BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD
"""
_Parser.dispatch = _Steps(
    {
        getattr(pickle, name)[0]: pickle._Unpickler.dispatch[getattr(pickle, name)[0]]
        for name in _ADMITTED.split()
    }
    | {pickle.REDUCE[0]: _Parser.load_reduce, pickle.BUILD[0]: _Parser.load_build}
    | {pickle.SETITEM[0]: _Parser.load_setitem, pickle.SETITEMS[0]: _Parser.load_setitems}
)
