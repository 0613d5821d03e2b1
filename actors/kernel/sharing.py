"""Words of memory that several processes share, inside compiled code: atomic access, and waiting for a change.

A word is an int64 at an address that is a multiple of 8. All operations are sequentially consistent: what a process
has written before `swap` another sees after a `load` that returned the new value, and of two processes that each write
a word and then read the other's, one sees the other's write. A process that waits sleeps in the kernel (futex(2)).

Plain Python has the same for the threads of one process, and so has compiled code on other processors than x86-64 and
ARM: there who waits looks again every 0.1 ms.
"""

import ctypes
import platform
import threading
import time
from typing import Any

from actors.kernel.compiled import is_plain
from actors.kernel.system_calls import KNOWN

_PAUSE = {"x86_64": "pause", "aarch64": "yield"}
CAN_SHARE = KNOWN and not is_plain()
"""Whether compiled code can wait for other processes here."""
_LOOK_US = 100

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
            before = word.value
            word.value = before + int(value)
        return int(before)

    def pause() -> None:
        """Let another thread run."""
        time.sleep(0)

    def core() -> int:
        """Return a number for the core that this thread is on: all threads share one, by the global lock."""
        return 0

    def give_way() -> None:
        """Let another thread run."""
        pause()

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
    from llvmlite import ir
    from llvmlite.binding import initialize_native_asmparser
    from numba import types

    from actors.kernel.system_calls import HALF, LONG, duration, external, intrinsic, system_call

    _WAIT, _WAKE, _EVERYONE = 0, 1, 2**31 - 1
    initialize_native_asmparser()

    def _place(builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, LONG.as_pointer())

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
            if platform.machine() in _PAUSE:
                builder.asm(ir.FunctionType(ir.VoidType(), []), _PAUSE[platform.machine()], "", [], True)
            return context.get_dummy_value()

        return types.void(), generate

    @intrinsic
    def core(context: Any) -> Any:
        """Return the number of the core that this thread is on; one number for all but on Linux."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if platform.system() != "Linux":
                return ir.Constant(LONG, 0)
            return builder.sext(builder.call(external(builder, HALF, [], "sched_getcpu"), []), LONG)

        return types.int64(), generate

    @intrinsic
    def give_way(context: Any) -> Any:
        """Let another thread run on this core, if one is ready: POSIX sched_yield."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.call(external(builder, HALF, [], "sched_yield"), [])
            return context.get_dummy_value()

        return types.void(), generate

    @intrinsic
    def sleep_while(context: Any, address: Any, value: Any, most_ns: Any) -> Any:
        """Sleep while the low half of a word is that of `value`; `wake_all`, a signal or `most_ns` (< 1 s) end it."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, value, most_ns = arguments
            if not KNOWN:
                call = external(builder, HALF, [HALF], "usleep")
                return builder.sext(builder.call(call, [ir.Constant(HALF, _LOOK_US)]), LONG)
            low = builder.and_(value, ir.Constant(LONG, 0xFFFFFFFF))
            return system_call(builder, "futex", address, _WAIT, low, duration(builder, most_ns), 0, 0)

        return types.int64(types.int64, types.int64, types.int64), generate

    @intrinsic
    def wake_all(context: Any, address: Any) -> Any:
        """Wake all that sleep at a word."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if not KNOWN:
                return ir.Constant(LONG, 0)
            return system_call(builder, "futex", arguments[0], _WAKE, _EVERYONE, 0, 0, 0)

        return types.int64(types.int64), generate
