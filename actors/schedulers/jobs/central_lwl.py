"""Central least work left: one scheduler that places every task where the least work waits.

The centralized scheduler of Hawk (section 3.5) for all jobs: short ones on any node, long ones on the part of the
cluster that long jobs may use. The baseline `CLWL` of the authors of Eagle.

1. A job arrives: each task in turn goes to the node with the least work left in the scheduler's ledger, which is the
   estimated work assigned and not ended, less what the running task has done. Ties go to the node that was just given a
   task, then to the lowest id.
2. Nodes report when a task starts and when it ends; the ledger has that one network delay later.

With `fit` "best" or "worst" a task goes to the node that then has the least, or the most, room left, of those on which
it fits beside all that the scheduler has placed there and does not know to have ended; where it fits on none, step 1
holds. Room left is the largest share of a resource of the node, or of its slots, that is free.

**Deviations from the paper.** None known; the authors' simulator binds late (a placement takes the job's next task when
its turn comes): `late_binding=true`.

`central-c` is constraint-aware: a task goes to the node with the least work left of those that satisfy its job.
Deviations from the paper: it has no constraints; these rules are ours.
"""

from typing import NamedTuple

from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import take
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job
from actors.kernel.queue import RUNNING
from actors.nodes.messages import DONE, REQUEST, STARTED, read_done, read_request
from actors.nodes.worker import node_event
from actors.nodes.world import Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import servers
from actors.scheduler import Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import least_work
from actors.schedulers.jobs.build import build_world, most_tasks
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.late_binding import next_arrival, on_done, on_request
from actors.schedulers.jobs.node_fit import FIT, make_fit
from actors.schedulers.jobs.probing import NO_VERSION
from actors.setting import Setting


class State(NamedTuple):
    """Bookkeeping for short jobs and for long ones: one ledger, two sets of nodes."""

    short: least_work.Placer
    long: least_work.Placer


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: place every task."""
    next_arrival(w, me, job)
    placer = p.long if is_long(w, job) else p.short
    count = least_work.place_tasks(w, placer, t, job)
    least_work.add_assigned(w, placer, job, count)
    least_work.send_assigned(w, placer, t, me, job, count, NO_VERSION)


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
        elif kind == STARTED:
            least_work.on_started(w, p.long)
        elif kind == REQUEST:
            job, node, _ = read_request(w)
            least_work.note_start(w, p.long, job, node, t)
            on_request(w, t, me)
        elif kind == DONE:
            job, node, _, _ = read_done(w)
            least_work.note_end(w, p.long, job, node)
            on_done(w)
        elif kind == ARRIVAL:
            on_arrival(w, p, t, me, read_job(w))
        elif kind == LOST:
            least_work.assign_again(w, p.long if is_long(w, read_job(w)) else p.short, t, me)
        elif kind == NODE_DOWN or kind == NODE_UP:
            least_work.note_node_state(w, p.long.ledger)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    late = setting.parameters["late_binding"]
    world = build_world(setting, Rules(report_start=not late), most_sends=lambda tasks: tasks, schedulers=1)
    slots, first = servers(setting), setting.cluster.partition(setting.long_partition)
    fit = make_fit(setting.parameters["fit"], world, slots)
    short = least_work.make_placer(slots, most_tasks(setting), 0, late, fit)
    return world, State(short, short._replace(first=first))


LATE_BINDING = Parameter(
    "late_binding",
    False,
    "flag",
    "a placement takes the job's next task when its turn comes, as the authors simulate it",
)

CENTRAL_LWL = Scheduler(
    name="central-lwl",
    title="one scheduler, least work left",
    paper="Delgado, Dinu, Kermarrec, Zwaenepoel: Hawk, USENIX ATC 2015, section 3.5",
    parameters=(LATE_BINDING, FIT),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    hybrid=True,
)

CENTRAL_C = constraint_aware(CENTRAL_LWL, "central-c")
