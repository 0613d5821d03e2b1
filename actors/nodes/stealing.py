"""Randomized work stealing between nodes (Hawk, ATC'15, section 3.6).

A node that runs out of work asks random nodes of the part that long jobs may use, one after another, for short
work that waits behind long work. Asking, passing on and giving take the network delay each. That a question is
passed on, not sent back, halves the messages; it costs no outcome, for the thief would ask again.

1. A slot falls idle and nothing waits: ask a random node.
2. A node that is asked gives the group of short probes behind its first long entry (or at the head of its queue, if it
   runs a long task in any of its slots): it sends them on to the thief.
   Of a job with constraints those alone that the thief satisfies, and none of a job that says how its tasks must lie.
3. If it has none, it passes the question on to another random node, up to `attempts` in all. So does one that is down:
   that stands for the thief, which would wait in vain and ask the next.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import is_eligible, placement_of
from actors.kernel.faults import is_down
from actors.kernel.hints import Int
from actors.kernel.queue import PROBE, STEAL, send
from actors.kernel.random import LOOT, VICTIMS, below, next_bits, random_bits
from actors.kernel.world import LONG_RUNS, N_STEAL_ATTEMPTS, N_STEALS, N_STOLEN, NONE, World, free_entry
from actors.nodes.waiting import append, copy_entry, length_of, shorten, unlink


class Stealing(NamedTuple):
    """Parameters of stealing, and each node's own state of it."""

    attempts: int  # victims asked before a thief gives up; 0: no stealing
    limit: int  # the most probes taken from one victim
    at_random: bool  # short probes from anywhere in the queue; else the group behind the first long entry
    instant: bool  # the thief sees its victims' queues and takes at once (global view)
    first: int  # the first node that may be a victim
    searches: np.ndarray  # [N] times the node has gone looking for work


def make_stealing(
    nodes: int, *, attempts: int, limit: int, at_random: bool, instant: bool, first: int
) -> Stealing:
    """Stealing among `nodes` nodes, of which those from `first` on are victims."""
    searches = np.zeros(nodes, np.int64)
    return Stealing(int(attempts), int(limit), at_random, instant, int(first), searches)


@inlined
def seek(w: World, p: Stealing, t: Int, node: Int) -> bool:
    """Step 1: a node with nothing to do looks for work; with a global view it may find it at once."""
    draws = np.int64(random_bits(w.seed, VICTIMS, node, p.searches[node]) >> np.uint64(2))
    p.searches[node] += 1
    if not p.instant:
        ask(w, p, t, node, node, p.attempts, draws)
        return False
    for _ in range(p.attempts):
        draws = next_bits(draws)
        w.counts[N_STEAL_ATTEMPTS] += 1
        if loot(w, p, t, victim_of(w, p, draws), node, draws) > 0:
            return True
    return False


@inlined
def ask(w: World, p: Stealing, t: Int, node: Int, thief: Int, attempts: Int, draws: Int) -> None:
    """Ask a random node on behalf of the thief; a draw of the thief or of the asking node is an attempt lost."""
    victim = node
    while attempts > 0 and (victim == thief or victim == node):
        draws = next_bits(draws)
        victim = victim_of(w, p, draws)
        attempts -= 1
        w.counts[N_STEAL_ATTEMPTS] += 1
    if victim != thief and victim != node:
        send(w, t, node, victim, STEAL, thief, attempts, draws, NONE)


@inlined
def victim_of(w: World, p: Stealing, draws: Int) -> Int:
    """A node of the part that long jobs may use."""
    return p.first + below(np.uint64(draws) << np.uint64(2), w.nodes.size - p.first)


@inlined
def on_steal(w: World, p: Stealing, t: Int, victim: Int, thief: Int, attempts: Int, draws: Int) -> None:
    """Steps 2 and 3: give, or pass the question on."""
    if loot(w, p, t, victim, thief, draws) == 0 and attempts > 0:
        ask(w, p, t, victim, thief, attempts, draws)


