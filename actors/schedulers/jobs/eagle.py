"""Eagle (SoCC 2016): probes that avoid long work and stay at their nodes.

As in Hawk, a central scheduler places long jobs and distributed ones probe for short jobs. Instead of stealing:

1. Succinct state sharing (section 4.1): a node that has long work, running or queued, rejects a probe. With the
   rejection the node sends its newest version of the shared state: which nodes have long work. Placements of long tasks
   bring that version to nodes.
2. The scheduler sends the rejected probes again, to random nodes that have no long work in the newest version that the
   job has received; what is rejected `reprobe_rounds` times goes to the short partition, where no long task runs.
3. Sticky batch probing (section 4.2): a probe stays in its node's queue until its job has no task left.
4. Nodes serve the job with the shortest remaining work first; no short task is passed by more than `slack` times its
   own estimate (section 4.3).

**Deviations from the paper.** A node uses the last reported remaining work of a job: that of the probe, and of the
scheduler's answers to its own requests; the authors' simulator reads it live: `live_progress=true` (a global view).
Re-probes are drawn independently of each other. The paper has one slot a node: with several no slot stays idle while an
entry waits, and a sticky probe asks for a task for each idle slot, but for no more than its job has left by the node's
last information (of a job whose tasks must be spread, for one). Where there is no short partition, the last round goes
to any node and is accepted. Draws with replacement and late binding of long tasks, as the authors simulate them, are
parameters, and so is `fit`, which is that of `hawk`. The paper does not say what becomes of a probe that a node's
failure has lost: it goes to any node that is up, and may be rejected there, unless the whole short partition is down.

`ideal-eagle` knows where long work is: probes go directly to nodes that have none at that moment, each drawn
independently of the others. It is an upper bound for state sharing, not a system, and always needs a global view.
Deviations: the authors run it without the order of Eagle's step 4: `shortest_first=false`.

`eagle-c` is constraint-aware: each draw is among the nodes that satisfy the job. Where none of them is in the short
partition, the last round goes to any of them and is accepted. `live_progress=true` is a global view here too.
Deviations from the paper: it has no constraints; these rules are ours. The simulator of Phoenix's authors ignores
constraints where it sends rejected probes again.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actors.causes import BEHIND_EQUALS, BEHIND_LONG, Remedy
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.eligible import eligible_before, eligible_count, is_constrained
from actors.kernel.faults import is_down, is_known_down
from actors.kernel.message_kinds import PUBLISHED
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job, read_lost, read_published
from actors.kernel.queue import GROW, RUNNING
from actors.kernel.random import LAST_RETRIES, below, random_bits
from actors.kernel.room import work_at
from actors.kernel.world import N_AGAIN, N_PROBES, N_REJECTIONS, NONE, Rules, World
from actors.nodes import messages
from actors.nodes.worker import node_event
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import servers
from actors.scheduler import Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import least_work, probing, shared_state
from actors.schedulers.jobs.build import build_world, long_jobs, most_tasks
from actors.schedulers.jobs.central_lwl import LATE_BINDING
from actors.schedulers.jobs.job_info import is_long, tasks_of
from actors.schedulers.jobs.late_binding import next_arrival, on_done, on_request, probe_again
from actors.schedulers.jobs.ledger import add_work
from actors.schedulers.jobs.node_fit import FIT, make_fit
from actors.schedulers.jobs.sparrow import PROBE_RATIO, REPLACEMENT, SCHEDULERS
from actors.schedulers.jobs.spreading import next_open
from actors.setting import Setting

LAST_ROUND = np.int64(1 << 30)  # a probe of this round is never rejected
# Parameters that `ideal-eagle` or `phoenix` does not have, and the values that hold there.
FIXED_VALUES: dict[str, Any] = {
    "live_progress": False,
    "replacement": True,
    "reprobe_rounds": 0,
    "fit": "least-work",
}


class State(NamedTuple):
    """Eagle's parameters and bookkeeping."""

    probing: probing.Probing
    placer: least_work.Placer
    shared: shared_state.SharedState
    reprobe_rounds: int
    ideal: bool  # probes go where no long work is at that moment (global view)


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Place a long job and publish where it is; probe for a short one."""
    tasks = next_arrival(w, me, job)
    if is_long(w, job):
        least_work.place_tasks(w, p.placer, t, job)
        least_work.add_assigned(w, p.placer, job, tasks)
        for i in range(tasks):
            shared_state.change_bit(w, p.shared, t, p.placer.assigned[i], 1)
        least_work.send_assigned(w, p.placer, t, me, job, tasks, shared_state.version_of(p.shared))
    elif p.ideal:
        probe_free(
            w,
            p,
            t,
            me,
            job,
            probing.probes_of(p.probing, tasks),
            shared_state.version_of(p.shared),
            LAST_ROUND,
        )
        w.counts[N_PROBES] += probing.probes_of(p.probing, tasks)
    else:
        probing.send_probes(w, t, me, p.probing, job, tasks)


@inlined
def reject(w: World, t: int, node: int) -> bool:
    """Step 1: reject a probe, with its version of the shared state, if the node has long work; return if it has."""
    if w.queue.now.kind[0] != messages.PROBE or w.nodes.longs[node] == 0:
        return False
    job, _, _, this_round, _, _ = messages.read_probe(w)
    if is_long(w, job) or this_round == LAST_ROUND or is_down(w, node):
        return False
    w.counts[N_REJECTIONS] += 1
    messages.send_rejected(w, t, node, w.work.home[job], job, w.nodes.version[node], this_round + 1)
    return True


@inlined
def on_rejected(w: World, t: int, me: int) -> None:
    """Collect the probes that are rejected at one instant; all use the newest version of the shared state."""
    job, version, next_round = messages.read_rejected(w)
    jobs = w.jobs
    jobs.version[job] = max(jobs.version[job], version)
    if jobs.rejected[job] == 0:
        messages.send_retry(w, t, me, job, next_round)
    jobs.rejected[job] += 1


@compiled
def on_retry(w: World, p: State, t: int, me: int) -> None:
    """Step 2: send the rejected probes again."""
    job, this_round = messages.read_retry(w)
    count = w.jobs.rejected[job]
    w.jobs.rejected[job] = 0
    w.counts[N_AGAIN] += count
    if this_round <= p.reprobe_rounds:
        probe_free(w, p, t, me, job, count, w.jobs.version[job], this_round)
    else:
        probe_free(w, p, t, me, job, count, NONE, LAST_ROUND)


@inlined
def probe_free(
    w: World, p: State, t: int, me: int, job: int, count: int, version: int, this_round: int
) -> None:
    """Probe random nodes: free ones in `version`, or those of the short partition if that is NONE.

    A free node that is known to be down is not used: its probe would be lost, sent again, rejected, and come back here.
    """
    short_only = eligible_before(w, job, p.placer.first)
    if short_only == 0:
        short_only = eligible_count(w, job)
    if version != NONE and shared_state.known_free(w, p.shared, version, job) == 0:
        version = NONE
    for _ in range(count):
        w.jobs.draws[job] += 1
        draw = w.jobs.draws[job]
        node: int = NONE
        round_sent = this_round
        if version != NONE:
            node = shared_state.draw_free(w, p.shared, version, job, draw)
            if node == NONE:
                version = NONE  # the others would find none either
        if node == NONE or is_known_down(w, node):
            round_sent = LAST_ROUND
            place = below(random_bits(w.seed, LAST_RETRIES, job, draw), short_only)
            node = next_open(w, job, place, short_only)
        probing.probe(w, t, me, node, job, tasks_of(w, job), round_sent, probing.NO_VERSION)


@compiled
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Place a task, or send a probe, again that a node's failure has lost."""
    job, _, node, _, _ = read_lost(w)
    if not is_long(w, job):
        probe_again(w, t, me, round_of_replacement(w, p, job))
        return
    if node != NONE and least_work.note_end(w, p.placer, job, node) == 0:
        shared_state.change_bit(w, p.shared, t, node, 0)
    chosen = least_work.place_again(w, p.placer, t, me)
    if chosen != NONE:
        add_work(p.placer.ledger, chosen, work_at(w, chosen, job))
        shared_state.change_bit(w, p.shared, t, chosen, 1)
        least_work.send_one(w, p.placer, t, me, chosen, shared_state.version_of(p.shared))


