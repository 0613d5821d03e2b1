"""One wait of a job as data: what is known about it, its numbers, and who held what it waited for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from actors.resources import UNIT
from clusters.capacity import needs_of
from clusters.matching import match, nodes_of
from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.explained_run import plan_of, scheduler_of
from emu.explaining.explanation import NS, Link
from emu.explaining.spans import NEVER, Free, Held, free_during, outages
from emu.families.jobs.chain import ENTERS, Chain
from emu.families.jobs.holders import Room, tasks_of, times_that_fit
from emu.families.jobs.metrics import has_classes
from emu.families.jobs.task_waits import BOUND
from emu.results.metrics import Float64Array
from emu.results.result import Result
from workloads.arrow import column
from workloads.requests import priorities

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Setting

MOST_JOBS = 20
"""Jobs that held the slots longest, of which the explanation says whether they came earlier or later."""
SAME_JOB = "the same job"


@dataclass(frozen=True)
class JobWait:
    """One wait of a job, and what is known about it.

    ``record`` has the events of the job and, where they are recorded, of jobs that held its slots; ``job`` is its row
    in the table of jobs. ``first`` is the first link of the wait in the chain, and ``end`` the one behind its last.
    """

    result: Result
    record: Record
    job: int
    chain: Chain
    first: int
    end: int

    @property
    def link(self) -> Link:
        """The first link of the wait."""
        return self.chain.links[self.first]

    @property
    def events(self) -> Record:
        """The events of the job."""
        return self.chain.e

    @property
    def begin_ns(self) -> int:
        """When it began."""
        return self.chain.submit_ns + self.link.begin_ns

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.chain.submit_ns + self.chain.links[self.end - 1].end_ns

    @property
    def length_ns(self) -> int:
        """How long it lasted."""
        return self.end_ns - self.begin_ns

    @property
    def is_at_node(self) -> bool:
        """Whether it is a wait in the queue of a node."""
        link = self.link
        waits = link.cause == "queueing" or (link.cause == "failure" and not self.chain.has_started(link))
        return waits and 0 <= link.actor < self.chain.num_nodes

    @property
    def is_at_scheduler(self) -> bool:
        """Whether it is a wait at a scheduler, for a node."""
        return self.link.cause == "queueing" and self.link.actor >= self.chain.num_nodes

    @cached_property
    def evicted_for(self) -> int:
        """The row of the job for which it was evicted just before it waits; NONE: it was not, or that is not known."""
        e = self.events
        lost = np.flatnonzero(e.is_kind("LOST") & (e.time_ns == self.begin_ns) & (e.task != NONE))
        if (mine := lost[e.task[lost] == self.link.task]).size:
            lost = mine
        for row in lost.tolist():
            same = e.is_kind("EVICT") & (e.time_ns == e.left_ns[row]) & (e.task == e.task[row])
            if same.any():
                return int(e.field("for_job", np.flatnonzero(same))[-1])
        return NONE

    @cached_property
    def scheduler(self) -> Scheduler | None:
        """The scheduler of the run; None where it is not found."""
        return scheduler_of(self.result)

    @property
    def is_drawn(self) -> bool:
        """Whether the scheduler draws the nodes of short jobs at random (`Scheduler.draws`)."""
        return self.scheduler is not None and self.scheduler.draws

    @cached_property
    def tasks(self) -> Held:
        """The tasks of all jobs that started."""
        return tasks_of(self.result, self.record)

    @cached_property
    def inputs(self) -> Inputs | None:
        """What the inputs of the run tell; None where they have changed."""
        plan = plan_of(self.result)
        return None if plan is None else Inputs(self, plan.setting(0))

    @property
    def resources(self) -> Inputs | None:
        """The same where tasks hold resources; None also where they take slots."""
        return self.inputs if self.inputs is not None and self.inputs.setting.resources else None

    @property
    def holds_resources(self) -> bool:
        """Whether tasks of the run held resources of nodes, and not a slot each."""
        return bool(self.result.summary["jobs"].get("used"))

    @cached_property
    def priority(self) -> IntArray:
        """The priorities of jobs by which nodes serve their queues, shape (J,); all 0 where they do not count."""
        jobs, counts = self.result.jobs, self.inputs is not None and self.inputs.setting.priorities
        return priorities(jobs) if counts else np.zeros(jobs.num_rows, np.int64)

    @cached_property
    def ids(self) -> IntArray:
        """The ids of jobs by their rows."""
        return column(self.result.jobs, "job_id")

    @cached_property
    def entering(self) -> int:
        """The event with which the probe or task joined the queue; -1 if it was there before the wait."""
        row = self.chain.ends[self.first - 1] if self.first else NONE
        return row if row != NONE and self.events.kind[row] in ENTERS else NONE

    @property
    def chosen_ns(self) -> int:
        """When its node was chosen; where no message brought it there, when the wait began."""
        if self.entering == NONE or self.events.left_ns[self.entering] == NONE:
            return self.begin_ns
        return int(self.events.left_ns[self.entering])

    @cached_property
    def expected_ns(self) -> int | None:
        """The wait at the node that its scheduler expected; None where it did not choose nodes by that."""
        e = self.events
        if self.entering == NONE:
            return None
        of_task = (e.task == e.task[self.entering]) | (e.task == NONE)
        choices = np.flatnonzero(e.is_kind("CHOICE") & (e.time_ns <= self.chosen_ns) & of_task)
        choices = choices[e.field("node", choices) == self.link.actor]
        return e.value("wait", int(choices[-1])) if choices.size else None

    @cached_property
    def rows_ahead(self) -> IntArray:
        """The tasks that ran on the node during the wait, the longest first."""
        ran = np.where(self.tasks.node == self.link.actor, self.tasks.within(self.begin_ns, self.end_ns), 0)
        rows = np.flatnonzero(ran)
        return rows[np.argsort(-ran[rows], kind="stable")]

    @cached_property
    def known_jobs(self) -> list[int]:
        """The rows of the jobs that ran on the node during the wait: their events tell more about it."""
        if not self.is_at_node:
            return []
        return list(dict.fromkeys(self.tasks.job[self.rows_ahead].tolist()))[:MOST_JOBS]


class Inputs:
    """What the inputs of a run tell of a wait: what the job may use and needs, and what was free of it.

    Attributes
    ----------
    case : JobWait
    setting : Setting
    room : Room
        What nodes have, and what was held of it; where tasks hold no resources, slots.
    needs : ndarray of int64, shape (R,)
        Of the job, in whole billionths.
    first_long : int
        The first node that long jobs may use.
    """

    def __init__(self, case: JobWait, setting: Setting):
        self.case, self.setting, task, record = case, setting, case.link.task, case.record
        down = outages(record, "FAIL", "REPAIR", record.receiver, setting.cluster.num_nodes)
        has_account = setting.scheduler.waits in ("gangs", "queue")
        self.room = Room(setting, case.tasks, down, case.is_at_scheduler and has_account)
        self.names = self.room.names
        self.needs = self.room.of_job[case.job] if task == NONE else self.room.needs[task]
        self.first_long = setting.cluster.partition(setting.long_partition)

    @cached_property
    def usable(self) -> BoolArray:
        """Which nodes the job may use, shape (N,)."""
        case, setting = self.case, self.setting
        scheduler, cluster, workload = setting.scheduler, setting.cluster, setting.workload
        nodes = np.ones(cluster.num_nodes, bool)
        constrained = bool(scheduler.constrained and workload.job_constraints.num_rows)
        if constrained or setting.resources:
            needs = needs_of(workload, cluster, setting.resources) if setting.resources else None
            matching = match(workload, cluster, needs, constrained)
            if (of_job := int(matching.set_of_job[case.job])) != NONE:
                nodes[:] = False
                nodes[nodes_of(matching, of_job, -1 if case.events.is_kind("RELAX").any() else 0)] = True
        is_long = str(case.result.jobs["job_class"][case.job].as_py()) == "long"
        if is_long and scheduler.why_ignored("long_partition") is None:
            nodes[: self.first_long] = False
        return nodes

    def free_slots(self, at_ns: int) -> Free:
        """Return the slots of nodes that the job may use which no task takes for a while, from a time on."""
        room, network = self.room, self.setting.network
        # The longest that a slot waits for a task on its way.
        longest_s = max(network.delay_s, network.cross_rack_delay_s or 0.0) + network.spread_s
        nodes = np.flatnonzero(self.usable)
        free = free_during(room.capacity, room.all, room.demand, nodes, at_ns, NEVER)
        return free.that_fits(self.needs, round(4 * NS * longest_s) + 1)

    def held_mean(self) -> tuple[Float64Array, Float64Array]:
        """Return what nodes that the job may use have, and what was held of it in the mean of the wait, shape (R,)."""
        room, case = self.room, self.case
        lasted = np.where(self.usable[room.all.node], room.all.within(case.begin_ns, case.end_ns), 0)
        return room.capacity[self.usable].sum(axis=0) / UNIT, lasted @ (room.demand / UNIT) / case.length_ns

    @cached_property
    def here(self) -> IntArray:
        """The tasks that ran on the node during the wait, in order of their start."""
        case = self.case
        return case.rows_ahead[np.argsort(case.tasks.begin_ns[case.rows_ahead], kind="stable")]

    @cached_property
    def free(self) -> Free:
        """What was free on the node during the wait."""
        case = self.case
        return self.room.during(case.link.actor, case.begin_ns, case.end_ns, case.rows_ahead)

    @cached_property
    def lacks(self) -> BoolArray:
        """Whether less of a resource was free than it needs, by the rows of `free`, shape (K, R)."""
        return np.asarray(self.free.amount < self.needs)

    @cached_property
    def lacking(self) -> Float64Array:
        """The share of the wait at the node in which less of each resource was free than it needs, shape (R,)."""
        return np.asarray(self.free.lasted @ self.lacks / self.case.length_ns)

    @cached_property
    def free_share(self) -> Float64Array:
        """The share of each resource of the usable nodes that was free, the mean over the wait, shape (R,)."""
        total, held = self.held_mean()
        return np.asarray(1.0 - held / np.where(total > 0, total, 1.0)).clip(0.0, 1.0)

    @cached_property
    def scarce(self) -> int:
        """The resource of which too little was free for longest; if none, that of which all nodes had the least."""
        if self.case.is_at_node and self.lacking.max() > 0:
            return int(np.argmax(self.lacking))
        return int(np.argmin(np.where(self.needs > 0, self.free_share, 2.0)))

    def tasks_with_room(self, at_ns: int) -> IntArray:
        """Return for how many such tasks each of the nodes had room at a time, shape (N,); 0 if it is not usable."""
        there = self.room.all.rows(self.room.all.at(at_ns))
        up = self.usable.copy()
        up[there.node[there.job == NONE]] = False
        return np.where(up, times_that_fit(self.room.at(at_ns), self.needs).min(axis=1), 0)


def facts_of(case: JobWait) -> dict[str, Any]:
    """Return the numbers of a wait for a slot, or for resources; times in s since the arrival.

    In a queue: ``node``, the entries ``queued_before`` it, and the wait ``expected_s`` by which its scheduler chose the
    node. ``chosen_s`` is when the node was chosen, ``ended_s`` when the wait ended. ``usable_nodes`` are those that the
    job may use.

    Of slots: ``usable_slots`` on these nodes, of which ``down_nodes`` and ``free_nodes`` at ``chosen_s``;
    ``first_free_node`` and ``first_free_s`` are of the first free slot from then on; ``free_slots_mean`` is over the
    wait.

    Of resources: the scarcest ``resource``, what it ``needs`` of it, ``lacking``, the share of the wait in which its
    node had too little free, how many nodes ``had_room``, and ``free_share``, what was free of it on all usable nodes.
    """
    e, submit_ns, facts, inputs = case.events, case.chain.submit_ns, dict[str, Any](), case.inputs
    if case.is_at_node:
        is_known = case.entering != NONE
        facts |= {
            "node": case.link.actor,
            "queued_before": int(e.queued[case.entering]) if is_known else None,
            "expected_s": None if case.expected_ns is None else case.expected_ns / NS,
        }
    facts["chosen_s"], facts["ended_s"] = ((at - submit_ns) / NS for at in (case.chosen_ns, case.end_ns))
    if inputs is None:
        return facts
    usable = inputs.usable
    facts["usable_nodes"] = int(usable.sum())
    if inputs.setting.resources:
        scarce = inputs.scarce
        at_node = {"lacking": float(inputs.lacking[scarce])} if case.is_at_node else {}
        return facts | {
            "resource": inputs.names[scarce],
            "needs": float(inputs.needs[scarce] / UNIT),
            **at_node,
            "had_room": int((inputs.tasks_with_room(case.chosen_ns) > 0).sum()),
            "free_share": float(inputs.free_share[scarce]),
        }
    if case.holds_resources:
        return facts
    free, ((total,), (held,)) = inputs.free_slots(case.chosen_ns), inputs.held_mean()
    there = inputs.room.all.rows(inputs.room.all.at(case.chosen_ns))
    first = np.lexsort((free.node, free.begin_ns))[:1]
    return facts | {
        "usable_slots": int(total),
        "down_nodes": int(np.unique(there.node[(there.job == NONE) & usable[there.node]]).size),
        "free_nodes": int(np.count_nonzero(free.begin_ns == case.chosen_ns)),
        "first_free_node": int(free.node[first[0]]) if first.size else None,
        "first_free_s": (int(free.begin_ns[first[0]]) - submit_ns) / NS if first.size else None,
        "free_slots_mean": max(float(total - held), 0.0),
    }


def held_here(case: JobWait) -> list[dict[str, Any]]:
    """Return a row for each task that ran on the node during a wait, the longest first."""
    tasks, jobs, resources = case.tasks, case.result.jobs, case.resources
    ran, apart = tasks.within(case.begin_ns, case.end_ns), has_classes(jobs)
    first_task = np.cumsum(column(jobs, "num_tasks")) - column(jobs, "num_tasks")

    def held(row: int) -> dict[str, float]:
        if resources is None:
            return {}
        scarce = resources.scarce
        return {f"{resources.names[scarce]} held": float(resources.room.demand[row, scarce] / UNIT)}

    return [
        {
            "job": int(case.ids[job]),
            **({"class": jobs["job_class"][job].as_py()} if apart else {}),
            "task": int(tasks.task[row] - first_task[job]),
            "s": float(ran[row] / NS),
            "start_s": float((tasks.begin_ns[row] - case.chain.submit_ns) / NS),
            **held(row),
            "turn": _turn(case, row),
        }
        for row, job in zip(case.rows_ahead.tolist(), tasks.job[case.rows_ahead].tolist(), strict=True)
    ]


def _turn(case: JobWait, row: int) -> str:
    """Return whether a task ran already, came before the job, or came later and passed it; empty if not known."""
    tasks = case.tasks
    if tasks.begin_ns[row] < case.begin_ns:
        return "ran already"
    if tasks.job[row] == case.job:
        return SAME_JOB
    if tasks.job[row] not in case.known_jobs:
        return ""
    e = case.record
    mine = (e.job == tasks.job[row]) & (e.receiver == case.link.actor) & (e.time_ns <= tasks.begin_ns[row])
    bound = mine & e.is_kind(*BOUND) & (e.task == tasks.task[row])
    came = e.time_ns[bound] if bound.any() else e.time_ns[mine & e.is_kind("PROBE", "MOVE")]
    if came.size == 0:
        return ""
    # A sticky probe serves several tasks: it came when the first one did.
    return "came before" if (came[-1] if bound.any() else came[0]) <= case.begin_ns else "came later"


def held_anywhere(case: JobWait) -> list[dict[str, Any]]:
    """Return a row for each job that held slots that the waiting job may use, the largest holder first."""
    tasks, jobs = case.tasks, case.result.jobs
    ran = tasks.within(case.begin_ns, case.end_ns)
    if case.inputs is not None:
        ran = np.where(case.inputs.usable[tasks.node], ran, 0)
    sums, counts = (np.bincount(tasks.job, weights, jobs.num_rows) for weights in (ran / NS, ran > 0))
    rows = np.flatnonzero(counts)
    classes, apart = jobs["job_class"], has_classes(jobs)
    many = "tasks at once" if case.holds_resources else "slots"
    return [
        {
            "job": int(case.ids[row]),
            **({"class": classes[row].as_py()} if apart else {}),
            "tasks": int(counts[row]),
            "s": float(sums[row]),
            many: float(sums[row] / (case.length_ns / NS)),
        }
        for row in rows[np.argsort(-sums[rows], kind="stable")].tolist()
    ]
