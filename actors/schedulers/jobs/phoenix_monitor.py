"""Phoenix's monitor: it keeps the Constraint Resource Vector, CRV, from what nodes report (ICDCS'17).

A resource is an attribute of nodes that some job has a constraint on. Its CRV is demand over supply. Demand is the
number of queue entries of short jobs that ask for it, over all nodes, as they last reported it; a job is in as many
queues as it has probes. Jobs may ask for different values, which different numbers of nodes have, so every entry counts
with its own supply: the CRV is the sum of 1 / (nodes that have what the entry asks for), and the supply of the resource
is the harmonic mean of these numbers. Where all ask for the same, this is the number of entries over the
number of nodes. Supply counts nodes that are not known to be down; those that are down are taken to be of all kinds
alike.

The monitor is at the central scheduler. Twice the network delay after a heartbeat of the nodes, when what they
reported has arrived, it computes a new table and announces the changes to all nodes and schedulers, which use them from
their arrival on. It announces values above the threshold, and when a value has fallen to the threshold or below.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.constraints import sets_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.faults import is_known_down
from actors.kernel.messages import send_announced
from actors.kernel.queue import is_here, wake
from actors.kernel.records import Records, records
from actors.kernel.world import NONE, World
from actors.nodes.contention_state import SHARE, UNIT, Contention
from actors.nodes.load_messages import MONITOR, MOST_RESOURCES, read_wait_report
from actors.nodes.reporting import is_current, is_newest, number_of
from actors.schedulers.jobs.pressure import Pressure
from actors.setting import Setting
from clusters.matching import relaxing_steps, satisfies
from clusters.schema import find_attribute
from workloads.constraints import PLACEMENT, Constraint

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
def on_report(w: World, m: Monitor, t: int) -> None:
    """Note a node's report: how long a task waits there, its busy slots, and up to two resources."""
    node, busy, generation, wait, r1, entries1, scarcity1, r2, entries2, scarcity2 = read_wait_report(w)
    if not is_current(w, node, generation):
        return
    if is_newest(w, m.newest, node):
        note_load(m, node, wait, busy)
    for r, entries, scarcity in ((r1, entries1, scarcity1), (r2, entries2, scarcity2)):
        if r != NONE and number_of(w) >= m.newest_of[node, r]:
            m.newest_of[node, r] = number_of(w)
            note_demand(m, node, r, entries, scarcity)
    expect_table(w, m, t)


@compiled
def on_reports(w: World, m: Monitor, c: Contention, t: int) -> None:
    """Note the reports of a heartbeat, which arrive in one event."""
    rows = c.loads
    for i in range(c.round.loads[0]):
        note_load(m, rows.node[i], rows.wait[i], rows.busy[i])
    for r in range(m.demand.size):
        m.demand[r] += c.more[0, r]
        m.pressure[r] += c.more[1, r]
        c.more[0, r], c.more[1, r] = 0, 0
    w.queue.now.events[0] += c.round.messages[0] - 1
    c.round.messages[0], c.round.loads[0] = 0, 0
    expect_table(w, m, t)


@inlined
def note_load(m: Monitor, node: int, wait: int, busy: int) -> None:
    """Note a node's expected wait and its busy slots."""
    m.wait[node] = wait
    m.total.busy[0] += busy - m.busy[node]
    m.busy[node] = busy


@inlined
def note_demand(m: Monitor, node: int, r: int, entries: int, scarcity: int) -> None:
    """Note a node's report of a resource."""
    m.demand[r] += entries - m.reported[0, node, r]
    m.pressure[r] += scarcity - m.reported[1, node, r]
    m.reported[0, node, r], m.reported[1, node, r] = entries, scarcity


@compiled
def on_node_state(w: World, m: Monitor, node: int, was_down: bool) -> None:
    """Remove a node's reports: it is known to be down, or up again, and its queue is lost.

    The table shows it when the next report arrives: failures are background events and cause no other events
    (actors/kernel/faults.py).
    """
    sign = np.int64(was_down) - np.int64(is_known_down(w, node))
    m.total.nodes[0] += sign
    m.total.slots[0] += sign * m.slots[node]
    m.total.busy[0] -= m.busy[node]
    m.wait[node], m.busy[node] = 0, 0
    for r in range(m.demand.size):
        note_demand(m, node, r, np.int64(0), np.int64(0))


@inlined
def expect_table(w: World, m: Monitor, t: int) -> None:
    """Schedule the monitor's next table, in the partition that has the monitor."""
    monitor = np.int64(w.queue.seq.size - 2)
    if is_here(w.queue, monitor) and m.total.waits[0] == 0:
        m.total.waits[0] = 1
        beat = (max(t - m.lag, 0) + m.heartbeat - 1) // m.heartbeat * m.heartbeat
        wake(w, beat + m.lag, monitor, MONITOR, NONE, NONE, NONE)


@compiled
def on_monitor(w: World, m: Monitor, t: int, me: int) -> None:
    """Make a new table, log it, and announce what has changed in it."""
    total, place = m.total, m.total.rows[0] * (1 + 2 * m.demand.size)
    total.waits[0] = 0
    total.rows[0] += 1
    m.log[place] = t
    for r in range(m.demand.size):
        crv = crv_at(m, r)
        m.log[place + 1 + r], m.log[place + 1 + m.demand.size + r] = m.demand[r], crv
        shown = crv if crv > m.threshold else np.int64(0)
        if not m.static and shown != m.announced[r]:
            m.announced[r] = shown
            send_announced(w, t, me, np.int64(r), shown, NONE)
    counts = np.int64(m.load_gate == 0.0 or total.busy[0] > m.load_gate * total.slots[0])
    if counts != total.open[0]:
        total.open[0] = counts
        send_announced(w, t, me, NONE, NONE, counts)


@inlined
def crv_at(m: Monitor, r: int) -> int:
    """The CRV of a resource, in UNIT."""
    share = float(SHARE) * max(m.total.nodes[0], 1)
    return np.int64(min(m.pressure[r] / share * float(UNIT), MOST_CRV))


@inlined
def lacks_log(m: Monitor) -> bool:
    """Whether the log is full."""
    return m.log.size - m.total.rows[0] * (1 + 2 * m.demand.size) < 1 + 2 * m.demand.size


def grow_log(m: Monitor) -> Monitor:
    """The same monitor with twice the space for the log, if that is full."""
    if not lacks_log(m):
        return m
    return m._replace(log=np.concatenate([m.log, np.zeros_like(m.log)]))


def pressure_of(w: World, m: Monitor, names: list[str]) -> Pressure | None:
    """The table over time, of resources with these names; None in a partition without the monitor."""
    if not is_here(w.queue, w.queue.seq.size - 2):
        return None
    resources = len(names)
    rows = m.log[: int(m.total.rows[0]) * (1 + 2 * resources)].reshape(-1, 1 + 2 * resources)
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