@inlined
def first_behind_long(w: World, victim: Int) -> tuple[Int, Int]:
    """The first short probe behind the first long work, and the entry in front of it; NONE if there is none."""
    rows = w.entries
    entry, before = w.nodes.head[victim], NONE
    if w.nodes.longs[victim] < LONG_RUNS:
        while entry != NONE and rows.is_long[entry] == 0:
            entry, before = rows.next[entry], entry
    while entry != NONE and rows.is_long[entry] == 1:
        entry, before = rows.next[entry], entry
    return entry, before


@inlined
def is_loot(w: World, entry: Int) -> bool:
    """Whether an entry is a probe of a short job."""
    return entry != NONE and w.entries.is_long[entry] == 0 and w.entries.task[entry] == NONE


@inlined
def suits(w: World, entry: Int, thief: Int) -> bool:
    """Whether the thief may run the job of a probe. Nodes know the level at which a job starts; it stays as it is."""
    job = w.entries.job[entry]
    return placement_of(w, job) == 0 and is_eligible(w, job, thief)


@inlined
def give(w: World, t: Int, victim: Int, thief: Int, entry: Int, before: Int, instant: bool) -> bool:
    """Move one probe of a run to the thief: by message, or at once. True if it was the last one."""
    rows = w.entries
    taken, is_last = entry, rows.more[entry] == NONE
    if is_last:
        unlink(w, victim, entry, before)
    else:
        taken = shorten(rows, entry)
        copy_entry(rows, taken, entry)
    if instant:
        rows.next[taken], rows.bypassed[taken], rows.task[taken], rows.more[taken] = NONE, 0, NONE, NONE
        append(w, thief, taken)
    else:
        send(w, t, victim, thief, PROBE, rows.job[taken], rows.left[taken], NONE, NONE)
        free_entry(w.entries, taken)
    return is_last


@inlined
def loot(w: World, p: Stealing, t: Int, victim: Int, thief: Int, draws: Int) -> Int:
    """Step 2: give the thief what it may have; returns how many probes that is. A node that is down has nothing."""
    if is_down(w, victim):
        return 0
    if w.nodes.head[victim] == NONE or (not p.at_random and w.nodes.longs[victim] == 0):
        return 0
    return search(w, p, t, victim, thief, draws)


@compiled
def search(w: World, p: Stealing, t: Int, victim: Int, thief: Int, draws: Int) -> Int:
    """Find and give what the thief may have, in a queue that may hold some."""
    given: Int = 0
    if not p.at_random:
        entry, before = first_behind_long(w, victim)
        while given < p.limit and is_loot(w, entry):
            after = w.entries.next[entry]
            if not suits(w, entry, thief):
                entry, before = after, entry
                continue
            given += 1
            if give(w, t, victim, thief, entry, before, p.instant):
                entry = after
    else:
        given = loot_at_random(w, p, t, victim, thief, draws)
    if given > 0:
        w.counts[N_STEALS] += 1
        w.counts[N_STOLEN] += given
    return given


@inlined
def loot_at_random(w: World, p: Stealing, t: Int, victim: Int, thief: Int, draws: Int) -> Int:
    """Short probes from anywhere in the queue, each equally likely (selection sampling, one pass)."""
    count: Int = 0
    entry, before = w.nodes.head[victim], NONE
    while entry != NONE:
        count += length_of(w.entries, entry) if is_loot(w, entry) and suits(w, entry, thief) else 0
        entry = w.entries.next[entry]
    wanted = min(count, p.limit)
    given, entry = 0, w.nodes.head[victim]
    while entry != NONE:
        after = w.entries.next[entry]
        left: Int = 0
        if is_loot(w, entry) and suits(w, entry, thief):
            left = length_of(w.entries, entry)
        for _ in range(left):
            bits = random_bits(w.seed, LOOT, draws, count)
            if below(bits, count) < wanted - given:
                given += 1
                if give(w, t, victim, thief, entry, before, p.instant):
                    entry = before
            count -= 1
        entry, before = after, entry
    return given
