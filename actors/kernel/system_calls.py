"""The processor and the operating system, inside compiled code: clocks, words that processes share, sockets.

Reading a clock takes 25 ns for wall time, 500 ns for CPU time.

A shared word is an int64 at an address that is a multiple of 8. All operations are sequentially consistent: what a
process has written before `swap` another sees after a `load` that returned the new value, and of two processes that
each write a word and then read the other's, one sees the other's write. A process that waits sleeps in the kernel
(futex(2)). Plain Python has the same for the threads of one process, and so has compiled code on other processors than
x86-64 and ARM: there who waits looks again every 0.1 ms.
"""

import ctypes
import platform
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import initialize_native_asmparser
from numba import types
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload

from actors.kernel.compiled import compiled, is_plain

intrinsic: Any = _intrinsic  # whose hints count the compiler's context as an argument
_LONG, _HALF = ir.IntType(64), ir.IntType(32)
_PAUSE = {"x86_64": "pause", "aarch64": "yield"}
_NUMBERS = {
    "futex": {"x86_64": 202, "aarch64": 98},
    "sendto": {"x86_64": 44, "aarch64": 206},
    "recvfrom": {"x86_64": 45, "aarch64": 207},
    "ppoll": {"x86_64": 271, "aarch64": 73},
}
_KNOWN = platform.machine() in _NUMBERS["futex"]  # whether these are those of this processor
CAN_SHARE = _KNOWN and not is_plain()
"""Whether compiled code can wait for other processes here."""
WALL = np.int64(time.CLOCK_MONOTONIC)  # one clock for all processes of a machine
CPU = np.int64(time.CLOCK_THREAD_CPUTIME_ID)  # time this thread has computed; what preempts it does not count
READS, WRITES = 1, 4  # POLLIN, POLLOUT: what `ready` waits for
_AT_ONCE = 0x4040  # MSG_DONTWAIT, and MSG_NOSIGNAL: a peer that is gone is an error, no signal
_WAIT, _WAKE, _EVERYONE = 0, 1, 2**31 - 1  # of futex(2)
_LOOK_US = 100  # until who waits looks again
# Of functions of so many whole numbers: of one that returns a whole number, and of one that returns nothing.
_LONGS = [types.int64(*[types.int64] * count) for count in range(4)]
_NOTHING = types.void()


