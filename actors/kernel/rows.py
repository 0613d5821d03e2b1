"""How compiled code sees a partition's state: nested named tuples of arrays as one pointer to a table of addresses.

numba passes a named tuple of arrays by value, some 300 machine words a call, and makes of each `rows.field[i]` a view.
Here a tuple is one pointer, and `rows.field[i]` one load: 2 to 3 times less to compile. In plain Python nothing of this
is used: tuples are tuples, and arrays NumPy's.

The table of a tuple has its leaves side by side: of a number its value; of an array its address, and the lengths of
its axes. It is never written while compiled code runs, so that the compiler may keep what it has read of it.
"""

import hashlib
import operator
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox

WORD = 8


class _Short:
    """Types by short names: numba writes them into the name of every function."""

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        return self.short, ()


class TupleType(_Short, types.Type):
    """A named tuple of arrays, numbers and such tuples: a pointer to its part of the table.

    Args:
        fields: of each (name, its type, its place in words).
    """

    def __init__(self, kind: str, fields: tuple[tuple[str, types.Type, int], ...]):
        self.fields = {name: (field, at) for name, field, at in fields}
        digest = hashlib.sha256(repr([(n, t.name, at) for n, t, at in fields]).encode()).hexdigest()[:12]
        self.short = f"{kind}{digest}"
        super().__init__(self.short)


class ArrayType(_Short, types.Type):
    """An array: a pointer to its words in the table.

    Args:
        item: numba's type of an item, or of a row.
        strides: in bytes, those that are known; () for a whole array of several axes.
    """

    def __init__(self, item: types.Type, ndim: int, stride: int, offset: int = 0):
        self.item, self.ndim, self.stride, self.offset = item, ndim, stride, offset
        name = f"A{ndim}s{stride}o{offset}:{item.name}"
        self.short = "A" + hashlib.sha256(name.encode()).hexdigest()[:12]
        super().__init__(name)


for _kind in (TupleType, ArrayType):
    register_model(_kind)(models.OpaqueModel)


class Table:
    """The table of a named tuple."""

    def __init__(self, tree: tuple):
        self.tree = tree  # keeps the arrays
        words: list[int | float] = []
        self.numba_type = _lay_out(tree, words)
        self.words = np.array([_bits(word) for word in words], np.int64)
        self.address = self.words.ctypes.data


def _bits(word: Any) -> int:
    return int(np.float64(word).view(np.int64)) if isinstance(word, float) else int(word)


def _lay_out(tree: tuple, words: list) -> TupleType:
    fields, start = [], len(words)
    for name, value in zip(tree._fields, tree, strict=True):
        at = len(words) - start
        if isinstance(value, tuple):
            kind = _lay_out(value, words)
        elif isinstance(value, np.ndarray):
            item = numba.from_dtype(value.dtype)
            one = value.ndim == 1
            if not one and not value.flags.c_contiguous:
                raise TypeError(name)
            stride = value.strides[0] if one and value.size > 1 else value.itemsize
            kind = ArrayType(item, value.ndim, stride)
            words += [value.ctypes.data, *value.shape]
        else:
            kind = types.float64 if isinstance(value, float) else types.int64
            words.append(float(value) if kind is types.float64 else int(value))
        fields.append((name, kind, at))
    return TupleType(type(tree).__name__, tuple(fields))


_tables: dict[int, Table] = {}


def table_of(value: Any) -> Any:
    """The table of a named tuple; anything else as it is."""
    if not (isinstance(value, tuple) and hasattr(value, "_fields")):
        return value
    found = _tables.get(id(value))
    if found is None or found.tree is not value:
        if len(_tables) > 64:
            _tables.clear()
        found = _tables[id(value)] = Table(value)
    return found


@typeof_impl.register(Table)
def _(value, context):
    return value.numba_type


@unbox(TupleType)
def _(kind, value, c):
    address = c.pyapi.object_getattr_string(value, "address")
    number = c.pyapi.number_as_ssize_t(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(number, c.context.get_value_type(kind)))


