"""The operating system's clocks, read inside compiled code: 25 ns for wall time, 500 ns for CPU time."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import overload

from actors.kernel.compiled import compiled
from actors.kernel.system_calls import HALF, LONG, external, intrinsic, pair_of_words

WALL = np.int64(time.CLOCK_MONOTONIC)  # one clock for all processes of a machine
CPU = np.int64(time.CLOCK_THREAD_CPUTIME_ID)  # time this thread has computed; what preempts it does not count


def clock_ns(which: int) -> int:
    """Return the time of a clock, ns."""
    return np.int64(time.clock_gettime_ns(int(which)))


@intrinsic
def _clock_gettime(context: Any, which: Any) -> Any:
    """Return the time of a clock, ns: a call of POSIX clock_gettime, which every process has loaded."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(pair_of_words(builder), LONG.as_pointer())
        call = external(builder, HALF, [HALF, LONG.as_pointer()], "clock_gettime")
        builder.call(call, [builder.trunc(arguments[0], HALF), place])
        seconds = builder.load(place)
        nanoseconds = builder.load(builder.gep(place, [ir.Constant(LONG, 1)]))
        return builder.add(builder.mul(seconds, ir.Constant(LONG, 1_000_000_000)), nanoseconds)

    return types.int64(types.int64), generate


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
