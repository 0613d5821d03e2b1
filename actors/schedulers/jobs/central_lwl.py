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

from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import ARRIVAL, LOST
from actors.nodes.messages import DONE, REQUEST, STARTED, read_done, read_request
from actors.nodes.world import Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import servers
from actors.scheduler import Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import late_binding, least_work
from actors.schedulers.jobs.build import build_world, most_tasks
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.least_work import FIT, make_fit
from actors.schedulers.jobs.probing import NO_VERSION
from actors.setting import Setting


class State(NamedTuple):
    """Bookkeeping for short jobs and for long ones: one ledger, two sets of nodes."""

    short: least_work.Placer
    long: least_work.Placer


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: place every task."""
    late_binding.next_arrival(w, me, job)
    placer = p.long if is_long(w, job) else p.short
    count = least_work.place_tasks(w, placer, t, job)
    least_work.add_assigned(w, placer, job, count)
    least_work.send_assigned(w, placer, t, me, job, count, NO_VERSION)


@inlined
def on_start(w: World, p: State) -> None:
    """Note that a task has started on its node."""
    least_work.on_started(w, p.long)


@inlined
def on_request(w: World, p: State, t: int, me: int, job: int) -> None:
    """Hand out the job's next task, with late binding; the scheduler knows that it starts now."""
    _, node, _ = read_request(w)
    least_work.note_start(w, p.long, job, node, t)
    late_binding.on_request(w, t, me)


@inlined
def on_done(w: World, p: State, job: int) -> None:
    """Take the work of a task that has ended from its node."""
    _, node, _, _ = read_done(w)
    least_work.note_end(w, p.long, job, node)
    late_binding.on_done(w)


@inlined
def on_lost(w: World, p: State, t: int, me: int, job: int) -> None:
    """Assign what a failure has lost again."""
    least_work.assign_again(w, p.long if is_long(w, job) else p.short, t, me)


@inlined
def on_node_state(w: World, p: State) -> None:
    """Note that a node is down or up."""
    least_work.note_node_state(w, p.long.ledger)


advance = late_binding.make_job_loop(
    __name__,
    State,
    {STARTED: on_start, REQUEST: on_request, DONE: on_done, ARRIVAL: on_arrival, LOST: on_lost},
    on_node_state=on_node_state,
)


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
