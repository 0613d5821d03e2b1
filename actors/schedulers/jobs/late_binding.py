"""The part that all schedulers of jobs share: take arrivals, hand out tasks, note completions.

Late binding (Sparrow, SOSP'13, section 3): a probe reserves a place in a node's queue; which task runs there is decided
when its turn comes, in the order in which the tasks stand in the workload.

A task that a node's failure has lost is handed out again, before new ones; a new probe is sent, so that a node asks.
A lost probe is sent again as long as its job has tasks to hand out. Both go to nodes that are not known to be down.

Of a stage of a DAG job, tasks that had ended may run again, and others wait again, where outputs are lost with machines
(`actors.stages`). A stage that waits again hands out no task. What runs again, and the tasks of a stage that waits no
longer, are handed out as lost tasks are: by a new probe each, or by early binding to a random node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actors.constraints import is_relaxed, level_of
from actors.failures import epoch_of, history_of, keep_task, next_again, note_history, receive_node_state
from actors.inputs import ENDED, LAUNCHED, can_lose_outputs
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.loops import Handler, Handlers, make_loop
from actors.kernel.messages import (
    NODE_DOWN,
    NODE_UP,
    read_lost,
    read_node_state,
    read_received,
    send_arrival,
    send_lost_again,
)
from actors.kernel.queue import NONE, SPARE, note, wake
from actors.kernel.trace import RELAXED
from actors.nodes.messages import (
    DISPATCH,
    DONE,
    read_done,
    read_place,
    read_request,
    send_no_task,
    send_placed,
    send_task,
)
from actors.nodes.worker import node_event
from actors.nodes.world import N_EMPTY, N_REFUSALS, N_RELAXED, N_RUN_AGAIN, N_SENT_AGAIN, World
from actors.schedulers.jobs.job_info import tasks_of
from actors.schedulers.jobs.probing import FIRST_ROUND, NO_VERSION, ONE, probe
from actors.schedulers.jobs.spreading import NODE_0, draw_node, hold, may_run, must_spread, release
from actors.stages import (
    end_wait,
    forget_attempt,
    forget_changes,
    is_kept,
    note_has_input,
    restore_children,
    suspect_machine,
)


@inlined
def next_arrival(w: World, me: int, job: int) -> int:
    """Count a job that has arrived, and schedule this scheduler's next arrival; return how many tasks the job has."""
    tasks = tasks_of(w, job)
    if can_lose_outputs(w.inputs):
        w.stages.lineage.has_arrived[job] = 1
    w.counts[N_ARRIVED + w.work.report_class[job]] += tasks
    if is_relaxed(w, job):
        w.counts[N_RELAXED] += 1
        note(w, w.work.submit[job], me, RELAXED, job, NONE, NONE, NONE)
    following = w.work.next_job[job]
    if following != NONE:
        send_arrival(w, w.work.submit[following], me, following)
    return tasks


@inlined
def on_request(w: World, t: int, me: int) -> None:
    """Answer a request of a node with the job's next task, or with none."""
    job, node, generation = read_request(w)
    task = w.jobs.next_task[job]
    if waits_again(w, job):
        w.counts[N_EMPTY] += 1
        send_no_task(w, t, me, node, job, np.int64(0), epoch_of(w, job), generation)
        return
    if w.eligible.active == 1:
        if is_refused(w, job, node):
            refuse(w, t, me, job, node, generation)
            return
        if w.eligible.jobs.placed[job] == 0 and tasks_left(w, job) > 0:
            hold(w, job, node)
    if w.faults.active == 1 and w.faults.jobs.lost[job] > 0:
        task = next_again(w, job)
    elif task < w.work.end_task[job]:
        w.jobs.next_task[job] = task + 1
    else:
        w.counts[N_EMPTY] += 1
        send_no_task(w, t, me, node, job, np.int64(0), epoch_of(w, job), generation)
        return
    note_handed_out(w, t, task, node)
    level, left, history = level_of(w, job), tasks_left(w, job), history_of(w, task)
    send_task(w, t, me, node, job, task, level, left, epoch_of(w, job), generation, history)


@inlined
def is_refused(w: World, job: int, node: int) -> bool:
    """Whether there are tasks, but none that the node may run: those of its job must be spread."""
    return (
        must_spread(w, job)
        and w.eligible.jobs.placed[job] == 0
        and tasks_left(w, job) > 0
        and not may_run(w, job, node)
    )


@compiled
def refuse(w: World, t: int, me: int, job: int, node: int, generation: int) -> None:
    """Answer without a task, as the node may not run one of the job; probe a node that may."""
    w.counts[N_REFUSALS] += 1
    send_no_task(w, t, me, node, job, tasks_left(w, job), epoch_of(w, job), generation)
    probe_one(w, t, me, job, FIRST_ROUND)


