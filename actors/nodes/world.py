"""The state of one partition, as arrays of records: what the handlers of all job schedulers share.

A handler touches the row of the actor its message is for, and sends messages. What describes the workload is
read-only and known to all: a message that names a job stands for the job's description.
"""

from typing import NamedTuple

import numpy as np

from actors.constraints import Eligible
from actors.failures import Faults
from actors.inputs import Inputs
from actors.kernel.compiled import inlined
from actors.kernel.cost import Cost
from actors.kernel.counters import Counters
from actors.kernel.queue import NEVER as NEVER
from actors.kernel.queue import NONE, Network, Queue
from actors.kernel.records import Records, doubled, records
from actors.resources import Room
from actors.stages import Stages

# One row per actor, 64 bytes: a node uses all of it, a scheduler only `seq`.
ACTOR = np.dtype(
    [
        ("head", "i8"),  # first entry of the node's queue, or NONE
        ("tail", "i8"),
        ("idle", "i8"),  # idle slots
        # long tasks and probes of long jobs, queued or running; those that run also in `LONG_RUNS`
        ("longs", "i8"),
        ("version", "i8"),  # of the shared state that the last placement brought
        ("started", "i8"),  # when the task that started last did, ns
        ("running", "i8"),  # its job, or NONE if it has ended
        ("seq", "i8"),  # messages sent
    ]
)

LONG_RUNS = np.int64(1) << 32  # in a node's `longs`, for each long task that runs
ASKED_SHIFT = 32
ASKED = np.int64(1) << ASKED_SHIFT  # in an entry's `left`, for each task that a sticky probe waits for

# A place in a node's queue: a probe (task is NONE) or a task bound to the node. Entries of a job that stand side by
# side and differ in nothing but their tasks are a run. The first stands for all of them in the queue, and the others
# are linked to it by `more`: of a job of a million tasks a node has thousands, and a search of the queue takes one step
# for a run. Of the others `task` and `more` count; the first of them has in `next` the last, in `left` their number.
# An entry is a cache line: with one field more, whether its job is long, sparrow took 10 % longer.
ENTRY = np.dtype(
    [
        ("next", "i8"),
        ("job", "i8"),
        ("task", "i8"),
        # tasks that the job had left, as last reported to this node; in `ASKED`: tasks it has requested
        ("left", "i8"),
        ("bypassed", "i8"),  # estimated work that went before it out of turn, ns
        # of a probe: answers to an earlier one are out of date; of a task in a bounded queue 1: it may be given back
        ("epoch", "i8"),
        ("level", "i8"),  # of a job with constraints, see actors/constraints.py; else NONE
        ("more", "i8"),  # the next entry of its run, or NONE
    ]
)

# A job's state at its scheduler.
JOB = np.dtype(
    [
        ("next_task", "i8"),  # index into the workload's tasks
        ("unfinished", "i8"),
        ("start", "i8"),  # of its first task, ns; NEVER before
        ("finish", "i8"),  # of its last task so far, ns
        ("version", "i8"),  # newest shared state that a rejection brought, or NONE
        ("rejected", "i8"),  # probes rejected and not yet sent again
        ("answers", "i8"),  # answers to probes for queue lengths
        ("draws", "i8"),  # random nodes drawn for probes sent again
    ]
)

# What is counted over the run: tasks by report class (short, long), then what the mechanisms did.
COUNTERS = Counters(network=True)
N_PROBES = COUNTERS.add("probes", "probes that schedulers sent")
N_PLACEMENTS = COUNTERS.add("placements", "tasks bound to a node by their scheduler")
N_EMPTY = COUNTERS.add("empty_answers", "requests of nodes that were answered by: no task left")
N_REJECTIONS = COUNTERS.add("rejections", "probes rejected by a node with long work")
N_AGAIN = COUNTERS.add("probes_again", "probes sent again after a rejection")
N_STEAL_ATTEMPTS = COUNTERS.add("steal_attempts", "nodes that were asked for work to steal")
N_STEALS = COUNTERS.add("steals", "of these, those that brought something")
N_STOLEN = COUNTERS.add("stolen_probes", "probes moved by stealing")
N_BYPASSES = COUNTERS.add("bypasses", "entries that a node took out of their turn")
N_REPORTS = COUNTERS.add("load_reports", "heartbeats in which a node had something to report")
N_TASKS_LOST = COUNTERS.add(
    "tasks_lost", "running tasks that a node's failure ended, and all tasks of a gang that is ended for that"
)
N_LOST_NS = COUNTERS.add(
    "lost_work_ns", "time that the tasks of `tasks_lost`, and of `run_again`, had run or fetched"
)
N_LOST_WHOLES = COUNTERS.add("lost_work_wholes", "a part of `lost_work_ns`, which results have with it")
N_PLACEMENTS_LOST = COUNTERS.add(
    "placements_lost",
    "tasks lost before they ran: queued, sent to a node that is down, or of a gang that was ended",
)
N_PROBES_LOST = COUNTERS.add("probes_lost", "probes that were lost likewise")
N_SENT_AGAIN = COUNTERS.add("sent_again", "probes and tasks sent in place of what was lost")
N_FETCHES_FAILED = COUNTERS.add(
    "fetches_failed", "a part of `tasks_lost`: tasks that fetched input which was lost with another machine"
)
N_RUN_AGAIN = COUNTERS.add(
    "run_again", "tasks that ran again after they had ended, as their output was lost with their machine"
)
N_RELAXED = COUNTERS.add("jobs_relaxed", "jobs that run without one of their soft constraints")
N_REFUSALS = COUNTERS.add(
    "refusals", "requests of nodes that may run no more tasks of the job (placement constraint)"
)
N_TURNED_AWAY = COUNTERS.add(
    "turned_away", "tasks that a full queue did not take, or gave up for one of higher priority"
)
N_GIVEN_BACK = COUNTERS.add(
    "given_back", "tasks that waited too far behind, and went back to their scheduler"
)
N_BACKLOGGED = COUNTERS.add("backlogged", "times a task had to wait at its scheduler for a node with room")
N_EVICTIONS = COUNTERS.add("evictions", "running tasks that made room for others of higher priority")
N_REORDERS = COUNTERS.add("reorders", "entries taken out of their turn for their constraints' sake")
N_ADMISSIONS = COUNTERS.add(
    "admissions", "jobs whose probes went to the nodes where they are expected to wait least"
)


