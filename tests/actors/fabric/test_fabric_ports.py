"""The layout of a switch: every flow is found on the lines of its two ports, and leaves them when it ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from switch_runs import SPEED, arrays_of, switch, switches

from actors.fabric.ports import Fabric, build_fabric, change_rate, finish_flow, merge_parallel
from actors.kernel.queue import NONE
from workloads.coflows import make_coflow_workload


def on_lines(fabric: Fabric) -> set[tuple[int, int, int]]:
    """(group, port, other port) of every bit that is set."""
    lines, found = fabric.lines, set()
    for line in range(lines.port.size):
        for b in range(lines.block[line], lines.block_end[line]):
            for i in range(64):
                if int(lines.bits[b]) >> i & 1:
                    found.add((int(lines.group[line]), int(lines.port[line]), 64 * int(lines.word[b]) + i))
    return found


def test_a_wide_switch_has_words_only_where_flows_are() -> None:
    fabric = switch([(0, [(0, 199, 5.0), (0, 3, 7.0), (0, 5, 1.0), (150, 3, 2.0)])], 200)
    lines = fabric.lines
    assert fabric.side == 256
    assert list(zip(fabric.flows.source.tolist(), fabric.flows.sink.tolist(), strict=True)) == [
        (0, 259),
        (0, 261),
        (0, 455),
        (150, 259),
    ]
    assert lines.port.tolist() == [0, 150, 259, 261, 455]
    assert lines.left.tolist() == [3, 1, 2, 1, 1]
    assert lines.bytes.tolist() == [13, 2, 9, 1, 5]
    assert lines.block.tolist() == [0, 2, 3, 5, 6]
    assert lines.block_end.tolist() == [2, 3, 5, 6, 7]
    assert lines.word.tolist() == [4, 7, 4, 0, 2, 0, 0]
    assert lines.flow.tolist() == [0, 1, 2, 3, 0, 3, 1, 2]
    assert lines.first.tolist() == [0, 2, 3, 4, 5, 6, 7]


@given(switches())
@settings(max_examples=20)
def test_flows_lie_on_their_lines_until_they_end(fabric: Fabric) -> None:
    flows, lines = fabric.flows, fabric.lines
    rest = set(range(flows.size.size))
    for flow in range(flows.size.size):
        expected = set()
        for k in rest:
            coflow, source, sink = int(flows.coflow[k]), int(flows.source[k]), int(flows.sink[k])
            expected |= {(coflow, source, sink), (coflow, sink, source)}
            assert lines.port[flows.line[k]].tolist() == [source, sink]
        assert on_lines(fabric) == expected
        held = np.bincount(flows.line[sorted(rest)].ravel(), minlength=lines.port.size)
        assert lines.left.tolist() == held.tolist()
        rest.remove(flow)
        over = finish_flow(fabric, 10 + flow, flow)
        assert over == all(flows.coflow[k] != flows.coflow[flow] for k in rest)
    assert not lines.bits.any()
    assert not lines.bytes.any()
    assert flows.finish.tolist() == list(range(10, 10 + flows.size.size))


def test_pilots_have_room_for_lines_of_their_own() -> None:
    work = arrays_of([(0, [(0, 1, 5.0), (1, 1, 6.0), (2, 1, 7.0)]), (0, [(0, 0, 1.0)])], 3)
    lines = build_fabric(merge_parallel(work)[0], SPEED, np.array([2, 0])).lines
    # Groups 0 and 1 are the coflows, 2 and 3 their pilots; ingress lines of all groups come first.
    assert (lines.end_line - lines.first_line).tolist() == [[3, 1], [1, 1], [2, 2], [0, 0]]
    for line in (4, 5, 8, 9):
        assert (lines.group[line], lines.port[line], lines.left[line]) == (2, NONE, 0)
        assert lines.block_end[line] - lines.block[line] == 1
    assert lines.flow[lines.first[lines.block[7]]] == 3  # the egress line of the second coflow


def test_ports_have_the_workload_s_speeds_where_it_knows_them() -> None:
    work = make_coflow_workload(
        "speeds",
        [0],
        [1],
        [0],
        [1],
        [5],
        2,
        ingress_bytes_per_s=[2e9, np.nan],
        egress_bytes_per_s=[np.nan, 3e9],
    ).arrays()
    fabric = build_fabric(work, SPEED)
    assert fabric.speed[[0, 1, 64, 65]].tolist() == [2, 1, 1, 3]
    assert fabric.speed.sum() == 7


def test_what_a_coflow_sent_adds_up_over_its_rates() -> None:
    fabric = switch([(0, [(0, 1, 500.0)])], 2)
    for t, by in ((10, 2.0), (30, -1.0), (50, -1.0), (80, 0.5)):
        change_rate(fabric.coflows, t, 0, by)
    assert fabric.coflows.sent.tolist() == [60.0]
