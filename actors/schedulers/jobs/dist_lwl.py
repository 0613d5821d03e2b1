"""Distributed least work left: schedulers place jobs by what the last heartbeat told them of the nodes' work.

The baseline `DLWL` of the authors of Eagle: distributed schedulers, each with a view of the whole cluster that is
as old as the last heartbeat.

1. Every `heartbeat_s` the nodes whose load has changed report it: the estimated work that waits or runs, and what
   runs since when. The schedulers have the reports one network delay later, all the same ones.
2. A job arrives at one of the schedulers: each task goes to the node that waits least by the last reports, plus a
   random time of up to `jitter_s`, so that schedulers with equal views do not all choose the same nodes. Long jobs
   keep to the nodes that long jobs may use.
3. Nodes serve the shortest remaining job first, within the slack bound.

**Deviations from the paper.** There is no paper of its own; the rules are those of the authors' simulator, but told by
messages. There the work of a task counts from its job's arrival, schedulers see live which task runs since when, and
nodes the remaining work of jobs: `global_view=true`. Placed tasks are bound late there: `late_binding=true`. All
schedulers are taken to get a heartbeat's reports at the same time, also where network delays vary.

References: doi 10.1145/2987550.2987563
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import (
    ARRIVAL,
    DONE,
    HEARTBEAT,
    LOAD_REPORT,
    PLACED,
    PROBE,
    REQUEST,
    RUNNING,
    TASK_END,
    records,
    send,
    take,
    wake,
)
from actors.kernel.world import N_REPORTS, NEVER, NONE, Rules
from actors.nodes.worker import node_event
from actors.schedulers.jobs.build import NS, build_world, most_tasks
from actors.schedulers.jobs.central_lwl import LATE_BINDING
from actors.schedulers.jobs.eagle import SHORTEST_FIRST, SLACK
from actors.schedulers.jobs.late_binding import next_arrival, on_done, on_request
from actors.schedulers.jobs.least_work import Placer, make_placer, place_tasks, send_assigned
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.schedulers.policy import Parameter, Scheduler
from workloads.errors import InputError

REPORT = np.dtype([("node", "i8"), ("work", "i8"), ("started", "i8"), ("running", "i8")])


class State(NamedTuple):
    """What nodes have, what they have reported, and what the schedulers make of it."""

    short: Placer  # its ledger is the schedulers' view, as of the last reports
    long: Placer  # the same ledger, for the nodes that long jobs may use
    load: np.ndarray  # [N] a node's own estimated work, waiting or running, ns
    changed: np.ndarray  # [N] nodes whose load has changed since the last heartbeat
    has_changed: np.ndarray  # [N] bool
    reports: np.recarray  # [N] REPORT, under way from the nodes to the schedulers
    pending: np.ndarray  # [2] changed nodes, reports under way
    jitter: int  # steps of random time
    jitter_step: int  # ns
    monitor: int  # the actor that stands for the nodes' heartbeats
    heartbeat: int  # ns
    global_view: int


@inlined
def change_load(w, p, t, node, amount):
    """A node's load changes; it is to report that at the first heartbeat from `t` on."""
    p.load[node] += amount
    if not p.has_changed[node]:
        p.has_changed[node] = True
        p.changed[p.pending[0]] = node
        p.pending[0] += 1
        if p.pending[0] == 1:  # heartbeats with nothing to report are left out
            next_beat = (t + p.heartbeat - 1) // p.heartbeat * p.heartbeat
            wake(w, next_beat, p.monitor, HEARTBEAT, NONE, NONE, NONE)


@inlined
def on_heartbeat(w, p, t, me):
    """Step 1: the changed nodes report."""
    if p.pending[1] > 0:  # the last reports are still under way: these wait for the next heartbeat
        wake(w, t + p.heartbeat, me, HEARTBEAT, NONE, NONE, NONE)
    else:
        for i in range(p.pending[0]):
            node = p.changed[i]
            job = w.nodes.running[node]
            p.reports.node[i], p.reports.work[i] = node, p.load[node]
            p.reports.started[i] = NEVER if job == NONE else w.nodes.started[node]
            p.reports.running[i] = 0 if job == NONE else w.work.estimate[job]
            p.has_changed[node] = False
        p.pending[1], p.pending[0] = p.pending[0], 0
        if p.global_view == 1:
            on_reports(w, p)
        else:
            send(w, t, me, w.nodes.size, LOAD_REPORT, NONE, NONE, NONE, NONE)


@inlined
def on_reports(w, p):
    """The schedulers have the reports: they are their view until the next ones."""
    view = p.short.ledger
    for i in range(p.pending[1]):
        node = p.reports.node[i]
        view.work[node] = p.reports.work[i]
        if p.global_view == 0:
            view.started[node], view.running[node] = p.reports.started[i], p.reports.running[i]
    w.counts[N_REPORTS] += p.pending[1]
    p.pending[1] = 0


