"""A worker node: slots, one queue, and the messages it gets and sends.

A task of higher priority may end running ones (actors/nodes/preemption.py).

The queue holds probes (late binding: when a probe's turn comes, the node holds a slot and asks the job's
scheduler for a task; Sparrow, SOSP'13, section 3) and tasks that a scheduler bound to the node. The queue is
served in order of priority where priorities count, and among equals first come first served, or shortest remaining job
first (actors/nodes/waiting.py); a sticky probe
stays in the queue until its job has no task left (Eagle, SoCC'16).

In the papers a node has one slot. Here it may have several, and none stays idle while an entry waits; or it has
resources, of which each task holds its demand (actors/resources.py): the entry whose turn it is starts when it fits,
and others pass it as actors/nodes/waiting.py states. A sticky probe
asks for a task for each idle slot, but for no more tasks than its job has left by the last report, and for one task at
a time with resources, and if the tasks of its job must be spread, as a node may run no more of them.
"""

import numpy as np

from actors.failures import NO_EPOCH, generation_of, link_running, note_history, note_sent, record_lost_output
from actors.inputs import can_lose_outputs, end_fetch, fetches, note_output_here
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.messages import FETCH_FAILED, FETCHED, read_fetch_failed, send_fetch_failed, send_received
from actors.kernel.queue import NONE, SPARE, note
from actors.kernel.trace import STARTS, is_recorded
from actors.nodes import messages, waiting
from actors.nodes.failing import apply_failure, lose, lose_fetch, note_runs_again
from actors.nodes.preemption import (
    HELD,
    NOT_HELD,
    can_make_room,
    free_slot,
    has_room,
    make_room,
    note_restored,
    preempts,
    stop_task,
    time_to_run,
)
from actors.nodes.waiting import ASKED_FOR, enqueue, part, pick_fitting, remove
from actors.nodes.world import ASKED, LONG_RUNS, N_BYPASSES, N_FETCHES_FAILED, N_LOST_NS, N_TASKS_LOST, World
from actors.resources import demand_of, free_room, hold_room


@inlined
def node_event(w: World, node: int) -> bool:
    """Handle a message to a node; return whether a slot became idle and the queue has no work for it."""
    serves, freed = take_in(w, node)
    if not serves or serve(w, w.queue.now.time[0], node) or not freed:
        return False
    # With resources an entry may not fit; with preemption a slot may be held for a task that was asked for.
    all_fit = w.room.active == 0 and not preempts(w)
    return all_fit or (w.nodes.idle[node] > 0 and waiting.pick_first(w, node)[0] == NONE)