@inlined
def round_of_replacement(w: World, p: State, job: int) -> int:
    """Return the round of a probe that replaces a lost one: the first one, if the last round has a node that is up."""
    if p.ideal:
        return LAST_ROUND
    if is_constrained(w, job):  # a last one goes to any node that the job may use, if it must
        return probing.FIRST_ROUND
    for node in range(p.placer.first):
        if not is_known_down(w, node):
            return probing.FIRST_ROUND
    return probing.FIRST_ROUND if p.placer.first == 0 else LAST_ROUND


@inlined
def on_scheduler(w: World, p: State, t: int, kind: int, me: int) -> None:
    """Handle a message to a scheduler."""
    if kind == messages.REQUEST:
        job, node, _ = messages.read_request(w)
        if is_long(w, job):
            least_work.note_start(w, p.placer, job, node, t)
        on_request(w, t, me)
    elif kind == messages.DONE:
        job, node, _, _ = messages.read_done(w)
        if is_long(w, job) and least_work.note_end(w, p.placer, job, node) == 0:
            shared_state.change_bit(w, p.shared, t, node, 0)
        on_done(w)
    elif kind == messages.STARTED:
        least_work.on_started(w, p.placer)
    elif kind == messages.REJECTED:
        on_rejected(w, t, me)
    elif kind == messages.RETRY:
        on_retry(w, p, t, me)
    elif kind == ARRIVAL:
        on_arrival(w, p, t, me, read_job(w))
    elif kind == PUBLISHED:
        node, has_long = read_published(w)
        shared_state.set_bit(p.shared, node, has_long)
    elif kind == LOST:
        on_lost(w, p, t, me)
    elif kind == NODE_DOWN or kind == NODE_UP:
        least_work.note_node_state(w, p.placer.ledger)


