"""Failures of nodes and schedulers: when they happen, which actors are down, and what the schedulers know of it.

A node is up, fails, and is repaired; the k-th outage of a node is given by a schedule, or drawn from exponential
distributions (mean time between failures, mean time to repair). What a failing node does is in actors/nodes/failing.py.
Schedulers share one view of which nodes are down: the listener receives a message when a failure has been detected.

A scheduler that fails has a standby with its journal: its state is kept, and messages for it wait until the standby has
taken over. Only its messages read its state, so they are handled as they arrive, with the time of the take-over.

Failures and repairs never end. Their messages are background messages: a run is over when only such are left.
"""

import math
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from actors.conditions import NS
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import HasCost, lacks_attempts
from actors.kernel.messages import FAIL, NODE_UP, read_node_state, send_node_state
from actors.kernel.queue import NEVER, NONE, SOURCE_SHIFT, grow_queue, wake_in_background
from actors.kernel.random import AGAIN, FAILURES, below, random_bits, unit
from actors.kernel.records import Records, doubled, records
from actors.resources import idle_at_start
from actors.setting import Dynamics, Setting
from clusters.failures import CENTRAL, NODE, SCHEDULER
from workloads.errors import InputError

TRIES = 64  # random draws before the nodes that are up are counted instead
NO_EPOCH = np.int64(0)
NEVER_AGAIN = np.int64(1) << 61  # no outage is scheduled from this time on

# One row per actor. `heard` and `since` are what the schedulers know of a node; all else is the actor's own state.
FAULT = np.dtype(
    [
        ("down", "i8"),  # 1: the node is down
        ("detected", "i8"),  # 1: and the failure detector has reported it
        ("generation", "i8"),  # failures so far
        ("running", "i8"),  # the first task that runs on the node, or NONE
        ("slots", "i8"),
        ("detect", "i8"),  # when the latest failure is, or was, detected, ns
        ("repair", "i8"),  # when the next, or present, outage ends
        ("next_outage", "i8"),  # place in the schedule
        ("end_outage", "i8"),
        (
            "heard",
            "i8",
        ),  # 2 · generation if the node is known to be down, and 1 more if it is known to be up again
        ("since", "i8"),  # when the generation known to be up came up
    ]
)
# A task that runs, or is to run again: where, from when to when, its neighbours among those of its node.
# `history`: how often it was evicted, above `PROGRESS_BITS` bits of what of it is done (actors/nodes/preemption.py).
# `sent`: the key of the newest message of its scheduler about it, PLACED or CANCEL, that has come.
TASK_STATE = np.dtype(
    [(name, "i8") for name in ("node", "start", "end", "job", "next", "previous", "again", "history", "sent")]
)
PROGRESS_BITS = 20
WHOLE_TASK = 1_000_000  # progress of a task that is done
MOST_EVICTIONS = 2_000  # of a task: what the bits of a message hold
# A job's lost tasks at its scheduler.
JOB_STATE = np.dtype(
    [
        ("again", "i8"),  # the first task to be handed out again, or NONE
        ("lost", "i8"),  # how many there are
        ("epoch", "i8"),  # tasks lost so far: answers that were sent before the latest loss are out of date
        ("draws", "i8"),  # random nodes drawn for work sent again
    ]
)
OUTAGE = np.dtype([("start", "i8"), ("end", "i8")])  # ns; NEVER_AGAIN: for good
# An attempt of a task that came to nothing: what it held, it held on `node` from `start` to `end`, ns. A failure or an
# eviction ended it; or, `ended` is 1, it had ended, and its output, or its gang, was lost.
ATTEMPT = np.dtype([(name, "i8") for name in ("task", "node", "start", "end", "ended")])


