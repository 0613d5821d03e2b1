"""NumPy's ``.npy`` files with pickled objects, read without running anything that is in them.

A pickle is a program: Python's unpickler imports and calls what the file names. Here it is only parsed. What is
taken are dictionaries, lists, tuples, numbers, strings, bytes and NumPy arrays and numbers of these; anything else
is refused by its name. Nothing is imported or called that the file names: NumPy's own constructors, under which
pickles file arrays, are recognised by name, and the arrays made from their bytes. Instructions that no NumPy
of today writes (protocols 0 and 1, extensions, sets, out-of-band buffers) are refused as well.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class _Named:
    """A name in a pickle, and the known object that it stands for."""

    kind: str


@dataclass
class _Dtype:
    """The type of an array in the making."""

    code: str
    dtype: np.dtype[Any] | None = None


@dataclass
class _Array:
    """An array in the making: its value is there when its state was read."""

    value: npt.NDArray[Any] | None = None


class _Mark:
    """The mark on the stack where the items of a list, tuple or dictionary begin."""


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


class _Parser:
    """Reads a pickle: a stack of values, and a memo of those that are used again."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._items = 0

    def run(self) -> Any:
        """Return the value that the pickle leaves."""
        try:
            value = self._run()
        except (IndexError, struct.error):
            raise _Refused("its pickle is truncated or corrupt") from None
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise _Refused(f"its pickle is corrupt ({_short(error)})") from None
        if self._stack or self._at != len(self._data):
            raise _Refused(f"has {len(self._data) - self._at} bytes after the end of its pickle")
        return value

    def _run(self) -> Any:
        data, stack, steps = self._data, self._stack, _STEPS
        while True:
            op = data[self._at]
            self._at += 1
            if op == _BININT1:  # nine in ten
                stack.append(data[self._at])
                self._at += 1
            elif op == _BININT2:
                stack.append(data[self._at] | data[self._at + 1] << 8)
                self._at += 2
            elif op == _STOP:
                return _value(_finished(stack.pop()))
            elif (step := steps.get(op)) is not None:
                step(self)
            else:
                names = [known.name for known in pickletools.opcodes if known.code == chr(op)]
                what = f"instruction {names[0]}" if names else f"byte {op:#04x}"
                raise _Refused(f"its pickle has the {what}, which is not admitted")

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size < 0 or self._at + size > len(self._data):
            raise IndexError
        self._at += size
        return self._data[self._at - size : self._at]

    def unpack(self, form: str) -> Any:
        """Return the next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        """Return the text up to the next end of line."""
        end = self._data.index(b"\n", self._at)
        return self.take(end + 1 - self._at)[:-1].decode("ascii", "backslashreplace")

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self._stack.append(value)

    def pop(self, kind: type | tuple[type, ...] = object) -> Any:
        """Take the value on top, which must be of a kind."""
        value = self._stack.pop()
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__} where another type is due")
        return value

    def pop_items(self) -> list[Any]:
        """Take all values above the last mark."""
        at = len(self._stack) - 1
        while not isinstance(self._stack[at], _Mark):
            at -= 1
            if at < 0:
                raise IndexError
        items = [_finished(item) for item in self._stack[at + 1 :]]
        del self._stack[at:]
        return items

    def pop_tuple(self, size: int) -> None:
        """Replace the topmost values by a tuple of them."""
        if size > len(self._stack):
            raise IndexError
        items = tuple(map(_finished, self._stack[-size:]))
        del self._stack[-size:]
        self.push(items)

    def append(self, items: list[Any]) -> None:
        """Put items at the end of the list on top."""
        self._top(list).extend(map(_value, items))

    def set_items(self, items: list[Any]) -> None:
        """Put keys and values into the dictionary on top."""
        if len(items) % 2:
            raise IndexError
        keys = items[::2]
        if not all(isinstance(key, str | bytes | int | float | np.number) for key in keys):
            raise TypeError("a key that is neither a text nor a number")  # hashing a deep tuple would crash
        self._top(dict).update(zip(keys, map(_value, items[1::2]), strict=True))

    def remember(self, at: int) -> None:
        """Keep the value on top for later use."""
        self._memo[at] = self._stack[-1]

    def memoize(self) -> None:
        """Keep the value on top under the next number."""
        self.remember(len(self._memo))

    def recall(self, at: int) -> None:
        """Put a value that was kept on the stack."""
        if at not in self._memo:
            raise IndexError
        self.push(self._memo[at])

    def name(self, module: str, name: str) -> None:
        """Put what the pickle names on the stack, or refuse it."""
        if (kind := _GLOBALS.get(f"{module} {name}")) is None:
            raise _Refused(f"its pickle names {shown(f'{module}.{name}')}, which is not admitted")
        self.push(_Named(kind))

    def stack_name(self) -> None:
        """Put on the stack what the two strings on top name."""
        name, module = self.pop(str), self.pop(str)
        self.name(module, name)

    def call(self) -> None:
        """Make the array, type, number or bytes that a known constructor and its arguments on top stand for."""
        arguments, constructor = self.pop(tuple), self.pop(_Named)
        if constructor.kind == "array":
            self.push(_Array())
        elif constructor.kind == "dtype":
            self.push(_Dtype(_text(arguments[0])))
        elif constructor.kind == "number":
            dtype, body = arguments
            self.push(np.frombuffer(_bytes(body), _numeric(dtype), 1)[0])
        elif constructor.kind == "bytes":
            self.push(_bytes(arguments[0]) if arguments else b"")
        else:
            raise TypeError("a class is called")

    def build(self) -> None:
        """Give the type or array below its state, which is on top."""
        state = self.pop(tuple)
        target = self._stack[-1]
        if isinstance(target, _Dtype):
            order = _text(state[1])
            if target.code.startswith("O"):
                target.dtype = np.dtype(object)
            elif order in "<>|" and target.code[:1] in _NUMERIC:
                target.dtype = np.dtype(order + target.code)
            else:
                raise _Refused(
                    f"its pickle has an array of type {shown(target.code)}; only numbers and objects"
                )
        elif isinstance(target, _Array) and target.value is None:
            _, shape, dtype, by_columns, body = state
            target.value = self._array(shape, dtype, body).reshape(shape, order="F" if by_columns else "C")
        else:
            raise TypeError("a state without an array")

    def _array(self, shape: tuple[int, ...], dtype: _Dtype, body: Any) -> npt.NDArray[Any]:
        if dtype.dtype is None or dtype.dtype.kind != "O":
            return np.frombuffer(_bytes(body), _numeric(dtype))
        self._items += _size(shape)
        if self._items > ITEMS_LIMIT:
            raise _Refused(f"its pickle makes arrays of more than {ITEMS_LIMIT:,} objects")
        if not isinstance(body, list) or len(body) != _size(shape):
            raise ValueError("an array without its items")
        values = np.empty(len(body), object)
        for i, item in enumerate(body):
            values[i] = _value(item)
        return values

    def _top(self, kind: type) -> Any:
        if not isinstance(self._stack[-1], kind):
            raise TypeError(f"items for a {type(self._stack[-1]).__name__}")
        return self._stack[-1]


def _finished(item: Any) -> Any:
    """Return an item as it stands in a list, tuple or dictionary: an array in the making is its value."""
    return item.value if isinstance(item, _Array) and item.value is not None else item


def _value(item: Any) -> Any:
    """Return what is data; a class, a type or an array without its items is not."""
    if isinstance(item, _Named | _Dtype | _Array | _Mark):
        raise TypeError("a class where a value is due")
    return item


def _numeric(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, _Dtype) or dtype.dtype is None or dtype.dtype.kind == "O":
        raise TypeError("a number without its type")
    return dtype.dtype


def _size(shape: Any) -> int:
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise _Refused("the shape of an array is not one")
    size = 1
    for n in shape:
        size *= n
    return size


def _bytes(body: Any) -> bytes:
    # Python 2 pickled bytes as strings, which are read as latin-1.
    return body if isinstance(body, bytes) else _text(body).encode("latin-1")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError("a text is due")
    return value


def _short(error: Exception) -> str:
    return ascii(" ".join(str(error).split())[:100])[1:-1] or type(error).__name__


_BININT1, _BININT2, _STOP = pickle.BININT1[0], pickle.BININT2[0], pickle.STOP[0]
_STEPS = {
    code[0]: step
    for code, step in {
        pickle.PROTO: lambda p: p.take(1),
        pickle.FRAME: lambda p: p.take(8),
        pickle.MARK: lambda p: p.push(_Mark()),
        pickle.NONE: lambda p: p.push(None),
        pickle.NEWTRUE: lambda p: p.push(True),
        pickle.NEWFALSE: lambda p: p.push(False),
        pickle.BININT: lambda p: p.push(p.unpack("<i")),
        pickle.LONG1: lambda p: p.push(int.from_bytes(p.take(p.unpack("<B")), "little", signed=True)),
        pickle.BINFLOAT: lambda p: p.push(p.unpack(">d")),
        pickle.SHORT_BINSTRING: lambda p: p.push(p.take(p.unpack("<B")).decode("latin-1")),
        pickle.BINSTRING: lambda p: p.push(p.take(p.unpack("<i")).decode("latin-1")),
        pickle.SHORT_BINUNICODE: lambda p: p.push(p.take(p.unpack("<B")).decode("utf-8")),
        pickle.BINUNICODE: lambda p: p.push(p.take(p.unpack("<I")).decode("utf-8")),
        pickle.SHORT_BINBYTES: lambda p: p.push(p.take(p.unpack("<B"))),
        pickle.BINBYTES: lambda p: p.push(p.take(p.unpack("<I"))),
        pickle.EMPTY_LIST: lambda p: p.push([]),
        pickle.EMPTY_DICT: lambda p: p.push({}),
        pickle.EMPTY_TUPLE: lambda p: p.push(()),
        pickle.APPEND: lambda p: p.append([_finished(p.pop())]),
        pickle.APPENDS: lambda p: p.append(p.pop_items()),
        pickle.SETITEM: lambda p: p.set_items([*reversed([_finished(p.pop()), _finished(p.pop())])]),
        pickle.SETITEMS: lambda p: p.set_items(p.pop_items()),
        pickle.TUPLE: lambda p: p.push(tuple(p.pop_items())),
        pickle.TUPLE1: lambda p: p.pop_tuple(1),
        pickle.TUPLE2: lambda p: p.pop_tuple(2),
        pickle.TUPLE3: lambda p: p.pop_tuple(3),
        pickle.BINPUT: lambda p: p.remember(p.unpack("<B")),
        pickle.LONG_BINPUT: lambda p: p.remember(p.unpack("<I")),
        pickle.MEMOIZE: lambda p: p.memoize(),
        pickle.BINGET: lambda p: p.recall(p.unpack("<B")),
        pickle.LONG_BINGET: lambda p: p.recall(p.unpack("<I")),
        pickle.GLOBAL: lambda p: p.name(p.line(), p.line()),
        pickle.STACK_GLOBAL: lambda p: p.stack_name(),
        pickle.REDUCE: lambda p: p.call(),
        pickle.BUILD: lambda p: p.build(),
    }.items()
}
