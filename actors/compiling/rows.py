"""The state of a partition in compiled code: a tree of named tuples of arrays is one pointer to a table of words.

numba passes a named tuple of arrays by value, some 300 words for a world, and makes an array view of every
`rows.field[i]`; most of the time to compile a policy went into that. Here a named tuple is a pointer, and
`rows.field[i]` one load. Plain Python does without this: it uses the named tuples and NumPy's arrays themselves.

The table has the leaves of the tree side by side: of a number its value; of an array the address of its first element,
and the length of each axis. While compiled code runs the table is not written, so the compiler keeps what it has read.
What compiled code can do with a leaf is what kernels need: a number is read; an array has `size`, `shape`, elements
and, if it has records, fields; an element is read and written by one whole number for each axis.
"""

import hashlib
import operator
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing import templates
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox

types: Any = _types  # whose hints are incomplete
_Attributes: Any = templates.AttributeTemplate
WORD = np.dtype(np.int64)
_word, _byte = ir.IntType(64), ir.IntType(8)


class _WithShortName(_types.Type):
    """A type whose name in those of compiled functions is short; numba writes out the whole name otherwise."""

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        return f"{type(self).__name__}{hashlib.sha256(self.name.encode()).hexdigest()[:12]}", ()


class TupleType(_WithShortName):
    """A named tuple: a pointer to its words.

    Attributes:
        fields: by name: the type, and at which word it begins.
    """

    def __init__(self, kind: str, fields: tuple[tuple[str, _types.Type, int], ...]):
        self.fields = {name: (field, at) for name, field, at in fields}
        # Not all names of inner types: they would grow with the square of the depth.
        description = repr([(name, field.name, at) for name, field, at in fields])
        super().__init__(f"{kind}({hashlib.sha256(description.encode()).hexdigest()})")


class ArrayType(_WithShortName):
    """An array: a pointer to its words.

    Attributes:
        item: type of an element.
        stride: bytes from an element to the next; of several axes along the last one, and the array is contiguous.
        offset: bytes from the beginning of a record to the field.
    """

    def __init__(self, item: _types.Type, ndim: int, stride: int, offset: int = 0):
        self.item, self.ndim, self.stride, self.offset = item, ndim, stride, offset
        super().__init__(f"Rows({ndim}, {stride}, {offset}, {item.name})")


register_model(TupleType)(models.OpaqueModel)
register_model(ArrayType)(models.OpaqueModel)


class Table:
    """The words of a named tuple, and of those in it.

    Raises:
        TypeError: an array has a form that compiled code does not know.
    """

    def __init__(self, tree: tuple[Any, ...]):
        self.tree = tree  # whose arrays must stay where they are
        words: list[int] = []
        self.type = _kinds[_lay_out(tree, words)]
        self._words = np.array(words, WORD)
        self.address = self._words.ctypes.data


_tables: WeakValueDictionary[int, Table] = WeakValueDictionary()


def table_of(tree: tuple[Any, ...]) -> Table:
    """Return the table of a named tuple; several functions that keep it share one."""
    table = _tables.get(id(tree))
    if table is None or table.tree is not tree:
        table = _tables[id(tree)] = Table(tree)
    return table


