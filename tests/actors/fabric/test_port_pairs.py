"""Pairs of ports come and go with their flows: against a dictionary of sorted lists."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.fabric.port_pairs import (
    Pairs,
    grow_pairs,
    insert,
    lacks_lists,
    make_pairs,
    pair_between,
    remove_first,
    set_amount,
)

PORTS, FLOWS = 6, 60
Known = dict[tuple[int, int], list[int]]


def check(p: Pairs, known: Known) -> None:
    at_port = defaultdict(set)
    for (source, sink), flows in known.items():
        pair = pair_between(p, source, sink)
        queue, flow = [], p.head[pair]
        for _ in range(p.flows[pair]):
            queue.append(int(flow))
            flow = p.next[flow]
        assert queue == flows
        at_port[source].add((sink, float(len(flows))))
        at_port[sink].add((source, float(len(flows))))
    for port in range(PORTS):
        rows = range(p.first[port], p.first[port] + p.size[port])
        assert {(int(p.other[i]), float(p.amount[i])) for i in rows} == at_port[port]
        assert len(rows) == len(at_port[port])
    assert p.flows.size - p.num_unused[0] == len(known)
    assert (p.table >= 0).sum() == len(known)


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), st.integers(3, 5), st.integers(0, 9)), max_size=FLOWS
)


@given(STEPS, st.integers(1, 4))
@settings(max_examples=60)
def test_pairs_are_those_of_the_flows_that_are_there(
    steps: list[tuple[bool, int, int, int]], room: int
) -> None:
    p, key, known = make_pairs(FLOWS, PORTS, room), np.zeros(FLOWS), Known()
    unused = list(range(FLOWS))
    for comes, source, sink, value in steps:
        if comes:
            flow = unused.pop()
            key[flow] = value
            if (source, sink) not in known and (p.num_unused[0] == 0 or lacks_lists(p, 1)):
                p = grow_pairs(p, max(2 * p.flows.size, FLOWS))
                assert not lacks_lists(p, 1)
            pair = pair_between(p, source, sink)
            insert(p, key, pair, flow)
            flows = known.setdefault((source, sink), [])
            place = sum(key[other] <= value for other in flows)
            flows.insert(place, flow)
            set_amount(p, pair, len(flows))
        elif (source, sink) in known:
            pair, flows = pair_between(p, source, sink), known[source, sink]
            unused.append(flows.pop(0))
            assert remove_first(p, pair) == (not flows)
            if flows:
                set_amount(p, pair, len(flows))
            else:
                del known[source, sink]
        check(p, known)
