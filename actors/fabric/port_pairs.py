"""Pairs of ports between which flows wait, listed at each of their ports.

Policies of single flows work on pairs: the flows of a pair have one rate (fair), or only the shortest can be served
(pfp). A pair is there while it has flows, so that memory follows the flows that are active. In the list of a port the
other ports of its pairs and one amount lie beside them, so that a search through a port reads memory in a row.

A list that is full moves to a range of twice its length; ranges that lists have left are taken again by lists of their
length. A hash table finds the pair of two ports.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE

_LEAST_ROOM = np.int64(4)  # of a list
_BITS = np.int64(31)  # of the lower part of a key; products then fit into 63 bits
_LOW = np.int64((1 << 31) - 1)
_SPREAD, _HIGH_SPREAD = np.int64(1640531527), np.int64(1518500249)  # multiplicative hashing (Knuth)


class Pairs(NamedTuple):
    """Room for Q pairs at a time, between N ports, of F flows."""

    of_flow: np.ndarray  # [F] the pair of a flow
    next: np.ndarray  # [F] the flow after a flow in the queue of its pair
    head: np.ndarray  # [Q] the first flow of the queue
    tail: np.ndarray  # [Q] the last one
    flows: np.ndarray  # [Q] how many there are
    key: np.ndarray  # [Q] the number of its two ports in the hash table
    place: np.ndarray  # [2 Q] its places in the lists of its ingress and its egress port: 2 q and 2 q + 1
    unused: np.ndarray  # [Q] the first `num_unused`: pairs that are not there
    num_unused: np.ndarray  # [1]
    table: np.ndarray  # [a power of two] pairs by the hash of their key, or NONE
    first: np.ndarray  # [N] where the list of a port begins
    size: np.ndarray  # [N] its pairs
    room: np.ndarray  # [N] its room, 0 or a power of two
    # [64] by logarithm of its room: a range that a list has left, which begins with the next one
    left: np.ndarray
    end: np.ndarray  # [1] ranges behind this place have not been used
    pair: np.ndarray  # [R] the lists
    other: np.ndarray  # [R] the other port of a pair
    amount: np.ndarray  # [R] float64, what a policy compares: flows, or bytes left of the shortest


def make_pairs(flows: int, ports: int, most: int) -> Pairs:
    """Return no pairs, with room for `most` at a time."""
    table = 1 << (2 * int(most)).bit_length()
    room = 8 * most + 2 * int(_LEAST_ROOM) * ports  # a list of n pairs has used less than 4 n, or 4
    return Pairs(
        of_flow=np.full(flows, NONE),
        next=np.full(flows, NONE),
        head=np.zeros(most, np.int64),
        tail=np.zeros(most, np.int64),
        flows=np.zeros(most, np.int64),
        key=np.zeros(most, np.int64),
        place=np.zeros(2 * most, np.int64),
        unused=np.arange(most)[::-1].copy(),
        num_unused=np.array([most]),
        table=np.full(table, NONE),
        first=np.zeros(ports, np.int64),
        size=np.zeros(ports, np.int64),
        room=np.zeros(ports, np.int64),
        left=np.full(64, NONE),
        end=np.zeros(1, np.int64),
        pair=np.zeros(room, np.int64),
        other=np.zeros(room, np.uint32),
        amount=np.zeros(room),
    )


def pairs_of(fabric: Fabric) -> Pairs:
    """Return no pairs, with room for those of all flows of a fabric."""
    flows, ports = fabric.flows, fabric.speed.size
    between = np.unique((flows.source * ports + flows.sink)[flows.line[:, 0] != NONE])
    return make_pairs(flows.size.size, ports, between.size)


def grow_pairs(p: Pairs, most: int) -> Pairs:
    """Return the same pairs with room for `most` at a time, and as many flows."""
    new, was, used = make_pairs(most, p.first.size, most), p.flows.size, p.end[0]
    more = np.zeros(used, np.int64)  # ranges that lists have left count as well
    lists = {
        name: np.append(getattr(new, name), more).astype(getattr(new, name).dtype)
        for name in ("pair", "other", "amount")
    }
    new = new._replace(**lists)
    for name in ("of_flow", "next", "head", "tail", "flows", "key", "place"):
        getattr(new, name)[: getattr(p, name).size] = getattr(p, name)
    for name in ("first", "size", "room", "left", "end"):
        getattr(new, name)[:] = getattr(p, name)
    for name in ("pair", "other", "amount"):
        getattr(new, name)[:used] = getattr(p, name)[:used]
    unused = np.concatenate([p.unused[: p.num_unused[0]], np.arange(most - 1, was - 1, -1)])
    new.unused[: unused.size], new.num_unused[0] = unused, unused.size
    enter_all(new, np.setdiff1d(np.arange(most), unused))
    return new


@inlined
def active_pairs(p: Pairs) -> int:
    """Return how many pairs have flows."""
    return p.flows.size - p.num_unused[0]


@inlined
def lacks_lists(p: Pairs, more: int) -> bool:
    """Return whether the lists may have too little room for so many more pairs: those of all their ports may move."""
    return p.pair.size - p.end[0] < 8 * (active_pairs(p) + more)


@inlined
def slot_of(p: Pairs, key: int) -> int:
    """Return where the search for a key begins."""
    return ((key & _LOW) * _SPREAD + (key >> _BITS) * _HIGH_SPREAD) >> 20 & (p.table.size - 1)


@compiled
def find_slot(p: Pairs, key: int) -> int:
    """Return the place in the table of the pair of a key, or the free place where it would be put."""
    i = slot_of(p, key)
    while p.table[i] != NONE and p.key[p.table[i]] != key:
        i = (i + 1) & (p.table.size - 1)
    return i


@compiled
def enter_all(p: Pairs, pairs: np.ndarray) -> None:
    """Enter pairs into the table, which does not have them."""
    for pair in pairs:
        p.table[find_slot(p, p.key[pair])] = pair


@compiled
def free_slot(p: Pairs, i: int) -> None:
    """Free a place in the table; pairs that were put behind it for lack of room move up."""
    mask = p.table.size - 1
    p.table[i] = NONE
    k = (i + 1) & mask
    while p.table[k] != NONE:
        home = slot_of(p, p.key[p.table[k]])
        if ((k - home) & mask) >= ((k - i) & mask):
            p.table[i], p.table[k] = p.table[k], NONE
            i = k
        k = (k + 1) & mask


@compiled
def pair_between(p: Pairs, source: int, sink: int) -> int:
    """Return the pair of two ports; if it is not there, enter it, without flows."""
    number = source * p.first.size + sink
    i = find_slot(p, number)
    if p.table[i] == NONE:
        p.num_unused[0] -= 1
        p.table[i] = p.unused[p.num_unused[0]]
        add_pair(p, p.table[i], number, source, sink)
    return p.table[i]


@compiled
def insert(p: Pairs, key: np.ndarray, pair: int, flow: int) -> None:
    """Put a flow into the queue of a pair, in order of `key` [F]."""
    p.of_flow[flow] = pair
    before: int = NONE
    if p.flows[pair] > 0:
        if key[p.tail[pair]] <= key[flow]:
            before = p.tail[pair]
        else:
            here = p.head[pair]
            while key[here] <= key[flow]:
                before, here = here, p.next[here]
    if before == NONE:
        p.next[flow], p.head[pair] = p.head[pair] if p.flows[pair] > 0 else NONE, flow
    else:
        p.next[flow], p.next[before] = p.next[before], flow
    if p.next[flow] == NONE:
        p.tail[pair] = flow
    p.flows[pair] += 1


@inlined
def add_pair(p: Pairs, pair: int, number: int, source: int, sink: int) -> None:
    """Enter a pair at its two ports."""
    p.key[pair], p.flows[pair] = number, 0
    for side in range(2):
        port, other = (source, sink) if side == 0 else (sink, source)
        if p.size[port] == p.room[port]:
            move_list(p, port)
        at = p.first[port] + p.size[port]
        p.size[port] += 1
        p.pair[at], p.other[at], p.amount[at], p.place[2 * pair + side] = pair, other, 0.0, at


@compiled
def move_list(p: Pairs, port: int) -> None:
    """Move the list of a port to a range of twice its length."""
    was, size = p.first[port], p.size[port]
    if p.room[port] > 0:
        p.room[port] *= 2
    else:
        p.room[port] = _LEAST_ROOM
    bits = bits_of_room(p, port)
    if p.left[bits] != NONE:
        p.first[port] = p.left[bits]
        p.left[bits] = p.pair[p.left[bits]]
    else:
        p.first[port] = p.end[0]
        p.end[0] += p.room[port]
    for i in range(size):
        a, b = p.first[port] + i, was + i
        p.pair[a], p.other[a], p.amount[a] = p.pair[b], p.other[b], p.amount[b]
        side = 0 if p.place[2 * p.pair[a]] == b else 1
        p.place[2 * p.pair[a] + side] = a
    if size > 0:
        leave_range(p, was, bits - 1)


@inlined
def bits_of_room(p: Pairs, port: int) -> int:
    """Return the logarithm of the room of a list."""
    bits = np.int64(0)
    while np.int64(1) << bits < p.room[port]:
        bits += 1
    return bits


@inlined
def leave_range(p: Pairs, first: int, bits: int) -> None:
    """Note that no list uses a range."""
    p.pair[first], p.left[bits] = p.left[bits], first


@compiled
def remove(p: Pairs, pair: int, flow: int) -> bool:
    """Take a flow out of the queue of its pair; return whether the pair is gone with it."""
    if p.head[pair] == flow:
        return remove_first(p, pair)
    before = p.head[pair]
    while p.next[before] != flow:
        before = p.next[before]
    p.next[before] = p.next[flow]
    if p.tail[pair] == flow:
        p.tail[pair] = before
    p.flows[pair] -= 1
    return False


@compiled
def remove_first(p: Pairs, pair: int) -> bool:
    """Take the first flow out of a pair's queue; return whether the pair is gone with it."""
    p.head[pair] = p.next[p.head[pair]]
    p.flows[pair] -= 1
    if p.flows[pair] > 0:
        return False
    free_slot(p, find_slot(p, p.key[pair]))
    number = p.key[pair]
    for side in range(2):
        port = number // p.first.size if side == 0 else number % p.first.size
        p.size[port] -= 1
        last, at = p.first[port] + p.size[port], p.place[2 * pair + side]
        p.pair[at], p.other[at], p.amount[at] = p.pair[last], p.other[last], p.amount[last]
        p.place[2 * p.pair[at] + side] = at
        if p.size[port] == 0:
            leave_range(p, p.first[port], bits_of_room(p, port))
            p.room[port] = 0
    p.unused[p.num_unused[0]] = pair
    p.num_unused[0] += 1
    return True


@compiled
def set_amount(p: Pairs, pair: int, amount: float) -> None:
    """Set the amount of a pair at both of its ports."""
    p.amount[p.place[2 * pair]] = p.amount[p.place[2 * pair + 1]] = amount
