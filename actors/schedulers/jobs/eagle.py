"""Eagle (SoCC 2016): probes that avoid long work and stay at their nodes.

As in Hawk, a central scheduler places long jobs and distributed ones probe for short jobs. Instead of stealing:

1. Succinct state sharing (section 4.1): a node that has long work, running or queued, rejects a probe. With the
   rejection the node sends its newest version of the shared state: which nodes have long work. Placements of long tasks
   bring that version to nodes.
2. The scheduler sends the rejected probes again, to random nodes that have no long work in the newest version that the
   job has received, `reprobe_rounds` times at most. What is rejected after that goes to the short partition, where no
   long task runs.
3. Sticky batch probing (section 4.2): a probe stays in its node's queue until its job has no task left.
4. Nodes serve the job with the shortest remaining work first; no short task is passed by more than `slack` times its
   own estimate (section 4.3).

**Deviations from the paper.** A node uses the last reported remaining work of a job: that of the probe, and of the
scheduler's answers to its own requests; the authors' simulator reads it live: `live_progress=true` (a global view).
Re-probes are drawn independently of each other. The paper has one slot a node: with several no slot stays idle while an
entry waits, and a sticky probe asks for a task for each idle slot, but for no more than its job has left by the node's
last information, and for one at a time if the tasks of its job must be spread. Where there is no short partition, the
last round goes to any node and is accepted. Draws with replacement and late binding of long tasks, as the authors
simulate them, are parameters, and so is `fit`, which is that of `hawk`. The paper does not say what becomes of a probe
that a node's failure has lost: it goes to any node that is up. That node may reject it, but not while the whole short
partition is down.

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
from actors.constraints import eligible_before, eligible_count, is_constrained, list_of, listed, listing_of
from actors.failures import is_down, is_known_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.loops import Handlers
from actors.kernel.message_kinds import PUBLISHED
from actors.kernel.messages import (
    ARRIVAL,
    LOST,
    read_lost,
    read_published,
    send_published,
)
from actors.kernel.queue import NONE
from actors.kernel.random import LAST_RETRIES, RETRIES, below, random_bits
from actors.kernel.records import Records, records
from actors.nodes import messages
from actors.nodes.worker import node_event
from actors.nodes.world import N_AGAIN, N_PROBES, N_REJECTIONS, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import servers, work_at
from actors.scheduler import Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import late_binding, least_work, probing
from actors.schedulers.jobs.build import build_world, long_jobs, most_tasks
from actors.schedulers.jobs.central_lwl import LATE_BINDING
from actors.schedulers.jobs.job_info import is_long, tasks_of
from actors.schedulers.jobs.least_work import FIT, add_work, make_fit
from actors.schedulers.jobs.sparrow import PROBE_RATIO, REPLACEMENT, SCHEDULERS
from actors.schedulers.jobs.spreading import may_run, must_spread, next_open
from actors.setting import Setting

# Where the steps stand:
# 1. `on_arrival`, `reject`, `on_rejected`; the shared state: `change_bit`, `bit_at`
# 2. `on_retry`, `probe_free`, `draw_free`
# 3. `leave_queue` of actors/nodes/worker.py; `note_answer` and `drop_probe` of actors/nodes/waiting.py
# 4. `pick_shortest` and `bypass` of actors/nodes/waiting.py

# Succinct shared state: one bit a node, set while long work is assigned to it (Eagle, SoCC'16, section 4.1).
#
# The bits do not travel in messages. Their owner, the central scheduler, appends every change to a log, and a message
# carries the length of the log when it was sent: its version. An actor that has a version can read any node's bit as of
# that version. Schedulers of other partitions have a copy of the log, to which the owner publishes its changes.

TRIES = 1024  # random nodes looked at before all are counted: twice a pass over 15,000 nodes costs as much


# The last count of free nodes of a list: many jobs ask for the same count between two placements of long tasks.
COUNTED = np.dtype(
    [
        ("version", "i8"),
        ("low", "i8"),  # which nodes of the list: those of a job that runs in one rack are a part of it
        ("first", "i8"),
        ("end", "i8"),  # how many these are
        ("free", "i8"),  # how many of them are free
    ]
)


class SharedState(NamedTuple):
    """The log of changes. A change is noted as 2 · (its place in the log) + the new bit; negative for none."""

    latest: np.ndarray  # [N] a node's latest change: most questions are answered without a look at the log
    previous: np.ndarray  # [log] by place: the same node's change before
    length: np.ndarray  # [1] the current version
    counted: Records  # [L + 1] COUNTED, by list of nodes; the last row is for jobs without constraints


def make_shared_state(nodes: int, long_tasks: int, lists: int) -> SharedState:
    """Return a state with all bits clear. A long task changes its node's bit at most twice per placement."""
    counted = records(COUNTED, lists + 1)
    counted.version[:] = NONE
    return SharedState(
        np.full(nodes, -2, np.int64), np.zeros(2 * long_tasks + 1, np.int64), np.zeros(1, np.int64), counted
    )


