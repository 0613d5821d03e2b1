"""Yacc-D: distributed schedulers place tasks in bounded queues at the nodes, by the load that nodes report.

After Yaq-d (EuroSys 2016), the distributed scheduler that the paper on Phoenix compares with as Yacc-D.

1. A job of m tasks arrives at one of the schedulers. It draws `choices` · m nodes and binds the tasks, one by one, to
   the node of these with the least estimated wait: by the node's last report, and by what this scheduler has sent there
   since. Long jobs keep to the nodes that long jobs may use.
2. A node's queue holds at most `queue_limit` tasks for each slot, or takes tasks while less than `queue_wait_s` of
   estimated work waits for each (`bound`). A task that comes to a full queue is sent back, and goes to another node: of
   64 that are considered, the one that has room by the last reports and waits least. After `tries` such returns, and
   where no node has room, it waits at its scheduler, which tries again when the reports of a heartbeat have arrived.
3. A node serves its queue in the order `order`, and no task is passed by tasks with more estimated work than `slack`
   times its own.
4. Every `heartbeat_s` the nodes whose load has changed report it, and give back the tasks that have more work in front
   of them than a slot has on the mean over all nodes, as stated by the last placement, and `rebalance_s` more. They are
   placed again as in step 2; a task that was sent back before stays.
5. Only nodes that satisfy a job's constraints are considered, at every step.

With `fit` "best" or "worst" a task goes, of the nodes that are considered and have room in their queues, to the one
that then has the least, or the most, room left, if it fits on one, by the node's last report and by what this scheduler
has sent there since; else to the one that waits least. Room left is the largest share of a resource of the node, or of
its slots, that neither tasks hold nor entries of its queue need. A node reports it with its work, by a message for each
three resources. What others have sent since, and what has ended since, are not known.

A full queue takes a task of higher priority than its last one, and sends that back. With preemption it takes one for
which running tasks of lower priority can be evicted, if it goes before all that wait. Nodes report the lowest priority
that waits, or that runs and may be evicted. Where no node has room in its queue, a task goes to the node, of 64, with
the lowest such priority below its own; a scheduler sends one such task to a node until that reports again. Whether what
ends there makes enough room is not known: the node may send the task back.

Tasks wait at a scheduler in order of priority, then as they came; a task that comes waits behind those of higher
priority. A search for room passes jobs that find none on their nodes, and after 64 of one priority all others of it.
With `backlog_order` "fair" or "capacity" each scheduler has a queue for each tenant, as `central-fifo`. It goes by what
it has placed itself, also in queues of nodes, until the end is reported, and each may place an equal part of what the
ceilings allow. While tasks wait, all that come wait with them.

**Deviations from the paper.** This follows the paper's published description; its code is not public, and the
parameters are ours. In the paper nodes learn the remaining tasks of a job from its manager; here they use the number
that came with the task. Its rebalancing moves tasks between queues; here they go by way of their schedulers. A task
that is in transit to a node when that node reports is in neither the report nor the scheduler's own account. A job
whose tasks may not share racks, and one for which the long partition has too few nodes, may use the short partition
too.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.eligible import is_constrained, level_of
from actors.kernel.faults import receive_node_state
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job, read_lost, read_node_state
from actors.kernel.queue import NEVER, RUNNING, note, wake
from actors.kernel.trace import CHOSEN, is_recorded
from actors.kernel.world import N_PLACEMENTS, N_SENT_AGAIN, NONE, Rules, World
from actors.nodes import load_messages
from actors.nodes.bounded import BoundedQueues, on_bounded_heartbeat, on_bounded_node
from actors.nodes.messages import DISPATCH, DONE
from actors.nodes.reporting import is_current, is_newest, make_loads
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import node_slots, servers
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.jobs import central_queue, yacc_d_backlog, yacc_d_candidates, yacc_d_view
from actors.schedulers.jobs.build import NS, build_world, most_tasks
from actors.schedulers.jobs.late_binding import next_arrival, note_attempt, on_done
from actors.schedulers.jobs.node_fit import FIT, make_reported_fit, note_empty, note_room, parts_of
from actors.schedulers.jobs.probing import ONE
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.schedulers.jobs.spreading import hold, release, settle_rack
from actors.setting import Setting
from workloads.errors import InputError

FIFO, SJF, SRJF, LRTF = ORDERS = ("fifo", "sjf", "srjf", "lrtf")
LENGTH, WAIT = BOUNDS = ("length", "wait")


class State(NamedTuple):
    """Yacc-D's parameters and bookkeeping."""

    queues: BoundedQueues
    known: yacc_d_view.View  # a field named `view` would be NumPy's to the compiler
    backlog: yacc_d_backlog.Backlog
    candidates: yacc_d_candidates.Candidates
    first_long: int  # the first node that long jobs may use
    tries: int
    single: bool  # nodes receive 1 as the number of tasks left, so that their order goes by the task alone


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: bind each task to the best of the nodes drawn, or to another one with room; the others wait."""
    tasks, first_task = next_arrival(w, me, job), w.work.first_task[job]
    w.counts[N_PLACEMENTS] += tasks
    settle_rack(w, job, p.first_long * w.work.is_long[job])
    if yacc_d_backlog.waits_before(p.backlog, me - w.nodes.size, job):
        keep_from(w, p, t, me, job, first_task)
        look(w, p, me, t)
        return
    first = yacc_d_candidates.first_of(w, p.first_long, job)
    size = yacc_d_candidates.draw_candidates(w, p.candidates, p.known, t, me, job, first, tasks)
    for i in range(tasks):
        size = yacc_d_candidates.best_on_top(w, p.candidates, p.known, t, me, job, size)
        node = p.candidates.heap.node[0]
        if size == 0:
            node = yacc_d_view.find_place(w, p.known, t, me, job, first)
        if node == NONE or not yacc_d_backlog.may_hold(w, p.backlog, job):
            keep_from(w, p, t, me, job, first_task + i)
            break
        bind(w, p, t, me, job, first_task + i, node)


@inlined
def bind(w: World, p: State, t: int, me: int, job: int, task: int, node: int) -> None:
    """Send a task to a node, with the nodes' mean work, and whether the node may give it back at a heartbeat."""
    if is_recorded(w.queue.trace):
        note(w, t, me, CHOSEN, job, task, node, yacc_d_view.wait_at(w, p.known, t, me, node))
    hold(w, job, node)
    yacc_d_view.note_sent(w, p.known, me, node, job)
    yacc_d_backlog.hold(w, p.backlog, job, ONE)
    left = np.int64(1) if p.single else w.jobs.unfinished[job]
    movable = np.int64(p.backlog.tasks.returns[task] == 0)
    load_messages.send_offered(
        w, t, me, node, job, task, level_of(w, job), left, movable, yacc_d_view.mean_rest(p.known)
    )


