"""Phoenix (ICDCS 2017): Eagle with queues and probes steered by the demand for constrained resources.

A resource is an attribute of nodes that some job has a constraint on. All that `eagle-c` does, and:

1. Heartbeats: every `heartbeat_s` each node that has something new reports the expected wait E[W] of a task that comes
   now, and by resource how many queued entries of short jobs ask for it. E[W] is 0 while a slot is idle, else that of
   an M/G/1 queue by the Pollaczek-Khinchin formula, E[S²] / (2 E[S] (1 - ρ)), from the tasks that the node has run
   lately (`actors/nodes/contention.py`).
2. CRV: a monitor at the central scheduler makes of that the Constraint Resource Vector, for each resource demand over
   supply: the sum over entries of 1 / (nodes that have what the entry asks for). It announces the CRV to all nodes and
   schedulers; the results have it over time (`crv.parquet`).
3. Reordering (`reorder`): where an entry in a node's queue asks for a resource whose CRV is above `crv_threshold`, the
   entry with the least remaining work over CRV is served first (`order=weighted`), or the one with the greatest CRV,
   among equals that with the shortest remaining work (`order=crv`). No short entry is passed by more than `slack` times
   its estimate. Elsewhere the queue is Eagle's (`actors/nodes/contention.py`).
4. Admission, when a short job arrives that asks for a resource whose CRV is above the threshold. `admission`: its
   scheduler draws `candidates` times as many nodes as it sends probes, and probes those with the least E[W], among
   equals those drawn first. `negotiate`: it drops the cheapest soft constraint as long as the mean E[W] over the nodes
   that it would probe and that are up is longer than that without the constraint and what the tasks take longer then. A
   level that is tried and not used changes nothing.

**Deviations from the paper.** We have its abstract and first sections, which name the mechanisms, and the authors'
simulator. Where neither has rules, the rules are our reading: all of step 4, the threshold, the window, and both
orders. The defaults are the order and the threshold that performed best in our measurements (docs/results.md). Demand
counts entries of queues, so that a job counts once for each of its probes that wait; the paper counts tasks (section
I). The paper has estimated waiting times reorder queues too ("We use this information to reorder tasks in the worker
queue"); the text that we have gives no rule for it, and E[W] is the same for all entries of one queue. So queues go by
the CRV and remaining work alone, and E[W] decides on probes and soft constraints. A node measures the rate of its tasks
where they leave: it cannot know which probes will bring one. Nodes that are down are taken to be of all kinds alike.
All actors receive the CRV at the same time, also where network delays vary.

`phoenix-released` is what the authors' public simulator does instead: the CRV is a table of fixed weights, and while
more than `load_gate` of the cluster's slots are busy at a heartbeat, every queue is served by them. A later short entry
replaces the best so far if its weight is greater and its estimate within the slack of those in front of it; a long
entry ends the search. There is no admission, and waiting times are not used. Otherwise, and for long jobs, it is
`eagle-c`. Deviations from the simulator: its defects are not copied. There some jobs have no probes or lose all their
nodes, retries ignore constraints, jobs without constraints have the last weight, and the shortest job is never updated.
The weights are the simulator's, where an instruction set has 2.0; Table II of the paper has 2.03. They are compared and
never added, and both are the greatest, so that no schedule depends on it.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actors.constraints import (
    OVER_NODES,
    eligible_count,
    is_constrained,
    is_relaxed,
    placement_of,
    set_level,
    sets_of,
)
from actors.failures import is_known_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import (
    ANNOUNCED,
    ARRIVAL,
    read_node_state,
    send_announced,
)
from actors.kernel.queue import NONE, is_here, note, wake
from actors.kernel.records import Records, records
from actors.kernel.trace import CHOSEN, RELAXED
from actors.nodes.contention import (
    SHARE,
    UNIT,
    WEIGHTS,
    Contention,
    contended_resources,
    make_contention,
    on_announced,
    on_contended_node,
    on_heartbeat,
)
from actors.nodes.messages import (
    HEARTBEAT,
    MONITOR,
    MOST_RESOURCES,
    WAIT_REPORT,
    WAIT_REPORTS,
    read_wait_report,
)
from actors.nodes.reporting import is_current, is_newest, number_of
from actors.nodes.world import N_ADMISSIONS, N_PROBES, N_RELAXED, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import node_slots
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.jobs import eagle
from actors.schedulers.jobs.build import heartbeat_ns
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.late_binding import make_job_loop, next_arrival
from actors.schedulers.jobs.least_work import CHOICE, keep_least, note_node_state
from actors.schedulers.jobs.pressure import Pressure
from actors.schedulers.jobs.probing import (
    FIRST_ROUND,
    NO_VERSION,
    draw_nodes,
    probe,
    probes_of,
    shuffle_nodes,
)
from actors.schedulers.jobs.spreading import NODE_0, settle_rack
from actors.setting import Setting
from clusters.matching import relaxing_steps, satisfies
from clusters.schema import find_attribute
from workloads.constraints import PLACEMENT, Constraint

# Where the steps stand:
# 1. `on_contended_node`, `on_heartbeat`, `report` and `expected_wait` of actors/nodes/contention.py
# 2. `on_report`, `on_reports`, `on_monitor`, `crv_at`; `on_announced` of actors/nodes/contention.py
# 3. `next_contended` and `pick_by_crv` of actors/nodes/contention.py
# 4. `on_arrival`, `choose_nodes`, `negotiate`

# Phoenix's monitor: it keeps the Constraint Resource Vector, CRV, from what nodes report (ICDCS'17).
#
# A resource is an attribute of nodes that some job has a constraint on. Its CRV is demand over supply. Demand is the
# number of queue entries of short jobs that ask for it, over all nodes, as they last reported it; a job is in as many
# queues as it has probes. Jobs may ask for different values, which different numbers of nodes have, so every entry
# counts with its own supply: the CRV is the sum of 1 / (nodes that have what the entry asks for), and the supply of the
# resource is the harmonic mean of these numbers. Where all ask for the same, this is the number of entries over the
# number of nodes. Supply counts nodes that are not known to be down; those that are down are taken to be of all kinds
# alike.
#
# The monitor is at the central scheduler. Twice the network delay after a heartbeat of the nodes, when what they
# reported has arrived, it computes a new table and announces the changes to all nodes and schedulers, which use them
# from their arrival on. It announces values above the threshold, and when a value has fallen to the threshold or below.

MOST_CRV = 2.0**60
LOG_ROWS = 1 << 10
OTHERS = "others"  # what resources beyond the most that there can be count as

TOTALS = np.dtype(
    [
        ("busy", "i8"),  # busy slots
        ("slots", "i8"),  # of nodes that are not known to be down
        ("nodes", "i8"),  # that are not known to be down
        ("waits", "i8"),  # 1: the monitor waits for its next time
        ("open", "i8"),  # 1: the CRV counts, as last announced
        ("rows", "i8"),  # of the log
    ]
)


class Monitor(NamedTuple):
    """What nodes have reported, and what the monitor computed from it; N nodes, R resources."""

    wait: np.ndarray  # [N] E[W], ns
    busy: np.ndarray  # [N] busy slots
    slots: np.ndarray  # [N]
    # [2, N, R] entries that ask for a resource, and their scarcity; where reports come one by one
    reported: np.ndarray
    newest: np.ndarray  # [N] number of the newest message of a report
    newest_of: np.ndarray  # [N, R] number of the newest one about a resource: a report may take several
    demand: np.ndarray  # [R] entries on all nodes
    pressure: np.ndarray  # [R] their scarcity
    announced: np.ndarray  # [R] the CRV that was announced last, in UNIT; 0 up to the threshold
    total: Records  # [1] TOTALS
    log: np.ndarray  # rows of 1 + 2 R: when, the demand, the CRV in UNIT
    static: bool  # the CRV is not announced, since all go by one that never changes
    threshold: int  # in UNIT
    load_gate: float  # the CRV counts where more of the slots are busy; 0: always
    heartbeat: int  # ns
    lag: int  # ns after the heartbeat


def make_monitor(slots: np.ndarray, resources: int, **settings: Any) -> Monitor:
    """Return a monitor without reports; `settings` are the scalars of `Monitor`."""
    nodes = slots.size
    total = records(TOTALS, 1)
    total.slots[0], total.nodes[0] = slots.sum(), nodes
    vector = np.zeros(resources, np.int64)
    return Monitor(
        wait=np.zeros(nodes, np.int64),
        busy=np.zeros(nodes, np.int64),
        slots=slots.astype(np.int64),
        reported=np.zeros((2, nodes, resources), np.int64),
        newest=np.full(nodes, NONE),
        newest_of=np.zeros((nodes, resources), np.int64),
        demand=vector,
        pressure=vector.copy(),
        announced=vector.copy(),
        total=total,
        log=np.zeros(LOG_ROWS * (1 + 2 * resources), np.int64),
        **settings,
    )


@inlined
def on_report(w: World, monitor: Monitor, t: int) -> None:
    """For step 2: note a node's report: how long a task waits there, its busy slots, and up to two resources."""
    node, busy, generation, wait, r1, entries1, scarcity1, r2, entries2, scarcity2 = read_wait_report(w)
    if not is_current(w, node, generation):
        return
    if is_newest(w, monitor.newest, node):
        note_load(monitor, node, wait, busy)
    for r, entries, scarcity in ((r1, entries1, scarcity1), (r2, entries2, scarcity2)):
        if r != NONE and number_of(w) >= monitor.newest_of[node, r]:
            monitor.newest_of[node, r] = number_of(w)
            note_demand(monitor, node, r, entries, scarcity)
    expect_table(w, monitor, t)


