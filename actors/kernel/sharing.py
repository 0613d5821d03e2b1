"""What compiled code does with other processes: words of memory that they share, and sockets.

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

# Numbers of system calls.
_FUTEX = {"x86_64": 202, "aarch64": 98}
_SEND = {"x86_64": 44, "aarch64": 206}  # sendto(2)
_RECEIVE = {"x86_64": 45, "aarch64": 207}  # recvfrom(2)
_POLL = {"x86_64": 271, "aarch64": 73}  # ppoll(2)
_PAUSE = {"x86_64": "pause", "aarch64": "yield"}
CAN_SHARE = platform.machine() in _FUTEX and not config.DISABLE_JIT
"""Whether compiled code can wait for other processes here."""

intrinsic: Any = _intrinsic  # whose hints count the compiler's context as an argument
_long, _word = ir.IntType(64), ir.IntType(32)
_WAIT, _WAKE, _EVERYONE = 0, 1, 2**31 - 1
_AT_ONCE = 0x4040  # MSG_DONTWAIT, and MSG_NOSIGNAL: a peer that is gone is an error, no signal
READS, WRITES = 1, 4  # POLLIN, POLLOUT: what `ready` waits for
initialize_native_asmparser()


def _place(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _long.as_pointer())


def _system_call(builder: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(_long, [_long], var_arg=True)
    call = cgutils.get_or_insert_function(builder.module, kind, "syscall")
    return builder.call(call, [ir.Constant(_long, x) if isinstance(x, int) else x for x in arguments])


def _duration(builder: Any, most_ns: Any) -> Any:
    """Return the address of a timespec of less than a second."""
    time = cgutils.alloca_once(builder, ir.ArrayType(_long, 2))
    builder.store(ir.Constant(ir.ArrayType(_long, 2), [0, 0]), time)
    builder.store(most_ns, builder.gep(time, [ir.Constant(_word, 0), ir.Constant(_word, 1)]))
    return builder.ptrtoint(time, _long)


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
        low = builder.and_(value, ir.Constant(_long, 0xFFFFFFFF))
        number = _FUTEX[platform.machine()]
        return _system_call(builder, number, address, _WAIT, low, _duration(builder, most_ns), 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def wake_all(context: Any, address: Any) -> Any:
    """Wake all that sleep at a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = _FUTEX[platform.machine()]
        return _system_call(builder, number, arguments[0], _WAKE, _EVERYONE, 0, 0, 0)

    return types.int64(types.int64), generate


@intrinsic
def send(context: Any, socket: Any, address: Any, size: Any) -> Any:
    """Send what a socket takes at once of `size` bytes; return how many, or -1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _system_call(builder, _SEND[platform.machine()], *arguments, _AT_ONCE, 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def receive(context: Any, socket: Any, address: Any, size: Any) -> Any:
    """Receive what is there, at most `size` bytes; return how many, -1 if nothing is, 0 if the peer has closed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _system_call(builder, _RECEIVE[platform.machine()], *arguments, _AT_ONCE, 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def ready(context: Any, address: Any, count: Any, most_ns: Any) -> Any:
    """Wait until a socket of some has what is asked for; return how many have, 0 after `most_ns` (< 1 s).

    At the address is a word for each: the descriptor, and READS or WRITES or both, times 2 ** 32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, count, most_ns = arguments
        number = _POLL[platform.machine()]
        return _system_call(builder, number, address, count, _duration(builder, most_ns), 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate
