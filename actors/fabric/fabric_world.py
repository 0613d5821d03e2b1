"""The state of one partition of coflows: agents at the ports, and the coordinator of the switch.

For the host of a partition a coflow is a job and its flows are tasks: `CoflowWorld` has what `actors.kernel` and
`actors.hosting` use, under the same names. An agent is a machine: it sends the flows that enter the switch at its port,
and only the agent knows what they have left (`Sending`). What the coordinator knows and estimates is in `fabric`. Both
are equal without delays and costs.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import check_prices
from actors.fabric.counters import COUNTERS
from actors.fabric.messages import send_register
from actors.fabric.ports import Fabric, build_fabric, merge_parallel
from actors.fabric.updates import Updates, expect_updates, follow_moves, lay_out, no_updates
from actors.fabric.waves import Waves, make_waves
from actors.failures import Faults, no_faults
from actors.initial_arrays import at_start, list_per, per
from actors.kernel.compiled import entry, inlined
from actors.kernel.cost import FIXED, MEASURED, NO_COST, RECORDED, Cost, make_cost
from actors.kernel.queue import MOST_ACTORS, NEVER, NONE, Network, Queue, make_queue
from actors.kernel.records import Records, first, frozen, records
from actors.nodes.world import ACTOR, JOB_INFO, TASK_RECORD, make_entries
from actors.scheduler import takes_updates
from actors.setting import Costs, Setting
from workloads.coflows import CoflowArrays, CoflowWorkload
from workloads.errors import InputError

NS = 1_000_000_000
INTERVAL = np.dtype(
    [
        ("number", "i8"),
        ("heard", "i8"),  # agents whose messages the coordinator has received in it
        ("sent", "i8"),  # schedules sent in it, one for each agent
        ("busy", "i8"),  # ns that the coordinator had worked when it began
    ]
)


class Intervals(NamedTuple):
    """The present scheduling interval; P agents."""

    origin: int  # when the first one began, ns
    length: int  # ns
    now: Records  # [1] INTERVAL, the present one
    heard: np.ndarray  # [P] the last interval in which a message of an agent was received
    last_sent: np.ndarray  # [P] the last decision or refill that sent an agent anything


class Sending(NamedTuple):
    """What agents know of F flows: each row belongs to the agent at the flow's ingress port."""

    left: np.ndarray = per("flow", 0.0)  # bytes at `since`
    rate: np.ndarray = per("flow", 0.0)  # bytes per ns, 0.0 while the flow does not run
    since: np.ndarray = per("flow", NONE)  # ns, NONE before the flow was sent
    end: np.ndarray = per("flow", NEVER)  # when it ends at this rate, ns; NEVER while it does not run


class Prices(NamedTuple):
    """What the work of the coordinator costs, ns."""

    message: int  # any message
    update: int  # in addition, a message about an end or an update
    flow: int  # a flow to which a decision gives a rate
    coflow: int  # a coflow that a decision puts in order
    schedule: int  # an agent to which a decision sends anything


class Ended(NamedTuple):
    """Flows that have ended in the event at hand, for those who wait for what they bring (`actors.transfers`)."""

    flow: np.ndarray = list_per("flow")  # the first `num`; empty where no task waits
    num: np.ndarray = per("run")


class Ends(NamedTuple):
    """Of each coflow, as of a job: its first start, its last end, and its unfinished flows."""

    start: np.ndarray
    finish: np.ndarray
    unfinished: np.ndarray


class CoflowWorld(NamedTuple):
    """The state of agents and coordinator; P agents, C coflows, F flows."""

    queue: Queue
    network: Network
    work: Records  # [C] JOB_INFO
    nodes: Records  # [P] ACTOR, of which agents use `seq` alone
    entries: Records  # an empty pool: ports have no queues of tasks
    counts: np.ndarray  # [len(COUNTERS)]
    task_records: Records  # [F] TASK_RECORD, empty where flows are not recorded
    cost: Cost
    faults: Faults
    fabric: Fabric  # the coordinator's
    sending: Sending  # the agents'
    intervals: Intervals
    prices: Prices
    updates: Updates
    waves: Waves
    ended: Ended
    row_of_flow: np.ndarray  # [flows of the workload] read-only, their numbers among the flows of the fabric
    seed: int

    @property
    def jobs(self) -> Ends:
        """Start, end and unfinished flows of coflows, under the names that jobs use."""
        coflows = self.fabric.coflows
        return Ends(coflows.start, coflows.finish, coflows.left)

    def records_by_task(self) -> Records:
        """Return [flows of the workload] the records of flows in the order of the workload."""
        found = self.task_records
        if self.updates.moved.size > 0:
            found = follow_moves(found, self.updates.moved)
        return found[self.row_of_flow]


