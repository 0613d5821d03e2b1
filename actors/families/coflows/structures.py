"""What a snapshot of a run of coflows says of the switch: sizes, and the lines of its ports."""

from typing import Any

import numpy as np

from actors.hosting.snapshot import Refused, Snapshot, leaves
from actors.kernel.queue import NONE


def coflow_sizes(world: Any, state: Any) -> dict[str, int]:
    """How many there are of what numbers of the switch are indexes of."""
    fabric, named = world.fabric, {path.partition(".")[2]: leaf for path, leaf in leaves(state, "state")}
    flows, lines, ports = fabric.flows.size.size, fabric.lines.port.size, fabric.speed.size
    groups = fabric.lines.of_group.shape[0] - 1
    changes = max((a.size for path, a in named.items() if path.endswith((".changed", "changed"))), default=0)

    def size(path: str) -> int:
        return int(named[path].size) if path in named else 1

    pairs = next((path.rpartition(".")[0] for path in named if path.endswith("pairs.pair")), "")
    return {
        "flows": flows, "flows + 1": flows + 1, "coflows": fabric.coflows.arrival.size,
        "coflows + 1": fabric.coflows.arrival.size + 1, "lines": lines, "lines + 1": lines + 1, "ports": ports,
        "ports + 1": ports + 1, "groups": groups, "groups + 1": groups + 1, "words + 1": fabric.lines.word.size + 1,
        "words of a set": ports // 64 + 1, "places": fabric.lines.flow.size + 1, "lines and ports": lines + ports,
        "changes + 1": changes + 1, "pairs": size(f"{pairs}.head"), "pairs + 1": size(f"{pairs}.pair") + 1,
        "places of pairs": size(f"{pairs}.pair"), "ends + 1": size("shortest.ends.time") + 1,
        "queues": size("queues.size"), "places of flows": size("equal.heap"),
        "ends of flows + 1": size("equal.end_time") + 1, "places served": size("serving.heap"),
        "places in order + 1": size("flow_order.at") + 1,
    }  # fmt: skip


def check_lines(world: Any, saved: Snapshot) -> None:
    """The words of a line are those that it was built with, in any order; ports' flows and bits are there.

    Raises:
        Refused: they are not.
    """
    built, path = world.fabric.lines, "world.fabric.lines."
    block = built.block
    line = np.repeat(np.arange(block.size - 1), np.diff(block))
    own = built.port[line] != NONE  # those of pilots are laid out under way
    words, mask, first = (saved[path + name] for name in ("word", "mask", "first"))
    orders = [np.lexsort((w, line)) for w in (built.word, words)]
    for ours, theirs in ((built.word, words), (built.mask, mask), (built.first, first)):
        mine, kept = ours[orders[0]], theirs[orders[1]]
        if (mine != kept)[own].any():
            raise Refused("world.fabric.lines has other words than are built here")
    if (saved[path + "bits"] & ~mask).any():
        raise Refused("world.fabric.lines.bits has flows that there are not")
    end = saved[path + "end"]
    if ((end < block[:-1]) | (end > block[1:])).any():
        raise Refused("world.fabric.lines.end is outside of its line")
