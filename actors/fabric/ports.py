"""The big switch: ports, and the flows of coflows between them, laid out for rate allocation.

Ports are numbered so that a set of ports is a run of words: ingress i is port i, egress j is port ``side + j``, where
`side` is the number of ports rounded up to a multiple of 64. A *line* is what a group of flows has at one port: those
of its unfinished flows that enter (or leave) by it. A line is kept as a few words of bits, one bit for a flow, at the
place of the port at the flow's other end. Its words without bits are left out, so that a narrow coflow at a switch of
15,000 ports takes little, and a wide one at 150 ports takes three words. A *group* is a coflow (groups 0 to C - 1), or
the pilot flows of one (C and up), which some policies serve by themselves.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.port_sets import bit_of, bits_before, count_bits
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from workloads.coflows import CoflowArrays


class Lines(NamedTuple):
    """The L lines of G groups; ingress lines of a group lie together, and so do its egress lines."""

    # [G + 1, 2] its ingress lines are of_group[g, 0]:of_group[g + 1, 0]; egress likewise
    of_group: np.ndarray
    port: np.ndarray  # [L] NONE for a line that waits for pilots
    group: np.ndarray  # [L]
    left: np.ndarray  # [L] flows that are unfinished
    bytes: np.ndarray  # [L] float64, theirs, without what running flows have sent since they started
    block: np.ndarray  # [L + 1] room for its words: block[l]:block[l + 1]
    end: np.ndarray  # [L] its words are block[l]:end[l]; only greedy rates leave any out
    word: np.ndarray  # [B] which word of a set of ports
    bits: np.ndarray  # [B] uint64, unfinished flows
    mask: np.ndarray  # [B] uint64, all flows, also those that do not exist yet
    first: np.ndarray  # [B] index into `flow` of the first flow of the word
    # [2 F] flows line by line, in order of the port at the other end (without free local ones)
    flow: np.ndarray


class Flows(NamedTuple):
    """F flows in order of coflow, ingress, egress."""

    coflow: np.ndarray  # [F]
    source: np.ndarray  # [F] ingress port
    sink: np.ndarray  # [F] egress port, from `side` on
    size: np.ndarray  # [F] bytes, float64
    line: np.ndarray  # [F, 2] its ingress and egress lines, NONE for a free local flow
    left: np.ndarray  # [F] bytes left when it last started or stopped, float64
    since: np.ndarray  # [F] when that was, ns
    end: np.ndarray  # [F] when it ends if nothing happens, ns, NEVER where it does not run
    finish: np.ndarray  # [F] when it ended, ns, NEVER before; not NEVER for one that does not exist


class Coflows(NamedTuple):
    """The description and progress of C coflows."""

    arrival: np.ndarray  # [C] ns, ascending
    first_flow: np.ndarray  # [C + 1]
    weight: np.ndarray  # [C] float64
    left: np.ndarray  # [C] unfinished flows
    start: np.ndarray  # [C] of its first flow, ns, NEVER before
    finish: np.ndarray  # [C] ns, NEVER before
    sent: np.ndarray  # [C] float64, bytes sent up to `since`
    rate: np.ndarray  # [C] bytes per ns, of its running flows
    since: np.ndarray  # [C] ns


class Fabric(NamedTuple):
    """The state that rate allocations work on; N = 2 `side` ports, of which those that do not exist have speed 0."""

    side: int  # first egress port
    speed: np.ndarray  # [N] of each port, bytes per ns
    flows: Flows
    coflows: Coflows
    lines: Lines
    local_is_free: bool  # flows from a port to itself take no bandwidth: they have no lines


def merge_parallel(work: CoflowArrays) -> tuple[CoflowArrays, np.ndarray]:
    """Put flows in order of coflow, ingress, egress, and make those that a coflow has between two ports one flow.

    Which is what they are to the switch: they end when all their bytes have been sent.

    Returns
    -------
    CoflowArrays
        The same coflows.
    ndarray of int64, shape (F,)
        Which of its flows each flow of `work` is.
    """
    coflow = np.repeat(np.arange(work.arrival_ns.size), np.diff(work.first_flow))
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
        As `merge_parallel` makes it. A flow of no bytes is none yet: it has its place on its lines, and that is all.
    speed_bytes_per_s : float
        Of the ports whose speed the workload does not know.
    pilots : ndarray of int64, shape (C,), optional
        How many flows of each coflow may be served as a group of their own; each takes two lines.
    local_is_free : bool, optional
        Flows from a port to itself take no bandwidth; the caller that registers their coflow ends them.

    Raises
    ------
    ValueError
        If two flows of a coflow share both ports.
    """
    side = (work.ingress_bytes_per_s.size + 63) // 64 * 64
    coflow = np.repeat(np.arange(work.arrival_ns.size), np.diff(work.first_flow))
    order = np.lexsort((work.egress, work.ingress, coflow))
    source, sink, size = work.ingress[order], work.egress[order] + side, work.size_bytes[order]
    if not _changes(coflow, source, sink).all():
        raise ValueError("two flows of a coflow share both ports")
    crossing = np.flatnonzero((source + side != sink) | (not local_is_free))
    pilots = np.zeros_like(work.arrival_ns) if pilots is None else pilots
    lines, line_of_member = _lines(coflow[crossing], source[crossing], sink[crossing], size[crossing], pilots)
    lines = lines._replace(flow=crossing[lines.flow])
    line = np.full((size.size, 2), NONE)
    line[lines.flow[: crossing.size], 0] = line_of_member[: crossing.size]
    line[lines.flow[crossing.size :], 1] = line_of_member[crossing.size :]
    flows = Flows(
        coflow=coflow,
        source=source,
        sink=sink,
        size=size,
        line=line,
        left=size.copy(),
        since=np.zeros(size.size, np.int64),
        end=np.full(size.size, NEVER),
        finish=np.where(size > 0, NEVER, 0),
    )
    speed = _speeds(work, side, speed_bytes_per_s)
    return Fabric(np.int64(side), speed, flows, _coflows(work), lines, bool(local_is_free))


