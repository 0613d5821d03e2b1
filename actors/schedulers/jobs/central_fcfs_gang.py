"""Rigid first come first served: a job starts when all its tasks fit at once, and no job passes another.

The baseline of the literature on batch systems: jobs are gangs (parallel jobs, MPI, distributed training), whose tasks
all start at one instant, on as many nodes as they state.

1. A job arrives: it joins the queue of one central scheduler, in order of priority, the largest first, and of arrival.
2. While all tasks of the queue's first job fit on what is idle, they are placed there, and the next job is the first.
   While they do not fit, all jobs wait.
3. A node reports a task's end; what the task held is idle for the scheduler when the report has arrived.

All that happens at one instant is known before the scheduler decides. The tasks fill the nodes with idle slots one
after the other, first the node that was full last; where tasks hold resources, the nodes in the order of their ids.

**Deviations from the paper.** A gang may state on how many nodes it runs; its tasks lie evenly on exactly as many.
Tasks may hold resources ([rules](resources.md#rules)); each counts as the most that one of its job needs. A job that is
no gang (`gangs`) starts its tasks one by one, in its turn. Failures are ours: when a task is lost with its node, its
whole gang stops, and waits again in its place of the queue; it starts from its beginning on nodes that are known to be
up, when all its tasks are known to have ended. Other jobs lose single tasks. Preemption is ours, too: running gangs,
and tasks of other jobs, of lower priority end for the first job of the queue ([rules](resources.md#rules)); so are
tenants: with `order` "fair" or "capacity" the turn is that of the first job of the tenant with the smallest dominant
share over its weight or guarantee, of those within their ceilings ([tenants](resources.md#tenants)).
"""

from actors.kernel.compiled import inlined
from actors.kernel.queue import NONE
from actors.nodes.messages import DISPATCH
from actors.nodes.world import World
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import ALL_ALIKE, NO_QUEUES_AT_NODES, Scheduler
from actors.schedulers.jobs.central_queue import ORDER, parameters_of
from actors.schedulers.jobs.gangs import (
    GANGS,
    HANDLERS,
    Gangs,
    build_gangs,
    make_way,
    start_heads,
)
from actors.schedulers.jobs.late_binding import make_job_loop

# Where the steps stand:
# 1. `note_arrival` and `join_queue` of actors/schedulers/jobs/gangs.py
# 2. `decide`; `start_heads`, `tasks_that_fit` and `start` of actors/schedulers/jobs/gangs.py
# 3. `note_end` of actors/schedulers/jobs/gangs.py


@inlined
def decide(w: World, p: Gangs, t: int, me: int) -> None:
    """Step 2: start the first jobs of the queue that fit."""
    p.queue.is_woken[0] = 0
    head = start_heads(w, p, t, me)
    if head != NONE:
        make_way(w, p, t, me, head)


advance = make_job_loop(__name__, Gangs, HANDLERS | {DISPATCH: decide})


CENTRAL_FCFS_GANG = Scheduler(
    name="central-fcfs-gang",
    title="gangs, first come first served",
    paper="Feitelson, Rudolph, Schwiegelshohn: Parallel job scheduling, a status report, JSSPP 2004",
    parameters=(GANGS, *parameters_of(ORDER)),
    worlds=JOB_WORLDS,
    build=build_gangs,
    advance=advance,
    preempts=True,
    gangs=True,
    waits="gangs",
    ignores=(*ALL_ALIKE, NO_QUEUES_AT_NODES),
    about=__doc__ or "",
)