@compiled
def on_reports(w: World, monitor: Monitor, contention: Contention, t: int) -> None:
    """For step 2: note the reports of a heartbeat, which arrive in one event."""
    rows = contention.loads
    for i in range(contention.round.loads[0]):
        note_load(monitor, rows.node[i], rows.wait[i], rows.busy[i])
    for r in range(monitor.demand.size):
        monitor.demand[r] += contention.more[0, r]
        monitor.pressure[r] += contention.more[1, r]
        contention.more[0, r], contention.more[1, r] = 0, 0
    w.queue.now.events[0] += contention.round.messages[0] - 1
    contention.round.messages[0], contention.round.loads[0] = 0, 0
    expect_table(w, monitor, t)


@inlined
def note_load(monitor: Monitor, node: int, wait: int, busy: int) -> None:
    """Note a node's expected wait and its busy slots."""
    monitor.wait[node] = wait
    monitor.total.busy[0] += busy - monitor.busy[node]
    monitor.busy[node] = busy


@inlined
def note_demand(monitor: Monitor, node: int, r: int, entries: int, scarcity: int) -> None:
    """Note a node's report of a resource."""
    monitor.demand[r] += entries - monitor.reported[0, node, r]
    monitor.pressure[r] += scarcity - monitor.reported[1, node, r]
    monitor.reported[0, node, r], monitor.reported[1, node, r] = entries, scarcity