@compiled
def on_arrival(w, p, t, me, job):
    """Step 2: place every task."""
    next_arrival(w, me, job)
    placer = p.long if w.work.is_long[job] == 1 else p.short
    count = place_tasks(w, placer, t, job, p.jitter, p.jitter_step)
    if p.global_view == 1:
        for i in range(count):
            # An arrival comes after a heartbeat at the same instant: the next one reports it.
            change_load(w, p, t + 1, placer.assigned[i], w.work.estimate[job])
    send_assigned(w, placer, t, me, job, count, NONE)


@inlined
def on_node(w, p, t, kind, node, job):
    """Step 3, and the node's own account of its load."""
    if kind == TASK_END:
        change_load(w, p, t, node, -w.work.estimate[job])
    elif p.global_view == 0 and (kind == PLACED or kind == PROBE):
        change_load(w, p, t, node, w.work.estimate[job])
    node_event(w, node)
    if p.global_view == 1:
        running = w.nodes.running[node]
        p.short.ledger.started[node] = NEVER if running == NONE else w.nodes.started[node]
        p.short.ledger.running[node] = 0 if running == NONE else w.work.estimate[running]


@compiled
def advance(w, p, until, most):
    """Handle events before `until`, at most `most` of them; says why it stopped."""
    message = w.queue.now
    for _ in range(most):
        why = take(w.queue, w.entries, until)
        if why != RUNNING:
            return why
        t, kind, me, job = message.time[0], message.kind[0], message.dst[0], message.a[0]
        if me < w.nodes.size:
            on_node(w, p, t, kind, me, job)
        elif kind == REQUEST:
            on_request(w, t, me, job, message.b[0])
        elif kind == DONE:
            on_done(w, job, message.c[0], message.d[0])
        elif kind == LOAD_REPORT:
            on_reports(w, p)
        elif kind == HEARTBEAT:
            on_heartbeat(w, p, t, me)
        elif kind == ARRIVAL:
            on_arrival(w, p, t, me, job)
    return RUNNING


def build(setting):
    """The world and the schedulers' state at time 0."""
    p = setting.parameters
    nodes, schedulers = setting.cluster.num_nodes, p["schedulers"]
    if p["heartbeat_s"] <= setting.network.delay_s:
        raise InputError(
            f"parameter heartbeat_s of dist-lwl: {p['heartbeat_s']} s is not longer than the network delay"
            f" ({setting.network.delay_s} s); reports would pile up"
        )
    rules = Rules(
        shortest_first=int(p["shortest_first"]),
        sticky=0,
        slack=p["slack"],
        live=int(p["global_view"]),
        bound_all=1,
        report_start=0,
    )
    world = build_world(setting, rules, most_sends=lambda tasks: tasks, schedulers=schedulers)
    short = make_placer(setting.cluster.slots(), most_tasks(setting), 0, p["late_binding"])
    step = max(round(p["jitter_step_s"] * NS), 1)
    return world, State(
        short,
        short._replace(first=setting.cluster.partition(setting.long_partition)),
        load=np.zeros(nodes, np.int64),
        changed=np.zeros(nodes, np.int64),
        has_changed=np.zeros(nodes, np.bool_),
        reports=records(REPORT, nodes),
        pending=np.zeros(2, np.int64),
        jitter=round(p["jitter_s"] * NS) // step,
        jitter_step=step,
        monitor=nodes + schedulers + 1,
        heartbeat=round(p["heartbeat_s"] * NS),
        global_view=int(p["global_view"]),
    )


DIST_LWL = Scheduler(
    name="dist-lwl",
    title="distributed schedulers, least work left by stale heartbeats",
    paper="Delgado et al., SoCC 2016, doi 10.1145/2987550.2987563 (a baseline of their simulator)",
    parameters=(
        SCHEDULERS,
        LATE_BINDING,
        Parameter("heartbeat_s", 8.0, "duration", "time between two reports of the nodes", 1e-3, 1e6),
        Parameter("jitter_s", 8.0, "duration", "the most random time added to a node's wait", 0, 1e6),
        Parameter("jitter_step_s", 1.0, "duration", "the random time is a multiple of this", 1e-9, 1e6),
        SHORTEST_FIRST,
        SLACK,
        Parameter(
            "global_view",
            False,
            "bool",
            "work counts from a job's arrival; running tasks and remaining work are seen live, as the authors"
            " simulate it",
        ),
    ),
    build=build,
    advance=advance,
    hybrid=True,
    global_view=("global_view",),
)