class Faults(NamedTuple):
    """The failures of a run, possible and past; arrays are empty where nothing can fail."""

    active: int  # 0: nothing fails
    failing: int  # 1: nodes fail by draws
    between: float  # mean time from repair to failure, ns
    outage: float  # mean time from failure to repair
    origin: int  # from when on
    detection: int  # ns from a failure until it is reported, unless the node is back before
    actors: Records  # [actors] FAULT
    tasks: Records  # [T] TASK_STATE
    jobs: Records  # [J] JOB_STATE
    schedule: Records  # OUTAGE, by actor and time
    attempts: Records  # ATTEMPT, those that came to nothing here; empty where tasks are not recorded
    ended: np.ndarray  # [1] how many there are


class HasFaults(HasCost, Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def faults(self) -> Faults:
        """The failures of the run, possible and past."""

    @property
    def task_records(self) -> Records:
        """[T] TASK_RECORD, empty where tasks are not recorded."""

    @property
    def seed(self) -> int:
        """The seed of random numbers."""


@inlined
def exponential(bits: np.uint64, mean: float) -> int:
    """Return a time of at least 1 ns from an exponential distribution."""
    return np.int64(min(max(-math.log(unit(bits)) * mean, 1.0), 2.0**60))


@inlined
def find_outage(faults: Faults, seed: int, node: int, k: int, up_since: int) -> tuple[int, int]:
    """Return start and end of a node's outage after `k` others, the last of which ended at `up_since`."""
    row = faults.actors
    if row.next_outage[node] < row.end_outage[node]:
        place = row.next_outage[node] + k
        if place < row.end_outage[node]:
            return faults.schedule.start[place], faults.schedule.end[place]
    elif faults.failing == 1:
        start = up_since + exponential(random_bits(seed, FAILURES, node, 2 * k), faults.between)
        return start, start + exponential(random_bits(seed, FAILURES, node, 2 * k + 1), faults.outage)
    return NEVER_AGAIN, NEVER_AGAIN


@entry
def note_outages(
    faults: Faults, seed: int, nodes: int, times: np.ndarray, change: np.ndarray, found: np.ndarray
) -> None:
    """Note the outages of nodes that begin up to the last of some times.

    Args:
        times: [R] rising, ns.
        change: [R + 1] to which 1 is added where a node has failed, and -1 where it is back, by place in `times`.
        found: [2, nodes] to which failures are added, and the time of outages up to the last of `times`. By node: of
            all nodes that time can be more than an int64 holds.
    """
    last = times[times.size - 1]
    for node in range(nodes):
        k, up_since = np.int64(0), np.int64(faults.origin)
        start, end = find_outage(faults, seed, node, k, up_since)
        while start <= last and start < NEVER_AGAIN:
            change[_place(times, start)] += 1
            change[_place(times, end)] -= 1
            found[0, node] += 1
            found[1, node] += min(end, last) - start
            k += 1
            start, end = find_outage(faults, seed, node, k, end)
            end = min(end, NEVER_AGAIN)


@compiled
def _place(times: np.ndarray, time: int) -> int:
    """Return the first place in `times`, which rise, that is not before a time."""
    low, high = np.int64(0), np.int64(times.size)
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


def with_attempts(faults: Faults) -> Faults:
    """Return the same state with room for the attempts that come to nothing."""
    return faults._replace(attempts=records(ATTEMPT, 2 * faults.tasks.size))


def grow_attempts(faults: Faults) -> Faults:
    """Return the same state, with twice the room for attempts if there is too little."""
    return faults._replace(attempts=doubled(faults.attempts)) if lacks_attempts(faults) else faults


@inlined
def record_attempt(w: HasFaults, task: int, node: int, start: int, end: int) -> None:
    """Note an attempt of a task that has come to nothing, where tasks are recorded."""
    rows, done = w.faults.attempts, w.task_records
    if rows.size > 0:
        i = w.faults.ended[0]
        rows.task[i], rows.node[i], rows.start[i], rows.end[i] = task, node, start, end
        if done.start[task] == start and done.finish[task] > start:  # it had ended, and was not yet reported
            rows.end[i], rows.ended[i] = done.finish[task], 1
        w.faults.ended[0] = i + 1


@inlined
def record_lost_output(w: HasFaults, task: int, node: int, start: int, end: int) -> None:
    """Note an attempt that had ended, of a task that is to run again, where tasks are recorded."""
    rows = w.faults.attempts
    if rows.size > 0:
        i = w.faults.ended[0]
        rows.task[i], rows.node[i], rows.start[i], rows.end[i], rows.ended[i] = task, node, start, end, 1
        w.faults.ended[0] = i + 1


@inlined
def is_down(w: HasFaults, node: int) -> bool:
    """Return whether a node is down, from its own state."""
    return w.faults.active == 1 and w.faults.actors.down[node] == 1


@inlined
def is_known_down(w: HasFaults, node: int) -> bool:
    """Return whether the schedulers know that a node is down."""
    return w.faults.active == 1 and w.faults.actors.heard[node] & 1 == 0


@inlined
def announce_state(w: HasFaults, t: int, node: int, kind: int) -> None:
    """Notify all schedulers that the node is down or up; `kind` is NODE_DOWN or NODE_UP."""
    send_node_state(w, t, kind, node, w.faults.actors.generation[node])


@inlined
def receive_node_state(w: HasFaults) -> bool:
    """Record for the schedulers that a node is down or up; return False if what they know of it is newer."""
    node, generation, since = read_node_state(w)
    news = 2 * generation + np.int64(w.queue.now.kind[0] == NODE_UP)
    if news <= w.faults.actors.heard[node]:
        return False
    w.faults.actors.heard[node], w.faults.actors.since[node] = news, since
    return True


@inlined
def draw_available_node(w: HasFaults, job: int, first: int) -> int:
    """Return a random node from `first` on that is not known to be down; NONE if there is none."""
    node, w.faults.jobs.draws[job] = draw_known_up(w, AGAIN, job, w.faults.jobs.draws[job], first)
    return node


@compiled
def draw_known_up(w: HasFaults, stream: int, owner: int, drawn: int, first: int) -> tuple[int, int]:
    """Return such a node, after `drawn` draws of an owner in a stream, and the number of draws after it."""
    count = w.nodes.size - first
    for _ in range(TRIES):
        drawn += 1
        node = first + below(random_bits(w.seed, stream, owner, drawn), count)
        if not is_known_down(w, node):
            return node, drawn
    up = np.int64(0)
    for node in range(first, w.nodes.size):
        up += np.int64(not is_known_down(w, node))
    if up == 0:
        return NONE, drawn
    drawn += 1
    skip = below(random_bits(w.seed, stream, owner, drawn), up)
    for node in range(first, w.nodes.size):
        if not is_known_down(w, node):
            if skip == 0:
                return np.int64(node), drawn
            skip -= 1
    return NONE, drawn


@inlined
def keep_task(w: HasFaults, job: int, task: int) -> None:
    """Keep a lost task, which is handed out again before new ones."""
    rows = w.faults.jobs
    w.faults.tasks.again[task] = rows.again[job]
    rows.again[job] = task
    rows.lost[job] += 1
    rows.epoch[job] += 1


@inlined
def next_again(w: HasFaults, job: int) -> int:
    """Take the next lost task that is to be handed out again."""
    rows = w.faults.jobs
    task = rows.again[job]
    rows.again[job] = w.faults.tasks.again[task]
    rows.lost[job] -= 1
    return task


@inlined
def history_of(w: HasFaults, task: int) -> int:
    """Return how often a task was evicted and what of it is done, as one number; 0 of a probe, whose task is NONE."""
    if w.faults.active == 0 or task == NONE:
        return np.int64(0)
    return w.faults.tasks.history[task]


@inlined
def evictions_of(w: HasFaults, task: int) -> int:
    """Return how often a task was evicted."""
    return history_of(w, task) >> PROGRESS_BITS


@inlined
def note_history(w: HasFaults, task: int, history: int) -> None:
    """Note in this partition what a message says of a task; later evictions make the number larger."""
    if w.faults.active == 1 and task != NONE:
        w.faults.tasks.history[task] = max(w.faults.tasks.history[task], history)


@inlined
def epoch_of(w: HasFaults, job: int) -> int:
    """Return how many tasks the job has lost so far."""
    if w.faults.active == 0:
        return NO_EPOCH
    return w.faults.jobs.epoch[job]


@inlined
def generation_of(w: HasFaults, node: int) -> int:
    """Return how often the node has failed so far."""
    if w.faults.active == 0:
        return np.int64(0)
    return w.faults.actors.generation[node]


@inlined
def link_running(w: HasFaults, t: int, node: int, job: int, task: int) -> None:
    """Add a task to the list of those that run on a node."""
    rows, actors = w.faults.tasks, w.faults.actors
    following = actors.running[node]
    rows.node[task], rows.start[task], rows.job[task] = node, t, job
    rows.next[task], rows.previous[task] = following, NONE
    if following != NONE:
        rows.previous[following] = task
    actors.running[node] = task


@inlined
def unlink_running(w: HasFaults, node: int, task: int) -> None:
    """Remove a task from the list of those that run on a node."""
    rows = w.faults.tasks
    before, after = rows.previous[task], rows.next[task]
    if before == NONE:
        w.faults.actors.running[node] = after
    else:
        rows.next[before] = after
    if after != NONE:
        rows.previous[after] = before
    rows.node[task] = NONE


@inlined
def expect_failure(w: HasFaults, node: int, k: int, up_since: int) -> None:
    """Schedule the next failure of a node that has failed `k` times, if there is one."""
    start, end = find_outage(w.faults, w.seed, node, k, up_since)
    w.faults.actors.repair[node] = end
    if start < NEVER_AGAIN:
        wake_in_background(w, start, node, FAIL)


@inlined
def note_sent(w: HasFaults, task: int) -> bool:
    """Note what a scheduler has sent about a task, the message at hand; return False if newer news of it have come.

    Messages of different schedulers are not compared: the later one has the task because the earlier one is done.
    """
    tasks, key = w.faults.tasks, w.queue.now.key[0]
    is_newest: bool = key > tasks.sent[task] or key >> SOURCE_SHIFT != tasks.sent[task] >> SOURCE_SHIFT
    if is_newest:
        tasks.sent[task] = key
    return is_newest


# At time 0: outages by actor, and the durations of stragglers.

W = TypeVar("W", bound=Any)
COUNTED = {
    "node_failures": "failures of nodes up to the end of the last task",
    "node_downtime_ns": "time that nodes were down until then, summed over nodes",
    "scheduler_failures": "failures of schedulers up to the end of the last task",
    "outages_left_out": "listed outages of schedulers that this policy does not have",
    "stragglers": "tasks that were slowed down",
}
"""What `count_dynamics` counts, with its meaning."""


def make_faults(setting: Setting, schedulers: int, central: bool) -> Faults:
    """Return what can fail: the nodes, the probe schedulers and, if there is one, the central scheduler.

    Raises:
        InputError: a scheduler, or all nodes that some jobs may use, would be down for good.
    """
    dynamics = setting.dynamics
    outages, schedule = _schedule(setting, schedulers, central)
    failing = dynamics.mtbf_s is not None
    active = failing or schedule.size > 0 or setting.preemption is not None
    nodes = setting.cluster.num_nodes
    # Besides these there may be a central scheduler, the coordinator of a network, and the listener.
    actors = records(FAULT, nodes + schedulers + 3 if active else 0)
    tasks = records(TASK_STATE, setting.workload.num_tasks if active else 0)
    jobs = records(JOB_STATE, setting.workload.num_jobs if active else 0)
    if active:
        actors.running[:], actors.heard[:] = NONE, 1
        actors.slots[:nodes] = idle_at_start(setting)
        actors.next_outage[:] = np.searchsorted(outages, np.arange(actors.size))
        actors.end_outage[:] = np.searchsorted(outages, np.arange(actors.size), side="right")
        _some_nodes_come_back(setting, outages, schedule)
    tasks.node[:], tasks.again[:], jobs.again[:] = NONE, NONE, NONE
    return Faults(
        active=int(active),
        failing=int(failing),
        between=float(dynamics.mtbf_s or 0) * NS,  # of a whole number the kernel would be compiled once more
        outage=float(dynamics.mttr_s or 0) * NS,
        origin=int(setting.workload.arrays().submit_ns[0]),
        detection=round(dynamics.detection_s * NS),
        actors=actors,
        tasks=tasks,
        jobs=jobs,
        schedule=schedule,
        attempts=records(ATTEMPT, 0),
        ended=np.zeros(1, np.int64),
    )


def no_faults(origin_ns: int) -> Faults:
    """Return the state where nothing can fail."""
    dtypes = (FAULT, TASK_STATE, JOB_STATE, OUTAGE, ATTEMPT)
    actors, tasks, jobs, schedule, attempts = (records(dtype, 0) for dtype in dtypes)
    ended = np.zeros(1, np.int64)
    return Faults(0, 0, 0.0, 0.0, origin_ns, 0, actors, tasks, jobs, schedule, attempts, ended)


def start_failures(world: W, tasks: int) -> W:
    """Schedule the first failures in a world with `tasks` tasks; return it with room for them in its queue."""
    if not world.faults.active:
        return world
    nodes = world.nodes.size
    while world.queue.heap.size - world.queue.now.heap_size[0] < world.queue.room + nodes:
        world = world._replace(queue=grow_queue(world.queue, nodes))
    world.queue.now.unfinished[0] = tasks
    with np.errstate(over="ignore"):
        expect_failures(world)
    return world


@entry
def expect_failures(w: HasFaults) -> None:
    """Schedule the first failure of every node."""
    for node in range(w.nodes.size):
        expect_failure(w, node, NO_EPOCH, w.faults.origin)


def _schedule(setting: Setting, schedulers: int, central: bool) -> tuple[np.ndarray, Records]:
    """Return [F] actors, ascending, and [F] OUTAGE; outages of actors that the policy does not have are left out."""
    dynamics, nodes = setting.dynamics, setting.cluster.num_nodes
    outages = dynamics.outages
    if outages is None:
        return np.zeros(0, np.int64), records(OUTAGE, 0)
    actor = outages.number.copy()
    actor[outages.kind == SCHEDULER] += nodes
    the_central = nodes + schedulers if central else nodes
    actor[outages.kind == CENTRAL] = the_central
    there = (outages.kind == NODE) | ((outages.kind == SCHEDULER) & (outages.number < schedulers))
    if central or schedulers == 1:
        there |= outages.kind == CENTRAL
    end_s = outages.repair_s.copy()
    of_scheduler = outages.kind != NODE
    if dynamics.failover_s is not None:
        end_s[of_scheduler] = np.minimum(
            end_s[of_scheduler], outages.fail_s[of_scheduler] + dynamics.failover_s
        )
    if np.isinf(end_s[there & of_scheduler]).any():
        raise InputError(
            "dynamics.failures: a scheduler fails for good, so its jobs would wait for ever; give it a repair_s, or set"
            " dynamics.failover"
        )
    order = np.lexsort((outages.fail_s, actor))
    order = order[there[order]]
    schedule = records(OUTAGE, order.size)
    schedule.start[:] = np.rint(outages.fail_s[order] * NS)
    schedule.end[:] = [NEVER_AGAIN if math.isinf(s) else round(s * NS) for s in end_s[order].tolist()]
    return actor[order], schedule


def _some_nodes_come_back(setting: Setting, outages: np.ndarray, schedule: Records) -> None:
    """Refuse a schedule that leaves jobs without a node for good."""
    gone = np.unique(outages[schedule.end >= NEVER_AGAIN])
    first = setting.cluster.partition(setting.long_partition)
    count = setting.cluster.num_nodes
    if (gone < count).sum() == count or (gone >= first).sum() == count - first:
        whose = "jobs" if gone.size == count else "long jobs"
        raise InputError(
            f"dynamics.failures: all nodes that {whose} may use fail for good; one of them must have a repair_s"
        )


def gone_for_good(dynamics: Dynamics) -> np.ndarray:
    """Return the nodes that fail for good by the schedule of outages."""
    outages = dynamics.outages
    if outages is None:
        return np.zeros(0, np.int64)
    return np.unique(outages.number[(outages.kind == NODE) & np.isinf(outages.repair_s)])


def durations_ns(setting: Setting) -> np.ndarray:
    """Return [T] durations of the tasks, ns, with those of stragglers made longer.

    A task that straggles does so wherever and whenever it runs, and under every scheduler: they are compared on the
    same tasks. One that would take longer than a run can (`NEVER`) takes that long, and the run is refused for it.
    """
    own = setting.workload.arrays().duration_ns
    factors = straggler_factors(setting.dynamics, own.size, setting.seed)
    if factors is None:
        return own
    longer = np.rint(np.minimum(own * factors, float(NEVER))).astype(np.int64)
    return np.where(factors > 1.0, np.maximum(longer, own), own)


def straggler_factors(dynamics: Dynamics, tasks: int, seed: int) -> np.ndarray | None:
    """Return [T] the slowdown of each task, 1 for those that do not straggle; None if there are no stragglers.

    What is above 1 has mean slowdown - 1: constant, Pareto of the second kind (Lomax), or lognormal.
    """
    if dynamics.straggler_share <= 0:
        return None
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 0x57A66])))
    straggles = random.random(tasks) < dynamics.straggler_share
    mean = dynamics.straggler_slowdown - 1.0
    if dynamics.straggler_distribution == "pareto":
        excess = random.pareto(dynamics.straggler_shape, tasks) * (mean * (dynamics.straggler_shape - 1.0))
    elif dynamics.straggler_distribution == "lognormal":
        sigma = dynamics.straggler_sigma
        excess = mean * np.exp(random.normal(-sigma * sigma / 2.0, sigma, tasks))
    else:
        excess = np.full(tasks, mean)
    return np.where(straggles, 1.0 + excess, 1.0)


