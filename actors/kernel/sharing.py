"""Words of memory that several processes share, inside compiled code: atomic access, and waiting for a change.

A word is an int64 at an address that is a multiple of 8. All operations are sequentially consistent: what a process
has written before `swap` another sees after a `load` that returned the new value, and of two processes that each write
a word and then read the other's, one sees the other's write. A process that waits sleeps in the kernel (futex(2)).
"""

import platform
from typing import Any

from llvmlite import ir
from llvmlite.binding import initialize_native_asmparser
from numba.core import cgutils, types
from numba.extending import intrinsic as _intrinsic

from actors.kernel.compiled import config

_FUTEX = {"x86_64": 202, "aarch64": 98}  # the number of the system call
_PAUSE = {"x86_64": "pause", "aarch64": "yield"}
CAN_SHARE = platform.machine() in _FUTEX and not config.DISABLE_JIT
"""Whether compiled code can wait for other processes here."""

intrinsic: Any = _intrinsic  # whose hints count the compiler's context as an argument
_long, _word = ir.IntType(64), ir.IntType(32)
_WAIT, _WAKE, _EVERYONE = 0, 1, 2**31 - 1
initialize_native_asmparser()


def _place(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _long.as_pointer())


def _system_call(builder: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(_long, [_long], var_arg=True)
    call = cgutils.get_or_insert_function(builder.module, kind, "syscall")
    return builder.call(call, [ir.Constant(_long, x) if isinstance(x, int) else x for x in arguments])


@intrinsic
def load(context: Any, address: Any) -> Any:
    """Return a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(builder, arguments[0]), "seq_cst", 8)

    return types.int64(types.int64), generate


@intrinsic
def swap(context: Any, address: Any, value: Any) -> Any:
    """Write a word; return what it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", _place(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def add(context: Any, address: Any, value: Any) -> Any:
    """Add to a word; return what it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _place(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def pause(context: Any) -> Any:
    """Let a loop that reads a word again and again leave more to the other thread of its core."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.asm(ir.FunctionType(ir.VoidType(), []), _PAUSE[platform.machine()], "", [], True)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def sleep_while(context: Any, address: Any, value: Any, most_ns: Any) -> Any:
    """Sleep while the low half of a word is that of `value`; `wake_all`, a signal or `most_ns` (< 1 s) end it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, value, most_ns = arguments
        time = cgutils.alloca_once(builder, ir.ArrayType(_long, 2))
        builder.store(ir.Constant(ir.ArrayType(_long, 2), [0, 0]), time)
        zero = ir.Constant(_word, 0)
        builder.store(most_ns, builder.gep(time, [zero, ir.Constant(_word, 1)]))
        low = builder.and_(value, ir.Constant(_long, 0xFFFFFFFF))
        number = _FUTEX[platform.machine()]
        return _system_call(builder, number, address, _WAIT, low, builder.ptrtoint(time, _long), 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def wake_all(context: Any, address: Any) -> Any:
    """Wake all that sleep at a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = _FUTEX[platform.machine()]
        return _system_call(builder, number, arguments[0], _WAKE, _EVERYONE, 0, 0, 0)

    return types.int64(types.int64), generate
