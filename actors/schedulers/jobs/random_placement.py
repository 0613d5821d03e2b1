"""Random placement: every task goes at once to a node drawn uniformly.

The lower baseline. Tasks of long jobs go to the nodes that long jobs may use. With single-task jobs and no network
delay each node is an M/G/1 queue.
"""

from typing import NamedTuple

from actors.constraints import eligible_count, eligible_node, first_place, level_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import ARRIVAL, LOST, RECEIVED
from actors.kernel.random import PLACEMENT, below, random_bits
from actors.nodes.messages import DISPATCH, send_placed
from actors.nodes.world import N_PLACEMENTS, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import Scheduler
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.late_binding import (
    hand_out_owed,
    make_job_loop,
    next_arrival,
    note_handed_out,
    on_node_state,
    on_received,
    send_again,
)
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
    w.jobs.next_task[job] = w.work.end_task[job]
    begin = first_place(w, job, p.first * w.work.is_long[job])
    count, level = eligible_count(w, job) - begin, level_of(w, job)
    for i in range(tasks):
        bits = random_bits(w.seed, PLACEMENT, job, i)
        node, task = eligible_node(w, job, begin + below(bits, count)), w.work.first_task[job] + i
        note_handed_out(w, t, task, node)
        send_placed(w, t, me, node, job, task, level, tasks, NO_VERSION)


@inlined
def on_lost(w: World, p: State, t: int, me: int, job: int) -> None:
    """Send a task that a failure has lost to another node."""
    send_again(w, t, me, p.first * w.work.is_long[job])


@inlined
def on_dispatch(w: World, p: State, t: int, me: int) -> None:
    """Hand out what runs again, as its output was lost, or what waited for that."""
    hand_out_owed(w, t, me, False, p.first)


advance = make_job_loop(
    __name__,
    State,
    {ARRIVAL: on_arrival, LOST: on_lost, RECEIVED: on_received, DISPATCH: on_dispatch},
    on_node_state=on_node_state,
)


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
    runs_again=True,
    draws=True,
)