@infer_getattr
class _TupleAttribute(AttributeTemplate):
    key = TupleType

    def generic_resolve(self, kind, name):
        return kind.fields[name][0] if name in kind.fields else None


@infer_getattr
class _ArrayAttribute(AttributeTemplate):
    key = ArrayType

    def generic_resolve(self, kind, name):
        if name == "size":
            return types.intp
        if name == "shape":
            return types.UniTuple(types.intp, kind.ndim)
        if isinstance(kind.item, types.Record) and name in kind.item.fields:
            field = kind.item.fields[name]
            return ArrayType(field.type, kind.ndim, kind.stride, field.offset)
        return None


def _word(context, builder, table, at):
    """The word at a place of the table, which nothing changes."""
    words = builder.bitcast(table, ir.IntType(64).as_pointer())
    loaded = builder.load(builder.gep(words, [ir.Constant(ir.IntType(64), at)]))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@lower_getattr_generic(TupleType)
def _(context, builder, kind, value, name):
    field, at = kind.fields[name]
    if isinstance(field, TupleType | ArrayType):
        place = builder.gep(value, [ir.Constant(ir.IntType(64), at * WORD)])
        return place
    word = _word(context, builder, value, at)
    return builder.bitcast(word, ir.DoubleType()) if field is types.float64 else word


@lower_getattr_generic(ArrayType)
def _(context, builder, kind, value, name):
    if name == "size":
        size = _word(context, builder, value, 1)
        for axis in range(1, kind.ndim):
            size = builder.mul(size, _word(context, builder, value, 1 + axis))
        return size
    if name == "shape":
        lengths = [_word(context, builder, value, 1 + axis) for axis in range(kind.ndim)]
        return context.make_tuple(builder, types.UniTuple(types.intp, kind.ndim), lengths)
    return value


def _index_of(array, index):
    if isinstance(index, types.Integer) and array.ndim == 1:
        return types.intp
    if isinstance(index, types.BaseTuple) and len(index) == array.ndim:
        return types.UniTuple(types.intp, array.ndim)
    return None


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], ArrayType) and (index := _index_of(args[0], args[1])):
            return signature(args[0].item, args[0], index)


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], ArrayType) and (index := _index_of(args[0], args[1])):
            return signature(types.none, args[0], index, args[0].item)


def _place(context, builder, array, value, index_type, index):
    base = builder.inttoptr(_word(context, builder, value, 0), ir.IntType(8).as_pointer())
    if isinstance(index_type, types.BaseTuple):
        parts = [builder.extract_value(index, i) for i in range(array.ndim)]
        at = parts[0]
        for axis in range(1, array.ndim):
            at = builder.add(builder.mul(at, _word(context, builder, value, 1 + axis)), parts[axis])
    else:
        at = index
    step = builder.mul(at, ir.Constant(ir.IntType(64), array.stride))
    if array.offset:
        step = builder.add(step, ir.Constant(ir.IntType(64), array.offset))
    return builder.gep(base, [step])


@lower_builtin(operator.getitem, ArrayType, types.Any)
def _(context, builder, sig, args):
    array = sig.args[0]
    place = _place(context, builder, array, args[0], sig.args[1], args[1])
    if isinstance(array.item, types.Record):
        return builder.bitcast(place, context.get_value_type(array.item))
    data = context.get_data_type(array.item)
    return context.unpack_value(builder, array.item, builder.bitcast(place, data.as_pointer()))


@lower_builtin(operator.setitem, ArrayType, types.Any, types.Any)
def _(context, builder, sig, args):
    array = sig.args[0]
    place = _place(context, builder, array, args[0], sig.args[1], args[1])
    if isinstance(array.item, types.Record):
        from numba.core import cgutils

        cgutils.raw_memcpy(builder, place, args[2], context.get_constant(types.intp, array.item.size), 1)
        return
    data = context.get_data_type(array.item)
    context.pack_value(builder, array.item, args[2], builder.bitcast(place, data.as_pointer()))
