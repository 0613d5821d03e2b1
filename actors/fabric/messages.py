"""Kinds of messages between the coordinator of coflows and the agents of the ports.

They share their numbers with the kinds of `actors.kernel.queue`, as no partition has both; the upper hexadecimal
digit is the rank, as there. `ARRIVAL` is the registration of a coflow by its framework, which is no actor of the
emulation: the message is due one network delay after the coflow has arrived. In the comments: columns a, b, c; times
in ns. Rates (bytes per ns) are the bits of a float, and so are times that may be inf.
"""

import numpy as np

FLOW_END = np.int64(0x00)  # agent to itself: flow, its end as foreseen
LINE_END = np.int64(0x03)  # agent to itself: line
# coordinator to agent: flow, rate, beyond its line's if that has one, 0 stops it; of updated coflows its life and bytes
SET_RATE = np.int64(0x10)
SHRINK = np.int64(
    0x11
)  # coordinator to agent: line, ns in which its waiting flows end together; inf stops them
FLOW_DONE = np.int64(0x12)  # agent to coordinator: flow, when it ended; of updated coflows its life and bytes
PACE = np.int64(
    0x13
)  # coordinator to agent: flow, ns in which it ends by itself; inf: again with those that wait
LINE_DONE = np.int64(
    0x14
)  # agent to coordinator: line whose waiting flows have ended, when they did, how many
SET_LINE = np.int64(0x15)  # coordinator to agent: line, rate of each of its flows; 0 stops them
CHANGE = np.int64(0x20)  # agent to itself: which of the updates' stops, after whatever else it hears
UPDATE = np.int64(0x40)  # framework to coordinator: which update, after ends and registrations
DECIDE = np.int64(0x50)  # coordinator to itself, when all else at its instant is done
TELL = np.int64(0x51)  # coordinator to itself: go on telling what has been decided at this instant
