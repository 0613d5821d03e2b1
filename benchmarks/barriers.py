"""How many barriers `windows` takes, beside how many any conservative clock with barriers for all needs at least.

    python -m benchmarks.barriers [ROW,...] [--partitions 2,4]

A run in one process records its messages. From these follows what could be reached if all partitions knew at each
barrier when the next message will come from each of the others: all go on to the arrival of the first that has not been
sent yet. No lookahead by kind of message, of tasks that run for long or of reports that are known in advance, can need
fewer. Rows are those of `benchmarks.windows`; the delay of messages must not vary.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from actors.hosting.grouping import Grouping
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.recorded import read_events
from actors.hosting.recording import Recording
from actors.hosting.virtual import emulate
from actors.hosting.windows import divide, emulate_here
from actors.kernel.queue import NEVER, NONE
from actors.setting import Setting
from benchmarks.measuring import options, show
from benchmarks.windows import NEEDS, ROWS

MOST_BARRIERS = 100_000_000


def messages_of(setting: Setting) -> np.ndarray:
    """Return all messages between two actors, [n, 4]: sender, receiver, when each left and arrived, ns."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(Path(folder))
        emulate(setting, Observe(events=recording), in_process=True)
        parts = [
            np.column_stack([e.sender, e.receiver, e.left, e.time])[e.left != NONE]
            for e in read_events(recording, setting)
        ]
    return np.concatenate(parts)


def partitions_of(grouping: Grouping, actors: np.ndarray) -> np.ndarray:
    """Return the partition of each actor; -1 of the listener, which is in all."""
    found = np.full(actors.size, -1)
    for k in range(grouping.size):
        for ids in grouping.hosted(k):
            found[(actors >= ids.start) & (actors < ids.stop)] = k
    return found


def needed(messages: np.ndarray, grouping: Grouping) -> int:
    """Return how many barriers are needed at least."""
    sender, receiver = (partitions_of(grouping, messages[:, i]) for i in (0, 1))
    pairs = []
    for src in range(grouping.size):
        for dst in range(grouping.size):
            crossing = (
                messages[(sender == src) & ((receiver == dst) | (receiver == -1))] if src != dst else []
            )
            if len(crossing):
                order = np.argsort(crossing[:, 2], kind="stable")
                left, arrives = crossing[order, 2], crossing[order, 3]
                assert (np.diff(arrives) >= 0).all(), "delays vary"
                pairs.append((src, dst, left, arrives))
    at = [0] * grouping.size
    for count in range(MOST_BARRIERS):
        to = [int(NEVER)] * grouping.size
        for src, dst, left, arrives in pairs:
            first = np.searchsorted(left, at[src])  # messages that left before have been exchanged
            if first < left.size:
                to[dst] = min(to[dst], int(arrives[first]))
        if min(to) >= NEVER:
            return count + 1
        at = to
    raise AssertionError("no end")


def main() -> None:
    """Run the benchmark."""
    rows = ("YH1_sub", "GOOG_subtrace", "yahoo-15000", "0.1s-15000", "100s-15000")
    asked = options(__doc__, "rows", rows=rows, partitions=(2, 4))
    lines = [["", "partitions", "messages", "barriers", "needed at least", "of them"]]
    for name in asked.rows:
        if name in NEEDS and not NEEDS[name].exists():
            continue
        setting = ROWS[name]()
        messages = messages_of(setting)
        cast = Partition(setting, Observe(), whole=False).cast()
        for partitions in asked.partitions:
            least = needed(messages, divide(setting, cast, partitions))
            taken = emulate_here(setting, Observe(), partitions).windows
            figures = [f"{len(messages):,}", f"{taken:,}", f"{least:,}", f"{least / taken:.0%}"]
            lines.append([name, str(partitions), *figures])
    show("barriers", lines)


if __name__ == "__main__":
    main()
