"""Hawk (USENIX ATC 2015): a central scheduler for long jobs, distributed ones for short jobs, and work stealing.

1. A long job (its estimated mean task duration is above the cut-off, section 3.3): each task goes to the node with the
   least estimated work left of long tasks (section 3.5), among the nodes that long jobs may use. The rest of the
   cluster, the short partition, never runs a long task (section 3.4).
2. A short job: batch sampling with late binding over the whole cluster, as in Sparrow (section 3.5).
3. A node that runs out of work asks a random node of the long partition for the group of short probes behind its first
   long work (section 3.6). A victim that has none forwards the request to another, up to `steal_attempts` in all.

**Deviations from the paper.** In the paper a thief contacts its victims one by one; here each victim forwards the
request to the next, which halves the messages and the time. The paper's nodes have one slot: a node with several gives
the group at the head of its queue if any of its slots runs a long task. The authors' simulator lets a thief look into
its victims' queues without a message: `instant_stealing=true` (a global view), draws probes with replacement:
`replacement=true`, and binds long tasks late: `late_binding=true`. The paper has no resources: `fit` chooses nodes for
long tasks as in `central-lwl`, by what the central scheduler has placed; of the room of short tasks it does not know.

`hawk-c` is constraint-aware: long jobs are placed on, and short ones probed for and stolen by, nodes that satisfy them.
A long job that no node in the part for long jobs satisfies uses the other nodes that do. A victim keeps probes that the
thief cannot run, and all of jobs with a placement constraint, and gives those behind them. `instant_stealing=true` is a
global view here too.
Deviations from the paper: it has no constraints; these rules are ours.
"""

from typing import NamedTuple

import numpy as np

from actors.causes import BEHIND_LONG, Remedy
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import ARRIVAL, LOST
from actors.nodes.messages import DONE, REQUEST, STARTED, STEAL, read_done
from actors.nodes.stealing import Stealing, on_steal, start_stealing
from actors.nodes.worker import node_event, serve
from actors.nodes.world import Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import servers
from actors.scheduler import Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import late_binding, least_work, probing
from actors.schedulers.jobs.build import build_world, long_jobs, most_tasks
from actors.schedulers.jobs.central_lwl import LATE_BINDING
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.least_work import FIT, make_fit
from actors.schedulers.jobs.sparrow import PROBE_RATIO, REPLACEMENT, SCHEDULERS
from actors.setting import Setting

# Where the steps stand:
# 1. `on_arrival`; `place_tasks`, `add_assigned` and `send_assigned` of actors/schedulers/jobs/least_work.py; `on_done`
# 2. `on_arrival`; `send_probes` of actors/schedulers/jobs/probing.py, and what sparrow.py names for its steps 2 and 3
# 3. `on_node`; `start_stealing` and `on_steal` of actors/nodes/stealing.py


class State(NamedTuple):
    """Hawk's parameters and bookkeeping."""

    probing: probing.Probing
    placer: least_work.Placer
    stealing: Stealing


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Steps 1 and 2: place a long job, probe for a short one."""
    tasks = late_binding.next_arrival(w, me, job)
    if is_long(w, job):
        least_work.place_tasks(w, p.placer, t, job)
        least_work.add_assigned(w, p.placer, job, tasks)
        least_work.send_assigned(w, p.placer, t, me, job, tasks, probing.NO_VERSION)
    else:
        probing.send_probes(w, t, me, p.probing, job, tasks)


@inlined
def on_node(w: World, stealing: Stealing, t: int, node: int) -> None:
    """Step 3: a node that runs out of work begins to steal."""
    if node_event(w, node) and stealing.attempts > 0 and start_stealing(w, stealing, t, node):
        serve(w, t, node)


@inlined
def on_done(w: World, placer: least_work.Placer, job: int) -> None:
    """For step 1: note the end of a task; a long one leaves less work on its node."""
    _, node, _, _ = read_done(w)
    if is_long(w, job):
        least_work.note_end(w, placer, job, node)
    late_binding.on_done(w)


@inlined
def on_lost(w: World, placer: least_work.Placer, t: int, me: int, job: int) -> None:
    """Assign a long task again that a failure has lost; replace a probe."""
    if is_long(w, job):
        least_work.assign_again(w, placer, t, me)
    else:
        late_binding.probe_again(w, t, me, probing.FIRST_ROUND)


advance = late_binding.make_job_loop(
    __name__,
    State,
    {
        REQUEST: least_work.on_request,
        DONE: on_done,
        STARTED: least_work.on_started,
        ARRIVAL: on_arrival,
        LOST: on_lost,
    },
    at_nodes={STEAL: on_steal},
    others_at_nodes=on_node,
    on_node_state=least_work.note_node_state,
)


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    p = setting.parameters
    nodes, late = setting.cluster.num_nodes, p["late_binding"]
    first = setting.cluster.partition(setting.long_partition)
    limit = min(p["steal_limit"], probing.most_probes(p["probe_ratio"], 1, setting.workload.num_tasks))
    world = build_world(
        setting,
        Rules(report_start=not late),
        most_sends=lambda tasks: max(probing.most_probes(p["probe_ratio"], 1, tasks), limit),
        schedulers=p["schedulers"],
        central_jobs=long_jobs(setting),
    )
    return world, State(
        probing.make_probing(p["probe_ratio"], 1, p["replacement"], nodes, most_tasks(setting)),
        least_work.make_placer(
            servers(setting), most_tasks(setting), first, late, make_fit(p["fit"], world, servers(setting))
        ),
        Stealing(
            p["steal_attempts"],
            limit,
            at_random=p["steal_choice"] == "random",
            instant=p["instant_stealing"],
            first=first,
            searches=np.zeros(nodes, np.int64),
        ),
    )


_STEALS = ("steal_attempts",)

HAWK = Scheduler(
    name="hawk",
    title="long jobs centrally, short ones by probes, with work stealing",
    paper="Delgado, Dinu, Kermarrec, Zwaenepoel: Hawk, USENIX ATC 2015, pages 499-510",
    parameters=(
        PROBE_RATIO,
        REPLACEMENT,
        SCHEDULERS,
        LATE_BINDING,
        Parameter(
            "steal_attempts",
            10,
            "integer",
            "victims asked before a thief gives up; 0: no stealing",
            0,
            1000,
            addresses=(Remedy(BEHIND_LONG, "idle nodes take probes from behind long work", "short"),),
        ),
        Parameter(
            "steal_limit",
            10_000,
            "integer",
            "the most probes taken from one victim",
            1,
            1_000_000,
            needs=_STEALS,
        ),
        Parameter(
            "steal_choice",
            "group",
            "choice",
            "what is stolen: the group of short probes behind the first long work (ATC'15), or random ones",
            choices=("group", "random"),
            needs=_STEALS,
        ),
        Parameter(
            "instant_stealing",
            False,
            "flag",
            "thieves see their victims' queues and take without a message, as the authors simulate it",
            needs=_STEALS,
        ),
        FIT,
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    hybrid=True,
    global_view=("instant_stealing",),
    draws=True,
)

HAWK_C = constraint_aware(HAWK, "hawk-c")
