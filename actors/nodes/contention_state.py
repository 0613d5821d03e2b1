"""State of nodes under contention: what they know of the CRV and of their own queues."""

from typing import Any, NamedTuple

import numpy as np

from actors.kernel.records import Records, records
from actors.nodes.queueing import SERVED

UNIT = np.int64(1) << 32  # of a CRV
SHARE = np.int64(1) << 10  # scarcity of one entry that asks for what all nodes have

NODE = np.dtype(
    [
        *SERVED.descr,
        ("wait", "i8"),  # E[W] as last reported, ns
        ("asked", "i8"),  # bits: resources that queued entries ask for, as last reported
        ("to_report", "i8"),  # 1: there may be something new
    ]
)


# Nodes that have something to report, as places in a ring; and of the event that stands for the messages of a heartbeat
# how many these are, and how many nodes' loads it brings.
ROUND = np.dtype([("next", "i8"), ("end", "i8"), ("messages", "i8"), ("loads", "i8")])
LOAD = np.dtype([("node", "i8"), ("wait", "i8"), ("busy", "i8")])

# The weights of the authors' simulator: the relative slowdown of jobs with such a constraint. Table II of the paper has
# the same figures with two digits behind the point, but 2.03 for the instruction set.
WEIGHTS = {
    "isa": 2.0,
    "cpus": 1.966,
    "port": 1.9122,
    "cores": 1.9054,
    "max_disks": 1.9054,
    "kernel": 1.777,
    "clock": 1.7567,
    "min_disks": 0.9121,
}


class Contention(NamedTuple):
    """What nodes know of the CRV and of themselves; N nodes, R resources, V levels of all sets of constraints."""

    crv: np.ndarray  # [R] in UNIT, as last announced; 0 up to the threshold
    hot: np.ndarray  # [1] bits: resources whose CRV is above it
    open: np.ndarray  # [1] 1: the CRV counts, 0: the cluster's load is too low for that
    asks: np.ndarray  # [V] bits: the resources that a job asks for at this level
    scarcity: np.ndarray  # [V, R] in SHARE: N over the number of nodes that have what is asked for
    nodes: Records  # [N] NODE
    busy: np.ndarray  # [N] busy slots as last reported, where that is wanted
    reported: np.ndarray  # [2, N, R] as last reported: entries that ask for a resource, and their scarcity
    counts: np.ndarray  # [R] scratch, 0 between reports
    total: np.ndarray  # [R] scratch, 0 between reports
    slots: np.ndarray  # [N]
    ring: np.ndarray  # [N] nodes that are to report at the next heartbeat
    round: Records  # [1] ROUND
    loads: Records  # [N] LOAD, those that one event brings
    # [2, R] what one event brings: by how much the entries that ask for a resource, and their scarcity, have grown
    more: np.ndarray
    reorder: bool  # nodes serve their queues by the CRV
    weighted: bool  # by remaining work over CRV
    static: bool  # by weights that never change, first come first served among equals; all queues, where they count
    shortest_first: bool  # where it does not, the shortest remaining job goes first
    reporting: bool  # there is a monitor to report to
    gated: bool  # and wants to know the load
    window: int  # tasks
    rho_cap: float
    change: float  # share by which the expected wait must have changed to be reported again
    heartbeat: int  # ns


def make_contention(
    asks: np.ndarray, scarcity: np.ndarray, slots: np.ndarray, crv: np.ndarray, **settings: Any
) -> Contention:
    """Return the state of nodes without reports; `settings` are the scalars of `Contention`."""
    nodes, resources = slots.size, crv.size
    return Contention(
        crv=crv.astype(np.int64),
        hot=np.zeros(1, np.int64),
        open=np.zeros(1, np.int64),
        asks=asks,
        scarcity=scarcity,
        nodes=records(NODE, nodes),
        busy=np.zeros(nodes, np.int64),
        reported=np.zeros((2, nodes, resources), np.int64),
        counts=np.zeros(resources, np.int64),
        total=np.zeros(resources, np.int64),
        slots=slots.astype(np.int64),
        ring=np.zeros(nodes, np.int64),
        round=records(ROUND, 1),
        loads=records(LOAD, nodes),
        more=np.zeros((2, resources), np.int64),
        **settings,
    )
