"""What Philae's coordinator keeps, and how it begins; the policy is in `philae`."""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda, make_agenda
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.greedy import Matching, make_matching
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
    stale: np.ndarray  # [1] bool: a decision is wanted, and not only a refill
    samples: bool  # coflows that are not thin have pilots
    random_ports: bool
    width: np.ndarray  # [C] flows of a coflow
    pilots_left: np.ndarray  # [C]
    pilots_done: np.ndarray  # [C] pilots that have ended
    pilot_bytes: np.ndarray  # [C] float64, of pilots that have ended
    length: np.ndarray  # [C] float64, estimated bytes of a flow, 0.0 before
    busy: np.ndarray  # [N] pilots at a port
    coflows_at_port: np.ndarray  # [N] coflows with unfinished flows at a port
    contention_sum: np.ndarray  # [C] c_p summed over the ports of a coflow in a queue
    met_in: np.ndarray  # [C] scratch: the count in which a coflow was met last
    num_counts: np.ndarray  # [1] counts so far
    num_active: np.ndarray  # [1] active coflows
    last_slot: np.ndarray  # [1] the queue whose slot it was at the last decision
    moved: np.ndarray  # [C] coflows that may have another level than at the last decision
    num_moved: np.ndarray  # [1]
    is_moved: np.ndarray  # [C] whether a coflow is one of them
    was_at_port: np.ndarray  # [N] scratch: whether a coflow was at a port before an update, or NONE
    learned: np.ndarray  # [C] when all pilots had ended, ns
    learned_bytes: np.ndarray  # [C] float64, what the coflow had sent then


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    if given["pilots"] == "none" and given["policy"] != "C":
        raise InputError(
            f"parameter pilots of philae: without any no size is known, which policy {given['policy']} goes by; only"
            " policy C does without"
        )
    pilots = pilots_of(merge_parallel(setting.workload.arrays())[0], given)
    world = build_world(setting, interval_s=given["interval_s"], pilots=pilots)
    fabric, coflows, ports = world.fabric, world.work.size, world.fabric.speed.size
    return world, State(
        agenda=make_agenda(coflows),
        ranking=make_ranking(fabric),
        matching=make_matching(fabric),
        queues=make_queues(coflows, given),
        policy="ABCD".index(given["policy"]),
        thin_limit=given["thin_limit"],
        excludes_itself=int(not given["count_itself"]),
        unit=float(given["contention_unit_bytes"]),
        conserves=given["work_conservation"],
        corrects=given["size_correction"],
        decide_at=("events", "flow-ends", "interval").index(given["decide"]),
        stale=np.zeros(1, np.bool_),
        samples=given["pilots"] != "none",
        random_ports=given["pilot_ports"] == "random",
        width=fabric.coflows.left.copy(),
        pilots_left=np.zeros(coflows, np.int64),
        pilots_done=np.zeros(coflows, np.int64),
        pilot_bytes=np.zeros(coflows),
        length=np.zeros(coflows),
        busy=np.zeros(ports, np.int64),
        coflows_at_port=np.zeros(ports, np.int64),
        contention_sum=np.zeros(coflows, np.int64),
        met_in=np.zeros(coflows, np.int64),
        num_counts=np.zeros(1, np.int64),
        num_active=np.zeros(1, np.int64),
        last_slot=np.full(1, NONE),
        moved=np.zeros(coflows, np.int64),
        num_moved=np.zeros(1, np.int64),
        is_moved=np.zeros(coflows, np.bool_),
        was_at_port=np.full(ports, NONE),
        learned=np.full(coflows, NEVER),
        learned_bytes=np.zeros(coflows),
    )