def outages_of(faults: Faults) -> Faults | None:
    """Return the outages alone, without the state of tasks and jobs; None where nothing fails."""
    if not faults.failing and not faults.schedule.size:
        return None
    return faults._replace(
        tasks=records(TASK_STATE, 0), jobs=records(JOB_STATE, 0), attempts=records(ATTEMPT, 0)
    )


def _outages(setting: Setting, faults: Faults, times_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many nodes are down at each of some times, and [2, N] the failures and downtimes up to the last, ns.

    Outages do not depend on what runs, so that they are counted afterwards; no partition has to stop at those times.
    """
    nodes = np.int64(setting.cluster.num_nodes)
    change, found = np.zeros(times_ns.size + 1, np.int64), np.zeros((2, nodes), np.int64)
    if times_ns.size:
        with np.errstate(over="ignore"):
            note_outages(faults, setting.seed, nodes, times_ns.astype(np.int64), change, found)
    return np.cumsum(change[:-1]), found


def nodes_up(setting: Setting, faults: Faults, times_ns: np.ndarray) -> np.ndarray:
    """Return how many nodes are up at each of some times, in order; a node is down from its failure to its repair."""
    return setting.cluster.num_nodes - _outages(setting, faults, times_ns)[0]


def count_dynamics(setting: Setting, faults: Faults | None, last_ns: int) -> dict[str, int]:
    """Count what failed up to the end of the last task, and how many tasks straggled."""
    counters: dict[str, int] = {}
    if faults is not None:
        _, found = _outages(setting, faults, np.array([last_ns]))
        first = int(faults.actors.end_outage[: found.shape[1]].max())  # schedulers come after the nodes
        counters["node_failures"], counters["node_downtime_ns"] = (sum(row) for row in found.tolist())
        counters["scheduler_failures"] = int((faults.schedule.start[first:] <= last_ns).sum())
        if setting.dynamics.outages is not None:
            counters["outages_left_out"] = setting.dynamics.outages.kind.size - faults.schedule.size
    factors = straggler_factors(setting.dynamics, setting.workload.num_tasks, setting.seed)
    if factors is not None:
        counters["stragglers"] = int((factors > 1).sum())
    return {name: count for name, count in counters.items() if count}