@inlined
def keep(w: World, p: State, t: int, me: int, job: int, task: int) -> None:
    """Keep a task at its scheduler until a heartbeat shows room."""
    yacc_d_backlog.keep_waiting(w, p.backlog, me - w.nodes.size, job, task)
    if p.backlog.schedulers.looks[me - w.nodes.size] == 0:
        look(w, p, me, next_reports(w, p, t))


@inlined
def keep_from(w: World, p: State, t: int, me: int, job: int, first: int) -> None:
    """Keep the tasks of a job from one on."""
    for task in range(w.work.end_task[job] - 1, first - 1, -1):
        keep(w, p, t, me, job, np.int64(task))


@inlined
def look(w: World, p: State, me: int, time: int) -> None:
    """Plan a search for room."""
    p.backlog.schedulers.looks[me - w.nodes.size] += 1
    wake(w, time, me, DISPATCH, NONE, NONE, NONE)


@inlined
def next_reports(w: World, p: State, t: int) -> int:
    """Return when the reports of the next heartbeat arrive."""
    delay, beat = w.network.cross_ns, p.queues.loads.heartbeat
    return ((t - delay) // beat + 1) * beat + delay


@compiled
def on_returned(w: World, p: State, t: int, me: int) -> None:
    """Step 2: send a task that came back to another node, or keep it."""
    job, task, node, rest = load_messages.read_returned(w)
    yacc_d_view.note_returned(w, p.known, me, node, rest)
    release(w, job, node)
    yacc_d_backlog.hold(w, p.backlog, job, -ONE)
    p.backlog.tasks.returns[task] += 1
    if p.backlog.tasks.returns[task] > p.tries:
        keep(w, p, t, me, job, task)
    else:
        bind_elsewhere(w, p, t, me, job, task)


@compiled
def bind_elsewhere(w: World, p: State, t: int, me: int, job: int, task: int) -> None:
    """Bind a task to another node that has room by the last reports, or keep it."""
    if yacc_d_backlog.waits_before(p.backlog, me - w.nodes.size, job):
        keep(w, p, t, me, job, task)
        look(w, p, me, t)
        return
    node = yacc_d_view.find_place(w, p.known, t, me, job, yacc_d_candidates.first_of(w, p.first_long, job))
    if node == NONE or not yacc_d_backlog.may_hold(w, p.backlog, job):
        keep(w, p, t, me, job, task)
    else:
        bind(w, p, t, me, job, task, node)


@compiled
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Send a task that a node's failure has lost to another node, or keep it."""
    job, task, node, _, _ = read_lost(w)
    note_attempt(w)
    release(w, job, node)
    yacc_d_backlog.hold(w, p.backlog, job, -ONE)
    w.counts[N_SENT_AGAIN] += 1
    bind_elsewhere(w, p, t, me, job, task)


@compiled
def on_dispatch(w: World, p: State, t: int, me: int) -> None:
    """Step 2: bind tasks that wait here to nodes that have room by the reports of the last heartbeat.

    The search ends with a job that may use all nodes and finds no room; one that may use some is passed.
    """
    who, rows, backlog, room = me - w.nodes.size, p.backlog.schedulers, p.backlog, w.queue.room - 4
    rows.looks[who] -= 1
    yacc_d_backlog.begin_search(backlog, who)
    queue = yacc_d_backlog.next_queue(w, backlog, who)
    while queue != NONE and room > 0:
        job = central_queue.first_job(backlog.queues, queue)
        first = yacc_d_candidates.first_of(w, p.first_long, job)
        node = yacc_d_view.find_place(w, p.known, t, me, job, first)
        if node != NONE:
            room -= 1
            bind(w, p, t, me, job, yacc_d_backlog.take_task(backlog, who, queue), node)
        elif first == 0 and not is_constrained(w, job):
            if not backlog.by_share or w.priority.size == 0:
                break
            backlog.searches.done[queue] = (
                1  # the job of another tenant may replace tasks that this one may not
            )
        else:
            yacc_d_backlog.miss(backlog, who, queue)
        queue = yacc_d_backlog.next_queue(w, backlog, who)
    yacc_d_backlog.end_search(backlog, who)
    if rows.jobs[who] > 0 and (room == 0 or rows.looks[who] == 0):
        look(w, p, me, t if room == 0 else next_reports(w, p, t))


@inlined
def on_node_state(w: World, p: State) -> None:
    """Note that a node is down and has no room, or up again and without work."""
    node, _, _ = read_node_state(w)
    if receive_node_state(w):
        room = p.known.empty_room[node] if w.queue.now.kind[0] == NODE_UP else np.int64(0)
        yacc_d_view.note_node(p.known, node, np.int64(0), np.int64(0), room)
        p.known.nodes.lowest[node] = NEVER
        note_empty(w, p.known.fit, node)


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if kind == load_messages.HEARTBEAT:
            on_bounded_heartbeat(w, p.queues, t, me)
        elif me < w.nodes.size:
            on_bounded_node(w, p.queues, t, kind, me)
        elif kind == DONE:
            on_done(w)
            yacc_d_backlog.hold(w, p.backlog, read_job(w), -ONE)
        elif kind == load_messages.QUEUE_REPORT:
            node, generation, rest, busy_until, room = load_messages.read_queue_report(w)
            if is_current(w, node, generation) and is_newest(w, p.known.newest, node):
                yacc_d_view.note_node(p.known, node, rest, busy_until, room)
        elif kind == load_messages.ROOM_REPORT:
            note_room(w, p.known.fit)
        elif kind == load_messages.LOWEST_REPORT:
            yacc_d_view.note_lowest(w, p.known)
        elif kind == ARRIVAL:
            on_arrival(w, p, t, me, read_job(w))
        elif kind == load_messages.RETURNED:
            on_returned(w, p, t, me)
        elif kind == DISPATCH:
            on_dispatch(w, p, t, me)
        elif kind == LOST:
            on_lost(w, p, t, me)
        elif kind == NODE_DOWN or kind == NODE_UP:
            on_node_state(w, p)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the schedulers' state at time 0."""
    p, slots, nodes = setting.parameters, node_slots(setting), setting.cluster.num_nodes
    rules = Rules(
        shortest_first=p["order"] != FIFO,
        slack=p["slack"],
        bound_all=1,
        by_tasks=p["order"] == LRTF,
        runs=0,  # an entry's epoch says whether its task may be given back
    )
    parts = 0 if p["fit"] == "least-work" else parts_of(max(len(setting.resources), 1))
    world = build_world(setting, rules, most_sends=lambda tasks: tasks + parts, schedulers=p["schedulers"])
    by_work, of_work = p["bound"] == WAIT, servers(setting)
    most_s = float(NEVER) / NS / of_work.max()
    if by_work and p["queue_wait_s"] > most_s:
        raise InputError(
            f"parameter queue_wait_s of yacc-d: {p['queue_wait_s']:g} s for each of {of_work.max():,} slots of a node"
            f" are more work than a queue holds; want at most {most_s:.3g} s"
        )
    limit = of_work * round(p["queue_wait_s"] * NS) if by_work else slots * p["queue_limit"]
    queues = BoundedQueues(
        limit=limit,
        slots=of_work,
        by_work=by_work,
        loads=make_loads(nodes, round(p["heartbeat_s"] * NS)),
        mean=np.zeros(nodes, np.int64),
        above=round(p["rebalance_s"] * NS) if p["rebalance"] else int(NONE),
        parts=parts,
    )
    fit = make_reported_fit(p["fit"], world, of_work, p["schedulers"])
    return world, State(
        queues,
        yacc_d_view.make_view(of_work, limit + slots, by_work, p["schedulers"], fit),
        yacc_d_backlog.make_backlog(setting, world.priority),
        candidates=yacc_d_candidates.make_candidates(p["choices"], nodes, most_tasks(setting)),
        first_long=setting.cluster.partition(setting.long_partition),
        tries=p["tries"],
        single=p["order"] == SJF,
    )


YACC_D = Scheduler(
    name="yacc-d",
    title="distributed schedulers, bounded queues at the nodes, reordered and rebalanced",
    paper="Rasley et al.: Efficient Queue Management, EuroSys 2016, doi 10.1145/2901318.2901354",
    parameters=(
        SCHEDULERS,
        Parameter("choices", 2, "integer", "nodes looked at for each task", 1, 100),
        Parameter("heartbeat_s", 1.0, "duration", "time between two reports of the nodes", 1e-3, 1e6),
        Parameter(
            "bound", LENGTH, "choice", "queues are bounded by tasks or by estimated work", choices=BOUNDS
        ),
        Parameter(
            "queue_limit",
            5,
            "integer",
            "most tasks that wait for a slot",
            0,
            1_000_000,
            needs=("bound=length",),
        ),
        Parameter(
            "queue_wait_s",
            60.0,
            "duration",
            "work for a slot beyond which none is taken",
            0,
            1e6,
            needs=("bound=wait",),
        ),
        Parameter("tries", 3, "integer", "returns after which a task waits at its scheduler", 0, 1000),
        Parameter(
            "order",
            SRJF,
            "choice",
            "nodes serve by arrival, or first the task with the shortest estimate, the job with the least work left, or"
            " that with the fewest tasks left",
            choices=ORDERS,
        ),
        Parameter(
            "slack",
            5.0,
            "number",
            "a task is passed by at most this many times its estimate",
            0,
            1e6,
            needs=(f"order={'|'.join(order for order in ORDERS if order != FIFO)}",),
        ),
        Parameter("rebalance", True, "flag", "nodes give back at heartbeats what waits too far behind"),
        Parameter(
            "rebalance_s",
            30.0,
            "duration",
            "a task waits too far behind if the work in front of it exceeds the mean of the nodes by this",
            0,
            1e6,
            needs=("rebalance",),
        ),
        FIT,
        *central_queue.parameters_of(
            Parameter(
                "backlog_order",
                "arrival",
                "choice",
                "which task that waits at a scheduler goes next: that of the first job to come, or of the tenant with "
                "the smallest share of the cluster over its weight, or over its guarantee, of what this scheduler has "
                "placed; priorities count among the jobs of one tenant, with arrival among all",
                choices=central_queue.ORDER.choices,
            )
        ),
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    hybrid=True,
    constrained=True,
    considers="{choices} for each task of the job, drawn at random",
    waits="reports",
)