def _coflows(work: CoflowArrays) -> Coflows:
    coflows = work.arrival_ns.size
    return Coflows(
        arrival=work.arrival_ns.copy(),  # a workload's arrays are read-only, another type to compiled code
        first_flow=work.first_flow.copy(),
        weight=work.weight.copy(),
        left=np.add.reduceat(work.size_bytes > 0, work.first_flow[:-1], dtype=np.int64),
        start=np.full(coflows, NEVER),
        finish=np.full(coflows, NEVER),
        sent=np.zeros(coflows),
        rate=np.zeros(coflows),
        since=np.zeros(coflows, np.int64),
    )


def _speeds(work: CoflowArrays, side: int, default_bytes_per_s: float) -> np.ndarray:
    """Return the bytes per ns of all ports."""
    speed = np.zeros(2 * side)
    for known, start in ((work.ingress_bytes_per_s, 0), (work.egress_bytes_per_s, side)):
        speed[start : start + known.size] = np.where(np.isnan(known), default_bytes_per_s, known) / 1e9
    return speed


def _lines(
    coflow: np.ndarray, source: np.ndarray, sink: np.ndarray, size: np.ndarray, pilots: np.ndarray
) -> tuple[Lines, np.ndarray]:
    """Return the lines, first all ingress lines, then all egress lines; and the line of each `Lines.flow`."""
    (into, words_in), (out, words_out) = (
        _one_side(coflow, near, far, size, pilots) for near, far in ((source, sink), (sink, source))
    )
    port, group, members, left, total, num_words = (
        np.concatenate(pair) for pair in zip(into, out, strict=True)
    )
    word, bits, mask, first = (np.concatenate(pair) for pair in zip(words_in[:4], words_out[:4], strict=True))
    first[words_in[0].size :] += size.size  # places in `flow`
    groups = np.arange(2 * pilots.size + 1)
    block = np.concatenate([[0], np.cumsum(num_words)])
    begins = [np.searchsorted(side[1], groups) for side in (into, out)]
    lines = Lines(
        of_group=np.stack([begins[0], begins[1] + into[0].size], axis=1),
        port=port,
        group=group,
        left=left,
        bytes=total,
        block=block,
        end=block[1:].copy(),
        word=word,
        bits=bits,
        mask=mask,
        first=first,
        flow=np.concatenate([words_in[4], words_out[4]]),
    )
    return lines, np.repeat(np.arange(port.size), members)