@compiled
def on_node_state(w: World, monitor: Monitor, node: int, was_down: bool) -> None:
    """Remove a node's reports: it is known to be down, or up again, and its queue is lost.

    The table shows it when the next report arrives: failures are background events and cause no other events
    (actors/failures.py).
    """
    sign = np.int64(was_down) - np.int64(is_known_down(w, node))
    monitor.total.nodes[0] += sign
    monitor.total.slots[0] += sign * monitor.slots[node]
    monitor.total.busy[0] -= monitor.busy[node]
    monitor.wait[node], monitor.busy[node] = 0, 0
    for r in range(monitor.demand.size):
        note_demand(monitor, node, r, np.int64(0), np.int64(0))


@inlined
def expect_table(w: World, m: Monitor, t: int) -> None:
    """Schedule the monitor's next table, in the partition that has the monitor."""
    monitor = np.int64(w.queue.seq.size - 2)
    if is_here(w.queue, monitor) and m.total.waits[0] == 0:
        m.total.waits[0] = 1
        beat = (max(t - m.lag, 0) + m.heartbeat - 1) // m.heartbeat * m.heartbeat
        wake(w, beat + m.lag, monitor, MONITOR, NONE, NONE, NONE)


@compiled
def on_monitor(w: World, monitor: Monitor, t: int, me: int) -> None:
    """Step 2: make a new table, log it, and announce what has changed in it."""
    total, place = monitor.total, monitor.total.rows[0] * (1 + 2 * monitor.demand.size)
    total.waits[0] = 0
    total.rows[0] += 1
    monitor.log[place] = t
    for r in range(monitor.demand.size):
        crv = crv_at(monitor, r)
        monitor.log[place + 1 + r], monitor.log[place + 1 + monitor.demand.size + r] = monitor.demand[r], crv
        shown = crv if crv > monitor.threshold else np.int64(0)
        if not monitor.static and shown != monitor.announced[r]:
            monitor.announced[r] = shown
            send_announced(w, t, me, np.int64(r), shown, NONE)
    counts = np.int64(monitor.load_gate == 0.0 or total.busy[0] > monitor.load_gate * total.slots[0])
    if counts != total.open[0]:
        total.open[0] = counts
        send_announced(w, t, me, NONE, NONE, counts)


