"""The state of Philae's coordinator; the policy is in `philae`."""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.greedy import Matching, make_matching
from actors.fabric.initial_arrays import at_start, list_per, per
from actors.fabric.ports import merge_parallel
from actors.fabric.priority_queues import Queues, make_queues
from actors.fabric.ranking import Ranking, make_ranking
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.schedulers.coflows.philae_pilots import pilots_of
from actors.setting import Setting
from workloads.errors import InputError

EVENTS, FLOW_ENDS, INTERVALS = range(3)


class State(NamedTuple):
    """The state of the coordinator of C coflows and N ports."""

    agenda: Agenda
    ranking: Ranking
    matching: Matching
    queues: Queues
    policy: int  # A, B, C, D
    thin_limit: int
    excludes_itself: int  # 1: a coflow is not counted in its own contention
    unit: float  # bytes that a coflow counts for in policy C
    conserves: bool
    corrects: bool
    decide_at: int  # when decisions are made: EVENTS, FLOW_ENDS, INTERVALS
    samples: bool  # coflows that are not thin have pilots
    random_ports: bool
    stale: np.ndarray = per("run", False)  # a decision is requested, and not only a refill
    width: np.ndarray = per("coflow")  # flows of a coflow
    pilots_left: np.ndarray = per("coflow")  # pilots that have not ended
    pilots_done: np.ndarray = per("coflow")  # pilots that have ended
    pilot_bytes: np.ndarray = per("coflow", 0.0)  # of pilots that have ended
    length: np.ndarray = per("coflow", 0.0)  # estimated bytes of a flow, 0.0 before
    busy: np.ndarray = per("port")  # pilots at a port
    coflows_at_port: np.ndarray = per("port")  # coflows with unfinished flows at a port
    contention_sum: np.ndarray = per("coflow")  # the sum of c(p) over the ports of a coflow in a queue
    met_in: np.ndarray = per("coflow")  # scratch: the last count in which a coflow was met
    num_counts: np.ndarray = per("run")  # counts so far
    num_active: np.ndarray = per("run")  # active coflows
    last_slot: np.ndarray = per("run", NONE)  # the queue whose slot it was at the last decision
    moved: np.ndarray = list_per("coflow")  # coflows that may have another level than at the last decision
    num_moved: np.ndarray = per("run")
    is_moved: np.ndarray = per("coflow", False, lasts=True)  # whether a coflow is one of them
    # scratch: whether a coflow was at a port before an update, or NONE
    was_at_port: np.ndarray = per("port", NONE)
    learned: np.ndarray = per("coflow", NEVER)  # when all pilots had ended, ns
    learned_bytes: np.ndarray = per("coflow", 0.0)  # what the coflow had sent then


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    if given["pilots"] == "none" and given["policy"] != "C":
        raise InputError(
            f"parameter pilots of philae: policy {given['policy']} needs sizes of coflows, which are not known without"
            " pilots; only policy C needs no pilots"
        )
    pilots = pilots_of(merge_parallel(setting.workload.arrays())[0], given)
    world = build_world(setting, interval_s=given["interval_s"], pilots=pilots)
    fabric = world.fabric
    return world, at_start(
        State,
        fabric,
        agenda=at_start(Agenda, fabric),
        ranking=make_ranking(fabric),
        matching=make_matching(fabric),
        queues=make_queues(fabric, given),
        policy="ABCD".index(given["policy"]),
        thin_limit=given["thin_limit"],
        excludes_itself=int(not given["count_itself"]),
        unit=float(given["contention_unit_bytes"]),
        conserves=given["work_conservation"],
        corrects=given["size_correction"],
        decide_at=("events", "flow-ends", "interval").index(given["decide"]),
        samples=given["pilots"] != "none",
        random_ports=given["pilot_ports"] == "random",
    )
