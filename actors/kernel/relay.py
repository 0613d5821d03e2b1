"""The exchange between machines, in compiled code: one partition of each sends the frames of all there.

In each window it sends one message to each other machine: the frames of the partitions here (`actors.kernel.window`),
with only those of their messages that are for partitions there; and it receives one from each.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined, waiting_entry
from actors.kernel.system_calls import (
    READS,
    WALL,
    WRITES,
    clock_ns,
    load,
    pause,
    ready,
    receive,
    send,
    sleep_while,
)
from actors.kernel.window import FIELDS, HEADER, end_of_frame, header_size, messages_for

# What is known of another machine: columns of `machines`.
(
    SOCKET,  # the file descriptor
    SIZE,  # bytes of the message to it
    SENT,  # of them
    LEAST,  # bytes of its shortest message
    GOT,  # bytes of its message that have come
    IS_CLOSED,  # 1 if it has closed the connection
    COLUMNS,
) = range(7)
HERE = -1
# The words in front of the frames of a message.
(
    BYTES,  # of the message
    NUMBER,  # of the window
    PAUSES,  # 1 if all pause there
    PREFIX,
) = range(4)
WORD = 8  # bytes
SLEEP_NS = 200_000_000
BEAT_NS = 200_000_000  # between two signs of life


class Links(NamedTuple):
    """The connections of one machine with J others."""

    machines: np.ndarray  # [J, COLUMNS]
    served_by: np.ndarray  # [K] by partition the number of the link to its machine, or HERE
    sends: np.ndarray  # [J room] the message to each machine
    gets: np.ndarray  # [J room] the message from each
    asked: np.ndarray  # [J] for `ready`
    begun: np.ndarray  # [1] 1 within an exchange
    room: int  # words for a message
    sends_at: int  # addresses of the arrays
    gets_at: int
    asked_at: int


def make_links(sockets: Sequence[int], machines: Sequence[Sequence[int]], me: int, frame_size: int) -> Links:
    """Return the links of machine `me`: the connections to the others, in order, and the partitions of all."""
    others = [machine for machine in machines if machine is not machines[me]]
    partitions, room = sum(map(len, machines)), PREFIX + frame_size * max(map(len, machines))
    known = np.zeros((len(others), COLUMNS), np.int64)
    served_by = np.full(partitions, HERE)
    for j, machine in enumerate(others):
        known[j, SOCKET] = sockets[j]
        known[j, LEAST] = WORD * (PREFIX + len(machine) * header_size(partitions))
        served_by[np.array(machine)] = j
    sends, gets = np.zeros((2, len(others) * room), np.int64)
    asked, begun = np.zeros(len(others), np.int64), np.zeros(1, np.int64)
    addresses = [array.ctypes.data for array in (sends, gets, asked)]
    return Links(known, served_by, sends, gets, asked, begun, room, *addresses)


NO_LINKS = make_links([], [[]], 0, 0)


@inlined
def is_here(links: Links, k: int) -> bool:
    """Return whether a partition is on this machine."""
    return links.served_by[k] == HERE


@inlined
def num_others(links: Links) -> int:
    """Return the number of other machines."""
    return links.machines.shape[0]


@compiled
def write_message(
    links: Links, j: int, shared: np.ndarray, frames: int, frame_size: int, window: int, pauses: int
) -> None:
    """Write the message to machine `j`; the frames of all partitions begin at `frames`, each has `frame_size` words."""
    message, partitions, begin = links.sends, links.served_by.size, j * links.room
    place, head = begin + PREFIX, header_size(partitions)
    for k in range(partitions):
        if not is_here(links, k):
            continue
        frame = frames + k * frame_size
        for i in range(head):
            message[place + i] = shared[frame + i]
        row, end = frame + head, place + head
        for other in range(partitions):
            words = FIELDS * messages_for(shared, frame, other)
            if links.served_by[other] == j:
                for i in range(words):
                    message[end + i] = shared[row + i]
                end += words
            message[place + HEADER + other] = (end - place - head) // FIELDS
            row += words
        place = end
    size = WORD * (place - begin)
    message[begin + BYTES], message[begin + NUMBER], message[begin + PAUSES] = size, window, pauses
    links.machines[j, SIZE], links.machines[j, SENT], links.machines[j, GOT] = size, 0, 0


@compiled
def read_message(links: Links, j: int, shared: np.ndarray, frames: int, frame_size: int) -> int:
    """Copy the frames of machine `j` to their places; return whether all pause in their window."""
    message, partitions = links.gets, links.served_by.size
    place = j * links.room + PREFIX
    for k in range(partitions):
        if links.served_by[k] == j:
            end, frame = end_of_frame(message, place, partitions), frames + k * frame_size
            for i in range(end - place):
                shared[frame + i] = message[place + i]
            place = end
    return message[j * links.room + PAUSES]


@compiled
def moves(links: Links, j: int, window: int) -> int:
    """Send to machine `j` and receive from it what goes at once; return how many calls were successful."""
    known, begin, count = links.machines, j * links.room, 0
    if known[j, SENT] < known[j, SIZE]:
        place = links.sends_at + WORD * begin + known[j, SENT]
        done = send(known[j, SOCKET], place, known[j, SIZE] - known[j, SENT])
        if done > 0:
            known[j, SENT] += done
            count += 1
    left = bytes_to_come(links, j)
    if left > 0:
        done = receive(known[j, SOCKET], links.gets_at + WORD * begin + known[j, GOT], left)
        if done > 0:
            known[j, GOT] += done
            count += 1
            size = links.gets[begin + BYTES]
            if known[j, GOT] >= known[j, LEAST] and (
                links.gets[begin + NUMBER] != window or size < known[j, LEAST] or size > WORD * links.room
            ):
                done = 0  # no message of such a run
        if done == 0:
            known[j, IS_CLOSED] = 1
    return count


@inlined
def bytes_to_come(links: Links, j: int) -> int:
    """Return how many bytes of the message from machine `j` are known to come yet; behind it the next one follows."""
    known = links.machines
    if known[j, GOT] < known[j, LEAST]:
        return known[j, LEAST] - known[j, GOT]
    return links.gets[j * links.room + BYTES] - known[j, GOT]


@compiled
def ask(links: Links) -> int:
    """Write down what is waited for; return how many machines have not received and sent all."""
    known, count = links.machines, 0
    for j in range(num_others(links)):
        events = 0
        if bytes_to_come(links, j) > 0:
            events += READS
        if known[j, SENT] < known[j, SIZE]:
            events += WRITES
        if events > 0:
            links.asked[count] = known[j, SOCKET] + events * 2**32
            count += 1
    return count


@compiled
def exchange(links: Links, window: int, awake_ns: int) -> bool:
    """Send and receive the messages of a window; return False if some do not come for long, or never will.

    Called again, it continues. It is awake for `awake_ns` since the last bytes before it sleeps.
    """
    end = clock_ns(WALL) + awake_ns
    while True:
        count = 0
        for j in range(num_others(links)):
            count += moves(links, j, window)
            if links.machines[j, IS_CLOSED] == 1:
                return False
        waits = ask(links)
        if waits == 0:
            return True
        now = clock_ns(WALL)
        if count > 0:
            end = now + awake_ns
        elif now < end:
            pause()
        else:
            found = ready(links.asked_at, waits, SLEEP_NS)
            if found <= 0 and clock_ns(WALL) - now >= SLEEP_NS // 2:
                return False


@waiting_entry
def beat(signs: np.ndarray, address: int) -> None:
    """Send a byte over each of some sockets every BEAT_NS, until the first word at the address is not 0.

    This is a sign of life, also while code in Python computes: it needs no lock of Python's.
    """
    while load(address) == 0:
        for i in range(1, signs.size):
            send(signs[i], address, 1)
        sleep_while(address, 0, BEAT_NS)