def grow_shared_state(shared: SharedState, changes: int) -> SharedState:
    """Return the state with room in its log for a number of changes: its size is doubled as often as needed."""
    while shared.previous.size - shared.length[0] < changes:
        shared = shared._replace(previous=np.concatenate([shared.previous, np.zeros_like(shared.previous)]))
    return shared


@inlined
def version_of(shared: SharedState) -> int:
    """Return the current version: how many changes the log has."""
    return shared.length[0]


@inlined
def room_in_log(shared: SharedState) -> int:
    """Return how many changes still fit into the log."""
    return shared.previous.size - shared.length[0]


@inlined
def bit_at(shared: SharedState, node: int, version: int) -> int:
    """A node's bit in the given version."""
    change = shared.latest[node]
    while change >= 2 * version:
        change = shared.previous[change >> 1]
    return change & 1


@inlined
def set_bit(shared: SharedState, node: int, bit: int) -> None:
    """Set a node's bit, and log the change if it is one."""
    change = shared.latest[node]
    if change & 1 != bit:
        length = shared.length[0]
        shared.previous[length] = change
        shared.latest[node] = 2 * length + bit
        shared.length[0] = length + 1


@inlined
def change_bit(w: World, shared: SharedState, t: int, node: int, bit: int) -> None:
    """Change a node's bit, as its owner, for all schedulers."""
    if shared.latest[node] & 1 != bit:
        set_bit(shared, node, bit)
        send_published(w, t, node, bit)


@inlined
def is_free(w: World, shared: SharedState, version: int, job: int, spread: bool, node: int) -> bool:
    """Whether a node's bit is clear in the given version, and it may run another task of the job.

    `spread`: the job's tasks must be spread.
    """
    return bit_at(shared, node, version) == 0 and (not spread or may_run(w, job, node))


@inlined
def draw_free(w: World, shared: SharedState, version: int, job: int, counter: int) -> int:
    """Draw a random node that may run a task of the job and whose bit is clear in `version`; NONE if there is none.

    Most draws need a few tries; if nearly all bits are set, the free nodes are counted instead.
    """
    end, spread = eligible_count(w, job), must_spread(w, job)
    low, first = listing_of(w, job)
    for i in range(TRIES):
        bits = random_bits(w.seed, RETRIES, job, counter * (TRIES + 1) + i)
        node = listed(w, low, first, below(bits, end))
        if is_free(w, shared, version, job, spread, node):
            return node
    return draw_counted(w, shared, version, job, counter)


@compiled
def draw_counted(w: World, shared: SharedState, version: int, job: int, counter: int) -> int:
    """Draw a free node as `draw_free` does, by counting: nearly all bits are set."""
    end, spread = eligible_count(w, job), must_spread(w, job)
    low, first = listing_of(w, job)
    free = known_free(w, shared, version, job)
    if free == NONE:
        free = np.int64(0)
        for i in range(end):
            free += np.int64(is_free(w, shared, version, job, spread, listed(w, low, first, i)))
        if not spread:
            rows, row = shared.counted, row_of(w, shared, job)
            rows.version[row], rows.low[row], rows.first[row], rows.end[row] = version, low, first, end
            rows.free[row] = free
    if free == 0:
        return NONE
    skip = below(random_bits(w.seed, RETRIES, job, counter * (TRIES + 1) + TRIES), free)
    for i in range(end):
        node = listed(w, low, first, i)
        if is_free(w, shared, version, job, spread, node):
            if skip == 0:
                return node
            skip -= 1
    return NONE


@inlined
def known_free(w: World, shared: SharedState, version: int, job: int) -> int:
    """Return how many of the job's nodes are free in `version`, if the last count of its list was that; else NONE."""
    rows, row = shared.counted, row_of(w, shared, job)
    low, first = listing_of(w, job)
    if rows.version[row] != version or rows.end[row] != eligible_count(w, job):
        return NONE
    if rows.low[row] != low or rows.first[row] != first or must_spread(w, job):
        return NONE
    return rows.free[row]


