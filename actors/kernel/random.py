"""Counter-based random numbers: (seed, stream, owner, counter) gives the value, whichever actor draws it, and when.

No generator has a state that actors share, so grouping actors into partitions cannot change a draw. The
mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
generators, OOPSLA 2014), applied once to the stream and once to the counter.
"""

import numpy as np

from actors.kernel.compiled import inlined

# Streams: one per purpose, so that no two purposes share draws.
PROBES, RETRIES, LAST_RETRIES, VICTIMS, LOOT, JITTER, DELAYS, PLACEMENT = (np.int64(i) for i in range(1, 9))
FAILURES, AGAIN, CANDIDATES, DRAW_ORDER, OWN_DRAWS, PLACES, READS, HOMES = (np.int64(i) for i in range(9, 17))

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_OWNER = np.uint64(0xD1342543DE82EF95)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_S2, _S11, _S32 = np.uint64(2), np.uint64(11), np.uint64(32)


@inlined
def mix(z: np.uint64) -> np.uint64:
    """Scramble 64 bits (SplitMix64's finaliser)."""
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@inlined
def random_bits(seed: int, stream: int, owner: int, counter: int) -> np.uint64:
    """Return 64 random bits. All four arguments are int64."""
    base = mix(np.uint64(seed) * _GOLDEN + np.uint64(stream) + np.uint64(owner) * _OWNER)
    return mix(base + _GOLDEN * (np.uint64(counter) + np.uint64(1)))


@inlined
def next_bits(carried: int) -> int:
    """Return the next 62 random bits of a chain of draws whose last value a message carries, as int64."""
    return np.int64(mix(np.uint64(carried) + _GOLDEN) >> _S2)


@inlined
def below(bits: np.uint64, n: int) -> int:
    """Return an int64 in [0, n), n < 2**32, from random bits; no value is off by more than n / 2**32."""
    return np.int64(((bits >> _S32) * np.uint64(n)) >> _S32)


@inlined
def unit(bits: np.uint64) -> float:
    """Return a float64 in (0, 1] from random bits; never 0, so its logarithm is finite."""
    return (np.float64(bits >> _S11) + 1.0) * 1.1102230246251565e-16
