"""Randomized work stealing between nodes (Hawk, ATC'15, section 3.6).

A node that runs out of work (the thief) asks random nodes of the long partition (the victims), one after another, for
short work that waits behind long work. Each request, each forwarded request and each reply takes the network delay. A
victim forwards a request instead of answering that it has nothing. This halves the messages and does not change the
outcome, because the thief would ask the next victim anyway.

1. A slot becomes idle and no entry waits: the node asks a random node.
2. The victim gives the group of short probes behind its first long entry (or at the head of its queue, if it
   runs a long task in any of its slots): it sends them on to the thief.
   It gives no probe whose job has constraints that the thief does not satisfy, and none of a job with a placement
   constraint.
3. A victim that has none forwards the request to another random node; at most `attempts` nodes are asked. A victim
   that is down does the same: it stands for the thief, which would wait for a timeout and ask the next one.
"""

from typing import NamedTuple

import numpy as np

from actors.constraints import is_eligible, placement_of
from actors.failures import is_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE, note
from actors.kernel.random import LOOT, VICTIMS, below, next_bits, random_bits
from actors.kernel.trace import MOVED, count_queued
from actors.nodes.messages import read_steal, send_probe, send_steal
from actors.nodes.waiting import copy_entry, goes_before, insert, last_not_below, length_of, shorten, unlink
from actors.nodes.world import LONG_RUNS, N_STEAL_ATTEMPTS, N_STEALS, N_STOLEN, World, free_entry


class Stealing(NamedTuple):
    """Parameters of stealing, and the state of each node."""

    attempts: int  # victims asked before a thief gives up; 0: no stealing
    limit: int  # the most probes taken from one victim
    at_random: bool  # short probes from anywhere in the queue; else the group behind the first long entry
    instant: bool  # the thief sees its victims' queues and takes at once (global view)
    first: int  # the first node that may be a victim
    searches: np.ndarray  # [N] how often the node has started to ask for work


@inlined
def start_stealing(w: World, p: Stealing, t: int, node: int) -> bool:
    """Step 1: ask for work; return whether some was taken at once, as a global view allows."""
    draws = np.int64(random_bits(w.seed, VICTIMS, node, p.searches[node]) >> np.uint64(2))
    p.searches[node] += 1
    if not p.instant:
        ask(w, p, t, node, node, p.attempts, draws)
        return False
    for _ in range(p.attempts):
        draws = next_bits(draws)
        w.counts[N_STEAL_ATTEMPTS] += 1
        if steal_from(w, p, t, victim_of(w, p, draws), node, draws) > 0:
            return True
    return False


@inlined
def ask(w: World, p: Stealing, t: int, node: int, thief: int, attempts: int, draws: int) -> None:
    """Ask a random node on behalf of the thief. A draw of the thief, or of the asking node, counts as an attempt."""
    victim = node
    while attempts > 0 and (victim == thief or victim == node):
        draws = next_bits(draws)
        victim = victim_of(w, p, draws)
        attempts -= 1
        w.counts[N_STEAL_ATTEMPTS] += 1
    if victim != thief and victim != node:
        send_steal(w, t, node, victim, thief, attempts, draws)


@inlined
def victim_of(w: World, p: Stealing, draws: int) -> int:
    """Return the node of the long partition that the random bits `draws` choose."""
    return p.first + below(np.uint64(draws) << np.uint64(2), w.nodes.size - p.first)


@inlined
def on_steal(w: World, p: Stealing, t: int, node: int) -> None:
    """Steps 2 and 3: give probes, or forward the request."""
    thief, attempts, draws = read_steal(w)
    if steal_from(w, p, t, node, thief, draws) == 0 and attempts > 0:
        ask(w, p, t, node, thief, attempts, draws)