@compiled
def probe_one(w: World, t: int, me: int, job: int, this_round: int) -> bool:
    """Probe a random node that may run a task of the job and is up; return False if there is none now."""
    node = draw_node(w, job, NODE_0)
    if node == NONE:
        send_lost_again(w, t, me, job, NONE)
        return False
    probe(w, t, me, node, job, tasks_left(w, job), this_round, NO_VERSION)
    return True


@inlined
def tasks_left(w: World, job: int) -> int:
    """Tasks that the job has yet to hand out."""
    left = w.work.end_task[job] - w.jobs.next_task[job]
    if w.faults.active == 1:
        left += w.faults.jobs.lost[job]
    return left


@inlined
def on_done(w: World) -> None:
    """Note the end of a task in its job; the last one lets jobs arrive that have waited for it."""
    job, _, start, finish = read_done(w)
    w.jobs.unfinished[job] -= 1
    w.jobs.start[job] = min(w.jobs.start[job], start)
    w.jobs.finish[job] = max(w.jobs.finish[job], finish)
    if can_lose_outputs(w.inputs):
        note_output(w, job, start)
    if w.stages.job.size > 0 and w.jobs.unfinished[job] == 0:
        release_children(w, job)


@compiled
def release_children(w: World, job: int) -> None:
    """Let the stages arrive at their scheduler, at once, that waited for this one alone.

    One that has arrived before, and had to wait again, gets its tasks handed out that have not been.
    """
    now, stages = w.queue.now, w.stages
    for edge in range(stages.first_child[job], stages.first_child[job + 1]):
        child = stages.child[edge]
        if not end_wait(stages, edge):
            continue
        if can_lose_outputs(w.inputs) and stages.lineage.has_arrived[child] == 1:
            stages.lineage.owed[child] = tasks_left(w, child)
            request_dispatch(w, now.time[0], now.dst[0])
        else:
            send_arrival(w, now.time[0], now.dst[0], child)


@inlined
def waits_again(w: World, job: int) -> bool:
    """Whether a stage that has arrived waits for its parents, of which the output was lost."""
    return can_lose_outputs(w.inputs) and w.stages.waiting[job] > 0


@inlined
def note_handed_out(w: World, t: int, task: int, node: int) -> None:
    """Note that a task is sent to a node."""
    if can_lose_outputs(w.inputs):
        w.inputs.phase[task] = LAUNCHED
        w.stages.lineage.node[task], w.stages.lineage.start[task] = node, t


@compiled
def note_output(w: World, job: int, start: int) -> None:
    """Note the output of the task of the `DONE` at hand, which may be lost already, as its scheduler knows."""
    task, now = w.work.first_task[job] + read_place(w), w.queue.now
    w.inputs.phase[task], w.stages.lineage.start[task] = ENDED, start
    w.stages.unfinished[job] -= 1
    if not is_kept(w, task):
        w.stages.lineage.suspect[job] = 1
        request_dispatch(w, now.time[0], now.dst[0])


@inlined
def on_received(w: World) -> None:
    """Note that a task has its input, which need not be made again for it."""
    task, _, node, since = read_received(w)
    note_has_input(w, task, node, since)


@compiled
def on_node_state(w: World, t: int) -> None:
    """Note for the schedulers that a node is down, or up again, and which outputs may be lost with it."""
    node, _, _ = read_node_state(w)
    failures = w.faults.actors.heard[node] >> 1
    receive_node_state(w)
    if not can_lose_outputs(w.inputs) or w.faults.actors.heard[node] >> 1 == failures:
        return
    suspect_machine(w, node)
    suspect = w.stages.lineage.suspect
    for stage in range(suspect.size):
        if suspect[stage] == 1:
            request_dispatch(w, t, w.work.home[stage])


@inlined
def request_dispatch(w: World, t: int, me: int) -> None:
    """Have a scheduler hand out what runs again when all that happens at this instant is known."""
    due = w.stages.lineage.due
    if due[me - w.nodes.size] == 0:
        due[me - w.nodes.size] = 1
        wake(w, t, me, DISPATCH, NONE, NONE, NONE)