@inlined
def take_in(w: World, node: int) -> tuple[bool, bool]:
    """Handle a message to a node; return whether a slot can be given now, and whether one has just become idle."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if w.faults.active == 1 and apply_failure(w, node):
        return False, False
    serves, freed = False, False
    if kind == messages.TASK_END:
        end_task(w, t, node)
        serves = freed = True
    elif kind == messages.TASK:
        serves = take_task(w, t, node)
    elif kind == messages.NO_TASK:
        job, _, epoch, _ = messages.read_no_task(w)
        w.nodes.idle[node] += 1
        if w.room.active == 1:
            free_room(w, node, demand_of(w, job, NONE))
        w.nodes.longs[node] -= w.work.is_long[job]
        if w.rules.sticky == 1:
            waiting.drop_probe(w, node, job, epoch)
        serves = freed = True
    elif kind == messages.PROBE:
        job, left, level, _, epoch, version = messages.read_probe(w)
        w.nodes.version[node] = max(w.nodes.version[node], version)
        enqueue(w, node, job, NONE, left, epoch, level)
        serves = w.nodes.idle[node] > 0 or preempts(w)
    elif kind == messages.PLACED:
        job, task, level, left, history, version = messages.read_placed(w)
        note_history(w, task, history)
        w.nodes.version[node] = max(w.nodes.version[node], version)
        if w.faults.active == 1 and not note_sent(w, task):  # its gang has been stopped
            lose(w, t, node, job, task)
        else:
            enqueue(w, node, job, task, left, NO_EPOCH, level)
            serves = w.nodes.idle[node] > 0 or preempts(w)
    elif kind == messages.SERVE:
        serves = True
    elif kind == FETCHED:
        end_fetch(w, t, node, compute_fetched)
    elif kind == FETCH_FAILED:
        give_up_fetch(w, t, node)
        serves = freed = True
    elif kind == messages.CANCEL:
        stop_task(w, t, node)
    return serves, freed


@inlined
def take_task(w: World, t: int, node: int) -> bool:
    """Start the task that the node has asked for; return whether a slot can be given besides."""
    job, task, level, left, epoch, _, history = messages.read_task(w)
    note_history(w, task, history)
    serves = False
    if w.nodes.head[node] != NONE and (w.rules.shortest_first == 1 or w.rules.sticky == 1):
        waiting.note_answer(w, node, job, left, epoch)
        serves = w.nodes.idle[node] > 0
    demand = demand_of(w, job, task)
    if w.room.active == 1 and w.room.of_task.size > 0:  # it may need less than the probe held for it
        free_room(w, node, demand_of(w, job, NONE))
        hold_room(w, node, demand)
        serves = True
    starts = not preempts(w) or has_room_for_answer(w, t, node, job, demand)
    if starts:
        start_task(w, t, node, job, task, level)
    else:
        put_back(w, node, job, task, left, level)
    # What has come meanwhile may evict the task, or use what is left.
    if preempts(w) and w.nodes.head[node] != NONE:
        messages.send_serve(w, t, node)
        serves = False
    return serves


@inlined
def has_room_for_answer(w: World, t: int, node: int, job: int, demand: int) -> bool:
    """Whether a task that was asked for has room, or has it after others were evicted: it gives up what is held for it.

    Others that were asked for do not count: they make room for themselves when they come.
    """
    w.nodes.idle[node] += 1
    if w.room.active == 1:
        free_room(w, node, demand)
    found = make_room(w, t, node, demand, job, NOT_HELD, last_message(w, node))
    w.nodes.idle[node] -= 1
    if w.room.active == 1:
        hold_room(w, node, demand)
    return found


@inlined
def last_message(w: World, node: int) -> int:
    """Return how many messages a node may have sent when it stops serving its queue in the event at hand."""
    # It has sent at most two then, and sends up to three with the last entry.
    return w.queue.seq[node] + w.queue.room - 8


@inlined
def serve(w: World, t: int, node: int) -> bool:
    """Give idle slots, or what tasks of lower priority hold, to the next entries; return whether one was given."""
    given, last = False, last_message(w, node)
    while w.nodes.idle[node] > 0 or preempts(w):
        entry, before = next_entry(w, node)
        if not give_slot(w, t, node, entry, before, last):
            break
        given = True
    return given


@inlined
def give_slot(w: World, t: int, node: int, entry: int, before: int, last: int) -> bool:
    """Give a slot to an entry, `before` in front of it; return False if there is none for one.

    `last`: as of `last_message`. With resources one event can make room for more entries than it has messages.
    """
    if entry != NONE and (w.room.active == 1 or preempts(w)):
        if w.queue.seq[node] >= last:
            messages.send_serve(w, t, node)
            return False
        if not has_place(w, t, node, entry, last):
            entry, before = pick_fitting(w, node)
    if entry == NONE:
        return False
    if w.room.active == 1:
        hold_room(w, node, demand_of(w, w.entries.job[entry], w.entries.task[entry]))
    was_asked_for = w.entries.epoch[entry] == ASKED_FOR
    job, task, level = leave_queue(w, node, entry, before)
    w.nodes.idle[node] -= 1
    if task == NONE:
        messages.send_request(w, t, node, w.work.home[job], job, node, generation_of(w, node))
    else:
        if w.rules.report_start == 1 and not was_asked_for:
            messages.send_started(w, t, node, w.work.home[job], job, node, t)
        start_task(w, t, node, job, task, level)
    return True


@inlined
def has_place(w: World, t: int, node: int, entry: int, last: int) -> bool:
    """Whether an entry fits: as it is, or after others have been evicted, at once for a task and later for a probe."""
    job, task = w.entries.job[entry], w.entries.task[entry]
    demand = demand_of(w, job, task)
    if has_room(w, node, demand):
        return True
    if not preempts(w):
        return False
    if task == NONE:
        return can_make_room(w, node, demand, job, HELD)
    return make_room(w, t, node, demand, job, HELD, last)


@inlined
def put_back(w: World, node: int, job: int, task: int, left: int, level: int) -> None:
    """Let a task wait in the queue that was asked for: what it was to evict has gone."""
    w.nodes.idle[node] += 1
    if w.room.active == 1:
        free_room(w, node, demand_of(w, job, task))
    w.nodes.longs[node] -= w.work.is_long[job]
    enqueue(w, node, job, task, left, ASKED_FOR, level)


@inlined
def next_entry(w: World, node: int) -> tuple[int, int]:
    """Find the next entry to serve and the one in front of it; NONE if none waits."""
    entry = w.nodes.head[node]
    if w.rules.shortest_first == 1 and entry != NONE and (w.entries.next[entry] != NONE or w.rules.live == 1):
        return waiting.pick_shortest(w, node)
    if entry != NONE and w.entries.left[entry] >= ASKED:
        return waiting.pick_first(w, node)
    return entry, NONE


@inlined
def leave_queue(w: World, node: int, entry: int, before: int) -> tuple[int, int, int]:
    """Take the entry that is served out of the queue, unless it is sticky; return its job, its task and its level."""
    rows = w.entries
    job, task, level = rows.job[entry], rows.task[entry], rows.level[entry]
    stays = w.rules.sticky == 1 and task == NONE and w.work.is_long[job] == 0
    if before != NONE and waiting.passes_any(w, node, entry):
        w.counts[N_BYPASSES] += 1
        if is_recorded(w.queue.trace):
            waiting.note_bypass(w, node, entry)
        if not stays:  # a sticky probe is charged to the entries that it bypassed when its task arrives
            waiting.bypass(w, node, entry)
    if not stays:
        remove(w, node, entry, before)
    else:
        part(w, node, entry)
        rows.left[entry] += ASKED
    return job, task, level


@inlined
def start_task(w: World, t: int, node: int, job: int, task: int, level: int) -> None:
    """Start a task in a slot that is held for it; if it has to fetch input, it computes when that is there."""
    w.nodes.started[node] = t
    w.nodes.running[node] = job
    w.nodes.longs[node] += LONG_RUNS * w.work.is_long[job]
    w.counts[N_STARTED + w.work.report_class[job]] += 1
    note(w, t, node, STARTS, job, task, NONE, NONE)
    if w.faults.active == 1:
        link_running(w, t, node, job, task)
        note_runs_again(w, task, job, np.int64(N_LOST_NS))
    if fetches(w, t, node, task, job):
        return
    end = t + time_to_run(w, node, task, level)
    if w.faults.active == 1:
        w.faults.tasks.end[task] = end
    messages.send_task_end(w, end, node, job, task, t)


@inlined
def compute_fetched(w: World, t: int, node: int, task: int, job: int) -> None:
    """Let a task compute that has fetched its input; over a network no constraint makes it longer.

    Where outputs can be lost its scheduler gets to know it: what the task has fetched need not be made again.
    """
    end = t + time_to_run(w, node, task, NONE)
    if can_lose_outputs(w.inputs):
        w.faults.tasks.end[task] = end
        send_received(w, t, node, w.work.home[job], task, job, node, t)
    messages.send_task_end(w, end, node, job, task, w.inputs.launched[task])


@inlined
def end_task(w: World, t: int, node: int) -> None:
    """Free the slot of a task that ends, and report the end to the job's scheduler."""
    job, task, start = messages.read_task_end(w)
    free_slot(w, node, job, task, start)
    w.counts[N_FINISHED + w.work.report_class[job]] += 1
    if w.task_records.size > 0:
        record = w.task_records
        is_again = w.faults.active == 1 and record.node[task] != NONE
        if is_again and not can_lose_outputs(w.inputs):  # with its gang; else it is noted as it starts
            record_lost_output(w, task, record.node[task], record.start[task], record.finish[task])
        record.node[task], record.start[task], record.finish[task] = node, start, t
    note_output_here(w.inputs, t, task, job)
    note_restored(w, job, task)
    messages.send_done(w, t, node, job, task, start)


@compiled
def give_up_fetch(w: World, t: int, node: int) -> None:
    """Lose tasks that fetch together, as some of their input is lost; their number may need several events."""
    task, room = read_fetch_failed(w), w.queue.room - SPARE
    while task != NONE and room > 0:
        job, start, lost = w.faults.tasks.job[task], w.faults.tasks.start[task], task
        task = lose_fetch(w, t, node, task, np.int64(N_TASKS_LOST), np.int64(N_FETCHES_FAILED))
        free_slot(w, node, job, lost, start)
        room -= 1
    if task != NONE:
        send_fetch_failed(w, t, node, task)
