"""Counter-based random numbers: the values of SplitMix64, in whole numbers below a bound and in (0, 1]."""

from __future__ import annotations

import numpy as np
import pytest
from splitmix import GOLDEN, draw, mix64, splitmix64

from actors.kernel import random
from actors.kernel.random import below, next_bits, random_bits, unit

# The published first values of SplitMix64 from state 0, and from state 1234567 (as in the tests of other libraries).
FROM_ZERO = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
FROM_1234567 = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


@pytest.fixture(autouse=True)
def _wrap_around() -> object:
    with np.errstate(over="ignore"):
        yield


def test_reference_generator_gives_the_published_values() -> None:
    assert splitmix64(0, 4) == FROM_ZERO
    assert splitmix64(1234567, 5) == FROM_1234567


def test_draws_of_an_owner_are_a_splitmix64_sequence() -> None:
    # Seed, stream and owner 0 begin in state mix(0) = 0.
    zero = np.int64(0)
    assert [int(random_bits(zero, 0, zero, np.int64(i))) for i in range(4)] == FROM_ZERO
    rng = np.random.default_rng(0)
    for _ in range(200):
        seed, owner, counter = (int(x) for x in rng.integers(0, 2**40, 3))
        stream, n = int(rng.integers(1, 9)), int(rng.integers(1, 2**31))
        bits = random_bits(np.int64(seed), stream, np.int64(owner), np.int64(counter))
        assert int(below(np.uint64(bits), np.int64(n))) == draw(seed, stream, owner, counter, n)
        assert float(unit(np.uint64(bits))) == ((int(bits) >> 11) + 1) / 2**53


def test_streams_are_distinct() -> None:
    names = ("PROBES", "RETRIES", "LAST_RETRIES", "VICTIMS", "LOOT", "JITTER", "DELAYS", "PLACEMENT")
    assert len({getattr(random, name) for name in names}) == len(names)


def test_a_negative_seed_is_as_good_as_any() -> None:
    bits = random_bits(np.int64(-1), 1, np.int64(3), np.int64(4))
    assert 0 <= int(below(np.uint64(bits), np.int64(10))) < 10


def test_next_bits_fit_an_int64_and_do_not_repeat() -> None:
    carried, seen = np.int64(1), set()
    for _ in range(2000):
        carried = next_bits(carried)
        assert 0 <= int(carried) < 2**62
        seen.add(int(carried))
    assert len(seen) == 2000
    assert int(next_bits(np.int64(5))) == mix64((5 + GOLDEN) % 2**64) >> 2


def test_unit_reaches_one_and_never_zero() -> None:
    assert float(unit(np.uint64(2**64 - 1))) == 1.0
    assert float(unit(np.uint64(0))) == 2.0**-53
    assert int(below(np.uint64(2**64 - 1), np.int64(7))) == 6
    assert int(below(np.uint64(0), np.int64(7))) == 0