@inlined
def crv_at(monitor: Monitor, r: int) -> int:
    """Step 2: the CRV of a resource, in UNIT."""
    share = float(SHARE) * max(monitor.total.nodes[0], 1)
    return np.int64(min(monitor.pressure[r] / share * float(UNIT), MOST_CRV))


@inlined
def lacks_log(monitor: Monitor) -> bool:
    """Whether the log is full."""
    return (
        monitor.log.size - monitor.total.rows[0] * (1 + 2 * monitor.demand.size) < 1 + 2 * monitor.demand.size
    )


def grow_log(monitor: Monitor) -> Monitor:
    """The same monitor with twice the space for the log, if that is full."""
    if not lacks_log(monitor):
        return monitor
    return monitor._replace(log=np.concatenate([monitor.log, np.zeros_like(monitor.log)]))


def pressure_of(w: World, monitor: Monitor, names: list[str]) -> Pressure | None:
    """The table over time, of resources with these names; None in a partition without the monitor."""
    if not is_here(w.queue, w.queue.seq.size - 2):
        return None
    resources = len(names)
    rows = monitor.log[: int(monitor.total.rows[0]) * (1 + 2 * resources)].reshape(-1, 1 + 2 * resources)
    demand, crv = rows[:, 1 : 1 + resources], rows[:, 1 + resources :] / float(UNIT)
    supply = np.divide(demand, crv, out=np.full(demand.shape, np.nan), where=crv > 0)
    return Pressure(rows[:, 0].copy(), names, demand.copy(), supply, crv)


class Asked(NamedTuple):
    """What jobs ask for, at the V levels of all sets of constraints in turn, of R resources."""

    names: list[str]  # [R] in the order of the cluster's attributes
    asks: np.ndarray  # [V] bits
    # [V, R] in SHARE: N over the number of nodes that have it, 0 where it is not asked for
    scarcity: np.ndarray


def asked_names(setting: Setting) -> list[str]:
    """[R] what the jobs of a setting ask for."""
    return _capped(_resources(setting, _levels_of(setting)))


def find_asked(setting: Setting) -> Asked:
    """What the jobs of a setting ask for."""
    levels = _levels_of(setting)
    resources = _resources(setting, levels)
    names = _capped(resources)
    place = {name: min(i, len(names) - 1) for i, name in enumerate(resources)}
    asks, scarcity = np.zeros(len(levels), np.int64), np.zeros((len(levels), len(names)), np.int64)
    nodes = setting.cluster.num_nodes
    known: dict[Constraint, np.ndarray] = {}
    for v, level in enumerate(levels):
        for r in {place[_name(one)] for one in level}:
            holds = np.ones(nodes, bool)
            for one in level:
                if place[_name(one)] == r:
                    plain = one._replace(price=None)
                    if plain not in known:
                        known[plain] = satisfies(setting.cluster, plain)
                    holds = holds & known[plain]
            asks[v] |= 1 << r
            scarcity[v, r] = round(int(SHARE) * nodes / max(int(holds.sum()), 1))
    return Asked(names, asks, scarcity)


