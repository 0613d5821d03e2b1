"""Admission of coflows with deadlines: the coordinator's verdicts, and the messages that take them to the agents.

A decision admits or rejects each coflow; a later one may admit a rejected coflow. A coflow is dropped if its deadline
has passed, or if it is rejected and no later decision can admit it. A dropped coflow never finishes, unless all its
flows end before their agents receive the verdict. When a verdict changes, the agents that send flows of the coflow
receive it, one message for each of its ingress ports. Rates come with schedules, as for other coflows; agents forget
the flows of a dropped coflow.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import SPARE, note_schedule
from actors.fabric.counters import N_ADMISSIONS, N_DROPPED, N_REJECTIONS, N_VERDICTS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import Matching, end_stopped_flow, free_port, move_group, stop_flow
from actors.fabric.messages import SEND_REST, read_due, send_due, send_verdict
from actors.fabric.ports import Fabric, flows_of, last_end, lines_of
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_ARRIVED
from actors.kernel.queue import NEVER, NONE

UNDECIDED = NONE
REJECTED, ADMITTED = np.int64(0), np.int64(1)
DROPPED, LATE = np.int64(2), np.int64(3)  # rejected for good; dropped because its deadline has passed


class Admission(NamedTuple):
    """The verdicts on C coflows; times in ns."""

    deadline: np.ndarray  # [C] NEVER: it has no deadline
    verdict: np.ndarray = per("coflow", UNDECIDED)  # or REJECTED, ADMITTED, DROPPED, LATE
    admitted: np.ndarray = per("coflow", NEVER)  # when it was last admitted; NEVER: it was not
    rejected: np.ndarray = per("coflow", NEVER)  # when it was last rejected; NEVER: it was not
    # the first `changes`: coflows with a verdict that their agents do not know
    changed: np.ndarray = per("coflow")
    changes: np.ndarray = per("run")
    # changes sent to all agents; agents that have been sent the next change
    sent: np.ndarray = per("run", 0, 2)
    unended: np.ndarray = per("coflow")  # flows of a dropped coflow whose ends were not received
    bytes_sent: np.ndarray = per("coflow", 0.0)  # by a dropped coflow when the decision takes effect
    # of programs: how many, how many of them the time limit ended, and the largest gap
    solved: np.ndarray = per("run", 0.0, 3)


def make_admission(fabric: Fabric, deadline_ns: np.ndarray) -> Admission:
    """Return the state in which nothing is decided about coflows with these deadlines, [C] ns, NEVER for none."""
    return at_start(Admission, fabric, deadline=np.minimum(deadline_ns, NEVER))


@inlined
def is_dropped(admission: Admission, coflow: int) -> bool:
    """Return whether a coflow was dropped."""
    return admission.verdict[coflow] >= DROPPED


@inlined
def time_left(admission: Admission, coflow: int, effective: int) -> float:
    """Return the ns from when a schedule takes effect until a coflow's deadline, infinite if it has none."""
    deadline = admission.deadline[coflow]
    return np.inf if deadline == NEVER else np.float64(deadline - effective)


@compiled
def decide_verdict(w: CoflowWorld, admission: Admission, t: int, coflow: int, verdict: int) -> None:
    """Set the verdict on a coflow, at most once in a decision; `send_verdicts` sends changes to its agents."""
    was = admission.verdict[coflow]
    if was == verdict:
        return
    admission.verdict[coflow] = verdict
    admission.changed[admission.changes[0]] = coflow
    admission.changes[0] += 1
    if verdict == ADMITTED:
        admission.admitted[coflow] = t
        w.counts[N_ADMISSIONS] += 1
    elif verdict != LATE and was != REJECTED:
        admission.rejected[coflow] = t
        w.counts[N_REJECTIONS] += 1


@compiled
def drop_greedy(
    w: CoflowWorld, admission: Admission, matching: Matching, t: int, coflow: int, verdict: int
) -> None:
    """Drop a coflow, as DROPPED or LATE, under greedy rates: its flows stop, and it never finishes."""
    fabric, flows, coflows = w.fabric, w.fabric.flows, w.fabric.coflows
    effective = t + w.network.delay_ns
    move_group(fabric, matching, effective, coflow, NONE)
    for flow in flows_of(coflows, coflow):
        admission.bytes_sent[coflow] += flows.size[flow]
        if flows.finish[flow] == NEVER:
            if matching.flow[flows.source[flow]] == flow:  # as under `flow_order=workload`
                stop_flow(fabric, matching, effective, flow)
                free_port(matching, flows.source[flow])
                free_port(matching, flows.sink[flow])
            admission.bytes_sent[coflow] -= flows.left[flow]
            end_stopped_flow(fabric, matching, effective, flow)
            flows.finish[flow] = NONE
            admission.unended[coflow] += 1
            w.counts[N_ARRIVED] -= 1
    coflows.finish[coflow] = NONE
    w.counts[N_DROPPED] += 1
    decide_verdict(w, admission, t, coflow, verdict)


@compiled
def ends_dropped(w: CoflowWorld, admission: Admission, flow: int, ended: int) -> bool:
    """Return whether the FLOW_DONE at hand is of a dropped coflow; the coflow ends if all its flows have ended.

    Such flows end while the verdict, or the message of their end, is on its way.
    """
    coflow = w.fabric.flows.coflow[flow]
    if not is_dropped(admission, coflow):
        return False
    w.counts[N_ARRIVED] += 1  # as its agent has counted an end
    w.fabric.flows.finish[flow] = ended
    admission.unended[coflow] -= 1
    if admission.unended[coflow] == 0:
        w.fabric.coflows.finish[coflow] = last_end(w.fabric, coflow)
    return True


@inlined
def count_verdicts(w: CoflowWorld, admission: Admission) -> int:
    """Count the messages of all new verdicts, one for each ingress line of their coflows; return how many."""
    messages: int = 0
    for i in range(admission.changes[0]):
        coflow = admission.changed[i]
        messages += len(lines_of(w.fabric.lines, coflow, 0))
    w.counts[N_VERDICTS] += messages
    return messages


@compiled
def send_verdicts(w: CoflowWorld, admission: Admission, t: int, others: int) -> None:
    """Send the agents new verdicts, as many as one event may send; further events at this time send the others.

    Args:
        others: how many other messages the event at hand has sent.
    """
    lines, room = w.fabric.lines, w.queue.room - SPARE - others
    while admission.sent[0] < admission.changes[0]:
        coflow = admission.changed[admission.sent[0]]
        line = lines.first_line[coflow, 0] + admission.sent[1]
        if line >= lines.end_line[coflow, 0]:
            admission.sent[0] += 1
            admission.sent[1] = 0
            continue
        if room <= 0:
            send_due(w, SEND_REST, read_due(w))
            return
        room -= 1
        admission.sent[1] += 1
        send_verdict(w, t, w.nodes.size, lines.port[line], line, admission.verdict[coflow])
        note_schedule(w, lines.port[line])
    admission.changes[0] = admission.sent[0] = 0