def _one_side(
    coflow: np.ndarray, near: np.ndarray, far: np.ndarray, size: np.ndarray, pilots: np.ndarray
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return the lines of coflows at their `near` ports, then room for the lines of pilots, one word each.

    Returns each line's port, group, flows, those of them that exist, bytes, and number of words; and each word's
    place in a set of ports, bits, mask and first flow, with the flows line by line.
    """
    order = np.lexsort((far, near, coflow))
    coflow, near, far = coflow[order], near[order], far[order]
    spare, empty = int(pilots.sum()), np.zeros(int(pilots.sum()), np.int64)
    starts_line = _changes(coflow, near)
    line = np.cumsum(starts_line) - 1
    starts = np.flatnonzero(starts_line)
    begin = np.flatnonzero(_changes(line, far >> 6))
    bit, exists = np.uint64(1) << (far & 63).astype(np.uint64), size[order] > 0
    mask, bits = (np.bitwise_or.reduceat(own, begin) for own in (bit, np.where(exists, bit, np.uint64(0))))
    lines = (
        np.concatenate([near[starts], np.full(spare, NONE)]),
        np.concatenate([coflow[starts], np.repeat(pilots.size + np.arange(pilots.size), pilots)]),
        np.concatenate([np.bincount(line), empty]),
        np.concatenate([np.add.reduceat(exists, starts, dtype=np.int64), empty]),
        np.concatenate([np.add.reduceat(size[order], starts), np.zeros(spare)]),
        np.concatenate([np.bincount(line[begin]), empty + 1]),
    )
    words = (
        np.concatenate([far[begin] >> 6, empty]),
        np.concatenate([bits, empty.astype(np.uint64)]),
        np.concatenate([mask, empty.astype(np.uint64)]),
        np.concatenate([begin, empty]),
        order,
    )
    return lines, words


def _changes(*columns: np.ndarray) -> np.ndarray:
    """Return where a row differs from the one before it; the first does."""
    changed = np.ones(columns[0].size, bool)
    changed[1:] = np.any([np.diff(column) != 0 for column in columns], axis=0)
    return changed


@inlined
def pilot_group(fabric: Fabric, coflow: int) -> int:
    """Return the group of a coflow's pilots."""
    return coflow + fabric.coflows.arrival.size


@inlined
def is_pilot_group(fabric: Fabric, group: int) -> bool:
    """Return whether a group is the pilots of a coflow."""
    return group >= fabric.coflows.arrival.size


@inlined
def coflow_of(fabric: Fabric, group: int) -> int:
    """Return the coflow of a group."""
    return group % fabric.coflows.arrival.size


@inlined
def flow_speed(fabric: Fabric, flow: int) -> float:
    """Return the bytes per ns of a flow that has both of its ports alone."""
    return min(fabric.speed[fabric.flows.source[flow]], fabric.speed[fabric.flows.sink[flow]])


@inlined
def flow_at(lines: Lines, b: int, bit: np.uint64) -> int:
    """Return the flow of a line that has this bit of its word `b`."""
    return lines.flow[lines.first[b] + count_bits(lines.mask[b] & bits_before(bit))]


@compiled
def remove_from_line(lines: Lines, line: int, other: int, size: float) -> int:
    """Take a flow of `size` bytes to port `other` off a line: it has ended, or goes to a line of pilots.

    Returns the word that it was in.
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
    """Put a flow of `size` bytes to port `other` on a line, where it has its place."""
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
    """Remove a word without bits from its line: the last one takes its place."""
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


@compiled
def finish_flow(fabric: Fabric, t: int, flow: int) -> bool:
    """End a flow and take it off its lines; return whether its coflow has ended."""
    flows, lines = fabric.flows, fabric.lines
    remove_from_line(lines, flows.line[flow, 0], flows.sink[flow], flows.left[flow])
    remove_from_line(lines, flows.line[flow, 1], flows.source[flow], flows.left[flow])
    return mark_ended(fabric, t, flow)


@compiled
def mark_ended(fabric: Fabric, t: int, flow: int) -> bool:
    """End a flow where lines are not used; return whether its coflow has ended."""
    flows, coflows = fabric.flows, fabric.coflows
    flows.left[flow], flows.end[flow], flows.finish[flow] = 0.0, NEVER, t
    coflow = flows.coflow[flow]
    coflows.left[coflow] -= 1
    if coflows.left[coflow] == 0:
        coflows.finish[coflow] = last_end(fabric, coflow)
    return coflows.left[coflow] == 0


@compiled
def last_end(fabric: Fabric, coflow: int) -> int:
    """Return when the last flow of a coflow has ended: ends that were predicted are not marked in their order."""
    last = fabric.coflows.arrival[coflow]
    for flow in range(fabric.coflows.first_flow[coflow], fabric.coflows.first_flow[coflow + 1]):
        last = max(last, fabric.flows.finish[flow])
    return last


@inlined
def change_rate(coflows: Coflows, t: int, coflow: int, by: float) -> None:
    """Add so many bytes per ns to the rate of a coflow at t."""
    coflows.sent[coflow] = bytes_sent(coflows, t, coflow)
    coflows.since[coflow] = t
    coflows.rate[coflow] += by


@inlined
def bytes_sent(coflows: Coflows, t: int, coflow: int) -> float:
    """Return what a coflow has sent up to t."""
    return coflows.sent[coflow] + coflows.rate[coflow] * (t - coflows.since[coflow])