def _levels_of(setting: Setting) -> list[list[Constraint]]:
    """[V] what each level of each set asks of nodes."""
    found = []
    for constraints in sets_of(setting):
        steps = relaxing_steps(constraints)
        for level in range(len(steps)):
            asked = [one for step in steps[level:] for one in step]
            found.append([one for one in asked if one.attribute != PLACEMENT])
    return found


def _resources(setting: Setting, levels: list[list[Constraint]]) -> list[str]:
    """The attributes that levels ask for, those of all nodes first, in the order of the cluster's."""
    found = {_name(one) for level in levels for one in level}
    order = [name for name in setting.cluster.attributes if name in found]
    return [*order, *sorted(found.difference(order))]


def _capped(names: list[str]) -> list[str]:
    """Return at most MOST_RESOURCES names; the last stands for all further resources."""
    return names if len(names) <= MOST_RESOURCES else [*names[: MOST_RESOURCES - 1], OTHERS]


def _name(constraint: Constraint) -> str:
    return find_attribute(constraint.attribute).name


DOWN = np.int64(1) << 61  # ns: how long a task waits at a node that is known to be down

# Parameters that one of the two forms does not have, and the values that hold there.
FIXED_VALUES: dict[str, Any] = {
    "load_gate": 0.0, "crv_threshold": 0.0, "order": "crv", "admission": False, "candidates": 1, "negotiate": False,
    "window": 1, "rho_cap": 0.0, "report_change": 1.0,
}  # fmt: skip


class State(NamedTuple):
    """Phoenix's parameters and bookkeeping."""

    eagle: eagle.State  # its scratch space for drawn nodes is wide enough for all candidates
    contention: Contention
    monitor: Monitor
    choice: Records  # [most probes of a job] CHOICE, scratch: the nodes that are probed
    trial: Records  # the same at a level that is tried
    candidates: int  # nodes drawn for each probe of a job that asks for a contended resource
    admission: bool  # probes go to the candidates that wait least
    negotiate: bool  # soft constraints may be dropped


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 4: find nodes for the probes of a job that asks for a contended resource; all else is Eagle's."""
    if not is_contended(w, p, job) or is_long(w, job):
        eagle.on_arrival(w, p.eagle, t, me, job)
        return
    tasks = next_arrival(w, me, job)
    was_relaxed = is_relaxed(w, job)
    count, wait = choose_nodes(w, p, job, tasks, p.choice)
    if p.negotiate:
        count = negotiate(w, p, job, tasks, count, wait)
        if is_relaxed(w, job) and not was_relaxed:
            w.counts[N_RELAXED] += 1
            note(w, t, me, RELAXED, job, NONE, NONE, NONE)
    w.counts[N_PROBES] += count
    w.counts[N_ADMISSIONS] += p.admission
    for i in range(count):
        note(w, t, me, CHOSEN, job, NONE, p.choice.node[i], p.choice.wait[i])
        probe(w, t, me, p.choice.node[i], job, tasks, FIRST_ROUND, NO_VERSION)


@inlined
def is_contended(w: World, p: State, job: int) -> bool:
    """Whether a job that arrives asks for a contended resource, and `admission` or `negotiate` is on."""
    if not is_constrained(w, job) or not (p.admission or p.negotiate):
        return False
    return p.contention.asks[w.eligible.jobs.level[job]] & contended_resources(p.contention) != 0


