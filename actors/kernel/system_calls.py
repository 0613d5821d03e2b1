"""Calls of the C library and the kernel from compiled code, by intrinsics of numba: for clocks, waits and sockets."""

import platform
from typing import Any

from llvmlite import ir
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # whose hints count the compiler's context as an argument
LONG, HALF = ir.IntType(64), ir.IntType(32)
_NUMBERS = {
    "futex": {"x86_64": 202, "aarch64": 98},
    "sendto": {"x86_64": 44, "aarch64": 206},
    "recvfrom": {"x86_64": 45, "aarch64": 207},
    "ppoll": {"x86_64": 271, "aarch64": 73},
}
KNOWN = platform.machine() in _NUMBERS["futex"]
"""Whether the numbers of system calls are known for this processor."""


def external(builder: Any, result: Any, arguments: list[Any], name: str, *, var_arg: bool = False) -> Any:
    """Return a function of the C library, declared once in a module."""
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(result, arguments, var_arg=var_arg)
    return ir.Function(builder.module, kind, name) if known is None else known


def pair_of_words(builder: Any) -> Any:
    """Return two words on the stack, allocated once however often a loop comes by."""
    with builder.goto_entry_block():
        return builder.alloca(ir.ArrayType(LONG, 2))


def system_call(builder: Any, name: str, *arguments: Any) -> Any:
    """Generate a system call of 64-bit values or whole numbers; return its result."""
    given = (_NUMBERS[name][platform.machine()], *arguments)
    call = external(builder, LONG, [LONG], "syscall", var_arg=True)
    return builder.call(call, [ir.Constant(LONG, x) if isinstance(x, int) else x for x in given])


def duration(builder: Any, most_ns: Any) -> Any:
    """Generate a timespec of less than a second; return its address."""
    time = pair_of_words(builder)
    builder.store(ir.Constant(ir.ArrayType(LONG, 2), [0, 0]), time)
    builder.store(most_ns, builder.gep(time, [ir.Constant(HALF, 0), ir.Constant(HALF, 1)]))
    return builder.ptrtoint(time, LONG)
