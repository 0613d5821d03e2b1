"""The big switch: ports, and the flows of coflows between them, laid out for rate allocation.

Ports are numbered so that a set of ports is a run of words: ingress i is port i, egress j is port ``side + j``, where
`side` is the number of ports rounded up to a multiple of 64. A *line* is the unfinished flows of a group that enter (or
leave) at one port. It is kept as a few words of bits: a flow is the bit of the port at its other end. Words that have
no flow are left out, so that a narrow coflow at a switch of 15,000 ports takes little room, and a wide coflow at 150
ports takes three words. A *group* is a coflow (groups 0 to C - 1), or the pilot flows of a coflow (from C on), which
some policies serve by themselves.


When flows end stands in a heap of (time in ns, flow), in which stale entries stay until they come first. An entry is
valid if its time is its flow's `end`. It is stale if its flow was stopped, or has another end since.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.port_sets import bit_of, bits_before, count_bits
from actors.initial_arrays import per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, push
from actors.kernel.queue import NEVER, NONE
from workloads.coflows import CoflowArrays


class Lines(NamedTuple):
    """The L lines of G groups; ingress lines of a group lie together, and so do its egress lines."""

    # [G, 2] its ingress lines are first_line[g, 0] to before end_line[g, 0]; egress likewise
    first_line: np.ndarray = per("group")
    end_line: np.ndarray = per("group")
    port: np.ndarray = per("line")  # NONE for a line that waits for pilots
    group: np.ndarray = per("line")
    left: np.ndarray = per("line")  # unfinished flows
    bytes: np.ndarray = per("line", 0.0)  # what these have left, by `Flows.left`
    block: np.ndarray = per("line")  # room for its words: block[l]:block_end[l]
    block_end: np.ndarray = per("line")
    end: np.ndarray = per("line")  # its words are block[l]:end[l]; only greedy rates leave words out
    word: np.ndarray = per("word")  # which word of a set of ports
    bits: np.ndarray = per("word", np.uint64(0))  # unfinished flows
    mask: np.ndarray = per("word", np.uint64(0))  # all flows, also those that do not exist yet
    first: np.ndarray = per("word")  # index into `flow` of the first flow of the word
    # flows line by line, in order of the port at the other end, without free local flows; NONE for a line of pilots
    flow: np.ndarray = per("place")


class Flows(NamedTuple):
    """F flows in order of coflow, ingress, egress."""

    coflow: np.ndarray = per("flow")
    source: np.ndarray = per("flow")  # ingress port
    sink: np.ndarray = per("flow")  # egress port, from `side` on
    size: np.ndarray = per("flow", 0.0)  # bytes
    line: np.ndarray = per("flow", NONE)  # [F, 2] its ingress and egress lines, NONE for a free local flow
    left: np.ndarray = per("flow", 0.0)  # bytes left when it last started or stopped
    since: np.ndarray = per("flow")  # when that was, ns
    end: np.ndarray = per("flow", NEVER)  # when it ends if nothing happens, ns, NEVER while it does not run
    # When it ended, ns, NEVER before; 0 for a flow that does not exist
    finish: np.ndarray = per("flow", NEVER)


class Coflows(NamedTuple):
    """The description and progress of C coflows."""

    arrival: np.ndarray = per("coflow")  # ns
    first_flow: np.ndarray = per("coflow")  # its flows are first_flow[c] to before end_flow[c]
    end_flow: np.ndarray = per("coflow")
    weight: np.ndarray = per("coflow", 1.0)
    left: np.ndarray = per("coflow")  # unfinished flows
    start: np.ndarray = per("coflow", NEVER)  # of its first flow, ns, NEVER before
    finish: np.ndarray = per("coflow", NEVER)  # ns, NEVER before
    sent: np.ndarray = per("coflow", 0.0)  # bytes sent up to `since`
    rate: np.ndarray = per("coflow", 0.0)  # bytes per ns, of its running flows
    since: np.ndarray = per("coflow")  # ns
    place: np.ndarray = per("coflow")  # in the order of registration


class Fabric(NamedTuple):
    """The state that rate allocations work on; N = 2 `side` ports, where ports that do not exist have speed 0."""

    side: int  # first egress port
    speed: np.ndarray  # [N] of each port, bytes per ns
    flows: Flows
    coflows: Coflows
    lines: Lines
    local_is_free: bool  # flows from a port to itself take no bandwidth: they have no lines


def merge_parallel(work: CoflowArrays) -> tuple[CoflowArrays, np.ndarray]:
    """Put flows in order of coflow, ingress, egress, and merge flows of one coflow between the same two ports.

    To the switch they are one flow: they end when all their bytes have been sent.

    Returns
    -------
    CoflowArrays
        The same coflows.
    ndarray of int64, shape (F,)
        Which of its flows each flow of `work` is.
    """
    coflow = _coflow_of_flows(work)
    order = np.lexsort((work.egress, work.ingress, coflow))
    columns = [column[order] for column in (coflow, work.ingress, work.egress)]
    starts = np.flatnonzero(_changes(*columns))
    row = np.empty(order.size, np.int64)
    row[order] = np.repeat(np.arange(starts.size), np.diff(starts, append=order.size))
    first_flow = np.searchsorted(columns[0][starts], np.arange(work.arrival_ns.size + 1))
    merged = work._replace(
        first_flow=first_flow,
        ingress=columns[1][starts],
        egress=columns[2][starts],
        size_bytes=np.add.reduceat(work.size_bytes[order], starts),
    )
    return merged, row


def build_fabric(
    work: CoflowArrays,
    speed_bytes_per_s: float,
    pilots: np.ndarray | None = None,
    local_is_free: bool = False,
) -> Fabric:
    """Lay out the fabric of a workload, all flows unfinished.

    Parameters
    ----------
    work : CoflowArrays
        As `merge_parallel` makes it. A flow of 0 bytes does not exist yet: it has only its place on its lines.
    speed_bytes_per_s : float
        The speed of ports for which the workload gives none.
    pilots : ndarray of int64, shape (C,), optional
        How many flows of each coflow may be served as a group of their own; each takes two lines.
    local_is_free : bool, optional
        Flows from a port to itself take no bandwidth; the caller that registers their coflow ends them.
    """
    side = (work.ingress_bytes_per_s.size + 63) // 64 * 64
    pilots = np.zeros_like(work.arrival_ns) if pilots is None else pilots
    flows = Flows(
        coflow=_coflow_of_flows(work),
        source=work.ingress.copy(),
        sink=work.egress + side,
        size=work.size_bytes.copy(),
        line=np.full((work.ingress.size, 2), NONE),
        left=work.size_bytes.copy(),
        since=np.zeros(work.ingress.size, np.int64),
        end=np.full(work.ingress.size, NEVER),
        finish=np.where(work.size_bytes > 0, NEVER, 0),
    )
    crossing = np.flatnonzero((work.ingress != work.egress) | (not local_is_free))
    lines = _lay_lines(flows, crossing, pilots)
    speed = np.zeros(2 * side)
    for known, start in ((work.ingress_bytes_per_s, 0), (work.egress_bytes_per_s, side)):
        speed[start : start + known.size] = np.where(np.isnan(known), speed_bytes_per_s, known) / 1e9
    return Fabric(np.int64(side), speed, flows, _coflows(work), lines, bool(local_is_free))


def _coflow_of_flows(work: CoflowArrays) -> np.ndarray:
    """Return [F] the coflow of each flow."""
    return np.repeat(np.arange(work.arrival_ns.size), np.diff(work.first_flow))


def _coflows(work: CoflowArrays) -> Coflows:
    coflows = work.arrival_ns.size
    return Coflows(
        arrival=work.arrival_ns.copy(),  # a workload's arrays are read-only, another type to compiled code
        first_flow=work.first_flow[:-1].copy(),
        end_flow=work.first_flow[1:].copy(),
        weight=work.weight.copy(),
        left=np.add.reduceat(work.size_bytes > 0, work.first_flow[:-1], dtype=np.int64),
        start=np.full(coflows, NEVER),
        finish=np.full(coflows, NEVER),
        sent=np.zeros(coflows),
        rate=np.zeros(coflows),
        since=np.zeros(coflows, np.int64),
        place=np.arange(coflows),
    )


def _lay_lines(flows: Flows, crossing: np.ndarray, pilots: np.ndarray) -> Lines:
    """Return the lines of the flows in `crossing`, all ingress lines before all egress lines; set `flows.line`.

    A line of pilots has one word; its port and its flow are set when a pilot is chosen.
    """
    # Rows: for each side its flows, then a row without a flow for each line of pilots.
    groups = 2 * pilots.size
    of_pilots = np.repeat(np.arange(pilots.size, groups), pilots)
    apart, zeros = np.arange(of_pilots.size), np.zeros(of_pilots.size, np.int64)
    source, sink = flows.source[crossing], flows.sink[crossing]
    columns = [
        np.repeat([0, 1], crossing.size + of_pilots.size),
        np.tile(np.r_[flows.coflow[crossing], of_pilots], 2),
        np.r_[source, apart, sink, apart],
        np.r_[sink, zeros, source, zeros],
        np.tile(np.r_[crossing, zeros + NONE], 2),
    ]
    order = np.lexsort(columns[3::-1])
    for i, column in enumerate(
        columns
    ):  # one by one: two copies of all are the peak memory of a run of many flows
        columns[i] = column[order]
    side, group, near, far, flow = columns
    is_flow, size = flow != NONE, np.r_[flows.size, 0.0][flow]
    starts_line = _changes(side, group, near)
    starts, line = np.flatnonzero(starts_line), np.cumsum(starts_line) - 1
    flows.line[flow[is_flow], side[is_flow]] = line[is_flow]
    first = np.flatnonzero(_changes(line, far >> 6))
    bit, no_bit = np.uint64(1) << (far & 63).astype(np.uint64), np.uint64(0)
    block = np.r_[0, np.cumsum(np.bincount(line[first]))]
    of_group = np.searchsorted((side * groups + group)[starts], np.arange(groups + 1)[:, None] + [0, groups])
    return Lines(
        first_line=of_group[:-1].copy(),
        end_line=of_group[1:].copy(),
        port=np.where(group[starts] < pilots.size, near[starts], NONE),
        group=group[starts],
        left=np.add.reduceat(size > 0, starts, dtype=np.int64),
        bytes=np.add.reduceat(size, starts),
        block=block[:-1].copy(),
        block_end=block[1:].copy(),
        end=block[1:].copy(),
        word=far[first] >> 6,
        bits=np.bitwise_or.reduceat(np.where(size > 0, bit, no_bit), first),
        mask=np.bitwise_or.reduceat(np.where(is_flow, bit, no_bit), first),
        first=first,
        flow=flow,
    )


def _changes(*columns: np.ndarray) -> np.ndarray:
    """Return which rows differ from the row before; the first row counts as different."""
    changed = np.ones(columns[0].size, bool)
    changed[1:] = np.any([np.diff(column) != 0 for column in columns], axis=0)
    return changed


@inlined
def lines_of(lines: Lines, group: int, side: int) -> range:
    """Return the lines of a group at one side."""
    return range(lines.first_line[group, side], lines.end_line[group, side])


@inlined
def flows_of(coflows: Coflows, coflow: int) -> range:
    """Return the flows of a coflow."""
    return range(coflows.first_flow[coflow], coflows.end_flow[coflow])


@inlined
def words_on(lines: Lines, line: int) -> range:
    """Return all words of a line, also those that have no unfinished flow."""
    return range(lines.block[line], lines.block_end[line])


@inlined
def places_of(lines: Lines, line: int) -> range:
    """Return where the flows of a line are in `flow`, if no words have been left out."""
    last = lines.block_end[line] - 1
    return range(lines.first[lines.block[line]], lines.first[last] + count_bits(lines.mask[last]))


@inlined
def pilot_group(fabric: Fabric, coflow: int) -> int:
    """Return the group of a coflow's pilots."""
    return coflow + fabric.coflows.arrival.size