def _code(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Return how numba compiles a call for which `generate(builder, *arguments)` generates code."""

    def compile_call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = generate(builder, *arguments)
        return context.get_dummy_value() if signature.return_type == types.void else result

    return compile_call


def _external(builder: Any, result: Any, arguments: list[Any], name: str, *, var_arg: bool = False) -> Any:
    """Return a function of the C library, declared once in a module."""
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(result, arguments, var_arg=var_arg)
    return ir.Function(builder.module, kind, name) if known is None else known


def _pair_of_words(builder: Any) -> Any:
    """Return two words on the stack, allocated once however often a loop comes by."""
    with builder.goto_entry_block():
        return builder.alloca(ir.ArrayType(_LONG, 2))


def _system_call(builder: Any, name: str, *arguments: Any) -> Any:
    """Generate a system call of 64-bit values or whole numbers; return its result."""
    given = (_NUMBERS[name][platform.machine()], *arguments)
    call = _external(builder, _LONG, [_LONG], "syscall", var_arg=True)
    return builder.call(call, [ir.Constant(_LONG, x) if isinstance(x, int) else x for x in given])


def _duration(builder: Any, most_ns: Any) -> Any:
    """Generate a timespec of less than a second; return its address."""
    timespec = _pair_of_words(builder)
    builder.store(ir.Constant(ir.ArrayType(_LONG, 2), [0, 0]), timespec)
    builder.store(most_ns, builder.gep(timespec, [ir.Constant(_HALF, 0), ir.Constant(_HALF, 1)]))
    return builder.ptrtoint(timespec, _LONG)


# Clocks.


def clock_ns(which: int) -> int:
    """Return the time of a clock, ns."""
    return np.int64(time.clock_gettime_ns(int(which)))


@intrinsic
def _clock_gettime(context: Any, which: Any) -> Any:
    """Return the time of a clock, ns: a call of POSIX clock_gettime, which every process has loaded."""

    def generate(builder: Any, which: Any) -> Any:
        place = builder.bitcast(_pair_of_words(builder), _LONG.as_pointer())
        call = _external(builder, _HALF, [_HALF, _LONG.as_pointer()], "clock_gettime")
        builder.call(call, [builder.trunc(which, _HALF), place])
        seconds = builder.load(place)
        nanoseconds = builder.load(builder.gep(place, [ir.Constant(_LONG, 1)]))
        return builder.add(builder.mul(seconds, ir.Constant(_LONG, 1_000_000_000)), nanoseconds)

    return _LONGS[1], _code(generate)


@overload(clock_ns, inline="always", strict=False)  # strict: type hints of both would have to be alike
def _compiled_clock_ns(which: Any) -> Callable[[int], int]:
    return lambda which: _clock_gettime(which)


def clock_overhead() -> int:
    """Return the cost of reading the CPU clock, ns: the least of many readings."""
    found = np.zeros(1000, np.int64)
    _read_clock(found)
    return int(np.diff(found).min())


@compiled
def _read_clock(found: np.ndarray) -> None:
    """Read the CPU clock once for each element of `found`."""
    for i in range(found.size):
        found[i] = clock_ns(CPU)


# Words that processes share: in plain Python of threads, which take turns by Python's lock.

if is_plain():
    _one_at_a_time = threading.Lock()

    def _word(address: int) -> Any:
        return ctypes.c_int64.from_address(int(address))

    def load(address: int) -> int:
        """Return a word."""
        return int(_word(address).value)

    def swap(address: int, value: int) -> int:
        """Write a word; return what it was."""
        with _one_at_a_time:
            word = _word(address)
            before, word.value = word.value, int(value)
        return int(before)

    def add(address: int, value: int) -> int:
        """Add to a word; return what it was."""
        with _one_at_a_time:
            word = _word(address)
            before, word.value = word.value, word.value + int(value)
        return int(before)

    def pause() -> None:
        """Let another thread run."""
        time.sleep(0)

    give_way = pause

    def core() -> int:
        """Return a number for the core that this thread is on: all threads share one, by the global lock."""
        return 0

    def sleep_while(address: int, value: int, most_ns: int) -> int:
        """Sleep while a word is `value`, for at most `most_ns`."""
        end = time.monotonic_ns() + int(most_ns)
        while load(address) == value and time.monotonic_ns() < end:
            time.sleep(_LOOK_US / 1e6)
        return 0

    def wake_all(address: int) -> int:
        """Who sleeps looks by itself."""
        return 0

else:
    initialize_native_asmparser()

    def _place(builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, _LONG.as_pointer())

    @intrinsic
    def load(context: Any, address: Any) -> Any:
        """Return a word."""
        return _LONGS[1], _code(lambda builder, at: builder.load_atomic(_place(builder, at), "seq_cst", 8))

    def _change(how: str) -> Any:
        """Return how a word is changed, which returns what it was."""
        return _LONGS[2], _code(
            lambda builder, at, value: builder.atomic_rmw(how, _place(builder, at), value, "seq_cst")
        )

    @intrinsic
    def swap(context: Any, address: Any, value: Any) -> Any:
        """Write a word; return what it was."""
        return _change("xchg")

    @intrinsic
    def add(context: Any, address: Any, value: Any) -> Any:
        """Add to a word; return what it was."""
        return _change("add")

    @intrinsic
    def pause(context: Any) -> Any:
        """Let a loop that reads a word again and again leave more to the other thread of its core."""

        def generate(builder: Any) -> None:
            if platform.machine() in _PAUSE:
                builder.asm(ir.FunctionType(ir.VoidType(), []), _PAUSE[platform.machine()], "", [], True)

        return _NOTHING, _code(generate)

    @intrinsic
    def give_way(context: Any) -> Any:
        """Let another thread run on this core, if one is ready: POSIX sched_yield."""
        return _NOTHING, _code(lambda builder: builder.call(_external(builder, _HALF, [], "sched_yield"), []))

    @intrinsic
    def core(context: Any) -> Any:
        """Return the number of the core that this thread is on; one number for all but on Linux."""

        def generate(builder: Any) -> Any:
            if platform.system() != "Linux":
                return ir.Constant(_LONG, 0)
            return builder.sext(builder.call(_external(builder, _HALF, [], "sched_getcpu"), []), _LONG)

        return _LONGS[0], _code(generate)

    @intrinsic
    def sleep_while(context: Any, address: Any, value: Any, most_ns: Any) -> Any:
        """Sleep while the low half of a word is that of `value`; `wake_all`, a signal or `most_ns` (< 1 s) end it."""

        def generate(builder: Any, address: Any, value: Any, most_ns: Any) -> Any:
            if not _KNOWN:
                call = _external(builder, _HALF, [_HALF], "usleep")
                return builder.sext(builder.call(call, [ir.Constant(_HALF, _LOOK_US)]), _LONG)
            low = builder.and_(value, ir.Constant(_LONG, 0xFFFFFFFF))
            return _system_call(builder, "futex", address, _WAIT, low, _duration(builder, most_ns), 0, 0)

        return _LONGS[3], _code(generate)

    @intrinsic
    def wake_all(context: Any, address: Any) -> Any:
        """Wake all that sleep at a word."""

        def generate(builder: Any, address: Any) -> Any:
            if not _KNOWN:
                return ir.Constant(_LONG, 0)
            return _system_call(builder, "futex", address, _WAKE, _EVERYONE, 0, 0, 0)

        return _LONGS[1], _code(generate)


# Connected sockets: what goes at once, and waiting for more.


def _transfer(call: str) -> Any:
    """Return how a socket sends or receives `size` bytes at an address."""
    return _LONGS[3], _code(lambda builder, *given: _system_call(builder, call, *given, _AT_ONCE, 0, 0))


@intrinsic
def send(context: Any, socket: Any, address: Any, size: Any) -> Any:
    """Send what a socket takes at once of `size` bytes; return how many, or -1."""
    return _transfer("sendto")


@intrinsic
def receive(context: Any, socket: Any, address: Any, size: Any) -> Any:
    """Receive what is there, at most `size` bytes; return how many, -1 if nothing is, 0 if the peer has closed."""
    return _transfer("recvfrom")


@intrinsic
def ready(context: Any, address: Any, count: Any, most_ns: Any) -> Any:
    """Wait until a socket of some has what is asked for; return how many have, 0 after `most_ns` (< 1 s).

    At the address is a word for each: the descriptor, and READS or WRITES or both, times 2 ** 32.
    """

    def generate(builder: Any, address: Any, count: Any, most_ns: Any) -> Any:
        return _system_call(builder, "ppoll", address, count, _duration(builder, most_ns), 0, 0)

    return _LONGS[3], _code(generate)
