"""Words of bits and the heap, against Python's integers and sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.fabric.port_sets import bit_of, bits_before, count_bits, exclude, include, lowest, place
from actors.kernel.compiled import entry
from actors.kernel.heap import drop, make_heap, push


@entry
def look_at(word, found):
    """How many bits are set, and where each is, by taking the lowest again and again."""
    count = count_bits(word)
    for i in range(count):
        bit = lowest(word)
        found[i] = place(bit)
        found[64 + i] = count_bits(bits_before(bit))
        word ^= bit
    return count


@entry
def toggle(words, ports):
    for i in range(ports.size):
        port = ports[i]
        if words[port >> 6] & bit_of(port):
            exclude(words, port)
        else:
            include(words, port)


@given(st.sets(st.integers(0, 63)))
@settings(max_examples=40)
def test_the_bits_of_a_word_are_found_lowest_first(bits: set[int]) -> None:
    found = np.zeros(128, np.int64)
    with np.errstate(over="ignore"):
        count = look_at(np.uint64(sum(1 << bit for bit in bits)), found)
    assert found[:count].tolist() == found[64 : 64 + count].tolist() == sorted(bits)
    assert count == len(bits)


@given(st.lists(st.integers(0, 191)))
@settings(max_examples=40)
def test_a_set_of_ports_holds_what_was_put_in_and_not_taken_out(ports: list[int]) -> None:
    words, held = np.zeros(3, np.uint64), set()
    toggle(words, np.array(ports, np.int64))
    for port in ports:
        held ^= {port}
    whole = sum(int(word) << (64 * i) for i, word in enumerate(words))
    assert {port for port in range(192) if whole >> port & 1} == held


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.integers(0, 29))
@settings(max_examples=40)
def test_a_heap_gives_its_pairs_in_order(pairs: list[tuple[int, int]], early: int) -> None:
    heap = make_heap(30)
    taken, waiting = [], []
    for i, (key, value) in enumerate(pairs):
        push(heap, key, value)
        waiting.append((key, value))
        if i == early:
            assert (heap.keys[0], heap.values[0]) == min(waiting)
            drop(heap)
            waiting.remove(min(waiting))
    while heap.size[0] > 0:
        taken.append((int(heap.keys[0]), int(heap.values[0])))
        drop(heap)
    assert taken == sorted(waiting)
