"""Sets of ports as words of 64 bits.

All words are uint64: numba turns a mixture of int64 and uint64 into float64.
"""

import numpy as np

from actors.kernel.compiled import inlined

# The upper six bits of a single bit times this number are a code for the bit's place (C. Leiserson, H. Prokop,
# K. Randall, Using de Bruijn Sequences to Index a 1 in a Computer Word, 1998).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, np.int64)
for _i in range(64):
    _PLACE[((0x03F79D71B4CB0A89 << _i) & (2**64 - 1)) >> 58] = _i

# Sums of 2, 4 and 8 bits side by side, then of all bytes (H. Warren, Hacker's Delight, section 5-1).
_M1, _M2, _M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_ONE, _S2, _S4, _S56, _S58, _63 = map(np.uint64, (1, 2, 4, 56, 58, 63))


@inlined
def lowest(word: np.uint64) -> np.uint64:
    """Return a word with only the lowest bit of a word that is not 0."""
    return word & (~word + _ONE)


@inlined
def place(bit: np.uint64) -> int:
    """Return the place of a single bit, 0 to 63."""
    return _PLACE[np.int64((bit * _DE_BRUIJN) >> _S58)]


@inlined
def count_bits(word: np.uint64) -> int:
    """Return how many bits of a word are set."""
    word = word - ((word >> _ONE) & _M1)
    word = (word & _M2) + ((word >> _S2) & _M2)
    word = (word + (word >> _S4)) & _M4
    return np.int64((word * _BYTES) >> _S56)


@inlined
def bit_of(port: int) -> np.uint64:
    """Return the bit of a port within its word."""
    return _ONE << (np.uint64(port) & _63)


@inlined
def bits_before(bit: np.uint64) -> np.uint64:
    """Return all bits below a single bit."""
    return bit - _ONE


@inlined
def include(words: np.ndarray, port: int) -> None:
    """Put a port into a set."""
    words[port >> 6] |= bit_of(port)


@inlined
def exclude(words: np.ndarray, port: int) -> None:
    """Take a port out of a set."""
    words[port >> 6] &= ~bit_of(port)
