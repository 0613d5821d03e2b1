"""Random placement: every task goes at once to a node drawn uniformly.

The lower baseline. Tasks of long jobs go to the nodes that long jobs may use. With single-task jobs and no network
delay each node is an M/G/1 queue.
"""

from typing import NamedTuple

from actors.constraints import eligible_count, eligible_node, first_place, level_of
from actors.failures import receive_node_state
from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import take
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job
from actors.kernel.queue import RUNNING
from actors.kernel.random import PLACEMENT, below, random_bits
from actors.nodes.messages import DONE, send_placed
from actors.nodes.worker import node_event
from actors.nodes.world import N_PLACEMENTS, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import Scheduler
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.late_binding import next_arrival, on_done, send_again
from actors.schedulers.jobs.probing import NO_VERSION
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.setting import Setting


class State(NamedTuple):
    """Where tasks may go."""

    first: int  # the first node for long jobs


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Send each task of a job to a random node."""
    tasks = next_arrival(w, me, job)
    w.counts[N_PLACEMENTS] += tasks
    begin = first_place(w, job, p.first * w.work.is_long[job])
    count, level = eligible_count(w, job) - begin, level_of(w, job)
    for i in range(tasks):
        bits = random_bits(w.seed, PLACEMENT, job, i)
        node = eligible_node(w, job, begin + below(bits, count))
        send_placed(w, t, me, node, job, w.work.first_task[job] + i, level, tasks, NO_VERSION)


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == DONE:
            on_done(w)
        elif kind == ARRIVAL:
            on_arrival(w, p, t, me, read_job(w))
        elif kind == LOST:
            send_again(w, t, me, p.first * w.work.is_long[read_job(w)])
        elif kind == NODE_DOWN or kind == NODE_UP:
            receive_node_state(w)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    world = build_world(
        setting, Rules(), most_sends=lambda tasks: tasks, schedulers=setting.parameters["schedulers"]
    )
    return world, State(setting.cluster.partition(setting.long_partition))


RANDOM = Scheduler(
    name="random",
    title="every task to a random node",
    paper="-",
    parameters=(SCHEDULERS,),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    draws=True,
)