@compiled
def choose_nodes(w: World, p: State, job: int, tasks: int, choice: Records) -> tuple[int, float]:
    """Step 4, `admission`: put the candidates that wait least into `choice`; return their number and mean wait.

    The draws are the same for every level of the job: it is probed for at one of them only. Among equals those drawn
    first are taken. A node that is known to be down is the last choice, and counts for the mean if all of them are.
    """
    settle_rack(w, job, NODE_0)
    probing = p.eagle.probing
    nodes, count = eligible_count(w, job), probes_of(probing, tasks)
    if placement_of(w, job) & OVER_NODES != 0:
        count = min(count, nodes)
    drawn = max(min(count * p.candidates, nodes), count)
    draw_nodes(w, probing, job, drawn)
    if drawn > count:
        shuffle_nodes(w, probing, job, drawn)
    size: int = 0
    for i in range(drawn):
        node = probing.nodes[i]
        wait = DOWN if is_known_down(w, node) else p.monitor.wait[node]
        size = keep_least(choice, size, count, wait, i)  # among equals the one drawn last is the worst
    total, up = 0.0, 0
    for i in range(count):
        choice.node[i] = probing.nodes[choice.node[i]]
        if choice.wait[i] < DOWN:
            total, up = total + choice.wait[i], up + 1
    return count, total / up if up > 0 else float(DOWN)


@compiled
def negotiate(w: World, p: State, job: int, tasks: int, count: int, wait: float) -> int:
    """Step 4, `negotiate`: drop soft constraints, while tasks should end earlier then; return the number of probes.

    The cheapest goes first. What was chosen at a level, its rack too, holds until a further level is found better.
    """
    eligible, level = w.eligible, w.eligible.jobs.level[job]
    end = eligible.first_level[eligible.set_of_job[job] + 1]
    while level + 1 < end:
        longer = (eligible.factor[level + 1] - eligible.factor[level]) * w.work.estimate[job]
        rack = eligible.jobs.rack[job]
        set_level(w, job, level + 1)
        next_count, next_wait = choose_nodes(w, p, job, tasks, p.trial)
        if wait <= next_wait + longer:
            eligible.jobs.rack[job] = rack
            set_level(w, job, level)
            break
        level, count, wait = level + 1, next_count, next_wait
        for i in range(count):
            p.choice.node[i], p.choice.wait[i] = p.trial.node[i], p.trial.wait[i]
    return count


@inlined
def on_state(w: World, p: State) -> None:
    """Note a message that a node is down or up."""
    node, _, _ = read_node_state(w)
    was_down = is_known_down(w, node)
    if note_node_state(w, p.eagle.placer.ledger):
        on_node_state(w, p.monitor, node, was_down)


@inlined
def on_node(w: World, contention: Contention, t: int, kind: int, node: int) -> None:
    """Handle a message to a node, which may reject a probe."""
    if not eagle.reject(w, t, node):
        on_contended_node(w, contention, t, kind, node)


advance = make_job_loop(
    __name__,
    State,
    eagle.HANDLERS
    | {
        WAIT_REPORTS: on_reports,
        WAIT_REPORT: on_report,
        MONITOR: on_monitor,
        ANNOUNCED: on_announced,
        ARRIVAL: on_arrival,
    },
    at_nodes={HEARTBEAT: on_heartbeat},
    others_at_nodes=on_node,
    on_node_state=on_state,
    grows_if=(eagle.lacks_room, lacks_log),
)


def grow(world: World, state: State) -> State:
    """Return the state with room for what one event may add."""
    return state._replace(eagle=eagle.grow(world, state.eagle), monitor=grow_log(state.monitor))


