"""The exchange between machines, in compiled code: one partition of each sends the frames of all there.

In each window it sends one message to each other machine: the frames of the partitions here (`actors.kernel.window`),
of whose messages with those for partitions there; and it receives one from each. All is in one array of int64, the
links: HEAD words; LINK words for each other machine; for each partition the number of the link to its machine, or HERE;
a word for each link, for `ready`; and room for a message to each, and from each.
"""

from collections.abc import Sequence

import numpy as np

from actors.kernel.clock import WALL, clock_ns
from actors.kernel.compiled import compiled, inlined, waiting_entry
from actors.kernel.sharing import load, pause, sleep_while
from actors.kernel.sockets import READS, WRITES, ready, receive, send
from actors.kernel.window import FIELDS, HEADER, end_of_frame, header_size, messages_for

(
    OTHERS,  # the number of other machines
    ADDRESS,  # of the array
    BEGUN,  # 1 within an exchange
    ROOM,  # words for a message
    HEAD,
) = range(5)
# Of another machine.
(
    SOCKET,  # the file descriptor
    SIZE,  # bytes of the message to it
    SENT,  # of them
    LEAST,  # bytes of its shortest message
    GOT,  # bytes of its message that have come
    IS_CLOSED,  # 1 if it has closed the connection
    LINK,
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
NONE = np.zeros(HEAD, np.int64)  # links to no other machine


def make_links(
    sockets: Sequence[int], machines: Sequence[Sequence[int]], me: int, frame_size: int
) -> np.ndarray:
    """Return the links of machine `me`: the connections to the others, in order, and the partitions of all."""
    others = [machine for machine in machines if machine is not machines[me]]
    partitions, count = sum(map(len, machines)), len(others)
    room = PREFIX + frame_size * max(map(len, machines))
    links = np.zeros(HEAD + LINK * count + partitions + count + 2 * count * room, np.int64)
    links[OTHERS], links[ADDRESS], links[ROOM] = count, links.ctypes.data, room
    served_by = links[HEAD + LINK * count :]
    served_by[:partitions] = HERE
    for j, machine in enumerate(others):
        link = links[HEAD + LINK * j :]
        link[SOCKET] = sockets[j]
        link[LEAST] = WORD * (PREFIX + len(machine) * header_size(partitions))
        served_by[np.array(machine)] = j
    return links


@inlined
def is_here(links: np.ndarray, k: int) -> bool:
    """Return whether a partition is on this machine."""
    return links[HEAD + LINK * links[OTHERS] + k] == HERE


@inlined
def place_of_asked(links: np.ndarray, partitions: int) -> int:
    """Return where the words for `ready` begin."""
    return HEAD + LINK * links[OTHERS] + partitions


@inlined
def place_of_message(links: np.ndarray, partitions: int, j: int, comes: int) -> int:
    """Return where the message to machine `j` begins, or that from it if `comes` is 1."""
    others = links[OTHERS]
    return place_of_asked(links, partitions) + others + (others * comes + j) * links[ROOM]


@compiled
def write_message(
    links: np.ndarray,
    j: int,
    shared: np.ndarray,
    frames: int,
    frame_size: int,
    partitions: int,
    window: int,
    pauses: int,
) -> None:
    """Write the message to machine `j`; the frames of all partitions begin at `frames`, each has `frame_size` words."""
    begin, served_by, link = (
        place_of_message(links, partitions, j, 0),
        HEAD + LINK * links[OTHERS],
        HEAD + LINK * j,
    )
    place = begin + PREFIX
    for k in range(partitions):
        if not is_here(links, k):
            continue
        frame = frames + k * frame_size
        head = header_size(partitions)
        for i in range(head):
            links[place + i] = shared[frame + i]
        row, into = frame + head, place + head
        for other in range(partitions):
            words = FIELDS * messages_for(shared, frame, other)
            if links[served_by + other] == j:
                for i in range(words):
                    links[into + i] = shared[row + i]
                into += words
            links[place + HEADER + other] = (into - place - head) // FIELDS
            row += words
        place = into
    links[begin + BYTES], links[begin + NUMBER], links[begin + PAUSES] = (
        WORD * (place - begin),
        window,
        pauses,
    )
    links[link + SIZE], links[link + SENT], links[link + GOT] = WORD * (place - begin), 0, 0


@compiled
def read_message(
    links: np.ndarray, j: int, shared: np.ndarray, frames: int, frame_size: int, partitions: int
) -> int:
    """Copy the frames of machine `j` to their places; return whether all pause in their window."""
    begin, served_by = place_of_message(links, partitions, j, 1), HEAD + LINK * links[OTHERS]
    place = begin + PREFIX
    for k in range(partitions):
        if links[served_by + k] != j:
            continue
        end, frame = end_of_frame(links, place, partitions), frames + k * frame_size
        for i in range(end - place):
            shared[frame + i] = links[place + i]
        place = end
    return links[begin + PAUSES]


@compiled
def moves(links: np.ndarray, j: int, partitions: int, window: int) -> int:
    """Send to machine `j` and receive from it what goes at once; return how many calls were successful."""
    link, count = HEAD + LINK * j, 0
    if links[link + SENT] < links[link + SIZE]:
        place = links[ADDRESS] + WORD * place_of_message(links, partitions, j, 0) + links[link + SENT]
        done = send(links[link + SOCKET], place, links[link + SIZE] - links[link + SENT])
        if done > 0:
            links[link + SENT] += done
            count += 1
    left = bytes_to_come(links, j, partitions)
    if left > 0:
        begin = place_of_message(links, partitions, j, 1)
        done = receive(links[link + SOCKET], links[ADDRESS] + WORD * begin + links[link + GOT], left)
        if done > 0:
            links[link + GOT] += done
            count += 1
            if links[link + GOT] >= links[link + LEAST] and (
                links[begin + NUMBER] != window
                or links[begin + BYTES] < links[link + LEAST]
                or links[begin + BYTES] > WORD * links[ROOM]
            ):
                done = 0  # no message of such a run
        if done == 0:
            links[link + IS_CLOSED] = 1
    return count


@inlined
def bytes_to_come(links: np.ndarray, j: int, partitions: int) -> int:
    """Return how many bytes of the message from machine `j` are known to come yet; behind it the next one follows."""
    link = HEAD + LINK * j
    if links[link + GOT] < links[link + LEAST]:
        return links[link + LEAST] - links[link + GOT]
    return links[place_of_message(links, partitions, j, 1) + BYTES] - links[link + GOT]


@compiled
def ask(links: np.ndarray, partitions: int) -> int:
    """Write down what is waited for; return how many machines have not received and sent all."""
    asked, count = place_of_asked(links, partitions), 0
    for j in range(links[OTHERS]):
        link, events = HEAD + LINK * j, 0
        if bytes_to_come(links, j, partitions) > 0:
            events += READS
        if links[link + SENT] < links[link + SIZE]:
            events += WRITES
        if events > 0:
            links[asked + count] = links[link + SOCKET] + events * 2**32
            count += 1
    return count


@compiled
def exchange(links: np.ndarray, partitions: int, window: int, awake_ns: int) -> bool:
    """Send and receive the messages of a window; return False if some do not come for long, or never will.

    Called again, it continues. It is awake for `awake_ns` since the last bytes before it sleeps.
    """
    asked = links[ADDRESS] + WORD * place_of_asked(links, partitions)
    end = clock_ns(WALL) + awake_ns
    while True:
        count = 0
        for j in range(links[OTHERS]):
            count += moves(links, j, partitions, window)
            if links[HEAD + LINK * j + IS_CLOSED] == 1:
                return False
        waits = ask(links, partitions)
        if waits == 0:
            return True
        now = clock_ns(WALL)
        if count > 0:
            end = now + awake_ns
        elif now < end:
            pause()
        else:
            found = ready(asked, waits, SLEEP_NS)
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
