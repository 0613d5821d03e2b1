"""The order in which groups of flows are served, and at each port its lines, in the order of their groups.

An `Order` is made as a whole by each decision: the level of a group is its place. In a `Ranking` a level is a key, not
a place: when a group comes, goes or moves, the others keep their levels. No two groups have the same level. A port's
lines are a ring through the port itself, so that entering, moving or removing a line costs the lines that it passes.
Lines without unfinished flows are not in the ring.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.ports import Coflows, Fabric, Lines, lines_of
from actors.initial_arrays import count_of, list_per, per, rings_of_lines
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class Order(NamedTuple):
    """The order of groups, and of the lines at each port; the lines of port n are line[first[n]:end[n]]."""

    groups: np.ndarray = list_per("group")  # the first `used` are in use
    used: np.ndarray = per("run")
    level: np.ndarray = per("group", NONE)  # the place of a group, NONE: it is not served
    first: np.ndarray = per("port")
    end: np.ndarray = per("port")
    line: np.ndarray = list_per("line")


@compiled
def set_order(order: Order, groups: np.ndarray, count: int) -> bool:
    """Serve the first `count` of `groups`, in their order; return whether the order has changed.

    Groups that leave the order have no flows left, and do not count as a change.
    """
    last, changed = NONE, False
    for i in range(count):
        was = order.level[groups[i]]
        changed = changed or was <= last
        last = was
    if changed:
        for i in range(order.used[0]):
            order.level[order.groups[i]] = NONE
        for i in range(count):
            order.groups[i] = groups[i]
            order.level[groups[i]] = i
        order.used[0] = count
    return changed


@compiled
def list_lines(fabric: Fabric, order: Order) -> None:
    """List each port's lines in the order of their groups, without lines that have no unfinished flows."""
    lines, first, end = fabric.lines, order.first, order.end
    fill(end, 0)
    for i in range(order.used[0]):
        group = order.groups[i]
        for side in range(2):
            for line in lines_of(lines, group, side):
                if lines.left[line] > 0:
                    end[lines.port[line]] += 1
    total = 0
    for port in range(end.size):
        first[port] = total
        total += end[port]
        end[port] = first[port]
    for i in range(order.used[0]):
        group = order.groups[i]
        for side in range(2):
            for line in lines_of(lines, group, side):
                if lines.left[line] > 0:
                    port = lines.port[line]
                    order.line[end[port]] = line
                    end[port] += 1


class Ranking(NamedTuple):
    """The levels of G groups, and the rings of L lines at N ports; port n is element `ports` + n."""

    ports: np.ndarray = count_of("line")  # [1]
    # groups of lower levels are served first; NONE: the group is not served
    level: np.ndarray = per("group", NONE)
    next: np.ndarray = rings_of_lines()  # [L + N]
    prev: np.ndarray = rings_of_lines()  # [L + N]
    given: np.ndarray = per("run")  # levels that `serve_in_order` has given


@inlined
def level_of(lines: Lines, ranking: Ranking, line: int) -> int:
    """Return the level of a line's group."""
    return ranking.level[lines.group[line]]


@compiled
def line_from(lines: Lines, ranking: Ranking, port: int, level: int) -> int:
    """Return the first line at a port with at least this level, or the port's own element."""
    line = ranking.next[ranking.ports[0] + port]
    while line < ranking.ports[0] and level_of(lines, ranking, line) < level:
        line = ranking.next[line]
    return line


@inlined
def link(r: Any, line: int, after: int) -> None:
    """Put a line into a ring, after the element `after`; `r` has `next` and `prev`."""
    before = r.next[after]
    r.next[after] = r.prev[before] = line
    r.prev[line], r.next[line] = after, before


@inlined
def unlink(r: Any, line: int) -> None:
    """Take a line out of its ring, if it is in one."""
    r.next[r.prev[line]] = r.next[line]
    r.prev[r.next[line]] = r.prev[line]
    r.next[line] = r.prev[line] = line


@compiled
def rank_group(lines: Lines, ranking: Ranking, group: int, level: int) -> None:
    """Give a group a level, or NONE, and move its lines to their places."""
    was = ranking.level[group]
    ranking.level[group] = level
    for side in range(2):
        for line in lines_of(lines, group, side):
            if lines.left[line] == 0:
                continue
            if was == NONE:
                link(ranking, line, ranking.prev[ranking.ports[0] + lines.port[line]])
            if level == NONE:
                unlink(ranking, line)
            else:
                place_line(lines, ranking, line, level)


@inlined
def place_line(lines: Lines, ranking: Ranking, line: int, level: int) -> None:
    """Move a line in its ring before lines of higher levels, or behind lines of lower levels."""
    after = ranking.prev[line]
    while after < ranking.ports[0] and level_of(lines, ranking, after) > level:
        after = ranking.prev[after]
    if after == ranking.prev[line]:
        before = ranking.next[line]
        while before < ranking.ports[0] and level_of(lines, ranking, before) <= level:
            before = ranking.next[before]
        if before == ranking.next[line]:
            return
        after = ranking.prev[before]
    unlink(ranking, line)
    link(ranking, line, after)


@compiled
def sort_groups(coflows: Coflows, groups: np.ndarray, keys: np.ndarray, count: int) -> None:
    """Sort the first `count` of `groups`, coflows, by `keys`, then by their registration (Shell's sort)."""
    place = coflows.place
    gap: int = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            key, group, j = keys[i], groups[i], i
            while j >= gap and (
                keys[j - gap] > key or (keys[j - gap] == key and place[groups[j - gap]] > place[group])
            ):
                keys[j], groups[j] = keys[j - gap], groups[j - gap]
                j -= gap
            keys[j], groups[j] = key, group
        gap //= 3
