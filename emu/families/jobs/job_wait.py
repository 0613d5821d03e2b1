"""One wait of a job, and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from clusters.capacity import needs_of
from clusters.matching import match, nodes_of
from emu.explaining.causes_text import scheduler_of
from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.explained_plan import plan_of
from emu.explaining.explanation import NS
from emu.explaining.spans import NEVER
from emu.families.jobs.causes import ENTERS, Step
from emu.families.jobs.chain_text import ChainText
from emu.families.jobs.slot_holders import Free, Tasks, free_slots, with_outages
from emu.results.result import Result
from workloads.requests import priorities

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Setting


@dataclass(frozen=True)
class JobWait:
    """One wait of a job, and what is known about it.

    ``record`` has the events of the job and, where they are recorded, of jobs that held its slots; ``job`` is its row
    in the table of jobs, ``events`` are its events, ``steps`` its chain. ``first`` is the first step of the wait, and
    ``end`` the one behind its last.
    """

    result: Result
    record: Record
    job: int
    events: Record
    steps: Sequence[Step]
    first: int
    end: int
    words: ChainText
    tasks: Tasks

    @property
    def step(self) -> Step:
        """The first step of the wait."""
        return self.steps[self.first]

    @property
    def begin_ns(self) -> int:
        """When it began."""
        return self.step.begin_ns

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.steps[self.end - 1].end_ns

    @property
    def is_at_node(self) -> bool:
        """Whether it is a wait in the queue of a node."""
        waits = self.step.cause == "queueing" or (
            self.step.cause == "failure" and not self.words.has_started(self.step)
        )
        return waits and 0 <= self.step.actor < self.result.summary["nodes"]

    @property
    def is_at_scheduler(self) -> bool:
        """Whether it is a wait at a scheduler, for a node."""
        return self.step.cause == "queueing" and self.step.actor >= self.result.summary["nodes"]

    @cached_property
    def evicted_for(self) -> int:
        """The row of the job for which it was evicted just before it waits; NONE: it was not, or that is not known."""
        e = self.events
        lost = np.flatnonzero(e.is_kind("LOST") & (e.time_ns == self.begin_ns) & (e.task != NONE))
        if (mine := lost[e.task[lost] == self.step.task]).size:
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
    def setting(self) -> Setting | None:
        """The setting of the run; None where its inputs have changed."""
        plan = plan_of(self.result)
        return None if plan is None else plan.setting(0)

    @cached_property
    def usable(self) -> tuple[BoolArray, IntArray] | None:
        """Which nodes the job may use, and the slots of each; None where the inputs have changed."""
        setting = self.setting
        if setting is None:
            return None
        scheduler, cluster = setting.scheduler, setting.cluster
        nodes = np.ones(cluster.num_nodes, bool)
        workload = setting.workload
        constrained = bool(scheduler.constrained and workload.job_constraints.num_rows)
        if constrained or setting.resources:
            needs = needs_of(workload, cluster, setting.resources) if setting.resources else None
            matching = match(workload, cluster, needs, constrained)
            if (of_job := int(matching.set_of_job[self.job])) != NONE:
                nodes[:] = False
                nodes[nodes_of(matching, of_job, -1 if self.events.is_kind("RELAX").any() else 0)] = True
        if self.is_long and scheduler.why_ignored("long_partition") is None:
            nodes[: self.first_long] = False
        return nodes, cluster.slots()

    @property
    def holds_resources(self) -> bool:
        """Whether tasks of the run held resources of nodes, and not a slot each."""
        return bool(self.result.summary["jobs"].get("used"))

    @cached_property
    def priority(self) -> IntArray:
        """The priorities of jobs by which nodes serve their queues, shape (J,); all 0 where they do not count."""
        jobs, setting = self.result.jobs, self.setting
        counts = setting is not None and setting.priorities
        return priorities(jobs) if counts else np.zeros(jobs.num_rows, np.int64)

    @property
    def is_long(self) -> bool:
        """Whether the job is long."""
        return str(self.result.jobs["job_class"][self.job].as_py()) == "long"

    @cached_property
    def first_long(self) -> int:
        """The first node that long jobs may use."""
        setting = self.setting
        return 0 if setting is None else setting.cluster.partition(setting.long_partition)

    @cached_property
    def entering(self) -> int:
        """The event with which the probe or task joined the queue; -1 if it was there before the wait."""
        e = self.events
        here = e.is_kind(*ENTERS) & (e.receiver == self.step.actor)
        found = np.flatnonzero(here & (e.time_ns == self.begin_ns))
        if self.step.task != NONE and (mine := found[e.task[found] == self.step.task]).size:
            found = mine
        return int(found[0]) if found.size else NONE

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
        choices = choices[e.field("node", choices) == self.step.actor]
        return e.value("wait", int(choices[-1])) if choices.size else None

    @cached_property
    def busy(self) -> Tasks:
        """The tasks, and outages of nodes, that took slots."""
        assert self.usable is not None
        return with_outages(self.tasks, self.record, self.usable[1])

    def rows_ahead(self) -> IntArray:
        """Return the tasks that ran on the node during the wait, the longest first."""
        ran = np.where(self.tasks.node == self.step.actor, self.tasks.within(self.begin_ns, self.end_ns), 0)
        rows = np.flatnonzero(ran)
        return rows[np.argsort(-ran[rows], kind="stable")]

    def free_at(self, at_ns: int) -> Free:
        """Return the slots that were free at a time on nodes that the job may use."""
        assert self.usable is not None
        assert self.setting is not None
        nodes, slots = self.usable
        network = self.setting.network
        # The longest that a slot waits for a task on its way.
        longest_s = max(network.delay_s, network.cross_rack_delay_s or 0.0) + network.spread_s
        return free_slots(self.busy, slots, nodes, at_ns, round(4 * NS * longest_s) + 1)


def facts_of(case: JobWait) -> dict[str, Any]:
    """Return the numbers of a wait for a slot; times in s since the arrival.

    In a queue: ``node``, the entries ``queued_before`` it, and the wait ``expected_s`` by which its scheduler chose the
    node. ``chosen_s`` is when the node was chosen, ``ended_s`` when the wait ended; ``usable_nodes`` and
    ``usable_slots`` are those that the job may use, of which ``down_nodes`` and ``free_nodes`` at ``chosen_s``;
    ``first_free_node`` and ``first_free_s`` are of the first free slot from then on; ``free_slots_mean`` is over the
    wait. Where tasks hold resources, nothing is said of slots.
    """
    e, submit_ns, facts = case.events, case.words.submit_ns, dict[str, Any]()
    if case.is_at_node:
        is_known = case.entering != NONE
        facts |= {
            "node": case.step.actor,
            "queued_before": int(e.queued[case.entering]) if is_known else None,
            "expected_s": None if case.expected_ns is None else case.expected_ns / NS,
        }
    facts["chosen_s"], facts["ended_s"] = (
        (at_ns - submit_ns) / NS for at_ns in (case.chosen_ns, case.end_ns)
    )
    if case.usable is None:
        return facts
    if case.holds_resources:
        return facts | {"usable_nodes": int(case.usable[0].sum())}
    nodes, slots = case.usable
    free, total = case.free_at(case.chosen_ns), int(slots[nodes].sum())
    down = (case.busy.job == NONE) & (case.busy.within(case.chosen_ns, case.chosen_ns + 1) > 0)
    ran = case.busy.within(case.begin_ns, case.end_ns)[nodes[case.busy.node]].sum()
    return facts | {
        "usable_nodes": int(nodes.sum()),
        "usable_slots": total,
        "down_nodes": int(np.unique(case.busy.node[down & nodes[case.busy.node]]).size),
        "free_nodes": free.nodes,
        "first_free_node": None if free.first_ns == NEVER else free.first_node,
        "first_free_s": None if free.first_ns == NEVER else (free.first_ns - submit_ns) / NS,
        "free_slots_mean": max(total - float(ran) / (case.end_ns - case.begin_ns), 0.0),
    }
