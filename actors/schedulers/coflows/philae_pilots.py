"""Which flows of a coflow Philae sends ahead (Jajoo, Gandhi, Hu; ATC 2019, section 4.2).

How many: a share of its senders, a share of its flows, or a number. Which: from its least busy sender to the least busy
receiver of this sender, where the pilots at a port, of all coflows, say how busy it is; or from random ports.
"""

from typing import Any

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.port_sets import bit_of, bits_before, count_bits
from actors.fabric.ports import Fabric, Lines, add_to_line, lines_of, pilot_group, remove_from_line
from actors.fabric.sampling import fill_pilots, sampling_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.random import PROBES, below, random_bits
from actors.scheduler import Parameter
from workloads.coflows import CoflowArrays

_EMPTY = np.uint64(0)

SAMPLES = ("pilots=senders|flows|number",)
PILOT_PARAMETERS = (
    Parameter("thin_limit", 7, "integer", "flows up to which a coflow has no pilots", low=0, high=1 << 40),
    Parameter(
        "pilots",
        "senders",
        "choice",
        "how many pilots a coflow has: a share of its senders, a share of its flows, a number, or none (policy C)",
        choices=("senders", "flows", "number", "none"),
    ),
    Parameter(
        "pilot_share", 0.05, "share", "that share; one pilot is the least", needs=("pilots=senders|flows",)
    ),
    Parameter("pilot_number", 5, "integer", "that number", low=1, high=1 << 20, needs=("pilots=number",)),
    Parameter(
        "pilot_ports",
        "least-busy",
        "choice",
        "between which ports: those with the fewest pilots, or random ones",
        choices=("least-busy", "random"),
        needs=SAMPLES,
    ),
)


def pilots_of(work: CoflowArrays, parameters: dict[str, Any]) -> np.ndarray:
    """Return [C] how many pilots each coflow has: 0 if it is thin, and at most all of its flows."""
    coflows, flows, ports = work.arrival_ns.size, np.diff(work.first_flow), work.ingress_bytes_per_s.size
    coflow, pilots = np.repeat(np.arange(coflows), flows), np.zeros(coflows, np.int64)
    senders = np.bincount(np.unique(coflow * ports + work.ingress) // ports, minlength=coflows)
    fill_pilots(sampling_of(parameters), flows, senders, pilots)
    return pilots


@compiled
def choose_pilots(w: CoflowWorld, busy: np.ndarray, coflow: int, at_random: bool) -> int:
    """Choose the pilots of a coflow, make them a group of their own, and return how many there are."""
    fabric, lines = w.fabric, w.fabric.lines
    group = pilot_group(fabric, coflow)
    rows, columns = lines_of(lines, coflow, 0), lines_of(lines, coflow, 1)
    ingress, egress = lines.first_line[group, 0], lines.first_line[group, 1]
    count = len(lines_of(lines, group, 0))
    for i in range(count):
        if at_random:
            row = draw_line(w, coflow, 2 * i, rows, NONE)
            column = draw_line(w, coflow, 2 * i + 1, columns, row)
        else:
            row = least_busy(lines, busy, rows, NONE)
            column = least_busy(lines, busy, columns, row)
        if row == NONE or column == NONE:
            return i  # the other flows of the coflow take no bandwidth
        separate_pilot(fabric, row, column, ingress + i, egress + i)
        busy[lines.port[row]] += 1
        busy[lines.port[column]] += 1
    return count


@inlined
def may_join(lines: Lines, line: int, row: int) -> bool:
    """Return whether a line has unfinished flows, one of which is also in the line `row` unless that is NONE."""
    return lines.left[line] > 0 and (row == NONE or has_flow_to(lines, row, lines.port[line]))


@compiled
def least_busy(lines: Lines, busy: np.ndarray, among: range, row: int) -> int:
    """Return the first line, of those that may join, whose port has the fewest pilots."""
    best: int = NONE
    for line in among:
        if (best == NONE or busy[lines.port[line]] < busy[lines.port[best]]) and may_join(lines, line, row):
            best = line
    return best


@compiled
def draw_line(w: CoflowWorld, coflow: int, draw: int, among: range, row: int) -> int:
    """Return a random line, or the next line after it that may join."""
    lines = w.fabric.lines
    begin = below(random_bits(w.seed, PROBES, coflow, draw), len(among)) if len(among) > 0 else 0
    for i in range(len(among)):
        line = among.start + (begin + i) % len(among)
        if may_join(lines, line, row):
            return line
    return NONE


@compiled
def has_flow_to(lines: Lines, line: int, port: int) -> bool:
    """Return whether a line has an unfinished flow whose other port is `port`."""
    for b in range(lines.block[line], lines.end[line]):
        if lines.word[b] == port >> 6:
            return lines.bits[b] & bit_of(port) != _EMPTY
    return False


@compiled
def separate_pilot(fabric: Fabric, row: int, column: int, pilot_row: int, pilot_column: int) -> None:
    """Move the flow of an ingress line (row) and an egress line (column) to lines of its own."""
    lines, flows = fabric.lines, fabric.flows
    for side in range(2):
        line, other = (row, column) if side == 0 else (column, row)
        own = pilot_row if side == 0 else pilot_column
        port = lines.port[other]
        flow = assign_pilot_line(lines, own, line, port)
        add_to_line(lines, own, port, flows.size[flow])
        remove_from_line(lines, line, port, flows.size[flow])
        flows.line[flow, side] = own


@compiled
def assign_pilot_line(lines: Lines, own: int, line: int, port: int) -> int:
    """Set up a pilot's line for the flow of another line to a port, and return that flow."""
    b, c = lines.block[line], lines.block[own]
    while lines.word[b] != port >> 6:
        b += 1
    lines.first[c] = lines.first[b] + count_bits(lines.mask[b] & bits_before(bit_of(port)))
    lines.word[c], lines.bits[c], lines.mask[c] = port >> 6, _EMPTY, bit_of(port)
    lines.port[own] = lines.port[line]
    return lines.flow[lines.first[c]]


@compiled
def line_at(lines: Lines, coflow: int, side: int, port: int) -> int:
    """Return the line of a coflow at one of its ports."""
    low, high = lines.first_line[coflow, side], lines.end_line[coflow, side]
    while high - low > 1:
        mid = (low + high) >> 1
        if lines.port[mid] <= port:
            low = mid
        else:
            high = mid
    return low


@compiled
def has_pilot(fabric: Fabric, coflow: int, side: int, port: int) -> bool:
    """Return whether a coflow has a pilot at a port that has not ended."""
    lines, group = fabric.lines, pilot_group(fabric, coflow)
    for line in lines_of(lines, group, side):
        is_here = lines.port[line] == port
        if is_here and lines.left[line] > 0:
            return True
    return False