@inlined
def lacks_room(w: World, p: State) -> bool:
    """Whether the log of changes is too short for those of one event."""
    return shared_state.room_in_log(p.shared) < w.queue.room


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        if lacks_room(w, p):
            return GROW
        why = take(w, until)
        if why != RUNNING:
            return why
        t, me = message.time[0], message.dst[0]
        if me >= w.nodes.size:
            on_scheduler(w, p, t, message.kind[0], me)
        elif not reject(w, t, me):
            node_event(w, me)
    return RUNNING


def grow(world: World, state: State) -> State:
    """Return the state with enough room in the log for the changes of one event."""
    return state._replace(shared=shared_state.grow_shared_state(state.shared, world.queue.room))


def build(setting: Setting, ideal: bool = False, least_sends: int = 0) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0; handlers send at least `least_sends` messages for any job."""
    p = FIXED_VALUES | setting.parameters
    nodes, late = setting.cluster.num_nodes, p["late_binding"]
    longs = long_jobs(setting)
    world = build_world(
        setting,
        Rules(p["shortest_first"], p["sticky"], p["slack"], p["live_progress"], report_start=not late),
        most_sends=lambda tasks: max(
            probing.most_probes(p["probe_ratio"], p["least_probes"], tasks), least_sends
        ),
        schedulers=p["schedulers"],
        central_jobs=longs,
    )
    long_tasks = int((world.work.end_task - world.work.first_task)[longs].sum())
    return world, State(
        probing.make_probing(
            p["probe_ratio"], p["least_probes"], p["replacement"], nodes, most_tasks(setting)
        ),
        least_work.make_placer(
            servers(setting),
            most_tasks(setting),
            setting.cluster.partition(setting.long_partition),
            late,
            make_fit(p["fit"], world, servers(setting)),
        ),
        shared_state.make_shared_state(nodes, long_tasks, world.eligible.num_nodes.size),
        p["reprobe_rounds"],
        ideal,
    )


SHORTEST_FIRST = Parameter(
    "shortest_first",
    True,
    "flag",
    "nodes serve the shortest remaining job first",
    addresses=tuple(
        Remedy(cause, "nodes serve the job with the least work left first") for cause in BEHIND_EQUALS
    ),
)
SLACK = Parameter(
    "slack",
    5.0,
    "number",
    "a short task is passed by at most this many times its estimate",
    0,
    1e6,
    needs=("shortest_first", "reorder"),
)

SHARED_PARAMETERS = (
    PROBE_RATIO,
    Parameter("least_probes", 20, "integer", "probes of the smallest job", 1, 100_000),
    REPLACEMENT,
    SCHEDULERS,
    LATE_BINDING,
    Parameter("sticky", True, "flag", "a probe stays until its job has no task left (sticky batch probing)"),
    SHORTEST_FIRST,
    SLACK,
    Parameter(
        "live_progress",
        False,
        "flag",
        "nodes read the remaining work of jobs at their schedulers, as the authors simulate it",
        needs=("shortest_first",),
    ),
)

EAGLE = Scheduler(
    name="eagle",
    title="hybrid, with succinct state sharing, sticky probes and shortest-first queues",
    paper="Delgado, Didona, Dinu, Zwaenepoel: Job-aware Scheduling in Eagle, SoCC 2016, doi 10.1145/2987550.2987563",
    parameters=(
        *SHARED_PARAMETERS,
        Parameter(
            "reprobe_rounds",
            1,
            "integer",
            "times a probe is sent by the shared state",
            0,
            100,
            addresses=(
                Remedy(BEHIND_LONG, "nodes with long work reject probes, which are sent again", "short"),
            ),
        ),
        FIT,
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    grow=grow,
    hybrid=True,
    global_view=("live_progress",),
    draws=True,
)

EAGLE_C = constraint_aware(EAGLE, "eagle-c")

IDEAL_EAGLE = Scheduler(
    name="ideal-eagle",
    title="eagle whose probes know where long work is",
    paper="Delgado, Didona, Dinu, Zwaenepoel: Job-aware Scheduling in Eagle, SoCC 2016, doi 10.1145/2987550.2987563",
    parameters=tuple(one for one in SHARED_PARAMETERS if one is not REPLACEMENT),
    worlds=JOB_WORLDS,
    build=partial(build, ideal=True),
    advance=advance,
    preempts=True,
    grow=grow,
    hybrid=True,
    global_view=("always",),
    draws=True,
)