def is_tree(value: Any) -> bool:
    """Return whether a value is a named tuple, which compiled code takes as a table."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


# Types by number: numba compares types by their names, which are long.
_kinds: list[Any] = [types.int64, types.float64]
_INT64, _FLOAT64 = 0, 1


def _lay_out(tree: Any, words: list[int]) -> int:
    """Append the words of a tuple; returns the number of its type."""
    kinds: list[int] = []
    starts: list[int] = []
    begin = len(words)
    for value in tree:
        starts.append(len(words) - begin)
        if isinstance(value, np.ndarray):
            kinds.append(_kind_of_array(tree, value))
            words.append(value.ctypes.data)
            words += value.shape
        elif is_tree(value):
            kinds.append(_lay_out(value, words))
        elif isinstance(value, float):
            kinds.append(_FLOAT64)
            words.append(int(np.float64(value).view(WORD)))
        else:
            kinds.append(_INT64)
            words.append(int(value))
    return _kind_of_tuple(tree.__class__, tuple(kinds), tuple(starts))


def _kind_of_array(tree: Any, array: np.ndarray) -> int:
    dtype, shape = array.dtype, array.shape
    if len(shape) == 1:  # a column of a table, or a whole array; of one element no stride is to be seen
        stride = array.strides[0] if shape[0] > 1 else dtype.itemsize
        return _kind_of_arrays(dtype, dtype.isalignedstruct, 1, stride)
    if not array.flags.c_contiguous:
        name = next(name for name, value in zip(tree._fields, tree, strict=True) if value is array)
        raise TypeError(f"{name}: an array of {len(shape)} axes that is not contiguous")
    return _kind_of_arrays(dtype, dtype.isalignedstruct, len(shape), dtype.itemsize)


@cache  # numba takes 0.1 ms to describe a record, and a world has dozens of them
def _kind_of_tuple(kind: Any, fields: tuple[int, ...], starts: tuple[int, ...]) -> int:
    described = zip(kind._fields, (_kinds[field] for field in fields), starts, strict=True)
    return _numbered(TupleType(kind.__name__, tuple(described)))


@cache
def _kind_of_arrays(dtype: np.dtype, _aligned: bool, ndim: int, stride: int) -> int:
    """Return the number of a type; records that only differ in whether they are aligned are equal to NumPy."""
    return _numbered(ArrayType(numba.from_dtype(dtype), ndim, stride))


def _numbered(kind: _types.Type) -> int:
    _kinds.append(kind)
    return len(_kinds) - 1


@typeof_impl.register(Table)
def _typeof_table(table: Table, context: Any) -> TupleType:
    return table.type


@unbox(TupleType)
def _unbox_table(kind: TupleType, table: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(table, "address")
    number = c.pyapi.number_as_ssize_t(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(number, c.context.get_value_type(kind)))


# What there is, by type.


@templates.infer_getattr
class _FieldsOfTuple(_Attributes):
    key = TupleType

    def generic_resolve(self, kind: TupleType, name: str) -> Any:
        return kind.fields[name][0] if name in kind.fields else None


@templates.infer_getattr
class _FieldsOfArray(_Attributes):
    key = ArrayType

    def generic_resolve(self, array: ArrayType, name: str) -> Any:
        if name == "size":
            return types.intp
        if name == "shape":
            return types.UniTuple(types.intp, array.ndim)
        if isinstance(array.item, types.Record) and name in array.item.fields:
            field = array.item.fields[name]
            return ArrayType(field.type, array.ndim, array.stride, array.offset + field.offset)
        return None


def _type_of_index(array: ArrayType, index: _types.Type) -> Any:
    if isinstance(index, types.Integer) and array.ndim == 1:
        return types.intp
    if isinstance(index, types.BaseTuple) and len(index) == array.ndim:
        return types.UniTuple(types.intp, array.ndim)
    return None


# numba tries templates for one target before its own general ones, of which there are dozens.
_FIRST = {"target": "cpu"}


@templates.infer_global(operator.getitem)
class _ReadElement(templates.AbstractTemplate):
    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], ArrayType) and (index := _type_of_index(args[0], args[1])):
            return templates.signature(args[0].item, args[0], index)
        return None


@templates.infer_global(operator.setitem)
class _WriteElement(templates.AbstractTemplate):
    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], ArrayType) and (index := _type_of_index(args[0], args[1])):
            return templates.signature(types.none, args[0], index, args[0].item)
        return None


# The code it becomes.


def _load_word(builder: Any, pointer: Any, at: int) -> Any:
    """A word of a table; the compiler may take it that it never changes."""
    words = builder.bitcast(pointer, _word.as_pointer())
    loaded = builder.load(builder.gep(words, [ir.Constant(_word, at)]))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@lower_getattr_generic(TupleType)
def _get_field(context: Any, builder: Any, kind: TupleType, pointer: Any, name: str) -> Any:
    field, at = kind.fields[name]
    if isinstance(field, TupleType | ArrayType):
        return builder.gep(pointer, [ir.Constant(_word, at * WORD.itemsize)])
    word = _load_word(builder, pointer, at)
    return builder.bitcast(word, ir.DoubleType()) if field is types.float64 else word


@lower_getattr_generic(ArrayType)
def _get_column(context: Any, builder: Any, array: ArrayType, pointer: Any, name: str) -> Any:
    if name not in ("size", "shape"):
        return pointer
    lengths = [_load_word(builder, pointer, 1 + axis) for axis in range(array.ndim)]
    if name == "shape":
        return context.make_tuple(builder, types.UniTuple(types.intp, array.ndim), lengths)
    size = lengths[0]
    for length in lengths[1:]:
        size = builder.mul(size, length)
    return size


def _place(context: Any, builder: Any, array: ArrayType, pointer: Any, index: Any) -> Any:
    """A pointer to the bytes of an element."""
    indices = [index] if array.ndim == 1 else cgutils.unpack_tuple(builder, index)
    at = None
    for axis, one in enumerate(indices):
        if axis or context.enable_boundscheck:
            length = _load_word(builder, pointer, 1 + axis)
        if context.enable_boundscheck:
            cgutils.do_boundscheck(context, builder, one, length, axis)
        at = one if at is None else builder.add(builder.mul(at, length), one)
    begin = builder.inttoptr(_load_word(builder, pointer, 0), _byte.as_pointer())
    byte = builder.mul(at, ir.Constant(_word, array.stride))
    return builder.gep(begin, [builder.add(byte, ir.Constant(_word, array.offset))])


@lower_builtin(operator.getitem, ArrayType, types.Any)
def _read(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = sig.args[0]
    place = _place(context, builder, array, *args)
    if isinstance(array.item, types.Record):
        return builder.bitcast(place, context.get_value_type(array.item))
    data = context.get_data_type(array.item).as_pointer()
    return context.unpack_value(builder, array.item, builder.bitcast(place, data))


@lower_builtin(operator.setitem, ArrayType, types.Any, types.Any)
def _write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = sig.args[0]
    place = _place(context, builder, array, *args[:2])
    if isinstance(array.item, types.Record):
        size = context.get_constant(types.intp, array.item.size)
        cgutils.raw_memcpy(builder, place, args[2], size, 1)
    else:
        data = context.get_data_type(array.item).as_pointer()
        context.pack_value(builder, array.item, args[2], builder.bitcast(place, data))
    return context.get_dummy_value()
