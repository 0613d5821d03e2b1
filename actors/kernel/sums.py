"""Exact sums of nanoseconds over many tasks or messages, which may be above the 292 years that an int64 holds.

100,000 slots have a queue of 292 years after a day. So a sum is two numbers, its `rest` and how many `WHOLE`. While it
is below 73 years the rest is the sum. From there on the rest stays from one WHOLE to two, so that it alone says whether
there is anything, and the search for idle nodes reads no other number.
"""

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import NEVER

WHOLE_BITS, STEP_BITS = np.int64(60), np.int64(30)
WHOLE = np.int64(1) << WHOLE_BITS  # ns, 36 years
LARGE = np.int64(2) << WHOLE_BITS  # ns: the rest of a sum is less than that
STEP = np.int64(1) << STEP_BITS  # ns, a second: how exactly a message states a large sum
MOST_WHOLES = (np.int64(1) << 31) - 2  # that a message states


@inlined
def carry(rest: int, wholes: int) -> tuple[int, int]:
    """Return a sum with its rest in range, after at most `4 * WHOLE` was added to the rest or subtracted from it."""
    if rest >= LARGE:
        more = (rest >> WHOLE_BITS) - 1
        return rest - more * WHOLE, wholes + more
    if wholes > 0 and rest < WHOLE:
        less = min(wholes, 1 - (rest >> WHOLE_BITS))
        return rest + less * WHOLE, wholes - less
    return rest, wholes


@inlined
def multiple(amount: int, times: int) -> tuple[int, int]:
    """Return an amount of at most WHOLE, times a number below 2**31, as a sum."""
    steps = (amount >> STEP_BITS) * times
    rest = ((steps & (STEP - 1)) << STEP_BITS) + (amount & (STEP - 1)) * times
    return carry(rest, steps >> STEP_BITS)


@inlined
def spread(rest: int, wholes: int, slots: int) -> int:
    """Return a sum spread evenly over slots, ns, rounded down; less than NEVER.

    Most nodes have one slot: a division would take most of the search for nodes.
    """
    if wholes == 0:
        return rest if slots == 1 else rest // slots
    steps = (min(wholes, MOST_WHOLES) << STEP_BITS) + (rest >> STEP_BITS)
    if steps // slots >= NEVER >> STEP_BITS:
        return NEVER - 1
    return (steps // slots << STEP_BITS) + ((steps % slots << STEP_BITS) + (rest & (STEP - 1))) // slots


@inlined
def pack(rest: int, wholes: int) -> int:
    """Return a sum as one number of a message: below LARGE to the nanosecond, above in steps of a second."""
    if wholes == 0:
        return rest
    return LARGE + (min(wholes, MOST_WHOLES) << STEP_BITS) + (rest >> STEP_BITS)


@inlined
def unpack(packed: int) -> tuple[int, int]:
    """Return the sum that a number of a message states."""
    if packed < LARGE:
        return packed, np.int64(0)
    steps = packed - LARGE
    return carry((steps & (STEP - 1)) << STEP_BITS, steps >> STEP_BITS)


def total_ns(packed: int) -> int:
    """Return the sum that a number of a message states, as an int of Python."""
    return packed if packed < LARGE else (packed - int(LARGE)) << int(STEP_BITS)
