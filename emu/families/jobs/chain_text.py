"""The chain of a job in words, and its longest wait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emu.explaining.event_record import NONE, BoolArray, Record
from emu.explaining.explanation import Link
from emu.families.jobs.causes import Step

LEAST_SHARE = 0.5
"""Least share that a job spends at the scheduler in a wait that trips to full nodes interrupt."""


class ChainText:
    """Descriptions of the steps of a job's chain, from the events of the job.

    Actors below `num_nodes` are nodes; `first_task` is the job's first task, over all in workload order.
    """

    def __init__(self, events: Record, num_nodes: int, first_task: int, submit_ns: int):
        self.e, self.num_nodes, self.first_task, self.submit_ns = events, num_nodes, first_task, submit_ns

    def link(self, step: Step) -> Link:
        """Return a step as a link, in words and in ns since the arrival."""
        begin_ns, end_ns = step.begin_ns - self.submit_ns, step.end_ns - self.submit_ns
        return Link(begin_ns, end_ns, step.cause, self._what(step))

    def has_started(self, step: Step) -> bool:
        """Return whether a task started on the node of a step when it began."""
        started = (self.e.kind == "START") & (self.e.receiver == step.actor)
        return bool((started & (self.e.time_ns == step.begin_ns) & (self.e.task == step.task)).any())

    def task(self, task: int) -> str:
        """Return the name of a task, or for NONE of a probe."""
        return "its probe" if task == NONE else f"task {task - self.first_task}"

    def actor(self, actor: int) -> str:
        """Return the name of an actor."""
        if actor == NONE:
            return "an actor that was not recorded"
        return f"node {actor}" if actor < self.num_nodes else f"scheduler {actor - self.num_nodes}"

    def _what(self, step: Step) -> str:
        at, task = self.actor(step.actor), self.task(step.task)
        if step.cause == "preemption" or (step.cause == "work" and step.kind == "LOST"):
            kept = ", and what it had done was kept" if step.cause == "work" else ""
            return f"{task} ran on {at} until it was evicted and its scheduler knew{kept}"
        if step.cause == "work":
            return f"{task} ran on {at}"
        if step.cause == "network":
            return self._message(step)
        if step.cause == "failure":
            until = "until the node failed and its scheduler knew"
            return f"{task} {f'ran on {at}' if self.has_started(step) else f'waited in the queue of {at}'} {until}"
        if step.cause == "decision":
            paused = step.kind == "RETRY"
            return f"{at} waited before it probed again" if paused else f"{at} was busy"
        if step.actor >= self.num_nodes or step.actor == NONE:
            return f"{task} waited at {at}"
        return f"{task} waited in the queue of {at}{self._end_of_wait(step)}"

    def _end_of_wait(self, step: Step) -> str:
        if step.kind == "MOVE":
            thief = self._at(step, "MOVE", self.e.field("from_node") == step.actor, "receiver")
            return f", until node {thief} took it"
        if step.kind == "PROBE":
            thief = self._at(step, "PROBE", self.e.sender == step.actor, "receiver", left=True)
            return f", until node {thief} took it"
        if step.kind in ("REJECTED", "RETURNED"):
            return ", until the node gave it back" if step.end_ns > step.begin_ns else ", which refused it"
        return ""

    def _message(self, step: Step) -> str:
        to, task = self.actor(step.actor), self.task(step.task)
        sender = self.actor(self._at(step, step.kind, self.e.receiver == step.actor, "sender"))
        if step.kind == "PROBE" and sender.startswith("node"):
            return f"its probe went from {sender} to {to}"
        texts = {
            "PROBE": f"its probe went to {to}",
            "PLACED": f"{task} went to {to}",
            "OFFERED": f"{task} went to {to}",
            "TASK": f"{task} went to {to}",
            "REQUEST": f"{sender} asked for a task",
            "REJECTED": f"{sender} sent it back",
            "RETURNED": f"{sender} sent it back",
            "LOST": f"word of what was lost went to {to}",
            "ASK_LENGTH": f"{to} was asked for the length of its queue",
            "LENGTH": f"{sender} reported the length of its queue",
        }
        return texts.get(step.kind, f"a message went to {to}")

    def _at(self, step: Step, kind: str, mask: BoolArray, field: str, left: bool = False) -> int:
        """Return a field of the event of a kind with which a step ended."""
        times = self.e.left_ns if left else self.e.time_ns
        found = np.flatnonzero(mask & (self.e.kind == kind) & (times == step.end_ns))
        return int(getattr(self.e, field)[found[0]]) if found.size else NONE


def longest_span(steps: Sequence[Step], num_nodes: int) -> tuple[int, int] | None:
    """Return the first step of the longest wait, and the one behind its last; None if the job did not wait.

    Waits at a scheduler are one wait if only trips to nodes without room lie between them.
    """
    best, longest, end = None, 0, 0
    for i, step in enumerate(steps):
        if i < end or step.cause == "work" or step.end_ns == step.begin_ns:
            continue
        end = i + 1
        if step.cause == "queueing" and step.actor >= num_nodes:
            end = _end_of_stay(steps, i)
        took = steps[end - 1].end_ns - step.begin_ns
        if took > longest:
            best, longest = (i, end), took
    return best


def _end_of_stay(steps: Sequence[Step], begin: int) -> int:
    """Return the step behind the last wait at the scheduler where the job waits from `begin` on."""
    end, stayed = begin + 1, 0
    for i in range(begin, len(steps)):
        step = steps[i]
        if step.cause == "work":
            break
        if step.cause == "queueing" and step.actor == steps[begin].actor:
            stayed += step.end_ns - step.begin_ns
            if stayed >= LEAST_SHARE * (step.end_ns - steps[begin].begin_ns):
                end = i + 1
    return end