@inlined
def is_pilot_group(fabric: Fabric, group: int) -> bool:
    """Return whether a group consists of the pilots of a coflow."""
    return group >= fabric.coflows.arrival.size


@inlined
def coflow_of(fabric: Fabric, group: int) -> int:
    """Return the coflow of a group."""
    return group % fabric.coflows.arrival.size


@inlined
def flow_speed(fabric: Fabric, flow: int) -> float:
    """Return the speed of a flow that has both of its ports alone, bytes per ns."""
    return min(fabric.speed[fabric.flows.source[flow]], fabric.speed[fabric.flows.sink[flow]])


@inlined
def takes_bandwidth(fabric: Fabric, flow: int) -> bool:
    """Return whether a flow has lines: a flow from a port to itself has none where such flows are free."""
    return fabric.flows.line[flow, 0] != NONE


@inlined
def flow_at(lines: Lines, b: int, bit: np.uint64) -> int:
    """Return the flow of a line that has this bit of its word `b`."""
    return lines.flow[lines.first[b] + count_bits(lines.mask[b] & bits_before(bit))]


@compiled
def remove_from_line(lines: Lines, line: int, other: int, size: float) -> int:
    """Remove a flow of `size` bytes to port `other` from a line; return the word that it was in.

    The flow has ended, or goes to a line of pilots.
    """
    b = lines.block[line]
    while lines.word[b] != other >> 6:
        b += 1
    lines.bits[b] &= ~bit_of(other)
    lines.left[line] -= 1
    lines.bytes[line] = lines.bytes[line] - size if lines.left[line] > 0 else 0.0
    return b


