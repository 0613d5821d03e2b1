"""SplitMix64 in plain Python integers, written from the paper: what the kernel's random numbers are held against.

Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, doi 10.1145/2660193.2660195.
"""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(z: int) -> int:
    """The finaliser (David Stafford's variant 13)."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def splitmix64(state: int, count: int) -> list[int]:
    """The first `count` values of the generator that starts in `state`."""
    return [mix64((state + GOLDEN * i) & MASK) for i in range(1, count + 1)]


def draw_bits(seed: int, stream: int, owner: int, counter: int) -> int:
    """The `counter`-th 64 bits of an owner in a stream: one SplitMix64 sequence for each of them."""
    state = mix64((seed * GOLDEN + int(stream) + owner * 0xD1342543DE82EF95) & MASK)
    return mix64((state + GOLDEN * (counter + 1)) & MASK)


def draw(seed: int, stream: int, owner: int, counter: int, n: int) -> int:
    """The `counter`-th draw below `n`."""
    return ((draw_bits(seed, stream, owner, counter) >> 32) * n) >> 32