@inlined
def row_of(w: World, shared: SharedState, job: int) -> int:
    """The row of `counted` for a job."""
    if is_constrained(w, job):
        return list_of(w, job)
    return shared.counted.size - 1


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
    shared: SharedState
    reprobe_rounds: int
    ideal: bool  # probes go where no long work is at that moment (global view)


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """For step 1: place a long job, and publish where it is with its tasks; probe for a short one."""
    tasks = late_binding.next_arrival(w, me, job)
    if is_long(w, job):
        least_work.place_tasks(w, p.placer, t, job)
        least_work.add_assigned(w, p.placer, job, tasks)
        for i in range(tasks):
            change_bit(w, p.shared, t, p.placer.assigned[i], 1)
        least_work.send_assigned(w, p.placer, t, me, job, tasks, version_of(p.shared))
    elif p.ideal:
        probe_free(
            w,
            p,
            t,
            me,
            job,
            probing.probes_of(p.probing, tasks),
            version_of(p.shared),
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
    """For step 2: collect the probes that are rejected at one instant; all use the newest version of the state."""
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
    """Step 2: probe random nodes: free ones in `version`, or those of the short partition if that is NONE.

    A free node that is known to be down is not used: its probe would be lost, sent again, rejected, and come back here.
    """
    num_short = eligible_before(w, job, p.placer.first)  # of the job's nodes, in the short partition
    if num_short == 0:
        num_short = eligible_count(w, job)
    if version != NONE and known_free(w, p.shared, version, job) == 0:
        version = NONE
    for _ in range(count):
        w.jobs.draws[job] += 1
        draw = w.jobs.draws[job]
        node: int = NONE
        round_sent = this_round
        if version != NONE:
            node = draw_free(w, p.shared, version, job, draw)
            if node == NONE:
                version = NONE  # the others would find none either
        if node == NONE or is_known_down(w, node):
            round_sent = LAST_ROUND
            place = below(random_bits(w.seed, LAST_RETRIES, job, draw), num_short)
            node = next_open(w, job, place, num_short)
        probing.probe(w, t, me, node, job, tasks_of(w, job), round_sent, probing.NO_VERSION)


@compiled
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Place a task, or send a probe, again that a node's failure has lost."""
    job, _, node, _, _ = read_lost(w)
    if not is_long(w, job):
        late_binding.probe_again(w, t, me, round_of_replacement(w, p, job))
        return
    if node != NONE and least_work.note_end(w, p.placer, job, node) == 0:
        change_bit(w, p.shared, t, node, 0)
    chosen = least_work.place_again(w, p.placer, t, me)
    if chosen != NONE:
        add_work(p.placer.ledger, chosen, work_at(w, chosen, job))
        change_bit(w, p.shared, t, chosen, 1)
        least_work.send_one(w, p.placer, t, me, chosen, version_of(p.shared))


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
def on_done(w: World, p: State, t: int, job: int) -> None:
    """For step 1: note the end of a task; the last long one on a node frees it for short jobs."""
    _, node, _, _ = messages.read_done(w)
    if is_long(w, job) and least_work.note_end(w, p.placer, job, node) == 0:
        change_bit(w, p.shared, t, node, 0)
    late_binding.on_done(w)


@inlined
def on_published(w: World, shared: SharedState) -> None:
    """Note whether a node has long work, of which a scheduler of another partition knows."""
    node, has_long = read_published(w)
    set_bit(shared, node, has_long)


HANDLERS: Handlers = {
    messages.REQUEST: least_work.on_request,
    messages.DONE: on_done,
    messages.STARTED: least_work.on_started,
    messages.REJECTED: on_rejected,
    messages.RETRY: on_retry,
    ARRIVAL: on_arrival,
    PUBLISHED: on_published,
    LOST: on_lost,
}


@inlined
def on_node(w: World, t: int, node: int) -> None:
    """Handle a message to a node, which may reject a probe."""
    if not reject(w, t, node):
        node_event(w, node)


@inlined
def lacks_room(w: World, p: State) -> bool:
    """Whether the log of changes is too short for those of one event."""
    return room_in_log(p.shared) < w.queue.room


advance = late_binding.make_job_loop(
    __name__,
    State,
    HANDLERS,
    others_at_nodes=on_node,
    on_node_state=least_work.note_node_state,
    grows_if=(lacks_room,),
)


def grow(world: World, state: State) -> State:
    """Return the state with enough room in the log for the changes of one event."""
    return state._replace(shared=grow_shared_state(state.shared, world.queue.room))


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
        make_shared_state(nodes, long_tasks, world.eligible.num_nodes.size),
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
