"""System calls from compiled code, by numba's intrinsics: what `sharing` and `sockets` need."""

import platform
from typing import Any

from llvmlite import ir
from numba.core import cgutils
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


def system_call(builder: Any, name: str, *arguments: Any) -> Any:
    """Generate a system call of 64-bit values or whole numbers; return its result."""
    given = (_NUMBERS[name][platform.machine()], *arguments)
    kind = ir.FunctionType(LONG, [LONG], var_arg=True)
    call = cgutils.get_or_insert_function(builder.module, kind, "syscall")
    return builder.call(call, [ir.Constant(LONG, x) if isinstance(x, int) else x for x in given])


def duration(builder: Any, most_ns: Any) -> Any:
    """Generate a timespec of less than a second; return its address."""
    time = cgutils.alloca_once(builder, ir.ArrayType(LONG, 2))
    builder.store(ir.Constant(ir.ArrayType(LONG, 2), [0, 0]), time)
    builder.store(most_ns, builder.gep(time, [ir.Constant(HALF, 0), ir.Constant(HALF, 1)]))
    return builder.ptrtoint(time, LONG)
