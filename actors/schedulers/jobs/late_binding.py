"""The part that all schedulers of jobs share: take arrivals, hand out tasks, note completions.

Late binding (Sparrow, SOSP'13, section 3): a probe reserves a place in a node's queue; which task runs there is decided
when its turn comes, in the order in which the tasks stand in the workload.

A task that a node's failure has lost is handed out again, before new ones; a new probe is sent, so that a node asks.
A lost probe is sent again as long as its job has tasks to hand out. Both go to nodes that are not known to be down.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actors.constraints import is_relaxed, level_of
from actors.failures import epoch_of, history_of, keep_task, next_again, note_history, receive_node_state
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_ARRIVED
from actors.kernel.loops import Handler, Handlers, make_loop
from actors.kernel.messages import NODE_DOWN, NODE_UP, read_lost, send_arrival, send_lost_again
from actors.kernel.queue import NONE, note
from actors.kernel.trace import RELAXED
from actors.nodes.messages import DONE, read_done, read_request, send_no_task, send_placed, send_task
from actors.nodes.worker import node_event
from actors.nodes.world import N_EMPTY, N_REFUSALS, N_RELAXED, N_SENT_AGAIN, World
from actors.schedulers.jobs.job_info import tasks_of
from actors.schedulers.jobs.probing import FIRST_ROUND, NO_VERSION, ONE, probe
from actors.schedulers.jobs.spreading import NODE_0, draw_node, hold, may_run, must_spread, release
from actors.stages import end_wait


@inlined
def next_arrival(w: World, me: int, job: int) -> int:
    """Count a job that has arrived, and schedule this scheduler's next arrival; return how many tasks the job has."""
    tasks = tasks_of(w, job)
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
    if w.stages.job.size > 0 and w.jobs.unfinished[job] == 0:
        release_children(w, job)


@compiled
def release_children(w: World, job: int) -> None:
    """Let the stages arrive at their scheduler, at once, that waited for this one alone."""
    now, stages = w.queue.now, w.stages
    for edge in range(stages.first_child[job], stages.first_child[job + 1]):
        if end_wait(stages, edge):
            send_arrival(w, now.time[0], now.dst[0], stages.child[edge])


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
    if note_lost(w) and probe_one(w, t, me, job, this_round):
        w.counts[N_SENT_AGAIN] += 1


@compiled
def send_again(w: World, t: int, me: int, first: int) -> None:
    """Early binding: send a lost task to a random node from `first` on that is up."""
    job, task, lost_at, _, _ = read_lost(w)
    note_attempt(w)
    release(w, job, lost_at)
    node = draw_node(w, job, first)
    if node == NONE:
        send_lost_again(w, t, me, job, task)
        return
    w.counts[N_SENT_AGAIN] += 1
    hold(w, job, node)
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