@compiled
def add_to_line(lines: Lines, line: int, other: int, size: float) -> None:
    """Put a flow of `size` bytes to port `other` on a line that has room for it."""
    b = lines.block[line]
    while lines.word[b] != other >> 6:
        b += 1
    if b >= lines.end[line]:
        swap_words(lines, b, lines.end[line])
        b = lines.end[line]
        lines.end[line] += 1
    lines.bits[b] |= bit_of(other)
    lines.left[line] += 1
    lines.bytes[line] += size


@inlined
def drop_empty_word(lines: Lines, line: int, b: int) -> None:
    """Remove a word without bits from its line: the last word takes its place."""
    last = lines.end[line] - 1
    lines.end[line] = last
    swap_words(lines, b, last)


@inlined
def swap_words(lines: Lines, a: int, b: int) -> None:
    """Exchange two words of a line."""
    lines.word[a], lines.word[b] = lines.word[b], lines.word[a]
    lines.bits[a], lines.bits[b] = lines.bits[b], lines.bits[a]
    lines.mask[a], lines.mask[b] = lines.mask[b], lines.mask[a]
    lines.first[a], lines.first[b] = lines.first[b], lines.first[a]


@inlined
def take_bytes(fabric: Fabric, flow: int, amount: float) -> None:
    """Subtract bytes from what a flow and its two lines have left; a negative amount adds bytes."""
    flows, lines = fabric.flows, fabric.lines
    flows.left[flow] -= amount
    lines.bytes[flows.line[flow, 0]] -= amount
    lines.bytes[flows.line[flow, 1]] -= amount


