"""Distributed least work left: schedulers place jobs by the nodes' work, as reported at the last heartbeat.

The baseline `DLWL` of the authors of Eagle: distributed schedulers, each with a view of the whole cluster that is as
old as the last heartbeat.

1. Every `heartbeat_s` the nodes whose load has changed report it: the estimated work that waits or runs, and what runs
   since when. All schedulers receive these reports one network delay later.
2. A job arrives at one of the schedulers: each task goes to the node that waits least by the last reports, plus a
   random time of up to `jitter_s`, so that schedulers with equal views do not all choose the same nodes. Long jobs keep
   to the nodes that long jobs may use.
3. Nodes serve the shortest remaining job first, within the slack bound.

With `fit` "best" or "worst" a task goes to the node that then has the least, or the most, room left, of those on which
it fits, by the node's last report and by what this scheduler has placed there since; of equal nodes to a random one, or
to that with the lowest id if `jitter_s` is 0. Where it fits on none, step 2 holds, and what this scheduler has placed
since counts as work. Room left is the largest share of a resource of the node, or of its slots, that neither tasks hold
nor entries of its queue need. A node reports it with its work, by a message for each three resources. What others have
placed since, what was on its way when the node reported, and what has ended since are not known.

**Deviations.** No paper describes this scheduler; the rules are those of the authors' simulator, but with reports as
messages. There the work of a task counts from its job's arrival, schedulers see live which task runs since when, and
nodes see live the remaining work of jobs: `global_view=true`. Placed tasks are bound late there: `late_binding=true`.
All schedulers are taken to get a node's report at the same time, also where network delays vary.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from actors.failures import generation_of, is_down, is_known_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import (
    ARRIVAL,
    FAIL,
    LOST,
    read_job,
    read_lost,
    read_node_state,
)
from actors.kernel.queue import NEVER, NONE
from actors.kernel.sums import pack, unpack
from actors.nodes.failing import is_void
from actors.nodes.messages import (
    HEARTBEAT,
    LOAD_REPORT,
    PLACED,
    PROBE,
    REQUEST,
    ROOM_REPORT,
    TASK_END,
    read_load_report,
    send_load_report,
)
from actors.nodes.reporting import (
    Loads,
    change_load,
    is_current,
    is_newest,
    make_loads,
    report_room,
    take_evicted,
)
from actors.nodes.worker import node_event
from actors.nodes.world import N_REPORTS, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import servers, work_at
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.jobs import least_work
from actors.schedulers.jobs.build import NS, build_world, heartbeat_ns, most_tasks
from actors.schedulers.jobs.central_lwl import LATE_BINDING
from actors.schedulers.jobs.eagle import SHORTEST_FIRST, SLACK
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.late_binding import make_job_loop, next_arrival, on_request
from actors.schedulers.jobs.least_work import FIT, make_reported_fit, note_empty, note_room, parts_of
from actors.schedulers.jobs.probing import NO_VERSION
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.setting import Setting


class State(NamedTuple):
    """The load of the nodes, and what they have reported to the schedulers."""

    short: least_work.Placer  # its ledger is the schedulers' view, as of the last reports
    long: least_work.Placer  # the same ledger, for the nodes that long jobs may use
    loads: Loads
    newest: np.ndarray  # [N] number of the newest report that the schedulers have
    global_view: bool
    parts: int  # messages by which a node reports what is free; 0: it does not


@inlined
def on_heartbeat(w: World, p: State, t: int, node: int) -> None:
    """Step 1: report a node whose load has changed."""
    p.loads.to_report[node] = False
    if not p.global_view and is_down(w, node):
        return
    w.counts[N_REPORTS] += 1
    if p.global_view:
        if not is_known_down(w, node):
            p.short.ledger.work[node], p.short.ledger.wholes[node] = p.loads.work[node], p.loads.wholes[node]
        return
    job, started, running = w.nodes.running[node], NEVER, np.int64(0)
    if job != NONE and w.room.active == 0:
        started, running = w.nodes.started[node], w.work.estimate[job]
    work = pack(p.loads.work[node], p.loads.wholes[node])
    send_load_report(w, t, node, generation_of(w, node), work, started, running)
    report_room(w, t, node, p.parts)


@inlined
def on_report(w: World, p: State) -> None:
    """Note a report: the schedulers' view of the node until the next one, or until the node is down."""
    node, generation, work, started, estimate = read_load_report(w)
    view = p.short.ledger
    if is_current(w, node, generation) and is_newest(w, p.newest, node):
        view.work[node], view.wholes[node] = unpack(work)
        view.started[node], view.running[node] = started, estimate


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 2: place every task."""
    next_arrival(w, me, job)
    placer = p.long if is_long(w, job) else p.short
    count = least_work.place_tasks(w, placer, t, job)
    if p.global_view:
        for i in range(count):
            # An arrival comes after a heartbeat at the same instant: the next one reports it.
            node = placer.assigned[i]
            change_load(w, p.loads, t + 1, node, work_at(w, node, job))
    least_work.send_assigned(w, placer, t, me, job, count, NO_VERSION)


@inlined
def on_node(w: World, p: State, t: int, kind: int, node: int) -> None:
    """Step 3, and the node's own account of its load."""
    if w.faults.active == 1 and is_void(w, node):
        pass  # it changes nothing here
    elif kind == TASK_END:
        change_load(w, p.loads, t, node, -work_at(w, node, read_job(w)))
    elif not p.global_view and kind == PLACED:
        change_load(w, p.loads, t, node, work_at(w, node, read_job(w)))
    elif not p.global_view and kind == PROBE:
        change_load(w, p.loads, t, node, work_at(w, node, read_job(w)))
    elif not p.global_view and kind == FAIL:
        p.loads.work[node], p.loads.wholes[node] = 0, 0
    node_event(w, node)
    if not p.global_view:
        take_evicted(w, p.loads, t, node)
    if p.global_view and w.room.active == 0:
        running = w.nodes.running[node]
        p.short.ledger.started[node] = NEVER if running == NONE else w.nodes.started[node]
        p.short.ledger.running[node] = 0 if running == NONE else w.work.estimate[running]


