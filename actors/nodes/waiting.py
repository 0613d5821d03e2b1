"""A node's queue: a linked list of entries in the partition's pool."""

from actors.kernel.compiled import inlined
from actors.kernel.world import NONE, free_entry, new_entry


@inlined
def enqueue(w, node, job, task, left, epoch):
    """Append a probe (`task` is NONE) or a task bound to the node; `left`: tasks the job has left."""
    rows, nodes = w.entries, w.nodes
    entry = new_entry(w.entries)
    is_long = w.work.is_long[job]
    rows.next[entry], rows.job[entry], rows.task[entry] = NONE, job, task
    rows.left[entry], rows.bypassed[entry], rows.is_long[entry] = left, 0, is_long
    rows.epoch[entry], rows.level[entry] = epoch, NONE
    append(w, node, entry)
    nodes.longs[node] += is_long


@inlined
def append(w, node, entry):
    """Put an entry at the end of the queue."""
    if w.nodes.head[node] == NONE:
        w.nodes.head[node] = entry
    else:
        w.entries.next[w.nodes.tail[node]] = entry
    w.nodes.tail[node] = entry


@inlined
def remove(w, node, entry, before):
    """Take an entry out and free it; `before` is the one in front of it, or NONE."""
    unlink(w, node, entry, before)
    free_entry(w.entries, entry)


@inlined
def unlink(w, node, entry, before):
    """Take an entry out of the queue without freeing it."""
    rows, nodes = w.entries, w.nodes
    after = rows.next[entry]
    if before == NONE:
        nodes.head[node] = after
    else:
        rows.next[before] = after
    if after == NONE:
        nodes.tail[node] = before