@inlined
def first_behind_long(w: World, victim: int) -> tuple[int, int]:
    """Find the first short probe behind the first long work, and the entry in front of it; NONE if there is none."""
    rows = w.entries
    entry, before = w.nodes.head[victim], NONE
    if w.nodes.longs[victim] < LONG_RUNS:
        while entry != NONE and w.work.is_long[rows.job[entry]] == 0:
            entry, before = rows.next[entry], entry
    while entry != NONE and w.work.is_long[rows.job[entry]] == 1:
        entry, before = rows.next[entry], entry
    return entry, before


@inlined
def is_stealable(w: World, entry: int) -> bool:
    """Whether an entry may be stolen: it is a probe of a short job."""
    return entry != NONE and w.work.is_long[w.entries.job[entry]] == 0 and w.entries.task[entry] == NONE


@inlined
def thief_may_run(w: World, entry: int, thief: int) -> bool:
    """Whether the thief may run the job of a probe. Nodes know the level of a job: it never changes after the start."""
    job = w.entries.job[entry]
    return placement_of(w, job) == 0 and is_eligible(w, job, thief)


@inlined
def give(w: World, t: int, victim: int, thief: int, entry: int, before: int, instant: bool) -> bool:
    """Move one probe of a run to the thief: by message, or at once. Return whether it was the last one."""
    rows = w.entries
    count_queued(w.queue.trace, victim, -1)
    taken, is_last = entry, rows.more[entry] == NONE
    if is_last:
        unlink(w, victim, entry, before)
    else:
        taken = shorten(rows, entry)
        copy_entry(rows, taken, entry)
    if instant:
        rows.bypassed[taken], rows.task[taken], rows.more[taken] = 0, NONE, NONE
        note(w, t, thief, MOVED, rows.job[taken], victim, NONE, NONE)
        count_queued(w.queue.trace, thief, 1)
        before = w.nodes.tail[thief]
        if before != NONE and goes_before(w, rows.job[taken], rows.job[before]):
            before = last_not_below(w, thief, rows.job[taken])
        insert(w, thief, taken, before)
    else:
        job, left, level, epoch = rows.job[taken], rows.left[taken], rows.level[taken], rows.epoch[taken]
        send_probe(w, t, victim, thief, job, left, level, np.int64(0), epoch, NONE)
        free_entry(w.entries, taken)
    return is_last


@inlined
def steal_from(w: World, p: Stealing, t: int, victim: int, thief: int, draws: int) -> int:
    """Step 2: give stealable probes to the thief; return how many. A node that is down has none."""
    if is_down(w, victim):
        return 0
    if w.nodes.head[victim] == NONE or (not p.at_random and w.nodes.longs[victim] == 0):
        return 0
    return search(w, p, t, victim, thief, draws)


@compiled
def search(w: World, p: Stealing, t: int, victim: int, thief: int, draws: int) -> int:
    """Find stealable probes in a queue that is not empty, and give them; return how many."""
    given: int = 0
    if not p.at_random:
        entry, before = first_behind_long(w, victim)
        while given < p.limit and is_stealable(w, entry):
            after = w.entries.next[entry]
            if not thief_may_run(w, entry, thief):
                entry, before = after, entry
                continue
            given += 1
            if give(w, t, victim, thief, entry, before, p.instant):
                entry = after
    else:
        given = steal_at_random(w, p, t, victim, thief, draws)
    if given > 0:
        w.counts[N_STEALS] += 1
        w.counts[N_STOLEN] += given
    return given


@inlined
def steal_at_random(w: World, p: Stealing, t: int, victim: int, thief: int, draws: int) -> int:
    """Give short probes from anywhere in the queue, each equally likely (selection sampling, one pass)."""
    count: int = 0
    entry, before = w.nodes.head[victim], NONE
    while entry != NONE:
        count += (
            length_of(w.entries, entry) if is_stealable(w, entry) and thief_may_run(w, entry, thief) else 0
        )
        entry = w.entries.next[entry]
    wanted = min(count, p.limit)
    given, entry = 0, w.nodes.head[victim]
    while entry != NONE:
        after = w.entries.next[entry]
        left: int = 0
        if is_stealable(w, entry) and thief_may_run(w, entry, thief):
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