# What is known of a job from its description, read-only; times in ns.
JOB_INFO = np.dtype(
    [
        ("submit", "i8"),
        ("first_task", "i8"),
        ("end_task", "i8"),
        ("estimate", "i8"),  # of the duration of a task
        ("is_long", "i8"),  # 1 where the estimate is above the cut-off: what schedulers go by
        ("report_class", "i8"),  # 1 where the workload's mean is above the cut-off: what results go by
        ("home", "i8"),  # the job's scheduler, an actor id
        ("next_job", "i8"),  # the next job of the same scheduler, or NONE
    ]
)

TASK_RECORD = np.dtype([("node", "i8"), ("start", "i8"), ("finish", "i8")])


class Rules(NamedTuple):
    """The rules by which a node serves its queue: by default in order of arrival."""

    shortest_first: int = 0  # 1: the job with the least remaining work first, 0: in order of arrival
    sticky: int = 0  # 1: a probe of a short job stays until its job has no task left
    slack: float = 0.0  # an entry may be bypassed by at most `slack` times its estimate
    live: int = 0  # 1: remaining work is read from the scheduler (global view), 0: as last reported
    bound_all: int = 0  # 1: the bound holds for long entries too, and every choice is charged
    report_start: int = 0  # 1: the node reports to the scheduler when a bound task starts
    names_tasks: int = 0  # 1: where tasks can be lost, a report of an end says of which task it is
    by_tasks: int = 0  # 1: what is left of a job is counted in tasks, not in time
    runs: int = 1  # 1: entries that differ in their tasks alone are kept as runs, 0: each entry has a state of its own


# What became of a job's tasks by preemption, in one partition.
EVICTED = np.dtype(
    [
        ("times", "i8"),  # tasks were evicted
        ("lost", "i8"),  # work that was lost by that, us: 292,000 years of it do not overflow
    ]
)


class Preemption(NamedTuple):
    """Whether running tasks make room for those of higher priority (`actors/nodes/preemption.py`)."""

    most: int  # evictions of a task; 0: none is evicted
    below: int  # tasks of this priority or a higher one are not evicted
    oldest_first: int  # 1: of one priority the task that started first is evicted first; 0: the last
    keeps: int  # 1: an evicted task goes on from where it was; 0: from its beginning
    cost: int  # added to the run time of a task that was evicted, ns
    jobs: Records  # [J] EVICTED; empty where none is evicted
    lacking: np.ndarray  # [R], or [1] of slots: scratch, what a node lacks for an entry
    work: np.ndarray  # [1] estimated work evicted, ns, until a node takes it from the load that it reports
    ran: np.ndarray  # how many a node has evicted in this event, and how long each ran, ns; empty: none asks


class World(NamedTuple):
    """The state on which the handlers of all job schedulers work; one type for all, so that they compile once."""

    queue: Queue
    network: Network
    work: Records  # [J] JOB_INFO
    duration: np.ndarray  # [T] of each task, ns, read-only
    nodes: Records  # [N] ACTOR, the nodes' rows of the actors' table
    entries: Records  # ENTRY, the pool of all nodes' queues; row 0 holds the list of free ones
    rules: Rules
    jobs: Records  # [J] JOB
    counts: np.ndarray  # [len(COUNTERS)] what is observed; no handler reads it
    task_records: Records  # [T] TASK_RECORD, empty where tasks are not recorded
    cost: Cost
    faults: Faults
    eligible: Eligible
    room: Room
    priority: np.ndarray  # [J] read-only, the larger goes first; empty where none counts
    preemption: Preemption
    speed: np.ndarray  # [N] float64, how many times faster than a standard node; empty: all are alike
    stages: Stages  # of jobs that are the stages of DAG jobs
    inputs: Inputs
    seed: int

    def records_by_task(self) -> Records:
        """Return [T] the records of tasks in the order of the workload."""
        return self.task_records


def make_entries(capacity: int = 1 << 12) -> Records:
    """Return an empty pool of queue entries."""
    entries = records(ENTRY, capacity)
    entries.next[0], entries.job[0] = NONE, 1
    return entries


def grow_entries(entries: Records) -> Records:
    """Return the same pool, with twice the space if it is full."""
    if entries.next[0] != NONE or entries.job[0] < entries.size:
        return entries
    return doubled(entries)


@inlined
def new_entry(entries: Records) -> int:
    """Take an entry from the pool, the most recently freed first: it is still in the cache."""
    entry = entries.next[0]
    if entry != NONE:
        entries.next[0] = entries.next[entry]
    else:
        entry = entries.job[0]  # no entry from here on was ever used
        entries.job[0] = entry + 1
    return entry


@inlined
def free_entry(entries: Records, entry: int) -> None:
    """Return an entry to the pool."""
    entries.next[entry] = entries.next[0]
    entries.next[0] = entry