@compiled
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Place a task or a probe again that a node's failure has lost."""
    job, _, node, _, _ = read_lost(w)
    if p.global_view and node != NONE:
        change_load(w, p.loads, t, node, -work_at(w, node, job))
    placer = p.long if is_long(w, job) else p.short
    chosen = least_work.place_again(w, placer, t, me)
    if chosen != NONE:
        if p.global_view:
            change_load(w, p.loads, t, chosen, work_at(w, chosen, job))
        least_work.send_one(w, placer, t, me, chosen, NO_VERSION)


@inlined
def on_node_state(w: World, p: State) -> None:
    """Note that a node is down or up; a node that is up again has no work."""
    node, _, _ = read_node_state(w)
    if least_work.note_node_state(w, p.short.ledger) and not is_known_down(w, node):
        p.short.ledger.work[node], p.short.ledger.wholes[node] = 0, 0
        note_empty(w, p.short.fit, node)
        if p.global_view:
            p.short.ledger.work[node], p.short.ledger.wholes[node] = p.loads.work[node], p.loads.wholes[node]


@inlined
def on_room(w: World, p: State) -> None:
    """Note a report of what is free on a node."""
    note_room(w, p.short.fit)


advance = make_job_loop(
    __name__,
    State,
    {
        REQUEST: on_request,
        LOAD_REPORT: on_report,
        ROOM_REPORT: on_room,
        ARRIVAL: on_arrival,
        LOST: on_lost,
    },
    at_nodes={HEARTBEAT: on_heartbeat},
    others_at_nodes=on_node,
    on_node_state=on_node_state,
)


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the schedulers' state at time 0."""
    p = setting.parameters
    nodes = setting.cluster.num_nodes
    heartbeat = heartbeat_ns(setting)
    rules = Rules(p["shortest_first"], slack=p["slack"], live=p["global_view"], bound_all=1)
    kind = "least-work" if p["global_view"] else p["fit"]
    parts = 0 if kind == "least-work" else parts_of(max(len(setting.resources), 1))
    world = build_world(setting, rules, most_sends=lambda tasks: tasks + parts, schedulers=p["schedulers"])
    fit = make_reported_fit(kind, world, servers(setting), p["schedulers"])
    step = max(round(p["jitter_step_s"] * NS), 1)
    short = least_work.make_placer(servers(setting), most_tasks(setting), 0, p["late_binding"], fit)
    short = short._replace(jitter=round(p["jitter_s"] * NS) // step, jitter_step=step)
    return world, State(
        short,
        short._replace(first=setting.cluster.partition(setting.long_partition)),
        loads=make_loads(nodes, heartbeat),
        newest=np.full(nodes, NONE),
        global_view=p["global_view"],
        parts=parts,
    )


DIST_LWL = Scheduler(
    name="dist-lwl",
    title="distributed schedulers, least work left by stale heartbeats",
    paper="the simulator of Delgado et al., SoCC 2016, doi 10.1145/2987550.2987563 (a baseline)",
    parameters=(
        SCHEDULERS,
        LATE_BINDING,
        Parameter("heartbeat_s", 8.0, "duration", "time between two reports of the nodes", 1e-3, 1e6),
        Parameter("jitter_s", 8.0, "duration", "the most random time added to a node's wait", 0, 1e6),
        Parameter(
            "jitter_step_s",
            1.0,
            "duration",
            "the random time is a multiple of this",
            1e-9,
            1e6,
            needs=("jitter_s",),
        ),
        SHORTEST_FIRST,
        SLACK,
        Parameter(
            "global_view",
            False,
            "flag",
            "work counts from a job's arrival; running tasks and remaining work are seen live, as the authors"
            " simulate it",
        ),
        replace(FIT, needs=("global_view=false",)),
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    hybrid=True,
    global_view=("global_view",),
)