def build(setting: Setting, released: bool = False) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    p, slots = FIXED_VALUES | setting.parameters, node_slots(setting)
    asked, heartbeat = find_asked(setting), heartbeat_ns(setting)
    world, base = eagle.build(setting, least_sends=len(asked.names) + 1)
    rules = world.rules._replace(shortest_first=p["shortest_first"] or p["reorder"])
    gate, candidates = float(p["load_gate"]), p["candidates"] if p["admission"] else 1
    weights = [WEIGHTS.get(name, 0.0) if released else 0.0 for name in asked.names]
    contention = make_contention(
        asked.asks,
        asked.scarcity,
        slots,
        np.array([round(weight * int(UNIT)) for weight in weights], np.int64),
        reorder=p["reorder"],
        weighted=p["order"] == "weighted",
        static=released,
        shortest_first=p["shortest_first"],
        reporting=bool(world.eligible.active) or gate > 0,
        gated=gate > 0,
        window=p["window"],
        rho_cap=float(p["rho_cap"]),
        change=float(p["report_change"]),
        heartbeat=heartbeat,
    )
    monitor = make_monitor(
        slots,
        len(asked.names),
        static=released,
        threshold=round(p["crv_threshold"] * int(UNIT)),
        load_gate=gate,
        heartbeat=heartbeat,
        lag=2 * int(world.network.cross_ns),
    )
    probes = base.probing.nodes.size
    probing = base.probing._replace(nodes=np.zeros(probes * candidates, np.int64))
    if world.preemption.most > 0:
        world = world._replace(
            preemption=world.preemption._replace(ran=np.zeros(1 + world.queue.room, np.int64))
        )
    return world._replace(rules=rules), State(
        base._replace(probing=probing),
        contention,
        monitor,
        records(CHOICE, probes),
        records(CHOICE, probes),
        candidates,
        p["admission"],
        p["negotiate"],
    )


def series(setting: Setting, world: World, state: State) -> Pressure | None:
    """Return the CRV over time; None in a partition without the monitor."""
    return pressure_of(world, state.monitor, asked_names(setting))


EAGLE_PARAMETERS = tuple(one for one in eagle.EAGLE.parameters if one.name != "live_progress")
HEARTBEAT_S = Parameter("heartbeat_s", 5.0, "duration", "time between two reports of the nodes", 1e-3, 1e6)
REORDER = Parameter("reorder", True, "flag", "nodes serve their queues by the CRV under contention")

PHOENIX = Scheduler(
    name="phoenix",
    title="eagle-c that reorders queues and steers probes by demand and supply of constrained resources",
    paper="Thinakaran et al.: Phoenix: A Constraint-aware Scheduler, ICDCS 2017",
    parameters=(
        *EAGLE_PARAMETERS,
        HEARTBEAT_S,
        Parameter("crv_threshold", 0.1, "number", "a resource whose CRV is above this is contended", 0, 1e6),
        REORDER,
        Parameter(
            "order",
            "weighted",
            "choice",
            "first what has the least remaining work over CRV, or the greatest CRV",
            choices=("weighted", "crv"),
            needs=("reorder",),
        ),
        Parameter(
            "admission", True, "flag", "probes for contended resources go where tasks should wait least"
        ),
        Parameter(
            "candidates", 2, "integer", "nodes drawn for each such probe", 1, 100, needs=("admission",)
        ),
        Parameter(
            "negotiate", True, "flag", "jobs that ask for contended resources may drop soft constraints"
        ),
        Parameter(
            "window", 50, "integer", "tasks from which a node's expected wait is computed", 1, 1_000_000
        ),
        Parameter(
            "rho_cap", 0.99, "number", "the largest share of time for which a node counts as busy", 0, 0.9999
        ),
        Parameter(
            "report_change", 0.1, "share", "an expected wait that changes by more is reported again", 0, 1
        ),
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    grow=grow,
    series=series,
    draws=True,
    hybrid=True,
    constrained=True,
)

PHOENIX_RELEASED = Scheduler(
    name="phoenix-released",
    title="phoenix as its authors' public simulator has it, without its defects",
    paper="the simulator of Thinakaran et al., ICDCS 2017",
    parameters=(
        *EAGLE_PARAMETERS,
        HEARTBEAT_S,
        REORDER,
        Parameter(
            "load_gate",
            0.8,
            "share",
            "queues are reordered while more of the slots are busy",
            0,
            1,
            needs=("reorder",),
        ),
    ),
    worlds=JOB_WORLDS,
    build=partial(build, released=True),
    advance=advance,
    preempts=True,
    grow=grow,
    series=series,
    draws=True,
    hybrid=True,
    constrained=True,
)