@compiled
def finish_flow(fabric: Fabric, t: int, flow: int) -> bool:
    """End a flow and remove it from its lines; return whether its coflow has ended."""
    flows, lines = fabric.flows, fabric.lines
    remove_from_line(lines, flows.line[flow, 0], flows.sink[flow], flows.left[flow])
    remove_from_line(lines, flows.line[flow, 1], flows.source[flow], flows.left[flow])
    return mark_ended(fabric, t, flow)


@compiled
def mark_ended(fabric: Fabric, t: int, flow: int) -> bool:
    """End a flow, without a change of its lines; return whether its coflow has ended."""
    flows, coflows = fabric.flows, fabric.coflows
    flows.left[flow], flows.end[flow], flows.finish[flow] = 0.0, NEVER, t
    coflow = flows.coflow[flow]
    coflows.left[coflow] -= 1
    if coflows.left[coflow] == 0:
        coflows.finish[coflow] = last_end(fabric, coflow)
    return coflows.left[coflow] == 0


@compiled
def last_end(fabric: Fabric, coflow: int) -> int:
    """Return when the last flow of a coflow has ended: predicted ends are not marked in their order."""
    last = fabric.coflows.arrival[coflow]
    for flow in flows_of(fabric.coflows, coflow):
        last = max(last, fabric.flows.finish[flow])
    return last


@inlined
def change_rate(coflows: Coflows, t: int, coflow: int, by: float) -> None:
    """Add `by` bytes per ns to the rate of a coflow at t."""
    coflows.sent[coflow] = bytes_sent(coflows, t, coflow)
    coflows.since[coflow] = t
    coflows.rate[coflow] += by


@inlined
def bytes_sent(coflows: Coflows, t: int, coflow: int) -> float:
    """Return what a coflow has sent by t, bytes."""
    return coflows.sent[coflow] + coflows.rate[coflow] * (t - coflows.since[coflow])


_FAR = 1e18  # ns, 32 years: a longer duration, at a rate close to 0, would not fit into a time


@inlined
def whole_ns(duration: float) -> int:
    """Return a duration as whole ns, at least 1 and at most 32 years."""
    return max(np.int64(min(duration, _FAR) + 0.5), np.int64(1))


@inlined
def run_at_full_speed(fabric: Fabric, t: int, flow: int) -> None:
    """Let a flow run from t on at the full speed of its ports, and compute its end, at least 1 ns later."""
    flows = fabric.flows
    flows.since[flow] = t
    flows.end[flow] = t + whole_ns(flows.left[flow] / flow_speed(fabric, flow))


@inlined
def add_end(flows: Flows, ends: Heap, flow: int) -> None:
    """Put a flow's end into the heap; if the heap is full, remove its stale entries first."""
    if ends.size[0] == ends.keys.size:
        purge(flows, ends)
    push(ends, flows.end[flow], flow)


@compiled
def purge(flows: Flows, ends: Heap) -> None:
    """Remove stale entries from the heap."""
    size = ends.size[0]
    ends.size[0] = 0
    for i in range(size):
        time, flow = ends.keys[i], ends.values[i]
        if flows.end[flow] == time:
            push(ends, time, flow)


@compiled
def next_end(flows: Flows, ends: Heap) -> int:
    """Return when the next flow ends, which is then ``ends.values[0]``; NEVER if no flow runs."""
    while ends.size[0] > 0:
        if flows.end[ends.values[0]] == ends.keys[0]:
            return ends.keys[0]
        drop(ends)
    return NEVER