@compiled
def hand_out_owed(w: World, t: int, me: int, is_late: bool, first: int) -> None:
    """Find what runs again of a scheduler's stages, and hand it out, as much as one event may send messages about.

    Args:
        is_late: by probes, else by early binding.
        first: the first node for long jobs by early binding.
    """
    book, room = w.stages.lineage, w.queue.room - SPARE
    book.due[me - w.nodes.size] = 0
    for stage in range(book.suspect.size):
        if book.suspect[stage] == 1 and w.work.home[stage] == me:
            restore_children(w, stage)
    note_reopened(w)
    for stage in range(book.owed.size):
        if book.owed[stage] == 0 or w.work.home[stage] != me or waits_again(w, stage):
            continue
        while book.owed[stage] > 0 and room > 0:
            book.owed[stage] -= 1
            room -= 1
            if is_late:
                if tasks_left(w, stage) > 0 and probe_one(w, t, me, stage, FIRST_ROUND):
                    w.counts[N_SENT_AGAIN] += 1
            elif w.faults.jobs.lost[stage] > 0:
                send_anywhere(w, t, me, stage, next_again(w, stage), first * w.work.is_long[stage])
        if book.owed[stage] > 0:
            request_dispatch(w, t, me)


@inlined
def note_reopened(w: World) -> None:
    """Note which tasks run again that had ended: they are lost tasks of their stages."""
    book = w.stages.lineage
    for i in range(book.num_reopened[0]):
        task = book.reopened[i]
        job = w.stages.of_task[task]
        w.counts[N_RUN_AGAIN] += 1
        w.counts[N_FINISHED + w.work.report_class[job]] -= 1
        w.counts[N_STARTED + w.work.report_class[job]] -= 1
        w.jobs.unfinished[job] += 1
        keep_task(w, job, task)
        book.owed[job] += 1
    forget_changes(book)


@compiled
def keep_all(w: World, job: int) -> None:
    """Keep all tasks of a stage that was to be placed, and waits again: they are handed out when it waits for none."""
    for task in range(w.work.first_task[job], w.work.end_task[job]):
        keep_task(w, job, task)


@inlined
def note_owed(w: World, t: int, me: int) -> None:
    """Have a lost task, or probe, handed out again when its input is known to be there."""
    job, task, _, _, _ = read_lost(w)
    if task != NONE:
        forget_attempt(w, task)
    if note_lost(w):
        w.stages.lineage.owed[job] += 1
        request_dispatch(w, t, me)


@inlined
def note_attempt(w: World) -> None:
    """Note the history of a lost task, and its start if it had one: a job starts with the first attempt at a task."""
    job, task, _, history, start = read_lost(w)
    note_history(w, task, history)
    if start != NONE:
        w.jobs.start[job] = min(w.jobs.start[job], start)


@inlined
def note_lost(w: World) -> bool:
    """Note a lost task or probe; return whether the job has tasks to hand out."""
    job, task, _, _, _ = read_lost(w)
    note_attempt(w)
    if task != NONE:
        keep_task(w, job, task)
    return tasks_left(w, job) > 0


@compiled
def probe_again(w: World, t: int, me: int, this_round: int) -> None:
    """Late binding: replace a lost task or probe by a probe to a random node that is up, if one is needed."""
    job, task, lost_at, _, _ = read_lost(w)
    if task != NONE:
        release(w, job, lost_at)
    if can_lose_outputs(w.inputs):
        note_owed(w, t, me)
    elif note_lost(w) and probe_one(w, t, me, job, this_round):
        w.counts[N_SENT_AGAIN] += 1


@compiled
def send_again(w: World, t: int, me: int, first: int) -> None:
    """Early binding: send a lost task to a random node from `first` on that is up."""
    job, task, lost_at, _, _ = read_lost(w)
    release(w, job, lost_at)
    if can_lose_outputs(w.inputs):
        note_owed(w, t, me)
    else:
        note_attempt(w)
        send_anywhere(w, t, me, job, task, first)


@compiled
def send_anywhere(w: World, t: int, me: int, job: int, task: int, first: int) -> None:
    """Early binding: send a task again, to a random node from `first` on that is up."""
    node = draw_node(w, job, first)
    if node == NONE:
        send_lost_again(w, t, me, job, task)
        return
    w.counts[N_SENT_AGAIN] += 1
    hold(w, job, node)
    note_handed_out(w, t, task, node)
    send_placed(w, t, me, node, job, task, level_of(w, job), ONE, NO_VERSION)


def make_job_loop(
    module: str,
    state: Any,
    handlers: Handlers,
    at_nodes: Handlers | None = None,
    *,
    others_at_nodes: Handler = node_event,
    on_node_state: Handler = receive_node_state,
    grows_if: Sequence[Handler] = (),
) -> Any:
    """Return the loop of a scheduler of jobs, from its handlers of messages (`actors.kernel.loops.make_loop`).

    A scheduler that has none of its own notes the end of tasks (`on_done`) and which nodes are down.
    """
    shared = {DONE: on_done, NODE_DOWN: on_node_state, NODE_UP: on_node_state}
    return make_loop(
        module, state, shared | handlers, at_nodes or {}, others_at_nodes=others_at_nodes, grows_if=grows_if
    )