def build_world(
    setting: Setting, *, interval_s: float, pilots: np.ndarray | None = None, most_sends: int | None = None
) -> CoflowWorld:
    """Build agents and coordinator, and the message that registers the first coflow.

    Actor ids: agents 0 to P - 1, the coordinator, then the listener, which receives no messages.

    Args:
        interval_s: the scheduling interval, by which the coordinator's work is counted.
        pilots: [C] how many flows of each coflow may be served before its others.
        most_sends: how many messages one event may send; by default two for each port.
    """
    assert isinstance(setting.workload, CoflowWorkload)
    work, row_of_flow = merge_parallel(setting.workload.arrays())
    updates = no_updates()
    if setting.updates is not None:
        if not takes_updates(setting.scheduler, setting.parameters):
            raise InputError(f"{setting.scheduler.name} does not take updates of coflows")
        work, row_of_flow, updates = lay_out(work, row_of_flow, setting.updates)
    row_of_flow.flags.writeable = False
    ports = setting.cluster.num_nodes
    table = records(ACTOR, ports + 2)
    if table.size > MOST_ACTORS:
        raise InputError(f"{table.size} actors; at most {MOST_ACTORS} have an id")
    fabric = build_fabric(work, setting.switch.port_bytes_per_s, pilots, setting.switch.local_is_free)
    flows, times = (
        fabric.flows.size.size,
        work.arrival_ns.tolist() or [0],
    )  # without coflows: those of DAG jobs
    world = CoflowWorld(
        queue=make_queue(table.seq, room=(most_sends or 2 * int(fabric.side)) + 8),
        network=_network(setting),
        work=_describe(work, ports),
        nodes=first(table, ports),
        entries=make_entries(2),
        counts=np.zeros(len(COUNTERS), np.int64),
        task_records=records(TASK_RECORD, 0),
        cost=_cost(setting.costs, times[-1]),
        faults=no_faults(times[0]),
        fabric=fabric,
        sending=at_start(Sending, fabric, left=fabric.flows.size.copy()),
        intervals=Intervals(
            origin=times[0],
            length=round(interval_s * NS),
            now=records(INTERVAL, 1),
            heard=np.full(ports, -1),
            last_sent=np.full(ports, -1),
        ),
        prices=prices_of(setting.costs, flows, work.arrival_ns.size, ports),
        updates=updates,
        waves=make_waves(work.arrival_ns.size, 0),
        ended=Ended(np.zeros(0, np.int64), np.zeros(1, np.int64)),
        row_of_flow=row_of_flow,
        seed=setting.seed,
    )
    expect_first(world)
    return world


@entry
def expect_first(w: CoflowWorld) -> None:
    """Set timers for the registration of the first coflow, and for the first updates."""
    if w.work.size > 0:
        expect_coflow(w, 0)
    expect_updates(w)


@inlined
def expect_coflow(w: CoflowWorld, coflow: int) -> None:
    """Set a timer for the registration of a coflow, one network delay after it arrives."""
    send_register(w, w.work.submit[coflow] + w.network.delay_ns, w.nodes.size, coflow)


def _describe(work: CoflowArrays, ports: int) -> Records:
    """Return [C] JOB_INFO: coflows as jobs of the coordinator, and flows as their tasks."""
    found = records(JOB_INFO, work.arrival_ns.size)
    found.submit[:], found.home[:] = work.arrival_ns, ports
    found.first_task[:], found.end_task[:] = work.first_flow[:-1], work.first_flow[1:]
    return frozen(found)


def _network(setting: Setting) -> Network:
    """Return the network in ns: all agents have the same delay, so that a schedule reaches them together."""
    delay = round(setting.network.delay_s * NS)
    return Network(delay, delay, 0.0, np.zeros(0, np.int64), setting.seed, 0)


def _cost(costs: Costs, last_arrival: int) -> Cost:
    """Return the cost model; `fixed` costs are charged for what the coordinator does (`Prices`), not by event."""
    models = {"none": NO_COST, "fixed": FIXED, "recorded": RECORDED, "measured": MEASURED}
    return make_cost(models[costs.model], 2, recorded=costs.recorded, last_arrival=last_arrival)


def prices_of(costs: Costs, flows: int, coflows: int, agents: int) -> Prices:
    """Return the fixed costs in ns of a coordinator of so many flows, coflows and agents.

    Raises:
        InputError: a cost is so large that the coordinator would be busy for decades.
    """
    most = {"message": flows, "update": flows, "flow": flows, "coflow": coflows, "schedule": agents}
    prices = Prices(*(round(getattr(costs, f"per_{name}_s") * NS) for name in most))
    names = zip(most, prices, most.values(), strict=True)
    check_prices(*((f"cost.per_{name}", price, times) for name, price, times in names))
    return prices
